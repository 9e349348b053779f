// The conformance guest of the AssemblyScript SDK: the handler of kv.fetch without its
// finer rules, which can do everything else with blocks, too, a parser of lists, and a
// policy.

import {
  Action, Answer, Claim, Context, Document, Envelope, FETCH_FLAG_NO_RETAIN, Hashes, REASON_INVALID_PAYLOAD, REASON_MALFORMED_ACTION, TO_END, Writer,
  device, evict, evictAfter, fetch, guest, hint, inStore, onDevice, prefetch, prefetchToDevice, requestHashes, retain,
} from "../assembly";

export * from "../assembly/guest";
export * from "../assembly/handler";
export * from "../assembly/parser";
export * from "../assembly/policy";

function judge(action: Action, envelope: Envelope): Answer {
  const payload = action.payload;
  const list = payload.get("block_hashes");
  const hashes = list.hashes;
  if (!hashes) return Answer.reject(REASON_INVALID_PAYLOAD, "block_hashes must be a list of integers, at least one, not " + list.kind);
  const op = payload.get("op");
  if (op.isText) return blocks(op.text, payload.get("source_control_endpoint").text, hashes);
  return fetch(payload.get("source_control_endpoint").text, hashes, payload.get("no_retain").bool ? FETCH_FLAG_NO_RETAIN : 0);
}

// blocks does something else with blocks. A hash 0 alone stands for those of the request.
function blocks(op: string, source: string, list: Hashes): Answer {
  const hashes = list.length == 1 && list[0] == 0 ? new Hashes(0, 0) : list;
  if (op == "prefetch") return prefetch(source, hashes);
  if (op == "evict") return evict(hashes);
  if (op == "evict_after") return evictAfter(hashes);
  if (op == "retain") return retain(hashes, source, [new Claim(0, 1, 50, 1000), new Claim(1, TO_END, 1)]);
  if (op == "device") return prefetchToDevice(hashes);
  return Answer.reject(REASON_INVALID_PAYLOAD, look(hashes));
}

// look tells what the host knows. It makes a list of at most 4 blocks.
function look(hashes: Hashes): string {
  const status = hint();
  let said = "hint " + status.state.toString() + " " + status.hashes.toString() + " " + (status.hasSource ? "true" : "false") + " " + status.refused.toString();
  const request = new StaticArray<u64>(4);
  said += "; request " + found(requestHashes(request), request);
  const where = new StaticArray<u8>(4);
  said += "; store " + found(inStore(hashes, where), where);
  said += "; device " + found(onDevice(hashes, where), where);
  return said + "; memory " + device().refused.toString();
}

// found is a list of n, or of none and why.
function found<T>(n: i64, room: StaticArray<T>): string {
  let out = "[";
  for (let i = 0; i < <i32>min<i64>(n, 4); i++) out += (i > 0 ? " " : "") + room[i].toString();
  return out + "] " + (n < 0 ? -n : 0).toString();
}

// parse makes one action of each element of a list.
function parse(document: Document): Answer {
  const list = document.tree;
  if (!list.isArray) return Answer.reject(REASON_MALFORMED_ACTION, "the document must be an array, not " + list.kind);
  const id = document.requestId;
  const w = Writer.envelope("0.1", id ? id : "demo");
  for (let i = 0; i < list.length; i++) {
    w.action(null, "kv.fetch", "1.0");
    w.payload(w.map([w.field("block_hashes", w.copy(list.elem(i)))]));
  }
  return w.answer();
}

// formulate has the request's blocks fetched from the worker that was chosen.
function formulate(context: Context): Answer {
  const source = context.selected.sourceControlEndpoint;
  if (!source || context.blockHashes.length == 0) return Answer.accept();
  const id = context.requestId;
  const w = Writer.envelope("0.1", id ? id : "");
  w.action("a1", "kv.fetch", "1.0");
  return w.payload(w.map([w.field("source_control_endpoint", w.text(source)), w.field("block_hashes", w.hashes(context.blockHashes))])).answer();
}

guest.handler(judge);
guest.parser(parse);
guest.policy(formulate);
