package router

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/session"
	"github.com/kvrt/kvrt/hosts/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, log *bytes.Buffer) *Plugin {
	t.Helper()
	p, err := New(t.Context(), Config{
		Policies: []Policy{{Name: "retain-session", Parameters: json.RawMessage(`{"variant":"blocks","hashes":"integer"}`)}, {Name: "fetch-longest-prefix"}},
		Workers:  []worker.Worker{{ID: hint.UintWorker(7), Ranks: []worker.Rank{{Events: "ipc://" + t.TempDir() + "/events"}}}},
		Timeout:  5e9, // a test is not judged by the clock
		Log:      slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelError + 1})),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// types are the types of a request's actions.
func types(t *testing.T, r *Request) string {
	t.Helper()
	if r.Body[HintKey] == nil {
		return "none"
	}
	e, err := hint.DecodeEnvelope(hint.FormatJSON, r.Body[HintKey])
	if err != nil {
		t.Fatalf("%v in %s", err, r.Body[HintKey])
	}
	var words []string
	for _, a := range e.Actions {
		words = append(words, a.ActionType)
	}
	return strings.Join(words, " ")
}

func TestPreRequest(t *testing.T) {
	p := start(t, new(bytes.Buffer))
	seven, nine := Endpoint{ID: hint.UintWorker(7)}, Endpoint{ID: hint.NamedWorker("nine"), Source: "tcp://10.0.0.9:23280", MatchedBlocks: 2}
	// What a feed would bring.
	if _, err := p.Fleet().Sessions().Index("").Apply(&session.Event{Op: session.OpStored, Session: "s", Hashes: []uint64{1, 2}, Worker: hint.Worker{ID: seven.ID}}); err != nil {
		t.Fatal(err)
	}
	const own = `{"protocol_version":"0.1","message_id":"m","actions":[{"action_id":"c","action_type":"x","action_version":"1.0","payload":{}}]}`
	for _, c := range []struct {
		name, session, hint, want string
		candidates                []Endpoint
	}{
		{"nothing to say", "", "", "none", nil},
		{"a session", "s", "", "kv.retain", nil},
		{"a session, and a better worker", "s", "", "kv.retain kv.fetch", []Endpoint{seven, nine}},
		{"what the client sent stays", "s", own, "x kv.retain", nil},
		{"an unknown session", "t", own, "x", nil},
	} {
		r := &Request{ID: "r", Model: "m", SessionID: c.session, BlockHashes: []uint64{1, 2, 3}, BlockSize: 16, Body: map[string]json.RawMessage{"prompt": json.RawMessage(`"p"`)}}
		if c.hint != "" {
			r.Body[HintKey] = json.RawMessage(c.hint)
		}
		p.PreRequest(t.Context(), r, seven, c.candidates)
		if got := types(t, r); got != c.want || string(r.Body["prompt"]) != `"p"` {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestNothingFails: whatever is wrong, the request goes on as it was.
func TestNothingFails(t *testing.T) {
	p := start(t, new(bytes.Buffer))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, r := range map[string]*Request{
		"no id":                   {Body: map[string]json.RawMessage{}},
		"no body":                 {ID: "r", SessionID: "s"},
		"a malformed client hint": {ID: "r", Body: map[string]json.RawMessage{HintKey: json.RawMessage(`{"actions":7}`)}},
		"no JSON at all":          {ID: "r", Body: map[string]json.RawMessage{HintKey: json.RawMessage(`{`)}},
	} {
		before := fmt.Sprint(r.Body)
		p.PreRequest(t.Context(), r, Endpoint{ID: hint.UintWorker(7)}, nil)
		p.PreRequest(gone, r, Endpoint{ID: hint.UintWorker(7)}, nil)
		p.PreRequest(t.Context(), r, Endpoint{}, nil)
		if after := fmt.Sprint(r.Body); after != before {
			t.Errorf("%s: %s became %s", name, before, after)
		}
	}
	if _, err := New(t.Context(), Config{Policies: []Policy{{Name: "nobody"}}}); err == nil {
		t.Error("an unknown policy")
	}
}

// TestTogether: requests run side by side.
func TestTogether(t *testing.T) {
	p := start(t, new(bytes.Buffer))
	if _, err := p.Fleet().Sessions().Index("").Apply(&session.Event{Op: session.OpStored, Session: "s", Hashes: []uint64{1}, Worker: hint.Worker{ID: hint.UintWorker(7)}}); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				r := &Request{ID: "r", SessionID: "s", Body: map[string]json.RawMessage{}}
				p.PreRequest(t.Context(), r, Endpoint{ID: hint.UintWorker(7)}, nil)
				if got := types(t, r); got != "kv.retain" {
					t.Error(got)
				}
			}
		})
	}
	group.Wait()
}
