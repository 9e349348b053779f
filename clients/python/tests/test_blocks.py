"""Blocks of requests, from one real daemon to another, and what became of the hints."""

from __future__ import annotations

import array
import asyncio
import inspect
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import LONG, Daemon, fetch, until

import kvrt
from kvrt.aio import AsyncClient

SOURCE = "tcp://127.0.0.1:23280"
SPACE = {"tenant": "a", "namespace": "m"}
OPTIONS: dict[str, Any] = {"deadline": LONG, "engine": "vllm-0"}


def block(h: int, size: int = 40_000) -> bytes:
    return (bytes([h % 256, 1, 2, 3]) * size)[:size]


def configured(folder: Path, peers: str) -> Daemon:
    folder.mkdir()
    daemon = Daemon(folder)
    daemon.config = str(folder / "kvrt.yaml")
    text = f"compile: {{cache: 'off'}}\nstore: {{capacity: 4MiB, block_bytes: [64KiB]}}\npeers: {peers}\n"
    Path(daemon.config).write_text(text)
    return daemon


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Daemon, Daemon]]:
    """A daemon that serves blocks, and one that fetches them."""
    socket = tmp_path / "p"
    source = configured(tmp_path / "source", f"{{socket: {socket}, allow: [{{uid: {os.geteuid()}, all: true}}]}}")
    target = configured(tmp_path / "target", f"{{sockets: [{{source: '{SOURCE}', path: {socket}}}]}}")
    source.start()
    target.start()
    with kvrt.Client(source.path, **OPTIONS) as client:
        for h in (1, 2, 3):
            assert client.put_block(h, block(h), **SPACE, timeout=LONG) == kvrt.Stored(True)
    yield source, target
    source.kill()
    target.kill()


@pytest.mark.parametrize("encoder", ["msgspec", "msgpack"])
def test_fetch(pair: tuple[Daemon, Daemon], encoder: str) -> None:
    """A hint, then its blocks, byte for byte; what does not come has a reason."""
    with kvrt.Client(pair[1].path, encoder=encoder, **OPTIONS) as client, client.follow() as follow:
        client.submit_hint(fetch(1, 2, source=SOURCE, message_id="first"), "r1")
        got = client.fetch("r1", **SPACE)
        assert got.ok and (got.here, got.fetched, got.bytes, got.states) == (0, 2, 80_000, ()), got
        assert [client.get_block(h, **SPACE).data for h in (1, 2, 3)] == [block(1), block(2), None]
        assert client.get_block(1, tenant="b", namespace="m", timeout=LONG) == kvrt.Block()

        client.submit_hint(fetch(2, 3, 4, source=SOURCE), "r2")
        got = client.fetch("r2", [2, 3, 4], **SPACE)
        assert not got.ok and not got.error and got.states == (True, True, False) and got.why, got

        (one,) = client.outcomes("r1")
        assert (one.state, one.reason, one.message_id, one.blocks, one.fetched, one.bytes) == (
            "completed", "", "first", 2, 2, 80_000,
        )  # fmt: skip
        assert one.identity == kvrt.Identity("vllm-0") and one.request_id == "r1" and not one.open
        assert 0 < one.accepted_ns <= one.ended_ns <= time.time_ns()
        (two,) = client.outcomes("r2")
        assert (two.state, two.reason, two.fetched) == ("partial", "not_found", 1)
        assert [o.request_id for o in client.outcomes()] == ["r2", "r1"]
        assert [o.request_id for o in client.outcomes(message_id="first")] == ["r1"]
        assert len(client.outcomes(limit=1)) == 1
        assert len(client.outcomes("r1", identity=kvrt.Identity("other"))) == 0

        assert client.fetch("nobody", **SPACE).why
        for _ in range(20):
            client.submit_hint(fetch(9, source=SOURCE), "r3")
        client.discard_hint("r3")
        client.flush()
        told: list[kvrt.Outcome] = []
        until(lambda: told.extend(follow.poll(0.1)) or len(told) >= 22)
        assert [(o.request_id, o.state) for o in told] == [
            ("r1", "completed"), ("r2", "partial"), *[("r3", "superseded")] * 19, ("r3", "discarded"),
        ]  # fmt: skip
        assert follow.lost == follow.restarts == 0 and follow.poll(0).outcomes == ()
        assert client.counters().adds_up and client.counters().dropped == 0
        connects = client.counters().connects
    assert client.counters().connects == connects == 2, "the counters of the second connection are gone"
    assert follow.poll().error == "unavailable"


