"""The client against the real daemon."""

from __future__ import annotations

import asyncio
import collections.abc
import dataclasses
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import types
from typing import Any

import msgspec
import pytest
from conftest import Daemon, fetch, until

import kvrt

ENCODERS = ["msgspec", "msgpack"]


def open_client(daemon: Daemon, **options: Any) -> kvrt.Client:
    """A client with a deadline for tests: a shared machine may pause for longer than 2 ms."""
    return kvrt.Client(daemon.path, **{"deadline": 10.0, "engine": "vllm-0", **options})


@pytest.mark.parametrize("encoder", ENCODERS)
def test_results(daemon: Daemon, encoder: str) -> None:
    envelope = fetch()
    envelope["actions"].append({**envelope["actions"][0], "action_id": "a2", "action_type": "kv.dance"})
    envelope["actions"].append("no action")
    with open_client(daemon, encoder=encoder) as client:
        reply = client.submit(envelope, "r", forward=True)
        assert reply.ok and not reply.error
        assert [(r.action_id, r.accepted, r.reason) for r in reply.results] == [
            ("a1", True, ""),
            ("a2", False, "unsupported_action_type"),
            ("", False, "malformed_action"),
        ]
        assert reply.accepted == reply.results[:1] and reply.rejected == reply.results[1:]
        assert reply.results[0].guest == "kv-fetch" and reply.results[0].fuel > 0
        assert reply.forward is not None
        assert reply.forward["actions"][0] == envelope["actions"][0]
        assert client.submit(fetch(), "r2").forward is None
        assert client.server_version
        assert client.counters().adds_up


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("flush_interval", [0, 0.01, 3600.0])
def test_hints_arrive_in_order(daemon: Daemon, encoder: str, flush_interval: float) -> None:
    """Whatever rides with what, the daemon sees requests in the order of the calls."""
    with open_client(daemon, encoder=encoder, flush_interval=flush_interval) as client:
        assert client.submit_hint(fetch(1, 2, 3), "a") is None
        assert client.status("a").state == "live" and client.status("a").hashes == 3
        assert client.discard_hint("a") is None
        assert client.status("a").state == "finished"
        for i in range(200):
            client.submit_hint(fetch(1), f"b{i}")
            client.discard_hint(f"b{i}")
            client.submit_hint(fetch(1, 2), f"c{i}")
            if i % 2:
                client.finish(f"c{i}", aborted=True)
        assert [client.status(f"b{i}").state for i in range(200)] == ["finished"] * 200
        assert [client.status(f"c{i}").state for i in range(200)] == ["live", "finished"] * 100
        client.discard_hint("é" * 100)
        client.submit_hint(fetch(1), "d")
        counters = client.counters()
        assert counters.adds_up and counters.dropped == 0
        assert counters.sent == counters.requests - counters.pending
        assert (counters.submitted, counters.discarded, counters.finished) == (402, 202, 100)


def test_a_discard_leaves_by_itself(daemon: Daemon) -> None:
    with open_client(daemon, flush_interval=0.01) as client, open_client(daemon) as other:
        client.submit_hint(fetch(), "r")
        until(lambda: other.status("r").state == "live")
        client.discard_hint("r")
        until(lambda: other.status("r").state == "finished", "nothing sent the discard")
        until(lambda: client._flusher is not None and client._flusher.parked)
        client.submit_hint(fetch(), "r2")
        client.discard_hint("r2")
        until(lambda: other.status("r2").state == "finished", "a parked thread did not wake")


