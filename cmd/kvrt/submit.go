package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/server"
)

func newSubmit() *cobra.Command {
	var (
		flags  envelopeFlags
		client clientFlags
		oneway bool
	)
	cmd := &cobra.Command{
		Use:   "submit FILE|-",
		Short: "Run one envelope through the daemon",
		Long: `submit sends one envelope to a running daemon and writes the same lines as dispatch:
one JSON object per action, in envelope order. Codes are those of dispatch, and 3
when no daemon answers, 5 when it does not answer in time.

--oneway sends and does not wait: there are no results, and a malformed envelope is
not reported.

The socket is the one that a daemon of this user listens on by default; name it with
--socket when the daemon's was named.`,
		Example: `  kvrt submit envelope.json
  kvrt submit --socket /run/kvrt/kvrt.sock --request-id r1 envelope.msgpack
  kvrt submit -o table envelope.json
  kvrt submit --oneway --request-id r1 envelope.json
  kvrt submit --forward passed-on.json envelope.json`,
		Args: arguments("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if oneway && flags.forward != "" {
				return &usageError{cmd.CommandPath(), "--oneway has no answer, so there is nothing to --forward"}
			}
			body, err := readInput(cmd, args[0], maxSubmit)
			if err != nil {
				return err
			}
			if err := flags.check(cmd, body); err != nil {
				return err
			}
			s := server.Submit{Identity: flags.identity(), Format: flags.inputFormat(), Dialect: flags.dialect, Body: body, Forward: flags.forward != ""}
			return client.with(cmd, func(ctx context.Context, c *server.Client) error {
				if oneway {
					return c.SubmitOneWay(ctx, s)
				}
				reply, err := c.Submit(ctx, s)
				switch {
				case err != nil:
					return err
				case reply.Err != nil:
					return &listed{exitWrong, []string{reply.Err.Error()}}
				}
				return flags.write(cmd, reply.Results, reply.Forward)
			})
		},
	}
	flags.add(cmd)
	client.add(cmd.Flags())
	cmd.Flags().BoolVar(&oneway, "oneway", false, "do not wait for the results")
	return cmd
}

// maxSubmit is the largest file that is read to be submitted. What the daemon takes is
// its configuration's to say.
const maxSubmit = 1 << 30

// clientFlags name a daemon.
type clientFlags struct {
	socket  string
	timeout time.Duration
}

func (f *clientFlags) add(fs *pflag.FlagSet) { f.addFor(fs, 10*time.Second) }

// addFor adds the flags of a verb that waits for so long unless told otherwise.
func (f *clientFlags) addFor(fs *pflag.FlagSet, timeout time.Duration) {
	fs.StringVar(&f.socket, "socket", config.DefaultSocket(), "Unix socket of the daemon")
	fs.DurationVar(&f.timeout, "timeout", timeout, "how long to wait for the daemon")
}

// with calls do with a connection to the daemon.
func (f *clientFlags) with(cmd *cobra.Command, do func(context.Context, *server.Client) error) error {
	if f.timeout <= 0 {
		return &usageError{cmd.CommandPath(), "--timeout must be positive"}
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	return f.dial(ctx, func(c *server.Client) error { return do(ctx, c) })
}

// dial calls do with a connection to the daemon.
func (f *clientFlags) dial(ctx context.Context, do func(*server.Client) error) error {
	c, err := server.Dial(ctx, f.socket)
	if err == nil {
		defer c.Close()
		err = do(c)
	}
	if errors.Is(err, server.ErrUnreachable) && ctx.Err() == nil {
		err = &unreachableError{at: f.socket, start: "kvrt serve --socket " + f.socket, err: err}
	}
	return err
}
