package runtime

import (
	"fmt"
	"runtime"
	"sync/atomic"
)

// budget is the memory that all guests may come to: their instances, at their limits,
// and their code. What a guest takes is taken before its first instance is made and given
// back after its last is closed, so a guest that is being replaced counts beside the one
// that replaces it.
type budget struct {
	most  uint64
	taken atomic.Uint64
}

// defaultBudget is 1 GiB, or 512 MiB for each core where that is more: pools are as large
// as there are cores, so that is a dozen guests with MaxMemory on any machine.
func defaultBudget(processors int) uint64 { return max(1<<30, 512<<20*uint64(processors)) }

// take takes n bytes, all or none.
func (b *budget) take(n uint64) bool {
	for {
		taken := b.taken.Load()
		if n > b.most || taken > b.most-n {
			return false
		}
		if b.taken.CompareAndSwap(taken, taken+n) {
			return true
		}
	}
}

// Budget is Memory, with its default.
func (cfg *Config) Budget() uint64 {
	if cfg.Memory != 0 {
		return cfg.Memory
	}
	if cfg.Processors > 0 {
		return defaultBudget(cfg.Processors)
	}
	return defaultBudget(runtime.GOMAXPROCS(0))
}

func (b *budget) giveBack(n uint64) { b.taken.Add(-n) }

// need is what the instances of a guest come to, the spare included: linear memory and
// tables as large as they can become.
func (g *guest) need() (bytes uint64, why string) {
	memory, table := g.limits.Memory, uint64(0)
	if m := g.info.Module.Memories[0]; m.HasMax {
		memory = min(memory, uint64(m.Max)*pageSize)
	}
	for _, t := range g.info.Module.Tables {
		most := uint64(g.limits.TableElements)
		if t.HasMax {
			most = min(most, uint64(t.Max))
		}
		table = min(table+most, uint64(g.limits.TableElements))
	}
	n := uint64(g.limits.Instances) + 1
	return n * (memory + 8*table), fmt.Sprintf("%d instances and a spare with %d bytes of memory and %d table entries each", n-1, memory, table)
}

// sized is a Module that tells how large its machine code is.
type sized interface{ CodeBytes() uint64 }

// reserve takes the guest's part of the budget. The module is kept as it was given, for a
// rollback, and as it was rewritten, by the engine.
func (g *guest) reserve(rewritten []byte) error {
	bytes, why := g.need()
	module := uint64(len(g.spec.Module))
	if !g.runtime.cfg.Unmetered {
		module += uint64(len(rewritten))
	}
	return g.take(bytes+module, fmt.Sprintf("%s, and %d of its module", why, module))
}

// reserveCode takes what the guest's machine code comes to, where the engine tells it.
func (g *guest) reserveCode() error {
	if m, ok := g.module.(sized); ok {
		return g.take(m.CodeBytes(), "its machine code")
	}
	return nil
}

func (g *guest) take(bytes uint64, why string) error {
	b := &g.runtime.budget
	if !b.take(bytes) {
		return fmt.Errorf("it asks for %d bytes (%s), and %d of the %d of all guests are taken: lower limits.instances or limits.memory, unload a guest, or raise guest_memory",
			bytes, why, b.taken.Load(), b.most)
	}
	g.reserved += bytes
	return nil
}

// giveBack undoes reserve, once every instance is closed.
func (g *guest) giveBack() { g.runtime.budget.giveBack(g.reserved) }
