package admit

import (
	"context"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// costs are functions (i32) -> (i32) of testdata/cost, with an argument that
// keeps them busy for about a millisecond. Rewritten, a loop that does nothing
// and a tree of calls should take twice as long at most, branchy code half as
// long again.
var costs = []struct {
	file, name string
	n          uint64
}{
	{"loops", "loop", 1_000_000},
	{"loops", "tree", 100},
	{"loops", "fib", 23},
	{"json", "json", 20},
	{"loops", "scan", 15},
	{"json", "dedupe", 80},
	{"loops", "floats", 200_000},
	{"loops", "chase", 200_000},
}

// BenchmarkCost compares rewritten code with plain code and with what wazero's
// own deadline costs. The three take turns, and of each the fastest round counts,
// so that what else the machine does weighs little.
func BenchmarkCost(b *testing.B) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, c := range costs {
		b.Run(c.name, func(b *testing.B) {
			plain, err := os.ReadFile("testdata/cost/" + c.file + ".wasm")
			if err != nil {
				b.Fatal(err)
			}
			counted, _, err := Rewrite(plain, Options{Fuel: MaxFuel})
			if err != nil {
				b.Fatal(err)
			}
			var fns [3]api.Function
			for i, wasm := range [][]byte{plain, counted, plain} {
				rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCloseOnContextDone(i == 2))
				defer rt.Close(ctx)
				mod, err := rt.Instantiate(ctx, wasm)
				if err != nil {
					b.Fatal(err)
				}
				fns[i] = mod.ExportedFunction(c.name)
			}
			best := [3]time.Duration{math.MaxInt64, math.MaxInt64, math.MaxInt64}
			var stack [1]uint64
			for round := 0; b.Loop(); round++ {
				for i, fn := range fns {
					if i == 2 && round%16 != 0 {
						continue // it is slow
					}
					stack[0] = c.n
					start := time.Now()
					if err := fn.CallWithStack(ctx, stack[:]); err != nil {
						b.Fatal(err)
					}
					best[i] = min(best[i], time.Since(start))
				}
			}
			b.ReportMetric(0, "ns/op")
			for i, unit := range []string{"plain-ns", "rewritten-ns", "deadline-ns"} {
				b.ReportMetric(float64(best[i].Nanoseconds()), unit)
			}
			b.ReportMetric(float64(best[1])/float64(best[0]), "ratio")
		})
	}
}

func ExampleRewrite() {
	wasm, err := os.ReadFile("testdata/cost/loops.wasm")
	if err != nil {
		panic(err)
	}
	counted, info, err := Rewrite(wasm, Options{MemoryPages: 2})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	rt := wazero.NewRuntime(ctx)
	defer rt.Close(ctx)
	guest, err := rt.Instantiate(ctx, counted)
	if err != nil {
		panic(err)
	}
	fuel := guest.ExportedGlobal(ExportFuel).(api.MutableGlobal)
	depth := guest.ExportedGlobal(ExportDepth).(api.MutableGlobal)
	fib := guest.ExportedFunction("fib")
	for _, budget := range []uint64{100_000, 1_000} {
		fuel.Set(budget)
		results, err := fib.Call(ctx, 10)
		switch left := int64(fuel.Get()); {
		case left < 0:
			fmt.Println("out of fuel")
			depth.Set(uint64(info.Depth)) // to go on with this instance
		case err != nil:
			fmt.Println("trap")
		default:
			fmt.Println(results[0], "for", budget-uint64(left))
		}
	}
	// Output:
	// 55 for 1678
	// out of fuel
}
