package fleet

import (
	"sync/atomic"
	"unsafe"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/session"
)

// SeedStats counts what became of the events in routing contexts.
type SeedStats struct {
	Matched       uint64 // taken
	Refused       uint64 // by the rules of the index
	UnknownWorker uint64 // of a worker that the namespace does not have
	LeftOut       uint64 // stored, removed and cleared, which the workers tell themselves
}

type seedCounters struct{ matched, refused, unknown, leftOut atomic.Uint64 }

// SeedStats reads the counters.
func (f *Fleet) SeedStats() SeedStats {
	c := &f.seeded
	return SeedStats{c.matched.Load(), c.refused.Load(), c.unknown.Load(), c.leftOut.Load()}
}

// Seed takes what a routing context tells about lineage: runtime.FormulateRequest has a
// place for it. Of the events those of type match are taken, since the router alone knows
// them; the others come from the workers, and two accounts of one worker would undo each
// other. A session that nobody owns becomes that of the context's tenant. It never fails.
func (f *Fleet) Seed(c *hint.Context) error {
	frame := c.Frame()
	namespace := viewOf(frame.Text(abi.OffContextFrameNamespace))
	x := f.sessions.Index(namespace)
	tenant := viewOf(frame.Text(abi.OffContextFrameTenant))
	for i := range c.Events() {
		f.match(x, c, i, namespace, tenant)
	}
	if id := viewOf(frame.Text(abi.OffContextFrameSessionID)); x != nil && id != "" && tenant != "" {
		f.claim(x, &frame, id, tenant)
	}
	return nil
}

func (f *Fleet) match(x *session.Index, c *hint.Context, i int, namespace, tenant string) {
	e := c.Event(i)
	if e.Type != hint.EventMatch || x == nil {
		f.seeded.leftOut.Add(1)
		return
	}
	if !f.has(e.Worker.ID, namespace) {
		f.seeded.unknown.Add(1)
		return
	}
	hashes, _ := f.hashes.Get().(*[1]uint64)
	if hashes == nil {
		hashes = new([1]uint64)
	}
	defer f.hashes.Put(hashes)
	hashes[0] = e.BlockHash
	event := session.Event{Op: session.OpMatched, Worker: e.Worker, Kind: c.HashKind(),
		Session: e.SessionID, Tenant: tenant, Hashes: hashes[:]}
	if _, err := x.Apply(&event); err != nil {
		f.seeded.refused.Add(1)
		return
	}
	f.seeded.matched.Add(1)
	if !f.has(e.Worker.ID, namespace) { // it went meanwhile, and its lineage may have gone first
		x.RemoveWorker(e.Worker.ID)
	}
}

// has tells whether a namespace has a worker.
func (f *Fleet) has(id hint.WorkerID, namespace string) bool {
	w, ok := f.catalogue.Get(id)
	return ok && w.Namespace == namespace
}

// claim makes a session that the workers have told of, and nobody owns, the tenant's.
// One that is owned costs no lock.
func (f *Fleet) claim(x *session.Index, frame *abi.ContextFrame, id, tenant string) {
	var room [session.MaxFrontiers]session.Frontier
	if _, err := x.Frontiers(room[:0], id, tenant); err == nil {
		return
	}
	w := frame.Selected()
	worker, ok := hint.WorkerAt(w.Base, w.Off+abi.OffWorkerID)
	if !ok {
		return
	}
	// Of another tenant's session the index refuses it, and counts.
	_, _ = x.Apply(&session.Event{Op: session.OpMatched, Worker: hint.Worker{ID: worker}, Session: id, Tenant: tenant})
}

func viewOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
