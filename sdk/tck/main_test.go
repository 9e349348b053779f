package tck_test

import (
	"os"
	"sync"
	"testing"
	"time"

	"github.com/kvrt/kvrt/runtime/wazero"
)

// TestMain makes this program the child that compiles for [compiled].
func TestMain(m *testing.M) {
	if wazero.RunChild(wazero.Child{}) {
		return
	}
	code := m.Run()
	if cache.dir != "" {
		os.RemoveAll(cache.dir)
	}
	os.Exit(code)
}

// cache is what was compiled, for all tests.
var cache struct {
	sync.Once
	dir    string
	engine *wazero.Engine
	err    error
}

// compiled is an engine that compiles a module once, and then loads what came of it.
// Verifying a guest loads it anew for each set of parameters and each case that looks at
// the log, which under the race detector took most of the tests' time.
func compiled(t *testing.T) *wazero.Engine {
	t.Helper()
	cache.Do(func() {
		var self string
		if self, cache.err = os.Executable(); cache.err != nil {
			return
		}
		if cache.dir, cache.err = os.MkdirTemp("", "kvrt"); cache.err != nil {
			return
		}
		cache.engine = wazero.New(wazero.Config{Compiler: &wazero.Compiler{Program: self, Dir: cache.dir + "/cache", CPU: 5 * time.Minute, Wall: 5 * time.Minute}})
	})
	if cache.err != nil {
		t.Fatal(cache.err)
	}
	return cache.engine
}
