//go:build linux || darwin

package wazero

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tetratelabs/wazero"
)

// disown gives a file to another user, or where this one may not, to every one.
func disown(t *testing.T, path string) {
	if os.Chown(path, 12345, 12345) != nil {
		if err := os.Chmod(path, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// relink puts a symbolic link in the place of a file.
func relink(t *testing.T, path string) {
	target := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.Rename(path, target); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

// pipe makes a pipe: whoever opened it would wait for ever.
func pipe(t *testing.T, path string) {
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

// run calls f of a module whose code is in dir.
func run(ctx context.Context, dir string, wasm []byte) (uint64, error) {
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return 0, err
	}
	rt := wazero.NewRuntimeWithConfig(ctx, options{Pages: 1}.runtimeConfig().WithCompilationCache(cache))
	defer cache.Close(ctx)
	defer rt.Close(ctx)
	code, err := rt.CompileModule(ctx, wasm)
	if err != nil {
		return 0, err
	}
	mod, err := rt.InstantiateModule(context.WithoutCancel(ctx), code, wazero.NewModuleConfig())
	if err != nil {
		return 0, err
	}
	got, err := mod.ExportedFunction("f").Call(context.WithoutCancel(ctx))
	if err != nil {
		return 0, err
	}
	return got[0], nil
}
