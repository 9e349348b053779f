package fetch_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/abi/vectors"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/clock"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/log"
	"github.com/kvrt/kvrt/runtime"
)

// lines is a log that keeps what a guest wrote, from a level on.
type lines struct {
	level slog.Level
	kept  []vectors.Line
}

var levels = map[slog.Level]abi.Level{slog.LevelDebug: abi.LevelDebug, slog.LevelInfo: abi.LevelInfo, slog.LevelWarn: abi.LevelWarn, slog.LevelError: abi.LevelError}

func (l *lines) Enabled(_ context.Context, level slog.Level) bool { return level >= l.level }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *lines) WithGroup(string) slog.Handler                    { return l }
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.kept = append(l.kept, vectors.Line{Level: vectors.Int(levels[r.Level]), Text: r.Message})
	return nil
}

// The vectors of log, clock and fetch are run here, since they share a world. Those of
// other capabilities are run with them.

var elsewhere = []string{abi.ModuleSession, abi.ModuleWorker, abi.ModuleStore, abi.ModuleGPU}

// world is what a vector's host knows.
type world struct {
	log   lines
	store *fetch.Store
	hosts map[string]runtime.HostModule
	call  *runtime.Call
	id    hint.Identity
	ahead orders
}

// orders are what was to be brought.
type orders []fetch.Order

func (o *orders) Prefetch(order *fetch.Order) (abi.Reason, string) {
	*o = append(*o, *order)
	return abi.ReasonNone, ""
}

func newWorld(t *testing.T, h vectors.Host) *world {
	t.Helper()
	w := &world{id: hint.Identity{RequestID: h.RequestID}}
	for s, a := range levels {
		if int64(a) == int64(h.Level) {
			w.log.level = s
		}
	}
	allow, err := fetch.ParseAllowList(context.Background(), append([]string{"tcp://127.0.0.0/8"}, h.AllowedSources...), nil)
	if err != nil {
		t.Fatal(err)
	}
	now := int64(0)
	if h.Fetch != nil {
		now = int64(h.Fetch.SubmittedNS)
	}
	w.store = fetch.New(fetch.Config{Now: func() int64 { return now }})
	if h.Fetch != nil && abi.FetchState(h.Fetch.State) != abi.FetchStateNone {
		var source fetch.Source
		if h.Fetch.HasSource != 0 {
			if source, err = allow.Check([]byte("tcp://127.0.0.1:1")); err != nil {
				t.Fatal(err)
			}
		}
		hashes := make([]byte, 8*h.Fetch.Hashes)
		for i := range h.Fetch.Hashes {
			hashes[8*i] = byte(i)
		}
		p, reason, detail := w.store.Prepare(w.id, source, hashes, false)
		if p == nil {
			t.Fatal(reason, detail)
		}
		p.Commit()
		if abi.FetchState(h.Fetch.State) != abi.FetchStateLive {
			t.Fatalf("a vector with the store in state %d: teach this test to bring it about", h.Fetch.State)
		}
	}
	w.call = runtime.NewCall(runtime.CallConfig{Guest: "vector", Identity: w.id, Log: slog.New(&w.log), Wall: int64(h.NowNS), Monotonic: int64(h.MonotonicNS)})
	w.hosts = map[string]runtime.HostModule{}
	host := fetch.NewHost(w.store, allow)
	if h.Exchange {
		host.SetPrefetcher(&w.ahead, func(*runtime.Call) (string, string) { return "tenant", "6:tenantmodel" })
	}
	for _, m := range []runtime.HostModule{log.Module{}, clock.Module{}, host} {
		w.hosts[m.Name()] = m
	}
	return w
}

func (w *world) function(module, name string) *runtime.HostFunction {
	for _, f := range w.hosts[module].Functions() {
		if f.Name == name {
			return &f
		}
	}
	return nil
}

