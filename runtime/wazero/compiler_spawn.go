package wazero

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"strings"
	"time"

	"github.com/kvrt/kvrt/runtime"
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

// ChildError tells that a [Compiler]'s child did not do its work. A module that wazero
// refuses is no ChildError, nor is a guest that fails its trial. What the module is to
// blame for is a *runtime.LoadError as well, with a rule such as compile/wall: what the
// child was at (start, admission, compile, trial), and the reason.
type ChildError struct {
	Reason ChildReason
	Msg    string
	Err    error // may be nil
	stage  stage // empty: it had not begun
}

func (e *ChildError) Error() string { return e.Msg }

// Unwrap returns what caused it, and the rule that was broken.
func (e *ChildError) Unwrap() (all []error) {
	if e.Err != nil {
		all = append(all, e.Err)
	}
	switch e.Reason {
	case ChildKilled:
		if e.stage == "" {
			return all // before it knew of the module
		}
		fallthrough
	case ChildWall, ChildCPU, ChildMemory:
		rule := string(cmp.Or(e.stage, "start")) + "/" + string(e.Reason)
		all = append(all, &runtime.LoadError{Problems: []runtime.Problem{{Rule: rule, Msg: e.Msg}}})
	}
	return all
}

// errWall is the cause when the clock stops a child.
var errWall = errors.New("past the time for compiling")

// spawn has a child do a job, and returns what it answers at last.
func (c *Compiler) spawn(ctx context.Context, j job, code, task []byte) (r reply, err error) {
	leave, err := c.slot(ctx)
	if err != nil {
		return r, err
	}
	defer leave()
	j.Code, j.Task = len(code), len(task)
	j.CPU, j.Memory = seconds(cmp.Or(c.CPU, defaultCPU)), cmp.Or(c.Memory, defaultMemory)
	wall := cmp.Or(c.Wall, defaultWall)
	line, err := json.Marshal(j)
	if err != nil {
		return r, err
	}
	program, err := filepath.Abs(c.Program) // no search, and no dependence on the child's directory
	if err != nil {
		return r, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, wall, errWall)
	defer cancel()
	cmd := exec.CommandContext(limited, program, c.Args...)
	isolate(cmd)
	out, log := head{most: maxReplies}, head{most: maxLog}
	cmd.Env = []string{childVariable + "=" + childProtocol} // and nothing of this process's own
	cmd.Dir = j.Dir
	cmd.Stdin = io.MultiReader(bytes.NewReader(append(line, '\n')), bytes.NewReader(code), bytes.NewReader(task))
	cmd.Stdout, cmd.Stderr = &out, &log
	cmd.WaitDelay = time.Second
	// The kernel ties the child's life to the thread that starts it.
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		if limited.Err() != nil {
			return r, wallError(wall, "")
		}
		return r, &ChildError{Reason: ChildMissing, Err: err, Msg: fmt.Sprintf("start the compiler's child: %v: name a program that this user can run", err)}
	}
	waitErr := cmd.Wait()
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	r, at, readErr := replies(out.b)
	switch {
	case waitErr != nil && context.Cause(limited) == errWall:
		return reply{}, wallError(wall, at)
	case waitErr != nil:
		return reply{}, c.died(cmd, waitErr, j, at, log.String())
	case !r.Done:
		return reply{}, &ChildError{Reason: ChildBroken, Err: readErr, Msg: c.Program + " does not answer as the compiler's child: it must call wazero.RunChild first thing in main"}
	case len(r.Problems) > 0:
		return reply{}, &runtime.LoadError{Problems: r.Problems}
	case memorySigns.MatchString(r.Refused + r.Failed):
		return reply{}, memoryError(j, at, errors.New(r.Refused+r.Failed))
	case r.Refused != "":
		return reply{}, errors.New(r.Refused)
	case r.Failed != "":
		return reply{}, &ChildError{Reason: ChildBroken, Msg: fmt.Sprintf("the compiler's child %s failed: %s", c.Program, r.Failed)}
	case j.Compile && !filepath.IsLocal(r.File):
		return reply{}, &ChildError{Reason: ChildBroken, Msg: "the compiler's child names a file outside of its directory"}
	}
	return r, nil
}