def test_identity(daemon: Daemon) -> None:
    """Legs and attempts of one request do not share a hint."""
    with open_client(daemon, leg="prefill", dp_rank=3) as client:
        client.submit_hint(fetch(1), "r")
        decode = kvrt.Identity("vllm-0", 3, "decode", 0)
        retry = kvrt.Identity("vllm-0", 3, "prefill", 1)
        assert client.status("r").state == "live"
        assert client.status("r", identity=decode).state == "none"
        client.submit_hint(fetch(1, 2), "r", identity=retry)
        assert client.status("r", identity=retry).hashes == 2
        client.discard_hint("r", identity=retry)
        assert client.status("r", identity=retry).state == "finished"
        assert client.status("r").state == "live"
        client.submit_hint(fetch(1), "r", identity=kvrt.Identity("e", 0, "sideways"))
        client.submit_hint(fetch(1), "r", identity="nonsense")  # type: ignore[arg-type]
        assert client.counters().dropped_invalid == 2 and client.counters().adds_up


class Action(msgspec.Struct, frozen=True):
    action_id: str
    action_type: str
    action_version: str
    payload: dict[str, Any]


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    protocol_version: str
    message_id: str
    actions: list[Action] = []


class Positional(msgspec.Struct, array_like=True):
    action_id: str
    action_type: str
    action_version: str
    payload: dict[str, Any]


@dataclasses.dataclass
class Plain:
    protocol_version: str
    message_id: str
    actions: list[Any]


class Model:
    """As pydantic's: fields by class, values as attributes, no mapping."""

    model_fields = {"source_control_endpoint": None, "block_hashes": None}

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("kind", [Model, types.SimpleNamespace, Plain])
def test_payloads_that_are_objects(daemon: Daemon, encoder: str, kind: Any) -> None:
    payload = fetch()["actions"][0]["payload"]
    if kind is Plain:
        kind = dataclasses.make_dataclass("Payload", list(payload))
    envelope = fetch()
    envelope["actions"][0]["payload"] = kind(**payload)
    with open_client(daemon, encoder=encoder) as client:
        assert client.submit(envelope, "r", forward=True).forward == fetch()
        envelope["actions"][0]["payload"] = kind  # a type is no value
        assert client.submit(envelope, "r").results[0].reason == "malformed_action"


class Mapping(dict):  # type: ignore[type-arg]
    pass


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("outer", [Envelope, Plain, lambda **kw: Mapping(kw)])
@pytest.mark.parametrize("inner", [Action, Positional, lambda *a: Mapping(fetch()["actions"][0])])
def test_structs(daemon: Daemon, encoder: str, outer: Any, inner: Any) -> None:
    payload = fetch()["actions"][0]["payload"]
    envelope = outer(protocol_version="0.1", message_id="m", actions=[inner("a1", "kv.fetch", "1.0", payload)])
    with open_client(daemon, encoder=encoder) as client:
        reply = client.submit(envelope, "r", forward=True)
        assert [(r.action_id, r.accepted) for r in reply.results] == [("a1", True)]
        assert reply.forward == fetch(message_id="m")
        client.submit_hint(envelope, "r2")
        assert client.status("r2").hashes == 2


class Renamed(msgspec.Struct, rename="camel"):
    action_id: str
    action_type: str
    action_version: str
    payload: dict[str, Any]


class Tagged(msgspec.Struct, tag="hint"):
    protocol_version: str
    message_id: str
    actions: list[Any]


@pytest.mark.parametrize("encoder", ENCODERS)
def test_structs_of_other_shapes(daemon: Daemon, encoder: str) -> None:
    payload = fetch()["actions"][0]["payload"]
    fields = ("a1", "kv.fetch", "1.0")
    with open_client(daemon, encoder=encoder) as client:
        renamed = Envelope(protocol_version="0.1", message_id="m1", actions=[Renamed(*fields, payload)])
        assert client.submit(renamed, "r", forward=True).forward == fetch()
        assert client.submit(Tagged("0.1", "m1", [Action(*fields, payload)]), "r", forward=True).forward == fetch()
        big = Envelope(
            protocol_version="0.1",
            message_id="m1",
            actions=[Action(*fields, {**payload, "block_hashes": [2**64]}), Action(*fields, payload)],
        )
        assert [r.reason for r in client.submit(big, "r2").results] == ["invalid_payload", ""]
        hidden = Envelope(
            protocol_version="0.1",
            message_id="m1",
            actions=[Action(*fields, {"x": object()}), Action(*fields, payload)],
        )
        assert [r.reason for r in client.submit(hidden, "r3").results] == ["malformed_action", ""]
        assert client.counters().adds_up and client.counters().dropped == 0


