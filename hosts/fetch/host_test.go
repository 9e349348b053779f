package fetch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
)

// A guest is a memory and the functions that it could import.
type guest struct {
	t     testing.TB
	host  *Host
	fns   map[string]runtime.HostFunction
	call  *runtime.Call
	mem   []byte
	stack [8]uint64
}

func newGuest(t testing.TB, cfg Config, id hint.Identity) *guest {
	h := NewHost(New(cfg), mustParse(t, nil, "tcp://10.0.0.0/8"))
	g := &guest{t: t, host: h, fns: map[string]runtime.HostFunction{}, mem: make([]byte, 65536), call: runtime.NewCall(runtime.CallConfig{Guest: "g", Identity: id})}
	for _, f := range h.Functions() {
		g.fns[f.Name] = f
	}
	return g
}

// do calls a function with arguments whose upper halves are dirty.
func (g *guest) do(name string, args ...uint32) int64 {
	f := g.fns[name]
	if len(args) != len(f.Params) {
		g.t.Fatalf("%s takes %d arguments", name, len(f.Params))
	}
	for i := range g.stack {
		g.stack[i] = 0xdeadbeef << 32
	}
	for i, a := range args {
		g.stack[i] |= uint64(a)
	}
	f.Call(g.call, g.mem, g.stack[:max(1, len(args))])
	if f.Results[0] == abi.I32 {
		if g.stack[0]>>32 != 0 {
			g.t.Fatalf("%s left %#x as an i32", name, g.stack[0])
		}
		return int64(int32(uint32(g.stack[0])))
	}
	return int64(g.stack[0])
}

// source writes a source at 1,024 and returns where it is.
func (g *guest) source(s string) (uint32, uint32) {
	return 1024, uint32(copy(g.mem[1024:], s))
}

func (g *guest) submit(source string, hashes ...uint64) int64 {
	off, n := g.source(source)
	if n == 0 {
		off = 0
	}
	copy(g.mem[2048:], hashBytes(hashes...))
	return g.do("submit", off, n, 2048, uint32(len(hashes)), 0)
}

func (g *guest) refused(got int64, want abi.Reason, detail string) {
	g.t.Helper()
	reason, text := g.call.Refusal()
	if got != -int64(want) || reason != want || !strings.Contains(text, detail) {
		g.t.Errorf("got %d, %v %q; want %v %q", got, reason, text, want, detail)
	}
}

func TestFunctionsAreThoseOfTheTable(t *testing.T) {
	g := newGuest(t, Config{}, request("r"))
	want := 0
	for _, f := range abi.Contract().Functions {
		if f.Module != g.host.Name() || f.Draft {
			continue
		}
		want++
		got := g.fns[f.Name]
		var params []abi.ValType
		for _, p := range f.Params {
			params = append(params, p.Type)
		}
		if got.Call == nil || !slices.Equal(got.Params, params) || !slices.Equal(got.Results, []abi.ValType{f.Result}) {
			t.Errorf("%s: %+v", f.Name, got)
		}
	}
	if len(g.fns) != want || want == 0 {
		t.Errorf("%d functions, the table has %d", len(g.fns), want)
	}
}

func TestHostSubmit(t *testing.T) {
	id := request("r")
	g := newGuest(t, Config{}, id)
	if got := g.submit("tcp://10.0.0.1:1", 1, 2); got != 0 {
		t.Fatal(got)
	}
	wantState(t, g.host.store, id, abi.FetchStateNone) // not yet
	g.call.Settle(false)
	wantState(t, g.host.store, id, abi.FetchStateNone)

	g.submit("tcp://10.0.0.1:1", 1, 2)
	clear(g.mem) // everything was copied
	if reason, detail := g.call.Settle(true); reason != 0 {
		t.Fatal(reason, detail)
	}
	wantBlocks(t, g.host.store, id, 1, 2)

	if got := g.submit("", 3); got != 0 { // accepted now, refused at commit
		t.Fatal(got)
	}
	if reason, detail := g.call.Settle(true); reason != abi.ReasonConflictingSource || detail == "" {
		t.Fatal(reason, detail)
	}
	wantState(t, g.host.store, id, abi.FetchStateFailed)
}

func TestHostSubmitWithoutSource(t *testing.T) {
	g := newGuest(t, Config{}, request("r"))
	g.submit("", 5)
	g.call.Settle(true)
	if st := wantState(t, g.host.store, request("r"), abi.FetchStateLive); st.HasSource || st.NoRetain {
		t.Errorf("%+v", st)
	}
	if got := g.do("submit", 0, 0, 2048, 1, uint32(abi.FetchFlagNoRetain)); got != 0 {
		t.Fatal(got)
	}
	g.call.Settle(true)
	if st := g.host.store.Status(request("r")); !st.NoRetain {
		t.Errorf("%+v", st)
	}
}

