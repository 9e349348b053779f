// kvrt_role.h: the exports of a guest. Included by kvrt.h.
#ifndef KVRT_ROLE_H
#define KVRT_ROLE_H

// Memory: data, stack and everything static end at __heap_base. From there on lies
// the arena that the host writes frames into, and behind it what a role builds while
// it answers, which is forgotten when the next call begins. Both grow on demand.
#ifdef __wasm__
extern unsigned char __heap_base;

static uintptr_t kv_arena_end; // 0 before the first kvrt_arena
static uintptr_t kv_heap_end;

static __attribute__((noinline)) bool kv_grow(uint64_t end)
{
    uint64_t have = (uint64_t)__builtin_wasm_memory_size(0) << 16;
    return end <= UINT32_MAX && __builtin_wasm_memory_grow(0, (end - have + 0xffff) >> 16) != (size_t)-1;
}

// kv_reserve makes memory up to end usable; false when the limit forbids it.
KV_INLINE bool kv_reserve(uint64_t end) { return end <= (uint64_t)__builtin_wasm_memory_size(0) << 16 || kv_grow(end); }

// kv_alloc takes n bytes, 8-byte aligned, right behind what was taken before.
// NULL when the memory limit is reached.
KV_INLINE char *kv_alloc(uint32_t n)
{
    uintptr_t at = kv_heap_end;
    uint64_t end = (uint64_t)at + (((uint64_t)n + 7) & ~(uint64_t)7);
    if (!kv_reserve(end))
        return 0;
    kv_heap_end = (uintptr_t)end;
    return (char *)at;
}

KV_UNUSED static void kv_heap_reset(void) { kv_heap_end = kv_arena_end + kv_ask_kept; }
KV_UNUSED static uint32_t kv_heap_used(void) { return (uint32_t)(kv_heap_end - kv_arena_end); }
KV_INLINE char *kv_heap_at(void) { return (char *)kv_heap_end; }

KVRT_EXPORT("kvrt_abi_1") void kvrt_abi_1(void) {}

KVRT_EXPORT("kvrt_arena") int64_t kvrt_arena(uint32_t size)
{
    uintptr_t base = ((uintptr_t)&__heap_base + 7) & ~(uintptr_t)7;
    uint64_t end = base + (((uint64_t)size + 7) & ~(uint64_t)7);
    if (end > kv_arena_end) {
        if (!kv_reserve(end))
            return 0;
        kv_arena_end = (uintptr_t)end;
    }
    return (int64_t)((uint64_t)base << 32 | (kv_arena_end - base));
}

KV_INLINE kv_answer kv_answer_at(const kvrt_answer_t *a, uint32_t len)
{
    return (int64_t)((uint64_t)(uintptr_t)a << 32 | len);
}
#else
// A native answer is the length alone: the test looks at kv_answer_native.
static const kvrt_answer_t *kv_answer_native;
static char kv_heap[4 << 20] __attribute__((aligned(8)));
static uint32_t kv_heap_end;

KV_UNUSED static char *kv_alloc(uint32_t n)
{
    uint64_t end = kv_heap_end + (((uint64_t)n + 7) & ~(uint64_t)7);
    if (end > sizeof kv_heap)
        return 0;
    char *at = kv_heap + kv_heap_end;
    kv_heap_end = (uint32_t)end;
    return at;
}

KV_UNUSED static void kv_heap_reset(void) { kv_heap_end = kv_ask_kept; }
KV_UNUSED static uint32_t kv_heap_used(void) { return kv_heap_end; }
KV_INLINE char *kv_heap_at(void) { return kv_heap + kv_heap_end; }

KV_INLINE kv_answer kv_answer_at(const kvrt_answer_t *a, uint32_t len)
{
    kv_answer_native = a;
    return len;
}
#endif

// kv_call_begin forgets what the call before left.
KV_UNUSED static void kv_call_begin(void)
{
    kv_ask_end = kv_ask_kept = 0;
    kv_heap_reset();
}

// ---- From frames to what a role sees

KV_INLINE kv_envelope kv_envelope_of(const kvrt_envelope_frame_t *f) { return (kv_envelope){f, f->count, f->total}; }

// kv_action_at is action number position of those that go to this guest.
KV_INLINE kv_action kv_action_at(kv_envelope e, uint32_t position)
{
    const char *base = (const char *)e.frame;
    const kvrt_action_t *a = (const kvrt_action_t *)(base + ((const uint32_t *)(base + e.frame->actions))[position]);
    return (kv_action){
        .id = kv_run(a, a->action_id),
        .type = kv_run(a, a->action_type),
        .version = kv_run(a, a->action_version),
        .payload = kv_node(a, &a->payload),
        .raw = kv_run(a, a->raw),
        .index = a->index,
        .position = position,
        .envelope = e,
    };
}

// kv_no_parameters is a KVRT_INIT function for a guest that takes none.
KV_UNUSED static kv_answer kv_no_parameters(kv_value p)
{
    if (!kv_has(p) || kv_null(p) || (kv_map(p) && p.len == 0))
        return kv_accept();
    return kv_refuse("this guest takes no parameters");
}

// KVRT_INIT names the function that reads the parameters: kv_answer f(kv_value).
// They are absent when the operator gives none.
#define KVRT_INIT(f) \
    KVRT_EXPORT("kvrt_init") kv_answer kvrt_init(const kvrt_init_frame_t *frame, uint32_t len) \
    { \
        (void)len; \
        kv_call_begin(); \
        return f(kv_node(frame, &frame->parameters)); \
    }

// KVRT_HANDLER names the function that judges an action: kv_answer f(kv_action).
#define KVRT_HANDLER(f) \
    KVRT_EXPORT("kvrt_handle") kv_answer kvrt_handle(const kvrt_envelope_frame_t *frame, uint32_t len, uint32_t position) \
    { \
        (void)len; \
        if (position >= frame->count) \
            return -(kv_answer)KVRT_REASON_HANDLER_ERROR; \
        kv_call_begin(); \
        return f(kv_action_at(kv_envelope_of(frame), position)); \
    }

// KVRT_PARSER names the function that turns a dialect into an envelope, which it
// builds with kvrt_build.h: kv_answer f(kv_document).
#define KVRT_PARSER(f) \
    KVRT_EXPORT("kvrt_parse") kv_answer kvrt_parse(const kvrt_parse_frame_t *frame, uint32_t len) \
    { \
        (void)len; \
        kv_call_begin(); \
        return f((kv_document){ \
            .raw = kv_run(frame, frame->raw), \
            .format = frame->format, \
            .tree = kv_node(frame, &frame->document), \
            .request_id = kv_run(frame, frame->request_id), \
            .dialect = kv_run(frame, frame->dialect), \
        }); \
    }

// KVRT_POLICY names the function that formulates actions for a request, which it
// builds with kvrt_build.h: kv_answer f(kv_context).
#define KVRT_POLICY(f) \
    KVRT_EXPORT("kvrt_formulate") kv_answer kvrt_formulate(const kvrt_context_frame_t *frame, uint32_t len) \
    { \
        (void)len; \
        kv_call_begin(); \
        return f((kv_context){frame}); \
    }

#endif
