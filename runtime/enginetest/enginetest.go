// Package enginetest holds a Wasm engine to the contract of package runtime. The test
// of an engine is one call of [Run].
//
// What a guest computes, which trap ends it and what fuel it uses must not depend on
// the engine. Therefore testdata/golden.txt holds the outcome of a table of calls, NaN
// bits, memory and fuel included, and every engine is held to the same lines, also
// where only one of them is built. [Compare] runs two engines side by side on more than
// that.
//
// The modules are written by hand, as text beside their binaries, but for three that
// shipped with version 1 of the ABI: kv-fetch, kv-retain and router-hint as their
// compilers made them. They are kept as they are, because what they do must stay as it
// is.
package enginetest

import (
	"testing"

	"github.com/kvrt/kvrt/runtime"
)

// Run tests an engine. newEngine makes one for each test.
func Run(t *testing.T, newEngine func() runtime.Engine) {
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) { c.run(&exam{tb: t, engine: newEngine()}) })
	}
}

// check is one part of the contract.
type check struct {
	name string
	run  func(*exam)
}

func checks() []check {
	return []check{
		{"compile", (*exam).compile},
		{"refuse", (*exam).refuse},
		{"exports", (*exam).exports},
		{"arguments", (*exam).arguments},
		{"memory", (*exam).memory},
		{"memory limit", (*exam).memoryLimit},
		{"host functions", (*exam).hostFunctions},
		{"host memory", (*exam).hostMemory},
		{"host fuel", (*exam).hostFuel},
		{"host panics", (*exam).hostPanics},
		{"traps", (*exam).traps},
		{"fuel", (*exam).fuel},
		{"depth", (*exam).depth},
		{"instances", (*exam).instances},
		{"modules", (*exam).modules},
		{"canary", (*exam).canary},
		{"many", (*exam).many},
		{"parallel", (*exam).parallel},
		{"golden", (*exam).golden},
		{"dispatch", (*exam).dispatch},
		{"charges", (*exam).charges},
	}
}

// tb is what a check needs of a *testing.T. The tests of this package give another one
// to see checks fail.
type tb interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
}
