package lower_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hint/lower"
	"github.com/kvrt/kvrt/internal/pyenv"
)

// These tests hold what is written here against the field's own encoders: msgspec on
// vLLM's structs, msgpack, and protobuf's own Python.

// randomValue writes a JSON value as senders do: floats and integers of every spelling,
// white space, escapes. wide also gives integers that no double holds.
func randomValue(r *rand.Rand, depth int, wide bool) string {
	kinds := 12
	if depth <= 0 {
		kinds = 9
	}
	switch r.IntN(kinds) {
	case 0:
		return []string{"null", "true", "false"}[r.IntN(3)]
	case 1:
		v := r.Uint64() >> r.IntN(64)
		if !wide {
			v &^= 1<<11 - 1
		}
		return strconv.FormatUint(v, 10)
	case 2:
		v := r.Int64() >> r.IntN(63)
		if !wide {
			v &^= 1<<11 - 1
		}
		return strconv.FormatInt(-1<<11-v&(1<<63-1), 10)
	case 3:
		return []string{"1.50", "1e3", "-0.0", "0.1", "1E-7", "5e-324", "1.7976931348623157e308", "-2.5e+10", "100000.0", "0"}[r.IntN(10)]
	case 4:
		return strconv.Itoa(r.IntN(300) - 150)
	case 5, 6:
		return []string{`""`, `"x"`, `"tcp://10.0.0.9:23280"`, `"é日😀"`, `"\u00e9\ud83d\ude00\n\"\\\/"`, `"` + strings.Repeat("long ", r.IntN(60)) + `"`}[r.IntN(6)]
	case 7, 8:
		items := make([]string, r.IntN(20))
		for i := range items {
			v := r.Uint64() >> r.IntN(64)
			if !wide {
				v = v >> 12 << 11
			}
			items[i] = strconv.FormatUint(v, 10)
		}
		return "[" + strings.Join(items, []string{",", ", "}[r.IntN(2)]) + "]"
	case 9:
		items := make([]string, r.IntN(5))
		for i := range items {
			items[i] = randomValue(r, depth-1, wide)
		}
		return "[ " + strings.Join(items, " , ") + "]"
	}
	return randomObject(r, depth, wide, nil)
}

func randomObject(r *rand.Rand, depth int, wide bool, first []string) string {
	items := first
	for i := range r.IntN(6) * (1 + 3*r.IntN(2)) {
		key, _ := json.Marshal([]string{"", "a", "z", "é", "日", "\uffff", "😀", "key with space", "Z"}[r.IntN(9)] + strconv.Itoa(i))
		items = append(items, string(key)+[]string{":", " : "}[r.IntN(2)]+randomValue(r, depth-1, wide))
	}
	r.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	return "{" + strings.Join(items, []string{",", " ,\n "}[r.IntN(2)]) + "}"
}

// randomEnvelopes are envelopes whose ids are strings already.
func randomEnvelopes(n int, wide bool) []string {
	r := rand.New(rand.NewPCG(3, 5))
	out := make([]string, n)
	for i := range out {
		actions := make([]string, r.IntN(4))
		for j := range actions {
			var hashes []string
			if r.IntN(2) == 0 {
				list := make([]string, r.IntN(40))
				for k := range list {
					list[k] = []string{strconv.FormatUint(r.Uint64(), 10), "18446744073709551615", "0", "-1", "-9223372036854775808", `"00ABcd"`}[r.IntN(1+5*r.IntN(2))]
				}
				hashes = []string{`"block_hashes": [` + strings.Join(list, ",") + "]"}
			}
			typ := []string{"kv.fetch", "kv.fetch", "kv.retain"}[r.IntN(3)]
			if typ != "kv.fetch" && !wide {
				hashes = nil
			}
			actions[j] = fmt.Sprintf(`{"action_id":"a%d","action_type":%q,"action_version":"1.0","payload":%s}`, j, typ, randomObject(r, 4, wide, hashes))
		}
		out[i] = fmt.Sprintf(`{"protocol_version":"0.1","message_id":%q,"actions":[%s]}`, []string{"", "m1", strings.Repeat("m", 40)}[r.IntN(3)], strings.Join(actions, ","))
	}
	return out
}

// python gives a program lines on its standard input and returns its lines.
func python(t *testing.T, program string, lines []string, env ...string) []string {
	t.Helper()
	cmd := exec.Command(pyenv.Python(t), "-c", program)
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(got) != len(lines) {
		t.Fatalf("%d answers to %d lines", len(got), len(lines))
	}
	return got
}

