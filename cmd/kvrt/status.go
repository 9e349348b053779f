package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/kvrt/kvrt/server"
)

func newStatus() *cobra.Command {
	var flags adminFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Tell how the daemon is",
		Long: `status shows whether the daemon takes work, its addresses and generation, what it
has done, the device and the block store, peers with what went to and came from them,
what became of hints, whose KV events it follows and what it knows of their sessions,
what became of the last reload, and its guests.`,
		Example: `  kvrt status
  kvrt status -o json | jq .ready
  kvrt status -o json | jq '.peers.sources[] | select(.connected | not)'
  kvrt status --admin 127.0.0.1:9641 --timeout 2s`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.with(cmd, func(ctx context.Context, a *server.Admin) (answer, error) {
				s, err := a.Status(ctx)
				return answer{s, func(cmd *cobra.Command) error { return writeStatus(cmd, s) }}, err
			})
		},
	}
	flags.add(cmd)
	return cmd
}

func writeStatus(cmd *cobra.Command, s *server.StatusReport) error {
	out := cmd.OutOrStdout()
	tw := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	line := func(key, format string, args ...any) {
		fmt.Fprintf(tw, "%s\t"+format+"\n", append([]any{key}, args...)...)
	}
	line("version", "%s", cell(s.Version))
	line("up since", "%s", s.Started.Format(time.RFC3339))
	switch {
	case s.Draining:
		line("state", "draining")
	case s.Ready:
		line("state", "ready")
	default:
		line("state", "not ready: %s", cell(strings.Join(s.NotReady, "; ")))
	}
	line("socket", "%s", cell(s.Socket))
	line("admin", "%s", cell(s.Admin))
	line("connections", "%d", s.Connections)
	line("guest memory", "%d of %d bytes reserved", s.GuestMemory.Reserved, s.GuestMemory.Budget)
	writeLane(line, s)
	writeBlocks(line, s)
	line("generation", "%d, after %d changes and %d refused", s.Generation, s.Swaps, s.Refused)
	line("envelopes", "%d, %d of them malformed", s.Dispatches, s.Malformed)
	line("routing contexts", "%d", s.Formulations)
	writeFleet(line, s)
	for _, reason := range slices.Sorted(maps.Keys(s.Unrouted)) {
		line("rejected before any guest", "%d %s", s.Unrouted[reason], reason)
	}
	for i := range s.Guests {
		if g := &s.Guests[i]; g.Quarantined {
			line("quarantined", "%s, for %s yet: half of its last calls trapped; swap in a good one, or resume it", cell(g.Name), time.Duration(g.QuarantineMS)*time.Millisecond)
		}
	}
	for i := range s.Guests {
		if g := &s.Guests[i]; g.Stuck > 0 {
			line("stuck", "%s: %d of %d instances are held by calls that do not end", cell(g.Name), g.Stuck, g.Instances)
		}
	}
	switch r := s.Reload; {
	case r.Time.IsZero():
		line("last reload", "none")
	case r.OK:
		line("last reload", "%s, ok", r.Time.Format(time.RFC3339))
	default:
		line("last reload", "%s, refused: %s", r.Time.Format(time.RFC3339), cell(r.Error))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	return guestTable(s.Guests).write(out)
}

// writeLane tells of the lane of heavy calls: who is in it, and who was kept waiting too
// long for it.
func writeLane(line func(key, format string, args ...any), s *server.StatusReport) {
	var heavy []string
	for i := range s.Guests {
		if s.Guests[i].Heavy {
			heavy = append(heavy, cell(s.Guests[i].Name))
		}
	}
	who := "no guest is heavy"
	if len(heavy) > 0 {
		who = "of " + strings.Join(heavy, ", ")
	}
	line("heavy calls", "%d of %d at once are running; %s", s.HeavyCalls.Running, s.HeavyCalls.Limit, who)
	for i := range s.Guests {
		if g := &s.Guests[i]; g.Crowded > 0 {
			line("crowded", "%s: %d calls found no room among the heavy ones in time", cell(g.Name), g.Crowded)
		}
	}
}
