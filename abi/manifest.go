package abi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"
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
	// Requires lists the context fields that a policy cannot do without, as record
	// ContextFrame names them.
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

// ParseManifest reads and checks a manifest. Unknown, misspelt and repeated keys are
// errors, so that none is silently without effect. All problems of a well-formed
// manifest are reported together.
func ParseManifest(b []byte) (*Manifest, error) {
	if len(b) > MaxManifest {
		return nil, fmt.Errorf("manifest: %d bytes, the limit is %d", len(b), MaxManifest)
	}
	if !utf8.Valid(b) {
		return nil, errors.New("manifest: not UTF-8")
	}
	if err := checkKeys(b); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var m Manifest
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	return &m, nil
}

// checkKeys refuses what encoding/json lets pass: a key that is there twice, a key of
// the manifest itself in other letters, text after the value, and deep nesting.
func checkKeys(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := walkKeys(d, "", 1); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("text after the JSON value")
	}
	return nil
}

// walkKeys reads one value. path names it for messages.
func walkKeys(d *json.Decoder, path string, depth int) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	delim, ok := t.(json.Delim)
	if !ok {
		return nil
	}
	if depth > MaxDepth {
		return fmt.Errorf("%s: nested deeper than %d", path, MaxDepth)
	}
	seen := map[string]bool{}
	for d.More() {
		at := path
		if delim == '{' {
			k, err := d.Token()
			if err != nil {
				return err
			}
			key := k.(string) // the decoder lets no other key pass
			if at += "." + key; seen[key] {
				return fmt.Errorf("key %q is there twice", at[1:])
			}
			seen[key] = true
			if free := path == ".parameters" || len(path) > 12 && path[:12] == ".parameters."; !free && !lowerKey(key) {
				return fmt.Errorf("unknown key %q", at[1:])
			}
		}
		if err := walkKeys(d, at, depth+1); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// lowerKey tells whether a key can be one of the manifest's, which have no capitals:
// encoding/json would take others for them.
func lowerKey(s string) bool {
	return all(s, func(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' })
}

// Has tells whether the guest has a role.
func (m *Manifest) Has(r Role) bool { return slices.Contains(m.Roles, r) }
