package wazero

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"
)

// The variable that makes a program that calls RunChild a child, and the version of
// what the two processes say to each other.
const (
	childVariable = "KVRT_COMPILE_CHILD"
	childProtocol = "1"
)

// job is the first line that a child reads. The module follows.
type job struct {
	Dir    string `json:"dir"`
	CPU    uint64 `json:"cpu"`    // seconds
	Memory uint64 `json:"memory"` // bytes
	Size   int    `json:"size"`   // of the module
	options
}

// reply is what a child writes. One of the three is set.
type reply struct {
	File    string `json:"file,omitempty"`    // where the code is, relative to the job's directory
	Refused string `json:"refused,omitempty"` // the engine refuses the module
	Failed  string `json:"failed,omitempty"`  // the child could not do its work
}

// RunChild does the work of a [Compiler]'s child and returns true when this process is
// one. Call it first thing in main, before flags and files are read, and return from
// main when it was handled.
func RunChild() (handled bool) {
	protocol, ok := os.LookupEnv(childVariable)
	if !ok {
		return false
	}
	var r reply
	if protocol == childProtocol {
		r = compileJob(os.Stdin)
	} else {
		r.Failed = fmt.Sprintf("it is asked for protocol %s and knows %s: build both programs from the same source", protocol, childProtocol)
	}
	// A parent that has gone needs no answer.
	_ = json.NewEncoder(os.Stdout).Encode(r)
	return true
}

// compileJob compiles under the limits of the job, and loads what came out, to see that
// it is whole.
func compileJob(in io.Reader) reply {
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
	wasm, err := io.ReadAll(r)
	if err != nil || len(wasm) != j.Size {
		return reply{Failed: fmt.Sprintf("read the module: %d bytes of %d: %v", len(wasm), j.Size, err)}
	}
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

// clip keeps a reply within what the parent reads: a message may quote the module.
func clip(msg string) string { return msg[:min(len(msg), 1000)] }

// seconds rounds up: a limit of CPU time is in whole seconds.
func seconds(d time.Duration) uint64 { return uint64((d + time.Second - 1) / time.Second) }
