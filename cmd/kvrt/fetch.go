package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hosts/fetch/fetcher"
	"github.com/kvrt/kvrt/hosts/fetch/outcome"
	"github.com/kvrt/kvrt/hosts/fetch/peer"
	"github.com/kvrt/kvrt/server"
)

func newFetch() *cobra.Command {
	var f fetchFlags
	cmd := &cobra.Command{
		Use:   "fetch REQUEST-ID [HASH...]",
		Short: "Have the daemon fetch the blocks that a request's hint names",
		Long: `fetch does what an engine does when it wants the blocks of a request: the daemon brings
those that are not in its block store from the source that the request's accepted
kv.fetch hint names, and answers when all that will come has come. HASHes pick blocks of
the hint; without any it is all of them. --envelope takes the hashes from an envelope,
so that each has a status:

  SUCCESS  it is in the block store
  DROPPED  it came, and the store did not take it
  FAILED   it did not come

The source serves a prefix of what it is asked for: the first block that it lacks ends
its answer. One try takes peers.fetch_timeout of the daemon's configuration at most, and
the whole 10 s; --timeout is how long this verb waits for it.

Code 1: not every block is here. Code 4: the source, or a limit, refused. Code 5: the
source did not answer in time. The flags must be those of the submit.`,
		Example: `  kvrt submit --request-id r1 envelope.json
  kvrt fetch r1 --tenant a --namespace llama
  kvrt fetch r1 11 12 0xfffffffffffffffe --namespace llama --block-bytes 65536
  kvrt fetch r1 --envelope envelope.json -o json | jq '.blocks[] | select(.status != "SUCCESS")'`,
		Args: func(cmd *cobra.Command, args []string) error {
			return arguments("REQUEST-ID")(cmd, args[:min(len(args), 1)])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.requestID = args[0]
			q, err := f.request(cmd, args[1:])
			if err != nil {
				return err
			}
			return f.client.with(cmd, func(ctx context.Context, c *server.Client) error {
				got, err := c.Fetch(ctx, q)
				if err != nil {
					return err
				}
				out, err := c.Outcomes(ctx, server.OutcomesQuery{Identity: q.Identity, Limit: 1})
				if err != nil {
					return err
				}
				return f.tell(cmd, &q, &got, out)
			})
		},
	}
	f.add(cmd)
	f.space.add(cmd)
	f.client.addFor(cmd.Flags(), 15*time.Second) // longer than the daemon takes
	fs := cmd.Flags()
	fs.StringVar(&f.blockBytes, "block-bytes", "", "length that every block must have, such as 64KiB (default: any)")
	fs.StringVar(&f.envelope, "envelope", "", "JSON `file` with the envelope that was submitted; its kv.fetch actions name the blocks")
	choose(cmd, &f.output, "output", "o", "form of the output", "table", "json")
	return cmd
}

type fetchFlags struct {
	identityFlags
	space                        spaceFlags
	client                       clientFlags
	blockBytes, envelope, output string
}

func (f *fetchFlags) request(cmd *cobra.Command, hashes []string) (q server.Fetch, err error) {
	q = server.Fetch{Identity: f.identity(), Tenant: f.space.tenant, Namespace: f.space.namespace}
	if f.blockBytes != "" {
		n, ok := parseSize(f.blockBytes)
		if !ok || n == 0 || n > 1<<30 {
			return q, &usageError{cmd.CommandPath(), fmt.Sprintf("--block-bytes %q: want a size such as 65536 or 64KiB, 1GiB at most", f.blockBytes)}
		}
		q.BlockBytes = int(n)
	}
	if f.envelope != "" && len(hashes) > 0 {
		return q, &usageError{cmd.CommandPath(), "give hashes, or an envelope that has them, and not both"}
	}
	if q.Hashes, err = parseHashes(cmd, hashes); err != nil || f.envelope == "" {
		return q, err
	}
	text, err := readInput(cmd, f.envelope, maxSubmit)
	if err == nil {
		q.Hashes, err = hashesOf(text)
	}
	if err != nil {
		return q, &inputError{fmt.Errorf("--envelope %s: %w", f.envelope, err)}
	}
	return q, nil
}

