// kvrt_text.h: details and log lines, put together from parts. Included by kvrt.h.
#ifndef KVRT_TEXT_H
#define KVRT_TEXT_H

typedef struct {
    enum { KV_PART_TEXT, KV_PART_QUOTED, KV_PART_U64, KV_PART_I64 } kind;
    kv_str str;
    uint64_t num;
} kv_part;

KV_INLINE kv_part kv_part_text(const char *s)
{
    uint32_t n = 0;
    while (s[n])
        n++;
    return (kv_part){KV_PART_TEXT, {s, n}, 0};
}
KV_INLINE kv_part kv_part_str(kv_str s) { return (kv_part){KV_PART_QUOTED, s, 0}; }
KV_INLINE kv_part kv_part_u64(uint64_t x) { return (kv_part){KV_PART_U64, {0, 0}, x}; }
KV_INLINE kv_part kv_part_i64(int64_t x) { return (kv_part){KV_PART_I64, {0, 0}, (uint64_t)x}; }
// A value is a number or text, or else the name of its kind.
KV_UNUSED static kv_part kv_part_value(kv_value v)
{
    switch (v.tag) {
    case KVRT_TAG_U64: return kv_part_u64(v.val);
    case KVRT_TAG_I64: return kv_part_i64((int64_t)v.val);
    case KVRT_TAG_STRING: return kv_part_str(kv_text(v));
    }
    return kv_part_text(kv_kind(v));
}

#define KV_PART(x) _Generic((x), \
    char *: kv_part_text, const char *: kv_part_text, kv_str: kv_part_str, kv_value: kv_part_value, \
    int: kv_part_i64, long: kv_part_i64, long long: kv_part_i64, \
    unsigned: kv_part_u64, unsigned long: kv_part_u64, unsigned long long: kv_part_u64)(x)

// KV_PARTS turns up to 12 arguments into a pointer to their parts, and a count.
#define KV_PARTS(...) (kv_part[]){KV_PICK(__VA_ARGS__, KV_P12, KV_P11, KV_P10, KV_P9, KV_P8, KV_P7, KV_P6, KV_P5, KV_P4, KV_P3, KV_P2, KV_P1, )(__VA_ARGS__)}, \
    KV_PICK(__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, )
#define KV_PICK(a, b, c, d, e, f, g, h, i, j, k, l, n, ...) n
#define KV_P1(a) KV_PART(a)
#define KV_P2(a, ...) KV_PART(a), KV_P1(__VA_ARGS__)
#define KV_P3(a, ...) KV_PART(a), KV_P2(__VA_ARGS__)
#define KV_P4(a, ...) KV_PART(a), KV_P3(__VA_ARGS__)
#define KV_P5(a, ...) KV_PART(a), KV_P4(__VA_ARGS__)
#define KV_P6(a, ...) KV_PART(a), KV_P5(__VA_ARGS__)
#define KV_P7(a, ...) KV_PART(a), KV_P6(__VA_ARGS__)
#define KV_P8(a, ...) KV_PART(a), KV_P7(__VA_ARGS__)
#define KV_P9(a, ...) KV_PART(a), KV_P8(__VA_ARGS__)
#define KV_P10(a, ...) KV_PART(a), KV_P9(__VA_ARGS__)
#define KV_P11(a, ...) KV_PART(a), KV_P10(__VA_ARGS__)
#define KV_P12(a, ...) KV_PART(a), KV_P11(__VA_ARGS__)

// The host keeps 512 bytes of a detail.
#define KV_TEXT_MAX 512

// kv_said is the answer with its detail, in memory of the guest's own. What it holds
// does not outlive the call.
static struct {
    kvrt_answer_t answer;
    char text[KV_TEXT_MAX];
} kv_said __attribute__((aligned(8)));

// kv_put appends bytes; what does not fit is dropped.
static uint32_t kv_put(uint32_t at, const char *p, uint32_t n)
{
    while (n-- > 0 && at < KV_TEXT_MAX)
        kv_said.text[at++] = *p++;
    return at;
}

