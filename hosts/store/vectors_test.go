package store

import (
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/abi/vectors"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/hosttest"
)

func uints(list []vectors.Uint) (out []uint64) {
	for _, v := range list {
		out = append(out, uint64(v))
	}
	return out
}

// hostOf is a host that knows what a vector says.
func hostOf(t *testing.T, h vectors.Host) *Host {
	if h.Store == nil {
		return NewHost(nil, nil, nil)
	}
	s := small(t, 8)
	for _, hash := range uints(h.Store.Blocks) {
		put(t, s, nobody, hash)
	}
	for _, hash := range uints(h.Store.Filling) {
		if _, _, err := s.Reserve(nobody, hash, 16); err != nil {
			t.Fatal(err)
		}
	}
	r := NewRequests(RequestsConfig{})
	if h.Store.BlockSize > 0 {
		r.Describe(hint.Identity{RequestID: h.RequestID}, Request{Namespace: nobody, BlockSize: int(h.Store.BlockSize), Hashes: uints(h.Store.Request)})
	}
	return NewHost(s, r, nil)
}

// has are the blocks of a list that are published, each with its priority.
func (s *Store) has(namespace string, hashes []uint64) map[uint64]int {
	out := map[uint64]int{}
	ns := s.names.find(namespace)
	for _, hash := range hashes {
		sh, _ := s.shardOf(ns.id, hash)
		if n, ok := sh.byKey[key{ns.id, hash}]; ok {
			out[hash] = int(s.slots[n].prio)
			if cs := s.slots[n].claims; cs != nil && s.slots[n].state == filling && cs.n > 0 {
				out[hash] = int(cs.list[0].prio)
			}
		}
	}
	return out
}

func TestVectors(t *testing.T) {
	hosttest.Vectors(t, abi.ModuleStore, func(t *testing.T, h vectors.Host) runtime.HostModule { return hostOf(t, h) },
		func(t *testing.T, h runtime.HostModule, call *runtime.Call, v vectors.Call) {
			if h := h.(*Host); h.store != nil {
				effects(t, h, call, v)
			}
		})
}

// effects looks at the store before the commit and after it.
func effects(t *testing.T, h *Host, call *runtime.Call, v vectors.Call) {
	all := append(uints(v.Host.Store.Blocks), uints(v.Host.Store.Filling)...)
	before := h.store.has(nobody, all)
	for hash, p := range before {
		if p != 0 {
			t.Errorf("block %d is claimed before the commit", hash)
		}
	}
	if reason, detail := call.Settle(true); reason != abi.ReasonNone {
		t.Fatal(reason, detail)
	}
	for _, e := range v.Effects {
		if e.EvictAfter != nil {
			if now := h.store.has(nobody, all); len(now) != len(before) {
				t.Errorf("evicted before the request has ended: %v are left", now)
			}
		}
	}
	h.Ended(call.Identity())
	after := h.store.has(nobody, all)
	want := map[uint64]int{}
	for hash := range before {
		want[hash] = 0
	}
	for _, e := range v.Effects {
		if e.Evict != nil {
			for _, hash := range uints(e.Evict.Hashes) {
				delete(want, hash)
			}
		}
		if e.EvictAfter != nil {
			for _, hash := range uints(e.EvictAfter.Hashes) {
				delete(want, hash)
			}
		}
		if e.Retain != nil {
			for _, c := range e.Retain.Claims {
				want[uint64(c.Hash)] = int(c.Priority)
			}
		}
	}
	if len(after) != len(want) {
		t.Errorf("after the commit: %v, want %v", after, want)
	}
	for hash, p := range want {
		if got, ok := after[hash]; !ok || got != p {
			t.Errorf("block %d: priority %d, there %v; want %d", hash, got, ok, p)
		}
	}
}

func TestHostOffersTheTable(t *testing.T) {
	hosttest.Table(t, abi.ModuleStore, NewHost(nil, nil, nil))
}
