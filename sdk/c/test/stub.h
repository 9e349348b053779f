// stub.h: a host in one header, so that a guest can be tested natively, with the
// sanitizers, without a Wasm engine. A test includes the guest and then this:
//
//     #include "../my_guest.c"
//     #include "stub.h"
//
//     int main(void)
//     {
//         stub_init("{\"versions\": \"strict\"}");
//         stub_result r = stub_handle("kv.fetch", "1.0", "{\"block_hashes\": []}");
//         CHECK(r.reason == KVRT_REASON_INVALID_PAYLOAD);
//         CHECK_TEXT(r.detail, "block_hashes must hold at least one hash");
//         return stub_done();
//     }
//
// Each frame is an allocation of its own of exactly its size, so that a read past its
// end is found.
#ifndef KVRT_STUB_H
#define KVRT_STUB_H

#include "kvrt_build.h"
#include "stub_json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int stub_failures;

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #what); \
            stub_failures++; \
        } \
    } while (0)

#define CHECK_TEXT(have, want) \
    do { \
        const char *have_ = (have), *want_ = (want); \
        if (strcmp(have_, want_) != 0) { \
            fprintf(stderr, "%s:%d:\n  have %s\n  want %s\n", __FILE__, __LINE__, have_, want_); \
            stub_failures++; \
        } \
    } while (0)

// stub_done is what main returns.
static inline int stub_done(void)
{
    if (stub_failures)
        fprintf(stderr, "%d failed\n", stub_failures);
    return stub_failures != 0;
}

// ---- Host functions: they record what they were asked, and answer what a test sets.

static struct {
    char log[4096];     // "level text\n" per line
    char submits[4096]; // "source TAB flags TAB hash,hash,...\n" per hint; source - when absent
    char effects[4096]; // one per line, as cases have them
    int32_t submit_answer, prefetch_answer;
    int64_t store_answer, device_answer; // of all functions
    const uint64_t *request;             // the blocks of the request; NULL: nobody described it
    uint32_t request_blocks;
    kvrt_fetch_status_t status; // of the request's hint
    char claims[512], scope[64]; // of the last kvrt_store_retain
    uint32_t claims_len;
    int64_t now;
} stub;

