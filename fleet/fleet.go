package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/session"
	"github.com/kvrt/kvrt/hosts/worker"
	"github.com/kvrt/kvrt/kvevents"
)

// Config configures a Fleet. The zero value is usable.
type Config struct {
	MaxWorkers int             // as worker.Config has it
	MaxFeeds   int             // of all workers' ranks; default 16,384
	Index      session.Config  // of each namespace
	Feeds      kvevents.Config // its Notify is called besides the log, and must not call the fleet
	Log        *slog.Logger    // receives what happens to feeds, rate-limited; default: nothing is logged
}

// ErrFeeds says that no more ranks can be followed.
var ErrFeeds = errors.New("too many worker-ranks with KV events are followed: remove some, or raise the limit")

// Origin says who set a worker.
type Origin string

// The two sides.
const (
	FromConfig Origin = "config"
	FromAPI    Origin = "api"
)

// Worker is a worker with who set it.
type Worker struct {
	*worker.Worker
	Origin Origin
}

// Fleet is the workers, their feeds and their lineage.
type Fleet struct {
	catalogue *worker.Catalogue
	sessions  session.Set
	feeds     *kvevents.Manager
	cfg       Config
	notices   notices
	seeded    seedCounters
	hashes    sync.Pool // of *[1]uint64

	followed map[string]int // workers with feeds, by namespace; changed's own

	mu      sync.Mutex                      // of changes; guards what follows
	said    map[hint.WorkerID]worker.Worker // by the configuration, last
	origins map[hint.WorkerID]Origin
}

// New makes a fleet without workers.
func New(cfg Config) *Fleet {
	if cfg.MaxFeeds <= 0 {
		cfg.MaxFeeds = 16_384
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	f := &Fleet{cfg: cfg, followed: map[string]int{}, said: map[hint.WorkerID]worker.Worker{}, origins: map[hint.WorkerID]Origin{}}
	f.notices = notices{log: cfg.Log, next: cfg.Feeds.Notify}
	cfg.Feeds.Notify = f.notices.tell
	f.feeds = kvevents.New(cfg.Feeds)
	f.catalogue = worker.New(worker.Config{MaxWorkers: cfg.MaxWorkers, Changed: f.changed})
	return f
}

// Catalogue is the workers, for the capability kvrt_worker. It is changed through the
// fleet alone.
func (f *Fleet) Catalogue() *worker.Catalogue { return f.catalogue }

// Sessions is the lineage, for the capability kvrt_session. A namespace has an index as
// long as it has a worker with a feed.
func (f *Fleet) Sessions() *session.Set { return &f.sessions }

// Put adds a worker, or replaces it. An error about one field is a *worker.FieldError.
func (f *Fleet) Put(w worker.Worker) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := check(&w); err != nil {
		return err
	}
	if err := f.room(plan{put: []worker.Worker{w}}); err != nil {
		return err
	}
	if err := f.catalogue.Put(w); err != nil {
		return err
	}
	f.origins[w.ID] = FromAPI
	return nil
}

// Delete removes a worker, and tells whether it was there.
func (f *Fleet) Delete(id hint.WorkerID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.origins, id)
	return f.catalogue.Delete(id)
}

// Reconcile carries out what the configuration says that it did not say before, all or
// none of it.
func (f *Fleet) Reconcile(workers []worker.Worker) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.plan(workers)
	if err != nil {
		return err
	}
	if err := f.catalogue.Update(p.put, p.remove); err != nil {
		return err
	}
	for _, w := range p.put {
		f.origins[w.ID] = FromConfig
	}
	for _, id := range p.remove {
		delete(f.origins, id)
	}
	f.said = p.said
	return nil
}

// Check says what Reconcile would, and changes nothing.
func (f *Fleet) Check(workers []worker.Worker) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.plan(workers)
	if err != nil {
		return err
	}
	trial := worker.New(worker.Config{MaxWorkers: f.cfg.MaxWorkers})
	var now []worker.Worker
	for _, w := range f.catalogue.List() {
		now = append(now, *w)
	}
	if err := trial.Update(now, nil); err != nil {
		return err
	}
	return trial.Update(p.put, p.remove)
}

// plan is what a configuration changes.
type plan struct {
	put    []worker.Worker
	remove []hint.WorkerID
	said   map[hint.WorkerID]worker.Worker
}

func (f *Fleet) plan(workers []worker.Worker) (p plan, err error) {
	p.said = make(map[hint.WorkerID]worker.Worker, len(workers))
	for _, w := range workers {
		if err := check(&w); err != nil {
			return p, err
		}
		p.said[w.ID] = w
		if old, had := f.said[w.ID]; !had || !reflect.DeepEqual(old, w) {
			p.put = append(p.put, w)
		}
	}
	for id := range f.said {
		if _, stays := p.said[id]; !stays && f.origins[id] == FromConfig {
			p.remove = append(p.remove, id)
		}
	}
	return p, f.room(p)
}

