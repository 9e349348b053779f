package fetcher

import (
	"context"
	"errors"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/fetch/peer"
)

// Hints is the hint store; [fetch.Store] is one.
type Hints interface {
	Cover(id hint.Identity, blocks []uint64, named []bool) (fetch.Source, bool)
	AppendHashes(dst []uint64, id hint.Identity) []uint64
	Fail(id hint.Identity, cause abi.Reason) bool
}

// Local is the block store here.
type Local interface {
	peer.Sink
	// Where tells how each block stands; blockBytes is the length that it must have, 0: any.
	Where(namespace []byte, hashes []uint64, blockBytes int, out []Place)
	// Lease and Release are as in [peer.Source].
	Lease(namespace []byte, hashes []uint64, maxBytes int64, l *peer.Lease)
	Release(l *peer.Lease)
}

// Outcomes hears of what becomes of hints; [outcome.Ledger] is one.
//
// [outcome.Ledger]: github.com/kvrt/kvrt/hosts/fetch/outcome
type Outcomes interface {
	Fetched(id hint.Identity, blocks uint32, bytes uint64)
	Complete(id hint.Identity)
	Fail(id hint.Identity, why abi.Reason)
}

// Place is where a block is.
type Place uint8

const (
	Missing   Place = iota
	Filling         // on its way
	Ready           // here
	Fetchable       // at the source that the request's hint names
	Unfit           // here, with another length than the request has
)

func (p Place) String() string {
	return [...]string{"MISS", "FETCHING", "HIT", "FETCHABLE", "UNFIT", "unknown"}[min(p, 5)]
}

// DialFunc connects to a source, which an allow list accepted before.
type DialFunc func(ctx context.Context, src fetch.Source) (*peer.Link, error)

// Config wires and bounds a [Fetcher]. Hints, Local and Dial are required; a bound that
// is zero or negative takes its default.
type Config struct {
	Hints    Hints
	Local    Local
	Outcomes Outcomes // nil: nobody
	Dial     DialFunc
	Client   peer.ClientConfig // for each peer

	// Opportunistic queries call every block fetchable that a request with a live hint
	// lacks, and not only those that the hint names.
	Opportunistic bool
	// OpTimeout bounds an operation. Default 1 s.
	OpTimeout time.Duration
	// BlockBytes is what a block counts for whose request does not say. Default 1 MiB.
	BlockBytes int
	// MaxPeerBytes caps what is under way from one peer, MaxTenantBytes what is under way
	// for one tenant. Default 256 MiB and 512 MiB.
	MaxPeerBytes, MaxTenantBytes int64
	// MaxPeers caps the peers that links are kept to. Default 64.
	MaxPeers int
}

func orDefault[T int | int64 | time.Duration](v *T, def T) {
	if *v <= 0 {
		*v = def
	}
}

func (c *Config) setDefaults() {
	orDefault(&c.OpTimeout, time.Second)
	orDefault(&c.BlockBytes, 1<<20)
	orDefault(&c.MaxPeerBytes, 256<<20)
	orDefault(&c.MaxTenantBytes, 512<<20)
	orDefault(&c.MaxPeers, 64)
	if c.Outcomes == nil {
		c.Outcomes = nobody{}
	}
	if c.Client.Incarnation == 0 {
		c.Client.Incarnation = peer.NewIncarnation()
	}
}

type nobody struct{}

func (nobody) Fetched(hint.Identity, uint32, uint64) {}
func (nobody) Complete(hint.Identity)                {}
func (nobody) Fail(hint.Identity, abi.Reason)        {}

var (
	// ErrNoHint: the request has no live hint with a source.
	ErrNoHint = errors.New("the request has no live fetch hint that names a source")
	// ErrBusy: a cap on bytes under way leaves no room for one block. Nothing was tried.
	ErrBusy = errors.New("too many bytes are under way for this peer or tenant")
	// ErrClosed: the fetcher is closed.
	ErrClosed = errors.New("the fetcher is closed")
	// ErrLength: a block is here with another length than was asked for, which a fetch does
	// not replace.
	ErrLength = errors.New("a block is in the store with another length than was asked for")
	// ErrIncomplete: not every block came.
	ErrIncomplete = errors.New("the source served a part of the blocks only")
)

// IncompleteError is an [ErrIncomplete] with what the source said.
type IncompleteError struct{ Stop peer.Stop }

func (e *IncompleteError) Error() string { return ErrIncomplete.Error() + ": " + e.Stop.String() }

// Unwrap is ErrIncomplete.
func (e *IncompleteError) Unwrap() error { return ErrIncomplete }
