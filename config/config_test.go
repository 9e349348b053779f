package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	fetchhost "github.com/kvrt/kvrt/hosts/fetch"
)

func TestDefaults(t *testing.T) {
	want := Config{
		Guests: []Guest{
			{Name: "kv-fetch", Module: "embedded:kv-fetch", Grants: []string{"kvrt_fetch", "kvrt_log"}},
			{Name: "kv-retain", Module: "embedded:kv-retain", Grants: []string{"kvrt_store", "kvrt_log"}},
			{Name: "router-hint", Module: "embedded:router-hint", Grants: []string{"kvrt_log"}},
			{Name: "kv-evict", Module: "embedded:kv-evict", Grants: []string{"kvrt_store", "kvrt_log"}},
			{Name: "kv-prefetch", Module: "embedded:kv-prefetch", Grants: []string{"kvrt_fetch", "kvrt_gpu", "kvrt_log"}},
		},
		Fetch: Fetch{
			AllowedSources: []string{"tcp://127.0.0.0/8", "tcp://[::1]/128"},
			TTL:            10 * time.Minute,
			TombstoneTTL:   30 * time.Second,
			MaxEntries:     65536,
			MaxHashes:      131072,
		},
		Formulate:      Formulate{KVFetch: "one", KVRetain: "any", Payloads: "any"},
		Store:          Store{BlockBytes: []Size{1 << 20}, Checksum: true},
		RequestHints:   "keep",
		ForwardUnknown: "keep",
		Listen:         Listen{Socket: DefaultSocket(), Admin: "127.0.0.1:9640"},
		Limits:         Limits{BodyBytes: 4 << 20, Actions: 1024},
		Compile:        Compile{Timeout: 10 * time.Second, Memory: 512 << 20, CacheSize: 1 << 30, Children: 2},
		Log:            Log{Level: "info", Format: "text"},
		DrainTimeout:   30 * time.Second,
	}
	if got := Default(); !reflect.DeepEqual(*got, want) {
		t.Errorf("got  %+v\nwant %+v", *got, want)
	}
	for _, file := range []string{"", "# nothing\n", "{}", "---\n"} {
		got, err := Parse("kvrt.yaml", []byte(file))
		if err != nil {
			t.Fatal(err)
		}
		got.file, got.root = "", nil
		if !reflect.DeepEqual(*got, want) {
			t.Errorf("%q gives %+v", file, *got)
		}
	}
	roundTrip(t, Default())
}

func TestDefaultsAreNotShared(t *testing.T) {
	a := Default()
	a.Guests[0].Grants[0] = "changed"
	a.Fetch.AllowedSources[0] = "changed"
	if b := Default(); b.Guests[0].Grants[0] == "changed" || b.Fetch.AllowedSources[0] == "changed" {
		t.Error("two defaults share memory")
	}
}

// The store behind fetch has defaults of its own; nobody should have to know two sets.
func TestSourcesMatchStore(t *testing.T) {
	if got, want := Default().Fetch.AllowedSources, fetchhost.DefaultAllowedSources(); !slices.Equal(got, want) {
		t.Errorf("got %q, the store has %q", got, want)
	}
}

func TestParametersDepth(t *testing.T) {
	nested := func(n int) string {
		return "guests: [{name: a, module: /a, parameters: " + strings.Repeat("{a: ", n) + "x" + strings.Repeat("}", n) + "}]"
	}
	c := mustParse(t, nested(abi.MaxDepth))
	roundTrip(t, c)
	_, err := Parse("kvrt.yaml", []byte(nested(abi.MaxDepth+1)))
	if err == nil || !strings.HasSuffix(err.Error(), ".a.a: parameters must not nest deeper than 32") {
		t.Errorf("got %v", err)
	}
}

