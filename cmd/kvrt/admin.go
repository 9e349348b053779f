package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/server"
)

// adminFlags are the flags of every verb that talks to a daemon's admin API.
type adminFlags struct {
	admin   string
	timeout time.Duration
	output  string
}

func (f *adminFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.admin, "admin", config.Default().Listen.Admin, "`host:port` of the daemon's admin API")
	fs.DurationVar(&f.timeout, "timeout", 30*time.Second, "how long to wait for the daemon")
	choose(cmd, &f.output, "output", "o", "form of the output", "table", "json")
}

// with calls do with a client of the admin API and writes what it returns: as JSON, or
// for people.
func (f *adminFlags) with(cmd *cobra.Command, do func(context.Context, *server.Admin) (answer, error)) error {
	if f.timeout <= 0 {
		return &usageError{cmd.CommandPath(), "--timeout must be positive"}
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	a, err := do(ctx, server.NewAdmin(f.admin))
	if errors.Is(err, server.ErrUnreachable) {
		return &unreachableError{at: f.admin, start: "kvrt serve --admin " + f.admin, err: err}
	}
	if err != nil {
		return err
	}
	if f.output == "json" {
		return writeJSON(cmd.OutOrStdout(), a.value)
	}
	return a.table(cmd)
}

// answer is what a daemon answered, in both forms.
type answer struct {
	value any
	table func(cmd *cobra.Command) error
}

// changed is the answer to a change, done being like "loaded kv-fetch".
func changed(done string, c *server.Change) answer {
	return answer{c, func(cmd *cobra.Command) error {
		line := fmt.Sprintf("%s: generation %d", done, c.Generation)
		if g := c.Guest; g != nil {
			line += fmt.Sprintf(", version %s, sha256 %s", cell(g.Version), shortDigest(g.SHA256))
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), line)
		return err
	}}
}

// guestFlags describe a guest to load or swap.
type guestFlags struct {
	adminFlags
	grants     []string
	parameters string
	sha256     string
	limits     limitFlags
	generation uint64
}

func (f *guestFlags) add(cmd *cobra.Command) {
	f.adminFlags.add(cmd)
	fs := cmd.Flags()
	fs.StringSliceVar(&f.grants, "grant", nil, "`capability` that the guest may import, such as kvrt_log; repeat it or use commas; an empty one is none")
	fs.StringVar(&f.parameters, "parameters", "", "JSON object for the guest, or @`file` that holds one")
	fs.StringVar(&f.sha256, "sha256", "", "digest that the module must have")
	f.limits.add(fs)
	fs.Uint64Var(&f.generation, "if-generation", 0, "change nothing unless the daemon is at this generation")
}

// request reads the module and the flags that were given.
func (f *guestFlags) request(cmd *cobra.Command, module string) (server.GuestRequest, error) {
	var g server.GuestRequest
	if module != "" {
		wasm, err := readModule(module)
		if err != nil {
			return g, &inputError{err}
		}
		g.Module, g.Source = wasm, module
	}
	g.SHA256 = f.sha256
	if cmd.Flags().Changed("grant") {
		grants := []string{}
		for _, name := range f.grants {
			if name != "" {
				grants = append(grants, name)
			}
		}
		g.Grants = &grants
	}
	if f.parameters != "" {
		p, err := readParameters(f.parameters)
		if err != nil {
			return g, &inputError{fmt.Errorf("--parameters: %w", err)}
		}
		g.Parameters = p
	}
	var err error
	g.Limits, err = f.limits.request(cmd)
	return g, err
}

// client applies --if-generation.
func (f *guestFlags) client(cmd *cobra.Command, a *server.Admin) *server.Admin {
	if cmd.Flags().Changed("if-generation") {
		return a.IfGeneration(f.generation)
	}
	return a
}

// parseSize reads a size as kvrt.yaml has it.
func parseSize(s string) (bytes uint64, ok bool) {
	shift := 0
	for i, unit := range []string{"KiB", "MiB", "GiB"} {
		if digits, has := strings.CutSuffix(s, unit); has {
			s, shift = digits, 10*(i+1)
		}
	}
	n, err := strconv.ParseUint(s, 10, 33)
	return n << shift, err == nil
}

func readParameters(s string) (json.RawMessage, error) {
	text := []byte(s)
	if file, ok := strings.CutPrefix(s, "@"); ok {
		var err error
		if text, err = os.ReadFile(file); err != nil {
			return nil, err
		}
	}
	text = bytes.TrimSpace(text)
	if !json.Valid(text) || text[0] != '{' {
		return nil, errors.New("want a JSON object")
	}
	return text, nil
}
