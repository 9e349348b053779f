package server

import (
	"bytes"
	"net/http"
	"slices"
	"time"

	"github.com/kvrt/kvrt/runtime"
)

// maxRefused bounds the names whose last refusal is kept.
const maxRefused = 1024

func (s *Server) getStatus(w http.ResponseWriter, _ *http.Request) {
	o, guests := s.guestStatuses()
	st := StatusReport{
		Version: s.cfg.Version, Started: s.started, Socket: s.cfg.Socket, Admin: s.AdminAddr(),
		Generation: s.cfg.Runtime.Generation(), NotReady: s.notReady(), Draining: s.draining.Load(),
		Guests: guests, Dispatches: o.runtime.Dispatches, Malformed: o.runtime.Malformed, Unrouted: byReason(&o.runtime.Unrouted),
		GuestMemory: GuestMemory{o.runtime.MemoryBudget, o.runtime.MemoryReserved},
		HeavyCalls:  HeavyCalls{o.runtime.HeavyRunning, o.runtime.HeavyMost, o.runtime.HeavyFuel},
		Swaps:       o.runtime.Swaps, Refused: o.runtime.FailedSwaps, Reload: s.LastReload(), Connections: s.Stats().Connections,
	}
	st.Ready = len(st.NotReady) == 0
	st.Formulations = o.runtime.Formulations
	s.fleetStatus(&st)
	st.Store = blocksStatus(s.cfg.Blocks)
	st.Device = s.deviceStatus()
	s.exchangeStatus(&st)
	w.Header().Set("ETag", etag(st.Generation))
	writeJSON(w, http.StatusOK, st)
}

func (s *Server) getGuests(w http.ResponseWriter, _ *http.Request) {
	generation := s.cfg.Runtime.Generation()
	_, guests := s.guestStatuses()
	w.Header().Set("ETag", etag(generation))
	writeJSON(w, http.StatusOK, GuestList{generation, guests})
}

func (s *Server) getGuest(w http.ResponseWriter, r *http.Request) {
	generation := s.cfg.Runtime.Generation()
	name := r.PathValue("name")
	g := s.guest(name)
	if g == nil {
		writeError(w, http.StatusNotFound, "no guest is named "+name, nil)
		return
	}
	w.Header().Set("ETag", etag(generation))
	writeJSON(w, http.StatusOK, g)
}

func (s *Server) guest(name string) *GuestStatus {
	_, guests := s.guestStatuses()
	for i := range guests {
		if guests[i].Name == name {
			return &guests[i]
		}
	}
	return nil
}

// guestStatuses describes what is loaded. A guest that is swapped meanwhile is told
// with counters of 0.
func (s *Server) guestStatuses() (*observed, []GuestStatus) {
	o := observe(s.cfg.Runtime)
	infos := s.cfg.Runtime.Guests()
	out := make([]GuestStatus, 0, len(infos))
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range infos {
		g := &infos[i]
		stats := o.guests[g.Spec.Name]
		if stats.Generation != g.Generation {
			stats = runtime.GuestStats{}
		}
		st := guestStatus(g, &stats)
		if e, ok := s.refused[g.Spec.Name]; ok {
			st.LastError = &e
		}
		out = append(out, st)
	}
	return o, out
}

// putGuest loads or swaps. Without a mode it does the one that is possible.
func (s *Server) putGuest(r *http.Request) (*Change, error) {
	name := r.PathValue("name")
	var in GuestRequest
	if err := readJSON(r, &in); err != nil {
		return nil, err
	}
	specs := s.cfg.Runtime.Specs()
	at := slices.IndexFunc(specs, func(g runtime.GuestSpec) bool { return g.Name == name })
	switch mode := r.URL.Query().Get("mode"); {
	case mode != "" && mode != "load" && mode != "swap":
		return nil, refusal(http.StatusBadRequest, "mode %q: want load or swap", mode)
	case mode == "load" && at >= 0:
		return nil, refusal(http.StatusConflict, "a guest named %s is loaded: swap it, or choose another name", name)
	case mode == "swap" && at < 0:
		return nil, refusal(http.StatusNotFound, "no guest is named %s: load it", name)
	}
	spec := runtime.GuestSpec{Name: name}
	if at >= 0 {
		spec = specs[at]
		if in.Module != nil { // the digest and the source are the old module's
			spec.SHA256, spec.Source = "", ""
		}
	} else if in.Module == nil {
		return nil, refusal(http.StatusBadRequest, "module is missing: it is the Wasm module in base64")
	}
	if err := in.apply(&spec); err != nil {
		return nil, err
	}
	return s.tell(r, name, func() error {
		if at >= 0 {
			return s.cfg.Runtime.Swap(r.Context(), spec)
		}
		return s.cfg.Runtime.Load(r.Context(), spec)
	})
}

// apply sets what the request names.
func (in *GuestRequest) apply(spec *runtime.GuestSpec) error {
	if in.Module != nil {
		spec.Module = in.Module
	}
	if in.Source != "" {
		spec.Source = in.Source
	}
	if in.SHA256 != "" {
		spec.SHA256 = in.SHA256
	}
	if in.Grants != nil {
		spec.Grants = *in.Grants
	}
	if in.Parameters != nil {
		if p := bytes.TrimSpace(in.Parameters); len(p) == 0 || p[0] != '{' {
			return refusal(http.StatusBadRequest, "parameters: want an object")
		}
		spec.Parameters = in.Parameters
	}
	if in.Limits != nil {
		spec.Limits = in.Limits.runtime()
	}
	return nil
}

func (s *Server) postRollback(r *http.Request) (*Change, error) {
	name := r.PathValue("name")
	return s.tell(r, name, func() error { return s.cfg.Runtime.Rollback(r.Context(), name) })
}

func (s *Server) postResume(r *http.Request) (*Change, error) {
	name := r.PathValue("name")
	return s.tell(r, name, func() error { return s.cfg.Runtime.Resume(name) })
}

func (s *Server) deleteGuest(r *http.Request) (*Change, error) {
	name := r.PathValue("name")
	return s.tell(r, name, func() error { return s.cfg.Runtime.Unload(r.Context(), name) })
}

// tell carries out a change of one guest, logs who was there before and after, and
// remembers a refusal.
func (s *Server) tell(r *http.Request, name string, do func() error) (*Change, error) {
	s.snapshot()
	before := s.digest(name)
	err := do()
	s.mu.Lock()
	delete(s.refused, name)
	if err != nil && before != "" && len(s.refused) < maxRefused {
		s.refused[name] = GuestError{time.Now(), err.Error()}
	}
	s.mu.Unlock()
	after := s.digest(name)
	log := s.log.With("guest", name, "change", r.Method+" "+r.URL.Path, "before", before, "after", after, "from", r.RemoteAddr)
	if err != nil {
		log.Warn("change refused; the running guest stays", "error", err)
		return nil, err
	}
	log.Info("guest changed", "generation", s.cfg.Runtime.Generation())
	return &Change{Guest: s.guest(name)}, nil
}

// digest is the SHA-256 of the module that is loaded under a name, "" when none is.
func (s *Server) digest(name string) string {
	for _, g := range s.cfg.Runtime.Guests() {
		if g.Spec.Name == name {
			return g.Info.SHA256
		}
	}
	return ""
}
