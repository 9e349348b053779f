// The exports that every guest has. A guest's entry file says
//
//     export * from "kvrt/assembly/guest";
//
// and the same of handler, parser or policy for each of its roles.

import * as abi from "./abi";
import { Answer } from "./answer";
import { config } from "./config";
import { value } from "./value";
import { releaseBuffer } from "./writer";

// What the host writes frames into. It lies outside what is collected.
let arena: usize = 0;
let size: u32 = 0;

// An accepting answer with features, for init.
const CHOSEN = heap.alloc(abi.SIZE_ANSWER);

export function kvrt_abi_1(): void {}

export function kvrt_arena(bytes: u32): i64 {
  if (bytes > config.maxFrame) return 0;
  if (bytes > size) {
    if (arena) heap.free(arena);
    size = (max(bytes, min<u32>(config.maxFrame, 16384)) + 7) & ~7;
    arena = heap.alloc(size);
  }
  return (<i64>arena << 32) | size;
}

export function kvrt_init(frame: usize, len: u32): i64 {
  const parameters = value(frame, frame + abi.OFF_INIT_FRAME_PARAMETERS);
  const read = config.init;
  if (read) {
    const refusal = read(parameters);
    if (refusal !== null) return Answer.reject(abi.REASON_INVALID_PAYLOAD, refusal).result();
  } else if (!parameters.isAbsent && !parameters.isNull && (!parameters.isMap || parameters.length > 0)) {
    return Answer.reject(abi.REASON_INVALID_PAYLOAD, "this guest takes no parameters").result();
  }
  heap.free(heap.alloc(config.heap));
  if (config.features == 0) return 0;
  memory.fill(CHOSEN, 0, abi.SIZE_ANSWER);
  store<u32>(CHOSEN, abi.STATUS_ACCEPTED, abi.OFF_ANSWER_STATUS);
  store<u64>(CHOSEN, config.features, abi.OFF_ANSWER_FEATURES);
  return (<i64>CHOSEN << 32) | abi.SIZE_ANSWER;
}

/** The only place where anything is collected: no value is on the stack here. */
export function kvrt_idle(): void {
  releaseBuffer();
  __collect();
}
