package hint

import (
	"fmt"

	"github.com/kvrt/kvrt/abi"
)

// Forward names one action of the envelope to pass on.
type Forward struct {
	Index int    // of the action in the frame
	Block []byte // the Action record that its handler made of it, checked; nil: unchanged
}

// AppendEnvelope appends the envelope that holds the given actions of f: exactly the
// public fields in their usual order, an absent payload as an empty mapping, and what else
// is absent as an empty string, but for action_version: that is "1.0", which is what an
// absent one counts as, and not "", which is no version. An action that nobody rewrote keeps its payload
// byte for byte when format is the one it came in.
//
// With format f.Format(), actions without a fault, and blocks that [Frame.CheckForward]
// let pass, there is no error: whatever is accepted can be passed on. An error stands for
// another use: an action over the limit, an encoding that is none, or one that cannot
// hold a payload ([*ActionError] with the path). dst then comes back as it was.
func AppendEnvelope(dst []byte, format Format, f *Frame, actions []Forward) ([]byte, error) {
	w := writer{dst, format}
	if err := w.begin(f.ProtocolVersion(), f.MessageID(), len(actions)); err != nil {
		return dst, err
	}
	for i, fw := range actions {
		a := f.Action(fw.Index)
		var raw []byte
		if fw.Block != nil {
			b := abi.Base(fw.Block)
			a.ID, a.Type = b.Run(abi.GetSpan(b, abi.OffActionActionID)), b.Run(abi.GetSpan(b, abi.OffActionActionType))
			a.Version = b.Run(abi.GetSpan(b, abi.OffActionActionVersion))
			a.Base, a.Payload = b, abi.GetNode(b, abi.OffActionPayload)
		} else if a.Base == nil {
			return dst, &ActionError{fw.Index, abi.ReasonLimitExceeded, "it was not read, being over the limit"}
		} else if format == f.format {
			raw = a.RawPayload()
		}
		if a.Payload.Tag == abi.TagAbsent && raw == nil && a.RawPayload() != nil && fw.Block == nil {
			return dst, &ActionError{fw.Index, abi.ReasonInvalidPayload, "payload is " + msgDeep}
		}
		if a.Version == nil {
			a.Version = []byte(versionOfAbsent)
		}
		w.action(i, a.ID, a.Type, a.Version)
		if err := w.payload(raw, a.Base, a.Payload); err != nil {
			return dst, &ActionError{fw.Index, abi.ReasonInvalidPayload, err.Error()}
		}
	}
	return w.end(), nil
}

// versionOfAbsent is the version of an action that was sent without one.
const versionOfAbsent = "1.0"

// writer writes an envelope in either encoding.
type writer struct {
	dst    []byte
	format Format
}

// begin writes everything before the first action.
func (w *writer) begin(protocol, message []byte, actions int) error {
	switch w.format {
	case FormatJSON:
		w.dst = appendJSONString(append(w.dst, `{"protocol_version":`...), protocol)
		w.dst = appendJSONString(append(w.dst, `,"message_id":`...), message)
		w.dst = append(w.dst, `,"actions":[`...)
	case FormatMsgpack:
		w.dst = append(appendMsgpackMapHead(w.dst, 3), "\xb0protocol_version"...)
		w.dst = append(appendMsgpackString(w.dst, protocol), "\xaamessage_id"...)
		w.dst = append(appendMsgpackString(w.dst, message), "\xa7actions"...)
		w.dst = appendMsgpackArrayHead(w.dst, uint32(actions))
	default:
		return fmt.Errorf("an envelope is written as JSON or msgpack, not as %q", w.format)
	}
	return nil
}

// action writes an action up to its payload. i counts the actions written before.
func (w *writer) action(i int, id, typ, version []byte) {
	if w.format == FormatJSON {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = appendJSONString(append(w.dst, `{"action_id":`...), id)
		w.dst = appendJSONString(append(w.dst, `,"action_type":`...), typ)
		w.dst = appendJSONString(append(w.dst, `,"action_version":`...), version)
		w.dst = append(w.dst, `,"payload":`...)
		return
	}
	w.dst = append(appendMsgpackMapHead(w.dst, 4), "\xa9action_id"...)
	w.dst = append(appendMsgpackString(w.dst, id), "\xabaction_type"...)
	w.dst = append(appendMsgpackString(w.dst, typ), "\xaeaction_version"...)
	w.dst = append(appendMsgpackString(w.dst, version), "\xa7payload"...)
}

// payload writes the payload, from raw if there is any, and closes the action.
func (w *writer) payload(raw []byte, base abi.Base, root abi.Node) error {
	if root.Tag == abi.TagAbsent {
		root.Tag = abi.TagMap
	}
	var err error
	switch {
	case raw != nil:
		w.dst = append(w.dst, raw...)
	case w.format == FormatJSON:
		w.dst, err = AppendTreeJSON(w.dst, base, root)
	default:
		w.dst, err = AppendTreeMsgpack(w.dst, base, root)
	}
	if w.format == FormatJSON {
		w.dst = append(w.dst, '}')
	}
	return err
}

func (w *writer) end() []byte {
	if w.format == FormatJSON {
		w.dst = append(w.dst, "]}"...)
	}
	return w.dst
}
