package abi

import (
	"bytes"
	"strings"
	"testing"
)

// manifest is a good one with one key set to other JSON, or left out when that is "".
func manifest(key, value string) string {
	keys := []string{"name", "version", "abi", "roles", "action_types", "dialects"}
	values := map[string]string{"name": `"g"`, "version": `"1.0"`, "abi": "1", "roles": `["handler","parser"]`,
		"action_types": `[{"type":"demo.echo","versions":["1.0"]}]`, "dialects": `["acme"]`}
	if _, ok := values[key]; !ok && key != "" {
		keys = append(keys, key)
	}
	if key != "" {
		values[key] = value
	}
	var out []string
	for _, k := range keys {
		if values[k] != "" {
			out = append(out, `"`+k+`":`+values[k])
		}
	}
	return "{" + strings.Join(out, ",") + "}"
}

func TestManifestAccepted(t *testing.T) {
	for _, c := range []struct{ key, value string }{
		{"", ""},
		{"version", ""},
		{"name", `"a.b-c_9"`},
		{"name", `"` + strings.Repeat("a", 64) + `"`},
		{"description", `"two\nlines"`},
		{"roles", `["policy"]`},
		{"requires", `["model","block_hashes","selected"]`},
		{"parameters", `{"properties":{"Max":{"type":"number"},"max":{}}}`},
		{"capabilities", `["kvrt_log","kvrt_fetch"]`},
		{"metrics", `[{"name":"seen_total","kind":"counter","help":"h"},{"name":"b","kind":"gauge"},{"name":"c","kind":"histogram"}]`},
		{"limits", `{"fuel":18446744073709551615,"memory":4294967296}`},
		{"limits", `null`},
		{"stateful", `true`},
	} {
		text := manifest(c.key, c.value)
		if _, err := ParseManifest([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Every rule refuses, and says what to do.
func TestManifestRefused(t *testing.T) {
	for _, c := range []struct{ key, value, want string }{
		{"name", ``, `name "": want`},
		{"name", `"Upper"`, `name "Upper": want`},
		{"name", `"-a"`, `name "-a": want`},
		{"name", `"a."`, `name "a.": want`},
		{"name", `"` + strings.Repeat("a", 65) + `"`, "at most 64"},
		{"name", `"a\nb"`, "want lower-case"},
		{"name", `1`, "cannot unmarshal number"},
		{"version", `"1 0"`, "printable ASCII"},
		{"version", `"` + strings.Repeat("1", 65) + `"`, "at most 64"},
		{"description", `"\u001b[31m"`, "description: want no control characters"},
		{"license", `"\u0000"`, "license: want no control"},
		{"source", `"\u009b"`, "source: want no control"},
		{"abi", ``, "abi 0: this host runs abi 1"},
		{"abi", `2`, "abi 2: this host runs abi 1"},
		{"abi", `1.5`, "cannot unmarshal"},
		{"roles", ``, "roles: name at least one"},
		{"roles", `[]`, "roles: name at least one"},
		{"roles", `["judge"]`, `role "judge": want parser, handler or policy`},
		{"roles", `["handler","handler"]`, `role "handler" is named twice`},
		{"action_types", ``, "a handler names the action types"},
		{"action_types", `[{"type":""}]`, `action type "": want`},
		{"action_types", `[{"type":"a b"}]`, `action type "a b": want`},
		{"action_types", `[{"type":"é"}]`, "printable ASCII"},
		{"action_types", `[{"type":"` + strings.Repeat("a", 129) + `"}]`, "1 to 128"},
		{"action_types", `[{"type":"a"},{"type":"a"}]`, `action type "a" is named twice`},
		{"action_types", `[{"type":"a","versions":[""]}]`, `version "" of action type "a": want`},
		{"action_types", `[{"type":"a","versions":["1","1"]}]`, `"1" is named twice`},
		{"action_types", `[{"type":"a","version":"1"}]`, "unknown field"},
		{"action_types", `[{"type":"a","type":"b"}]`, `key "action_types.type" is there twice`},
		{"dialects", ``, "a parser names the dialects"},
		{"dialects", `["a b"]`, `dialect "a b": want`},
		{"dialects", `["a","a"]`, `dialect "a" is named twice`},
		{"requires", `["colour"]`, `requires "colour": this host knows no such context field`},
		{"requires", `["kind"]`, "no such context field"},
		{"requires", `["candidates_count"]`, "no such context field"},
		{"requires", `["model","model"]`, `required field "model" is named twice`},
		{"parameters", `[]`, "parameters: want a JSON Schema object"},
		{"parameters", `null`, "parameters: want a JSON Schema object"},
		{"parameters", `{"a":1,"a":2}`, `key "parameters.a" is there twice`},
		{"parameters", strings.Repeat(`{"a":`, 32) + "1" + strings.Repeat("}", 32), "nested deeper than 32"},
		{"capabilities", `["wasi_snapshot_preview1"]`, "want an import module"},
		{"capabilities", `["kvrt_"]`, "want an import module"},
		{"capabilities", `["kvrt_Log"]`, "want an import module"},
		{"capabilities", `["kvrt_log","kvrt_log"]`, `capability "kvrt_log" is named twice`},
		{"metrics", `[{"name":"a","kind":"summary"}]`, `kind "summary": want counter`},
		{"metrics", `[{"name":"9","kind":"gauge"}]`, `metric "9": want`},
		{"metrics", `[{"name":"a","kind":"gauge"},{"name":"a","kind":"gauge"}]`, `metric "a" is named twice`},
		{"metrics", `[{"name":"a","kind":"gauge","help":"\u0007"}]`, "help of metric a: want no control"},
		{"limits", `{"memory":4294967297}`, "at most 4 GiB"},
		{"limits", `{"fuel":-1}`, "cannot unmarshal"},
		{"limits", `{"time":1}`, "unknown field"},
		{"colour", `1`, "unknown field"},
		{"Name", `"h"`, `unknown key "Name"`},
		{"ſource", `"h"`, "unknown key"},
		{"parameters.a", `{"A":1}`, "unknown key"},
	} {
		text := manifest(c.key, c.value)
		if _, err := ParseManifest([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n\tgot  %v\n\twant %s", text, err, c.want)
		}
	}
	for text, want := range map[string]string{
		"":                       "EOF",
		"[]":                     "cannot unmarshal array",
		"{}{}":                   "text after the JSON value",
		manifest("", "") + "x":   "text after the JSON value",
		`{"name":"g","name":"h"`: "twice",
		"{\"name\":\"\xff\"}":    "not UTF-8",
		"{" + strings.Repeat(" ", MaxManifest) + "}": "the limit is 65536",
		`{"name":}`: "invalid character",
	} {
		if _, err := ParseManifest([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q\n\tgot  %v\n\twant %s", text, err, want)
		}
	}
}

func TestManifestReportsAllProblems(t *testing.T) {
	_, err := ParseManifest([]byte(`{"name":"","abi":3,"roles":["x"]}`))
	for _, want := range []string{"name", "abi 3", "role \"x\""} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

func TestRoleExports(t *testing.T) {
	have := map[string]bool{}
	for _, r := range []Role{RoleParser, RoleHandler, RolePolicy} {
		have[r.Export()] = true
	}
	for _, e := range exports() {
		if (e.Need == "role") != have[e.Name] {
			t.Errorf("%s: %s", e.Name, e.Need)
		}
	}
}

func TestAppendManifest(t *testing.T) {
	text := []byte(" " + manifest("", "") + "\n")
	section := func(name, content string) string {
		body := string(byte(len(name))) + name + content
		return "\x00" + string(byte(len(body))) + body
	}
	types := "\x01\x84\x80\x80\x80\x00\x01\x60\x00\x00" // a padded size, as linkers write it
	old := section(ManifestSection, "{}")
	plain := moduleHeader + types + section("name", "abc")
	want, err := AppendManifest([]byte(plain), text)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(want, []byte(plain)) || !bytes.HasSuffix(want, []byte(ManifestSection+manifest("", ""))) {
		t.Errorf("%q", want)
	}
	for _, module := range []string{
		string(want),
		moduleHeader + old + types + section("name", "abc"),
		moduleHeader + types + old + section("name", "abc") + old,
	} {
		got, err := AppendManifest([]byte(module), text)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%q: %v", got, err)
		}
	}
	for module, want := range map[string]string{
		"":                         "not a WebAssembly module",
		"\x00asm":                  "not a WebAssembly module",
		"\x7fELF\x01\x00\x00\x00":  "not a WebAssembly module",
		"\x00asm\x0d\x00\x01\x00":  "not a component",
		moduleHeader + "\x01":      "cut short",
		moduleHeader + "\x01\x02a": "cut short",
		moduleHeader + "\x01\xff\xff\xff\xff\xff\x00": "malformed",
		moduleHeader + "\x01\xff\xff\xff\xff\x1f":     "malformed",
		moduleHeader + "\x01\xff\xff\xff\xff\x0f":     "cut short",
	} {
		if _, err := AppendManifest([]byte(module), text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", module, err, want)
		}
	}
	if _, err := AppendManifest([]byte(plain), []byte("{}")); err == nil {
		t.Error("a bad manifest was appended")
	}
}
