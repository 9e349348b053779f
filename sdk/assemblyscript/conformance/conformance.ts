// The conformance guest of the AssemblyScript SDK: the handler of kv.fetch without its
// finer rules, a parser of lists, and a policy.

import { Action, Answer, Context, Document, Envelope, FETCH_FLAG_NO_RETAIN, REASON_INVALID_PAYLOAD, REASON_MALFORMED_ACTION, Writer, fetch, guest } from "../assembly";

export * from "../assembly/guest";
export * from "../assembly/handler";
export * from "../assembly/parser";
export * from "../assembly/policy";

function judge(action: Action, envelope: Envelope): Answer {
  const payload = action.payload;
  const list = payload.get("block_hashes");
  const hashes = list.hashes;
  if (!hashes) return Answer.reject(REASON_INVALID_PAYLOAD, "block_hashes must be a list of integers, at least one, not " + list.kind);
  return fetch(payload.get("source_control_endpoint").text, hashes, payload.get("no_retain").bool ? FETCH_FLAG_NO_RETAIN : 0);
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
