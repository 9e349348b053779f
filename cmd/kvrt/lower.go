package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hint/lower"
)

// lowerFlags are the flags of lower.
type lowerFlags struct {
	engine, version, hints, leg, form, format, dialect string
	envelope                                           bool
}

func newLower() *cobra.Command {
	var flags lowerFlags
	cmd := &cobra.Command{
		Use:   "lower FILE|-",
		Short: "Show what a serving engine is handed for a routed request",
		Long: `lower takes a routed request, a JSON object or msgpack map with a hint envelope
beside the request, and writes what the serving engine is handed:

  {"token_ids": [1, 2, 3],
   "sampling_params": {"temperature": 0.7, "extra_args": {"x": 1}},
   "kv_transfer_params": {"do_remote_decode": true},
   "leg": "prefill", "engine": {"name": "vllm", "version": "0.31.0"},
   "kv_hint": {"protocol_version": "0.1", "message_id": "m1", "actions": [...]}}

All keys are optional. Those named here are read; every other key and value stays as
it is, byte for byte. kv_transfer_params is what the KV connector made for this leg.
leg and engine stand for the flags, which win. A request without kv_hint is passed
through untouched.

vllm    0.31.0 and later: kv_hint becomes kv_hints, with exactly the public fields.
        Older (0.31.0rc1 and 0.31.0.dev1 are): kv_hint goes inside kv_transfer_params.
        Without a version: as the newest. engine.kv_hints (true or false) or --hints
        decide whatever the version is. kv_transfer_params at the top replace those in
        extra_args (of sampling_params, or at the top) and are never merged with them.
        An OpenAI body, with neither of these nor tokens, keeps them at the top.
sglang  kv_hints as its protobuf Struct holds it: block hashes of kv.fetch 1.0 in
        protocol 0.1 are strings of 16 hexadecimal digits; any other integer that a
        double cannot hold is refused. --form struct writes the bytes of
        sglang.runtime.v1.KVHintsEnvelope, and nothing when there is no hint.
trtllm  kv_hints with every key of the sender. protocol_version, message_id, action_id,
        action_type and action_version need at least one character: refused else.

A decode request that carries what prefill made (kv_transfer_params here or in
extra_args, disaggregated_params, prefill_result, bootstrap_info, bootstrap_room) does
not replay the hint: kv_hint is taken out.

--dialect router_hint writes the flat hint of older routers. --dialect llm-d writes
{"headers": {...}, "body": {...}}: the source of kv.fetch in the header
x-kv-cache-source-host-port, kv.retain as retention_directives and retention_scope.
Actions that a dialect cannot write are left out and named on standard error.

What cannot be lowered ends with code 1 and one line that names the field, such as
kv_hint.actions[0].payload.block_hashes[3].`,
		Example: `  kvrt lower --engine vllm request.json
  kvrt lower --engine vllm --engine-version 0.30.2+cu130 --leg prefill request.json
  kvrt lower --engine sglang --form struct request.json >envelope.pb
  kvrt lower --engine vllm --form msgpack --envelope request.json >envelope.msgpack
  kvrt lower --engine vllm --dialect llm-d request.json
  generate-request | kvrt lower --engine trtllm -`,
		Args: arguments("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args[0]) },
	}
	fs := cmd.Flags()
	chooseFrom(cmd, &flags.engine, "engine", "", "the serving engine (default: engine of the request)", "vllm", "sglang", "trtllm")
	fs.StringVar(&flags.version, "engine-version", "", "its version, as it declares it (default: engine.version of the request)")
	choose(cmd, &flags.hints, "hints", "", "the form that a vllm takes", "auto", "first-class", "transitional")
	chooseFrom(cmd, &flags.leg, "leg", "", "leg of the request (default: leg of the request, else aggregated)", "aggregated", "prefill", "decode")
	chooseFrom(cmd, &flags.form, "form", "", "encoding of the answer (default: that of the request)", "json", "msgpack", "struct")
	choose(cmd, &flags.format, "format", "", "encoding of the request", "auto", "json", "msgpack")
	choose(cmd, &flags.dialect, "dialect", "", "how hints are written", "envelope", "router_hint", "llm-d")
	fs.BoolVar(&flags.envelope, "envelope", false, "write the lowered envelope alone; nothing when there is none")
	return cmd
}

// target turns the flags into a target. Words that a choice lets through are known.
func (f *lowerFlags) target() lower.Target {
	return lower.Target{
		Engine:       map[string]lower.Engine{"vllm": lower.VLLM, "sglang": lower.SGLang, "trtllm": lower.TRTLLM}[f.engine],
		Version:      f.version,
		Hints:        map[string]lower.Hints{"first-class": lower.HintsFirstClass, "transitional": lower.HintsTransitional}[f.hints],
		Leg:          map[string]abi.Leg{"aggregated": abi.LegAggregated, "prefill": abi.LegPrefill, "decode": abi.LegDecode}[f.leg],
		Dialect:      map[string]lower.Dialect{"router_hint": lower.DialectRouterHint, "llm-d": lower.DialectLLMD}[f.dialect],
		Form:         map[string]lower.Form{"json": lower.FormJSON, "msgpack": lower.FormMsgpack, "struct": lower.FormStruct}[f.form],
		EnvelopeOnly: f.envelope,
	}
}

func (f *lowerFlags) run(cmd *cobra.Command, file string) error {
	l, err := lower.New(f.target(), lower.Limits{})
	if err != nil {
		return &usageError{cmd.CommandPath(), err.Error()}
	}
	request, err := readInput(cmd, file, 64<<20)
	if err != nil {
		var large *hint.MalformedError
		if errors.As(err, &large) {
			return errors.New("routed request: larger than the 64 MiB that are read")
		}
		return err
	}
	format := map[string]hint.Format{"json": hint.FormatJSON, "msgpack": hint.FormatMsgpack}[f.format]
	if format == hint.FormatUnknown {
		format = hint.Detect(request)
	}
	binary := f.form == "struct" || f.form == "msgpack" || f.form == "" && format == hint.FormatMsgpack
	if binary && isTerminal(cmd.OutOrStdout()) {
		return &usageError{cmd.CommandPath(), "the answer is binary and standard output is a terminal: redirect it, or ask for --form json"}
	}
	answer, report, err := l.Append(nil, format, request)
	if err != nil {
		return err
	}
	if f.dialect == "llm-d" {
		if answer, err = withHeaders(answer, binary, report.Headers); err != nil {
			return err
		}
	}
	if report.Why != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), "note: "+report.Why)
	}
	for _, d := range report.Dropped {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: kv_hint.actions[%d] (%s) is left out: %s\n", d.Index, d.Type, d.Why)
	}
	if !binary && isTerminal(cmd.OutOrStdout()) {
		answer = append(answer, '\n')
	}
	_, err = cmd.OutOrStdout().Write(answer)
	return err
}

// withHeaders puts a request and its headers into one document.
func withHeaders(body []byte, binary bool, headers []lower.Header) ([]byte, error) {
	set := make(map[string]string, len(headers))
	for _, h := range headers {
		set[h.Name] = h.Value
	}
	names, err := json.Marshal(set)
	if err != nil {
		return nil, err
	}
	if !binary {
		out := append(append([]byte(`{"headers":`), names...), `,"body":`...)
		return append(append(out, body...), '}'), nil
	}
	tree, root, err := hint.AppendTree(nil, hint.FormatJSON, names)
	if err != nil {
		return nil, err
	}
	out, err := hint.AppendTreeMsgpack([]byte("\x82\xa7headers"), tree, root)
	return append(append(out, "\xa4body"...), body...), err
}
