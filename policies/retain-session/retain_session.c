// retain-session: a policy that asks the selected worker to keep what the request's
// session has there, as a kv.retain in one of its public payloads. README.md says every
// rule with its reason.
#include "kvrt_build.h"

// The payloads. Token ranges are vLLM's; the other two are those of the Dynamo
// experiment: blocks by their hashes, or by their places in the request.
enum variant { TOKEN_RANGES, BLOCKS, REQUEST_BLOCKS };

#define MAX_TTL 2592000.0   // seconds: 30 days
#define MAX_BLOCKS 6144     // in one action
#define MAX_PATHS 64        // of one session on one worker
#define MAX_COVERED 65536   // blocks that are compared with the prompt's

// Set once by configure.
static enum variant variant;
static double ttl = 300;
static uint64_t priority = 50, current_priority;
static uint64_t min_blocks = 1, max_blocks = 4096;
static bool anchored, include_current_request, scoped = true, integers;

// number_in reads an integer of a range.
static bool number_in(kv_value v, uint64_t least, uint64_t most, uint64_t *out)
{
    return kv_u64(v, out) && *out >= least && *out <= most;
}

static bool seconds(kv_value v, double *out)
{
    uint64_t n;
    if (kv_u64(v, &n))
        *out = n > MAX_TTL ? MAX_TTL + 1 : (double)n;
    else if (!kv_f64(v, out))
        return false;
    return *out > 0 && *out <= MAX_TTL;
}

// one_of reads one of a few words, divided by commas, as its number.
static bool one_of(kv_value v, const char *words, uint32_t *out)
{
    kv_str s = kv_text(v);
    for (uint32_t n = 0; s.ptr && *words; n++) {
        uint32_t len = 0;
        while (words[len] && words[len] != ',')
            len++;
        if (len == s.len && kv_same(words, s.ptr, len))
            return *out = n, true;
        words += len + (words[len] == ',');
    }
    return false;
}

static kv_answer configure(kv_value p)
{
    bool current = false;
    if (kv_has(p) && !kv_null(p) && !kv_map(p))
        return kv_refuse("parameters must be an object, not ", kv_kind(p));
    for (uint32_t i = 0; kv_map(p) && i < p.len; i++) {
        kv_str key = kv_text(kv_key(p, i));
        kv_value v = kv_val(p, i);
        uint32_t word = 0;
        if (kv_is(key, "variant")) {
            if (!one_of(v, "token_ranges,blocks,request_blocks", &word))
                return kv_refuse("variant must be \"token_ranges\", \"blocks\" or \"request_blocks\"");
            variant = word;
        } else if (kv_is(key, "ttl_seconds")) {
            if (!seconds(v, &ttl))
                return kv_refuse("ttl_seconds must be a number above 0, at most 2592000");
        } else if (kv_is(key, "priority")) {
            if (!kv_u64(v, &priority))
                return kv_refuse("priority must be an integer in [0, 2^64)");
        } else if (kv_is(key, "current_priority")) {
            if (!(current = kv_u64(v, &current_priority)))
                return kv_refuse("current_priority must be an integer in [0, priority]");
        } else if (kv_is(key, "min_blocks")) {
            if (!number_in(v, 1, UINT32_MAX, &min_blocks))
                return kv_refuse("min_blocks must be an integer in [1, 2^32)");
        } else if (kv_is(key, "max_blocks")) {
            if (!number_in(v, 1, MAX_BLOCKS, &max_blocks))
                return kv_refuse("max_blocks must be an integer in [1, ", MAX_BLOCKS, "]");
        } else if (kv_is(key, "anchored")) {
            if (!kv_bool(v, &anchored))
                return kv_refuse("anchored must be a bool");
        } else if (kv_is(key, "include_current_request")) {
            if (!kv_bool(v, &include_current_request))
                return kv_refuse("include_current_request must be a bool");
        } else if (kv_is(key, "scope")) {
            if (!one_of(v, "none,session", &word))
                return kv_refuse("scope must be \"session\" or \"none\"");
            scoped = word != 0;
        } else if (kv_is(key, "hashes")) {
            if (!one_of(v, "decimal,integer", &word))
                return kv_refuse("hashes must be \"decimal\" or \"integer\"");
            integers = word != 0;
        } else {
            return kv_refuse("unknown parameter ", key, ": retain-session knows variant, ttl_seconds, priority, current_priority, min_blocks, max_blocks, "
                "anchored, include_current_request, scope and hashes");
        }
    }
    if (variant == TOKEN_RANGES && (priority < 1 || priority > 100))
        return kv_refuse("priority must be in [1, 100] for token_ranges");
    if (!current)
        current_priority = priority;
    if (current_priority > priority)
        return kv_refuse("current_priority must be an integer in [0, priority]");
    return kv_accept();
}

// pair is two blocks. The compiler makes no branch of each, as it does of two integers.
typedef uint64_t pair __attribute__((vector_size(16), aligned(8), may_alias));

