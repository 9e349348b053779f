// A handler of kv.fetch that does as ordinary Go does: it makes garbage in every call, and
// where it is told to it prints, sleeps or panics.
package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/sdk/go"
)

func nest(n int) int {
	if n == 0 {
		return 0
	}
	return nest(n-1) + 1
}

func judge(a kvrt.Action, e kvrt.Envelope) kvrt.Answer {
	switch do, _ := a.Payload().Get("do").Text(); do {
	case "print":
		fmt.Printf("%s has %d actions\nand ", a.ID(), e.Len())
		fmt.Print("more")
	case "sleep":
		begun := time.Now()
		time.Sleep(time.Hour)
		fmt.Println("slept for", time.Since(begun))
	case "panic":
		panic("as it was told")
	case "hog":
		fmt.Println(len(bytes.Repeat([]byte("hog"), 32<<20)))
	case "spin":
		for e.Len() > 0 {
		}
	case "nest":
		fmt.Println("nested", nest(200))
	case "fall":
		fmt.Println("nested", nest(1<<20))
	case "exit":
		fmt.Print("bye")
		os.Exit(3)
	case "block":
		select {}
	}
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
