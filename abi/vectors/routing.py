"""Vectors of routing contexts: the JSON that a router hands over, and the ContextFrame that a host makes of it."""

import json
import struct

PRESENT = ["attempt", "prompt_tokens", "expected_output_tokens", "tools_declared", "block_size", "block_hashes", "candidates", "session_final"]
WORKER = ["dp_rank", "capabilities", "matched_gpu", "matched_cpu", "matched_disk", "matched_external"]
WORDS = {
    "leg": ["aggregated", "prefill", "decode"], "hash_kind": ["engine", "sequence", "local"],
    "input_trigger": ["user_message", "tool_result", "other"],
}  # fmt: skip


class Wrong(Exception):
    """A field that does not hold what it should; its path."""


def tree(v):
    if v is None:
        return {"null": None}
    if isinstance(v, bool):
        return {"bool": v}
    if isinstance(v, int):
        if 0 <= v < 1 << 64:
            return {"u64": str(v)}
        return {"i64": str(v)} if -(1 << 63) <= v < 0 else {"number": str(v)}
    if isinstance(v, float):
        return {"f64": struct.pack(">d", v).hex()}
    if isinstance(v, str):
        return {"string": v}
    if isinstance(v, dict):
        return {"map": [[{"string": k}, tree(x)] for k, x in v.items()]}
    nodes = [tree(x) for x in v]
    if nodes and all("u64" in n for n in nodes):
        return {"u64s": [n["u64"] for n in nodes]}
    return {"array": nodes}


class Fields:
    """A mapping, with where it stands."""

    def __init__(self, value, path=""):
        if not isinstance(value, dict):
            raise Wrong(path)
        self.value, self.path = value, path

    def at(self, name):
        return f"{self.path}.{name}" if self.path else name

    def get(self, name, ok):
        v = self.value.get(name)
        if v is not None and not ok(v):
            raise Wrong(self.at(name))
        return v

    def text(self, name):
        return self.get(name, lambda v: isinstance(v, str))

    def number(self, name, bits):
        return self.get(name, lambda v: type(v) is int and 0 <= v < 1 << bits)

    def flag(self, name):
        return self.get(name, lambda v: isinstance(v, bool))

    def word(self, name):
        v = self.get(name, lambda v: v in WORDS[name])
        return str(WORDS[name].index(v) + 1) if v is not None else "0"

    def within(self, name):
        v = self.value.get(name)
        return Fields({} if v is None else v, self.at(name))

    def items(self, name):
        v = self.get(name, lambda v: isinstance(v, list))
        return None if v is None else [(x, f"{self.at(name)}[{i}]") for i, x in enumerate(v)]


def bits(names, given):
    return str(sum(1 << i for i, n in enumerate(names) if given.get(n) is not None))


def digits(v):
    return str(int(v)) if v is not None else "0"


def worker(value, path):
    f = Fields(value, path)
    ident = f.get("worker_id", lambda v: type(v) is int and -(1 << 63) <= v < 1 << 64 or isinstance(v, str) and 0 < len(v.encode()) <= 512)
    if ident is None:
        raise Wrong(f.at("worker_id"))
    capabilities = f.items("capabilities")
    for c, at in capabilities or []:
        if not isinstance(c, str):
            raise Wrong(at)
    matched = f.within("matched_blocks")
    given = {"dp_rank": f.number("dp_rank", 32), "capabilities": capabilities}
    for tier in "gpu", "cpu", "disk", "external":
        given["matched_" + tier] = matched.number(tier, 32)
    out = {name: digits(v) for name, v in given.items() if name != "capabilities"}
    return {
        "id": tree(ident), "present": bits(WORKER, given), "worker_type": f.text("worker_type"),
        "source_control_endpoint": f.text("source_control_endpoint"),
        "capabilities": None if capabilities is None else [c for c, _ in capabilities], **out,
    }  # fmt: skip


