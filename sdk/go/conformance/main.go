// The conformance guest of the Go SDK: the handler of kv.fetch without its finer rules,
// which can do everything else with blocks, too, a parser of lists, and a policy. It is
// built in tests and never committed.
package main

import (
	"strconv"

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
	if op, ok := p.Get("op").Text(); ok {
		return blocks(op, source, hashes)
	}
	var flags abi.FetchFlag
	if no, _ := p.Get("no_retain").Bool(); no {
		flags = abi.FetchFlagNoRetain
	}
	return kvrt.Fetch(source, hashes, flags)
}

// blocks does something else with blocks. A hash 0 alone stands for those of the request.
func blocks(op, source string, hashes []uint64) kvrt.Answer {
	if len(hashes) == 1 && hashes[0] == 0 {
		hashes = nil
	}
	switch op {
	case "prefetch":
		return kvrt.Prefetch(source, hashes)
	case "evict":
		return kvrt.Evict(hashes)
	case "evict_after":
		return kvrt.EvictAfter(hashes)
	case "retain":
		return kvrt.Retain(hashes, source, kvrt.Claim{To: 1, Priority: 50, TTLMillis: 1000}, kvrt.Claim{From: 1, To: kvrt.ToEnd, Priority: 1})
	case "device":
		return kvrt.PrefetchToDevice(hashes)
	}
	return kvrt.Reject(abi.ReasonInvalidPayload, look(hashes))
}

// look tells what the host knows. It makes a list of at most 4 blocks.
func look(hashes []uint64) string {
	status, why := kvrt.Hint()
	said := "hint " + number(status.State) + " " + number(status.Hashes) + " " + strconv.FormatBool(status.HasSource) + " " + number(why)
	var request [4]uint64
	n, why := kvrt.RequestHashes(request[:])
	said += "; request " + list(request[:min(n, 4)]) + " " + number(why)
	var where [4]abi.Residency
	n, why = kvrt.InStore(hashes, where[:])
	said += "; store " + list(where[:min(n, 4)]) + " " + number(why)
	n, why = kvrt.OnDevice(hashes, where[:])
	said += "; device " + list(where[:min(n, 4)]) + " " + number(why)
	_, why = kvrt.Device()
	return said + "; memory " + number(why)
}

type unsigned interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64
}

func number[T unsigned](v T) string { return strconv.FormatUint(uint64(v), 10) }

func list[T unsigned](all []T) string {
	out := "["
	for i, v := range all {
		if i > 0 {
			out += " "
		}
		out += number(v)
	}
	return out + "]"
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
