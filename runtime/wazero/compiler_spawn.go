package wazero

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"strings"
	"time"
)

// ChildReason says why a child compiled nothing.
type ChildReason string

// The reasons. The first three are the module's doing.
const (
	ChildWall    ChildReason = "wall"
	ChildCPU     ChildReason = "cpu"
	ChildMemory  ChildReason = "memory"
	ChildKilled  ChildReason = "killed"
	ChildMissing ChildReason = "missing"
	ChildBroken  ChildReason = "broken"
)

// ChildError tells that a [Compiler]'s child compiled nothing. A module that wazero
// refuses is no ChildError.
type ChildError struct {
	Reason ChildReason
	Msg    string
	Err    error // may be nil
}

func (e *ChildError) Error() string { return e.Msg }

func (e *ChildError) Unwrap() error { return e.Err }

// errWall is the cause when the clock stops a child.
var errWall = errors.New("past the time for compiling")

// spawn has a child compile the module into dir, and returns the file's path in it.
func (c *Compiler) spawn(ctx context.Context, dir string, wasm []byte, o options) (string, error) {
	j := job{
		Dir: dir, Size: len(wasm), options: o,
		CPU: seconds(cmp.Or(c.CPU, defaultTime)), Memory: cmp.Or(c.Memory, defaultMemory),
	}
	wall := cmp.Or(c.Wall, defaultTime)
	line, err := json.Marshal(j)
	if err != nil {
		return "", err
	}
	program, err := filepath.Abs(c.Program) // no search, and no dependence on the child's directory
	if err != nil {
		return "", err
	}
	limited, cancel := context.WithTimeoutCause(ctx, wall, errWall)
	defer cancel()
	cmd := exec.CommandContext(limited, program, c.Args...)
	isolate(cmd)
	var out, log head
	cmd.Env = []string{childVariable + "=" + childProtocol} // and nothing of this process's own
	cmd.Dir = dir
	cmd.Stdin = bytes.NewReader(append(append(line, '\n'), wasm...))
	cmd.Stdout, cmd.Stderr = &out, &log
	cmd.WaitDelay = time.Second
	// The kernel ties the child's life to the thread that starts it.
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", &ChildError{Reason: ChildMissing, Err: err, Msg: fmt.Sprintf("start the compiler's child: %v: name a program that this user can run", err)}
	}
	waitErr := cmd.Wait()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	var r reply
	if waitErr == nil {
		if err := json.Unmarshal(out.b, &r); err != nil || r == (reply{}) {
			return "", &ChildError{Reason: ChildBroken, Err: err, Msg: c.Program + " does not answer as the compiler's child: it must call wazero.RunChild first thing in main"}
		}
	}
	switch {
	case waitErr != nil && context.Cause(limited) == errWall:
		return "", &ChildError{Reason: ChildWall, Err: errWall, Msg: fmt.Sprintf("compiling takes longer than %v: simplify the module, or raise the compiler's wall limit if you trust it", wall)}
	case waitErr != nil:
		return "", c.died(cmd, waitErr, j, log.String())
	case memorySigns.MatchString(r.Refused + r.Failed):
		return "", memoryError(j, errors.New(r.Refused+r.Failed))
	case r.Refused != "":
		return "", errors.New(r.Refused)
	case r.Failed != "":
		return "", &ChildError{Reason: ChildBroken, Msg: fmt.Sprintf("the compiler's child %s failed: %s", c.Program, r.Failed)}
	case !filepath.IsLocal(r.File):
		return "", &ChildError{Reason: ChildBroken, Msg: "the compiler's child names a file outside of its directory"}
	}
	return r.File, nil
}

const (
	defaultTime   = 10 * time.Second
	defaultMemory = 512 << 20
)

// memorySigns is how the Go runtime, the system and the race detector say that there is
// no more memory.
var memorySigns = regexp.MustCompile("out of memory|cannot allocate memory|failed to allocate")

// cpuSign is how a child says that its CPU time is up.
const cpuSign = "the compilation's CPU time is up"

func memoryError(j job, err error) error {
	return &ChildError{Reason: ChildMemory, Err: err, Msg: fmt.Sprintf("compiling takes more than %d bytes of memory: simplify the module, or raise the compiler's memory limit if you trust it", j.Memory)}
}

// died says why a child ended without an answer.
func (c *Compiler) died(cmd *exec.Cmd, err error, j job, log string) error {
	state := cmd.ProcessState
	first, _, _ := strings.Cut(log, "\n")
	switch {
	case memorySigns.MatchString(log):
		return memoryError(j, err)
	case state == nil:
		return &ChildError{Reason: ChildKilled, Err: err, Msg: fmt.Sprintf("the compiler's child cannot be waited for: %v", err)}
	// A child that could not say it any more is told by its CPU time, of which the
	// kernel has two accounts: they differ, and most where the machine is itself a guest.
	case strings.Contains(log, cpuSign), killedBySystem(state) && state.UserTime()+state.SystemTime() >= time.Duration(j.CPU)*900*time.Millisecond:
		return &ChildError{Reason: ChildCPU, Err: err, Msg: fmt.Sprintf("compiling takes more than %d s of CPU time: simplify the module, or raise the compiler's CPU limit if you trust it", j.CPU)}
	case killedBySystem(state):
		return &ChildError{Reason: ChildKilled, Err: err, Msg: "the compiler's child was killed from outside: see whether the system ran out of memory, and load the module again"}
	}
	return &ChildError{Reason: ChildKilled, Err: err, Msg: fmt.Sprintf("the compiler's child ended with %v: %s: keep the module, it may show a defect of the engine", err, first)}
}

// head keeps the beginning of what a child writes.
type head struct{ b []byte }

const maxHead = 8 << 10

func (h *head) Write(p []byte) (int, error) {
	h.b = append(h.b, p[:min(len(p), maxHead-len(h.b))]...)
	return len(p), nil
}

func (h *head) String() string { return string(h.b) }
