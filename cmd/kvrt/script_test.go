package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/kvrt/kvrt/policies"
	"github.com/kvrt/kvrt/runtime/wazero"
)

func TestMain(m *testing.M) {
	// Under the race detector every process would sleep a second at its end, also a child
	// that compiles, which gets nothing of this environment.
	if os.Getenv("KVRT_COMPILE_CHILD") != "" && os.Getenv("GORACE") == "" {
		self, err := os.Executable()
		if err != nil {
			panic(err)
		}
		panic(syscall.Exec(self, os.Args, append(os.Environ(), "GORACE=atexit_sleep_ms=0")))
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	if wazero.RunChild(child()) {
		return
	}
	if filepath.Base(os.Args[0]) != "kvrt" { // the tests themselves; scripts say what they want
		os.Setenv(compileCache, "off")
	}
	testscript.Main(m, map[string]func(){
		"kvrt":         func() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
		"json2msgpack": func() { os.Exit(json2msgpack(os.Stdin, os.Stdout)) },
	})
}

// TestScript runs testdata/script: one file per verb. Beside testscript's own, there
// are the commands below.
func TestScript(t *testing.T) {
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("REPO", repo)
			e.Setenv("MY_UID", fmt.Sprint(os.Geteuid()))
			e.Setenv("GORACE", os.Getenv("GORACE"))
			e.Setenv(compileCache, "off")
			wasm, err := readModule("embedded:router-hint")
			if err != nil {
				return err
			}
			e.Setenv("GUESTS", strings.Join(policies.Guests(), ", "))
			e.Setenv("ROUTER_HINT", fmt.Sprintf("%x", sha256.Sum256(wasm)))
			e.Values[daemonKey{}], e.Values[secondKey{}] = &running{}, &running{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": cmdExits, "lines": cmdLines, "same": cmdSame, "serve": cmdServe, "halt": cmdHalt, "reloaded": cmdReloaded, "silent": cmdSilent, "big": cmdBig,
			"half": cmdHalf, "examples": cmdExamples, "beside": cmdBeside, "die": cmdDie, "metric": cmdMetric, "random": cmdRandom, "interrupt": cmdInterrupt,
		},
	})
}

// exits CODE PROGRAM ARGS...: runs a program that must end with that code.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS...")
	}
	got, err := 0, ts.Exec(args[1], args[2:]...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

var changing = regexp.MustCompile(`"generation":\d+,"fuel":\d+,"duration_ns":\d+`)

// lines FILE: the last output is the results in FILE, but for what differs from run to
// run, which FILE leaves out.
func cmdLines(ts *testscript.TestScript, neg bool, args []string) {
	got := changing.ReplaceAllString(ts.ReadFile("stdout"), "")
	got = strings.ReplaceAll(got, ",}", "}")
	if want := ts.ReadFile(args[0]); (got == want) == neg {
		ts.Fatalf("got:\n%swant:\n%s", got, want)
	}
}

// same FILE WANT: like cmp, but for the line break at the end that WANT cannot be
// without.
func cmdSame(ts *testscript.TestScript, _ bool, args []string) {
	if got, want := ts.ReadFile(args[0]), strings.TrimSuffix(ts.ReadFile(args[1]), "\n"); got != want {
		ts.Fatalf("got:\n%s\nwant:\n%s", got, want)
	}
}

// big SIZE FILE: writes a file of spaces.
func cmdBig(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), bytes.Repeat([]byte{' '}, n), 0o644))
}

