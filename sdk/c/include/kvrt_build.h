// kvrt_build.h: building actions and envelopes: for parsers, policies, and handlers
// that pass an action on rewritten.
//
//     kv_envelope_begin(KV_LIT("0.1"), KV_LIT("m1"));
//     kv_action_begin(KV_LIT("a1"), KV_LIT("kv.fetch"), KV_LIT("1.0"));
//     kv_map_begin(kv_root);
//     kv_add("source_control_endpoint", kv_of_text(endpoint));
//     kv_add("block_hashes", kv_of_hashes(hashes));
//     kv_map_end();
//     kv_action_end();
//     return kv_emit();
//
// A handler begins with kv_rewrite_begin(a) and ends with kv_accept_rewritten. What
// does not fit is remembered, and the final answer says so: nothing to check between.
#ifndef KVRT_BUILD_H
#define KVRT_BUILD_H

#include "kvrt.h"

// KV_OPEN_ENTRIES is how many entries the maps that are open together may have, and
// KV_OPEN_MAPS how many may be open.
#ifndef KV_OPEN_ENTRIES
#define KV_OPEN_ENTRIES 64
#endif
#define KV_OPEN_MAPS 8
// KV_MAX_ACTIONS is how many actions an envelope may have, and KV_MAX_COPIED how many
// values an answer may copy: a sender decides how many there are, and the guest's fuel
// is no more than it has.
#ifndef KV_MAX_ACTIONS
#define KV_MAX_ACTIONS 64
#endif
#ifndef KV_MAX_COPIED
#define KV_MAX_COPIED 4096
#endif

static struct {
    char *answer;  // the answer record; what is built follows it
    char *frame;   // the envelope frame, NULL when a handler rewrites
    char *action;  // the open action, then the last one
    uint32_t count;               // actions in the envelope
    uint32_t at[KV_MAX_ACTIONS];  // their offsets in the frame
    kvrt_entry_t open[KV_OPEN_ENTRIES];
    uint32_t entries;             // of all open maps
    uint32_t copied;              // values
    struct {
        uint32_t first; // its first entry in open
        kv_str key;     // under which its parent holds it
        bool list;      // the entries' keys do not count
    } maps[KV_OPEN_MAPS];
    uint32_t depth;
    bool failed;
} kv_out;

// kv_room appends n bytes, 8-byte aligned; NULL when there is no room. What they hold
// is left over, but for the last eight, which are zero.
KV_INLINE char *kv_room(uint32_t n)
{
    char *p = kv_out.failed ? 0 : kv_alloc(n);
    if (!p) {
        kv_out.failed = true;
        return 0;
    }
    if (n > 0)
        *(uint64_t *)(p + ((n + 7) & ~7u) - 8) = 0;
    return p;
}

// kv_take is kv_room for a record: all zero.
KV_INLINE char *kv_take(uint32_t n)
{
    char *p = kv_room(n);
    if (p)
        __builtin_memset(p, 0, n);
    return p;
}

static void kv_begin(void)
{
    kv_out.frame = kv_out.action = 0;
    kv_out.count = kv_out.entries = kv_out.depth = kv_out.copied = 0;
    kv_out.failed = false;
    kv_heap_reset();
    kv_out.answer = kv_take(sizeof(kvrt_answer_t));
}

// kv_bytes appends bytes and returns their offset from base.
static __attribute__((noinline)) uint32_t kv_bytes(const char *base, const void *p, uint32_t n)
{
    char *at = kv_room(n > 0 ? n : 1);
    if (!at)
        return 0;
    __builtin_memcpy(at, p, n);
    return (uint32_t)(at - base);
}

static kvrt_span_t kv_span(const char *base, kv_str s)
{
    return s.ptr ? (kvrt_span_t){kv_bytes(base, s.ptr, s.len), s.len} : (kvrt_span_t){0, 0};
}

// ---- Values to add

