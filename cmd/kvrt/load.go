package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kvrt/kvrt/server"
)

func newLoad() *cobra.Command {
	var flags guestFlags
	cmd := &cobra.Command{
		Use:   "load NAME MODULE",
		Short: "Load one more guest into the daemon",
		Long: `load sends a module to the daemon, which checks it, brings it up, makes a test call,
and only then offers it. A guest that is refused changes nothing: every broken rule
is a line on standard error, and the code is 4.

MODULE is the path of a .wasm file, or embedded:NAME for a built-in guest. What the
module imports must be granted with --grant. What is loaded here lasts until the
daemon stops or reloads its configuration.`,
		Example: `  kvrt load mirror ./mirror.wasm
  kvrt load mirror ./mirror.wasm --grant kvrt_fetch,kvrt_log --memory 4MiB
  kvrt load kv-retain embedded:kv-retain --grant kvrt_store,kvrt_log --instances 4
  kvrt load mirror ./mirror.wasm --parameters '{"ratio":0.1}' --fuel 1000000
  kvrt load mirror ./mirror.wasm --output-bytes 64KiB --host-calls 100 --log-lines 4
  kvrt load mirror ./mirror.wasm --sha256 "$(sha256sum < mirror.wasm | cut -d' ' -f1)"`,
		Args: arguments("NAME", "MODULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := flags.request(cmd, args[1])
			if err != nil {
				return err
			}
			return flags.with(cmd, func(ctx context.Context, a *server.Admin) (answer, error) {
				c, err := flags.client(cmd, a).Load(ctx, args[0], g)
				return changed("loaded "+args[0], c), err
			})
		},
	}
	flags.add(cmd)
	return cmd
}
