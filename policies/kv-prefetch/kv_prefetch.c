// kv-prefetch: the handler of kv.prefetch. It judges version and payload and has blocks
// brought closer: from another host into the block store, or from there to the device.
// README.md says every rule with its reason.
#include "../handler.h"

#define MAX_SCAN 65536 // elements, in search of the one that is no hash

// Set once by configure: whether what this host cannot do is passed on.
static bool pass = false;

static kv_answer configure(kv_value parameters) { return read_unable(parameters, "kv-prefetch", &pass); }

// bad_hash names the first element that is not a block hash.
static kv_answer bad_hash(kv_value list)
{
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

// left is the answer to what the host said: an action that it cannot carry out may be
// somebody else's.
static kv_answer left(kv_answer said, const char *why)
{
    if (!pass || !cannot(said))
        return said;
    kv_warn("kv.prefetch is passed on, and nothing is fetched here: ", why);
    return kv_accept();
}

static kv_answer judge(kv_action a)
{
    kv_answer bad = judge_head(a, "kv.prefetch");
    if (bad)
        return bad;
    kv_value tier = kv_get(a.payload, "tier"), endpoint = kv_get(a.payload, "source_control_endpoint"), include = kv_get(a.payload, "include_current_request"),
             list = kv_get(a.payload, "block_hashes");
    bool device = kv_is(kv_text(tier), "device"), current = false;
    if (kv_has(tier) && !device && !kv_is(kv_text(tier), "dram"))
        return invalid("tier must be \"dram\" or \"device\", not ", tier);
    kv_str source = kv_text(endpoint);
    if (kv_has(endpoint) && !kv_null(endpoint) && source.len == 0)
        return source.ptr ? invalid("source_control_endpoint must not be empty")
                          : invalid("source_control_endpoint must be null or a string, not ", kv_kind(endpoint));
    if (device && source.ptr)
        return invalid("source_control_endpoint does not go with tier \"device\", which takes blocks from the block store: prefetch them there first");
    if (!device && !source.ptr)
        return invalid("source_control_endpoint is missing: tier \"dram\" takes blocks from another host");
    if (kv_has(include) && !kv_bool(include, &current))
        return invalid("include_current_request must be a bool, not ", kv_kind(include));
    if (current && !device)
        return invalid("include_current_request goes with tier \"device\" only");
    if (current && kv_has(list) && !(kv_array(list) && list.len == 0))
        return invalid("include_current_request needs block_hashes to be absent or empty");
    kv_hashes hashes = kv_u64s(list);
    if (!current && hashes.len == 0)
        return bad_hash(list);
    if (hashes.len > MAX_BLOCKS)
        return kv_reject(KVRT_REASON_LIMIT_EXCEEDED, "at most ", MAX_BLOCKS, " blocks");
    if (!device)
        return left(kv_prefetch(source, hashes), "no blocks are exchanged with other hosts");
    return left(kv_device_prefetch(hashes), "no blocks are kept on a device, or nobody has described the request");
}

KVRT_INIT(configure)
KVRT_HANDLER(judge)
