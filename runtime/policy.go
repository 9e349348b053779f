package runtime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kvrt/kvrt/abi"
)

// PolicyUse makes a guest one of the policies that [Runtime.Formulate] runs. They run in
// the order of the specifications.
type PolicyUse struct {
	// Partition says for which requests the policy runs.
	Partition Partition
	// Supplies says which fields of the context the routers of some partitions supply. A
	// policy that runs there and requires another one is refused.
	Supplies []Supply
}

// Partition is a routing partition, or several: an empty field stands for every value.
type Partition struct {
	Model, Group, WorkerType string
}

// Supply says what the router of a partition tells. What no Supply speaks of may be
// there or not; a policy whose required field is absent from a request is then skipped
// for that request.
type Supply struct {
	Partition Partition
	Fields    []string // as abi.ContextFieldNames has them
}

func (p Partition) String() string {
	var parts []string
	for _, f := range [...]struct{ name, value string }{{"model", p.Model}, {"group", p.Group}, {"worker_type", p.WorkerType}} {
		if f.value != "" {
			parts = append(parts, f.name+" "+f.value)
		}
	}
	if parts == nil {
		return "every partition"
	}
	return "partition " + strings.Join(parts, ", ")
}

// matches tells whether a request belongs to the partition.
func (p *Partition) matches(f abi.ContextFrame) bool {
	return (p.Model == "" || p.Model == string(f.Text(abi.OffContextFrameModel))) &&
		(p.Group == "" || p.Group == string(f.Text(abi.OffContextFrameGroup))) &&
		(p.WorkerType == "" || p.WorkerType == string(f.Text(abi.OffContextFrameWorkerType)))
}

// overlaps tells whether a request may belong to both.
func (p Partition) overlaps(o Partition) bool {
	both := func(a, b string) bool { return a == "" || b == "" || a == b }
	return both(p.Model, o.Model) && both(p.Group, o.Group) && both(p.WorkerType, o.WorkerType)
}

// equal tells whether two uses are the same.
func (u *PolicyUse) equal(o *PolicyUse) bool {
	if u == nil || o == nil {
		return u == o
	}
	return u.Partition == o.Partition && slices.EqualFunc(u.Supplies, o.Supplies, func(a, b Supply) bool {
		return a.Partition == b.Partition && slices.Equal(a.Fields, b.Fields)
	})
}

// checkPolicy holds the use of a guest as a policy against its manifest.
func (e *LoadError) checkPolicy(u *PolicyUse, m *abi.Manifest) {
	if u == nil || m == nil {
		return
	}
	if !m.Has(abi.RolePolicy) {
		e.problem("spec/policy", e.Guest, fmt.Sprintf("the guest is no policy: its roles are %v", m.Roles))
		return
	}
	for _, s := range u.Supplies {
		if !u.Partition.overlaps(s.Partition) {
			continue
		}
		if lacks := abi.ContextFieldSet(m.Requires) &^ abi.ContextFieldSet(append([]string{"request_id", "selected"}, s.Fields...)); lacks != 0 {
			e.problem("policy/requires", strings.Join(lacks.Names(), ", "), "the policy requires it, and the router of "+s.Partition.String()+" does not supply it: leave the policy out there, or supply it")
		}
	}
}
