package wazero

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/kvrt/kvrt/runtime"
)

// Child is what a child does beside compiling. The zero value compiles alone.
type Child struct {
	// Work does a task under the child's limits. What a task and an answer are, the
	// program alone knows: it is what [Compiler.Trial] returned, after the guest was
	// compiled, or what [Compiler.Do] was given. e compiles, or loads
	// what was compiled. An error that is a *runtime.LoadError is the guest's; any other
	// is a fault of the program.
	Work func(ctx context.Context, e runtime.Engine, task []byte) (answer []byte, err error)
}

// The variable that makes a program that calls RunChild a child, and the version of
// what the two processes say to each other.
const (
	childVariable = "KVRT_COMPILE_CHILD"
	childProtocol = "2"
)

// job is the first line that a child reads. The code and the task follow.
type job struct {
	Dir     string `json:"dir"`
	CPU     uint64 `json:"cpu"`     // seconds
	Memory  uint64 `json:"memory"`  // bytes
	Compile bool   `json:"compile"` // there is code, and what comes of it is wanted
	Code    int    `json:"code"`    // bytes
	Task    int    `json:"task"`    // bytes; without a task there is no trial
	options
}

// reply is a line that a child writes: how far it is, or with Done what came out.
type reply struct {
	Stage    stage             `json:"stage,omitempty"`
	Done     bool              `json:"done,omitempty"`
	File     string            `json:"file,omitempty"`     // where the code is, relative to the job's directory
	Answer   []byte            `json:"answer,omitempty"`   // of the task
	Problems []runtime.Problem `json:"problems,omitempty"` // rules that the guest breaks
	Refused  string            `json:"refused,omitempty"`  // the engine refuses the module
	Failed   string            `json:"failed,omitempty"`   // the child could not do its work
}

// stage is what a child is at. It becomes the first part of a rule's name.
type stage string

const (
	atAdmission stage = "admission" // the module is read and checked
	atCompile   stage = "compile"
	atTrial     stage = "trial"
)

// RunChild does the work of a [Compiler]'s child and returns true when this process is
// one. Call it first thing in main, before flags and files are read, and return from
// main when it was handled.
func RunChild(c Child) (handled bool) {
	protocol, ok := os.LookupEnv(childVariable)
	if !ok {
		return false
	}
	out := json.NewEncoder(os.Stdout)
	// A parent that has gone needs no answer.
	say := func(s stage) { _ = out.Encode(reply{Stage: s}) }
	var r reply
	if protocol == childProtocol {
		r = c.run(os.Stdin, say)
	} else {
		r.Failed = fmt.Sprintf("it is asked for protocol %s and knows %s: build both programs from the same source", protocol, childProtocol)
	}
	r.Done = true
	_ = out.Encode(r)
	return true
}

// run does a job under its limits.
func (c Child) run(in io.Reader, say func(stage)) reply {
	r := bufio.NewReader(in)
	line, err := r.ReadBytes('\n')
	var j job
	if err == nil {
		err = json.Unmarshal(line, &j)
	}
	if err != nil {
		return reply{Failed: "read the job: " + err.Error()}
	}
	if err := limit(j.CPU, j.Memory); err != nil {
		return reply{Failed: "set limits: " + err.Error()}
	}
	say(atAdmission)
	rest, err := io.ReadAll(r)
	if err != nil || len(rest) != j.Code+j.Task {
		return reply{Failed: fmt.Sprintf("read the job: %d bytes of %d: %v", len(rest), j.Code+j.Task, err)}
	}
	var out reply
	if j.Compile {
		say(atCompile)
		if out = compileJob(&j, rest[:j.Code]); out.File == "" {
			return out
		}
	}
	if j.Task > 0 {
		if j.Compile {
			say(atTrial)
		}
		c.work(&out, &j, rest[j.Code:], say)
	}
	return out
}

// compileJob compiles, and loads what came out, to see that it is whole.
func compileJob(j *job, wasm []byte) reply {
	ctx := context.Background()
	if err := compileInto(ctx, j.Dir, wasm, j.options); err != nil {
		return reply{Refused: clip(err.Error())}
	}
	file, err := onlyFile(j.Dir)
	if err != nil {
		return reply{Failed: err.Error()}
	}
	if file == "" {
		return reply{Failed: "wazero left no file"}
	}
	if err := compileInto(loadOnly(ctx), j.Dir, wasm, j.options); err != nil {
		return reply{Failed: clip("load what was compiled: " + err.Error())}
	}
	return reply{File: file}
}

// maxProblems is how many broken rules a child reports.
const maxProblems = 256

// work does the task of a job.
func (c Child) work(out *reply, j *job, task []byte, say func(stage)) {
	if c.Work == nil {
		out.Failed = "it knows no tasks: give wazero.RunChild a Work"
		return
	}
	e := &staged{Engine: Engine{dir: j.Dir}, compiled: j.Compile, say: say}
	answer, err := c.Work(context.Background(), e, task)
	var refused *runtime.LoadError
	switch {
	case errors.As(err, &refused):
		out.Problems = refused.Problems[:min(len(refused.Problems), maxProblems)]
		for i := range out.Problems {
			out.Problems[i].Msg = clip(out.Problems[i].Msg)
		}
	case err != nil:
		out.Failed = clip(err.Error())
	case len(answer) > maxAnswer:
		out.Failed = fmt.Sprintf("an answer of %d bytes, of %d at most", len(answer), maxAnswer)
	default:
		out.Answer = answer
	}
}

// staged is the engine of a task. It says when the first module is being compiled; later
// ones are mostly the same one.
type staged struct {
	Engine
	compiled bool
	say      func(stage)
}

func (e *staged) Compile(ctx context.Context, wasm []byte, opts runtime.CompileOptions) (runtime.Module, error) {
	if !e.compiled {
		e.compiled = true
		e.say(atCompile)
		defer e.say(atTrial)
	}
	return e.Engine.Compile(ctx, wasm, opts)
}

// clip keeps a reply within what the parent reads: a message may quote the module.
func clip(msg string) string { return msg[:min(len(msg), 1000)] }

// seconds rounds up: a limit of CPU time is in whole seconds.
func seconds(d time.Duration) uint64 { return uint64((d + time.Second - 1) / time.Second) }
