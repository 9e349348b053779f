package config

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemaCheck returns a function that holds a file, variables and all, to the schema.
func schemaCheck(t *testing.T) func(data []byte) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("kvrt.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("kvrt.json")
	if err != nil {
		t.Fatal(err)
	}
	return func(data []byte) error {
		r := &reader{report: &report{file: "kvrt.yaml"}}
		// An editor does not expand variables: give each its own reference back.
		n := parseTree(data, r.report, func(name string) (string, bool) { return "${env:" + name + "}", true })
		if n == nil {
			return r.err()
		}
		return s.Validate(n.value())
	}
}

func TestSchemaIsCommitted(t *testing.T) {
	const file = "kvrt.schema.json"
	if *update {
		if err := os.WriteFile(file, Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(Schema(), want) {
		t.Errorf("%s is not what Schema returns; run go test ./config -update", file)
	}
}

// Every exported field of the structs is a key of the table and nothing else is: a field
// that the table forgets could be neither set nor written back.
func TestTableCoversStructs(t *testing.T) {
	covers(t, spec())
	covers(t, guest())
	covers(t, fetch())
	covers(t, listen())
	covers(t, worker())
	covers(t, rank())
	covers(t, policy())
}

func covers[T any](t *testing.T, o object[T]) {
	t.Helper()
	typ := reflect.TypeFor[T]()
	want := map[string]bool{}
	for i := range typ.NumField() {
		if f := typ.Field(i); f.IsExported() {
			want[strings.ToLower(f.Name)] = true
		}
	}
	for _, f := range o.fields {
		name := strings.ReplaceAll(f.name, "_", "")
		if !want[name] {
			t.Errorf("%s: key %q has no field", typ, f.name)
		}
		if f.doc == "" {
			t.Errorf("%s: key %q has no description", typ, f.name)
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("%s: field %s has no key", typ, name)
	}
}

// What the schema can tell, it tells as Parse does.
func TestSchemaAgreesWithParse(t *testing.T) {
	check := schemaCheck(t)
	guest := func(keys string) string { return "guests: [{name: a, module: /a.wasm" + keys + "}]" }
	good := []string{
		"{}",
		guest(""),
		guest(", sha256: ''"),
		guest(", sha256: " + strings.Repeat("aB", 32)),
		guest(", grants: [kvrt_fetch, kvrt_gpu]"),
		guest(", limits: {fuel: 0, memory: 0, init_fuel: 0}"),
		guest(", limits: {memory: 65536, init_fuel: 18}"),
		guest(", limits: {parse_fuel: 1, idle_calls: 1, table_elements: 0, call_depth: 16MiB, log_bytes: 0, host_bytes: 1TiB}"),
		"guest_memory: 1GiB",
		guest(", parameters: {anything: [1, x, ~]}"),
		"guests: [{name: a, module: 'embedded:kv-fetch'}]",
		"guests: [{name: a, module: a/b://c.wasm}]",
		"kv_hint_policy: {type: a}",
		"kv_hint_policy: [{type: a}, {type: b, parameters: {}}]",
		"kv_hint_policy: [{type: a}, {type: a, name: b, partition: {model: m, group: g, worker_type: t}}]",
		"formulate: {kv_fetch: many, kv_retain: token_ranges, partitions: [{supplies: []}, {model: m, supplies: [session_id]}]}",
		"workers: [{id: 0}, {id: a}]",
		"workers: [{id: 0, namespace: n, ranks: [{events: 'ipc:///e'}]}]",
		"lineage: {max_sessions: 1, max_nodes: 1024}",
		"listen: {http: /tmp/h.sock}",
		"drain_timeout: ${env:X:-3s}",
		"log: {level: '${env:X:-info}'}",
		"limits:\n  actions: ${env:X:-1}\n  body_bytes: ${env:Y:-1MiB}",
		"listen:\n  admin_insecure: ${env:X:-true}\n  admin: ${env:Y:-127.0.0.1:1}",
	}
	for _, s := range good {
		if _, err := Parse("f", []byte(s)); err != nil {
			t.Errorf("%s: %v", s, err)
		}
		if err := check([]byte(s)); err != nil {
			t.Errorf("%s: schema: %v", s, err)
		}
	}
	bad := []string{
		"[]", "5", "unknown: 1", "guests: {}", "guests: [5]", "guests: [{}]", "guests: [{name: a}]", "guests: [{module: a}]",
		"guests: [{name: '', module: a}]", "guests: [{name: 'a b', module: a}]", "guests: [{name: a, module: ''}]",
		"guests: [{name: a, module: 'oci://x'}]", "guests: [{name: a, module: 'embedded:'}]",
		guest(", unknown: 1"), guest(", sha256: ab"), guest(", grants: kvrt_log"), guest(", grants: [nothing]"), guest(", parameters: []"),
		guest(", parameters: x"), guest(", limits: 5"), guest(", limits: {x: 1}"), guest(", limits: {fuel: -1}"), guest(", limits: {fuel: 1.5}"),
		guest(", limits: {fuel: x}"), guest(", limits: {memory: 1}"), guest(", limits: {memory: 1MB}"), guest(", limits: {memory: 4295032832}"),
		guest(", limits: {instances: 1025}"), guest(", limits: {init_fuel: 5s}"), guest(", limits: {init_fuel: -5}"), guest(", limits: {init_fuel: 1.5}"),
		guest(", limits: {table_elements: 16777217}"), guest(", limits: {call_depth: 16777217}"), guest(", limits: {host_calls: -1}"), "guest_memory: 0", "guest_memory: 1000",
		guest(", on_error: close"), guest(", on_error: ~"),
		"kv_hint_policy: x", "kv_hint_policy: {}", "kv_hint_policy: [{parameters: {}}]", "kv_hint_policy: {type: ''}", "kv_hint_policy: {type: a, name: ''}", "kv_hint_policy: {type: a, partition: {engine: x}}",
		"formulate: {kv_fetch: two}", "formulate: {kv_retain: blocks}", "formulate: {partitions: {}}", "formulate: {partitions: [{model: m}]}", "formulate: {partitions: [{supplies: [sessions]}]}",
		"fetch: []", "fetch: {x: 1}", "fetch: {allowed_sources: ['']}", "fetch: {allowed_sources: x}", "fetch: {ttl: 10}", "fetch: {max_entries: 0}", "fetch: {max_hashes: 1.5}", "fetch: {tombstone_ttl: x}",
		"store: {capacity: x}", "store: {capacity: 0}", "store: {block_bytes: [100]}", "store: {checksum: 1}", "store: {x: 1}", "gpu: {device: x}", "gpu: {x: 1}", "gpu: {capacity: 0}", "gpu: {block_bytes: 100}", "gpu: {after_fetch: 1}", "gpu: {prefetch_timeout: 5}",
		"workers: {}", "workers: [{}]", "workers: [{id: -1}]", "workers: [{id: 1.5}]", "workers: [{id: ''}]", "workers: [{id: 1, type: x}]", "workers: [{id: 1, block_size: 0}]",
		"workers: [{id: 1, capabilities: x}]", "workers: [{id: 1, ranks: [{dp_rank: -1}]}]", "workers: [{id: 1, ranks: [{dp_rank: 0, source: host}]}]",
		"request_hints: drop", "forward_unknown: strip", "listen: {socket: 5}", "listen: {socket: ''}", "listen: {admin: x}", "listen: {admin: ':1'}", "listen: {admin_insecure: 1}", "listen: {http: ''}", "lineage: {max_nodes: 0}", "lineage: {nodes: 1}", "workers: [{id: 1, namespace: ''}]",
		"limits: {body_bytes: 1}", "limits: {actions: 0}", "log: {level: x}", "log: {format: x}", "log: ~", "drain_timeout: x", "drain_timeout: ~",
		"compile: {timeout: x}", "compile: {memory: 1}", "compile: {cache: 1}", "compile: {cache: ''}", "compile: {cache_size: 1}", "compile: {children: 0}", "compile: ~",
	}
	for _, s := range bad {
		if _, err := Parse("f", []byte(s)); err == nil {
			t.Errorf("Parse takes %s", s)
		}
		if err := check([]byte(s)); err == nil {
			t.Errorf("the schema takes %s", s)
		}
	}
}
