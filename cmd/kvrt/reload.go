package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kvrt/kvrt/server"
)

func newReload() *cobra.Command {
	var flags adminFlags
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Make the daemon read its configuration again",
		Long: `reload makes the daemon read its configuration file and its modules again and offer
them as a new generation; SIGHUP and POST /-/reload do the same. Names in
fetch.allowed_sources are looked up again. A configuration that is wrong, or a guest
that is refused, changes nothing: the daemon goes on as it was, and says why here.

Guests that load and swap brought in give way to those of the configuration. The
keys listen, limits, log, forward_unknown, and the bounds of fetch take effect only
when the daemon starts.`,
		Example: `  kvrt reload
  kvrt reload --admin 127.0.0.1:9641
  kvrt reload -o json`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.with(cmd, func(ctx context.Context, a *server.Admin) (answer, error) {
				c, err := a.Reload(ctx)
				return changed("reloaded", c), err
			})
		},
	}
	flags.add(cmd)
	return cmd
}
