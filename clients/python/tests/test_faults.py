"""Whatever becomes of the daemon, the engine's thread goes on."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
from conftest import LONG, Daemon, fetch, until

import kvrt

QUICK = {"deadline": 0.002, "backoff_min": 0.0005, "backoff_max": 0.003, "reconnect_after": 0.02}
BEHAVIOURS = ["ok", "ok", "close", "deaf", "huge", "garbage-at-once", "garbage", "odd", "mute", "version"]
BEHAVIOURS += ["hello-of-2", "partial", "slow", "cut", "drain"]


# How much longer the soaks are than a run of all tests has time for.
MORE = int(os.environ.get("KVRT_SOAK", "1"))


class Clock:
    """Counts the calls that took longer than the deadline and the noise of a shared machine."""

    noise = 0.050

    def __init__(self, deadline: float = 0.002) -> None:
        self.limit = deadline + self.noise
        self.calls = self.late = 0
        self.worst = 0.0

    def __call__(self, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        began = time.perf_counter()
        try:
            return call(*args, **options)
        finally:
            took = time.perf_counter() - began
            self.calls += 1
            self.late += took > self.limit
            self.worst = max(self.worst, took)

    def check(self) -> None:
        """One call in a hundred may meet a machine that is busy elsewhere; none may hang."""
        assert self.late <= self.calls // 100 + 2, f"{self.late} of {self.calls} calls were late"
        assert self.worst < 5, f"a call took {self.worst} s"


def test_absent() -> None:
    client = kvrt.Client("/nowhere/kvrt.sock")
    clock = Clock()
    for i in range(2000):
        clock(client.submit_hint, fetch(), f"r{i}")
        clock(client.discard_hint, f"r{i}")
        assert clock(client.submit, fetch(), f"r{i}").error == "unavailable"
        assert clock(client.status, f"r{i}").error == "unavailable"
    client.close()
    counters = client.counters()
    assert counters.adds_up and counters.dropped == counters.requests == 8000
    assert counters.connects == counters.sent == counters.timeouts == 0
    clock.check()


def test_paused_and_resumed(daemon: Daemon) -> None:
    """A paused daemon costs one deadline; then a call waits for nothing until an answer has come."""
    with kvrt.Client(daemon.path, deadline=LONG, reconnect_after=LONG) as client:
        assert client.ping()
        daemon.pause()
        assert client.submit(fetch(), "r", timeout=0.002).error == "timeout"
        began = time.monotonic()
        assert {client.submit(fetch(), "r").error for _ in range(100)} == {"unavailable"}
        assert time.monotonic() - began < LONG, "a call has waited although the breaker is open"
        assert client.counters().timeouts == 1
        client.submit_hint(fetch(1, 2, 3), "s")
        daemon.resume()
        until(lambda: client.status("s").hashes == 3)
        assert client.counters().late_replies == 1
        assert client.counters().adds_up and client.counters().connects == 1


def test_full(daemon: Daemon) -> None:
    """The buffer is bounded, frames stay whole and in order, and what has no room is counted."""
    with kvrt.Client(daemon.path, deadline=LONG, max_buffer=1 << 18, reconnect_after=LONG) as client:
        assert client.ping()
        daemon.pause()
        clock = Clock()
        for i in range(1000):
            clock(client.submit_hint, fetch(*range(2**40, 2**40 + 100 + i % 50)), f"r{i}")
            assert len(client._link.buffer) <= 1 << 18
        clock.check()
        counters = client.counters()
        assert counters.adds_up and counters.dropped_full == counters.dropped > 0 and counters.pending > 0
        daemon.resume()
        until(lambda: client.flush())
        until(lambda: client.ping())
        counters = client.counters()
        assert counters.adds_up and counters.pending == 0 and counters.disconnects == 0
        states = [client.status(f"r{i}") for i in range(1000)]
        held = [s for s in states if s.state == "live"]
        assert len(held) == counters.submitted - counters.dropped_full
        assert all(s.hashes == 100 + i % 50 for i, s in enumerate(states) if s.state == "live")


def test_restarted(stopped: Daemon) -> None:
    """Killed or stopped, with and without calls meanwhile; a new daemon is found again."""
    options = {**QUICK, "deadline": LONG, "reconnect_after": LONG}
    with kvrt.Client(stopped.path, **options) as client:
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
            stopped.start()
            until(lambda: client.ping())
            client.submit_hint(fetch(), "r")
            assert client.status("r").state == "live"
            stopped.end(number)
            client.submit_hint(fetch(), "r")
            assert client.status("r").error == "unavailable"
            assert client.counters().adds_up
        stopped.start()
        until(lambda: client.ping())
        stopped.kill()
        stopped.start()  # nobody has noticed
        client._link.connected_at -= 60  # it had been in order for long: another is made at once
        client.submit_hint(fetch(1, 2), "r")
        assert client.status("r").hashes == 2


def test_upgraded(stopped: Daemon, fake: Callable[..., str]) -> None:
    """A daemon of another protocol version refuses; when one of this version is back, all is well."""
    with kvrt.Client(stopped.path, **{**QUICK, "deadline": LONG, "reconnect_after": LONG}) as client:
        for behaviour in ("version", "hello-of-2"):
            other = fake(behaviour)
            if os.path.lexists(stopped.path):
                os.unlink(stopped.path)
            os.symlink(other, stopped.path)
            for i in range(200):
                client.submit_hint(fetch(), f"r{i}")
                assert client.submit(fetch(), f"r{i}").error == "unavailable"
            assert client.counters().adds_up and client.counters().timeouts == 0
            os.unlink(stopped.path)
            stopped.start()
            until(lambda: client.ping())
            stopped.end()


@pytest.mark.parametrize("behaviour", ["mute-for-ever", "deaf-for-ever"])
def test_one_that_never_answers_is_left(fake: Callable[..., str], behaviour: str) -> None:
    with kvrt.Client(fake(behaviour), **QUICK) as client:
        clock = Clock()

        def left() -> bool:
            clock(client.submit_hint, fetch(*range(1000)), "r")
            clock(client.submit, fetch(), "r")
            return client.counters().connects > 5

        until(left)
        clock.check()
        assert client.counters().adds_up and client.counters().timeouts <= 1


@pytest.mark.parametrize("encoder", ["msgspec", "msgpack"])
def test_soak(fake: Callable[..., str], encoder: str) -> None:
    """Thousands of faults, every kind, under a load of hints."""
    rng = random.Random(2)
    client = kvrt.Client(fake(*BEHAVIOURS), encoder=encoder, flush_interval=0.001, max_buffer=1 << 16, **QUICK)
    clock = Clock()
    envelopes = [fetch(*range(n)) for n in (1, 32, 1024)]
    end = time.monotonic() + 2 * LONG * MORE
    i = 0
    while client.counters().connects < 500 * MORE:
        assert time.monotonic() < end, client.counters()
        for _ in range(20):
            i += 1
            match rng.randrange(8):
                case 0:
                    clock(client.submit, rng.choice(envelopes), f"r{i}", forward=True)
                case 1:
                    clock(client.status, f"r{i}")
                case 2:
                    clock(client.finish, f"r{i}")
                case 3:
                    clock(client.flush)
                    clock(client.formulate, {"request_id": "r"})
                    clock(client.formulate_batch, [{"request_id": "r"}] * 3)
                case _:
                    clock(client.submit_hint, rng.choice(envelopes), f"r{i}")
                    clock(client.discard_hint, f"r{i}")
        assert client.counters().adds_up, client.counters()
    client.close()
    counters = client.counters()
    assert counters.adds_up and counters.pending == 0 and counters.dropped_error == 0, counters
    assert counters.answered > 0 and counters.timeouts > 0 and counters.protocol_errors > 0
    clock.check()


def test_soak_of_the_real_daemon(stopped: Daemon) -> None:
    """Kill, stop, pause, restart, with hints flowing; afterwards it works."""
    rng = random.Random(3)
    client = kvrt.Client(stopped.path, **{**QUICK, "reconnect_after": 0.2, "max_buffer": 1 << 16})
    clock = Clock()
    envelopes = [fetch(*range(n)) for n in (1, 32, 1024)]

    def load(n: int) -> None:
        for i in range(n):
            clock(client.submit_hint, rng.choice(envelopes), f"r{i}")
            clock(client.submit, envelopes[0], f"r{i}")
            clock(client.discard_hint, f"r{i}")

    for _ in range(4 * MORE):
        stopped.start()
        for _ in range(30):
            load(rng.randrange(20))
            stopped.pause()
            load(rng.randrange(40))
            stopped.resume()
        load(10)
        rng.choice([stopped.kill, stopped.end])()
        load(50)
        assert client.counters().adds_up, client.counters()
    stopped.start()
    until(lambda: client.submit(fetch(), "last", timeout=LONG).ok)
    client.close()
    assert client.counters().adds_up and client.counters().protocol_errors == 0
    clock.check()


def test_soak_of_the_twin(fake: Callable[..., str]) -> None:
    """The same faults for the asyncio client, with many calls at once."""

    async def main() -> None:
        client = kvrt.AsyncClient(fake(*BEHAVIOURS), flush_interval=0.001, max_buffer=1 << 16, **QUICK)
        clock = Clock()
        end = time.monotonic() + 2 * LONG * MORE
        i = 0
        while client.counters().connects < 250 * MORE:
            assert time.monotonic() < end, client.counters()
            i += 1
            clock(client.submit_hint, fetch(*range(100)), f"r{i}")
            clock(client.discard_hint, f"r{i}")
            calls = [client.submit(fetch(), f"r{k}", forward=True) for k in range(4)]
            await asyncio.wait_for(asyncio.gather(*calls, client.status("r"), client.ping()), LONG)
            assert client.counters().adds_up, client.counters()
        await client.close()
        assert client.counters().adds_up and client.counters().pending == 0, client.counters()
        assert client.counters().answered > 0
        clock.check()

    asyncio.run(main())
