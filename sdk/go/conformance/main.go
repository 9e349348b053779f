// The conformance guest of the Go SDK: the handler of kv.fetch without its finer rules.
// It is built in tests and never committed.
package main

import (
	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/sdk/go"
)

func judge(a kvrt.Action, _ kvrt.Envelope) kvrt.Answer {
	p := a.Payload()
	source, _ := p.Get("source_control_endpoint").Text()
	hashes := p.Get("block_hashes").Hashes()
	if hashes == nil {
		return kvrt.Reject(abi.ReasonInvalidPayload, "block_hashes must be a list of integers, at least one, not "+p.Get("block_hashes").Kind())
	}
	var flags abi.FetchFlag
	if no, _ := p.Get("no_retain").Bool(); no {
		flags = abi.FetchFlagNoRetain
	}
	return kvrt.Fetch(source, hashes, flags)
}

func init() { kvrt.Register(kvrt.Guest{Handle: judge}) }

func main() {}
