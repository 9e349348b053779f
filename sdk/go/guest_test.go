//go:build !wasip1

package kvrt_test

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/sdk/go"
	"github.com/kvrt/kvrt/sdk/go/guesttest"
)

func evict(a kvrt.Action, e kvrt.Envelope) kvrt.Answer {
	p := a.Payload()
	switch mode, _ := p.Get("mode").Text(); mode {
	case "pass":
		return kvrt.Accept()
	case "fetch":
		source, _ := p.Get("source").Text()
		return kvrt.Fetch(source, p.Get("block_hashes").Hashes(), abi.FetchFlagNoRetain)
	case "mark":
		kvrt.Warn("marked " + a.ID() + " of " + strconv.Itoa(e.Len()))
		return kvrt.Rewrite(a, func(w *kvrt.Writer) kvrt.Node {
			return w.Map(w.Field("was", w.Copy(p)), w.Field("at", w.I64(kvrt.Now())), w.Field("hashes", w.Hashes([]uint64{1, 1<<64 - 1})),
				w.Field("rest", w.Array(w.Null(), w.Bool(true), w.F64(0.5), w.Text("é\n"))))
		})
	case "finish":
		kvrt.Discard()
		return kvrt.Finish(true)
	}
	return kvrt.Reject(abi.ReasonInvalidPayload, "mode must be one that is known, not "+p.Get("mode").Kind())
}

func handler() kvrt.Guest { return kvrt.Guest{Handle: evict} }

func act(payload string) string {
	return `{"action_id":"a1","action_type":"demo.evict","action_version":"","payload":` + payload + `}`
}

func TestBlocksOnTheDevice(t *testing.T) {
	h := guesttest.Host{OnDevice: []uint64{2, 9}, Request: []uint64{9}, Memory: kvrt.DeviceMemory{Device: abi.DeviceCUDA, Blocks: 8}}
	var room [3]abi.Residency
	var counts []int
	var memory kvrt.DeviceMemory
	why := abi.ReasonNone
	g := kvrt.Guest{Handle: func(a kvrt.Action, _ kvrt.Envelope) kvrt.Answer {
		memory, why = kvrt.Device()
		for _, hashes := range [][]uint64{{1, 2}, nil} {
			n, _ := kvrt.OnDevice(hashes, room[len(counts):])
			counts = append(counts, n)
		}
		return kvrt.PrefetchToDevice(a.Payload().Get("block_hashes").Hashes())
	}}
	for _, payload := range []string{`{"block_hashes":[7,8]}`, `{}`} {
		counts = counts[:0]
		if got := h.Handle(g, 0, act(payload)); got.Status != abi.StatusAccepted {
			t.Errorf("%+v", got)
		}
	}
	want := [3]abi.Residency{abi.ResidencyAbsent, abi.ResidencyDevice, abi.ResidencyAbsent}
	if want[1] = abi.ResidencyDevice; room != want || !reflect.DeepEqual(counts, []int{2, 1}) || memory.Blocks != 8 || why != abi.ReasonNone {
		t.Errorf("%v, %v, %+v, %v", room, counts, memory, why)
	}
	if want := []guesttest.Effect{{Function: "kvrt_gpu.prefetch", Hashes: []uint64{7, 8}}, {Function: "kvrt_gpu.prefetch", Hashes: []uint64{9}}}; !reflect.DeepEqual(h.Effects, want) {
		t.Errorf("%+v", h.Effects)
	}
	h.DeviceRefuses = abi.ReasonUnavailable
	if got := h.Handle(g, 0, act(`{}`)); got.Reason != abi.ReasonUnavailable || why != abi.ReasonUnavailable {
		t.Errorf("no device: %+v, %v", got, why)
	}
}

