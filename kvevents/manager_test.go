package kvevents

import (
	"errors"
	"testing"
	"time"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/session"
)

func TestManager(t *testing.T) {
	p, l := newPublisher(t), newLog()
	e := bound(p, place(t), nil)
	p.publish(nil, stored(nil, 1))
	man := New(quick(l))
	defer man.Close()
	rank1 := hint.Worker{ID: rank0.ID, Rank: 1, HasRank: true}
	unranked := hint.Worker{ID: rank0.ID}
	text := hint.Worker{ID: hint.NamedWorker("7")}

	for _, bad := range []error{
		man.Set(hint.Worker{}, e, l), man.Set(rank0, e, nil), man.Set(rank0, Endpoints{Events: "h"}, l),
	} {
		if bad == nil {
			t.Error("no error")
		}
	}
	if err := man.Set(rank0, e, l); err != nil {
		t.Fatal(err)
	}
	l.wait(t, "replayed 0 1")
	if err := man.Set(rank0, e, l); err != nil || man.Stats()[0].Replays != 1 {
		t.Errorf("the same again: %v", err)
	}
	other := e
	other.Topic = "x"
	if err := man.Set(rank0, other, l); err != nil {
		t.Fatal(err)
	}
	same(t, l.wait(t, "replayed 0 1"), "7 rank 0 cleared", "cleared", "connected", "7 rank 0 stored [1]")

	nowhere := Endpoints{Events: place(t).Events}
	for _, w := range []hint.Worker{rank1, unranked, text} {
		if err := man.Set(w, nowhere, l); err != nil {
			t.Fatal(err)
		}
	}
	var order []hint.Worker
	for _, s := range man.Stats() {
		order = append(order, s.Worker)
	}
	if len(order) != 4 || order[0] != unranked || order[1] != rank0 || order[2] != rank1 || order[3] != text {
		t.Errorf("order %v", order)
	}
	until(t, "one of four is live", func() bool { live, all := man.Live(); return live == 1 && all == 4 })
	if man.RemoveRank(hint.Worker{ID: rank0.ID, Rank: 9, HasRank: true}) || !man.RemoveRank(rank1) {
		t.Error("RemoveRank")
	}
	l.wait(t, "7 rank 1 cleared")
	if n := man.Remove(rank0.ID); n != 2 || l.blocks(rank0) != 0 {
		t.Errorf("removed %d feeds, %d blocks are left", n, l.blocks(rank0))
	}
	if n := man.Remove(rank0.ID); n != 0 {
		t.Errorf("removed %d again", n)
	}
	man.Close()
	man.Close()
	if err := man.Set(rank0, e, l); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

func TestQueue(t *testing.T) {
	q := newQueue(3, 10, &pool{max: 1000})
	push := func(seq uint64, bytes int, want bool) {
		t.Helper()
		if got := q.push(item{what: itemBatch, seq: seq, payload: make([]byte, bytes)}); got != want {
			t.Errorf("push %d: %v", seq, got)
		}
	}
	pop := func(what uint8, seq uint64) {
		t.Helper()
		if it, ok := q.take(); !ok || it.what != what || it.seq != seq {
			t.Errorf("%+v %v, want %d %d", it, ok, what, seq)
		}
	}
	push(1, 5, true)
	push(2, 6, false)
	push(3, 5, true)
	push(4, 0, true)
	push(5, 0, false)
	pop(itemBatch, 1)
	push(6, 1, true) // the hole before it tells
	push(7, 1, false)
	push(8, 1, false)
	q.push(item{what: itemConnected})
	pop(itemBatch, 3)
	pop(itemBatch, 4)
	pop(itemBatch, 6)
	pop(itemConnected, 0)
	if _, ok := q.take(); ok {
		t.Error("more")
	}
	push(9, 11, false)
	pop(itemLost, 9)
	if _, ok := q.take(); ok {
		t.Error("more")
	}
}

// TestQueueTotal has two queues share what only one may have.
func TestQueueTotal(t *testing.T) {
	all := &pool{max: 10}
	a, b := newQueue(100, 100, all), newQueue(100, 100, all)
	six := item{what: itemBatch, payload: make([]byte, 6)}
	if !a.push(six) || a.push(six) || !b.push(six) || b.push(six) {
		t.Error("an empty queue takes one batch, and no other more than there is")
	}
	a.take()
	b.close()
	if n := all.now.Load(); n != 0 {
		t.Errorf("%d bytes are held by nobody", n)
	}
}

// TestQueueGrows goes round the ring at every size.
func TestQueueGrows(t *testing.T) {
	q := newQueue(1000, 1, &pool{})
	var in, out uint64
	for range 300 {
		for range 3 {
			q.push(item{what: itemBatch, seq: in})
			in++
		}
		for range 2 {
			if it, ok := q.take(); !ok || it.seq != out {
				t.Fatalf("%+v %v, want %d", it, ok, out)
			}
			out++
		}
	}
	if n, _ := q.len(); n != 300 {
		t.Errorf("%d queued", n)
	}
}

func TestGroups(t *testing.T) {
	var tr track
	tests := []struct {
		e    Event
		want session.Group
	}{
		{Event{Group: NoGroup}, session.GroupAbsent},
		{Event{Group: 0}, session.GroupAbsent},
		{Event{Group: 1}, session.GroupOther},
		{Event{Group: 1, SpecKind: []byte("full_attention")}, session.GroupFull},
		{Event{Group: 1}, session.GroupFull}, // a removal, later
		{Event{Group: 0, SpecKind: []byte("sliding_window"), SlidingWindow: 128}, session.GroupOther},
		{Event{Group: 0}, session.GroupOther},
		{Event{Group: 2, SpecKind: []byte("mla_attention")}, session.GroupFull},
		{Event{Group: NoGroup, SpecKind: []byte("mamba")}, session.GroupOther},
		{Event{Group: NoGroup, SlidingWindow: 1}, session.GroupOther},
		{Event{Group: NoGroup, SpecKind: []byte("full_attention")}, session.GroupFull},
		{Event{Group: 1 << 30, SpecKind: []byte("full_attention")}, session.GroupFull},
		{Event{Group: 1 << 30}, session.GroupOther},
	}
	for _, tt := range tests {
		if got := tr.groupOf(&tt.e); got != tt.want {
			t.Errorf("%+v: %d, want %d", tt.e, got, tt.want)
		}
	}
}

func TestTiers(t *testing.T) {
	for medium, want := range map[string]session.Tier{
		"": session.TierAbsent, "GPU": session.TierGPU, "CPU": session.TierHost, "CPU_PINNED": session.TierHost, "CPU_TIER1": session.TierHost,
		"CPU_TIER2": session.TierDisk, "DISK": session.TierDisk, "NVME": session.TierDisk, "STORAGE": session.TierDisk, "EXTERNAL": session.TierExternal,
		"NETWORK": session.TierExternal, "REMOTE": session.TierExternal, "SHARED": session.TierExternal, "TAPE": session.TierOther,
	} {
		if got := tierOf([]byte(medium)); got != want {
			t.Errorf("%q: %d", medium, got)
		}
	}
	var d Decoder
	b, err := d.Decode(unhex(t, "92 00 91 95 ac 426c6f636b52656d6f766564 91 05 a3 475055 c0 a6 52454d4f5445"))
	if err != nil || b.Events[0].Tier != session.TierExternal {
		t.Errorf("a block elsewhere: %v %v", b, err)
	}
}

func TestReplayBudget(t *testing.T) {
	var tr track
	cfg := Config{ReplayBurst: 2, ReplayEvery: time.Second}.withDefaults()
	tr.init(&cfg)
	now := tr.filled
	for i, tt := range []struct {
		after time.Duration
		want  bool
	}{{0, true}, {0, true}, {0, false}, {500 * time.Millisecond, false}, {time.Second, true}, {time.Second, false}, {time.Hour, true}, {time.Hour, true}, {time.Hour, false}} {
		if got := tr.mayReplay(&cfg, now.Add(tt.after)); got != tt.want {
			t.Errorf("%d: %v", i, got)
		}
	}
}

func TestLag(t *testing.T) {
	now := time.Unix(1000, 0)
	for ts, want := range map[float64]time.Duration{0: 0, 999.5: 500 * time.Millisecond, 1001: -time.Second, 1e300: 0} {
		if got := lagOf(now, ts); got != want {
			t.Errorf("%v: %v", ts, got)
		}
	}
}
