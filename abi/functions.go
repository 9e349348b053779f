package abi

// functions lists the host functions. A pointer parameter is an offset into the
// guest's memory; a function that writes takes (buf, cap), writes only when the whole
// answer fits, and returns the length that is needed. A negative result is a negated
// Reason. Host functions never call back into the guest.
func functions() []Function {
	p := func(names ...string) []Param {
		out := make([]Param, len(names))
		for i, n := range names {
			t := I32
			if n[0] == '+' { // a 64-bit parameter
				n, t = n[1:], I64
			} else if n[0] == '~' { // a double
				n, t = n[1:], F64
			}
			out[i] = Param{n, t}
		}
		return out
	}
	return []Function{
		{Module: "kvrt_log", Name: "enabled", Params: p("level"), Result: I32, Fuel: 20,
			Doc: "1 when a line of this Level would be kept, else 0."},
		{Module: "kvrt_log", Name: "write", Params: p("level", "msg", "msg_len"), Fuel: 50, PerB: 8,
			Doc: "Writes one line: UTF-8, else it is dropped; 1,024 bytes are kept. Lines past the call's quota are dropped and counted."},
		{Module: "kvrt_clock", Name: "now", Result: I64, Fuel: 20,
			Doc: "Wall clock in ns since 1970, read once at the start of the call: the same value throughout one call."},
		{Module: "kvrt_clock", Name: "monotonic", Result: I64, Fuel: 20,
			Doc: "Monotonic clock in ns, read once at the start of the call."},
		{Module: "kvrt_fetch", Name: "submit", Params: p("source", "source_len", "hashes", "hashes_count", "flags"), Result: I32, Effect: true, Fuel: 200, PerB: 8,
			Doc: "Hands the hint of this call's request to the fetch hint store. source 0 and source_len 0: no source (local storage). hashes: u64[hashes_count] at any alignment, duplicates allowed, at least one. flags: FetchFlag bits. " +
				"0, or a negated Reason: source_not_allowed, invalid_payload, limit_exceeded. conflicting_source, request_finished and limit_exceeded can still turn up at commit and then reject the action."},
		{Module: "kvrt_fetch", Name: "discard", Result: I32, Effect: true, Fuel: 100,
			Doc: "Drops the hint of this call's request. Idempotent."},
		{Module: "kvrt_fetch", Name: "finish", Params: p("aborted"), Result: I32, Effect: true, Fuel: 100,
			Doc: "Ends this call's request: ok (0) or aborted (1). Idempotent."},
		{Module: "kvrt_fetch", Name: "status", Params: p("buf", "cap"), Result: I64, Fuel: 100, PerB: 8,
			Doc: "Writes a FetchStatus of this call's request, as it was before the call: effects that wait are not seen. Returns its length."},
		{Module: "kvrt_fetch", Name: "prefetch", Params: p("source", "source_len", "hashes", "hashes_count", "flags"), Result: I32, Effect: true, Fuel: 200, PerB: 512,
			Doc: "Has blocks of the namespace of this call's request brought from a source into the block store, ahead of need: soon, in the background, and also when the request has ended. It is no hint of the request and changes none. " +
				"source: at least one byte. hashes: u64[hashes_count] at any alignment, duplicates allowed, at least one; a source serves a prefix of what it is asked for. flags: 0. What became of it is an outcome of the action. " +
				"0, or a negated Reason: source_not_allowed, invalid_payload, unavailable where no blocks are exchanged, limit_exceeded past PrefetchHashes blocks. limit_exceeded and unavailable can still turn up at commit and then reject the action."},
		{Module: "kvrt_metric", Name: "add", Params: p("id", "+delta"), Fuel: 40, Draft: true,
			Doc: "Adds to a counter. id is the position in the manifest's metrics."},
		{Module: "kvrt_metric", Name: "set", Params: p("id", "~value"), Fuel: 40, Draft: true,
			Doc: "Sets a gauge."},
		{Module: "kvrt_metric", Name: "observe", Params: p("id", "~value"), Fuel: 40, Draft: true,
			Doc: "Observes a value in a histogram."},
		{Module: "kvrt_state", Name: "get", Params: p("key", "key_len", "buf", "cap"), Result: I64, Fuel: 150, PerB: 8, Draft: true,
			Doc: "Reads a value of the guest's shared state; sees this call's own writes. Needed length, or not_found."},
		{Module: "kvrt_state", Name: "put", Params: p("key", "key_len", "val", "val_len", "+ttl_ms"), Result: I32, Effect: true, Fuel: 150, PerB: 8, Draft: true,
			Doc: "Writes a value. ttl_ms 0: none. val_len -1: deletes."},
		{Module: "kvrt_state", Name: "add", Params: p("key", "key_len", "+delta", "+ttl_ms"), Result: I64, Effect: true, Fuel: 150, Draft: true,
			Doc: "Adds to a 64-bit counter and returns the sum as this call sees it. At commit delta is added to the value of that moment."},
		{Module: "kvrt_state", Name: "swap", Params: p("key", "key_len", "old", "old_len", "val", "val_len"), Result: I32, Effect: true, Fuel: 200, PerB: 8, Draft: true,
			Doc: "Compare-and-swap. Compared at once (state_conflict) and again at commit, where a mismatch rejects the action with state_conflict."},
		{Module: "kvrt_session", Name: "frontiers", Params: p("session", "session_len", "buf", "cap"), Result: I64, Fuel: 400, PerB: 8,
			Doc: "Writes a Frontiers: the deepest known blocks of the session's chains, on all workers. Returns its length, or index_off or unknown_session."},
		{Module: "kvrt_session", Name: "lineage", Params: p("session", "session_len", "worker", "dp_rank", "+anchor", "flags", "buf", "cap"), Result: I64, Fuel: 400, PerB: 8,
			Doc: "Writes a Lineage: the session's paths on a worker, each from the root to a frontier. worker: a Node, its text an offset in memory. dp_rank -1: the worker has none. flags: LineageFlag bits; " +
				"with an anchor each path begins at it, and paths without it are left out. No paths are no error. Returns its length, or index_off, unknown_anchor or unknown_session, which is told apart in this order."},
		{Module: "kvrt_session", Name: "exclusive", Params: p("session", "session_len", "worker", "dp_rank", "buf", "cap"), Result: I64, Fuel: 2000, PerB: 8,
			Doc: "Writes a Lineage of the blocks on a worker that no other session's path there has: each block in one path, parents first. Arguments and results as for lineage. Sessions and branches beside the paths cost 4 of fuel each from the 257th on."},
		{Module: "kvrt_session", Name: "node", Params: p("+hash", "buf", "cap"), Result: I64, Fuel: 150, PerB: 8,
			Doc: "Writes a BlockNode. Returns its length, or index_off, or not_found."},
		{Module: "kvrt_worker", Name: "get", Params: p("worker", "dp_rank", "buf", "cap"), Result: I64, Fuel: 200, PerB: 8,
			Doc: "Writes a Worker of the catalogue; the buffer is its base, and what is known of one request only (matched_...) is absent. worker: a Node, its text an offset in memory. dp_rank -1: of a worker with ranks, what holds for all of them. Returns its length, or not_found."},
		{Module: "kvrt_worker", Name: "list", Params: p("buf", "cap"), Result: I64, Fuel: 400, PerB: 8,
			Doc: "Writes a WorkerList: the catalogue, one Worker for each rank, by id and rank. Returns its length."},
		{Module: "kvrt_store", Name: "residency", Params: p("hashes", "hashes_count", "buf", "cap"), Result: I64, Fuel: 200, PerB: 256,
			Doc: "Writes a Residency for each block, one byte each, as of this moment. hashes: u64[hashes_count] at any alignment; hashes_count 0: the blocks of this call's request, as its engine described them. " +
				"Returns how many bytes that takes, or unavailable without a block store, not_found when the request was not described, limit_exceeded past StoreHashes blocks."},
		{Module: "kvrt_store", Name: "evict", Params: p("hashes", "hashes_count"), Result: I64, Effect: true, Fuel: 200, PerB: 512,
			Doc: "Evicts blocks, and their copies on this host's device: those that are leased, being filled or pinned when it takes place stay. Arguments as for residency. Returns how many of the blocks the store has now, or a negated Reason as residency does."},
		{Module: "kvrt_store", Name: "evict_after", Params: p("hashes", "hashes_count"), Result: I64, Effect: true, Fuel: 200, PerB: 512,
			Doc: "Evicts blocks as evict does, when this call's request has ended: finished, aborted or discarded. Arguments and results as for evict; a request without an id is not_found. " +
				"Several add up. A request whose end nobody tells evicts nothing."},
		{Module: "kvrt_store", Name: "request", Params: p("buf", "cap"), Result: I64, Fuel: 150, PerB: 8,
			Doc: "Writes the block hashes of this call's request, as its engine described them: u64s, from the first block on. Returns their length in bytes, or a negated Reason as residency does."},
		{Module: "kvrt_store", Name: "retain", Params: p("hashes", "hashes_count", "claims", "claims_len", "scope", "scope_len"), Result: I64, Effect: true, Fuel: 200, PerB: 512,
			Doc: "Claims blocks. claims: StoreClaims, claims_len bytes of them; each names blocks of the list, or, with hashes_count 0, tokens of this call's request. A block with tokens of several claims has the one of the highest priority. " +
				"scope: whose claims these are; a block keeps one for each scope, and scope 0 with scope_len 0 is the request. Returns how many of the listed blocks the store has now, or a negated Reason as residency does, or invalid_payload; limit_exceeded past StoreClaims claims. " +
				"What it claims for a block that the store does not have when it takes place is lost."},
		{Module: "kvrt_gpu", Name: "info", Params: p("buf", "cap"), Result: I64, Fuel: 150, PerB: 8,
			Doc: "Writes a DeviceInfo: the memory that this host keeps blocks in on the device. Returns its length, or unavailable where it keeps none."},
		{Module: "kvrt_gpu", Name: "residency", Params: p("hashes", "hashes_count", "buf", "cap"), Result: I64, Fuel: 200, PerB: 256,
			Doc: "Writes a Residency for each block, one byte each, as of this moment: absent, filling or device. hashes: u64[hashes_count] at any alignment; hashes_count 0: the blocks of this call's request, as its engine described them. " +
				"Returns how many bytes that takes, or unavailable without memory for blocks on the device, not_found when the request was not described, limit_exceeded past StoreHashes blocks."},
		{Module: "kvrt_gpu", Name: "prefetch", Params: p("hashes", "hashes_count"), Result: I64, Effect: true, Fuel: 200, PerB: 512,
			Doc: "Brings blocks from the block store to the device. Arguments as for residency. When it takes place it is queued, and the action does not wait for it; limit_exceeded can still turn up then, when too much is queued, or unavailable, when the device is lost, and reject the action. " +
				"Returns how many blocks there are to bring now, which the store has and the device has not, or a negated Reason as residency does. What the store does not have when its turn comes, and what finds no room, is left out."},
	}
}