KV_INLINE kv_value kv_of(uint8_t tag, uint64_t val) { return (kv_value){0, val, 0, tag, 0}; }
KV_INLINE kv_value kv_of_null(void) { return kv_of(KVRT_TAG_NULL, 0); }
KV_INLINE kv_value kv_of_bool(bool x) { return kv_of(KVRT_TAG_BOOL, x); }
KV_INLINE kv_value kv_of_u64(uint64_t x) { return kv_of(KVRT_TAG_U64, x); }
KV_INLINE kv_value kv_of_f64(double x)
{
    uint64_t bits;
    __builtin_memcpy(&bits, &x, 8);
    return kv_of(KVRT_TAG_F64, bits);
}
KV_INLINE kv_value kv_of_text(kv_str s) { return (kv_value){s.ptr, 0, s.len, KVRT_TAG_STRING, 0}; }
KV_INLINE kv_value kv_of_hashes(kv_hashes h)
{
    return (kv_value){(const char *)h.ptr, 0, h.len, h.len ? KVRT_TAG_U64S : KVRT_TAG_ARRAY, 0};
}

// kv_copy copies a value with all below it into the open action, whose offsets count
// from base.
static kvrt_node_t kv_copy(const char *base, kv_value v)
{
    kvrt_node_t out = {.tag = v.tag, .ext = v.ext, .len = v.len, .val = v.val};
    if (++kv_out.copied > KV_MAX_COPIED)
        kv_out.failed = true;
    if (kv_out.failed)
        return out;
    switch (v.tag) {
    case KVRT_TAG_NUMBER: case KVRT_TAG_STRING: case KVRT_TAG_BYTES: case KVRT_TAG_EXT:
        out.val = kv_bytes(base, v.base + v.val, v.len);
        break;
    case KVRT_TAG_U64S:
        out.val = kv_bytes(base, v.base + v.val, v.len * 8);
        break;
    case KVRT_TAG_ARRAY: case KVRT_TAG_MAP: {
        // A map is its keys and values in turn.
        uint32_t nodes = v.tag == KVRT_TAG_MAP ? v.len * 2 : v.len;
        char *to = kv_room(nodes * (uint32_t)sizeof(kvrt_node_t));
        out.val = to ? (uint64_t)(to - base) : 0;
        for (uint32_t i = 0; i < nodes && !kv_out.failed; i++)
            ((kvrt_node_t *)to)[i] = kv_copy(base, kv_node(v.base, (const kvrt_node_t *)(v.base + v.val) + i));
    }
    }
    return out;
}

// ---- Actions

// kv_action_begin starts an action. Texts that are absent stay absent.
KV_UNUSED static void kv_action_begin(kv_str id, kv_str type, kv_str version)
{
    char *a = kv_out.action = kv_take(sizeof(kvrt_action_t));
    if (!a)
        return;
    kvrt_span_t spans[3] = {kv_span(a, id), kv_span(a, type), kv_span(a, version)};
    kvrt_action_t *rec = (kvrt_action_t *)a;
    rec->action_id = spans[0], rec->action_type = spans[1], rec->action_version = spans[2];
}

// kv_rewrite_begin starts the action that a handler passes on in place of a: the same
// ids, type and version, and a payload to be built.
KV_UNUSED static void kv_rewrite_begin(kv_action a)
{
    kv_begin();
    kv_action_begin(a.id, a.type, a.version);
}

// kv_payload sets the whole payload to a copy of v.
KV_UNUSED static void kv_payload(kv_value v)
{
    if (kv_out.failed)
        return;
    kvrt_node_t n = kv_copy(kv_out.action, v);
    ((kvrt_action_t *)kv_out.action)->payload = n;
}