// replies reads what a child wrote: the last line that can be read, and how far it was.
func replies(text []byte) (last reply, at stage, err error) {
	for d := json.NewDecoder(bytes.NewReader(text)); !last.Done; {
		var r reply
		if err := d.Decode(&r); err != nil {
			return reply{}, at, err
		}
		if last = r; r.Stage != "" {
			at = r.Stage
		}
	}
	return last, at, nil
}

// String says what the child was at.
func (s stage) String() string {
	switch s {
	case atAdmission:
		return "checking the module"
	case atCompile:
		return "compiling"
	case atTrial:
		return "trying the guest"
	}
	return "starting"
}

// memorySigns is how the Go runtime, the system and the race detector say that there is
// no more memory. A thread that cannot be made has no memory for its stack.
var memorySigns = regexp.MustCompile("out of memory|cannot allocate memory|failed to allocate|pthread_create failed|failed to create new OS thread")

// cpuSign is how a child says that its CPU time is up.
const cpuSign = "the compilation's CPU time is up"

func memoryError(j job, at stage, err error) error {
	return &ChildError{Reason: ChildMemory, stage: at, Err: err, Msg: at.String() + fmt.Sprintf(" takes more than %d bytes of memory: simplify the module, or raise the compiler's memory limit if you trust it", j.Memory)}
}

func wallError(wall time.Duration, at stage) error {
	return &ChildError{Reason: ChildWall, stage: at, Err: errWall, Msg: at.String() + fmt.Sprintf(" takes longer than %v: simplify the module, or raise the compiler's wall limit if you trust it", wall)}
}

// died says why a child ended without an answer.
func (c *Compiler) died(cmd *exec.Cmd, err error, j job, at stage, log string) error {
	state := cmd.ProcessState
	first, _, _ := strings.Cut(log, "\n")
	switch {
	case memorySigns.MatchString(log):
		return memoryError(j, at, err)
	case state == nil:
		return &ChildError{Reason: ChildKilled, Err: err, Msg: fmt.Sprintf("the compiler's child cannot be waited for: %v", err)}
	// A child that could not say it any more is told by its CPU time, of which the
	// kernel has two accounts: they differ, and most where the machine is itself a guest.
	case strings.Contains(log, cpuSign), killedBySystem(state) && state.UserTime()+state.SystemTime() >= time.Duration(j.CPU)*900*time.Millisecond:
		return &ChildError{Reason: ChildCPU, stage: at, Err: err, Msg: at.String() + fmt.Sprintf(" takes more than %d s of CPU time: simplify the module, or raise the compiler's CPU limit if you trust it", j.CPU)}
	case killedBySystem(state):
		return &ChildError{Reason: ChildKilled, stage: at, Err: err, Msg: "the compiler's child was killed from outside: see whether the system ran out of memory, and load the module again"}
	}
	return &ChildError{Reason: ChildKilled, stage: at, Err: err, Msg: fmt.Sprintf("the compiler's child ended with %v: %s: keep the module, it may show a defect of the engine", err, first)}
}

// head keeps the beginning of what a child writes.
type head struct {
	b    []byte
	most int
}

// What is kept of a child's log, and of its replies: an answer of maxAnswer takes a third
// more as text.
const (
	maxLog     = 8 << 10
	maxAnswer  = 4 << 20
	maxReplies = 8 << 20
)

func (h *head) Write(p []byte) (int, error) {
	h.b = append(h.b, p[:min(len(p), h.most-len(h.b))]...)
	return len(p), nil
}

func (h *head) String() string { return string(h.b) }
