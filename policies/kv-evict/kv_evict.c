// kv-evict: the handler of kv.evict. It judges version and payload and has the host's
// block store evict what is named, now or when the request has ended. README.md says every
// rule with its reason.
#include "../handler.h"

#define TEXT_COST 6 // blocks that a hash as text counts for, since it is read here
#define MAX_TEXTS (MAX_BLOCKS / TEXT_COST)

// Set once by configure: whether what this host cannot do is passed on.
static bool pass = true;

static kv_answer configure(kv_value parameters) { return read_unable(parameters, "kv-evict", &pass); }

// eight_digits reads eight ASCII digits at once: pairs, then fours, then all.
static bool eight_digits(const char *p, uint32_t *out)
{
    const uint64_t high = 0xf0f0f0f0f0f0f0f0, threes = 0x3030303030303030, pairs = 0x000000ff000000ff;
    uint64_t w = kv_load64(p);
    if ((w & high) != threes || ((w + 0x0606060606060606) & high) != threes)
        return false;
    w -= threes;
    w = w * 10 + (w >> 8);
    *out = (uint32_t)(((w & pairs) * 0x000f424000000064 + (w >> 16 & pairs) * 0x0000271000000001) >> 32);
    return true;
}

// hash_of reads a hash as this action spells it: a number, or canonical decimal text.
static bool hash_of(const char *base, const kvrt_node_t *v, uint64_t *hash)
{
    kv_str s = {base + v->val, v->len};
    if (v->tag == KVRT_TAG_U64) {
        *hash = v->val;
        return true;
    }
    if (v->tag != KVRT_TAG_STRING || s.len == 0 || s.len > 20 || (s.len > 1 && s.ptr[0] == '0'))
        return false;
    uint64_t x = 0;
    uint32_t at = 0, digits;
    for (; at < s.len % 8; at++) {
        uint32_t digit = (uint32_t)(uint8_t)s.ptr[at] - '0';
        if (digit > 9)
            return false;
        x = 10 * x + digit;
    }
    for (; at < s.len; at += 8) {
        const uint64_t most = UINT64_MAX / 100000000;
        if (!eight_digits(s.ptr + at, &digits) || x > most || (x == most && digits > UINT64_MAX % 100000000))
            return false;
        x = 100000000 * x + digits;
    }
    *hash = x;
    return true;
}

// left is the answer to an action that this host cannot carry out, or refuses.
static kv_answer left(kv_answer refused, const char *why)
{
    if (!pass || !cannot(refused))
        return refused;
    kv_warn("kv.evict is passed on, and nothing is evicted here: ", refused == -(kv_answer)KVRT_REASON_UNAVAILABLE ? "there is no block store" : why);
    return kv_accept();
}

static kv_answer evict(kv_hashes hashes, bool later)
{
    kv_answer a = later ? kv_evict_after(hashes) : kv_evict(hashes);
    return a < 0 ? left(a, "the request has no id, so that nobody can tell when it ends") : a;
}

// part is blocks of the current request: all, or count of them from start on.
typedef struct {
    bool wanted, slice;
    uint64_t start, count;
} part;

// part_of reads which blocks of the current request are meant; named is how many others
// are.
static kv_answer part_of(kv_value p, uint32_t named, part *out)
{
    kv_value include = kv_get(p, "include_current_request"), start = kv_get(p, "current_request_block_start"), count = kv_get(p, "current_request_block_count");
    if (!kv_bool(include, &out->wanted))
        return invalid("include_current_request must be a bool, not ", kv_kind(include));
    if (!kv_has(start) && !kv_has(count))
        return named > 0 || out->wanted ? kv_accept() : invalid("block_hashes must not be empty unless include_current_request is true");
    if (!kv_has(start) || !kv_has(count))
        return invalid("current_request_block_start and current_request_block_count go together");
    if (!kv_u64(start, &out->start))
        return invalid("current_request_block_start must be an integer in [0, 2^64), not ", kv_kind(start));
    if (!kv_u64(count, &out->count) || out->count == 0)
        return invalid("current_request_block_count must be a positive integer, not ", count);
    if (named > 0 || out->wanted)
        return invalid("current_request_block_start needs empty block_hashes and include_current_request false");
    out->wanted = out->slice = true;
    return kv_accept();
}

static kv_answer too_many(void)
{
    return kv_reject(KVRT_REASON_LIMIT_EXCEEDED, "at most ", MAX_BLOCKS, " blocks, of which a hash as text counts for ", TEXT_COST);
}

// evict_part has blocks of the request evicted, and those that are named behind them.
static kv_answer evict_part(const part *of, kv_hashes named, uint32_t cost, bool later)
{
    int64_t blocks = kv_request_blocks();
    if (blocks < 0) {
        kv_answer a = left(blocks, "nobody has described the request");
        return a == kv_accept() && named.len > 0 ? evict(named, later) : a; // what is named can go
    }
    if (!of->slice && cost + (uint64_t)blocks > MAX_BLOCKS)
        return too_many();
    if (!of->slice && named.len == 0)
        return evict(named, later); // the host has the list
    uint64_t *all = (uint64_t *)kv_alloc(8 * ((uint32_t)blocks + named.len));
    if (!all || kv_request_hashes(all, (uint32_t)blocks) != blocks)
        return kv_reject(KVRT_REASON_LIMIT_EXCEEDED, "no memory for ", (uint32_t)blocks + named.len, " block hashes");
    if (of->slice) {
        uint64_t n = (uint64_t)blocks, from = of->start < n ? of->start : n, count = of->count < n - from ? of->count : n - from;
        if (count > MAX_BLOCKS)
            return too_many();
        return count > 0 ? evict((kv_hashes){all + from, (uint32_t)count}, later) : kv_accept(); // the request has no such block
    }
    if (named.len > 0)
        __builtin_memcpy(all + blocks, named.ptr, 8 * (size_t)named.len);
    return evict((kv_hashes){all, (uint32_t)blocks + named.len}, later);
}

static kv_answer judge(kv_action a)
{
    static uint64_t texts[MAX_TEXTS];
    kv_answer bad = judge_head(a, "kv.evict");
    if (bad)
        return bad;
    kv_value when = kv_get(a.payload, "execute_at"), list = kv_get(a.payload, "block_hashes");
    bool later = kv_is(kv_text(when), "request_completion");
    if (!later && !kv_is(kv_text(when), "now"))
        return invalid("execute_at must be \"request_completion\" or \"now\", not ", when);
    if (!kv_array(list))
        return invalid("block_hashes must be an array, not ", kv_kind(list));
    kv_hashes named = kv_u64s(list); // as they lie in the frame
    uint32_t cost = named.len > 0 ? named.len : list.len < MAX_BLOCKS ? TEXT_COST * list.len : UINT32_MAX;
    if (cost > MAX_BLOCKS)
        return too_many();
    if (named.len == 0) {
        const kvrt_node_t *nodes = (const kvrt_node_t *)(list.base + list.val);
        for (uint32_t i = 0; i < list.len; i++)
            if (!hash_of(list.base, &nodes[i], &texts[i]))
                return invalid("block_hashes[", i, "] must be an integer in [0, 2^64), or its decimal text without leading zeros, not ", kv_elem(list, i));
        named = (kv_hashes){texts, list.len};
    }
    part of = {0};
    if ((bad = part_of(a.payload, named.len, &of)))
        return bad;
    return of.wanted ? evict_part(&of, named, cost, later) : evict(named, later);
}

KVRT_INIT(configure)
KVRT_HANDLER(judge)
