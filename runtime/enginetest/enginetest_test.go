package enginetest

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/runtime/wazero"
)

var update = flag.Bool("update", false, "write testdata/golden.txt anew, by the interpreter")

// TestGolden is where golden.txt comes from.
func TestGolden(t *testing.T) {
	x := &exam{tb: t, engine: wazero.New(wazero.Config{Interpreter: true})}
	if !*update {
		x.golden()
		return
	}
	s := x.script()
	defer s.close()
	var out bytes.Buffer
	for _, st := range x.steps() {
		if st.module == "" {
			out.WriteString(st.outcome + "\n")
			continue
		}
		out.WriteString(st.call() + " " + s.run(&st) + "\n")
	}
	if err := os.WriteFile("testdata/golden.txt", out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestTestdataIsRebuilt holds that each .wasm is what its .wat says.
func TestTestdataIsRebuilt(t *testing.T) {
	wat2wasm, err := exec.LookPath("wat2wasm")
	if err != nil {
		t.Skip("wat2wasm is not installed: run make tools")
	}
	texts, err := filepath.Glob("testdata/*.wat")
	if err != nil || len(texts) == 0 {
		t.Fatalf("no text modules in testdata (%v)", err)
	}
	for _, text := range texts {
		out := filepath.Join(t.TempDir(), "out.wasm")
		if msg, err := exec.Command(wat2wasm, "-o", out, text).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", text, err, msg)
			continue
		}
		built, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		kept, err := os.ReadFile(strings.TrimSuffix(text, "wat") + "wasm")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(built, kept) {
			t.Errorf("the .wasm beside %s is not what wat2wasm makes of it", text)
		}
	}
}
