package fetch

// Stats counts what a [Store] holds and has done. Totals are since New.
type Stats struct {
	Entries    int   // hints, expired ones that are not yet removed included
	Tombstones int   // likewise
	Bytes      int64 // of the buffers of their hashes
	Prepared   int64 // bytes that wait for Commit or Drop

	Submitted uint64 // hints stored for a request that had none
	Replaced  uint64 // hints that took the place of one with the same source
	Unkeyed   uint64 // hints accepted and not stored, since there was no request id
	Finished  uint64 // requests
	Discarded uint64 // requests
	Expired   uint64 // hints

	// Refusals, by reason. Sources are refused by an [AllowList], which counts none.
	Conflicts       uint64 // conflicting_source
	RefusedFinished uint64 // request_finished
	RefusedInvalid  uint64 // invalid_payload
	RefusedLimit    uint64 // limit_exceeded
}

// counters are totals that a shard counts under its lock.
type counters struct {
	submitted, finished, discarded, expired, conflicts, refusedFinished uint64
}

// Stats adds the shards up, one after the other.
func (s *Store) Stats() Stats {
	st := Stats{
		Unkeyed:        s.unkeyed.Load(),
		RefusedInvalid: s.refusedInvalid.Load(),
		RefusedLimit:   s.refusedLimit.Load(),
		Bytes:          s.bytes.taken.Load(),
	}
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		st.Entries += sh.hints.len
		st.Tombstones += sh.tombs.len
		st.Bytes -= sh.bytes
		st.Prepared += int64(sh.prepared)
		st.Submitted += sh.stats.submitted
		st.Replaced += sh.replaced
		st.Finished += sh.stats.finished
		st.Discarded += sh.stats.discarded
		st.Expired += sh.stats.expired
		st.Conflicts += sh.stats.conflicts
		st.RefusedFinished += sh.stats.refusedFinished
		sh.mu.Unlock()
	}
	return st
}