func TestHostSubmitRefuses(t *testing.T) {
	g := newGuest(t, Config{MaxHashes: 100}, request("r"))
	src, n := g.source("tcp://10.0.0.1:1")
	end := uint32(len(g.mem))
	for _, c := range []struct {
		args   [5]uint32
		want   abi.Reason
		detail string
	}{
		{[5]uint32{src, n, 2048, 0, 0}, abi.ReasonInvalidPayload, "at least one"},
		{[5]uint32{src, n, 2048, 101, 0}, abi.ReasonLimitExceeded, "101 block hashes"},
		{[5]uint32{src, n, 2048, 1, 2}, abi.ReasonInvalidPayload, "unknown flags"},
		{[5]uint32{src, n, 2048, 1, 1 << 31}, abi.ReasonInvalidPayload, "unknown flags"},
		{[5]uint32{src, 0, 2048, 1, 0}, abi.ReasonInvalidPayload, "the source is empty"},
		{[5]uint32{src, 3, 2048, 1, 0}, abi.ReasonSourceNotAllowed, `source "tcp": no scheme`},
		{[5]uint32{0, 1, 2048, 1, 0}, abi.ReasonSourceNotAllowed, "control"},
		// The hashes do not lie inside.
		{[5]uint32{src, n, end - 7, 1, 0}, abi.ReasonInvalidPayload, "block hashes lie outside"},
		{[5]uint32{src, n, end, 1, 0}, abi.ReasonInvalidPayload, "block hashes lie outside"},
		{[5]uint32{src, n, end + 1, 0, 0}, abi.ReasonInvalidPayload, "block hashes lie outside"},
		{[5]uint32{src, n, 1 << 31, 1, 0}, abi.ReasonInvalidPayload, "block hashes lie outside"},
		{[5]uint32{src, n, 1<<32 - 1, 1, 0}, abi.ReasonInvalidPayload, "block hashes lie outside"},
		{[5]uint32{src, n, 1<<32 - 8, 1, 0}, abi.ReasonInvalidPayload, "block hashes lie outside"},
		{[5]uint32{src, n, 2048, 1 << 29, 0}, abi.ReasonInvalidPayload, "block hashes lie outside"}, // 8 * count is 2^32
		{[5]uint32{src, n, 2048, 1<<29 + 1, 0}, abi.ReasonInvalidPayload, "block hashes lie outside"},
		{[5]uint32{src, n, 2048, 1 << 31, 0}, abi.ReasonInvalidPayload, "block hashes lie outside"},
		{[5]uint32{src, n, 2048, 1<<32 - 1, 0}, abi.ReasonInvalidPayload, "block hashes lie outside"},
		{[5]uint32{src, n, 1<<32 - 1, 1<<32 - 1, 0}, abi.ReasonInvalidPayload, "block hashes lie outside"},
		// The source does not.
		{[5]uint32{end - 1, 2, 2048, 1, 0}, abi.ReasonInvalidPayload, "source lies outside"},
		{[5]uint32{1 << 31, 1, 2048, 1, 0}, abi.ReasonInvalidPayload, "source lies outside"},
		{[5]uint32{1<<32 - 1, 1, 2048, 1, 0}, abi.ReasonInvalidPayload, "source lies outside"},
		{[5]uint32{1<<32 - 1, 1<<32 - 1, 2048, 1, 0}, abi.ReasonInvalidPayload, "source lies outside"},
		{[5]uint32{src, 1<<32 - 1, 2048, 1, 0}, abi.ReasonInvalidPayload, "source lies outside"},
		{[5]uint32{0, 1 << 31, 2048, 1, 0}, abi.ReasonInvalidPayload, "source lies outside"},
	} {
		g.refused(g.do("submit", c.args[:]...), c.want, c.detail)
	}
	g.refused(g.submit("tcp://11.0.0.1:1", 1), abi.ReasonSourceNotAllowed, "11.0.0.1 is not in fetch.allowed_sources")
	if n := g.host.RefusedSources(); n != 3 {
		t.Errorf("%d sources were refused", n)
	}
	if g.call.Settle(true); g.host.store.Stats().Prepared != 0 {
		t.Errorf("a refused submit left something: %+v", g.host.store.Stats())
	}
	wantState(t, g.host.store, request("r"), abi.FetchStateNone)
}

func TestHostSubmitAtAnyAlignment(t *testing.T) {
	g := newGuest(t, Config{}, request("r"))
	end := len(g.mem)
	for _, off := range []int{2048, 2049, 2051, 2055, end - 16} {
		copy(g.mem[off:], hashBytes(3, 9))
		if got := g.do("submit", 0, 0, uint32(off), 2, 0); got != 0 {
			t.Fatal(off, got)
		}
		g.call.Settle(true)
		wantBlocks(t, g.host.store, request("r"), 3, 9)
	}
}

