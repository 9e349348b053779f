package enginetest

import (
	"bytes"
	"sync"

	"github.com/kvrt/kvrt/runtime"
)

// instances: one module's instances share nothing.
func (x *exam) instances() {
	const fresh = 5 + 11 + 17 + 19 + 2_000 + 100_000
	m := x.module("state", nil)
	a := x.instance(m)
	b := x.instance(m)
	a.want(runtime.ExportHandle, fresh, 1)
	a.want(runtime.ExportHandle, 6+12+18+23+3_000+200_000, 0)
	a.want(runtime.ExportHandle, 6+12+18+23+4_000+300_000, 0)
	b.want(runtime.ExportHandle, fresh, 1) // its segments are there still
	if out := b.run(runtime.ExportHandle, plenty, 1); out.trap == nil {
		x.Errorf("a dropped segment was used")
	}
	x.instance(m).want(runtime.ExportHandle, fresh, 1)
	a.want(runtime.ExportHandle, 6+12+18+23+4_000+400_000, 0)
	a.Memory()[0] = 200
	x.instance(m).want(runtime.ExportHandle, fresh, 1)
}

// modules: two guests that import the same names reach their own hosts, and closing one
// leaves the other.
func (x *exam) modules() {
	give := func(n uint64) *hosts { return &hosts{mix: func(uint32, uint64, uint32) uint64 { return n }} }
	a := x.start("hosts", give(1))
	gone := x.compiled("hosts", give(2))
	b := x.open(gone)
	c := x.start("hosts", give(3))
	a.want(runtime.ExportHandle, 1, 1)
	b.want(runtime.ExportHandle, 2, 1)
	c.want(runtime.ExportHandle, 3, 1)
	b.close()
	x.closeModule(gone)
	a.want(runtime.ExportHandle, 1, 1)
	c.want(runtime.ExportHandle, 3, 1)
}

// canary: what an instance left in memory does not reach the next one, however it ended.
func (x *exam) canary() {
	m := x.module("memory", nil)
	for round := range 20 {
		g := x.open(m)
		g.want(runtime.ExportArena, 1, 3)
		g.want(runtime.ExportHandle, 0, 0, 3<<16)
		mem := g.Memory()
		if string(mem[8:12]) != "kvrt" {
			x.Errorf("round %d: the data of the module is %q", round, mem[8:12])
		}
		copy(mem[8:12], "\x00\x00\x00\x00")
		if i := bytes.IndexFunc(mem, func(r rune) bool { return r != 0 }); i >= 0 {
			x.Fatalf("round %d: byte %d of a new instance is %d", round, i, mem[i])
		}
		for i := range mem {
			mem[i] = 0xaa
		}
		if round%2 == 0 {
			if out := g.run(runtime.ExportHandle, plenty, 0, 1<<31); out.trap == nil {
				x.Errorf("a load at 2^31 did not trap")
			}
		}
		g.close()
	}
}

// many: instances live side by side and are closed in any order.
func (x *exam) many() {
	const n = 40
	m := x.module("memory", nil)
	var live [n]*guest
	for i := range live {
		live[i] = x.open(m)
		live[i].want(runtime.ExportHandle, 0, 1, uint64(1000+i), uint64(i))
	}
	for i := range live {
		at := i * 17 % n // each once, since 17 and n have no common factor
		live[at].want(runtime.ExportHandle, uint64(at), 0, uint64(1000+at))
		live[at].want(runtime.ExportHandle, 0, 0, uint64(1000+(at+1)%n))
		live[at].close()
		if i%8 == 0 {
			g := x.open(m)
			g.want(runtime.ExportHandle, 0, 0, uint64(1000+at))
			g.close()
		}
	}
}

// parallel: modules are compiled, instances made, called and closed on several
// goroutines at once, each instance on one at a time.
func (x *exam) parallel() {
	m := x.module("loops", nil)
	shared := make(chan *guest, 2)
	shared <- x.instance(m)
	shared <- x.instance(m)
	var wait sync.WaitGroup
	for worker := range 4 {
		wait.Go(func() {
			for round := range 8 {
				g := <-shared // goes from one goroutine to another
				g.want(runtime.ExportHandle, 144, 3, 12)
				shared <- g

				own := x.open(m)
				own.want(runtime.ExportHandle, 5050, 0, 100)
				if out := own.run(runtime.ExportHandle, 500, 14); out.trap == nil || out.trap.Kind != runtime.TrapOutOfFuel {
					x.Errorf("a loop without end: %v", out.trap)
				}
				own.close()
				if (worker+round)%4 == 0 {
					x.compileAndCall(uint64(worker))
				}
			}
		})
	}
	wait.Wait()
}

func (x *exam) compileAndCall(n uint64) {
	m := x.compiled("hosts", &hosts{mix: func(uint32, uint64, uint32) uint64 { return n }})
	g := x.open(m)
	g.want(runtime.ExportHandle, n, 1)
	g.close()
	x.closeModule(m)
}
