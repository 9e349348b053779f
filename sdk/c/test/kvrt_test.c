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

// lists builds a payload with lists of all kinds.
static void lists(void)
{
    char room[24];
    CHECK(kv_eq(kv_join(room, KV_LIT("s"), "-", kv_of_u64(UINT64_MAX)), KV_LIT("s-18446744073709551615")));
    CHECK(kv_eq(kv_join(room, (int64_t)INT64_MIN, 7u), KV_LIT("-92233720368547758087")));
    CHECK(!kv_join(room, "1234567890123456", kv_of_text(KV_LIT("123456789"))).ptr);

    uint64_t hashes[] = {0, 9, 10, 99999999, 100000000, 9999999999999999, 10000000000000000, UINT64_MAX, 1234567890123456789};
    kv_hashes runs[] = {{hashes, 7}, {0, 0}, {hashes + 7, 2}};
    kv_actions_begin();
    kv_action_begin(KV_LIT("a1"), KV_LIT("t"), KV_LIT("1.0"));
    kv_map_begin(kv_root);
    kv_add_runs("runs", runs, 3);
    kv_add_runs("none", runs, 0);
    kv_add_decimals("decimals", runs, 3);
    kv_add_decimals("no_decimals", runs + 1, 1);
    kv_list_begin(KV_LIT("list"));
    kv_add("", kv_of_null());
    kv_map_begin(kv_root);
    kv_add("a", kv_of_u64(1));
    kv_map_end();
    kv_list_end();
    kv_list_begin(KV_LIT("ints"));
    kv_add("", kv_of_u64(1));
    kv_add("", kv_of_u64(2));
    kv_list_end();
    kv_list_begin(KV_LIT("empty"));
    kv_list_end();
    kv_add("last", kv_of_bool(true));
    kv_map_end();
    kv_action_end();
    stub_result r = stub_read(kv_emit());
    CHECK_TEXT(r.body, "{\"protocol_version\":\"\",\"message_id\":\"\",\"actions\":[{\"action_id\":\"a1\",\"action_type\":\"t\",\"action_version\":\"1.0\",\"payload\":{"
        "\"runs\":[0,9,10,99999999,100000000,9999999999999999,10000000000000000,18446744073709551615,1234567890123456789],\"none\":[],"
        "\"decimals\":[\"0\",\"9\",\"10\",\"99999999\",\"100000000\",\"9999999999999999\",\"10000000000000000\",\"18446744073709551615\",\"1234567890123456789\"],"
        "\"no_decimals\":[],\"list\":[null,{\"a\":1}],\"ints\":[1,2],\"empty\":[],\"last\":true}}]}");
    for (uint64_t i = 0, x = 1; i < 200000; i++, x = x * UINT64_C(6364136223846793005) + 1442695040888963407) {
        char have[32], want[32];
        uint64_t y = x >> i % 64;
        *kv_decimal(have, y) = 0;
        snprintf(want, sizeof want, "%llu", (unsigned long long)y);
        if (strcmp(have, want) != 0) {
            CHECK_TEXT(have, want);
            break;
        }
    }
}

static kv_rank rank(uint64_t worker, uint32_t dp_rank) { return (kv_rank){kv_of_u64(worker), dp_rank}; }

