package runtime

import (
	"runtime"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime/admit"
)

// Limits bound one guest. A field that is 0 has its default.
type Limits struct {
	// Memory is the linear memory of one instance in bytes, a multiple of 64 KiB.
	// Default: what the manifest asks for up to MaxMemory, or 1 MiB.
	Memory uint64
	// TableElements is how many entries the tables of one instance have, all together.
	// They lie outside its memory, at 8 bytes each. Default 32,768.
	TableElements uint32
	// Instances is how many calls run side by side. Default: twice Config.Processors.
	Instances int
	// CallDepth is what calls within a call may take, in bytes as admission weighs them.
	// Default 256 KiB.
	CallDepth uint32

	// Fuel bounds a role call in instructions (cost model fuel/1). Default: what the
	// manifest asks for up to MaxFuel, or 200,000.
	Fuel uint64
	// ParseFuel and FormulateFuel bound a call of these roles. Default: Fuel.
	ParseFuel, FormulateFuel uint64
	// InitFuel bounds the start of an instance, and the smoke call. Default 10
	// million: some 10 ms. A stock Go guest takes 2.4 million, one with net/http 5.1 million.
	InitFuel uint64
	// IdleFuel bounds one call of kvrt_idle, for which a thread is held against the
	// collector of the process. Default 5 million: some 5 ms. A stock Go guest with 9 MiB
	// takes 1.5 million.
	IdleFuel uint64
	// IdleCalls and IdleBytes say when kvrt_idle is due: after so many role calls of an
	// instance, or bytes of frames and answers. Default 64, and 256 KiB. After four times
	// as much no role is called before it.
	IdleCalls, IdleBytes uint64

	// OutputBytes is the longest answer that is read. Default 4 MiB.
	OutputBytes uint32
	// Actions is how many actions a parser's or a policy's answer may have. Default 1,024.
	Actions int
	// LogLines and LogBytes bound the lines of one call. More are dropped and counted.
	// Default 16, and 16 KiB.
	LogLines, LogBytes int
	// HostCalls is how often one call may call host functions, and HostBytes what they may
	// copy for it, as they charge it. Past either the call is ended. Default 10,000, and
	// 16 MiB.
	HostCalls, HostBytes uint64
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
	maxTable        = 1 << 24
	maxDepth        = 16 << 20
	maxOutput       = 1 << 30
	maxCount        = 1 << 30
	maxBytes        = 1 << 40
	pageSize        = 64 << 10
)

// fill sets a limit that is not given, and caps one that is.
func fill[T int | uint32 | uint64](to *T, value, most T) {
	if *to <= 0 {
		*to = value
	}
	*to = min(*to, most)
}

// withDefaults fills in what is 0. The arguments are what the manifest asks for.
func (l Limits) withDefaults(memory, fuel uint64) Limits {
	if memory == 0 {
		memory = DefaultMemory
	}
	if fuel == 0 {
		fuel = DefaultFuel
	}
	fill(&l.Memory, min(memory, MaxMemory), maxMemory+1) // more is refused
	l.Memory = (l.Memory + pageSize - 1) / pageSize * pageSize
	fill(&l.TableElements, abi.DefaultTableElements, maxTable)
	fill(&l.Instances, 2*runtime.GOMAXPROCS(0), maxInstances)
	fill(&l.CallDepth, abi.DefaultCallDepth, maxDepth)
	fill(&l.Fuel, min(fuel, MaxFuel), maxFuel)
	fill(&l.ParseFuel, l.Fuel, maxFuel)
	fill(&l.FormulateFuel, l.Fuel, maxFuel)
	fill(&l.InitFuel, DefaultInitFuel, maxFuel)
	fill(&l.IdleFuel, abi.DefaultIdleFuel, maxFuel)
	fill(&l.IdleCalls, abi.DefaultIdleCalls, maxCount)
	fill(&l.IdleBytes, abi.DefaultIdleBytes, maxBytes)
	fill(&l.OutputBytes, abi.MaxAnswer, maxOutput)
	fill(&l.Actions, abi.DefaultActions, maxCount)
	fill(&l.LogLines, abi.MaxLogLines, maxCount)
	fill(&l.LogBytes, abi.DefaultLogBytes, maxCount)
	fill(&l.HostCalls, abi.DefaultHostCalls, maxCount)
	fill(&l.HostBytes, abi.DefaultHostBytes, maxBytes)
	return l
}

// admission is what the reader of modules is told: an operator may allow larger tables
// than it takes by itself.
func (l *Limits) admission() admit.Limits {
	return admit.Limits{TableElements: int(min(l.TableElements, maxTable))}
}

// roleFuel is the fuel of one call of a role.
func (l *Limits) roleFuel(role abi.Role) uint64 {
	switch role {
	case abi.RoleParser:
		return l.ParseFuel
	case abi.RolePolicy:
		return l.FormulateFuel
	}
	return l.Fuel
}
