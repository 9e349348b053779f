"""A serving engine's event publisher for the tests: libzmq sockets, msgspec structs.

Commands come as JSON lines on stdin, each is answered by a line on stdout. The replay
endpoint is served between two commands, on the same thread, as serving engines do it.
"""

import json
import sys
import time
from typing import Any

import msgspec
import zmq

END = (-1).to_bytes(8, "big", signed=True)


def structs(array_like: bool):
    """The public event types, as arrays or as maps."""

    class Event(msgspec.Struct, array_like=array_like, omit_defaults=True, gc=False, tag=True):
        pass

    class BlockStored(Event):
        block_hashes: list[Any]
        parent_block_hash: Any
        token_ids: list[Any]
        block_size: int
        lora_id: int | None
        medium: str | None
        lora_name: str | None
        extra_keys: list[Any] | None = None
        group_idx: int | None = None
        kv_cache_spec_kind: str | None = None
        kv_cache_spec_sliding_window: int | None = None
        locality: str | None = None
        ownership: str | None = None
        session_id: str | None = None

    class BlockRemoved(Event):
        block_hashes: list[Any]
        medium: str | None
        group_idx: int | None = None
        locality: str | None = None
        ownership: str | None = None

    class AllBlocksCleared(Event):
        pass

    class BlockMigrated(Event):
        """A type that no reader knows yet."""

        block_hashes: list[Any]
        target: str

    class Batch(msgspec.Struct, array_like=array_like, omit_defaults=True, gc=False):
        ts: float
        events: list[Any]
        data_parallel_rank: int | None = None

    return {"stored": BlockStored, "removed": BlockRemoved, "cleared": AllBlocksCleared,
            "migrated": BlockMigrated, "batch": Batch}


