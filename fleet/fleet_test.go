package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/session"
	"github.com/kvrt/kvrt/hosts/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newFleet(t testing.TB) *Fleet {
	f := New(Config{})
	t.Cleanup(f.Close)
	return f
}

func parse(t testing.TB, text string) worker.Worker {
	t.Helper()
	var w worker.Worker
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		t.Fatal(err)
	}
	return w
}

func workers(t testing.TB, texts ...string) []worker.Worker {
	var out []worker.Worker
	for _, text := range texts {
		out = append(out, parse(t, text))
	}
	return out
}

// spell lists the workers as "id:type:origin" words.
func (f *Fleet) spell() string {
	var words []string
	for _, w := range f.Workers() {
		words = append(words, fmt.Sprintf("%s:%s:%s", w.ID, w.Type, w.Origin))
	}
	return strings.Join(words, " ")
}

func TestReconcile(t *testing.T) {
	f := newFleet(t)
	step := func(want string, err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		if got := f.spell(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	one, two := `{"id":1,"type":"a"}`, `{"id":2,"type":"a"}`
	step("1:a:config 2:a:config", f.Reconcile(workers(t, one, two)))
	step("1:a:config 2:b:api 3:b:api", errors.Join(f.Put(parse(t, `{"id":2,"type":"b"}`)), f.Put(parse(t, `{"id":3,"type":"b"}`))))
	step("1:a:config 2:b:api 3:b:api", f.Reconcile(workers(t, one, two))) // the same again: nothing is undone
	step("2:b:api 3:b:api", f.Reconcile(workers(t, two)))                 // 1 has gone
	step("2:c:config 3:b:api", f.Reconcile(workers(t, `{"id":2,"type":"c"}`)))
	step("2:c:config 3:c:config", f.Reconcile(workers(t, `{"id":2,"type":"c"}`, `{"id":3,"type":"c"}`)))
	if !f.Delete(hint.UintWorker(3)) || f.Delete(hint.UintWorker(3)) {
		t.Error("3 is deleted once")
	}
	step("2:c:config", f.Reconcile(workers(t, `{"id":2,"type":"c"}`, `{"id":3,"type":"c"}`))) // and stays so
	step("2:d:api", f.Put(parse(t, `{"id":2,"type":"d"}`)))
	step("2:d:api", f.Reconcile(nil)) // what somebody has put since is not the configuration's to remove
}

func TestReconcileIsAllOrNothing(t *testing.T) {
	f := newFleet(t)
	taken := "ipc://" + filepath.Join(t.TempDir(), "e")
	if err := f.Put(parse(t, `{"id":"api","ranks":[{"events":"`+taken+`"}]}`)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ worker, field string }{
		{`{"id":2,"block_size":9999999}`, "block_size"},
		{`{"id":2,"ranks":[{"events":"` + taken + `"}]}`, "ranks[0].events"},
		{`{"id":2,"ranks":[{"events":"ipc:///x","replay":"ipc:///x"}]}`, "ranks[0].replay"},
	} {
		list := workers(t, `{"id":1}`, c.worker)
		for _, err := range []error{f.Check(list), f.Reconcile(list)} {
			var bad *worker.FieldError
			if !errors.As(err, &bad) || bad.Worker != hint.UintWorker(2) || bad.Field != c.field {
				t.Errorf("%s: %v", c.worker, err)
			}
		}
		if got := f.spell(); got != `"api"::api` {
			t.Error(got)
		}
	}
	if err := f.Check(workers(t, `{"id":1}`)); err != nil || f.spell() != `"api"::api` {
		t.Error(err, f.spell())
	}
}

// TestNamespacesFollowTheirWorkers: a namespace has an index while a worker of it has a
// feed, and a change of one rank leaves the feeds of the others alone.
func TestNamespacesFollowTheirWorkers(t *testing.T) {
	f := newFleet(t)
	dir := t.TempDir()
	put := func(text string) {
		t.Helper()
		if err := f.Put(parse(t, strings.ReplaceAll(text, "DIR", dir))); err != nil {
			t.Fatal(err)
		}
	}
	state := func(want string) {
		t.Helper()
		var words []string
		for _, l := range f.Lineage() {
			words = append(words, l.Namespace)
		}
		for _, s := range f.Feeds() {
			words = append(words, s.Worker.String()+"@"+filepath.Base(s.Endpoints.Events))
		}
		if got := strings.Join(words, " "); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	put(`{"id":1,"namespace":"n"}`)
	state("")
	put(`{"id":1,"namespace":"n","ranks":[{"rank":0,"events":"ipc://DIR/a"},{"rank":1,"events":"ipc://DIR/b"}]}`)
	state("n 1 rank 0@a 1 rank 1@b")
	x := f.Sessions().Index("n")
	key := func(rank uint32) hint.Worker {
		return hint.Worker{ID: hint.UintWorker(1), Rank: rank, HasRank: true}
	}
	for rank := range uint32(2) {
		if _, err := x.Apply(&session.Event{Op: session.OpStored, Worker: key(rank), Session: "s", Hashes: []uint64{1, 2}}); err != nil {
			t.Fatal(err)
		}
	}
	fronts := func(want int) {
		t.Helper()
		if got, _ := f.Sessions().Index("n").Frontiers(nil, "s", ""); len(got) != want {
			t.Errorf("%d frontiers, want %d", len(got), want)
		}
	}
	put(`{"id":1,"namespace":"n","type":"t","ranks":[{"rank":0,"events":"ipc://DIR/a"},{"rank":1,"events":"ipc://DIR/b","source":"unix:///s"}]}`)
	fronts(2) // what has nothing to do with feeds leaves them
	put(`{"id":1,"namespace":"n","ranks":[{"rank":0,"events":"ipc://DIR/a"},{"rank":1,"events":"ipc://DIR/c"}]}`)
	fronts(1)
	state("n 1 rank 0@a 1 rank 1@c")
	if f.Sessions().Index("n") != x {
		t.Error("the index was made anew")
	}
	put(`{"id":2,"namespace":"n","ranks":[{"events":"ipc://DIR/d"}]}`)
	put(`{"id":1,"namespace":"m","ranks":[{"rank":0,"events":"ipc://DIR/a"}]}`)
	state("m n 1 rank 0@a 2@d")
	fronts(0)
	put(`{"id":1,"namespace":"m","ranks":[{"rank":0}]}`)
	state("n 2@d")
	f.Delete(hint.UintWorker(2))
	state("")
	if live, all := f.Live(); live != 0 || all != 0 {
		t.Error(live, all)
	}
}

func TestFeedsAreBounded(t *testing.T) {
	f := New(Config{MaxFeeds: 2})
	t.Cleanup(f.Close)
	dir := t.TempDir()
	two := parse(t, `{"id":1,"ranks":[{"rank":0,"events":"ipc://`+dir+`/a"},{"rank":1,"events":"ipc://`+dir+`/b"}]}`)
	one := parse(t, `{"id":2,"ranks":[{"events":"ipc://`+dir+`/c"}]}`)
	if err := f.Put(two); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Put(two), f.Put(parse(t, `{"id":3}`))); err != nil {
		t.Error(err)
	}
	for _, err := range []error{f.Put(one), f.Reconcile([]worker.Worker{one}), f.Check([]worker.Worker{one})} {
		if !errors.Is(err, ErrFeeds) {
			t.Error(err)
		}
	}
	f.Delete(two.ID)
	if err := f.Reconcile([]worker.Worker{one}); err != nil {
		t.Error(err)
	}
}

func decode(t testing.TB, text string) *hint.Context {
	t.Helper()
	var c hint.Context
	if err := c.Decode(abi.FormatJSON, []byte(text), hint.ContextOptions{}); err != nil {
		t.Fatal(err)
	}
	return &c
}

func TestSeed(t *testing.T) {
	f := newFleet(t)
	dir := t.TempDir()
	for _, w := range workers(t, `{"id":7,"ranks":[{"events":"ipc://`+dir+`/a"}]}`, `{"id":8,"namespace":"other"}`) {
		if err := f.Put(w); err != nil {
			t.Fatal(err)
		}
	}
	x := f.Sessions().Index("")
	seven := hint.Worker{ID: hint.UintWorker(7)}
	if _, err := x.Apply(&session.Event{Op: session.OpStored, Worker: seven, Session: "s", Hashes: []uint64{1, 2}}); err != nil {
		t.Fatal(err)
	}
	const head = `{"request_id":"r","selected":{"worker_id":7},`
	for _, c := range []struct {
		context, tenant, session string
		frontiers                int
		want                     SeedStats
	}{
		{head + `"events":[{"type":"stored","session_id":"x","worker_id":7,"block_hashes":[5]},{"type":"removed","worker_id":7,"block_hashes":[1]},{"type":"cleared","worker_id":7}]}`, "", "s", 1, SeedStats{LeftOut: 3}},
		{head + `"events":[{"type":"match","session_id":"x","worker_id":7,"block_hash":2}]}`, "", "x", 1, SeedStats{LeftOut: 3, Matched: 1}},
		{head + `"events":[{"type":"match","session_id":"y","worker_id":8,"block_hash":2},{"type":"match","session_id":"y","worker_id":9,"block_hash":2}]}`, "", "y", 0, SeedStats{LeftOut: 3, Matched: 1, UnknownWorker: 2}},
		{head + `"hash_kind":"sequence","events":[{"type":"match","session_id":"y","worker_id":7,"block_hash":2}]}`, "", "y", 0, SeedStats{LeftOut: 3, Matched: 1, UnknownWorker: 2, Refused: 1}},
		{head + `"namespace":"off","events":[{"type":"match","session_id":"y","worker_id":7,"block_hash":2}]}`, "", "y", 0, SeedStats{LeftOut: 4, Matched: 1, UnknownWorker: 2, Refused: 1}},
		{head + `"tenant":"t","session":{"session_id":"s"}}`, "t", "s", 1, SeedStats{LeftOut: 4, Matched: 1, UnknownWorker: 2, Refused: 1}},
		{head + `"tenant":"u","session":{"session_id":"s"}}`, "u", "s", 0, SeedStats{LeftOut: 4, Matched: 1, UnknownWorker: 2, Refused: 1}},
	} {
		if err := f.Seed(decode(t, c.context)); err != nil {
			t.Fatal(err)
		}
		if got := f.SeedStats(); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.context, got, c.want)
		}
		if got, _ := x.Frontiers(nil, c.session, c.tenant); len(got) != c.frontiers {
			t.Errorf("%s: %v", c.context, got)
		}
	}
	f.Delete(hint.UintWorker(7))
	if got, _ := x.Frontiers(nil, "x", ""); len(got) != 0 {
		t.Error(got)
	}
}

