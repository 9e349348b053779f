package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kvrt/kvrt/hint"
)

func numbered(n uint32) []Rank {
	out := make([]Rank, n)
	for i := range out {
		rank := uint32(i)
		out[i].Rank = &rank
	}
	return out
}

func parse(t *testing.T, text string) Worker {
	t.Helper()
	var w Worker
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestPutRefuses(t *testing.T) {
	for _, c := range []struct{ worker, want string }{
		{`{}`, "id: "},
		{`{"id": 1, "type": "a\u0000"}`, "type: "},
		{`{"id": 1, "namespace": "` + strings.Repeat("x", MaxText+1) + `"}`, "namespace: "},
		{`{"id": 1, "block_size": 1048577}`, "block_size: "},
		{`{"id": 1, "capabilities": ["kv.fetch", "kv.fetch"]}`, "capabilities[1]: kv.fetch is listed twice"},
		{`{"id": 1, "capabilities": [""]}`, "capabilities[0]: "},
		{`{"id": 1, "ranks": [{"rank": 0}, {}]}`, "ranks[1].rank: "},
		{`{"id": 1, "ranks": [{}, {}]}`, "ranks[0].rank: "},
		{`{"id": 1, "ranks": [{"rank": 2}, {"rank": 1}, {"rank": 2}]}`, "ranks: rank 2 is listed twice"},
		{`{"id": 1, "ranks": [{"rank": 4294967295}]}`, "ranks[0].rank: "},
		{`{"id": 1, "ranks": [{"events": "h:1"}]}`, "ranks[0].events: "},
		{`{"id": 1, "ranks": [{"events": "tcp://h"}]}`, "ranks[0].events: "},
		{`{"id": 1, "ranks": [{"events": "tcp://*:5557"}]}`, "ranks[0].events: * is no address"},
		{`{"id": 1, "ranks": [{"events": "tcp://0.0.0.0:5557"}]}`, "ranks[0].events: 0.0.0.0 is no address"},
		{`{"id": 1, "ranks": [{"events": "tcp://[::]:5557"}]}`, "ranks[0].events: :: is no address"},
		{`{"id": 1, "ranks": [{"events": "tcp://::1:5557"}]}`, "ranks[0].events: "},
		{`{"id": 1, "ranks": [{"events": "tcp://h:0"}]}`, "ranks[0].events: port"},
		{`{"id": 1, "ranks": [{"events": "tcp://h:65536"}]}`, "ranks[0].events: port"},
		{`{"id": 1, "ranks": [{"events": "ipc://"}]}`, "ranks[0].events: "},
		{`{"id": 1, "ranks": [{"events": "unix:///a"}]}`, "ranks[0].events: "},
		{`{"id": 1, "ranks": [{"source": "ipc:///a"}]}`, "ranks[0].source: "},
		{`{"id": 1, "ranks": [{"source": "tcp://user@h:1"}]}`, "ranks[0].source: "},
		{`{"id": 1, "ranks": [{"replay": "tcp://h:1"}]}`, "ranks[0].replay: "},
		{`{"id": "new", "ranks": [{"events": "tcp://taken:1"}]}`, "ranks[0].events: worker 9 publishes at tcp://taken:1 already"},
	} {
		cat := New(Config{Changed: func(c Change) {
			if c.New.ID != hint.UintWorker(9) {
				t.Errorf("a change: %+v", c)
			}
		}})
		if err := cat.Put(parse(t, `{"id": 9, "ranks": [{"events": "tcp://taken:1"}]}`)); err != nil {
			t.Fatal(err)
		}
		err := cat.Put(parse(t, c.worker))
		var field *FieldError
		if !errors.As(err, &field) || !strings.Contains(err.Error(), ": "+c.want) || cat.Len() != 1 {
			t.Errorf("%s: %v, want %s", c.worker, err, c.want)
		}
	}
}

func TestPutGetDelete(t *testing.T) {
	var changes []string
	name := func(w *Worker) string {
		if w == nil {
			return "-"
		}
		return w.ID.String() + w.Type
	}
	c := New(Config{Changed: func(ch Change) { changes = append(changes, name(ch.Old)+">"+name(ch.New)) }})
	text := `{"id":"b","type":"prefill","namespace":"n","block_size":16,"capabilities":[],"ranks":[` +
		`{"rank":0,"events":"tcp://[::1]:1","replay":"ipc:///r","source":"unix:///s"},{"rank":1,"events":"","replay":"","source":"tcp://h:2"}]}`
	w := parse(t, text)
	w.Ranks[0], w.Ranks[1] = w.Ranks[1], w.Ranks[0]
	if err := errors.Join(c.Put(w), c.Put(Worker{ID: hint.UintWorker(7), Type: "agg"}), c.Put(Worker{ID: hint.IntWorker(-7)}), c.Put(w)); err != nil {
		t.Fatal(err)
	}
	*w.Ranks[0].Rank = 99 // the catalogue has a copy
	got, ok := c.Get(hint.NamedWorker("b"))
	if b, err := json.Marshal(got); !ok || err != nil || string(b) != text {
		t.Errorf("%s, %v, want %s", b, err, text)
	}
	want := []hint.Worker{{ID: hint.NamedWorker("b"), HasRank: true}, {ID: hint.NamedWorker("b"), Rank: 1, HasRank: true}}
	if !slices.Equal(got.Workers(), want) {
		t.Error(got.Workers())
	}
	var ids []string
	for _, w := range c.List() {
		ids = append(ids, name(w))
	}
	if !slices.Equal(ids, []string{"-7", "7aggregated", `"b"prefill`}) {
		t.Error(ids)
	}
	if !c.Delete(hint.UintWorker(7)) || c.Delete(hint.UintWorker(7)) || c.Delete(hint.NamedWorker("7")) {
		t.Error("a worker is deleted once, by its own id")
	}
	if _, ok := c.Get(hint.UintWorker(7)); ok {
		t.Error("a deleted worker is there")
	}
	w.Ranks = nil
	if err := c.Put(w); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(changes, []string{`->"b"prefill`, "->7aggregated", "->-7", "7aggregated>-", `"b"prefill>"b"prefill`}) {
		t.Error(changes)
	}
}

func TestCapabilities(t *testing.T) {
	c := New(Config{})
	for i, text := range []string{`{"id": 0}`, `{"id": 1, "capabilities": null}`, `{"id": 2, "capabilities": []}`, `{"id": 3, "capabilities": ["kv.fetch"]}`} {
		if err := c.Put(parse(t, text)); err != nil {
			t.Fatal(err)
		}
		id := hint.UintWorker(uint64(i))
		if c.Capable(id, "kv.fetch") != (i != 2) || c.Capable(id, "kv.retain") != (i < 2) {
			t.Errorf("%s: %v %v", text, c.Capable(id, "kv.fetch"), c.Capable(id, "kv.retain"))
		}
	}
	if !c.Capable(hint.UintWorker(99), "kv.fetch") {
		t.Error("of a worker that nobody knows no capability is missing")
	}
}

func TestUpdateIsAllOrNothing(t *testing.T) {
	changes := 0
	c := New(Config{MaxWorkers: 2, Changed: func(Change) { changes++ }})
	one, two, three := Worker{ID: hint.UintWorker(1)}, Worker{ID: hint.UintWorker(2)}, Worker{ID: hint.UintWorker(3)}
	if err := c.Update([]Worker{one, two, three}, nil); !errors.Is(err, ErrFull) || c.Len() != 0 {
		t.Error(err, c.Len())
	}
	if err := c.Update([]Worker{one, two}, nil); err != nil {
		t.Error(err)
	}
	if err := c.Update([]Worker{three}, []hint.WorkerID{one.ID, hint.NamedWorker("nobody")}); err != nil || c.Len() != 2 {
		t.Error(err, c.Len())
	}
	if err := c.Update([]Worker{{}}, []hint.WorkerID{two.ID}); err == nil || c.Len() != 2 || changes != 4 {
		t.Error(err, c.Len(), changes)
	}
}

// TestReadersAndWriters is for the race detector: a reader sees whole workers.
func TestReadersAndWriters(t *testing.T) {
	c := New(Config{})
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	for i := range 2 {
		writers.Go(func() {
			for n := range 300 {
				id := hint.UintWorker(uint64(n % 7))
				if n%3 == i {
					c.Delete(id)
				} else if err := c.Put(Worker{ID: id, Type: fmt.Sprint(i), Namespace: fmt.Sprint(i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				for _, w := range c.List() {
					if w.Type != w.Namespace {
						t.Error("a worker that nobody put")
					}
				}
				c.Capable(hint.UintWorker(3), "kv.fetch")
				_ = c.snap.Load().list()
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
}

// TestLongIDs: an id that no worker can have is not looked for, since a guest pays no fuel
// for its length.
func TestLongIDs(t *testing.T) {
	s := newSnapshot(map[hint.WorkerID]*entry{})
	for n, found := range map[int]bool{hint.MaxIdentity: true, hint.MaxIdentity + 1: false} {
		id := hint.NamedWorker(strings.Repeat("w", n))
		s.byID[id] = &entry{common: []byte("record")}
		if (s.find(id, ^uint32(0)) != nil) != found {
			t.Errorf("%d bytes: looked for: %v", n, !found)
		}
	}
}
