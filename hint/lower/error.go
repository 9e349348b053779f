package lower

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// Error says which field of a request cannot be lowered, and why.
type Error struct {
	Path string // such as kv_hint.actions[0].payload.block_hashes[3]; "" is the whole request
	Msg  string
}

func (e *Error) Error() string {
	if e.Path == "" {
		return "routed request: " + e.Msg
	}
	return e.Path + ": " + e.Msg
}

func wrong(path, format string, args ...any) *Error {
	return &Error{path, fmt.Sprintf(format, args...)}
}

func actionPath(i int) string { return fmt.Sprintf("%s.actions[%d]", keyHint, i) }

// faultOf says what is wrong with an action, nil when nothing is.
func faultOf(a hint.ActionView) error {
	reason, detail := a.Fault()
	if reason == abi.ReasonNone {
		return nil
	}
	return detailError(actionPath(a.Index()), detail)
}

// detailError moves the field that a detail of package hint begins with into the path:
// "payload must be a mapping", "payload.a[0]: NaN or infinite".
func detailError(path, detail string) *Error {
	if rest, ok := strings.CutPrefix(detail, "the action "); ok {
		return &Error{path, rest}
	}
	for _, field := range []string{"payload.", "payload["} {
		if at := strings.LastIndex(detail, ": "); at > 0 && strings.HasPrefix(detail, field) {
			return &Error{path + "." + detail[:at], detail[at+2:]}
		}
	}
	for _, field := range []string{"action_id ", "action_type ", "action_version ", "payload "} {
		if rest, ok := strings.CutPrefix(detail, field); ok {
			return &Error{path + "." + strings.TrimSpace(field), rest}
		}
	}
	return &Error{path, detail}
}

// encodeError is about a value that an encoding cannot hold. Package hint calls the
// root of every tree "payload".
func encodeError(root string, err error) error {
	var e *hint.EncodeError
	if !errors.As(err, &e) {
		return err
	}
	path := root + strings.TrimPrefix(e.Path, "payload")
	return &Error{strings.TrimPrefix(path, "."), e.Msg}
}

// envelopeError says why kv_hint is no envelope: the field when it can be told, else
// what the decoder said.
func envelopeError(format hint.Format, raw []byte, err error) error {
	var bad *hint.MalformedError
	if !errors.As(err, &bad) {
		return &Error{keyHint, err.Error()}
	}
	var env object
	if kind := kindOf(format, raw); kind != "a mapping" {
		return wrong(keyHint, "must be a mapping, not %s", kind)
	}
	if err := env.read(format, raw); err == nil {
		actions := env.find("actions")
		switch {
		case actions == nil:
			return wrong(keyHint+".actions", "is missing")
		case kindOf(format, actions.val) != "a list":
			return wrong(keyHint+".actions", "must be a list, not %s", kindOf(format, actions.val))
		}
		for _, field := range []string{"protocol_version", "message_id"} {
			if rest, ok := strings.CutPrefix(bad.Msg, field+" "); ok {
				return &Error{keyHint + "." + field, rest}
			}
		}
	}
	return wrong(keyHint, "malformed envelope: %s at offset %d", bad.Msg, bad.Offset)
}
