package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/server"
)

// The exit codes, the same for every verb.
const (
	exitOK          = 0
	exitWrong       = 1 // what was checked is wrong, or something failed
	exitUsage       = 2
	exitUnreachable = 3
	exitRefused     = 4
	exitTimeout     = 5
)

// usageError is a command line that means nothing.
type usageError struct {
	verb string // such as "kvrt dispatch"
	msg  string
}

func (e *usageError) Error() string { return e.msg + "; see " + e.verb + " --help" }

// inputError is a file, or the like, that cannot be read.
type inputError struct{ err error }

func (e *inputError) Error() string { return e.err.Error() }
func (e *inputError) Unwrap() error { return e.err }

// unreachableError is a daemon that does not answer.
type unreachableError struct {
	at    string // socket or address
	start string // the command that starts one there
	err   error
}

func (e *unreachableError) Error() string {
	cause := e.err
	var op *net.OpError
	if errors.As(cause, &op) {
		cause = op.Err
	}
	return "no daemon answers at " + e.at + " (" + cause.Error() + "); start one with: " + e.start
}

func (e *unreachableError) Unwrap() error { return e.err }

// listed is an error whose lines stand for themselves: they name what is wrong and
// where, for editors and scripts, and get no prefix.
type listed struct {
	code  int
	lines []string
}

func (e *listed) Error() string { return strings.Join(e.lines, "\n") }

// exitCode maps an error to its code. This is the one place that does.
func exitCode(err error) int {
	var (
		lines       *listed
		usage       *usageError
		input       *inputError
		unreachable *unreachableError
		refused     *runtime.LoadError
		remote      *server.RemoteError
		admin       *server.AdminError
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &lines):
		return lines.code
	case errors.As(err, &remote):
		return remoteCode(remote.Code)
	case errors.As(err, &admin):
		return adminCode(admin)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return exitTimeout
	case errors.As(err, &usage), errors.As(err, &input), errors.Is(err, runtime.ErrUnknownDialect), errors.Is(err, runtime.ErrIdentity):
		return exitUsage
	case errors.As(err, &unreachable):
		return exitUnreachable
	case errors.As(err, &refused):
		return exitRefused
	}
	return exitWrong
}

// remoteCode maps what a daemon refused with.
func remoteCode(c server.Code) int {
	switch c {
	case server.CodeUnknownDialect, server.CodeBadRequest:
		return exitUsage
	case server.CodeDraining, server.CodeTooManyConnections, server.CodeUnavailable:
		return exitUnreachable
	case server.CodeFrameTooLarge, server.CodeReplyTooLarge, server.CodeOverloaded, server.CodeUnsupportedVersion, server.CodeUnknownOp,
		server.CodeNotStored, server.CodeTooManyFollowers:
		return exitRefused
	case server.CodeFrameTimeout:
		return exitTimeout
	}
	return exitWrong
}

// configRule is the rule of a problem that is the configuration's, not a module's.
const configRule = "config"

// adminCode maps what an admin API refused. Problems are broken rules.
func adminCode(e *server.AdminError) int {
	for _, p := range e.Problems {
		if p.Rule != configRule {
			return exitRefused
		}
	}
	switch e.Status {
	case http.StatusForbidden, http.StatusMisdirectedRequest, http.StatusRequestEntityTooLarge:
		return exitRefused
	case http.StatusServiceUnavailable:
		return exitUnreachable
	}
	return exitWrong
}

// report writes an error for people. A malformed envelope, a problem of a
// configuration and a broken rule of a module come as they are, one to a line.
func report(w io.Writer, err error) {
	var (
		lines     *listed
		wrong     *config.Error
		malformed *hint.MalformedError
		parse     *runtime.ParseError
		refused   *runtime.LoadError
		admin     *server.AdminError
	)
	switch {
	case err == nil:
	case errors.As(err, &lines), errors.As(err, &wrong), errors.As(err, &malformed), errors.As(err, &parse):
		fmt.Fprintln(w, err)
	case errors.As(err, &refused):
		for _, line := range refusal(refused) {
			fmt.Fprintln(w, line)
		}
	case errors.As(err, &admin):
		fmt.Fprintln(w, "kvrt: "+admin.Text)
		for _, p := range admin.Problems {
			line := p.String()
			if p.Rule == configRule {
				line = p.Msg
			}
			fmt.Fprintln(w, line)
		}
	default:
		fmt.Fprintln(w, "kvrt: "+err.Error())
	}
}

// refusal lists why a guest was refused, one rule a line.
func refusal(e *runtime.LoadError) []string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = e.Guest + ": " + p.String()
	}
	return lines
}
