#!/usr/bin/env python3
"""Writes the vectors: make.py [--check]. The bytes come from layout.py, a second implementation of
the layouts; the Go package only reads them, so the two are held against each other."""

import json
import pathlib
import sys

sys.dont_write_bytecode = True  # before what lies beside this file

import layout
from layout import node, span, u32, u64

HASHES = [0, 1, (1 << 53) - 1, 1 << 53, (1 << 53) + 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
DIGITS = "".join(str(i % 10) for i in range(1, 401))


class File:
    def __init__(self, record, encode):
        self.record, self.encode, self.vectors = record, encode, []

    def good(self, name, what, value):
        data = self.encode(value)
        self.vectors.append({"name": name, "what": what, "hex": data.hex(), "value": value})
        return data

    def bad(self, name, what, data, *patches):
        data = bytearray(data)
        for off, put in patches:
            data[off : off + len(put)] = put
        self.vectors.append({"name": name, "what": "must be refused", "hex": bytes(data).hex(), "error": what})


def s(text):
    return {"string": text}


def u(n):
    return {"u64": str(n)}


def nest(depth, inner):
    for _ in range(depth):
        inner = {"array": [inner]}
    return inner


def trees():
    f = File("Node", layout.tree)
    f.good("absent", "nothing was sent", {"absent": None})
    f.good("null", "", {"null": None})
    f.good("false", "", {"bool": False})
    f.good("true", "", {"bool": True})
    for n in HASHES:
        f.good(f"u64-{n}", "", u(n))
    for n in -1, -(1 << 53) - 1, -(1 << 63):
        f.good(f"i64{n}", "", {"i64": str(n)})
    for name, bits in (("half", "3fe0000000000000"), ("minus-zero", "8000000000000000"), ("five", "4014000000000000"),
                       ("infinity", "7ff0000000000000"), ("nan", "7ff8000000000000")):  # fmt: skip
        f.good(f"f64-{name}", "an integer that was sent as a float stays one" if name == "five" else "", {"f64": bits})
    for name, text in (("2-64", str(1 << 64)), ("below-minus-2-63", str(-(1 << 63) - 1)), ("1e400", "1e400"), ("minus-1e400", "-1E+400"),
                       ("fraction", "17.98e307"), ("400-digits", DIGITS), ("400-digits-negative", "-" + DIGITS)):  # fmt: skip
        f.good(f"number-{name}", "no 64-bit type holds it", {"number": text})
    f.good("string-empty", "", s(""))
    f.good("string", "", s("text"))
    f.good("string-unicode", "2, 3 and 4 bytes", s("é€😀"))
    f.good("string-nul", "a NUL is a character like others", s("a\0b"))
    f.good("bytes-empty", "", {"bytes": ""})
    f.good("bytes", "", {"bytes": "ff00fe"})
    f.good("ext", "a msgpack extension", {"ext": ["5", "010203"]})
    f.good("ext-255", "type -1 (timestamp) is 255", {"ext": ["255", "00000000"]})
    f.good("u64s-one", "", {"u64s": ["0"]})
    f.good("u64s", "the hashes that doubles and signed integers spoil", {"u64s": [str(h) for h in HASHES]})
    f.good("array-empty", "an empty array is an array", {"array": []})
    f.good("array-mixed", "one element that is not u64 makes it an array", {"array": [u(1), s("2"), {"null": None}]})
    f.good("array-negative", "", {"array": [u(1), {"i64": "-1"}]})
    f.good("array-float", "", {"array": [{"f64": "3ff0000000000000"}]})
    f.good("array-number", "2^64 is not u64", {"array": [u(1), {"number": str(1 << 64)}]})
    f.good("array-bool", "", {"array": [{"bool": True}]})
    f.good("array-nested", "", {"array": [{"u64s": ["1"]}, {"u64s": ["2", "3"]}, {"array": []}]})
    f.good("map-empty", "", {"map": []})
    f.good("map-order", "the sender's order is kept", {"map": [[s("b"), u(1)], [s("a"), u(2)]]})
    f.good("map-keys", "msgpack allows other keys", {"map": [[u(7), s("seven")], [{"i64": "-7"}, {"null": None}]]})
    f.good("map-fetch", "", {"map": [[s("source"), {"null": None}], [s("block_hashes"), {"u64s": [str(HASHES[-1])]}]]})
    f.good("deep-32", "32 containers and a scalar in the innermost", nest(32, {"null": None}))
    f.good("deep-32-empty", "", nest(31, {"array": []}))
    f.good("deep-32-u64s", "a u64s holds no nodes, so it does not count as a container", nest(32, {"u64s": ["1"]}))

    f.bad("deep-33", "33 containers", layout.tree(nest(33, {"null": None})))
    f.bad("deep-33-empty", "33 containers", layout.tree(nest(32, {"array": []})))
    scalar = node(1)
    f.bad("tag-13", "unknown tag", node(13))
    f.bad("tag-255", "unknown tag", node(255))
    f.bad("absent-val", "absent with a value", node(0, 0, 1))
    f.bad("null-val", "null with a value", node(1, 0, 1))
    f.bad("null-len", "null with a length", node(1, 1))
    f.bad("bool-2", "a bool is 0 or 1", node(2, 0, 2))
    f.bad("bool-len", "a scalar has length 0", node(2, 1, 1))
    f.bad("u64-len", "a scalar has length 0", node(3, 1, 1))
    f.bad("f64-len", "a scalar has length 0", node(5, 8, 1))
    f.bad("i64-positive", "an integer that is not negative is u64", node(4, 0, 1))
    f.bad("i64-zero", "an integer that is not negative is u64", node(4, 0, 0))
    f.bad("ext-on-string", "only ext has an extension type", node(7, 0, 0, ext=1))
    for name, text in (("fits-u64", str((1 << 64) - 1)), ("fits-i64", str(-(1 << 63))), ("fits-f64", "1e308"), ("small", "5"), ("zero", "-0"),
                       ("tiny", "1e-400"), ("leading-zero", "0" + DIGITS), ("plus", "+1e400"), ("dot", "1.e400"), ("no-digits", ".5e400"),
                       ("no-exponent", "1e"), ("nan", "NaN"), ("empty", ""), ("space", " 1e400"), ("tail", "1e400 "), ("hex", "0x1p1024")):  # fmt: skip
        f.bad(f"number-{name}", "not a number, or one that a 64-bit type holds", layout.tree({"number": text}))
    for name, raw in (("ff", b"\xff"), ("overlong", b"\xc0\x80"), ("surrogate", b"\xed\xa0\x80"), ("beyond", b"\xf4\x90\x80\x80"),
                      ("cut", "€".encode()[:2]), ("lone", b"\x80")):  # fmt: skip
        f.bad(f"utf8-{name}", "not UTF-8", node(7, len(raw), 16) + raw.ljust(8, b" "))
    tail = bytes(16)
    f.bad("string-one-past", "outside", node(7, 17, 16) + tail)
    f.bad("string-at-end", "outside", node(7, 1, 32) + tail)
    f.bad("string-2-31", "outside", node(7, 1, 1 << 31) + tail)
    f.bad("string-2-32-1", "outside, and offset + length wraps in 32 bits", node(7, 2, (1 << 32) - 1) + tail)
    f.bad("string-2-32", "the offset's upper half counts", node(7, 1, (1 << 32) + 16) + tail)
    f.bad("string-2-64-1", "outside, and offset + length wraps in 64 bits", node(7, 2, (1 << 64) - 1) + tail)
    f.bad("string-len-2-32-1", "outside", node(7, (1 << 32) - 1, 16) + tail)
    f.bad("array-2-28", "2^28 nodes are 2^32 bytes", node(9, 1 << 28, 16) + tail)
    f.bad("map-2-27", "2^27 entries are 2^32 bytes", node(10, 1 << 27, 16) + tail)
    f.bad("u64s-2-29", "2^29 numbers are 2^32 bytes", node(11, 1 << 29, 16) + tail)
    f.bad("array-past", "outside", node(9, 2, 16) + scalar)
    f.bad("map-past", "outside", node(10, 1, 16) + scalar)
    f.bad("u64s-past", "outside", node(11, 3, 16) + tail)
    f.bad("array-unaligned", "nodes are 8-byte aligned", node(9, 1, 20) + bytes(4) + scalar + bytes(4))
    f.bad("map-unaligned", "entries are 8-byte aligned", node(10, 1, 20) + bytes(4) + scalar + scalar + bytes(4))
    f.bad("u64s-unaligned", "numbers are 8-byte aligned", node(11, 1, 17) + tail)
    f.bad("u64s-empty", "an empty array is an array", node(11, 0, 16))
    f.bad("array-all-u64", "an array of u64 only is a u64s", node(9, 2, 16) + node(3, 0, 1) + node(3, 0, 2))
    f.bad("array-one-u64", "an array of u64 only is a u64s", node(9, 1, 16) + node(3, 0, 1))
    f.bad("array-absent", "an element is there", node(9, 1, 16) + node(0))
    f.bad("map-absent-key", "a key is there", node(10, 1, 16) + node(0) + scalar)
    f.bad("map-absent-value", "a value is there", node(10, 1, 16) + scalar + node(0))
    f.bad("element-zero-set", "bytes 2 and 3 of every node are 0", node(9, 1, 16) + node(1, zero=1))
    f.bad("key-zero-set", "bytes 2 and 3 of every node are 0", node(10, 1, 16) + node(1, zero=1) + scalar)
    f.bad("cycle-array", "an array inside itself", node(9, 1, 16) + node(9, 1, 16))
    f.bad("cycle-root", "an array whose element is the root", node(9, 1, 0))
    f.bad("cycle-map", "a map inside itself", node(10, 1, 16) + node(7, 0, 0) + node(10, 1, 16))
    f.bad("cycle-two", "two arrays inside each other", node(9, 1, 16) + node(9, 1, 32) + node(9, 1, 16))
    shared = node(9, 2, 48)
    f.bad("overlap", "two arrays over the same elements", node(9, 2, 16) + shared + shared + node(1) + node(1))
    f.bad("overlap-strings", "runs that add up to more than there is", node(9, 2, 16) + node(7, 40, 48) + node(7, 40, 48) + b" " * 40)
    wide = node(9, 8, 16) + b"".join(node(9, 8, 144) for _ in range(8)) + b"".join(node(9, 8, 272) for _ in range(8)) + scalar * 8
    f.bad("overlap-fan", "8 x 8 x 8 visits of 24 nodes", wide)
    return f


def fill(defaults, given):
    unknown = set(given) - set(defaults)
    assert not unknown, unknown
    return {**defaults, **given}


def inits():
    f = File("InitFrame", layout.init)

    def v(**given):
        return fill({"features": "0", "guest_name": None, "abi_minor": "0", "parameters": {"absent": None}}, given)

    f.good("empty", "no name, no parameters", v())
    f.good("named", "", v(features="1", guest_name="kv-fetch"))
    f.good("minor", "a later host of the same major version", v(abi_minor="7", features=str((1 << 64) - 1)))
    f.good("parameters", "", v(guest_name="g", parameters={"map": [[s("hosts"), {"array": [s("a"), s("b")]}], [s("max"), u(HASHES[-1])]]}))
    f.good("parameters-null", "null was given; that is not absent", v(parameters={"null": None}))
    f.good("name-empty", "present and empty", v(guest_name=""))
    good = layout.init(v(guest_name="g"))
    f.bad("kind", "an envelope's kind", good, (0, u32(3)))
    f.bad("size-less", "size is the frame's", good, (4, u32(48)))
    f.bad("size-more", "size is the frame's", good, (4, u32(64)))
    f.bad("short", "shorter than the record", good[:40], (4, u32(40)))
    f.bad("not-8", "a frame is a multiple of 8", good[:52], (4, u32(52)))
    f.bad("zero-set", "zero is 0", good, (28, u32(1)))
    f.bad("name-outside", "outside", good, (16, span(48, 9)))
    f.bad("name-in-record", "a run lies behind the fixed part", good, (16, span(8, 4)))
    f.bad("name-utf8", "not UTF-8", good, (48, b"\xff"))
    f.bad("parameters-cycle", "an array inside itself", layout.init(v(parameters=nest(2, {"null": None}))), (48, node(9, 1, 48)))
    f.bad("parameters-zero-set", "bytes 2 and 3 of a node are 0", good, (32, node(3, 0, 1, zero=1)))
    f.bad("parameters-zero-set-high", "bytes 2 and 3 of a node are 0", good, (32, node(3, 0, 1, zero=0x8000)))
    f.bad("parameters-root", "an array whose element is its own root", good, (32, node(9, 1, 32)))
    return f


def parses():
    f = File("ParseFrame", layout.parse)

    def v(**given):
        return fill({"format": "0", "raw": {"hex": ""}, "request_id": None, "dialect": None, "document": {"absent": None}}, given)

    def raw(text):
        return {"hex": text.encode().hex()}

    f.good("bytes", "neither JSON nor msgpack", v(raw={"hex": "00ff"}, dialect="acme"))
    f.good("json", "", v(format="1", raw=raw('{"a":[1,-1]}'), request_id="r-1", dialect="acme",
                        document={"map": [[s("a"), {"array": [u(1), {"i64": "-1"}]}]]}))  # fmt: skip
    f.good("msgpack", "", v(format="2", raw={"hex": "81a16101"}, document={"map": [[s("a"), u(1)]]}))
    f.good("empty", "no bytes are present and empty", v())
    f.good("raw-absent", "", v(raw=None))
    good = layout.parse(v(raw={"hex": "00ff"}, dialect="d"))
    f.bad("kind", "an envelope's kind", good, (0, u32(3)))
    f.bad("format", "unknown format", good, (8, u32(3)))
    f.bad("zero-set", "zero is 0", good, (12, u32(1)))
    f.bad("raw-outside", "outside", good, (16, span(56, 9)))
    f.bad("raw-wraps", "offset + length wraps", good, (16, span((1 << 32) - 1, 2)))
    f.bad("raw-0", "offset 0 with a length", good, (16, span(0, 2)))
    f.bad("dialect-utf8", "not UTF-8", good, (32, span(56, 2)))
    return f


def act(**given):
    return fill({"index": "0", "action_id": None, "action_type": "demo.echo", "action_version": None, "raw": None, "raw_format": "0",
                 "payload": {"map": []}}, given)  # fmt: skip


def env(*actions, **given):
    return fill({"protocol_version": "0.1", "message_id": None, "request_id": None, "engine": None, "leg": "0", "dp_rank": "0",
                 "attempt": "0", "total": str(len(actions)), "actions": list(actions)}, given)  # fmt: skip


def actions():
    f = File("Action", layout.action)
    f.good("smallest", "no type, no payload", act(action_type=None, payload={"absent": None}))
    f.good("echo", "", act(action_id="a-1", action_version="1.0", payload={"map": [[s("text"), s("hello")]]}))
    f.good("hashes", "", act(action_type="kv.fetch", index="3", payload={"map": [[s("block_hashes"), {"u64s": [str(h) for h in HASHES]}]]}))
    f.good("raw", "the payload as it was sent", act(raw={"hex": b'{"n":1e400}'.hex()}, raw_format="1",
                                                   payload={"map": [[s("n"), {"number": "1e400"}]]}))  # fmt: skip
    f.good("payload-scalar", "a payload of any kind is the handler's to judge", act(payload=u(5)))
    f.good("empty-spans", "present and empty", act(action_id="", action_type="", action_version=""))
    good = layout.action(act(action_id="a"))
    f.bad("short", "shorter than the record", good[:56], (0, u32(56)))
    f.bad("not-8", "a multiple of 8", good + bytes(4), (0, u32(len(good) + 4)))
    f.bad("size-more", "size is the record's", good, (0, u32(len(good) + 8)))
    f.bad("size-less", "size is the record's", good, (0, u32(len(good) - 8)))
    f.bad("zero-set", "zero is 0", good, (44, u32(1)))
    f.bad("raw-format", "unknown format", good, (40, u32(9)))
    f.bad("type-outside", "outside", good, (16, span(len(good), 1)))
    f.bad("type-2-31", "outside", good, (16, span(1 << 31, 4)))
    f.bad("type-wraps", "offset + length wraps", good, (16, span((1 << 32) - 4, 8)))
    f.bad("id-in-record", "a run lies behind the fixed part", good, (8, span(16, 1)))
    f.bad("payload-in-record", "a run lies behind the fixed part", good, (48, node(11, 1, 48)))
    return f


def envelopes():
    f = File("EnvelopeFrame", layout.envelope)
    echo = act(action_id="a-1", action_version="1.0", payload={"map": [[s("text"), s("hello")]]})
    f.good("echo", "the example of SPEC.md", env(echo, message_id="m-1", request_id="r-1", engine="vllm"))
    f.good("empty", "no action", env(protocol_version=None))
    f.good("part", "two of five actions are this guest's", env(
        act(index="1", payload={"u64s": ["1"]}), act(index="4", payload={"null": None}), total="5"))  # fmt: skip
    f.good("identity", "", env(act(), request_id="r", engine="e", leg="3", dp_rank=str((1 << 32) - 1), attempt="2"))
    f.good("empty-spans", "present and empty is not absent", env(protocol_version="", message_id="", request_id="", engine=""))
    f.good("hashes", "", env(act(action_type="kv.fetch", action_version="1.0", payload={"map": [
        [s("source"), {"null": None}], [s("block_hashes"), {"u64s": [str(h) for h in HASHES]}], [s("mode"), s("copy")]]})))  # fmt: skip
    good = layout.envelope(env(act(), act(index="1"), request_id="r"))
    table = int.from_bytes(good[24:28], "little")
    first = int.from_bytes(good[table : table + 4], "little")
    second = int.from_bytes(good[table + 4 : table + 8], "little")
    f.bad("kind", "an init frame's kind", good, (0, u32(1)))
    f.bad("kind-0", "no kind", good, (0, u32(0)))
    f.bad("size-more", "size is the frame's", good, (4, u32(len(good) + 8)))
    f.bad("size-0", "size is the frame's", good, (4, u32(0)))
    f.bad("not-8", "a multiple of 8", good + bytes(4), (4, u32(len(good) + 4)))
    f.bad("short", "shorter than the record", good[:64], (4, u32(64)))
    f.bad("leg", "unknown leg", good, (48, u32(4)))
    f.bad("zero-set", "zero is 0", good, (64, u64(1 << 63)))
    f.bad("span-0", "offset 0 with a length", good, (16, span(0, 1)))
    f.bad("request-utf8", "not UTF-8", good, (int.from_bytes(good[32:36], "little"), b"\xff"))
    f.bad("table-outside", "outside", good, (24, u32(len(good) - 4)))
    f.bad("table-unaligned", "4-byte aligned", good, (24, u32(table + 2)))
    f.bad("table-in-record", "a run lies behind the fixed part", good, (24, u32(48)))
    f.bad("count-2-30", "2^30 offsets are 2^32 bytes", good, (28, u32(1 << 30)))
    f.bad("count-2-32-1", "outside", good, (28, u32((1 << 32) - 1)))
    f.bad("action-outside", "outside", good, (table, u32(len(good))))
    f.bad("action-2-32-8", "outside, and offset + 64 wraps", good, (table, u32((1 << 32) - 8)))
    f.bad("action-unaligned", "8-byte aligned", good, (table, u32(first + 4)))
    f.bad("action-0", "an action is not the frame", good, (table, u32(0)))
    f.bad("action-size-long", "outside", good, (first, u32(1 << 31)))
    f.bad("action-size-wraps", "offset + size wraps", good, (first, u32((1 << 32) - 8)))
    f.bad("action-size-0", "smaller than the record", good, (first, u32(0)))
    f.bad("actions-overlap", "the first reaches into the second", good, (first, u32(second - first + 8)))
    f.bad("action-payload", "each action is checked: unknown tag", good, (second + 48, node(99)))
    return f


def answers():
    f = File("Answer", layout.answer)

    def v(**given):
        return fill({"status": "1", "reason": "0", "detail": None, "body": None, "features": "0"}, given)

    f.good("accepted", "the same as returning 0", v())
    f.good("features", "an answer of kvrt_init", v(features="1"))
    f.good("rejected", "", v(status="2", reason="4", detail="text: want a string"))
    f.good("rejected-plain", "the same as returning -4", v(status="2", reason="4"))
    f.good("detail-empty", "present and empty", v(status="2", reason="9", detail=""))
    f.good("detail-512", "", v(status="2", reason="4", detail="x" * 512))
    f.good("rewritten", "an answer of kvrt_handle", v(body={"hex": layout.action(act()).hex()}))
    f.good("formulated", "an answer of kvrt_formulate or kvrt_parse", v(body={"hex": layout.envelope(env(act())).hex()}, detail="one action"))
    for reason in range(1, 22):
        data = layout.answer(v(status="2", reason=str(reason)))
        if reason in (10, 11, 12, 13, 21):
            f.bad(f"reason-{reason}", "only the host can know this", data)
        else:
            f.good(f"reason-{reason}", "", v(status="2", reason=str(reason)))
    good = layout.answer(v(detail="ok", body={"hex": "00" * 64}))
    f.bad("short", "shorter than the record", good[:39])
    f.bad("status-0", "unknown status", good, (0, u32(0)))
    f.bad("status-3", "unknown status", good, (0, u32(3)))
    f.bad("accepted-reason", "accepted for a reason", good, (4, u32(4)))
    f.bad("rejected-0", "rejected for no reason", good, (0, u32(2)), (16, span(0, 0)))
    f.bad("rejected-99", "unknown reason", layout.answer(v(status="2", reason="99")))
    f.bad("rejected-2-32-4", "a negated reason", layout.answer(v(status="2", reason=str((1 << 32) - 4))))
    f.bad("rejected-body", "rejected with a body", good, (0, u32(2) + u32(4)))
    f.bad("zero-set", "zero is 0", good, (32, u64(1)))
    f.bad("detail-utf8", "not UTF-8", good, (104, b"\xff"))
    f.bad("detail-outside", "outside", good, (8, span(104, 9)))
    f.bad("detail-2-31", "outside", good, (8, span(1 << 31, 1)))
    f.bad("detail-in-record", "a run lies behind the fixed part", good, (8, span(0x20, 2)))
    f.bad("body-unaligned", "8-byte aligned", good, (16, span(44, 8)))
    f.bad("body-wraps", "offset + length wraps", good, (16, span((1 << 32) - 8, 16)))
    f.bad("overlap", "detail and body overlap", good, (8, span(40, 64)))
    return f


def wrk(id=None, **given):
    return fill({"id": id or {"absent": None}, "dp_rank": "0", "present": "0", "worker_type": None, "source_control_endpoint": None, "capabilities": None,
                 "matched_gpu": "0", "matched_cpu": "0", "matched_disk": "0", "matched_external": "0"}, given)  # fmt: skip


def contexts():
    f = File("ContextFrame", layout.context)

    def v(**given):
        return fill({"present": "0", "request_id": None, "attempt": "0", "leg": "0", "model": None, "group": None, "worker_type": None, "tenant": None,
                     "namespace": None, "prompt_tokens": "0", "expected_output_tokens": "0", "tools_declared": "0", "hash_kind": "0", "block_size": "0",
                     "candidates": None, "block_hashes": None, "session_id": None, "parent_session_id": None, "session_final": "0", "input_trigger": "0",
                     "selected": wrk(), "request_hint": {"absent": None}, "selection_hint": {"absent": None}}, given)  # fmt: skip

    f.good("empty", "nothing is known", v())
    f.good("zeros", "present and 0, present and empty", v(present="255", candidates=[], block_hashes=[]))
    full = v(present="255", request_id="r-1", attempt="1", leg="3", model="m", group="g", worker_type="decode", tenant="t", namespace="n",
             prompt_tokens=str((1 << 53) + 1), expected_output_tokens=str((1 << 64) - 1), tools_declared="1", hash_kind="1", block_size="16",
             candidates=[wrk(u(7), present="63", dp_rank="1", worker_type="prefill", source_control_endpoint="tcp://a:1", capabilities=["kv.fetch@1.0", ""],
                             matched_gpu="4", matched_cpu="3", matched_disk="2", matched_external="1"),
                         wrk(s("worker-b"), present="2", capabilities=[]), wrk({"i64": "-1"})],
             block_hashes=[str(h) for h in HASHES], session_id="s", parent_session_id="p", session_final="1", input_trigger="2",
             selected=wrk(u(7), present="1", dp_rank="1"),
             request_hint={"map": [[s("actions"), {"array": []}]]}, selection_hint={"map": [[s("actions"), {"null": None}]]})  # fmt: skip
    good = f.good("full", "everything is known", full)
    f.good("later-bits", "presence bits of a later version are ignored", v(present=str(1 << 63)))
    hashes = int.from_bytes(good[112:116], "little")
    workers = int.from_bytes(good[104:108], "little")
    f.bad("kind", "an envelope's kind", good, (0, u32(3)))
    f.bad("leg", "unknown leg", good, (28, u32(4)))
    f.bad("hash-kind", "unknown hash kind", good, (92, u32(4)))
    f.bad("trigger", "unknown trigger", good, (140, u32(4)))
    f.bad("tools", "0 or 1", good, (88, u32(2)))
    f.bad("final", "0 or 1", good, (136, u32(2)))
    f.bad("zero-set", "zero is 0", good, (116, u32(1)))
    f.bad("absent-attempt", "absent and not 0", good, (8, u64(254)))
    f.bad("absent-tokens", "absent and not 0", good, (8, u64(255 - 4)))
    f.bad("absent-hashes", "absent and not 0", good, (8, u64(255 - 32)))
    f.bad("hashes-unaligned", "8-byte aligned", good, (112, u32(hashes - 4)))
    f.bad("hashes-2-29", "2^29 numbers are 2^32 bytes", good, (108, u32(1 << 29)))
    f.bad("hashes-outside", "outside", good, (112, u32(len(good) - 8)))
    f.bad("candidates-2-26", "2^26 workers are 2^32 bytes", good, (100, u32(1 << 26)))
    f.bad("candidates-unaligned", "8-byte aligned", good, (104, u32(workers + 4)))
    f.bad("candidate-no-id", "a candidate has an id", good, (workers, node(0)))
    f.bad("candidate-id", "an integer or a string", good, (workers, node(5)))
    f.bad("candidate-absent-rank", "absent and not 0", good, (workers + 20, u32(62)))
    f.bad("capabilities-outside", "outside", good, (workers + 40, u32(len(good)) + u32(1)))
    f.bad("capabilities-2-29", "2^29 spans are 2^32 bytes", good, (workers + 44, u32(1 << 29)))
    f.bad("hint-tag", "unknown tag", good, (208, node(13)))
    return f


def text(files):
    """One vector a line, so that a difference is readable."""
    for f in files:
        lines = ",\n".join("  " + json.dumps(v, ensure_ascii=True) for v in f.vectors)
        name = {"Node": "tree", "InitFrame": "init", "ParseFrame": "parse", "EnvelopeFrame": "envelope", "ContextFrame": "context"}
        yield name.get(f.record, f.record.lower()) + ".json", f'{{"record": "{f.record}", "vectors": [\n{lines}\n]}}\n'


def main():
    import calls
    import routing

    files = list(text([trees(), inits(), parses(), actions(), envelopes(), answers(), contexts()]))
    for name, vectors in ("results.json", calls.results()), ("calls.json", calls.calls()), ("routing.json", routing.vectors()):
        files.append((name, '{"vectors": [\n' + ",\n".join("  " + json.dumps(v) for v in vectors) + "\n]}\n"))
    stale = []
    for name, content in files:
        names = [v["name"] for v in json.loads(content)["vectors"]]
        assert len(names) == len(set(names)), name
        path = pathlib.Path(__file__).parent / name
        if path.exists() and path.read_text() == content:
            continue
        stale.append(name)
        if "--check" not in sys.argv:
            path.write_text(content)
    if stale and "--check" in sys.argv:
        sys.exit("stale: " + " ".join(stale))


if __name__ == "__main__":
    main()
