package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hosts/clock"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/log"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

// BenchmarkAttack is the latency of a good guest's calls beside a guest that means well
// and computes as long as it may, and beside every attack of the corpus, called one
// after the other from the other side, with the default limits. After every eight calls
// that side unloads a guest and loads it again. The floor is what a goroutine costs that
// computes for as long as there is no guest at all: the other side then is Go code that
// spins. The two take turns within one run, so that what else the machine does falls on
// both.
func BenchmarkAttack(b *testing.B) {
	b.Run("busy", func(b *testing.B) {
		benchAttack(b, func(types int) []runtime.GuestSpec {
			var all []runtime.GuestSpec
			for i := range types {
				g := greedyGuest(b, runtime.Limits{Instances: 1})
				g.Name = fmt.Sprintf("busy-%d", i)
				g.Module = withManifest(b, greedy, strings.NewReplacer("demo.echo", fmt.Sprintf("demo.%d", i), `["greedy"]`, fmt.Sprintf(`["d%d"]`, i)).Replace(greedyManifest))
				all = append(all, g)
			}
			return all
		})
	})
	b.Run("attacked", func(b *testing.B) {
		benchAttack(b, func(int) []runtime.GuestSpec { return attackers(b) })
	})
}

// attackers are the handlers of the corpus that are loaded, each of a type of its own.
func attackers(t testing.TB) (all []runtime.GuestSpec) {
	for i, a := range attacks(t, "testdata/hostile") {
		if a.says["role"] == "parser" || a.expect[0] == "refused" {
			continue
		}
		g := a.spec(t)
		g.Name = a.name
		g.Module = withManifest(t, a.wasm, strings.Replace(hostileHandler, "demo.echo", fmt.Sprintf("demo.%d", i), 1))
		all = append(all, g)
	}
	return all
}

// loadAll loads guests and makes an envelope for each. An attack is in its second action.
func loadAll(t testing.TB, r *runtime.Runtime, specs []runtime.GuestSpec) (bodies [][]byte) {
	t.Helper()
	for _, g := range specs {
		if err := r.Load(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		info, err := runtime.Inspect(g.Name, g.Module)
		if err != nil {
			t.Fatal(err)
		}
		typ := info.Manifest.ActionTypes[0].Type
		bodies = append(bodies, envelope(typ+":f "+typ+":f"))
	}
	return bodies
}

// besiege makes the nth call, and after every eighth unloads a guest and loads it again.
func besiege(t testing.TB, r *runtime.Runtime, specs []runtime.GuestSpec, bodies [][]byte, n int) {
	if err := r.Dispatch(&runtime.Request{Body: bodies[n%len(bodies)]}, r.NewResponse()); err != nil {
		t.Error(err)
	}
	if n%8 != 7 {
		return
	}
	g := specs[n/8%len(specs)]
	if err := r.Unload(context.Background(), g.Name); err != nil {
		t.Error(err)
	}
	if err := r.Load(context.Background(), g); err != nil {
		t.Error(err)
	}
}

func benchAttack(b *testing.B, others func(types int) []runtime.GuestSpec) {
	allow, err := fetch.ParseAllowList(b.Context(), []string{"tcp://127.0.0.1"}, nil)
	if err != nil {
		b.Fatal(err)
	}
	good := runtime.GuestSpec{Name: "kv-fetch", Module: withManifest(b, kvFetch(b), `{"name":"good","version":"1.0.0","abi":1,"roles":["handler"],"action_types":[{"type":"kv.fetch"}],"capabilities":["kvrt_fetch","kvrt_log"]}`),
		Grants: []string{abi.ModuleFetch, abi.ModuleLog}}
	f := &fetchBench{store: fetch.New(fetch.Config{}), allow: allow}
	f.runtime = newRuntime(b, runtime.Config{Engine: wazero.New(wazero.Config{}), Hosts: []runtime.HostModule{fetch.NewHost(f.store, allow), log.Module{}, clock.Module{}}}, good)
	specs := others(20)
	bodies := loadAll(b, f.runtime, specs)
	var side atomic.Int32 // what the other side does
	const rests, spins, attacks, leaves = 0, 1, 2, 3
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ; {
			switch side.Load() {
			case rests:
				time.Sleep(100 * time.Microsecond)
			case attacks:
				besiege(b, f.runtime, specs, bodies, n)
				n++
			case leaves:
				return
			}
		}
	})
	defer wg.Wait()
	defer side.Store(leaves)
	res := f.runtime.NewResponse()
	q := &request{Request: runtime.Request{Body: fetchEnvelope(b, abi.FormatMsgpack, 1, 1), Format: abi.FormatMsgpack}}
	took := map[int32][]time.Duration{}
	for b.Loop() {
		for _, what := range []int32{rests, spins, attacks} {
			side.Store(what)
			time.Sleep(5 * time.Millisecond) // what was begun before ends meanwhile
			for end := time.Now().Add(attackRound); ; {
				begun := time.Now()
				if begun.After(end) {
					break
				}
				f.dispatch(b, q, res)
				took[what] = append(took[what], time.Since(begun))
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	for what, name := range map[int32]string{rests: "alone-", spins: "floor-", attacks: ""} {
		all := took[what]
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2]), name+"p50-ns")
		b.ReportMetric(float64(all[len(all)*99/100]), name+"p99-ns")
		b.ReportMetric(float64(all[len(all)*999/1000]), name+"p999-ns")
	}
}

// attackRound is how long each side has its turn: long enough for some loads, and short
// beside the moods of a shared machine.
const attackRound = 50 * time.Millisecond
