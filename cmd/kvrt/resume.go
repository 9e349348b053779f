package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kvrt/kvrt/server"
)

func newResume() *cobra.Command {
	var flags adminFlags
	cmd := &cobra.Command{
		Use:   "resume NAME",
		Short: "End the quarantine of a guest of the daemon",
		Long: `resume lets calls through again to a guest that is quarantined because half of its
last calls trapped. status shows which are. A quarantine also ends by itself, and when
the guest is swapped or the configuration reloaded. A guest that goes on trapping is
quarantined again.`,
		Example: `  kvrt resume kv-fetch
  kvrt resume kv-fetch --admin 127.0.0.1:9641
  kvrt resume kv-fetch -o json | jq .guest.quarantined`,
		Args: arguments("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.with(cmd, func(ctx context.Context, a *server.Admin) (answer, error) {
				c, err := a.Resume(ctx, args[0])
				return changed("resumed "+args[0], c), err
			})
		},
	}
	flags.add(cmd)
	return cmd
}
