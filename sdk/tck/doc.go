// Package tck is the conformance kit: it says whether a guest keeps to the ABI, and
// what it uses. A [Kit] has an engine and hosts that keep nothing; its Verify holds a
// guest against the rules of admission and of the ABI, against what probes find when
// they call it, and against its own cases; its Runner runs cases alone.
//
// The cases are the author's, one JSON object a line, as policies/CASES.md describes
// them. The probes are the kit's: see [Kit.Verify].
package tck
