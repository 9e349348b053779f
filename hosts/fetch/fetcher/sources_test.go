package fetcher

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kvrt/kvrt/hosts/fetch/peer"
)

// TestSources: who brought what, who failed, and why.
func TestSources(t *testing.T) {
	w := newWorld(t, Config{MaxPeers: 2})
	good := w.serve(0, seq(1, 10)...)
	w.paths[w.source(1).String()] = w.dir + "/nobody"
	names := []string{w.source(0).String(), w.source(1).String(), w.source(2).String()}
	for n, hashes := range map[int][]uint64{0: seq(1, 5), 1: seq(20, 2)} {
		w.submit(ident(n), w.source(n), hashes)
		w.fetch(request(ident(n), hashes))
	}
	got := w.fetcher.Sources()
	if len(got) != 2 || got[0].Source != names[0] || got[1].Source != names[1] {
		t.Fatalf("%+v", got)
	}
	if s := got[0]; s.LastError != "" || s.Incarnation == 0 || s.InUse != 0 || s.Client.Idle != 1 || s.Client.Blocks != 5 || s.Client.Bytes != 5*size {
		t.Errorf("%+v", s)
	}
	if s := got[1]; !strings.Contains(s.LastError, "no such file") || s.LastErrorAt.IsZero() || s.Incarnation != 0 || s.Client.DialFailures != 1 {
		t.Errorf("%+v", s)
	}
	denied := request(ident(3), seq(6, 1))
	denied.Namespace = []byte("another")
	w.submit(ident(3), w.source(0), denied.Hashes)
	w.fetch(denied)
	if s := w.fetcher.Sources()[0]; !strings.Contains(s.LastError, "does not let this peer read") {
		t.Errorf("denied: %+v", s)
	}

	// A source that gives way to another one is remembered by what it brought.
	w.serve(2, 30)
	w.submit(ident(4), w.source(2), []uint64{30})
	w.fetch(request(ident(4), []uint64{30}))
	if got := w.fetcher.Sources(); len(got) != 2 {
		t.Errorf("%d sources", len(got))
	}
	brought := w.fetcher.Brought()
	want := []Brought{{names[0], 5, 5 * size}, {names[2], 1, size}, {}}
	if len(brought) != 3 || brought[0] != want[0] || brought[1] != want[1] || brought[2] != want[2] {
		t.Errorf("%+v, want %+v", brought, want)
	}
	if st := good.Stats(); st.Blocks != 5 {
		t.Errorf("%+v", st)
	}
}

// TestBroughtIsBounded: however many sources there are.
func TestBroughtIsBounded(t *testing.T) {
	w := newWorld(t, Config{})
	var total uint64
	for n := range 3 * maxApart {
		w.fetcher.note(w.source(n).String(), &route{}, &peer.Result{Blocks: n % 3, Bytes: 7}, nil)
		total += uint64(n % 3)
	}
	got := w.fetcher.Brought()
	if len(got) != maxApart+1 || got[maxApart].Source != "" || got[maxApart].Blocks == 0 {
		t.Errorf("%d sources, the last %+v", len(got), got[len(got)-1])
	}
	for _, b := range got {
		total -= b.Blocks
	}
	if total != 0 {
		t.Errorf("the blocks do not add up: %d", int64(total))
	}
	r := &route{}
	w.fetcher.note("s", r, &peer.Result{}, errors.New(strings.Repeat("é", maxErrorText)+"\xff"))
	if len(r.lastError) > maxErrorText || !utf8.ValidString(r.lastError) {
		t.Errorf("%d bytes of an error", len(r.lastError))
	}
}
