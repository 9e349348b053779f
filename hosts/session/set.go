package session

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/kvrt/kvrt/hint"
)

// Set is the indexes of all routing partitions, by the namespace that isolates their
// block hashes. A namespace that nobody made has no index: it is off. Namespaces are the
// operator's to name, so their number is not bounded here. The zero value is empty.
type Set struct {
	mu  sync.Mutex // of writers
	all atomic.Pointer[map[string]*Index]
}

// Add makes the index of a namespace. When there is one already, that one stays.
func (s *Set) Add(namespace string, cfg Config) *Index {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.Index(namespace); x != nil {
		return x
	}
	all := map[string]*Index{}
	if p := s.all.Load(); p != nil {
		maps.Copy(all, *p)
	}
	x := New(cfg)
	all[namespace] = x
	s.all.Store(&all)
	return x
}

// Drop takes the index of a namespace away.
func (s *Set) Drop(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Index(namespace) == nil {
		return
	}
	all := maps.Clone(*s.all.Load())
	delete(all, namespace)
	s.all.Store(&all)
}

// Index is the index of a namespace, nil when it is off.
func (s *Set) Index(namespace string) *Index {
	if p := s.all.Load(); p != nil {
		return (*p)[namespace]
	}
	return nil
}

// Each shows every namespace with its index, in no order.
func (s *Set) Each(show func(namespace string, x *Index)) {
	if p := s.all.Load(); p != nil {
		for namespace, x := range *p {
			show(namespace, x)
		}
	}
}

// RemoveWorker drops a worker from all indexes.
func (s *Set) RemoveWorker(id hint.WorkerID) {
	s.Each(func(_ string, x *Index) { x.RemoveWorker(id) })
}
