//go:build cgo && linux

#define _GNU_SOURCE
#include "shim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// The driver's types, as far as they are needed. All of this is its stable ABI.
typedef int result;
typedef void *context, *stream, *event;
typedef uint64_t devptr;

enum { OK = 0, INVALID_VALUE = 1, NOT_FOUND = 500, NOT_SUPPORTED = 801 };
enum { REFUSALS = 8 };
enum { STREAM_NON_BLOCKING = 1, EVENT_DISABLE_TIMING = 2 };

// Attributes of the copies of a batch. ORDER_STREAM: a source is read when the stream has
// come to it, and never before, so that what the stream waits for may still write it.
enum { ORDER_STREAM = 1 };
typedef struct {
	int type, id;
} location;
typedef struct {
	int order;
	location src, dst; // 0: no hint
	unsigned flags;
} attributes;

typedef result (*batch12)(devptr *, devptr *, size_t *, size_t, attributes *, size_t *, size_t, size_t *, stream);
typedef result (*batch13)(devptr *, devptr *, size_t *, size_t, attributes *, size_t *, size_t, stream);

struct kv_cuda {
	void *lib;
	context ctx;
	int device, version;
	int loop, refused; // no batches any more; batches in a row that were called invalid
	uint64_t memory;
	char name[256];

	result (*Init)(unsigned);
	result (*DriverGetVersion)(int *);
	result (*GetErrorName)(result, const char **);
	result (*DeviceGet)(int *, int);
	result (*DeviceGetName)(char *, int, int);
	result (*DeviceTotalMem)(size_t *, int);
	result (*PrimaryCtxRetain)(context *, int);
	result (*PrimaryCtxRelease)(int);
	result (*CtxGetCurrent)(context *);
	result (*CtxSetCurrent)(context);
	result (*MemAlloc)(devptr *, size_t);
	result (*MemFree)(devptr);
	result (*MemGetAddressRange)(devptr *, size_t *, devptr);
	result (*MemHostRegister)(void *, size_t, unsigned);
	result (*MemHostUnregister)(void *);
	result (*StreamCreate)(stream *, unsigned);
	result (*StreamDestroy)(stream);
	result (*StreamSynchronize)(stream);
	result (*StreamWaitEvent)(stream, event, unsigned);
	result (*EventCreate)(event *, unsigned);
	result (*EventDestroy)(event);
	result (*EventRecord)(event, stream);
	result (*EventQuery)(event);
	result (*MemcpyAsync)(devptr, devptr, size_t, stream);
	batch12 batch12;
	batch13 batch13;
};

// A function has a name for cuGetProcAddress, which finds the interface of a version, and
// one for dlsym, which finds the name as it is.
static const struct {
	const char *name, *symbol;
	int version;
	size_t at;
} functions[] = {
#define F(field, name, symbol, version) {name, symbol, version, offsetof(struct kv_cuda, field)}
	F(Init, "cuInit", "cuInit", 2000),
	F(DriverGetVersion, "cuDriverGetVersion", "cuDriverGetVersion", 2020),
	F(GetErrorName, "cuGetErrorName", "cuGetErrorName", 6000),
	F(DeviceGet, "cuDeviceGet", "cuDeviceGet", 2000),
	F(DeviceGetName, "cuDeviceGetName", "cuDeviceGetName", 2000),
	F(DeviceTotalMem, "cuDeviceTotalMem", "cuDeviceTotalMem_v2", 3020),
	F(PrimaryCtxRetain, "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain", 7000),
	F(PrimaryCtxRelease, "cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease_v2", 11000),
	F(CtxGetCurrent, "cuCtxGetCurrent", "cuCtxGetCurrent", 4000),
	F(CtxSetCurrent, "cuCtxSetCurrent", "cuCtxSetCurrent", 4000),
	F(MemAlloc, "cuMemAlloc", "cuMemAlloc_v2", 3020),
	F(MemFree, "cuMemFree", "cuMemFree_v2", 3020),
	F(MemGetAddressRange, "cuMemGetAddressRange", "cuMemGetAddressRange_v2", 3020),
	F(MemHostRegister, "cuMemHostRegister", "cuMemHostRegister_v2", 6050),
	F(MemHostUnregister, "cuMemHostUnregister", "cuMemHostUnregister", 4000),
	F(StreamCreate, "cuStreamCreate", "cuStreamCreate", 2000),
	F(StreamDestroy, "cuStreamDestroy", "cuStreamDestroy_v2", 4000),
	F(StreamSynchronize, "cuStreamSynchronize", "cuStreamSynchronize", 2000),
	F(StreamWaitEvent, "cuStreamWaitEvent", "cuStreamWaitEvent", 3020),
	F(EventCreate, "cuEventCreate", "cuEventCreate", 2000),
	F(EventDestroy, "cuEventDestroy", "cuEventDestroy_v2", 4000),
	F(EventRecord, "cuEventRecord", "cuEventRecord", 2000),
	F(EventQuery, "cuEventQuery", "cuEventQuery", 2000),
	F(MemcpyAsync, "cuMemcpyAsync", "cuMemcpyAsync", 4000),
#undef F
};

