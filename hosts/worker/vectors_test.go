package worker

import (
	"bytes"
	"slices"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/abi/vectors"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
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
		if v.Module != abi.ModuleWorker {
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
	h := NewHost(New(Config{}))
	want := slices.DeleteFunc(abi.Contract().Functions, func(f abi.Function) bool { return f.Module != abi.ModuleWorker || f.Draft })
	if have := h.Functions(); len(have) != len(want) || len(want) == 0 { // their types come from the table
		t.Errorf("%d functions, the table has %d", len(have), len(want))
	}
}

func TestReadsAllocateNothing(t *testing.T) {
	c := New(Config{})
	if err := c.Put(Worker{ID: hint.NamedWorker("w"), Capabilities: []string{"kv.fetch"}}); err != nil {
		t.Fatal(err)
	}
	h := NewHost(c)
	get, list := h.function("get"), h.function("list")
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
			h.function(name).Call(runtime.NewCall(runtime.CallConfig{}), mem, stack)
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
