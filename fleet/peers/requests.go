package peers

import (
	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch"
)

// fetchType is the action whose outcomes are kept.
const fetchType = "kv.fetch"

// Dispatched hears of the results of an envelope: each accepted kv.fetch has an outcome
// from here on. A refusal for a conflicting source fails the hint before it, as the
// hint store does.
func (x *Exchange) Dispatched(id hint.Identity, messageID []byte, results []hint.Result) {
	for i := range results {
		r := &results[i]
		switch {
		case string(r.ActionType) != fetchType:
		case r.Status == abi.StatusAccepted:
			x.Outcomes.Accept(id, messageID, uint32(r.Index), x.cfg.Hints.Status(id).Hashes)
		case r.Reason == abi.ReasonConflictingSource:
			x.Outcomes.Fail(id, abi.ReasonConflictingSource)
		}
	}
}

// Finish ends a request, in the hint store too.
func (x *Exchange) Finish(id hint.Identity, aborted bool) {
	x.cfg.Hints.Finish(id, aborted)
	x.Outcomes.Discard(id)
}

// Discard drops the hints of a request, in the hint store too.
func (x *Exchange) Discard(id hint.Identity) {
	x.cfg.Hints.Discard(id)
	x.Outcomes.Discard(id)
}

// Status is the hint store's.
func (x *Exchange) Status(id hint.Identity) fetch.Status { return x.cfg.Hints.Status(id) }

// Sweep ends what has expired, for those who listen when nothing else happens.
func (x *Exchange) Sweep() { x.Outcomes.Sweep() }
