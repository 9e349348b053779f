// Writing actions and envelopes: for parsers, policies, and handlers that pass an action
// on rewritten.

import * as abi from "./abi";
import { Answer } from "./answer";
import { Action } from "./frame";
import { Hashes, Value } from "./value";

/** A value that was written. */
export class Node {
  constructor(readonly tag: u8, readonly ext: u8, readonly len: u32, readonly val: u64) {}
}

/** An entry of a map that was written. */
export class Field {
  constructor(readonly key: Node, readonly val: Node) {}
}

/** How many values may be copied into one answer: a sender decides how many there are. */
export const MAX_COPIED: i32 = 4096;

// What is written into, kept from call to call; grows on demand.
let buffer: usize = 0;
let room: u32 = 0;

/** Lets go of a large buffer. Called between calls. */
export function releaseBuffer(): void {
  if (room > 65536) {
    heap.free(buffer);
    buffer = 0;
    room = 0;
  }
}

/**
 * Writes the answer of a parser or policy, or the action that a handler passes on:
 *
 *     const w = Writer.rewrite(action);
 *     return w.payload(w.map([w.field("mode", w.text("copy"))])).answer();
 *
 * Values are written first, then the map or array that holds them. One writer lives at a
 * time. An answer that is too large becomes limit_exceeded.
 */
export class Writer {
  private len: u32 = <u32>abi.SIZE_ANSWER;
  private base: u32 = <u32>abi.SIZE_ANSWER; // what offsets count from
  private at: u32[] = []; // where the actions of an envelope begin
  private copied: i32 = 0;
  private failed: bool = false;

  private constructor(private envelope: bool) {
    this.reserve(4096);
    memory.fill(buffer, 0, abi.SIZE_ANSWER);
  }

  /** Starts the action that is passed on in place of another: the same ids, type and version. */
  static rewrite(action: Action): Writer {
    const w = new Writer(false);
    w.begin();
    w.span(abi.OFF_ACTION_ACTION_ID, action.id);
    w.span(abi.OFF_ACTION_ACTION_TYPE, action.type);
    w.span(abi.OFF_ACTION_ACTION_VERSION, action.version);
    return w;
  }

  /** Starts an envelope. */
  static envelope(protocolVersion: string, messageId: string): Writer {
    const w = new Writer(true);
    w.take(<u32>abi.SIZE_ENVELOPE_FRAME);
    w.span(abi.OFF_ENVELOPE_FRAME_PROTOCOL_VERSION, protocolVersion);
    w.span(abi.OFF_ENVELOPE_FRAME_MESSAGE_ID, messageId);
    return w;
  }

  /** Starts an action of an envelope; payload ends it. What is null is absent. */
  action(id: string | null, type: string, version: string | null): Writer {
    this.begin();
    this.span(abi.OFF_ACTION_ACTION_ID, id);
    this.span(abi.OFF_ACTION_ACTION_TYPE, type);
    this.span(abi.OFF_ACTION_ACTION_VERSION, version);
    return this;
  }

  private begin(): void {
    this.base = this.take(<u32>abi.SIZE_ACTION);
    if (this.envelope) this.at.push(this.base - <u32>abi.SIZE_ANSWER);
  }

  /** Ends the action that was begun. */
  payload(root: Node): Writer {
    this.put(this.base + <u32>abi.OFF_ACTION_PAYLOAD, root);
    this.align();
    store<u32>(buffer + this.base, this.len - this.base, abi.OFF_ACTION_SIZE);
    return this;
  }

  /** The answer: the action is taken, and what was written goes on. */
  answer(): Answer {
    const body = <u32>abi.SIZE_ANSWER;
    if (this.envelope) {
      const count = <u32>this.at.length;
      const table = this.take(4 * count);
      for (let i: u32 = 0; i < count; i++) store<u32>(buffer + table + 4 * i, this.at[i]);
      this.align();
      const frame = buffer + body;
      store<u32>(frame, abi.KIND_ENVELOPE, abi.OFF_ENVELOPE_FRAME_KIND);
      store<u32>(frame, this.len - body, abi.OFF_ENVELOPE_FRAME_SIZE);
      store<u32>(frame, table - body, abi.OFF_ENVELOPE_FRAME_ACTIONS);
      store<u32>(frame, count, abi.OFF_ENVELOPE_FRAME_COUNT);
      store<u32>(frame, count, abi.OFF_ENVELOPE_FRAME_TOTAL);
    }
    if (this.failed) return Answer.reject(abi.REASON_LIMIT_EXCEEDED, "the answer is too large");
    store<u32>(buffer, abi.STATUS_ACCEPTED, abi.OFF_ANSWER_STATUS);
    store<u32>(buffer, body, abi.OFF_ANSWER_BODY);
    store<u32>(buffer, this.len - body, abi.OFF_ANSWER_BODY + 4);
    return new Answer(0, null, buffer, this.len);
  }

  null(): Node { return new Node(abi.TAG_NULL, 0, 0, 0); }
  bool(x: bool): Node { return new Node(abi.TAG_BOOL, 0, 0, x ? 1 : 0); }
  u64(x: u64): Node { return new Node(abi.TAG_U64, 0, 0, x); }
  i64(x: i64): Node { return new Node(x < 0 ? abi.TAG_I64 : abi.TAG_U64, 0, 0, x); }
  f64(x: f64): Node { return new Node(abi.TAG_F64, 0, 0, reinterpret<u64>(x)); }

