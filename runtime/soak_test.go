package runtime_test

import (
	"context"
	"fmt"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

// soakEnv is how many dispatches the soak makes. It is short by default.
const soakEnv = "KVRT_SOAK_CALLS"

func soakCalls(t *testing.T, calls int64) int64 {
	if s := os.Getenv(soakEnv); s != "" {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", soakEnv, err)
		}
		return n
	}
	return calls
}

// holdings is what a leak would show in.
type holdings struct {
	goroutines, descriptors int
	heap, resident          uint64
}

func hold() holdings {
	goruntime.GC()
	debug.FreeOSMemory() // and what finalizers let go of
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	files, _ := os.ReadDir("/proc/self/fd") // none, and nothing to compare, elsewhere
	return holdings{goruntime.NumGoroutine(), len(files), m.HeapAlloc, inRAM()}
}

// inRAM is the memory of this process that is in RAM, in bytes; 0 where it is not told.
func inRAM() uint64 {
	text, _ := os.ReadFile("/proc/self/statm")
	if fields := strings.Fields(string(text)); len(fields) > 1 {
		pages, _ := strconv.ParseUint(fields[1], 10, 64)
		return pages * uint64(os.Getpagesize())
	}
	return 0
}

// soaked is one kind of hint of the soak, and what must become of it.
type soaked struct {
	body []byte
	want string
	each int64 // one hint of so many
	got  atomic.Int64
}

