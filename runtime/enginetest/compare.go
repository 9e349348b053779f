package enginetest

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kvrt/kvrt/runtime"
)

// Compare runs the same calls on two engines, far more of them than golden.txt has, and
// fails where results, memories, traps or fuel differ. guests, by their names, are
// modules of the ABI that are run beside those of this package; it may be nil.
func Compare(t *testing.T, a, b runtime.Engine, guests map[string][]byte) {
	for name, ops := range map[string]int{"loops": 16, "bulk": 10, "tables": 13, "nans": 17, "traps": 29, "depth": 8, "state": 2, "memory": 3} {
		t.Run(name, func(t *testing.T) { comparing(t, a, b, nil).walk(name, ops) })
	}
	for _, name := range []string{"integers", "floats", "vectors"} {
		t.Run(name, func(t *testing.T) { comparing(t, a, b, nil).operands(name) })
	}
	t.Run("cuts", func(t *testing.T) { comparing(t, a, b, nil).cuts() })
	all := map[string][]byte{"kv-fetch": nil, "kv-retain": nil, "router-hint": nil} // nil: of testdata
	maps.Copy(all, guests)
	for name := range all {
		t.Run(name, func(t *testing.T) { comparing(t, a, b, all).frames(name) })
	}
}

// duel is two engines that make the same calls.
type duel struct {
	tb
	sides [2]*script
	rand  *rand.Rand // the same in each run, so that a difference is found again
	found int
}

func comparing(t tb, a, b runtime.Engine, guests map[string][]byte) *duel {
	d := &duel{tb: t, rand: rand.New(rand.NewPCG(1, 2))}
	for i, e := range []runtime.Engine{a, b} {
		s := (&exam{tb: t, engine: e, guests: guests}).script()
		t.Cleanup(s.close)
		d.sides[i] = s
	}
	return d
}

// enough are the differences after which no more are looked for.
const enough = 10

// differ reports one, and tells whether to stop.
func (d *duel) differ(a, b, format string, args ...any) bool {
	d.Helper()
	if a != b {
		d.found++
		d.Errorf("%s:\n%s: %s\n%s: %s", fmt.Sprintf(format, args...), d.sides[0].engine.Name(), a, d.sides[1].engine.Name(), b)
	}
	return d.found >= enough
}

// fresh begins again on both sides.
func (d *duel) fresh(module string) {
	for _, s := range d.sides {
		s.fresh(module, nil)
	}
}

// both makes a call on both sides. It is false after a trap.
func (d *duel) both(fuel int64, f runtime.Export, args ...uint64) (alive bool) {
	d.Helper()
	var said [2]string
	for i, s := range d.sides {
		out := s.g.run(f, fuel, args...)
		said[i] = s.told(out)
		alive = out.trap == nil
	}
	d.differ(said[0], said[1], "%s%x with %d fuel", runtime.ExportNames()[f], args, fuel)
	return alive && said[0] == said[1]
}

// told is an outcome with all that can be seen of it.
func (s *script) told(out outcome) string {
	if out.trap != nil {
		return fmt.Sprintf("%s: %s, fuel %d", kinds[out.trap.Kind], out.trap.Msg, out.fuel)
	}
	return fmt.Sprintf("%#x, fuel %d, memory %08x", out.result, out.fuel, crc32.ChecksumIEEE(s.g.Memory()))
}

// number is an argument: small, near an end of a range, or anything.
func (d *duel) number() uint64 {
	switch d.rand.IntN(6) {
	case 0:
		return uint64(d.rand.Uint32())
	case 1:
		return uint64(uint32(1<<d.rand.IntN(32) - d.rand.IntN(3)))
	case 2:
		return uint64(uint32(-d.rand.IntN(9)))
	}
	return uint64(d.rand.IntN(70))
}

// walk makes calls of a module's operations, one after the other, each on what the last
// one left behind.
func (d *duel) walk(module string, ops int) {
	d.fresh(module)
	for range 300 {
		fuel := int64(20_000)
		if d.rand.IntN(8) == 0 {
			fuel = int64(d.rand.IntN(500))
		}
		args := []uint64{uint64(d.rand.IntN(ops)), d.number(), d.number()}
		if module == "depth" {
			args[1] %= 3000
		}
		if !d.both(fuel, runtime.ExportHandle, args...) {
			if d.found >= enough {
				return
			}
			d.fresh(module)
		}
	}
}

