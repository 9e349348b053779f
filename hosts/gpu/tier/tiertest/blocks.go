package tiertest

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hosts/gpu"
)

// Slot is the length of a place in [Blocks].
const Slot = 4096

// Blocks is a block store that distrusts its user: what nobody holds any more is poisoned at
// once, and tokens are counted.
type Blocks struct {
	t   testing.TB
	mem []byte

	mu       sync.Mutex
	free     []int
	blocks   map[key]*block
	tokens   map[uint64]*token
	next     uint64
	Acquired func() // when set, is called in each Acquire
}

type key struct {
	namespace string
	hash      uint64
}

type block struct {
	key    key
	at     int
	n      int
	users  int
	ready  bool
	listed bool
}

type token struct {
	b    *block
	kind byte // r(ead), w(rite), t(ransfer)
}

// NewBlocks makes a store of n places in host memory of the device.
func NewBlocks(t testing.TB, dev *gpu.Device, n int) *Blocks {
	t.Helper()
	id, err := dev.Alloc(gpu.HostMemory, uint64(n*Slot), 0)
	if err != nil {
		t.Fatal(err)
	}
	m, err := dev.Memory(id)
	if err != nil {
		t.Fatal(err)
	}
	s := &Blocks{t: t, mem: m.Host, blocks: map[key]*block{}, tokens: map[uint64]*token{}}
	for i := range n {
		s.free = append(s.free, i)
	}
	return s
}

// Bytes are those of a block: they follow from its name.
func Bytes(namespace string, hash uint64) []byte {
	var seed [32]byte
	copy(seed[8:], namespace)
	for i := range 8 {
		seed[i] = byte(hash >> (8 * i))
	}
	b := make([]byte, 1+hash*769%Slot)
	_, _ = rand.NewChaCha8(seed).Read(b) // never fails
	return b
}

func (s *Blocks) bytes(b *block) []byte { return s.mem[b.at*Slot:][:b.n:b.n] }

func (s *Blocks) issue(b *block, kind byte) uint64 {
	s.next++
	b.users++
	s.tokens[s.next] = &token{b, kind}
	return s.next
}

var errNo = errors.New("no such block, or no room for it")

// Put stores a block with the bytes that it has to have.
func (s *Blocks) Put(namespace string, hashes ...uint64) {
	s.t.Helper()
	for _, h := range hashes {
		want := Bytes(namespace, h)
		tok, b, err := s.Reserve(namespace, h, len(want))
		if err != nil {
			s.t.Fatal(err)
		}
		copy(b, want)
		if err := s.Commit(tok); err != nil {
			s.t.Fatal(err)
		}
	}
}

// Forget takes blocks out of the store.
func (s *Blocks) Forget(namespace string, hashes ...uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range hashes {
		if b := s.blocks[key{namespace, h}]; b != nil && b.ready {
			s.unlist(b)
		}
	}
}

// unlist is for those who hold mu, as rest is.
func (s *Blocks) unlist(b *block) {
	delete(s.blocks, b.key)
	b.listed = false
	s.rest(b)
}

// rest poisons a place that is nobody's.
func (s *Blocks) rest(b *block) {
	if b.users > 0 || b.listed {
		return
	}
	for i := range s.mem[b.at*Slot:][:Slot] {
		s.mem[b.at*Slot+i] = 0xdd
	}
	s.free = append(s.free, b.at)
}

// Acquire, and what follows, is as in package tier.
func (s *Blocks) Acquire(namespace string, hash uint64) (uint64, []byte, error) {
	if s.Acquired != nil {
		s.Acquired()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.blocks[key{namespace, hash}]
	if b == nil || !b.ready {
		return 0, nil, errNo
	}
	return s.issue(b, 'r'), s.bytes(b), nil
}

func (s *Blocks) end(tok uint64, kind byte) (*block, error) {
	t := s.tokens[tok]
	if t == nil || t.kind != kind {
		return nil, errNo
	}
	delete(s.tokens, tok)
	t.b.users--
	return t.b, nil
}

// Release ends a lease.
func (s *Blocks) Release(tok uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.end(tok, 'r')
	if err == nil {
		s.rest(b)
	}
	return err
}

// Residency tells where blocks are.
func (s *Blocks) Residency(namespace string, hashes []uint64, out []abi.Residency) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, h := range hashes {
		switch b := s.blocks[key{namespace, h}]; {
		case b == nil:
			out[i] = abi.ResidencyAbsent
		case b.ready:
			out[i] = abi.ResidencyDRAM
			n++
		default:
			out[i] = abi.ResidencyFilling
		}
	}
	return n
}

// Reserve takes a place.
func (s *Blocks) Reserve(namespace string, hash uint64, size int) (uint64, []byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := key{namespace, hash}
	if s.blocks[k] != nil || len(s.free) == 0 || size <= 0 || size > Slot {
		return 0, nil, errNo
	}
	b := &block{key: k, at: s.free[0], n: size, listed: true}
	s.free = s.free[1:]
	s.blocks[k] = b
	return s.issue(b, 'w'), s.bytes(b), nil
}

// Commit publishes a block, which has the bytes that it has to have.
func (s *Blocks) Commit(tok uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.end(tok, 'w')
	if err != nil {
		return err
	}
	if string(s.bytes(b)) != string(Bytes(b.key.namespace, b.key.hash)) {
		s.t.Errorf("block %d of %q was published with the wrong bytes", b.key.hash, b.key.namespace)
	}
	b.ready = true
	return nil
}

// Abort gives a reservation up.
func (s *Blocks) Abort(tok uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.end(tok, 'w')
	if err == nil {
		s.unlist(b)
	}
	return err
}

// Transfer holds a place.
func (s *Blocks) Transfer(tok uint64) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tokens[tok]
	if t == nil || t.kind != 'w' {
		return 0, errNo
	}
	return s.issue(t.b, 't'), nil
}

// Tokens counts those that are out, of a kind: leases r, reservations w, transfers t.
func (s *Blocks) Tokens(kind byte) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tokens {
		if t.kind == kind {
			n++
		}
	}
	return n
}
