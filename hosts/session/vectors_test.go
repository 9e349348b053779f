package session

import (
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/abi/vectors"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/hosttest"
)

func workerOf(id vectors.WorkerID, rank *vectors.Uint) hint.Worker {
	w := hint.Worker{ID: hint.NamedWorker(id.String)}
	switch {
	case id.U64 != nil:
		w.ID = hint.UintWorker(uint64(*id.U64))
	case id.I64 != nil:
		w.ID = hint.IntWorker(int64(*id.I64))
	}
	if rank != nil {
		w.Rank, w.HasRank = uint32(*rank), true
	}
	return w
}

// hostOf is a host that knows what a vector says.
func hostOf(t *testing.T, h vectors.Host) *Host {
	set := new(Set)
	if h.Lineage != nil {
		x := set.Add("", Config{Kind: abi.HashKind(h.Lineage.HashKind)})
		for _, p := range h.Lineage.Paths {
			var hashes []uint64
			for _, hash := range p.Hashes {
				hashes = append(hashes, uint64(hash))
			}
			moved, err := x.Apply(&Event{Op: OpStored, Worker: workerOf(p.Worker, p.DPRank), Session: p.Session, Tenant: p.Tenant, Hashes: hashes})
			if err != nil || !moved {
				t.Fatal(moved, err)
			}
		}
	}
	return NewHost(set, func(*runtime.Call) Scope { return Scope{Tenant: h.Tenant} })
}

func TestVectors(t *testing.T) {
	hosttest.Vectors(t, abi.ModuleSession, func(t *testing.T, h vectors.Host) runtime.HostModule { return hostOf(t, h) }, nil)
}

func TestHostOffersTheTable(t *testing.T) {
	hosttest.Table(t, abi.ModuleSession, NewHost(new(Set), nil))
}
