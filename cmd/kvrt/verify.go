package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/sdk/tck"
)

func newVerify() *cobra.Command {
	var (
		flags               soloFlags
		file, cases, output string
		timeout             time.Duration
	)
	cmd := &cobra.Command{
		Use:   "verify MODULE",
		Short: "Hold a guest to every rule, and to its own cases",
		Long: `verify judges a guest the way a load does, and then by calling it:

  1. admission: the binary, its function bodies, limits, imports, exports, manifest
  2. the load: compilation, init, one call of each role
  3. the conformance kit: it calls each role with frames of all kinds, on fresh
     instances and in sequence, and asks for larger and larger frame buffers
  4. the guest's own cases: the files *.jsonl in the folder cases beside MODULE, or in
     the folder that --cases names; policies/CASES.md describes them

Every broken rule is a line on standard error, with what to do, and the code is 4.
Otherwise it prints what the guest uses: fuel and memory, and notes on what is allowed
and worth knowing.

All of it is done in a child process with limits of time and memory (--timeout, and the
keys compile.timeout and compile.memory). A guest that takes more is refused like any
other, by the rule of what it was at: compile/wall, trial/cpu, trial/memory and the like.
Where a second engine is built in (kvrt version), each call of the probes is made on both,
in that child, and they must agree.

All that the guest imports is granted, by hosts that keep nothing. With -c the guest is
what kvrt.yaml makes of it: its grants, parameters and limits are those of the guest
with this module, or else with the name in its manifest.`,
		Example: `  kvrt verify guest.wasm
  kvrt verify guest.wasm --cases test/cases --parameters '{"mode":"strict"}'
  kvrt verify policies/kv-fetch/kv-fetch.wasm -c kvrt.yaml
  kvrt verify -o json guest.wasm | jq -r '.problems[].rule'`,
		Args: arguments("MODULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			wasm, err := readModule(args[0])
			if err != nil {
				return &inputError{err}
			}
			t := task{Build: thisBuild()}
			if t.Cases, err = casesOf(args[0], cases, cmd.Flags().Changed("cases")); err != nil {
				return err
			}
			limits := config.Default().Compile
			if t.Verify, err = newVerifyTask(cmd, args[0], wasm, file, &flags, &limits); err != nil {
				return err
			}
			if timeout > 0 {
				limits.Timeout = timeout
			}
			a, err := verify(cmd.Context(), &t, limits)
			if err != nil {
				return err
			}
			if a.Unknown {
				return &usageError{cmd.CommandPath(), fmt.Sprintf("%s has no guest with the module %s or the name %s", file, args[0], a.Guest)}
			}
			v := a.Verdict
			if output == "json" {
				err = writeJSON(cmd.OutOrStdout(), v)
			} else if v.OK {
				err = v.write(cmd.OutOrStdout())
			}
			if !v.OK {
				return &runtime.LoadError{Guest: a.Guest, Problems: v.problems()}
			}
			return err
		},
	}
	flags.add(cmd)
	fs := cmd.Flags()
	fs.StringVarP(&file, "config", "c", "", "take grants, parameters and limits from this kvrt.yaml")
	fs.StringVar(&cases, "cases", "", "`folder` with the guest's case files (default: cases beside MODULE, if it is there)")
	fs.DurationVar(&timeout, "timeout", 0, "most CPU time that all of it may take, and a third of the time by the clock (default: compile.timeout of the configuration, or 10s)")
	choose(cmd, &output, "output", "o", "form of the output", "text", "json")
	return cmd
}

// verify has a child verify a guest. What the child may not take is a rule that the
// guest breaks.
func verify(ctx context.Context, t *task, limits config.Compile) (*verifyAnswer, error) {
	raw, err := t.encode(t.Verify.wasm)
	if err != nil {
		return nil, err
	}
	c, err := newCompiler(limits)
	if err != nil {
		return nil, err
	}
	raw, err = c.Do(ctx, raw)
	var refused *runtime.LoadError
	if errors.As(err, &refused) {
		m := t.Verify
		return &verifyAnswer{Guest: unnamedGuest, Verdict: &verdict{Module: m.Module, Size: len(m.wasm), SHA256: digestOf(m.wasm), Problems: problemsOf(refused.Problems), Notes: []string{}}}, nil
	}
	if err != nil {
		return nil, err
	}
	a := &verifyAnswer{}
	if err := json.Unmarshal(raw, a); err != nil || a.Verdict == nil && !a.Unknown {
		return nil, fmt.Errorf("the child that verifies the guest answers %.100q: %w", raw, err)
	}
	return a, nil
}

// casesOf finds the folder with the guest's cases; nil when it has none.
func casesOf(module, folder string, chosen bool) (*caseFolder, error) {
	if !chosen {
		if strings.HasPrefix(module, embeddedPrefix) {
			return nil, nil
		}
		return listCases(filepath.Join(filepath.Dir(module), "cases"))
	}
	info, err := os.Stat(folder)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("--cases %s is no folder", folder)
	}
	if err != nil {
		return nil, &inputError{err}
	}
	return listCases(folder)
}

