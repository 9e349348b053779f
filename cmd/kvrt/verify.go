package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/sdk/tck"
)

func newVerify() *cobra.Command {
	var (
		flags               soloFlags
		file, cases, output string
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
			folder, err := casesOf(args[0], cases, cmd.Flags().Changed("cases"))
			if err != nil {
				return err
			}
			spec, err := verifySpec(cmd, args[0], wasm, file, &flags)
			if err != nil {
				return err
			}
			report, err := newKit().Verify(cmd.Context(), spec, folder)
			if err != nil {
				return err
			}
			v := newVerdict(args[0], wasm, report)
			if output == "json" {
				err = writeJSON(cmd.OutOrStdout(), v)
			} else if report.OK() {
				err = v.write(cmd.OutOrStdout())
			}
			if !report.OK() {
				return &runtime.LoadError{Guest: spec.Name, Problems: report.Problems}
			}
			return err
		},
	}
	flags.add(cmd)
	fs := cmd.Flags()
	fs.StringVarP(&file, "config", "c", "", "take grants, parameters and limits from this kvrt.yaml")
	fs.StringVar(&cases, "cases", "", "`folder` with the guest's case files (default: cases beside MODULE, if it is there)")
	choose(cmd, &output, "output", "o", "form of the output", "text", "json")
	return cmd
}

// casesOf opens the folder with the guest's cases; nil when it has none.
func casesOf(module, folder string, chosen bool) (fs.FS, error) {
	if !chosen {
		folder = filepath.Join(filepath.Dir(module), "cases")
		if strings.HasPrefix(module, embeddedPrefix) {
			return nil, nil
		}
	}
	info, err := os.Stat(folder)
	switch {
	case err == nil && info.IsDir():
		return os.DirFS(folder), nil
	case !chosen:
		return nil, nil
	case err == nil:
		err = fmt.Errorf("--cases %s is no folder", folder)
	}
	return nil, &inputError{err}
}

// verifySpec describes the guest that is judged. A module that cannot be read is
// described as far as that goes: the judge names what is wrong.
func verifySpec(cmd *cobra.Command, module string, wasm []byte, file string, flags *soloFlags) (runtime.GuestSpec, error) {
	spec := runtime.GuestSpec{Name: "guest", Module: wasm, Source: module}
	info, _ := runtime.Inspect(module, wasm)
	if info != nil {
		spec.Grants = info.Imports
	}
	if info != nil && info.Manifest != nil {
		spec.Name = info.Manifest.Name
	}
	if file != "" {
		cfg, err := loadConfig(file)
		if err != nil {
			return spec, err
		}
		g := configured(cfg, module, spec.Name)
		if g == nil {
			return spec, &usageError{cmd.CommandPath(), fmt.Sprintf("%s has no guest with the module %s or the name %s", file, module, spec.Name)}
		}
		spec = specOf(g, wasm)
		spec.Source = module
	}
	return spec, flags.apply(cmd, &spec)
}

// configured finds the guest of a configuration that a module is meant for.
func configured(cfg *config.Config, module, name string) *config.Guest {
	for i := range cfg.Guests {
		if g := &cfg.Guests[i]; g.Module == module || sameFile(g.Module, module) {
			return g
		}
	}
	for i := range cfg.Guests {
		if g := &cfg.Guests[i]; g.Name == name {
			return g
		}
	}
	return nil
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

func newVerdict(module string, wasm []byte, r *tck.Report) *verdict {
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
	for _, n := range v.Notes {
		line("note", "%s", n)
	}
	return tw.Flush()
}
