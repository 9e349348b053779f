// kvrt_session.h: what a policy may ask about sessions and workers (capabilities
// kvrt_session and kvrt_worker). Included by kvrt.h.
//
//     kv_lineage l = kv_session_lineage(kv_field(c, session_id), kv_rank_of(kv_selected(c)));
//     if (l.refused == KVRT_REASON_INDEX_OFF) ...
//     for (uint32_t i = 0; i < l.count; i++)
//         kv_add("block_hashes", kv_of_hashes(kv_path(l, i)));
//
// An answer stays until the role returns. Answers share KV_ASK_ROOM bytes; one that
// finds no room there lies on the heap, so ask before you build. When there is no memory
// for it, it is refused with KVRT_REASON_LIMIT_EXCEEDED.
#ifndef KVRT_SESSION_H
#define KVRT_SESSION_H

#ifndef KV_ASK_ROOM
#define KV_ASK_ROOM (128 << 10) // 16,384 blocks; a multiple of 8
#endif

// kv_rank is one data-parallel rank of a worker. KV_NO_RANK: nobody told a rank, which
// is not rank 0.
#define KV_NO_RANK UINT32_MAX
typedef struct {
    kv_value id;
    uint32_t dp_rank;
} kv_rank;

KV_INLINE kv_rank kv_rank_of(kv_worker w)
{
    return (kv_rank){kv_worker_id(w), kv_worker_has(w, KVRT_WORKER_HAS_DP_RANK) ? w.record->dp_rank : KV_NO_RANK};
}

// kv_lineage is paths of blocks, each block the parent of the next.
typedef struct {
    uint32_t refused;   // 0, or why there is no answer: KVRT_REASON_...
    uint32_t count;     // paths
    uint32_t blocks;    // of all paths together
    uint32_t hash_kind; // KVRT_HASH_KIND_...
    const kvrt_lineage_t *record;
} kv_lineage;

// kv_frontiers is where the chains of a session end, on all workers.
typedef struct {
    uint32_t refused, count, hash_kind;
    const kvrt_frontiers_t *record;
} kv_frontiers;

// kv_workers is the catalogue, one worker for each rank.
typedef struct {
    uint32_t refused, count;
    const kvrt_worker_list_t *record;
} kv_workers;

// ---- Room for answers. A guest that asks for nothing has none.

static char kv_ask_room[KV_ASK_ROOM] __attribute__((aligned(8), unused));
static uint32_t kv_ask_end;  // of the answers in the room
static uint32_t kv_ask_kept; // bytes at the beginning of the heap that answers keep

KV_INLINE char *kv_alloc(uint32_t n);
KV_UNUSED static uint32_t kv_heap_used(void);

// kv_asked is one question: where the host writes, and what it returned.
typedef struct {
    void *at;
    uint32_t cap, refused;
    int64_t n;
    bool heap;
} kv_asked;

KV_INLINE kv_asked kv_ask_begin(void) { return (kv_asked){.at = kv_ask_room + kv_ask_end, .cap = KV_ASK_ROOM - kv_ask_end}; }

// kv_ask_again takes what the host returned. It is true when the answer needs more room,
// which there is now: ask again.
KV_UNUSED static bool kv_ask_again(kv_asked *a)
{
    a->refused = a->n < 0 ? (uint32_t)-a->n : 0;
    if (a->n <= (int64_t)a->cap) {
        if (a->n > 0 && !a->heap)
            kv_ask_end += ((uint32_t)a->n + 7) & ~7u;
        return false;
    }
    a->refused = KVRT_REASON_LIMIT_EXCEEDED;
    if (a->heap || a->n > INT32_MAX || !(a->at = kv_alloc((uint32_t)a->n)))
        return false;
    a->cap = (uint32_t)a->n;
    kv_ask_kept = kv_heap_used();
    return a->heap = true;
}

// kv_ask_node is a worker's id as a host function takes it: a text is found by its
// address.
KV_INLINE kvrt_node_t kv_ask_node(kv_value id)
{
    bool text = id.tag == KVRT_TAG_STRING;
    return (kvrt_node_t){.tag = id.tag, .len = id.len, .val = text ? (uint64_t)(uintptr_t)(id.base + id.val) : id.val};
}

KV_INLINE kv_lineage kv_lineage_at(const kvrt_lineage_t *r, uint32_t refused)
{
    return refused ? (kv_lineage){refused, 0, 0, 0, 0} : (kv_lineage){0, r->paths_count, r->blocks, r->hash_kind, r};
}

// ---- Sessions

// kv_session_lineage are the paths of a session on a worker, each from the root to a
// frontier. None (count 0) is an answer; KVRT_REASON_INDEX_OFF and
// KVRT_REASON_UNKNOWN_SESSION are others.
KV_UNUSED static kv_lineage kv_session_lineage(kv_str session, kv_rank on)
{
    kvrt_node_t id = kv_ask_node(on.id);
    kv_asked a = kv_ask_begin();
    do
        a.n = kvrt_session_lineage(session.ptr, session.len, &id, on.dp_rank, 0, 0, a.at, a.cap);
    while (kv_ask_again(&a));
    return kv_lineage_at(a.at, a.refused);
}

