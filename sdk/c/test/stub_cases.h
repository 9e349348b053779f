// stub_cases.h: runs a guest's case files (policies/CASES.md) natively, over stub.h:
//
//     #include "../my_guest.c"
//     #include "stub_cases.h"
//     int main(int argc, char **argv) { return stub_cases("kv.fetch", argc - 1, argv + 1); }
//
// What only a host can judge (actions that are no mapping, types of other guests, the
// envelope to pass on) is left to the runner that has one.
#ifndef KVRT_STUB_CASES_H
#define KVRT_STUB_CASES_H

#include "stub.h"

#define STUB_ROOM (1 << 20)

static const char *stub_reasons[] = {"", "unsupported_action_type", "unsupported_action_version", "malformed_action",
    "invalid_payload", "source_not_allowed", "conflicting_source", "limit_exceeded", "superseded", "handler_error", "handler_trap",
    "handler_out_of_fuel", "handler_unavailable", "handler_timeout", "request_finished", "not_found", "state_conflict", "unavailable"};

// stub_refusal is what a host function returns that refuses for a reason.
static inline int32_t stub_refusal(kv_value reason)
{
    kv_str text = kv_text(reason);
    for (int32_t i = 1; text.ptr && i < (int32_t)(sizeof stub_reasons / sizeof *stub_reasons); i++)
        if (text.len == strlen(stub_reasons[i]) && memcmp(text.ptr, stub_reasons[i], text.len) == 0)
            return -i;
    return 0;
}

// stub_wants compares what a case expects under a key, where it does, with what came.
static inline void stub_wants(const char *name, const char *key, kv_value want, const char *have)
{
    static char text[STUB_ROOM];
    text[0] = 0;
    if (!kv_has(want))
        return;
    if (kv_text(want).ptr)
        stub_out(text, sizeof text, "%.*s", (int)want.len, kv_text(want).ptr);
    else
        stub_print(want, text, sizeof text);
    if (strcmp(text, have) != 0) {
        fprintf(stderr, "%s: %s:\n  have %s\n  want %s\n", name, key, have, text);
        stub_failures++;
    }
}

static inline void stub_check(const char *name, kv_value want, const stub_result *r)
{
    stub_wants(name, "status", kv_get(want, "status"), r->status == KVRT_STATUS_ACCEPTED ? "ACCEPTED" : "REJECTED");
    stub_wants(name, "reason", kv_get(want, "reason"), stub_reasons[r->reason]);
    stub_wants(name, "detail", kv_get(want, "detail"), r->detail);
}

// stub_ours tells whether the host would hand the action to the guest.
static inline bool stub_ours(kv_value action, const char *type)
{
    kv_str t = kv_text(kv_get(action, "action_type"));
    return t.ptr && t.len == strlen(type) && memcmp(t.ptr, type, t.len) == 0 && kv_map(kv_get(action, "payload"));
}

static inline char *stub_json_text(kv_value v)
{
    char *text = malloc(STUB_ROOM);
    text[0] = 0;
    stub_print(v, text, STUB_ROOM);
    return text;
}

// stub_actions returns the actions of a case that are the guest's, as JSON text, and
// where each stands in the envelope.
static inline uint32_t stub_actions(kv_value c, const char *type, char **texts, uint32_t *places)
{
    kv_value list = kv_get(kv_get(c, "input"), "actions");
    uint32_t n = 0;
    for (uint32_t i = 0; i < list.len; i++)
        if (stub_ours(kv_elem(list, i), type))
            places[n] = i, texts[n++] = stub_json_text(kv_elem(list, i));
    if (kv_map(kv_get(c, "payload"))) { // a payload alone stands for an envelope of one action
        kv_value version = kv_get(c, "version");
        char *payload = stub_json_text(kv_get(c, "payload")), *v = kv_has(version) ? stub_json_text(version) : 0;
        char *text = texts[0] = malloc(2 * STUB_ROOM);
        sprintf(text, "{\"action_id\": \"a1\", \"action_type\": \"%s\", \"action_version\": %s, \"payload\": %s}",
            type, v ? v : "\"1.0\"", payload);
        free(payload);
        free(v);
        places[n++] = 0;
    }
    return n;
}

// stub_log_list and stub_submit_list put what was recorded the way cases put it.
static inline void stub_log_list(char *out)
{
    static const char *levels[] = {"debug: ", "info: ", "warn: ", "error: "};
    strcpy(out, "[");
    for (char *line = strtok(stub.log, "\n"); line; line = strtok(0, "\n")) {
        strcat(out, out[1] ? "," : "");
        size_t n = strlen(out);
        char *text = malloc(strlen(line) + 16);
        sprintf(text, "%s%s", levels[line[0] - '0'], line + 2);
        stub_print_text((kv_str){text, (uint32_t)strlen(text)}, out + n, STUB_ROOM - n);
        free(text);
    }
    strcat(out, "]");
}

