package worker

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// ErrFull says that the catalogue has as many workers as it may have.
var ErrFull = errors.New("the catalogue is full: remove a worker, or raise its limit")

// Change is what became of one worker. Of a new worker Old is nil, of a removed one New.
type Change struct{ Old, New *Worker }

// Config configures a Catalogue. The zero value is usable.
type Config struct {
	MaxWorkers int // default 16,384
	// Changed is called with each change, in order and before the call that made it
	// returns: so removal clears lineage, and feeds start and stop. It must not change
	// the catalogue itself.
	Changed func(Change)
}

// Catalogue holds the workers. Readers take no lock: they see one snapshot.
type Catalogue struct {
	cfg  Config
	mu   sync.Mutex // of writers
	snap atomic.Pointer[snapshot]
}

// snapshot is never changed.
type snapshot struct {
	byID map[hint.WorkerID]*entry
	all  []*entry // by id
	list func() []byte
}

// entry is a worker with its records as guests read them.
type entry struct {
	worker *Worker
	ranks  []ranked
	common []byte // a Worker for all ranks
}

type ranked struct {
	key    hint.Worker
	worker abi.Worker
	record []byte // a Worker
}

// New makes an empty catalogue.
func New(cfg Config) *Catalogue {
	if cfg.MaxWorkers <= 0 {
		cfg.MaxWorkers = 16_384
	}
	if cfg.Changed == nil {
		cfg.Changed = func(Change) {}
	}
	c := &Catalogue{cfg: cfg}
	c.snap.Store(newSnapshot(map[hint.WorkerID]*entry{}))
	return c
}

func newSnapshot(byID map[hint.WorkerID]*entry) *snapshot {
	s := &snapshot{byID: byID, all: slices.SortedFunc(maps.Values(byID), func(a, b *entry) int { return a.worker.ID.Compare(b.worker.ID) })}
	s.list = sync.OnceValue(s.encode) // most snapshots are never listed
	return s
}

// Put adds a worker, or replaces it.
func (c *Catalogue) Put(w Worker) error { return c.Update([]Worker{w}, nil) }

// Delete removes a worker, and tells whether it was there.
func (c *Catalogue) Delete(id hint.WorkerID) bool {
	_, known := c.Get(id)
	return c.Update(nil, []hint.WorkerID{id}) == nil && known
}

// Update removes workers and adds or replaces others, all or none of it. Ids to remove
// that are not there are passed over. A worker that is put as it is already is no
// change. An error about one worker is a *FieldError.
func (c *Catalogue) Update(put []Worker, remove []hint.WorkerID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.snap.Load()
	byID := maps.Clone(old.byID)
	var changes []Change
	for _, id := range remove {
		if e := byID[id]; e != nil {
			delete(byID, id)
			changes = append(changes, Change{Old: e.worker})
		}
	}
	for i := range put {
		w, err := put[i].normal()
		if err != nil {
			return err
		}
		change := Change{New: w}
		if e := byID[w.ID]; e != nil {
			if equal(e.worker, w) {
				continue
			}
			change.Old = e.worker
		}
		byID[w.ID] = newEntry(w)
		changes = append(changes, change)
	}
	if len(byID) > c.cfg.MaxWorkers && len(byID) > len(old.byID) {
		return ErrFull
	}
	if len(changes) == 0 {
		return nil
	}
	next := newSnapshot(byID)
	if err := next.checkFeeds(old); err != nil {
		return err
	}
	c.snap.Store(next)
	for _, change := range changes {
		c.cfg.Changed(change)
	}
	return nil
}

