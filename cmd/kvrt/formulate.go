package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
)

// maxContexts is how much input is read; each context in it has the limit of a body.
const maxContexts = 256 << 20

func newFormulate() *cobra.Command {
	var (
		file, format, level string
		chosen              policyFlags
		client              clientFlags
	)
	cmd := &cobra.Command{
		Use:   "formulate FILE|-",
		Short: "Run routing contexts through the policies, here or in the daemon",
		Long: `formulate takes a routing context, what a router knows of a request once the worker
is chosen (JSON or msgpack; several JSON ones may stand one after the other, as in
JSON lines), runs the policies of its partition and writes one JSON line per context.
All that a context may hold; request_id and the worker's id must be there, and null is
the same as leaving a key out:

  {"request_id": "r1", "attempt": 0, "leg": "prefill",
   "partition": {"model": "m", "group": "g", "worker_type": "prefill"},
   "tenant": "t", "namespace": "n",
   "prompt_tokens": 80, "expected_output_tokens": 512, "tools_declared": true,
   "session": {"session_id": "s1", "parent_session_id": "s0",
               "session_final": false, "input_trigger": "tool_result"},
   "selected": {"worker_id": 7, "dp_rank": 0, "worker_type": "prefill",
                "source_control_endpoint": "tcp://h:1", "capabilities": ["kv.fetch"],
                "matched_blocks": {"gpu": 3, "cpu": 0, "disk": 0, "external": 0}},
   "candidates": [{"worker_id": "w9", "matched_blocks": {"gpu": 4}}],
   "block_hashes": [11, 12, 13], "hash_kind": "engine", "block_size": 16,
   "request_hint": ENVELOPE, "selection_hint": ENVELOPE,
   "events": [{"type": "stored", "worker_id": 7, "dp_rank": 0, "session_id": "s1",
               "medium": "gpu", "parent_block_hash": 11, "block_hashes": [12, 13]},
              {"type": "match", "worker_id": 7, "session_id": "s1", "block_hash": 12},
              {"type": "removed", "worker_id": 7, "block_hashes": [13]},
              {"type": "cleared", "worker_id": 7, "dp_rank": 0}]}

leg is aggregated, prefill or decode; input_trigger user_message, tool_result or other;
hash_kind engine, sequence or local. A worker's id is an integer or a text, and 7 is not
"7"; a rank that is left out is not rank 0. The answer:

  {"envelope":{"protocol_version":"0.1","message_id":"r1","actions":[...]},
   "policies":[{"name":"retain-session","actions":1,"dropped":[],"error":"",
                "fuel":900,"duration_ns":1500}]}

The envelope holds the actions of the context's request_hint, then those of its
selection_hint, then what the policies added; it is null when there was none before
and no policy added an action. What a policy may not add stands in dropped: an action
that the selected worker does not list among its capabilities, a kv.fetch after
another one, a kv.retain that the serving engine would refuse. A policy that fails
has an error and no actions; the others go on, and the code is 0.

The policies are those of kv_hint_policy in the configuration, or those named by
--policy: a guest of the configuration, a built-in one, or a module's path, which is
granted all that it imports. --param gives the policy before it a parameter: a JSON
value, else text.

events of a context feed the lineage index of its namespace, in order, before the
policies run, and stay for the contexts that follow; an event that the index refuses
is named on standard error. Without events there is no index.

With --socket the contexts go to a running daemon and its policies. There lineage comes
from the workers' KV events; of a context's events those of type match are taken.

A context that is malformed ends with code 1 and one line that names the field.`,
		Example: `  kvrt formulate -c kvrt.yaml context.json
  kvrt formulate --policy ./my-policy.wasm --param ttl=600 --param 'tiers=["gpu"]' context.json
  kvrt formulate --policy retain-session --policy evict-on-final contexts.jsonl
  kvrt formulate --socket /run/kvrt/kvrt.sock context.json | jq .envelope
  echo '{"request_id":"r1","selected":{"worker_id":7}}' | kvrt formulate -`,
		Args: arguments("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if client.socket != "" {
				bodies, err := readContexts(cmd, args[0], format)
				if err != nil {
					return err
				}
				return formulateThere(cmd, &client, bodies, (&envelopeFlags{format: format}).inputFormat())
			}
			cfg, err := loadConfig(file)
			if err != nil {
				return err
			}
			if err := chosen.apply(cmd, cfg); err != nil {
				return err
			}
			bodies, err := readContexts(cmd, args[0], format)
			if err != nil {
				return err
			}
			onlyPolicies(cfg)
			s, err := wire(cmd.Context(), cfg, newLog(cmd.ErrOrStderr(), level, "text"))
			if err != nil {
				return err
			}
			defer s.runtime.Close(context.Background())
			return formulateAll(cmd, s, bodies, (&envelopeFlags{format: format}).inputFormat())
		},
	}
	fs := cmd.Flags()
	fs.Var(policyFlag{&chosen}, "policy", "run this policy, a `name` or a module's path, instead of those of the configuration; again for more, in order")
	fs.Var(paramFlag{&chosen}, "param", "`name=value`: a parameter of the policy before it")
	choose(cmd, &format, "format", "", "encoding of the input", "auto", "json", "msgpack")
	configFlag(fs, &file)
	client.addOptional(fs)
	logLevelFlag(cmd, &level, "error")
	return cmd
}

