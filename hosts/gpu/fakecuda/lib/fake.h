// State of the fake driver: what driver.c answers from and what copy.c works on.
#ifndef KVRT_FAKECUDA_H
#define KVRT_FAKECUDA_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SPACE = 33,        // bits of device addresses
	GAP = 64 << 10,    // between allocations
	MANY = 1 << 16,    // allocations and registrations at a time
};

typedef struct op {
	struct op *next;
	enum { COPY, RECORD, WAIT } kind;
	size_t n; // copies
	uint64_t *dst, *src, *size;
	struct event *event;
	uint64_t mark; // of the event: what is recorded, or waited for
} op;

typedef struct event {
	uint64_t asked, reached; // records asked for, and come to
	int waiting;             // ops that name it
} event;

typedef struct stream {
	pthread_t thread;
	op *first, **last;
	int end, epoch;
	uint64_t random;
} stream;

typedef struct {
	uint64_t base, size;
} range;

struct fake {
	pthread_mutex_t mu;
	pthread_cond_t changed;
	uint8_t *space, *shadow; // addresses that fault, and the bytes behind them
	uint64_t top;            // next free offset
	range *allocs, *hosts;
	size_t nallocs, nhosts;
	int streams, events, retained, epoch;
	int version, no12, reject, instant, hold, sticky, delay;
	char fail[64]; // the function that is to fail
	int after, code, part;
	uint64_t calls, batches, singles;
	char violations[2048];
};

extern struct fake fake;

void fake_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));
// fake_bytes finds the bytes of a range, NULL when it is no memory that copies may touch.
uint8_t *fake_bytes(uint64_t addr, uint64_t size);
stream *fake_stream(void);
void fake_stream_end(stream *);
void fake_push(stream *, op *);
op *fake_op(int kind, size_t n);

#endif
