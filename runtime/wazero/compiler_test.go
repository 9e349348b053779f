package wazero

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/enginetest"
)

// TestMain makes this program a Compiler's child when it is started as one. The first
// argument then says how the child behaves: count=FILE adds a byte to the file.
func TestMain(m *testing.M) {
	_, child := os.LookupEnv(childVariable)
	if child && os.Getenv("GORACE") == "" { // under the race detector each child would sleep a second at its end
		self, err := os.Executable()
		if err != nil {
			panic(err)
		}
		panic(syscall.Exec(self, os.Args, append(os.Environ(), "GORACE=atexit_sleep_ms=0")))
	}
	if child && len(os.Args) > 1 {
		how, file, _ := strings.Cut(os.Args[1], "=")
		switch how {
		case "count":
			f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				panic(err)
			}
			f.WriteString(".")
			f.Close()
		case "kill":
			self, _ := os.FindProcess(os.Getpid())
			self.Kill()
			select {}
		case "hang":
			signal.Ignore(os.Interrupt)
			os.WriteFile(file, fmt.Append(nil, os.Getpid()), 0o600)
			for {
				time.Sleep(time.Hour)
			}
		case "silent":
			os.Exit(0)
		case "panic":
			panic("a defect")
		case "chatter":
			fmt.Println("hello")
			os.Exit(0)
		case "outside":
			fmt.Println(`{"done":true,"file":"../../secret"}`)
			os.Exit(0)
		case "nothing":
			fmt.Println(`{"done":true,"file":"wazero/missing"}`)
			os.Exit(0)
		case "newer":
			os.Setenv(childVariable, "999")
		}
	}
	if RunChild(Child{Work: work}) {
		return
	}
	os.Exit(m.Run())
}

// compiler makes one whose children are this program, and count tells how many it has
// started.
func compiler(t testing.TB, how string) (c *Compiler, count func() int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "children")
	if how == "" {
		how = "count"
	}
	return &Compiler{Program: self, Args: []string{how + "=" + file}, Dir: filepath.Join(t.TempDir(), "cache"), Wall: time.Minute, CPU: time.Minute}, func() int {
		b, _ := os.ReadFile(file)
		return len(b)
	}
}

