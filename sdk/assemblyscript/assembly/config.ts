// What a guest says of itself, at the top of its entry file.

import { Answer } from "./answer";
import { Action, Context, Document, Envelope } from "./frame";
import { Value } from "./value";

/** The functions and settings of this module's guest. */
export namespace guest {
  /** Judges one action; the envelope lists it with all others that go to this guest. */
  export function handler(f: (action: Action, envelope: Envelope) => Answer): void { config.handle = f; }
  /** Turns a document of a foreign dialect into an envelope. */
  export function parser(f: (document: Document) => Answer): void { config.parse = f; }
  /** Makes hints for a request. */
  export function policy(f: (context: Context) => Answer): void { config.formulate = f; }
  /** Reads the parameters: a map, or absent when there are none. What it returns, unless null, refuses them. */
  export function init(f: (parameters: Value) => string | null): void { config.init = f; }
  /** FEATURE_ bits that the guest chooses. */
  export function features(bits: u64): void { config.features = bits; }
  /** The largest frame in bytes that the guest takes; a larger one is limit_exceeded. Default 256 KiB. */
  export function maxFrame(bytes: u32): void { config.maxFrame = bytes; }
  /** Bytes of heap that are made ready at the start, so that calls need not grow the memory. Default 128 KiB. */
  export function heap(bytes: u32): void { config.heap = bytes; }
}

class Config {
  handle: ((action: Action, envelope: Envelope) => Answer) | null = null;
  parse: ((document: Document) => Answer) | null = null;
  formulate: ((context: Context) => Answer) | null = null;
  init: ((parameters: Value) => string | null) | null = null;
  features: u64 = 0;
  maxFrame: u32 = 256 << 10;
  heap: u32 = 128 << 10;
}

export const config = new Config();