// silent SOCKET: listens there and never answers.
func cmdSilent(ts *testscript.TestScript, _ bool, args []string) {
	ln, err := net.Listen("unix", ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Defer(func() { ln.Close() })
}

// half SOCKET: begins a frame and never ends it.
func cmdHalf(ts *testscript.TestScript, _ bool, args []string) {
	conn, err := net.Dial("unix", args[0])
	ts.Check(err)
	ts.Defer(func() { conn.Close() })
	_, err = conn.Write([]byte{0, 0})
	ts.Check(err)
}

// examples: every example envelope gets the exit code that its folder says from the
// daemon, and every fifth, since a dispatch starts a whole runtime, the same answer from
// dispatch and from submit.
func cmdExamples(ts *testscript.TestScript, _ bool, args []string) {
	files, err := filepath.Glob(filepath.Join(ts.Getenv("REPO"), "examples", "envelopes", "[gb]*", "*"))
	ts.Check(err)
	if len(files) < 70 {
		ts.Fatalf("only %d examples", len(files))
	}
	for i, file := range files {
		id := "--request-id=" + filepath.Base(file)
		code, out, errs := output(ts, "submit", "--socket="+ts.Getenv("SOCKET"), id, file)
		if want := map[string]int{"good": 0, "bad": 1}[filepath.Base(filepath.Dir(file))]; code != want {
			ts.Fatalf("%s: exit code %d, want %d: %s", file, code, want, errs)
		}
		if i%5 != 0 {
			continue
		}
		code2, out2, errs2 := output(ts, "dispatch", id, file)
		if code2 != code || out2 != out || errs2 != errs {
			ts.Fatalf("%s: submit: %d\n%s%sdispatch: %d\n%s%s", file, code, out, errs, code2, out2, errs2)
		}
	}
}

// output runs kvrt and takes what differs from run to run out of its output.
func output(ts *testscript.TestScript, args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	cmd := exec.Command("kvrt", args...)
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	return code, changing.ReplaceAllString(o.String(), ""), e.String()
}

type daemonKey struct{}

// running is the daemon of a script.
type running struct {
	cmd  *exec.Cmd
	done chan error
	log  string
}

func daemonOf(ts *testscript.TestScript) *running { return ts.Value(daemonKey{}).(*running) }

var adminLine = regexp.MustCompile(`(?m)^admin +http://(\S+)`)

// serve ARGS...: starts kvrt serve and waits until it has said what to try next. Its
// standard error is in serve.log, $SOCKET and $ADMIN are where it listens.
func cmdServe(ts *testscript.TestScript, _ bool, args []string) {
	socket := ts.MkAbs("kvrt.sock")
	ts.Setenv("ADMIN", daemonOf(ts).start(ts, socket, ts.MkAbs("serve.log"), args))
	ts.Setenv("SOCKET", socket)
}

// waitFor waits until the log is as ready wants it.
func (d *running) waitFor(ts *testscript.TestScript, ready func(log string) bool) {
	for range 600 {
		if ready(ts.ReadFile(d.log)) {
			return
		}
		select {
		case err := <-d.done:
			ts.Fatalf("the daemon ended: %v\n%s", err, ts.ReadFile(d.log))
		case <-time.After(50 * time.Millisecond):
		}
	}
	ts.Fatalf("the daemon takes too long:\n%s", ts.ReadFile(d.log))
}

// halt SIGNAL [SIGNAL]: the daemon must end with code 0 and leave no socket behind. A
// second signal, sent while it drains, must end it at once.
func cmdHalt(ts *testscript.TestScript, _ bool, args []string) {
	d := daemonOf(ts)
	signals := map[string]os.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT}
	ts.Check(d.cmd.Process.Signal(signals[args[0]]))
	if len(args) == 2 {
		d.waitFor(ts, func(log string) bool { return strings.Contains(log, "a second signal stops at once") })
		ts.Check(d.cmd.Process.Signal(signals[args[1]]))
		err := <-d.done
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != signals[args[1]] {
			ts.Fatalf("the daemon ended with %v\n%s", err, ts.ReadFile(d.log))
		}
		return
	}
	select {
	case err := <-d.done:
		if err != nil {
			ts.Fatalf("the daemon ended with %v\n%s", err, ts.ReadFile(d.log))
		}
	case <-time.After(time.Minute):
		ts.Fatalf("the daemon does not end\n%s", ts.ReadFile(d.log))
	}
	if _, err := os.Stat(ts.MkAbs("kvrt.sock")); !errors.Is(err, os.ErrNotExist) {
		ts.Fatalf("the socket is still there: %v", err)
	}
}

// reloaded TEXT: sends SIGHUP and waits until the log has TEXT once more.
func cmdReloaded(ts *testscript.TestScript, _ bool, args []string) {
	d := daemonOf(ts)
	before := strings.Count(ts.ReadFile(d.log), args[0])
	ts.Check(d.cmd.Process.Signal(syscall.SIGHUP))
	d.waitFor(ts, func(log string) bool { return strings.Count(log, args[0]) > before })
}

// json2msgpack turns JSON into msgpack, keys in their order, with a library that kvrt
// does not use.
func json2msgpack(in io.Reader, out io.Writer) int {
	d := json.NewDecoder(in)
	d.UseNumber()
	e := msgpack.NewEncoder(out)
	e.UseCompactInts(true)
	if err := convert(d, e); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func convert(d *json.Decoder, e *msgpack.Encoder) error {
	tok, err := d.Token()
	if err != nil {
		return err
	}
	switch v := tok.(type) {
	case json.Delim:
		return convertAll(d, e, v)
	case json.Number:
		if n, err := strconv.ParseUint(v.String(), 10, 64); err == nil {
			return e.EncodeUint(n)
		}
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return e.EncodeInt(n)
		}
		f, err := v.Float64()
		if err != nil {
			return err
		}
		return e.EncodeFloat64(f)
	}
	return e.Encode(tok)
}

// convertAll converts what is inside brackets. The length comes first in msgpack, so
// the inside is converted aside.
func convertAll(d *json.Decoder, e *msgpack.Encoder, open json.Delim) error {
	var inside bytes.Buffer
	sub := msgpack.NewEncoder(&inside)
	sub.UseCompactInts(true)
	n := 0
	for d.More() {
		if err := convert(d, sub); err != nil {
			return err
		}
		n++
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	var err error
	if open == '{' {
		err = e.EncodeMapLen(n / 2)
	} else {
		err = e.EncodeArrayLen(n)
	}
	if err == nil {
		_, err = e.Writer().Write(inside.Bytes())
	}
	return err
}
