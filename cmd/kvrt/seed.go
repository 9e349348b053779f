package main

import (
	"strings"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/session"
)

// seed feeds the events of a context to the lineage index of its namespace, in order. A
// context with a list of events, an empty one too, switches the index on. What the index
// refuses is told, and changes nothing.
func seed(set *session.Set, c *hint.Context, refused func(event int, err error)) {
	if !c.HasEvents() {
		return
	}
	f := c.Frame()
	kind := abi.HashKind(f.U32(abi.OffContextFrameHashKind))
	index := set.Add(string(f.Text(abi.OffContextFrameNamespace)), session.Config{Kind: kind})
	tenant := string(f.Text(abi.OffContextFrameTenant))
	one := make([]uint64, 1)
	for i := range c.Events() {
		e := c.Event(i)
		event := session.Event{Worker: e.Worker, Tier: tierOf(e.Medium), Kind: kind, Session: e.SessionID, Tenant: tenant,
			Parent: e.Parent, HasParent: e.HasParent, Hashes: e.BlockHashes}
		switch e.Type {
		case hint.EventMatch:
			one[0] = e.BlockHash
			event.Op, event.Hashes = session.OpMatched, one
		case hint.EventStored:
			event.Op = session.OpStored
		case hint.EventRemoved:
			event.Op = session.OpRemoved
		case hint.EventCleared:
			event.Op = session.OpCleared
		}
		if _, err := index.Apply(&event); err != nil {
			refused(i, err)
		}
	}
}

// tierOf reads the medium of an event.
func tierOf(medium string) session.Tier {
	switch strings.ToLower(medium) {
	case "":
		return session.TierAbsent
	case "gpu", "hbm":
		return session.TierGPU
	case "cpu", "cpu_pinned", "cpu_tier1", "dram":
		return session.TierHost
	case "cpu_tier2", "disk", "nvme", "storage":
		return session.TierDisk
	case "external", "network", "remote", "shared":
		return session.TierExternal
	}
	return session.TierOther
}
