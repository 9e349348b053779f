package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/server"
)

// Contexts travel to a daemon together, up to as many and as many bytes in one frame.
const (
	frameContexts = 256
	frameBytes    = 4 << 20
)

// addOptional is add for a verb that needs no daemon: without --socket there is none.
func (f *clientFlags) addOptional(fs *pflag.FlagSet) {
	fs.StringVar(&f.socket, "socket", "", "run the contexts in the daemon that listens on this Unix socket, not in this process")
	fs.DurationVar(&f.timeout, "timeout", 10*time.Second, "how long to wait for the daemon")
}

// formulateThere runs the contexts in a daemon, in order, and writes what formulateAll does.
func formulateThere(cmd *cobra.Command, client *clientFlags, bodies [][]byte, format abi.Format) error {
	for _, name := range []string{"config", "policy", "param"} {
		if cmd.Flags().Changed(name) {
			return &usageError{cmd.CommandPath(), "--" + name + " has no meaning with --socket: the daemon has its own configuration"}
		}
	}
	return client.with(cmd, func(ctx context.Context, c *server.Client) error {
		var line []byte
		for at := 0; at < len(bodies); {
			n := frameful(bodies[at:])
			answers, err := c.Formulate(ctx, server.Formulate{Format: format, Output: abi.FormatJSON, Bodies: bodies[at : at+n]})
			if err != nil {
				return err
			}
			for i, a := range answers {
				if a.Err != nil && len(bodies) > 1 {
					return &listed{exitWrong, []string{fmt.Sprintf("context %d: %v", at+i+1, a.Err)}}
				} else if a.Err != nil {
					return &listed{exitWrong, []string{a.Err.Error()}}
				}
				line = append(hint.AppendFormulatedJSON(line[:0], a.Envelope, a.Policies), '\n')
				if _, err := cmd.OutOrStdout().Write(line); err != nil {
					return err
				}
			}
			at += n
		}
		return nil
	})
}

// frameful is how many of the contexts go into one frame: one at least.
func frameful(bodies [][]byte) int {
	size := 0
	for i, b := range bodies {
		if size += len(b); i > 0 && size > frameBytes || i == frameContexts {
			return i
		}
	}
	return len(bodies)
}
