package main

import (
	"bytes"
	"testing"
)

const manifest = `{"name": "x", "version": "1", "abi": 1,
	"roles": ["policy"]}`

func TestFinish(t *testing.T) {
	types := "\x01\x04\x01\x60\x00\x00"
	custom := "\x00\x05\x04name"
	got, err := finish([]byte(header+custom+types+custom), []byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	content := `{"name":"x","version":"1","abi":1,"roles":["policy"]}`
	want := header + types + "\x00\x43\x0dkvrt.manifest" + content
	if string(got) != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	again, err := finish(got, []byte(manifest))
	if err != nil || !bytes.Equal(again, got) {
		t.Errorf("a finished module, finished again, is another: %q, %v", again, err)
	}
}

func TestRefuses(t *testing.T) {
	for name, c := range map[string]struct{ module, manifest string }{
		"not a module":     {"\x7fELF", manifest},
		"component":        {"\x00asm\x0d\x00\x01\x00", manifest},
		"cut section":      {header + "\x01\x05\x01", manifest},
		"cut size":         {header + "\x01", manifest},
		"endless size":     {header + "\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", manifest},
		"bad manifest":     {header, `{"name": "x"}`},
		"unknown key":      {header, `{"name": "x", "version": "1", "abi": 1, "roles": ["policy"], "nmae": 1}`},
		"manifest no JSON": {header, `name: x`},
	} {
		if got, err := finish([]byte(c.module), []byte(c.manifest)); err == nil {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func FuzzStrip(f *testing.F) {
	f.Add([]byte(header + "\x00\x05\x04name\x01\x04\x01\x60\x00\x00"))
	f.Add([]byte(header + "\x01\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if out, err := strip(b); err == nil {
			if again, err := strip(out); err != nil || !bytes.Equal(again, out) {
				t.Errorf("%q stripped is %q, stripped again %q, %v", b, out, again, err)
			}
		}
	})
}
