package config

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// Config is a whole kvrt.yaml with defaults filled in. Get one from [Load], [Parse] or
// [Default].
type Config struct {
	Guests         []Guest
	GuestMemory    Size // linear memory and tables of all guests together; 0: the runtime's default
	Fetch          Fetch
	RequestHints   RequestHints
	ForwardUnknown ForwardUnknown
	Listen         Listen
	Limits         Limits
	Compile        Compile
	Log            Log
	// DrainTimeout is how long a stopping daemon waits for calls in flight; 0: not at all.
	DrainTimeout time.Duration

	KVHintPolicy []Policy // in the order in which they run
	Formulate    Formulate
	Workers      []Worker
	Lineage      Lineage
	Store        Store
	GPU          GPU
	Peers        *Peers // nil: no blocks are served or fetched

	file string
	root *node // what was read; nil for Default
}

// Guest is one entry of guests.
type Guest struct {
	Name       string
	Module     string          // a path, or embedded:NAME
	SHA256     string          // 64 lower-case hex digits, or empty: not checked
	Grants     []string        // import modules that may link; nothing else does
	Parameters json.RawMessage // a JSON object in the file's key order; nil: the key is absent
	Limits     GuestLimits
	OnError    OnError
}

// Embedded returns the name in a module of the form embedded:NAME.
func (g *Guest) Embedded() (name string, ok bool) {
	return strings.CutPrefix(g.Module, embeddedPrefix)
}

const embeddedPrefix = "embedded:"

// GuestLimits bounds one guest. A zero field leaves the choice to the guest's manifest
// and the runtime's default.
type GuestLimits struct {
	Fuel          uint64 // instructions per role call
	ParseFuel     uint64 // the same of a parser
	FormulateFuel uint64 // and of a policy
	InitFuel      uint64 // instructions for the start of an instance
	IdleFuel      uint64 // instructions per kvrt_idle
	IdleCalls     uint64 // role calls after which kvrt_idle is due
	IdleBytes     Size   // bytes of frames and answers after which it is
	Memory        Size   // linear memory of one instance, a multiple of 64 KiB
	TableElements uint32 // entries of all tables of one instance
	CallDepth     Size   // what calls within a call take
	Instances     int    // size of the instance pool
	OutputBytes   Size   // longest answer
	Actions       int    // that a parser's or a policy's answer has
	LogLines      int    // per call
	LogBytes      Size   // per call
	HostCalls     uint64 // calls of host functions per call
	HostBytes     Size   // that they copy per call
}

// OnError says what a failing call does to its request. Each role does one thing: a
// policy is open, a handler rejects. The key states it; it changes nothing.
type OnError string

// Empty means what the role does.
const (
	OnErrorOpen   OnError = "open"   // the guest's contribution is left out and the request goes on
	OnErrorReject OnError = "reject" // the action is rejected
)

// Fetch configures the request hint store behind kv.fetch.
type Fetch struct {
	// AllowedSources lists scheme://host[:port][/prefixlen]. Only presence is checked
	// here; the store gives the entries their meaning. Empty: no source is allowed.
	AllowedSources []string
	TTL            time.Duration // life of a hint, from the first submission of its request
	TombstoneTTL   time.Duration // how long a finished request refuses late hints
	MaxEntries     int           // requests held at once
	MaxHashes      int           // block hashes of one hint, duplicates counted
}

// RequestHints says what becomes of hints that came with a client's request.
type RequestHints string

// The two answers.
const (
	HintsKeep  RequestHints = "keep"
	HintsStrip RequestHints = "strip"
)

// ForwardUnknown says whether actions of unknown types stay in the envelope to pass on.
type ForwardUnknown string

// The two answers.
const (
	UnknownKeep ForwardUnknown = "keep"
	UnknownDrop ForwardUnknown = "drop"
)

// Listen holds the daemon's addresses.
type Listen struct {
	Socket string // path of the Unix socket that engines talk to
	Admin  string // host:port of the admin API and the metrics; port 0 picks a free one
	HTTP   string // path of the Unix socket that routers post routing contexts to; empty: none
	// AdminInsecure lets Admin be an address that is not loopback. The admin API has no
	// authentication of its own.
	AdminInsecure bool
}

// Limits bounds what one sender may hand in, and how much guests compute at once.
type Limits struct {
	BodyBytes Size   // one encoded envelope
	Actions   int    // actions of one envelope; those beyond are rejected
	HeavyFuel uint64 // of a call that makes its guest heavy; 0: the runtime's choice
}

