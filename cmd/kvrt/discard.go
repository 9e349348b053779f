package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kvrt/kvrt/server"
)

func newDiscard() *cobra.Command {
	var (
		id     identityFlags
		client clientFlags
	)
	cmd := &cobra.Command{
		Use:   "discard REQUEST-ID",
		Short: "Drop a request's hint in the daemon",
		Long: `discard drops the fetch hint of a request, whatever becomes of the request. It may be
said again, and about a request that had no hint; a hint that comes late is rejected
with request_finished.

The flags must be those of the submit: legs and attempts of one request id have
hints of their own.`,
		Example: `  kvrt discard r1
  kvrt discard r1 --engine vllm --attempt 2
  kvrt discard r1 --socket /run/kvrt/kvrt.sock`,
		Args: arguments("REQUEST-ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id.requestID = args[0]
			return client.with(cmd, func(ctx context.Context, c *server.Client) error {
				return c.Discard(ctx, id.identity())
			})
		},
	}
	id.add(cmd)
	client.add(cmd.Flags())
	return cmd
}
