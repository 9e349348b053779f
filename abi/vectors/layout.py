"""An encoder of the ABI's records, written from SPEC.md and sharing nothing with the Go package."""

import struct


def u16(v):
    return struct.pack("<H", v)


def u32(v):
    return struct.pack("<I", v)


def u64(v):
    return struct.pack("<Q", v)


def span(off, length):
    return u32(off) + u32(length)


def node(tag, length=0, val=0, ext=0, zero=0):
    return bytes([tag, ext]) + u16(zero) + u32(length) + u64(val)


class Base:
    """A record's bytes. Runs are appended; offsets count from the record."""

    def __init__(self, size):
        self.b = bytearray(size)

    def put(self, off, data):
        self.b[off : off + len(data)] = data

    def align(self, to=8):
        while len(self.b) % to:
            self.b.append(0)
        return len(self.b)

    def run(self, data, to=1):
        at = self.align(to)
        self.b += data
        return at

    def span(self, data):
        """None is absent, empty data is present and empty."""
        if data is None:
            return span(0, 0)
        if isinstance(data, str):
            data = data.encode()
        if isinstance(data, dict):
            data = bytes.fromhex(data["hex"])
        return span(self.run(data), len(data))

    def tree(self, v):
        """Appends what the value refers to and returns its node."""
        ((kind, x),) = v.items()
        if kind == "absent":
            return node(0)
        if kind == "null":
            return node(1)
        if kind == "bool":
            return node(2, 0, int(x))
        if kind == "u64":
            return node(3, 0, int(x))
        if kind == "i64":
            return node(4, 0, int(x) + (1 << 64))
        if kind == "f64":
            return node(5, 0, int(x, 16))
        if kind in ("number", "string"):
            data = x.encode()
            return node(6 if kind == "number" else 7, len(data), self.run(data))
        if kind == "bytes":
            data = bytes.fromhex(x)
            return node(8, len(data), self.run(data))
        if kind == "ext":
            data = bytes.fromhex(x[1])
            return node(12, len(data), self.run(data), int(x[0]))
        if kind == "u64s":
            return node(11, len(x), self.run(b"".join(u64(int(e)) for e in x), 8))
        if kind == "array":
            data = b"".join([self.tree(e) for e in x])
            return node(9, len(x), self.run(data, 8))
        if kind == "map":
            data = b"".join([self.tree(k) + self.tree(e) for k, e in x])
            return node(10, len(x), self.run(data, 8))
        raise ValueError(kind)

    def done(self):
        self.align()
        return bytes(self.b)


def tree(v):
    b = Base(16)
    b.put(0, b.tree(v))
    return b.done()


def init(v):
    b = Base(48)
    b.put(0, u32(1))
    b.put(8, u64(int(v["features"])))
    b.put(16, b.span(v["guest_name"]))
    b.put(24, u32(int(v["abi_minor"])))
    b.put(32, b.tree(v["parameters"]))
    out = bytearray(b.done())
    out[4:8] = u32(len(out))
    return bytes(out)


def parse(v):
    b = Base(56)
    b.put(0, u32(2))
    b.put(8, u32(int(v["format"])))
    b.put(16, b.span(v["raw"]))
    b.put(24, b.span(v["request_id"]))
    b.put(32, b.span(v["dialect"]))
    b.put(40, b.tree(v["document"]))
    out = bytearray(b.done())
    out[4:8] = u32(len(out))
    return bytes(out)


def action(v):
    b = Base(64)
    b.put(4, u32(int(v["index"])))
    b.put(8, b.span(v["action_id"]))
    b.put(16, b.span(v["action_type"]))
    b.put(24, b.span(v["action_version"]))
    b.put(32, b.span(v["raw"]))
    b.put(40, u32(int(v["raw_format"])))
    b.put(48, b.tree(v["payload"]))
    out = bytearray(b.done())
    out[0:4] = u32(len(out))
    return bytes(out)


def envelope(v):
    b = Base(72)
    b.put(0, u32(3))
    b.put(8, b.span(v["protocol_version"]))
    b.put(16, b.span(v["message_id"]))
    b.put(32, b.span(v["request_id"]))
    b.put(40, b.span(v["engine"]))
    for off, name in (48, "leg"), (52, "dp_rank"), (56, "attempt"), (60, "total"):
        b.put(off, u32(int(v[name])))
    table = b.run(bytes(4 * len(v["actions"])), 4)
    b.put(24, u32(table) + u32(len(v["actions"])))
    for i, a in enumerate(v["actions"]):
        b.put(table + 4 * i, u32(b.run(action(a), 8)))
    out = bytearray(b.done())
    out[4:8] = u32(len(out))
    return bytes(out)