// Compile bounds the child processes in which guests are compiled and tried.
type Compile struct {
	Timeout   time.Duration // wall clock, and CPU time, of one child
	Memory    Size          // of one child, beyond what the program needs itself
	Cache     string        // folder; CacheOff; empty: not set
	CacheSize Size
	Children  int // at once
}

// CacheOff compiles guests in the process that runs them, and tries none.
const CacheOff = "off"

// Log configures the daemon's log.
type Log struct {
	Level  LogLevel
	Format LogFormat
}

// LogLevel is the least severe level that is written.
type LogLevel string

// Log levels, as in log/slog.
const (
	LevelDebug LogLevel = "debug"
	LevelInfo  LogLevel = "info"
	LevelWarn  LogLevel = "warn"
	LevelError LogLevel = "error"
)

// LogFormat is the shape of a log line.
type LogFormat string

// Log formats.
const (
	FormatText LogFormat = "text" // key=value
	FormatJSON LogFormat = "json" // one object a line
)

// Policy is one entry of kv_hint_policy. Whether its type exists is for whoever builds
// the policies to say.
type Policy struct {
	Type       string
	Name       string          // unique; empty: the type
	Parameters json.RawMessage // as in Guest
	Partition  Partition       // where the policy runs
}

// Called is the policy's name.
func (p *Policy) Called() string {
	if p.Name != "" {
		return p.Name
	}
	return p.Type
}

// Partition is a routing partition; an empty field stands for every value.
type Partition struct {
	Model, Group, WorkerType string
}

// Formulate says what policies may add to an envelope, and what they can count on.
type Formulate struct {
	KVFetch    KVFetchRule
	KVRetain   KVRetainRule
	Payloads   PayloadRule
	Partitions []Supply
}

// KVFetchRule says how many kv.fetch one envelope may have.
type KVFetchRule string

// The two answers.
const (
	FetchOne  KVFetchRule = "one" // a policy's, after another one, is dropped as superseded
	FetchMany KVFetchRule = "many"
)

// KVRetainRule says which schemas of kv.retain a policy may use.
type KVRetainRule string

// The two answers.
const (
	RetainAny         KVRetainRule = "any"
	RetainTokenRanges KVRetainRule = "token_ranges" // {scope, directives} alone, which vLLM reads
)

// PayloadRule says what may stand in the payloads of policies.
type PayloadRule string

// The two answers.
const (
	PayloadsAny    PayloadRule = "any"
	PayloadsStruct PayloadRule = "struct" // what a protobuf Struct holds, which SGLang reads
)

// Supply says which fields of the context the router of a partition supplies, request_id
// and selected aside, which every one does.
type Supply struct {
	Partition Partition
	Supplies  []string // as abi.ContextFieldNames has them
}

// Store configures the block store.
type Store struct {
	Capacity   Size   // memory of all blocks; 0: there is no store
	BlockBytes []Size // sizes of slots, with an equal part of the capacity each
	Checksum   bool   // have a checksum made of each block
	HugePages  bool   // where the machine has some
}

// Lineage bounds the lineage index of each namespace; 0: the index's own default.
type Lineage struct {
	MaxSessions int
	MaxNodes    int // blocks, at 64 bytes at most
}

// Worker is one entry of workers.
type Worker struct {
	ID        WorkerID
	Type      WorkerType
	Namespace string // isolates its block hashes
	BlockSize int    // tokens; 0: not set
	// Capabilities: nil when the key is absent, else the list, which may be empty. The
	// two differ: without the key a worker takes every action, with [] none.
	Capabilities *[]string
	Ranks        []Rank
}

// WorkerType is the leg that a worker serves; empty: not set.
type WorkerType string

// Worker types.
const (
	WorkerAggregated WorkerType = "aggregated"
	WorkerPrefill    WorkerType = "prefill"
	WorkerDecode     WorkerType = "decode"
)

// Rank is one data-parallel rank of a worker; an empty endpoint is not set.
type Rank struct {
	DPRank *uint32 // nil: the worker has no ranks, and this stands for all of it
	Events string
	Replay string
	Source string
}

// WorkerID is an integer in [0, 2^64) or a string; 7 and "7" are two workers.
type WorkerID struct {
	Number uint64
	Text   string // used when not empty
}

// String returns the id as it stands in JSON.
func (id WorkerID) String() string {
	if id.Text != "" {
		return strconv.Quote(id.Text)
	}
	return strconv.FormatUint(id.Number, 10)
}
