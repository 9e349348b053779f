// router-hint: the parser of the flat hint that routers sent before envelopes. It
// wraps the hint in an envelope of one kv.fetch and judges nothing of it: that is the
// handler's part. README.md says which documents it takes, and why.
#include "kvrt_build.h"

// What a sender may make this parser look at, in each object that it searches. Beyond
// that it says so instead of running out of fuel, which would cost the instance.
#define MAX_KEYS 256

#define refuse(...) kv_reject(KVRT_REASON_MALFORMED_ACTION, __VA_ARGS__)

static bool is_hint(kv_value v)
{
    return kv_has(kv_get(v, "block_hashes")) || kv_has(kv_get(v, "source_control_endpoint"));
}

static kv_answer wrap(kv_document d, kv_value hint)
{
    kv_envelope_begin(KV_LIT("0.1"), d.request_id.ptr ? d.request_id : KV_LIT(""));
    kv_action_begin(KV_LIT("a1"), KV_LIT("kv.fetch"), KV_LIT("1.0"));
    kv_payload(hint);
    kv_action_end();
    return kv_emit();
}

static kv_answer crowded(kv_value v)
{
    return kv_reject(KVRT_REASON_LIMIT_EXCEEDED, "an object has ", v.len, " keys, at most ", MAX_KEYS, " are allowed");
}

static kv_answer parse(kv_document d)
{
    kv_value doc = d.tree;
    if (!kv_has(doc))
        return refuse("a router hint must be JSON or msgpack, at most 32 deep, without duplicate keys");
    if (!kv_map(doc))
        return refuse("a router hint must be an object, not ", kv_kind(doc));
    if (doc.len > MAX_KEYS)
        return crowded(doc);
    if (is_hint(doc))
        return wrap(d, doc);

    kv_value params = kv_get(doc, "kv_transfer_params");
    if (kv_has(params) && !kv_map(params))
        return refuse("kv_transfer_params must be an object, not ", kv_kind(params));
    if (params.len > MAX_KEYS)
        return crowded(params);
    kv_value hint = kv_get(params, "router_hint");
    if (!kv_has(hint))
        hint = kv_get(doc, "router_hint");
    if (!kv_has(hint))
        return refuse("no router hint here: want block_hashes or source_control_endpoint, router_hint, or kv_transfer_params with router_hint");
    if (!kv_map(hint))
        return refuse("router_hint must be an object, not ", kv_kind(hint));
    if (hint.len > MAX_KEYS)
        return crowded(hint);
    if (!is_hint(hint))
        return refuse("router_hint has neither block_hashes nor source_control_endpoint");
    return wrap(d, hint);
}

KVRT_INIT(kv_no_parameters)
KVRT_PARSER(parse)
