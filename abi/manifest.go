package abi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// ManifestSection is the name of the custom section that holds the manifest.
const ManifestSection = "kvrt.manifest"

// MaxManifest is the largest manifest in bytes.
const MaxManifest = 64 << 10

// Role is what a guest does. A guest may have several.
type Role string

// The roles, and the export that each needs.
const (
	RoleParser  Role = "parser"  // kvrt_parse
	RoleHandler Role = "handler" // kvrt_handle
	RolePolicy  Role = "policy"  // kvrt_formulate
)

// Export returns the role's export.
func (r Role) Export() string {
	switch r {
	case RoleParser:
		return "kvrt_parse"
	case RoleHandler:
		return "kvrt_handle"
	case RolePolicy:
		return "kvrt_formulate"
	}
	return ""
}

// Manifest is what a module says about itself. It lies in the module as JSON, in the
// custom section kvrt.manifest.
type Manifest struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
	License     string `json:"license,omitempty"`
	Source      string `json:"source,omitempty"`
	ABI         int    `json:"abi"`
	Roles       []Role `json:"roles"`
	// ActionTypes lists what a handler takes, or what a policy may emit.
	ActionTypes []ActionType `json:"action_types,omitempty"`
	// Dialects lists what a parser reads, by name.
	Dialects []string `json:"dialects,omitempty"`
	// Parameters is a JSON Schema of the operator's parameters.
	Parameters json.RawMessage `json:"parameters,omitempty"`
	// Requires lists the context fields that a policy cannot do without.
	Requires []string `json:"requires,omitempty"`
	// Capabilities lists the import modules. It must name all that the module imports.
	Capabilities []string       `json:"capabilities,omitempty"`
	Metrics      []Metric       `json:"metrics,omitempty"`
	Limits       ManifestLimits `json:"limits,omitzero"`
	// Stateful guests keep something between calls; they cannot be replayed.
	Stateful bool `json:"stateful,omitempty"`
}

// ActionType is an action type with the versions that are understood, for people and
// for capability negotiation: the handler itself judges versions.
type ActionType struct {
	Type     string   `json:"type"`
	Versions []string `json:"versions,omitempty"`
}

// Metric is a metric that the guest writes with kvrt_metric.
type Metric struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // counter, gauge or histogram
	Help string `json:"help,omitempty"`
}

// ManifestLimits is what the guest needs. 0 means the host's default; the operator's
// grant decides.
type ManifestLimits struct {
	Fuel   uint64 `json:"fuel,omitempty"`   // per role call
	Memory uint64 `json:"memory,omitempty"` // bytes
}

var (
	guestName  = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?$`)
	actionName = regexp.MustCompile(`^[\x21-\x7e]{1,128}$`)
)

// ValidName tells whether s may name a guest.
func ValidName(s string) bool { return guestName.MatchString(s) }

// ParseManifest reads and checks a manifest. Unknown keys are an error, so that a
// misspelt one is not silently without effect. All problems are reported together.
func ParseManifest(b []byte) (*Manifest, error) {
	if len(b) > MaxManifest {
		return nil, fmt.Errorf("manifest: %d bytes, the limit is %d", len(b), MaxManifest)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var m Manifest
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("manifest: more than one JSON value")
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	return &m, nil
}

// Has tells whether the guest has a role.
func (m *Manifest) Has(r Role) bool {
	for _, have := range m.Roles {
		if have == r {
			return true
		}
	}
	return false
}

func (m *Manifest) check() error {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("manifest: "+format, args...))
	}
	if !ValidName(m.Name) {
		fail("name %q: want lower-case letters, digits, dot, dash, underscore, at most 64", m.Name)
	}
	if m.ABI != Major {
		fail("abi %d: this host runs abi %d", m.ABI, Major)
	}
	if len(m.Roles) == 0 {
		fail("roles: name at least one of parser, handler, policy")
	}
	seen := map[string]bool{}
	for _, r := range m.Roles {
		if r.Export() == "" {
			fail("role %q: want parser, handler or policy", r)
		}
		if seen["role "+string(r)] {
			fail("role %q is named twice", r)
		}
		seen["role "+string(r)] = true
	}
	for _, a := range m.ActionTypes {
		if !actionName.MatchString(a.Type) {
			fail("action type %q: want 1 to 128 printable ASCII characters", a.Type)
		}
		if seen["type "+a.Type] {
			fail("action type %q is named twice", a.Type)
		}
		seen["type "+a.Type] = true
	}
	if m.Has(RoleHandler) && len(m.ActionTypes) == 0 {
		fail("action_types: a handler names the action types it takes")
	}
	if m.Has(RoleParser) && len(m.Dialects) == 0 {
		fail("dialects: a parser names the dialects it reads")
	}
	for _, d := range m.Dialects {
		if !actionName.MatchString(d) || seen["dialect "+d] {
			fail("dialect %q: want distinct names of printable ASCII", d)
		}
		seen["dialect "+d] = true
	}
	for _, c := range m.Capabilities {
		if !strings.HasPrefix(c, "kvrt_") || seen["cap "+c] {
			fail("capability %q: want distinct names that begin with kvrt_", c)
		}
		seen["cap "+c] = true
	}
	for _, x := range m.Metrics {
		if x.Kind != "counter" && x.Kind != "gauge" && x.Kind != "histogram" {
			fail("metric %q: kind %q: want counter, gauge or histogram", x.Name, x.Kind)
		}
	}
	if len(m.Parameters) > 0 && m.Parameters[0] != '{' {
		fail("parameters: want a JSON Schema object")
	}
	return errors.Join(errs...)
}
