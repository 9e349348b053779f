// stub_json.h: JSON text to payload trees and back, for stub.h. It trusts its input,
// which is a test's own text.
#ifndef KVRT_STUB_JSON_H
#define KVRT_STUB_JSON_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// stub_tree is memory that grows; offsets count from p.
typedef struct {
    char *p;
    uint32_t len, cap;
} stub_tree;

// stub_append appends n bytes, 8-byte aligned; from NULL: zeros.
static inline uint32_t stub_append(stub_tree *t, const void *from, uint32_t n)
{
    uint32_t at = t->len, end = at + ((n + 7) & ~7u);
    if (end > t->cap) {
        t->cap = 2 * end + 64;
        t->p = realloc(t->p, t->cap);
    }
    memset(t->p + at, 0, end - at);
    if (from)
        memcpy(t->p + at, from, n);
    t->len = end;
    return at;
}

// stub_exact moves the tree to an allocation of its size.
static inline void *stub_exact(stub_tree *t)
{
    void *p = malloc(t->len);
    memcpy(p, t->p, t->len);
    free(t->p);
    return p;
}

static inline kvrt_span_t stub_text(stub_tree *t, const char *s)
{
    if (!s)
        return (kvrt_span_t){0, 0};
    uint32_t n = (uint32_t)strlen(s);
    return (kvrt_span_t){stub_append(t, s, n ? n : 1), n};
}

static inline void stub_space(const char **s)
{
    while (**s == ' ' || **s == '\n' || **s == '\t' || **s == ',' || **s == ':')
        ++*s;
}

static inline kvrt_node_t stub_json_value(stub_tree *t, const char **s);

// stub_unit reads the four digits after \u; *s stays on the last one.
static inline uint32_t stub_unit(const char **s)
{
    char hex[5] = {(*s)[1], (*s)[2], (*s)[3], (*s)[4], 0};
    *s += 4;
    return (uint32_t)strtoul(hex, 0, 16);
}

