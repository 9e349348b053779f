// Package assemblyscript holds the conformance guest of the AssemblyScript SDK, as
// scripts/assemblyscript.sh builds it.
package assemblyscript

import _ "embed"

//go:embed conformance/conformance.wasm
var conformance []byte

// Conformance returns the module.
func Conformance() []byte { return conformance }
