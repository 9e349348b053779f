// stub_session.h: the lineage index and the catalogue of a test. Included by stub.h.
//
//     stub_path("s1", 7, 0, (const uint64_t[]){1, 2, 3}, 3);
//     stub_worker(7, 0, "decode", "tcp://10.0.0.7:18080");
//
// The index is on; stub_fleet.index_off switches it off. Workers have integer ids here.
// The rank KV_NO_RANK is none.
#ifndef KVRT_STUB_SESSION_H
#define KVRT_STUB_SESSION_H

enum { STUB_PATHS = 64, STUB_BLOCKS = 4096 };

static struct {
    bool index_off;
    uint32_t hash_kind; // 0 is taken for KVRT_HASH_KIND_ENGINE
    uint32_t paths, workers;
    struct {
        const char *session;
        uint64_t worker;
        uint32_t rank, len;
        uint64_t hashes[STUB_BLOCKS];
    } path[STUB_PATHS];
    struct {
        uint64_t id;
        uint32_t rank;
        const char *type, *source; // NULL: absent
    } worker[STUB_PATHS];
} stub_fleet;

// stub_path lets a session have a chain of blocks on a worker.
static inline void stub_path(const char *session, uint64_t worker, uint32_t rank, const uint64_t *hashes, uint32_t len)
{
    if (stub_fleet.paths == STUB_PATHS || len > STUB_BLOCKS)
        abort();
    uint32_t i = stub_fleet.paths++;
    stub_fleet.path[i].session = session;
    stub_fleet.path[i].worker = worker;
    stub_fleet.path[i].rank = rank;
    stub_fleet.path[i].len = len;
    memcpy(stub_fleet.path[i].hashes, hashes, 8 * (size_t)len);
}

// stub_worker puts a worker's rank into the catalogue.
static inline void stub_worker(uint64_t id, uint32_t rank, const char *type, const char *source)
{
    if (stub_fleet.workers == STUB_PATHS)
        abort();
    uint32_t i = stub_fleet.workers++;
    stub_fleet.worker[i].id = id;
    stub_fleet.worker[i].rank = rank;
    stub_fleet.worker[i].type = type;
    stub_fleet.worker[i].source = source;
}

static inline bool stub_is_session(uint32_t i, const void *session, uint32_t len)
{
    return strlen(stub_fleet.path[i].session) == len && memcmp(stub_fleet.path[i].session, session, len) == 0;
}

static inline bool stub_knows(const void *session, uint32_t len)
{
    for (uint32_t i = 0; i < stub_fleet.paths; i++)
        if (stub_is_session(i, session, len))
            return true;
    return false;
}

static inline uint32_t stub_kind(void) { return stub_fleet.hash_kind ? stub_fleet.hash_kind : (uint32_t)KVRT_HASH_KIND_ENGINE; }

// stub_place is where a block stands in path i, or -1.
static inline int64_t stub_place(uint32_t i, uint64_t hash)
{
    for (uint32_t k = 0; k < stub_fleet.path[i].len; k++)
        if (stub_fleet.path[i].hashes[k] == hash)
            return k;
    return -1;
}

// stub_write gives an answer to the guest if it fits, as a host does.
static inline int64_t stub_write(stub_tree *t, void *buf, uint32_t cap)
{
    int64_t n = t->len;
    if (n <= cap)
        memcpy(buf, t->p, t->len);
    free(t->p);
    return n;
}

