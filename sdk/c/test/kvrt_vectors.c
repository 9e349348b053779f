// The vectors of the ABI (abi/vectors), read through the SDK: what a reader finds must
// be what the vector says. The argument is the folder.
#include "kvrt.h"
#include "stub.h"

// Prints the way the vectors do; what is printed is read again and compared.
static char out[1 << 20];
#define SAY(...) stub_out(out, sizeof out, __VA_ARGS__)

static void say_text(kv_str s)
{
    if (s.ptr)
        stub_print_text(s, out, sizeof out);
    else
        SAY("null");
}

static void say_hex(kv_str s)
{
    SAY("\"");
    for (uint32_t i = 0; i < s.len; i++)
        SAY("%02x", (unsigned char)s.ptr[i]);
    SAY("\"");
}

static void say_u64(uint64_t x) { SAY("\"%llu\"", (unsigned long long)x); }

static void say_hashes(kv_hashes h)
{
    SAY("[");
    for (uint32_t i = 0; i < h.len; i++) {
        SAY(i ? "," : "");
        say_u64(h.ptr[i]);
    }
    SAY("]");
}

static void say_tree(kv_value v)
{
    static const char *names[] = {"absent", "null", "bool", "u64", "i64", "f64", "number", "string", "bytes", "array", "map", "u64s", "ext"};
    bool b = false;
    uint64_t x = 0;
    double d = 0;
    SAY("{\"%s\":", names[v.tag]);
    switch (v.tag) {
    case KVRT_TAG_BOOL: CHECK(kv_bool(v, &b)); SAY(b ? "true" : "false"); break;
    case KVRT_TAG_U64: CHECK(kv_u64(v, &x)); say_u64(x); break;
    case KVRT_TAG_I64: SAY("\"%lld\"", (long long)v.val); break;
    case KVRT_TAG_F64: CHECK(kv_f64(v, &d)); memcpy(&x, &d, 8); SAY("\"%016llx\"", (unsigned long long)x); break;
    case KVRT_TAG_NUMBER: say_text(kv_number(v)); break;
    case KVRT_TAG_STRING: say_text(kv_text(v)); break;
    case KVRT_TAG_BYTES: say_hex(kv_blob(v)); break;
    case KVRT_TAG_EXT: SAY("[\"%u\",", v.ext); say_hex(kv_blob(v)); SAY("]"); break;
    case KVRT_TAG_U64S: say_hashes(kv_u64s(v)); break;
    case KVRT_TAG_ARRAY: case KVRT_TAG_MAP:
        SAY("[");
        for (uint32_t i = 0; i < v.len; i++) {
            SAY(i ? "," : "");
            if (kv_map(v)) {
                SAY("[");
                say_tree(kv_key(v, i));
                SAY(",");
                say_tree(kv_val(v, i));
                SAY("]");
            } else {
                say_tree(kv_elem(v, i));
            }
        }
        SAY("]");
        break;
    default: SAY("null");
    }
    SAY("}");
}

static void say_action(kv_action a)
{
    SAY("{\"index\":\"%u\",\"action_id\":", a.index);
    say_text(a.id);
    SAY(",\"action_type\":");
    say_text(a.type);
    SAY(",\"action_version\":");
    say_text(a.version);
    SAY(",\"raw\":");
    if (a.raw.ptr) {
        SAY("{\"hex\":");
        say_hex(a.raw);
        SAY("}");
    } else {
        SAY("null");
    }
    SAY(",\"payload\":");
    say_tree(a.payload);
    SAY("}");
}

static void read_tree(const char *b) { say_tree(kv_node(b, (const kvrt_node_t *)b)); }

static void read_envelope(const char *b)
{
    kv_envelope e = kv_envelope_of((const kvrt_envelope_frame_t *)b);
    SAY("{\"total\":\"%u\",\"protocol_version\":", e.total);
    say_text(kv_run(b, e.frame->protocol_version));
    SAY(",\"message_id\":");
    say_text(kv_run(b, e.frame->message_id));
    SAY(",\"actions\":[");
    for (uint32_t i = 0; i < e.count; i++) {
        SAY(i ? "," : "");
        say_action(kv_action_at(e, i));
    }
    SAY("]}");
}

