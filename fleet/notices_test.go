package fleet

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/kvevents"
)

// TestNotices: one line of a kind for a feed, however often it happens.
func TestNotices(t *testing.T) {
	var out bytes.Buffer
	next := 0
	n := &notices{log: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo})), next: func(kvevents.Notice) { next++ }}
	seven, eight := hint.Worker{ID: hint.UintWorker(7)}, hint.Worker{ID: hint.UintWorker(8)}
	for range 10 {
		n.tell(kvevents.Notice{Worker: seven, What: kvevents.Gap, From: 3, To: 5})
		n.tell(kvevents.Notice{Worker: eight, What: kvevents.Disconnected, Err: errors.New("refused")})
		n.tell(kvevents.Notice{Worker: seven, What: kvevents.Replayed, To: 5})
	}
	if got := strings.Count(out.String(), "\n"); got != 3 || next != 30 {
		t.Errorf("%d lines, %d passed on: %s", got, next, out.String())
	}
	for _, want := range []string{`level=WARN msg="KV events: gap" worker=7 from=3 to=5`, `worker=8 why=refused`, `level=INFO msg="KV events: replayed" worker=7 next=5`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in %s", want, out.String())
		}
	}
	key := noticeKey{seven, kvevents.Gap}
	if untold, ok := n.due(key, time.Now().Add(2*noticeEvery)); !ok || untold != 9 {
		t.Error(untold, ok)
	}
	n.forget(seven.ID)
	if untold, ok := n.due(key, time.Now()); !ok || untold != 0 {
		t.Error(untold, ok)
	}
}