func readModule(t testing.TB, name string) []byte {
	t.Helper()
	wasm, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// works compiles bare.wasm and calls it.
func works(t testing.TB, cfg Config) {
	t.Helper()
	m, err := New(cfg).Compile(context.Background(), readModule(t, "bare.wasm"), runtime.CompileOptions{Hosts: []runtime.HostModule{testClock{constant}}, MemoryPages: 16})
	if err != nil {
		t.Fatal(err)
	}
	in, err := m.Instantiate(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var stack [3]uint64
	if err := in.Call(call(), runtime.ExportHandle, stack[:]); err != nil || stack[0] != 42 {
		t.Fatalf("%v, result %d", err, stack[0])
	}
	if err := errors.Join(in.Close(), m.Close()); err != nil {
		t.Fatal(err)
	}
}

func children(t testing.TB, count func() int, want int) {
	t.Helper()
	if n := count(); n != want {
		t.Fatalf("%d children were started, want %d", n, want)
	}
}

// leftovers fails when a job or a staged copy is still there.
func leftovers(t testing.TB, c *Compiler) {
	t.Helper()
	if left, _ := filepath.Glob(filepath.Join(c.Dir, tempPrefix+"*")); len(left) > 0 {
		t.Fatalf("left behind: %v", left)
	}
}

// TestEngineOfChild holds code that a child compiled to the suite of engines.
func TestEngineOfChild(t *testing.T) {
	c, _ := compiler(t, "")
	enginetest.Run(t, func() runtime.Engine { return New(Config{Compiler: c}) })
}

func TestWarmStartNeedsNoChild(t *testing.T) {
	c, count := compiler(t, "")
	works(t, Config{Compiler: c})
	works(t, Config{Compiler: c})
	children(t, count, 1)
	again := &Compiler{Program: filepath.Join(t.TempDir(), "gone"), Dir: c.Dir}
	works(t, Config{Compiler: again})
	works(t, Config{Compiler: c, Deadline: time.Minute}) // other code
	children(t, count, 2)
	leftovers(t, c)
}

// TestLoadOnlyNeverCompiles: with nothing in the cache wazero gives up, also with a
// module that would take it minutes, and writes nothing.
func TestLoadOnlyNeverCompiles(t *testing.T) {
	for name, wasm := range map[string][]byte{"small": readModule(t, "bare.wasm"), "bomb": bomb()} {
		dir := t.TempDir()
		if err := compileInto(loadOnly(context.Background()), dir, wasm, options{Pages: 16}); !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: %v", name, err)
		}
		if file, err := onlyFile(dir); file != "" || err != nil {
			t.Fatalf("%s: wazero wrote %s, %v", name, file, err)
		}
	}
	// And what is there it loads.
	dir := t.TempDir()
	for _, ctx := range []context.Context{context.Background(), loadOnly(context.Background())} {
		if err := compileInto(ctx, dir, readModule(t, "bare.wasm"), options{Pages: 16}); err != nil {
			t.Fatal(err)
		}
	}
}

func compileError(t *testing.T, c *Compiler, wasm []byte, want ChildReason) *ChildError {
	t.Helper()
	_, err := New(Config{Compiler: c}).Compile(context.Background(), wasm, runtime.CompileOptions{MemoryPages: 16})
	var child *ChildError
	if !errors.As(err, &child) || child.Reason != want {
		t.Fatalf("got %v, want reason %s", err, want)
	}
	leftovers(t, c)
	return child
}

// TestBombs has a module that takes wazero very long and much memory cut by each limit.
func TestBombs(t *testing.T) {
	t.Run("wall", func(t *testing.T) {
		c, _ := compiler(t, "")
		c.Wall = 300 * time.Millisecond
		compileError(t, c, bomb(), ChildWall)
		c.Wall = time.Minute
		works(t, Config{Compiler: c})
	})
	t.Run("cpu", func(t *testing.T) {
		c, _ := compiler(t, "")
		c.CPU, c.Memory = time.Second, 8<<30
		compileError(t, c, bomb(), ChildCPU)
		works(t, Config{Compiler: c})
	})
	t.Run("memory", func(t *testing.T) {
		c, _ := compiler(t, "")
		c.Memory = 96 << 20
		compileError(t, c, bomb(), ChildMemory)
		works(t, Config{Compiler: c})
	})
}

func TestChildFails(t *testing.T) {
	for how, want := range map[string]ChildReason{
		"kill": ChildKilled, "panic": ChildKilled, "silent": ChildBroken, "chatter": ChildBroken, "outside": ChildBroken, "nothing": ChildBroken, "newer": ChildBroken,
	} {
		c, _ := compiler(t, how)
		t.Log(compileError(t, c, readModule(t, "sdk.wasm"), want))
	}
	c, _ := compiler(t, "")
	c.Program = filepath.Join(t.TempDir(), "none")
	if err := compileError(t, c, readModule(t, "sdk.wasm"), ChildMissing); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	c, count := compiler(t, "")
	for _, wasm := range []string{"", "not a module"} {
		var child *ChildError
		if _, err := New(Config{Compiler: c}).Compile(context.Background(), []byte(wasm), runtime.CompileOptions{MemoryPages: 1}); err == nil || errors.As(err, &child) {
			t.Fatalf("%q: %v", wasm, err)
		}
	}
	children(t, count, 2)
	leftovers(t, c)
	if _, err := New(Config{Compiler: &Compiler{Dir: t.TempDir()}}).Compile(context.Background(), nil, runtime.CompileOptions{}); err == nil {
		t.Fatal("a Compiler without a program was used")
	}
}

// TestCallerGivesUp: a child ends with the context of the caller.
func TestCallerGivesUp(t *testing.T) {
	c, _ := compiler(t, "hang")
	ctx, cancel := context.WithCancel(context.Background())
	file := strings.TrimPrefix(c.Args[0], "hang=")
	go func() {
		for {
			if b, _ := os.ReadFile(file); len(b) > 0 {
				cancel()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	if _, err := New(Config{Compiler: c}).Compile(ctx, readModule(t, "sdk.wasm"), runtime.CompileOptions{MemoryPages: 16}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	var pid int
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(b), &pid); err != nil {
		t.Fatal(err)
	}
	if p, err := os.FindProcess(pid); err == nil && p.Signal(syscall.Signal(0)) == nil {
		t.Fatal("the child is alive")
	}
	leftovers(t, c)
}

// TestConcurrentCompiles: one module compiled from many sides takes one child in each
// process, and several processes, here Compilers, do not disturb each other.
func TestConcurrentCompiles(t *testing.T) {
	a, count := compiler(t, "")
	b := &Compiler{Program: a.Program, Args: a.Args, Dir: a.Dir}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() { works(t, Config{Compiler: []*Compiler{a, b}[i%2]}) })
	}
	wg.Wait()
	if n := count(); n < 1 || n > 2 {
		t.Fatalf("%d children", n)
	}
	works(t, Config{Compiler: a})
	leftovers(t, a)
}

// bomb is a module of some 50 KB with more locals and loops than wazero can join
// within minutes, made without admission, which refuses it.
func bomb() []byte {
	const locals, loops = 6000, 6000
	uleb := func(n int) (b []byte) {
		for ; n > 0x7f; n >>= 7 {
			b = append(b, byte(n)|0x80)
		}
		return append(b, byte(n))
	}
	section := func(id byte, b []byte) []byte { return append(append([]byte{id}, uleb(len(b))...), b...) }
	body := append(append([]byte{1}, uleb(locals)...), 0x7f)
	for range loops {
		body = append(body, 0x03, 0x40, 0x20, 0, 0x0d, 0, 0x0b) // loop local.get 0 br_if 0 end
	}
	for i := range locals {
		body = append(append(append(append(body, 0x20), uleb(i)...), 0x21), uleb(i)...) // local.get i local.set i
	}
	body = append(body, 0x20, 0, 0x0b) // local.get 0 end
	code := append(append([]byte{1}, uleb(len(body))...), body...)
	m := []byte("\x00asm\x01\x00\x00\x00")
	m = append(m, section(1, []byte{1, 0x60, 1, 0x7f, 1, 0x7f})...)
	m = append(m, section(3, []byte{1, 0})...)
	return append(m, section(10, code)...)
}

// BenchmarkCompile compares compiling in this process, in a child, and loading what a
// child has compiled.
func BenchmarkCompile(b *testing.B) {
	wasm := readModule(b, "sdk.wasm")
	run := func(name string, cfg Config, before func()) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				before()
				m, err := New(cfg).Compile(context.Background(), wasm, runtime.CompileOptions{MemoryPages: 16})
				if err != nil {
					b.Fatal(err)
				}
				m.Close()
			}
		})
	}
	c, _ := compiler(b, "")
	run("in-process", Config{}, func() {})
	run("child", Config{Compiler: c}, func() { os.RemoveAll(c.Dir) })
	run("cache", Config{Compiler: c}, func() {})
}
