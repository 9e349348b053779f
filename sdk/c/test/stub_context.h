// stub_context.h: a policy called with a routing context, which is given as JSON text in
// the way that kvrt formulate takes it. Included by stub.h.
//
//     stub_path("s1", 7, KV_NO_RANK, (const uint64_t[]){1, 2}, 2);
//     stub_result r = stub_formulate("{\"request_id\": \"r1\", \"selected\": {\"worker_id\": 7}, \"session\": {\"session_id\": \"s1\"}}");
//     CHECK_TEXT(r.body, "");
//
// What it does not know is left out: it does not check, as a host does. The lineage is
// that of stub_session.h; events in the context are not looked at.
#ifndef KVRT_STUB_CONTEXT_H
#define KVRT_STUB_CONTEXT_H

static inline kvrt_span_t stub_context_text(stub_tree *t, kv_value v)
{
    kv_str s = kv_text(v);
    if (!s.ptr)
        return (kvrt_span_t){0, 0};
    char *copy = strndup(s.ptr, s.len);
    uint32_t at = stub_append(t, s.len ? copy : 0, s.len ? s.len : 8);
    free(copy);
    return (kvrt_span_t){at, s.len};
}

// stub_context_word is the place of a text in a list, from 1 on; 0 when it is not there.
static inline uint32_t stub_context_word(kv_value v, const char *const *words)
{
    kv_str s = kv_text(v);
    for (uint32_t i = 0; s.ptr && words[i]; i++)
        if (strlen(words[i]) == s.len && memcmp(words[i], s.ptr, s.len) == 0)
            return i + 1;
    return 0;
}

static inline uint32_t stub_context_u32(kv_value v, uint32_t *present, uint32_t bit)
{
    uint64_t n = 0;
    if (kv_u64(v, &n))
        *present |= bit;
    return (uint32_t)n;
}

static inline kvrt_worker_t stub_context_worker(stub_tree *t, kv_value v)
{
    kv_value id = kv_get(v, "worker_id"), tiers = kv_get(v, "matched_blocks"), list = kv_get(v, "capabilities");
    kvrt_worker_t w = {.id = {.tag = id.tag, .len = id.len, .val = id.val}};
    if (id.tag == KVRT_TAG_STRING)
        w.id.val = stub_context_text(t, id).off;
    w.dp_rank = stub_context_u32(kv_get(v, "dp_rank"), &w.present, KVRT_WORKER_HAS_DP_RANK);
    w.worker_type = stub_context_text(t, kv_get(v, "worker_type"));
    w.source_control_endpoint = stub_context_text(t, kv_get(v, "source_control_endpoint"));
    w.matched_gpu = stub_context_u32(kv_get(tiers, "gpu"), &w.present, KVRT_WORKER_HAS_GPU);
    w.matched_cpu = stub_context_u32(kv_get(tiers, "cpu"), &w.present, KVRT_WORKER_HAS_CPU);
    w.matched_disk = stub_context_u32(kv_get(tiers, "disk"), &w.present, KVRT_WORKER_HAS_DISK);
    w.matched_external = stub_context_u32(kv_get(tiers, "external"), &w.present, KVRT_WORKER_HAS_EXTERNAL);
    if (kv_array(list)) {
        w.present |= KVRT_WORKER_HAS_CAPABILITIES;
        w.capabilities_count = list.len;
        w.capabilities = stub_append(t, 0, (list.len + 1) * 8);
        for (uint32_t i = 0; i < list.len; i++) {
            kvrt_span_t s = stub_context_text(t, kv_elem(list, i));
            memcpy(t->p + w.capabilities + 8 * i, &s, sizeof s);
        }
    }
    return w;
}

static inline kvrt_node_t stub_context_hint(stub_tree *t, kv_value v)
{
    if (!kv_map(v))
        return (kvrt_node_t){0};
    char *text = calloc(1, 1 << 20);
    stub_print(v, text, 1 << 20);
    kvrt_node_t root = stub_json(t, text);
    free(text);
    return root;
}