typedef result (*getproc11)(const char *, void **, int, uint64_t);
typedef result (*getproc12)(const char *, void **, int, uint64_t, int *);

static void *find(getproc12 get12, getproc11 get11, const char *name, int version) {
	void *f = NULL;
	int status = 0;
	if (get12 != NULL)
		return get12(name, &f, version, 0, &status) == OK ? f : NULL;
	if (get11 != NULL)
		return get11(name, &f, version, 0) == OK ? f : NULL;
	return NULL;
}

kv_cuda *kv_cuda_load(const char *path, char *why, size_t size) {
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (lib == NULL) {
		const char *e = dlerror();
		snprintf(why, size, "%s", e != NULL ? e : "it cannot be opened");
		return NULL;
	}
	kv_cuda *d = calloc(1, sizeof *d);
	if (d == NULL) {
		snprintf(why, size, "no memory");
		return NULL;
	}
	d->lib = lib;
	getproc12 get12 = (getproc12)dlsym(lib, "cuGetProcAddress_v2");
	getproc11 get11 = (getproc11)dlsym(lib, "cuGetProcAddress");
	for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
		void *f = find(get12, get11, functions[i].name, functions[i].version);
		if (f == NULL)
			f = dlsym(lib, functions[i].symbol);
		if (f == NULL) {
			snprintf(why, size, "it has no %s", functions[i].name);
			dlclose(lib);
			free(d);
			return NULL;
		}
		memcpy((char *)d + functions[i].at, &f, sizeof f);
	}
	// The older interface first: drivers of both versions have it. Without cuGetProcAddress
	// there is none.
	d->batch12 = (batch12)find(get12, get11, "cuMemcpyBatchAsync", 12080);
	if (d->batch12 == NULL)
		d->batch13 = (batch13)find(get12, get11, "cuMemcpyBatchAsync", 13000);
	return d;
}

int kv_cuda_start(kv_cuda *d, int ordinal, const char **call) {
	size_t memory = 0;
	result r;
	if (*call = "cuInit", (r = d->Init(0)) != OK)
		return r;
	if (*call = "cuDriverGetVersion", (r = d->DriverGetVersion(&d->version)) != OK)
		return r;
	if (*call = "cuDeviceGet", (r = d->DeviceGet(&d->device, ordinal)) != OK)
		return r;
	if (*call = "cuDeviceGetName", (r = d->DeviceGetName(d->name, sizeof d->name - 1, d->device)) != OK)
		return r;
	if (*call = "cuDeviceTotalMem", (r = d->DeviceTotalMem(&memory, d->device)) != OK)
		return r;
	d->memory = memory;
	*call = "cuDevicePrimaryCtxRetain";
	return d->PrimaryCtxRetain(&d->ctx, d->device);
}

