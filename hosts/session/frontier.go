package session

import (
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/kvrt/kvrt/hint"
)

// frontier says that a session has a chain of blocks, up to a position, on a worker. It
// does not move: another one takes its place.
type frontier struct {
	session *session
	worker  *binding
	at      position
	hash    uint64 // of the block at the position

	// Neighbours among the frontiers of the segment, which readers may follow, and among
	// those of the worker.
	next  atomic.Pointer[frontier]
	prev  *frontier
	wNext *frontier
	wPrev *frontier
}

// binding is a worker rank with its frontiers.
type binding struct {
	key   hint.Worker
	first *frontier
	count int
}

// session is one session with its frontiers, of which there is always one at least.
type session struct {
	id     string
	tenant atomic.Pointer[string] // nil: nobody's yet
	fronts atomic.Pointer[[]*frontier]

	next, prev *session // by use; the writer's
}

// owned tells whether a tenant may see the session.
func (s *session) owned(tenant string) bool {
	owner := s.tenant.Load()
	if owner == nil {
		return tenant == ""
	}
	return *owner == tenant
}

const sessionShards = 64

// sessions finds sessions by id. A lock is held for one operation of a map.
type sessions struct {
	seed   maphash.Seed
	shards [sessionShards]struct {
		sync.RWMutex
		m map[string]*session
		_ [32]byte // a cache line each
	}
}

func (t *sessions) init() {
	t.seed = maphash.MakeSeed()
	for i := range t.shards {
		t.shards[i].m = map[string]*session{}
	}
}

func (t *sessions) get(id string) *session {
	if len(id) > hint.MaxIdentity {
		return nil // no event can have named it, and a guest pays for no length of it
	}
	sh := &t.shards[maphash.String(t.seed, id)%sessionShards]
	sh.RLock()
	s := sh.m[id]
	sh.RUnlock()
	return s
}

func (t *sessions) put(s *session) {
	sh := &t.shards[maphash.String(t.seed, s.id)%sessionShards]
	sh.Lock()
	sh.m[s.id] = s
	sh.Unlock()
}

func (t *sessions) drop(s *session) {
	sh := &t.shards[maphash.String(t.seed, s.id)%sessionShards]
	sh.Lock()
	delete(sh.m, s.id)
	sh.Unlock()
}

// begin makes a session. It is entered in the tables when it has a frontier.
func begin(e *Event) *session {
	s := &session{id: strings.Clone(e.Session)}
	s.fronts.Store(new([]*frontier))
	return s
}

// admits tells whether an event that names a tenant, or "", may be about the session.
func (s *session) admits(tenant string) bool {
	owner := s.tenant.Load()
	return tenant == "" || owner == nil || *owner == tenant
}

// own binds a session that has no owner to a tenant, if there is one.
func (s *session) own(tenant string) {
	if tenant != "" && s.tenant.Load() == nil {
		owner := strings.Clone(tenant)
		s.tenant.Store(&owner)
	}
}

// advance records that a session has the path to a position on a worker, and tells
// whether that is news.
func (x *Index) advance(s *session, w hint.Worker, at position) bool {
	b := x.workers[w]
	gone := x.scratch.moved[:0]
	for _, f := range *s.fronts.Load() {
		if f.worker != b {
			continue
		}
		if at.holds(f.at) {
			return false
		}
		if f.at.holds(at) {
			gone = append(gone, f)
		}
	}
	if old := *s.fronts.Load(); len(old)-len(gone) == MaxFrontiers {
		gone = append(gone, old[0])
		x.counts.lost.Add(1)
	}
	if b == nil {
		b = &binding{key: w}
		x.workers[w] = b
	}
	x.swap(s, gone, x.link(s, b, at))
	x.scratch.moved = gone[:0]
	return true
}

// link makes a frontier and enters it in the lists of its segment and worker.
func (x *Index) link(s *session, b *binding, at position) *frontier {
	f := &frontier{session: s, worker: b, at: at, hash: at.hash()}
	if head := at.seg.first.Load(); head != nil {
		f.next.Store(head)
		head.prev = f
	}
	at.seg.first.Store(f)
	if f.wNext = b.first; f.wNext != nil {
		f.wNext.wPrev = f
	}
	b.first = f
	b.count++
	at.pin().fronts.Add(1)
	x.counts.frontiers.Add(1)
	return f
}

// unlink undoes link. The frontier keeps its way on for readers that stand on it.
func (x *Index) unlink(f *frontier) {
	next := f.next.Load()
	if next != nil {
		next.prev = f.prev
	}
	if f.prev == nil {
		f.at.seg.first.Store(next)
	} else {
		f.prev.next.Store(next)
	}
	if f.wNext != nil {
		f.wNext.wPrev = f.wPrev
	}
	if f.wPrev == nil {
		f.worker.first = f.wNext
	} else {
		f.wPrev.wNext = f.wNext
	}
	if f.worker.count--; f.worker.count == 0 {
		delete(x.workers, f.worker.key)
	}
	f.at.pin().fronts.Add(^uint32(0))
	x.counts.frontiers.Add(^uint64(0))
	x.loosen(f.at, x.cfg.Now())
}

// swap publishes the frontiers of a session without those in gone and, if it is not nil,
// with add, which is linked already; then those in gone are unlinked. A reader so sees
// the one state or the other.
func (x *Index) swap(s *session, gone []*frontier, add *frontier) {
	old := *s.fronts.Load()
	list := make([]*frontier, 0, len(old)-len(gone)+1)
	for _, f := range old {
		if !contains(gone, f) {
			list = append(list, f)
		}
	}
	if add != nil {
		list = append(list, add)
	}
	s.fronts.Store(&list)
	for _, f := range gone {
		x.unlink(f)
	}
}

func contains(list []*frontier, f *frontier) bool {
	for _, g := range list {
		if f == g {
			return true
		}
	}
	return false
}

// touch makes a session the one that was used last.
func (x *Index) touch(s *session) {
	if s.next != nil {
		s.prev.next, s.next.prev = s.next, s.prev
	}
	s.prev, s.next = &x.lru, x.lru.next
	s.next.prev, x.lru.next = s, s
}

// forget drops a session with its frontiers.
func (x *Index) forget(s *session) {
	if s.next != nil {
		s.prev.next, s.next.prev = s.next, s.prev
		s.next, s.prev = nil, nil
	}
	x.sessions.drop(s)
	x.counts.sessions.Add(^uint64(0))
	old := *s.fronts.Load()
	s.fronts.Store(new([]*frontier))
	for _, f := range old {
		x.unlink(f)
	}
}

// recede takes a frontier back to a position, which may be none.
func (x *Index) recede(f *frontier, to position) {
	s := f.session
	for _, g := range *s.fronts.Load() {
		if to.seg != nil && g != f && g.worker == f.worker && to.holds(g.at) {
			to = position{} // another chain of the session has it
		}
	}
	var add *frontier
	if to.seg != nil {
		add = x.link(s, f.worker, to)
	}
	x.swap(s, []*frontier{f}, add)
	if len(*s.fronts.Load()) == 0 {
		x.forget(s)
	}
}
