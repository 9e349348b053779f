//go:build !wasmtime || !amd64 || !cgo

package main

import "github.com/kvrt/kvrt/runtime"

// secondEngine is none: this program was built without.
func secondEngine() runtime.Engine { return nil }

// secondAbout says what there is to know of the second engine.
const secondAbout = "none is built in: verify compares no engines; build with cgo and -tags wasmtime on amd64 for that"