static void say_worker(kv_worker w)
{
    SAY("{\"id\":");
    say_tree(kv_worker_id(w));
    SAY(",\"worker_type\":");
    say_text(kv_worker_field(w, worker_type));
    SAY(",\"source_control_endpoint\":");
    say_text(kv_worker_field(w, source_control_endpoint));
    SAY(",\"matched_gpu\":\"%u\"", w.record->matched_gpu);
    if (kv_worker_has(w, KVRT_WORKER_HAS_CAPABILITIES)) {
        SAY(",\"capabilities\":[");
        for (uint32_t i = 0; i < w.record->capabilities_count; i++) {
            SAY(i ? "," : "");
            say_text(kv_capability(w, i));
        }
        SAY("]");
    }
    SAY("}");
}

static void read_context(const char *b)
{
    kv_context c = {(const kvrt_context_frame_t *)b};
    SAY("{\"request_id\":");
    say_text(kv_field(c, request_id));
    SAY(",\"session_id\":");
    say_text(kv_field(c, session_id));
    SAY(",\"namespace\":");
    say_text(kv_field(c, namespace_));
    SAY(",\"block_hashes\":");
    if (kv_has_field(c, KVRT_HAS_BLOCK_HASHES))
        say_hashes(kv_block_hashes(c));
    else
        SAY("null");
    if (kv_has_field(c, KVRT_HAS_CANDIDATES)) {
        SAY(",\"candidates\":[");
        for (uint32_t i = 0; i < c.frame->candidates_count; i++) {
            SAY(i ? "," : "");
            say_worker(kv_candidate(c, i));
        }
        SAY("]");
    }
    SAY(",\"selected\":");
    say_worker(kv_selected(c));
    SAY(",\"request_hint\":");
    say_tree(kv_request_hint(c));
    SAY(",\"selection_hint\":");
    say_tree(kv_selection_hint(c));
    SAY("}");
}

// same compares key by key what was printed with what the vector has; keys that were
// not printed are not shown by the SDK.
static void same(const char *name, kv_value have, kv_value want)
{
    if (kv_map(have)) {
        for (uint32_t i = 0; i < have.len; i++)
            same(name, kv_val(have, i), kv_lookup(want, kv_text(kv_key(have, i))));
    } else if (kv_array(have) && kv_array(want) && have.len == want.len) {
        for (uint32_t i = 0; i < have.len; i++)
            same(name, kv_elem(have, i), kv_elem(want, i));
    } else {
        static char a[1 << 16], b[1 << 16];
        a[0] = b[0] = 0;
        stub_print(have, a, sizeof a);
        stub_print(want, b, sizeof b);
        if (strcmp(a, b) != 0 || have.tag != want.tag)
            fprintf(stderr, "%s: have %s, want %s\n", name, a, b), stub_failures++;
    }
}

static char *slurp(const char *folder, const char *file)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.json", folder, file);
    FILE *f = fopen(path, "r");
    if (!f) {
        perror(path);
        exit(2);
    }
    static char text[8 << 20];
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text;
}

static void vectors(const char *folder, const char *file, void (*read)(const char *))
{
    stub_tree t = {0};
    kvrt_node_t root = stub_json(&t, slurp(folder, file));
    kv_value list = kv_get(kv_node(t.p, &root), "vectors");
    int count = 0;
    for (uint32_t i = 0; i < list.len; i++) {
        kv_value v = kv_elem(list, i), want = kv_get(v, "value");
        kv_str hex = kv_text(kv_get(v, "hex")), name = kv_text(kv_get(v, "name"));
        if (!kv_has(want))
            continue;
        char *bytes = malloc(hex.len / 2 + 1), *label = strndup(name.ptr, name.len);
        for (uint32_t j = 0; j < hex.len; j += 2) {
            char digits[3] = {hex.ptr[j], hex.ptr[j + 1], 0};
            bytes[j / 2] = (char)strtoul(digits, 0, 16);
        }
        out[0] = 0;
        read(bytes);
        stub_tree h = {0};
        kvrt_node_t have = stub_json(&h, out);
        same(label, kv_node(h.p, &have), want);
        free(h.p);
        free(label);
        free(bytes);
        count++;
    }
    free(t.p);
    CHECK(count >= 4);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    vectors(argv[1], "tree", read_tree);
    vectors(argv[1], "envelope", read_envelope);
    vectors(argv[1], "context", read_context);
    return stub_done();
}
