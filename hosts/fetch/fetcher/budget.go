package fetcher

import "sync"

// budgets are bytes under way, by name. A name without bytes takes no memory.
type budgets struct {
	mu   sync.Mutex
	max  int64
	used map[string]int64
}

func newBudgets(max int64) *budgets { return &budgets{max: max, used: make(map[string]int64)} }

// take counts up to n pieces of a size, as long as all of the name take at most one
// share-th of the budget, and returns how many.
func (b *budgets) take(name string, n int, size, share int64) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = int(min(int64(n), (b.max/share-b.used[name])/size))
	if n > 0 {
		b.used[name] += int64(n) * size
	}
	return max(0, n)
}

func (b *budgets) give(name string, bytes int64) {
	if bytes == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used[name] -= bytes; b.used[name] == 0 {
		delete(b.used, name)
	}
}
