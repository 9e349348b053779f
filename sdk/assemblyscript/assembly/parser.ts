// The export of a parser.

import { config } from "./config";
import { Document } from "./frame";

export function kvrt_parse(frame: usize, len: u32): i64 {
  return config.parse!(new Document(frame)).result();
}
