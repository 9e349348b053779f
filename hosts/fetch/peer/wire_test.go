package peer

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestMessagesRoundTrip(t *testing.T) {
	f := fetch{timeoutMS: 7, blockBytes: 8, maxBytes: 9, namespace: []byte("ns"), hashes: []uint64{1, 1 << 63, 0}}
	b := f.append(nil)
	var g fetch
	if err := g.parse(b); err != nil || !bytes.Equal(g.append(nil), b) {
		t.Errorf("%+v %v", g, err)
	}
	m := begin{stop: StopMissing, records: []record{{1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}}}
	b = m.append(nil)
	var n begin
	if err := n.parse(b); err != nil || !bytes.Equal(n.append(nil), b) || n.records[1] != m.records[1] {
		t.Errorf("%+v %v", n, err)
	}
	for s := range Stop(stops + 1) {
		if (s.String() == "unknown") != (s == stops) {
			t.Errorf("%d is %q", s, s)
		}
	}
}

// TestMessagesRefused holds each rule of the messages.
func TestMessagesRefused(t *testing.T) {
	ok := func() *fetch { return &fetch{timeoutMS: 1, namespace: []byte("n"), hashes: []uint64{1}} }
	put := func(b []byte, at int, v byte) []byte { b[at] = v; return b }
	h := header{kind: frameFetch, op: 1, from: 2, to: 3}
	head := func() []byte { b := make([]byte, headerBytes); h.put(b); return b }
	w := welcome{maxBlocks: 1}
	for name, parse := range map[string]func() error{
		"a Fetch cut short":         func() error { return new(fetch).parse(ok().append(nil)[:40]) },
		"a Fetch with a tail":       func() error { return new(fetch).parse(append(ok().append(nil), 0)) },
		"a Fetch without blocks":    func() error { f := ok(); f.hashes = nil; return f.parse(f.append(nil)) },
		"a Fetch without time":      func() error { f := ok(); f.timeoutMS = 0; return f.parse(f.append(nil)) },
		"a Fetch with a long name":  func() error { f := ok(); f.namespace = make([]byte, MaxNamespace+1); return f.parse(f.append(nil)) },
		"a Fetch with many blocks":  func() error { f := ok(); f.hashes = make([]uint64, MaxBlocks+1); return f.parse(f.append(nil)) },
		"a Fetch for huge blocks":   func() error { f := ok(); f.blockBytes = MaxBlock + 1; return f.parse(f.append(nil)) },
		"a Fetch with reserved set": func() error { return new(fetch).parse(put(ok().append(nil), 24, 1)) },
		"a Begin of another length": func() error { return new(begin).parse((&begin{records: make([]record, 2)}).append(nil)[:50]) },
		"an empty block":            func() error { return new(begin).parse((&begin{records: make([]record, 1)}).append(nil)) },
		"a Begin with another stop": func() error { return new(begin).parse((&begin{stop: stops}).append(nil)) },
		"a short Hello":             func() error { return new(hello).parse(nil) },
		"another magic":             func() error { return new(hello).parse(put(new(hello).append(nil), 0, 0)) },
		"a Welcome without blocks":  func() error { return new(welcome).parse(new(welcome).append(nil)) },
		"a slab without size":       func() error { return new(welcome).parse(put(w.append(nil), 0, 1)) },
		"a size without slab":       func() error { return new(welcome).parse(put(w.append(nil), 16, 1)) },
		"features of another time":  func() error { return new(welcome).parse(put(w.append(nil), 0, 2)) },
		"a short End":               func() error { return new(end).parse(make([]byte, endBytes-1)) },
		"a short trailer":           func() error { return new(trailer).parse(make([]byte, trailerBytes-1)) },
		"another version":           func() error { _, err := parseHeader(put(head(), 5, 2)); return err },
		"a header's reserved bytes": func() error { _, err := parseHeader(put(head(), 6, 1)); return err },
		"another type":              func() error { _, err := parseHeader(put(head(), 4, 8)); return err },
		"type 0":                    func() error { _, err := parseHeader(put(head(), 4, 0)); return err },
		"no incarnation":            func() error { _, err := parseHeader(put(head(), 16, 0)); return err },
		"a long frame":              func() error { _, err := parseHeader(put(head(), 3, 1)); return err },
	} {
		if err := parse(); !errors.Is(err, ErrProtocol) || !strings.HasPrefix(err.Error(), ErrProtocol.Error()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := parseHeader(head()); err != nil {
		t.Error(err)
	}
	if err := new(welcome).parse(w.append(nil)); err != nil {
		t.Error(err)
	}
}

// message is what all bodies have in common.
type message interface {
	append([]byte) []byte
	parse([]byte) error
}

// canonical fuzzes one decoder: what it takes, it writes back byte for byte.
func canonical(f *testing.F, m message, seeds ...message) {
	for _, s := range seeds {
		f.Add(s.append(nil))
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := m.parse(b); err != nil {
			if !errors.Is(err, ErrProtocol) {
				t.Fatal(err)
			}
			return
		}
		if got := m.append(nil); !bytes.Equal(got, b) {
			t.Fatalf("%x was read as %x", b, got)
		}
	})
}

func FuzzHello(f *testing.F) { canonical(f, &hello{}, &hello{}, &hello{features: 1}) }
func FuzzWelcome(f *testing.F) {
	canonical(f, &welcome{}, &welcome{maxBlocks: 1}, &welcome{1, 2, 3, 4})
}
func FuzzFetch(f *testing.F) {
	canonical(f, &fetch{}, &fetch{timeoutMS: 1, namespace: []byte("n"), hashes: []uint64{1, 2}})
}
func FuzzBegin(f *testing.F) {
	canonical(f, &begin{}, &begin{}, &begin{stop: 1, records: []record{{1, 2, 3, 4, 5}}})
}
func FuzzEnd(f *testing.F)     { canonical(f, &end{}, &end{served: 1, credit: 2}) }
func FuzzTrailer(f *testing.F) { canonical(f, &trailer{}, &trailer{1, 2, 3}) }

func FuzzHeader(f *testing.F) {
	b := make([]byte, headerBytes)
	(&header{length: 16, kind: frameHello, from: 1}).put(b)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHeader(b)
		if err != nil {
			return
		}
		got := make([]byte, headerBytes)
		if h.put(got); !bytes.Equal(got, b) {
			t.Fatalf("%x was read as %x", b, got)
		}
	})
}
