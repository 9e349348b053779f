// Tests of the SDK itself: gcc -std=gnu11 -fsanitize=address,undefined -I../include kvrt_test.c
#define KV_MAX_ACTIONS 2
#include "kvrt.h"
#include "kvrt_build.h"

// ---- A guest with every role. What a call is to do is its payload's key "do".

static uint64_t features;

static kv_answer configure(kv_value p)
{
    if (kv_u64(kv_get(p, "features"), &features))
        return kv_choose(features);
    return kv_no_parameters(p);
}

static kv_answer describe(kv_action a)
{
    kv_value v = kv_get(a.payload, "value");
    kv_value e = kv_elem(v, 1);
    uint64_t x = 0;
    bool b = false;
    double d = 0;
    return kv_reject(KVRT_REASON_NOT_FOUND, kv_kind(v), " ", v.len, " ", kv_kind(e), " ",
        (kv_u64(v, &x) ? x : kv_u64(e, &x) ? x : 0), kv_bool(v, &b) && b ? " yes" : " no", (int)(kv_f64(v, &d) ? d * 10 : 0));
}

static kv_answer rebuild(kv_action a)
{
    kv_rewrite_begin(a);
    kv_map_begin(kv_root);
    kv_add("copy", kv_get(a.payload, "value"));
    kv_add("gone", kv_get(a.payload, "nothing"));
    kv_map_begin(KV_LIT("made"));
    kv_add("null", kv_of_null());
    kv_add("bool", kv_of_bool(true));
    kv_add("u64", kv_of_u64(UINT64_MAX));
    kv_map_begin(KV_LIT("deeper"));
    kv_add("f64", kv_of_f64(0.5));
    kv_add("text", kv_of_text(KV_LIT("")));
    kv_map_end();
    kv_add("hashes", kv_of_hashes((kv_hashes){(const uint64_t[]){1, 2}, 2}));
    kv_add("none", kv_of_hashes((kv_hashes){0, 0}));
    kv_map_end();
    kv_map_end();
    kv_action_end();
    return kv_accept_rewritten();
}

static kv_answer overflow(kv_action a)
{
    kv_rewrite_begin(a);
    kv_map_begin(kv_root);
    for (int i = 0; i <= KV_OPEN_ENTRIES; i++)
        kv_add("k", kv_of_u64(1));
    kv_map_end();
    kv_action_end();
    return kv_accept_rewritten();
}

static kv_answer judge(kv_action a)
{
    kv_str what = kv_text(kv_get(a.payload, "do"));
    if (kv_is(what, "describe"))
        return describe(a);
    if (kv_is(what, "rebuild"))
        return rebuild(a);
    if (kv_is(what, "overflow"))
        return overflow(a);
    if (kv_is(what, "say"))
        return kv_reject(KVRT_REASON_INVALID_PAYLOAD, "<", kv_text(kv_get(a.payload, "value")), ">");
    if (kv_is(what, "place"))
        return kv_reject(KVRT_REASON_NOT_FOUND, a.id, a.type, a.version, " ", a.index, "/", a.envelope.count, "/", a.envelope.total);
    kv_info("nothing to do for ", a.id, ": ", INT64_MIN, " ", UINT64_MAX);
    return kv_fetch(what, kv_u64s(kv_get(a.payload, "value")), KVRT_FETCH_FLAG_NO_RETAIN);
}

static kv_answer parse(kv_document d)
{
    kv_envelope_begin(KV_LIT("0.1"), d.request_id);
    for (uint32_t i = 0; i < d.tree.len; i++) {
        kv_action_begin(KV_LIT("x"), kv_text(kv_key(d.tree, i)), (kv_str){0, 0});
        kv_payload(kv_val(d.tree, i));
        kv_action_end();
    }
    return kv_emit();
}

static kv_answer formulate(kv_context c)
{
    kv_worker selected = kv_selected(c), other = kv_candidate(c, 0);
    if (!kv_has_field(c, KVRT_HAS_CANDIDATES) || kv_worker_has(selected, KVRT_WORKER_HAS_DP_RANK))
        return kv_accept();
    kv_envelope_begin(KV_LIT("0.1"), kv_field(c, request_id));
    kv_action_begin(KV_LIT("a1"), kv_capability(selected, 1), KV_LIT("1.0"));
    kv_map_begin(kv_root);
    kv_add("source", kv_of_text(kv_worker_field(other, source_control_endpoint)));
    kv_add("hashes", kv_of_hashes(kv_block_hashes(c)));
    kv_add("id", kv_worker_id(other));
    kv_add("session", kv_of_text(kv_field(c, session_id).ptr ? KV_LIT("given") : KV_LIT("absent")));
    kv_map_end();
    kv_action_end();
    return kv_emit();
}