// operands runs every instruction on operands that no one chose.
func (d *duel) operands(module string) {
	var list []operands
	special := grid()
	for range 40 {
		var o operands
		for i := range o {
			o[i] = special[d.rand.IntN(len(special))][i]
			switch d.rand.IntN(3) {
			case 0: // anything
				binary.LittleEndian.PutUint64(o[i][:], d.rand.Uint64())
				binary.LittleEndian.PutUint64(o[i][8:], d.rand.Uint64())
			case 1: // near something special
				o[i][d.rand.IntN(16)] ^= 1 << d.rand.IntN(8)
			}
		}
		list = append(list, o)
	}
	d.fresh(module)
	for _, st := range d.sides[0].steps() {
		if st.module != module {
			continue
		}
		var op uint64
		if _, err := fmt.Sscan(st.args[0], &op); err != nil {
			d.Fatalf("%v", err)
		}
		for i := range list {
			var said [2]string
			alive := true
			for k, s := range d.sides {
				bits, out := s.apply(op, &list[i])
				said[k] = fmt.Sprintf("%x, %v, fuel %d", bits, out.trap, out.fuel)
				alive = alive && out.trap == nil
			}
			if d.differ(said[0], said[1], "%s.wat, instruction %d of %x", module, op, list[i]) {
				return
			}
			if !alive {
				d.fresh(module)
			}
		}
	}
}

// cuts makes each call of golden.txt with less fuel than it takes: what is left of it,
// and where it ends, is the same.
func (d *duel) cuts() {
	for _, st := range d.sides[0].steps() {
		if st.module == "" || st.export == "sweep" || st.goes {
			continue
		}
		var whole outcome
		for part := int64(0); part <= 4; part++ {
			var said [2]string
			for i, s := range d.sides {
				s.fresh(st.module, nil)
				out := s.invoke(&st, plenty*(1-min(part, 1))+whole.fuel*part/5)
				if said[i] = s.told(out); part == 0 && i == 1 {
					whole = out
				}
			}
			if d.differ(said[0], said[1], "%s with %d/5 of %d fuel", st.call(), part, whole.fuel) {
				return
			}
		}
	}
}

// contexts are routing contexts that policies have something to say to.
func contexts() []string {
	const worker = `{"worker_id":%s,"worker_type":"decode","source_control_endpoint":"tcp://127.0.0.1:1","matched_blocks":{"gpu":%d}}`
	full := `{"request_id":"r1","selected":` + fmt.Sprintf(worker, "7", 0) + `,"candidates":[` + fmt.Sprintf(worker, `"w"`, 2) + "," + fmt.Sprintf(worker, "9", 2) + `],
		"block_hashes":[1,18446744073709551615,3],"hash_kind":"engine","block_size":16,"prompt_tokens":50,"tools_declared":true,
		"session":{"session_id":"s1","session_final":%v,"input_trigger":"tool_result"},
		"request_hint":{"actions":[{"action_type":"kv.retain","payload":{"ttl_seconds":1.5}}]}}`
	return []string{`{"request_id":"r1","selected":{"worker_id":7}}`, fmt.Sprintf(full, true), fmt.Sprintf(full, false)}
}

// frames gives a guest of the ABI frames that a host makes, and the same with bytes that
// no host makes.
func (d *duel) frames(module string) {
	export := runtime.ExportHandle
	docs := []string{`{}`, `{"block_hashes":[1,18446744073709551615]}`, `{"source_control_endpoint":"tcp://127.0.0.1:1","block_hashes":[7]}`,
		`{"scope":"s","directives":[{"start":0,"end":64,"priority":50,"duration":600},{"priority":1}]}`, `{"directives":[{"priority":50.5}],"block_hashes":"x"}`, `@hashes`, `@directives`}
	for _, s := range d.sides {
		s.guest(module)
		switch {
		case s.g.Has(runtime.ExportParse):
			export = runtime.ExportParse
		case s.g.Has(runtime.ExportFormulate):
			export, docs = runtime.ExportFormulate, contexts()
		}
	}
	for _, doc := range docs {
		frame := d.sides[0].frame(module, export, doc)
		for round := range 50 {
			mutant := slices.Clone(frame)
			for range min(round, 4) {
				at := d.rand.IntN(min(len(mutant), 1<<(3+d.rand.IntN(12))))
				mutant[at] = byte(d.number())
			}
			arena := d.sides[0].arena
			for _, s := range d.sides {
				copy(s.g.Memory()[s.arena:], mutant)
			}
			args := []uint64{uint64(arena), uint64(len(frame)), 0}
			if export != runtime.ExportHandle {
				args = args[:2]
			}
			if !d.both(plenty, export, args...) {
				if d.found >= enough {
					return
				}
				for _, s := range d.sides {
					s.guest(module)
				}
			}
		}
	}
}