func mustParse(t *testing.T, data string) *Config {
	t.Helper()
	c, err := Parse("kvrt.yaml", []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestGuestsKey(t *testing.T) {
	if c := mustParse(t, "guests: []"); c.Guests == nil || len(c.Guests) != 0 {
		t.Errorf("an empty list gives %v", c.Guests)
	}
	if c := mustParse(t, "log: {level: warn}"); len(c.Guests) != 5 || c.Log != (Log{"warn", "text"}) {
		t.Errorf("without the key: %v %v", c.Guests, c.Log)
	}
}

func TestCapabilitiesPresence(t *testing.T) {
	c := mustParse(t, "workers: [{id: 1}, {id: 2, capabilities: []}, {id: 3, capabilities: [kv.fetch]}]")
	if got := c.Workers[0].Capabilities; got != nil {
		t.Errorf("absent: %v", *got)
	}
	if got := c.Workers[1].Capabilities; got == nil || len(*got) != 0 {
		t.Errorf("empty: %v", got)
	}
	if got := c.Workers[2].Capabilities; got == nil || !slices.Equal(*got, []string{"kv.fetch"}) {
		t.Errorf("listed: %v", got)
	}
}

func TestParametersAreExact(t *testing.T) {
	c := mustParse(t, `guests: [{name: a, module: /a, parameters: {z: 18446744073709551616, a: [1.0, .5, 1e21, 1e-7, 5e-324], "<&>": "\u2028\"\n", n: ~, b: TRUE, o: {}}}, {name: b, module: /b}]`)
	const want = `{"z":18446744073709551616,"a":[1.0,0.5,1e+21,1e-7,5e-324],"<&>":"\u2028\"\n","n":null,"b":true,"o":{}}`
	if got := string(c.Guests[0].Parameters); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if c.Guests[1].Parameters != nil {
		t.Errorf("an absent key gives %s", c.Guests[1].Parameters)
	}
}

func TestPos(t *testing.T) {
	c := mustParse(t, strings.TrimLeft(`
guests:
  - name: a
    module: /a.wasm
    parameters:
      deep: {"odd.key": [1, 2]}
  - {name: b, module: /b.wasm}
fetch:
  allowed_sources:
    - tcp://10.0.0.0/8
    - tcp://bad
`, "\n"))
	for path, want := range map[string]string{
		"":                                      "kvrt.yaml:1:1",
		"guests":                                "kvrt.yaml:1:1",
		"guests[0]":                             "kvrt.yaml:2:5",
		"guests[0].name":                        "kvrt.yaml:2:11",
		"guests[0].limits.fuel":                 "kvrt.yaml:2:5",
		"guests[0].parameters":                  "kvrt.yaml:4:5",
		`guests[0].parameters.deep["odd.key"]`:  "kvrt.yaml:5:14",
		`guests[0].parameters.deep["odd.key"]x`: "kvrt.yaml:5:14",
		`guests[0].parameters.deep["odd.key"][1]`: "kvrt.yaml:5:29",
		"guests[1].module":                        "kvrt.yaml:6:23",
		"guests[9].module":                        "kvrt.yaml:1:1",
		"guests[":                                 "kvrt.yaml:1:1",
		"guests[-1]":                              "kvrt.yaml:1:1",
		`["`:                                      "kvrt.yaml:1:1",
		"fetch.ttl":                               "kvrt.yaml:7:1",
		"fetch.allowed_sources":                   "kvrt.yaml:8:3",
		"fetch.allowed_sources[1]":                "kvrt.yaml:10:7",
		"listen.socket":                           "kvrt.yaml:1:1",
	} {
		if got := c.Pos(path); got != want {
			t.Errorf("Pos(%q) = %s, want %s", path, got, want)
		}
	}
	if got := Default().Pos("fetch.ttl"); got != "default configuration" {
		t.Errorf("without a file: %s", got)
	}
	err := &Error{Problems: []Problem{c.Problem("fetch.allowed_sources[1]", "no such scheme"), Default().Problem("guests[0]", "gone")}}
	const want = "kvrt.yaml:10:7: fetch.allowed_sources[1]: no such scheme\ndefault configuration: guests[0]: gone"
	if err.Error() != want {
		t.Errorf("got %s", err)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write := func(data string) string {
		t.Helper()
		file := filepath.Join(dir, "kvrt.yaml")
		if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	c, err := Load(write("guests: [{name: a, module: sub/a.wasm}, {name: b, module: /b.wasm}, {name: c, module: embedded:kv-fetch}]\nlisten: {socket: s.sock}\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := []string{c.Guests[0].Module, c.Guests[1].Module, c.Guests[2].Module, c.Listen.Socket}
	want := []string{filepath.Join(dir, "sub/a.wasm"), "/b.wasm", "embedded:kv-fetch", filepath.Join(dir, "s.sock")}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if name, ok := c.Guests[2].Embedded(); name != "kv-fetch" || !ok {
		t.Errorf("Embedded: %q %v", name, ok)
	}
	if name, ok := c.Guests[1].Embedded(); ok {
		t.Errorf("Embedded: %q", name)
	}

	file := write("guests: 5")
	if _, err := Load(file); err == nil || err.Error() != file+":1:9: guests: must be a list, not an integer (5)" {
		t.Errorf("got %v", err)
	}
	if _, err := Load(filepath.Join(dir, "none.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := Load(dir); err == nil {
		t.Error("a folder is read as a configuration")
	}
	var list *Error
	file = write(strings.Repeat("#", maxFile+1))
	if _, err := Load(file); !errors.As(err, &list) || err.Error() != file+": the file is longer than 1MiB" {
		t.Errorf("got %v", err)
	}
	if _, err := Load(write(strings.Repeat("#", maxFile))); err != nil {
		t.Errorf("a file of the largest size: %v", err)
	}
	long := "listen: {socket: " + strings.Repeat("d", maxSocketPath) + "}"
	if _, err := Parse("kvrt.yaml", []byte(long)); err != nil {
		t.Errorf("the longest socket path: %v", err)
	}
	if _, err := Load(write(long)); err == nil || !strings.Contains(err.Error(), "listen.socket: longer than the 107 bytes") {
		t.Errorf("a socket path that is too long once absolute: %v", err)
	}
}

func TestProblemsAreCapped(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		b.WriteString("k" + strconv.Itoa(i) + ": 1\n")
	}
	_, err := Parse("kvrt.yaml", []byte(b.String()))
	var list *Error
	if !errors.As(err, &list) || len(list.Problems) != maxProblems || list.More != 5000-maxProblems {
		t.Fatalf("got %d and %d", len(list.Problems), list.More)
	}
	if !strings.HasSuffix(err.Error(), "\nand 4900 more") {
		t.Error(err.Error()[len(err.Error())-100:])
	}
}

func TestDefaultSocket(t *testing.T) {
	writable := func(dirs ...string) func(string) bool {
		return func(dir string) bool { return slices.Contains(dirs, dir) }
	}
	for _, c := range []struct {
		user     string
		canWrite func(string) bool
		want     string
	}{
		{"/run/user/7", writable("/run/kvrt", "/run/user/7"), "/run/kvrt/kvrt.sock"},
		{"/run/user/7", writable("/run/user/7"), "/run/user/7/kvrt.sock"},
		{"/run/user/7", writable(), "/tmp/kvrt-7/kvrt.sock"},
		{"relative", writable("relative"), "/tmp/kvrt-7/kvrt.sock"},
		{"", writable(""), "/tmp/kvrt-7/kvrt.sock"},
	} {
		if got := defaultSocket("/run/kvrt", c.user, 7, c.canWrite); got != c.want {
			t.Errorf("%q: got %s, want %s", c.user, got, c.want)
		}
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !canWrite(dir) || canWrite(file) || canWrite(filepath.Join(dir, "none")) {
		t.Error("canWrite is wrong about a folder, a file or nothing")
	}
	closed := filepath.Join(dir, "closed")
	if err := os.Mkdir(closed, 0o500); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 && canWrite(closed) {
		t.Error("canWrite is wrong about a folder without the write bit")
	}
}

func TestMarshalRefusesBrokenParameters(t *testing.T) {
	for _, p := range []string{"{", "{} {}", `{"a":}`, strings.Repeat("[", 100) + strings.Repeat("]", 100)} {
		c := Default()
		c.Guests[0].Parameters = []byte(p)
		if out, err := c.Marshal(); err == nil {
			t.Errorf("%s is written as\n%s", p, out)
		}
	}
}