func TestHostFunctionVectors(t *testing.T) {
	calls, err := vectors.Calls()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range calls {
		if slices.Contains(elsewhere, v.Module) {
			continue
		}
		t.Run(v.Name, func(t *testing.T) {
			w := newWorld(t, v.Host)
			f := w.function(v.Module, v.Function)
			if f == nil {
				t.Fatalf("no host offers %s.%s", v.Module, v.Function)
			}
			mem := v.Memory.Bytes()
			want := bytes.Clone(mem)
			for _, r := range v.After {
				copy(want[r.At:], r.Hex)
			}
			stack := make([]uint64, max(len(v.Args), 1))
			for i, a := range v.Args {
				stack[i] = uint64(a)
			}
			f.Call(w.call, mem, stack)
			if v.Result != nil {
				got := int64(stack[0])
				if f.Results[0] == abi.I32 {
					got = int64(int32(uint32(stack[0])))
				}
				if got != int64(*v.Result) {
					t.Errorf("result %d, want %d", got, *v.Result)
				}
			}
			if !bytes.Equal(mem, want) {
				t.Error("the memory is not what the vector says")
			}
			if !slices.Equal(w.log.kept, v.Log) {
				t.Errorf("log %v, want %v", w.log.kept, v.Log)
			}
			if v.Module == abi.ModuleFetch && v.Host.Fetch == nil {
				w.effects(t, v.Effects)
			}
		})
	}
}

// effects commits what the call left and looks at the store.
func (w *world) effects(t *testing.T, want []vectors.Effect) {
	if st := w.store.Status(w.id); st.State != abi.FetchStateNone || len(w.ahead) != 0 {
		t.Errorf("state %s, %d orders before the commit", st.State, len(w.ahead))
	}
	if reason, detail := w.call.Settle(true); reason != abi.ReasonNone {
		t.Fatalf("commit: %s %s", reason, detail)
	}
	st := w.store.Status(w.id)
	if n := len(w.ahead); n > 1 || n == 1 && (len(want) == 0 || want[0].FetchAhead == nil) {
		t.Errorf("orders that nobody asked for: %v", w.ahead)
	}
	switch {
	case len(want) > 0 && want[0].FetchAhead != nil:
		if len(w.ahead) == 0 {
			t.Fatal("no order")
		}
		var hashes []uint64
		for _, h := range want[0].FetchAhead.Hashes {
			hashes = append(hashes, uint64(h))
		}
		o := w.ahead[0]
		if got := slices.Compact(o.Hashes); !slices.Equal(got, hashes) || o.Source.String() != want[0].FetchAhead.Source || o.Tenant != "tenant" || o.Namespace != "6:tenantmodel" || o.Identity != w.id {
			t.Errorf("%+v", o)
		}
		if st.State != abi.FetchStateNone {
			t.Errorf("a hint: %s", st.State)
		}
	case len(want) == 0:
		if st.State != abi.FetchStateNone {
			t.Errorf("an effect that nobody asked for: %s", st.State)
		}
	case want[0].Submit != nil:
		var hashes []uint64
		for _, h := range want[0].Submit.Hashes {
			hashes = append(hashes, uint64(h))
		}
		if got := w.store.AppendHashes(nil, w.id); !slices.Equal(got, hashes) || st.HasSource != (want[0].Submit.Source != nil) {
			t.Errorf("stored %d, source %v; want %d", got, st.HasSource, hashes)
		}
		if source, ok := w.store.Lookup(w.id, hashes[0]); want[0].Submit.Source != nil && (!ok || source.String() != *want[0].Submit.Source) {
			t.Errorf("source %q", source.String())
		}
	default:
		if st.State != abi.FetchStateFinished {
			t.Errorf("state %s after a finish or discard", st.State)
		}
	}
}