// The library stays open: a driver has threads of its own, and others may use it. So does
// the small struct.
int kv_cuda_stop(kv_cuda *d) { return d->PrimaryCtxRelease(d->device); }

const char *kv_cuda_error(kv_cuda *d, int code) {
	const char *name = NULL;
	return d->GetErrorName(code, &name) == OK && name != NULL ? name : "unknown";
}

const char *kv_cuda_name(kv_cuda *d) { return d->name; }
uint64_t kv_cuda_memory(kv_cuda *d) { return d->memory; }
int kv_cuda_version(kv_cuda *d) { return d->version; }

int kv_cuda_batch(kv_cuda *d) {
	if (__atomic_load_n(&d->loop, __ATOMIC_RELAXED))
		return 0;
	return d->batch12 != NULL ? 12 : d->batch13 != NULL ? 13 : 0;
}

// enter makes the device's context the thread's. A goroutine may be on any thread, but is
// on one for the whole of a call. leave puts back what the thread had, which may be
// somebody else's.
static result enter(kv_cuda *d, context *old) {
	result r = d->CtxGetCurrent(old);
	if (r != OK || *old == d->ctx)
		return r;
	return d->CtxSetCurrent(d->ctx);
}

static void leave(kv_cuda *d, context old) {
	if (old != d->ctx)
		d->CtxSetCurrent(old);
}

#define WITHIN(call)               \
	context old;                   \
	result r = enter(d, &old);     \
	if (r != OK)                   \
		return r;                  \
	r = (call);                    \
	leave(d, old);                 \
	return r

int kv_cuda_alloc(kv_cuda *d, uint64_t size, uint64_t *addr) { WITHIN(d->MemAlloc(addr, size)); }
int kv_cuda_free(kv_cuda *d, uint64_t addr) { WITHIN(d->MemFree(addr)); }
int kv_cuda_register(kv_cuda *d, uint64_t addr, uint64_t size) { WITHIN(d->MemHostRegister((void *)(uintptr_t)addr, size, 0)); }
int kv_cuda_unregister(kv_cuda *d, uint64_t addr) { WITHIN(d->MemHostUnregister((void *)(uintptr_t)addr)); }
int kv_cuda_stream(kv_cuda *d, uintptr_t *s) { WITHIN(d->StreamCreate((stream *)s, STREAM_NON_BLOCKING)); }
int kv_cuda_stream_end(kv_cuda *d, uintptr_t s) { WITHIN(d->StreamDestroy((stream)s)); }
int kv_cuda_event(kv_cuda *d, uintptr_t *e) { WITHIN(d->EventCreate((event *)e, EVENT_DISABLE_TIMING)); }
int kv_cuda_event_end(kv_cuda *d, uintptr_t e) { WITHIN(d->EventDestroy((event)e)); }

int kv_cuda_range(kv_cuda *d, uint64_t addr, uint64_t *base, uint64_t *size) {
	size_t n = 0;
	context old;
	result r = enter(d, &old);
	if (r != OK)
		return r;
	r = d->MemGetAddressRange(base, &n, addr);
	*size = n;
	leave(d, old);
	return r;
}

static result loop(kv_cuda *d, stream s, uint64_t *dst, uint64_t *src, uint64_t *size, size_t n, int64_t *bad) {
	for (size_t i = 0; i < n; i++) {
		result r = d->MemcpyAsync(dst[i], src[i], size[i], s);
		if (r != OK) {
			*bad = (int64_t)i;
			return r;
		}
	}
	return OK;
}

_Static_assert(sizeof(size_t) == sizeof(uint64_t), "arrays of sizes are handed to the driver as they are");