def answer(v):
    b = Base(40)
    b.put(0, u32(int(v["status"])) + u32(int(v["reason"])))
    if v["body"] is not None:
        b.align()
        b.put(16, b.span(v["body"]))
    b.put(8, b.span(v["detail"]))
    b.put(24, u64(int(v["features"])))
    return b.done()


def worker(b, at, v):
    b.put(at, b.tree(v["id"]))
    b.put(at + 16, u32(int(v["dp_rank"])) + u32(int(v["present"])))
    b.put(at + 24, b.span(v["worker_type"]))
    b.put(at + 32, b.span(v["source_control_endpoint"]))
    if v["capabilities"] is not None:
        table = b.run(bytes(8 * len(v["capabilities"])), 8)
        b.put(at + 40, u32(table) + u32(len(v["capabilities"])))
        for i, c in enumerate(v["capabilities"]):
            b.put(table + 8 * i, b.span(c))
    for off, name in (48, "gpu"), (52, "cpu"), (56, "disk"), (60, "external"):
        b.put(at + off, u32(int(v["matched_" + name])))


def context(v):
    b = Base(240)
    b.put(0, u32(4))
    b.put(8, u64(int(v["present"])))
    for off, name in (
        (16, "request_id"), (32, "model"), (40, "group"), (48, "worker_type"), (56, "tenant"), (64, "namespace"),
        (120, "session_id"), (128, "parent_session_id"),
    ):  # fmt: skip
        b.put(off, b.span(v[name]))
    for off, name in (
        (24, "attempt"), (28, "leg"), (88, "tools_declared"), (92, "hash_kind"), (96, "block_size"),
        (136, "session_final"), (140, "input_trigger"),
    ):  # fmt: skip
        b.put(off, u32(int(v[name])))
    b.put(72, u64(int(v["prompt_tokens"])) + u64(int(v["expected_output_tokens"])))
    if v["candidates"] is not None:
        at = b.run(bytes(64 * len(v["candidates"])), 8)
        b.put(100, u32(len(v["candidates"])) + u32(at))
        for i, w in enumerate(v["candidates"]):
            worker(b, at + 64 * i, w)
    if v["block_hashes"] is not None:
        at = b.run(b"".join(u64(int(h)) for h in v["block_hashes"]), 8)
        b.put(108, u32(len(v["block_hashes"])) + u32(at))
    worker(b, 144, v["selected"])
    b.put(208, b.tree(v["request_hint"]))
    b.put(224, b.tree(v["selection_hint"]))
    out = bytearray(b.done())
    out[4:8] = u32(len(out))
    return bytes(out)


def fetch_status(v):
    return (
        u32(int(v["state"])) + u32(int(v["hashes"])) + u64(int(v["submitted_ns"])) + u64(int(v["expires_ns"]))
        + u32(int(v["has_source"])) + u32(0)
    )  # fmt: skip


def lineage(v):
    b = Base(16)
    at = b.run(bytes(8 * len(v["paths"])), 8)
    b.put(0, u32(int(v["hash_kind"])) + u32(len(v["paths"])) + u32(at) + u32(int(v["blocks"])))
    for i, path in enumerate(v["paths"]):
        hashes = b"".join(u64(int(h)) for h in path["hashes"])
        b.put(at + 8 * i, u32(b.run(hashes, 8)) + u32(len(path["hashes"])))
    return b.done()


def frontiers(v):
    b = Base(16)
    at = b.run(bytes(40 * len(v["frontiers"])), 8)
    b.put(0, u32(int(v["hash_kind"])) + u32(len(v["frontiers"])) + u32(at))
    for i, f in enumerate(v["frontiers"]):
        b.put(at + 40 * i, b.tree(f["worker"]) + u32(int(f["dp_rank"])) + u32(int(f["present"])) + u64(int(f["hash"])) + u32(int(f["depth"])))
    return b.done()


def block_node(v):
    return u64(int(v["hash"])) + u64(int(v["parent"])) + b"".join(u32(int(v[k])) for k in ("has_parent", "hash_kind", "frontiers", "children"))


def store_claim(v):
    return b"".join(u32(int(v[k])) for k in ("from", "to", "priority")) + u32(0) + u64(int(v["ttl_ms"]))


def device_info(v):
    return u32(int(v["device"])) + u32(0) + b"".join(u64(int(v[k])) for k in ("block_bytes", "blocks", "used"))


def one_worker(v):
    b = Base(64)
    worker(b, 0, v)
    return b.done()


def worker_list(v):
    b = Base(16)
    at = b.run(bytes(64 * len(v["workers"])), 8)
    b.put(0, u32(len(v["workers"])) + u32(at))
    for i, w in enumerate(v["workers"]):
        worker(b, at + 64 * i, w)
    return b.done()
