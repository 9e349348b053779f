//go:build !wasip1

// Package guesttest calls a guest natively, so that it is tested with go test and
// nothing else:
//
//	var host guesttest.Host
//	got := host.Handle(guest, 0, `{"action_type": "kv.evict", "payload": {"block_hashes": []}}`)
//	if got.Reason != abi.ReasonInvalidPayload { ... }
//
// The frames are those that a host writes, and after the call they are overwritten, as
// a host does: a guest that keeps a view of one finds noise in it.
package guesttest

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/sdk/go"
	"github.com/kvrt/kvrt/sdk/go/internal/host"
)

// Host records what guests ask of it. The zero value is ready.
type Host struct {
	// Submit is why kvrt_fetch refuses hints; the zero Reason: it takes them.
	Submit abi.Reason
	// Clock is what the clocks say, in ns.
	Clock int64
	// Identity is the request that calls serve.
	Identity hint.Identity

	// PrefetchRefuses, StoreRefuses and DeviceRefuses are why kvrt_fetch refuses prefetches,
	// and kvrt_store and kvrt_gpu refuse; the zero Reason: they do not.
	PrefetchRefuses, StoreRefuses, DeviceRefuses abi.Reason
	// Hint is how the request's hint stands, and Request are its blocks, which nobody has
	// described when it is nil.
	Hint    kvrt.HintStatus
	Request []uint64
	// InStore and OnDevice are the blocks in the block store and on the device; Memory is
	// what the device says of itself; zero: there is none.
	InStore, OnDevice []uint64
	Memory            kvrt.DeviceMemory

	Log      []string // lines, as "warn: text"
	Submits  []Submit // hints that were taken
	Discards int
	Finishes []bool   // each: aborted
	Effects  []Effect // on blocks, in order
}

// Effect is something that a guest has done with blocks.
type Effect struct {
	Function string // such as kvrt_store.evict
	Source   string // of kvrt_fetch.prefetch
	Hashes   []uint64
	Scope    string // of kvrt_store.retain, as are the claims
	Claims   []kvrt.Claim
}

// Submit is a hint that a guest handed to kvrt_fetch.
type Submit struct {
	Source string // empty: none
	Hashes []uint64
	Flags  abi.FetchFlag
}

// Outcome is what a guest answered.
type Outcome struct {
	Status abi.Status
	Reason abi.Reason
	Detail string
	// Body is what was written, as JSON: an action that is passed on, or an envelope.
	Body string
}

// one guards the host that host functions find: one test calls a guest at a time.
var one sync.Mutex

// call makes a call of a guest with h for its host.
func (h *Host) call(frame []byte, role func() kvrt.Answer) Outcome {
	one.Lock()
	defer one.Unlock()
	host.Set(native{h})
	defer host.Set(nil)
	out := outcome(role().Result(nil))
	for i := range frame {
		frame[i] = 0xa5
	}
	return out
}

// Init starts a guest with parameters as JSON text; empty: none. It returns why the
// guest refused, or "".
func (h *Host) Init(g kvrt.Guest, parameters string) string {
	frame := abi.BeginInit(nil, abi.FeatureRawPayload, "guest")
	var root abi.Node
	if parameters != "" {
		var err error
		if frame, root, err = hint.AppendTree(frame, abi.FormatJSON, []byte(parameters)); err != nil {
			panic("guesttest: " + err.Error())
		}
	}
	frame = abi.FinishInit(frame, root)
	return h.call(frame, func() kvrt.Answer { return g.Start(frame) }).Detail
}

// Handle calls a handler for the action at a position of several, each given as JSON
// text.
func (h *Host) Handle(g kvrt.Guest, position int, actions ...string) Outcome {
	var f hint.Frame
	body := `{"protocol_version":"0.1","message_id":"m1","actions":[` + strings.Join(actions, ",") + `]}`
	if err := f.Decode(abi.FormatJSON, []byte(body), hint.Limits{}); err != nil {
		panic("guesttest: " + err.Error())
	}
	f.Finish(h.Identity)
	all := make([]int32, len(actions))
	for i := range all {
		all[i] = int32(i)
	}
	frame := f.AppendSubset(nil, all, g.Features&abi.FeatureRawPayload != 0)
	return h.call(frame, func() kvrt.Answer { return g.CallHandle(frame, position) })
}

