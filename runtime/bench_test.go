package runtime_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/log"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

// fetchBench is the shipped kv.fetch handler over the real hint store.
type fetchBench struct {
	store   *fetch.Store
	allow   *fetch.AllowList
	runtime *runtime.Runtime
}

// newFetchBench loads the handler once per action type, and idle guests beside it.
func newFetchBench(b *testing.B, unmetered bool, idle int, types ...string) *fetchBench {
	b.Helper()
	allow, err := fetch.ParseAllowList(context.Background(), fetch.DefaultAllowedSources(), nil)
	if err != nil {
		b.Fatal(err)
	}
	f := &fetchBench{store: fetch.New(fetch.Config{}), allow: allow}
	wasm := kvFetch(b)
	manifest := func(typ string) string {
		return `{"name":"bench","version":"1.0.0","abi":1,"roles":["handler"],"action_types":[{"type":"` + typ + `"}],"capabilities":["kvrt_fetch","kvrt_log"]}`
	}
	var specs []runtime.GuestSpec
	for _, typ := range types {
		specs = append(specs, runtime.GuestSpec{Name: typ, Module: withManifest(b, wasm, manifest(typ)), Grants: []string{abi.ModuleFetch, abi.ModuleLog}})
	}
	for i := range idle {
		specs = append(specs, runtime.GuestSpec{Name: fmt.Sprintf("idle-%d", i), Module: withManifest(b, raw, strings.Replace(rawManifest, "demo.raw\"}],\"dialects\":[\"frame", fmt.Sprintf("idle.%d\"}],\"dialects\":[\"idle.%[1]d", i), 1)), Limits: runtime.Limits{Instances: 1}})
	}
	f.runtime = newRuntime(b, runtime.Config{Engine: wazero.New(wazero.Config{}), Unmetered: unmetered, Memory: 8 << 30, Hosts: []runtime.HostModule{fetch.NewHost(f.store, allow), log.Module{}}}, specs...)
	return f
}

func kvFetch(b *testing.B) []byte {
	b.Helper()
	wasm, err := os.ReadFile("../policies/kv-fetch/kv-fetch.wasm")
	if err != nil {
		b.Fatal(err)
	}
	return wasm
}

// fetchEnvelope is an envelope of n kv.fetch actions with that many 20-digit hashes each.
func fetchEnvelope(b *testing.B, format abi.Format, actions, hashes int, types ...string) []byte {
	b.Helper()
	var s strings.Builder
	s.WriteString(`{"protocol_version":"0.1","message_id":"m1","actions":[`)
	for i := range actions {
		typ := "kv.fetch"
		if len(types) > 0 {
			typ = types[i%len(types)]
		}
		fmt.Fprintf(&s, `%.*s{"action_id":"a%d","action_type":"%s","action_version":"1.0","payload":{"source_control_endpoint":"tcp://127.0.0.1:23280","block_hashes":[`, min(i, 1), ",", i, typ)
		for j := range hashes {
			fmt.Fprintf(&s, "%.*s%d", min(j, 1), ",", 18446744073709551615-uint64(j))
		}
		s.WriteString(`]}}`)
	}
	s.WriteString(`]}`)
	if format == abi.FormatJSON {
		return []byte(s.String())
	}
	e, err := hint.DecodeEnvelope(abi.FormatJSON, []byte(s.String()))
	if err != nil {
		b.Fatal(err)
	}
	out, err := e.AppendMsgpack(nil)
	if err != nil {
		b.Fatal(err)
	}
	return out
}

// request goes round 256 request ids, without allocating. What more ids cost is the
// hint store's own benchmark.
type request struct {
	runtime.Request
	n  uint8
	id [8]byte
}

func (q *request) next() {
	q.n++
	q.id = [8]byte{'r', 'e', 'q', '-', 'a' + q.n/16, 'a' + q.n%16, '-', '0'}
	q.Identity.RequestID = unsafe.String(&q.id[0], len(q.id))
}

// dispatch runs one request.
func (f *fetchBench) dispatch(b *testing.B, q *request, res *runtime.Response) {
	q.next()
	if err := f.runtime.Dispatch(&q.Request, res); err != nil {
		b.Fatal(err)
	}
	if out := &res.Results[len(res.Results)-1]; out.Status != abi.StatusAccepted {
		b.Fatalf("%s: %s", out.Reason, out.Detail)
	}
}

func (f *fetchBench) run(b *testing.B, format abi.Format, actions, hashes int, types ...string) {
	res := f.runtime.NewResponse()
	q := &request{Request: runtime.Request{Body: fetchEnvelope(b, format, actions, hashes, types...), Format: format}}
	b.ReportAllocs()
	for b.Loop() {
		f.dispatch(b, q, res)
	}
}

