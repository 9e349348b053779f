package enginetest

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
)

// functions are those of the module "test", with every type that crosses the boundary.
func (h *hosts) functions() []runtime.HostFunction {
	i32, i64, f32, f64 := abi.I32, abi.I64, abi.F32, abi.F64
	return []runtime.HostFunction{
		{Name: "nothing", Fuel: 7, Call: func(c *runtime.Call, mem []byte, _ []uint64) {
			if h.nothing != nil {
				h.nothing(c, mem)
			}
		}},
		{Name: "mix", Params: []abi.ValType{i32, i64, i32}, Results: []abi.ValType{i64}, Call: func(_ *runtime.Call, _ []byte, stack []uint64) {
			if h.mix != nil {
				stack[0] = h.mix(uint32(stack[0]), stack[1], uint32(stack[2]))
				return
			}
			stack[0] = stack[1] - uint64(uint32(stack[0])) + uint64(uint32(stack[2]))
		}},
		// The upper half of an i32 result is dirty: an engine drops it.
		{Name: "narrow", Params: []abi.ValType{i32}, Results: []abi.ValType{i32}, Call: func(_ *runtime.Call, _ []byte, stack []uint64) {
			stack[0] = 0xdeadbeef<<32 | uint64(^uint32(stack[0]))
		}},
		{Name: "wide", Params: []abi.ValType{f32, f64}, Results: []abi.ValType{f64}, Call: func(_ *runtime.Call, _ []byte, stack []uint64) {
			a, b := math.Float32frombits(uint32(stack[0])), math.Float64frombits(stack[1])
			stack[0] = math.Float64bits(float64(a) * b)
		}},
		{Name: "single", Params: []abi.ValType{f64}, Results: []abi.ValType{f32}, Call: func(_ *runtime.Call, _ []byte, stack []uint64) {
			stack[0] = 0xdeadbeef<<32 | uint64(math.Float32bits(float32(math.Float64frombits(stack[0]))))
		}},
	}
}

// hostFunctions: a host function gets the call's own Call, its arguments in order, and
// gives its result.
func (x *exam) hostFunctions() {
	var seen []uint64
	var got *runtime.Call
	g := x.start("hosts", &hosts{
		nothing: func(c *runtime.Call, _ []byte) {
			if !c.InHost() {
				x.Errorf("EnterHost was not called before a host function")
			}
			got = c
		},
		mix: func(a uint32, b uint64, c uint32) uint64 {
			seen = append(seen, uint64(a), b, uint64(c))
			return 0xfedcba9876543210
		},
	})
	g.want(runtime.ExportHandle, 0, 0, 0, 0)
	if got != g.c {
		x.Errorf("a host function got another Call than the caller's")
	}
	if g.c.InHost() {
		x.Errorf("LeaveHost was not called after a host function")
	}
	another := runtime.NewCall(runtime.CallConfig{})
	if err := g.Call(another, runtime.ExportHandle, make([]uint64, 3)); err != nil || got != another {
		x.Errorf("the second call's Call did not reach a host function (%v)", err)
	}
	g.want(runtime.ExportHandle, 0xfedcba9876543210, 1, 0xfffffffe, 0xfffffffd)
	if want := []uint64{0xfffffffe, 0xfffffffcfffffffd, 0xfffffffd}; !slices.Equal(seen, want) {
		x.Errorf("a host function got %x, want %x", seen, want)
	}
	g.want(runtime.ExportHandle, 0xffffffffffffff00, 2, 0xff)
	g.want(runtime.ExportHandle, 1<<64-21, 3, 1<<32-3, 7)
	g.want(runtime.ExportHandle, uint64(math.Float32bits(-3)), 4, 1<<32-3)
	calls := 0
	h := &hosts{nothing: func(*runtime.Call, []byte) { calls++ }}
	x.start("hosts", h).want(runtime.ExportHandle, 5, 5, 1000)
	if calls != 1000 {
		x.Errorf("%d calls of a host function, want 1000", calls)
	}
}

