// kvrt.h: a kvrt guest in C, without a C library.
//
// A guest includes this header in one file, writes a function for each of its roles
// and names it once:
//
//     #include "kvrt.h"
//
//     static kv_answer judge(kv_action a)
//     {
//         if (kv_u64s(kv_get(a.payload, "block_hashes")).len == 0)
//             return kv_reject(KVRT_REASON_INVALID_PAYLOAD, "block_hashes must not be empty");
//         return kv_accept();
//     }
//
//     KVRT_INIT(kv_no_parameters)
//     KVRT_HANDLER(judge)
//
// Values are small structs that are passed around by value. What they show lies in
// the frame of the current call: it is not to be written to or kept. A guest keeps
// nothing between calls but what it made of its parameters.
#ifndef KVRT_H
#define KVRT_H

#include "kvrt_abi.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KV_INLINE static inline __attribute__((always_inline))
#define KV_UNUSED __attribute__((unused))

// ---- What a handler sees

// kv_str is a run of text, not terminated. ptr NULL: absent, which is not empty.
typedef struct {
    const char *ptr;
    uint32_t len;
} kv_str;

// kv_hashes is a run of 64-bit integers.
typedef struct {
    const uint64_t *ptr;
    uint32_t len;
} kv_hashes;

// kv_value is one value of a payload or of parameters.
typedef struct {
    const char *base;
    uint64_t val;
    uint32_t len;
    uint8_t tag; // KVRT_TAG_...
    uint8_t ext;
} kv_value;

// kv_envelope is all actions of an envelope that go to this guest, in order.
typedef struct {
    const kvrt_envelope_frame_t *frame;
    uint32_t count; // actions listed here
    uint32_t total; // actions of the whole envelope
} kv_envelope;

// kv_action is one action. index is its place in the whole envelope, position its
// place among those of this guest.
typedef struct {
    kv_str id, type, version;
    kv_value payload;
    kv_str raw; // the payload as it was sent; absent unless KVRT_FEATURE_RAW_PAYLOAD was chosen
    uint32_t index, position;
    kv_envelope envelope;
} kv_action;

// kv_document is what a parser is to turn into an envelope.
typedef struct {
    kv_str raw;      // the bytes as they were sent
    uint32_t format; // KVRT_FORMAT_...
    kv_value tree;   // raw as a tree; absent when it is neither JSON nor msgpack
    kv_str request_id, dialect;
} kv_document;

// ---- Text

#define KV_LIT(s) ((kv_str){"" s, sizeof(s) - 1})

KV_INLINE uint64_t kv_load64(const char *p)
{
    uint64_t x;
    __builtin_memcpy(&x, p, 8);
    return x;
}

KV_INLINE uint32_t kv_load32(const char *p)
{
    uint32_t x;
    __builtin_memcpy(&x, p, 4);
    return x;
}

