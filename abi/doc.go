// Package abi is the contract between a kvrt host and a Wasm guest: the exports a
// guest offers, the host functions it may import, the byte layout of every frame
// that crosses, the codes that both sides speak, and the manifest that a module
// carries.
//
// The contract is data: [Contract] returns one table. The Go constants in this
// package, the C header, the Rust, TypeScript and Zig modules of the SDKs, the
// tables in SPEC.md and the golden listing abi.txt are generated from it, and a
// test fails when any of them drifts. Major version 1 only grows.
//
// The package depends on the standard library alone and knows no engine, so that a
// host in another program, or a tool, can use it by itself.
package abi
