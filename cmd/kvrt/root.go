package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// run is the whole command: it returns the exit code.
func run(args []string, in io.Reader, out, errs io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	err := root.ExecuteContext(context.Background())
	report(errs, err)
	return exitCode(err)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "kvrt",
		Short: "Run KV-cache hint guests",
		Long: `kvrt takes the hint envelopes that routers attach to LLM requests ("fetch these
blocks from that worker", "retain this prefix for ten minutes"), gives each action
to a sandboxed Wasm guest, and answers with one result per action.

Exit codes of every verb:
  0  ok
  1  what was checked is wrong: a malformed envelope, a configuration with errors
  2  usage: an unknown verb or flag, a file that cannot be read
  3  the daemon cannot be reached
  4  refused: a module that breaks the ABI, a capability that is not granted, a limit
  5  timed out

Guests are compiled and tried in a child process, under limits (compile in kvrt.yaml),
before this one runs any of them, and kept in a private folder: that of the environment
variable KVRT_COMPILE_CACHE, or of compile.cache, or kvrt in the user's cache folder.
KVRT_COMPILE_CACHE=off compiles them in this process and tries none.`,
		Example: `  kvrt serve                           # the daemon, with the built-in guests
  kvrt submit envelope.json            # one envelope through it
  kvrt dispatch envelope.json          # the same without a daemon
  kvrt inspect embedded:kv-fetch       # what a guest is and asks for
  kvrt verify guest.wasm               # whether a guest keeps to every rule
  kvrt config check kvrt.yaml          # everything that is wrong with a configuration`,
		Args:              noVerb,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return &usageError{cmd.CommandPath(), err.Error()} })
	root.AddGroup(
		&cobra.Group{ID: "envelopes", Title: "Envelopes:"},
		&cobra.Group{ID: "blocks", Title: "Blocks:"},
		&cobra.Group{ID: "daemon", Title: "The daemon:"},
		&cobra.Group{ID: "guests", Title: "Guests and configuration:"},
	)
	add := func(group string, verbs ...*cobra.Command) {
		for _, v := range verbs {
			v.GroupID = group
			root.AddCommand(v)
		}
	}
	add("envelopes", newDispatch(), newFormulate(), newSubmit(), newLower(), newFinish(), newDiscard())
	add("blocks", newFetch(), newOutcomes(), newBlocksVerb(), newDescribe())
	add("daemon", newServe(), newStatus(), newReload(), newList(), newLoad(), newSwap(), newRollback(), newResume(), newUnload(), newWorkers())
	add("guests", newInspect(), newBuild(), newVerify(), newCall(), newConfig())
	root.AddCommand(newVersion())
	return root
}

// noVerb refuses an unknown verb, with the nearest ones.
func noVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	msg := fmt.Sprintf("unknown verb %q", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		msg += " (did you mean " + strings.Join(near, " or ") + "?)"
	}
	return &usageError{cmd.CommandPath(), msg}
}

// arguments wants what the words of what name, such as "FILE".
func arguments(what ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(what):
			return &usageError{cmd.CommandPath(), strings.Join(what[len(args):], " ") + " is missing"}
		case len(args) > len(what):
			return &usageError{cmd.CommandPath(), fmt.Sprintf("unexpected argument %q", args[len(what)])}
		case len(what) > 0 && what[0] == requestID && args[0] == "":
			return &usageError{cmd.CommandPath(), requestID + " is empty"}
		}
		return nil
	}
}

// requestID is the argument that is never empty: nothing is kept for a request without one.
const requestID = "REQUEST-ID"

// atMostOne wants one word or none.
func atMostOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return arguments(what)(cmd, args)
	}
}

// choice is a flag with a few possible values.
type choice struct {
	value *string
	words []string
}

func (c choice) String() string {
	if c.value == nil {
		return ""
	}
	return *c.value
}

func (c choice) Type() string { return strings.Join(c.words, "|") }

func (c choice) Set(s string) error {
	for _, w := range c.words {
		if s == w {
			*c.value = s
			return nil
		}
	}
	return fmt.Errorf("must be one of %s", strings.Join(c.words, ", "))
}

// choose adds a flag whose first word is the default.
func choose(cmd *cobra.Command, value *string, name, short, usage string, words ...string) {
	*value = words[0]
	chooseFrom(cmd, value, name, short, usage, words...)
}

// chooseFrom adds a flag whose default is what value holds.
func chooseFrom(cmd *cobra.Command, value *string, name, short, usage string, words ...string) {
	cmd.Flags().VarP(choice{value, words}, name, short, usage)
	complete := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words, cobra.ShellCompDirectiveNoFileComp
	}
	// The flag was added a line above, which is all that can go wrong.
	_ = cmd.RegisterFlagCompletionFunc(name, complete)
}

// configFlag adds -c.
func configFlag(fs *pflag.FlagSet, path *string) {
	fs.StringVarP(path, "config", "c", "", "read this kvrt.yaml; without it: the built-in guests and defaults")
}
