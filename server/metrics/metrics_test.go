package metrics

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"go.uber.org/goleak"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/fleet"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
	"github.com/kvrt/kvrt/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// guest is a handler of demo.echo: an action whose id begins with r is rejected, with
// t it traps.
func guest(t testing.TB, version string) runtime.GuestSpec {
	t.Helper()
	wasm, err := os.ReadFile("../../runtime/testdata/scripted.wasm")
	if err != nil {
		t.Fatal(err)
	}
	section := append([]byte{byte(len(abi.ManifestSection))}, abi.ManifestSection+fmt.Sprintf(`{"name":"demo","version":%q,"abi":1,"roles":["handler"],
"action_types":[{"type":"demo.echo"}],"capabilities":["kvrt_fetch"]}`, version)...)
	wasm = append(binary.AppendUvarint(append(wasm, 0), uint64(len(section))), section...)
	return runtime.GuestSpec{Name: "demo", Module: wasm, Grants: []string{"kvrt_fetch"}, Limits: runtime.Limits{Instances: 2}}
}

type rig struct {
	t      *testing.T
	rt     *runtime.Runtime
	store  *fetch.Store
	fleet  *fleet.Fleet
	blocks server.Blocks
	device server.Device
	peers  server.Exchange
	tier   server.Tier
	srv    *server.Server
	h      *Handler
	res    *runtime.Response
}

