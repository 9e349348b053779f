package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/server"
)

func newWorkers() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workers",
		Short: "List, set and remove the workers that the daemon knows",
		Long: `workers shows and changes the workers of a running daemon: what they can execute bounds
what policies may add, and their KV events tell which session has which blocks where.

An ID of digits is an integer, anything else a text: 7 and "7" are two workers, and the
text 7 is written '"7"', with the double quotes.

What is set and removed here lasts until the daemon ends. A reload carries out what has
changed in the workers of the configuration, and leaves the rest as it is.`,
		Example: `  kvrt workers list
  kvrt workers set 7 '{"type":"aggregated","block_size":16}'
  kvrt workers remove 7`,
		Args: noVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newWorkersList(), newWorkersSet(), newWorkersRemove())
	return cmd
}

func newWorkersList() *cobra.Command {
	var flags adminFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the workers with their ranks and feeds",
		Long: `list shows one line per rank. FEED is what becomes of its KV events: live, connected
(what was missed is still being asked for), waiting, or a dash when it publishes none.
ORIGIN is who set the worker last: the configuration or the admin API.`,
		Example: `  kvrt workers list
  kvrt workers list -o json | jq '.workers[].id'`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.with(cmd, func(ctx context.Context, a *server.Admin) (answer, error) {
				list, err := a.Workers(ctx)
				if err != nil {
					return answer{}, err
				}
				st, err := a.Status(ctx)
				return answer{list, func(cmd *cobra.Command) error { return workerTable(list.Workers, st.Feeds).write(cmd.OutOrStdout()) }}, err
			})
		},
	}
	flags.add(cmd)
	return cmd
}

func workerTable(workers []server.WorkerStatus, feeds []server.FeedStatus) *table {
	states := map[string]string{}
	for i := range feeds {
		states[feeds[i].Worker.String()+rankText(feeds[i].DPRank)] = feeds[i].State
	}
	t := newTable("ID", "RANK", "TYPE", "NAMESPACE", "BLOCK", "FEED", "EVENTS", "SOURCE", "CAPABILITIES", "ORIGIN")
	for i := range workers {
		w := &workers[i]
		id, capabilities, block := server.FormatWorkerID(*w.ID), "every", ""
		if w.Capabilities != nil {
			capabilities = "none"
			if len(*w.Capabilities) > 0 {
				capabilities = strings.Join(*w.Capabilities, ",")
			}
		}
		if w.BlockSize > 0 {
			block = strconv.FormatUint(uint64(w.BlockSize), 10)
		}
		for _, r := range w.Ranks {
			rank := rankText(r.DPRank)
			t.row(id, rank, w.Type, w.Namespace, block, states[w.ID.String()+rank], r.Events, r.Source, capabilities, w.Origin)
		}
	}
	return t
}

func rankText(rank *uint32) string {
	if rank == nil {
		return ""
	}
	return strconv.FormatUint(uint64(*rank), 10)
}

func newWorkersSet() *cobra.Command {
	var flags adminFlags
	cmd := &cobra.Command{
		Use:   "set ID SPEC",
		Short: "Add a worker, or replace it",
		Long: `set makes a worker what SPEC says: a JSON object, or @FILE that holds one, with the keys
of an entry of workers in kvrt.yaml. What it leaves out is not set. A rank whose events
or replay endpoint changed is followed anew, and what was known of it is dropped; the
feeds of other ranks go on.`,
		Example: `  kvrt workers set 7 '{"ranks":[{"dp_rank":0,"events":"tcp://10.0.0.7:5557"}]}'
  kvrt workers set prefill-0 @worker.json
  kvrt workers set '"7"' '{"capabilities":["kv.retain"]}'`,
		Args: arguments("ID", "SPEC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := workerArgument(cmd, args[0])
			if err != nil {
				return err
			}
			text, err := readParameters(args[1])
			if err != nil {
				return &inputError{fmt.Errorf("SPEC: %w", err)}
			}
			var spec server.WorkerSpec
			d := json.NewDecoder(bytes.NewReader(text))
			d.DisallowUnknownFields()
			if err := d.Decode(&spec); err != nil {
				return &inputError{specError(err)}
			}
			return flags.with(cmd, func(ctx context.Context, a *server.Admin) (answer, error) {
				c, err := a.SetWorker(ctx, id, spec)
				return answer{c, func(cmd *cobra.Command) error {
					done := "replaced"
					if c.Created {
						done = "added"
					}
					_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s worker %s\n", done, cell(server.FormatWorkerID(id)))
					return err
				}}, err
			})
		},
	}
	flags.add(cmd)
	return cmd
}

// specError says what is wrong with a SPEC in the words of its keys.
func specError(err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) && kind.Field != "" {
		return fmt.Errorf("SPEC: %s cannot be: %s", kind.Field, kind.Value)
	}
	return fmt.Errorf("SPEC: %s", strings.TrimPrefix(err.Error(), "json: "))
}

func newWorkersRemove() *cobra.Command {
	var flags adminFlags
	cmd := &cobra.Command{
		Use:   "remove ID",
		Short: "Remove a worker with its feeds and its lineage",
		Long: `remove takes a worker away: its KV events are no longer followed, and what was known of
its blocks is dropped. One that the configuration names stays away until its entry there
changes or the daemon starts again.`,
		Example: `  kvrt workers remove 7
  kvrt workers remove prefill-0 --admin 127.0.0.1:9641`,
		Args: arguments("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := workerArgument(cmd, args[0])
			if err != nil {
				return err
			}
			return flags.with(cmd, func(ctx context.Context, a *server.Admin) (answer, error) {
				c, err := a.RemoveWorker(ctx, id)
				return answer{c, func(cmd *cobra.Command) error {
					_, err := fmt.Fprintf(cmd.OutOrStdout(), "removed worker %s\n", cell(server.FormatWorkerID(id)))
					return err
				}}, err
			})
		},
	}
	flags.add(cmd)
	return cmd
}

func workerArgument(cmd *cobra.Command, s string) (hint.WorkerID, error) {
	id, err := server.ParseWorkerID(s)
	if err != nil {
		return id, &usageError{cmd.CommandPath(), err.Error()}
	}
	return id, nil
}

// maxWaiting bounds the feeds that the status names.
const maxWaiting = 8

// writeFleet tells of workers, feeds and lineage.
func writeFleet(line func(key, format string, args ...any), s *server.StatusReport) {
	if s.Workers == 0 {
		return
	}
	var waiting []string
	live := 0
	for i := range s.Feeds {
		f := &s.Feeds[i]
		if f.State == "live" {
			live++
			continue
		}
		name := server.FormatWorkerID(f.Worker)
		if f.DPRank != nil {
			name += " rank " + rankText(f.DPRank)
		}
		waiting = append(waiting, printable(name)+" "+f.State)
	}
	if n := len(waiting); n > maxWaiting {
		waiting = append(waiting[:maxWaiting], fmt.Sprintf("and %d more", n-maxWaiting))
	}
	line("workers", "%d", s.Workers)
	if len(s.Feeds) > 0 {
		line("KV event feeds", "%d of %d live", live, len(s.Feeds))
	}
	if len(waiting) > 0 {
		line("not live", "%s", strings.Join(waiting, ", "))
	}
	for _, l := range s.Lineage {
		name := "lineage"
		if l.Namespace != "" {
			name += " of " + cell(l.Namespace)
		}
		line(name, "%d sessions, %d blocks in %d bytes", l.Sessions, l.Nodes, l.Bytes)
	}
}
