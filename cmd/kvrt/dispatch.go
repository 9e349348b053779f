package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kvrt/kvrt/runtime"
)

func newDispatch() *cobra.Command {
	var (
		flags       envelopeFlags
		file, level string
		client      bool
	)
	cmd := &cobra.Command{
		Use:   "dispatch FILE|-",
		Short: "Run one envelope through the guests, in this process",
		Long: `dispatch decodes one envelope (JSON or msgpack), gives each action to the guest
that handles its type, and writes one JSON line per action, in envelope order:

  {"index":0,"action_id":"a1","action_type":"kv.fetch","action_version":"1.0",
   "status":"ACCEPTED","reason":"","detail":"","guest":"kv-fetch","generation":1,
   "fuel":412,"duration_ns":640}

A well-formed envelope ends with code 0, even when every action is REJECTED. A
malformed one runs no guest, writes nothing on standard output and one line on
standard error, and ends with code 1.

--forward writes the envelope to pass on to the serving engine: accepted actions,
unchanged or as their guest rewrote them, in the encoding of the input. With
--forward - it has standard output to itself, so that it can be piped, and the
results go to standard error.

What guests and runtime log goes to standard error; --log-level says from which
level on.`,
		Example: `  kvrt dispatch envelope.json
  kvrt dispatch --request-id r1 --engine vllm --leg prefill -o table envelope.json
  kvrt dispatch -c kvrt.yaml --forward out.msgpack envelope.msgpack
  curl -s http://router/last-hint | kvrt dispatch -
  kvrt dispatch --dialect router_hint flat.json
  kvrt dispatch --forward - envelope.json 2>results.jsonl | kvrt submit -`,
		Args: arguments("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := loadConfig(file)
			if err != nil {
				return err
			}
			body, err := readInput(cmd, args[0], int(cfg.Limits.BodyBytes))
			if err != nil {
				return err
			}
			if err := flags.check(cmd, body); err != nil {
				return err
			}
			for i := range cfg.Guests {
				cfg.Guests[i].Limits.Instances = 1 // there is one call
			}
			s, err := wire(cmd.Context(), cfg, newLog(cmd.ErrOrStderr(), level, "text"))
			if err != nil {
				return err
			}
			defer s.runtime.Close(context.Background())
			res := s.runtime.NewResponse()
			req := &runtime.Request{Body: body, Format: flags.inputFormat(), Dialect: flags.dialect, Identity: flags.identity(), Forward: flags.forward != "", FromClient: client}
			if err := s.runtime.Dispatch(req, res); err != nil {
				return err
			}
			return flags.write(cmd, res.Results, res.Forward)
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&client, "from-client", false, "the envelope came with a client's request and no router made it: with request_hints: strip its actions are rejected as stripped")
	configFlag(cmd.Flags(), &file)
	logLevelFlag(cmd, &level, "error")
	return cmd
}
