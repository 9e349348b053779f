package abi

// Defaults of a host. An operator may set others for a guest; a manifest may ask for
// more. A guest that stays within the defaults runs on every host of version 1.
const (
	DefaultMemory    = 1 << 20    // bytes of linear memory
	DefaultFuel      = 200_000    // one role call
	DefaultInitFuel  = 10_000_000 // _initialize, the first kvrt_arena and kvrt_init together
	DefaultIdleFuel  = 5_000_000  // one kvrt_idle: some 5 ms
	DefaultIdleCalls = 64         // role calls of an instance until kvrt_idle is due
	DefaultIdleBytes = 256 << 10  // of frames and answers, until kvrt_idle is due
	IdleOverdue      = 4          // times either: no role is called before kvrt_idle
	DefaultCallDepth = 256 << 10
	MaxAnswer        = 4 << 20 // bytes of an Answer with everything behind it
	MaxLogLines      = 16      // lines of one call
	MaxLogLine       = 1024    // bytes of one line
	FirstArena       = 4096    // bytes that kvrt_arena is asked for first, at least
	StoreHashes      = 1 << 17 // blocks of one call of kvrt_store or kvrt_gpu
	StoreClaims      = 128     // StoreClaims of one kvrt_store.retain
	PrefetchHashes   = 1 << 16 // blocks of one kvrt_fetch.prefetch

	DefaultTableElements = 32768                    // of all tables of an instance
	DefaultActions       = 1024                     // in a parser's or a policy's answer
	DefaultLogBytes      = MaxLogLines * MaxLogLine // of the lines of one call
	DefaultHostCalls     = 10_000                   // calls of host functions in one call
	DefaultHostBytes     = 16 << 20                 // that they copy for it
)

func limits() []Limit {
	return []Limit{
		{"MaxDepth", MaxDepth, "containers", "How deep a payload tree nests: a map or array lies in at most 31 others."},
		{"MaxDetail", MaxDetail, "bytes", "What is kept of a detail."},
		{"MaxManifest", MaxManifest, "bytes", "The manifest's JSON."},
		{"MaxAnswer", MaxAnswer, "bytes", "An Answer with its detail and body. A longer one is handler_error."},
		{"MaxLogLines", MaxLogLines, "lines a call", "More are dropped and counted."},
		{"MaxLogLine", MaxLogLine, "bytes", "What is kept of a log line."},
		{"FirstArena", FirstArena, "bytes", "The first kvrt_arena asks for this, or for the init frame's size when that is larger."},
		{"StoreHashes", StoreHashes, "blocks", "In one call of kvrt_store or kvrt_gpu. More: limit_exceeded."},
		{"StoreClaims", StoreClaims, "StoreClaims", "In one kvrt_store.retain. More: limit_exceeded."},
		{"PrefetchHashes", PrefetchHashes, "blocks", "In one kvrt_fetch.prefetch. More: limit_exceeded."},
		{"DefaultMemory", DefaultMemory, "bytes", "Linear memory. A module that declares a larger minimum is refused; a larger or missing maximum becomes the limit. Manifest: limits.memory."},
		{"DefaultFuel", DefaultFuel, "fuel", "One role call with what its host functions cost. Past it: handler_out_of_fuel. Manifest: limits.fuel."},
		{"DefaultInitFuel", DefaultInitFuel, "fuel", "_initialize, the first kvrt_arena and kvrt_init together; and the call of each role before the guest is offered."},
		{"DefaultIdleFuel", DefaultIdleFuel, "fuel", "One kvrt_idle. Past it the instance is given up."},
		{"DefaultIdleCalls", DefaultIdleCalls, "calls", "kvrt_idle is due after so many role calls of an instance. After IdleOverdue times as many, no role is called before it."},
		{"DefaultIdleBytes", DefaultIdleBytes, "bytes", "The same for bytes of frames and answers: after so many, however few calls they came with."},
		{"IdleOverdue", IdleOverdue, "times", "See DefaultIdleCalls."},
		{"DefaultCallDepth", DefaultCallDepth, "bytes", "Call depth: each function entered weighs 16 x (parameters + locals + deepest operand stack) + 64."},
		{"DefaultTableElements", DefaultTableElements, "entries", "All tables of an instance together. A module that declares more is refused; table.grow past it fails."},
		{"DefaultActions", DefaultActions, "actions", "In the envelope that a parser or a policy answers. More: limit_exceeded."},
		{"DefaultLogBytes", DefaultLogBytes, "bytes a call", "All log lines together. A line that does not fit is dropped and counted."},
		{"DefaultHostCalls", DefaultHostCalls, "calls", "Calls of host functions in one call. One more ends it: limit_exceeded, and a new instance."},
		{"DefaultHostBytes", DefaultHostBytes, "bytes", "What host functions copy for one call. More ends it: limit_exceeded, and a new instance."},
	}
}