// checkFeeds refuses two ranks that publish at one endpoint: their events could not be
// told apart. Blamed is one that is new.
func (s *snapshot) checkFeeds(old *snapshot) error {
	type place struct {
		worker hint.Worker
		field  string
	}
	seen := map[string]place{}
	for _, e := range s.all {
		for i, r := range e.worker.Ranks {
			if r.Events == "" {
				continue
			}
			here := place{e.worker.rank(r), fmt.Sprintf("ranks[%d].events", i)}
			if other, ok := seen[r.Events]; ok {
				if old.byID[here.worker.ID] == e {
					here, other = other, here
				}
				return &FieldError{here.worker.ID, here.field, fmt.Sprintf("worker %s publishes at %s already", other.worker, r.Events)}
			}
			seen[r.Events] = here
		}
	}
	return nil
}

func equal(a, b *Worker) bool {
	return a.ID == b.ID && a.Type == b.Type && a.Namespace == b.Namespace && a.BlockSize == b.BlockSize &&
		(a.Capabilities == nil) == (b.Capabilities == nil) && slices.Equal(a.Capabilities, b.Capabilities) &&
		slices.EqualFunc(a.Ranks, b.Ranks, func(x, y Rank) bool {
			return (x.Rank == nil) == (y.Rank == nil) && compareRanks(x.Rank, y.Rank) == 0 && x.Events == y.Events && x.Replay == y.Replay && x.Source == y.Source
		})
}

// Get returns a worker. It is shared: it is not to be changed.
func (c *Catalogue) Get(id hint.WorkerID) (*Worker, bool) {
	e := c.snap.Load().byID[id]
	if e == nil {
		return nil, false
	}
	return e.worker, true
}

// List returns all workers by id: integers before texts. They are shared.
func (c *Catalogue) List() []*Worker {
	s := c.snap.Load()
	out := make([]*Worker, len(s.all))
	for i, e := range s.all {
		out[i] = e.worker
	}
	return out
}

// Len is the number of workers.
func (c *Catalogue) Len() int { return len(c.snap.Load().all) }

// Capable tells whether a worker takes an action type. One that did not tell what it
// can execute takes everything, and so does one that is not in the catalogue.
func (c *Catalogue) Capable(id hint.WorkerID, actionType string) bool {
	w, ok := c.Get(id)
	return !ok || w.Capabilities == nil || slices.Contains(w.Capabilities, actionType)
}

func newEntry(w *Worker) *entry {
	e := &entry{worker: w}
	of := func(key hint.Worker, source string) abi.Worker {
		out := abi.Worker{ID: w.ID.Node(), Name: w.ID.Text(), Type: w.Type, SourceControlEndpoint: source, Capabilities: w.Capabilities}
		if w.Capabilities != nil {
			out.Present |= abi.WorkerHasCapabilities
		}
		if key.HasRank {
			out.Present |= abi.WorkerHasDPRank
			out.DPRank = key.Rank
		}
		return out
	}
	for _, r := range w.Ranks {
		key := w.rank(r)
		worker := of(key, r.Source)
		e.ranks = append(e.ranks, ranked{key, worker, record(worker)})
	}
	if e.common = e.ranks[0].record; e.ranks[0].key.HasRank {
		e.common = record(of(hint.Worker{}, ""))
	}
	return e
}

func record(w abi.Worker) []byte {
	b := abi.NewBuilder(nil)
	outer := b.Open(abi.SizeWorker)
	b.SetWorker(0, &w)
	b.Close(outer)
	return b.Bytes()
}

// encode lays out a WorkerList.
func (s *snapshot) encode() []byte {
	n := 0
	for _, e := range s.all {
		n += len(e.ranks)
	}
	b := abi.NewBuilder(nil)
	outer := b.Open(abi.SizeWorkerList + n*abi.SizeWorker)
	b.SetU32(abi.OffWorkerListWorkersCount, uint32(n))
	b.SetU32(abi.OffWorkerListWorkers, abi.SizeWorkerList)
	at := uint32(abi.SizeWorkerList)
	for _, e := range s.all {
		for i := range e.ranks {
			b.SetWorker(at, &e.ranks[i].worker)
			at += abi.SizeWorker
		}
	}
	b.Close(outer)
	return b.Bytes()
}
