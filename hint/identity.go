package hint

import "github.com/kvrt/kvrt/abi"

// Identity names the request that an envelope is attached to. Prefill and decode
// legs share a request id and retries reuse it, so all five fields together are the
// key of everything that kvrt keeps per request. The zero value of a field is its
// default.
//
// Its strings may be views of a buffer that the caller reuses: whoever keeps an
// Identity beyond the call copies them.
type Identity struct {
	Engine    string // the serving engine that asks, as it names itself
	RequestID string
	DPRank    uint32
	Attempt   uint32
	Leg       abi.Leg
}