// stub_runs answers with part of some paths: from[i] on, where it is not negative.
static inline int64_t stub_runs(const int64_t *from, const uint32_t *to, void *buf, uint32_t cap)
{
    stub_tree t = {0};
    kvrt_lineage_t head = {.hash_kind = stub_kind(), .paths = sizeof head};
    for (uint32_t i = 0; i < stub_fleet.paths; i++)
        if (from[i] >= 0)
            head.paths_count++, head.blocks += to[i] - (uint32_t)from[i];
    stub_append(&t, &head, sizeof head);
    uint32_t table = stub_append(&t, 0, 8 * head.paths_count), k = 0;
    for (uint32_t i = 0; i < stub_fleet.paths; i++) {
        if (from[i] < 0)
            continue;
        uint32_t n = to[i] - (uint32_t)from[i];
        kvrt_path_t p = {stub_append(&t, stub_fleet.path[i].hashes + from[i], 8 * n), n};
        memcpy(t.p + table + 8 * k++, &p, sizeof p);
    }
    return stub_write(&t, buf, cap);
}

static inline bool stub_on(uint32_t i, const kvrt_node_t *worker, uint32_t rank)
{
    return worker->tag == KVRT_TAG_U64 && stub_fleet.path[i].worker == worker->val && stub_fleet.path[i].rank == rank;
}

int64_t kvrt_session_lineage(const void *session, uint32_t session_len, const kvrt_node_t *worker, uint32_t rank, int64_t anchor, uint32_t flags, void *buf, uint32_t cap)
{
    int64_t from[STUB_PATHS];
    uint32_t to[STUB_PATHS];
    bool known = !(flags & KVRT_LINEAGE_FLAG_ANCHOR);
    if (stub_fleet.index_off)
        return -(int64_t)KVRT_REASON_INDEX_OFF;
    for (uint32_t i = 0; i < stub_fleet.paths; i++) {
        int64_t at = flags & KVRT_LINEAGE_FLAG_ANCHOR ? stub_place(i, (uint64_t)anchor) : 0;
        known = known || at >= 0;
        from[i] = stub_is_session(i, session, session_len) && stub_on(i, worker, rank) ? at : -1;
        to[i] = stub_fleet.path[i].len;
    }
    if (!known)
        return -(int64_t)KVRT_REASON_UNKNOWN_ANCHOR;
    if (!stub_knows(session, session_len))
        return -(int64_t)KVRT_REASON_UNKNOWN_SESSION;
    return stub_runs(from, to, buf, cap);
}

int64_t kvrt_session_exclusive(const void *session, uint32_t session_len, const kvrt_node_t *worker, uint32_t rank, void *buf, uint32_t cap)
{
    int64_t from[STUB_PATHS];
    uint32_t to[STUB_PATHS];
    if (stub_fleet.index_off)
        return -(int64_t)KVRT_REASON_INDEX_OFF;
    if (!stub_knows(session, session_len))
        return -(int64_t)KVRT_REASON_UNKNOWN_SESSION;
    for (uint32_t i = 0; i < stub_fleet.paths; i++) {
        from[i] = -1;
        to[i] = stub_fleet.path[i].len;
        if (!stub_is_session(i, session, session_len) || !stub_on(i, worker, rank))
            continue;
        int64_t shared = 0; // blocks that another session has, or an earlier path
        for (uint32_t k = 0; k < stub_fleet.paths; k++)
            if (stub_on(k, worker, rank) && (k < i || !stub_is_session(k, session, session_len)))
                for (uint32_t b = 0; b < to[i]; b++)
                    if (stub_place(k, stub_fleet.path[i].hashes[b]) >= 0 && shared <= b)
                        shared = b + 1;
        if (shared < to[i])
            from[i] = shared;
    }
    return stub_runs(from, to, buf, cap);
}