def test_a_slow_source_is_in_nobodys_way(pair: tuple[Daemon, Daemon]) -> None:
    """While a fetch waits for a source that is stopped, hints flow and calls are answered."""
    source, target = pair
    with kvrt.Client(target.path, **OPTIONS) as client:
        client.submit_hint(fetch(1, source=SOURCE), "r1")
        assert client.fetch("r1", **SPACE).ok
        source.pause()
        client.submit_hint(fetch(2, source=SOURCE), "r2")
        got: list[kvrt.Fetched] = []
        thread = threading.Thread(target=lambda: got.append(client.fetch("r2", **SPACE)))
        thread.start()
        until(lambda: client.counters().connects == 2 and client._side is not None and client._side._link.waiting)
        for i in range(100):
            client.submit_hint(fetch(i), f"s{i}")
            assert client.status(f"s{i}").state == "live"
        assert not got
        source.resume()
        thread.join(LONG)
        assert got[0].ok and client.get_block(2, **SPACE).data == block(2)
        assert client.counters().adds_up and client.counters().dropped == 0


def test_the_source_dies(pair: tuple[Daemon, Daemon]) -> None:
    source, target = pair
    with kvrt.Client(target.path, **OPTIONS) as client:
        client.submit_hint(fetch(1, 2, source=SOURCE), "r")
        source.kill()
        got = client.fetch("r", **SPACE)
        assert not got.ok and got.why and not got.error and got.fetched == 0
        (one,) = client.outcomes("r")
        assert one.state == "failed" and one.reason
        assert client.fetch("r", [1], **SPACE, timeout=0.0).error == "timeout"


def test_the_daemon_ends(pair: tuple[Daemon, Daemon]) -> None:
    """In the middle of a fetch, and of a stream: both say so, and go on with the next daemon."""
    source, target = pair
    with kvrt.Client(target.path, **OPTIONS, backoff_min=0.001, backoff_max=0.01) as client:
        follow = client.follow()
        client.submit_hint(fetch(1, source=SOURCE), "r1")
        source.pause()
        got: list[kvrt.Fetched] = []
        thread = threading.Thread(target=lambda: got.append(client.fetch("r1", **SPACE)))
        thread.start()
        until(lambda: client._side is not None and client._side._link.waiting)
        target.kill()
        thread.join(LONG)
        assert got == [kvrt.Fetched(error="unavailable")]
        assert follow.poll().error == "unavailable"
        source.resume()
        target.start()
        until(client.ping)
        until(lambda: follow.poll(0).ok)
        assert follow.restarts == 1
        client.submit_hint(fetch(3, source=SOURCE), "r2")
        until(lambda: client.fetch("r2", **SPACE).ok)
        for outcome in follow:
            assert (outcome.request_id, outcome.state) == ("r2", "completed")
            break
        assert client.counters().adds_up


def test_twin(pair: tuple[Daemon, Daemon]) -> None:
    async def main() -> None:
        async with kvrt.AsyncClient(pair[1].path, **OPTIONS) as client:
            async with await client.follow() as follow:
                client.submit_hint(fetch(1, 2, source=SOURCE), "r1")
                await client.describe("r1", [1, 2], 16, **SPACE)
                assert await client.described("r1", [1, 2], 16, **SPACE) == ""
                got = await client.fetch("r1", [1, 2], **SPACE)
                assert got.ok and got.states == (True, True), got
                assert (await client.get_block(2, **SPACE)).data == block(2)
                assert (await client.put_block(7, bytearray(b"seven"), **SPACE)).stored
                assert (await client.put_block(7, b"seven", **SPACE)) == kvrt.Stored(False)
                async for outcome in follow:
                    assert (outcome.request_id, outcome.state) == ("r1", "completed")
                    break
                task = asyncio.create_task(follow.poll(10))
                await asyncio.sleep(0.01)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                assert [o.state for o in await client.outcomes("r1")] == ["completed"]
                while not (await follow.poll(0)).ok:
                    await asyncio.sleep(0.005)
                assert follow.restarts == 1
            assert client.counters().adds_up and client.counters().dropped == 0, client.counters()

    asyncio.run(main())


def test_describe(pair: tuple[Daemon, Daemon]) -> None:
    """What is told of a request's blocks, in every form of a list of hashes."""
    numpy = pytest.importorskip("numpy")
    hashes = [1, 2**64 - 1, 7]
    with kvrt.Client(pair[1].path, **OPTIONS) as client:
        forms = [hashes, tuple(hashes), array.array("Q", hashes), numpy.array(hashes, "uint64"), iter(hashes)]
        forms += [b"".join(h.to_bytes(8, "little") for h in hashes), [1, -1, 7], numpy.array([1, -1, 7])]
        for form in forms:
            assert client.described("r", form, 16, **SPACE) == "", form
        client.describe("r", hashes, 16, **SPACE)
        assert client.described("", hashes, 16) == "not_kept"
        for wrong in (["x"], [2**64], [1.5], b"1234567", 7, None, [None], numpy.array([1.5])):
            assert client.described("r", wrong, 16) == "invalid", wrong
            client.describe("r", wrong, 16)
        for wrong in (-1, 1 << 31, "16", None, True):
            assert client.described("r", hashes, wrong) == "invalid", wrong  # type: ignore[arg-type]
        assert client.described("r", hashes, 16, tenant="x" * 513) == "invalid"
        assert client.ping() and client.counters().dropped_invalid == 8 + 8 + 5 + 1 and client.counters().adds_up