static uint32_t kv_put_decimal(uint32_t at, uint64_t x)
{
    char digits[20];
    uint32_t i = sizeof digits;
    do
        digits[--i] = (char)('0' + x % 10);
    while ((x /= 10) > 0);
    return kv_put(at, digits + i, (uint32_t)sizeof digits - i);
}

static uint32_t kv_put_quoted(uint32_t at, kv_str s)
{
    static const char hex[] = "0123456789abcdef";
    at = kv_put(at, "\"", 1);
    for (uint32_t i = 0; i < s.len && at < KV_TEXT_MAX; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c < 0x20) {
            char esc[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
            at = kv_put(at, esc, 6);
        } else {
            if (c == '"' || c == '\\')
                at = kv_put(at, "\\", 1);
            at = kv_put(at, (const char *)&s.ptr[i], 1);
        }
    }
    return kv_put(at, "\"", 1);
}

// kv_say puts the parts together in kv_said and returns the length, cut so that no
// character is split.
static uint32_t kv_say(const kv_part *parts, uint32_t count)
{
    uint32_t at = 0;
    for (; count > 0; parts++, count--) {
        switch (parts->kind) {
        case KV_PART_TEXT: at = kv_put(at, parts->str.ptr, parts->str.len); break;
        case KV_PART_QUOTED: at = kv_put_quoted(at, parts->str); break;
        case KV_PART_U64: at = kv_put_decimal(at, parts->num); break;
        case KV_PART_I64: {
            bool negative = (int64_t)parts->num < 0;
            if (negative)
                at = kv_put(at, "-", 1);
            at = kv_put_decimal(at, negative ? 0 - parts->num : parts->num);
        }
        }
    }
    if (at == KV_TEXT_MAX) { // drop an incomplete last character
        uint32_t start = at;
        while (start > at - 4 && ((unsigned char)kv_said.text[start - 1] & 0xc0) == 0x80)
            start--;
        unsigned char lead = (unsigned char)kv_said.text[start - 1];
        uint32_t need = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
        if (need > 1 && at - start + 1 < need)
            at = start - 1;
    }
    return at;
}

// kv_join(room, parts...) puts the parts into an array of bytes, a kv_str as it is; absent
// when they do not fit.
#define kv_join(room, ...) kv_join_parts((room), sizeof(room), KV_PARTS(__VA_ARGS__))
KV_UNUSED static kv_str kv_join_parts(char *room, uint32_t size, const kv_part *parts, uint32_t count)
{
    uint32_t at = 0;
    for (; count > 0; parts++, count--) {
        char digits[21];
        kv_str s = parts->str;
        if (parts->kind >= KV_PART_U64) {
            bool negative = parts->kind == KV_PART_I64 && (int64_t)parts->num < 0;
            uint64_t x = negative ? 0 - parts->num : parts->num;
            uint32_t i = sizeof digits;
            do
                digits[--i] = (char)('0' + x % 10);
            while ((x /= 10) > 0);
            if (negative)
                digits[--i] = '-';
            s = (kv_str){digits + i, (uint32_t)sizeof digits - i};
        }
        if (s.len > size - at)
            return (kv_str){0, 0};
        __builtin_memcpy(room + at, s.ptr, s.len);
        at += s.len;
    }
    return (kv_str){room, at};
}

// kv_answer_at makes an answer of the record at a, whose runs end len bytes after it.
KV_INLINE kv_answer kv_answer_at(const kvrt_answer_t *a, uint32_t len);

KV_UNUSED static __attribute__((noinline)) kv_answer kv_reject_parts(uint32_t reason, const kv_part *parts, uint32_t count)
{
    uint32_t n = kv_say(parts, count);
    kv_said.answer = (kvrt_answer_t){
        .status = KVRT_STATUS_REJECTED, .reason = reason, .detail = {sizeof(kvrt_answer_t), n}};
    return kv_answer_at(&kv_said.answer, (uint32_t)sizeof(kvrt_answer_t) + n);
}

KV_UNUSED static kv_answer kv_choose(uint64_t features)
{
    kv_said.answer = (kvrt_answer_t){.status = KVRT_STATUS_ACCEPTED, .features = features};
    return kv_answer_at(&kv_said.answer, sizeof(kvrt_answer_t));
}

#endif
