// The conformance guest of the AssemblyScript SDK: the handler of kv.fetch without its
// finer rules.

import { Action, Answer, Envelope, FETCH_FLAG_NO_RETAIN, REASON_INVALID_PAYLOAD, fetch, guest } from "../assembly";

export * from "../assembly/guest";
export * from "../assembly/handler";

function judge(action: Action, envelope: Envelope): Answer {
  const payload = action.payload;
  const list = payload.get("block_hashes");
  const hashes = list.hashes;
  if (!hashes) return Answer.reject(REASON_INVALID_PAYLOAD, "block_hashes must be a list of integers, at least one, not " + list.kind);
  return fetch(payload.get("source_control_endpoint").text, hashes, payload.get("no_retain").bool ? FETCH_FLAG_NO_RETAIN : 0);
}

guest.handler(judge);