KVRT_INIT(configure)
KVRT_HANDLER(judge)
KVRT_PARSER(parse)
KVRT_POLICY(formulate)

#include "stub.h"

static stub_result handle(const char *payload) { return stub_handle("demo.test", "1.0", payload); }

static void values(void)
{
    struct {
        const char *value, *want;
    } cases[] = {
        {"null", "null 0 absent 0 no0"},
        {"true", "a bool 0 absent 0 yes0"},
        {"7", "an integer 0 absent 7 no0"},
        {"18446744073709551615", "an integer 0 absent 18446744073709551615 no0"},
        {"-1", "a negative integer 0 absent 0 no0"},
        {"1.0", "a float 0 absent 0 no10"},
        {"18446744073709551616", "a number that 64 bits cannot hold 20 absent 0 no0"},
        {"1e400", "a number that 64 bits cannot hold 5 absent 0 no0"},
        {"\"text\"", "a string 4 absent 0 no0"},
        {"[]", "an array 0 absent 0 no0"},
        {"[1, 2]", "an array 2 an integer 2 no0"},
        {"[1, null]", "an array 2 null 0 no0"},
        {"[0, 9, \"x\"]", "an array 3 an integer 9 no0"},
        {"{\"a\": 1}", "an object 1 absent 0 no0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char payload[256];
        snprintf(payload, sizeof payload, "{\"other\": [1], \"do\": \"describe\", \"value\": %s}", cases[i].value);
        CHECK_TEXT(handle(payload).detail, cases[i].want);
    }
    CHECK_TEXT(handle("{\"do\": \"describe\"}").detail, "absent 0 absent 0 no0");
    // A key is neither a prefix nor an extension of another.
    CHECK_TEXT(handle("{\"d\": 1, \"dodo\": 2, \"do\": \"say\", \"value\": \"x\"}").detail, "<\"x\">");
}

static void texts(void)
{
    CHECK_TEXT(handle("{\"do\": \"say\", \"value\": \"a\\\"b\\\\c\\n\\u0001\"}").detail, "<\"a\\\"b\\\\c\\u000a\\u0001\">");
    CHECK_TEXT(handle("{\"do\": \"say\", \"value\": \"\"}").detail, "<\"\">");
    // What is longer than a detail is cut between characters.
    for (size_t pad = 0; pad < 4; pad++) {
        char payload[1400] = "{\"do\": \"say\", \"value\": \"";
        for (size_t i = 0; i < pad; i++)
            strcat(payload, "x");
        for (int i = 0; i < 300; i++)
            strcat(payload, "\xf0\x9f\x92\xbe");
        strcat(payload, "\"}");
        stub_result r = handle(payload);
        CHECK(strlen(r.detail) == 2 + pad + (KV_TEXT_MAX - 2 - pad) / 4 * 4);
    }
}

static void answers(void)
{
    CHECK(handle("{}").status == KVRT_STATUS_ACCEPTED);
    CHECK_TEXT(stub.log, "1 nothing to do for \"a1\": -9223372036854775808 18446744073709551615\n");
    CHECK(handle("{\"do\": \"tcp://h:1\", \"value\": [5, 6]}").status == KVRT_STATUS_ACCEPTED);
    CHECK_TEXT(stub.submits, "-\t1\t\ntcp://h:1\t1\t5,6\n");
    stub.submit_answer = -KVRT_REASON_SOURCE_NOT_ALLOWED;
    CHECK(handle("{}").reason == KVRT_REASON_SOURCE_NOT_ALLOWED);
    stub.submit_answer = 0;

    const char *actions[] = {"{\"action_type\": \"t\", \"payload\": {}}",
        "{\"action_id\": \"i\", \"action_type\": \"t\", \"action_version\": \"\", \"payload\": {\"do\": \"place\"}}"};
    CHECK_TEXT(stub_judge(actions, 2, 1).detail, "\"i\"\"t\"\"\" 1/2/2");
    kvrt_envelope_frame_t *frame = stub_envelope(actions, 2);
    CHECK(kvrt_handle(frame, frame->size, 2) == -KVRT_REASON_HANDLER_ERROR);
    free(frame);
}

static void building(void)
{
    stub_result r = handle("{\"do\": \"rebuild\", \"value\": {\"a\": [1, 2], \"b\": [null, -1, 1.5, 1e400, \"x\", [], {}], \"\": {\"c\": false}}}");
    CHECK_TEXT(r.body, "{\"action_id\":\"a1\",\"action_type\":\"demo.test\",\"action_version\":\"1.0\",\"payload\":"
        "{\"copy\":{\"a\":[1,2],\"b\":[null,-1,1.5,1e400,\"x\",[],{}],\"\":{\"c\":false}},"
        "\"made\":{\"null\":null,\"bool\":true,\"u64\":18446744073709551615,\"deeper\":{\"f64\":0.5,\"text\":\"\"},\"hashes\":[1,2],\"none\":[]}}}");
    r = handle("{\"do\": \"overflow\"}");
    CHECK(r.reason == KVRT_REASON_LIMIT_EXCEEDED);
    CHECK_TEXT(r.detail, "the answer is too large");

    CHECK_TEXT(stub_parse("{\"t.1\": {\"a\": 1}, \"t.2\": 5}", "r1").body, "{\"protocol_version\":\"0.1\",\"message_id\":\"r1\",\"actions\":["
        "{\"action_id\":\"x\",\"action_type\":\"t.1\",\"action_version\":\"\",\"payload\":{\"a\":1}},"
        "{\"action_id\":\"x\",\"action_type\":\"t.2\",\"action_version\":\"\",\"payload\":5}]}");
    CHECK_TEXT(stub_parse("{}", 0).body, "{\"protocol_version\":\"0.1\",\"message_id\":\"\",\"actions\":[]}");
    CHECK(stub_parse("{\"a\": 1, \"b\": 2, \"c\": 3}", "r1").reason == KVRT_REASON_LIMIT_EXCEEDED); // KV_MAX_ACTIONS
    CHECK(stub_parse("{\"a\": 1}", "r1").status == KVRT_STATUS_ACCEPTED); // nothing is left of the failure
}

static void policy(void)
{
    stub_tree t = {0};
    kvrt_context_frame_t f = {.kind = KVRT_KIND_CONTEXT, .present = KVRT_HAS_CANDIDATES | KVRT_HAS_BLOCK_HASHES, .candidates_count = 1, .block_hashes_count = 2};
    uint64_t hashes[] = {3, UINT64_MAX};
    stub_append(&t, &f, sizeof f);
    f.request_id = stub_text(&t, "r9");
    f.block_hashes = stub_append(&t, hashes, sizeof hashes);
    kvrt_worker_t other = {.id = {.tag = KVRT_TAG_U64, .val = 7}, .source_control_endpoint = stub_text(&t, "tcp://o:1")};
    f.candidates = stub_append(&t, &other, sizeof other);
    kvrt_span_t capabilities[] = {stub_text(&t, "kv.retain"), stub_text(&t, "kv.fetch")};
    f.selected.present = KVRT_WORKER_HAS_CAPABILITIES;
    f.selected.capabilities = stub_append(&t, capabilities, sizeof capabilities);
    f.selected.capabilities_count = 2;
    f.size = t.len;
    memcpy(t.p, &f, sizeof f);
    kvrt_context_frame_t *frame = stub_exact(&t);
    CHECK_TEXT(stub_read(kvrt_formulate(frame, frame->size)).body, "{\"protocol_version\":\"0.1\",\"message_id\":\"r9\",\"actions\":["
        "{\"action_id\":\"a1\",\"action_type\":\"kv.fetch\",\"action_version\":\"1.0\",\"payload\":"
        "{\"source\":\"tcp://o:1\",\"hashes\":[3,18446744073709551615],\"id\":7,\"session\":\"absent\"}}]}");
    frame->present = KVRT_HAS_BLOCK_HASHES;
    CHECK(kvrt_formulate(frame, frame->size) == 0);
    free(frame);
}

static void init(void)
{
    CHECK(stub_init(0).status == KVRT_STATUS_ACCEPTED);
    CHECK(stub_init("null").status == KVRT_STATUS_ACCEPTED);
    CHECK(stub_init("{}").status == KVRT_STATUS_ACCEPTED);
    CHECK_TEXT(stub_init("{\"a\": 1}").detail, "this guest takes no parameters");
    CHECK_TEXT(stub_init("[]").detail, "this guest takes no parameters");
    CHECK(stub_init("{\"features\": 1}").status == KVRT_STATUS_ACCEPTED);
    CHECK(kv_answer_native->features == KVRT_FEATURE_RAW_PAYLOAD);
}

int main(void)
{
    init();
    values();
    texts();
    answers();
    building();
    policy();
    return stub_done();
}