// TestSoakTraps dispatches from all sides while one hint in a hundred traps, runs out of
// fuel or makes a host function panic, and guests are swapped, loaded and unloaded
// beside it. Every hint has the answer that it must have, the counters add up, and
// afterwards the runtime holds no more than before.
func TestSoakTraps(t *testing.T) {
	engine := &counted{Engine: wazero.New(wazero.Config{})}
	fx := &effects{}
	collected := idleGuest(t, runtime.Limits{Instances: 2})
	collected.Module = withManifest(t, idle, strings.Replace(idleManifest, "demo.echo", "demo.idle", 1))
	main := scriptedGuest(t, '1')
	main.Limits.Instances = 4
	r := newRuntime(t, runtime.Config{Engine: engine, Hosts: []runtime.HostModule{fx}}, main, collected)
	kinds := []*soaked{
		{body: envelope("t"), want: "t=REJECTED/handler_trap", each: 125},
		{body: envelope("l"), want: "l=REJECTED/handler_out_of_fuel", each: 1000},
		{body: envelope("p"), want: "p=REJECTED/handler_error", each: 997},
		{body: envelope("demo.idle:i"), want: "i=ACCEPTED", each: 4},
		{body: envelope("e"), want: "e=ACCEPTED", each: 3},
		{body: envelope("r"), want: "r=REJECTED/invalid_payload", each: 7},
		{body: envelope("a"), want: "a=ACCEPTED", each: 1},
	}
	var n atomic.Int64
	run := func(most int64) {
		stop := make(chan struct{})
		var beside sync.WaitGroup
		beside.Go(func() { soakChanges(t, r, stop) })
		var wg sync.WaitGroup
		for w := range 2 * goruntime.GOMAXPROCS(0) {
			wg.Go(func() { soakDispatches(t, r, kinds, &n, int64(w), most) })
		}
		wg.Wait()
		close(stop)
		beside.Wait()
	}
	calls := soakCalls(t, 20_000)
	run(min(calls/20+1, 100_000)) // to its working size
	engine.settled(t, 8, 2)
	before := hold()
	began := time.Now()
	run(n.Load() + calls)
	took := time.Since(began)
	engine.settled(t, 8, 2) // 4 and 2 instances, and a spare each
	after := hold()

	var want [runtime.NumReasons]uint64
	var accepted, all uint64
	for _, k := range kinds {
		count := uint64(k.got.Load())
		all += count
		if reason := k.want[strings.IndexByte(k.want, '=')+1:]; reason == "ACCEPTED" {
			accepted += count
		} else {
			want[reasonNamed(t, strings.TrimPrefix(reason, "REJECTED/"))] += count
		}
	}
	s, i := statsOf(r, "scripted"), statsOf(r, "idle")
	if s.Calls+i.Calls != all || s.Accepted+i.Accepted != accepted || s.Rejected != want || i.Traps != [runtime.NumTraps]uint64{} ||
		s.Traps[runtime.TrapGuest] != want[abi.ReasonHandlerTrap] || s.Traps[runtime.TrapOutOfFuel] != want[abi.ReasonHandlerOutOfFuel] || s.Traps[runtime.TrapHostPanic] != want[abi.ReasonHandlerError] {
		t.Errorf("%d hints, %d accepted, rejected %v; counters %+v and %+v", all, accepted, want, s, i)
	}
	if e := uint64(kinds[4].got.Load()); uint64(fx.committed.Load()) != e || fx.dropped.Load() != 0 {
		t.Errorf("%d effects carried out and %d dropped, want %d and 0", fx.committed.Load(), fx.dropped.Load(), e)
	}
	traps := want[abi.ReasonHandlerTrap] + want[abi.ReasonHandlerOutOfFuel] + want[abi.ReasonHandlerError]
	t.Logf("%d dispatches in %s (%.0f/s), %d traps (%.2f%%), %d kvrt_idle, generation %d; before %+v, after %+v",
		all, took.Round(time.Millisecond), float64(all)/took.Seconds(), traps, 100*float64(traps)/float64(all), i.Idle.Calls, r.Generation(), before, after)
	if after.goroutines > before.goroutines || after.descriptors > before.descriptors || after.heap > before.heap+(4<<20) || after.resident > before.resident+(32<<20) {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

// soakDispatches dispatches until all together have made most.
func soakDispatches(t *testing.T, r *runtime.Runtime, kinds []*soaked, n *atomic.Int64, w, most int64) {
	res := r.NewResponse()
	req := runtime.Request{Identity: hint.Identity{RequestID: fmt.Sprintf("soak-%d", w)}}
	for {
		i := n.Add(1)
		if i > most {
			n.Add(-1)
			return
		}
		k := kinds[len(kinds)-1]
		for _, other := range kinds {
			if i%other.each == other.each/2 {
				k = other
				break
			}
		}
		req.Body = k.body
		if err := r.Dispatch(&req, res); err != nil {
			t.Error(err)
			return
		}
		if out := &res.Results[0]; len(res.Results) != 1 || !k.is(out) {
			t.Errorf("want %s, got %s: %s", k.want, verdicts(res.Results), out.Detail)
			return
		}
		k.got.Add(1)
	}
}

// is compares without making text of every result.
func (k *soaked) is(out *hint.Result) bool {
	rest, ok := strings.CutPrefix(k.want[strings.IndexByte(k.want, '=')+1:], out.Status.String())
	return ok && strings.TrimPrefix(rest, "/") == out.Reason.String()
}

// soakChanges loads, swaps and unloads a guest beside the others, again and again.
func soakChanges(t *testing.T, r *runtime.Runtime, stop chan struct{}) {
	ctx := context.Background()
	spec := func(v byte) runtime.GuestSpec {
		s := scriptedGuest(t, v)
		s.Name = "beside"
		s.Module = withManifest(t, s.Module, strings.NewReplacer("demo.echo", "demo.b1", "demo.other", "demo.b2").Replace(scriptedManifest))
		return s
	}
	one, two := spec('1'), spec('2')
	for {
		for _, do := range []func() error{
			func() error { return r.Load(ctx, one) },
			func() error { return r.Swap(ctx, two) },
			func() error { return r.Rollback(ctx, "beside") },
			func() error { return r.Unload(ctx, "beside") },
		} {
			if err := do(); err != nil {
				t.Error(err)
			}
		}
		statsOf(r, "scripted") // a scrape takes slots, too
		select {
		case <-stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func reasonNamed(t *testing.T, name string) abi.Reason {
	t.Helper()
	for i := range abi.Reason(runtime.NumReasons) {
		if i.String() == name {
			return i
		}
	}
	t.Fatalf("no reason is named %s", name)
	return 0
}

// TestSoakAttack calls, unloads and loads every attack of the corpus, round and round,
// while a good guest answers every hint. Afterwards the attackers are gone with all that
// they took.
func TestSoakAttack(t *testing.T) {
	engine := &counted{Engine: wazero.New(wazero.Config{})}
	field := newAttackedOn(t, engine)
	r := field.runtime
	specs := attackers(t)
	hostile := int(soakCalls(t, int64(200*len(specs))) / 100)
	besieged := func(hostile int) (p99 time.Duration, calls int) {
		bodies := loadAll(t, r, specs)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for n := range hostile {
				besiege(t, r, specs, bodies, n)
			}
		}()
		p99, calls = goodTraffic(t, r, done, 0)
		for _, g := range specs {
			if err := r.Unload(t.Context(), g.Name); err != nil {
				t.Error(err)
			}
		}
		engine.settled(t, 3, 1)
		return p99, calls
	}
	besieged(len(specs)) // to its working size
	alone, _ := goodTraffic(t, r, nil, 20_000)
	before := hold()
	p99, calls := besieged(hostile)
	after := hold()
	if s := statsOf(r, "good"); s.Traps != [runtime.NumTraps]uint64{} || s.Unavailable != 0 || s.Accepted != s.Calls {
		t.Errorf("the good guest: %+v", s)
	}
	t.Logf("%d attacks beside %d hints: p99 %s, alone %s; before %+v, after %+v", hostile, calls, p99, alone, before, after)
	if after.goroutines > before.goroutines || after.descriptors > before.descriptors || after.heap > before.heap+(8<<20) || after.resident > before.resident+(32<<20) {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

// goodTraffic calls the good guest until done is closed, and at least so many times. It
// tells the 99th percentile.
func goodTraffic(t *testing.T, r *runtime.Runtime, done chan struct{}, least int) (p99 time.Duration, calls int) {
	res := r.NewResponse()
	req := runtime.Request{Body: envelope("demo.good:a")}
	took := make([]time.Duration, 0, 1<<16) // the last so many
	for {
		select {
		case <-done:
			done = nil
		default:
		}
		if calls >= least && done == nil {
			break
		}
		begun := time.Now()
		if err := r.Dispatch(&req, res); err != nil {
			t.Fatal(err)
		}
		d := time.Since(begun)
		if len(took) < cap(took) {
			took = append(took, d)
		} else {
			took[calls%len(took)] = d
		}
		if calls++; res.Results[0].Status != abi.StatusAccepted {
			t.Fatalf("the good guest answers %s", verdicts(res.Results))
		}
	}
	slices.Sort(took)
	return took[len(took)*99/100], calls
}