def hint(f, name):
    v = f.get(name, lambda v: isinstance(v, dict))
    if v is None:
        return {"absent": None}
    if not isinstance(v.get("actions"), list):
        raise Wrong(name)
    for i, a in enumerate(v["actions"]):
        if not isinstance(a, dict) or not isinstance(a.get("action_type"), str) or not a["action_type"]:
            raise Wrong(f"{name}.actions[{i}]")
    return tree(v)


def context(document):
    """What a ContextFrame says of a document, in the notation of README.md."""
    f = Fields(document)
    request = f.text("request_id")
    if not request:
        raise Wrong("request_id")
    partition, session = f.within("partition"), f.within("session")
    hashes, candidates = f.items("block_hashes"), f.items("candidates")
    for h, at in hashes or []:
        if type(h) is not int or not 0 <= h < 1 << 64:
            raise Wrong(at)
    given = {
        "attempt": f.number("attempt", 32), "prompt_tokens": f.number("prompt_tokens", 64),
        "expected_output_tokens": f.number("expected_output_tokens", 64), "tools_declared": f.flag("tools_declared"),
        "block_size": f.number("block_size", 32), "session_final": session.flag("session_final"),
        "block_hashes": hashes, "candidates": candidates,
    }  # fmt: skip
    if f.value.get("selected") is None:
        raise Wrong("selected")
    kind = f.word("hash_kind")
    return {
        "present": bits(PRESENT, given), "request_id": request, "leg": f.word("leg"),
        **{n: partition.text(n) for n in ("model", "group", "worker_type")},
        "tenant": f.text("tenant"), "namespace": f.text("namespace"),
        **{n: digits(v) for n, v in given.items() if n not in ("block_hashes", "candidates")},
        "hash_kind": kind if hashes is not None else "0",
        "candidates": None if candidates is None else [worker(w, at) for w, at in candidates],
        "block_hashes": None if hashes is None else [str(h) for h, _ in hashes],
        "session_id": session.text("session_id"), "parent_session_id": session.text("parent_session_id"),
        "input_trigger": session.word("input_trigger"), "selected": worker(f.value["selected"], "selected"),
        "request_hint": hint(f, "request_hint"), "selection_hint": hint(f, "selection_hint"),
    }  # fmt: skip


SELECTED = {"worker_id": 7}
FULL = {
    "request_id": "r1", "attempt": 0, "leg": "aggregated", "partition": {"model": "m", "group": "default", "worker_type": "aggregated"},
    "tenant": "t1", "namespace": "", "prompt_tokens": 4096, "expected_output_tokens": 512, "tools_declared": True,
    "session": {"session_id": "s1", "parent_session_id": None, "session_final": False, "input_trigger": "tool_result"},
    "selected": {"worker_id": 7, "dp_rank": 0, "worker_type": "aggregated", "capabilities": ["kv.fetch", "kv.retain"], "matched_blocks": {"gpu": 3, "cpu": 0}},
    "candidates": [{"worker_id": 9, "dp_rank": 0, "worker_type": "aggregated", "source_control_endpoint": "tcp://10.0.0.9:23280", "matched_blocks": {"gpu": 12}}],
    "block_hashes": [1, (1 << 64) - 1], "hash_kind": "engine", "block_size": 16, "request_hint": None, "selection_hint": None,
    "events": [{"type": "match", "session_id": "s1", "worker_id": 7, "dp_rank": 0, "block_hash": 1}],
}  # fmt: skip
ACTION = {"action_id": "a", "action_type": "kv.fetch", "action_version": "1.0", "payload": {"block_hashes": [(1 << 53) + 1], "x": [1.5, -1, None]}}