// kv_insert_parts adds a finished node, whose first eight bytes are head, to the innermost
// open map, or makes it the payload.
static __attribute__((noinline)) void kv_insert_parts(const char *key, uint32_t len, uint64_t head, uint64_t val)
{
    if (kv_out.failed)
        return;
    kvrt_node_t *n = &((kvrt_action_t *)kv_out.action)->payload;
    if (kv_out.depth > 0) {
        if (kv_out.entries == KV_OPEN_ENTRIES) {
            kv_out.failed = true;
            return;
        }
        kvrt_entry_t *e = &kv_out.open[kv_out.entries++];
        if (!kv_out.maps[kv_out.depth - 1].list)
            e->key = (kvrt_node_t){.tag = KVRT_TAG_STRING, .len = len, .val = kv_bytes(kv_out.action, key, len)};
        n = &e->val;
    }
    __builtin_memcpy(n, &head, 8);
    n->val = val;
}

KV_INLINE void kv_insert(kv_str key, kvrt_node_t n)
{
    kv_insert_parts(key.ptr, key.len, n.tag | (uint64_t)n.ext << 8 | (uint64_t)n.len << 32, n.val);
}

// kv_map_begin opens a map: the payload itself with kv_root, else under a key of the
// map that is open. kv_map_end closes the innermost one.
#define kv_root ((kv_str){0, 0})
static void kv_open(kv_str key, bool list)
{
    if (kv_out.depth == KV_OPEN_MAPS)
        kv_out.failed = true;
    if (kv_out.failed)
        return;
    kv_out.maps[kv_out.depth].first = kv_out.entries;
    kv_out.maps[kv_out.depth].list = list;
    kv_out.maps[kv_out.depth++].key = key;
}
KV_UNUSED static void kv_map_begin(kv_str key) { kv_open(key, false); }

KV_UNUSED static void kv_map_end(void)
{
    if (kv_out.failed)
        return;
    uint32_t d = --kv_out.depth, first = kv_out.maps[d].first, n = kv_out.entries - first;
    uint64_t at = kv_bytes(kv_out.action, kv_out.open + first, n * (uint32_t)sizeof(kvrt_entry_t));
    kv_out.entries = first;
    kv_insert(kv_out.maps[d].key, (kvrt_node_t){.tag = KVRT_TAG_MAP, .len = n, .val = at});
}

// kv_list_begin opens a list under a key, kv_list_end closes it. In a list keys do not
// count: kv_map_begin(kv_root) and kv_add("", value) append to it.
KV_UNUSED static void kv_list_begin(kv_str key) { kv_open(key, true); }

KV_UNUSED static void kv_list_end(void)
{
    if (kv_out.failed)
        return;
    uint32_t d = --kv_out.depth, first = kv_out.maps[d].first, n = kv_out.entries - first;
    bool ints = n > 0;
    for (uint32_t i = 0; i < n; i++)
        ints = ints && kv_out.open[first + i].val.tag == KVRT_TAG_U64;
    uint32_t size = ints ? 8 : sizeof(kvrt_node_t); // integers have a form of their own
    char *to = kv_room(n * size);
    for (uint32_t i = 0; i < n && to; i++) {
        const kvrt_node_t *v = &kv_out.open[first + i].val;
        __builtin_memcpy(to + i * size, ints ? (const void *)&v->val : (const void *)v, size);
    }
    kv_out.entries = first;
    kv_insert(kv_out.maps[d].key, (kvrt_node_t){.tag = ints ? KVRT_TAG_U64S : KVRT_TAG_ARRAY, .len = n, .val = (uint64_t)(to - kv_out.action)});
}

// kv_add_runs adds one list of the integers of several runs; kv_add_decimals the same
// with each integer as text.
#define kv_add_runs(key, runs, count) kv_add_runs_to(KV_LIT(key), (runs), (count))
#define kv_add_decimals(key, runs, count) kv_add_decimals_to(KV_LIT(key), (runs), (count))