// newVerifyTask describes the guest that is judged, as far as that goes without looking
// into the module.
func newVerifyTask(cmd *cobra.Command, module string, wasm []byte, file string, flags *soloFlags, limits *config.Compile) (*verifyTask, error) {
	v := &verifyTask{Module: module, wasm: wasm, File: -1}
	if file != "" {
		cfg, err := loadConfig(file)
		if err != nil {
			return nil, err
		}
		*limits = cfg.Compile
		v.Configured, v.Guests = true, cfg.Guests
		v.File = slices.IndexFunc(cfg.Guests, func(g config.Guest) bool { return g.Module == module || sameFile(g.Module, module) })
	}
	return v, flags.apply(cmd, &v.Flags)
}

// verdict is what verify tells.
type verdict struct {
	Module   string          `json:"module"`
	OK       bool            `json:"ok"`
	Name     string          `json:"name,omitempty"`
	Version  string          `json:"version,omitempty"`
	Size     int             `json:"size"`
	SHA256   string          `json:"sha256"`
	Problems []problemReport `json:"problems"`
	Notes    []string        `json:"notes"`

	// Absent when the guest could not be loaded.
	Start        *startReport `json:"start,omitempty"`
	Roles        []roleReport `json:"roles,omitempty"`
	Fuel         uint64       `json:"fuel_limit,omitempty"`
	Memory       uint64       `json:"memory,omitempty"` // the most bytes that an instance had
	MemoryLimit  uint64       `json:"memory_limit,omitempty"`
	LargestFrame uint32       `json:"largest_frame,omitempty"` // that it has a buffer for, of powers of two
	Cases        *casesReport `json:"cases,omitempty"`

	Engines  []string `json:"engines,omitempty"`        // that it was run on
	Compared int      `json:"calls_compared,omitempty"` // that were made on both
}

func (v *verdict) problems() []runtime.Problem {
	out := make([]runtime.Problem, len(v.Problems))
	for i, p := range v.Problems {
		out[i] = runtime.Problem{Rule: p.Rule, Item: p.Item, Msg: p.Message}
	}
	return out
}

type startReport struct {
	Fuel   uint64 `json:"fuel"`
	Memory uint64 `json:"memory"`
}

type roleReport struct {
	Role      string `json:"role"`
	Calls     int    `json:"calls"`
	LeastFuel uint64 `json:"least_fuel"`
	MostFuel  uint64 `json:"most_fuel"`
	MostFor   string `json:"most_for"`
}

type casesReport struct {
	Files  int `json:"files"`
	Cases  int `json:"cases"`
	Runs   int `json:"runs"`
	Failed int `json:"failed"`
}

func newVerdict(module string, wasm []byte, kit *tck.Kit, r *tck.Report) *verdict {
	v := &verdict{Module: module, OK: r.OK(), Size: len(wasm), SHA256: digestOf(wasm), Problems: problemsOf(r.Problems), Notes: r.Notes}
	if v.Notes == nil {
		v.Notes = []string{}
	}
	if r.Info != nil && r.Info.Manifest != nil {
		v.Name, v.Version = r.Info.Manifest.Name, r.Info.Manifest.Version
	}
	if r.Limits.Fuel == 0 { // it was not loaded
		return v
	}
	v.Start, v.Cases = &startReport{r.Start.Fuel, r.Start.Memory}, &casesReport{r.Cases.Files, r.Cases.Cases, r.Cases.Runs, r.Cases.Failed}
	v.Fuel, v.Memory, v.MemoryLimit, v.LargestFrame = r.Limits.Fuel, r.Memory, r.Limits.Memory, r.LargestFrame
	if v.Engines = []string{kit.Engine.Name()}; r.Second != "" {
		v.Engines, v.Compared = append(v.Engines, r.Second), r.Compared
	}
	for _, f := range r.Roles {
		v.Roles = append(v.Roles, roleReport{string(f.Role), f.Calls, f.LeastFuel, f.MostFuel, f.MostFor})
	}
	return v
}

// write writes the summary of a guest that holds.
func (v *verdict) write(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	line := func(key, format string, args ...any) {
		fmt.Fprintf(tw, "%s\t%s\n", key, printable(fmt.Sprintf(format, args...)))
	}
	line("ok", "%s %s, %d bytes, sha256 %s", v.Name, cell(v.Version), v.Size, v.SHA256)
	line("start", "%d of fuel, %d bytes of memory", v.Start.Fuel, v.Start.Memory)
	for _, r := range v.Roles {
		line(r.Role, "%d to %d of %d fuel in %d calls; most for %s", r.LeastFuel, r.MostFuel, v.Fuel, r.Calls, r.MostFor)
	}
	line("memory", "%d of %d bytes at most; frames of %d bytes", v.Memory, v.MemoryLimit, v.LargestFrame)
	line("cases", "%d in %d files, %d runs", v.Cases.Cases, v.Cases.Files, v.Cases.Runs)
	if len(v.Engines) > 1 {
		line("engines", "%s, alike in %d calls; %s", strings.Join(v.Engines, " and "), v.Compared, secondAbout)
	} else {
		line("engines", "%s; second engine: %s", strings.Join(v.Engines, ""), secondAbout)
	}
	for _, n := range v.Notes {
		line("note", "%s", n)
	}
	return tw.Flush()
}
