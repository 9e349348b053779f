// A libcuda for tests, as unkind as a driver may be. Device addresses fault when the host
// touches them, copies come late and in any order, each call needs the context on its own
// thread, and functions fail when the test says so. fake_control is the test's side.
//
// With -DOLD it is a driver of CUDA 11.2: plain symbols and no cuGetProcAddress.
#define _GNU_SOURCE
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PUBLIC __attribute__((visibility("default")))
#ifdef OLD
#define API PUBLIC
#else
#define API static
#endif

struct fake fake = {.mu = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *const the_context = (void *)0xc0de;
static __thread void *current;

#define LOCK pthread_mutex_lock(&fake.mu)
#define UNLOCK pthread_mutex_unlock(&fake.mu)

// enter counts a call and says how it is to fail. With the lock held.
static int enter(const char *name, int context) {
	fake.calls++;
	if (fake.sticky)
		return fake.sticky;
	if (context && (current != the_context || fake.retained == 0))
		return 201;
	if (fake.after > 0 && strcmp(fake.fail, name) == 0 && --fake.after == 0)
		return fake.code;
	return 0;
}

#define BEGIN(name, context)         \
	LOCK;                            \
	int r = enter(name, context);    \
	if (r != 0) {                    \
		UNLOCK;                      \
		return r;                    \
	}
#define END \
	UNLOCK; \
	return r

API int cuInit(unsigned flags) {
	BEGIN("cuInit", 0)
	if (fake.space == NULL) {
		fake.space = mmap(NULL, (size_t)1 << SPACE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		fake.shadow = mmap(NULL, (size_t)1 << SPACE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		fake.allocs = calloc(MANY, sizeof(range));
		fake.hosts = calloc(MANY, sizeof(range));
		if (fake.space == MAP_FAILED || fake.shadow == MAP_FAILED)
			r = 2;
	}
	if (flags != 0)
		r = 1;
	END;
}

API int cuDriverGetVersion(int *version) {
	*version = fake.version;
	return 0;
}

API int cuGetErrorName(int code, const char **name) {
	switch (code) {
	case 1: *name = "CUDA_ERROR_INVALID_VALUE"; return 0;
	case 2: *name = "CUDA_ERROR_OUT_OF_MEMORY"; return 0;
	case 100: *name = "CUDA_ERROR_NO_DEVICE"; return 0;
	case 101: *name = "CUDA_ERROR_INVALID_DEVICE"; return 0;
	case 201: *name = "CUDA_ERROR_INVALID_CONTEXT"; return 0;
	case 700: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; return 0;
	case 801: *name = "CUDA_ERROR_NOT_SUPPORTED"; return 0;
	}
	return 1;
}

API int cuDeviceGet(int *device, int ordinal) {
	BEGIN("cuDeviceGet", 0)
	*device = ordinal;
	if (ordinal != 0)
		r = 101;
	END;
}
API int cuDeviceGetName(char *name, int size, int device) {
	(void)device;
	snprintf(name, (size_t)size, "fake GPU");
	return 0;
}
API int cuDeviceTotalMem_v2(size_t *bytes, int device) {
	(void)device;
	*bytes = (size_t)1 << SPACE;
	return 0;
}
API int cuDevicePrimaryCtxRetain(void **ctx, int device) {
	BEGIN("cuDevicePrimaryCtxRetain", 0)
	(void)device;
	fake.retained++;
	*ctx = the_context;
	END;
}
API int cuDevicePrimaryCtxRelease_v2(int device) {
	(void)device;
	LOCK;
	fake.retained--;
	UNLOCK;
	return fake.sticky;
}
API int cuCtxGetCurrent(void **ctx) {
	*ctx = current;
	return 0;
}
API int cuCtxSetCurrent(void *ctx) {
	BEGIN("cuCtxSetCurrent", 0)
	current = ctx;
	END;
}

API int cuMemAlloc_v2(uint64_t *addr, size_t size) {
	BEGIN("cuMemAlloc", 1)
	uint64_t room = (size + GAP - 1) / GAP * GAP + GAP;
	if (size == 0)
		r = 1;
	else if (fake.nallocs == MANY || fake.top + room > (uint64_t)1 << SPACE)
		r = 2;
	else {
		*addr = (uint64_t)(uintptr_t)fake.space + fake.top;
		fake.allocs[fake.nallocs++] = (range){*addr, size};
		fake.top += room;
	}
	END;
}

static int drop(range *list, size_t *n, uint64_t base) {
	for (size_t i = 0; i < *n; i++)
		if (list[i].base == base) {
			list[i] = list[--*n];
			return 0;
		}
	return 1;
}

API int cuMemFree_v2(uint64_t addr) {
	BEGIN("cuMemFree", 1)
	r = drop(fake.allocs, &fake.nallocs, addr);
	END;
}

API int cuMemGetAddressRange_v2(uint64_t *base, size_t *size, uint64_t addr) {
	BEGIN("cuMemGetAddressRange", 1)
	r = 1;
	for (size_t i = 0; i < fake.nallocs; i++)
		if (addr - fake.allocs[i].base < fake.allocs[i].size) {
			*base = fake.allocs[i].base;
			*size = fake.allocs[i].size;
			r = 0;
		}
	END;
}

API int cuMemHostRegister_v2(void *host, size_t size, unsigned flags) {
	BEGIN("cuMemHostRegister", 1)
	uint64_t base = (uint64_t)(uintptr_t)host;
	if (size == 0 || flags != 0)
		r = 1;
	else if (fake.nhosts == MANY)
		r = 2;
	for (size_t i = 0; i < fake.nhosts; i++)
		if (base < fake.hosts[i].base + fake.hosts[i].size && fake.hosts[i].base < base + size)
			r = 712;
	if (r == 0)
		fake.hosts[fake.nhosts++] = (range){base, size};
	END;
}

API int cuMemHostUnregister(void *host) {
	BEGIN("cuMemHostUnregister", 1)
	if (drop(fake.hosts, &fake.nhosts, (uint64_t)(uintptr_t)host) != 0)
		r = 713;
	END;
}

API int cuStreamCreate(void **s, unsigned flags) {
	BEGIN("cuStreamCreate", 1)
	if (flags != 1)
		fake_violation("a stream that waits for the legacy one");
	fake.streams++;
	*s = fake_stream();
	END;
}
API int cuStreamDestroy_v2(void *s) {
	LOCK;
	int r = enter("cuStreamDestroy", 1);
	if (((stream *)s)->first != NULL && !fake.sticky)
		fake_violation("a stream was destroyed with work on it");
	fake.streams--;
	UNLOCK;
	fake_stream_end(s);
	return r;
}
API int cuStreamSynchronize(void *s) {
	BEGIN("cuStreamSynchronize", 1)
	while (((stream *)s)->first != NULL && !fake.sticky)
		pthread_cond_wait(&fake.changed, &fake.mu);
	r = fake.sticky;
	END;
}

API int cuEventCreate(void **e, unsigned flags) {
	BEGIN("cuEventCreate", 1)
	if (flags != 2)
		fake_violation("an event with timing");
	fake.events++;
	*e = calloc(1, sizeof(event));
	END;
}
API int cuEventDestroy_v2(void *e) {
	LOCK;
	int r = enter("cuEventDestroy", 1);
	fake.events--;
	if (((event *)e)->waiting > 0) {
		if (!fake.sticky)
			fake_violation("an event was destroyed that something waits for");
	} else
		free(e);
	UNLOCK;
	return r;
}
API int cuEventRecord(void *e, void *s) {
	BEGIN("cuEventRecord", 1)
	event *ev = e;
	if (ev->asked != ev->reached)
		fake_violation("an event was used again in flight");
	ev->asked++;
	if (fake.instant) {
		ev->reached = ev->asked;
		END;
	}
	op *o = fake_op(RECORD, 0);
	o->event = ev;
	o->mark = ev->asked;
	fake_push(s, o);
	END;
}
API int cuEventQuery(void *e) {
	BEGIN("cuEventQuery", 1)
	event *ev = e;
	r = ev->reached == ev->asked && !(fake.instant && fake.hold) ? 0 : 600;
	END;
}
API int cuStreamWaitEvent(void *s, void *e, unsigned flags) {
	BEGIN("cuStreamWaitEvent", 1)
	event *ev = e;
	op *o = fake_op(WAIT, 0);
	(void)flags;
	o->event = ev;
	o->mark = ev->asked;
	fake_push(s, o);
	END;
}

// submit takes the first n copies for a stream, or says which one is bad.
static int submit(stream *s, const uint64_t *dst, const uint64_t *src, const size_t *size, size_t n, size_t *bad) {
	if (s == NULL || n == 0)
		return 1;
	if (fake.instant)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (size[i] == 0 || fake_bytes(dst[i], size[i]) == NULL || fake_bytes(src[i], size[i]) == NULL) {
			*bad = i;
			return 1;
		}
	op *o = fake_op(COPY, n);
	memcpy(o->dst, dst, n * sizeof *dst);
	memcpy(o->src, src, n * sizeof *src);
	memcpy(o->size, size, n * sizeof *size);
	fake_push(s, o);
	return 0;
}

API int cuMemcpyAsync(uint64_t dst, uint64_t src, size_t size, void *s) {
	BEGIN("cuMemcpyAsync", 1)
	size_t bad;
	fake.singles++;
	r = submit(s, &dst, &src, &size, 1, &bad);
	END;
}

#ifndef OLD
typedef struct {
	int order, hints[4];
	unsigned flags;
} attributes;

static int batch(uint64_t *dst, uint64_t *src, size_t *size, size_t n, attributes *a, size_t *first, size_t na, size_t *bad, void *s) {
	LOCK;
	int r = enter("cuMemcpyBatchAsync", 1);
	if (r == 0 && fake.reject)
		r = fake.reject;
	else if (r != 0 && r == fake.code && fake.part && n > 1) {
		size_t ignored;
		submit(s, dst, src, size, n / 2, &ignored); // the first half is on its way
		*bad = n / 2;
	} else if (r == 0) {
		if (na != 1 || first[0] != 0 || a->order != 1)
			fake_violation("a batch whose sources may be read before their turn");
		fake.batches++;
		r = submit(s, dst, src, size, n, bad);
	}
	UNLOCK;
	return r;
}

static int cuMemcpyBatchAsync(uint64_t *dst, uint64_t *src, size_t *size, size_t n, attributes *a, size_t *first, size_t na, size_t *bad, void *s) {
	return batch(dst, src, size, n, a, first, na, bad, s);
}
static int cuMemcpyBatchAsync_v2(uint64_t *dst, uint64_t *src, size_t *size, size_t n, attributes *a, size_t *first, size_t na, void *s) {
	size_t bad;
	return batch(dst, src, size, n, a, first, na, &bad, s);
}

static const struct {
	const char *name;
	int from, to;
	void *f;
} table[] = {
#define T(name, f) {name, 0, 1 << 30, (void *)f}
	T("cuInit", cuInit), T("cuDriverGetVersion", cuDriverGetVersion), T("cuGetErrorName", cuGetErrorName),
	T("cuDeviceGet", cuDeviceGet), T("cuDeviceGetName", cuDeviceGetName), T("cuDeviceTotalMem", cuDeviceTotalMem_v2),
	T("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain), T("cuDevicePrimaryCtxRelease", cuDevicePrimaryCtxRelease_v2),
	T("cuCtxGetCurrent", cuCtxGetCurrent), T("cuCtxSetCurrent", cuCtxSetCurrent),
	T("cuMemAlloc", cuMemAlloc_v2), T("cuMemFree", cuMemFree_v2), T("cuMemGetAddressRange", cuMemGetAddressRange_v2),
	T("cuMemHostRegister", cuMemHostRegister_v2), T("cuMemHostUnregister", cuMemHostUnregister),
	T("cuStreamCreate", cuStreamCreate), T("cuStreamDestroy", cuStreamDestroy_v2), T("cuStreamSynchronize", cuStreamSynchronize),
	T("cuStreamWaitEvent", cuStreamWaitEvent), T("cuEventCreate", cuEventCreate), T("cuEventDestroy", cuEventDestroy_v2),
	T("cuEventRecord", cuEventRecord), T("cuEventQuery", cuEventQuery), T("cuMemcpyAsync", cuMemcpyAsync),
#undef T
	{"cuMemcpyBatchAsync", 12080, 13000, (void *)cuMemcpyBatchAsync},
	{"cuMemcpyBatchAsync", 13000, 1 << 30, (void *)cuMemcpyBatchAsync_v2},
};

PUBLIC int cuGetProcAddress_v2(const char *name, void **f, int version, uint64_t flags, int *status) {
	*f = NULL;
	if (flags != 0 || version > fake.version)
		return 1;
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
		if (strcmp(table[i].name, name) == 0 && version >= table[i].from && version < table[i].to &&
			!(fake.no12 && table[i].from == 12080)) {
			*f = table[i].f;
			*status = 0;
			return 0;
		}
	*status = 1;
	return 500;
}
#endif

// fake_control obeys a line of the test and answers in out.
PUBLIC void fake_control(const char *line, char *out, size_t size) {
	char word[64] = "", name[64] = "";
	long a = 0, b = 0, c = 0;
	sscanf(line, "%63s %63s %ld %ld %ld", word, name, &a, &b, &c);
	long n = strtol(name, NULL, 0);
	LOCK;
	snprintf(out, size, "ok");
	if (strcmp(word, "reset") == 0) { // with a version; what is left over is given up
		if (fake.space != NULL)
			madvise(fake.shadow, (size_t)1 << SPACE, MADV_DONTNEED);
		fake.epoch++;
		fake.nallocs = fake.nhosts = 0;
		fake.streams = fake.events = fake.retained = 0;
		fake.top = fake.calls = fake.batches = fake.singles = 0;
		fake.no12 = fake.reject = fake.instant = fake.hold = fake.sticky = fake.after = fake.part = 0;
		fake.delay = 200;
		fake.violations[0] = 0;
		fake.version = (int)n;
	} else if (strcmp(word, "no12") == 0)
		fake.no12 = (int)n;
	else if (strcmp(word, "reject") == 0)
		fake.reject = (int)n;
	else if (strcmp(word, "instant") == 0)
		fake.instant = (int)n;
	else if (strcmp(word, "delay") == 0)
		fake.delay = (int)n;
	else if (strcmp(word, "hold") == 0)
		fake.hold = (int)n;
	else if (strcmp(word, "lose") == 0)
		fake.sticky = (int)n;
	else if (strcmp(word, "fail") == 0) { // FUNCTION CALL CODE PART
		snprintf(fake.fail, sizeof fake.fail, "%s", name);
		fake.after = (int)a, fake.code = (int)b, fake.part = (int)c;
	} else if (strcmp(word, "calls") == 0)
		snprintf(out, size, "%llu", (unsigned long long)fake.calls);
	else if (strcmp(word, "copies") == 0)
		snprintf(out, size, "%llu batches, %llu singles", (unsigned long long)fake.batches, (unsigned long long)fake.singles);
	else if (strcmp(word, "current") == 0)
		snprintf(out, size, "%p", current);
	else if (strcmp(word, "setcurrent") == 0)
		current = (void *)n;
	else if (strcmp(word, "left") == 0)
		snprintf(out, size, "%zu allocations, %zu registrations, %d streams, %d events, %d contexts", fake.nallocs, fake.nhosts, fake.streams, fake.events, fake.retained);
	else if (strcmp(word, "violations") == 0)
		snprintf(out, size, "%s", fake.violations);
	else
		snprintf(out, size, "no such command");
	pthread_cond_broadcast(&fake.changed);
	UNLOCK;
}
