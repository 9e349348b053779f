package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

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

func TestStatusShowsPeers(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	text := statusText(t, &server.StatusReport{
		Device: &server.DeviceStatus{Driver: "hostmem", Name: "host memory", Detail: "copies on 2 threads", Choice: "the default", Batches: 4, Failed: 1, Bytes: 77,
			Blocks: &server.DeviceBlocks{SlotBytes: 64, Slots: 9, Used: 5, Leased: 2, Loaded: 6, Saved: 7, NoRoom: 1, Failed: 3, LastError: "lost", Queued: 8, Quarantined: 4}},
		Store: &server.BlocksStatus{Capacity: 1000, Used: 200, Blocks: 2, Hits: 5, Misses: 6, Displaced: 1, Evicted: 3},
		Peers: &server.PeersStatus{
			Served:  server.ServedStatus{Links: 1, Blocks: 2, Bytes: 3, Requests: 4, Denied: 1},
			Readers: []server.Reader{{Peer: "uid:0", Requests: 4, Denied: 1, Blocks: 2, Bytes: 3}, {Peer: "other"}},
			Sources: []server.SourceStatus{
				{Source: "tcp://10.0.0.9:1", Connected: true, Incarnation: "00000000000000ff", Blocks: 7, Bytes: 70},
				{Source: "tcp://10.0.0.8:1", LastError: "connection\nrefused", LastErrorAt: at},
			},
			Fetched: 7, FetchedBytes: 70, Operations: 9, Incomplete: 2, InFlight: 1, RefusedAsBusy: 3, Prefetches: server.AheadStatus{Waiting: 5, Running: 2, Blocks: 90},
		},
		Outcomes: &server.OutcomesStatus{Accepted: 8, Open: 1, Completed: 2, Partial: 1, Failed: 4, FailedBy: map[string]uint64{"unavailable": 3, "not_found": 1}},
	})
	has(t, text,
		"device hostmem: host memory, copies on 2 threads (the default)", "device copies 4 batches, 1 of them failed; 77 bytes",
		"blocks on the device 5 of 9 slots of 64 bytes are used, 2 of them in use; 6 came from the block store, 7 went there",
		"its last error lost", "not on the device 1 blocks found no slot, the copies of 3 failed",
		"device prefetches 8 blocks wait", "given to nobody 4 places in host memory, since the lost device may write to them", "prefetches 2 run, 5 wait: 90 blocks",
		"blocks 2, in 200 of 1000 bytes; 5 were found and 6 were not", "blocks that went 1 for others, 3 because a hint asked",
		"peers served at nobody", "served 2 blocks, 3 bytes, in 4 requests, 1 of them denied; 1 links", "reader uid:0: 2 blocks, 3 bytes, in 4 requests, 1 of them denied",
		"fetched 7 blocks, 70 bytes, in 9 operations, 2 of them incomplete; 1 under way", "refused as busy 3 fetches: too many bytes were under way",
		"source tcp://10.0.0.9:1: connected, incarnation 00000000000000ff; 7 blocks, 70 bytes", "source tcp://10.0.0.8:1: not connected; 0 blocks, 0 bytes",
		`its last error 2026-01-02T03:04:05Z, connection\nrefused`,
		"outcomes 8 hints: 1 open, 2 completed, 1 partial, 4 failed, 0 superseded, 0 discarded, 0 expired", "failed for not_found 1, unavailable 3",
	)
	if strings.Contains(text, "other: 0") || strings.Contains(text, "partial for") {
		t.Errorf("what is nothing is shown:%s", text)
	}
}
