package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/server"
)

// TestHelp holds every verb to a one-line summary, a text, examples that begin with
// the verb, and flags that are explained.
func TestHelp(t *testing.T) {
	var verbs []*cobra.Command
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		verbs = append(verbs, c)
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot())
	if len(verbs) < 18 {
		t.Fatalf("only %d verbs", len(verbs))
	}
	for _, v := range verbs {
		path := v.CommandPath()
		if v.Short == "" || strings.HasSuffix(v.Short, ".") || len(v.Short) > 72 {
			t.Errorf("%s: summary %q", path, v.Short)
		}
		if len(v.Long) < 80 {
			t.Errorf("%s: no text", path)
		}
		for line := range strings.Lines(v.Long + "\n" + v.Example) {
			if len(line) > 100 {
				t.Errorf("%s: a line of %d bytes: %s", path, len(line), line)
			}
		}
		if n := strings.Count(v.Example, path); n < 2 {
			t.Errorf("%s: %d examples", path, n)
		}
		v.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s: --%s is not explained", path, f.Name)
			}
		})
		args := append(strings.Fields(path)[1:], "--help")
		if code, out, errs := invoke(args...); code != exitOK || !strings.Contains(out, "\nExamples:\n") || errs != "" {
			t.Errorf("%s --help: code %d, %s%s", path, code, out, errs)
		}
	}
}