// compact puts a document on one line. Numbers stay as they are spelled.
func compact(t *testing.T, doc string) string {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(doc)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// vllmProgram encodes with msgspec on vLLM's structs: those of the wheel that
// KVRT_VLLM_WHEEL names, whose v1/kv_hints/protocol.py needs nothing but msgspec, else
// structs of the same published fields. It also reads what was written as JSON.
const vllmProgram = `
import json, os, sys, zipfile
from typing import Any
import msgspec
wheel = os.environ.get("KVRT_VLLM_WHEEL")
if wheel:
    scope = {"__name__": "protocol"}
    sys.modules["protocol"] = type(sys)("protocol")
    scope = sys.modules["protocol"].__dict__
    exec(zipfile.ZipFile(wheel).read("vllm/v1/kv_hints/protocol.py"), scope)
    KvHintAction, KvHintsEnvelope = scope["KvHintAction"], scope["KvHintsEnvelope"]
else:
    class KvHintAction(msgspec.Struct, frozen=True):
        action_id: str
        action_type: str
        action_version: str
        payload: dict[str, Any]
    class KvHintsEnvelope(msgspec.Struct, frozen=True):
        protocol_version: str
        message_id: str
        actions: list[KvHintAction]
for line in sys.stdin:
    sent, written = line.rstrip("\n").split("\t")
    e = json.loads(sent)
    e = KvHintsEnvelope(e["protocol_version"], e["message_id"], [KvHintAction(**a) for a in e["actions"]])
    assert msgspec.convert(json.loads(written), KvHintsEnvelope) == e, written
    print(msgspec.msgpack.encode(e).hex())
`

func TestAgainstMsgspec(t *testing.T) {
	sent := randomEnvelopes(400, true)
	lines, ours := make([]string, len(sent)), make([]string, len(sent))
	for i, env := range sent {
		ours[i], _, _ = run(t, lower.Target{Engine: lower.VLLM, Form: lower.FormMsgpack, EnvelopeOnly: true}, `{"kv_hint":`+env+`}`)
		asJSON, _, err := run(t, lower.Target{Engine: lower.VLLM, EnvelopeOnly: true}, `{"kv_hint":`+env+`}`)
		if err != nil || ours[i] == "" {
			t.Fatalf("%s: %v", env, err)
		}
		lines[i] = compact(t, env) + "\t" + compact(t, asJSON)
	}
	for i, want := range python(t, vllmProgram, lines) {
		if got := hex.EncodeToString([]byte(ours[i])); got != want {
			t.Fatalf("%s:\n got %s\nwant %s", sent[i], got, want)
		}
	}
}

// TestAgainstMsgpack holds whole requests: the msgpack form of a JSON request is what
// the msgpack package makes of it, and lowering does not care how a request came.
func TestAgainstMsgpack(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	sent := randomEnvelopes(200, true)
	lines, ours := make([]string, len(sent)), make([]string, len(sent))
	targets := []lower.Target{{Engine: lower.VLLM}, {Engine: lower.VLLM, Version: "0.30.0"}, {Engine: lower.TRTLLM}, {Engine: lower.VLLM, Dialect: lower.DialectLLMD}}
	for i, env := range sent {
		env = strings.Replace(env, `"message_id":""`, `"message_id":"m"`, 1)
		request := randomObject(r, 3, true, []string{`"kv_hint":` + env, `"sampling_params":` + randomObject(r, 2, true, []string{`"extra_args":` + randomObject(r, 2, true, nil)}), `"kv_transfer_params":` + randomObject(r, 2, true, nil)})
		target := targets[i%len(targets)]
		asJSON, _, err := run(t, target, request)
		if err != nil {
			t.Fatalf("%s: %v", request, err)
		}
		target.Form = lower.FormMsgpack
		if ours[i], _, err = run(t, target, request); err != nil {
			t.Fatalf("%s: %v", request, err)
		}
		lines[i] = compact(t, asJSON)

		// The same request as msgpack, to the same answer and back to JSON.
		same, _, err := (&lower.Lowerer{}).Append(nil, hint.FormatJSON, []byte(`{}`))
		if err != nil || string(same) != "{}" {
			t.Fatal("the zero Lowerer passes requests without hints on")
		}
		packed := transcoded(t, request)
		again, _, err := run(t, target, string(packed))
		if err != nil || again != ours[i] {
			t.Fatalf("%s as msgpack:\n got %x (%v)\nwant %x", request, again, err, ours[i])
		}
	}
	for i, want := range python(t, "import json, msgpack, sys\nfor line in sys.stdin: print(msgpack.packb(json.loads(line)).hex())", lines) {
		if got := hex.EncodeToString([]byte(ours[i])); got != want {
			t.Fatalf("%s:\n got %s\nwant %s", lines[i], got, want)
		}
	}
}

// transcoded is a JSON document as msgpack.
func transcoded(t *testing.T, doc string) []byte {
	tree, root, err := hint.AppendTree(nil, hint.FormatJSON, []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	out, err := hint.AppendTreeMsgpack(nil, tree, root)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// protoProgram builds sglang.runtime.v1 at run time, lowers by the published rules on
// its own and serialises with protobuf. What we wrote must parse to an equal message.
const protoProgram = `
import json, sys
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, struct_pb2
F = descriptor_pb2.FieldDescriptorProto
f = descriptor_pb2.FileDescriptorProto(name="sglang.proto", package="sglang.runtime.v1", syntax="proto3", dependency=["google/protobuf/struct.proto"])
def message(name, *fields):
    m = f.message_type.add(name=name)
    for n, (field, kind, label, typ) in enumerate(fields, 1):
        m.field.add(name=field, number=n, type=kind, label=label, type_name=typ)
S, M, O, R = F.TYPE_STRING, F.TYPE_MESSAGE, F.LABEL_OPTIONAL, F.LABEL_REPEATED
message("KVHintAction", ("action_id", S, O, None), ("action_type", S, O, None), ("action_version", S, O, None), ("payload", M, O, ".google.protobuf.Struct"))
message("KVHintsEnvelope", ("protocol_version", S, O, None), ("message_id", S, O, None), ("actions", M, R, ".sglang.runtime.v1.KVHintAction"))
pool = descriptor_pool.DescriptorPool()
sf = descriptor_pb2.FileDescriptorProto(); struct_pb2.DESCRIPTOR.CopyToProto(sf)
pool.Add(sf); pool.Add(f)
Envelope = message_factory.GetMessageClass(pool.FindMessageTypeByName("sglang.runtime.v1.KVHintsEnvelope"))
class Inexact(Exception): pass
def value(out, v):
    if v is None: out.null_value = 0
    elif isinstance(v, bool): out.bool_value = v
    elif isinstance(v, (int, float)):
        if int(float(v)) != v and isinstance(v, int): raise Inexact
        out.number_value = float(v)
    elif isinstance(v, str): out.string_value = v
    elif isinstance(v, list):
        out.list_value.SetInParent()
        for x in v: value(out.list_value.values.add(), x)
    else:
        out.struct_value.SetInParent()
        struct(out.struct_value, v)
def struct(out, d):
    for k, v in d.items(): value(out.fields[k], v)
def digits(h): return h if isinstance(h, str) else "%016x" % (h & (1 << 64) - 1)
for line in sys.stdin:
    sent, written = line.rstrip("\n").split("\t")
    e = json.loads(sent)
    m = Envelope(protocol_version=e["protocol_version"], message_id=e["message_id"])
    try:
        for a in e["actions"]:
            p = dict(a["payload"])
            if e["protocol_version"] == "0.1" and a["action_type"] == "kv.fetch" and a["action_version"] == "1.0" and "block_hashes" in p:
                p["block_hashes"] = [digits(h) for h in p["block_hashes"]]
            out = m.actions.add(action_id=a["action_id"], action_type=a["action_type"], action_version=a["action_version"])
            out.payload.SetInParent()
            struct(out.payload, p)
    except Inexact:
        print("inexact"); continue
    if written != "inexact":
        assert Envelope.FromString(bytes.fromhex(written)) == m, sent
    print(m.SerializeToString(deterministic=True).hex())
`

func TestAgainstProtobuf(t *testing.T) {
	sent := append(randomEnvelopes(300, false), randomEnvelopes(300, true)...)
	lines := make([]string, len(sent))
	refused := 0
	for i, env := range sent {
		out, _, err := run(t, lower.Target{Engine: lower.SGLang, Form: lower.FormStruct}, `{"kv_hint":`+env+`}`)
		ours := hex.EncodeToString([]byte(out))
		if err != nil {
			if !strings.Contains(err.Error(), "cannot be represented exactly") {
				t.Fatalf("%s: %v", env, err)
			}
			ours = "inexact"
			refused++
		}
		lines[i] = compact(t, env) + "\t" + ours

		// The other forms refuse the same, and say the same.
		text, _, err2 := run(t, lower.Target{Engine: lower.SGLang}, `{"kv_hint":`+env+`}`)
		if (err2 == nil) != (err == nil) {
			t.Fatalf("%s: %v, but as protobuf %v", env, err2, err)
		}
		packed, _, err2 := run(t, lower.Target{Engine: lower.SGLang, Form: lower.FormMsgpack}, `{"kv_hint":`+env+`}`)
		if (err2 == nil) != (err == nil) || err == nil && packed != string(transcoded(t, text)) {
			t.Fatalf("%s: as msgpack %x (%v), as JSON %s (%v)", env, packed, err2, text, err)
		}
	}
	for i, want := range python(t, protoProgram, lines) {
		if _, got, _ := strings.Cut(lines[i], "\t"); got != want {
			t.Fatalf("%s:\n got %s\nwant %s", sent[i], got, want)
		}
	}
	if refused == 0 || refused > len(sent)*3/4 {
		t.Errorf("%d of %d envelopes were refused", refused, len(sent))
	}
}
