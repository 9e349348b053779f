// Values: payloads and parameters as trees.

import {
  OFF_ENTRY_VAL, OFF_NODE_EXT, OFF_NODE_LEN, OFF_NODE_TAG, OFF_NODE_VAL, SIZE_ENTRY, SIZE_NODE,
  TAG_ABSENT, TAG_ARRAY, TAG_BOOL, TAG_BYTES, TAG_EXT, TAG_F64, TAG_I64, TAG_MAP, TAG_NULL, TAG_NUMBER, TAG_STRING, TAG_U64, TAG_U64S,
} from "./abi";

/** A list of integers as it lies in the frame: gone when the call ends. */
export class Hashes {
  constructor(readonly at: usize, readonly length: i32) {}

  @operator("[]")
  get(i: i32): u64 {
    if (<u32>i >= <u32>this.length) throw new RangeError();
    return load<u64>(this.at + (<usize>i << 3));
  }
}

/**
 * One value of a payload or of parameters. The readers never convert: an integer is not
 * a float, nor a bool an integer. What is not there is an absent value. A reader of
 * another type than the value's gives 0, false, "" or null: ask `isU64` and its like first
 * where that matters.
 */
export class Value {
  constructor(readonly base: usize, readonly tag: u8, readonly ext: u8, readonly len: u32, readonly val: u64) {}

  get isAbsent(): bool { return this.tag == TAG_ABSENT; }
  get isNull(): bool { return this.tag == TAG_NULL; }
  get isBool(): bool { return this.tag == TAG_BOOL; }
  get isU64(): bool { return this.tag == TAG_U64; }
  /** An integer in [-2^63, 2^63). */
  get isI64(): bool { return this.tag == TAG_I64 || (this.tag == TAG_U64 && <i64>this.val >= 0); }
  get isF64(): bool { return this.tag == TAG_F64; }
  get isText(): bool { return this.tag == TAG_STRING; }
  get isArray(): bool { return this.tag == TAG_ARRAY || this.tag == TAG_U64S; }
  get isMap(): bool { return this.tag == TAG_MAP; }

  /** The value for people, such as "a string". */
  get kind(): string {
    switch (this.tag) {
      case TAG_ABSENT: return "absent";
      case TAG_NULL: return "null";
      case TAG_BOOL: return "a bool";
      case TAG_U64: case TAG_I64: return "an integer";
      case TAG_F64: return "a float";
      case TAG_NUMBER: return "a number that is out of range";
      case TAG_STRING: return "a string";
      case TAG_BYTES: return "bytes";
      case TAG_ARRAY: case TAG_U64S: return "an array";
      case TAG_MAP: return "an object";
    }
    return "an extension";
  }

  get bool(): bool { return this.tag == TAG_BOOL && this.val != 0; }
  get u64(): u64 { return this.tag == TAG_U64 ? this.val : 0; }
  get i64(): i64 { return this.isI64 ? <i64>this.val : 0; }
  get f64(): f64 { return this.tag == TAG_F64 ? reinterpret<f64>(this.val) : 0; }

  /** A string. */
  get text(): string { return this.tag == TAG_STRING ? this.utf8() : ""; }
  /** The text of a number that no 64-bit type holds. */
  get number(): string { return this.tag == TAG_NUMBER ? this.utf8() : ""; }

  /** Whether the value is this string. Nothing is allocated where it is ASCII. */
  is(text: string): bool { return this.tag == TAG_STRING && same(this.base + <usize>this.val, this.len, text); }

  private utf8(): string { return String.UTF8.decodeUnsafe(this.base + <usize>this.val, this.len); }

  /** A copy of a byte string or of an extension's bytes. */
  get bytes(): Uint8Array | null {
    if (this.tag != TAG_BYTES && this.tag != TAG_EXT) return null;
    const out = new Uint8Array(this.len);
    memory.copy(out.dataStart, this.base + <usize>this.val, this.len);
    return out;
  }

  /** A non-empty array of integers in [0, 2^64), as it lies in memory. */
  get hashes(): Hashes | null {
    return this.tag == TAG_U64S ? new Hashes(this.base + <usize>this.val, this.len) : null;
  }

  /** How many elements or entries an array or a map has; 0 for anything else. */
  get length(): i32 { return this.isArray || this.tag == TAG_MAP ? <i32>this.len : 0; }

  /** Element i of an array; absent past its ends. */
  elem(i: i32): Value {
    if (!this.isArray || <u32>i >= this.len) return ABSENT;
    const at = this.base + <usize>this.val;
    if (this.tag == TAG_U64S) return new Value(0, TAG_U64, 0, 0, load<u64>(at + (<usize>i << 3)));
    return value(this.base, at + <usize>i * SIZE_NODE);
  }

  /** The key of entry i of a map, in the sender's order; absent past its ends. */
  key(i: i32): Value {
    return this.tag != TAG_MAP || <u32>i >= this.len ? ABSENT : value(this.base, this.base + <usize>this.val + <usize>i * SIZE_ENTRY);
  }

  /** The value of entry i of a map; absent past its ends. */
  entry(i: i32): Value {
    return this.tag != TAG_MAP || <u32>i >= this.len ? ABSENT : value(this.base, this.base + <usize>this.val + <usize>i * SIZE_ENTRY + OFF_ENTRY_VAL);
  }

  /** The value of a string key in a map; absent when there is no such key, or no map. */
  get(key: string): Value {
    if (this.tag != TAG_MAP) return ABSENT;
    let at = this.base + <usize>this.val;
    for (let i: u32 = 0; i < this.len; i++, at += SIZE_ENTRY) {
      if (load<u8>(at, OFF_NODE_TAG) == TAG_STRING && same(this.base + load<u32>(at, OFF_NODE_VAL), load<u32>(at, OFF_NODE_LEN), key)) {
        return value(this.base, at + OFF_ENTRY_VAL);
      }
    }
    return ABSENT;
  }
}

const ABSENT = new Value(0, TAG_ABSENT, 0, 0, 0);

/** The value whose node lies at a place; offsets count from base. */
export function value(base: usize, at: usize): Value {
  return new Value(base, load<u8>(at, OFF_NODE_TAG), load<u8>(at, OFF_NODE_EXT), load<u32>(at, OFF_NODE_LEN), load<u64>(at, OFF_NODE_VAL));
}

/** Whether UTF-8 is a string. */
function same(at: usize, len: u32, text: string): bool {
  const n = text.length;
  if (<u32>n > len) return false; // no character has fewer bytes than UTF-16 units
  for (let i = 0; i < n; i++) {
    const c = text.charCodeAt(i);
    if (c >= 0x80) return String.UTF8.decodeUnsafe(at, len) == text;
    if (c != load<u8>(at + <usize>i)) return false;
  }
  return <u32>n == len;
}

/** The text of a span; null when absent. */
export function span(base: usize, off: usize): string | null {
  const at = load<u32>(base + off);
  return at == 0 ? null : String.UTF8.decodeUnsafe(base + at, load<u32>(base + off, 4));
}
