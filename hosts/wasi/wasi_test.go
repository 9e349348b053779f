package wasi_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hosts/wasi"
	"github.com/kvrt/kvrt/runtime"
)

const (
	ok    = 0
	badf  = 8
	fault = 21
	inval = 28
	nosys = 52
	spipe = 70
)

// host is the stub with a call that goes on.
type host struct {
	call *runtime.Call
	mem  []byte
	log  lines
}

func newHost() *host {
	h := &host{mem: make([]byte, 1<<16)}
	h.call = runtime.NewCall(runtime.CallConfig{Guest: "g", Log: slog.New(&h.log), Wall: 1_700_000_000_123_456_789, Monotonic: 42})
	return h
}

// do calls a function with dirty upper halves of its 32-bit arguments.
func (h *host) do(name string, args ...uint64) uint32 {
	for _, f := range (wasi.Module{}).Functions() {
		if f.Name == name {
			if len(args) != len(f.Params) {
				panic(name)
			}
			stack := make([]uint64, max(len(args), 1))
			for i, p := range f.Params {
				if stack[i] = args[i]; p == abi.I32 {
					stack[i] |= 0xdeadbeef << 32
				}
			}
			f.Call(h.call, h.mem, stack)
			return uint32(stack[0])
		}
	}
	panic(name)
}

func (h *host) u32(off int) uint32 { return binary.LittleEndian.Uint32(h.mem[off:]) }
func (h *host) u64(off int) uint64 { return binary.LittleEndian.Uint64(h.mem[off:]) }

func (h *host) buffers(at int, runs ...uint32) {
	for i, v := range runs {
		binary.LittleEndian.PutUint32(h.mem[at+4*i:], v)
	}
}

// TestSignatures holds the stub to another implementation of the same interface.
func TestSignatures(t *testing.T) {
	ctx := context.Background()
	rt := wazero.NewRuntime(ctx)
	defer rt.Close(ctx)
	compiled, err := wasi_snapshot_preview1.NewBuilder(rt).Compile(ctx)
	if err != nil {
		t.Fatal(err)
	}
	theirs := compiled.ExportedFunctions()
	ours := (wasi.Module{}).Functions()
	if len(ours) < 40 {
		t.Errorf("%d functions", len(ours))
	}
	for _, f := range ours {
		def := theirs[f.Name]
		if def == nil {
			t.Errorf("%s is no function of WASI preview 1", f.Name)
			continue
		}
		params := make([]byte, 0, len(f.Params))
		for _, p := range f.Params {
			params = append(params, byte(p))
		}
		results := make([]byte, 0, 1)
		for _, r := range f.Results {
			results = append(results, byte(r))
		}
		if !slices.Equal(params, def.ParamTypes()) || !slices.Equal(results, def.ResultTypes()) {
			t.Errorf("%s: %x -> %x, want %x -> %x", f.Name, params, results, def.ParamTypes(), def.ResultTypes())
		}
		if f.Fuel == 0 {
			t.Errorf("%s costs nothing", f.Name)
		}
	}
}

