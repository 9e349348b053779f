// The export of a policy.

import { config } from "./config";
import { Context } from "./frame";

export function kvrt_formulate(frame: usize, len: u32): i64 {
  return config.formulate!(new Context(frame)).result();
}
