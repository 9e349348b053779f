package server

import (
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/session"
	"github.com/kvrt/kvrt/policies"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

// benchContext is a context of n block hashes with a session that has them, in msgpack
// as a router would send it.
func benchContext(tb testing.TB, n int) []byte {
	b, err := msgpack.Marshal(map[string]any{"request_id": "req-1", "selected": map[string]any{"worker_id": 7}, "session": map[string]any{"session_id": "s"},
		"block_hashes": benchChain(n), "hash_kind": "engine", "block_size": 16, "prompt_tokens": 16 * n})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func benchChain(n int) []uint64 {
	hashes := make([]uint64, n)
	for i := range hashes {
		hashes[i] = uint64(i)*0x9e3779b97f4a7c15 + 1
	}
	return hashes
}

// benchRequest is what the client process asks for round after round.
func benchRequest(tb testing.TB, what string, hashes int) func(conn, round int) request {
	if what == "formulate" {
		body := benchContext(tb, hashes)
		return func(_, round int) request { return request{op: opFormulate, seq: uint64(round), body: body} }
	}
	body := benchBody(tb, hashes)
	return func(conn, round int) request { return benchSubmit(body, conn, round) }
}

// retaining serves retain-session on a lineage of n blocks.
func retaining(tb testing.TB, n int) rigOption {
	return func(c *rigConfig) {
		var set session.Set
		if _, err := set.Add("", session.Config{}).Apply(&session.Event{Op: session.OpStored, Session: "s", Hashes: benchChain(n), Worker: hint.Worker{ID: hint.UintWorker(7)}}); err != nil {
			tb.Fatal(err)
		}
		wasm, _ := policies.Module("retain-session")
		rt, err := runtime.New(runtime.Config{Engine: wazero.New(wazero.Config{}), Hosts: []runtime.HostModule{session.NewHost(&set, nil)}})
		if err != nil {
			tb.Fatal(err)
		}
		spec := runtime.GuestSpec{Name: "retain-session", Module: wasm, Grants: []string{"kvrt_session"}, Limits: runtime.Limits{Instances: 4}, Policy: &runtime.PolicyUse{}}
		if err := rt.Apply(tb.Context(), []runtime.GuestSpec{spec}); err != nil {
			tb.Fatal(err)
		}
		c.runtime = rt
	}
}

// BenchmarkFormulateSocket is four connections from another process, each a round trip at
// a time: a context of 32 blocks in, an envelope with what the session has out.
func BenchmarkFormulateSocket(b *testing.B) {
	g := newRig(b, retaining(b, benchHashes))
	got, err := g.dial().Formulate(b.Context(), Formulate{Bodies: [][]byte{benchContext(b, benchHashes)}})
	if err != nil || !strings.Contains(string(got[0].Envelope), "kv.retain") {
		b.Fatalf("%+v %v", got, err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	runBenchClient(b, g.path, "formulate", benchHashes)
}

// BenchmarkFormulateSocketEcho is the floor: the same frames in both directions, and
// nothing between.
func BenchmarkFormulateSocketEcho(b *testing.B) {
	g := newRig(b, retaining(b, benchHashes))
	r := g.raw()
	r.send(appendRequest(nil, &request{op: opFormulate, seq: 1000, body: benchContext(b, benchHashes)}))
	var answer []byte
	for answer == nil {
		frame, ok, err := r.in.next()
		if ok {
			b0, at := beginFrame(nil)
			answer = endFrame(append(b0, frame...), at)
		} else if err == nil {
			_, err = r.in.fill(r.conn)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	benchEcho(b, answer, "formulate", benchHashes)
}
