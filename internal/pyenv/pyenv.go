// Package pyenv finds the Python environment in bin/py that scripts/python.sh
// brings: tests compare with the field's own encoders and publishers there.
package pyenv

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Python returns the environment's interpreter. Where there is none the test is
// skipped; under KVRT_NEED_PYTHON, which `make test` sets, it fails instead.
func Python(t testing.TB) string {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(here), "..", "..")
	python := filepath.Join(root, "bin", "py", "bin", "python3")
	if _, err := os.Stat(python); err == nil {
		return python
	}
	const missing = "no Python environment in bin/py: run scripts/python.sh"
	if os.Getenv("KVRT_NEED_PYTHON") != "" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}