// kv_session_lineage_from is the part of the paths from an anchor on; paths without it
// are left out. One that the index does not know is KVRT_REASON_UNKNOWN_ANCHOR.
KV_UNUSED static kv_lineage kv_session_lineage_from(kv_str session, kv_rank on, uint64_t anchor)
{
    kvrt_node_t id = kv_ask_node(on.id);
    kv_asked a = kv_ask_begin();
    do
        a.n = kvrt_session_lineage(session.ptr, session.len, &id, on.dp_rank, (int64_t)anchor, KVRT_LINEAGE_FLAG_ANCHOR, a.at, a.cap);
    while (kv_ask_again(&a));
    return kv_lineage_at(a.at, a.refused);
}

// kv_session_exclusive are the blocks on a worker that no other session's path there
// has, each in one path.
KV_UNUSED static kv_lineage kv_session_exclusive(kv_str session, kv_rank on)
{
    kvrt_node_t id = kv_ask_node(on.id);
    kv_asked a = kv_ask_begin();
    do
        a.n = kvrt_session_exclusive(session.ptr, session.len, &id, on.dp_rank, a.at, a.cap);
    while (kv_ask_again(&a));
    return kv_lineage_at(a.at, a.refused);
}

// kv_own_lineage and kv_own_exclusive ask about the request's session on the selected
// worker. A request without a session is KVRT_REASON_UNKNOWN_SESSION.
KV_INLINE kv_lineage kv_own_lineage(kv_context c)
{
    kv_str session = kv_field(c, session_id);
    return session.ptr ? kv_session_lineage(session, kv_rank_of(kv_selected(c))) : kv_lineage_at(0, KVRT_REASON_UNKNOWN_SESSION);
}
KV_INLINE kv_lineage kv_own_exclusive(kv_context c)
{
    kv_str session = kv_field(c, session_id);
    return session.ptr ? kv_session_exclusive(session, kv_rank_of(kv_selected(c))) : kv_lineage_at(0, KVRT_REASON_UNKNOWN_SESSION);
}

// kv_path is path i of l.count; len 0 past the end.
KV_INLINE kv_hashes kv_path(kv_lineage l, uint32_t i)
{
    if (i >= l.count)
        return (kv_hashes){0, 0};
    const char *base = (const char *)l.record;
    const kvrt_path_t *p = (const kvrt_path_t *)(base + l.record->paths) + i;
    return (kv_hashes){(const uint64_t *)(base + p->hashes), p->hashes_count};
}

// kv_longest_path is the longest path; len 0 when there is none.
KV_UNUSED static kv_hashes kv_longest_path(kv_lineage l)
{
    kv_hashes best = {0, 0};
    for (uint32_t i = 0; i < l.count; i++)
        if (kv_path(l, i).len > best.len)
            best = kv_path(l, i);
    return best;
}

// kv_session_frontiers are the frontiers of a session on all workers.
KV_UNUSED static kv_frontiers kv_session_frontiers(kv_str session)
{
    kv_asked a = kv_ask_begin();
    do
        a.n = kvrt_session_frontiers(session.ptr, session.len, a.at, a.cap);
    while (kv_ask_again(&a));
    const kvrt_frontiers_t *at = a.at;
    return a.refused ? (kv_frontiers){a.refused, 0, 0, 0} : (kv_frontiers){0, at->frontiers_count, at->hash_kind, at};
}

// kv_frontier is frontier i of f.count: its hash and depth may be read directly.
KV_INLINE const kvrt_frontier_t *kv_frontier(kv_frontiers f, uint32_t i)
{
    return (const kvrt_frontier_t *)((const char *)f.record + f.record->frontiers) + i;
}

// kv_frontier_rank is the worker that frontier i is on.
KV_INLINE kv_rank kv_frontier_rank(kv_frontiers f, uint32_t i)
{
    const kvrt_frontier_t *r = kv_frontier(f, i);
    return (kv_rank){kv_node(f.record, &r->worker), r->present & KVRT_WORKER_HAS_DP_RANK ? r->dp_rank : KV_NO_RANK};
}

// kv_session_node looks a block up: 0, or KVRT_REASON_INDEX_OFF or KVRT_REASON_NOT_FOUND.
KV_UNUSED static uint32_t kv_session_node(uint64_t hash, kvrt_block_node_t *out)
{
    int64_t n = kvrt_session_node(hash, out, sizeof *out);
    return n < 0 ? (uint32_t)-n : 0;
}

// ---- Workers

// kv_find_worker looks a worker up in the catalogue: record NULL when it is not there.
// What is known of one request only (matched_...) is not given.
KV_UNUSED static kv_worker kv_find_worker(kv_rank rank)
{
    kvrt_node_t id = kv_ask_node(rank.id);
    kv_asked a = kv_ask_begin();
    do
        a.n = kvrt_worker_get(&id, rank.dp_rank, a.at, a.cap);
    while (kv_ask_again(&a));
    return a.refused ? (kv_worker){0, 0} : (kv_worker){a.at, a.at};
}

// kv_all_workers is the catalogue, kv_listed(w, i) one of its w.count workers.
KV_UNUSED static kv_workers kv_all_workers(void)
{
    kv_asked a = kv_ask_begin();
    do
        a.n = kvrt_worker_list(a.at, a.cap);
    while (kv_ask_again(&a));
    const kvrt_worker_list_t *at = a.at;
    return a.refused ? (kv_workers){a.refused, 0, 0} : (kv_workers){0, at->workers_count, at};
}
KV_INLINE kv_worker kv_listed(kv_workers w, uint32_t i)
{
    return (kv_worker){w.record, (const kvrt_worker_t *)((const char *)w.record + w.record->workers) + i};
}

#endif