func TestSeedAllocatesNothing(t *testing.T) {
	f := newFleet(t)
	if err := f.Put(parse(t, `{"id":7,"ranks":[{"events":"ipc://`+t.TempDir()+`/a"}]}`)); err != nil {
		t.Fatal(err)
	}
	c := decode(t, `{"request_id":"r","tenant":"t","session":{"session_id":"s"},"selected":{"worker_id":7},
"events":[{"type":"match","session_id":"s","worker_id":7,"block_hash":2}]}`)
	if n := testing.AllocsPerRun(100, func() { f.Seed(c) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestMatchesBesideRemoval: a match that meets the removal of its worker leaves nothing.
func TestMatchesBesideRemoval(t *testing.T) {
	f := newFleet(t)
	dir := t.TempDir()
	keep := parse(t, `{"id":1,"ranks":[{"events":"ipc://`+dir+`/k"}]}`)
	come := parse(t, `{"id":7}`)
	if err := f.Put(keep); err != nil {
		t.Fatal(err)
	}
	x := f.Sessions().Index("")
	var group sync.WaitGroup
	for i := range 2 {
		group.Go(func() {
			c := decode(t, fmt.Sprintf(`{"request_id":"r","selected":{"worker_id":7},"events":[{"type":"match","session_id":"s%d","worker_id":7,"block_hash":2}]}`, i))
			for range 500 {
				f.Seed(c)
			}
		})
	}
	group.Go(func() {
		for range 200 {
			if err := f.Put(come); err != nil {
				t.Error(err)
			}
			f.Delete(come.ID)
		}
	})
	group.Wait()
	for i := range 2 {
		if got, _ := x.Frontiers(nil, fmt.Sprintf("s%d", i), ""); len(got) != 0 {
			t.Error(got)
		}
	}
}
