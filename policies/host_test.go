package policies_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hosts/log"
	"github.com/kvrt/kvrt/policies"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/admit"
	"github.com/kvrt/kvrt/runtime/wazero"
)

// hosts makes runtimes with one guest. Cases that take the same parameters share one,
// unless they look at the log: an equal warning is written once.
type hosts struct {
	t        *testing.T
	name     string
	wasm     []byte
	manifest *abi.Manifest
	limits   runtime.Limits
	shared   map[string]*host
}

func newHosts(t *testing.T, name string) *hosts {
	t.Helper()
	wasm, ok := policies.Module(name)
	if !ok {
		t.Fatalf("no guest %s", name)
	}
	m, err := admit.Read(wasm, admit.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := m.Custom(abi.ManifestSection)
	manifest, err := abi.ParseManifest(raw)
	if err != nil {
		t.Fatal(err)
	}
	limits := runtime.Limits{Instances: 1}
	return &hosts{t, name, wasm, manifest, limits, map[string]*host{}}
}

// get loads the guest with the parameters of a case.
func (hs *hosts) get(c *testCase) (*host, error) {
	key := string(c.Params)
	if c.Log != nil && len(*c.Log) > 0 {
		return hs.load(context.Background(), c.Params)
	}
	if h := hs.shared[key]; h != nil {
		return h, nil
	}
	h, err := hs.load(context.Background(), c.Params)
	if err == nil {
		hs.shared[key] = h
	}
	return h, err
}

func (hs *hosts) load(ctx context.Context, params json.RawMessage) (*host, error) {
	h := &host{manifest: hs.manifest}
	rt, err := runtime.New(runtime.Config{
		Engine: wazero.New(wazero.Config{Interpreter: true}),
		Hosts:  []runtime.HostModule{h, log.Module{}},
		Log:    slog.New(lines{h}),
	})
	if err != nil {
		return nil, err
	}
	hs.t.Cleanup(func() { rt.Close(context.Background()) })
	h.runtime = rt
	return h, rt.Apply(ctx, []runtime.GuestSpec{{
		Name: hs.name, Module: hs.wasm, Grants: hs.manifest.Capabilities, Parameters: params, Limits: hs.limits,
	}})
}

// host is a runtime with one guest, and the host functions that record what it asks.
// It is kvrt_fetch itself: a hint counts when it is committed.
type host struct {
	runtime  *runtime.Runtime
	manifest *abi.Manifest
	log      []string
	submits  []submit
	refuse   abi.Reason
}

func (h *host) reset(refuse string) {
	h.log, h.submits, h.refuse = nil, nil, abi.ReasonNone
	for r := abi.ReasonNone; refuse != "" && r.String() != refuse; {
		r++
		h.refuse = r
	}
}

// submit is a hint that the guest handed to the store.
type submit struct {
	Source   *string  `json:"source"`
	Hashes   []uint64 `json:"hashes"`
	NoRetain bool     `json:"no_retain"`
}

func (s submit) String() string {
	source := "none"
	if s.Source != nil {
		source = fmt.Sprintf("%q", *s.Source)
	}
	return fmt.Sprintf("{%s %d %t}", source, s.Hashes, s.NoRetain)
}

func (h *host) Name() string { return abi.ModuleFetch }

func (h *host) Functions() []runtime.HostFunction {
	i := abi.I32
	return []runtime.HostFunction{{Name: "submit", Params: []abi.ValType{i, i, i, i, i}, Results: []abi.ValType{i}, Call: h.submit}}
}

func (h *host) submit(c *runtime.Call, mem []byte, stack []uint64) {
	if h.refuse != abi.ReasonNone {
		stack[0] = uint64(uint32(c.Refuse(h.refuse, "says the test")))
		return
	}
	source, sourceLen := uint32(stack[0]), uint32(stack[1])
	hashes, count := uint32(stack[2]), uint32(stack[3])
	s := submit{NoRetain: uint32(stack[4])&uint32(abi.FetchFlagNoRetain) != 0}
	if source != 0 || sourceLen != 0 {
		text := string(mem[source : source+sourceLen])
		s.Source = &text
	}
	for i := range count {
		s.Hashes = append(s.Hashes, binary.LittleEndian.Uint64(mem[hashes+8*i:]))
	}
	c.Defer(hinted{h, s})
	stack[0] = 0
}

type hinted struct {
	h *host
	s submit
}

func (e hinted) Commit() (abi.Reason, string) {
	e.h.submits = append(e.h.submits, e.s)
	return abi.ReasonNone, ""
}

func (e hinted) Drop() {}

// lines keeps the guest's own log lines, as "warn: text", and drops the runtime's.
type lines struct{ h *host }

func (l lines) Enabled(context.Context, slog.Level) bool { return true }
func (l lines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l lines) WithGroup(string) slog.Handler            { return l }

func (l lines) Handle(_ context.Context, r slog.Record) error {
	keys := ""
	r.Attrs(func(a slog.Attr) bool {
		keys += a.Key + " "
		return true
	})
	if keys == "guest request_id " {
		l.h.log = append(l.h.log, strings.ToLower(r.Level.String())+": "+r.Message)
	}
	return nil
}
