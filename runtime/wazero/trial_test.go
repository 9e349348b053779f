package wazero

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kvrt/kvrt/runtime"
)

// work is what a child of this program does: a task is a word and what it needs.
func work(ctx context.Context, e runtime.Engine, task []byte) ([]byte, error) {
	word, rest, _ := bytes.Cut(task, []byte(" "))
	switch string(word) {
	case "answer":
		n, err := strconv.Atoi(string(rest))
		return bytes.Repeat([]byte("a"), n), err
	case "call": // a module, which is bare.wasm
		m, err := e.Compile(ctx, rest, runtime.CompileOptions{Hosts: []runtime.HostModule{testClock{constant}}, MemoryPages: 16})
		if err != nil {
			return nil, err
		}
		defer m.Close()
		in, err := m.Instantiate(ctx)
		if err != nil {
			return nil, err
		}
		defer in.Close()
		var stack [3]uint64
		err = in.Call(call(), runtime.ExportHandle, stack[:])
		return fmt.Append(nil, stack[0]), err
	case "compile":
		_, err := e.Compile(ctx, bomb(), runtime.CompileOptions{MemoryPages: 16})
		return nil, err
	case "refuse":
		return nil, &runtime.LoadError{Problems: []runtime.Problem{{Rule: "guest/init", Item: string(rest), Msg: strings.Repeat("m", 5000)}}}
	case "fail":
		return nil, errors.New("no such task")
	case "loop":
		for sum := byte(0); ; sum++ {
			task[0] = sum
		}
	case "memory":
		var all [][]byte
		for len(all) < 1<<20 {
			all = append(all, bytes.Repeat([]byte{1}, 1<<20))
		}
		return all[0], nil
	case "panic":
		panic("a defect")
	case "hang":
		if err := os.WriteFile(string(rest), fmt.Append(nil, os.Getpid()), 0o600); err != nil {
			return nil, err
		}
		for {
			time.Sleep(time.Hour)
		}
	}
	return nil, nil
}

// tries has each guest tried with a task.
func tries(c *Compiler, task *string) *Compiler {
	c.Trial = func(spec *runtime.GuestSpec) ([]byte, error) {
		if *task == "" {
			return nil, nil
		}
		return fmt.Append(nil, strings.ReplaceAll(*task, "NAME", spec.Name)), nil
	}
	return c
}

// load compiles bare.wasm as a guest.
func load(c *Compiler) error {
	wasm, err := os.ReadFile(filepath.Join("testdata", "bare.wasm"))
	if err != nil {
		return err
	}
	m, err := New(Config{Compiler: c}).Compile(context.Background(), wasm, runtime.CompileOptions{
		Hosts: []runtime.HostModule{testClock{constant}}, MemoryPages: 16, Spec: &runtime.GuestSpec{Name: "bare", Module: wasm},
	})
	if err != nil {
		return err
	}
	return m.Close()
}

// rule is the one rule that an error names.
func rule(t *testing.T, err error) runtime.Problem {
	t.Helper()
	var refused *runtime.LoadError
	if !errors.As(err, &refused) || len(refused.Problems) != 1 {
		t.Fatalf("got %v, want one rule", err)
	}
	return refused.Problems[0]
}

// TestTrialRefuses: what a trial finds, and what it takes of time and memory, is a rule
// that the guest breaks, and nothing is kept of it.
func TestTrialRefuses(t *testing.T) {
	task := ""
	c, count := compiler(t, "")
	tries(c, &task)
	task = "refuse NAME"
	if p := rule(t, load(c)); p.Rule != "guest/init" || p.Item != "bare" || len(p.Msg) > 1000 {
		t.Errorf("got %v", p)
	}
	if p := rule(t, load(c)); p.Rule != "guest/init" {
		t.Errorf("the second time %v", p)
	}
	children(t, count, 2)
	for want, limit := range map[string]func(){
		"trial/wall": func() { task, c.Wall = "loop", 300*time.Millisecond },
		"trial/cpu":  func() { task, c.CPU, c.Wall = "loop", time.Second, time.Minute },
		"trial/memory": func() {
			task, c.Memory, c.CPU, c.Wall = "memory", 96<<20, time.Minute, time.Minute
		},
		"trial/killed": func() { task, c.Memory = "panic", 0 },
	} {
		limit()
		if p := rule(t, load(c)); p.Rule != want {
			t.Errorf("got %v, want %s", p, want)
		}
		leftovers(t, c)
	}
	task = "fail"
	var child *ChildError
	if err := load(c); !errors.As(err, &child) || child.Reason != ChildBroken || errors.As(err, new(*runtime.LoadError)) {
		t.Errorf("a fault of the program: %v", err)
	}
	c.Trial = func(*runtime.GuestSpec) ([]byte, error) { return nil, errors.New("no description") }
	if err := load(c); err == nil || !strings.Contains(err.Error(), "no description") {
		t.Errorf("got %v", err)
	}
}

