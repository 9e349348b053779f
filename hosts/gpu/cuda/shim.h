// The calls of the CUDA driver that this package makes, each entered with the device's
// context and left with the thread's own one.
#ifndef KVRT_CUDA_SHIM_H
#define KVRT_CUDA_SHIM_H

#include <stddef.h>
#include <stdint.h>

typedef struct kv_cuda kv_cuda;

// How a submission ended.
enum { KV_CONTEXT = 1, KV_WAIT, KV_COPY, KV_RECORD };
typedef struct {
	int result;  // of the driver; 0: all of it was taken
	int stage;   // in which it failed
	int64_t bad; // the copy that was refused, -1: not known
} kv_submitted;

// kv_cuda_load opens a library and finds its functions; NULL with a reason when it cannot.
kv_cuda *kv_cuda_load(const char *path, char *why, size_t size);
// kv_cuda_start initialises the driver and takes a device's primary context.
int kv_cuda_start(kv_cuda *d, int ordinal, const char **call);
int kv_cuda_stop(kv_cuda *d);

const char *kv_cuda_error(kv_cuda *d, int result);
const char *kv_cuda_name(kv_cuda *d);
uint64_t kv_cuda_memory(kv_cuda *d);
int kv_cuda_version(kv_cuda *d);
// kv_cuda_batch returns which interface copies batches: 12, 13, or 0 for a loop.
int kv_cuda_batch(kv_cuda *d);

int kv_cuda_alloc(kv_cuda *d, uint64_t size, uint64_t *addr);
int kv_cuda_free(kv_cuda *d, uint64_t addr);
int kv_cuda_range(kv_cuda *d, uint64_t addr, uint64_t *base, uint64_t *size);
int kv_cuda_register(kv_cuda *d, uint64_t addr, uint64_t size);
int kv_cuda_unregister(kv_cuda *d, uint64_t addr);

int kv_cuda_stream(kv_cuda *d, uintptr_t *stream);
int kv_cuda_stream_end(kv_cuda *d, uintptr_t stream);
int kv_cuda_event(kv_cuda *d, uintptr_t *event);
int kv_cuda_event_end(kv_cuda *d, uintptr_t event);

// kv_cuda_submit makes a stream wait for events, copy, and record an event.
kv_submitted kv_cuda_submit(kv_cuda *d, uintptr_t stream, uintptr_t event, const uintptr_t *waits, size_t nwaits,
	uint64_t *dst, uint64_t *src, uint64_t *size, size_t n);
// kv_cuda_poll asks for n events; results are those of the driver.
int kv_cuda_poll(kv_cuda *d, const uintptr_t *events, int *results, size_t n);

// kv_cuda_bare copies in a loop of single calls, or as one batch where there is one, waits,
// and tells the nanoseconds: what everything else is measured against.
int kv_cuda_bare(kv_cuda *d, uintptr_t stream, uint64_t *dst, uint64_t *src, uint64_t *size, size_t n, int batch, uint64_t *ns);
void kv_cuda_nothing(void);

#endif
