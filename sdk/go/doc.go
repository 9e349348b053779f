// Package kvrt is for guests of kvrt in stock Go: no pointer in sight, and testable
// natively. The whole of a handler:
//
//	package main
//
//	import (
//		"github.com/kvrt/kvrt/abi"
//		"github.com/kvrt/kvrt/sdk/go"
//	)
//
//	func judge(a kvrt.Action, _ kvrt.Envelope) kvrt.Answer {
//		if a.Payload().Get("block_hashes").Hashes() == nil {
//			return kvrt.Reject(abi.ReasonInvalidPayload, "block_hashes must be a list of integers, at least one")
//		}
//		return kvrt.Accept()
//	}
//
//	func init() { kvrt.Register(kvrt.Guest{Handle: judge}) }
//
//	func main() {}
//
// It is built with GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared.
//
// What a role is shown lies in the frame of the current call: values, and the strings
// and slices that they give, are views that the next call overwrites. Whoever keeps one
// clones it, and a guest that keeps anything says stateful in its manifest.
//
// The collector runs between calls, in kvrt_idle, and never inside one.
package kvrt