func TestHostDiscardAndFinish(t *testing.T) {
	for _, end := range []func(*guest) int64{
		func(g *guest) int64 { return g.do("discard") },
		func(g *guest) int64 { return g.do("finish", 0) },
		func(g *guest) int64 { return g.do("finish", 1) },
	} {
		id := request("r")
		g := newGuest(t, Config{}, id)
		g.submit("", 1)
		g.call.Settle(true)
		if got := end(g); got != 0 {
			t.Fatal(got)
		}
		wantState(t, g.host.store, id, abi.FetchStateLive)
		g.call.Settle(false)
		wantState(t, g.host.store, id, abi.FetchStateLive)
		end(g)
		end(g) // idempotent within a call too
		if reason, _ := g.call.Settle(true); reason != 0 {
			t.Fatal(reason)
		}
		wantState(t, g.host.store, id, abi.FetchStateFinished)
		g.submit("", 1)
		if reason, detail := g.call.Settle(true); reason != abi.ReasonRequestFinished || detail == "" {
			t.Fatal(reason, detail)
		}
	}
	g := newGuest(t, Config{}, request("r"))
	for _, how := range []uint32{2, 1 << 31, 1<<32 - 1} {
		g.refused(g.do("finish", how), abi.ReasonInvalidPayload, "takes 0 (ok) or 1 (aborted)")
	}
}

func TestHostStatus(t *testing.T) {
	c := newClock()
	g := newGuest(t, Config{Now: c.now}, request("r"))
	read := func(off, size uint32) (int64, []byte) {
		for i := range g.mem {
			g.mem[i] = 0xaa
		}
		n := g.do("status", off, size)
		if off > uint32(len(g.mem)) {
			off = 0
		}
		return n, g.mem[off:min(len(g.mem), int(off)+40)]
	}
	untouched := func(b []byte) bool { return !slices.ContainsFunc(b, func(x byte) bool { return x != 0xaa }) }

	g.submit("tcp://10.0.0.1:1", 1, 2, 2)
	g.call.Settle(true)
	n, b := read(4097, 32)
	if n != 32 || abi.U32(b, 0) != uint32(abi.FetchStateLive) || abi.U32(b, 4) != 2 || abi.U64(b, 8) != uint64(c.ns) ||
		abi.U64(b, 16) != uint64(c.ns)+600e9 || abi.U32(b, 24) != 1 || abi.U32(b, 28) != 0 || !untouched(b[32:]) {
		t.Errorf("%d % x", n, b)
	}
	for _, size := range []uint32{0, 1, 31} { // too small: only the length
		if n, _ := read(4096, size); n != 32 || !untouched(g.mem) {
			t.Errorf("%d bytes: %d", size, n)
		}
	}
	if n, b := read(65536-32, 32); n != 32 || abi.U32(b, 0) != uint32(abi.FetchStateLive) {
		t.Errorf("at the end: %d % x", n, b)
	}
	for _, r := range [][2]uint32{{65536 - 31, 32}, {65536, 32}, {65537, 0}, {1 << 31, 32}, {1<<32 - 1, 32}, {1<<32 - 1, 1<<32 - 1}, {0, 1<<32 - 1}, {8, 1 << 31}} {
		n, _ := read(r[0], r[1])
		g.refused(n, abi.ReasonInvalidPayload, "outside the guest's memory")
		if !untouched(g.mem) {
			t.Errorf("%v wrote", r)
		}
	}
	if n := g.do("status", 0, 0); n != 32 {
		t.Errorf("asked for the length: %d", n)
	}

	g.do("discard")
	g.call.Settle(true)
	if n, b := read(4096, 4096); n != 32 || fmt.Sprint(b[:32]) != fmt.Sprint(append([]byte{3}, make([]byte, 31)...)) {
		t.Errorf("%d % x", n, b)
	}
}

func TestHostWithoutMemory(t *testing.T) {
	g := newGuest(t, Config{}, request("r"))
	g.mem = nil
	g.refused(g.do("submit", 0, 0, 0, 1, 0), abi.ReasonInvalidPayload, "outside")
	g.refused(g.do("submit", 0, 0, 0, 0, 0), abi.ReasonInvalidPayload, "at least one")
	g.refused(g.do("status", 0, 32), abi.ReasonInvalidPayload, "outside")
	if n := g.do("status", 0, 0); n != 32 {
		t.Error(n)
	}
}