// stub_formulate calls the policy.
static inline stub_result stub_formulate(const char *context)
{
    static const char *const legs[] = {"aggregated", "prefill", "decode", 0}, *const kinds[] = {"engine", "sequence", "local", 0};
    static const char *const triggers[] = {"user_message", "tool_result", "other", 0};
    stub_tree source = {0}, t = {0};
    kvrt_node_t root = stub_json(&source, context);
    kv_value c = kv_node(source.p, &root), session = kv_get(c, "session"), partition = kv_get(c, "partition");
    kvrt_context_frame_t f = {.kind = KVRT_KIND_CONTEXT};
    uint32_t present = 0;
    bool flag;
    stub_append(&t, &f, sizeof f);
    f.request_id = stub_context_text(&t, kv_get(c, "request_id"));
    f.model = stub_context_text(&t, kv_get(partition, "model"));
    f.group = stub_context_text(&t, kv_get(partition, "group"));
    f.worker_type = stub_context_text(&t, kv_get(partition, "worker_type"));
    f.tenant = stub_context_text(&t, kv_get(c, "tenant"));
    f.namespace_ = stub_context_text(&t, kv_get(c, "namespace"));
    f.session_id = stub_context_text(&t, kv_get(session, "session_id"));
    f.parent_session_id = stub_context_text(&t, kv_get(session, "parent_session_id"));
    f.attempt = stub_context_u32(kv_get(c, "attempt"), &present, KVRT_HAS_ATTEMPT);
    f.block_size = stub_context_u32(kv_get(c, "block_size"), &present, KVRT_HAS_BLOCK_SIZE);
    f.leg = stub_context_word(kv_get(c, "leg"), legs);
    f.input_trigger = stub_context_word(kv_get(session, "input_trigger"), triggers);
    if (kv_u64(kv_get(c, "prompt_tokens"), &f.prompt_tokens))
        present |= KVRT_HAS_PROMPT_TOKENS;
    if (kv_u64(kv_get(c, "expected_output_tokens"), &f.expected_output_tokens))
        present |= KVRT_HAS_EXPECTED_OUTPUT_TOKENS;
    if (kv_bool(kv_get(c, "tools_declared"), &flag))
        present |= KVRT_HAS_TOOLS_DECLARED, f.tools_declared = flag;
    if (kv_bool(kv_get(session, "session_final"), &flag))
        present |= KVRT_HAS_SESSION_FINAL, f.session_final = flag;
    kv_value hashes = kv_get(c, "block_hashes"), list = kv_get(c, "candidates");
    if (kv_array(hashes)) {
        present |= KVRT_HAS_BLOCK_HASHES;
        f.hash_kind = stub_context_word(kv_get(c, "hash_kind"), kinds);
        f.block_hashes_count = hashes.len;
        f.block_hashes = stub_append(&t, hashes.len ? kv_u64s(hashes).ptr : 0, hashes.len ? 8 * hashes.len : 8);
    }
    f.selected = stub_context_worker(&t, kv_get(c, "selected"));
    if (kv_array(list)) {
        present |= KVRT_HAS_CANDIDATES;
        f.candidates_count = list.len;
        f.candidates = stub_append(&t, 0, (list.len + 1) * (uint32_t)sizeof(kvrt_worker_t));
        for (uint32_t i = 0; i < list.len; i++) {
            kvrt_worker_t w = stub_context_worker(&t, kv_elem(list, i));
            memcpy(t.p + f.candidates + i * sizeof w, &w, sizeof w);
        }
    }
    f.request_hint = stub_context_hint(&t, kv_get(c, "request_hint"));
    f.selection_hint = stub_context_hint(&t, kv_get(c, "selection_hint"));
    f.present = present;
    f.size = t.len;
    memcpy(t.p, &f, sizeof f);
    free(source.p);
    kvrt_context_frame_t *frame = stub_exact(&t);
    char *before = malloc(f.size);
    memcpy(before, frame, f.size);
    stub_result r = stub_read(kvrt_formulate(frame, f.size));
    CHECK(memcmp(before, frame, f.size) == 0); // a guest must not write to the frame
    free(before);
    free(frame);
    return r;
}

#endif
