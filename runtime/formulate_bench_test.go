package runtime_test

import (
	"context"
	_ "embed"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/session"
	"github.com/kvrt/kvrt/runtime"
)

//go:embed testdata/lineage.wasm
var lineageWasm []byte

const lineageManifest = `{"name":"lineage","version":"1.0.0","abi":1,"roles":["policy"],"capabilities":["kvrt_session"]}`

// lineageRuntime has a policy that answers a session's whole lineage, and an index in
// which the session s1 has that many blocks on worker 7, rank 0.
func lineageRuntime(t testing.TB, blocks int) *runtime.Runtime {
	t.Helper()
	var set session.Set
	hashes := make([]uint64, blocks)
	for i := range hashes {
		hashes[i] = 1<<64 - 1 - uint64(i)
	}
	moved, err := set.Add("", session.Config{}).Apply(&session.Event{Op: session.OpStored, Session: "s1", Hashes: hashes,
		Worker: hint.Worker{ID: hint.UintWorker(7), HasRank: true}})
	if !moved || err != nil {
		t.Fatal(err)
	}
	return newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{session.NewHost(&set, nil)}},
		runtime.GuestSpec{Name: "lineage", Module: withManifest(t, lineageWasm, lineageManifest), Grants: []string{"kvrt_session"}, Policy: &runtime.PolicyUse{}})
}

// lineageContext is a routing context of session s1, in an encoding. For a retry the
// policy answers the number of blocks, else the blocks.
func lineageContext(t testing.TB, format abi.Format, attempt string) []byte {
	t.Helper()
	body := []byte(`{"request_id":"request-0001","attempt":` + attempt + `,"leg":"aggregated","partition":{"model":"m","group":"default","worker_type":"aggregated"},` +
		`"prompt_tokens":16384,"session":{"session_id":"s1","session_final":false,"input_trigger":"tool_result"},` +
		`"selected":{"worker_id":7,"dp_rank":0,"worker_type":"aggregated","capabilities":["demo.lineage","kv.retain"],"matched_blocks":{"gpu":1024}},"block_size":16}`)
	if format == abi.FormatJSON {
		return body
	}
	base, root, err := hint.AppendTree(nil, abi.FormatJSON, body)
	if err != nil {
		t.Fatal(err)
	}
	if body, err = hint.AppendTreeMsgpack(nil, base, root); err != nil {
		t.Fatal(err)
	}
	return body
}

func formulateOnce(t testing.TB, r *runtime.Runtime, req *runtime.FormulateRequest, res *runtime.Formulation) {
	if err := r.Formulate(context.Background(), req, res); err != nil {
		t.Fatal(err)
	}
	if p := &res.Policies[0]; p.Actions != 1 {
		t.Fatalf("%s: %s", p.Reason, p.Detail)
	}
}

// TestFormulateLineage: the lineage gets through whole, and without allocations.
func TestFormulateLineage(t *testing.T) {
	r := lineageRuntime(t, 1024)
	for _, format := range []abi.Format{abi.FormatJSON, abi.FormatMsgpack} {
		res := r.NewFormulation()
		req := &runtime.FormulateRequest{Body: lineageContext(t, format, "0"), Format: format}
		if n := testing.AllocsPerRun(100, func() { formulateOnce(t, r, req, res) }); n != 0 {
			t.Errorf("%v: %v allocations", format, n)
		}
		e, err := hint.DecodeEnvelope(format, res.Envelope)
		if err != nil {
			t.Fatal(err)
		}
		hashes := e.Actions[0].Payload.Base().Lookup(e.Actions[0].Payload.Root(), "block_hashes")
		if hashes.Tag != abi.TagU64s || hashes.Len != 1024 || e.Actions[0].Payload.Base().U64At(hashes, 1023) != 1<<64-1024 {
			t.Errorf("%v: %v", format, hashes)
		}
		req.Body = lineageContext(t, format, "1")
		formulateOnce(t, r, req, res)
		if e, err = hint.DecodeEnvelope(format, res.Envelope); err != nil {
			t.Fatal(err)
		}
		if n := e.Actions[0].Payload.Base().Lookup(e.Actions[0].Payload.Root(), "block_hashes"); n.Tag != abi.TagU64 || n.Val != 1024 {
			t.Errorf("%v: %v", format, n)
		}
	}
}

// BenchmarkFormulate is a whole formulation: the context decoded, the session's lineage
// written into the guest, the answer copied, checked and composed. read: of the lineage
// the policy makes one number; pass: it answers all of it.
func BenchmarkFormulate(b *testing.B) {
	for _, c := range []struct {
		name, attempt string
		format        abi.Format
		blocks        int
	}{
		{"read/msgpack/blocks=1", "1", abi.FormatMsgpack, 1}, {"read/msgpack/blocks=1024", "1", abi.FormatMsgpack, 1024}, {"read/json/blocks=1024", "1", abi.FormatJSON, 1024},
		{"pass/msgpack/blocks=1024", "0", abi.FormatMsgpack, 1024}, {"pass/json/blocks=1024", "0", abi.FormatJSON, 1024},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := lineageRuntime(b, c.blocks)
			res := r.NewFormulation()
			req := &runtime.FormulateRequest{Body: lineageContext(b, c.format, c.attempt), Format: c.format}
			b.ReportAllocs()
			for b.Loop() {
				formulateOnce(b, r, req, res)
			}
		})
	}
}

// BenchmarkFormulateFloor copies 1,024 block hashes.
func BenchmarkFormulateFloor(b *testing.B) {
	src, dst := make([]uint64, 1024), make([]uint64, 1024)
	for b.Loop() {
		copy(dst, src)
	}
}
