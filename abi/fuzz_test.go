package abi_test

import (
	"bytes"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/abi/vectors"
)

// seeds adds the bytes of a file of vectors.
func seeds(f *testing.F, file string, add func(b []byte)) {
	v, err := vectors.Load(file)
	if err != nil {
		f.Fatal(err)
	}
	for _, x := range v.Vectors {
		add(bytes.Clone(x.Hex))
	}
}

// read reads checked bytes through the views, completely.
func read(t *testing.T, record string, b []byte) {
	r := vectors.Reader{Table: abi.Contract()}
	if _, err := r.Value(record, b); err != nil {
		t.Fatal(err)
	}
}

// walker visits every node of a tree that was accepted, and counts.
type walker struct {
	base  abi.Base
	nodes int
	bytes int
}

func (w *walker) walk(t *testing.T, n abi.Node, depth int) {
	w.nodes++
	switch n.Tag {
	case abi.TagNumber, abi.TagString, abi.TagBytes, abi.TagExt:
		w.bytes += len(w.base.Bytes(n))
	case abi.TagU64s:
		w.bytes += 8 * int(n.Len)
		_ = w.base.U64At(n, 0)
		_ = w.base.U64At(n, n.Len-1)
	case abi.TagArray:
		for i := range n.Len {
			w.walk(t, w.base.Elem(n, i), depth+1)
		}
	case abi.TagMap:
		for i := range n.Len {
			k, v := w.base.Entry(n, i)
			w.walk(t, k, depth+1)
			w.walk(t, v, depth+1)
		}
	}
	if depth > abi.MaxDepth+1 {
		t.Fatalf("depth %d", depth)
	}
}

func FuzzCheckTree(f *testing.F) {
	seeds(f, "tree", func(b []byte) {
		n := abi.GetNode(b, 0)
		f.Add(b, uint8(n.Tag), n.Ext, n.Len, n.Val)
	})
	f.Fuzz(func(t *testing.T, base []byte, tag, ext uint8, n uint32, val uint64) {
		root := abi.Node{Tag: abi.Tag(tag), Ext: ext, Len: n, Val: val}
		if abi.CheckTree(base, root) != nil {
			return
		}
		w := walker{base: base}
		w.walk(t, root, 1)
		if w.nodes > 1+len(base)/abi.SizeNode || w.bytes > len(base) {
			t.Fatalf("%d nodes and %d bytes in %d bytes", w.nodes, w.bytes, len(base))
		}
	})
}

func FuzzCheckEnvelope(f *testing.F) {
	seeds(f, "envelope", func(b []byte) { f.Add(b) })
	f.Fuzz(func(t *testing.T, b []byte) {
		if abi.CheckEnvelope(b) == nil {
			read(t, "EnvelopeFrame", b)
		}
	})
}

// FuzzCheckFrame is for the frames that a host writes.
func FuzzCheckFrame(f *testing.F) {
	for _, file := range []string{"init", "parse", "context"} {
		seeds(f, file, func(b []byte) { f.Add(b) })
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if abi.CheckInit(b) == nil {
			read(t, "InitFrame", b)
		}
		if abi.CheckParse(b) == nil {
			read(t, "ParseFrame", b)
		}
		if abi.CheckContext(b) == nil {
			read(t, "ContextFrame", b)
		}
	})
}

func FuzzCheckAction(f *testing.F) {
	seeds(f, "action", func(b []byte) { f.Add(b) })
	f.Fuzz(func(t *testing.T, b []byte) {
		if abi.CheckAction(b) == nil {
			read(t, "Action", b)
		}
	})
}

func FuzzCheckAnswer(f *testing.F) {
	seeds(f, "answer", func(b []byte) { f.Add(b) })
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := abi.CheckAnswer(b)
		if err != nil {
			return
		}
		read(t, "Answer", b)
		if len(a.Detail) > abi.MaxDetail || a.Status == abi.StatusRejected && (a.Body != nil || !a.Reason.FromGuest()) {
			t.Fatalf("%+v", a)
		}
		// What was accepted is encoded and accepted again.
		again, err := abi.CheckAnswer(abi.AppendAnswer(nil, a))
		if err != nil || !bytes.Equal(again.Detail, a.Detail) || !bytes.Equal(again.Body, a.Body) {
			t.Fatalf("%+v, then %+v: %v", a, again, err)
		}
	})
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"name":"g","abi":1,"roles":["handler"],"action_types":[{"type":"demo.echo","versions":["1.0"]}]}`))
	f.Add([]byte(`{"name":"p","version":"1","abi":1,"roles":["parser","policy"],"dialects":["d"],"requires":["model"],"parameters":{"type":"object"},` +
		`"capabilities":["kvrt_log"],"metrics":[{"name":"m","kind":"counter"}],"limits":{"fuel":1,"memory":65536},"stateful":true}`))
	f.Add([]byte(`{"name":"g","Name":"g"}`))
	f.Add([]byte(`{"parameters":{"a":[{"A":1}]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := abi.ParseManifest(b)
		if err != nil {
			return
		}
		if !abi.ValidName(m.Name) || len(m.Roles) == 0 {
			t.Fatalf("%+v", m)
		}
		one, err := abi.AppendManifest([]byte("\x00asm\x01\x00\x00\x00"), b)
		if err != nil {
			t.Fatal(err)
		}
		if two, err := abi.AppendManifest(one, b); err != nil || !bytes.Equal(one, two) {
			t.Fatalf("%v: appending again changes the module", err)
		}
	})
}

func FuzzAppendManifest(f *testing.F) {
	manifest := []byte(`{"name":"g","abi":1,"roles":["policy"]}`)
	f.Add([]byte("\x00asm\x01\x00\x00\x00"))
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x00\x82\x80\x80\x80\x00\x01a\x01\x01\x00"))
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x00\xff\xff\xff\xff\x0f"))
	f.Add([]byte("\x00asm\x0d\x00\x01\x00"))
	f.Fuzz(func(t *testing.T, module []byte) {
		one, err := abi.AppendManifest(module, manifest)
		if err != nil {
			return
		}
		if two, err := abi.AppendManifest(one, manifest); err != nil || !bytes.Equal(one, two) {
			t.Fatalf("%v: appending again changes the module", err)
		}
	})
}
