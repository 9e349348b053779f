// kvrt_host.h: the host functions as an author calls them. Included by kvrt.h. What a
// guest does not use is not imported, and needs no grant.
#ifndef KVRT_HOST_H
#define KVRT_HOST_H

// kv_fetch hands a hint of this call's request to the host's fetch hint store
// (capability kvrt_fetch) and answers what the store says. A source that is absent
// means local storage. flags: KVRT_FETCH_FLAG_...
KV_INLINE kv_answer kv_fetch(kv_str source, kv_hashes hashes, uint32_t flags)
{
    return kvrt_fetch_submit(source.ptr, source.len, hashes.ptr, hashes.len, flags);
}

// kv_prefetch has blocks brought from a source into the host's block store, ahead of
// need and in the background (capability kvrt_fetch). It is no hint of the request.
KV_INLINE kv_answer kv_prefetch(kv_str source, kv_hashes hashes)
{
    return kvrt_fetch_prefetch(source.ptr, source.len, hashes.ptr, hashes.len, 0);
}

// kv_fetch_discard drops the hint of this call's request, kv_fetch_finish ends the
// request. Both may be repeated.
KV_INLINE kv_answer kv_fetch_discard(void) { return kvrt_fetch_discard(); }
KV_INLINE kv_answer kv_fetch_finish(bool aborted) { return kvrt_fetch_finish(aborted); }

// kv_fetch_status tells how the hint of this call's request stood before the call. A
// negative result is an answer that says why that is not known.
KV_INLINE int64_t kv_fetch_status(kvrt_fetch_status_t *status) { return kvrt_fetch_status(status, sizeof *status); }

// The block store (capability kvrt_store) knows the blocks of the request's namespace.
// kv_request_blocks is how many blocks this call's request has, as its engine described
// them, and kv_request_hashes writes their hashes to room for that many; a negative result
// is an answer that says why there is none.
KV_INLINE int64_t kv_request_blocks(void)
{
    int64_t n = kvrt_store_request(0, 0);
    return n > 0 ? n / 8 : n;
}
KV_INLINE int64_t kv_request_hashes(uint64_t *room, uint32_t blocks)
{
    int64_t n = kvrt_store_request(room, blocks * 8);
    return n > 0 ? n / 8 : n;
}

// kv_evict evicts blocks when the action is accepted, kv_evict_after when its request has
// ended. Without a list (hashes.len 0) they are the blocks of the request.
KV_INLINE kv_answer kv_evict(kv_hashes hashes)
{
    int64_t n = kvrt_store_evict(hashes.ptr, hashes.len);
    return n < 0 ? n : 0;
}
KV_INLINE kv_answer kv_evict_after(kv_hashes hashes)
{
    int64_t n = kvrt_store_evict_after(hashes.ptr, hashes.len);
    return n < 0 ? n : 0;
}

// kv_store_residency writes for each block whether the block store has it, as
// KVRT_RESIDENCY_..., to room for that many bytes, and returns how many blocks that are, or
// an answer that says why not. kv_retain has the block store keep blocks: the claims name
// runs of the hashes, or without a list of the request's tokens. A scope that is absent
// is the request.
KV_INLINE int64_t kv_store_residency(kv_hashes hashes, uint8_t *room, uint32_t blocks) { return kvrt_store_residency(hashes.ptr, hashes.len, room, blocks); }
KV_INLINE kv_answer kv_retain(kv_hashes hashes, const kvrt_store_claim_t *claims, uint32_t count, kv_str scope)
{
    int64_t n = kvrt_store_retain(hashes.ptr, hashes.len, claims, count * (uint32_t)sizeof *claims, scope.ptr, scope.len);
    return n < 0 ? n : 0;
}

// kv_device_prefetch brings blocks from the block store to the device (capability
// kvrt_gpu). Without a list they are the blocks of the request.
KV_INLINE kv_answer kv_device_prefetch(kv_hashes hashes)
{
    int64_t n = kvrt_gpu_prefetch(hashes.ptr, hashes.len);
    return n < 0 ? n : 0;
}

// kv_device_residency writes for each block whether it is on the device, as
// KVRT_RESIDENCY_..., to room for that many bytes, and returns how many blocks that are.
// kv_device_info describes the device's memory for blocks. A negative result is an
// answer that says why there is none.
KV_INLINE int64_t kv_device_residency(kv_hashes hashes, uint8_t *room, uint32_t blocks) { return kvrt_gpu_residency(hashes.ptr, hashes.len, room, blocks); }
KV_INLINE int64_t kv_device_info(kvrt_device_info_t *info) { return kvrt_gpu_info(info, sizeof *info); }

// kv_now and kv_monotonic are clocks in ns (capability kvrt_clock), read once per call.
KV_INLINE int64_t kv_now(void) { return kvrt_clock_now(); }
KV_INLINE int64_t kv_monotonic(void) { return kvrt_clock_monotonic(); }

// kv_logs tells whether a line of this level would be kept.
KV_INLINE bool kv_logs(uint32_t level) { return kvrt_log_enabled(level) != 0; }

KV_UNUSED static __attribute__((noinline)) void kv_log_parts(uint32_t level, const kv_part *parts, uint32_t count)
{
    kvrt_log_write(level, kv_said.text, kv_say(parts, count));
}

#endif
