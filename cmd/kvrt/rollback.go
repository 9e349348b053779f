package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kvrt/kvrt/server"
)

func newRollback() *cobra.Command {
	var flags adminFlags
	cmd := &cobra.Command{
		Use:   "rollback NAME",
		Short: "Make a guest of the daemon what it was before its last change",
		Long: `rollback replaces a guest by what it was before its last change: module, grants,
parameters and limits. The last 8 are kept, so that it can be said several times;
list shows how often. It is a new generation, and swaps as swap does.`,
		Example: `  kvrt rollback kv-fetch
  kvrt rollback kv-fetch --admin 127.0.0.1:9641
  kvrt rollback kv-fetch -o json | jq .generation`,
		Args: arguments("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.with(cmd, func(ctx context.Context, a *server.Admin) (answer, error) {
				c, err := a.Rollback(ctx, args[0])
				return changed("rolled back "+args[0], c), err
			})
		},
	}
	flags.add(cmd)
	return cmd
}
