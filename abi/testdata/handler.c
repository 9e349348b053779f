// A handler by hand: takes actions of type demo.echo whose payload has a string "text".
#include <stdint.h>

#define EXPORT(name) __attribute__((export_name(name)))

enum { TAG_STRING = 7, TAG_MAP = 10 };
enum { STATUS_REJECTED = 2 };
enum { UNSUPPORTED_ACTION_TYPE = 1, INVALID_PAYLOAD = 4 };

struct span { uint32_t off, len; };
struct node { uint8_t tag, ext; uint16_t zero; uint32_t len; uint64_t val; };
struct entry { struct node key, val; };
struct envelope { // record EnvelopeFrame
    uint32_t kind, size;
    struct span protocol_version, message_id;
    uint32_t actions, count;
    struct span request_id, engine;
    uint32_t leg, dp_rank, attempt, total;
    uint64_t zero;
};
struct action { // record Action
    uint32_t size, index;
    struct span action_id, action_type, action_version, raw;
    uint32_t raw_format, zero;
    struct node payload;
};
struct answer { // record Answer
    uint32_t status, reason;
    struct span detail, body;
    uint64_t features, zero;
};

// The host writes frames here. A larger frame than this is refused: limit_exceeded.
static _Alignas(8) uint8_t arena[65536];

EXPORT("kvrt_abi_1") void kvrt_abi_1(void) {}

EXPORT("kvrt_arena") int64_t kvrt_arena(uint32_t size)
{
    return size > sizeof arena ? 0 : (int64_t)((uint64_t)(uintptr_t)arena << 32 | sizeof arena);
}

EXPORT("kvrt_init") int64_t kvrt_init(const void *frame, uint32_t len) { return 0; }

// is compares len bytes with a C string.
static int is(const uint8_t *p, uint32_t len, const char *s)
{
    for (; len > 0 && *s != 0 && *p == (uint8_t)*s; len--, p++, s++) {}
    return len == 0 && *s == 0;
}

// get returns the value of a key, or 0. Offsets count from base, the action.
static const struct node *get(const uint8_t *base, const struct node *map, const char *key)
{
    const struct entry *e = (const struct entry *)(base + (map->tag == TAG_MAP ? map->val : 0));
    for (uint32_t i = 0; map->tag == TAG_MAP && i < map->len; i++)
        if (e[i].key.tag == TAG_STRING && is(base + e[i].key.val, e[i].key.len, key))
            return &e[i].val;
    return 0;
}

EXPORT("kvrt_handle") int64_t kvrt_handle(const uint8_t *frame, uint32_t len, uint32_t position)
{
    const struct envelope *envelope = (const struct envelope *)frame;
    const uint8_t *base = frame + ((const uint32_t *)(frame + envelope->actions))[position];
    const struct action *action = (const struct action *)base;
    if (!is(base + action->action_type.off, action->action_type.len, "demo.echo"))
        return -UNSUPPORTED_ACTION_TYPE;
    const struct node *text = get(base, &action->payload, "text");
    if (text != 0 && text->tag == TAG_STRING)
        return 0; // accepted, unchanged
    static const char why[] = "text: want a string";
    static struct { struct answer answer; char detail[sizeof why]; } out;
    out.answer = (struct answer){STATUS_REJECTED, INVALID_PAYLOAD, {sizeof out.answer, sizeof why - 1}, {0, 0}, 0, 0};
    for (uint32_t i = 0; i < sizeof why; i++)
        out.detail[i] = why[i];
    return (int64_t)((uint64_t)(uintptr_t)&out << 32 | sizeof out);
}