static void sessions(void)
{
    stub_path("s", 7, 0, (const uint64_t[]){1, 2, 3, 4}, 4);
    stub_path("s", 7, 0, (const uint64_t[]){1, 2, 9}, 3);
    stub_path("s", 8, KV_NO_RANK, (const uint64_t[]){1}, 1);
    stub_path("t", 7, 0, (const uint64_t[]){1}, 1);

    kv_lineage l = kv_session_lineage(KV_LIT("s"), rank(7, 0));
    CHECK(!l.refused && l.count == 2 && l.blocks == 7 && l.hash_kind == KVRT_HASH_KIND_ENGINE);
    CHECK(kv_path(l, 0).len == 4 && kv_path(l, 0).ptr[3] == 4 && kv_path(l, 1).ptr[2] == 9 && kv_path(l, 2).len == 0);
    CHECK(kv_longest_path(l).ptr == kv_path(l, 0).ptr);
    kv_lineage from = kv_session_lineage_from(KV_LIT("s"), rank(7, 0), 3);
    CHECK(!from.refused && from.count == 1 && kv_path(from, 0).len == 2 && kv_path(from, 0).ptr[0] == 3);
    CHECK(kv_path(l, 0).ptr[0] == 1); // an answer stays
    kv_lineage own = kv_session_exclusive(KV_LIT("s"), rank(7, 0));
    CHECK(own.count == 2 && kv_path(own, 0).len == 3 && kv_path(own, 0).ptr[0] == 2 && kv_path(own, 1).len == 1 && kv_path(own, 1).ptr[0] == 9);
    kv_lineage none = kv_session_lineage(KV_LIT("s"), rank(8, 0));
    CHECK(!none.refused && none.count == 0 && none.record != 0 && kv_longest_path(none).len == 0);
    CHECK(kv_session_lineage_from(KV_LIT("s"), rank(7, 0), 5).refused == KVRT_REASON_UNKNOWN_ANCHOR);
    CHECK(kv_session_lineage(KV_LIT("u"), rank(7, 0)).refused == KVRT_REASON_UNKNOWN_SESSION);

    kv_frontiers f = kv_session_frontiers(KV_LIT("s"));
    CHECK(!f.refused && f.count == 3 && kv_frontier(f, 1)->hash == 9 && kv_frontier(f, 1)->depth == 3);
    CHECK(kv_frontier_rank(f, 0).dp_rank == 0 && kv_frontier_rank(f, 2).dp_rank == KV_NO_RANK);
    CHECK(kv_session_lineage(KV_LIT("s"), kv_frontier_rank(f, 2)).blocks == 1);
    kvrt_block_node_t n;
    CHECK(kv_session_node(2, &n) == 0 && n.has_parent && n.parent == 1 && n.children == 2 && n.frontiers == 0);
    CHECK(kv_session_node(5, &n) == KVRT_REASON_NOT_FOUND);

    stub_worker(7, 0, "decode", "tcp://h:1");
    stub_worker(8, KV_NO_RANK, 0, 0);
    kv_worker w = kv_find_worker(rank(7, 0));
    CHECK(w.record && kv_is(kv_worker_field(w, source_control_endpoint), "tcp://h:1") && kv_rank_of(w).dp_rank == 0);
    CHECK(!kv_find_worker(rank(7, 1)).record);
    kv_workers all = kv_all_workers();
    CHECK(all.count == 2 && kv_is(kv_worker_field(kv_listed(all, 0), worker_type), "decode") && !kv_worker_field(kv_listed(all, 1), worker_type).ptr);

    // All answers of a call share the room; what does not fit lies on the heap as long as
    // there is memory, and others still fit.
    static uint64_t many[STUB_BLOCKS];
    for (uint64_t i = 0; i < STUB_BLOCKS; i++)
        many[i] = 100 + i;
    stub_path("long", 7, 0, many, STUB_BLOCKS);
    kv_call_begin();
    for (uint32_t left = KV_ASK_ROOM, need = 16 + 8 + 8 * STUB_BLOCKS; left >= need; left -= need)
        CHECK(kv_longest_path(kv_session_lineage(KV_LIT("long"), rank(7, 0))).len == STUB_BLOCKS);
    kv_lineage heap = kv_session_lineage(KV_LIT("long"), rank(7, 0));
    CHECK(kv_longest_path(heap).len == STUB_BLOCKS && (const char *)heap.record == kv_heap);
    kv_begin(); // what is built does not lie over it
    CHECK(kv_longest_path(heap).ptr[STUB_BLOCKS - 1] == 99 + STUB_BLOCKS && kv_out.answer >= kv_heap + kv_ask_kept);
    while (kv_session_lineage(KV_LIT("long"), rank(7, 0)).refused == 0)
        CHECK(kv_ask_kept <= sizeof kv_heap);
    CHECK(kv_session_lineage(KV_LIT("long"), rank(7, 0)).refused == KVRT_REASON_LIMIT_EXCEEDED);
    CHECK(kv_session_lineage(KV_LIT("s"), rank(7, 0)).count == 2);
    kv_call_begin();
    CHECK(kv_ask_kept == 0 && kv_heap_used() == 0);

    stub_fleet.index_off = true;
    CHECK(kv_session_lineage(KV_LIT("s"), rank(7, 0)).refused == KVRT_REASON_INDEX_OFF);
    CHECK(kv_session_frontiers(KV_LIT("s")).refused == KVRT_REASON_INDEX_OFF && kv_session_node(2, &n) == KVRT_REASON_INDEX_OFF);
}