// Parse calls a parser for a document.
func (h *Host) Parse(g kvrt.Guest, format abi.Format, document []byte, dialect string) Outcome {
	frame := abi.BeginParse(nil, format, document, h.Identity.RequestID, dialect)
	frame, root, err := hint.AppendTree(frame, format, document)
	if err != nil {
		root = abi.Node{} // neither JSON nor msgpack: the parser has the bytes
	}
	frame = abi.FinishParse(frame, root)
	return h.call(frame, func() kvrt.Answer { return g.CallParse(frame) })
}

// Formulate calls a policy for a context given as JSON text.
func (h *Host) Formulate(g kvrt.Guest, context string) Outcome {
	var c hint.Context
	if err := c.Decode(abi.FormatJSON, []byte(context), hint.ContextOptions{}); err != nil {
		panic("guesttest: " + err.Error())
	}
	frame := bytes.Clone(c.Bytes())
	return h.call(frame, func() kvrt.Answer { return g.CallFormulate(frame) })
}

// outcome reads a role's return value, as a host does.
func outcome(number int64, record []byte) Outcome {
	if record == nil {
		r, ok := abi.SplitResult(number)
		switch {
		case !ok:
			panic(fmt.Sprintf("guesttest: the guest returned %d", number))
		case r.Reason != abi.ReasonNone:
			return Outcome{Status: abi.StatusRejected, Reason: r.Reason}
		}
		return Outcome{Status: abi.StatusAccepted}
	}
	a, err := abi.CheckAnswer(record)
	if err == nil && a.Body != nil {
		if err = abi.CheckAction(a.Body); err != nil && abi.U32(a.Body, abi.OffEnvelopeFrameKind) == uint32(abi.KindEnvelope) {
			err = abi.CheckEnvelope(a.Body)
		}
	}
	if err != nil {
		panic("guesttest: the guest's answer: " + err.Error())
	}
	return Outcome{a.Status, a.Reason, string(a.Detail), bodyJSON(a.Body)}
}

// bodyJSON prints an action or an envelope. The two are told apart by their first field:
// the kind of an envelope is smaller than any action's size.
func bodyJSON(b []byte) string {
	if b == nil || abi.U32(b, abi.OffEnvelopeFrameKind) != uint32(abi.KindEnvelope) {
		return actionJSON(b)
	}
	e := abi.EnvelopeFrame(b)
	actions := make([]string, e.Count())
	for i := range actions {
		actions[i] = actionJSON(e.Action(i))
	}
	return fmt.Sprintf(`{"protocol_version":%s,"message_id":%s,"actions":[%s]}`, quote(e.ProtocolVersion()), quote(e.MessageID()), strings.Join(actions, ","))
}

func actionJSON(a abi.Action) string {
	if a == nil {
		return ""
	}
	payload, err := hint.AppendTreeJSON(nil, abi.Base(a), a.Payload())
	if err != nil {
		payload = []byte(strconv.Quote(err.Error())) // bytes and extensions have no JSON
	}
	var fields []string
	for _, f := range []struct {
		key  string
		text []byte
	}{{"action_id", a.ID()}, {"action_type", a.Type()}, {"action_version", a.Version()}} {
		if f.text != nil {
			fields = append(fields, strconv.Quote(f.key)+":"+quote(f.text))
		}
	}
	return "{" + strings.Join(append(fields, `"payload":`+string(payload)), ",") + "}"
}

// quote is a string of JSON; nil is null.
func quote(b []byte) string {
	if b == nil {
		return "null"
	}
	var w abi.Builder
	n := w.String(string(b))
	out, err := hint.AppendTreeJSON(nil, abi.Base(w.Bytes()), n)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// native is a Host as host functions see it.
type native struct{ h *Host }

func (n native) Log(level abi.Level, line string) {
	n.h.Log = append(n.h.Log, level.String()+": "+line)
}

func (n native) Now() int64 { return n.h.Clock }

func (n native) Fetch(source string, hashes []uint64, flags abi.FetchFlag) int32 {
	if n.h.Submit != abi.ReasonNone {
		return -int32(n.h.Submit)
	}
	n.h.Submits = append(n.h.Submits, Submit{strings.Clone(source), slices.Clone(hashes), flags})
	return 0
}

func (n native) Discard() int32 {
	n.h.Discards++
	return 0
}

func (n native) Finish(aborted bool) int32 {
	n.h.Finishes = append(n.h.Finishes, aborted)
	return 0
}