// TestBlocksInTheStore: what reaches blocks of the store and of others.
func TestBlocksInTheStore(t *testing.T) {
	h := guesttest.Host{Hint: kvrt.HintStatus{State: abi.FetchStateLive, Hashes: 3, Submitted: 1, Expires: 2, HasSource: true}, InStore: []uint64{2, 9}, Request: []uint64{9, 8}}
	h.Identity.RequestID = "r1"
	claims := []kvrt.Claim{{To: 1, Priority: 50, TTLMillis: 9}, {From: 1, To: kvrt.ToEnd, Priority: 1}}
	var answers []abi.Reason
	g := kvrt.Guest{Handle: func(a kvrt.Action, _ kvrt.Envelope) kvrt.Answer {
		if s, why := kvrt.Hint(); s != h.Hint || why != abi.ReasonNone {
			t.Errorf("%+v, %v", s, why)
		}
		var room [2]uint64
		if n, why := kvrt.RequestHashes(room[:1]); n != 2 || why != abi.ReasonNone || room[0] != 0 {
			t.Errorf("too little room: %d, %v, %d", n, why, room)
		}
		if n, why := kvrt.RequestHashes(room[:]); n != 2 || why != abi.ReasonNone || room != [2]uint64{9, 8} {
			t.Errorf("%d, %v, %d", n, why, room)
		}
		var where [2]abi.Residency
		if n, why := kvrt.InStore([]uint64{1, 2}, where[:]); n != 2 || why != abi.ReasonNone || where != [2]abi.Residency{abi.ResidencyAbsent, abi.ResidencyDRAM} {
			t.Errorf("%d, %v, %v", n, why, where)
		}
		hashes := a.Payload().Get("block_hashes").Hashes()
		for _, answer := range []kvrt.Answer{kvrt.Prefetch("tcp://h:1", []uint64{5}), kvrt.Prefetch("", []uint64{5}), kvrt.Evict(hashes), kvrt.EvictAfter(nil), kvrt.Retain(hashes, "demo", claims...)} {
			answers = append(answers, answer.Reason())
		}
		return kvrt.Accept()
	}}
	if got := h.Handle(g, 0, act(`{"block_hashes":[2,7]}`)); got.Status != abi.StatusAccepted {
		t.Errorf("%+v", got)
	}
	want := []guesttest.Effect{
		{Function: "kvrt_fetch.prefetch", Source: "tcp://h:1", Hashes: []uint64{5}}, {Function: "kvrt_store.evict", Hashes: []uint64{2, 7}},
		{Function: "kvrt_store.evict_after", Hashes: []uint64{9, 8}}, {Function: "kvrt_store.retain", Hashes: []uint64{2, 7}, Scope: "demo", Claims: claims},
	}
	if !reflect.DeepEqual(h.Effects, want) {
		t.Errorf("%+v", h.Effects)
	}
	if !reflect.DeepEqual(answers, []abi.Reason{0, abi.ReasonInvalidPayload, 0, 0, 0}) {
		t.Errorf("%v", answers)
	}
	h = guesttest.Host{PrefetchRefuses: abi.ReasonSourceNotAllowed, StoreRefuses: abi.ReasonUnavailable}
	for name, ask := range map[string]func() kvrt.Answer{
		"source_not_allowed": func() kvrt.Answer { return kvrt.Prefetch("tcp://h:1", []uint64{5}) },
		"unavailable":        func() kvrt.Answer { return kvrt.Evict([]uint64{5}) },
	} {
		if got := h.Handle(kvrt.Guest{Handle: func(kvrt.Action, kvrt.Envelope) kvrt.Answer { return ask() }}, 0, act(`{}`)); got.Reason.String() != name {
			t.Errorf("%s: %+v", name, got)
		}
	}
	h = guesttest.Host{Request: []uint64{1}}
	after := kvrt.Guest{Handle: func(kvrt.Action, kvrt.Envelope) kvrt.Answer { return kvrt.EvictAfter(nil) }}
	if got := h.Handle(after, 0, act(`{}`)); got.Reason != abi.ReasonNotFound || h.Effects != nil {
		t.Errorf("a request without an id: %+v", got)
	}
}

func TestHandler(t *testing.T) {
	h := guesttest.Host{Clock: -5}
	for _, c := range []struct {
		payload string
		want    guesttest.Outcome
	}{
		{`{"mode":"pass"}`, guesttest.Outcome{Status: abi.StatusAccepted}},
		{`{"mode":1}`, guesttest.Outcome{Status: abi.StatusRejected, Reason: abi.ReasonInvalidPayload, Detail: "mode must be one that is known, not an integer"}},
		{`{"mode":"fetch","source":"tcp://h:1","block_hashes":[1,18446744073709551615]}`, guesttest.Outcome{Status: abi.StatusAccepted}},
		{`{"mode":"mark","deep":[{"a":[1,-1,1e400]},{},[]]}`, guesttest.Outcome{Status: abi.StatusAccepted,
			Body: `{"action_id":"a1","action_type":"demo.evict","action_version":"","payload":{"was":{"mode":"mark","deep":[{"a":[1,-1,1e400]},{},[]]},"at":-5,"hashes":[1,18446744073709551615],"rest":[null,true,0.5,"é\n"]}}`}},
		{`{"mode":"finish"}`, guesttest.Outcome{Status: abi.StatusAccepted}},
	} {
		if got := h.Handle(handler(), 0, act(c.payload), act(`{}`)); got != c.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", c.payload, got, c.want)
		}
	}
	want := guesttest.Host{Clock: -5, Log: []string{"warn: marked a1 of 2"}, Submits: []guesttest.Submit{{Source: "tcp://h:1", Hashes: []uint64{1, 1<<64 - 1}, Flags: abi.FetchFlagNoRetain}},
		Discards: 1, Finishes: []bool{true}}
	if !reflect.DeepEqual(h, want) {
		t.Errorf("the host saw %+v", h)
	}
	h.Submit = abi.ReasonSourceNotAllowed
	if got := h.Handle(handler(), 0, act(`{"mode":"fetch"}`)); got.Reason != abi.ReasonSourceNotAllowed || got.Detail != "" {
		t.Errorf("a refused hint: %+v", got)
	}
	if got := h.Handle(kvrt.Guest{}, 0, act(`{}`)); got.Reason != abi.ReasonHandlerError {
		t.Errorf("no handler: %+v", got)
	}
}

