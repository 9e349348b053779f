//go:build wasmtime && amd64 && cgo

package main

import (
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wasmtime"
)

// secondEngine is what guests are run on as well in a child, and nowhere else.
func secondEngine() runtime.Engine { return wasmtime.New() }

// secondAbout says what there is to know of the second engine.
const secondAbout = "wasmtime " + wasmtime.Version + ", in children alone; " + wasmtime.Advisories