int64_t kvrt_session_frontiers(const void *session, uint32_t session_len, void *buf, uint32_t cap)
{
    if (stub_fleet.index_off)
        return -(int64_t)KVRT_REASON_INDEX_OFF;
    if (!stub_knows(session, session_len))
        return -(int64_t)KVRT_REASON_UNKNOWN_SESSION;
    stub_tree t = {0};
    kvrt_frontiers_t head = {.hash_kind = stub_kind(), .frontiers = sizeof head};
    stub_append(&t, &head, sizeof head);
    for (uint32_t i = 0; i < stub_fleet.paths; i++) {
        if (!stub_is_session(i, session, session_len))
            continue;
        uint32_t rank = stub_fleet.path[i].rank, len = stub_fleet.path[i].len;
        kvrt_frontier_t f = {.worker = {.tag = KVRT_TAG_U64, .val = stub_fleet.path[i].worker}, .hash = stub_fleet.path[i].hashes[len - 1], .depth = len};
        if (rank != KV_NO_RANK)
            f.dp_rank = rank, f.present = KVRT_WORKER_HAS_DP_RANK;
        stub_append(&t, &f, sizeof f);
        ((kvrt_frontiers_t *)t.p)->frontiers_count++;
    }
    return stub_write(&t, buf, cap);
}

int64_t kvrt_session_node(int64_t hash, void *buf, uint32_t cap)
{
    kvrt_block_node_t n = {.hash = (uint64_t)hash, .hash_kind = stub_kind()};
    bool known = false;
    if (stub_fleet.index_off)
        return -(int64_t)KVRT_REASON_INDEX_OFF;
    for (uint32_t i = 0; i < stub_fleet.paths; i++) {
        int64_t at = stub_place(i, (uint64_t)hash);
        if (at < 0)
            continue;
        known = true;
        if (at > 0)
            n.has_parent = 1, n.parent = stub_fleet.path[i].hashes[at - 1];
        n.frontiers += at + 1 == stub_fleet.path[i].len;
        bool first = at + 1 < stub_fleet.path[i].len; // of its next block
        for (uint32_t k = 0; k < i && first; k++)
            first = stub_place(k, stub_fleet.path[i].hashes[at + 1]) < 0;
        n.children += first;
    }
    if (!known)
        return -(int64_t)KVRT_REASON_NOT_FOUND;
    if (cap >= sizeof n)
        memcpy(buf, &n, sizeof n);
    return sizeof n;
}

// stub_worker_at lays out worker i of the catalogue, at an offset of the answer.
static inline void stub_worker_at(stub_tree *t, uint32_t at, uint32_t i)
{
    kvrt_worker_t w = {.id = {.tag = KVRT_TAG_U64, .val = stub_fleet.worker[i].id}};
    if (stub_fleet.worker[i].rank != KV_NO_RANK)
        w.dp_rank = stub_fleet.worker[i].rank, w.present = KVRT_WORKER_HAS_DP_RANK;
    if (stub_fleet.worker[i].type)
        w.worker_type = stub_text(t, stub_fleet.worker[i].type);
    if (stub_fleet.worker[i].source)
        w.source_control_endpoint = stub_text(t, stub_fleet.worker[i].source);
    memcpy(t->p + at, &w, sizeof w);
}

int64_t kvrt_worker_get(const kvrt_node_t *worker, uint32_t rank, void *buf, uint32_t cap)
{
    for (uint32_t i = 0; i < stub_fleet.workers; i++)
        if (worker->tag == KVRT_TAG_U64 && stub_fleet.worker[i].id == worker->val && stub_fleet.worker[i].rank == rank) {
            stub_tree t = {0};
            stub_append(&t, 0, sizeof(kvrt_worker_t));
            stub_worker_at(&t, 0, i);
            return stub_write(&t, buf, cap);
        }
    return -(int64_t)KVRT_REASON_NOT_FOUND;
}

int64_t kvrt_worker_list(void *buf, uint32_t cap)
{
    stub_tree t = {0};
    kvrt_worker_list_t head = {.workers_count = stub_fleet.workers, .workers = sizeof head};
    stub_append(&t, &head, sizeof head);
    uint32_t at = stub_append(&t, 0, sizeof(kvrt_worker_t) * stub_fleet.workers);
    for (uint32_t i = 0; i < stub_fleet.workers; i++)
        stub_worker_at(&t, at + i * (uint32_t)sizeof(kvrt_worker_t), i);
    return stub_write(&t, buf, cap);
}

#endif
