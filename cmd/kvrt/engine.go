package main

import (
	"log/slog"
	"os"
	"path/filepath"

	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

// compileCache is the environment variable that says where compiled guests are kept.
const compileCache = "KVRT_COMPILE_CACHE"

// newEngine makes the engine. Guests are compiled in a child process of this program,
// under limits, and kept in a private cache: the folder that KVRT_COMPILE_CACHE names,
// or kvrt in the user's cache folder. Where that cannot be used, or with
// KVRT_COMPILE_CACHE=off, they are compiled in this process.
func newEngine(log *slog.Logger) runtime.Engine {
	inProcess := wazero.New(wazero.Config{})
	dir := os.Getenv(compileCache)
	if dir == "off" {
		return inProcess
	}
	self, err := os.Executable()
	if err == nil && dir == "" {
		dir, err = defaultCompileCache()
	}
	if err != nil {
		log.Warn("guests are compiled in this process, without limits of time and memory; set "+compileCache+" to a private folder, or to off", "error", err)
		return inProcess
	}
	return wazero.New(wazero.Config{Compiler: &wazero.Compiler{Program: self, Dir: dir}})
}

// defaultCompileCache is the folder in the user's cache folder, made if need be.
func defaultCompileCache() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(base, "kvrt")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	probe, err := os.CreateTemp(dir, "tmp-") // the folder may be there and not writable
	if err != nil {
		return "", err
	}
	probe.Close()
	return dir, os.Remove(probe.Name())
}
