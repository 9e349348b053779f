package store

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/hosttest"
)

func called(id string) *runtime.Call {
	return runtime.NewCall(runtime.CallConfig{Identity: hint.Identity{RequestID: id}})
}

func memoryOf(hashes ...uint64) []byte {
	mem := make([]byte, 4096)
	for i, h := range hashes {
		binary.LittleEndian.PutUint64(mem[8*i:], h)
	}
	return mem
}

func putClaim(mem []byte, from, to, priority uint32, ttl time.Duration) {
	binary.LittleEndian.PutUint32(mem[abi.OffStoreClaimFrom:], from)
	binary.LittleEndian.PutUint32(mem[abi.OffStoreClaimTo:], to)
	binary.LittleEndian.PutUint32(mem[abi.OffStoreClaimPriority:], priority)
	binary.LittleEndian.PutUint64(mem[abi.OffStoreClaimTTLMs:], uint64(ttl/time.Millisecond))
}

func TestHostDropsEffectsOfRejectedCalls(t *testing.T) {
	s := small(t, 4)
	put(t, s, nobody, 1)
	h := NewHost(s, nil, nil)
	c := called("r")
	stack := []uint64{0, 1}
	hosttest.Function(t, h, "evict").Call(c, memoryOf(1), stack)
	if stack[0] != 1 {
		t.Fatal(int64(stack[0]))
	}
	c.Settle(false)
	if len(s.has(nobody, []uint64{1})) != 1 {
		t.Error("a rejected action has evicted a block")
	}
	hosttest.Function(t, h, "evict").Call(c, memoryOf(1), []uint64{0, 1})
	again := []uint64{0, 1, 1024, 0, 0, 0}
	hosttest.Function(t, h, "retain").Call(c, memoryOf(1), again)
	if int64(again[0]) != -int64(abi.ReasonLimitExceeded) {
		t.Errorf("a second effect: %d", int64(again[0]))
	}
	c.Settle(true)
	if len(s.has(nobody, []uint64{1})) != 0 {
		t.Error("an accepted action has not evicted a block")
	}
}

// An effect holds copies: the guest may go on and overwrite its memory.
func TestHostCopiesTheList(t *testing.T) {
	s := small(t, 4)
	put(t, s, nobody, 1)
	put(t, s, nobody, 2)
	h := NewHost(s, nil, nil)
	c, mem := called("r"), memoryOf(1)
	hosttest.Function(t, h, "evict").Call(c, mem, []uint64{0, 1})
	binary.LittleEndian.PutUint64(mem, 2)
	c.Settle(true)
	if got := s.has(nobody, []uint64{1, 2}); len(got) != 1 || got[1] != 0 {
		t.Errorf("left: %v", got)
	}
}

func TestHostKeepsNamespacesApart(t *testing.T) {
	s := small(t, 8)
	ours, theirs := Namespace("a", "m"), Namespace("b", "m")
	put(t, s, ours, 1)
	put(t, s, theirs, 1)
	put(t, s, theirs, 2)
	r := NewRequests(RequestsConfig{})
	r.Describe(hint.Identity{RequestID: "r"}, Request{Namespace: ours, BlockSize: 16, Hashes: []uint64{1, 2}})
	h := NewHost(s, r, nil)
	c, mem := called("r"), memoryOf(1, 2)
	hosttest.Function(t, h, "residency").Call(c, mem, []uint64{0, 2, 100, 2})
	if mem[100] != byte(abi.ResidencyDRAM) || mem[101] != byte(abi.ResidencyAbsent) {
		t.Errorf("sees %d %d", mem[100], mem[101])
	}
	hosttest.Function(t, h, "evict").Call(c, mem, []uint64{0, 2})
	c.Settle(true)
	if len(s.has(ours, []uint64{1, 2})) != 0 || len(s.has(theirs, []uint64{1, 2})) != 2 {
		t.Error("another tenant's block was evicted, or the own one not")
	}
}

