package pyenv

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"testing"
)

// Process is a script that carries out one command a line, each a JSON object, and
// answers each with one.
type Process struct {
	t   testing.TB
	in  *json.Encoder
	out *bufio.Scanner
}

// Start runs a script until the test ends.
func Start(t testing.TB, script string) *Process {
	t.Helper()
	cmd := exec.Command(Python(t), "-u", script)
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
			t.Errorf("%s: %v", script, err)
		}
	})
	p := &Process{t: t, in: json.NewEncoder(in), out: bufio.NewScanner(out)}
	p.out.Buffer(nil, 64<<20)
	return p
}

// Do has the script carry out a command and waits for its answer.
func (p *Process) Do(what string, args map[string]any) (answer map[string]any) {
	p.t.Helper()
	command := map[string]any{"do": what}
	for k, v := range args {
		command[k] = v
	}
	if err := p.in.Encode(command); err != nil {
		p.t.Fatal(err)
	}
	if !p.out.Scan() {
		p.t.Fatalf("no answer to %s", what)
	}
	if err := json.Unmarshal(p.out.Bytes(), &answer); err != nil {
		p.t.Fatal(err)
	}
	return answer
}