def vectors():
    out = []

    def v(name, what, **given):
        document = {"request_id": "r", "selected": SELECTED, **given}
        document = {k: x for k, x in document.items() if x is not ...}
        made = {"name": name, "what": what, "document": json.dumps(document, ensure_ascii=False)}
        try:
            made["value"] = context(document)
        except Wrong as e:
            made["error"] = str(e)
        out.append(made)

    def selected(name, what, **given):
        v(name, what, selected={**SELECTED, **given})

    v("least", "only what is required")
    v("full", "every field", **FULL)
    v("nulls", "null is absent", **{k: None for k in FULL if k not in ("request_id", "selected")})
    v("empty", "empty is not absent", candidates=[], block_hashes=[], tenant="", session={}, partition={"model": ""})
    v("zeros", "zero is not absent", attempt=0, prompt_tokens=0, expected_output_tokens=0, block_size=0, tools_declared=False, session={"session_final": False})
    v("largest", "", attempt=(1 << 32) - 1, prompt_tokens=(1 << 64) - 1, block_size=(1 << 32) - 1, block_hashes=[0, (1 << 53) + 1, (1 << 63), (1 << 64) - 1])
    v("kind-alone", "a kind of hashes without hashes is absent", hash_kind="local")
    v("unknown-keys", "are ignored", future={"a": [1]}, session={"session_id": "s", "future": 1}, selected={**SELECTED, "future": None})
    v("hints", "both, exactly", request_hint={"message_id": "m", "actions": [ACTION], "x": 1}, selection_hint={"actions": []})
    v("candidates", "ids of three kinds", candidates=[{"worker_id": -(1 << 63)}, {"worker_id": "7"}, {"worker_id": (1 << 64) - 1, "capabilities": []}])
    selected("capabilities-empty", "an empty list is present", capabilities=[])
    selected("capabilities-listed", "", capabilities=["kv.fetch", ""])
    selected("matched-all", "", matched_blocks={"gpu": 0, "cpu": 1, "disk": 2, "external": (1 << 32) - 1})
    selected("id-text", "", worker_id="node-é")

    v("no-request-id", "required", request_id=...)
    v("request-id-empty", "not empty", request_id="")
    v("request-id-number", "a string", request_id=7)
    v("no-selected", "required", selected=...)
    v("selected-null", "required", selected=None)
    v("selected-no-id", "required", selected={})
    selected("id-bool", "an integer or a string", worker_id=True)
    selected("id-float", "an integer or a string", worker_id=7.0)
    selected("id-2-64", "below 2^64", worker_id=1 << 64)
    selected("id-empty", "not empty", worker_id="")
    selected("rank-negative", "not negative", dp_rank=-1)
    selected("rank-2-32", "below 2^32", dp_rank=1 << 32)
    selected("capabilities-text", "a list", capabilities="kv.fetch")
    selected("capability-null", "a string", capabilities=["kv.fetch", None])
    selected("matched-list", "a mapping", matched_blocks=[1])
    selected("matched-bool", "an integer", matched_blocks={"disk": True})
    v("leg-unknown", "one of three", leg="both")
    v("trigger-unknown", "one of three", session={"input_trigger": "UserMessage"})
    v("kind-unknown", "one of three", hash_kind="sha256")
    v("attempt-float", "an integer", attempt=1.0)
    v("tokens-negative", "not negative", prompt_tokens=-1)
    v("tools-number", "a bool", tools_declared=1)
    v("partition-text", "a mapping", partition="m")
    v("session-list", "a mapping", session=[])
    v("hashes-negative", "not negative", block_hashes=[1, -1])
    v("hashes-text", "integers", block_hashes=["1"])
    v("candidate-number", "a mapping", candidates=[{"worker_id": 1}, 2])
    v("candidate-no-id", "required", candidates=[{"worker_id": 1}, {"dp_rank": 0}])
    v("hint-list", "a mapping", request_hint=[])
    v("hint-no-actions", "an envelope", selection_hint={"message_id": "m"})
    v("hint-no-type", "a sound action", request_hint={"actions": [ACTION, {"payload": {}}]})
    return out
