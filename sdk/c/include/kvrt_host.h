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

// kv_fetch_discard drops the hint of this call's request, kv_fetch_finish ends the
// request. Both may be repeated.
KV_INLINE kv_answer kv_fetch_discard(void) { return kvrt_fetch_discard(); }
KV_INLINE kv_answer kv_fetch_finish(bool aborted) { return kvrt_fetch_finish(aborted); }

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