static void stub_record(char *log, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void stub_record(char *log, const char *format, ...)
{
    va_list args;
    size_t n = strlen(log);
    va_start(args, format);
    vsnprintf(log + n, sizeof stub.log - n, format, args);
    va_end(args);
}

int32_t kvrt_log_enabled(uint32_t level)
{
    (void)level;
    return 1;
}

void kvrt_log_write(uint32_t level, const void *msg, uint32_t msg_len)
{
    stub_record(stub.log, "%u %.*s\n", level, (int)msg_len, (const char *)msg);
}

int64_t kvrt_clock_now(void) { return stub.now; }
int64_t kvrt_clock_monotonic(void) { return stub.now; }

int32_t kvrt_fetch_submit(const void *source, uint32_t source_len, const uint64_t *hashes, uint32_t hashes_count, uint32_t flags)
{
    if (stub.submit_answer != 0)
        return stub.submit_answer;
    stub_record(stub.submits, "%.*s\t%u\t", source ? (int)source_len : 1, source ? (const char *)source : "-", flags);
    for (uint32_t i = 0; i < hashes_count; i++)
        stub_record(stub.submits, i ? ",%llu" : "%llu", (unsigned long long)hashes[i]);
    stub_record(stub.submits, "\n");
    return 0;
}

// stub_effect records what is to be done with blocks.
static void stub_effect(const char *function, const char *source, uint32_t source_len, const uint64_t *hashes, uint32_t n)
{
    stub_record(stub.effects, "{\"function\":\"%s\"", function);
    if (source)
        stub_record(stub.effects, ",\"source\":\"%.*s\"", (int)source_len, source);
    stub_record(stub.effects, ",\"hashes\":[");
    for (uint32_t i = 0; i < n; i++)
        stub_record(stub.effects, i ? ",%llu" : "%llu", (unsigned long long)hashes[i]);
    stub_record(stub.effects, "]}\n");
}

int32_t kvrt_fetch_prefetch(const void *source, uint32_t source_len, const uint64_t *hashes, uint32_t hashes_count, uint32_t flags)
{
    (void)flags;
    if (stub.prefetch_answer == 0)
        stub_effect("kvrt_fetch.prefetch", source, source_len, hashes, hashes_count);
    return stub.prefetch_answer;
}

// stub_blocks does something with a list of blocks, or those of the request.
static int64_t stub_blocks(const char *function, int64_t refused, const uint64_t *hashes, uint32_t n)
{
    if (refused != 0)
        return refused;
    if (n == 0 && !stub.request)
        return -KVRT_REASON_NOT_FOUND;
    stub_effect(function, 0, 0, n > 0 ? hashes : stub.request, n > 0 ? n : stub.request_blocks);
    return 0;
}

int64_t kvrt_store_evict(const uint64_t *hashes, uint32_t n) { return stub_blocks("kvrt_store.evict", stub.store_answer, hashes, n); }
int64_t kvrt_store_evict_after(const uint64_t *hashes, uint32_t n) { return stub_blocks("kvrt_store.evict_after", stub.store_answer, hashes, n); }
int64_t kvrt_store_retain(const uint64_t *hashes, uint32_t n, const void *claims, uint32_t claims_len, const void *scope, uint32_t scope_len)
{
    stub.claims_len = claims_len <= sizeof stub.claims ? claims_len : 0;
    memcpy(stub.claims, claims, stub.claims_len);
    snprintf(stub.scope, sizeof stub.scope, "%.*s", (int)scope_len, scope ? (const char *)scope : "");
    return stub_blocks("kvrt_store.retain", stub.store_answer, hashes, n);
}
int64_t kvrt_gpu_prefetch(const uint64_t *hashes, uint32_t n) { return stub_blocks("kvrt_gpu.prefetch", stub.device_answer, hashes, n); }

// stub_residency has no block anywhere.
static int64_t stub_residency(int64_t refused, uint32_t n, void *buf, uint32_t cap)
{
    if (refused != 0 || (n == 0 && !stub.request))
        return refused != 0 ? refused : -KVRT_REASON_NOT_FOUND;
    if (n == 0)
        n = stub.request_blocks;
    if (cap >= n && n > 0)
        memset(buf, KVRT_RESIDENCY_ABSENT, n);
    return n;
}

int64_t kvrt_gpu_residency(const uint64_t *hashes, uint32_t n, void *buf, uint32_t cap)
{
    (void)hashes;
    return stub_residency(stub.device_answer, n, buf, cap);
}

int64_t kvrt_store_residency(const uint64_t *hashes, uint32_t n, void *buf, uint32_t cap)
{
    (void)hashes;
    return stub_residency(stub.store_answer, n, buf, cap);
}

int64_t kvrt_gpu_info(void *buf, uint32_t cap)
{
    kvrt_device_info_t info = {.device = KVRT_DEVICE_HOST_MEMORY, .block_bytes = 1 << 20, .blocks = 64};
    if (stub.device_answer != 0)
        return stub.device_answer;
    if (cap >= sizeof info)
        memcpy(buf, &info, sizeof info);
    return sizeof info;
}

int64_t kvrt_store_request(void *buf, uint32_t cap)
{
    if (stub.store_answer != 0 || !stub.request)
        return stub.store_answer != 0 ? stub.store_answer : -KVRT_REASON_NOT_FOUND;
    if (cap >= 8 * stub.request_blocks && stub.request_blocks > 0)
        memcpy(buf, stub.request, 8 * stub.request_blocks);
    return 8 * (int64_t)stub.request_blocks;
}

int64_t kvrt_fetch_status(void *buf, uint32_t cap)
{
    if (cap >= sizeof stub.status)
        memcpy(buf, &stub.status, sizeof stub.status);
    return sizeof stub.status;
}

int32_t kvrt_fetch_discard(void) { return 0; }
int32_t kvrt_fetch_finish(uint32_t aborted)
{
    (void)aborted;
    return 0;
}

#include "stub_session.h"

// ---- Calls

typedef struct {
    uint32_t status, reason;
    char detail[KV_TEXT_MAX + 1];
    char body[8192]; // what was built, as JSON; empty when there is none
} stub_result;

// The roles that a guest may have. One that it lacks is never called.
__attribute__((weak)) kv_answer kvrt_init(const kvrt_init_frame_t *, uint32_t);
__attribute__((weak)) kv_answer kvrt_handle(const kvrt_envelope_frame_t *, uint32_t, uint32_t);
__attribute__((weak)) kv_answer kvrt_parse(const kvrt_parse_frame_t *, uint32_t);
__attribute__((weak)) kv_answer kvrt_formulate(const kvrt_context_frame_t *, uint32_t);

static inline stub_result stub_read(kv_answer v)
{
    stub_result r = {KVRT_STATUS_ACCEPTED, 0, "", ""};
    if (v < 0) {
        r.status = KVRT_STATUS_REJECTED;
        r.reason = (uint32_t)-v;
    } else if (v > 0) {
        const kvrt_answer_t *a = kv_answer_native;
        kv_str detail = kv_run(a, a->detail), body = kv_run(a, a->body);
        r.status = a->status;
        r.reason = a->reason;
        memcpy(r.detail, detail.ptr ? detail.ptr : "", detail.len);
        CHECK(a->detail.off + a->detail.len <= (uint64_t)v && a->body.off + a->body.len <= (uint64_t)v);
        if (body.ptr)
            stub_print_body(body.ptr, r.body, sizeof r.body);
    }
    return r;
}

// stub_init hands the guest its parameters as JSON text; NULL: none.
static inline stub_result stub_init(const char *parameters)
{
    stub_tree t = {0};
    kvrt_init_frame_t head = {.kind = KVRT_KIND_INIT};
    stub_append(&t, &head, sizeof head);
    if (parameters) {
        kvrt_node_t root = stub_json(&t, parameters);
        ((kvrt_init_frame_t *)t.p)->parameters = root;
    }
    ((kvrt_init_frame_t *)t.p)->size = t.len;
    kvrt_init_frame_t *frame = stub_exact(&t);
    stub_result r = stub_read(kvrt_init(frame, frame->size));
    free(frame);
    return r;
}

// stub_envelope builds the frame for count actions, each an action as JSON text.
static inline kvrt_envelope_frame_t *stub_envelope(const char *const *actions, uint32_t count)
{
    stub_tree t = {0};
    kvrt_envelope_frame_t head = {.kind = KVRT_KIND_ENVELOPE, .count = count, .total = count};
    stub_append(&t, &head, sizeof head);
    uint32_t table = stub_append(&t, 0, 4 * count);
    for (uint32_t i = 0; i < count; i++) {
        stub_tree a = stub_action(actions[i], i);
        uint32_t at = stub_append(&t, a.p, a.len);
        ((uint32_t *)(t.p + table))[i] = at;
        free(a.p);
    }
    ((kvrt_envelope_frame_t *)t.p)->actions = table;
    ((kvrt_envelope_frame_t *)t.p)->size = t.len;
    return stub_exact(&t);
}

// stub_judge calls the handler for one of several actions.
static inline stub_result stub_judge(const char *const *actions, uint32_t count, uint32_t position)
{
    kvrt_envelope_frame_t *frame = stub_envelope(actions, count);
    uint32_t size = frame->size;
    char *before = malloc(size);
    memcpy(before, frame, size);
    stub_result r = stub_read(kvrt_handle(frame, size, position));
    CHECK(memcmp(before, frame, size) == 0); // a guest must not write to the frame
    free(before);
    free(frame);
    return r;
}

// stub_handle calls the handler for one action. version and payload NULL: absent.
static inline stub_result stub_handle(const char *type, const char *version, const char *payload)
{
    size_t room = 256 + strlen(type) + (version ? strlen(version) : 0) + (payload ? strlen(payload) : 0);
    char *action = malloc(room);
    int n = snprintf(action, room, "{\"action_id\": \"a1\", \"action_type\": \"%s\"", type);
    if (version)
        n += snprintf(action + n, room - n, ", \"action_version\": \"%s\"", version);
    if (payload)
        n += snprintf(action + n, room - n, ", \"payload\": %s", payload);
    snprintf(action + n, room - n, "}");
    stub_result r = stub_judge((const char *const[]){action}, 1, 0);
    free(action);
    return r;
}

// stub_parse calls the parser for a document given as JSON text.
static inline stub_result stub_parse(const char *document, const char *request_id)
{
    stub_tree t = {0};
    kvrt_parse_frame_t head = {.kind = KVRT_KIND_PARSE, .format = KVRT_FORMAT_JSON};
    stub_append(&t, &head, sizeof head);
    kvrt_node_t root = stub_json(&t, document);
    kvrt_span_t raw = stub_text(&t, document), id = stub_text(&t, request_id);
    kvrt_parse_frame_t *f = (kvrt_parse_frame_t *)t.p;
    f->document = root, f->raw = raw, f->request_id = id, f->size = t.len;
    kvrt_parse_frame_t *frame = stub_exact(&t);
    stub_result r = stub_read(kvrt_parse(frame, frame->size));
    free(frame);
    return r;
}

#include "stub_context.h"

#endif
