// Package lower turns a routed request into what a serving engine is handed: the router
// has put a hint envelope beside the request, and each engine takes it in another place
// and another form.
//
// # The routed request
//
// It is one JSON object or msgpack map. Lowering reads these keys at its top, all of
// them optional, and leaves every other key and value as it is, byte for byte:
//
//	kv_hint             the envelope: {protocol_version, message_id, actions}
//	kv_transfer_params  what the KV connector made for this leg
//	sampling_params     {..., extra_args: {..., kv_transfer_params: {...}}}
//	extra_args          the same at the top, for requests without sampling_params
//	token_ids, prompt_token_ids, prompt, messages
//	                    the token path or the text path
//	leg                 "aggregated", "prefill" or "decode"
//	engine              "vllm", or {name, version, kv_hints: true | false}
//
// What a [Target] says goes before leg and engine of the request. A request without
// kv_hint, or with null there, is passed through untouched, leg and engine included, and
// its values are not looked into.
//
// # What an engine gets
//
// vLLM 0.31.0 and later, and an engine that says kv_hints: true: the key kv_hint becomes
// kv_hints and holds exactly the public fields. Older vLLM, transitionally: kv_hint is
// set inside kv_transfer_params. These lie in extra_args when the request has them or
// sampling_params or is one of tokens, else (an OpenAI body) at the top, from where vLLM
// itself moves them. They belong to the connector: those at the top of
// a request replace those in extra_args and are never merged with them; only then is the
// hint set. Everything else in extra_args stays.
//
// SGLang: kv_hints, with payloads as its protobuf Struct holds them. A Struct has only
// doubles, so block hashes of kv.fetch 1.0 in protocol 0.1 become strings of 16
// hexadecimal digits (negative integers in two's complement, strings as they are), and
// any other integer that no double holds is refused. [FormStruct] gives the bytes of
// sglang.runtime.v1.KVHintsEnvelope, which is field 17 of GenerateRequest and field 18
// of TextGenerateRequest.
//
// TensorRT-LLM: kv_hints with all keys that the sender wrote, unknown ones too. It wants
// at least one character in each of the five strings, so an absent or empty one is
// refused and not filled in.
//
// Older spellings are written when asked for, see [Dialect].
//
// # Strings and payloads
//
// Ids and versions are written as strings: 123 becomes "123". For vLLM and SGLang an
// absent one is "", but an absent action_version is "1.0", which is what it counts as.
// A payload keeps its integers, the order of its keys and the spelling of its floats. It
// must be there, but for SGLang, whose default it has.
// An id or version of another kind than text or number is refused, with its path. A
// kv_hints that is in the request beside kv_hint is replaced, or taken out with it.
//
// # Legs
//
// Aggregated and prefill requests carry the envelope. A decode request that carries
// transfer parameters which prefill made does not replay it: kv_hint is taken out, also
// out of these parameters, where an earlier hop may have set it. On a decode leg these
// are such parameters, unless null or empty: kv_transfer_params in either place,
// disaggregated_params, prefill_result, bootstrap_info and bootstrap_room.
package lower
