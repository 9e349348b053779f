package store

import (
	"strings"
	"sync"
	"sync/atomic"
)

// namespaces are those that have blocks, and some that had.
type namespaces struct {
	mu     sync.RWMutex
	byName map[string]*namespace
	next   uint64 // id; 0 is nobody's
	max    int
}

type namespace struct {
	id     uint64
	blocks atomic.Int64 // reserved, published, or not yet out of use
}

func (n *namespaces) init(limit int) {
	n.byName, n.max = map[string]*namespace{}, limit
}

// find is a namespace that has, or had, blocks.
func (n *namespaces) find(name string) *namespace {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.byName[name]
}

// enter counts one more block of a namespace. Whoever takes it away counts it out.
func (n *namespaces) enter(name string) (*namespace, error) {
	n.mu.RLock()
	ns := n.byName[name]
	if ns != nil {
		ns.blocks.Add(1)
	}
	n.mu.RUnlock()
	if ns != nil {
		return ns, nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if ns = n.byName[name]; ns == nil {
		if len(n.byName) >= n.max && !n.forget() {
			return nil, ErrNamespaces
		}
		n.next++
		ns = &namespace{id: n.next}
		n.byName[strings.Clone(name)] = ns
	}
	ns.blocks.Add(1)
	return ns, nil
}

// forget drops the namespaces without blocks. Its ids are not used again.
func (n *namespaces) forget() bool {
	for name, ns := range n.byName {
		if ns.blocks.Load() == 0 {
			delete(n.byName, name)
		}
	}
	return len(n.byName) < n.max
}

func (n *namespaces) count() (live int) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for _, ns := range n.byName {
		if ns.blocks.Load() > 0 {
			live++
		}
	}
	return live
}
