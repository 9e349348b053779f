// What a role answers.

import {
  OFF_ANSWER_DETAIL, OFF_ANSWER_REASON, OFF_ANSWER_STATUS, SIZE_ANSWER, STATUS_REJECTED,
} from "./abi";

// Bytes of a detail that a host keeps.
const MAX_DETAIL: u32 = 512;

/** The verdict of a role. */
export class Answer {
  /** Use `accept`, `reject`, a Writer, or what a host function answers. */
  constructor(
    readonly reason: u32,
    readonly detail: string | null, // null: a host function's goes with the reason
    readonly at: usize = 0, // of an Answer that was written
    readonly size: u32 = 0,
  ) {}

  /** Takes the action, which is passed on as it came. A policy has no actions then. */
  static accept(): Answer { return ACCEPTED; }

  /** Does not take the action. The detail is for people; 512 bytes of it are kept. */
  static reject(reason: u32, detail: string): Answer { return new Answer(reason, detail); }

  get accepted(): bool { return this.reason == 0; }

  /** What a role returns to the host. */
  result(): i64 {
    if (this.at) return (<i64>this.at << 32) | this.size;
    const detail = this.detail;
    if (this.reason == 0 || !detail) return -(<i64>this.reason);
    const utf8 = String.UTF8.encode(detail);
    const from = changetype<usize>(utf8);
    let n = min(<u32>utf8.byteLength, MAX_DETAIL);
    if (n < <u32>utf8.byteLength) {
      while ((load<u8>(from + n) & 0xc0) == 0x80) n--; // not in the middle of a character
    }
    memory.fill(RECORD, 0, SIZE_ANSWER);
    store<u32>(RECORD, STATUS_REJECTED, OFF_ANSWER_STATUS);
    store<u32>(RECORD, this.reason, OFF_ANSWER_REASON);
    store<u32>(RECORD, <u32>SIZE_ANSWER, OFF_ANSWER_DETAIL);
    store<u32>(RECORD, n, OFF_ANSWER_DETAIL + 4);
    memory.copy(RECORD + SIZE_ANSWER, from, n);
    return (<i64>RECORD << 32) | (SIZE_ANSWER + n);
  }
}

const ACCEPTED = new Answer(0, null);

// Where an answer without a body is laid out.
const RECORD = heap.alloc(SIZE_ANSWER + MAX_DETAIL);
