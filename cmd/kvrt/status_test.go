package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/kvrt/kvrt/server"
)

// statusText is a status as people see it, without the padding.
func statusText(t *testing.T, s *server.StatusReport) string {
	t.Helper()
	var out bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetOut(&out)
	if err := writeStatus(cmd, s); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(out.String()) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return "\n" + strings.Join(lines, "\n") + "\n"
}

// has wants lines, each in full.
func has(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("there is no line %q in:%s", line, text)
		}
	}
}

func TestStatusShowsTheLane(t *testing.T) {
	has(t, statusText(t, &server.StatusReport{HeavyCalls: server.HeavyCalls{Limit: 2}}), "heavy calls 0 of 2 at once are running; no guest is heavy")
	text := statusText(t, &server.StatusReport{
		HeavyCalls: server.HeavyCalls{Running: 1, Limit: 2},
		Guests:     []server.GuestStatus{{Name: "slow", Heavy: true, Crowded: 7}, {Name: "quick"}, {Name: "sl\now", Heavy: true}},
	})
	has(t, text, `heavy calls 1 of 2 at once are running; of slow, sl\now`, "crowded slow: 7 calls found no room among the heavy ones in time")
}