static result batch(kv_cuda *d, stream s, uint64_t *dst, uint64_t *src, uint64_t *size, size_t n, int64_t *bad) {
	attributes attr = {.order = ORDER_STREAM};
	size_t first = 0, fail = SIZE_MAX;
	result r;
	if (d->batch12 != NULL)
		r = d->batch12(dst, src, (size_t *)size, n, &attr, &first, 1, &fail, s);
	else
		r = d->batch13(dst, src, (size_t *)size, n, &attr, &first, 1, s);
	if (r != OK && fail < n)
		*bad = (int64_t)fail;
	return r;
}

// copies copies by one call where that is worth it. A batch that is refused in a way that
// may mean "not here" is tried one by one, which does no harm where a part was taken:
// copies of a batch do not depend on each other. When that works it is remembered: at once
// if the driver says that it has no such call, and after some refusals in a row if it calls
// the copies invalid, which may be true of one kind of memory only.
static result copies(kv_cuda *d, stream s, uint64_t *dst, uint64_t *src, uint64_t *size, size_t n, int64_t *bad) {
	if (n < 2 || kv_cuda_batch(d) == 0)
		return loop(d, s, dst, src, size, n, bad);
	result r = batch(d, s, dst, src, size, n, bad);
	if (r == OK)
		__atomic_store_n(&d->refused, 0, __ATOMIC_RELAXED);
	if (r != INVALID_VALUE && r != NOT_SUPPORTED && r != NOT_FOUND)
		return r;
	*bad = -1;
	result l = loop(d, s, dst, src, size, n, bad);
	if (l == OK && (r != INVALID_VALUE || __atomic_add_fetch(&d->refused, 1, __ATOMIC_RELAXED) >= REFUSALS))
		__atomic_store_n(&d->loop, 1, __ATOMIC_RELAXED);
	return l;
}

kv_submitted kv_cuda_submit(kv_cuda *d, uintptr_t s, uintptr_t e, const uintptr_t *waits, size_t nwaits,
	uint64_t *dst, uint64_t *src, uint64_t *size, size_t n) {
	kv_submitted out = {.bad = -1};
	context old;
	if ((out.result = enter(d, &old)) != OK) {
		out.stage = KV_CONTEXT;
		return out;
	}
	for (size_t i = 0; i < nwaits; i++) {
		if ((out.result = d->StreamWaitEvent((stream)s, (event)waits[i], 0)) != OK) {
			out.stage = KV_WAIT;
			leave(d, old);
			return out;
		}
	}
	if ((out.result = copies(d, (stream)s, dst, src, size, n, &out.bad)) != OK)
		out.stage = KV_COPY;
	// Also behind a failure: it tells when the part that was taken has ended.
	result r = d->EventRecord((event)e, (stream)s);
	if (r != OK) {
		out.result = r;
		out.stage = KV_RECORD;
	}
	leave(d, old);
	return out;
}

int kv_cuda_poll(kv_cuda *d, const uintptr_t *events, int *results, size_t n) {
	context old;
	result r = enter(d, &old);
	if (r != OK)
		return r;
	for (size_t i = 0; i < n; i++)
		results[i] = d->EventQuery((event)events[i]);
	leave(d, old);
	return OK;
}

int kv_cuda_bare(kv_cuda *d, uintptr_t s, uint64_t *dst, uint64_t *src, uint64_t *size, size_t n, int whole, uint64_t *ns) {
	context old;
	result r = enter(d, &old);
	if (r != OK)
		return r;
	struct timespec from, to;
	int64_t bad;
	clock_gettime(CLOCK_MONOTONIC, &from);
	if (whole && kv_cuda_batch(d) != 0)
		r = batch(d, (stream)s, dst, src, size, n, &bad);
	else
		r = loop(d, (stream)s, dst, src, size, n, &bad);
	result end = d->StreamSynchronize((stream)s);
	clock_gettime(CLOCK_MONOTONIC, &to);
	*ns = (uint64_t)(to.tv_sec - from.tv_sec) * 1000000000u + (uint64_t)to.tv_nsec - (uint64_t)from.tv_nsec;
	leave(d, old);
	return r != OK ? r : end;
}

void kv_cuda_nothing(void) {}