// TestHostsOfferTheTable holds every capability's functions to the ABI's table, and
// every function of the table that is not a draft to a capability.
func TestHostsOfferTheTable(t *testing.T) {
	w := newWorld(t, vectors.Host{})
	for _, f := range abi.Contract().Functions {
		if f.Draft || slices.Contains(elsewhere, f.Module) {
			continue
		}
		if w.hosts[f.Module] == nil {
			t.Errorf("no host offers %s", f.Module)
			continue
		}
		have := w.function(f.Module, f.Name)
		if have == nil {
			t.Errorf("%s does not offer %s", f.Module, f.Name)
			continue
		}
		var params, results []abi.ValType
		for _, p := range f.Params {
			params = append(params, p.Type)
		}
		if f.Result != 0 {
			results = append(results, f.Result)
		}
		if !slices.Equal(have.Params, params) || !slices.Equal(have.Results, results) {
			t.Errorf("%s.%s: %v -> %v, the table says %v -> %v", f.Module, f.Name, have.Params, have.Results, params, results)
		}
	}
	for name, h := range w.hosts {
		for _, f := range h.Functions() {
			if !slices.ContainsFunc(abi.Contract().Functions, func(x abi.Function) bool { return x.Module == name && x.Name == f.Name && !x.Draft }) {
				t.Errorf("%s.%s is not in the table", name, f.Name)
			}
		}
	}
}

// TestLogQuota: one call's lines are bounded, and equal warnings are written once.
func TestLogQuota(t *testing.T) {
	w := newWorld(t, vectors.Host{})
	write := w.function(abi.ModuleLog, "write").Call
	mem := make([]byte, 1024)
	for i := range 100 {
		binary.LittleEndian.PutUint64(mem, uint64('a'+i%26)*0x0101010101010101)
		write(w.call, mem, []uint64{uint64(abi.LevelInfo), 0, 8})
	}
	if n := len(w.log.kept); n != 16 {
		t.Errorf("%d lines kept of one call", n)
	}
	w = newWorld(t, vectors.Host{})
	for range 5 {
		write(w.call, mem, []uint64{uint64(abi.LevelWarn), 0, 8})
	}
	if n := len(w.log.kept); n != 1 || !strings.Contains(w.log.kept[0].Text, "v") {
		t.Errorf("an equal warning was written %d times", n)
	}
}

// FuzzHostFunctions calls every host function with any arguments and memory: it never
// panics and never writes outside what it was given.
func FuzzHostFunctions(f *testing.F) {
	f.Add(uint8(0), []byte("hello"), uint64(1), uint64(0), uint64(5), uint64(0), uint64(0))
	f.Add(uint8(4), make([]byte, 64), uint64(0), uint64(0), uint64(0), uint64(1<<29), uint64(0))
	f.Add(uint8(4), []byte("tcp://127.0.0.1:1xxxxxxx12345678"), uint64(0), uint64(17), uint64(24), uint64(1), uint64(1<<32))
	f.Add(uint8(7), make([]byte, 32), uint64(0), uint64(1<<32-1), uint64(0), uint64(0), uint64(0))
	f.Add(uint8(0x88), []byte("tcp://127.0.0.1:1xxxxxxx12345678"), uint64(0), uint64(17), uint64(24), uint64(1), uint64(0))
	f.Fuzz(func(t *testing.T, which uint8, mem []byte, a, b, c, d, e uint64) {
		w := newWorld(t, vectors.Host{RequestID: "r", Exchange: which&0x80 != 0})
		functions := abi.Contract().Functions
		fn := functions[int(which&0x7f)%len(functions)]
		if fn.Draft || slices.Contains(elsewhere, fn.Module) {
			t.Skip()
		}
		canary := append(bytes.Clone(mem), "canary"...)
		stack := []uint64{a, b, c, d, e}
		w.function(fn.Module, fn.Name).Call(w.call, canary[:len(mem):len(mem)], stack)
		if string(canary[len(mem):]) != "canary" {
			t.Fatal("written past the memory")
		}
		w.call.Settle(a%2 == 0)
	})
}
