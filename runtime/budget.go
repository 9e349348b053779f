package runtime

import (
	"fmt"
	"sync/atomic"
)

// budget is the memory that the instances of all guests may come to, at their limits.
// What a pool takes is taken before its first instance is made and given back after its
// last is closed, so a guest that is being replaced counts beside the one that replaces
// it.
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

// reserve takes the guest's part of the budget.
func (g *guest) reserve() error {
	b := &g.runtime.budget
	bytes, why := g.need()
	if !b.take(bytes) {
		return fmt.Errorf("it asks for %d bytes (%s), and %d of the %d of all guests are taken: lower limits.instances or limits.memory, unload a guest, or raise guest_memory",
			bytes, why, b.taken.Load(), b.most)
	}
	g.reserved = bytes
	return nil
}

// giveBack undoes reserve, once every instance is closed.
func (g *guest) giveBack() { g.runtime.budget.giveBack(g.reserved) }
