// What a role is shown. It lies in the frame of the current call, which the next one
// overwrites; strings are copies and may be kept.

import * as abi from "./abi";
import { Hashes, Value, span, value } from "./value";

/** One action. */
export class Action {
  constructor(readonly at: usize, /** Its place among the actions of this guest. */ readonly position: i32) {}

  /** null when the sender gave none. */
  get id(): string | null { return span(this.at, abi.OFF_ACTION_ACTION_ID); }
  get type(): string | null { return span(this.at, abi.OFF_ACTION_ACTION_TYPE); }
  /** null when the sender gave none. */
  get version(): string | null { return span(this.at, abi.OFF_ACTION_ACTION_VERSION); }
  get payload(): Value { return value(this.at, this.at + abi.OFF_ACTION_PAYLOAD); }
  /** Its place in the whole envelope. */
  get index(): i32 { return load<u32>(this.at, abi.OFF_ACTION_INDEX); }

  /** A copy of the payload as it was sent; null unless FEATURE_RAW_PAYLOAD was chosen. */
  get raw(): Uint8Array | null { return run(this.at, abi.OFF_ACTION_RAW); }
  /** The encoding of raw. */
  get rawFormat(): u32 { return load<u32>(this.at, abi.OFF_ACTION_RAW_FORMAT); }
}

/** A copy of a run of bytes; null when absent. */
function run(base: usize, off: usize): Uint8Array | null {
  const at = load<u32>(base + off);
  if (at == 0) return null;
  const out = new Uint8Array(load<u32>(base + off, 4));
  memory.copy(out.dataStart, base + at, out.length);
  return out;
}

/** All actions of an envelope that go to this guest, in order. */
export class Envelope {
  constructor(readonly at: usize) {}

  get length(): i32 { return load<u32>(this.at, abi.OFF_ENVELOPE_FRAME_COUNT); }
  /** How many actions the whole envelope has, those of other guests included. */
  get total(): i32 { return load<u32>(this.at, abi.OFF_ENVELOPE_FRAME_TOTAL); }
  /** The action at a position in [0, length). */
  action(position: i32): Action {
    if (<u32>position >= <u32>this.length) throw new RangeError();
    const table = this.at + load<u32>(this.at, abi.OFF_ENVELOPE_FRAME_ACTIONS);
    return new Action(this.at + load<u32>(table + (<usize>position << 2)), position);
  }
  get protocolVersion(): string | null { return span(this.at, abi.OFF_ENVELOPE_FRAME_PROTOCOL_VERSION); }
  get messageId(): string | null { return span(this.at, abi.OFF_ENVELOPE_FRAME_MESSAGE_ID); }
  get requestId(): string | null { return span(this.at, abi.OFF_ENVELOPE_FRAME_REQUEST_ID); }
  /** The serving engine that asks. */
  get engine(): string | null { return span(this.at, abi.OFF_ENVELOPE_FRAME_ENGINE); }
  /** One of the LEG_ constants. */
  get leg(): u32 { return load<u32>(this.at, abi.OFF_ENVELOPE_FRAME_LEG); }
  get dpRank(): u32 { return load<u32>(this.at, abi.OFF_ENVELOPE_FRAME_DP_RANK); }
  /** Which retry of the request this is. */
  get attempt(): u32 { return load<u32>(this.at, abi.OFF_ENVELOPE_FRAME_ATTEMPT); }
}

/** What a parser is to turn into an envelope. */
export class Document {
  constructor(readonly at: usize) {}

  /** A copy of the bytes as they were sent. */
  get raw(): Uint8Array | null { return run(this.at, abi.OFF_PARSE_FRAME_RAW); }
  /** One of the FORMAT_ constants. */
  get format(): u32 { return load<u32>(this.at, abi.OFF_PARSE_FRAME_FORMAT); }
  /** The bytes as a tree; absent when they are neither JSON nor msgpack. */
  get tree(): Value { return value(this.at, this.at + abi.OFF_PARSE_FRAME_DOCUMENT); }
  get requestId(): string | null { return span(this.at, abi.OFF_PARSE_FRAME_REQUEST_ID); }
  get dialect(): string | null { return span(this.at, abi.OFF_PARSE_FRAME_DIALECT); }
}

/**
 * What a policy knows about a request whose worker was chosen. Text that the router cannot
 * supply is null; whether it can supply a number or a list, `has` tells.
 */
export class Context {
  constructor(readonly at: usize) {}

  /** Whether the field of one of the HAS_ bits is there. */
  has(bit: u64): bool { return (load<u64>(this.at, abi.OFF_CONTEXT_FRAME_PRESENT) & bit) != 0; }