static inline uint32_t stub_utf8(char *to, uint32_t c)
{
    uint32_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (uint32_t i = n - 1; i > 0; i--, c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(n == 1 ? c : (0xf00u >> n & 0xff) | c);
    return n;
}

static inline kvrt_node_t stub_json_string(stub_tree *t, const char **s)
{
    char *text = malloc(strlen(*s) + 1);
    uint32_t n = 0;
    for (++*s; **s != '"'; ++*s) {
        if (**s != '\\') {
            text[n++] = **s;
            continue;
        }
        uint32_t c;
        switch (*++*s) {
        case 'n': text[n++] = '\n'; break;
        case 't': text[n++] = '\t'; break;
        case 'r': text[n++] = '\r'; break;
        case 'b': text[n++] = '\b'; break;
        case 'f': text[n++] = '\f'; break;
        case 'u':
            c = stub_unit(s);
            if (c >= 0xd800 && c < 0xdc00 && (*s)[1] == '\\') { // a surrogate pair
                *s += 2;
                c = 0x10000 + ((c - 0xd800) << 10) + (stub_unit(s) - 0xdc00);
            }
            n += stub_utf8(text + n, c);
            break;
        default: text[n++] = **s;
        }
    }
    ++*s;
    kvrt_node_t v = {.tag = KVRT_TAG_STRING, .len = n, .val = stub_append(t, text, n ? n : 1)};
    free(text);
    return v;
}

// stub_wide tells whether the digits are past limit.
static inline int stub_wide(const char *digits, size_t n, const char *limit)
{
    return n > strlen(limit) || (n == strlen(limit) && strncmp(digits, limit, n) > 0);
}

static inline kvrt_node_t stub_json_number(stub_tree *t, const char **s)
{
    const char *start = *s;
    *s += strspn(*s, "+-.eE0123456789");
    uint32_t n = (uint32_t)(*s - start);
    bool whole = true, negative = *start == '-';
    for (uint32_t i = 0; i < n; i++)
        whole = whole && !strchr(".eE", start[i]);
    if (!whole) {
        double d = strtod(start, 0);
        if (d - d == 0) {
            kvrt_node_t v = {.tag = KVRT_TAG_F64};
            memcpy(&v.val, &d, 8);
            return v;
        }
    } else if (!stub_wide(start + negative, n - negative, negative ? "9223372036854775808" : "18446744073709551615")) {
        uint64_t x = strtoull(start + negative, 0, 10);
        return negative && x ? (kvrt_node_t){.tag = KVRT_TAG_I64, .val = 0 - x} : (kvrt_node_t){.tag = KVRT_TAG_U64, .val = x};
    }
    return (kvrt_node_t){.tag = KVRT_TAG_NUMBER, .len = n, .val = stub_append(t, start, n)};
}

// stub_json_list reads an array, or the keys and values of an object in turn.
static inline kvrt_node_t stub_json_list(stub_tree *t, const char **s, char close)
{
    kvrt_node_t *nodes = 0;
    uint32_t n = 0, ints = 0;
    for (++*s, stub_space(s); **s != close; stub_space(s)) {
        nodes = realloc(nodes, (n + 1) * sizeof *nodes);
        nodes[n] = stub_json_value(t, s);
        ints += nodes[n++].tag == KVRT_TAG_U64;
    }
    ++*s;
    kvrt_node_t v = {.tag = close == '}' ? KVRT_TAG_MAP : KVRT_TAG_ARRAY, .len = close == '}' ? n / 2 : n};
    if (close == ']' && n > 0 && ints == n) {
        v.tag = KVRT_TAG_U64S;
        v.val = t->len;
        for (uint32_t i = 0; i < n; i++)
            stub_append(t, &nodes[i].val, 8);
    } else {
        v.val = stub_append(t, nodes, n * (uint32_t)sizeof *nodes);
    }
    free(nodes);
    return v;
}

static inline kvrt_node_t stub_json_value(stub_tree *t, const char **s)
{
    stub_space(s);
    switch (**s) {
    case '"': return stub_json_string(t, s);
    case '[': return stub_json_list(t, s, ']');
    case '{': return stub_json_list(t, s, '}');
    case 'n': *s += 4; return (kvrt_node_t){.tag = KVRT_TAG_NULL};
    case 't': *s += 4; return (kvrt_node_t){.tag = KVRT_TAG_BOOL, .val = 1};
    case 'f': *s += 5; return (kvrt_node_t){.tag = KVRT_TAG_BOOL};
    }
    return stub_json_number(t, s);
}

static inline kvrt_node_t stub_json(stub_tree *t, const char *text) { return stub_json_value(t, &text); }

// stub_action builds an Action record from an action as JSON text.
static inline stub_tree stub_action(const char *text, uint32_t index)
{
    stub_tree t = {0};
    stub_append(&t, 0, sizeof(kvrt_action_t));
    kvrt_node_t n = stub_json(&t, text);
    kv_value v = kv_node(t.p, &n);
    kvrt_action_t *a = (kvrt_action_t *)t.p;
    struct {
        kvrt_span_t *to;
        kv_value from;
    } texts[] = {{&a->action_id, kv_get(v, "action_id")}, {&a->action_type, kv_get(v, "action_type")},
        {&a->action_version, kv_get(v, "action_version")}};
    for (int i = 0; i < 3; i++)
        if (kv_text(texts[i].from).ptr)
            *texts[i].to = (kvrt_span_t){(uint32_t)texts[i].from.val, texts[i].from.len};
    kv_value p = kv_get(v, "payload");
    a->payload = (kvrt_node_t){.tag = p.tag, .ext = p.ext, .len = p.len, .val = p.val};
    a->index = index;
    a->size = t.len;
    return t;
}

// ---- Printing, for comparisons: JSON without spaces.

static inline void stub_out(char *out, size_t room, const char *format, ...) __attribute__((format(printf, 3, 4)));
static inline void stub_out(char *out, size_t room, const char *format, ...)
{
    va_list args;
    size_t n = strlen(out);
    va_start(args, format);
    vsnprintf(out + n, room - n, format, args);
    va_end(args);
}

static inline void stub_print_text(kv_str s, char *out, size_t room)
{
    stub_out(out, room, "\"");
    for (uint32_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        stub_out(out, room, c == '"' || c == '\\' ? "\\%c" : c < 0x20 ? "\\u%04x" : "%c", c);
    }
    stub_out(out, room, "\"");
}

static inline void stub_print(kv_value v, char *out, size_t room)
{
    double d;
    char number[32];
    switch (v.tag) {
    case KVRT_TAG_NULL: stub_out(out, room, "null"); break;
    case KVRT_TAG_BOOL: stub_out(out, room, v.val ? "true" : "false"); break;
    case KVRT_TAG_U64: stub_out(out, room, "%llu", (unsigned long long)v.val); break;
    case KVRT_TAG_I64: stub_out(out, room, "%lld", (long long)v.val); break;
    case KVRT_TAG_F64:
        kv_f64(v, &d);
        snprintf(number, sizeof number, "%.17g", d);
        stub_out(out, room, strpbrk(number, ".en") ? "%s" : "%s.0", number);
        break;
    case KVRT_TAG_NUMBER: stub_out(out, room, "%.*s", (int)v.len, v.base + v.val); break;
    case KVRT_TAG_STRING: stub_print_text(kv_text(v), out, room); break;
    case KVRT_TAG_ARRAY: case KVRT_TAG_U64S:
        for (uint32_t i = 0; i < v.len; i++) {
            stub_out(out, room, i ? "," : "[");
            stub_print(kv_elem(v, i), out, room);
        }
        stub_out(out, room, v.len ? "]" : "[]");
        break;
    case KVRT_TAG_MAP:
        for (uint32_t i = 0; i < v.len; i++) {
            stub_out(out, room, i ? "," : "{");
            stub_print(kv_key(v, i), out, room);
            stub_out(out, room, ":");
            stub_print(kv_val(v, i), out, room);
        }
        stub_out(out, room, v.len ? "}" : "{}");
    }
}

static inline void stub_print_action(kv_action a, char *out, size_t room)
{
    struct {
        const char *key;
        kv_str text;
    } texts[] = {{"action_id", a.id}, {"action_type", a.type}, {"action_version", a.version}};
    stub_out(out, room, "{");
    for (int i = 0; i < 3; i++) {
        stub_out(out, room, "\"%s\":", texts[i].key);
        stub_print_text(texts[i].text, out, room);
        stub_out(out, room, ",");
    }
    stub_out(out, room, "\"payload\":");
    stub_print(a.payload, out, room);
    stub_out(out, room, "}");
}

// stub_print_body prints what an answer carries: an envelope, or an action by itself.
// The two are told apart by their first field: an envelope's kind is smaller than any
// action's size.
static inline void stub_print_body(const char *body, char *out, size_t room)
{
    uint32_t first;
    memcpy(&first, body, 4);
    if (first != KVRT_KIND_ENVELOPE) {
        const kvrt_action_t *a = (const kvrt_action_t *)body;
        stub_print_action((kv_action){.id = kv_run(a, a->action_id), .type = kv_run(a, a->action_type),
            .version = kv_run(a, a->action_version), .payload = kv_node(a, &a->payload)}, out, room);
        return;
    }
    const kvrt_envelope_frame_t *f = (const kvrt_envelope_frame_t *)body;
    stub_out(out, room, "{\"protocol_version\":");
    stub_print_text(kv_run(f, f->protocol_version), out, room);
    stub_out(out, room, ",\"message_id\":");
    stub_print_text(kv_run(f, f->message_id), out, room);
    stub_out(out, room, ",\"actions\":[");
    for (uint32_t i = 0; i < f->count; i++) {
        stub_out(out, room, i ? "," : "");
        stub_print_action(kv_action_at(kv_envelope_of(f), i), out, room);
    }
    stub_out(out, room, "]}");
}

#endif