// TestTrialIsRemembered: code is tried once for each task, in a child that does not
// compile it again.
func TestTrialIsRemembered(t *testing.T) {
	c, count := compiler(t, "")
	task := "answer 1"
	tries(c, &task)
	want := 0
	expect := func(more int) {
		t.Helper()
		want += more
		if err := load(c); err != nil {
			t.Fatal(err)
		}
		children(t, count, want)
	}
	expect(1)
	expect(0)
	s, err := c.open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	key := s.key(readModule(t, "bare.wasm"), options{Pages: 16})
	index, code := s.paths(key)
	before := read(t, code)
	task = "answer 2"
	expect(1)
	expect(0)
	if !bytes.Equal(before, read(t, code)) {
		t.Error("the code has changed")
	}
	task = "answer 1"
	expect(0)
	task = ""
	expect(0)
	task = "refuse it"
	if err := load(c); err == nil {
		t.Fatal("loaded")
	}
	want++
	task = "answer 2"
	expect(0) // the refusal of one set of parameters says nothing of another
	for i := range maxTrials {
		task = fmt.Sprint("answer ", 10+i)
		expect(1)
	}
	task = "answer 1"
	expect(1) // forgotten: there is room for so many
	if info, err := os.Stat(index); err != nil || info.Size() > 4<<10 {
		t.Fatalf("the index is too large to be read: %v", err)
	}
	// Code that wazero does not look for under that name is compiled, and then tried.
	write(t, index, bytes.Replace(read(t, index), []byte(s.get(key).File), []byte(strings.Repeat("0", 64)), 1))
	task = "answer 999"
	expect(2)
	expect(0)
	leftovers(t, c)
}

// TestNothingIsKept: without a folder each load takes a child, and leaves nothing.
func TestNothingIsKept(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	c, count := compiler(t, "")
	c.Dir = ""
	task := "answer 1"
	tries(c, &task)
	for range 2 {
		if err := load(c); err != nil {
			t.Fatal(err)
		}
	}
	works(t, Config{Compiler: c})
	children(t, count, 3)
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Fatalf("left behind: %v, %v", left, err)
	}
}

func TestDo(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	c, count := compiler(t, "")
	c.Dir = ""
	do := func(task string) (string, error) {
		answer, err := c.Do(context.Background(), []byte(task))
		return string(answer), err
	}
	if got, err := do("call " + string(readModule(t, "bare.wasm"))); got != "42" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := do("answer 4000000"); len(got) != 4000000 || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	var child *ChildError
	if _, err := do("answer 5000000"); !errors.As(err, &child) || child.Reason != ChildBroken {
		t.Errorf("a long answer: %v", err)
	}
	if _, err := do("refuse it"); rule(t, err).Rule != "guest/init" {
		t.Error(err)
	}
	children(t, count, 4)
	c.Wall = 3 * time.Second // the child has begun by then, on any machine
	if _, err := do("compile"); rule(t, err).Rule != "compile/wall" {
		t.Error(err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Fatalf("left behind: %v, %v", left, err)
	}
}

// TestTrusted: a module that the program trusts is compiled in this process, by the
// digest of what was handed in.
func TestTrusted(t *testing.T) {
	c, count := compiler(t, "")
	var asked []string
	cfg := Config{Compiler: c, Trusted: func(sha256 string) bool {
		asked = append(asked, sha256)
		return sha256 == taskDigest([]byte("trusted"))
	}}
	for i, given := range []string{"trusted", "other"} {
		m, err := New(cfg).Compile(context.Background(), readModule(t, "bare.wasm"), runtime.CompileOptions{
			Hosts: []runtime.HostModule{testClock{constant}}, MemoryPages: 16, Spec: &runtime.GuestSpec{Module: []byte(given)},
		})
		if err != nil {
			t.Fatal(err)
		}
		m.Close()
		children(t, count, i)
	}
	works(t, cfg) // no specification, no trust
	if len(asked) != 2 {
		t.Errorf("asked for %v", asked)
	}
}

// TestChildrenWait: no more than so many run at once, and whoever waits may give up.
func TestChildrenWait(t *testing.T) {
	c, _ := compiler(t, "")
	c.Dir, c.Children = "", 1
	file := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancel(context.Background())
	first := make(chan error)
	go func() {
		_, err := c.Do(ctx, []byte("hang "+file))
		first <- err
	}()
	for !exists(file) {
		time.Sleep(time.Millisecond)
	}
	impatient, give := context.WithCancelCause(context.Background())
	second := make(chan error)
	go func() {
		_, err := c.Do(impatient, []byte("answer 1"))
		second <- err
	}()
	enough := errors.New("enough")
	give(enough)
	if err := <-second; !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
	go func() {
		_, err := c.Do(context.Background(), []byte("answer 1"))
		second <- err
	}()
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := <-second; err != nil {
		t.Errorf("got %v", err)
	}
}

func exists(file string) bool {
	b, _ := os.ReadFile(file)
	return len(b) > 0
}
