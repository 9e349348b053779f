package policies_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/gpu/tier"
	"github.com/kvrt/kvrt/hosts/log"
	"github.com/kvrt/kvrt/hosts/store"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

// nowhere takes orders and does nothing.
type nowhere struct{}

func (nowhere) Prefetch(*fetch.Order) (abi.Reason, string) { return abi.ReasonNone, "" }

// BenchmarkHandle is one action of each handler with a real host behind it, decoded and
// judged; call-ns is the guest's call with its host functions and the effect, which finds
// none of the blocks.
func BenchmarkHandle(b *testing.B) {
	evict := func(hashes string) string {
		return envelope("kv.evict", `{"execute_at":"now","include_current_request":false,"block_hashes":`+hashes+`}`)
	}
	source := `{"source_control_endpoint":"tcp://127.0.0.1:1","block_hashes":`
	for _, c := range []struct{ name, guest, body string }{
		{"fetch/blocks=1", "kv-fetch", envelope("kv.fetch", source+`[1]}`)},
		{"fetch/blocks=1024", "kv-fetch", envelope("kv.fetch", source+hashList(1024)+`}`)},
		{"evict/blocks=1", "kv-evict", evict(`[1]`)},
		{"evict/blocks=1024", "kv-evict", evict(hashList(1024))},
		{"evict/texts=1024", "kv-evict", evict(`["` + strings.Repeat(`12345678901234567890","`, 1023) + `1"]`)},
		{"prefetch/blocks=1", "kv-prefetch", envelope("kv.prefetch", source+`[1]}`)},
		{"prefetch/blocks=1024", "kv-prefetch", envelope("kv.prefetch", source+hashList(1024)+`}`)},
	} {
		b.Run(c.name, func(b *testing.B) {
			allow, err := fetch.ParseAllowList(b.Context(), nil, nil)
			if err != nil {
				b.Fatal(err)
			}
			blocks, err := store.New(store.Config{Capacity: 1 << 20})
			if err != nil {
				b.Fatal(err)
			}
			defer blocks.Close()
			host := fetch.NewHost(fetch.New(fetch.Config{}), allow)
			host.SetPrefetcher(nowhere{}, func(*runtime.Call) (string, string) { return "", store.Namespace("", "") })
			rt, err := runtime.New(runtime.Config{Engine: wazero.New(wazero.Config{}), Hosts: []runtime.HostModule{host, store.NewHost(blocks, nil, nil), tier.NewHost(nil, nil), log.Module{}}})
			if err != nil {
				b.Fatal(err)
			}
			defer rt.Close(context.Background())
			if err := rt.Apply(context.Background(), []runtime.GuestSpec{newHosts(b, c.guest).spec(nil)}); err != nil {
				b.Fatal(err)
			}
			req := &runtime.Request{Body: []byte(c.body), Identity: hint.Identity{RequestID: "r1"}}
			res := rt.NewResponse()
			b.ReportAllocs()
			call := int64(0)
			for b.Loop() {
				if err := rt.Dispatch(req, res); err != nil || res.Results[0].Status != abi.StatusAccepted {
					b.Fatal(err, fmt.Sprintf("%+v", res.Results[0]))
				}
				call += res.Results[0].DurationNS
			}
			b.ReportMetric(float64(call)/float64(b.N), "call-ns")
			b.ReportMetric(float64(res.Results[0].Fuel), "fuel")
		})
	}
}
