// Spells records as the vectors of the ABI do, with what the SDK reads of them.

import { Action, Context, Document, Envelope, HAS_BLOCK_HASHES, HAS_CANDIDATES, TAG_ABSENT, TAG_ARRAY, TAG_BOOL, TAG_BYTES, TAG_EXT, TAG_F64, TAG_I64, TAG_MAP,
  TAG_NULL, TAG_NUMBER, TAG_STRING, TAG_U64, TAG_U64S, Value, WORKER_HAS_CAPABILITIES, Worker, Writer } from "../assembly";
import { value } from "../assembly/value";

function quote(s: string): string {
  let out = '"';
  for (let i = 0; i < s.length; i++) {
    const c = s.charCodeAt(i);
    out += c < 0x20 || c == 0x22 || c == 0x5c ? "\\u" + hex(c, 4) : String.fromCharCode(c);
  }
  return out + '"';
}

function hex(v: u64, digits: i32): string { return v.toString(16).padStart(digits, "0"); }
function text(s: string | null): string { return s === null ? "null" : quote(s); }
function number(v: u64): string { return quote(v.toString()); }

function bytes(b: Uint8Array | null): string {
  let out = "";
  if (b) for (let i = 0; i < b.length; i++) out += hex(b[i], 2);
  return quote(out);
}

function raw(b: Uint8Array | null): string { return b ? '{"hex":' + bytes(b) + "}" : "null"; }

function one(tag: string, x: string): string { return "{" + quote(tag) + ":" + x + "}"; }

function tree(v: Value): string {
  switch (v.tag) {
    case TAG_ABSENT: return one("absent", "null");
    case TAG_NULL: return one("null", "null");
    case TAG_BOOL: return one("bool", v.bool ? "true" : "false");
    case TAG_U64: return one("u64", number(v.u64));
    case TAG_I64: return one("i64", quote(v.i64.toString()));
    case TAG_F64: return one("f64", quote(hex(reinterpret<u64>(v.f64), 16)));
    case TAG_NUMBER: return one("number", quote(v.number));
    case TAG_STRING: {
      if (!v.is(v.text)) throw new Error("is and text differ");
      return one("string", quote(v.text));
    }
    case TAG_BYTES: return one("bytes", bytes(v.bytes));
    case TAG_EXT: return one("ext", "[" + number(v.ext) + "," + bytes(v.bytes) + "]");
    case TAG_U64S: {
      const list: string[] = [];
      const hashes = v.hashes!;
      for (let i = 0; i < hashes.length; i++) {
        if (v.elem(i).u64 != hashes[i]) throw new Error("elem and hashes differ");
        list.push(number(hashes[i]));
      }
      return one("u64s", "[" + list.join(",") + "]");
    }
    case TAG_ARRAY: {
      const list: string[] = [];
      for (let i = 0; i < v.length; i++) list.push(tree(v.elem(i)));
      return one("array", "[" + list.join(",") + "]");
    }
    case TAG_MAP: {
      const list: string[] = [];
      for (let i = 0; i < v.length; i++) list.push("[" + tree(v.key(i)) + "," + tree(v.entry(i)) + "]");
      return one("map", "[" + list.join(",") + "]");
    }
  }
  throw new Error("tag");
}

function field(name: string, x: string): string { return quote(name) + ":" + x; }

function record(fields: string[]): string { return "{" + fields.join(",") + "}"; }

function action(a: Action): string {
  return record([field("action_id", text(a.id)), field("action_type", text(a.type)), field("action_version", text(a.version)), field("payload", tree(a.payload)),
    field("index", number(a.index)), field("raw", raw(a.raw)), field("raw_format", number(a.rawFormat))]);
}

function envelope(e: Envelope): string {
  const actions: string[] = [];
  for (let i = 0; i < e.length; i++) actions.push(action(e.action(i)));
  return record([field("protocol_version", text(e.protocolVersion)), field("message_id", text(e.messageId)), field("request_id", text(e.requestId)),
    field("engine", text(e.engine)), field("leg", number(e.leg)), field("dp_rank", number(e.dpRank)), field("attempt", number(e.attempt)),
    field("total", number(e.total)), field("actions", "[" + actions.join(",") + "]")]);
}