func TestHostAllocatesNothing(t *testing.T) {
	g := newGuest(t, Config{Now: fast(), TombstoneTTL: 1}, request("r"))
	src, n := g.source("tcp://10.0.0.1:1")
	copy(g.mem[2048:], manyHashes(1024))
	once := func() {
		settle := func() {
			if reason, detail := g.call.Settle(true); reason != 0 {
				t.Fatal(reason, detail)
			}
		}
		if g.do("submit", src, n, 2048, 1024, 0) != 0 || g.do("status", 0, 32) != 32 {
			t.Fatal("refused")
		}
		settle()
		if g.do("discard") != 0 {
			t.Fatal("refused")
		}
		settle()
		if g.do("finish", 1) != 0 {
			t.Fatal("refused")
		}
		settle()
	}
	once()
	if n := testing.AllocsPerRun(1000, once); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSetAllowed(t *testing.T) {
	g := newGuest(t, Config{}, request("r"))
	g.refused(g.submit("tcp://11.0.0.1:1", 1), abi.ReasonSourceNotAllowed, "11.0.0.1")
	g.host.SetAllowed(mustParse(t, nil, "tcp://11.0.0.0/8"))
	if got := g.submit("tcp://11.0.0.1:1", 1); got != 0 {
		t.Error(got)
	}
	g.refused(g.submit("tcp://10.0.0.1:1", 1), abi.ReasonSourceNotAllowed, "10.0.0.1")
	g.call.Settle(false)
}

// TestBrokenStoreIsFatal: a fault of the store goes to the caller of the runtime,
// anything else to the runtime.
func TestBrokenStoreIsFatal(t *testing.T) {
	c := runtime.NewCall(runtime.CallConfig{Guest: "g", Identity: request("r")})
	broken, other := &Fault{"broken"}, errors.New("other")
	guarded(func(*runtime.Call, []byte, []uint64) { panic(broken) })(c, nil, nil)
	if c.Failed() != broken {
		t.Errorf("the call failed with %v", c.Failed())
	}
	defer func() {
		if r := recover(); r != other {
			t.Errorf("recovered %v", r)
		}
	}()
	guarded(func(*runtime.Call, []byte, []uint64) { panic(other) })(c, nil, nil)
}

// FuzzHost calls the functions with any arguments: nothing panics, memory changes
// where status may write only, and what waits is given back.
func FuzzHost(f *testing.F) {
	f.Add(uint8(0), uint64(1024), uint64(16), uint64(2048), uint64(3), uint64(0), true)
	f.Add(uint8(0), uint64(0), uint64(0), uint64(1<<32-1), uint64(1<<29), uint64(1), true)
	f.Add(uint8(1), uint64(0), uint64(0), uint64(0), uint64(0), uint64(0), true)
	f.Add(uint8(2), uint64(1), uint64(0), uint64(0), uint64(0), uint64(0), false)
	f.Add(uint8(3), uint64(4096-32), uint64(32), uint64(0), uint64(0), uint64(0), true)
	f.Add(uint8(3), uint64(1<<32-1), uint64(1<<31), uint64(0), uint64(0), uint64(0), true)
	f.Fuzz(func(t *testing.T, which uint8, a, b, c, d, e uint64, accept bool) {
		g := newGuest(t, Config{Shards: 1, MaxHashes: 64}, request("r"))
		g.mem = make([]byte, 4096)
		g.source("tcp://10.0.0.1:1")
		before := slices.Clone(g.mem)
		fn := g.host.Functions()[which%4]
		stack := []uint64{a, b, c, d, e}
		fn.Call(g.call, g.mem, stack)
		result := int64(stack[0])
		if fn.Results[0] == abi.I32 {
			if stack[0]>>32 != 0 {
				t.Fatalf("%s: %#x as an i32", fn.Name, stack[0])
			}
			result = int64(int32(stack[0]))
		}
		if result < 0 && abi.Reason(-result) > abi.ReasonUnavailable || result > 0 && (fn.Name != "status" || result != abi.SizeFetchStatus) {
			t.Fatalf("%s returned %d", fn.Name, result)
		}
		if fn.Name == "status" && result > 0 && uint32(b) >= abi.SizeFetchStatus {
			copy(before[uint32(a):], g.mem[uint32(a):uint64(uint32(a))+abi.SizeFetchStatus])
		}
		if !slices.Equal(before, g.mem) {
			t.Fatalf("%s wrote where it must not", fn.Name)
		}
		g.call.Settle(accept)
		st := g.host.store.Stats()
		if live := accept && fn.Name == "submit" && result == 0; st.Prepared != 0 || (st.Entries == 1) != live {
			t.Fatalf("%s returned %d and left %+v", fn.Name, result, st)
		}
		if err := g.host.store.check(); err != nil {
			t.Fatal(err)
		}
	})
}
