package config

import (
	"encoding/json"
	"strconv"

	"github.com/kvrt/kvrt/abi"
)

func policy() object[Policy] {
	return object[Policy]{fields: []field[Policy]{
		key("type", "Which guest it is: the name of one in guests, or of a built-in one, that has the role policy.",
			func(p *Policy) *string { return &p.Type }, name()).must(),
		opt("name", "Unique name in replies, logs and metrics. Default: the type. One type may stand here several times under different names.",
			func(p *Policy) *string { return &p.Name }, name()),
		key("parameters", "Given to the policy when it starts; checked against the schema in its manifest. Without the key: those of the guest.",
			func(p *Policy) *json.RawMessage { return &p.Parameters }, tree{}),
		opt("partition", "For which requests the policy runs. A key that is left out stands for every value.",
			func(p *Policy) *Partition { return &p.Partition }, object[Partition]{fields: partition(func(p *Partition) *Partition { return p })}),
	}}
}

// policyIdentity: no two policies have the same name, given or not.
func policyIdentity(p *Policy) (string, string) {
	if p.Name != "" {
		return id(p.Name), "name"
	}
	return id(p.Type), "type"
}

// partition is the keys of a partition that lies in a T.
func partition[T any](of func(*T) *Partition) []field[T] {
	return []field[T]{
		opt("model", "Model of the routing partition.",
			func(t *T) *string { return &of(t).Model }, text{}),
		opt("group", "Group of the routing partition.",
			func(t *T) *string { return &of(t).Group }, text{}),
		opt("worker_type", "Worker type of the routing partition, such as prefill.",
			func(t *T) *string { return &of(t).WorkerType }, text{}),
	}
}

func formulate() object[Formulate] {
	return object[Formulate]{fields: []field[Formulate]{
		key("kv_fetch", "one: an envelope takes one kv.fetch, and a policy's after another one is dropped as superseded; many.",
			func(f *Formulate) *KVFetchRule { return &f.KVFetch }, oneOf("value", FetchOne, FetchMany)),
		key("kv_retain", "any: policies may use either schema of kv.retain; token_ranges: {scope, directives} alone, which vLLM reads.",
			func(f *Formulate) *KVRetainRule { return &f.KVRetain }, oneOf("value", RetainAny, RetainTokenRanges)),
		key("payloads", "any; struct: what a policy adds must fit a protobuf Struct, in which SGLang has payloads: an integer that no double holds drops its action. Block hashes of kv.fetch 1.0 in protocol 0.1 become texts there and may be any.",
			func(f *Formulate) *PayloadRule { return &f.Payloads }, oneOf("value", PayloadsAny, PayloadsStruct)),
		key("partitions", "What the routers of partitions supply. A policy that runs there and requires something else is refused. Of other partitions nothing is known: there a request without a required field goes on without the policy.",
			func(f *Formulate) *[]Supply { return &f.Partitions }, many[Supply]{item: supply()}),
	}}
}

func supply() object[Supply] {
	fields := partition(func(s *Supply) *Partition { return &s.Partition })
	return object[Supply]{fields: append(fields,
		key("supplies", "Fields of the routing context that are there; request_id and selected always are.",
			func(s *Supply) *[]string { return &s.Supplies },
			many[string]{item: oneOf[string]("context field", abi.ContextFieldNames()...), what: "field", identity: quotedID}).must())}
}

// PolicyPath is the path of entry i of KVHintPolicy, as problems spell it: one policy may
// stand in the file without a list.
func (c *Config) PolicyPath(i int) string {
	const key = "kv_hint_policy"
	if n := c.root.child(key); n != nil && n.shape == mapping {
		return key
	}
	return key + "[" + strconv.Itoa(i) + "]"
}
