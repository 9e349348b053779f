package enginetest

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"

	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/admit"
)

// step is a line of golden.txt: a call, and how it must end.
type step struct {
	module  string
	export  string   // of runtime.ExportNames, without "kvrt_"; or sweep
	args    []string // numbers, or a document that becomes a frame
	goes    bool     // goes on where the last line without a trap ended
	outcome string
}

// call is the left side of the line.
func (s *step) call() string {
	words := append([]string{s.module, s.export}, s.args...)
	if s.goes {
		words[0] = "+"
	}
	return strings.Join(words, " ")
}

// steps reads golden.txt. Comments and empty lines stay in their places, as steps
// without a module.
func (x *exam) steps() []step {
	x.Helper()
	text, err := testdata.ReadFile("testdata/golden.txt")
	if err != nil {
		x.Fatalf("%v", err)
	}
	var steps []step
	module := ""
	for i, l := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if l == "" || l[0] == '#' {
			steps = append(steps, step{outcome: l})
			continue
		}
		call, outcome := l, ""
		if at := strings.IndexAny(l, "=!"); at > 0 {
			call, outcome = l[:at], l[at:]
		}
		words := strings.Fields(call)
		if len(words) < 2 {
			x.Fatalf("golden.txt:%d: want a module or +, an export and its arguments: %s", i+1, l)
		}
		if words[0] != "+" {
			module = words[0]
		}
		steps = append(steps, step{module: module, export: words[1], args: words[2:], goes: words[0] == "+", outcome: outcome})
	}
	return steps
}

// golden holds the engine to golden.txt.
func (x *exam) golden() {
	s := x.script()
	defer s.close()
	wrong := 0
	for _, want := range x.steps() {
		if want.module == "" {
			continue
		}
		if got := s.run(&want); got != want.outcome {
			if wrong++; wrong > 20 {
				x.Fatalf("and more")
			}
			x.Errorf("%s:\n got %s\nwant %s", want.call(), got, cmp.Or(want.outcome, "(see how to fill it in: golden.txt)"))
		}
	}
}

// script runs steps.
type script struct {
	*exam
	modules map[string]runtime.Module
	infos   map[string]*admit.Rewritten
	past    []step // on the instance at hand
	g       *guest
	arena   uint32 // where its frames go
	swept   string // module of the instance, while sweeps follow one another
}

func (x *exam) script() *script {
	return &script{exam: x, modules: map[string]runtime.Module{}, infos: map[string]*admit.Rewritten{}}
}

func (s *script) close() {
	if s.g != nil {
		s.g.close()
		s.g = nil
	}
	for _, m := range s.modules {
		s.closeModule(m)
	}
	clear(s.modules)
}

// fresh takes a new instance and brings it to where the past steps had it.
func (s *script) fresh(module string, past []step) {
	if s.g != nil {
		s.g.close()
		s.g = nil
	}
	m := s.modules[module]
	if m == nil {
		_, s.infos[module] = s.metered(module)
		m = s.compiled(module, nil)
		s.modules[module] = m
	}
	s.g = s.open(m)
	for i := range past {
		s.invoke(&past[i], plenty)
	}
}

// run runs a step, and tells how it ended. A call that gives a result is repeated, with
// the fuel that it took and with one less.
func (s *script) run(st *step) string {
	s.Helper()
	if !st.goes {
		s.past = nil
	}
	if st.export == "sweep" {
		return s.sweep(st, grid())
	}
	if !st.goes || s.g == nil {
		s.fresh(st.module, s.past)
	}
	out := s.invoke(st, plenty)
	past := s.past
	if out.trap != nil {
		s.g.close()
		s.g = nil
		return "! " + kinds[out.trap.Kind] + ": " + out.trap.Msg + ", fuel " + strconv.FormatInt(out.fuel, 10)
	}
	result := fmt.Sprintf("= %#x fuel %d memory %08x", out.result, out.fuel, crc32.ChecksumIEEE(s.g.Memory()))
	s.fresh(st.module, past)
	if less := s.invoke(st, out.fuel-1); less.trap == nil || less.trap.Kind != runtime.TrapOutOfFuel {
		s.Errorf("%s: with %d fuel, one less than it takes: %v", st.call(), out.fuel-1, less.trap)
	}
	s.fresh(st.module, past)
	s.past = append(past, *st)
	if again := s.invoke(st, out.fuel); again.trap != nil || again.fuel != out.fuel || again.result != out.result {
		s.Errorf("%s: with the %d fuel that it takes: %#x, %v, %d used", st.call(), out.fuel, again.result, again.trap, again.fuel)
	}
	return result
}

// kinds are the kinds of trap in golden.txt.
var kinds = [...]string{runtime.TrapGuest: "guest", runtime.TrapTimeout: "timeout", runtime.TrapOutOfFuel: "fuel", runtime.TrapHostPanic: "host"}

// invoke makes the call of a step. A document becomes a frame in the arena, and the two
// arguments that say where it is.
func (s *script) invoke(st *step, fuel int64) outcome {
	s.Helper()
	f := runtime.Export(slices.IndexFunc(exports(), func(name string) bool { return strings.TrimPrefix(name, "kvrt_") == st.export }))
	var args []uint64
	for _, a := range st.args {
		if a[0] == '{' || a[0] == '@' {
			frame := s.frame(st.module, f, a)
			copy(s.g.Memory()[s.arena:], frame)
			args = append(args, uint64(s.arena), uint64(len(frame)))
			continue
		}
		n, err := strconv.ParseInt(a, 0, 64)
		if err != nil {
			s.Fatalf("%s: %v", st.call(), err)
		}
		args = append(args, uint64(uint32(n)))
	}
	out := s.g.run(f, fuel, args...)
	if f == runtime.ExportArena && out.trap == nil {
		s.arena = uint32(out.result >> 32)
	}
	return out
}

func exports() []string {
	names := runtime.ExportNames()
	return names[:]
}
