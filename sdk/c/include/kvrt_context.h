// kvrt_context.h: what a policy knows about a request whose worker was chosen.
// Included by kvrt.h. A field that the router cannot supply is absent, which is not
// the same as empty or 0: ask kv_has_field before reading a number.
//
//     kv_str session = kv_field(c, session_id);
//     if (kv_has_field(c, KVRT_HAS_PROMPT_TOKENS) && c.frame->prompt_tokens > 4096) ...
#ifndef KVRT_CONTEXT_H
#define KVRT_CONTEXT_H

typedef struct {
    const kvrt_context_frame_t *frame; // its numbers may be read directly
} kv_context;

// kv_worker is a worker of the fleet.
typedef struct {
    const void *base;
    const kvrt_worker_t *record; // its numbers may be read directly
} kv_worker;

// kv_field is a text of the context, by the name of its field; absent when not given.
#define kv_field(context, name) kv_run((context).frame, (context).frame->name)

// kv_has_field tells whether a field is given: KVRT_HAS_...
KV_INLINE bool kv_has_field(kv_context c, uint64_t bit) { return (c.frame->present & bit) != 0; }

// kv_block_hashes are the request's block hashes; ptr NULL when not given.
KV_INLINE kv_hashes kv_block_hashes(kv_context c)
{
    if (!kv_has_field(c, KVRT_HAS_BLOCK_HASHES))
        return (kv_hashes){0, 0};
    return (kv_hashes){(const uint64_t *)((const char *)c.frame + c.frame->block_hashes), c.frame->block_hashes_count};
}

// kv_request_hint and kv_selection_hint are the envelopes that are there already, as
// objects; absent when there is none.
KV_INLINE kv_value kv_request_hint(kv_context c) { return kv_node(c.frame, &c.frame->request_hint); }
KV_INLINE kv_value kv_selection_hint(kv_context c) { return kv_node(c.frame, &c.frame->selection_hint); }

// kv_selected is the worker that was chosen, kv_candidate(c, i) one of the
// c.frame->candidates_count that could have been.
KV_INLINE kv_worker kv_selected(kv_context c) { return (kv_worker){c.frame, &c.frame->selected}; }
KV_INLINE kv_worker kv_candidate(kv_context c, uint32_t i)
{
    return (kv_worker){c.frame, (const kvrt_worker_t *)((const char *)c.frame + c.frame->candidates) + i};
}

// kv_worker_id is an integer or a string. kv_worker_field and kv_worker_has are as for
// the context: kv_worker_field(w, worker_type), KVRT_WORKER_HAS_...
KV_INLINE kv_value kv_worker_id(kv_worker w) { return kv_node(w.base, &w.record->id); }
#define kv_worker_field(worker, name) kv_run((worker).base, (worker).record->name)
KV_INLINE bool kv_worker_has(kv_worker w, uint32_t bit) { return (w.record->present & bit) != 0; }

// kv_capability is action type i of the w.record->capabilities_count that the worker
// can execute, when it told (KVRT_WORKER_HAS_CAPABILITIES).
KV_INLINE kv_str kv_capability(kv_worker w, uint32_t i)
{
    return kv_run(w.base, ((const kvrt_span_t *)((const char *)w.base + w.record->capabilities))[i]);
}

#endif