def test_nothing_is_raised(pair: tuple[Daemon, Daemon], daemon: Daemon) -> None:
    """Not for arguments, not by a daemon without peers, not without a daemon."""
    wrong: list[Any] = [None, "x", -1, 2**64, object(), 1.5, True]
    with kvrt.Client(pair[1].path, **OPTIONS) as client:
        for w in wrong:
            assert client.get_block(w).error == "invalid", w
            assert client.put_block(w, b"x").error == "invalid", w
        for data in (b"", None, 7, "text"):
            assert client.put_block(1, data).error == "invalid", data
        assert client.put_block(1, bytes(9 << 20)).error == "invalid"
        assert client.put_block(1, bytes(1 << 20)).error == "not_stored"
        for w in (-1, 1025, "x", None):
            assert client.outcomes(limit=w).error == "invalid", w
        assert client.outcomes(message_id=7).error == client.outcomes("x" * 600).error == "invalid"
        assert client.fetch("r", "text").error == client.fetch("r", block_bytes=-1).error == "invalid"
        assert client.follow("x" * 600).poll().error == client.follow(identity="no").poll().error == "invalid"
        assert client.ping() and client.counters().adds_up
    bare = kvrt.Client(daemon.path, **OPTIONS)
    for client in (bare, kvrt.Client("/nowhere/s"), kvrt.NullClient()):
        with client:
            follow = client.follow("r")
            assert follow.poll().error == client.outcomes().error == client.fetch("r").error == "unavailable"
            assert list(follow) == [] and client.put_block(1, b"x").error == client.get_block(1).error == "unavailable"
            client.describe("r", [1], 16)
            assert client.described("r", [1], 16).startswith("this daemon has no" if client is bare else "unavailable")
            follow.close()
            assert client.counters().adds_up


def test_a_child_fetches(pair: tuple[Daemon, Daemon]) -> None:
    """A forked child has second connections of its own."""
    with kvrt.Client(pair[1].path, **OPTIONS) as client, client.follow() as follow:
        client.submit_hint(fetch(1, source=SOURCE), "r1")
        assert client.fetch("r1", **SPACE).ok
        if (pid := os.fork()) == 0:
            code = 1
            try:
                client.submit_hint(fetch(2, source=SOURCE), "r2")
                mine = client.fetch("r2", **SPACE).ok and client.counters().connects == 2
                code = 0 if mine and follow.poll(0).ok and follow._exchange._link.connects == 1 else 2
            finally:
                os._exit(code)
        assert os.waitpid(pid, 0)[1] == 0
        assert client.get_block(2, **SPACE).data == block(2)
        told: list[str] = []
        until(lambda: told.extend(o.request_id for o in follow.poll(0.1)) or len(told) == 2)
        assert told == ["r1", "r2"] and client.counters().disconnects == 0


def test_the_three_have_the_same_methods() -> None:
    """The client, its twin and the null client take the same arguments."""
    public = {n for n, _ in inspect.getmembers(kvrt.Client, callable) if n[0] != "_"}
    for other in (AsyncClient, kvrt.NullClient):
        assert public == {n for n, _ in inspect.getmembers(other, callable) if n[0] != "_"}
        for name in public:
            ours = inspect.signature(getattr(kvrt.Client, name)).parameters
            theirs = inspect.signature(getattr(other, name)).parameters
            assert list(ours) == list(theirs), name
            assert [p.kind for p in ours.values()] == [p.kind for p in theirs.values()], name


def test_an_older_daemon(fake: Any) -> None:
    """One that does not know the operations says so, and the connection stays."""
    with kvrt.Client(fake("old"), **OPTIONS) as client:
        assert client.described("r", [1], 16) == "unknown operation"
        assert client.outcomes().error == client.fetch("r").error == client.get_block(1).error == "unknown_op"
        assert client.ping() and client.counters().adds_up and client.counters().disconnects == 0


def test_odd_answers(fake: Any) -> None:
    with kvrt.Client(fake("odd-blocks"), **OPTIONS) as client:
        for _ in range(100):
            for answer in (client.outcomes(), client.fetch("r"), client.put_block(1, b"x"), client.get_block(1)):
                assert answer.error in ("", "unavailable")
            assert isinstance(client.described("r", [1], 16), str)
        assert client.counters().protocol_errors > 50 and client.counters().adds_up
