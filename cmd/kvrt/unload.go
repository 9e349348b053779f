package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kvrt/kvrt/server"
)

func newUnload() *cobra.Command {
	var flags adminFlags
	cmd := &cobra.Command{
		Use:   "unload NAME",
		Short: "Remove a guest from the daemon",
		Long: `unload removes a guest. Calls in flight finish; afterwards its action types are
rejected with unsupported_action_type. What there was to roll back to is forgotten.`,
		Example: `  kvrt unload mirror
  kvrt unload mirror -o json
  kvrt unload mirror --admin 127.0.0.1:9641`,
		Args: arguments("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.with(cmd, func(ctx context.Context, a *server.Admin) (answer, error) {
				c, err := a.Unload(ctx, args[0])
				return changed("unloaded "+args[0], c), err
			})
		},
	}
	flags.add(cmd)
	return cmd
}
