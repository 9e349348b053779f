package runtime

import (
	"bytes"
	"slices"
)

// GuestSpec is one guest of a generation: a module and what the operator says of it.
type GuestSpec struct {
	// Name is unique among the loaded guests.
	Name string
	// Module is the core Wasm module.
	Module []byte
	// Source says where the module came from, for people: a path or embedded:NAME.
	Source string
	// SHA256, when given, is the digest in hex that Module must have.
	SHA256 string
	// Grants are the capabilities that the guest may import.
	Grants []string
	// Parameters is a JSON object for the guest; empty or null: none.
	Parameters []byte
	Limits     Limits
	// Policy, when set, makes the guest one of the policies that Formulate runs.
	Policy *PolicyUse
}

// equal tells whether the two would load the same guest. Source is for people and
// does not count.
func (s *GuestSpec) equal(o *GuestSpec) bool {
	return s.Name == o.Name && s.SHA256 == o.SHA256 && s.Limits == o.Limits && s.Policy.equal(o.Policy) &&
		slices.Equal(s.Grants, o.Grants) && bytes.Equal(s.Parameters, o.Parameters) && bytes.Equal(s.Module, o.Module)
}
