// A handler of kv.fetch that makes garbage in every call, as ordinary Go does: for soaks.
package main

import (
	"fmt"
	"strings"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/sdk/go"
)

func judge(a kvrt.Action, e kvrt.Envelope) kvrt.Answer {
	seen := map[uint64]string{}
	list := a.Payload().Get("block_hashes")
	if !list.IsArray() {
		return kvrt.Reject(abi.ReasonInvalidPayload, fmt.Sprintf("block_hashes of %q must be a list, not %s", a.ID(), list.Kind()))
	}
	for i, v := range list.Elems() {
		hash, ok := v.U64()
		if !ok {
			return kvrt.Reject(abi.ReasonInvalidPayload, fmt.Sprintf("block_hashes[%d] is %s", i, v.Kind()))
		}
		if i < 64 {
			seen[hash] = strings.Repeat("x", i%7)
		}
	}
	source, _ := a.Payload().Get("source_control_endpoint").Text()
	return kvrt.Fetch(strings.Clone(source), append([]uint64(nil), list.Hashes()...), 0)
}

func init() { kvrt.Register(kvrt.Guest{Handle: judge}) }

func main() {}
