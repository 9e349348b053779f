package examples

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/hint"
)

var update = flag.Bool("update", false, "write the generated files and the results in the README")

// TestGenerated holds the binary examples to what they are made of: the twin of every
// good JSON envelope that is not there to be rejected, and the ones below.
func TestGenerated(t *testing.T) {
	files := binaries()
	for _, name := range glob(t, "envelopes/good/*.json") {
		if twin, ok := twinOf(name); ok {
			src, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files[twin] = toMsgpack(t, name, src)
		}
	}
	for name, want := range files {
		if *update {
			if err := os.WriteFile(name, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what it is made of (%v): run go test ./examples -update", name, err)
		}
	}
	for _, name := range append(glob(t, "envelopes/*/*.msgpack"), glob(t, "envelopes/*/nested-*")...) {
		if _, ok := files[name]; !ok {
			t.Errorf("%s: nothing makes it", name)
		}
	}
}

func twinOf(name string) (twin string, ok bool) {
	stem, isJSON := strings.CutSuffix(name, ".json")
	return stem + ".msgpack", isJSON && strings.Contains(name, "/good/") && !strings.HasPrefix(filepath.Base(name), "rejected-")
}

func toMsgpack(t *testing.T, name string, src []byte) []byte {
	t.Helper()
	tree, root, err := hint.AppendTree(nil, hint.FormatJSON, src)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	out, err := hint.AppendTreeMsgpack(nil, tree, root)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out
}

// The pieces that the binary examples are put together of.
const (
	head    = "\x83\xb0protocol_version\xa30.1\xaamessage_id\xa2m1\xa7actions"
	action  = "\x84\xa9action_id\xa2a1\xabaction_type\xa8kv.fetch\xaeaction_version\xa31.0\xa7payload"
	payload = "\x82\xb7source_control_endpoint\xb5tcp://127.0.0.1:23280\xacblock_hashes\x91\x0b"
	fetch   = action + payload
)

// binaries are the examples that no editor can write.
func binaries() map[string][]byte {
	deep := func(n int, open, last, shut string) string {
		return strings.Repeat(open, n) + last + strings.Repeat(shut, n)
	}
	files := map[string][]byte{}
	for name, body := range map[string]string{
		// Good envelopes whose action is rejected: what JSON cannot express.
		"good/rejected-duration-nan":  head + "\x91\x84\xa9action_id\xa2a1\xabaction_type\xa9kv.retain\xaeaction_version\xa31.0\xa7payload\x81\xaadirectives\x91\x82\xa8priority\x32\xa8duration\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00",
		"good/rejected-hash-bytes":    head + "\x91" + action + "\x81\xacblock_hashes\x91\xc4\x20" + strings.Repeat("\xee", 32),
		"good/rejected-payload-deep":  head + "\x91" + action + "\x82\xacblock_hashes\x91\x0b\xa1x" + deep(64, "\x91", "\xc0", ""),
		"good/rejected-beside-a-good": head + "\x92" + action + "\x81\xacblock_hashes\x91\xca\x3f\x80\x00\x00" + fetch,

		"bad/lying-array-length":  head + "\x94" + fetch,
		"bad/lying-string-length": strings.Replace(head+"\x91"+fetch, "\xa2m1", "\xdb\xff\xff\xff\xffm1", 1),
		"bad/lying-map-length":    "\xdf\xff\xff\xff\xff" + (head + "\x91" + fetch)[1:],
		"bad/truncated":           (head + "\x91" + fetch)[:120],
		"bad/trailing-bytes":      head + "\x91" + fetch + "\xc0",
		"bad/positional-array":    "\x93\xa30.1\xa2m1\x91\x94\xa2a1\xa8kv.fetch\xa31.0" + payload,
		"bad/duplicate-key":       "\x84" + (head + "\x91" + fetch)[1:] + "\xa7actions\x90",
		"bad/invalid-utf8":        strings.Replace(head+"\x91"+fetch, "m1", "m\xff", 1),
		"bad/reserved-byte":       strings.Replace(head+"\x91"+fetch, "\xa2m1", "\xc1", 1),
		"bad/empty":               "",
	} {
		files["envelopes/"+name+".msgpack"] = []byte(body)
	}
	nested := `{"protocol_version": "0.1", "message_id": "m1", "actions": [{"action_id": "a1", "action_type": "kv.fetch", "action_version": "1.0", "payload": {"x": ` +
		deep(64, "[", "", "]") + "}}]}\n"
	files["envelopes/bad/nested-too-deep.json"] = []byte(nested)
	return files
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.FromSlash(pattern))
	if err != nil {
		t.Fatal(err)
	}
	for i := range names {
		names[i] = filepath.ToSlash(names[i])
	}
	return names
}
