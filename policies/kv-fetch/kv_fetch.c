// kv-fetch: the handler of kv.fetch. It judges version and payload and hands what it
// was given to the host's fetch hint store. README.md says every rule with its reason.
#include "kvrt.h"

// Set once by configure: what becomes of a version other than 1.x.
static bool any_version;

// What a sender may make this handler look at. Beyond that it says so instead of
// running out of fuel, which would cost the instance.
#define MAX_KEYS 256      // of a payload
#define MAX_SCAN 65536    // elements, in search of the one that is no hash
#define MAX_VERSION 64    // bytes

#define invalid(...) kv_reject(KVRT_REASON_INVALID_PAYLOAD, __VA_ARGS__)

static kv_answer configure(kv_value parameters)
{
    if (!kv_has(parameters) || kv_null(parameters))
        return kv_accept();
    if (!kv_map(parameters))
        return kv_refuse("parameters must be an object, not ", kv_kind(parameters));
    for (uint32_t i = 0; i < parameters.len; i++) {
        kv_str key = kv_text(kv_key(parameters, i)), rule = kv_text(kv_val(parameters, i));
        if (!kv_is(key, "versions"))
            return kv_refuse("unknown parameter ", key, ": kv-fetch knows versions");
        if (!kv_is(rule, "strict") && !kv_is(rule, "kvcr"))
            return kv_refuse("versions must be \"strict\" or \"kvcr\"");
        any_version = kv_is(rule, "kvcr");
    }
    return kv_accept();
}

// decimal reads the ASCII digits of v from *at on; false when there is none. Values
// past 9 are all 10: only 0 and 1 are told apart.
static bool decimal(kv_str v, uint32_t *at, uint32_t *value)
{
    uint32_t start = *at;
    for (*value = 0; *at < v.len && v.ptr[*at] >= '0' && v.ptr[*at] <= '9'; ++*at)
        *value = *value > 0 ? 10 : (uint32_t)(v.ptr[*at] - '0');
    return *at > start;
}

// supported judges a version other than the text 1.0: digits, optionally a dot and
// more digits, and major version 1. It warns where the sender should know better.
static bool supported(kv_str version)
{
    if (!version.ptr) {
        kv_warn("kv.fetch without an action_version: taken as 1.0");
        return true;
    }
    uint32_t at = 0, major = 0, minor = 0;
    bool ok = version.len <= MAX_VERSION && decimal(version, &at, &major) && major == 1;
    if (ok && at < version.len) {
        ok = version.ptr[at++] == '.' && decimal(version, &at, &minor) && at == version.len;
    }
    if (!ok && !any_version)
        return false;
    if (!ok || minor != 0)
        kv_warn("kv.fetch action_version ", version, ": taken as 1.0");
    return true;
}

// bad_hash names the first element that is not a block hash.
static kv_answer bad_hash(kv_value list)
{
    if (!kv_has(list))
        return invalid("block_hashes is missing");
    if (!kv_array(list))
        return invalid("block_hashes must be an array, not ", kv_kind(list));
    uint32_t i = 0;
    uint64_t hash;
    while (i < MAX_SCAN && kv_u64(kv_elem(list, i), &hash))
        i++;
    if (i == list.len)
        return invalid("block_hashes must hold at least one hash");
    if (i == MAX_SCAN)
        return invalid("block_hashes has an element behind the first ", i, " that is not an integer in [0, 2^64)");
    return invalid("block_hashes[", i, "] must be an integer in [0, 2^64), not ", kv_kind(kv_elem(list, i)));
}

// fields are the values that kv.fetch knows, found in one pass over the payload. Of a
// key that is there twice the first counts, as with kv_get.
typedef struct {
    const kvrt_node_t *endpoint, *hashes, *mode, *no_retain;
} fields;

static fields fields_of(kv_value payload)
{
    static const kvrt_node_t absent;
    fields f = {&absent, &absent, &absent, &absent};
    const kvrt_entry_t *e = (const kvrt_entry_t *)(payload.base + payload.val);
    for (uint32_t i = payload.len; i-- > 0;) {
        kv_str key = kv_text(kv_node(payload.base, &e[i].key));
        if (kv_is(key, "block_hashes"))
            f.hashes = &e[i].val;
        else if (kv_is(key, "source_control_endpoint"))
            f.endpoint = &e[i].val;
        else if (kv_is(key, "mode"))
            f.mode = &e[i].val;
        else if (kv_is(key, "no_retain"))
            f.no_retain = &e[i].val;
    }
    return f;
}

static kv_answer judge(kv_action a)
{
    if (!kv_is(a.version, "1.0") && !supported(a.version))
        return kv_reject(KVRT_REASON_UNSUPPORTED_ACTION_VERSION, "unsupported kv.fetch action_version ", a.version);
    if (!kv_has(a.payload))
        return kv_reject(KVRT_REASON_MALFORMED_ACTION, "payload is missing");
    if (!kv_map(a.payload))
        return kv_reject(KVRT_REASON_MALFORMED_ACTION, "payload must be an object, not ", kv_kind(a.payload));
    if (a.payload.len > MAX_KEYS)
        return kv_reject(KVRT_REASON_LIMIT_EXCEEDED, "payload has ", a.payload.len, " keys, at most ", MAX_KEYS, " are allowed");

    fields f = fields_of(a.payload);
    kv_value endpoint = kv_node(a.payload.base, f.endpoint);
    kv_str source = kv_text(endpoint);
    if (kv_has(endpoint) && !kv_null(endpoint) && source.len == 0)
        return source.ptr ? invalid("source_control_endpoint must not be empty")
                          : invalid("source_control_endpoint must be null or a string, not ", kv_kind(endpoint));

    kv_value list = kv_node(a.payload.base, f.hashes);
    kv_hashes hashes = kv_u64s(list);
    if (hashes.len == 0)
        return bad_hash(list);

    kv_value mode = kv_node(a.payload.base, f.mode);
    if (kv_has(mode) && !kv_is(kv_text(mode), "copy")) {
        if (kv_is(kv_text(mode), "move"))
            return invalid("only copy mode is supported");
        return kv_text(mode).ptr ? invalid("mode must be \"copy\", not ", kv_text(mode))
                                 : invalid("mode must be \"copy\", not ", kv_kind(mode));
    }

    bool no_retain = false;
    kv_value flag = kv_node(a.payload.base, f.no_retain);
    if (kv_has(flag) && !kv_bool(flag, &no_retain))
        return invalid("no_retain must be a bool, not ", kv_kind(flag));

    return kv_fetch(source, hashes, no_retain ? KVRT_FETCH_FLAG_NO_RETAIN : 0);
}

KVRT_INIT(configure)
KVRT_HANDLER(judge)