// formulateAll runs the contexts one after the other.
func formulateAll(cmd *cobra.Command, s *stack, bodies [][]byte, format abi.Format) error {
	res := s.runtime.NewFormulation()
	var line []byte
	for i, body := range bodies {
		req := &runtime.FormulateRequest{Body: body, Format: format, Output: abi.FormatJSON, Seed: func(c *hint.Context) error {
			s.sessions.Seed(c, func(n int, err error) { fmt.Fprintf(cmd.ErrOrStderr(), "events[%d]: %v\n", n, err) })
			return nil
		}}
		if err := s.runtime.Formulate(cmd.Context(), req, res); err != nil {
			var malformed *hint.MalformedError
			var action *hint.ActionError
			switch {
			case len(bodies) > 1 && errors.As(err, &malformed):
				return &listed{exitWrong, []string{fmt.Sprintf("context %d: %v", i+1, err)}}
			case errors.As(err, &action):
				return fmt.Errorf("the composed envelope cannot be written as JSON: %w", err)
			}
			return err
		}
		line = append(hint.AppendFormulatedJSON(line[:0], res.Envelope, res.Policies), '\n')
		if _, err := cmd.OutOrStdout().Write(line); err != nil {
			return err
		}
	}
	return nil
}

// readContexts reads the input and takes JSON documents apart.
func readContexts(cmd *cobra.Command, name, format string) ([][]byte, error) {
	in := cmd.InOrStdin()
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, &inputError{err}
		}
		defer f.Close()
		in = f
	}
	body, err := io.ReadAll(io.LimitReader(in, maxContexts+1))
	switch {
	case err != nil:
		return nil, &inputError{err}
	case len(body) > maxContexts:
		return nil, &hint.MalformedError{What: "context", Offset: maxContexts, Msg: fmt.Sprintf("more than %d bytes", maxContexts)}
	case format == "msgpack" || format == "auto" && hint.Detect(body) == abi.FormatMsgpack:
		return [][]byte{body}, nil
	}
	return splitJSON(body), nil
}

// splitJSON takes JSON objects apart that follow each other. What is no object, or does
// not end, comes as it is: reading it will say what is wrong.
func splitJSON(body []byte) (docs [][]byte) {
	for {
		body = bytes.TrimLeft(body, " \t\r\n")
		if len(body) == 0 {
			if docs == nil {
				docs = [][]byte{body}
			}
			return docs
		}
		end := objectEnd(body)
		docs = append(docs, body[:end])
		body = body[end:]
	}
}