func newRig(t *testing.T) *rig {
	g := &rig{t: t, store: fetch.New(fetch.Config{})}
	allow, err := fetch.ParseAllowList(context.Background(), fetch.DefaultAllowedSources(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if g.rt, err = runtime.New(runtime.Config{Engine: wazero.New(wazero.Config{}), Hosts: []runtime.HostModule{fetch.NewHost(g.store, allow)}}); err != nil {
		t.Fatal(err)
	}
	g.apply(guest(t, "1.0.0"))
	g.serve()
	return g
}

// serve puts a server in front of the runtime.
func (g *rig) serve() {
	g.res = g.rt.NewResponse()
	var err error
	g.srv, err = server.New(server.Config{Runtime: g.rt, Store: g.store, Fleet: g.fleet, Blocks: g.blocks, Device: g.device, Exchange: g.peers, Tier: g.tier, Socket: filepath.Join(g.t.TempDir(), "s"), Version: "1.2.3",
		Metrics: func(s *server.Server) (server.Metrics, error) {
			g.h, err = newHandler(s)
			return g.h, err
		}})
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { g.rt.Close(context.Background()) })
}

func (g *rig) apply(specs ...runtime.GuestSpec) {
	g.t.Helper()
	if err := g.rt.Apply(context.Background(), specs); err != nil {
		g.t.Fatal(err)
	}
}

func (g *rig) dispatch(ids string) {
	g.t.Helper()
	var b strings.Builder
	for i, id := range strings.Fields(ids) {
		if i > 0 {
			b.WriteByte(',')
		}
		typ := "demo.echo"
		if id == "x" {
			typ = "nobody"
		}
		fmt.Fprintf(&b, `{"action_id":%q,"action_type":%q,"action_version":"1.0","payload":{}}`, id, typ)
	}
	if err := g.rt.Dispatch(&runtime.Request{Body: []byte(`{"actions":[` + b.String() + `]}`), Identity: hint.Identity{RequestID: "r"}}, g.res); err != nil {
		g.t.Fatal(err)
	}
}

func TestLint(t *testing.T) {
	g := newRig(t)
	g.dispatch("a r t x")
	g.lint()
}

func (g *rig) lint() {
	t := g.t
	problems, err := promlint.New(strings.NewReader(g.text())).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestValues(t *testing.T) {
	g := newRig(t)
	g.dispatch("a a r t x")
	_ = g.rt.Dispatch(&runtime.Request{Body: []byte("{")}, g.res)
	want := `
# HELP kvrt_results_total Results of a guest's calls. Accepted ones have no reason.
# TYPE kvrt_results_total counter
kvrt_results_total{guest="demo",reason="",status="ACCEPTED"} 2
kvrt_results_total{guest="demo",reason="handler_trap",status="REJECTED"} 1
kvrt_results_total{guest="demo",reason="invalid_payload",status="REJECTED"} 1
# HELP kvrt_traps_total Calls that ended without an answer.
# TYPE kvrt_traps_total counter
kvrt_traps_total{guest="demo",kind="guest"} 1
kvrt_traps_total{guest="demo",kind="host_panic"} 0
kvrt_traps_total{guest="demo",kind="out_of_fuel"} 0
kvrt_traps_total{guest="demo",kind="timeout"} 0
# HELP kvrt_unrouted_total Actions that were rejected before they reached a guest.
# TYPE kvrt_unrouted_total counter
kvrt_unrouted_total{reason="unsupported_action_type"} 1
# HELP kvrt_dispatches_total Envelopes that were dispatched, malformed ones included.
# TYPE kvrt_dispatches_total counter
kvrt_dispatches_total 2
# HELP kvrt_malformed_total Envelopes that were malformed: no handler ran.
# TYPE kvrt_malformed_total counter
kvrt_malformed_total 1
# HELP kvrt_reload_success 1 when the last reload was carried out, or there was none; 0 when it was refused.
# TYPE kvrt_reload_success gauge
kvrt_reload_success 1
# HELP kvrt_fetch_entries Requests with a stored hint.
# TYPE kvrt_fetch_entries gauge
kvrt_fetch_entries 0
`
	got := map[string]bool{}
	for line := range strings.Lines(g.text()) {
		got[line] = true
	}
	for line := range strings.Lines(want[1:]) {
		if !got[line] {
			t.Errorf("missing: %s", line)
		}
	}
}

// text is the exposition for people.
func (g *rig) text() string {
	w := httptest.NewRecorder()
	g.h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != 200 {
		g.t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// value reads one sample; -1 when it is not there.
func (g *rig) value(name string, labels ...string) float64 {
	g.t.Helper()
	families, err := g.h.registry.Gather()
	if err != nil {
		g.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == name && hasLabels(m, labels) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return -1
}

func hasLabels(m *dto.Metric, want []string) bool {
	for _, w := range want {
		found := false
		for _, l := range m.Label {
			found = found || l.GetName()+"="+l.GetValue() == w
		}
		if !found {
			return false
		}
	}
	return true
}

// Counters go on when a guest is swapped, and end when it is unloaded.
func TestCountersAcrossSwaps(t *testing.T) {
	g := newRig(t)
	check := func(when string, calls, accepted float64, version string) {
		t.Helper()
		if n := g.value("kvrt_calls_total", "guest=demo"); n != calls {
			t.Errorf("%s: %v calls, want %v", when, n, calls)
		}
		if n := g.value("kvrt_call_duration_seconds", "guest=demo"); n != calls {
			t.Errorf("%s: %v durations, want %v", when, n, calls)
		}
		if n := g.value("kvrt_results_total", "guest=demo", "status=ACCEPTED"); n != accepted {
			t.Errorf("%s: %v accepted, want %v", when, n, accepted)
		}
		if n := g.value("kvrt_guest_info", "guest=demo", "version="+version); calls >= 0 && n != 1 {
			t.Errorf("%s: no info of version %s", when, version)
		}
	}
	g.dispatch("a r")
	check("first", 2, 1, "1.0.0")
	g.dispatch("a a") // not scraped before the swap
	g.h.Snapshot()
	g.apply(guest(t, "1.0.1"))
	check("after a swap", 4, 3, "1.0.1")
	g.dispatch("a")
	check("and on", 5, 4, "1.0.1")
	g.h.Snapshot()
	g.apply(guest(t, "1.0.2"))
	g.h.Snapshot()
	g.apply(guest(t, "1.0.3"))
	check("after two more", 5, 4, "1.0.3")
	g.apply()
	check("unloaded", -1, -1, "1.0.3")
	g.apply(guest(t, "1.0.0"))
	check("loaded again", 0, 0, "1.0.0")
}

// scrape asks for the protobuf form, as Prometheus does for native histograms.
func (g *rig) scrape() map[string]*dto.MetricFamily {
	g.t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	w := httptest.NewRecorder()
	g.h.ServeHTTP(w, r)
	if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "application/vnd.google.protobuf") {
		g.t.Fatalf("%d %v", w.Code, w.Header())
	}
	out := map[string]*dto.MetricFamily{}
	d := expfmt.NewDecoder(w.Body, expfmt.ResponseFormat(w.Header()))
	for {
		f := &dto.MetricFamily{}
		if err := d.Decode(f); err != nil {
			return out
		}
		out[f.GetName()] = f
	}
}

func TestExposition(t *testing.T) {
	g := newRig(t)
	for range 100 {
		g.dispatch("a r")
	}
	f := g.scrape()["kvrt_call_duration_seconds"]
	if f == nil || len(f.Metric) != 1 || f.GetType() != dto.MetricType_HISTOGRAM {
		t.Fatalf("%v", f)
	}
	h := f.Metric[0].GetHistogram()
	native := h.GetZeroCount()
	var n int64
	for _, d := range h.PositiveDelta {
		n += d
		native += uint64(n)
	}
	var length uint32
	for _, s := range h.PositiveSpan {
		length += s.GetLength()
	}
	last := h.Bucket[len(h.Bucket)-1]
	if h.GetSampleCount() != 200 || native != 200 || int(length) != len(h.PositiveDelta) || h.GetSchema() != 2 ||
		len(h.Bucket) != 19 || last.GetUpperBound() != 0.0625 || last.GetCumulativeCount() > 200 || h.GetSampleSum() <= 0 {
		t.Errorf("%v", h)
	}

	text := g.text()
	for _, line := range []string{
		`kvrt_build_info{abi="1.0",go="go1.`, `kvrt_guest_info{generation="1",guest="demo",sha256="`, "kvrt_generation 1\n",
		`kvrt_call_duration_seconds_bucket{guest="demo",le="0.0625"} `, `kvrt_call_duration_seconds_count{guest="demo"} 200`,
		`kvrt_instances{guest="demo",state="ready"} 2`, `kvrt_frames_total{op="submit"} 0`, "go_goroutines ", "process_open_fds ",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the text lacks %s", line)
		}
	}
	if strings.Contains(text, `"r"`) {
		t.Error("a label holds what a sender chose")
	}
}

// The native buckets and the classic ones say the same about every duration.
func TestHistogramBounds(t *testing.T) {
	for i := range runtime.DurationBuckets {
		d := durations{}
		d.counts.Buckets[i] = 3
		var m dto.Metric
		if err := d.Write(&m); err != nil {
			t.Fatal(err)
		}
		h := m.GetHistogram()
		upper := bound(i)
		for _, b := range h.Bucket {
			want := uint64(0)
			if upper <= b.GetUpperBound() {
				want = 3
			}
			if b.GetCumulativeCount() != want {
				t.Errorf("bucket %d, up to %g s: %d in the classic bucket up to %g", i, upper, b.GetCumulativeCount(), b.GetUpperBound())
			}
		}
		if i == 0 {
			if h.GetZeroCount() != 3 || h.GetZeroThreshold() != math.Exp2(-24) || len(h.PositiveDelta) != 0 || len(h.PositiveSpan) != 1 {
				t.Errorf("the zero bucket: %v", h)
			}
			continue
		}
		// In Prometheus's numbering, bucket k of schema 2 ends at 2^(k/4).
		k := float64(h.PositiveSpan[0].GetOffset())
		if h.GetZeroCount() != 0 || h.PositiveSpan[0].GetLength() != 1 || math.Abs(math.Exp2(k/4)/upper-1) > 1e-12 || h.PositiveDelta[0] != 3 {
			t.Errorf("bucket %d: %v", i, h)
		}
	}
	d := durations{}
	d.counts.Buckets[10], d.counts.Buckets[12] = 5, 2
	var m dto.Metric
	d.Write(&m)
	if got := fmt.Sprint(m.GetHistogram().PositiveDelta); got != "[5 -5 2]" {
		t.Errorf("deltas over a gap: %s", got)
	}
}

// Scrapes and dispatches at the same time.
func TestConcurrentScrapes(t *testing.T) {
	g := newRig(t)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				g.dispatch("a r")
			}
		}
	}()
	before := 0.0
	for i := range 50 {
		n := g.value("kvrt_calls_total", "guest=demo")
		if n < before {
			t.Errorf("scrape %d: %v calls after %v", i, n, before)
		}
		before = n
	}
	close(stop)
	<-done
}
