package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kvrt/kvrt/fleet/peers"
	"github.com/kvrt/kvrt/hosts/fetch/fetcher"
	"github.com/kvrt/kvrt/server"
)

// shownExchange is the exchange with peers as the server shows it.
type shownExchange struct{ *peers.Exchange }

// Sources are those of the fetcher.
func (x shownExchange) Sources() []fetcher.SourceStats { return x.Fetcher.Sources() }

// Brought is what the fetcher has brought.
func (x shownExchange) Brought() []fetcher.Brought { return x.Fetcher.Brought() }

// Readers names the peers that have asked for blocks.
func (x shownExchange) Readers() []server.Reader {
	var out []server.Reader
	for _, r := range x.Exchange.Readers() {
		name := "name:" + r.Peer.Name
		switch {
		case r.Others:
			name = "other"
		case r.Peer.Name == "":
			name = fmt.Sprint("uid:", r.Peer.UID)
		}
		out = append(out, server.Reader{Peer: name, Requests: r.Requests, Denied: r.Denied, Blocks: r.Blocks, Bytes: r.Bytes})
	}
	return out
}

// Ahead are the prefetches from peers.
func (x shownExchange) Ahead() server.AheadStatus {
	s := x.Exchange.Ahead()
	return server.AheadStatus{Waiting: s.Waiting, Running: s.Running, Blocks: s.Blocks}
}

// writeBlocks tells of the device, the block store, peers and outcomes.
func writeBlocks(line func(key, format string, args ...any), s *server.StatusReport) {
	if d := s.Device; d != nil {
		line("device", "%s: %s, %s (%s)", cell(d.Driver), cell(d.Name), cell(d.Detail), cell(d.Choice))
		if d.Batches > 0 {
			line("device copies", "%d batches, %d of them failed; %d bytes", d.Batches, d.Failed, d.Bytes)
		}
		if b := d.Blocks; b != nil {
			line("blocks on the device", "%d of %d slots of %d bytes are used, %d of them in use; %d came from the block store, %d went there", b.Used, b.Slots, b.SlotBytes, b.Leased, b.Loaded, b.Saved)
			if n := b.NoRoom + b.Failed; n > 0 {
				line("not on the device", "%d blocks found no slot, the copies of %d failed", b.NoRoom, b.Failed)
			}
			if b.Queued > 0 {
				line("device prefetches", "%d blocks wait", b.Queued)
			}
			if b.Quarantined > 0 {
				line("given to nobody", "%d places in host memory, since the lost device may write to them", b.Quarantined)
			}
			if b.LastError != "" {
				line("its last error", "%s", cell(b.LastError))
			}
		}
		if d.Lost {
			line("device lost", "nothing is copied any more; start the daemon again")
		}
	}
	if b := s.Store; b != nil {
		line("blocks", "%d, in %d of %d bytes; %d were found and %d were not", b.Blocks, b.Used, b.Capacity, b.Hits, b.Misses)
		if b.Displaced+b.Evicted > 0 {
			line("blocks that went", "%d for others, %d because a hint asked", b.Displaced, b.Evicted)
		}
		for _, p := range b.Pools {
			line("block store", "blocks of %d bytes: %d published, %d of %d slots free (%s)", p.BlockBytes, p.Published, p.Free, p.Slots, cell(b.Backing))
		}
	}
	if s.Peers != nil {
		writePeers(line, s.Peers)
	}
	if o := s.Outcomes; o != nil {
		line("outcomes", "%d hints: %d open, %d completed, %d partial, %d failed, %d superseded, %d discarded, %d expired",
			o.Accepted, o.Open, o.Completed, o.Partial, o.Failed, o.Superseded, o.Discarded, o.Expired)
		if len(o.FailedBy) > 0 {
			line("failed for", "%s", counts(o.FailedBy))
		}
		if len(o.PartialBy) > 0 {
			line("partial for", "%s", counts(o.PartialBy))
		}
	}
}

// counts lists counters by name.
func counts(by map[string]uint64) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(by)) {
		words = append(words, fmt.Sprintf("%s %d", name, by[name]))
	}
	return strings.Join(words, ", ")
}

// maxPeers bounds the sources, and the peers, that the status names.
const maxPeers = 16

func writePeers(line func(key, format string, args ...any), p *server.PeersStatus) {
	serving := "nobody"
	if len(p.Serving) > 0 {
		serving = strings.Join(p.Serving, ", ")
	}
	line("peers served at", "%s", cell(serving))
	line("served", "%d blocks, %d bytes, in %d requests, %d of them denied; %d links", p.Served.Blocks, p.Served.Bytes, p.Served.Requests, p.Served.Denied, p.Served.Links)
	for i, r := range p.Readers {
		if i == maxPeers {
			line("reader", "and %d more: see -o json", len(p.Readers)-i)
			break
		}
		if r.Requests > 0 {
			line("reader", "%s: %d blocks, %d bytes, in %d requests, %d of them denied", cell(r.Peer), r.Blocks, r.Bytes, r.Requests, r.Denied)
		}
	}
	line("fetched", "%d blocks, %d bytes, in %d operations, %d of them incomplete; %d under way", p.Fetched, p.FetchedBytes, p.Operations, p.Incomplete, p.InFlight)
	if a := p.Prefetches; a.Waiting+a.Running > 0 {
		line("prefetches", "%d run, %d wait: %d blocks", a.Running, a.Waiting, a.Blocks)
	}
	if p.RefusedAsBusy > 0 {
		line("refused as busy", "%d fetches: too many bytes were under way", p.RefusedAsBusy)
	}
	for i := range p.Sources {
		if i == maxPeers {
			line("source", "and %d more", len(p.Sources)-i)
			break
		}
		s := &p.Sources[i]
		state := "not connected"
		if s.Connected {
			state = "connected"
		}
		if s.Incarnation != "" {
			state += ", incarnation " + cell(s.Incarnation)
		}
		line("source", "%s: %s; %d blocks, %d bytes", cell(s.Source), state, s.Blocks, s.Bytes)
		if s.LastError != "" {
			line("its last error", "%s, %s", s.LastErrorAt.Format(time.RFC3339), cell(s.LastError))
		}
	}
}
