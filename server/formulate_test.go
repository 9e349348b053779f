package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/fleet"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/worker"
	"github.com/kvrt/kvrt/runtime"
)

// policyGuest is a policy that adds one action of this id to every request whose own id
// does not say otherwise: t traps, r refuses, l loops.
func policyGuest(t testing.TB, name, id string) runtime.GuestSpec {
	t.Helper()
	wasm, err := os.ReadFile("../runtime/testdata/policy.wasm")
	if err != nil {
		t.Fatal(err)
	}
	var f hint.Frame
	if err := f.Decode(abi.FormatJSON, []byte(`{"actions":[{"action_id":"`+id+`","action_type":"demo.echo","payload":{}}]}`), hint.Limits{}); err != nil {
		t.Fatal(err)
	}
	f.Finish(hint.Identity{})
	data := abi.AppendAnswer(make([]byte, 8), abi.Answer{Status: abi.StatusAccepted, Body: f.Bytes()})
	binary.LittleEndian.PutUint32(data, uint32(len(data)-8))
	segment := append([]byte{1, 0, 0x41, 0x80, 0xa0, 0x04, 0x0b}, binary.AppendUvarint(nil, uint64(len(data)))...) // at 0x11000
	segment = append(segment, data...)
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
	manifest := abi.ManifestSection + `{"name":"policy","version":"1.0.0","abi":1,"roles":["policy"],"capabilities":["kvrt_fetch"]}`
	section := append([]byte{byte(len(abi.ManifestSection))}, manifest...)
	return runtime.GuestSpec{Name: name, Module: append(binary.AppendUvarint(append(out, 0), uint64(len(section))), section...),
		Grants: []string{"kvrt_fetch"}, Limits: runtime.Limits{Instances: 2}, Policy: &runtime.PolicyUse{}}
}

func withPolicies(t testing.TB, names ...string) rigOption {
	return func(c *rigConfig) {
		for _, n := range names {
			c.guests = append(c.guests, policyGuest(t, n, n+"-1"))
		}
	}
}

func routed(id string) []byte {
	return fmt.Appendf(nil, `{"request_id":%q,"selected":{"worker_id":7}}`, id)
}

// spell renders an answer as "name:actions" words and the ids of the envelope.
func spell(t testing.TB, f Formulated) string {
	t.Helper()
	if f.Err != nil {
		return f.Err.Error()
	}
	var words []string
	for _, p := range f.Policies {
		w := fmt.Sprintf("%s:%d", p.Name, p.Actions)
		if p.Reason != 0 {
			w += "/" + p.Reason.String()
		}
		words = append(words, w)
	}
	if f.Envelope == nil {
		return strings.Join(append(words, "none"), " ")
	}
	e, err := hint.DecodeEnvelope(hint.Detect(f.Envelope), f.Envelope)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range e.Actions {
		words = append(words, a.ActionID)
	}
	return strings.Join(words, " ")
}

func TestFormulate(t *testing.T) {
	g := newRig(t, withPolicies(t, "one", "two"))
	c := g.dial()
	ctx := context.Background()
	inline, err := msgpack.Marshal(map[string]any{"request_id": "m", "selected": map[string]any{"worker_id": 7}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		bodies [][]byte
		output abi.Format
		want   string
	}{
		{[][]byte{routed("a")}, 0, "one:1 two:1 one-1 two-1"},
		{[][]byte{routed("t")}, 0, "one:0/handler_trap two:0/handler_trap none"},
		{[][]byte{inline}, 0, "one:1 two:1 one-1 two-1"},
		{[][]byte{[]byte(`{"request_id":"r"}`)}, 0, "malformed context: selected is missing at offset 0"},
		{[][]byte{routed("a"), []byte("{"), routed("r"), inline}, abi.FormatMsgpack,
			"one:1 two:1 one-1 two-1; malformed context: unexpected end, expected a string key at offset 1; one:0/invalid_payload two:0/invalid_payload none; one:1 two:1 one-1 two-1"},
		{nil, 0, ""},
	} {
		got, err := c.Formulate(ctx, Formulate{Bodies: tt.bodies, Output: tt.output})
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for i, f := range got {
			words = append(words, spell(t, f))
			if want := max(tt.output, hint.Detect(tt.bodies[i])); f.Err == nil && f.Envelope != nil && tt.output != 0 && hint.Detect(f.Envelope) != want {
				t.Errorf("%s: in %v, want %v", f.Envelope, hint.Detect(f.Envelope), want)
			}
		}
		if s := strings.Join(words, "; "); s != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.bodies, s, tt.want)
		}
	}
	if _, err := c.Formulate(ctx, Formulate{Bodies: make([][]byte, maxBatch+1)}); err == nil {
		t.Error("more contexts than a frame may have")
	}
	if s := g.srv.Stats(); s.Requests[opFormulate] != 4 || s.Requests[opFormulateBatch] != 1 || s.Errors[CodeMalformed] != 2 {
		t.Errorf("%+v", s)
	}
}

