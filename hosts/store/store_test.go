package store

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/kvrt/kvrt/abi"
)

// ticking is a clock that a test moves.
type ticking struct{ ns atomic.Int64 }

func (c *ticking) now() int64 { return c.ns.Load() }

// small is a store of so many slots of a page.
func small(t testing.TB, slots int, change ...func(*Config)) *Store {
	t.Helper()
	cfg := Config{Capacity: uint64(slots) * pageSize, BlockBytes: []uint64{pageSize}}
	for _, c := range change {
		c(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func with(c *ticking) func(*Config) { return func(cfg *Config) { cfg.Now = c.now } }

// put stores a block whose bytes are the low byte of its hash.
func put(t testing.TB, s *Store, ns string, hash uint64) {
	t.Helper()
	token, block, err := s.Reserve(ns, hash, 100)
	if err != nil {
		t.Fatal(err)
	}
	for i := range block {
		block[i] = byte(hash)
	}
	if err := s.Commit(token); err != nil {
		t.Fatal(err)
	}
}

func acquire(t testing.TB, s *Store, ns string, hash uint64) uint64 {
	t.Helper()
	token, block, err := s.Acquire(ns, hash)
	if err != nil {
		t.Fatal(err)
	}
	if len(block) != 100 || !bytes.Equal(block, bytes.Repeat([]byte{byte(hash)}, 100)) {
		t.Fatalf("block %d: %x", hash, block[:8])
	}
	return token
}

func there(s *Store, ns string, hashes ...uint64) (out []bool) {
	state := make([]abi.Residency, len(hashes))
	s.Residency(ns, hashes, state)
	for _, r := range state {
		out = append(out, r == abi.ResidencyDRAM)
	}
	return out
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// failer is a *testing.T or a *rapid.T.
type failer interface {
	Helper()
	Fatalf(string, ...any)
}

func wants(t failer, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

func TestNobodySeesABlockBeforeItsCommit(t *testing.T) {
	s := small(t, 4)
	token, block, err := s.Reserve("n", 1, 100)
	must(t, err)
	state := []abi.Residency{9}
	if s.Residency("n", []uint64{1}, state); state[0] != abi.ResidencyFilling {
		t.Errorf("residency %s", state[0])
	}
	_, _, err = s.Acquire("n", 1)
	wants(t, err, ErrNotFound)
	copy(block, bytes.Repeat([]byte{1}, 100))
	must(t, s.Commit(token))
	lease := acquire(t, s, "n", 1)
	wants(t, s.Commit(token), ErrToken)
	wants(t, s.Abort(token), ErrToken)
	must(t, s.Release(lease))
	wants(t, s.Release(lease), ErrToken)
	_, _, err = s.Reserve("n", 1, 100)
	wants(t, err, ErrExists)
}

func TestLengths(t *testing.T) {
	s := small(t, 3)
	for h, n := range map[uint64]int{1: 1, 2: 100} {
		token, _, err := s.Reserve("n", h, n)
		must(t, err)
		must(t, s.Commit(token))
	}
	filling, _, err := s.Reserve("n", 3, 100)
	must(t, err)
	hashes, out := []uint64{2, 3, 1, 4, 2}, []int{9, 9, 9, 9, 9}
	if s.Lengths("n", hashes, out); !slices.Equal(out, []int{100, 0, 1, 0, 100}) {
		t.Errorf("%v", out)
	}
	if n := testing.AllocsPerRun(100, func() { s.Lengths("n", hashes, out) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if s.Lengths("another", hashes, out); !slices.Equal(out, make([]int, 5)) {
		t.Errorf("%v", out)
	}
	must(t, s.Abort(filling))
}

func TestAnAbortedBlockNeverWas(t *testing.T) {
	s := small(t, 1)
	token, _, err := s.Reserve("n", 1, 100)
	must(t, err)
	must(t, s.Abort(token))
	if there(s, "n", 1)[0] {
		t.Error("an aborted block is there")
	}
	put(t, s, "n", 2) // its slot is free
	if st := s.Stats(); st.Aborted != 1 || st.Committed != 1 || st.Tokens != 0 {
		t.Errorf("%+v", st)
	}
}

func TestASecondWriterWaits(t *testing.T) {
	for _, commit := range []bool{true, false} {
		s := small(t, 2)
		token, _, err := s.Reserve("n", 1, 100)
		must(t, err)
		_, _, err = s.Reserve("n", 1, 100)
		var wait, again *FillingError
		if !errors.As(err, &wait) {
			t.Fatal(err)
		}
		_, _, err = s.Reserve("n", 1, 100)
		if !errors.As(err, &again) || again.Done != wait.Done {
			t.Fatal("two waiters, two channels")
		}
		select {
		case <-wait.Done:
			t.Fatal("told before the end")
		default:
		}
		if commit {
			must(t, s.Commit(token))
		} else {
			must(t, s.Abort(token))
		}
		<-wait.Done
		if there(s, "n", 1)[0] != commit {
			t.Errorf("commit %v", commit)
		}
		if st := s.Stats(); st.Coalesced != 2 {
			t.Errorf("%d coalesced", st.Coalesced)
		}
	}
}

func TestASlotInUseIsNobodyElses(t *testing.T) {
	s := small(t, 2)
	put(t, s, "n", 1)
	put(t, s, "n", 2)
	lease := acquire(t, s, "n", 1)
	put(t, s, "n", 3) // takes 2, although 1 is older
	if got := there(s, "n", 1, 2, 3); !got[0] || got[1] || !got[2] {
		t.Errorf("there: %v", got)
	}
	out := make([]Outcome, 2)
	if n := s.Evict("n", []uint64{1, 3}, out); n != 1 || out[0] != InUse || out[1] != Evicted {
		t.Errorf("%d %v", n, out)
	}
	put(t, s, "n", 4)
	pin, err := s.Pin("n", 4)
	must(t, err)
	_, _, err = s.Reserve("n", 5, 100)
	var full *FullError
	if !errors.As(err, &full) || full.Leased != 1 || full.Pinned != 1 || full.Slots != 2 {
		t.Fatalf("%v", err)
	}
	if s.Evict("n", []uint64{4}, out); out[0] != Pinned {
		t.Errorf("%v", out)
	}
	must(t, s.Release(pin))
	must(t, s.Release(lease))
	put(t, s, "n", 5)
}

// A deadline fails an operation and never frees a slot before the transfer's real end.
func TestATransferOutlivesItsReservation(t *testing.T) {
	s := small(t, 1)
	token, _, err := s.Reserve("n", 1, 100)
	must(t, err)
	transfer, err := s.Transfer(token)
	must(t, err)
	wants(t, s.Commit(token), ErrInFlight)
	must(t, s.Abort(token))
	_, _, err = s.Reserve("n", 1, 100)
	var full *FullError
	if !errors.As(err, &full) || full.Reserved != 1 {
		t.Fatalf("the slot of a transfer in flight was given away, or: %v", err)
	}
	_, err = s.Transfer(token)
	wants(t, err, ErrToken)
	must(t, s.Release(transfer))
	put(t, s, "n", 1)

	lease := acquire(t, s, "n", 1)
	transfer, err = s.Transfer(lease)
	must(t, err)
	must(t, s.Release(lease))
	if s.Evict("n", []uint64{1}, nil) != 0 {
		t.Error("evicted while it is being copied")
	}
	must(t, s.Release(transfer))
	if s.Evict("n", []uint64{1}, nil) != 1 {
		t.Error("not evicted")
	}
}

func TestTokensAreOfOneKind(t *testing.T) {
	s := small(t, 4)
	put(t, s, "n", 1)
	lease := acquire(t, s, "n", 1)
	pin, err := s.Pin("n", 1)
	must(t, err)
	token, _, err := s.Reserve("n", 2, 100)
	must(t, err)
	wants(t, s.Commit(lease), ErrToken)
	wants(t, s.Abort(lease), ErrToken)
	wants(t, s.Release(token), ErrToken)
	wants(t, s.Verify(pin), ErrToken)
	wants(t, s.Verify(token), ErrToken)
	_, err = s.Transfer(pin)
	wants(t, err, ErrToken)
	_, err = s.Describe(token)
	wants(t, err, ErrToken)
	for _, nonsense := range []uint64{0, 1, math.MaxUint64, lease ^ 1<<40, lease ^ 1<<31, lease | (maxTokens - 1)} {
		wants(t, s.Release(nonsense), ErrToken)
		wants(t, s.Commit(nonsense), ErrToken)
	}
}

func TestGenerationsTellAReuse(t *testing.T) {
	s := small(t, 1)
	put(t, s, "n", 1)
	lease := acquire(t, s, "n", 1)
	info, err := s.Describe(lease)
	must(t, err)
	if info.Generation&1 != 1 || info.Length != 100 {
		t.Errorf("%+v", info)
	}
	must(t, s.Release(lease))
	token, _, err := s.Reserve("n", 2, 100) // takes the slot
	must(t, err)
	if now := s.gens[info.Slot].Load(); now&1 != 0 || now <= info.Generation {
		t.Errorf("generation %d while it is being filled, %d before", now, info.Generation)
	}
	must(t, s.Commit(token))
	if now := s.gens[info.Slot].Load(); now != info.Generation+2 {
		t.Errorf("generation %d after %d", now, info.Generation)
	}
	wants(t, s.Verify(lease), ErrToken)
}

func TestChecksums(t *testing.T) {
	s := small(t, 4, func(c *Config) { c.Checksum = true })
	token, block, err := s.Reserve("n", 1, 100)
	must(t, err)
	wants(t, s.CommitChecked(token, Checksum(block)+1), ErrChecksum)
	if there(s, "n", 1)[0] {
		t.Error("a block with a wrong checksum was published")
	}
	wants(t, s.Commit(token), ErrToken)
	token, block, err = s.Reserve("n", 2, 100)
	must(t, err)
	must(t, s.CommitSummed(token, Checksum(block)+1)) // nobody has looked
	lease, _, err := s.Acquire("n", 2)
	must(t, err)
	wants(t, s.Verify(lease), ErrChecksum)
	must(t, s.Release(lease))
	put(t, s, "n", 1)
	lease = acquire(t, s, "n", 1)
	must(t, s.Verify(lease))
	info, err := s.Describe(lease)
	must(t, err)
	_, block, err = s.Acquire("n", 1)
	must(t, err)
	if !info.HasSum || info.Sum != Checksum(block) {
		t.Errorf("%+v", info)
	}
	block[7]++ // somebody's stray write
	wants(t, s.Verify(lease), ErrChecksum)
	if there(s, "n", 1)[0] {
		t.Error("a damaged block is still served")
	}
	must(t, s.Release(lease))
	if st := s.Stats(); st.ChecksumFailures != 3 || st.Pools[0].Waiting != 1 {
		t.Errorf("%+v", st)
	}
}

func TestBytesOfOneNamespaceDoNotReachAnother(t *testing.T) {
	s := small(t, 1)
	put(t, s, "a", 0xaa)
	s.Evict("a", []uint64{0xaa}, nil)
	token, block, err := s.Reserve("b", 1, 50)
	must(t, err)
	whole := block[:50:50]
	if !bytes.Equal(whole, make([]byte, 50)) || bytes.Contains(s.bytes(0, pageSize), []byte{0xaa}) {
		t.Error("a writer finds another namespace's bytes")
	}
	must(t, s.Commit(token))
	if there(s, "a", 1)[0] || !there(s, "b", 1)[0] {
		t.Error("namespaces are mixed up")
	}
	_, _, err = s.Acquire("a", 1)
	wants(t, err, ErrNotFound)
}

// Two writers of one block that both find it missing, one of them before it has looked
// for a slot and the other meanwhile: one writes, the other waits, and no slot is lost.
func TestTwoWritersAtOnce(t *testing.T) {
	var s *Store
	var token uint64
	meanwhile := func() {}
	s = small(t, 2, func(c *Config) {
		c.Now = func() int64 {
			meanwhile()
			return 0
		}
	})
	put(t, s, "n", 1)
	put(t, s, "n", 2)
	meanwhile = func() { // a slot is looked for, and no lock is held
		meanwhile = func() {}
		var err error
		token, _, err = s.Reserve("n", 3, 100)
		must(t, err)
	}
	_, _, err := s.Reserve("n", 3, 100)
	var filling *FillingError
	if !errors.As(err, &filling) {
		t.Fatalf("%v, and the block is being filled", err)
	}
	must(t, s.Commit(token))
	if st := s.Stats(); st.Tokens != 0 || st.Pools[0].Free+st.Pools[0].Published != 2 || st.Namespaces != 1 {
		t.Errorf("%+v", st)
	}
}
