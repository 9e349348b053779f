package peers

import (
	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// fetchType is the action whose outcomes are kept.
const fetchType = "kv.fetch"

// Dispatched hears of the results of an envelope: each accepted kv.fetch has an outcome
// from here on. A refusal for a conflicting source fails the hint before it, as the
// hint store does. A hint may have ended in between, for who asks or ends requests on
// other connections does not wait for this.
func (x *Exchange) Dispatched(id hint.Identity, messageID []byte, results []hint.Result) {
	accepted := false
	for i := range results {
		r := &results[i]
		switch {
		case string(r.ActionType) != fetchType:
		case r.Status == abi.StatusAccepted:
			x.Outcomes.Accept(id, messageID, uint32(r.Index), x.cfg.Hints.Status(id).Hashes)
			accepted = true
		case r.Reason == abi.ReasonConflictingSource:
			x.Outcomes.Fail(id, abi.ReasonConflictingSource)
		}
	}
	if !accepted {
		return
	}
	switch st := x.cfg.Hints.Status(id); st.State {
	case abi.FetchStateFailed:
		x.Outcomes.Fail(id, st.Cause)
	case abi.FetchStateFinished, abi.FetchStateNone:
		x.Outcomes.Discard(id)
	}
}

// Ended says that a request has been finished or discarded: its hint has an outcome now.
// It is what [fetch.Config.Ended] is for, so that whoever ends a request, a guest too,
// ends its hint.
func (x *Exchange) Ended(id hint.Identity) { x.Outcomes.Discard(id) }

// Sweep ends what has expired, for those who listen when nothing else happens.
func (x *Exchange) Sweep() { x.Outcomes.Sweep() }
