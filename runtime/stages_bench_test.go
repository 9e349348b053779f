package runtime_test

import (
	"slices"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/log"
	"github.com/kvrt/kvrt/runtime"
)

// quiet times do in batches that are short beside what the system gives a thread at
// once, and reports what a round takes in the batch that a twentieth of them stay below:
// on a busy machine the mean says more about the others.
func quiet(b *testing.B, batch int, do func()) {
	const most = 1 << 16
	took := make([]time.Duration, 0, most)
	b.ReportAllocs()
	n, start := 0, time.Now()
	for b.Loop() {
		do()
		if n++; n == batch {
			now := time.Now()
			if len(took) < most {
				took = append(took, now.Sub(start))
			}
			n, start = 0, time.Now()
		}
	}
	if len(took) > 0 {
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/20])/float64(batch), "quiet-ns")
	}
}

// noFetch is kvrt_fetch with nothing behind it.
type noFetch struct{}

func (noFetch) Name() string { return abi.ModuleFetch }
func (noFetch) Functions() []runtime.HostFunction {
	return runtime.Functions(abi.ModuleFetch, map[string]func(*runtime.Call, []byte, []uint64){
		"submit": func(_ *runtime.Call, _ []byte, stack []uint64) { stack[0] = 0 },
	})
}

// BenchmarkStage is a dispatch with one hash by its parts: parts by themselves, then
// dispatches of which each has something that the one before has not, a guest that does
// nothing, kv-fetch with a host function that does nothing, the hint store.
func BenchmarkStage(b *testing.B) {
	var (
		id      = hint.Identity{RequestID: "req-aa-0"}
		msgpack = fetchEnvelope(b, abi.FormatMsgpack, 1, 1)
		json    = fetchEnvelope(b, abi.FormatJSON, 1, 1)
		hash    = []byte("01234567")
	)
	b.Run("clock", func(b *testing.B) {
		start := time.Now()
		quiet(b, 64, func() { _ = time.Since(start) })
	})
	decode := func(format abi.Format, body []byte, finish bool) func(*testing.B) {
		return func(b *testing.B) {
			var f hint.Frame
			quiet(b, 64, func() {
				if err := f.Decode(format, body, hint.Limits{}); err != nil {
					b.Fatal(err)
				}
				if finish {
					f.Finish(id)
				}
			})
		}
	}
	b.Run("decode", decode(abi.FormatMsgpack, msgpack, false))
	b.Run("decode-json", decode(abi.FormatJSON, json, false))
	b.Run("decode+finish", decode(abi.FormatMsgpack, msgpack, true))
	b.Run("store", func(b *testing.B) {
		f := newFetchBench(b, false, 0)
		src, err := f.allow.Check([]byte("tcp://127.0.0.1:23280"))
		if err != nil {
			b.Fatal(err)
		}
		var q request
		quiet(b, 64, func() {
			q.next()
			p, _, _ := f.store.Prepare(q.Identity, src, hash, false)
			if reason, detail := p.Commit(); reason != abi.ReasonNone {
				b.Fatal(detail)
			}
		})
	})
	b.Run("native", func(b *testing.B) {
		f, q := newFetchBench(b, false, 0), request{}
		var frame hint.Frame
		quiet(b, 64, func() {
			q.next()
			if err := frame.Decode(abi.FormatMsgpack, msgpack, hint.Limits{}); err != nil {
				b.Fatal(err)
			}
			frame.Finish(q.Identity)
			if reason := f.native(q.Identity, frame.Action(0)); reason != abi.ReasonNone {
				b.Fatal(reason)
			}
		})
	})

	dispatch := func(b *testing.B, batch int, r *runtime.Runtime, format abi.Format, body []byte, want abi.Status) {
		res, q := r.NewResponse(), &request{Request: runtime.Request{Body: body, Format: format}}
		quiet(b, batch, func() {
			q.next()
			if err := r.Dispatch(&q.Request, res); err != nil {
				b.Fatal(err)
			}
			if out := &res.Results[0]; out.Status != want {
				b.Fatalf("%s: %s", out.Reason, out.Detail)
			}
		})
	}
	b.Run("unrouted", func(b *testing.B) {
		dispatch(b, 64, newRuntime(b, runtime.Config{}), abi.FormatMsgpack, msgpack, abi.StatusRejected)
	})
	b.Run("empty-guest", func(b *testing.B) {
		r := newRuntime(b, runtime.Config{Hosts: []runtime.HostModule{noFetch{}}}, scriptedGuest(b, '0'))
		dispatch(b, 64, r, abi.FormatMsgpack, fetchEnvelope(b, abi.FormatMsgpack, 1, 1, "demo.echo"), abi.StatusAccepted)
	})
	b.Run("empty-host", func(b *testing.B) {
		r := newRuntime(b, runtime.Config{Hosts: []runtime.HostModule{noFetch{}, log.Module{}}}, runtime.GuestSpec{Name: "kv-fetch", Module: kvFetch(b), Grants: []string{abi.ModuleFetch, abi.ModuleLog}})
		dispatch(b, 64, r, abi.FormatMsgpack, msgpack, abi.StatusAccepted)
	})
	b.Run("all", func(b *testing.B) {
		dispatch(b, 64, newFetchBench(b, false, 0, "kv.fetch").runtime, abi.FormatMsgpack, msgpack, abi.StatusAccepted)
	})
	b.Run("all-json", func(b *testing.B) {
		dispatch(b, 64, newFetchBench(b, false, 0, "kv.fetch").runtime, abi.FormatJSON, json, abi.StatusAccepted)
	})
	b.Run("actions=16", func(b *testing.B) {
		types := []string{"kv.fetch", "kv.two", "kv.three", "kv.four"}
		dispatch(b, 4, newFetchBench(b, false, 0, types...).runtime, abi.FormatMsgpack, fetchEnvelope(b, abi.FormatMsgpack, 16, 1, types...), abi.StatusAccepted)
	})
	b.Run("submit+discard", func(b *testing.B) {
		f := newFetchBench(b, false, 0, "kv.fetch")
		ids := make([]string, 1<<12)
		for i := range ids {
			ids[i] = "r" + string(rune('a'+i%26)) + time.Duration(i).String()
		}
		res, n := f.runtime.NewResponse(), 0
		req := runtime.Request{Body: msgpack, Format: abi.FormatMsgpack}
		quiet(b, 64, func() { // an id of its own for each: a discarded one refuses late hints
			req.Identity = hint.Identity{RequestID: ids[n%len(ids)], Attempt: uint32(n / len(ids))}
			n++
			if err := f.runtime.Dispatch(&req, res); err != nil || res.Results[0].Status != abi.StatusAccepted {
				b.Fatal(err, res.Results[0].Status)
			}
			f.store.Discard(req.Identity)
		})
	})
}