func TestAnswers(t *testing.T) {
	const end, past = 1<<16 - 4, 1<<32 - 1
	for _, c := range []struct {
		name string
		args []uint64
		want uint32
	}{
		{"args_sizes_get", []uint64{0, 4}, ok}, {"args_sizes_get", []uint64{0, end + 1}, fault}, {"args_sizes_get", []uint64{past, 0}, fault},
		{"args_get", []uint64{past, past}, ok}, {"environ_get", []uint64{0, 0}, ok}, {"environ_sizes_get", []uint64{end, end}, ok},
		{"clock_time_get", []uint64{0, 0, end - 4}, ok}, {"clock_time_get", []uint64{0, 0, end}, fault}, {"clock_time_get", []uint64{4, 0, 0}, inval},
		{"clock_time_get", []uint64{past, 0, past}, inval}, {"clock_res_get", []uint64{3, 0}, ok}, {"clock_res_get", []uint64{0, end}, fault}, {"clock_res_get", []uint64{9, 0}, inval},
		{"random_get", []uint64{0, 1 << 16}, ok}, {"random_get", []uint64{1 << 16, 0}, ok}, {"random_get", []uint64{1, 1 << 16}, fault}, {"random_get", []uint64{past, past}, fault}, {"random_get", []uint64{1<<16 + 1, 0}, fault},
		{"fd_write", []uint64{0, 0, 0, 0}, badf}, {"fd_write", []uint64{3, 0, 0, 0}, badf}, {"fd_write", []uint64{1, 0, 0, 0}, ok}, {"fd_write", []uint64{1, past, 1, 0}, fault},
		{"fd_write", []uint64{1, 0, 1, end + 1}, fault}, {"fd_write", []uint64{1, end, 1, 0}, fault}, {"fd_write", []uint64{1, 0, 1025, 0}, inval}, {"fd_write", []uint64{1, 0, past, 0}, inval},
		{"fd_fdstat_get", []uint64{1, 0}, ok}, {"fd_fdstat_get", []uint64{2, end}, fault}, {"fd_fdstat_get", []uint64{0, 0}, badf},
		{"fd_fdstat_set_flags", []uint64{1, 4}, ok}, {"fd_fdstat_set_flags", []uint64{0, 4}, badf}, {"fd_sync", []uint64{2}, ok},
		{"fd_seek", []uint64{1, 0, 0, 0}, spipe}, {"fd_tell", []uint64{5, 0}, badf}, {"fd_close", []uint64{1}, badf}, {"fd_read", []uint64{0, 0, 0, 0}, badf},
		{"fd_prestat_get", []uint64{3, 0}, badf}, {"fd_prestat_dir_name", []uint64{3, 0, 0}, badf}, {"fd_readdir", []uint64{3, 0, 0, 0, 0}, badf},
		{"path_open", []uint64{3, 0, 0, 0, 0, 0, 0, 0, 0}, nosys}, {"path_unlink_file", []uint64{3, 0, 0}, nosys}, {"sock_accept", []uint64{3, 0, 0}, nosys},
		{"sched_yield", nil, ok},
		{"poll_oneoff", []uint64{0, 0, 0, 0}, inval}, {"poll_oneoff", []uint64{0, 0, past, 0}, fault}, {"poll_oneoff", []uint64{1 << 16, 0, 1, 0}, fault},
		{"poll_oneoff", []uint64{0, end, 1, 0}, fault}, {"poll_oneoff", []uint64{0, 64, 1, end + 1}, fault}, {"poll_oneoff", []uint64{0, 64, 1, 128}, ok},
	} {
		if got := newHost().do(c.name, c.args...); got != c.want {
			t.Errorf("%s%v: %d, want %d", c.name, c.args, got, c.want)
		}
	}
}

func TestClocksAndPoll(t *testing.T) {
	h := newHost()
	const wall, mono = 1_700_000_000_123_456_789, 42
	h.do("clock_time_get", 0, 1, 0)
	h.do("clock_time_get", 1, 1, 8)
	if h.u64(0) != wall || h.u64(8) != mono {
		t.Errorf("clocks: %d and %d", h.u64(0), h.u64(8))
	}
	// Three subscriptions: 5 ns, a point in time 9 ns ahead, and a file descriptor.
	subs := h.mem[1024:][:3*48]
	for i, user := range []uint64{7, 8, 9} {
		binary.LittleEndian.PutUint64(subs[48*i:], user)
	}
	binary.LittleEndian.PutUint32(subs[16:], 1)
	binary.LittleEndian.PutUint64(subs[24:], 5)
	binary.LittleEndian.PutUint64(subs[48+24:], wall+9)
	subs[48+40] = 1
	subs[96+8] = 1
	if got := h.do("poll_oneoff", 1024, 2048, 3, 4096); got != ok || h.u32(4096) != 3 {
		t.Fatalf("poll_oneoff: %d, %d events", got, h.u32(4096))
	}
	for i, want := range []struct {
		user       uint64
		errno, typ uint32
	}{{7, ok, 0}, {8, ok, 0}, {9, badf, 1}} {
		if e := 2048 + 32*i; h.u64(e) != want.user || h.u32(e+8) != want.errno|want.typ<<16 {
			t.Errorf("event %d: %x", i, h.mem[e:e+32])
		}
	}
	h.do("clock_time_get", 0, 1, 0)
	h.do("clock_time_get", 1, 1, 8)
	if h.u64(0) != wall+9 || h.u64(8) != mono+9 {
		t.Errorf("clocks after waiting: %d and %d", h.u64(0), h.u64(8))
	}
	// For ever, again and again: the clocks do not run over.
	binary.LittleEndian.PutUint64(subs[24:], 1<<64-1)
	for range 100 {
		h.do("poll_oneoff", 1024, 2048, 1, 4096)
	}
	if h.do("clock_time_get", 1, 1, 8); int64(h.u64(8)) < 1<<60 {
		t.Errorf("the clock says %d", int64(h.u64(8)))
	}
	// Lists that overlap, and an unknown clock.
	binary.LittleEndian.PutUint32(h.mem[1024+16:], 99)
	if got := h.do("poll_oneoff", 1024, 1024, 3, 1024); got != ok || h.u32(1024) != 3 {
		t.Errorf("poll_oneoff over itself: %d", got)
	}
}