function document(d: Document): string {
  return record([field("format", number(d.format)), field("raw", raw(d.raw)), field("request_id", text(d.requestId)), field("dialect", text(d.dialect)), field("document", tree(d.tree))]);
}

function worker(w: Worker): string {
  let names = "null";
  if (w.has(WORKER_HAS_CAPABILITIES)) {
    const list: string[] = [];
    for (let i = 0; i < w.capabilities; i++) list.push(quote(w.capability(i)));
    names = "[" + list.join(",") + "]";
  }
  return record([field("id", tree(w.id)), field("worker_type", text(w.type)), field("source_control_endpoint", text(w.sourceControlEndpoint)), field("dp_rank", number(w.dpRank)),
    field("matched_gpu", number(w.matchedGpu)), field("matched_cpu", number(w.matchedCpu)), field("matched_disk", number(w.matchedDisk)),
    field("matched_external", number(w.matchedExternal)), field("present", number(w.present)), field("capabilities", names)]);
}

function context(c: Context, present: u64): string {
  let hashes = "null", candidates = "null";
  if (c.has(HAS_BLOCK_HASHES)) {
    const list: string[] = [];
    for (let i = 0; i < c.blockHashes.length; i++) list.push(number(c.blockHashes[i]));
    hashes = "[" + list.join(",") + "]";
  }
  if (c.has(HAS_CANDIDATES)) {
    const list: string[] = [];
    for (let i = 0; i < c.candidates; i++) list.push(worker(c.candidate(i)));
    candidates = "[" + list.join(",") + "]";
  }
  return record([field("present", number(present)), field("request_id", text(c.requestId)), field("model", text(c.model)), field("group", text(c.group)),
    field("worker_type", text(c.workerType)), field("tenant", text(c.tenant)), field("namespace", text(c.namespace)), field("session_id", text(c.sessionId)),
    field("parent_session_id", text(c.parentSessionId)), field("attempt", number(c.attempt)), field("leg", number(c.leg)), field("prompt_tokens", number(c.promptTokens)),
    field("expected_output_tokens", number(c.expectedOutputTokens)), field("tools_declared", number(c.toolsDeclared ? 1 : 0)), field("hash_kind", number(c.hashKind)),
    field("block_size", number(c.blockSize)), field("session_final", number(c.sessionFinal ? 1 : 0)), field("input_trigger", number(c.inputTrigger)),
    field("selected", worker(c.selected)), field("request_hint", tree(c.requestHint)), field("selection_hint", tree(c.selectionHint)),
    field("block_hashes", hashes), field("candidates", candidates)]);
}

/** Where a record may be written. */
export function room(bytes: u32): usize { return heap.alloc(bytes); }

/** Spells a record: 0 a tree, 1 an action, 2 an envelope, 3 a document, 4 a context whose bits are given, too. */
export function spell(kind: i32, at: usize, present: u64): i64 {
  let out = "";
  switch (kind) {
    case 0: out = tree(value(at, at)); break;
    case 1: out = action(new Action(at, 0)); break;
    case 2: out = envelope(new Envelope(at)); break;
    case 3: out = document(new Document(at)); break;
    case 4: out = context(new Context(at), present); break;
  }
  const n = String.UTF8.byteLength(out);
  const to = heap.alloc(n + 1);
  String.UTF8.encodeUnsafe(changetype<usize>(out), out.length, to);
  return (<i64>to << 32) | n;
}

/** Answers with a copy of an action's payload under "was", and one of each other value that can be written. */
export function copy(at: usize): i64 {
  const a = new Action(at, 0);
  const w = Writer.rewrite(a);
  return w.payload(w.map([w.field("was", w.copy(a.payload)), w.field("rest", w.array([w.null(), w.bool(true), w.i64(-1), w.f64(0.5), w.text("é\n"), w.integers([1, u64.MAX_VALUE]), w.array([w.u64(7)]), w.array([])]))]))
    .answer().result();
}

/** Answers with an envelope of two actions. */
export function write(): i64 {
  const w = Writer.envelope("0.1", "m");
  w.action("a", "kv.fetch", "1.0").payload(w.map([]));
  w.action(null, "kv.fetch", null).payload(w.map([w.field("n", w.u64(1))]));
  return w.answer().result();
}
