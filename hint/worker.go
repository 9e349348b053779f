package hint

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
	"unsafe"

	"github.com/kvrt/kvrt/abi"
)

// WorkerID names a worker of the fleet: an integer in [-2^63, 2^64) or a text that is
// not empty. The integer 7 and the text "7" are two workers. It is comparable; the zero
// value names nobody.
type WorkerID struct {
	text string
	num  uint64
	tag  abi.Tag // TagU64, TagI64, TagString, or TagAbsent
}

// Worker is one data-parallel rank of a worker. A rank that nobody told is a rank of
// its own, and not rank 0.
type Worker struct {
	ID      WorkerID
	Rank    uint32
	HasRank bool
}

// UintWorker names a worker by an integer.
func UintWorker(n uint64) WorkerID { return WorkerID{num: n, tag: abi.TagU64} }

// IntWorker names a worker by an integer.
func IntWorker(n int64) WorkerID {
	node := abi.Int(n)
	return WorkerID{num: node.Val, tag: node.Tag}
}

// NamedWorker names a worker by a text. The empty text names nobody.
func NamedWorker(text string) WorkerID {
	if text == "" {
		return WorkerID{}
	}
	return WorkerID{text: text, tag: abi.TagString}
}

// WorkerAt reads the id that a Node in a guest's memory holds, whose text lies at an offset
// in that memory. The id is a view: copy its text to keep it. It is false when something
// lies outside; an id of another kind is the zero id.
func WorkerAt(mem []byte, off uint32) (id WorkerID, ok bool) {
	if uint64(off)+abi.SizeNode > uint64(len(mem)) {
		return id, false
	}
	switch n := abi.GetNode(mem, off); n.Tag {
	case abi.TagU64, abi.TagI64:
		return WorkerID{num: n.Val, tag: n.Tag}, true
	case abi.TagString:
		if n.Val > uint64(len(mem)) || uint64(n.Len) > uint64(len(mem))-n.Val {
			return id, false
		}
		run := mem[n.Val:][:n.Len]
		return NamedWorker(unsafe.String(unsafe.SliceData(run), len(run))), true
	}
	return id, true
}

// IsZero tells whether the id names nobody.
func (w WorkerID) IsZero() bool { return w.tag == abi.TagAbsent }

// Text is the id when it is a text, else "".
func (w WorkerID) Text() string { return w.text }

// Node is an integer id as the ABI has it; of a text the tag alone is set, since the
// text lies wherever the node's record puts it.
func (w WorkerID) Node() abi.Node { return abi.Node{Tag: w.tag, Val: w.num} }

// String is the id for people: a text comes in quotes.
func (w WorkerID) String() string {
	switch w.tag {
	case abi.TagU64:
		return strconv.FormatUint(w.num, 10)
	case abi.TagI64:
		return strconv.FormatInt(int64(w.num), 10)
	case abi.TagString:
		return strconv.Quote(w.text)
	}
	return "no worker"
}

// String is the worker for people, such as "7" or "7 rank 3".
func (w Worker) String() string {
	if !w.HasRank {
		return w.ID.String()
	}
	return fmt.Sprintf("%s rank %d", w.ID, w.Rank)
}

// Check says what of an id from outside cannot stand in a frame.
func (w WorkerID) Check() error {
	switch {
	case w.IsZero():
		return errors.New("worker id: want an integer or a text that is not empty")
	case len(w.text) > MaxIdentity:
		return fmt.Errorf("worker id: %d bytes, want at most %d", len(w.text), MaxIdentity)
	case !utf8.ValidString(w.text):
		return errors.New("worker id: not UTF-8")
	}
	return nil
}

// Compare orders integers by value, and before texts.
func (w WorkerID) Compare(o WorkerID) int {
	if w.tag != o.tag {
		return cmp.Compare(w.order(), o.order())
	}
	// Two's complement keeps the order of negative numbers.
	return cmp.Or(cmp.Compare(w.num, o.num), cmp.Compare(w.text, o.text))
}

func (w WorkerID) order() int {
	switch w.tag {
	case abi.TagI64:
		return 1
	case abi.TagU64:
		return 2
	case abi.TagString:
		return 3
	}
	return 0
}

// MarshalJSON writes the integer or the text.
func (w WorkerID) MarshalJSON() ([]byte, error) {
	switch w.tag {
	case abi.TagString:
		return json.Marshal(w.text)
	case abi.TagAbsent:
		return []byte("null"), nil
	}
	return []byte(w.String()), nil
}

// UnmarshalJSON reads an integer or a text; anything else is an error.
func (w *WorkerID) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var text string
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
		*w = NamedWorker(text)
		return w.Check()
	}
	if n, err := strconv.ParseUint(string(b), 10, 64); err == nil {
		*w = UintWorker(n)
		return nil
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return fmt.Errorf("worker id: %s: want an integer or a text", b)
	}
	*w = IntWorker(n)
	return nil
}
