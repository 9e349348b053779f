package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// identityFlags name a request. Left out, they are what they are for a client that
// does not tell them: dispatch, submit, finish and discard agree.
type identityFlags struct {
	requestID, engine, leg string
	dpRank, attempt        uint32
}

func (f *identityFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.engine, "engine", "", "the serving engine that asks, as it names itself (default: not told)")
	fs.Uint32Var(&f.dpRank, "dp-rank", 0, "data-parallel rank of the engine")
	fs.Uint32Var(&f.attempt, "attempt", 0, "counts retries of the request")
	chooseFrom(cmd, &f.leg, "leg", "", "leg of the request (default: not told)", "aggregated", "prefill", "decode")
}

func (f *identityFlags) identity() hint.Identity {
	legs := map[string]abi.Leg{"aggregated": abi.LegAggregated, "prefill": abi.LegPrefill, "decode": abi.LegDecode}
	return hint.Identity{Engine: f.engine, RequestID: f.requestID, DPRank: f.dpRank, Attempt: f.attempt, Leg: legs[f.leg]}
}

// envelopeFlags are the flags of dispatch and submit.
type envelopeFlags struct {
	identityFlags
	format, dialect, forward, output string
}

func (f *envelopeFlags) add(cmd *cobra.Command) {
	f.identityFlags.add(cmd)
	cmd.Flags().StringVar(&f.requestID, "request-id", "", "the request that the envelope is attached to (default: one made of the input's digest, so that sending it again is the same request); empty: hints are judged and not stored")
	choose(cmd, &f.format, "format", "", "encoding of the input", "auto", "json", "msgpack")
	cmd.Flags().StringVar(&f.dialect, "dialect", "", "the input is not an envelope but this dialect, which a parser guest reads")
	cmd.Flags().StringVar(&f.forward, "forward", "", "write the envelope to pass on to this `file`; - is standard output, and the results then go to standard error")
	choose(cmd, &f.output, "output", "o", "form of the results", "json", "table")
}

func (f *envelopeFlags) inputFormat() abi.Format {
	switch f.format {
	case "json":
		return abi.FormatJSON
	case "msgpack":
		return abi.FormatMsgpack
	}
	return abi.FormatUnknown
}

// check refuses early what would fail late, and names the request when nobody did:
// the rules over one request then hold within an input, and not between two.
func (f *envelopeFlags) check(cmd *cobra.Command, body []byte) error {
	if !cmd.Flags().Changed("request-id") {
		f.requestID = fmt.Sprintf("cli-%.8x", sha256.Sum256(body))
	}
	format := f.inputFormat()
	if format == abi.FormatUnknown {
		format = hint.Detect(body)
	}
	if f.forward == "-" && format == abi.FormatMsgpack && isTerminal(cmd.OutOrStdout()) {
		return &usageError{cmd.CommandPath(), "msgpack is binary and standard output is a terminal: redirect it, or name a file with --forward"}
	}
	return nil
}

// write writes the results and the envelope to pass on.
func (f *envelopeFlags) write(cmd *cobra.Command, results []hint.Result, forward []byte) error {
	out := cmd.OutOrStdout()
	if f.forward == "-" {
		out = cmd.ErrOrStderr()
	}
	if err := writeResults(out, results, f.output == "table"); err != nil {
		return err
	}
	switch f.forward {
	case "":
		return nil
	case "-":
		if isTerminal(cmd.OutOrStdout()) {
			forward = append(forward, '\n')
		}
		_, err := cmd.OutOrStdout().Write(forward)
		return err
	}
	return os.WriteFile(f.forward, forward, 0o644)
}

// readInput reads a file, or standard input for "-", and refuses what is longer than
// limit without reading all of it.
func readInput(cmd *cobra.Command, name string, limit int) ([]byte, error) {
	in := cmd.InOrStdin()
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, &inputError{err}
		}
		defer f.Close()
		in = f
	}
	body, err := io.ReadAll(io.LimitReader(in, int64(limit)+1))
	if err != nil {
		return nil, &inputError{err}
	}
	if len(body) > limit {
		return nil, &hint.MalformedError{Offset: limit, Msg: fmt.Sprintf("larger than the %d bytes that limits.body_bytes allows", limit)}
	}
	return body, nil
}

// isTerminal tells whether people read what is written to w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
