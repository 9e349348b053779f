package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch/outcome"
	"github.com/kvrt/kvrt/server"
)

func newOutcomes() *cobra.Command {
	var f outcomesFlags
	cmd := &cobra.Command{
		Use:   "outcomes [REQUEST-ID]",
		Short: "Tell what became of accepted kv.fetch hints and prefetches",
		Long: `outcomes shows what became of the kv.fetch hints and the prefetches that a daemon has
accepted, the oldest first: of one request, or of all. A prefetch is what a guest has
brought from a source ahead of need, as the built-in handler of kv.prefetch does. It
begins by itself, and goes on when its request has ended; a hint is carried out when the
engine asks for it, or kvrt fetch does. Both are open until they have an end, and have one:

  completed   every block that is named is here
  partial     some came, and no more will; REASON says why
  failed      none came, and none will; REASON says why
  superseded  a hint only: a later one of the same request took its place
  discarded   a hint only: its request ended, or its hints were discarded, before it was done
  expired     its time was over, or the daemon needed its place

A prefetch to the device (tier: device) comes from the store of this host, and has none.

The daemon keeps the latest 16,384. It needs peers in its configuration.

--follow goes on until it is interrupted, or has shown --count outcomes, and shows each
hint or prefetch as it ends. --timeout, when it is given, bounds the whole of that: code
5. When the daemon ends it ends with code 3, and a new daemon knows of no earlier hint.
-o json writes JSON lines.

--engine, --dp-rank, --leg and --attempt, when one of them is given, must be those of the
submit: legs and attempts of one request id have hints of their own. Without them it is
all that have the request id, among the latest 1,024. Code 1: there is none.`,
		Example: `  kvrt outcomes
  kvrt outcomes r1
  kvrt outcomes r1 --engine vllm --leg decode
  kvrt outcomes r1 --message-id m1 --index 0 -o json | jq -r .state
  kvrt outcomes --follow -o json
  kvrt outcomes r1 --follow --count 1 --timeout 30s      # wait until its hint has ended`,
		Args: atMostOne("REQUEST-ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				f.requestID = args[0]
			}
			if err := f.check(cmd); err != nil {
				return err
			}
			if f.follow {
				return f.stream(cmd)
			}
			return f.client.with(cmd, func(ctx context.Context, c *server.Client) error {
				out, err := f.ask(ctx, c, f.asked())
				if err == nil && len(out) == 0 && !f.exact {
					out, err = f.ask(ctx, c, f.identity()) // it may be older than the latest of all
				}
				switch {
				case err != nil:
					return err
				case len(out) == 0 && f.requestID != "":
					return &listed{exitWrong, []string{"kvrt: no such hint of request " + cell(f.requestID) + " is known: the daemon has accepted no hint or prefetch of it, or has forgotten it; --engine, --dp-rank, --leg and --attempt, when given, must be those of its submit"}}
				}
				slices.Reverse(out)
				return f.write(cmd.OutOrStdout(), out)
			})
		},
	}
	f.add(cmd)
	f.client.add(cmd.Flags())
	fs := cmd.Flags()
	fs.StringVar(&f.message, "message-id", "", "only those of the envelope with this message id")
	fs.Uint32Var(&f.index, "index", 0, "only that of the action with this index in its envelope")
	fs.IntVar(&f.limit, "limit", maxOutcomes, "show the latest so many, 1,024 at most")
	fs.BoolVarP(&f.follow, "follow", "f", false, "go on, and show hints and prefetches as they end")
	fs.IntVar(&f.count, "count", 0, "with --follow: stop after so many that have ended (default: never)")
	choose(cmd, &f.output, "output", "o", "form of the output", "table", "json")
	return cmd
}

const (
	// maxOutcomes is the most that one answer has.
	maxOutcomes = 1024
	// followWait is how long one question of --follow waits at the daemon.
	followWait = 5 * time.Second
)

type outcomesFlags struct {
	identityFlags
	client       clientFlags
	message      string
	index        uint32
	anyIndex     bool
	exact        bool // the request is one engine's, rank's, leg's and attempt's
	limit, count int
	follow       bool
	output       string
}