def old_structs():
    """The positional types of 2025: they end at lora_id, and know no rank."""

    class Event(msgspec.Struct, array_like=True, omit_defaults=True, gc=False, tag=True):
        pass

    class BlockStored(Event):
        block_hashes: list[Any]
        parent_block_hash: Any
        token_ids: list[Any]
        block_size: int
        lora_id: int | None

    class BlockRemoved(Event):
        block_hashes: list[Any]

    class AllBlocksCleared(Event):
        pass

    class Batch(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
        ts: float
        events: list[Any]

    return {"stored": BlockStored, "removed": BlockRemoved, "cleared": AllBlocksCleared, "batch": Batch}


SHAPES = {"map": structs(False), "array": structs(True), "old": old_structs()}


def value(v):
    """JSON has no bytes: {"hex": ...} stands for them."""
    if isinstance(v, dict):
        return bytes.fromhex(v["hex"])
    return v


def event(spec, shape):
    """{"type": "stored", "shape": ..., and the fields that are not nil}"""
    spec = dict(spec)
    types = SHAPES[spec.pop("shape", shape)]
    cls = types[spec.pop("type")]
    fields = dict.fromkeys(n for n, d in zip(cls.__struct_fields__, defaults(cls)) if d is msgspec.NODEFAULT)
    if "token_ids" in fields:
        fields |= {"token_ids": [], "block_size": 16}
    if "block_hashes" in fields:
        spec["block_hashes"] = [value(h) for h in spec["block_hashes"]]
    if "parent_block_hash" in spec:
        spec["parent_block_hash"] = value(spec["parent_block_hash"])
    return cls(**(fields | spec))


def defaults(cls):
    return [f.default for f in msgspec.structs.fields(cls)]


def batch(spec):
    """{"shape": ..., "events": [...], "data_parallel_rank": ..., "ts": ...}; or {"raw": hex}"""
    if "raw" in spec:
        return bytes.fromhex(spec["raw"])
    shape = spec.get("shape", "map")
    events = [event(e, shape) for e in spec["events"]]
    # Batches stayed arrays when events became maps.
    types = SHAPES["map" if shape == "map" and spec.get("batch") == "map" else "old" if shape == "old" else "array"]
    fields = {"ts": spec.get("ts", time.time()), "events": events}
    if spec.get("data_parallel_rank") is not None:
        fields["data_parallel_rank"] = spec["data_parallel_rank"]
    return msgspec.msgpack.encode(types["batch"](**fields))


class Publisher:
    def __init__(self):
        self.ctx = zmq.Context()
        self.events = self.replay = None
        self.begin()

    def begin(self):
        self.seq, self.ring, self.held = 0, [], []

    def bind(self, events, replay=None, topic="", hwm=100_000, replay_hwm=0, frames=2, answer="all", ring=10_000):
        # An XPUB is a PUB that shows its subscriptions.
        self.events = self.ctx.socket(zmq.XPUB)
        self.events.setsockopt(zmq.XPUB_VERBOSE, 1)
        self.events.setsockopt(zmq.SNDHWM, hwm)
        self.events.setsockopt(zmq.LINGER, 0)
        self.events.bind(events)
        if replay:
            self.replay = self.ctx.socket(zmq.ROUTER)
            self.replay.setsockopt(zmq.SNDHWM, replay_hwm)
            self.replay.setsockopt(zmq.LINGER, 0)
            self.replay.bind(replay)
        self.topic, self.frames, self.answer, self.size = topic.encode(), frames, answer, ring
        return {"events": self.events.LAST_ENDPOINT.decode(),
                "replay": self.replay.LAST_ENDPOINT.decode() if self.replay else ""}

    def close(self, restart=False):
        self.events.close()
        if self.replay:
            self.replay.close()
        self.events = self.replay = None
        if restart:
            self.begin()
        return {}

    def subscribed(self):
        """Waits for a subscription."""
        while True:
            if self.events.recv()[:1] == b"\x01":
                return {}

    def publish(self, batches, lose=False, times=1):
        """lose keeps the batches from the subscribers, as a high-water mark does."""
        encoded = [batch(b) for b in batches]
        for _ in range(times):
            for payload in encoded:
                if not lose:
                    self.events.send_multipart((self.topic, self.seq.to_bytes(8, "big"), payload))
                self.ring = (self.ring + [(self.seq, payload)])[-self.size:] if self.size < 10_000 else self.keep(payload)
                self.seq += 1
        return {"next": self.seq}

    def keep(self, payload):
        self.ring.append((self.seq, payload))
        return self.ring

    def send(self, frames):
        """Any message at all."""
        self.events.send_multipart([bytes.fromhex(f) for f in frames])
        return {}

    def set(self, **kw):
        for k, v in kw.items():
            setattr(self, k, v)
        return {}

    def release(self):
        """Answers what "hold" kept."""
        held, self.held = self.held, []
        for who, start in held:
            self.replay_from(who, start)
        return {"answered": len(held)}

    def asked(self):
        """Waits for a replay request that is held."""
        while not self.held:
            self.serve(self.replay.recv_multipart())
        return {"from": [int.from_bytes(s, "big") for _, s in self.held]}

    def serve(self, frames):
        who, empty, start = frames
        assert empty == b"" and len(start) == 8, frames
        if self.answer == "hold":
            self.held.append((who, start))
        elif self.answer == "wrong":
            self.replay.send_multipart((who, b"", b"nonsense and more", b"x"))
        elif self.answer == "once-holed":
            self.answer = "all"
            self.replay_from(who, start, hole=True)
        elif self.answer == "once-cut":
            self.answer = "all"
            self.replay_from(who, start, cut=3)
        elif self.answer == "no-end":
            self.answer = "all"
            self.replay_from(who, start, end=False)
        else:
            self.replay_from(who, start)

    def replay_from(self, who, start, hole=False, cut=0, end=True):
        head = (who, b"") if self.frames == 2 else (who, b"", self.topic)
        chosen = [b for b in self.ring if b[0] >= int.from_bytes(start, "big")]
        chosen = chosen[:len(chosen) - cut]
        if hole:
            del chosen[len(chosen) // 2]
        for seq, payload in chosen:
            self.replay.send_multipart((*head, seq.to_bytes(8, "big"), payload))
        if end:
            self.replay.send_multipart((*head, END, b""))

    def encode(self, batches):
        return {"hex": [batch(b).hex() for b in batches]}

    def run(self):
        poller = zmq.Poller()
        poller.register(sys.stdin, zmq.POLLIN)
        while True:
            watched = self.replay
            if watched:
                poller.register(watched, zmq.POLLIN)
            ready = dict(poller.poll())
            if watched:
                poller.unregister(watched)
            if watched in ready:
                self.serve(watched.recv_multipart())
            if sys.stdin.fileno() in ready:
                line = sys.stdin.buffer.raw.readline()
                if not line:
                    return
                command = json.loads(line)
                do = command.pop("do")
                answer = getattr(self, do)(**command)
                print(json.dumps(answer), flush=True)


Publisher().run()
