package runtime

import (
	"bytes"
	"runtime"
	"slices"

	"github.com/kvrt/kvrt/abi"
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

// Limits bound one guest. A field that is 0 has its default.
type Limits struct {
	// Memory is the linear memory of one instance in bytes, a multiple of 64 KiB.
	// Default: what the manifest asks for up to MaxMemory, or 1 MiB.
	Memory uint64
	// Instances is how many calls run side by side. Default: twice GOMAXPROCS.
	Instances int
	// Fuel bounds a role call in instructions (cost model fuel/1). Default: what the
	// manifest asks for up to MaxFuel, or 200,000.
	Fuel uint64
	// InitFuel bounds the start of an instance, and the smoke call. Default 100 million.
	InitFuel uint64
	// IdleFuel bounds one call of kvrt_idle. Default 50 million.
	IdleFuel uint64
	// IdleCalls and IdleBytes say when kvrt_idle is due: after so many role calls of an
	// instance, or bytes of frames and answers. Default 64, and 256 KiB. After four times
	// as much no role is called before it.
	IdleCalls, IdleBytes uint64
}

// Defaults of Limits.
const (
	DefaultMemory = abi.DefaultMemory
	DefaultFuel   = abi.DefaultFuel
	// MaxMemory is what a manifest may ask for without the operator's word.
	MaxMemory       = 16 << 20
	MaxFuel         = 2_000_000
	DefaultInitFuel = abi.DefaultInitFuel
	maxInstances    = 1024
	maxMemory       = 4 << 30
	maxFuel         = 1 << 40
	pageSize        = 64 << 10
)

// withDefaults fills in what is 0; memory is what the manifest asks for.
func (l Limits) withDefaults(manifestMemory, manifestFuel uint64) Limits {
	if l.Memory == 0 {
		l.Memory = DefaultMemory
		if manifestMemory > 0 {
			l.Memory = min(manifestMemory, MaxMemory)
		}
	}
	l.Memory = (min(l.Memory, maxMemory+1) + pageSize - 1) / pageSize * pageSize
	if l.Instances <= 0 {
		l.Instances = 2 * runtime.GOMAXPROCS(0)
	}
	l.Instances = min(l.Instances, maxInstances)
	if l.Fuel == 0 {
		l.Fuel = DefaultFuel
		if manifestFuel > 0 {
			l.Fuel = min(manifestFuel, MaxFuel)
		}
	}
	l.Fuel = min(l.Fuel, maxFuel)
	if l.InitFuel == 0 {
		l.InitFuel = DefaultInitFuel
	}
	if l.IdleFuel == 0 {
		l.IdleFuel = abi.DefaultIdleFuel
	}
	if l.IdleCalls == 0 {
		l.IdleCalls = abi.DefaultIdleCalls
	}
	if l.IdleBytes == 0 {
		l.IdleBytes = abi.DefaultIdleBytes
	}
	l.InitFuel, l.IdleFuel = min(l.InitFuel, maxFuel), min(l.IdleFuel, maxFuel)
	l.IdleCalls, l.IdleBytes = min(l.IdleCalls, 1<<32), min(l.IdleBytes, 1<<48)
	return l
}

// equal tells whether the two would load the same guest. Source is for people and
// does not count.
func (s *GuestSpec) equal(o *GuestSpec) bool {
	return s.Name == o.Name && s.SHA256 == o.SHA256 && s.Limits == o.Limits && s.Policy.equal(o.Policy) &&
		slices.Equal(s.Grants, o.Grants) && bytes.Equal(s.Parameters, o.Parameters) && bytes.Equal(s.Module, o.Module)
}