func (f *outcomesFlags) check(cmd *cobra.Command) error {
	f.anyIndex = !cmd.Flags().Changed("index")
	say := func(msg string) error { return &usageError{cmd.CommandPath(), msg} }
	switch {
	case f.limit < 1 || f.limit > maxOutcomes:
		return say("--limit must be from 1 to " + strconv.Itoa(maxOutcomes))
	case f.count < 0 || f.count > 0 && !f.follow:
		return say("--count is a positive number, and for --follow")
	}
	for _, name := range []string{"engine", "dp-rank", "leg", "attempt"} {
		if f.exact = f.exact || cmd.Flags().Changed(name); f.exact && f.requestID == "" {
			return say("--" + name + " is for the hints of one request: REQUEST-ID is missing")
		}
	}
	return nil
}

// asked is the request that the daemon is asked about; without an id it is all of them.
func (f *outcomesFlags) asked() hint.Identity {
	if f.exact {
		return f.identity()
	}
	return hint.Identity{}
}

// ask asks for the hints of a request that are meant, the latest first.
func (f *outcomesFlags) ask(ctx context.Context, c *server.Client, id hint.Identity) ([]outcome.Outcome, error) {
	out, err := c.Outcomes(ctx, server.OutcomesQuery{Identity: id, MessageID: f.message})
	out = slices.DeleteFunc(out, func(o outcome.Outcome) bool { return !f.match(&o) })
	return out[:min(len(out), f.limit)], err
}

func (f *outcomesFlags) match(o *outcome.Outcome) bool {
	return (f.anyIndex || o.Index == f.index) && (f.requestID == "" || o.Identity.RequestID == f.requestID)
}

