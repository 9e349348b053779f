package hint

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/kvrt/kvrt/abi"
)

// Envelope is a batch of hints as a plain value, with exactly the public fields.
type Envelope struct {
	ProtocolVersion string
	MessageID       string
	Actions         []Action
}

// Action is one hint.
type Action struct {
	ActionID      string  `json:"action_id"`
	ActionType    string  `json:"action_type"`
	ActionVersion string  `json:"action_version"`
	Payload       Payload `json:"payload"`
}

// ActionError says what is wrong with one action of an envelope.
type ActionError struct {
	Index  int
	Reason abi.Reason
	Detail string
}

func (e *ActionError) Error() string { return fmt.Sprintf("actions[%d]: %s", e.Index, e.Detail) }

// DecodeEnvelope reads an envelope under the default limits. Unlike a dispatch it
// wants every action to be sound: the first that is not is an [*ActionError], and a
// body that is no envelope a [*MalformedError].
func DecodeEnvelope(format Format, body []byte) (Envelope, error) {
	var f Frame
	if err := f.Decode(format, body, Limits{}); err != nil {
		return Envelope{}, err
	}
	return f.Envelope()
}

// Envelope copies the frame's envelope. The first action with a fault is an
// [*ActionError].
func (f *Frame) Envelope() (Envelope, error) {
	e := Envelope{ProtocolVersion: string(f.ProtocolVersion()), MessageID: string(f.MessageID()), Actions: make([]Action, f.Len())}
	for i := range e.Actions {
		a := f.Action(i)
		if reason, detail := a.Fault(); reason != abi.ReasonNone {
			return Envelope{}, &ActionError{i, reason, detail}
		}
		payload, err := PayloadFromBase(a.Base, a.Payload)
		if err != nil {
			return Envelope{}, &ActionError{i, abi.ReasonInvalidPayload, err.Error()}
		}
		e.Actions[i] = Action{string(a.ID), string(a.Type), string(a.Version), payload}
	}
	return e, nil
}

// AppendJSON appends the envelope as compact JSON.
func (e *Envelope) AppendJSON(dst []byte) ([]byte, error) { return e.append(dst, FormatJSON) }

// AppendMsgpack appends the envelope as msgpack: maps with string keys.
func (e *Envelope) AppendMsgpack(dst []byte) ([]byte, error) { return e.append(dst, FormatMsgpack) }

func (e *Envelope) append(dst []byte, format Format) ([]byte, error) {
	if err := e.check(); err != nil {
		return dst, err
	}
	w := writer{dst, format}
	if err := w.begin([]byte(e.ProtocolVersion), []byte(e.MessageID), len(e.Actions)); err != nil {
		return dst, err
	}
	for i := range e.Actions {
		a := &e.Actions[i]
		w.action(i, []byte(a.ActionID), []byte(a.ActionType), []byte(a.ActionVersion))
		if err := w.payload(nil, a.Payload.Base(), a.Payload.Root()); err != nil {
			return dst, &ActionError{i, abi.ReasonInvalidPayload, err.Error()}
		}
	}
	return w.end(), nil
}

// check wants UTF-8, which every encoding needs.
func (e *Envelope) check() error {
	if !utf8.ValidString(e.ProtocolVersion) || !utf8.ValidString(e.MessageID) {
		return errors.New("protocol_version and message_id must be UTF-8")
	}
	for i := range e.Actions {
		a := &e.Actions[i]
		if !utf8.ValidString(a.ActionID) || !utf8.ValidString(a.ActionType) || !utf8.ValidString(a.ActionVersion) {
			return fmt.Errorf("actions[%d]: action_id, action_type and action_version must be UTF-8", i)
		}
	}
	return nil
}

// MarshalJSON implements [encoding/json.Marshaler].
func (e Envelope) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil) }

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (e *Envelope) UnmarshalJSON(src []byte) error {
	got, err := DecodeEnvelope(FormatJSON, src)
	if err == nil {
		*e = got
	}
	return err
}

// Frame makes the finished frame that decoding the envelope's bytes would give.
func (e *Envelope) Frame(id Identity) (*Frame, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	f := new(Frame)
	f.start(Limits{}.withDefaults())
	d := &f.d
	f.protocol, f.message = d.keep([]byte(e.ProtocolVersion)), d.keep([]byte(e.MessageID))
	ok := true
	for i := range e.Actions {
		a := &e.Actions[i]
		ok = ok && f.add([]byte(a.ActionID), []byte(a.ActionType), []byte(a.ActionVersion), a.Payload.Base(), a.Payload.Root())
	}
	if !ok || !d.room(0, 0) {
		return nil, errors.New("envelope: " + d.errMsg)
	}
	f.total, f.tail = len(f.acts), len(d.out)
	f.Finish(id)
	return f, nil
}