// A copy of more than the guest may copy is refused, and so is an answer that no host
// reads.
func TestTooLarge(t *testing.T) {
	var h guesttest.Host
	mark := kvrt.Guest{Handle: func(a kvrt.Action, _ kvrt.Envelope) kvrt.Answer {
		return kvrt.Rewrite(a, func(w *kvrt.Writer) kvrt.Node { return w.Copy(a.Payload()) })
	}}
	list := func(n int, elem string) string { return `{"l":[` + strings.Repeat(elem+",", n-1) + elem + `]}` }
	for _, c := range []struct {
		payload string
		ok      bool
	}{
		{list(100_000, "7"), true}, // as one run
		{list(kvrt.MaxCopied-3, `"x"`), true},
		{list(kvrt.MaxCopied+1, `"x"`), false},
	} {
		if got := h.Handle(mark, 0, act(c.payload)); (got.Reason == abi.ReasonNone) != c.ok || !c.ok && got.Reason != abi.ReasonLimitExceeded {
			t.Errorf("%.20s: %s %s", c.payload, got.Reason, got.Detail)
		}
	}
	large := kvrt.Guest{Handle: func(a kvrt.Action, _ kvrt.Envelope) kvrt.Answer {
		return kvrt.Rewrite(a, func(w *kvrt.Writer) kvrt.Node { return w.Text(strings.Repeat("x", abi.MaxAnswer)) })
	}}
	if got := h.Handle(large, 0, act(`{}`)); got.Reason != abi.ReasonLimitExceeded {
		t.Errorf("an answer that is too large: %+v", got.Reason)
	}
	long := kvrt.Guest{Handle: func(kvrt.Action, kvrt.Envelope) kvrt.Answer {
		return kvrt.Reject(abi.ReasonInvalidPayload, strings.Repeat("é", 400))
	}}
	if got := h.Handle(long, 0, act(`{}`)); got.Detail != strings.Repeat("é", abi.MaxDetail/2) {
		t.Errorf("a detail of %d bytes", len(got.Detail))
	}
}

func TestInit(t *testing.T) {
	var h guesttest.Host
	var limit uint64
	g := kvrt.Guest{Handle: evict, Init: func(p kvrt.Value) error {
		var ok bool
		if limit, ok = p.Get("limit").U64(); !ok {
			return errors.New("limit must be an integer")
		}
		return nil
	}}
	if got := h.Init(g, `{"limit":7}`); got != "" || limit != 7 {
		t.Errorf("%q, limit %d", got, limit)
	}
	if got := h.Init(g, ""); got != "limit must be an integer" {
		t.Errorf("no parameters: %q", got)
	}
	if got := h.Init(handler(), `{}`); got != "" {
		t.Errorf("no parameters: %q", got)
	}
	if got := h.Init(handler(), `{"x":1}`); got != "this guest takes no parameters" {
		t.Errorf("parameters that nobody takes: %q", got)
	}
}

func TestParserAndPolicy(t *testing.T) {
	h := guesttest.Host{}
	h.Identity.RequestID = "r1"
	g := kvrt.Guest{
		Parse: func(d kvrt.Document) kvrt.Answer {
			if d.Tree().IsAbsent() {
				return kvrt.Reject(abi.ReasonMalformedAction, d.Dialect()+": not JSON: "+string(d.Raw()))
			}
			return kvrt.Write("0.1", d.RequestID(), func(w *kvrt.Writer) {
				for _, v := range d.Tree().Elems() {
					w.Action("", "kv.fetch", "1.0", func(w *kvrt.Writer) kvrt.Node { return w.Map(w.Field("block_hashes", w.Copy(v))) })
				}
			})
		},
		Formulate: func(c kvrt.Context) kvrt.Answer {
			endpoint := c.Selected().SourceControlEndpoint()
			if endpoint == "" {
				return kvrt.Accept()
			}
			return kvrt.Write("0.1", c.RequestID(), func(w *kvrt.Writer) {
				w.Action("a", "kv.fetch", "1.0", func(w *kvrt.Writer) kvrt.Node { return w.Map(w.Field("source_control_endpoint", w.Text(endpoint))) })
			})
		},
	}
	want := `{"protocol_version":"0.1","message_id":"r1","actions":[{"action_type":"kv.fetch","action_version":"1.0","payload":{"block_hashes":[1,2]}},{"action_type":"kv.fetch","action_version":"1.0","payload":{"block_hashes":null}}]}`
	if got := h.Parse(g, abi.FormatJSON, []byte(`[[1,2],null]`), "demo"); got.Body != want {
		t.Errorf("parse: %+v", got)
	}
	if got := h.Parse(g, abi.FormatJSON, []byte("none"), "demo"); got.Detail != "demo: not JSON: none" || got.Reason != abi.ReasonMalformedAction {
		t.Errorf("parse: %+v", got)
	}
	got := h.Formulate(g, `{"request_id":"r9","selected":{"worker_id":1,"source_control_endpoint":"tcp://h:1"}}`)
	if want := `{"protocol_version":"0.1","message_id":"r9","actions":[{"action_id":"a","action_type":"kv.fetch","action_version":"1.0","payload":{"source_control_endpoint":"tcp://h:1"}}]}`; got.Body != want {
		t.Errorf("formulate: %+v", got)
	}
}