// hostMemory: a host function reads and writes the memory as it is at that moment.
func (x *exam) hostMemory() {
	var sizes []int
	g := x.start("hosts", &hosts{nothing: func(_ *runtime.Call, mem []byte) {
		sizes = append(sizes, len(mem))
		mem[len(mem)-1] = 9
		binary.LittleEndian.PutUint32(mem[16:], binary.LittleEndian.Uint32(mem[16:])+1)
	}})
	binary.LittleEndian.PutUint32(g.Memory()[16:], 0xfffffff0)
	g.want(runtime.ExportHandle, 0xfffffff1, 0, 16)
	g.want(runtime.ExportArena, 4, 3)
	g.want(runtime.ExportHandle, 0xfffffff3, 0, 16)
	if want := []int{1 << 16, 4 << 16, 4 << 16}; !slices.Equal(sizes, want) {
		x.Errorf("host functions saw memories of %d bytes, want %d", sizes, want)
	}
	if mem := g.Memory(); len(mem) != 4<<16 || mem[1<<16-1] != 9 || mem[4<<16-1] != 9 || binary.LittleEndian.Uint32(mem[16:]) != 0xfffffff3 {
		x.Errorf("what host functions wrote is not in the memory of %d bytes", len(mem))
	}
}

// hostFuel: while a host function runs, the instance's fuel can be read and lowered.
func (x *exam) hostFuel() {
	var g *guest
	var inside int64
	lower := int64(0)
	h := &hosts{nothing: func(*runtime.Call, []byte) {
		inside = g.Fuel()
		g.SetFuel(inside - lower)
	}}
	m := x.module("hosts", h)
	g = x.instance(m)
	free := g.run(runtime.ExportHandle, 1000, 0, 0, 0)
	if used := 1000 - inside; free.trap != nil || used <= 0 || used > free.fuel {
		x.Errorf("a host function saw %d of 1000 fuel left; the call used %d", inside, free.fuel)
	}
	lower = 100
	if out := g.run(runtime.ExportHandle, 1000, 0, 0, 0); out.trap != nil || out.fuel != free.fuel+100 {
		x.Errorf("a host function that cost 100 made the call cost %d instead of %d", out.fuel, free.fuel)
	}
	// To the last unit; then one more; then far more, in a loop that must not go on.
	if out := g.run(runtime.ExportHandle, free.fuel+100, 0, 0, 0); out.trap != nil {
		x.Errorf("a call with the fuel that it needs: %v", out.trap)
	}
	for _, c := range []struct{ fuel, cost, op int64 }{{free.fuel + 99, 100, 0}, {1000, 1 << 40, 0}, {plenty, 1 << 40, 5}} {
		g, lower = x.instance(m), c.cost
		out := g.run(runtime.ExportHandle, c.fuel, uint64(c.op), 1<<30)
		if out.trap == nil || out.trap.Kind != runtime.TrapOutOfFuel || g.Fuel() >= 0 {
			x.Errorf("a host function that took %d fuel of %d: %v, %d left", c.cost, c.fuel, out.trap, g.Fuel())
		}
	}
}

// hostPanics: a panic in a host function ends the call and nothing else, and is told
// apart from a trap of the guest.
func (x *exam) hostPanics() {
	var g *guest
	var boom func()
	h := &hosts{nothing: func(*runtime.Call, []byte) { boom() }}
	m := x.module("hosts", h)
	for _, c := range []struct {
		name string
		boom func()
	}{
		{"a string", func() { panic("boom") }},
		{"an error", func() { panic(errBoom{}) }},
		{"a string of lines", func() { panic("boom\nand more\n") }},
		{"a number", func() { panic(42) }},
		{"a division", func() { _ = 1 / len(g.c.Guest()[:0]) }},
		{"an index", func() { _ = make([]int, 1)[len(h.functions())] }},
		{"a nil pointer", func() { _ = *(*int)(nil) }},
		{"after the fuel", func() { g.SetFuel(-5); panic("boom") }},
	} {
		g, boom = x.instance(m), c.boom
		out := g.run(runtime.ExportHandle, plenty, 5, 1000)
		if out.trap == nil || out.trap.Kind != runtime.TrapHostPanic || !g.c.InHost() {
			x.Errorf("a host function that panicked with %s: %v, in host %t", c.name, out.trap, g.c.InHost())
		}
		boom = func() {}
		x.instance(m).want(runtime.ExportHandle, 5, 5, 3)
	}
	g, boom = x.instance(m), func() { panic("boom") }
	if out := g.run(runtime.ExportHandle, plenty, 0, 0, 0); out.trap == nil || !strings.HasPrefix(out.trap.Msg, "a host function panicked: boom") {
		x.Errorf("a host function that panicked with boom: %v", out.trap)
	}
}

type errBoom struct{}

func (errBoom) Error() string { return "boom" }