// TestFormulateInline: contexts in msgpack stand in a frame as they are, beside encoded
// ones.
func TestFormulateInline(t *testing.T) {
	g := newRig(t, withPolicies(t, "one"))
	r := g.raw()
	send := func(v any) {
		b, err := msgpack.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		r.send(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	}
	m := map[string]any{"request_id": "m", "selected": map[string]any{"worker_id": "w"}, "x": []any{1, -1, 1.5, nil, true, strings.Repeat("s", 300), []byte{1}, float32(2), int64(-1 << 40), 1 << 40}}
	send([]any{6, 1, 0, 0, 0, m})
	send([]any{7, 2, 0, 0, 0, []any{m, string(routed("j")), routed("c"), []byte("no")}})
	send([]any{7, 3, 1, 0, 0, []any{m}}) // one-way
	send([]any{7, 4, 0, 0, 0, nil})
	send([]any{6, 5, 0, 1, 0, m})
	if got := spell(t, r.recv().formulated[0]); got != "one:1 one-1" {
		t.Error(got)
	}
	var words []string
	for _, f := range r.recv().formulated {
		words = append(words, spell(t, f))
	}
	if got := strings.Join(words, "; "); !strings.HasPrefix(got, "one:1 one-1; one:1 one-1; one:1 one-1; malformed context: ") {
		t.Error(got)
	}
	r.wantError(opFormulateBatch, CodeBadRequest, "the bodies must be an array")
	r.wantError(opFormulate, CodeBadRequest, "a body that is a map is msgpack")
}

// TestFormulateOversize: a context that is too large is malformed, alone and in a batch,
// and the connection goes on.
func TestFormulateOversize(t *testing.T) {
	g := newRig(t, withPolicies(t, "one"), withHTTP(t), func(c *rigConfig) { c.MaxFrame = 16 << 20 })
	c := g.dial()
	big := append(routed("a"), bytes.Repeat([]byte(" "), 5<<20)...)
	for _, bodies := range [][][]byte{{big}, {routed("a"), big, routed("a")}, {routed("a")}} {
		got, err := c.Formulate(context.Background(), Formulate{Bodies: bodies})
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range got {
			if want := len(bodies[i]) > 1<<20; (f.Err != nil) != want || want && !strings.Contains(f.Err.Error(), "malformed context: ") {
				t.Errorf("%d of %d: %v", i, len(bodies), f.Err)
			}
		}
	}
	if status, answer := post(t, g.router(), "", big); status != 200 { // spaces around a document are no part of it
		t.Errorf("%d %s", status, answer)
	}
	big[len(big)-1] = 'x'
	if status, answer := post(t, g.router(), "", big); status != 400 || !strings.Contains(answer, "malformed context: ") {
		t.Errorf("%d %.100s", status, answer)
	}
}

// TestFormulateReplyTooLarge: a batch whose answers pass a frame is cut short.
func TestFormulateReplyTooLarge(t *testing.T) {
	g := newRig(t, withPolicies(t, "one"), func(c *rigConfig) { c.MaxFrame = 16 << 10 })
	c := g.dial()
	bodies := make([][]byte, 200)
	for i := range bodies {
		bodies[i] = routed("a")
	}
	_, err := c.Formulate(context.Background(), Formulate{Bodies: bodies})
	var refused *RemoteError
	if !errors.As(err, &refused) || refused.Code != CodeReplyTooLarge {
		t.Fatal(err)
	}
	if got, err := c.Formulate(context.Background(), Formulate{Bodies: bodies[:50]}); err != nil || len(got) != 50 {
		t.Error(len(got), err)
	}
}

// TestFormulateAllocatesNothing holds the hot path: a context in, an envelope out.
func TestFormulateAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	f := fleet.New(fleet.Config{})
	defer f.Close()
	if err := f.Put(worker.Worker{ID: hint.UintWorker(7), Ranks: []worker.Rank{{Events: "ipc://" + t.TempDir() + "/e"}}}); err != nil {
		t.Fatal(err)
	}
	matched := []byte(`{"request_id":"a","selected":{"worker_id":7},"session":{"session_id":"s"},"events":[{"type":"match","session_id":"s","worker_id":7,"block_hash":1}]}`)
	g := newRig(t, withPolicies(t, "one", "two"), func(c *rigConfig) { c.Fleet = f })
	r := g.raw()
	var frames []byte
	var raw []byte
	for range 3 {
		raw = appendBin(raw, matched)
	}
	for _, q := range []request{
		{op: opFormulate, body: routed("a")},
		{op: opFormulate, body: routed("a"), flags: flagOneway},
		{op: opFormulateBatch, batch: batch{raw, 3}},
	} {
		frames = appendRequest(frames, &q)
	}
	round := func() { r.round(frames, 2) }
	for range 50 {
		round()
	}
	if n := testing.AllocsPerRun(200, round); n > 0.1 {
		t.Errorf("%.2f allocations for 5 contexts", n)
	}
	if n := f.SeedStats().Matched; n < 250*3 {
		t.Errorf("the fleet has seen %d matches", n)
	}
}

