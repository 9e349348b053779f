package session

import (
	"strings"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// Seed feeds the events of a routing context to the index of its namespace, in order. A
// context with a list of events, an empty one too, switches that index on. What the
// index refuses is told, and changes nothing.
func (s *Set) Seed(c *hint.Context, refused func(event int, err error)) {
	if !c.HasEvents() {
		return
	}
	f := c.Frame()
	kind := c.HashKind()
	x := s.Add(string(f.Text(abi.OffContextFrameNamespace)), Config{Kind: kind})
	tenant := string(f.Text(abi.OffContextFrameTenant))
	one := make([]uint64, 1)
	for i := range c.Events() {
		e := c.Event(i)
		event := Event{Worker: e.Worker, Tier: TierOf(e.Medium), Kind: kind, Session: e.SessionID, Tenant: tenant,
			Parent: e.Parent, HasParent: e.HasParent, Hashes: e.BlockHashes}
		switch e.Type {
		case hint.EventMatch:
			one[0] = e.BlockHash
			event.Op, event.Hashes = OpMatched, one
		case hint.EventStored:
			event.Op = OpStored
		case hint.EventRemoved:
			event.Op = OpRemoved
		case hint.EventCleared:
			event.Op = OpCleared
		}
		if _, err := x.Apply(&event); err != nil {
			refused(i, err)
		}
	}
}

// TierOf reads the medium of an event, in the spellings that serving engines have.
func TierOf(medium string) Tier {
	switch strings.ToLower(medium) {
	case "":
		return TierAbsent
	case "gpu", "hbm":
		return TierGPU
	case "cpu", "cpu_pinned", "cpu_tier1", "dram":
		return TierHost
	case "cpu_tier2", "disk", "nvme", "storage":
		return TierDisk
	case "external", "network", "remote", "shared":
		return TierExternal
	}
	return TierOther
}
