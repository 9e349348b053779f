package fetcher

import (
	"slices"
	"strings"
	"time"

	"github.com/kvrt/kvrt/hosts/fetch/peer"
)

// SourceStats is what is known of one source that links may be kept to.
type SourceStats struct {
	Source      string // as hints name it
	InUse       int    // operations
	Incarnation uint64 // of its last answer; 0: it never answered
	Client      peer.ClientStats
	// LastError is why the last operation that failed did, and LastErrorAt when; "" if
	// none did. A block that the source does not have is no error.
	LastError   string
	LastErrorAt time.Time
}

// Brought is what came from one source in all.
type Brought struct {
	Source string // "": all that are not counted apart
	Blocks uint64
	Bytes  uint64
}

// maxApart bounds the sources that are counted apart: the first that served a block. Who
// sends hints chooses among the sources that the allow list lets pass, which may be many.
const maxApart = 64

// history is what a route remembers of its source. The fetcher's lock guards it.
type history struct {
	incarnation uint64
	lastError   string
	failedAt    time.Time
}

// maxErrorText bounds what is kept of an error, in bytes: it may have words of the source.
const maxErrorText = 512

func (h *history) failed(why string) {
	h.lastError, h.failedAt = strings.ToValidUTF8(why[:min(len(why), maxErrorText)], "?"), time.Now()
}

// note takes down what a pull brought.
func (f *Fetcher) note(source string, r *route, res *peer.Result, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if res.Source != 0 {
		r.incarnation = res.Source
	}
	if err != nil {
		r.failed(err.Error())
	} else if res.Stop == peer.StopDenied {
		r.failed("the source does not let this peer read the namespace")
	}
	if res.Blocks == 0 {
		return
	}
	b := f.brought[source]
	if b == nil {
		b = &f.others
		if len(f.brought) < maxApart {
			b = &Brought{Source: strings.Clone(source)}
			f.brought[b.Source] = b
		}
	}
	b.Blocks += uint64(res.Blocks)
	b.Bytes += uint64(res.Bytes)
}

// Sources tells of the sources that links may be kept to, by name.
func (f *Fetcher) Sources() []SourceStats {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]SourceStats, 0, len(f.routes))
	for name, r := range f.routes {
		out = append(out, SourceStats{
			Source: name, InUse: r.users, Incarnation: r.incarnation, Client: r.client.Stats(), LastError: r.lastError, LastErrorAt: r.failedAt,
		})
	}
	slices.SortFunc(out, func(a, b SourceStats) int { return strings.Compare(a.Source, b.Source) })
	return out
}

// Brought tells what came from whom since the fetcher was made: of the first 64 sources
// that served a block, by name, and of all others together, last and without a name.
func (f *Fetcher) Brought() []Brought {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]Brought, 0, len(f.brought)+1)
	for _, b := range f.brought {
		out = append(out, *b)
	}
	slices.SortFunc(out, func(a, b Brought) int { return strings.Compare(a.Source, b.Source) })
	return append(out, f.others)
}
