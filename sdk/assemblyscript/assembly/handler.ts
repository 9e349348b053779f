// The export of a handler.

import { config } from "./config";
import { Envelope } from "./frame";

export function kvrt_handle(frame: usize, len: u32, position: i32): i64 {
  const envelope = new Envelope(frame);
  return config.handle!(envelope.action(position), envelope).result();
}
