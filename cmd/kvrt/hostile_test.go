package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
)

// The manifests of the modules in the corpora, which carry none.
const (
	hostileHandler = `{"name":"hostile","version":"1.0.0","abi":1,"roles":["handler"],"action_types":[{"type":"demo.echo"}],"capabilities":["kvrt_fetch","kvrt_log","kvrt_clock","kvrt_state"]}`
	hostileParser  = `{"name":"hostile","version":"1.0.0","abi":1,"roles":["parser"],"dialects":["hostile"]}`
	faultyManifest = `{"name":"good","version":"1.0.0","abi":1,"roles":["handler"],"action_types":[{"type":"demo.echo"}],"capabilities":["kvrt_clock"]}`
)

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func withManifest(t testing.TB, wasm []byte, manifest string) []byte {
	t.Helper()
	out, err := abi.AppendManifest(wasm, []byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// judged is what verify said of a module.
type judged struct {
	code  int
	rules []string
	errs  string
}

// plain builds the command as it is released: a hundred children take long where the race
// detector runs in each.
func plain(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "kvrt")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if msg, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, msg)
	}
	return program
}

// verifyAll verifies modules, a few at a time, and fails where verify ends with another
// code than 0 or 4, or says nothing of what is wrong.
func verifyAll(t *testing.T, program string, modules map[string][]byte, args ...string) map[string]judged {
	t.Helper()
	dir := t.TempDir()
	out := map[string]judged{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, 4)
	for name, wasm := range modules {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			file := filepath.Join(dir, strings.ReplaceAll(name, "/", "-")+".wasm")
			if err := os.WriteFile(file, wasm, 0o600); err != nil {
				t.Error(err)
				return
			}
			var o, e bytes.Buffer
			cmd := exec.Command(program, append([]string{"verify", "-o", "json", file}, args...)...)
			cmd.Stdout, cmd.Stderr = &o, &e
			err := cmd.Run()
			if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
				t.Error(err)
				return
			}
			code, text, errs := cmd.ProcessState.ExitCode(), o.String(), e.String()
			var v verdict
			err = json.Unmarshal([]byte(text), &v)
			j := judged{code: code, errs: errs}
			for _, p := range v.Problems {
				j.rules = append(j.rules, p.Rule)
			}
			if err != nil || code != exitOK && code != exitRefused || (code == exitOK) != (len(j.rules) == 0) || v.OK != (code == exitOK) || (code == exitOK) != (errs == "") {
				t.Errorf("%s: code %d, %v: %s%s", name, code, err, text, errs)
			}
			mu.Lock()
			out[name] = j
			mu.Unlock()
		})
	}
	wg.Wait()
	return out
}

// TestVerifyHostile verifies every module of the corpora: none of them does anything but
// end with a verdict.
func TestVerifyHostile(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred children")
	}
	modules, refused := map[string][]byte{}, map[string]bool{}
	for _, pattern := range []string{"../../runtime/testdata/hostile/*.wasm", "../../runtime/admit/testdata/hostile/*.wasm"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) < 30 {
			t.Fatalf("%d modules in %s: %v", len(files), pattern, err)
		}
		for _, file := range files {
			text := string(readFile(t, strings.TrimSuffix(file, ".wasm")+".wat"))
			name := filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(file)))) + "/" + filepath.Base(file)
			manifest := hostileHandler
			if strings.Contains(text, ";; role: parser") {
				manifest = hostileParser
			}
			modules[name] = withManifest(t, readFile(t, file), manifest)
			refused[name] = strings.Contains(text, ";; expect: refused") && !strings.Contains(text, ";; grants: none")
		}
	}
	passed := 0
	for name, j := range verifyAll(t, plain(t), modules, "--timeout", "1m") {
		if j.code == exitOK {
			passed++
			if refused[name] {
				t.Errorf("%s holds every rule, and a load refuses it", name)
			}
		}
		for _, rule := range j.rules {
			if strings.HasSuffix(rule, "/killed") {
				t.Errorf("%s: the child died: %s", name, j.errs)
			}
		}
	}
	if passed > len(modules)/3 {
		t.Errorf("%d of %d hold every rule", passed, len(modules))
	}
}