static uint32_t kv_total(const kv_hashes *runs, uint32_t count)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < count; i++)
        n += runs[i].len;
    if (n > 1 << 24) // more than an answer may hold
        kv_out.failed = true;
    return (uint32_t)n;
}

KV_UNUSED static void kv_add_runs_to(kv_str key, const kv_hashes *runs, uint32_t count)
{
    uint32_t n = kv_total(runs, count);
    char *to = kv_room(n * 8);
    if (!to)
        return;
    kvrt_node_t node = {.tag = n > 0 ? KVRT_TAG_U64S : KVRT_TAG_ARRAY, .len = n, .val = (uint64_t)(to - kv_out.action)};
    for (uint32_t i = 0; i < count; to += 8 * (uint64_t)runs[i++].len)
        if (runs[i].len > 0)
            __builtin_memcpy(to, runs[i].ptr, 8 * (uint64_t)runs[i].len);
    kv_insert(key, node);
}

// kv_digits is x below 10^8 as eight digits, the first in the lowest byte: halves of four
// digits, then of two, then of one, all lanes at once. A quotient is a product with the
// rounded-up reciprocal, which is exact in these ranges.
KV_INLINE uint64_t kv_digits(uint64_t x)
{
    uint64_t high = x * 109951163 >> 40, four = (x << 32) - high * ((UINT64_C(10000) << 32) - 1);
    uint64_t hundreds = (four * 10486 >> 20) & UINT64_C(0x7f0000007f);
    uint64_t two = hundreds | (four - hundreds * 100) << 16;
    uint64_t tens = (two * 103 >> 10) & UINT64_C(0xf000f000f000f);
    return tens | (two - tens * 10) << 8;
}

// kv_put_digits writes the digits without the zeros in front, and up to 8 bytes more.
KV_INLINE char *kv_put_digits(char *to, uint64_t x)
{
    uint64_t d = kv_digits(x);
    uint32_t skip = (uint32_t)__builtin_ctzll(d | UINT64_C(1) << 56) / 8;
    d = (d | UINT64_C(0x3030303030303030)) >> skip * 8;
    __builtin_memcpy(to, &d, 8);
    return to + 8 - skip;
}

KV_INLINE char *kv_put_eight(char *to, uint64_t x)
{
    uint64_t d = kv_digits(x) | UINT64_C(0x3030303030303030);
    __builtin_memcpy(to, &d, 8);
    return to + 8;
}

// kv_decimal writes x and up to 8 bytes more, and returns where the text ends.
KV_INLINE char *kv_decimal(char *to, uint64_t x)
{
    const uint64_t e8 = 100000000;
    if (x < e8)
        return kv_put_digits(to, x);
    uint64_t high = x / e8, low = x - high * e8;
    if (high < e8)
        return kv_put_eight(kv_put_digits(to, high), low);
    uint64_t top = high / e8;
    return kv_put_eight(kv_put_eight(kv_put_digits(to, top), high - top * e8), low);
}

KV_UNUSED static void kv_add_decimals_to(kv_str key, const kv_hashes *runs, uint32_t count)
{
    uint32_t n = kv_total(runs, count);
    char *base = kv_out.action, *nodes = kv_room(n * (uint32_t)sizeof(kvrt_node_t)), *text = kv_room(n * 20 + 8);
    if (!text)
        return;
    kvrt_node_t *node = (kvrt_node_t *)nodes;
    char *to = text;
    for (uint32_t i = 0; i < count; i++)
        for (const uint64_t *x = runs[i].ptr, *behind = x + runs[i].len; x < behind; x++) {
            char *end = kv_decimal(to, *x);
            *node++ = (kvrt_node_t){.tag = KVRT_TAG_STRING, .len = (uint32_t)(end - to), .val = (uint64_t)(to - base)};
            to = end;
        }
    // What was taken too much is given back.
    __builtin_memset(to, 0, 8);
    char *end = text + (((uint32_t)(to - text) + 8) & ~7u);
    kv_heap_end -= (uint32_t)(kv_heap_at() - end);
    kv_insert(key, (kvrt_node_t){.tag = KVRT_TAG_ARRAY, .len = n, .val = (uint64_t)(nodes - base)});
}

