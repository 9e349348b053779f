package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/admit"
)

func newInspect() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "inspect MODULE",
		Short: "Show what a module is and asks for, without running it",
		Long: `inspect reads a module: its manifest and roles, what it imports as capabilities,
its exports, memory and tables, size, digest and ABI version. Nothing of it is run.

MODULE is the path of a .wasm file, or embedded:NAME for a built-in guest.

A module that breaks rules of the ABI is shown as far as it can be read; every
broken rule is a line on standard error, and the code is 4. Grants are not judged
here: what the module imports links only where the operator grants it, and the last
line says what to write in kvrt.yaml.`,
		Example: `  kvrt inspect embedded:kv-fetch
  kvrt inspect policies/kv-fetch/kv-fetch.wasm
  kvrt inspect -o json guest.wasm | jq -r .sha256
  kvrt inspect -o json guest.wasm | jq -r '.capabilities[].name'`,
		Args: arguments("MODULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			wasm, err := readModule(args[0])
			if err != nil {
				return &inputError{err}
			}
			r, err := inspect(args[0], wasm)
			var wrote error
			if output == "json" {
				wrote = writeJSON(cmd.OutOrStdout(), r)
			} else {
				wrote = r.write(cmd.OutOrStdout())
			}
			if err != nil {
				return err
			}
			return wrote
		},
	}
	choose(cmd, &output, "output", "o", "form of the output", "text", "json")
	return cmd
}

// moduleReport is what inspect tells.
type moduleReport struct {
	Module       string          `json:"module"`
	Size         int             `json:"size"`
	SHA256       string          `json:"sha256"`
	ABI          string          `json:"abi,omitempty"` // of the marker export
	Manifest     *abi.Manifest   `json:"manifest,omitempty"`
	Capabilities []capability    `json:"capabilities"`
	Exports      []exportReport  `json:"exports"`
	Memory       *memoryReport   `json:"memory,omitempty"`
	Tables       []tableReport   `json:"tables"`
	Functions    int             `json:"functions"` // of the module's own
	Problems     []problemReport `json:"problems"`  // broken rules; empty: admitted

	read bool // as a module
}

// capability is one import module.
type capability struct {
	Name      string   `json:"name"`
	Functions []string `json:"functions"` // that the module imports
	Declared  bool     `json:"declared"`  // in the manifest
	Offered   bool     `json:"offered"`   // by this version, all of the functions
}

type exportReport struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"`
	Signature string `json:"signature,omitempty"`
}

// memoryReport counts pages of 64 KiB; a maximum of 0 is none.
type memoryReport struct {
	Min uint32 `json:"min"`
	Max uint32 `json:"max"`
}

type tableReport struct {
	Element string `json:"element"`
	Min     uint32 `json:"min"`
	Max     uint32 `json:"max"`
}

type problemReport struct {
	Rule    string `json:"rule"`
	Item    string `json:"item"`
	Message string `json:"message"`
}

func problemsOf(problems []runtime.Problem) []problemReport {
	out := []problemReport{} // not nil, which JSON would have as null
	for _, p := range problems {
		out = append(out, problemReport{p.Rule, p.Item, p.Msg})
	}
	return out
}

func digestOf(wasm []byte) string {
	sum := sha256.Sum256(wasm)
	return hex.EncodeToString(sum[:])
}

// inspect reads a module. The error is a *runtime.LoadError.
func inspect(name string, wasm []byte) (*moduleReport, error) {
	info, err := runtime.Inspect(name, wasm)
	r := &moduleReport{Module: name, Size: len(wasm), SHA256: digestOf(wasm), Capabilities: []capability{}, Exports: []exportReport{}, Tables: []tableReport{}, Problems: []problemReport{}}
	if refused, ok := err.(*runtime.LoadError); ok {
		r.Problems = problemsOf(refused.Problems)
	}
	if info == nil {
		return r, err
	}
	m := info.Module
	r.read, r.Manifest, r.Functions = true, info.Manifest, len(m.Functions)
	for _, e := range m.Exports {
		x := exportReport{Name: e.Name, Kind: e.Kind.String()}
		if e.Type != nil {
			x.Signature = e.Type.String()
		}
		r.Exports = append(r.Exports, x)
		if v, marker := strings.CutPrefix(e.Name, "kvrt_abi_"); marker {
			r.ABI = v
		}
	}
	if len(m.Memories) > 0 {
		r.Memory = &memoryReport{m.Memories[0].Min, m.Memories[0].Max}
	}
	for _, t := range m.Tables {
		r.Tables = append(r.Tables, tableReport{t.Element.String(), t.Min, t.Max})
	}
	for _, name := range info.Imports {
		r.Capabilities = append(r.Capabilities, capabilityOf(info, name))
	}
	return r, err
}