func TestEvictionsAfterARequestAddUp(t *testing.T) {
	s := small(t, 4)
	for hash := range uint64(4) {
		put(t, s, nobody, hash)
	}
	h := NewHost(s, nil, nil)
	for hash := range uint64(2) {
		c := called("r")
		hosttest.Function(t, h, "evict_after").Call(c, memoryOf(hash), []uint64{0, 1})
		c.Settle(true)
		c = called("r")
		hosttest.Function(t, h, "evict_after").Call(c, memoryOf(3), []uint64{0, 1})
		c.Settle(false)
		c = called("other")
		hosttest.Function(t, h, "evict_after").Call(c, memoryOf(2), []uint64{0, 1})
		c.Settle(true)
	}
	lease := acquireAny(t, s, nobody, 1)
	h.Ended(hint.Identity{RequestID: "r", Attempt: 1}) // another attempt
	h.Ended(hint.Identity{RequestID: "r"})
	h.Ended(hint.Identity{RequestID: "r"})
	must(t, s.Release(lease))
	if got := s.has(nobody, []uint64{0, 1, 2, 3}); len(got) != 3 {
		t.Errorf("left: %v; 0 should be gone, 1 was in use", got)
	}
	if h.after.Len() != 1 {
		t.Errorf("%d requests are waited for", h.after.Len())
	}
}

// elsewhere counts what is to go.
type elsewhere []uint64

func (e *elsewhere) Evict(namespace string, hashes []uint64) int {
	if namespace == nobody {
		*e = append(*e, hashes...)
	}
	return len(hashes)
}

// TestCopiesAreEvictedToo: at once and after the request, once the action is accepted.
func TestCopiesAreEvictedToo(t *testing.T) {
	s := small(t, 4)
	h, copies := NewHost(s, nil, nil), &elsewhere{}
	h.SetCopies(copies)
	for hash := range uint64(2) {
		c := called("r")
		hosttest.Function(t, h, "evict").Call(c, memoryOf(hash), []uint64{0, 1})
		c.Settle(hash == 1)
	}
	c := called("r")
	hosttest.Function(t, h, "evict_after").Call(c, memoryOf(7), []uint64{0, 1})
	c.Settle(true)
	if !slices.Equal(*copies, []uint64{1}) {
		t.Errorf("%v", *copies)
	}
	h.Ended(hint.Identity{RequestID: "r"})
	if !slices.Equal(*copies, []uint64{1, 7}) {
		t.Errorf("%v", *copies)
	}
}

func acquireAny(t *testing.T, s *Store, ns string, hash uint64) uint64 {
	token, _, err := s.Acquire(ns, hash)
	must(t, err)
	return token
}

func TestNamespaceIsInjective(t *testing.T) {
	seen := map[string][2]string{}
	for _, tenant := range []string{"", "a", "1", "1:", ":", "ab", "0:"} {
		for _, name := range []string{"", "b", ":b", "0:", "1:a", "ab"} {
			n := Namespace(tenant, name)
			if other, ok := seen[n]; ok {
				t.Errorf("%q for %q and for %q", n, other, [2]string{tenant, name})
			}
			seen[n] = [2]string{tenant, name}
		}
	}
}

func TestHostScopes(t *testing.T) {
	s := small(t, 4)
	put(t, s, nobody, 1)
	h := NewHost(s, nil, nil)
	claim := func(id, scope string, priority uint32) {
		c, mem := called(id), memoryOf(1)
		putClaim(mem[1024:], 0, 1, priority, 0)
		stack := []uint64{0, 1, 1024, 24, 0, 0}
		if scope != "" {
			copy(mem[2048:], scope)
			stack[4], stack[5] = 2048, uint64(len(scope))
		}
		hosttest.Function(t, h, "retain").Call(c, mem, stack)
		if int64(stack[0]) != 1 {
			t.Fatal(int64(stack[0]))
		}
		c.Settle(true)
	}
	want := func(priority int) {
		t.Helper()
		if got := s.has(nobody, []uint64{1})[1]; got != priority {
			t.Errorf("priority %d, want %d", got, priority)
		}
	}
	claim("r1", "s", 50)
	claim("r2", "", 70)
	want(70)
	claim("r2", "", 0)
	want(50)
	claim("r3", "s", 20) // another request, the same scope
	want(20)
	claim("r3", "", 0)
	want(20)
	claim("r1", "s", 0)
	want(0)
}