static inline void stub_submit_list(char *out)
{
    strcpy(out, "[");
    for (char *line = strtok(stub.submits, "\n"); line; line = strtok(0, "\n")) {
        char *at = strrchr(line, '\t');
        *at = 0;
        char *flags = strrchr(line, '\t');
        *flags = 0;
        sprintf(out + strlen(out), strcmp(line, "-") ? "%s{\"source\":\"%s\"" : "%s{\"source\":null", out[1] ? "," : "", line);
        sprintf(out + strlen(out), ",\"hashes\":[%s],\"no_retain\":%s}", at + 1, flags[1] == '1' ? "true" : "false");
    }
    strcat(out, "]");
}

static inline void stub_effect_list(char *out)
{
    strcpy(out, "[");
    for (char *line = strtok(stub.effects, "\n"); line; line = strtok(0, "\n"))
        sprintf(out + strlen(out), "%s%s", out[1] ? "," : "", line);
    strcat(out, "]");
}

static const uint64_t stub_none[1];

// stub_host sets what a case says that the host answers.
static inline void stub_host(kv_value host)
{
    stub.submit_answer = stub_refusal(kv_get(host, "submit"));
    stub.prefetch_answer = stub_refusal(kv_get(host, "prefetch"));
    stub.store_answer = stub_refusal(kv_get(host, "store"));
    stub.device_answer = stub_refusal(kv_get(host, "device"));
    kv_value request = kv_get(host, "request");
    kv_hashes hashes = kv_u64s(request);
    stub.request = kv_array(request) ? hashes.len > 0 ? hashes.ptr : stub_none : 0;
    stub.request_blocks = hashes.len;
}

static inline void stub_case(const char *type, kv_value c)
{
    static char out[STUB_ROOM];
    static char *texts[2048];
    static uint32_t places[2048];
    kv_str s = kv_text(kv_get(c, "name"));
    if (kv_has(kv_get(c, "msgpack")))
        return; // needs a decoder
    char *name = strndup(s.ptr, s.len);
    memset(&stub, 0, sizeof stub);
    stub_host(kv_get(c, "host"));

    kv_value params = kv_get(c, "params");
    char *text = kv_has(params) ? stub_json_text(params) : 0;
    stub_result r = stub_init(text);
    free(text);
    stub_wants(name, "init", kv_get(c, "init"), r.detail);

    uint32_t n = stub_actions(c, type, texts, places);
    for (uint32_t i = 0; i < n; i++) {
        r = stub_judge((const char *const *)texts, n, i);
        stub_check(name, kv_elem(kv_get(c, "results"), places[i]), &r);
    }
    for (uint32_t i = 0; i < n; i++)
        free(texts[i]);

    kv_value document = kv_get(c, "document");
    if (kv_has(document)) {
        kv_str id = kv_text(kv_get(c, "request_id"));
        char *d = stub_json_text(document), *request = id.ptr ? strndup(id.ptr, id.len) : 0;
        r = stub_parse(d, request);
        stub_wants(name, "envelope", kv_get(c, "envelope"), r.body);
        stub_check(name, kv_get(c, "refused"), &r);
        CHECK(kv_has(kv_get(c, "refused")) == (r.status == KVRT_STATUS_REJECTED));
        free(d);
        free(request);
    }
    stub_log_list(out);
    stub_wants(name, "log", kv_get(c, "log"), out);
    stub_submit_list(out);
    stub_wants(name, "submits", kv_get(c, "submits"), out);
    stub_effect_list(out);
    stub_wants(name, "effects", kv_get(c, "effects"), out);
    free(name);
}

// stub_cases runs every case of the files; what main returns.
static inline int stub_cases(const char *type, int count, char **files)
{
    int cases = 0;
    for (; count > 0; count--, files++) {
        FILE *f = fopen(*files, "r");
        char *line = 0;
        size_t room = 0;
        if (!f) {
            perror(*files);
            return 2;
        }
        while (getline(&line, &room, f) > 0) {
            stub_tree t = {0};
            kvrt_node_t root = stub_json(&t, line);
            stub_case(type, kv_node(t.p, &root));
            free(t.p);
            cases++;
        }
        free(line);
        fclose(f);
    }
    fprintf(stderr, "%d cases, %d failures\n", cases, stub_failures);
    return stub_done();
}

#endif