// section is a section of a module.
type section struct {
	id   byte
	body []byte
}

func sections(t *testing.T, wasm []byte) (all []section) {
	for rest := wasm[8:]; len(rest) > 0; {
		n, size := binary.Uvarint(rest[1:])
		if size <= 0 || uint64(len(rest)) < 1+uint64(size)+n {
			t.Fatal("sections")
		}
		all = append(all, section{rest[0], rest[1+size:][:n]})
		rest = rest[1+size+int(n):]
	}
	return all
}

// grown is a module with more functions of no parameters and results.
func grown(t *testing.T, wasm []byte, bodies ...[]byte) []byte {
	out := append([]byte(nil), wasm[:8]...)
	types := uint64(0)
	for _, s := range sections(t, wasm) {
		n, size := binary.Uvarint(s.body)
		more := func(n uint64, items []byte) []byte {
			return append(binary.AppendUvarint(nil, n), append(s.body[size:len(s.body):len(s.body)], items...)...)
		}
		switch s.id {
		case 1:
			types = n
			s.body = more(n+1, []byte{0x60, 0, 0})
		case 3:
			s.body = more(n+uint64(len(bodies)), bytes.Repeat(binary.AppendUvarint(nil, types), len(bodies)))
		case 10:
			var items []byte
			for _, b := range bodies {
				items = append(binary.AppendUvarint(items, uint64(len(b))), b...)
			}
			s.body = more(n+uint64(len(bodies)), items)
		}
		out = append(binary.AppendUvarint(append(out, s.id), uint64(len(s.body))), s.body...)
	}
	return out
}

// shapes are bodies that cost a compiler more than their length says, by size.
func shapes() map[string]func(n int) []byte {
	get := func(b []byte, i int) []byte { return binary.AppendUvarint(append(b, 0x20), uint64(i)) }
	locals := func(n int) []byte { return append(binary.AppendUvarint([]byte{1}, uint64(n)), 0x7f) }
	return map[string]func(n int) []byte{
		"locals-by-loops": func(n int) []byte {
			b := locals(n)
			for i := range n {
				b = append(get(append(b, 0x03, 0x40), i), 0x0d, 0, 0x0b) // loop local.get br_if 0 end
			}
			for i := range n {
				b = binary.AppendUvarint(append(get(b, i), 0x21), uint64(n-1-i))
			}
			return append(b, 0x0b)
		},
		"nesting": func(n int) []byte {
			b := append(append([]byte{0}, bytes.Repeat([]byte{0x02, 0x40}, n)...), bytes.Repeat([]byte{0x0b}, n)...)
			return append(b, 0x0b)
		},
		"br-table": func(n int) []byte {
			b := binary.AppendUvarint([]byte{0, 0x02, 0x40, 0x41, 0, 0x0e}, uint64(n))
			return append(append(b, make([]byte, n+1)...), 0x0b, 0x0b)
		},
		"operands": func(n int) []byte { // many values alive at once
			b := append([]byte{0}, bytes.Repeat([]byte{0x41, 1}, n+1)...)
			return append(append(b, bytes.Repeat([]byte{0x6a}, n)...), 0x1a, 0x0b)
		},
		"ladder": func(n int) []byte { // branches out of every depth
			b := append([]byte{0}, bytes.Repeat([]byte{0x02, 0x40}, n)...)
			for i := range n {
				b = append(binary.AppendUvarint(append(b, 0x41, 0, 0x0d), uint64(n-1-i)), 0x41, 0, 0x1a)
				b = append(b, 0x0b)
			}
			return append(b, 0x0b)
		},
		"selects": func(n int) []byte {
			b := locals(8)
			for i := range n {
				b = append(get(get(get(b, i%8), (i+1)%8), (i+3)%8), 0x1b, 0x21, byte(i%8))
			}
			return append(b, 0x0b)
		},
	}
}