// hashesOf are the blocks that an envelope's kv.fetch actions name, each once.
func hashesOf(envelope []byte) (hashes []uint64, err error) {
	var e struct {
		Actions []struct {
			Type    string `json:"action_type"`
			Payload json.RawMessage
		}
	}
	if err := json.Unmarshal(envelope, &e); err != nil {
		return nil, fmt.Errorf("want the envelope as JSON: %w", err)
	}
	seen := map[uint64]bool{}
	for i, a := range e.Actions {
		if a.Type != "kv.fetch" {
			continue
		}
		var p struct {
			Hashes []uint64 `json:"block_hashes"`
		}
		if err := json.Unmarshal(a.Payload, &p); err != nil {
			return nil, fmt.Errorf("actions[%d].payload: %w", i, err)
		}
		for _, h := range p.Hashes {
			if !seen[h] {
				seen[h] = true
				hashes = append(hashes, h)
			}
		}
	}
	if len(hashes) == 0 {
		return nil, fmt.Errorf("no kv.fetch action names a block")
	}
	return hashes, nil
}

// fetched is what the verb tells.
type fetched struct {
	RequestID string        `json:"request_id"`
	Complete  bool          `json:"complete"`
	Here      int           `json:"here"` // blocks that were here already
	Fetched   int           `json:"fetched"`
	Bytes     int64         `json:"bytes"`
	Why       string        `json:"why"` // not all are here
	Blocks    []blockStatus `json:"blocks,omitempty"`
	Outcome   *outcomeLine  `json:"outcome"` // of the request's latest hint; null without one
}

type blockStatus struct {
	Hash   uint64 `json:"hash"`
	Status string `json:"status"`
}

func (f *fetchFlags) tell(cmd *cobra.Command, q *server.Fetch, got *server.Fetched, out []outcome.Outcome) error {
	r := fetched{RequestID: q.Identity.RequestID, Complete: got.Why == "", Here: got.Here, Fetched: got.Fetched, Bytes: got.Bytes, Why: got.Why}
	for i, st := range got.Status {
		if i < len(q.Hashes) {
			r.Blocks = append(r.Blocks, blockStatus{q.Hashes[i], st.String()})
		}
	}
	reason := abi.ReasonNone
	if len(out) > 0 {
		l := lineOf(&out[0])
		r.Outcome, reason = &l, out[0].Reason
	}
	var err error
	if f.output == "json" {
		err = writeJSONLine(cmd.OutOrStdout(), r)
	} else {
		err = r.write(cmd.OutOrStdout())
	}
	if err != nil || r.Complete {
		return err
	}
	code, advice := fetchCode(got.Why, reason)
	return &listed{code, []string{"kvrt: not every block is here: " + printable(got.Why) + advice}}
}

// fetchCode is the code for a fetch that did not bring every block, and what to do.
func fetchCode(why string, reason abi.Reason) (code int, advice string) {
	says := func(err error) bool { return strings.Contains(why, err.Error()) }
	switch {
	case says(fetcher.ErrNoHint):
		return exitWrong, ": submit one first, with the same request id and flags"
	case says(fetcher.ErrLength):
		return exitWrong, ": ask with its length, or have it evicted first"
	case says(&fetcher.IncompleteError{Stop: peer.StopLength}):
		return exitWrong, ": at the source, the first of them that did not come has another length than --block-bytes"
	case says(fetcher.ErrBusy):
		return exitRefused, ": try again"
	case says(context.DeadlineExceeded):
		return exitTimeout, ""
	case reason == abi.ReasonSourceNotAllowed:
		return exitRefused, ": the source does not let this peer read that tenant and namespace; see peers.allow of its configuration"
	case reason == abi.ReasonLimitExceeded:
		return exitRefused, ""
	case reason == abi.ReasonNotFound:
		return exitWrong, ": the source does not have the first of them that did not come"
	}
	return exitWrong, ""
}

func (r *fetched) write(w io.Writer) error {
	if len(r.Blocks) > 0 {
		t := newTable("HASH", "STATUS")
		for _, b := range r.Blocks {
			t.row(strconv.FormatUint(b.Hash, 10), b.Status)
		}
		if err := t.write(w); err != nil {
			return err
		}
	}
	line := fmt.Sprintf("%d blocks were here, %d came, %d bytes", r.Here, r.Fetched, r.Bytes)
	if o := r.Outcome; o != nil {
		line += fmt.Sprintf("; hint %s of message %s: %s", strconv.FormatUint(uint64(o.Index), 10), cell(o.MessageID), strings.TrimSpace(o.State+" "+o.Reason))
	}
	_, err := fmt.Fprintln(w, line)
	return err
}