func TestWrite(t *testing.T) {
	h := newHost()
	text := "a line\nand one of \xff\xfe bytes\n" + strings.Repeat("é", 600) + "\nopen"
	copy(h.mem[100:], text)
	h.buffers(0, 100, uint32(len(text)), 0, 0)
	if got := h.do("fd_write", 1, 0, 2, 50); got != ok || h.u32(50) != uint32(len(text)) {
		t.Errorf("fd_write: %d, %d bytes", got, h.u32(50))
	}
	h.buffers(0, 100, 4)
	h.do("fd_write", 2, 0, 1, 50) // the other stream ends the line
	h.call.Settle(true)
	want := lines{"INFO a line", "INFO and one of \ufffd bytes", "INFO " + strings.Repeat("é", 512), "INFO open", "WARN a li"}
	if !slices.Equal(h.log, want) {
		t.Errorf("log %q", h.log)
	}
	// Four runs of the whole memory are fine, one that leaves it is not, and then
	// nothing is written.
	h = newHost()
	h.buffers(0, 0, 1<<16, 0, 1<<16, 1<<16, 1)
	if got := h.do("fd_write", 1, 0, 3, 50); got != fault || len(h.log) > 0 {
		t.Errorf("fd_write: %d, log %q", got, h.log)
	}
	// A flood: no more than the quota.
	for i := range h.mem {
		h.mem[i] = '\n'
	}
	h.buffers(0, 100, 60000)
	for range 10 {
		h.do("fd_write", 1, 0, 1, 50)
	}
	if len(h.log) != abi.MaxLogLines {
		t.Errorf("%d lines of a flood", len(h.log))
	}
}

func TestRandom(t *testing.T) {
	draw := func(wall int64) string {
		h := newHost()
		h.call = runtime.NewCall(runtime.CallConfig{Wall: wall, Monotonic: 1})
		h.do("random_get", 0, 32)
		h.do("random_get", 32, 32)
		if string(h.mem[:32]) == string(h.mem[32:64]) || string(h.mem[64:96]) != strings.Repeat("\x00", 32) {
			t.Error("the same bytes twice, or more than were asked for")
		}
		return fmt.Sprintf("%x", h.mem[:64])
	}
	if first := draw(5); first != draw(5) || first == draw(6) {
		t.Error("random bytes do not follow from the clocks")
	}
}

// FuzzStub calls any function with any arguments on any memory.
func FuzzStub(f *testing.F) {
	functions := (wasi.Module{}).Functions()
	for i := range functions {
		f.Add(byte(i), uint64(1), uint64(0), uint64(2), uint64(100), []byte{100, 0, 0, 0, 10, 0, 0, 0, 200, 0, 0, 0, 3, 0, 0, 0})
		f.Add(byte(i), uint64(2), uint64(1<<32-1), uint64(1<<31), uint64(1<<33), []byte("\n\n\n"))
	}
	f.Fuzz(func(t *testing.T, which byte, a, b, c, d uint64, text []byte) {
		fn := functions[int(which)%len(functions)]
		if fn.Name == "proc_exit" {
			return // it does not return
		}
		h := newHost()
		copy(h.mem, text)
		stack := []uint64{a, b, c, d, a, b, c, d, a}
		fn.Call(h.call, h.mem, stack)
		switch uint32(stack[0]) {
		case ok, badf, fault, inval, nosys, spipe:
		default:
			t.Errorf("%s: errno %d", fn.Name, stack[0])
		}
		h.call.Settle(false)
		if len(h.log) > abi.MaxLogLines {
			t.Errorf("%d lines", len(h.log))
		}
	})
}