// room holds a change against the bound on feeds.
func (f *Fleet) room(p plan) error {
	more, n := 0, 0
	for i := range p.put {
		more += feedsOf(&p.put[i])
		if old, ok := f.catalogue.Get(p.put[i].ID); ok {
			more -= feedsOf(old)
		}
	}
	for _, id := range p.remove {
		if old, ok := f.catalogue.Get(id); ok {
			more -= feedsOf(old)
		}
	}
	if more <= 0 {
		return nil
	}
	for _, w := range f.catalogue.List() {
		n += feedsOf(w)
	}
	if n+more > f.cfg.MaxFeeds {
		return ErrFeeds
	}
	return nil
}

func feedsOf(w *worker.Worker) (n int) {
	for _, r := range w.Ranks {
		if r.Events != "" {
			n++
		}
	}
	return n
}

// check is what the catalogue does not check: whether the endpoints can be followed.
func check(w *worker.Worker) error {
	for i, r := range w.Ranks {
		if r.Events == "" {
			continue
		}
		if err := endpoints(r).Check(); err != nil {
			field, reason, _ := strings.Cut(err.Error(), ": ") // events or replay
			return &worker.FieldError{Worker: w.ID, Field: fmt.Sprintf("ranks[%d].%s", i, field), Reason: reason}
		}
	}
	return nil
}

func endpoints(r worker.Rank) kvevents.Endpoints {
	return kvevents.Endpoints{Events: r.Events, Replay: r.Replay}
}

// Get returns a worker.
func (f *Fleet) Get(id hint.WorkerID) (Worker, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w, ok := f.catalogue.Get(id)
	return Worker{w, f.origins[id]}, ok
}

// Workers returns all workers by id: integers before texts.
func (f *Fleet) Workers() []Worker {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.catalogue.List()
	out := make([]Worker, len(list))
	for i, w := range list {
		out[i] = Worker{w, f.origins[w.ID]}
	}
	return out
}

// Feeds returns what each feed has done, by worker and rank.
func (f *Fleet) Feeds() []kvevents.Stats { return f.feeds.Stats() }

// Live counts the feeds that stand and have asked for what they missed, and all of them.
func (f *Fleet) Live() (live, all int) { return f.feeds.Live() }

// Lineage is the index of a namespace in figures.
type Lineage struct {
	Namespace string
	session.Stats
}

// Lineage returns the indexes by namespace.
func (f *Fleet) Lineage() []Lineage {
	var out []Lineage
	f.sessions.Each(func(namespace string, x *session.Index) { out = append(out, Lineage{namespace, x.Stats()}) })
	slices.SortFunc(out, func(a, b Lineage) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return out
}

// Close ends all feeds and waits for them. What was known stays known.
func (f *Fleet) Close() { f.feeds.Close() }

// changed follows a change of the catalogue, which calls it one change at a time.
func (f *Fleet) changed(c worker.Change) {
	old, now := c.Old, c.New
	if old != nil && (now == nil || now.Namespace != old.Namespace) {
		f.feeds.Remove(old.ID)
		f.sessions.Index(old.Namespace).RemoveWorker(old.ID)
		f.release(old)
		f.notices.forget(old.ID)
		old = nil
	}
	if now == nil {
		return
	}
	var x *session.Index
	if follows(now) { // before the old one is released, so that the index stays
		f.followed[now.Namespace]++
		x = f.sessions.Add(now.Namespace, f.cfg.Index)
	}
	if old != nil {
		f.dropRanks(old, now)
		f.release(old)
	}
	keys := now.Workers()
	for i, r := range now.Ranks {
		if r.Events == "" {
			continue
		}
		if err := f.feeds.Set(keys[i], endpoints(r), x); err != nil { // closed: nothing is followed any more
			f.cfg.Log.Warn("KV events of a worker are not followed", "worker", keys[i].String(), "error", err)
		}
	}
}

func follows(w *worker.Worker) bool { return feedsOf(w) > 0 }

// dropRanks forgets the ranks that a worker no longer has, or whose events are not
// followed any more.
func (f *Fleet) dropRanks(old, now *worker.Worker) {
	keys := now.Workers()
	for i, key := range old.Workers() {
		at := slices.Index(keys, key)
		if at >= 0 && (now.Ranks[at].Events != "" || old.Ranks[i].Events == "") {
			continue
		}
		f.feeds.RemoveRank(key)
		f.sessions.Index(now.Namespace).Clear(key)
	}
}

// release drops the index of a namespace with its last worker that has a feed.
func (f *Fleet) release(w *worker.Worker) {
	if !follows(w) {
		return
	}
	if f.followed[w.Namespace]--; f.followed[w.Namespace] == 0 {
		delete(f.followed, w.Namespace)
		f.sessions.Drop(w.Namespace)
	}
}