// alike is how many blocks two paths have in common from their beginnings on. In the index
// a block has one parent, so that where they differ once they differ from there on.
static uint32_t alike(kv_hashes a, kv_hashes b)
{
    uint32_t low = 0, high = a.len < b.len ? a.len : b.len;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (a.ptr[mid] == b.ptr[mid])
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

// same16 compares sixteen blocks. The last ones come first: an engine that has checked
// that they lie in memory need not check those before them.
KV_INLINE bool same16(const uint64_t *a, const uint64_t *b)
{
    __asm__("" : "+r"(a), "+r"(b)); // else the compiler adds to both before each load
    const pair *p = (const pair *)a, *q = (const pair *)b;
    pair differ = (p[7] ^ q[7]) | (p[6] ^ q[6]) | (p[5] ^ q[5]) | (p[4] ^ q[4]) | (p[3] ^ q[3]) | (p[2] ^ q[2]) | (p[1] ^ q[1]) | (p[0] ^ q[0]);
    return (differ[0] | differ[1]) == 0;
}

// covered is how many blocks of the prompt, from its beginning on, the lineage has. That
// the prompt's hashes are a chain is for the router to know, so each is compared, but once
// only: a path that has the last block found has those before it.
static uint64_t covered(kv_lineage l, kv_hashes prompt)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < l.count; i++) {
        kv_hashes path = kv_path(l, i);
        uint32_t most = path.len < prompt.len ? path.len : prompt.len;
        most = most < MAX_COVERED ? most : MAX_COVERED;
        if (n > 0 && (path.len < n || path.ptr[n - 1] != prompt.ptr[n - 1]))
            continue;
        const uint64_t *a = path.ptr + n, *b = prompt.ptr + n, *end = path.ptr + most;
        while (end - a >= 16 && same16(a, b))
            a += 16, b += 16;
        while (a < end && *a == *b)
            a++, b++;
        n = (uint32_t)(a - path.ptr);
    }
    return n;
}

// distinct takes the paths apart into runs in which each block is once, at most
// max_blocks: those of the roots first, since a block is of no use without those before it.
static uint64_t distinct(kv_lineage l, kv_hashes *runs, uint32_t count)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
        kv_hashes path = kv_path(l, i);
        uint32_t skip = 0;
        for (uint32_t k = 0; k < i; k++) {
            uint32_t same = alike(path, kv_path(l, k));
            skip = same > skip ? same : skip;
        }
        uint64_t take = path.len - skip, room = max_blocks - n;
        take = take < room ? take : room;
        runs[i] = (kv_hashes){path.ptr + skip, (uint32_t)take};
        n += take;
    }
    return n;
}

static void directive(uint64_t start, kv_value end, uint64_t level)
{
    kv_map_begin(kv_root);
    kv_add("start", kv_of_u64(start));
    kv_add("end", end);
    kv_add("priority", kv_of_u64(level));
    kv_add("duration", kv_of_f64(ttl));
    kv_map_end();
}

static kv_answer formulate(kv_context c)
{
    static char id[2048];
    kv_hashes runs[MAX_PATHS], prompt = kv_block_hashes(c);
    bool placed = variant != BLOCKS || anchored; // blocks are found in the prompt
    if (placed && (prompt.len == 0 || c.frame->hash_kind == KVRT_HASH_KIND_ABSENT))
        return kv_no_actions();
    if (!kv_field(c, session_id).ptr)
        return kv_no_actions();
    kv_lineage l = anchored ? kv_session_lineage_from(kv_field(c, session_id), kv_rank_of(kv_selected(c)), prompt.ptr[0]) : kv_own_lineage(c);
    if (l.refused == KVRT_REASON_LIMIT_EXCEEDED)
        return -(kv_answer)KVRT_REASON_LIMIT_EXCEEDED;
    if (l.count == 0 || l.count > MAX_PATHS || (placed && l.hash_kind != c.frame->hash_kind))
        return kv_no_actions();

    uint64_t blocks = variant == BLOCKS ? distinct(l, runs, l.count) : covered(l, prompt);
    if (blocks < min_blocks)
        return kv_no_actions();
    uint64_t end = blocks * c.frame->block_size;
    if (variant == TOKEN_RANGES) {
        bool known = kv_has_field(c, KVRT_HAS_BLOCK_SIZE) && c.frame->block_size > 0;
        if (!known || (kv_has_field(c, KVRT_HAS_PROMPT_TOKENS) && end > c.frame->prompt_tokens))
            return kv_no_actions();
    }

    kv_actions_begin();
    kv_action_begin(kv_join(id, kv_field(c, session_id), "-", kv_worker_id(kv_selected(c)), "-", kv_field(c, request_id)), KV_LIT("kv.retain"), KV_LIT("1.0"));
    kv_map_begin(kv_root);
    if (variant == TOKEN_RANGES) {
        kv_add("scope", scoped ? kv_of_text(kv_field(c, session_id)) : kv_of_null());
        kv_list_begin(KV_LIT("directives"));
        directive(0, kv_of_u64(end), priority);
        if (include_current_request)
            directive(end, kv_of_null(), current_priority);
        kv_list_end();
    } else {
        kv_add("execute_at", kv_of_text(KV_LIT("request_completion")));
        kv_add("include_current_request", kv_of_bool(variant == BLOCKS && include_current_request));
        uint32_t count = variant == BLOCKS ? l.count : 0;
        if (integers)
            kv_add_runs("block_hashes", runs, count);
        else
            kv_add_decimals("block_hashes", runs, count);
        kv_add("priority", kv_of_u64(priority));
        kv_add("ttl_seconds", kv_of_f64(ttl));
        if (variant == REQUEST_BLOCKS) {
            kv_add("current_request_block_start", kv_of_u64(0));
            kv_add("current_request_block_count", kv_of_u64(blocks));
        }
    }
    kv_map_end();
    kv_action_end();
    return kv_emit();
}

KVRT_INIT(configure)
KVRT_POLICY(formulate)