// BenchmarkDispatch is a whole dispatch: decode, the shipped Wasm handler, submit to
// the hint store, result. Beside it the same without metering, and as it would be with
// wazero's own deadline instead.
func BenchmarkDispatch(b *testing.B) {
	for _, format := range []abi.Format{abi.FormatMsgpack, abi.FormatJSON} {
		for _, hashes := range []int{1, 1024} {
			b.Run(fmt.Sprintf("%s/hashes=%d", format, hashes), func(b *testing.B) {
				newFetchBench(b, false, 0, "kv.fetch").run(b, format, 1, hashes)
			})
		}
	}
	b.Run("unmetered/hashes=1", func(b *testing.B) {
		newFetchBench(b, true, 0, "kv.fetch").run(b, abi.FormatMsgpack, 1, 1)
	})
	b.Run("deadline/hashes=1", func(b *testing.B) {
		f := newFetchBench(b, true, 0)
		f.runtime = newRuntime(b, runtime.Config{Engine: wazero.New(wazero.Config{Deadline: time.Minute}), Unmetered: true, Hosts: []runtime.HostModule{fetch.NewHost(f.store, f.allow), log.Module{}}},
			runtime.GuestSpec{Name: "kv-fetch", Module: kvFetch(b), Grants: []string{abi.ModuleFetch, abi.ModuleLog}})
		f.run(b, abi.FormatMsgpack, 1, 1)
	})
	b.Run("actions=16", func(b *testing.B) {
		types := []string{"kv.fetch", "kv.two", "kv.three", "kv.four"}
		newFetchBench(b, false, 0, types...).run(b, abi.FormatMsgpack, 16, 1, types...)
	})
}

// BenchmarkNative is the same with the handler's logic in Go, compiled in.
func BenchmarkNative(b *testing.B) {
	for _, hashes := range []int{1, 1024} {
		b.Run(fmt.Sprintf("hashes=%d", hashes), func(b *testing.B) {
			f := newFetchBench(b, false, 0)
			q := &request{Request: runtime.Request{Body: fetchEnvelope(b, abi.FormatMsgpack, 1, hashes)}}
			var frame hint.Frame
			b.ReportAllocs()
			for b.Loop() {
				q.next()
				if err := frame.Decode(abi.FormatMsgpack, q.Body, hint.Limits{}); err != nil {
					b.Fatal(err)
				}
				frame.Finish(q.Identity)
				if reason := f.native(q.Identity, frame.Action(0)); reason != abi.ReasonNone {
					b.Fatal(reason)
				}
			}
		})
	}
}

// native is kv-fetch in Go: version, payload, source, submit.
func (f *fetchBench) native(id hint.Identity, a hint.ActionView) abi.Reason {
	list := a.Base.Lookup(a.Payload, "block_hashes")
	mode, retain := a.Base.Lookup(a.Payload, "mode"), a.Base.Lookup(a.Payload, "no_retain")
	source := a.Base.Lookup(a.Payload, "source_control_endpoint")
	if string(a.Type) != "kv.fetch" || string(a.Version) != "1.0" || list.Tag != abi.TagU64s || source.Tag != abi.TagString ||
		mode.Tag != abi.TagAbsent && string(a.Base.Bytes(mode)) != "copy" || retain.Tag > abi.TagBool {
		return abi.ReasonInvalidPayload
	}
	src, err := f.allow.Check(a.Base.Bytes(source))
	if err != nil {
		return abi.ReasonSourceNotAllowed
	}
	off := uint32(list.Val)
	p, reason, _ := f.store.Prepare(id, src, a.Base[off:off+8*list.Len], false)
	if p == nil {
		return reason
	}
	reason, _ = p.Commit()
	return reason
}

// BenchmarkDispatchParallel runs on every core that -cpu gives, counters on.
func BenchmarkDispatchParallel(b *testing.B) {
	f := newFetchBench(b, false, 0, "kv.fetch")
	body := fetchEnvelope(b, abi.FormatMsgpack, 1, 1)
	var worker atomic.Uint32
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		res := f.runtime.NewResponse()
		q := &request{Request: runtime.Request{Body: body, Format: abi.FormatMsgpack}}
		q.Identity.Attempt = worker.Add(1)
		for pb.Next() {
			f.dispatch(b, q, res)
		}
	})
}

// BenchmarkLoadedGuests dispatches to one guest while others are loaded and idle.
func BenchmarkLoadedGuests(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprintf("guests=%d", n), func(b *testing.B) {
			newFetchBench(b, false, n-1, "kv.fetch").run(b, abi.FormatMsgpack, 1, 1)
		})
	}
}
