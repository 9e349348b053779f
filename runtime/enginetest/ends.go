package enginetest

import (
	"github.com/kvrt/kvrt/runtime"
)

// traps: each kind of trap ends the call and nothing else, with the words of the
// WebAssembly specification's own tests, since they can become the detail of a result.
func (x *exam) traps() {
	m := x.module("traps", nil)
	for _, c := range []struct {
		op, a, b uint64
		msg      string
	}{
		{0, 0, 0, "unreachable"},
		{1, 65533, 0, "out of bounds memory access"},
		{1, 1<<32 - 4, 0, "out of bounds memory access"},
		{2, 1, 0, "out of bounds memory access"}, // at 2^32
		{3, 65535, 0, "out of bounds memory access"},
		{5, 1, 0, "integer divide by zero"},
		{5, 1 << 31, 1<<32 - 1, "integer overflow"},
		{6, 1, 0, "integer divide by zero"},
		{7, 1, 0, "integer divide by zero"},
		{8, 1, 0, "integer divide by zero"},
		{9, 1 << 31, 1<<32 - 1, "integer overflow"},
		{10, 1, 0, "integer divide by zero"},
		{11, 0, 0, "invalid conversion to integer"},
		{11, 1, 0, "integer overflow"},
		{12, 1 << 16, 1 << 15, "integer overflow"},
		{13, 1, 2, "integer overflow"},
		{14, 1<<31 - 1, 3, "integer overflow"},
		{15, 0, 0, "indirect call type mismatch"},
		{16, 1, 2, "invalid table access"}, // null
		{16, 4, 4, "invalid table access"},
		{17, 0, 0, "invalid table access"},
		{18, 4, 0, "invalid table access"},
		{19, 1<<32 - 1, 0, "invalid table access"},
		{20, 2, 3, "invalid table access"},
		{21, 3, 2, "invalid table access"},
		{22, 1, 2, "invalid table access"},
		{23, 65535, 2, "out of bounds memory access"},
		{24, 65530, 7, "out of bounds memory access"},
		{25, 1, 10, "out of bounds memory access"},
		{26, 0, 1, "out of bounds memory access"},
		{28, 65521, 0, "out of bounds memory access"},
		{40, 0, 0, "invalid table access"}, // kvrt_handle's own call of a null entry
		{64, 0, 0, "invalid table access"},
	} {
		g := x.instance(m)
		out := g.run(runtime.ExportHandle, plenty, c.op, c.a, c.b)
		if out.trap == nil || out.trap.Kind != runtime.TrapGuest || out.trap.Msg != c.msg {
			x.Errorf("operation %d of %d and %d: %v, want a trap of the guest: %s", c.op, c.a, c.b, out.trap, c.msg)
		}
		if g.c.InHost() || out.fuel < 0 {
			x.Errorf("operation %d: after the trap in a host function (%t) or with less than no fuel used (%d)", c.op, g.c.InHost(), out.fuel)
		}
	}
	x.instance(m).want(runtime.ExportHandle, 7, 6, 7, 1)
}

// fuel: the counter is set and read by the host; what a call needs is exact, and with
// less it ends out of fuel, whatever it does.
func (x *exam) fuel() {
	m := x.module("loops", nil)
	g := x.instance(m)
	for _, fuel := range []int64{0, 1, -1, 1 << 62, 12345} {
		if g.SetFuel(fuel); g.Fuel() != fuel {
			x.Errorf("fuel set to %d reads as %d", fuel, g.Fuel())
		}
	}
	other := x.instance(m)
	other.SetFuel(77)
	if g.Fuel() != 12345 {
		x.Errorf("the fuel of one instance is that of another")
	}
	for _, c := range []struct{ op, a, b uint64 }{{0, 100, 0}, {3, 12, 0}, {4, 1071, 462}, {5, 500, 0}, {7, 40, 3}, {9, 4, 5}} {
		need := g.run(runtime.ExportHandle, plenty, c.op, c.a, c.b)
		if need.trap != nil || need.fuel <= 0 {
			x.Fatalf("operation %d: %v, %d fuel", c.op, need.trap, need.fuel)
		}
		if again := g.run(runtime.ExportHandle, need.fuel, c.op, c.a, c.b); again.trap != nil || again.fuel != need.fuel || again.result != need.result {
			x.Errorf("operation %d with the %d fuel that it needs: %v, %d used", c.op, need.fuel, again.trap, again.fuel)
		}
		for _, short := range []int64{1, need.fuel / 2, need.fuel} {
			g := x.instance(m)
			out := g.run(runtime.ExportHandle, need.fuel-short, c.op, c.a, c.b)
			if out.trap == nil || out.trap.Kind != runtime.TrapOutOfFuel || g.Fuel() >= 0 {
				x.Errorf("operation %d with %d fuel less than the %d that it needs: %v, %d left", c.op, short, need.fuel, out.trap, g.Fuel())
			}
		}
	}
	// A loop and a tree of calls that no one waits for.
	for _, op := range []uint64{14, 15} {
		if out := x.instance(m).run(runtime.ExportHandle, plenty, op, 1000, 1000); out.trap == nil || out.trap.Kind != runtime.TrapOutOfFuel {
			x.Errorf("operation %d without end: %v", op, out.trap)
		}
	}
}

// depth: recursion ends at the same call on every engine, and not before.
func (x *exam) depth() {
	m := x.module("depth", nil)
	for op, deepest := range []uint64{1817, 583, 860, 1817, 1817, 1021, 1818, 1485} {
		g := x.instance(m)
		deeper := x.instance(m)
		if out := g.run(runtime.ExportHandle, plenty, uint64(op), deepest); out.trap != nil {
			x.Errorf("recursion %d of %d calls: %v", op, deepest, out.trap)
		}
		out := deeper.run(runtime.ExportHandle, plenty, uint64(op), deepest+1)
		if out.trap == nil || out.trap.Kind != runtime.TrapGuest || out.trap.Msg != "calls nested too deep" {
			x.Errorf("recursion %d of %d calls: %v, want it too deep", op, deepest+1, out.trap)
		}
		// What a call took, it gives back.
		if out := g.run(runtime.ExportHandle, plenty, uint64(op), deepest); out.trap != nil {
			x.Errorf("recursion %d of %d calls, again: %v", op, deepest, out.trap)
		}
	}
}
