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
    char *end;
    uint32_t count;               // actions in the envelope
    uint32_t at[KV_MAX_ACTIONS];  // their offsets in the frame
    kvrt_entry_t open[KV_OPEN_ENTRIES];
    uint32_t entries;             // of all open maps
    uint32_t copied;              // values
    struct {
        uint32_t first; // its first entry in open
        kv_str key;     // under which its parent holds it
    } maps[KV_OPEN_MAPS];
    uint32_t depth;
    bool failed;
} kv_out;

// kv_room appends n bytes, 8-byte aligned; NULL when there is no room. What they hold
// is left over, but for the last eight, which are zero.
static char *kv_room(uint32_t n)
{
    char *p = kv_out.failed ? 0 : kv_alloc(n);
    if (!p) {
        kv_out.failed = true;
        return 0;
    }
    kv_out.end = p + ((n + 7) & ~7u);
    if (n > 0)
        __builtin_memset(kv_out.end - 8, 0, 8);
    return p;
}

// kv_take is kv_room for a record: all zero.
static char *kv_take(uint32_t n)
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
static uint32_t kv_bytes(const char *base, const void *p, uint32_t n)
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

// kv_insert adds a finished node to the innermost open map, or makes it the payload.
static void kv_insert(kv_str key, kvrt_node_t n)
{
    if (kv_out.failed)
        return;
    if (kv_out.depth == 0) {
        ((kvrt_action_t *)kv_out.action)->payload = n;
        return;
    }
    if (kv_out.entries == KV_OPEN_ENTRIES) {
        kv_out.failed = true;
        return;
    }
    kvrt_node_t k = kv_copy(kv_out.action, kv_of_text(key));
    kv_out.open[kv_out.entries++] = (kvrt_entry_t){k, n};
}

// kv_map_begin opens a map: the payload itself with kv_root, else under a key of the
// map that is open. kv_map_end closes the innermost one.
#define kv_root ((kv_str){0, 0})
KV_UNUSED static void kv_map_begin(kv_str key)
{
    if (kv_out.depth == KV_OPEN_MAPS)
        kv_out.failed = true;
    if (kv_out.failed)
        return;
    kv_out.maps[kv_out.depth].first = kv_out.entries;
    kv_out.maps[kv_out.depth++].key = key;
}

KV_UNUSED static void kv_map_end(void)
{
    if (kv_out.failed)
        return;
    uint32_t d = --kv_out.depth, first = kv_out.maps[d].first, n = kv_out.entries - first;
    uint64_t at = kv_bytes(kv_out.action, kv_out.open + first, n * (uint32_t)sizeof(kvrt_entry_t));
    kv_out.entries = first;
    kv_insert(kv_out.maps[d].key, (kvrt_node_t){.tag = KVRT_TAG_MAP, .len = n, .val = at});
}

// kv_add_to adds a value under a key; kv_add takes the key as a literal.
KV_UNUSED static void kv_add_to(kv_str key, kv_value v)
{
    if (!kv_out.failed && kv_has(v))
        kv_insert(key, kv_copy(kv_out.action, v));
}
#define kv_add(key, value) kv_add_to(KV_LIT(key), (value))

KV_UNUSED static void kv_action_end(void)
{
    if (kv_out.failed)
        return;
    ((kvrt_action_t *)kv_out.action)->size = (uint32_t)(kv_out.end - kv_out.action);
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

static kv_answer kv_answer_with(char *body)
{
    if (kv_out.failed)
        return kv_reject(KVRT_REASON_LIMIT_EXCEEDED, "the answer is too large");
    kvrt_answer_t *a = (kvrt_answer_t *)kv_out.answer;
    a->status = KVRT_STATUS_ACCEPTED;
    a->body = (kvrt_span_t){(uint32_t)(body - kv_out.answer), (uint32_t)(kv_out.end - body)};
    return kv_answer_at(a, (uint32_t)(kv_out.end - kv_out.answer));
}

// kv_emit answers with the envelope.
KV_UNUSED static kv_answer kv_emit(void)
{
    if (!kv_out.failed) {
        uint32_t at = kv_bytes(kv_out.frame, kv_out.at, kv_out.count * 4);
        kvrt_envelope_frame_t *f = (kvrt_envelope_frame_t *)kv_out.frame;
        f->actions = at;
        f->count = f->total = kv_out.count;
        f->size = (uint32_t)(kv_out.end - kv_out.frame);
    }
    return kv_answer_with(kv_out.frame);
}

// kv_accept_rewritten accepts an action and passes on the one that was built.
KV_UNUSED static kv_answer kv_accept_rewritten(void) { return kv_answer_with(kv_out.action); }

#endif
