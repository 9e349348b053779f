package kvrt

import (
	"errors"

	"github.com/kvrt/kvrt/abi"
)

// Guest is what a module is. A role that it does not have is nil.
type Guest struct {
	// Handle judges one action. envelope lists it with all others that go to this guest.
	Handle func(action Action, envelope Envelope) Answer
	// Parse turns a document of a foreign dialect into an envelope: Write, or Reject.
	Parse func(document Document) Answer
	// Formulate makes hints for a request: Write, or Accept for none.
	Formulate func(context Context) Answer
	// Init reads the guest's parameters, a map, or absent when there are none; its error
	// refuses them. Without it the guest takes none.
	Init func(parameters Value) error
	// Features are those that the guest chooses.
	Features abi.Feature

	// Heap is how many bytes of heap are made ready at the start, so that calls find
	// them and need not grow the memory. Default 512 KiB.
	Heap int
	// MaxFrame is the largest frame in bytes that the guest takes; a larger one is
	// rejected with limit_exceeded. Default 1 MiB.
	MaxFrame int
}

// Defaults of Guest.
const (
	DefaultHeap     = 512 << 10
	DefaultMaxFrame = 1 << 20
)

// registered is the module's guest.
var registered Guest

// Register makes g the module's guest. It is called once, in an init function: main
// never runs.
func Register(g Guest) {
	if registered.Handle != nil || registered.Parse != nil || registered.Formulate != nil {
		panic("kvrt.Register: a module is one guest")
	}
	if g.Heap <= 0 {
		g.Heap = DefaultHeap
	}
	if g.MaxFrame <= 0 {
		g.MaxFrame = DefaultMaxFrame
	}
	registered = g
}

// Start reads an init frame, as kvrt_init does.
func (g *Guest) Start(frame abi.InitFrame) Answer {
	parameters := at(frame, abi.OffInitFrameParameters)
	if g.Init != nil {
		if err := g.Init(parameters); err != nil {
			return Reject(abi.ReasonInvalidPayload, err.Error())
		}
	} else if !parameters.IsAbsent() && !parameters.IsNull() && (!parameters.IsMap() || parameters.Len() > 0) {
		return Reject(abi.ReasonInvalidPayload, "this guest takes no parameters")
	}
	return Answer{}
}

// errNoRole is what a role that the guest does not have answers.
var errNoRole = errors.New("the guest does not have this role")

// CallHandle reads an envelope frame and judges one of its actions, as kvrt_handle does.
// CallParse and CallFormulate do the same for the other roles. A guest has no use for
// them.
func (g *Guest) CallHandle(frame abi.EnvelopeFrame, position int) Answer {
	e := Envelope{frame}
	if g.Handle == nil || position < 0 || position >= e.Len() {
		return Reject(abi.ReasonHandlerError, errNoRole.Error())
	}
	return g.Handle(e.Action(position), e)
}

// CallParse reads a parse frame.
func (g *Guest) CallParse(frame abi.ParseFrame) Answer {
	if g.Parse == nil {
		return Reject(abi.ReasonHandlerError, errNoRole.Error())
	}
	return g.Parse(Document{frame})
}

// CallFormulate reads a context frame.
func (g *Guest) CallFormulate(frame abi.ContextFrame) Answer {
	if g.Formulate == nil {
		return Reject(abi.ReasonHandlerError, errNoRole.Error())
	}
	return g.Formulate(Context{frame})
}
