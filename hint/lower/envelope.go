package lower

import (
	"errors"

	"github.com/kvrt/kvrt/hint"
)

func openEnvelope(dst []byte, format hint.Format, protocol, message []byte, actions int) []byte {
	if format == hint.FormatMsgpack {
		dst = quote(append(appendMapHead(dst, 3), "\xb0protocol_version"...), format, protocol)
		dst = append(quote(append(dst, "\xaamessage_id"...), format, message), "\xa7actions"...)
		return appendArrayHead(dst, actions)
	}
	dst = quote(append(dst, `{"protocol_version":`...), format, protocol)
	return append(quote(append(dst, `,"message_id":`...), format, message), `,"actions":[`...)
}

func closeEnvelope(dst []byte, format hint.Format) []byte {
	if format == hint.FormatMsgpack {
		return dst
	}
	return append(dst, "]}"...)
}

// openAction writes an action up to its payload. i counts the actions before it.
func openAction(dst []byte, format hint.Format, i int, a hint.ActionView) []byte {
	ver := a.Version
	if ver == nil {
		ver = []byte(versionOfAbsent)
	}
	if format == hint.FormatMsgpack {
		dst = quote(append(appendMapHead(dst, 4), "\xa9action_id"...), format, a.ID)
		dst = quote(append(dst, "\xabaction_type"...), format, a.Type)
		return append(quote(append(dst, "\xaeaction_version"...), format, ver), "\xa7payload"...)
	}
	if i > 0 {
		dst = append(dst, ',')
	}
	dst = quote(append(dst, `{"action_id":`...), format, a.ID)
	dst = quote(append(dst, `,"action_type":`...), format, a.Type)
	return append(quote(append(dst, `,"action_version":`...), format, ver), `,"payload":`...)
}

func closeAction(dst []byte, format hint.Format) []byte {
	if format == hint.FormatMsgpack {
		return dst
	}
	return append(dst, '}')
}

// appendTRTLLM writes the envelope with all that its sender wrote: TensorRT-LLM keeps
// keys that it does not know. Only ids and versions are made strings.
func (l *Lowerer) appendTRTLLM(dst []byte) ([]byte, error) {
	if err := l.wantPayloads(); err != nil {
		return nil, err
	}
	f, format := &l.frame, l.frame.Format()
	var env, action object
	if err := env.read(format, l.top.get(keyHint)); err != nil {
		return nil, wrong(keyHint, "%s", err.(*Error).Msg)
	}
	if err := text1(&env, keyHint, "protocol_version", f.ProtocolVersion()); err != nil {
		return nil, err
	}
	if err := text1(&env, keyHint, "message_id", f.MessageID()); err != nil {
		return nil, err
	}
	var list []byte
	if format == hint.FormatMsgpack {
		list = appendArrayHead(list, f.Len())
	} else {
		list = append(list, '[')
	}
	for i := range f.Len() {
		a := f.Action(i)
		path := actionPath(i)
		if err := action.read(format, a.RawAction()); err != nil {
			return nil, wrong(path, "%s", err.(*Error).Msg)
		}
		for _, field := range []struct {
			name string
			val  []byte
		}{{"action_id", a.ID}, {"action_type", a.Type}, {"action_version", a.Version}} {
			if err := text1(&action, path, field.name, field.val); err != nil {
				return nil, err
			}
		}
		if i > 0 && format == hint.FormatJSON {
			list = append(list, ',')
		}
		list = action.append(list)
	}
	if format == hint.FormatJSON {
		list = append(list, ']')
	}
	env.set("actions", list)
	return env.append(dst), nil
}

// text1 writes a field as a string of at least one character.
func text1(o *object, path, field string, val []byte) error {
	switch {
	case o.find(field) == nil, val == nil:
		return wrong(path+"."+field, "is missing, and TensorRT-LLM wants at least one character there")
	case len(val) == 0:
		return wrong(path+"."+field, "is empty, and TensorRT-LLM wants at least one character there")
	}
	if e := o.find(field); kindOf(o.format, e.val) != "a string" {
		e.val = quote(nil, o.format, val)
	}
	return nil
}

// AppendEnvelope appends an envelope as an engine takes it: for JSON and msgpack the
// value of kv_hints, for FormStruct SGLang's protobuf. It is for routers that hold an
// [hint.Envelope] and build the request themselves. The envelope is not changed.
func AppendEnvelope(dst []byte, engine Engine, form Form, env *hint.Envelope) ([]byte, error) {
	if form == FormSame {
		return dst, errors.New("an envelope that is no bytes has no encoding to keep: name the form")
	}
	t := Target{Engine: engine, Form: form, EnvelopeOnly: true}
	if engine == EngineUnknown {
		return dst, errors.New("name the engine")
	}
	if err := t.check(); err != nil {
		return dst, err
	}
	// The frame must have a body: payloads are forwarded from there.
	var body []byte
	var err error
	format := hint.FormatJSON
	if form == FormMsgpack {
		format = hint.FormatMsgpack
		body, err = env.AppendMsgpack(nil)
	} else {
		body, err = env.AppendJSON(nil)
	}
	if err != nil {
		var bad *hint.ActionError
		if errors.As(err, &bad) {
			err = detailError(actionPath(bad.Index), bad.Detail)
		}
		return dst, err
	}
	l := Lowerer{target: t}
	l.top = object{format: format, entries: []entry{{name: []byte(keyHint), val: body}}}
	if err := l.decode(format, body); err != nil {
		return dst, err
	}
	out, err := l.envelope(dst, &t)
	if err != nil {
		return dst, err
	}
	return out, nil
}
