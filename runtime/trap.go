package runtime

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kvrt/kvrt/abi"
)

// ErrClosed is returned by a runtime that has been closed.
var ErrClosed = errors.New("the runtime is closed")

// ErrUnknownGuest is returned when a name names no loaded guest.
var ErrUnknownGuest = errors.New("no such guest")

// ErrNoHistory is returned when there is nothing to roll back to.
var ErrNoHistory = errors.New("nothing to roll back to")

// ErrIdentity is returned for a request identity that no frame may hold.
var ErrIdentity = errors.New("the request's identity")

// ErrUnknownDialect is returned when no loaded parser reads a dialect.
var ErrUnknownDialect = errors.New("no parser reads this dialect")

// TrapKind says how a call ended without an answer.
type TrapKind uint8

// The kinds of trap, and the reasons they become.
const (
	TrapGuest     TrapKind = iota // the guest trapped: handler_trap
	TrapTimeout                   // past its deadline: handler_timeout
	TrapOutOfFuel                 // past its fuel: handler_out_of_fuel
	TrapHostPanic                 // a host function panicked: handler_error
	TrapQuota                     // past a quota of host functions: limit_exceeded
	NumTraps
)

// Trap is how an engine reports a call that ended without an answer. It poisons the
// instance.
type Trap struct {
	Kind TrapKind
	Msg  string // what the engine said, one line
}

func (t *Trap) Error() string { return t.Msg }

// Reason returns the code that the trapped call's action is rejected with.
func (t *Trap) Reason() abi.Reason {
	switch t.Kind {
	case TrapTimeout:
		return abi.ReasonHandlerTimeout
	case TrapOutOfFuel:
		return abi.ReasonHandlerOutOfFuel
	case TrapHostPanic:
		return abi.ReasonHandlerError
	case TrapQuota:
		return abi.ReasonLimitExceeded
	}
	return abi.ReasonHandlerTrap
}

// FatalError is a failure of the native side (a store, a fetch loop) that a host
// function reported with [Call.Fail]. Dispatch returns it to the caller; it is never
// turned into a result.
type FatalError struct {
	Guest string
	Err   error
}

func (e *FatalError) Error() string {
	return fmt.Sprintf("fatal failure under guest %s: %v", e.Guest, e.Err)
}

func (e *FatalError) Unwrap() error { return e.Err }

// Problem is one broken rule of a module or of a guest's specification.
type Problem struct {
	Rule string // stable, for scripts: "abi/missing-export", "capability/not-granted", ...
	Item string // what broke it
	Msg  string // what to do
}

func (p Problem) String() string {
	if p.Item == "" {
		return p.Rule + ": " + p.Msg
	}
	return p.Rule + ": " + p.Item + ": " + p.Msg
}

// LoadError says why a guest was refused. Every broken rule that could be found is
// listed.
type LoadError struct {
	Guest    string
	Problems []Problem
}

func (e *LoadError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return fmt.Sprintf("guest %s refused: %s", e.Guest, strings.Join(lines, "; "))
}

// ParseError is a foreign document without an envelope: the parser guest refused it,
// or could not be asked. Like a malformed envelope it is an error of the whole request.
type ParseError struct {
	Guest  string
	Reason abi.Reason
	Detail string
}

// Malformed tells whether the document is at fault, and not the guest or the host.
func (e *ParseError) Malformed() bool {
	return e.Reason.FromGuest() && e.Reason != abi.ReasonLimitExceeded
}

func (e *ParseError) Error() string {
	msg := "parser " + e.Guest + ": " + e.Reason.String()
	if e.Malformed() {
		msg = "malformed envelope: " + msg
	}
	if e.Detail != "" {
		msg += ": " + e.Detail
	}
	return msg
}
