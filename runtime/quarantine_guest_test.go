package runtime_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/kvrt/kvrt/runtime"
)

// lockedBuffer is a buffer for a log.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) count(what string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.b.String(), what)
}

// TestQuarantineEnds: a quarantine is in the log and in the counters, and whoever
// reloads or swaps ends it, be it with the guest that is there.
func TestQuarantineEnds(t *testing.T) {
	ctx := context.Background()
	lines := &lockedBuffer{}
	spec := scriptedGuest(t, '1')
	r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{&effects{}}, Log: slog.New(slog.NewTextHandler(lines, nil))}, spec)
	res := r.NewResponse()
	verdict := func(id string) string {
		if err := r.Dispatch(&runtime.Request{Body: envelope(id)}, res); err != nil {
			t.Fatal(err)
		}
		return verdicts(res.Results)
	}
	first := r.Generation()
	for i, end := range []func() error{
		func() error { return r.Swap(ctx, spec) },
		func() error { return r.Apply(ctx, []runtime.GuestSpec{spec}) },
		func() error { return r.Resume("scripted") },
		func() error { return r.Swap(ctx, scriptedGuest(t, '2')) },
	} {
		for n := 0; !statsOf(r, "scripted").Quarantined; n++ {
			if verdict("t"); n > 100 {
				t.Fatal("100 traps and no quarantine")
			}
		}
		if got := verdict("a"); got != "a=REJECTED/handler_unavailable" || !strings.Contains(string(res.Results[0].Detail), "quarantined") {
			t.Errorf("%s: %s", got, res.Results[0].Detail)
		}
		if s := statsOf(r, "scripted"); s.Quarantines != uint64(i+1) || s.QuarantineLeft <= 0 || s.Unavailable != uint64(i+1) {
			t.Errorf("%+v", s)
		}
		if n := lines.count("guest quarantined"); n != i+1 {
			t.Errorf("%d quarantines in the log, want %d", n, i+1)
		}
		if i < 3 && r.Generation() != first {
			t.Errorf("generation %d, want %d", r.Generation(), first)
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if got := verdict("a"); got != "a=ACCEPTED" {
			t.Errorf("after the end: %s: %s", got, res.Results[0].Detail)
		}
	}
	if n := lines.count("guest resumed"); n != 3 {
		t.Errorf("%d ends in the log, want 3: the last swap brought another guest", n)
	}
}