func capabilityOf(info *runtime.Info, name string) capability {
	c := capability{Name: name, Functions: []string{}, Offered: true}
	c.Declared = info.Manifest != nil && slices.Contains(info.Manifest.Capabilities, name)
	var offered []runtime.HostFunction
	for _, h := range nothingKept().modules() {
		if h.Name() == name {
			offered = h.Functions()
		}
	}
	for _, i := range info.Module.Imports {
		if i.Module != name || slices.Contains(c.Functions, i.Name) {
			continue
		}
		c.Functions = append(c.Functions, i.Name)
		c.Offered = c.Offered && i.Kind == admit.KindFunction &&
			slices.ContainsFunc(offered, func(f runtime.HostFunction) bool { return f.Name == i.Name })
	}
	return c
}

// write writes the report for people.
func (r *moduleReport) write(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	line := func(key, format string, args ...any) {
		fmt.Fprintf(tw, "%s\t"+format+"\n", append([]any{key}, args...)...)
	}
	line("module", "%s", r.Module)
	line("size", "%d bytes", r.Size)
	line("sha256", "%s", r.SHA256)
	if !r.read {
		return tw.Flush()
	}
	if r.ABI != "" {
		line("abi", "%s", r.ABI)
	}
	if m := r.Manifest; m != nil {
		r.writeManifest(line, m)
	}
	line("functions", "%d", r.Functions)
	if r.Memory != nil {
		line("memory", "%s", pages(r.Memory.Min, r.Memory.Max))
	}
	for _, t := range r.Tables {
		line("table", "%d entries of %s", t.Min, t.Element)
	}
	for _, c := range r.Capabilities {
		line("capability", "%s: %s%s", c.Name, strings.Join(c.Functions, ", "), c.remark())
	}
	for _, e := range r.Exports {
		line("export", "%s", strings.TrimSpace(cell(e.Name)+" "+nameKind(e)))
	}
	line("grants", "%s", r.grants())
	return tw.Flush()
}

func (r *moduleReport) writeManifest(line func(string, string, ...any), m *abi.Manifest) {
	line("name", "%s %s", m.Name, cell(m.Version))
	if m.Description != "" {
		line("description", "%s", cell(m.Description))
	}
	if m.License != "" {
		line("license", "%s", cell(m.License))
	}
	line("roles", "%s", joinRoles(m.Roles))
	if len(m.ActionTypes) > 0 {
		line("action types", "%s", joinTypes(m.ActionTypes))
	}
	if len(m.Dialects) > 0 {
		line("dialects", "%s", strings.Join(m.Dialects, ", "))
	}
	if m.Limits.Memory > 0 || m.Limits.Fuel > 0 {
		line("wants", "%d bytes of memory, %d of fuel a call (0: the default)", m.Limits.Memory, m.Limits.Fuel)
	}
	if m.Stateful {
		line("stateful", "yes: it keeps something between calls")
	}
	if len(m.Parameters) > 0 {
		line("parameters", "%s", compactJSON(m.Parameters))
	}
}

// remark says what stands in a capability's way.
func (c *capability) remark() string {
	switch {
	case !c.Offered:
		return " (this version does not offer it)"
	case c.Name == abi.ModuleWASI:
		return " (a stub, which needs no grant)"
	case !c.Declared:
		return " (not in the manifest)"
	}
	return ""
}

// grants says what an operator writes so that the module links.
func (r *moduleReport) grants() string {
	var names []string
	for _, c := range r.Capabilities {
		if c.Name != abi.ModuleWASI {
			names = append(names, c.Name)
		}
	}
	if names == nil {
		return "none needed"
	}
	return "grants: [" + strings.Join(names, ", ") + "] in kvrt.yaml; without them it does not link"
}

func nameKind(e exportReport) string {
	if e.Signature != "" {
		return e.Signature
	}
	return "(" + e.Kind + ")"
}

func pages(min, max uint32) string {
	if max > 0 {
		return fmt.Sprintf("%d to %d pages of 64 KiB", min, max)
	}
	return fmt.Sprintf("from %d pages of 64 KiB", min)
}

func joinRoles(roles []abi.Role) string {
	words := make([]string, len(roles))
	for i, r := range roles {
		words[i] = string(r)
	}
	return strings.Join(words, ", ")
}

func joinTypes(types []abi.ActionType) string {
	words := make([]string, len(types))
	for i, t := range types {
		words[i] = t.Type
		if len(t.Versions) > 0 {
			words[i] += " " + strings.Join(t.Versions, "|")
		}
	}
	return strings.Join(words, ", ")
}

func compactJSON(raw json.RawMessage) string {
	b, err := json.Marshal(raw)
	if err != nil {
		return string(raw)
	}
	return string(b)
}
