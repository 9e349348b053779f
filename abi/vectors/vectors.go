// Package vectors holds the test vectors of the ABI: frames with the value that each
// language must read out of them, frames that a host must refuse, and calls across
// the boundary with what must come of them. README.md documents the notation, so
// that the JSON files can be used from any language; this package reads them for Go.
package vectors

import (
	"bytes"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
)

//go:embed *.json
var files embed.FS

// Files names the files that hold vectors of records.
func Files() []string {
	return []string{"tree", "init", "parse", "action", "envelope", "answer", "context"}
}

// File is one file of vectors.
type File struct {
	Record  string // of the ABI; Node: the bytes are a base whose first 16 bytes are the root
	Vectors []Vector
}

// Vector is the bytes of one record with everything it refers to.
type Vector struct {
	Name, What string
	Hex        Hex
	Value      any    // what the bytes say; nil when they must be refused
	Error      string // why they must be refused, for people
}

// Hex is bytes, spelled as lower-case hexadecimal digits.
type Hex []byte

// UnmarshalText reads digits.
func (h *Hex) UnmarshalText(b []byte) (err error) {
	*h, err = hex.DecodeString(string(b))
	return err
}

// Run is bytes in guest memory. Where they are a record, Value is what they say.
type Run struct {
	At     uint32
	Hex    Hex
	Record string
	Value  any
}

// Memory is a guest's memory: zero but for the runs.
type Memory struct {
	Size uint32
	Runs []Run
}

// Bytes returns the whole memory.
func (m Memory) Bytes() []byte {
	b := make([]byte, m.Size)
	for _, r := range m.Runs {
		copy(b[r.At:], r.Hex)
	}
	return b
}

// Result is what an export returned, and what a host makes of it.
type Result struct {
	Name, What, Export string
	Frame              struct{ At, Len uint32 } // where the frame lies
	Asked              uint32                   // kvrt_arena: the argument
	Memory             Memory
	Returns            Int
	Verdict            Verdict
}

// Verdict is what a host makes of a return value. Buffer and Refused are for
// kvrt_arena, the other fields for a role and kvrt_init.
type Verdict struct {
	Status, Reason, Features Int
	Detail                   string
	Body                     Hex
	Buffer                   *struct{ At, Size uint32 }
	Refused                  bool
}

// Call is a call of a host function.
type Call struct {
	Name, What, Module, Function string
	Host                         Host
	Memory                       Memory
	// Args are the slots as an engine may pass them: the upper half of a 32-bit
	// argument may hold anything.
	Args    []Uint
	Result  *Int     // nil when the function returns nothing
	After   []Run    // what the memory holds afterwards; the rest is as before
	Effects []Effect // that the call leaves for the commit
	Log     []Line   // lines that the host keeps
}

// Host is what a host knows before the call.
type Host struct {
	Level          Int      // the lowest log level that is kept
	NowNS          Int      `json:"now_ns"`
	MonotonicNS    Int      `json:"monotonic_ns"`
	RequestID      string   `json:"request_id"`
	AllowedSources []string `json:"allowed_sources"`
	Exchange       bool     // blocks are exchanged with other hosts
	Fetch          *Fetch
	Tenant         string   // of the request
	Lineage        *Lineage // nil: the index is off
	Workers        []Worker // the catalogue
	Store          *Store   // nil: there is no block store
	GPU            *GPU     // nil: no blocks are kept on a device
}

// GPU is what is kept on the device, which is host memory: blocks, and how many of how
// many bytes there is room for.
type GPU struct {
	BlockBytes Int `json:"block_bytes"`
	Room       Int
	Blocks     []Uint
}

// Store is what the block store knows: blocks that it has, blocks that somebody writes,
// and what the request's engine said of it (BlockSize 0: nothing).
type Store struct {
	Blocks, Filling, Request []Uint
	BlockSize                Int `json:"block_size"` // tokens
}

// Lineage is what the lineage index knows. Paths are in the order in which they were
// stored.
type Lineage struct {
	HashKind Int `json:"hash_kind"`
	Paths    []struct {
		Session, Tenant string
		Worker          WorkerID
		DPRank          *Uint `json:"dp_rank"`
		Hashes          []Uint
	}
}

// WorkerID is one of its fields.
type WorkerID struct {
	U64    *Uint
	I64    *Int
	String string
}

// Worker is a worker of the catalogue.
type Worker struct {
	ID           WorkerID
	Type         string
	Capabilities *[]string // nil: it did not tell
	Ranks        []struct {
		Rank   *Uint // nil: none was told
		Source string
	}
}

// Fetch is a request in the fetch hint store.
type Fetch struct {
	State, Hashes Int
	SubmittedNS   Int `json:"submitted_ns"`
	ExpiresNS     Int `json:"expires_ns"`
	HasSource     Int `json:"has_source"`
}

// Effect is one of its fields.
type Effect struct {
	Submit *struct {
		Source   *string
		Hashes   []Uint
		NoRetain bool `json:"no_retain"`
	}
	FetchAhead *struct { // in order, without duplicates
		Source string
		Hashes []Uint
	} `json:"fetch_ahead"`
	Discard *struct{}
	Finish  *struct{ Aborted bool }
	Evict   *struct{ Hashes []Uint } // that are gone afterwards
	// EvictAfter has those that are gone once the request has ended too.
	EvictAfter *struct{ Hashes []Uint } `json:"evict_after"`
	Prefetch   *struct{ Hashes []Uint } // that are on the device afterwards, and no others
	Retain     *struct {
		Claims []struct { // that blocks have afterwards
			Hash     Uint
			Priority Int
		}
	}
}

// Line is a line of the guest's log.
type Line struct {
	Level Int
	Text  string
}

// RoutingContext is the JSON that a router hands over, and what the ContextFrame says that
// a host makes of it.
type RoutingContext struct {
	Name, What, Document string
	Value                any    // nil when the document must be refused
	Error                string // the path of the field that is wrong
}

// Int and Uint are integers that JSON spells as strings, since a number would pass
// through a double in many languages.
type (
	Int  int64
	Uint uint64
)

// UnmarshalText reads a decimal number.
func (v *Int) UnmarshalText(b []byte) error {
	n, err := strconv.ParseInt(string(b), 10, 64)
	*v = Int(n)
	return err
}

// UnmarshalText reads a decimal number.
func (v *Uint) UnmarshalText(b []byte) error {
	n, err := strconv.ParseUint(string(b), 10, 64)
	*v = Uint(n)
	return err
}

// Load reads a file of vectors, by its name in [Files].
func Load(name string) (*File, error) {
	f := new(File)
	return f, read(name, f)
}

// Results reads the vectors of return values.
func Results() ([]Result, error) {
	var f struct{ Vectors []Result }
	err := read("results", &f)
	return f.Vectors, err
}

// Calls reads the vectors of host functions.
func Calls() ([]Call, error) {
	var f struct{ Vectors []Call }
	err := read("calls", &f)
	return f.Vectors, err
}

// Routing reads the vectors of routing contexts.
func Routing() ([]RoutingContext, error) {
	var f struct{ Vectors []RoutingContext }
	err := read("routing", &f)
	return f.Vectors, err
}

func read(name string, v any) error {
	b, err := files.ReadFile(name + ".json")
	if err != nil {
		return err
	}
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(v); err != nil {
		return fmt.Errorf("%s.json: %w", name, err)
	}
	return nil
}
