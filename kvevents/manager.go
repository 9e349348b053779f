package kvevents

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	"github.com/kvrt/kvrt/hint"
)

// ErrClosed is what a Manager answers after Close.
var ErrClosed = errors.New("kvevents: the manager is closed")

var errRemoved = errors.New("the feed was removed")

// A Manager keeps one feed for each worker-rank that it is told of. Its methods may be
// called at any time, from anywhere but Config.Notify and a sink.
type Manager struct {
	cfg  Config
	pool pool

	mu     sync.Mutex
	feeds  map[hint.Worker]*feed
	closed bool
}

// New returns a Manager without feeds.
func New(cfg Config) *Manager {
	m := &Manager{cfg: cfg.withDefaults(), feeds: make(map[hint.Worker]*feed)}
	m.pool.max = int64(m.cfg.QueueTotal)
	return m
}

// Set has a worker-rank followed at these endpoints, its events going to a sink, which must
// be comparable, and returns before anything is connected. What is so already stays;
// otherwise the feed is replaced, and what the old sink knows of it is dropped.
func (m *Manager) Set(w hint.Worker, e Endpoints, to Sink) error {
	if w.ID.IsZero() {
		return errors.New("kvevents: the worker has no id")
	}
	if to == nil {
		return errors.New("kvevents: the feed has no sink")
	}
	if err := e.Check(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	if old := m.feeds[w]; old != nil {
		if old.where == e && old.sink == to {
			return nil
		}
		m.drop(old)
	}
	m.feeds[w] = start(&m.cfg, &m.pool, w, e, to)
	return nil
}

// Remove ends all feeds of a worker and drops what was known of them; it returns how
// many there were. Nothing of them reaches the sink afterwards.
func (m *Manager) Remove(id hint.WorkerID) int {
	return m.remove(func(w hint.Worker) bool { return w.ID == id })
}

// RemoveRank is Remove for one rank.
func (m *Manager) RemoveRank(w hint.Worker) bool {
	return m.remove(func(other hint.Worker) bool { return other == w }) > 0
}

func (m *Manager) remove(which func(hint.Worker) bool) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for w, f := range m.feeds {
		if which(w) {
			m.drop(f)
			n++
		}
	}
	return n
}

func (m *Manager) drop(f *feed) {
	f.stop()
	f.clear(errRemoved)
	delete(m.feeds, f.worker)
}

// Stats returns what each feed has done, by worker and rank.
func (m *Manager) Stats() []Stats {
	m.mu.Lock()
	all := make([]Stats, 0, len(m.feeds))
	for _, f := range m.feeds {
		all = append(all, f.stats())
	}
	m.mu.Unlock()
	slices.SortFunc(all, func(a, b Stats) int {
		rank := func(w hint.Worker) int64 {
			if !w.HasRank {
				return int64(NoRank)
			}
			return int64(w.Rank)
		}
		return cmp.Or(a.Worker.ID.Compare(b.Worker.ID), cmp.Compare(rank(a.Worker), rank(b.Worker)))
	})
	return all
}

// Live counts the feeds that stand and have asked for what they missed, and all of them.
// Which ones are not is in Stats.
func (m *Manager) Live() (live, all int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.feeds {
		if f.live() {
			live++
		}
	}
	return live, len(m.feeds)
}

// Close ends all feeds and waits for them. What was known stays known.
func (m *Manager) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for w, f := range m.feeds {
		f.stop()
		delete(m.feeds, w)
	}
}