// TestVerifyCompileBombs grows bombs of every shape as far as admission lets them, first
// one function and then many, and a little further. Several at a time are verified within
// times that are too short for them, and within one that is not.
func TestVerifyCompileBombs(t *testing.T) {
	base := withManifest(t, readFile(t, "../../sdk/tck/testdata/faulty.wasm"), faultyManifest)
	admitted := func(wasm []byte) bool {
		_, err := runtime.Admit("bomb", wasm)
		return err == nil
	}
	if _, err := runtime.Admit("bomb", grown(t, base, []byte{0, 0x0b})); err != nil {
		t.Fatal(err)
	}
	modules := map[string][]byte{}
	over := map[string]bool{}
	for name, shape := range shapes() {
		n := sort.Search(1<<14, func(n int) bool { return !admitted(grown(t, base, shape(n+1))) })
		body := shape(n)
		many := func(k int) []byte {
			all := make([][]byte, k)
			for i := range all {
				all[i] = body
			}
			return grown(t, base, all...)
		}
		k := 1 + sort.Search(8, func(k int) bool { return !admitted(many(k + 2)) })
		modules[name], modules[name+"-many"], modules[name+"-over"] = grown(t, base, body), many(k), grown(t, base, shape(n+1))
		over[name+"-over"] = !admitted(modules[name+"-over"])
		t.Logf("%s: %d, %d times: %d bytes", name, n, k, len(modules[name+"-many"]))
	}
	program := plain(t)
	for _, timeout := range []string{"1ms", "200ms", "1m"} {
		some := maps.Clone(modules)
		if timeout == "1m" { // a function each: many take half a minute
			maps.DeleteFunc(some, func(name string, _ []byte) bool { return strings.HasSuffix(name, "-many") })
		}
		for name, j := range verifyAll(t, program, some, "--timeout", timeout) {
			for _, rule := range j.rules {
				if strings.HasSuffix(rule, "/killed") {
					t.Errorf("%s: the child died: %s", name, j.errs)
				}
			}
			switch {
			case over[name] && j.code != exitRefused:
				t.Errorf("%s is not refused", name)
			case timeout == "1ms" && (len(j.rules) != 1 || !strings.HasSuffix(j.rules[0], "/wall")):
				t.Errorf("%s: %v in a millisecond", name, j.rules)
			case timeout == "1m" && !over[name] && j.code != exitOK:
				t.Errorf("%s: %v: admission lets it in and the compiler does not", name, j.rules)
			}
		}
	}
}

// TestVerifyNoise verifies modules with changed bytes, and bytes that are none.
func TestVerifyNoise(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	good := withManifest(t, readFile(t, "../../sdk/tck/testdata/faulty.wasm"), faultyManifest)
	modules := map[string][]byte{"empty": nil, "header": good[:8], "zeros": make([]byte, 1<<20), "large": append(bytes.Clone(good), make([]byte, 20<<20)...)}
	for i := range 12 {
		bad := bytes.Clone(good)
		for range 1 + r.IntN(4) {
			bad[8+r.IntN(len(bad)-8)] = byte(r.Uint32())
		}
		modules[fmt.Sprint("changed-", i)] = bad
		modules[fmt.Sprint("cut-", i)] = good[:r.IntN(len(good))]
	}
	for name, j := range verifyAll(t, plain(t), modules, "--timeout", "1m") {
		for _, rule := range j.rules {
			if strings.HasSuffix(rule, "/killed") || strings.HasSuffix(rule, "/wall") {
				t.Errorf("%s: %v: %s", name, j.rules, j.errs)
			}
		}
	}
}