MALFORMED = [None, 1, "text", b"{}", [], ["actions"], {}, {"actions": None}, {"actions": {}}, {"actions": ()}, object()]


@pytest.mark.parametrize("hints", [*MALFORMED, Envelope, Plain("0.1", "m", None)])
def test_malformed(hints: Any) -> None:
    """ValueError where KVCR has it, with or without a daemon, and nothing else is counted."""
    for client in (kvrt.Client("/nowhere/kvrt.sock"), kvrt.NullClient()):
        with pytest.raises(ValueError, match="malformed envelope: "):
            client.submit_hint(hints, "r")
        assert client.counters() == kvrt.Counters(malformed=1)
        if not isinstance(hints, bytes):
            with pytest.raises(ValueError, match="malformed envelope: "):
                client.submit(hints, "r")


def test_malformed_by_the_daemon(daemon: Daemon) -> None:
    with open_client(daemon) as client:
        with pytest.raises(ValueError, match="malformed envelope: "):
            client.submit(b'{"actions": [}', "r")
        assert client.submit(b'{"actions": []}', "r").ok
        assert client.submit(fetch(), "r", dialect="klingon").error == "unknown_dialect"
        flat = {"source_control_endpoint": "tcp://127.0.0.1:1", "block_hashes": [1]}
        assert client.submit(flat, "r", dialect="router_hint").accepted
        counters = client.counters()
        assert (counters.refused, counters.answered, counters.malformed) == (2, 2, 1)
        assert counters.adds_up


class Index:
    def __index__(self) -> int:
        return 7


class Hostile:
    action_type = property(lambda self: 1 / 0)

    def __str__(self) -> str:
        raise RuntimeError("no")


def recursive() -> list[Any]:
    a: list[Any] = []
    a.append(a)
    return a


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize(
    ("payload", "verdict"),
    [
        ({"block_hashes": [Index()]}, ""),
        ({"block_hashes": [2**64]}, "invalid_payload"),
        ({"block_hashes": [-(10**400)]}, "invalid_payload"),
        ({"block_hashes": [float("nan")]}, "invalid_payload"),
        ({"block_hashes": [object()]}, "malformed_action"),
        ({"block_hashes": ["\ud800"]}, "malformed_action"),
        ({"block_hashes": recursive()}, "malformed_action"),
        ({"block_hashes": [2**64, object()]}, "malformed_action"),
        ({"block_hashes": [True]}, "invalid_payload"),
        ("text", "malformed_action"),
    ],
)
def test_what_cannot_be_encoded(daemon: Daemon, encoder: str, payload: Any, verdict: str) -> None:
    """An action that has no encoding is rejected alone; the ones beside it run."""
    envelope = fetch()
    if isinstance(payload, dict):
        payload = {"source_control_endpoint": "tcp://127.0.0.1:23280", **payload}
    envelope["actions"].insert(0, {**envelope["actions"][0], "action_id": "a0", "payload": payload})
    with open_client(daemon, encoder=encoder) as client:
        reply = client.submit(envelope, "r")
        assert reply.ok, reply
        assert reply.results[0].reason in (verdict, *(["invalid_payload"] if verdict == "malformed_action" else []))
        assert reply.results[1].accepted
        client.submit_hint(envelope, "r2")
        assert client.status("r2").state == "live"
        assert client.counters().adds_up and client.counters().dropped == 0


