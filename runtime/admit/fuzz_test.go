package admit

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzRead starts from the modules of every other test.
func FuzzRead(f *testing.F) {
	f.Add(wholeModule())
	for _, tc := range refusals() {
		if len(tc.wasm) < 4096 {
			f.Add(tc.wasm)
		}
	}
	for _, tc := range checkRefusals() {
		f.Add(tc.wasm)
	}
	files, err := filepath.Glob("testdata/*.wasm")
	if err != nil || len(files) == 0 {
		f.Fatalf("no modules in testdata (%v)", err)
	}
	for _, file := range files {
		wasm, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wasm)
	}
	f.Fuzz(holds)
}
