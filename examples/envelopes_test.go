package examples

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/clock"
	hints "github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/gpu/tier"
	"github.com/kvrt/kvrt/hosts/log"
	"github.com/kvrt/kvrt/hosts/store"
	"github.com/kvrt/kvrt/policies"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

const readme = "envelopes/README.md"

// TestEnvelopes dispatches every example to the built-in guests. What comes out is what
// the README says under the file's name; -update writes it there.
func TestEnvelopes(t *testing.T) {
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	doc := string(text)
	rt := builtIn(t)
	said := map[string]bool{}
	for _, name := range glob(t, "envelopes/*/*.*") {
		got := dispatch(t, rt, name)
		if strings.Contains(name, "/bad/") != strings.HasPrefix(got, "malformed envelope: ") {
			t.Errorf("%s: is in the wrong folder: %s", name, got)
		}
		title := strings.TrimPrefix(name, "envelopes/")
		if json := strings.TrimSuffix(title, ".msgpack") + ".json"; json != title {
			if twin, ok := twinOf("envelopes/" + json); ok && exists(twin) && exists("envelopes/"+json) {
				if want := dispatch(t, rt, "envelopes/"+json); got != want {
					t.Errorf("%s differs from its twin:\n%s%s", name, got, want)
				}
				continue
			}
		}
		said[title] = true
		at, block, ok := section(doc, title)
		switch {
		case !ok:
			t.Errorf("%s: no section with a block of results under ### %s", readme, title)
		case *update:
			doc = doc[:at] + got + doc[at+len(block):]
		case block != got:
			t.Errorf("%s: got\n%sthe README says\n%s", name, got, block)
		}
	}
	for _, m := range heading.FindAllStringSubmatch(doc, -1) {
		if !said[m[1]] {
			t.Errorf("%s: ### %s is no file", readme, m[1])
		}
	}
	if *update {
		if err := os.WriteFile(readme, []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var heading = regexp.MustCompile(`(?m)^### (\S+)$`)

// section finds the block under a heading and where it is.
func section(doc, title string) (at int, block string, ok bool) {
	i := strings.Index(doc, "\n### "+title+"\n")
	if i < 0 {
		return 0, "", false
	}
	rest := doc[i+1:]
	if next := strings.Index(rest, "\n#"); next >= 0 {
		rest = rest[:next]
	}
	for _, open := range []string{"\n```json\n", "\n```text\n"} {
		if j := strings.Index(rest, open); j >= 0 {
			rest = rest[j+len(open):]
			end := strings.Index(rest, "```")
			return i + 1 + j + len(open), rest[:max(end, 0)], end >= 0
		}
	}
	return 0, "", false
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// builtIn is a runtime as kvrt has it without a configuration.
func builtIn(t *testing.T) *runtime.Runtime {
	t.Helper()
	cfg := config.Default()
	allow, err := hints.ParseAllowList(t.Context(), cfg.Fetch.AllowedSources, nil)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := runtime.New(runtime.Config{
		Engine: wazero.New(wazero.Config{}),
		Hosts: []runtime.HostModule{
			hints.NewHost(hints.New(hints.Config{}), allow), store.NewHost(nil, nil, nil), tier.NewHost(nil, nil), log.Module{}, clock.Module{},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	var specs []runtime.GuestSpec
	for _, g := range cfg.Guests {
		name, _ := g.Embedded()
		wasm, ok := policies.Module(name)
		if !ok {
			t.Fatalf("no module %s", name)
		}
		specs = append(specs, runtime.GuestSpec{Name: g.Name, Module: wasm, Grants: g.Grants, Limits: runtime.Limits{Instances: 1}})
	}
	if err := rt.Apply(t.Context(), specs); err != nil {
		t.Fatal(err)
	}
	return rt
}

var changing = regexp.MustCompile(`,"generation":\d+,"fuel":\d+,"duration_ns":\d+`)

// dispatch returns the lines of results, or of the error.
func dispatch(t *testing.T, rt *runtime.Runtime, name string) string {
	t.Helper()
	body, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	req := &runtime.Request{Body: body, Identity: hint.Identity{RequestID: path.Base(name)}, Forward: true}
	if path.Base(path.Dir(name)) == "dialects" {
		req.Dialect = "router_hint"
	}
	res := rt.NewResponse()
	if err := rt.Dispatch(req, res); err != nil {
		var malformed *hint.MalformedError
		if !errors.As(err, &malformed) {
			t.Errorf("%s: %v", name, err)
		}
		return err.Error() + "\n"
	}
	var b bytes.Buffer
	for i := range res.Results {
		b.Write(changing.ReplaceAll(res.Results[i].AppendJSON(nil), nil))
		b.WriteByte('\n')
	}
	if rejected := strings.Contains(b.String(), `"REJECTED"`); strings.Contains(name, "/rejected-") != rejected {
		t.Errorf("%s: its name says otherwise: %s", name, b.String())
	}
	return b.String()
}