def test_hostile_arguments(daemon: Daemon) -> None:
    with open_client(daemon) as client:
        for request_id in (7, "x" * 513, "é" * 300, "\ud800", Hostile(), b"x"):
            client.submit_hint(fetch(), request_id)  # type: ignore[arg-type]
            client.discard_hint(request_id)  # type: ignore[arg-type]
            client.finish(request_id)  # type: ignore[arg-type]
            client.submit(fetch(), request_id)  # type: ignore[arg-type]
            client.status(request_id)  # type: ignore[arg-type]
        client.discard_hint(None)  # type: ignore[arg-type]
        client.submit_hint({"actions": [Hostile()]}, "r")
        client.submit_hint({"actions": [fetch()["actions"][0]] * 5000}, "r")
        assert client.status("7").state == "finished"
        assert client.status("x" * 512).state == "none"
        assert client.ping()
        assert client.counters().adds_up and client.counters().dropped_invalid == 20, client.counters()


class Raises:
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


class BadMapping(collections.abc.Mapping):  # type: ignore[type-arg]
    def __getitem__(self, key: Any) -> Any:
        raise KeyError(key)

    def __iter__(self) -> Any:
        raise RuntimeError

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize("kind", [Raises, BadMapping])
def test_envelopes_that_raise(daemon: Daemon, kind: Any) -> None:
    hints = kind()

    async def twin() -> None:
        async with kvrt.AsyncClient(daemon.path) as client:
            with pytest.raises(ValueError, match="malformed envelope: it cannot be read"):
                await client.submit(hints, "r")

    with open_client(daemon) as client:
        for call in (client.submit_hint, client.submit, kvrt.NullClient().submit_hint, kvrt.NullClient().submit):
            with pytest.raises(ValueError, match="malformed envelope: it cannot be read"):
                call(hints, "r")
        assert client.submit({"actions": [hints, fetch()["actions"][0]]}, "r").results[1].accepted
    asyncio.run(twin())


@pytest.mark.parametrize("encoder", ENCODERS)
def test_at_the_end_of_the_stack(daemon: Daemon, caplog: pytest.LogCaptureFixture, encoder: str) -> None:
    """Calls that run out of stack, anywhere: nothing is torn, and all goes on."""

    def down(n: int, i: int) -> None:
        if n:
            return down(n - 1, i)
        client.submit_hint(fetch(i), f"r{i}")
        client.discard_hint(f"d{i}")
        client.status(f"r{i}")
        client.submit(fetch(i), f"s{i}", forward=True)
        client.flush()

    with open_client(daemon, encoder=encoder, linger=0.0, backoff_min=0.0) as client:
        assert client.ping()
        for _ in range(5):
            for i in range(sys.getrecursionlimit() - 100, sys.getrecursionlimit()):
                try:
                    down(i, i)
                except (RecursionError, ValueError):  # an envelope that cannot be looked at to its end
                    pass
            assert client.counters().adds_up, client.counters()
        until(lambda: client.submit(fetch(), "last").ok)
        counters = client.counters()
        assert counters.adds_up and counters.answered > 100, counters
        assert counters.connects == counters.disconnects + 1 and "refused" not in caplog.text


def test_large(daemon: Daemon) -> None:
    with open_client(daemon, max_buffer=1 << 14) as client:
        many = fetch(*range(10_000))
        assert client.submit(many, "r").accepted
        client.discard_hint("what rides in front")
        client.submit_hint(many, "behind it")
        assert client.status("behind it").hashes == 10_000
        client.submit_hint(fetch(message_id="x" * (9 << 20)), "r2")
        assert client.counters().dropped_too_large == 1
        assert client.submit(fetch(), "r3").accepted
        assert client.counters().adds_up


def test_threads(daemon: Daemon) -> None:
    with open_client(daemon, flush_interval=0.001, max_buffer=64 << 20) as client:

        def work(i: int) -> None:
            for k in range(200):
                client.submit_hint(fetch(i, k), f"{i}-{k}")
                if k % 10 == 0:
                    assert client.status(f"{i}-{k}").state == "live"
                client.discard_hint(f"{i}-{k}")

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert client.flush() or until(client.flush)
        counters = client.counters()
        assert counters.adds_up and counters.dropped == 0
        assert counters.sent == counters.requests == 8 * (200 + 200 + 20)
        assert client.status("3-199").state == "finished"