static void device(void)
{
    uint64_t hashes[] = {1, 2};
    uint8_t where[2] = {9, 9};
    kvrt_device_info_t info;
    CHECK(kv_device_residency((kv_hashes){hashes, 2}, where, 1) == 2 && where[0] == 9);
    CHECK(kv_device_residency((kv_hashes){hashes, 2}, where, 2) == 2 && where[1] == KVRT_RESIDENCY_ABSENT);
    CHECK(kv_device_info(&info) == sizeof info && info.device == KVRT_DEVICE_HOST_MEMORY && info.blocks == 64);
    stub.device_answer = -KVRT_REASON_UNAVAILABLE;
    CHECK(kv_device_residency((kv_hashes){hashes, 2}, where, 2) == -KVRT_REASON_UNAVAILABLE);
    CHECK(kv_device_info(&info) == -KVRT_REASON_UNAVAILABLE && kv_device_prefetch((kv_hashes){hashes, 2}) == -KVRT_REASON_UNAVAILABLE);
    stub.device_answer = 0;
}

static void claims_and_status(void)
{
    const uint64_t hashes[] = {7, 8};
    const kvrt_store_claim_t claims[] = {{.to = 1, .priority = 50, .ttl_ms = 1000}, {.from = 1, .to = UINT32_MAX}};
    uint8_t where[2] = {9, 9};
    kvrt_fetch_status_t status;
    stub.effects[0] = 0;
    CHECK(kv_retain((kv_hashes){hashes, 2}, claims, 2, KV_LIT("s")) == 0);
    CHECK(stub.claims_len == sizeof claims && memcmp(stub.claims, claims, sizeof claims) == 0);
    CHECK_TEXT(stub.scope, "s");
    CHECK(kv_retain((kv_hashes){hashes, 1}, claims, 1, (kv_str){0}) == 0 && stub.claims_len == sizeof claims[0]);
    CHECK_TEXT(stub.scope, "");
    CHECK_TEXT(stub.effects, "{\"function\":\"kvrt_store.retain\",\"hashes\":[7,8]}\n{\"function\":\"kvrt_store.retain\",\"hashes\":[7]}\n");
    CHECK(kv_store_residency((kv_hashes){hashes, 2}, where, 1) == 2 && where[0] == 9);
    CHECK(kv_store_residency((kv_hashes){hashes, 2}, where, 2) == 2 && where[1] == KVRT_RESIDENCY_ABSENT);
    stub.status = (kvrt_fetch_status_t){.state = KVRT_FETCH_STATE_LIVE, .hashes = 3};
    CHECK(kv_fetch_status(&status) == sizeof status && status.state == KVRT_FETCH_STATE_LIVE && status.hashes == 3);
    stub.store_answer = -KVRT_REASON_UNAVAILABLE;
    CHECK(kv_retain((kv_hashes){hashes, 2}, claims, 2, (kv_str){0}) == -KVRT_REASON_UNAVAILABLE);
    CHECK(kv_store_residency((kv_hashes){hashes, 2}, where, 2) == -KVRT_REASON_UNAVAILABLE);
    stub.store_answer = 0;
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

// same compares texts of each length, equal and different in each byte, from the heap so
// that reading outside is seen.
static void same(void)
{
    for (uint32_t n = 0; n <= 40; n++) {
        char *x = malloc(n), *y = malloc(n);
        for (uint32_t i = 0; i < n; i++)
            x[i] = y[i] = (char)('a' + i);
        CHECK(kv_same(x, y, n));
        for (uint32_t i = 0; i < n; i++) {
            y[i] ^= 0x20;
            CHECK(!kv_same(x, y, n));
            y[i] ^= 0x20;
        }
        free(x), free(y);
    }
}

int main(void)
{
    init();
    same();
    values();
    texts();
    answers();
    building();
    policy();
    lists();
    sessions();
    device();
    claims_and_status();
    return stub_done();
}
