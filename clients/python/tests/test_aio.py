"""The asyncio twin against the real daemon."""

from __future__ import annotations

import asyncio
import os

import pytest
from conftest import Daemon, fetch, until

import kvrt

LONG = 10.0


def test_results(daemon: Daemon) -> None:
    async def main() -> None:
        async with kvrt.AsyncClient(daemon.path, deadline=LONG) as client:
            reply = await client.submit(fetch(), "r", forward=True)
            assert reply.forward == fetch() and reply.accepted
            client.submit_hint(fetch(1), "a")  # without await ...
            await client.submit_hint(fetch(1, 2), "b")  # ... and with
            states = await asyncio.gather(*(client.status(r) for r in ("r", "a", "b", "none")))
            assert [s.hashes for s in states] == [2, 1, 2, 0]
            await client.discard_hint("a")
            assert (await client.status("a")).state == "finished"
            assert await client.discard("b") == "" and await client.finished("b", aborted=True) == ""
            assert await client.ping()
            with pytest.raises(ValueError, match="malformed envelope"):
                client.submit_hint({"actions": 1})
            with pytest.raises(ValueError, match="malformed envelope"):
                await client.submit(b"{", "r")
            await asyncio.gather(*(client.submit(fetch(i), f"r{i}") for i in range(100)))
            assert client.counters().adds_up and client.counters().dropped == 0

    asyncio.run(main())


def test_a_discard_leaves_by_itself(daemon: Daemon) -> None:
    async def main() -> None:
        with kvrt.Client(daemon.path, deadline=LONG) as other:
            async with kvrt.AsyncClient(daemon.path, flush_interval=0.01) as client:
                client.submit_hint(fetch(), "r")
                await client.discard_hint("r")
                while other.status("r").state != "finished":
                    await asyncio.sleep(0.005)

    asyncio.run(asyncio.wait_for(main(), 30))


def test_paused(daemon: Daemon) -> None:
    async def main() -> None:
        async with kvrt.AsyncClient(daemon.path, deadline=LONG) as client:
            assert await client.ping()
            daemon.pause()
            replies = await asyncio.gather(*(client.submit(fetch(), "r", timeout=0.01) for _ in range(5)))
            assert {r.error for r in replies} == {"timeout"}
            assert (await client.submit(fetch(), "r")).error == "unavailable"
            daemon.resume()
            while not await client.ping():
                await asyncio.sleep(0.005)
            assert client.counters().late_replies == 5 and client.counters().adds_up

    asyncio.run(main())


def test_killed_and_restarted(daemon: Daemon) -> None:
    async def main() -> None:
        async with kvrt.AsyncClient(daemon.path, deadline=LONG, backoff_min=0.001, backoff_max=0.01) as client:
            assert await client.ping()
            daemon.pause()
            call = asyncio.create_task(client.submit(fetch(), "r"))
            await asyncio.sleep(0)
            daemon.kill()
            assert (await call).error == "unavailable"  # before the deadline
            daemon.start()
            while not await client.ping():
                await asyncio.sleep(0.005)
            assert client.counters().adds_up

    asyncio.run(main())


def test_loops_and_forks(daemon: Daemon) -> None:
    """One client, several loops one after the other, and a child with its own."""
    client = kvrt.AsyncClient(daemon.path, deadline=LONG)

    async def one(name: str) -> str:
        client.submit_hint(fetch(), name)
        return (await client.status(name)).state

    assert asyncio.run(one("a")) == "live"
    assert asyncio.run(one("b")) == "live"
    if (pid := os.fork()) == 0:
        os._exit(0 if asyncio.run(one("c")) == "live" and client.counters().connects == 1 else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert asyncio.run(one("d")) == "live"
    client.submit_hint(fetch(), "no loop")
    client.discard_hint("no loop")
    with kvrt.Client(daemon.path, deadline=LONG) as other:
        until(lambda: other.status("no loop").state == "finished")
    asyncio.run(client.close())
