package worker

import (
	"bytes"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/abi/vectors"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/hosttest"
)

// hostOf is a host with the catalogue of a vector.
func hostOf(t *testing.T, h vectors.Host) *Host {
	c := New(Config{})
	for _, v := range h.Workers {
		w := Worker{ID: hint.NamedWorker(v.ID.String), Type: v.Type}
		switch {
		case v.ID.U64 != nil:
			w.ID = hint.UintWorker(uint64(*v.ID.U64))
		case v.ID.I64 != nil:
			w.ID = hint.IntWorker(int64(*v.ID.I64))
		}
		if v.Capabilities != nil {
			w.Capabilities = *v.Capabilities
		}
		for _, r := range v.Ranks {
			rank := Rank{Source: r.Source}
			if r.Rank != nil {
				n := uint32(*r.Rank)
				rank.Rank = &n
			}
			w.Ranks = append(w.Ranks, rank)
		}
		if err := c.Put(w); err != nil {
			t.Fatal(err)
		}
	}
	return NewHost(c)
}

func TestVectors(t *testing.T) {
	hosttest.Vectors(t, abi.ModuleWorker, func(t *testing.T, h vectors.Host) runtime.HostModule { return hostOf(t, h) }, nil)
}

func TestHostOffersTheTable(t *testing.T) {
	hosttest.Table(t, abi.ModuleWorker, NewHost(New(Config{})))
}

func TestReadsAllocateNothing(t *testing.T) {
	c := New(Config{})
	if err := c.Put(Worker{ID: hint.NamedWorker("w"), Capabilities: []string{"kv.fetch"}}); err != nil {
		t.Fatal(err)
	}
	h := NewHost(c)
	get, list := hosttest.Function(t, h, "get"), hosttest.Function(t, h, "list")
	mem := make([]byte, 4096)
	abi.PutNode(mem, 64, abi.Node{Tag: abi.TagString, Len: 1, Val: 128})
	mem[128] = 'w'
	call := runtime.NewCall(runtime.CallConfig{})
	stack := make([]uint64, 4)
	if n := testing.AllocsPerRun(100, func() {
		copy(stack, []uint64{64, 1<<32 - 1, 1024, 1024})
		get.Call(call, mem, stack)
		if int64(stack[0]) < abi.SizeWorker {
			t.Fatal(int64(stack[0]))
		}
		copy(stack, []uint64{1024, 1024})
		list.Call(call, mem, stack)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzHost: whatever a guest passes, nothing but an answer that fits is written.
func FuzzHost(f *testing.F) {
	c := New(Config{})
	for _, w := range []Worker{{ID: hint.UintWorker(7), Ranks: numbered(2)}, {ID: hint.NamedWorker("w")}} {
		if err := c.Put(w); err != nil {
			f.Fatal(err)
		}
	}
	h := NewHost(c)
	f.Add(uint64(0), uint64(1), uint64(64), uint64(512), uint8(3), uint32(0), uint64(7))
	f.Add(uint64(0), uint64(1<<32-1), uint64(64), uint64(80), uint8(7), uint32(1), uint64(32))
	f.Add(uint64(1<<32-1), uint64(0), uint64(1<<32-1), uint64(1<<32-1), uint8(7), uint32(1<<32-1), uint64(1<<63))
	f.Fuzz(func(t *testing.T, at, rank, buf, size uint64, tag uint8, length uint32, val uint64) {
		mem := make([]byte, 1024)
		mem[32] = 'w'
		abi.PutNode(mem, 0, abi.Node{Tag: abi.Tag(tag), Len: length, Val: val})
		for _, name := range []string{"get", "list"} {
			before := bytes.Clone(mem)
			stack := []uint64{at, rank, buf, size}
			if name == "list" {
				stack = []uint64{buf, size}
			}
			hosttest.Function(t, h, name).Call(runtime.NewCall(runtime.CallConfig{}), mem, stack)
			from, n := int(uint32(buf)), int64(stack[0])
			if n > 0 && n <= int64(uint32(size)) {
				before = append(append(bytes.Clone(before[:from]), mem[from:from+int(n)]...), before[from+int(n):]...)
			}
			if !bytes.Equal(mem, before) {
				t.Fatalf("%s wrote beside its answer", name)
			}
		}
	})
}
