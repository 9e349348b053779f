package lower

import (
	"errors"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// The keys of a routed request that lowering reads or writes.
const (
	keyHint      = "kv_hint"
	keyHints     = "kv_hints"
	keyFlat      = "router_hint"
	keyTransfer  = "kv_transfer_params"
	keySampling  = "sampling_params"
	keyExtra     = "extra_args"
	keyLeg       = "leg"
	keyEngine    = "engine"
	keyDirective = "retention_directives"
	keyScope     = "retention_scope"
)

// Limits bounds a request. A zero field is its default.
type Limits struct {
	RequestBytes int         // default 64 MiB
	Envelope     hint.Limits // of the envelope in it
}

func (l Limits) requestBytes() int {
	if l.RequestBytes > 0 {
		return l.RequestBytes
	}
	return 64 << 20
}

// Report says what became of the hint.
type Report struct {
	Hint    bool      // the request had one
	Carried bool      // and the engine gets it, or as much as the dialect can spell
	Why     string    // why it does not, when it had one
	Dropped []Dropped // actions that the dialect cannot spell
	Headers []Header  // HTTP headers to set on the request, in lower case
}

// Dropped is an action that was left out.
type Dropped struct {
	Index int
	Type  string
	Why   string
}

// Header is one HTTP header.
type Header struct{ Name, Value string }

// Lowerer lowers requests for one target; the zero value for whom each request names. It keeps its buffers from one request to the
// next, so it serves one goroutine at a time.
type Lowerer struct {
	target Target
	limits Limits

	top   object
	frame hint.Frame
	all   []hint.Forward
	env   []byte
	keys  []uint32 // what sorting the keys of maps needs, see appendStruct
}

// New makes a Lowerer. It fails when the target contradicts itself.
func New(target Target, limits Limits) (*Lowerer, error) {
	if target.Engine != EngineUnknown {
		if err := target.check(); err != nil {
			return nil, err
		}
	}
	return &Lowerer{target: target, limits: limits}, nil
}

// Append appends what the engine is handed for a routed request. FormatUnknown stands
// for what [hint.Detect] says. The request is never changed; the answer shares no memory
// with it. On an error, an [*Error] that names the field, dst comes back as it was.
func (l *Lowerer) Append(dst []byte, format hint.Format, request []byte) ([]byte, Report, error) {
	if format == hint.FormatUnknown {
		format = hint.Detect(request)
	}
	out, report, err := l.append(dst, format, request)
	if err != nil {
		return dst, Report{}, err
	}
	return out, report, nil
}

func (l *Lowerer) append(dst []byte, format hint.Format, request []byte) ([]byte, Report, error) {
	if len(request) > l.limits.requestBytes() {
		return nil, Report{}, wrong("", "%d bytes, %d are allowed", len(request), l.limits.requestBytes())
	}
	top := &l.top
	if err := top.read(format, request); err != nil {
		return nil, Report{}, err
	}
	if name, dup := top.twice(keyHint); dup {
		return nil, Report{}, wrong(name, "is there twice")
	}
	raw := top.get(keyHint)
	if raw == nil {
		out, err := l.untouched(dst, format, request)
		return out, Report{}, err
	}
	if name, dup := top.twice(keyHints, keyTransfer, keySampling, keyExtra, keyLeg, keyEngine, keyDirective, keyScope); dup {
		return nil, Report{}, wrong(name, "is there twice")
	}
	if err := top.check(); err != nil {
		return nil, Report{}, err
	}
	target, err := l.target.from(top)
	if err != nil {
		return nil, Report{}, err
	}
	if want := target.Form.format(format); want != format {
		request, err := transcode(format, want, request, l.limits)
		if err != nil {
			return nil, Report{}, err
		}
		return l.append(dst, want, request)
	}
	if err := l.decode(format, raw); err != nil {
		return nil, Report{}, err
	}
	report := Report{Hint: true, Carried: true}
	if target.Leg == abi.LegDecode {
		if from := madeByPrefill(top); from != "" {
			report.Carried, report.Why = false, "a decode request that carries what prefill made ("+from+") does not replay the hint"
			return l.without(dst, &target, report)
		}
	}
	return l.carry(dst, &target, report)
}

// untouched is the answer for a request without a hint.
func (l *Lowerer) untouched(dst []byte, format hint.Format, request []byte) ([]byte, error) {
	want := l.target.Form.format(format)
	switch {
	case l.target.Form == FormStruct, l.target.EnvelopeOnly:
		return dst, nil
	case want == format:
		return append(dst, request...), nil
	}
	other, err := transcode(format, want, request, l.limits)
	return append(dst, other...), err
}

// without is the answer when the hint is not replayed.
func (l *Lowerer) without(dst []byte, t *Target, report Report) ([]byte, Report, error) {
	if t.Form == FormStruct || t.EnvelopeOnly {
		return dst, report, nil
	}
	l.top.remove(keyHint)
	l.top.remove(keyHints)
	if t.Engine == VLLM {
		if err := transfer(&l.top, "", nil); err != nil {
			return nil, report, err
		}
	}
	return l.top.append(dst), report, nil
}

// carry gives the engine the hint.
func (l *Lowerer) carry(dst []byte, t *Target, report Report) ([]byte, Report, error) {
	if t.Dialect != DialectEnvelope {
		return l.carryDialect(dst, t, report)
	}
	env, err := l.envelope(l.env[:0], t)
	if err != nil {
		return nil, report, err
	}
	l.env = env[:0]
	switch {
	case t.Form == FormStruct, t.EnvelopeOnly:
		return append(dst, env...), report, nil
	case t.Engine == VLLM && t.transitional():
		l.top.remove(keyHint)
		l.top.remove(keyHints)
		err = transfer(&l.top, keyHint, env)
	case t.Engine == VLLM:
		l.top.rename(keyHint, keyHints, env)
		err = transfer(&l.top, "", nil)
	default:
		l.top.rename(keyHint, keyHints, env)
	}
	if err != nil {
		return nil, report, err
	}
	return l.top.append(dst), report, nil
}

// envelope writes the envelope in the frame as an engine wants it.
func (l *Lowerer) envelope(dst []byte, t *Target) ([]byte, error) {
	switch {
	case t.Form == FormStruct:
		return l.appendProto(dst)
	case t.Engine == SGLang:
		return l.appendSGLang(dst)
	case t.Engine == TRTLLM:
		return l.appendTRTLLM(dst)
	}
	if err := l.wantPayloads(); err != nil {
		return nil, err
	}
	out, err := hint.AppendEnvelope(dst, l.frame.Format(), &l.frame, l.all)
	var bad *hint.ActionError
	if errors.As(err, &bad) {
		return nil, detailError(actionPath(bad.Index), bad.Detail)
	}
	return out, err
}

// wantPayloads refuses an action without a payload.
func (l *Lowerer) wantPayloads() error {
	for i := range l.frame.Len() {
		if l.frame.Action(i).Payload.Tag == abi.TagAbsent {
			return wrong(actionPath(i)+".payload", "is missing")
		}
	}
	return nil
}

// decode reads the envelope and wants every action of it to be sound.
func (l *Lowerer) decode(format hint.Format, raw []byte) error {
	if err := l.frame.Decode(format, raw, l.limits.Envelope); err != nil {
		return envelopeError(format, raw, err)
	}
	if err := l.texts(format, raw); err != nil {
		return err
	}
	l.all = l.all[:0]
	for i := range l.frame.Len() {
		if err := faultOf(l.frame.Action(i)); err != nil {
			return err
		}
		l.all = append(l.all, hint.Forward{Index: i})
	}
	return nil
}

// texts refuses an envelope whose version or id is of a kind that the frame has no text
// for. What is absent or null is empty.
func (l *Lowerer) texts(format hint.Format, raw []byte) error {
	if len(l.frame.ProtocolVersion()) > 0 && len(l.frame.MessageID()) > 0 {
		return nil
	}
	var env object
	if err := env.read(format, raw); err != nil {
		return wrong(keyHint, "%s", err.(*Error).Msg)
	}
	for _, name := range []string{"protocol_version", "message_id"} {
		val := env.get(name)
		if val == nil {
			continue
		}
		if kind := kindOf(format, val); kind != "a string" && kind != "a number" {
			return wrong(keyHint+"."+name, "must be a string or a number, not %s", kind)
		}
	}
	return nil
}

// format is the encoding that the request is written in.
func (f Form) format(same hint.Format) hint.Format {
	switch f {
	case FormJSON:
		return hint.FormatJSON
	case FormMsgpack:
		return hint.FormatMsgpack
	}
	return same
}

// transcode writes a whole request in the other encoding.
func transcode(from, to hint.Format, request []byte, limits Limits) ([]byte, error) {
	doc := hint.Document{Limits: hint.Limits{BodyBytes: limits.requestBytes(), FrameBytes: 1 << 30}}
	tree, root, err := doc.Append(nil, from, request)
	if err != nil {
		var bad *hint.MalformedError
		if errors.As(err, &bad) {
			return nil, wrong("", "%s at offset %d", bad.Msg, bad.Offset)
		}
		return nil, err
	}
	var out []byte
	if to == hint.FormatMsgpack {
		out, err = hint.AppendTreeMsgpack(nil, tree, root)
	} else {
		out, err = hint.AppendTreeJSON(nil, tree, root)
	}
	if err != nil {
		return nil, encodeError("", err)
	}
	return out, nil
}