  get requestId(): string | null { return span(this.at, abi.OFF_CONTEXT_FRAME_REQUEST_ID); }
  get model(): string | null { return span(this.at, abi.OFF_CONTEXT_FRAME_MODEL); }
  get group(): string | null { return span(this.at, abi.OFF_CONTEXT_FRAME_GROUP); }
  get workerType(): string | null { return span(this.at, abi.OFF_CONTEXT_FRAME_WORKER_TYPE); }
  get tenant(): string | null { return span(this.at, abi.OFF_CONTEXT_FRAME_TENANT); }
  get namespace(): string | null { return span(this.at, abi.OFF_CONTEXT_FRAME_NAMESPACE); }
  get sessionId(): string | null { return span(this.at, abi.OFF_CONTEXT_FRAME_SESSION_ID); }
  get parentSessionId(): string | null { return span(this.at, abi.OFF_CONTEXT_FRAME_PARENT_SESSION_ID); }
  get attempt(): u32 { return load<u32>(this.at, abi.OFF_CONTEXT_FRAME_ATTEMPT); }
  /** One of the LEG_ constants. */
  get leg(): u32 { return load<u32>(this.at, abi.OFF_CONTEXT_FRAME_LEG); }
  get promptTokens(): u64 { return load<u64>(this.at, abi.OFF_CONTEXT_FRAME_PROMPT_TOKENS); }
  get expectedOutputTokens(): u64 { return load<u64>(this.at, abi.OFF_CONTEXT_FRAME_EXPECTED_OUTPUT_TOKENS); }
  get toolsDeclared(): bool { return load<u32>(this.at, abi.OFF_CONTEXT_FRAME_TOOLS_DECLARED) != 0; }
  /** One of the HASH_KIND_ constants. */
  get hashKind(): u32 { return load<u32>(this.at, abi.OFF_CONTEXT_FRAME_HASH_KIND); }
  get blockSize(): u32 { return load<u32>(this.at, abi.OFF_CONTEXT_FRAME_BLOCK_SIZE); }
  get sessionFinal(): bool { return load<u32>(this.at, abi.OFF_CONTEXT_FRAME_SESSION_FINAL) != 0; }
  /** One of the TRIGGER_ constants. */
  get inputTrigger(): u32 { return load<u32>(this.at, abi.OFF_CONTEXT_FRAME_INPUT_TRIGGER); }
  get blockHashes(): Hashes {
    return new Hashes(this.at + load<u32>(this.at, abi.OFF_CONTEXT_FRAME_BLOCK_HASHES), load<u32>(this.at, abi.OFF_CONTEXT_FRAME_BLOCK_HASHES_COUNT));
  }
  /** The worker that was chosen; its id is absent when none was. */
  get selected(): Worker { return new Worker(this.at, this.at + abi.OFF_CONTEXT_FRAME_SELECTED); }
  /** How many workers could have been chosen. */
  get candidates(): i32 { return load<u32>(this.at, abi.OFF_CONTEXT_FRAME_CANDIDATES_COUNT); }
  /** Candidate i in [0, candidates). */
  candidate(i: i32): Worker {
    if (<u32>i >= <u32>this.candidates) throw new RangeError();
    return new Worker(this.at, this.at + load<u32>(this.at, abi.OFF_CONTEXT_FRAME_CANDIDATES) + <usize>i * abi.SIZE_WORKER);
  }
  /** The envelope that came with the request, as a map. */
  get requestHint(): Value { return value(this.at, this.at + abi.OFF_CONTEXT_FRAME_REQUEST_HINT); }
  /** The envelope that the selection made, as a map. */
  get selectionHint(): Value { return value(this.at, this.at + abi.OFF_CONTEXT_FRAME_SELECTION_HINT); }
}

/** A worker of the fleet. */
export class Worker {
  constructor(private base: usize, private at: usize) {}

  /** Whether the field of one of the WORKER_HAS_ bits is there. */
  has(bit: u32): bool { return (this.present & bit) != 0; }
  get present(): u32 { return load<u32>(this.at, abi.OFF_WORKER_PRESENT); }
  /** An integer or a string. */
  get id(): Value { return value(this.base, this.at + abi.OFF_WORKER_ID); }
  get dpRank(): u32 { return load<u32>(this.at, abi.OFF_WORKER_DP_RANK); }
  /** Prefix blocks of the request that it holds, by tier. */
  get matchedGpu(): u32 { return load<u32>(this.at, abi.OFF_WORKER_MATCHED_GPU); }
  get matchedCpu(): u32 { return load<u32>(this.at, abi.OFF_WORKER_MATCHED_CPU); }
  get matchedDisk(): u32 { return load<u32>(this.at, abi.OFF_WORKER_MATCHED_DISK); }
  get matchedExternal(): u32 { return load<u32>(this.at, abi.OFF_WORKER_MATCHED_EXTERNAL); }
  /** aggregated, prefill, decode, ... */
  get type(): string | null { return this.text(abi.OFF_WORKER_WORKER_TYPE); }
  /** Where its blocks can be fetched from. */
  get sourceControlEndpoint(): string | null { return this.text(abi.OFF_WORKER_SOURCE_CONTROL_ENDPOINT); }
  /** How many action types it can execute. */
  get capabilities(): i32 { return load<u32>(this.at, abi.OFF_WORKER_CAPABILITIES_COUNT); }
  /** Action type i in [0, capabilities). */
  capability(i: i32): string {
    if (<u32>i >= <u32>this.capabilities) throw new RangeError();
    const at: usize = <usize>load<u32>(this.at, abi.OFF_WORKER_CAPABILITIES) + <usize>i * abi.SIZE_SPAN;
    const text = span(this.base, at);
    return text ? text : "";
  }

  // A worker's spans count from the frame's start.
  private text(field: usize): string | null { return span(this.base, this.at - this.base + field); }
}
