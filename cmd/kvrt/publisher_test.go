package main

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/kvrt/kvrt/internal/pyenv"
)

// publisher is a process with libzmq's sockets, as a serving engine has them.
type publisher struct {
	t   testing.TB
	in  *json.Encoder
	out *bufio.Scanner
}

type m map[string]any

func newPublisher(t testing.TB) *publisher {
	t.Helper()
	cmd := exec.Command(pyenv.Python(t), "-u", filepath.Join("..", "..", "kvevents", "testdata", "publisher.py"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil && !t.Failed() {
			t.Error("publisher:", err)
		}
	})
	p := &publisher{t: t, in: json.NewEncoder(in), out: bufio.NewScanner(out)}
	p.out.Buffer(nil, 1<<20)
	return p
}

// do has the publisher carry out a command and waits until it has.
func (p *publisher) do(what string, args m) {
	p.t.Helper()
	command := m{"do": what}
	for k, v := range args {
		command[k] = v
	}
	if err := p.in.Encode(command); err != nil {
		p.t.Fatal(err)
	}
	if !p.out.Scan() {
		p.t.Fatalf("publisher: no answer to %s", what)
	}
}

// publish sends one batch of events of rank 0.
func (p *publisher) publish(events ...m) {
	p.t.Helper()
	p.do("publish", m{"batches": []m{{"events": events, "data_parallel_rank": 0}}})
}

func storedEvent(parent any, hashes ...uint64) m {
	return m{"type": "stored", "parent_block_hash": parent, "block_hashes": hashes, "medium": "GPU", "session_id": "s"}
}
