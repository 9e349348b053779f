package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/kvrt/kvrt/config"
)

func newConfig() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check a configuration, show what it comes to, print its schema",
		Long: `config is about kvrt.yaml, the one configuration of the daemon and of every verb
that takes -c. Reading is strict: unknown keys, wrong types and duplicates are
errors, with file, line and column.`,
		Example: `  kvrt config check kvrt.yaml
  kvrt config echo kvrt.yaml
  kvrt config schema > kvrt.schema.json`,
		Args: noVerb,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return &usageError{cmd.CommandPath(), "say check, echo or schema"}
		},
	}
	cmd.AddCommand(newConfigCheck(), newConfigEcho(), newConfigSchema())
	return cmd
}

func newConfigCheck() *cobra.Command {
	var (
		file    string
		shallow bool
	)
	cmd := &cobra.Command{
		Use:   "check [FILE]...",
		Short: "List everything that is wrong with a configuration",
		Long: `check reads a configuration and lists all that is wrong with it, one problem a
line, as file:line:col: path: message. It ends with code 1 when there is any.

The modules are looked at too, without running them: that they exist, have the
digest that is written, keep the rules of the ABI, import nothing that is not
granted, and take the parameters; that no two guests handle the same action type; and
that all of them together fit into guest_memory at their limits. While guests are
replaced the old ones count too, so a daemon needs room for more. --shallow leaves
the modules out, for machines that do not have them.

Keys that are set and have no effect in this version are named on standard error;
they are no error. Without FILE the built-in configuration is checked.`,
		Example: `  kvrt config check kvrt.yaml
  kvrt config check -c /etc/kvrt/kvrt.yaml
  kvrt config check --shallow deploy/*.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if file != "" {
				args = append([]string{file}, args...)
			}
			if len(args) == 0 {
				args = []string{""}
			}
			var errs []error
			for _, name := range args {
				if err := checkConfig(cmd, name, shallow); err != nil {
					errs = append(errs, err)
				}
			}
			return joinProblems(errs)
		},
	}
	configFlag(cmd.Flags(), &file)
	cmd.Flags().BoolVar(&shallow, "shallow", false, "do not look at the modules")
	return cmd
}

// checkConfig checks one file.
func checkConfig(cmd *cobra.Command, name string, shallow bool) error {
	cfg, err := loadConfig(name)
	if err != nil {
		return err
	}
	taken, budget, err := checkWiring(cmd.Context(), cfg, shallow)
	if err != nil {
		return err
	}
	if name == "" {
		name = "built-in configuration"
	}
	policies := ""
	if n := len(cfg.KVHintPolicy); n > 0 {
		policies = fmt.Sprintf(", %d policies", n)
	}
	memory := ""
	if !shallow {
		memory = fmt.Sprintf(", %s of %s guest memory", mebibytes(taken), mebibytes(budget))
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: ok, %d guests%s%s\n", name, len(cfg.Guests), policies, memory)
	return err
}

// joinProblems makes one list of what is wrong with several files. A file that cannot
// be read is a matter of usage, as everywhere.
func joinProblems(errs []error) error {
	if len(errs) < 2 {
		return errors.Join(errs...)
	}
	all := &listed{code: exitWrong}
	for _, err := range errs {
		all.lines = append(all.lines, err.Error())
		all.code = max(all.code, exitCode(err))
	}
	return all
}

func newConfigEcho() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "echo [FILE]",
		Short: "Print the effective configuration",
		Long: `echo prints a configuration as kvrt understands it: with defaults filled in,
environment variables expanded and paths absolute. The output is a kvrt.yaml itself.
Without FILE it prints the built-in configuration.`,
		Example: `  kvrt config echo > kvrt.yaml      # a file to start from
  kvrt config echo kvrt.yaml
  kvrt config echo -c kvrt.yaml | diff - other.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := oneFile(cmd, file, args)
			if err != nil {
				return err
			}
			cfg, err := loadConfig(name)
			if err != nil {
				return err
			}
			text, err := cfg.Marshal()
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	configFlag(cmd.Flags(), &file)
	return cmd
}

func newConfigSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of kvrt.yaml, for editors",
		Long: `schema prints a JSON Schema that editors use to complete and check kvrt.yaml. It
is the same table of keys that config check reads.`,
		Example: `  kvrt config schema > kvrt.schema.json
  kvrt config schema | jq '.properties | keys'`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(config.Schema())
			return err
		},
	}
}

// oneFile takes the configuration's name from -c or from the argument.
func oneFile(cmd *cobra.Command, flag string, args []string) (string, error) {
	if flag != "" {
		args = append([]string{flag}, args...)
	}
	switch len(args) {
	case 0:
		return "", nil
	case 1:
		return args[0], nil
	}
	return "", &usageError{cmd.CommandPath(), fmt.Sprintf("unexpected argument %q", args[1])}
}

// loadConfig reads a configuration; without a name it is the built-in one.
func loadConfig(name string) (*config.Config, error) {
	if name == "" {
		return config.Default(), nil
	}
	cfg, err := config.Load(name)
	var path *fs.PathError
	if errors.As(err, &path) {
		return nil, &inputError{err}
	}
	return cfg, err
}
