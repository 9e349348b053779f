// Streams of the fake driver: each is a thread that comes to its work late, and does the
// copies of a batch in a random order.
#include "fake.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void fake_violation(const char *format, ...) {
	size_t n = strlen(fake.violations);
	va_list args;
	va_start(args, format);
	if (n + 2 < sizeof fake.violations) {
		vsnprintf(fake.violations + n, sizeof fake.violations - n - 1, format, args);
		strcat(fake.violations, "\n");
	}
	va_end(args);
}

static int within(const range *r, uint64_t addr, uint64_t size) {
	return addr >= r->base && addr - r->base <= r->size && size <= r->size - (addr - r->base);
}

uint8_t *fake_bytes(uint64_t addr, uint64_t size) {
	uint64_t space = (uint64_t)(uintptr_t)fake.space;
	if (addr - space < (uint64_t)1 << SPACE) {
		for (size_t i = 0; i < fake.nallocs; i++)
			if (within(&fake.allocs[i], addr, size))
				return fake.shadow + (addr - space);
		return NULL;
	}
	for (size_t i = 0; i < fake.nhosts; i++)
		if (within(&fake.hosts[i], addr, size))
			return (uint8_t *)(uintptr_t)addr;
	return NULL;
}

op *fake_op(int kind, size_t n) {
	op *o = calloc(1, sizeof *o + 3 * n * sizeof(uint64_t));
	o->kind = kind;
	o->n = n;
	o->dst = (uint64_t *)(o + 1);
	o->src = o->dst + n;
	o->size = o->src + n;
	return o;
}

static uint64_t rnd(stream *s) {
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return s->random;
}

// dead_stream: the driver was lost, or has been reset since and forgot the stream.
static int dead_stream(const stream *s) { return fake.sticky || s->epoch != fake.epoch; }

static void copies(stream *s, op *o) {
	for (size_t left = o->n; left > 0; left--) {
		size_t i = rnd(s) % left, last = left - 1;
		uint64_t dst = o->dst[i], src = o->src[i], size = o->size[i];
		o->dst[i] = o->dst[last], o->src[i] = o->src[last], o->size[i] = o->size[last];
		pthread_mutex_lock(&fake.mu);
		uint8_t *to = fake_bytes(dst, size), *from = fake_bytes(src, size);
		int dead = dead_stream(s);
		if ((to == NULL || from == NULL) && !dead)
			fake_violation("a copy of %llu bytes came to memory that was released", (unsigned long long)size);
		pthread_mutex_unlock(&fake.mu);
		if (to != NULL && from != NULL && !dead)
			memmove(to, from, size);
	}
}

static void *run(void *arg) {
	stream *s = arg;
	pthread_mutex_lock(&fake.mu);
	for (;;) {
		while (s->first == NULL && !s->end)
			pthread_cond_wait(&fake.changed, &fake.mu);
		if (s->first == NULL)
			break;
		op *o = s->first;
		if (o->kind == WAIT) {
			while (o->event->reached < o->mark && !dead_stream(s))
				pthread_cond_wait(&fake.changed, &fake.mu);
			o->event->waiting--;
		}
		if (o->kind == COPY) {
			int delay = fake.delay;
			pthread_mutex_unlock(&fake.mu);
			if (delay > 0) {
				struct timespec t = {0, (long)(rnd(s) % (uint64_t)delay) * 1000};
				nanosleep(&t, NULL);
			}
			pthread_mutex_lock(&fake.mu);
			while (fake.hold && !dead_stream(s))
				pthread_cond_wait(&fake.changed, &fake.mu);
			if (!dead_stream(s)) {
				pthread_mutex_unlock(&fake.mu);
				copies(s, o);
				pthread_mutex_lock(&fake.mu);
			}
		}
		if (o->kind == RECORD) {
			if (!dead_stream(s))
				o->event->reached = o->mark;
			o->event->waiting--;
		}
		s->first = o->next;
		if (s->first == NULL)
			s->last = &s->first;
		free(o);
		pthread_cond_broadcast(&fake.changed);
	}
	pthread_mutex_unlock(&fake.mu);
	return NULL;
}

stream *fake_stream(void) {
	static uint64_t seed = 88172645463325252u;
	stream *s = calloc(1, sizeof *s);
	s->last = &s->first;
	s->epoch = fake.epoch;
	s->random = seed += 2;
	if (pthread_create(&s->thread, NULL, run, s) != 0)
		abort();
	return s;
}

void fake_stream_end(stream *s) {
	pthread_mutex_lock(&fake.mu);
	s->end = 1;
	pthread_cond_broadcast(&fake.changed);
	pthread_mutex_unlock(&fake.mu);
	pthread_join(s->thread, NULL);
	free(s);
}

void fake_push(stream *s, op *o) {
	*s->last = o;
	s->last = &o->next;
	if (o->event != NULL)
		o->event->waiting++;
	pthread_cond_broadcast(&fake.changed);
}