  text(s: string): Node {
    const n = <u32>String.UTF8.byteLength(s);
    const at = this.bytes(n);
    String.UTF8.encodeUnsafe(changetype<usize>(s), s.length, buffer + at);
    return new Node(abi.TAG_STRING, 0, n, at - this.base);
  }

  /** An array of integers. */
  integers(list: u64[]): Node {
    const n = <u32>list.length;
    const at = this.take(8 * n);
    for (let i: u32 = 0; i < n; i++) store<u64>(buffer + at + 8 * i, list[i]);
    return new Node(n ? abi.TAG_U64S : abi.TAG_ARRAY, 0, n, at - this.base);
  }

  /** An array of integers that lies in the frame. */
  hashes(h: Hashes): Node {
    const at = this.take(8 * <u32>h.length);
    memory.copy(buffer + at, h.at, 8 * <usize>h.length);
    return new Node(h.length ? abi.TAG_U64S : abi.TAG_ARRAY, 0, h.length, at - this.base);
  }

  /** An array of values that were written before. */
  array(elems: Node[]): Node {
    const n = <u32>elems.length;
    let integers = n > 0;
    for (let i: u32 = 0; i < n; i++) integers = integers && elems[i].tag == abi.TAG_U64;
    const at = this.take(n * (integers ? 8 : <u32>abi.SIZE_NODE));
    for (let i: u32 = 0; i < n; i++) {
      if (integers) store<u64>(buffer + at + 8 * i, elems[i].val);
      else this.put(at + i * <u32>abi.SIZE_NODE, elems[i]);
    }
    return new Node(integers ? abi.TAG_U64S : abi.TAG_ARRAY, 0, n, at - this.base);
  }

  /** The key of a value that was written before, for map. */
  field(key: string, val: Node): Field { return new Field(this.text(key), val); }

  /** A map of fields that were written before. */
  map(fields: Field[]): Node {
    const n = <u32>fields.length;
    const at = this.take(n * <u32>abi.SIZE_ENTRY);
    for (let i: u32 = 0; i < n; i++) {
      this.put(at + i * <u32>abi.SIZE_ENTRY, fields[i].key);
      this.put(at + i * <u32>abi.SIZE_ENTRY + <u32>abi.OFF_ENTRY_VAL, fields[i].val);
    }
    return new Node(abi.TAG_MAP, 0, n, at - this.base);
  }

  /** A copy of a value with all below it; at most MAX_COPIED values in one answer. */
  copy(v: Value): Node {
    if (++this.copied > MAX_COPIED || v.length > MAX_COPIED && v.tag != abi.TAG_U64S) {
      this.failed = true;
      return this.null();
    }
    const from = v.base + <usize>v.val;
    switch (v.tag) {
      case abi.TAG_NUMBER: case abi.TAG_STRING: case abi.TAG_BYTES: case abi.TAG_EXT: {
        const at = this.bytes(v.len);
        memory.copy(buffer + at, from, v.len);
        return new Node(v.tag, v.ext, v.len, at - this.base);
      }
      case abi.TAG_U64S: return this.hashes(new Hashes(from, v.len));
      case abi.TAG_ARRAY: {
        const elems = new Array<Node>();
        for (let i = 0; i < v.length; i++) elems.push(this.copy(v.elem(i)));
        return this.array(elems);
      }
      case abi.TAG_MAP: {
        const fields = new Array<Field>();
        for (let i = 0; i < v.length; i++) fields.push(new Field(this.copy(v.key(i)), this.copy(v.entry(i))));
        return this.map(fields);
      }
    }
    return new Node(v.tag, 0, 0, v.val);
  }

  // span writes text; null is absent. off is the field's in the record that begins at base.
  private span(off: usize, text: string | null): void {
    if (!text) {
      if (text === null) return;
    }
    const node = this.text(text);
    store<u32>(buffer + this.base + off, <u32>node.val);
    store<u32>(buffer + this.base + off, node.len, 4);
  }

  private put(at: u32, n: Node): void {
    store<u64>(buffer + at, <u64>n.tag | (<u64>n.ext << 8) | (<u64>n.len << 32));
    store<u64>(buffer + at, n.val, abi.OFF_NODE_VAL);
  }

  private align(): void { this.take(0); }

  // take appends n zero bytes, 8-byte aligned, and returns where they are.
  private take(n: u32): u32 {
    const begin = this.len;
    const at = (begin + 7) & ~7;
    this.reserve(<u64>at + n);
    if (this.failed) return this.base;
    this.len = at + n;
    memory.fill(buffer + begin, 0, this.len - begin);
    return at;
  }

  // bytes appends n bytes, which the caller fills.
  private bytes(n: u32): u32 {
    const at = this.len;
    this.reserve(<u64>at + n);
    if (this.failed) return this.base;
    this.len = at + n;
    return at;
  }

  // reserve makes room up to end, or fails.
  private reserve(end: u64): void {
    if (end <= room) return;
    if (end > MAX_ANSWER) {
      this.failed = true;
      return;
    }
    room = max(<u32>end, room * 2);
    buffer = buffer ? heap.realloc(buffer, room) : heap.alloc(room);
  }
}

// Bytes of an answer that a host reads at most.
const MAX_ANSWER: u64 = 4 << 20;
