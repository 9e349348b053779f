package hint

import (
	"fmt"
	"unicode/utf8"

	"github.com/kvrt/kvrt/abi"
)

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

// MaxIdentity is how many bytes a string of an Identity may have.
const MaxIdentity = 512

// Check says what of the identity cannot stand in a frame, and names the field. Whoever
// takes an identity from outside calls it; [Frame.Finish] trusts what it is given.
func (id *Identity) Check() error {
	if err := checkIdentity("request_id", id.RequestID); err != nil {
		return err
	}
	if err := checkIdentity("engine", id.Engine); err != nil {
		return err
	}
	if id.Leg > abi.LegDecode {
		return fmt.Errorf("identity: leg is %d: want at most %d, %s", uint32(id.Leg), uint32(abi.LegDecode), abi.LegDecode)
	}
	return nil
}

func checkIdentity(field, text string) error {
	switch {
	case len(text) > MaxIdentity:
		return fmt.Errorf("identity: %s has %d bytes: want at most %d", field, len(text), MaxIdentity)
	case !utf8.ValidString(text):
		return fmt.Errorf("identity: %s is not UTF-8", field)
	}
	return nil
}