// stream shows what has ended, what is open, and then what ends. It follows before it
// asks for what there is, so that nothing is missed in between.
func (f *outcomesFlags) stream(cmd *cobra.Command) error {
	interrupted, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if f.client.timeout <= 0 {
		return &usageError{cmd.CommandPath(), "--timeout must be positive"}
	}
	limited := cmd.Flags().Changed("timeout")
	end, cancel := context.WithCancel(interrupted)
	if limited {
		end, cancel = context.WithTimeout(interrupted, f.client.timeout)
	}
	defer cancel()
	err := f.client.dial(end, func(c *server.Client) error { return f.streamFrom(end, cmd, c) })
	if interrupted.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (f *outcomesFlags) streamFrom(ctx context.Context, cmd *cobra.Command, c *server.Client) error {
	w := &outcomeStream{out: cmd.OutOrStdout(), asTable: f.output == "table"}
	follow := server.Follow{Identity: f.asked(), MessageID: f.message}
	early, lost, err := c.Follow(ctx, follow)
	if err != nil {
		return err
	}
	before, err := f.ask(ctx, c, follow.Identity)
	if err != nil {
		return err
	}
	told := map[hintKey]bool{} // ended already, and perhaps to come again
	for i := len(before) - 1; i >= 0; i-- {
		if before[i].State != outcome.Open {
			told[hintKeyOf(&before[i])] = true
		}
		if err := w.write(&before[i]); err != nil || f.count > 0 && w.ended >= f.count {
			return err
		}
	}
	follow.Wait = followWait
	for ended, dropped := early, lost; ; {
		for i := range ended {
			o := &ended[i]
			if k := hintKeyOf(o); !f.match(o) || told[k] {
				delete(told, k)
				continue
			}
			if err := w.write(o); err != nil || f.count > 0 && w.ended >= f.count {
				return err
			}
		}
		if dropped > lost {
			fmt.Fprintf(cmd.ErrOrStderr(), "kvrt: %d outcomes were lost: they ended faster than they were read\n", dropped-lost)
			lost = dropped
		}
		if ended, dropped, err = c.Follow(ctx, follow); err != nil {
			return err
		}
	}
}

// hintKey tells hints apart.
type hintKey struct {
	identity hint.Identity
	message  string
	index    uint32
	accepted int64
}

func hintKeyOf(o *outcome.Outcome) hintKey {
	return hintKey{o.Identity, o.MessageID, o.Index, o.Accepted}
}

// outcomeLine is one outcome for machines.
type outcomeLine struct {
	RequestID string `json:"request_id"`
	Engine    string `json:"engine"`
	DPRank    uint32 `json:"dp_rank"`
	Leg       string `json:"leg"`
	Attempt   uint32 `json:"attempt"`
	MessageID string `json:"message_id"`
	Index     uint32 `json:"index"`
	State     string `json:"state"`
	Reason    string `json:"reason"`
	Blocks    uint32 `json:"blocks"`
	Fetched   uint32 `json:"fetched"`
	Bytes     uint64 `json:"bytes"`
	Accepted  string `json:"accepted"` // RFC 3339
	Ended     string `json:"ended"`    // "" while it is open
}

func lineOf(o *outcome.Outcome) outcomeLine {
	l := outcomeLine{
		RequestID: o.Identity.RequestID, Engine: o.Identity.Engine, DPRank: o.Identity.DPRank, Attempt: o.Identity.Attempt,
		MessageID: o.MessageID, Index: o.Index, State: o.State.String(), Reason: o.Reason.String(), Blocks: o.Blocks, Fetched: o.Fetched, Bytes: o.Bytes,
		Accepted: time.Unix(0, o.Accepted).UTC().Format(time.RFC3339Nano),
	}
	if o.Identity.Leg != abi.LegAbsent {
		l.Leg = o.Identity.Leg.String()
	}
	if o.Ended != 0 {
		l.Ended = time.Unix(0, o.Ended).UTC().Format(time.RFC3339Nano)
	}
	return l
}

// took is how long a hint was open.
func took(o *outcome.Outcome) string {
	if o.Ended == 0 {
		return ""
	}
	return time.Duration(o.Ended - o.Accepted).Round(time.Microsecond).String()
}

func writeJSONLine(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// write shows outcomes that are all there.
func (f *outcomesFlags) write(w io.Writer, out []outcome.Outcome) error {
	if f.output == "json" {
		for i := range out {
			if err := writeJSONLine(w, lineOf(&out[i])); err != nil {
				return err
			}
		}
		return nil
	}
	t := newTable("ACCEPTED", "REQUEST", "ENGINE", "RANK", "LEG", "ATTEMPT", "MESSAGE", "INDEX", "STATE", "REASON", "BLOCKS", "FETCHED", "BYTES", "TOOK")
	for i := range out {
		o := &out[i]
		l := lineOf(o)
		t.row(time.Unix(0, o.Accepted).Format(time.TimeOnly), l.RequestID, l.Engine, strconv.FormatUint(uint64(l.DPRank), 10), l.Leg, strconv.FormatUint(uint64(l.Attempt), 10),
			l.MessageID, strconv.FormatUint(uint64(l.Index), 10), l.State, l.Reason, strconv.FormatUint(uint64(l.Blocks), 10), strconv.FormatUint(uint64(l.Fetched), 10),
			strconv.FormatUint(l.Bytes, 10), took(o))
	}
	return t.write(w)
}

// outcomeStream shows outcomes one by one.
type outcomeStream struct {
	out     io.Writer
	asTable bool
	ended   int
}

func (s *outcomeStream) write(o *outcome.Outcome) error {
	if o.State != outcome.Open {
		s.ended++
	}
	l := lineOf(o)
	if !s.asTable {
		return writeJSONLine(s.out, l)
	}
	words := []string{time.Unix(0, max(o.Ended, o.Accepted)).Format(time.TimeOnly), l.State}
	if l.Reason != "" {
		words = append(words, l.Reason)
	}
	words = append(words, "request", cell(l.RequestID))
	if l.Engine != "" {
		words = append(words, "engine", cell(l.Engine))
	}
	words = append(words, fmt.Sprintf("message %s index %d: %d of %d blocks, %d bytes", cell(l.MessageID), l.Index, l.Fetched, l.Blocks, l.Bytes))
	if t := took(o); t != "" {
		words = append(words, "in", t)
	}
	_, err := fmt.Fprintln(s.out, strings.Join(words, " "))
	return err
}
