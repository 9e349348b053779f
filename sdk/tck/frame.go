package tck

import (
	"fmt"
	"slices"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// Skips tells why a runtime with this guest alone would not call it for an action:
// none when it would.
func Skips(m *abi.Manifest, a hint.ActionView) (abi.Reason, string) {
	reason, detail := a.Fault()
	switch {
	case reason == abi.ReasonMalformedAction || reason == abi.ReasonLimitExceeded:
	case !slices.ContainsFunc(m.ActionTypes, func(t abi.ActionType) bool { return t.Type == string(a.Type) }):
		return abi.ReasonUnsupportedActionType, fmt.Sprintf("the guest does not take %q", a.Type)
	case reason == abi.ReasonNone && a.Payload.Tag == abi.TagAbsent:
		return abi.ReasonMalformedAction, "payload is missing"
	}
	return reason, detail
}

// HandleFrame is the frame of kvrt_handle for the given actions of an envelope, as a
// guest that chose these features gets it.
func HandleFrame(f *hint.Frame, actions []int32, features abi.Feature) []byte {
	return f.AppendSubset(nil, actions, features&abi.FeatureRawPayload != 0)
}

// ParseFrame is the frame of kvrt_parse for a document.
func ParseFrame(format abi.Format, document []byte, requestID, dialect string) []byte {
	frame := abi.BeginParse(nil, format, document, requestID, dialect)
	frame, tree, err := hint.AppendTree(frame, format, document)
	if err != nil {
		tree = abi.Node{} // neither JSON nor msgpack: the parser has the bytes
	}
	return abi.FinishParse(frame, tree)
}