// TestFormulateDuringReload: while the policies are replaced all the time, every context
// is answered, by the policy of one generation or of the next.
func TestFormulateDuringReload(t *testing.T) {
	g := newRig(t, withPolicies(t, "one"))
	ctx, cancel := context.WithCancel(context.Background())
	var workers sync.WaitGroup
	var asked atomic.Int64
	for range 4 {
		c := g.dial()
		workers.Go(func() {
			for ctx.Err() == nil {
				got, err := c.Formulate(context.Background(), Formulate{Bodies: [][]byte{routed("a"), routed("c")}})
				if err != nil {
					t.Error(err)
					return
				}
				for _, f := range got {
					if s := spell(t, f); s != "one:1 even" && s != "one:1 odd" && s != "one:1 one-1" {
						t.Error(s)
						return
					}
					asked.Add(1)
				}
			}
		})
	}
	even, odd := policyGuest(t, "one", "even"), policyGuest(t, "one", "odd")
	for i := range 20 {
		spec := even
		if i%2 == 1 {
			spec = odd
		}
		if err := g.rt.Apply(context.Background(), []runtime.GuestSpec{spec}); err != nil {
			t.Error(err)
		}
	}
	for before := asked.Load(); asked.Load() < before+100 && !t.Failed(); {
		g.dial().Close()
	}
	cancel()
	workers.Wait()
}

// TestFormulateClientGone: a client that goes away in mid-answer, or in mid-frame, costs
// others nothing.
func TestFormulateClientGone(t *testing.T) {
	g := newRig(t, withPolicies(t, "one"))
	var raw []byte
	for range maxBatch {
		raw = appendBin(raw, routed("a"))
	}
	frame := appendRequest(nil, &request{op: opFormulateBatch, batch: batch{raw, maxBatch}})
	for i := range 20 {
		r := g.raw()
		r.send(frame[:len(frame)*(1+i%4)/4])
		if i%2 == 0 {
			r.conn.(*net.UnixConn).CloseWrite()
		}
		r.conn.Close()
	}
	got, err := g.dial().Formulate(context.Background(), Formulate{Bodies: [][]byte{routed("a")}})
	if err != nil || spell(t, got[0]) != "one:1 one-1" {
		t.Error(err, got)
	}
}
