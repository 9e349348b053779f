package runtime_test

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
)

//go:embed testdata/policy.wasm
var policyWasm []byte

const policyManifest = `{"name":"policy","version":"1.0.0","abi":1,"roles":["policy"],"capabilities":["kvrt_fetch"]}`

// policyGuest is a policy that answers with an envelope of these actions, as JSON; none:
// it answers nothing. One whose name begins with "steady" does so whatever the request.
func policyGuest(t testing.TB, name string, actions ...string) runtime.GuestSpec {
	t.Helper()
	return policySpec(t, name, policyManifest, actionsFrame(t, actions...))
}

func policySpec(t testing.TB, name, manifest string, frame []byte) runtime.GuestSpec {
	t.Helper()
	data := make([]byte, 8)
	if frame != nil {
		data = abi.AppendAnswer(data, abi.Answer{Status: abi.StatusAccepted, Body: frame})
		binary.LittleEndian.PutUint32(data, uint32(len(data)-8))
	}
	if strings.HasPrefix(name, "steady") {
		data[4] = 1
	}
	return runtime.GuestSpec{Name: name, Module: withManifest(t, withData(t, policyWasm, 0x11000, data), manifest),
		Grants: []string{"kvrt_fetch"}, Limits: runtime.Limits{Instances: 2}, Policy: &runtime.PolicyUse{}}
}

// actionsFrame is the frame of an envelope with these actions; nil for none.
func actionsFrame(t testing.TB, actions ...string) []byte {
	t.Helper()
	if len(actions) == 0 {
		return nil
	}
	var f hint.Frame
	if err := f.Decode(abi.FormatJSON, []byte(`{"actions":[`+strings.Join(actions, ",")+`]}`), hint.Limits{}); err != nil {
		t.Fatal(err)
	}
	f.Finish(hint.Identity{})
	if f.Listed() != len(actions) {
		t.Fatalf("%d of %d actions are sound", f.Listed(), len(actions))
	}
	return bytes.Clone(f.Bytes())
}

// withData replaces the data section of a module by one segment.
func withData(t testing.TB, wasm []byte, at uint32, data []byte) []byte {
	t.Helper()
	sleb := func(b []byte, v int64) []byte {
		for {
			c := byte(v & 0x7f)
			if v >>= 7; v == 0 && c&0x40 == 0 {
				return append(b, c)
			}
			b = append(b, c|0x80)
		}
	}
	segment := append(sleb([]byte{1, 0, 0x41}, int64(at)), 0x0b)
	segment = append(binary.AppendUvarint(segment, uint64(len(data))), data...)
	out := bytes.Clone(wasm[:8])
	for rest := wasm[8:]; len(rest) > 0; {
		size, n := binary.Uvarint(rest[1:])
		end := 1 + n + int(size)
		if rest[0] == 11 {
			out = append(binary.AppendUvarint(append(out, 11), uint64(len(segment))), segment...)
		} else {
			out = append(out, rest[:end]...)
		}
		rest = rest[end:]
	}
	return out
}

// routed is a routing context whose request id is id, with more fields.
func routed(id, more string) []byte {
	if more != "" {
		more = "," + more
	}
	return []byte(`{"request_id":"` + id + `","selected":{"worker_id":7,"dp_rank":1}` + more + `}`)
}

// echo is an action of a type that no rule knows.
func echo(id string) string {
	return `{"action_id":"` + id + `","action_type":"demo.echo","action_version":"1.0","payload":{"n":18446744073709551615}}`
}

func fetchAction(id string) string {
	return `{"action_id":"` + id + `","action_type":"kv.fetch","action_version":"1.0","payload":{"source_control_endpoint":"tcp://h:1","block_hashes":[1]}}`
}

// retain is a claim over token ranges with one directive.
func retain(id, directive string) string {
	return `{"action_id":"` + id + `","action_type":"kv.retain","action_version":"1.0","payload":{"scope":null,"directives":[` + directive + `]}}`
}