func TestResidencyAllocatesNothing(t *testing.T) {
	s := small(t, 64)
	hashes := make([]uint64, 1024)
	for i := range hashes {
		hashes[i] = uint64(i)
		if i < 64 {
			put(t, s, nobody, uint64(i))
		}
	}
	out := make([]abi.Residency, len(hashes))
	if n := testing.AllocsPerRun(100, func() {
		if s.Residency(nobody, hashes, out) != 64 {
			t.Fatal("not all are found")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	h := NewHost(s, nil, nil)
	mem := make([]byte, 1<<14)
	for i, hash := range hashes {
		binary.LittleEndian.PutUint64(mem[8*i:], hash)
	}
	c, f, stack := called("r"), hosttest.Function(t, h, "residency"), make([]uint64, 4)
	if n := testing.AllocsPerRun(100, func() {
		copy(stack, []uint64{0, 1024, 8192, 1024})
		if f.Call(c, mem, stack); stack[0] != 1024 {
			t.Fatal(int64(stack[0]))
		}
	}); n > 0.1 { // the pool of buffers may be emptied by a collection
		t.Errorf("%v allocations of a guest's question", n)
	}
}

// FuzzHost: whatever a guest passes, nothing but an answer that fits is written.
func FuzzHost(f *testing.F) {
	f.Add(uint8(0), uint64(0), uint64(2), uint64(64), uint64(8), uint64(0), uint64(0), []byte{1})
	f.Add(uint8(1), uint64(1<<32-1), uint64(1<<29), uint64(0), uint64(0), uint64(0), uint64(0), []byte{})
	f.Add(uint8(4), uint64(64), uint64(16), uint64(0), uint64(0), uint64(0), uint64(0), []byte{})
	f.Add(uint8(2), uint64(0), uint64(1), uint64(64), uint64(24), uint64(3), uint64(1<<32-1), []byte("0123456789012345678901234567890"))
	s, err := New(Config{Capacity: 8 * pageSize, BlockBytes: []uint64{pageSize}})
	if err != nil {
		f.Fatal(err)
	}
	r := NewRequests(RequestsConfig{TTL: MaxTTL})
	r.Describe(hint.Identity{RequestID: "r"}, Request{Namespace: nobody, BlockSize: 3, Hashes: []uint64{1, 2}})
	h := NewHost(s, r, nil)
	f.Fuzz(func(t *testing.T, which uint8, a, b, c, d, e, g uint64, data []byte) {
		if token, _, err := s.Reserve(nobody, a%16, 8); err == nil {
			_ = s.Commit(token)
		}
		mem := make([]byte, 1024)
		copy(mem, data)
		before := append([]byte(nil), mem...)
		name := []string{"residency", "evict", "retain", "evict_after", "request"}[which%5]
		stack := []uint64{a, b, c, d, e, g}
		call := called("r")
		hosttest.Function(t, h, name).Call(call, mem, stack)
		if n := int64(stack[0]); name == "residency" && n > 0 && n <= int64(uint32(d)) {
			from := uint32(c)
			copy(before[from:int64(from)+n], mem[from:])
		} else if from := uint32(a); name == "request" && n > 0 && n <= int64(uint32(b)) {
			copy(before[from:int64(from)+n], mem[from:])
		}
		if string(before) != string(mem) {
			t.Fatalf("%s wrote beside its answer", name)
		}
		call.Settle(a%2 == 0)
	})
}
