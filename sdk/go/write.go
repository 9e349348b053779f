package kvrt

import (
	"unsafe"

	"github.com/kvrt/kvrt/abi"
)

// Writer writes payloads: values first, then the map or array that holds them. One
// writer lives at a time.
type Writer struct {
	b      abi.Builder
	at     []uint32 // where the actions of an envelope begin
	copied int
}

// Node is a value that was written.
type Node = abi.Node

// Field is one entry of a map that was written.
type Field = abi.Entry

// MaxCopied is how many values may be copied into one answer: a sender decides how many
// there are, and the guest's fuel is no more than it has.
const MaxCopied = 4096

// begin starts an answer behind room for its record, in the buffer of the last one.
func begin() *Writer {
	w := &Writer{b: abi.NewBuilder(answers)}
	w.b.Open(abi.SizeAnswer)
	return w
}

// answer ends an answer.
func (w *Writer) answer() Answer {
	answers = w.b.Bytes()
	if w.copied > MaxCopied || len(answers) > abi.MaxAnswer {
		return Answer{err: "the answer is too large"}
	}
	return Answer{body: answers}
}

// answers is the buffer that answers are written into.
var answers []byte

// Rewrite takes an action and passes on another in its place: the same id, type and
// version, and the payload that payload writes.
func Rewrite(a Action, payload func(*Writer) Node) Answer {
	w := begin()
	w.action(a.record.ID(), a.record.Type(), a.record.Version(), payload)
	return w.answer()
}

// Write answers with an envelope, as a parser or a policy does. actions calls Action for
// each action of it.
func Write(protocolVersion, messageID string, actions func(*Writer)) Answer {
	w := begin()
	outer := w.b.Open(abi.SizeEnvelopeFrame)
	w.span(abi.OffEnvelopeFrameProtocolVersion, given(protocolVersion))
	w.span(abi.OffEnvelopeFrameMessageID, given(messageID))
	actions(w)
	w.b.SetU32(abi.OffEnvelopeFrameActions, w.b.U32s(w.at))
	w.b.SetU32(abi.OffEnvelopeFrameCount, uint32(len(w.at)))
	w.b.SetU32(abi.OffEnvelopeFrameTotal, uint32(len(w.at)))
	w.b.CloseFrame(abi.KindEnvelope, outer)
	return w.answer()
}

// Action writes one action of an envelope. An empty id or version is absent.
func (w *Writer) Action(id, actionType, version string, payload func(*Writer) Node) {
	w.at = append(w.at, w.action(given(id), given(actionType), given(version), payload))
}

// given is text; nil when it is empty, which is absent.
func given(s string) []byte {
	if s == "" {
		return nil
	}
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

// span writes text; nil is absent.
func (w *Writer) span(field uint32, text []byte) {
	if text != nil {
		w.b.SetSpan(field, w.b.Run(text))
	}
}

func (w *Writer) action(id, actionType, version []byte, payload func(*Writer) Node) (at uint32) {
	outer := w.b.Open(abi.SizeAction)
	w.span(abi.OffActionActionID, id)
	w.span(abi.OffActionActionType, actionType)
	w.span(abi.OffActionActionVersion, version)
	w.b.SetNode(abi.OffActionPayload, payload(w))
	return w.b.CloseAction(outer)
}

// Null is null.
func (w *Writer) Null() Node { return abi.Null() }

// Bool is a bool.
func (w *Writer) Bool(x bool) Node { return abi.Bool(x) }

// U64 is an integer.
func (w *Writer) U64(x uint64) Node { return abi.Uint(x) }

// I64 is an integer.
func (w *Writer) I64(x int64) Node { return abi.Int(x) }

// F64 is a float.
func (w *Writer) F64(x float64) Node { return abi.Float(x) }

// Text writes a string.
func (w *Writer) Text(s string) Node { return w.b.String(s) }

// Bytes writes a byte string, which only msgpack has.
func (w *Writer) Bytes(b []byte) Node { return w.b.Blob(b) }

// Hashes writes an array of integers.
func (w *Writer) Hashes(h []uint64) Node { return w.b.U64s(h) }

// Array writes an array of values that were written before.
func (w *Writer) Array(elems ...Node) Node { return w.b.Array(elems...) }

// Field writes the key of a value that was written before, for Map.
func (w *Writer) Field(key string, val Node) Field { return Field{Key: w.b.String(key), Val: val} }

// Map writes a map of fields that were written before.
func (w *Writer) Map(fields ...Field) Node { return w.b.Map(fields...) }

// Copy writes a copy of a value with all below it, at most MaxCopied values in one
// answer: past them the answer becomes limit_exceeded.
func (w *Writer) Copy(v Value) Node {
	if w.copied++; w.copied > MaxCopied {
		return abi.Null()
	}
	switch v.node.Tag {
	case abi.TagNumber:
		return w.b.Number(view(v.base.Bytes(v.node)))
	case abi.TagString:
		return w.b.String(view(v.base.Bytes(v.node)))
	case abi.TagBytes:
		return w.b.Blob(v.base.Bytes(v.node))
	case abi.TagExt:
		return w.b.Ext(v.node.Ext, v.base.Bytes(v.node))
	case abi.TagU64s:
		return w.b.U64s(v.Hashes())
	case abi.TagArray:
		elems := make([]Node, min(v.Len(), MaxCopied))
		for i := range elems {
			elems[i] = w.Copy(v.Elem(i))
		}
		w.copied += v.Len() - len(elems)
		return w.b.Array(elems...)
	case abi.TagMap:
		fields := make([]Field, min(v.Len(), MaxCopied))
		for i := range fields {
			key, val := v.Entry(i)
			fields[i].Key = w.Copy(key)
			fields[i].Val = w.Copy(val)
		}
		w.copied += v.Len() - len(fields)
		return w.b.Map(fields...)
	}
	return v.node
}