// kv_same compares n bytes, eight at a time; the last eight, or four, may overlap those
// before them.
KV_INLINE bool kv_same(const char *a, const char *b, uint32_t n)
{
    if (n >= 8) {
        for (uint32_t i = 0; i <= n - 8; i += 8)
            if (kv_load64(a + i) != kv_load64(b + i))
                return false;
        return n % 8 == 0 || kv_load64(a + n - 8) == kv_load64(b + n - 8);
    }
    if (n >= 4)
        return kv_load32(a) == kv_load32(b) && kv_load32(a + n - 4) == kv_load32(b + n - 4);
    for (uint32_t i = 0; i < n; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

KV_INLINE bool kv_eq(kv_str a, kv_str b) { return a.len == b.len && kv_same(a.ptr, b.ptr, b.len); }

// kv_is compares with a literal: kv_is(mode, "copy").
#define kv_is(str, literal) kv_eq((str), KV_LIT(literal))

KV_INLINE kv_str kv_run(const void *base, kvrt_span_t s)
{
    return s.off ? (kv_str){(const char *)base + s.off, s.len} : (kv_str){0, 0};
}

// ---- Values

KV_INLINE kv_value kv_absent(void) { return (kv_value){0, 0, 0, KVRT_TAG_ABSENT, 0}; }

KV_INLINE kv_value kv_node(const void *base, const kvrt_node_t *n)
{
    return (kv_value){(const char *)base, n->val, n->len, n->tag, n->ext};
}

KV_INLINE bool kv_has(kv_value v) { return v.tag != KVRT_TAG_ABSENT; }
KV_INLINE bool kv_null(kv_value v) { return v.tag == KVRT_TAG_NULL; }

// The readers give the value and true when v is of their kind. An integer is never
// read as a float, nor a bool as an integer.
KV_INLINE bool kv_bool(kv_value v, bool *out) { return v.tag == KVRT_TAG_BOOL ? (*out = v.val != 0, true) : false; }
KV_INLINE bool kv_u64(kv_value v, uint64_t *out) { return v.tag == KVRT_TAG_U64 ? (*out = v.val, true) : false; }
KV_INLINE bool kv_f64(kv_value v, double *out)
{
    return v.tag == KVRT_TAG_F64 ? (__builtin_memcpy(out, &v.val, 8), true) : false;
}

// kv_text is the text of a string; absent for anything else.
KV_INLINE kv_str kv_text(kv_value v)
{
    return v.tag == KVRT_TAG_STRING ? (kv_str){v.base + v.val, v.len} : (kv_str){0, 0};
}

// kv_blob is the content of bytes or of an extension, kv_number the text of a number
// that no 64-bit type holds, such as 2^64 or 1e400; absent for anything else.
KV_INLINE kv_str kv_blob(kv_value v)
{
    return v.tag == KVRT_TAG_BYTES || v.tag == KVRT_TAG_EXT ? (kv_str){v.base + v.val, v.len} : (kv_str){0, 0};
}
KV_INLINE kv_str kv_number(kv_value v)
{
    return v.tag == KVRT_TAG_NUMBER ? (kv_str){v.base + v.val, v.len} : (kv_str){0, 0};
}

// kv_u64s shows an array of integers in [0, 2^64) as it lies in memory; len 0 for
// anything else, which kv_kind tells apart.
KV_INLINE kv_hashes kv_u64s(kv_value v)
{
    return v.tag == KVRT_TAG_U64S ? (kv_hashes){(const uint64_t *)(v.base + v.val), v.len} : (kv_hashes){0, 0};
}

KV_INLINE bool kv_array(kv_value v) { return v.tag == KVRT_TAG_ARRAY || v.tag == KVRT_TAG_U64S; }
KV_INLINE bool kv_map(kv_value v) { return v.tag == KVRT_TAG_MAP; }

// kv_elem is element i of any array; absent past its end.
KV_INLINE kv_value kv_elem(kv_value v, uint32_t i)
{
    if (i >= v.len || !kv_array(v))
        return kv_absent();
    if (v.tag == KVRT_TAG_U64S)
        return (kv_value){v.base, ((const uint64_t *)(v.base + v.val))[i], 0, KVRT_TAG_U64, 0};
    return kv_node(v.base, (const kvrt_node_t *)(v.base + v.val) + i);
}

// kv_key and kv_val are entry i of a map with v.len entries.
KV_INLINE kv_value kv_key(kv_value v, uint32_t i) { return kv_node(v.base, &((const kvrt_entry_t *)(v.base + v.val))[i].key); }
KV_INLINE kv_value kv_val(kv_value v, uint32_t i) { return kv_node(v.base, &((const kvrt_entry_t *)(v.base + v.val))[i].val); }

KV_INLINE kv_value kv_lookup(kv_value map, kv_str key)
{
    if (!kv_map(map))
        return kv_absent();
    const kvrt_entry_t *e = (const kvrt_entry_t *)(map.base + map.val);
    for (uint32_t n = map.len; n > 0; n--, e++)
        if (e->key.len == key.len && e->key.tag == KVRT_TAG_STRING && kv_same(map.base + e->key.val, key.ptr, key.len))
            return kv_node(map.base, &e->val);
    return kv_absent();
}

// kv_get is the value of a key in a map: kv_get(payload, "mode"). Absent when there
// is no such key, or no map.
#define kv_get(map, key) kv_lookup((map), KV_LIT(key))

// kv_kind names a value's kind for a detail: "a string".
KV_UNUSED static const char *kv_kind(kv_value v)
{
    switch (v.tag) {
    case KVRT_TAG_ABSENT: return "absent";
    case KVRT_TAG_NULL: return "null";
    case KVRT_TAG_BOOL: return "a bool";
    case KVRT_TAG_U64: return "an integer";
    case KVRT_TAG_I64: return "a negative integer";
    case KVRT_TAG_F64: return "a float";
    case KVRT_TAG_NUMBER: return "a number that 64 bits cannot hold";
    case KVRT_TAG_STRING: return "a string";
    case KVRT_TAG_BYTES: return "bytes";
    case KVRT_TAG_ARRAY: case KVRT_TAG_U64S: return "an array";
    case KVRT_TAG_MAP: return "an object";
    }
    return "an extension";
}

// ---- Answers

// kv_answer is what a role returns; only the functions below make one.
typedef int64_t kv_answer;

KV_INLINE kv_answer kv_accept(void) { return 0; }

// kv_reject(reason, parts...) rejects with a detail that is put together from its
// parts, at most twelve: literals as they are, numbers in decimal, a kv_str as a JSON
// string.
//
//     return kv_reject(KVRT_REASON_INVALID_PAYLOAD, "unknown mode ", mode);
#define kv_reject(reason, ...) kv_reject_parts((reason), KV_PARTS(__VA_ARGS__))

// kv_choose and kv_refuse(parts...) are for KVRT_INIT: the guest loads with some
// features, KVRT_FEATURE_..., or does not load.
static kv_answer kv_choose(uint64_t features);
#define kv_refuse(...) kv_reject_parts(KVRT_REASON_INVALID_PAYLOAD, KV_PARTS(__VA_ARGS__))

// kv_warn, kv_info and kv_debug write a line to the guest's log (capability
// kvrt_log), put together the same way. The host repeats an equal warning once only.
#define kv_warn(...) kv_log_parts(KVRT_LEVEL_WARN, KV_PARTS(__VA_ARGS__))
#define kv_info(...) kv_log_parts(KVRT_LEVEL_INFO, KV_PARTS(__VA_ARGS__))
#define kv_debug(...) kv_log_parts(KVRT_LEVEL_DEBUG, KV_PARTS(__VA_ARGS__))

#include "kvrt_context.h"
#include "kvrt_text.h"
#include "kvrt_host.h"
#include "kvrt_session.h"
#include "kvrt_role.h"

#endif
