// evict-on-final: a policy that lets go of what a session leaves behind. When its last
// request is routed, the selected worker is asked to evict the blocks that no other
// session has there. README.md says every rule with its reason.
#include "kvrt_build.h"

#define MAX_BLOCKS 6144 // in one action
#define MAX_PATHS 64     // of one session on one worker

static uint64_t min_blocks = 1, max_blocks = 4096; // set once by configure

static kv_answer configure(kv_value p)
{
    if (kv_has(p) && !kv_null(p) && !kv_map(p))
        return kv_refuse("parameters must be an object, not ", kv_kind(p));
    for (uint32_t i = 0; kv_map(p) && i < p.len; i++) {
        kv_str key = kv_text(kv_key(p, i));
        kv_value v = kv_val(p, i);
        if (kv_is(key, "min_blocks")) {
            if (!kv_u64(v, &min_blocks) || min_blocks < 1 || min_blocks > UINT32_MAX)
                return kv_refuse("min_blocks must be an integer in [1, 2^32)");
        } else if (kv_is(key, "max_blocks")) {
            if (!kv_u64(v, &max_blocks) || max_blocks < 1 || max_blocks > MAX_BLOCKS)
                return kv_refuse("max_blocks must be an integer in [1, ", MAX_BLOCKS, "]");
        } else {
            return kv_refuse("unknown parameter ", key, ": evict-on-final knows min_blocks and max_blocks");
        }
    }
    return kv_accept();
}

static kv_answer formulate(kv_context c)
{
    static char id[2048];
    kv_hashes runs[MAX_PATHS];
    if (!kv_has_field(c, KVRT_HAS_SESSION_FINAL) || !c.frame->session_final || kv_field(c, parent_session_id).ptr)
        return kv_no_actions();
    kv_lineage l = kv_own_exclusive(c);
    if (l.refused == KVRT_REASON_LIMIT_EXCEEDED)
        return -(kv_answer)KVRT_REASON_LIMIT_EXCEEDED;
    if (l.count > MAX_PATHS || l.blocks < min_blocks)
        return kv_no_actions();

    // Of too many, the ends of the paths, and those first that branch off others: a block is
    // of no use without those before it, so that what is left is still a beginning.
    uint64_t room = max_blocks;
    for (uint32_t i = l.count; i-- > 0;) {
        kv_hashes path = kv_path(l, i);
        uint32_t take = path.len < room ? path.len : (uint32_t)room;
        runs[i] = (kv_hashes){path.ptr + (path.len - take), take};
        room -= take;
    }
    if (room == max_blocks)
        return kv_no_actions();

    kv_actions_begin();
    kv_action_begin(kv_join(id, kv_field(c, session_id), "-", kv_worker_id(kv_selected(c)), "-", kv_field(c, request_id)), KV_LIT("kv.evict"), KV_LIT("1.0"));
    kv_map_begin(kv_root);
    kv_add("execute_at", kv_of_text(KV_LIT("request_completion")));
    kv_add("include_current_request", kv_of_bool(false));
    kv_add_decimals("block_hashes", runs, l.count);
    kv_map_end();
    kv_action_end();
    return kv_emit();
}

KVRT_INIT(configure)
KVRT_POLICY(formulate)