// invoke runs the command in this process.
func invoke(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = run(args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

// TestCallCostsWhatADispatchDoes: the hosts of a call that is looked at charge as the
// real ones do.
func TestCallCostsWhatADispatchDoes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "envelope.json")
	if err := os.WriteFile(file, []byte(`{"actions":[{"action_id":"a","action_type":"kv.fetch","payload":{"source_control_endpoint":"tcp://127.0.0.1:1","block_hashes":[1,2,3]}}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	fuel := regexp.MustCompile(`"fuel":\d+`)
	_, called, _ := invoke("call", "embedded:kv-fetch", "handle", file)
	_, dispatched, _ := invoke("dispatch", file)
	if got, want := fuel.FindString(called), fuel.FindString(dispatched); got != want || want == "" {
		t.Errorf("got %s, want %s:\n%s%s", got, want, called, dispatched)
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		text string // first line on standard error
	}{
		{nil, 0, ""},
		{&hint.MalformedError{Offset: 3, Msg: "unexpected end"}, 1, "malformed envelope: unexpected end at offset 3"},
		{&runtime.ParseError{Guest: "p", Reason: abi.ReasonInvalidPayload, Detail: "no"}, 1, "malformed envelope: parser p: invalid_payload: no"},
		{&runtime.ParseError{Guest: "p", Reason: abi.ReasonHandlerUnavailable, Detail: "no"}, 1, "parser p: handler_unavailable: no"},
		{&config.Error{Problems: []config.Problem{{File: "f", Line: 1, Column: 2, Path: "a", Message: "bad"}}}, 1, "f:1:2: a: bad"},
		{errors.New("disk full"), 1, "kvrt: disk full"},
		{&usageError{"kvrt list", "what?"}, 2, "kvrt: what?; see kvrt list --help"},
		{&inputError{os.ErrNotExist}, 2, "kvrt: file does not exist"},
		{fmt.Errorf("%w: x", runtime.ErrUnknownDialect), 2, "kvrt: no parser reads this dialect: x"},
		{&unreachableError{"s", "kvrt serve", io.EOF}, 3, "kvrt: no daemon answers at s (EOF); start one with: kvrt serve"},
		{&server.RemoteError{Code: server.CodeDraining, Text: "draining"}, 3, "kvrt: draining"},
		{&server.RemoteError{Code: server.CodeFrameTooLarge, Text: "too large"}, 4, "kvrt: too large"},
		{&server.RemoteError{Code: server.CodeFatal, Text: "fatal"}, 1, "kvrt: fatal"},
		{fmt.Errorf("%w: %w", server.ErrUnreachable, &server.RemoteError{Code: server.CodeUnknownDialect, Text: "no"}), 2, "kvrt: the daemon is unreachable: no"},
		{&server.AdminError{Status: 404, Text: "no guest"}, 1, "kvrt: no guest"},
		{&server.AdminError{Status: 403, Text: "no"}, 4, "kvrt: no"},
		{&server.AdminError{Status: 422, Text: "refused", Problems: []runtime.Problem{{Rule: "abi/x", Msg: "y"}}}, 4, "kvrt: refused"},
		{&server.AdminError{Status: 422, Text: "refused", Problems: []runtime.Problem{{Rule: "config", Msg: "f:1:1: z"}}}, 1, "kvrt: refused"},
		{&runtime.LoadError{Guest: "g", Problems: []runtime.Problem{{Rule: "abi/x", Item: "i", Msg: "y"}}}, 4, "g: abi/x: i: y"},
		{context.DeadlineExceeded, 5, "kvrt: context deadline exceeded"},
		{fmt.Errorf("%w: %w", server.ErrUnreachable, context.DeadlineExceeded), 5, "kvrt: the daemon is unreachable: context deadline exceeded"},
		{os.ErrDeadlineExceeded, 5, "kvrt: i/o timeout"},
	} {
		var b bytes.Buffer
		report(&b, c.err)
		text, _, _ := strings.Cut(b.String(), "\n")
		if got := exitCode(c.err); got != c.code || text != c.text {
			t.Errorf("%v: code %d, want %d; %q, want %q", c.err, got, c.code, text, c.text)
		}
	}
}

// TestNoBinaryToATerminal takes the master side of a terminal, which looks like one.
func TestNoBinaryToATerminal(t *testing.T) {
	tty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no terminal here: ", err)
	}
	defer tty.Close()
	file := filepath.Join(t.TempDir(), "none.msgpack")
	if err := os.WriteFile(file, []byte("\x81\xa7actions\x90"), 0o644); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	if code := run([]string{"dispatch", "--forward", "-", file}, nil, tty, &errs); code != exitUsage {
		t.Errorf("code %d, %s", code, errs.String())
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if code := run([]string{"dispatch", "--forward", "-", file}, nil, null, &errs); code != exitOK {
		t.Errorf("code %d, %s", code, errs.String())
	}
}

func TestCell(t *testing.T) {
	for in, want := range map[string]string{
		"":                       "-",
		"plain é":                "plain é",
		"a\tb\x1b[31m":           `a\tb\x1b[31m`,
		strings.Repeat("é", 100): strings.Repeat("é", 60) + "...",
	} {
		if got := cell(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestParseSize(t *testing.T) {
	for in, want := range map[string]uint64{"65536": 65536, "64KiB": 65536, "16MiB": 16 << 20, "2GiB": 2 << 30} {
		if got, ok := parseSize(in); !ok || got != want {
			t.Errorf("%s: %d, %v", in, got, ok)
		}
	}
	for _, in := range []string{"", "MiB", "1mb", "-1", "1.5GiB", "99999999999"} {
		if got, ok := parseSize(in); ok {
			t.Errorf("%q is %d", in, got)
		}
	}
}

func TestCheckParameters(t *testing.T) {
	for _, c := range []struct{ schema, parameters, want string }{
		{`{"type":"object"}`, `{}`, ""},
		{`{"properties":{"a":{"type":"integer"}}}`, `{"a":18446744073709551615}`, ""},
		{`{"properties":{"a":{"type":"integer"},"b":{"enum":[1]}}}`, `{"a":"x","b":2}`, "/a: got string, want integer; /b: value must be 1"},
		{`{"additionalProperties":false}`, `{"a":1}`, "additional properties 'a' not allowed"},
		{`{"type":"objekt"}`, `{}`, "the manifest's schema: "},
		{`{"$ref":"https://example.com/schema.json"}`, `{}`, "must not refer to anything outside"},
		{`{"$ref":"file:///etc/passwd"}`, `{}`, "must not refer to anything outside"},
		{`{"$ref":"#"}`, `{}`, "validation failed"},
		{`{"type":"object"}`, `{`, "unexpected EOF"},
		{`{`, `{}`, "the manifest's schema: "},
	} {
		err := checkParameters([]byte(c.schema), []byte(c.parameters))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s with %s: %v, want %q", c.schema, c.parameters, err, c.want)
		}
	}
}

func TestVersionOfDescribe(t *testing.T) {
	for in, want := range map[string]string{
		"v0.3.0-14-g2f6f8e8": "2f6f8e8", "2f6f8e8-dirty": "2f6f8e8", "v0.3.0": "", "dev": "", "(devel)": "",
	} {
		got := ""
		if m := described.FindStringSubmatch(in); m != nil {
			got = m[1]
		}
		if got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}