def _forked(client: kvrt.Client, out: Any) -> None:
    before = client.counters()
    client.submit_hint(fetch(1, 2), "child")
    out.put((before, client.status("child"), client.status("parent"), client.counters()))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_worker(daemon: Daemon, method: str) -> None:
    """A worker gets a connection and counters of its own, and the parent's goes on."""
    context = multiprocessing.get_context(method)
    with open_client(daemon) as client:
        assert client.submit(fetch(), "parent").ok
        client.discard_hint("never sent by the child")
        client._lock.acquire() if method == "fork" else None  # as if another thread were inside
        out = context.Queue()
        worker = context.Process(target=_forked, args=(client, out))
        worker.start()
        client._lock.release() if method == "fork" else None
        before, mine, parents, counters = out.get(timeout=30)
        worker.join(30)
        assert worker.exitcode == 0
        assert before == kvrt.Counters()
        assert (mine.state, parents.state) == ("live", "live")
        assert counters.adds_up and (counters.connects, counters.requests) == (1, 3)
        assert client.status("child").state == "live"
        assert client.counters().connects == 1 and client.counters().disconnects == 0


def test_fork_of_many_children(daemon: Daemon) -> None:
    with open_client(daemon) as client:
        client.submit_hint(fetch(), "parent")
        pids = []
        for i in range(8):
            if (pid := os.fork()) == 0:
                client.submit_hint(fetch(1), f"child-{i}")
                ok = client.status(f"child-{i}").state == "live" and client.counters().connects == 1
                os._exit(0 if ok else 1)
            pids.append(pid)
        assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * 8
        assert all(client.status(f"child-{i}").state == "live" for i in range(8))


def test_pickle() -> None:
    client = kvrt.Client("/tmp/x.sock", engine="e", leg="decode")
    assert pickle.loads(pickle.dumps(client)).options == client.options


def test_import_starts_nothing() -> None:
    code = (
        "import threading, sys, random; random.seed(1); a = random.random(); random.seed(1)\n"
        "import kvrt, os; c = kvrt.Client('/nowhere/s'); kvrt.AsyncClient('/nowhere/s')\n"
        "assert threading.active_count() == 1 and 'asyncio' in sys.modules\n"
        "[c.submit_hint({'actions': []}) for _ in range(1000)]\n"
        "assert random.random() == a and threading.active_count() == 1\n"
        "assert len(os.listdir('/proc/self/fd')) <= 4\n"
    )
    source = os.path.dirname(os.path.dirname(kvrt.__file__))
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, env={"PYTHONPATH": source})


def test_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("KVRT_SOCKET", "/a/b.sock")
    assert kvrt.Client().options.path == "/a/b.sock"
    monkeypatch.delenv("KVRT_SOCKET")
    monkeypatch.setattr("kvrt._options.SYSTEM_FOLDER", "/nowhere")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert kvrt.default_socket() == str(tmp_path / "kvrt.sock")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "relative")
    assert kvrt.default_socket() == f"/tmp/kvrt-{os.geteuid()}/kvrt.sock"
    for bad in ({"leg": "sideways"}, {"encoder": "pickle"}, {"deadline": -1}, {"engine": "x" * 300}, {"dp_rank": -1}):
        with pytest.raises(ValueError):
            kvrt.Client("/x", **bad)  # type: ignore[arg-type]


def test_null() -> None:
    with kvrt.NullClient() as client:
        client.submit_hint(fetch(), "r")
        client.discard_hint("r")
        client.finish("r")
        assert client.submit(fetch(), "r").error == "unavailable"
        assert client.status("r").state == "unknown" and not client.ping()
        assert client.discard("r") == client.finished("r") == "unavailable"
        assert client.counters().adds_up and client.counters().submitted == 2
