// Package memstore is a small block store in memory: slots of one size, in a memfd if
// asked for. It is what the peers' tests and benchmarks run on, and the smallest
// example of [peer.Source] and [peer.Sink].
package memstore

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/kvrt/kvrt/hosts/fetch/peer"
)

type state uint8

const (
	free state = iota
	filling
	ready
)

type slot struct {
	state      state
	used       bool // since the hand came by
	pins       int
	namespace  string
	hash       uint64
	generation uint64 // one more at each reuse
	crc        uint32
	size       int
}

// Store is safe for concurrent use.
type Store struct {
	slotBytes int
	memory    []byte
	file      *os.File // nil unless shared

	mu    sync.Mutex
	slots []slot
	index map[string]map[uint64]int // namespace, hash: slot, filling or ready
	hand  int
}

// New makes a store of n slots. A shared one lies in a memfd, whose size and writers are sealed.
func New(n, slotBytes int, shared bool) (*Store, error) {
	s := &Store{slotBytes: slotBytes, slots: make([]slot, n), index: make(map[string]map[uint64]int)}
	if !shared {
		s.memory = make([]byte, n*slotBytes)
		return s, nil
	}
	fd, err := newSlab()
	if err != nil {
		return nil, fmt.Errorf("make the slab: %w", err)
	}
	s.file = os.NewFile(uintptr(fd), "slab")
	if err := s.file.Truncate(int64(n * slotBytes)); err != nil {
		s.file.Close()
		return nil, err
	}
	s.memory, err = unix.Mmap(fd, 0, n*slotBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err == nil {
		// What is mapped stays writable, for this store; no other mapping will be.
		err = seal(fd)
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("map the slab: %w", err)
	}
	return s, nil
}

// Close gives a shared store's memory back. Nobody uses the store any more.
func (s *Store) Close() {
	if s.file == nil {
		return
	}
	if s.memory != nil {
		unix.Munmap(s.memory) // a whole mapping
		s.memory = nil
	}
	s.file.Close()
	s.file = nil
}

// Slab is the memfd of a shared store.
func (s *Store) Slab() (peer.Slab, bool) {
	if s.file == nil {
		return peer.Slab{}, false
	}
	return peer.Slab{FD: s.file.Fd(), Size: int64(len(s.memory))}, true
}

func (s *Store) data(i int) []byte {
	at := i * s.slotBytes
	return s.memory[at : at+s.slots[i].size : at+s.slots[i].size]
}

// Lease pins a prefix.
func (s *Store) Lease(namespace []byte, hashes []uint64, maxBytes int64, l *peer.Lease) {
	l.Blocks, l.Refs, l.Full = l.Blocks[:0], l.Refs[:0], false
	s.mu.Lock()
	defer s.mu.Unlock()
	blocks := s.index[string(namespace)]
	for _, h := range hashes {
		i, ok := blocks[h]
		if !ok || s.slots[i].state != ready {
			return
		}
		sl := &s.slots[i]
		if maxBytes -= int64(sl.size); maxBytes < 0 {
			l.Full = true
			return
		}
		sl.pins++
		sl.used = true
		l.Refs = append(l.Refs, uint64(i))
		l.Blocks = append(l.Blocks, peer.Block{Hash: h, Generation: sl.generation, CRC: sl.crc, Data: s.data(i), Offset: int64(i * s.slotBytes)})
	}
}

// Release unpins.
func (s *Store) Release(l *peer.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range l.Refs {
		s.slots[i].pins--
	}
	l.Blocks, l.Refs = l.Blocks[:0], l.Refs[:0]
}

// Current is a slot's generation.
func (s *Store) Current(l *peer.Lease, i int) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slots[l.Refs[i]].generation
}

// Reserve takes a free slot, or that of a block which has not been used for a while.
func (s *Store) Reserve(namespace []byte, hash uint64, size int) (peer.Slot, error) {
	if size <= 0 || size > s.slotBytes {
		return peer.Slot{}, fmt.Errorf("a block of %d bytes: the store has slots of %d", size, s.slotBytes)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.index[string(namespace)][hash]; ok {
		return peer.Slot{}, peer.ErrPresent
	}
	for range 2 * len(s.slots) {
		i := s.hand
		s.hand = (s.hand + 1) % len(s.slots)
		sl := &s.slots[i]
		switch {
		case sl.state == filling || sl.pins > 0:
			continue
		case sl.state == ready && sl.used:
			sl.used = false
			continue
		case sl.state == ready:
			s.forget(i)
		}
		name := string(namespace)
		if s.index[name] == nil {
			s.index[name] = make(map[uint64]int)
		}
		s.index[name][hash] = i
		*sl = slot{state: filling, namespace: name, hash: hash, size: size, generation: sl.generation + 1}
		return peer.Slot{Data: s.data(i), Ref: uint64(i)}, nil
	}
	return peer.Slot{}, peer.ErrNoRoom
}

// forget takes a block out of the index.
func (s *Store) forget(i int) {
	sl := &s.slots[i]
	delete(s.index[sl.namespace], sl.hash)
	if len(s.index[sl.namespace]) == 0 {
		delete(s.index, sl.namespace)
	}
	sl.state = free
}

// Commit makes a block visible.
func (s *Store) Commit(r peer.Slot, crc uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl := &s.slots[r.Ref]
	sl.state, sl.crc, sl.used = ready, crc, true
	return true
}

// Abort frees a slot.
func (s *Store) Abort(r peer.Slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(int(r.Ref))
}

// Put stores a block, in place of none.
func (s *Store) Put(namespace string, hash uint64, data []byte) error {
	r, err := s.Reserve([]byte(namespace), hash, len(data))
	if err != nil {
		return err
	}
	copy(r.Data, data)
	s.Commit(r, peer.Checksum(data))
	return nil
}

// Get copies a block out; nil if it is not there.
func (s *Store) Get(namespace string, hash uint64) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.index[namespace][hash]
	if !ok || s.slots[i].state != ready {
		return nil
	}
	return append([]byte{}, s.data(i)...)
}

// Has tells how a block stands: ready, or being filled.
func (s *Store) Has(namespace []byte, hash uint64) (have, coming bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.index[string(namespace)][hash]
	return ok && s.slots[i].state == ready, ok && s.slots[i].state == filling
}

// Drop removes a block that nobody has leased.
func (s *Store) Drop(namespace string, hash uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.index[namespace][hash]
	if !ok || s.slots[i].state != ready || s.slots[i].pins > 0 {
		return false
	}
	s.forget(i)
	return true
}

// Use counts what is in use.
type Use struct{ Ready, Filling, Leased int }

// Use reads the counts.
func (s *Store) Use() (u Use) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.slots {
		switch s.slots[i].state {
		case ready:
			u.Ready++
		case filling:
			u.Filling++
		}
		if s.slots[i].pins > 0 {
			u.Leased++
		}
	}
	return u
}
