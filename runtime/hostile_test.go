package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/clock"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/log"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

// attack is a guest that means harm, in testdata/hostile, with what must become of it.
// Its text begins with lines of the form ;; key: value.
//
//	expect: refused RULE [TEXT]     it is not loaded: a problem of that rule has the text
//	expect: rejected REASON [TEXT]  of the action that it judges, or the document
//	expect: accepted
//	role: parser                    it is one; without: a handler
//	bytes: N                        the payload has a text of N bytes
//	fuel: N                         the guest's; without: the default
//	grants: none                    without: all that are offered
//	effects: N                      hints that it leaves in the store; without: 0
//	lines: N                        that it logs; without: not compared
//	dropped: N                      lines that are counted as dropped
//	detail: N                       bytes of the result's detail
//
// A handler is called for two actions. It does its harm in the second, so that the call
// before it is offered passes.
type attack struct {
	name   string
	wasm   []byte
	expect [3]string
	says   map[string]string
}

func (a *attack) number(t testing.TB, key string) (n int, said bool) {
	t.Helper()
	text, said := a.says[key]
	if said {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
	}
	return n, said
}

func attacks(t testing.TB, dir string) []attack {
	t.Helper()
	texts, err := filepath.Glob(filepath.Join(dir, "*.wat"))
	if err != nil || len(texts) < 30 {
		t.Fatalf("%d attacks in %s: %v", len(texts), dir, err)
	}
	var all []attack
	for _, text := range texts {
		content, err := os.ReadFile(text)
		if err != nil {
			t.Fatal(err)
		}
		a := attack{name: strings.TrimSuffix(filepath.Base(text), ".wat"), says: map[string]string{}}
		for line := range strings.Lines(string(content)) {
			comment, ok := strings.CutPrefix(line, ";; ")
			if !ok {
				break
			}
			if key, value, ok := strings.Cut(strings.TrimSpace(comment), ": "); ok && !strings.Contains(key, " ") {
				a.says[key] = value
			}
		}
		for i, word := range strings.SplitN(a.says["expect"], " ", 3) {
			a.expect[i] = word
		}
		if a.wasm, err = os.ReadFile(strings.TrimSuffix(text, ".wat") + ".wasm"); err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	return all
}

// counted is an engine that counts what is alive.
type counted struct {
	runtime.Engine
	modules, instances atomic.Int64
}

func (c *counted) Compile(ctx context.Context, wasm []byte, opts runtime.CompileOptions) (runtime.Module, error) {
	m, err := c.Engine.Compile(ctx, wasm, opts)
	if err != nil {
		return nil, err
	}
	c.modules.Add(1)
	return &countedModule{Module: m, c: c}, nil
}

type countedModule struct {
	runtime.Module
	c      *counted
	closed sync.Once
}

func (m *countedModule) Instantiate(ctx context.Context) (runtime.Instance, error) {
	in, err := m.Module.Instantiate(ctx)
	if err != nil {
		return nil, err
	}
	m.c.instances.Add(1)
	return &countedInstance{Instance: in, c: m.c}, nil
}

func (m *countedModule) Close() error {
	m.closed.Do(func() { m.c.modules.Add(-1) })
	return m.Module.Close()
}

type countedInstance struct {
	runtime.Instance
	c      *counted
	closed sync.Once
}

func (i *countedInstance) Close() error {
	i.closed.Do(func() { i.c.instances.Add(-1) })
	return i.Instance.Close()
}

// settled waits until as many instances and modules are alive as there should be: a
// trapped instance is replaced off the caller's path.
func (c *counted) settled(t *testing.T, instances, modules int64) {
	t.Helper()
	for range 2000 {
		if c.instances.Load() == instances && c.modules.Load() == modules {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("%d instances and %d modules are alive, want %d and %d", c.instances.Load(), c.modules.Load(), instances, modules)
}

// guestLines counts the lines of a guest's log.
type guestLines struct{ n atomic.Int64 }

func (l *guestLines) Enabled(context.Context, slog.Level) bool { return true }
func (l *guestLines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *guestLines) WithGroup(string) slog.Handler            { return l }

func (l *guestLines) Handle(_ context.Context, r slog.Record) error {
	keys := ""
	r.Attrs(func(a slog.Attr) bool {
		keys += a.Key + " "
		return true
	})
	if keys == "guest request_id " {
		l.n.Add(1)
	}
	return nil
}

// noisy is a log that keeps every line, so that guests find theirs enabled.
func noisy() *slog.Logger { return slog.New(&guestLines{}) }

// arenaOfAttacks is a runtime in which a good guest runs beside each attack.
type arenaOfAttacks struct {
	engine  *counted
	lines   *guestLines
	store   *fetch.Store
	runtime *runtime.Runtime
}

func newAttacked(t *testing.T) *arenaOfAttacks {
	t.Helper()
	return newAttackedOn(t, &counted{Engine: wazero.New(wazero.Config{})})
}

func newAttackedOn(t *testing.T, engine *counted) *arenaOfAttacks {
	t.Helper()
	allow, err := fetch.ParseAllowList(t.Context(), []string{"tcp://127.0.0.1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := &arenaOfAttacks{engine: engine, lines: &guestLines{}, store: fetch.New(fetch.Config{})}
	hosts := []runtime.HostModule{fetch.NewHost(a.store, allow), log.Module{}, clock.Module{}}
	a.runtime = newRuntime(t, runtime.Config{Engine: a.engine, Hosts: hosts, Log: slog.New(a.lines)}, a.good(t))
	return a
}

func (*arenaOfAttacks) good(t *testing.T) runtime.GuestSpec {
	spec := scriptedGuest(t, '0')
	spec.Name = "good"
	spec.Module = withManifest(t, scripted, strings.Replace(scriptedManifest, "demo.echo", "demo.good", 1))
	return spec
}

// goodAnswers calls the good guest: with a detail, which it has in its memory.
func (f *arenaOfAttacks) goodAnswers(t *testing.T) {
	t.Helper()
	res := f.runtime.NewResponse()
	if err := f.runtime.Dispatch(&runtime.Request{Body: envelope("demo.good:a demo.good:d demo.good:w"), Forward: true}, res); err != nil {
		t.Fatal(err)
	}
	if got := verdicts(res.Results); got != "a=ACCEPTED d=ACCEPTED w=ACCEPTED" || string(res.Results[1].Detail) != "version0" {
		t.Errorf("the good guest answers %s", got)
	}
}

const (
	hostileHandler = `{"name":"hostile","version":"1.0.0","abi":1,"roles":["handler"],"action_types":[{"type":"demo.echo"}],"capabilities":["kvrt_fetch","kvrt_log","kvrt_clock","kvrt_state"]}`
	hostileParser  = `{"name":"hostile","version":"1.0.0","abi":1,"roles":["parser"],"dialects":["hostile"]}`
)

func (a *attack) spec(t testing.TB) runtime.GuestSpec {
	manifest := hostileHandler
	if a.says["role"] == "parser" {
		manifest = hostileParser
	}
	fuel, _ := a.number(t, "fuel")
	spec := runtime.GuestSpec{Name: "hostile", Module: withManifest(t, a.wasm, manifest), Grants: []string{"kvrt_fetch", "kvrt_log", "kvrt_clock", "kvrt_state"},
		Limits: runtime.Limits{Instances: 1, Fuel: uint64(fuel)}}
	if a.says["grants"] == "none" {
		spec.Grants = nil
	}
	return spec
}

// TestHostileGuests makes every attack in a runtime that serves a good guest too, and
// holds what becomes of both.
func TestHostileGuests(t *testing.T) {
	field := newAttacked(t)
	field.engine.settled(t, 3, 1) // the good guest: two instances and a spare
	for _, a := range attacks(t, "testdata/hostile") {
		t.Run(a.name, func(t *testing.T) {
			before := field.store.Stats()
			if a.expect[0] == "refused" {
				field.refused(t, &a)
			} else {
				if err := field.runtime.Load(context.Background(), a.spec(t)); err != nil {
					t.Fatal(err)
				}
				field.judged(t, &a)
			}
			field.goodAnswers(t)
			if a.expect[0] != "refused" {
				field.engine.settled(t, 5, 2) // and the attacker: one and a spare
			}
			err := field.runtime.Unload(context.Background(), "hostile")
			if loaded := !errors.Is(err, runtime.ErrUnknownGuest); loaded && err != nil || loaded == (a.expect[0] == "refused") {
				t.Errorf("unloading: %v", err)
			}
			field.engine.settled(t, 3, 1)
			want, _ := a.number(t, "effects")
			if s := field.store.Stats(); s.Submitted-before.Submitted != uint64(want) || s.Unkeyed != before.Unkeyed || s.Prepared != 0 {
				t.Errorf("want %d hints in the store, before it was %+v, now it is %+v", want, before, s)
			}
		})
	}
	if err := field.runtime.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	field.engine.settled(t, 0, 0)
}

// refused loads an attack that is not loaded.
func (f *arenaOfAttacks) refused(t *testing.T, a *attack) {
	t.Helper()
	a.names(t, f.runtime.Load(context.Background(), a.spec(t)))
}

// names holds an error to what is expected of it.
func (a *attack) names(t *testing.T, err error) {
	t.Helper()
	var refused *runtime.LoadError
	if !errors.As(err, &refused) {
		t.Fatalf("%s: got %v, want a *LoadError", a.name, err)
	}
	for _, p := range refused.Problems {
		if p.Rule == a.expect[1] && strings.Contains(p.String(), a.expect[2]) {
			return
		}
	}
	t.Errorf("%s: got %v, want %v", a.name, err, a.expect)
}

// judged dispatches to an attack and compares what comes back.
func (f *arenaOfAttacks) judged(t *testing.T, a *attack) {
	t.Helper()
	size, _ := a.number(t, "bytes")
	payload := `{"text":"` + strings.Repeat("x", size) + `"}`
	req := runtime.Request{Body: fmt.Appendf(nil, `{"actions":[{"action_id":"0","action_type":"demo.echo","payload":%s},{"action_id":"1","action_type":"demo.echo","payload":{}}]}`, payload), Identity: hint.Identity{RequestID: a.name}, Forward: true}
	if a.says["role"] == "parser" {
		req.Body, req.Dialect = []byte(payload), "hostile"
	}
	before := f.lines.n.Load()
	res := f.runtime.NewResponse()
	err := f.runtime.Dispatch(&req, res)
	got := [3]string{}
	var unparsed *runtime.ParseError
	switch {
	case errors.As(err, &unparsed):
		got = [3]string{"rejected", unparsed.Reason.String(), unparsed.Detail}
	case err != nil:
		t.Fatal(err)
	default:
		last := res.Results[len(res.Results)-1]
		got = [3]string{strings.ToLower(last.Status.String()), last.Reason.String(), string(last.Detail)}
		if n, said := a.number(t, "detail"); said && len(last.Detail) != n {
			t.Errorf("a detail of %d bytes, want %d", len(last.Detail), n)
		}
		if _, err := hint.DecodeEnvelope(abi.FormatJSON, res.Forward); err != nil {
			t.Errorf("what is passed on: %v", err)
		}
	}
	if got[0] != a.expect[0] || got[1] != a.expect[1] || !strings.Contains(got[2], a.expect[2]) {
		t.Errorf("got %q, want %q", got, a.expect)
	}
	if n, said := a.number(t, "lines"); said && f.lines.n.Load()-before != int64(n) {
		t.Errorf("%d lines of its log, want %d", f.lines.n.Load()-before, n)
	}
	f.runtime.Observe(&held{t, a})
}

// held looks at the counters of an attack.
type held struct {
	t *testing.T
	a *attack
}

func (h *held) Runtime(runtime.RuntimeStats) {}

func (h *held) Guest(s runtime.GuestStats) {
	if s.Name != "hostile" {
		return
	}
	if s.MemoryBytes > abi.DefaultMemory {
		h.t.Errorf("an instance has %d bytes of memory", s.MemoryBytes)
	}
	if n, said := h.a.number(h.t, "dropped"); said && s.LogDropped != uint64(n) {
		h.t.Errorf("%d lines were dropped, want %d", s.LogDropped, n)
	}
}

// TestHostileModules: what admission refuses of any module is refused of a guest, by
// the same rule. The modules are those of admission's own corpus. Names that the
// rewriter needs are its own business: it is not asked about a module that is no guest.
func TestHostileModules(t *testing.T) {
	tried := 0
	for _, a := range attacks(t, "admit/testdata/hostile") {
		if a.expect[0] == "refused" && a.expect[1] != "export/reserved" {
			tried++
			_, err := runtime.Check(runtime.Config{}, a.spec(t))
			a.names(t, err)
		}
	}
	if tried < 5 {
		t.Errorf("only %d modules", tried)
	}
}

// TestHostileTexts holds the committed modules to their texts.
func TestHostileTexts(t *testing.T) {
	wat2wasm, err := exec.LookPath("wat2wasm")
	if err != nil {
		t.Skip("wat2wasm is not installed: run make tools")
	}
	out := filepath.Join(t.TempDir(), "out.wasm")
	for _, a := range attacks(t, "testdata/hostile") {
		if msg, err := exec.Command(wat2wasm, "-o", out, "testdata/hostile/"+a.name+".wat").CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", a.name, err, msg)
		} else if got, err := os.ReadFile(out); err != nil || !bytes.Equal(got, a.wasm) {
			t.Errorf("%v: %s.wasm is not what wat2wasm makes of the text beside it", err, a.name)
		}
	}
}