// kv_add_to adds a value under a key; kv_add takes the key as a literal.
KV_INLINE void kv_add_to(kv_str key, kv_value v)
{
    if (kv_out.failed || !kv_has(v))
        return;
    switch (v.tag) {
    case KVRT_TAG_NULL: case KVRT_TAG_BOOL: case KVRT_TAG_U64: case KVRT_TAG_I64: case KVRT_TAG_F64:
        kv_insert_parts(key.ptr, key.len, v.tag, v.val);
        break;
    case KVRT_TAG_STRING:
        kv_insert_parts(key.ptr, key.len, v.tag | (uint64_t)v.len << 32, kv_bytes(kv_out.action, v.base + v.val, v.len));
        break;
    default:
        kv_insert(key, kv_copy(kv_out.action, v));
    }
}
#define kv_add(key, value) kv_add_to(KV_LIT(key), (value))

KV_UNUSED static void kv_action_end(void)
{
    if (kv_out.failed)
        return;
    ((kvrt_action_t *)kv_out.action)->size = (uint32_t)(kv_heap_at() - kv_out.action);
    if (!kv_out.frame)
        return;
    if (kv_out.count == KV_MAX_ACTIONS)
        kv_out.failed = true;
    else
        kv_out.at[kv_out.count++] = (uint32_t)(kv_out.action - kv_out.frame);
}

// ---- Envelopes and answers

// kv_envelope_begin starts the envelope that a parser or policy answers.
KV_UNUSED static void kv_envelope_begin(kv_str protocol_version, kv_str message_id)
{
    kv_begin();
    char *f = kv_out.frame = kv_take(sizeof(kvrt_envelope_frame_t));
    if (!f)
        return;
    kvrt_span_t spans[2] = {kv_span(f, protocol_version), kv_span(f, message_id)};
    kvrt_envelope_frame_t *rec = (kvrt_envelope_frame_t *)f;
    rec->kind = KVRT_KIND_ENVELOPE;
    rec->protocol_version = spans[0], rec->message_id = spans[1];
}

// kv_actions_begin starts a policy's actions: the envelope that they come into is the
// host's. A policy that has none returns kv_no_actions.
KV_INLINE void kv_actions_begin(void) { kv_envelope_begin(kv_root, kv_root); }
KV_INLINE kv_answer kv_no_actions(void) { return kv_accept(); }

static kv_answer kv_answer_with(char *body)
{
    if (kv_out.failed)
        return kv_reject(KVRT_REASON_LIMIT_EXCEEDED, "the answer is too large");
    kvrt_answer_t *a = (kvrt_answer_t *)kv_out.answer;
    a->status = KVRT_STATUS_ACCEPTED;
    a->body = (kvrt_span_t){(uint32_t)(body - kv_out.answer), (uint32_t)(kv_heap_at() - body)};
    return kv_answer_at(a, (uint32_t)(kv_heap_at() - kv_out.answer));
}

// kv_emit answers with the envelope.
KV_UNUSED static kv_answer kv_emit(void)
{
    if (!kv_out.failed) {
        uint32_t at = kv_bytes(kv_out.frame, kv_out.at, kv_out.count * 4);
        kvrt_envelope_frame_t *f = (kvrt_envelope_frame_t *)kv_out.frame;
        f->actions = at;
        f->count = f->total = kv_out.count;
        f->size = (uint32_t)(kv_heap_at() - kv_out.frame);
    }
    return kv_answer_with(kv_out.frame);
}

// kv_accept_rewritten accepts an action and passes on the one that was built.
KV_UNUSED static kv_answer kv_accept_rewritten(void) { return kv_answer_with(kv_out.action); }

#endif
