package runtime

// Observe hands the counters to o.
func (r *Runtime) Observe(o Observer) {
	gen := r.current.Load()
	if gen == nil {
		return
	}
	s := RuntimeStats{Generation: gen.number, Guests: len(gen.guests), Swaps: r.swaps.Load(), FailedSwaps: r.failed.Load(),
		MemoryBudget: r.budget.most, MemoryReserved: r.budget.taken.Load(), HeavyMost: cap(r.lane), HeavyRunning: len(r.lane), HeavyFuel: r.cfg.HeavyFuel}
	for i := range r.shards {
		sh := &r.shards[i]
		s.Dispatches += sh.dispatches.Load()
		s.Malformed += sh.malformed.Load()
		s.Formulations += sh.formulations.Load()
		s.MalformedContexts += sh.badContexts.Load()
		for j := range sh.unrouted {
			s.Unrouted[j] += sh.unrouted[j].Load()
		}
	}
	o.Runtime(s)
	for _, g := range gen.guests {
		st := GuestStats{Name: g.spec.Name, Version: g.info.Manifest.Version, SHA256: g.info.SHA256, Generation: g.generation}
		st.Skipped = g.skipped.Load()
		g.pool.stats(&st)
		o.Guest(st)
	}
}

// GuestInfo describes a loaded guest.
type GuestInfo struct {
	Spec       GuestSpec
	Limits     Limits // with defaults
	Info       *Info
	Generation uint64 // the one that loaded it
	History    int    // how many times it can be rolled back
}

// Guests describes what is loaded, in order.
func (r *Runtime) Guests() []GuestInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	gen := r.current.Load()
	if gen == nil {
		return nil
	}
	out := make([]GuestInfo, len(gen.guests))
	for i, g := range gen.guests {
		out[i] = GuestInfo{g.spec, g.limits, g.info, g.generation, len(r.history[g.spec.Name])}
	}
	return out
}
