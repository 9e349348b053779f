package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kvrt/kvrt/server"
)

func newFinish() *cobra.Command {
	var (
		id      identityFlags
		client  clientFlags
		aborted bool
	)
	cmd := &cobra.Command{
		Use:   "finish REQUEST-ID",
		Short: "Tell the daemon that a request has ended",
		Long: `finish ends a request: its fetch hint is dropped, and for a while (30 s by default)
a hint that comes late for it is rejected with request_finished. It may be said
again, and about a request that had no hint.

The flags must be those of the submit: legs and attempts of one request id have
hints of their own.`,
		Example: `  kvrt finish r1
  kvrt finish r1 --engine vllm --dp-rank 1 --leg prefill
  kvrt finish r1 --aborted`,
		Args: arguments("REQUEST-ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id.requestID = args[0]
			return client.with(cmd, func(ctx context.Context, c *server.Client) error {
				return c.Finish(ctx, id.identity(), aborted)
			})
		},
	}
	id.add(cmd)
	client.add(cmd.Flags())
	cmd.Flags().BoolVar(&aborted, "aborted", false, "the request was given up")
	return cmd
}
