// The conformance guest of the Go SDK: the handler of kv.fetch without its finer rules, a
// parser of lists, and a policy. It is built in tests and never committed.
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

// parse makes one action of each element of a list.
func parse(d kvrt.Document) kvrt.Answer {
	list := d.Tree()
	if !list.IsArray() {
		return kvrt.Reject(abi.ReasonMalformedAction, "the document must be an array, not "+list.Kind())
	}
	id := d.RequestID()
	if id == "" {
		id = "demo"
	}
	return kvrt.Write("0.1", id, func(w *kvrt.Writer) {
		for _, hashes := range list.Elems() {
			w.Action("", "kv.fetch", "1.0", func(w *kvrt.Writer) kvrt.Node { return w.Map(w.Field("block_hashes", w.Copy(hashes))) })
		}
	})
}

// formulate has the request's blocks fetched from the worker that was chosen.
func formulate(c kvrt.Context) kvrt.Answer {
	source := c.Selected().SourceControlEndpoint()
	hashes, ok := c.BlockHashes()
	if !ok || len(hashes) == 0 || source == "" {
		return kvrt.Accept()
	}
	return kvrt.Write("0.1", c.RequestID(), func(w *kvrt.Writer) {
		w.Action("a1", "kv.fetch", "1.0", func(w *kvrt.Writer) kvrt.Node {
			return w.Map(w.Field("source_control_endpoint", w.Text(source)), w.Field("block_hashes", w.Hashes(hashes)))
		})
	})
}

func init() { kvrt.Register(kvrt.Guest{Handle: judge, Parse: parse, Formulate: formulate}) }

func main() {}
