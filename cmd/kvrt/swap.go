package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kvrt/kvrt/server"
)

func newSwap() *cobra.Command {
	var flags guestFlags
	cmd := &cobra.Command{
		Use:   "swap NAME [MODULE]",
		Short: "Replace a guest of the daemon, under traffic",
		Long: `swap replaces a guest. The new one is checked and brought up completely before it
is offered; calls in flight finish on the old one, and no hint is lost, doubled or
answered by half a guest. A replacement that is refused leaves the running one in
place: every broken rule is a line on standard error, and the code is 4.

What is not said stays as it is: without MODULE the module, without --grant the
grants, without --parameters the parameters, without any limit the limits.`,
		Example: `  kvrt swap kv-fetch ./my-fetch.wasm
  kvrt swap kv-fetch --parameters '{"versions":"kvcr"}'
  kvrt swap kv-fetch ./my-fetch.wasm --grant kvrt_fetch --if-generation 7
  kvrt swap kv-fetch --memory 16MiB --instances 8 --idle-fuel 8000000
  kvrt swap kv-fetch embedded:kv-fetch`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return arguments("NAME")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			module := ""
			if len(args) == 2 {
				module = args[1]
			}
			g, err := flags.request(cmd, module)
			if err != nil {
				return err
			}
			if module == "" && g.Grants == nil && g.Parameters == nil && g.Limits == nil {
				return &usageError{cmd.CommandPath(), "nothing to change: name a MODULE, --grant, --parameters or a limit"}
			}
			return flags.with(cmd, func(ctx context.Context, a *server.Admin) (answer, error) {
				c, err := flags.client(cmd, a).Swap(ctx, args[0], g)
				return changed("swapped "+args[0], c), err
			})
		},
	}
	flags.add(cmd)
	return cmd
}
