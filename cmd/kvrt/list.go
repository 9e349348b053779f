package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kvrt/kvrt/server"
)

func newList() *cobra.Command {
	var flags adminFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the guests that the daemon runs",
		Long: `list shows the guests of a running daemon: what they are, what they handle, the
generation that loaded them, and what they have done since. HISTORY is how many
times a guest can be rolled back.`,
		Example: `  kvrt list
  kvrt list -o json | jq -r '.guests[] | .name + " " + .sha256'
  kvrt list --admin 127.0.0.1:9641`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.with(cmd, func(ctx context.Context, a *server.Admin) (answer, error) {
				list, err := a.Guests(ctx)
				return answer{list, func(cmd *cobra.Command) error { return guestTable(list.Guests).write(cmd.OutOrStdout()) }}, err
			})
		},
	}
	flags.add(cmd)
	return cmd
}

func guestTable(guests []server.GuestStatus) *table {
	t := newTable("NAME", "VERSION", "ROLES", "HANDLES", "GEN", "SHA256", "INSTANCES", "CALLS", "ACCEPTED", "REJECTED", "TRAPS", "HISTORY")
	for i := range guests {
		g := &guests[i]
		t.row(g.Name, g.Version, strings.Join(g.Roles, ","), strings.Join(append(g.ActionTypes, g.Dialects...), ","),
			strconv.FormatUint(g.Generation, 10), shortDigest(g.SHA256), strconv.Itoa(g.Instances), strconv.FormatUint(g.Calls, 10),
			strconv.FormatUint(g.Accepted, 10), sum(g.Rejected), sum(g.Traps), strconv.Itoa(g.History))
	}
	return t
}

func sum(counts map[string]uint64) string {
	var n uint64
	for _, v := range counts {
		n += v
	}
	return strconv.FormatUint(n, 10)
}
