package session

import (
	"bytes"
	"slices"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/abi/vectors"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
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

func (h *Host) function(name string) *runtime.HostFunction {
	for _, f := range h.Functions() {
		if f.Name == name {
			return &f
		}
	}
	return nil
}

func TestVectors(t *testing.T) {
	calls, err := vectors.Calls()
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, v := range calls {
		if v.Module != abi.ModuleSession {
			continue
		}
		ran++
		t.Run(v.Name, func(t *testing.T) {
			f := hostOf(t, v.Host).function(v.Function)
			mem := v.Memory.Bytes()
			want := bytes.Clone(mem)
			stack := make([]uint64, len(v.Args))
			for i, a := range v.Args {
				stack[i] = uint64(a)
			}
			f.Call(runtime.NewCall(runtime.CallConfig{}), mem, stack)
			if int64(stack[0]) != int64(*v.Result) {
				t.Fatalf("result %d, want %d", int64(stack[0]), *v.Result)
			}
			for _, r := range v.After {
				copy(want[r.At:], r.Hex)
			}
			if !bytes.Equal(mem, want) {
				t.Errorf("the memory is not what the vector says: have %x", mem[8192:8192+256])
			}
		})
	}
	if ran == 0 {
		t.Error("no vector")
	}
}

func TestHostOffersTheTable(t *testing.T) {
	h := NewHost(new(Set), nil)
	want := slices.DeleteFunc(abi.Contract().Functions, func(f abi.Function) bool { return f.Module != abi.ModuleSession || f.Draft })
	if have := h.Functions(); len(have) != len(want) || len(want) == 0 { // their types come from the table
		t.Errorf("%d functions, the table has %d", len(have), len(want))
	}
}