// objectEnd is where the object that begins body ends; all of body when it is none.
func objectEnd(body []byte) int {
	if body[0] != '{' {
		return len(body)
	}
	depth, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(body)
}

// onlyPolicies leaves out the guests that no policy is made of: they are not needed here.
func onlyPolicies(cfg *config.Config) {
	cfg.Guests = slices.DeleteFunc(slices.Clone(cfg.Guests), func(g config.Guest) bool {
		return !slices.ContainsFunc(cfg.KVHintPolicy, func(p config.Policy) bool { return p.Type == g.Name })
	})
	for i := range cfg.Guests {
		cfg.Guests[i].Limits.Instances = 1 // there is one call at a time
	}
}

// policyFlags are --policy and --param, in the order in which they stand.
type policyFlags []chosenPolicy

type chosenPolicy struct {
	policy string
	params []byte // a JSON object without its end; nil: none
}

// apply puts the policies in the place of those of the configuration.
func (f policyFlags) apply(cmd *cobra.Command, cfg *config.Config) error {
	if len(f) == 0 {
		return nil
	}
	cfg.KVHintPolicy = nil
	guests, problems := readGuests(cfg)
	if len(problems) > 0 {
		return &config.Error{Problems: problems}
	}
	known, named := policyTypes(guests), map[string]int{}
	for _, c := range f {
		p := config.Policy{Type: c.policy}
		if strings.ContainsAny(c.policy, "/.") {
			name, err := addModule(cfg, c.policy)
			if err != nil {
				return err
			}
			p.Type = name
		} else if !slices.Contains(known, p.Type) {
			return &usageError{cmd.CommandPath(), fmt.Sprintf("--policy: %q is no policy; known types: %s; a path has a dot or a slash", c.policy, listTypes(known))}
		}
		if named[p.Type]++; named[p.Type] > 1 {
			p.Name = fmt.Sprintf("%s-%d", p.Type, named[p.Type])
		}
		if c.params != nil {
			p.Parameters = append(slices.Clone(c.params), '}')
		}
		cfg.KVHintPolicy = append(cfg.KVHintPolicy, p)
	}
	return nil
}

// addModule adds a module as a guest that is granted all that it imports, under the name
// in its manifest.
func addModule(cfg *config.Config, path string) (name string, err error) {
	wasm, err := readModule(path)
	if err != nil {
		return "", &inputError{err}
	}
	info, err := runtime.Inspect(path, wasm)
	if err != nil {
		return "", err
	}
	name = info.Manifest.Name
	cfg.Guests = slices.DeleteFunc(slices.Clone(cfg.Guests), func(g config.Guest) bool { return g.Name == name })
	cfg.Guests = append(cfg.Guests, config.Guest{Name: name, Module: path, Grants: info.Imports})
	return name, nil
}

// policyFlag is --policy.
type policyFlag struct{ all *policyFlags }

func (policyFlag) String() string { return "" }
func (policyFlag) Type() string   { return "name" }
func (f policyFlag) Set(s string) error {
	if s == "" {
		return errors.New("want a name or a path")
	}
	*f.all = append(*f.all, chosenPolicy{policy: s})
	return nil
}

// paramFlag is --param.
type paramFlag struct{ all *policyFlags }

func (paramFlag) String() string { return "" }
func (paramFlag) Type() string   { return "name=value" }
func (f paramFlag) Set(s string) error {
	name, value, ok := strings.Cut(s, "=")
	switch {
	case !ok || name == "":
		return errors.New("want name=value")
	case len(*f.all) == 0:
		return errors.New("it belongs behind the --policy that it is for")
	}
	p := &(*f.all)[len(*f.all)-1]
	lead := byte(',')
	if p.params == nil {
		lead = '{'
	}
	key, err := json.Marshal(name)
	if err != nil {
		return err
	}
	p.params = append(append(append(p.params, lead), key...), ':')
	if !json.Valid([]byte(value)) {
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		value = string(text)
	}
	p.params = append(p.params, value...)
	return nil
}
