"""The client and the life of its process: bursts, exits, signals, forks in the middle of it."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import LONG, Daemon, fetch, until

import kvrt

ENCODERS = ["msgspec", "msgpack"]
SOURCE = os.path.dirname(os.path.dirname(kvrt.__file__))


def live(other: kvrt.Client, *names: str) -> bool:
    return all(other.status(name).state == "live" for name in names)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_burst_leaves_by_itself(daemon: Daemon, encoder: str) -> None:
    """Hints that wait for others, and a discard behind them, in the order of the calls."""
    with kvrt.Client(daemon.path, deadline=LONG) as other, kvrt.Client(daemon.path, encoder=encoder) as client:
        for r in range(5):
            for i in range(100):
                client.submit_hint(fetch(i), f"{r}-{i}")
                client.discard_hint(f"{r}-{i}") if i % 10 == 0 else None
            client.discard_hint(f"{r}-99")
            until(lambda r=r: other.status(f"{r}-99").state == "finished", "nothing sent the last of a burst")
            states = [other.status(f"{r}-{i}").state for i in range(99)]
            assert states == ["finished" if i % 10 == 0 else "live" for i in range(99)]
            until(lambda: client._flusher is not None and not client._flusher.fast)
        counters = client.counters()
        assert counters.adds_up and counters.dropped == counters.pending == 0
        assert (counters.submitted, counters.discarded, counters.sent) == (500, 55, 555)


def test_without_a_thread(daemon: Daemon) -> None:
    for options in ({"linger": 0.0}, {"flush_interval": 0.0}):
        with kvrt.Client(daemon.path, **options) as client:
            for i in range(50):
                client.submit_hint(fetch(i), f"r{i}")
                assert client.counters().pending == 0, "a hint waits although it may not"
            assert client._flusher is None


EXIT = """
import sys, kvrt
client = kvrt.Client(sys.argv[1], flush_interval=3600.0, linger=3600.0)
hint = {"actions": [{"action_id": "a", "action_type": "kv.fetch", "action_version": "1.0",
        "payload": {"source_control_endpoint": "tcp://127.0.0.1:1", "block_hashes": [1]}}]}
for i in range(20):
    client.submit_hint(hint, f"{sys.argv[2]}-{i}")
client.discard_hint(f"{sys.argv[2]}-0")
assert client.counters().pending > 15
class Late:
    def __del__(self):  # what an engine's objects may do when all goes down
        client.discard_hint("late"); client.submit_hint(hint, "late"); client.status("late")
late = Late(); late.itself = late
"""


THREAD = "import threading; threading.Thread(target=lambda: 0).start()"


@pytest.mark.parametrize("end", ["", "sys.exit(0)", "raise KeyboardInterrupt", THREAD])
def test_exit(daemon: Daemon, end: str) -> None:
    """What waits leaves at the end of the interpreter, which ends as it would without a client."""
    name = f"exit{len(end)}"
    command = [sys.executable, "-W", "error", "-W", "ignore::ResourceWarning", "-c", EXIT + end, daemon.path, name]
    done = subprocess.run(command, env={"PYTHONPATH": SOURCE}, capture_output=True, text=True, timeout=LONG)
    expected = ("KeyboardInterrupt", "Traceback", '  File "<string>"', "    raise Keyboard")
    noise = [x for x in done.stderr.splitlines() if not x.startswith(expected)]
    assert not noise and (done.returncode == 0 or "Keyboard" in end), done.stderr
    with kvrt.Client(daemon.path, deadline=LONG) as client:
        until(lambda: live(client, *(f"{name}-{i}" for i in range(1, 20))))
        until(lambda: client.status(f"{name}-0").state == "finished")


def _worker(path: str, name: str, client: kvrt.Client | None) -> None:
    client = client or kvrt.Client(path, flush_interval=3600.0, linger=3600.0)
    for i in range(10):
        client.submit_hint(fetch(i), f"{name}-{i}")


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("handed", [True, False])
def test_a_worker_ends(daemon: Daemon, method: str, handed: bool) -> None:
    """multiprocessing's workers end without the interpreter's exit; what waits leaves all the same."""
    context = multiprocessing.get_context(method)
    with kvrt.Client(daemon.path, deadline=LONG, linger=3600.0, flush_interval=3600.0) as client:
        assert client.ping()
        for i in range(4):
            client.submit_hint(fetch(i), f"parent-{i}")
        name = f"{method}-{handed}"
        worker = context.Process(target=_worker, args=(daemon.path, name, client if handed else None))
        worker.start()
        worker.join(LONG)
        assert worker.exitcode == 0
        until(lambda: live(client, *(f"{name}-{i}" for i in range(10)), *(f"parent-{i}" for i in range(4))))
        assert client.counters().connects == 1


class Alarms:
    """Calls a handler again and again in the main thread, in the middle of whatever runs."""

    def __init__(self) -> None:
        self.handler: Any = None
        signal.signal(signal.SIGALRM, lambda *_: self.handler() if self.handler else None)

    def start(self, handler: Any, every: float) -> None:
        self.handler = handler
        signal.setitimer(signal.ITIMER_REAL, 0.001, every)

    def stop(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)


@pytest.fixture
def alarms() -> Iterator[Alarms]:
    before = signal.getsignal(signal.SIGALRM)
    yield (ours := Alarms())
    ours.handler = None
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


class Interrupt(BaseException):
    pass


@pytest.mark.skipif(sys.version_info < (3, 11), reason="a second signal at once gets in between `with` and its exit")
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("linger", [0.0, 0.001])
@pytest.mark.parametrize("encoder", ENCODERS)
def test_interrupted_anywhere(
    daemon: Daemon, alarms: Alarms, monkeypatch: pytest.MonkeyPatch, encoder: str, linger: float
) -> None:
    """A signal whose handler raises, at any point of any call: it comes through, and the client goes on."""
    # An interrupted call of logging may leave a handler's lock behind, whoever makes it.
    monkeypatch.setattr(logging.getLogger("kvrt"), "disabled", True)
    caught = 0

    def handler() -> None:
        raise Interrupt

    options = {"encoder": encoder, "linger": linger, "backoff_min": 0.0, "backoff_max": 0.001}
    with kvrt.Client(daemon.path, **options) as client:
        hint = fetch(*range(200))
        until(lambda: client.ping(timeout=LONG))
        i = 0
        while caught < 1500:
            try:
                alarms.start(handler, 0.0003)
                while True:
                    i += 1
                    client.submit_hint(hint, f"r{i}")
                    client.discard_hint(f"r{i}")
                    if i % 7 == 0:
                        client.status(f"r{i}")
                        client.finish(f"r{i}")
                        client.counters()
            except Interrupt:
                alarms.handler = None  # before any call, which a signal could come into
                alarms.stop()
                caught += 1
            until(lambda: not client._lock.locked(), "an interruption has left the lock behind")
        counters = client.counters()
        assert counters.adds_up and counters.dropped_busy == 0, counters
        until(lambda: client.submit(fetch(), "last", timeout=LONG).ok)
        assert client.counters().adds_up, client.counters()


def test_a_handler_that_calls(daemon: Daemon, alarms: Alarms) -> None:
    """A signal handler, or a finalizer, may call the client that it interrupts: nothing hangs or mixes."""
    with kvrt.Client(daemon.path) as client:
        until(lambda: client.ping(timeout=LONG))
        calls = 0

        def handler() -> None:
            nonlocal calls
            calls += 1
            client.submit_hint(fetch(calls), f"h{calls}")
            client.discard_hint(f"h{calls}")
            client.status(f"h{calls}", timeout=0.0005)
            client.flush()
            signal.setitimer(signal.ITIMER_REAL, 0.002)  # the next; never two at a time

        alarms.start(handler, 0.0)
        i = 0
        while calls < 100:
            i += 1
            client.submit_hint(fetch(i), f"r{i}")
            client.status(f"r{i}", timeout=0.001)
        alarms.handler = None
        alarms.stop()
        until(client.flush)
        counters = client.counters()
        assert counters.adds_up and counters.protocol_errors == 0 and counters.dropped_error == 0, counters
        assert counters.submitted == i + calls

        class Calls(dict):  # type: ignore[type-arg]
            def keys(self) -> Any:
                client.submit_hint(fetch(), "inner")
                return super().keys()

        client.submit_hint(Calls(fetch()), "outer")
        until(lambda: client.status("outer", timeout=LONG).state == "live")
        assert client.counters().adds_up


def test_fork_in_the_middle_of_sends(daemon: Daemon) -> None:
    """Threads are in the client, and so is its own, while the process forks."""
    stop = threading.Event()
    with kvrt.Client(daemon.path, deadline=LONG) as client:

        def load(n: int) -> None:
            i = 0
            while not stop.is_set():
                i += 1
                client.submit_hint(fetch(*range(i % 300 + 1)), f"t{n}-{i}")
                client.discard_hint(f"t{n}-{i}")
                if i % 50 == 0:
                    client.status(f"t{n}-{i}")

        threads = [threading.Thread(target=load, args=(n,)) for n in range(3)]
        for t in threads:
            t.start()
        try:
            for i in range(40):
                if (pid := os.fork()) == 0:
                    code = 1
                    try:
                        for k in range(5):
                            client.submit_hint(fetch(k), f"c{i}-{k}")
                        ok = client.status(f"c{i}-4").state == "live" and client.counters().connects == 1
                        code = 0 if ok and client.counters().requests == 6 else 2
                    finally:
                        os._exit(code)
                assert os.waitpid(pid, 0)[1] == 0, i
        finally:
            stop.set()
            for t in threads:
                t.join()
        until(lambda: live(client, *(f"c{i}-{k}" for i in range(40) for k in range(5))))
        counters = client.counters()
        assert counters.adds_up and counters.disconnects == counters.protocol_errors == 0, counters


def test_prefork(daemon: Daemon) -> None:
    """A master that has used its client forks workers, one of which is killed in the middle of a send."""
    with kvrt.Client(daemon.path, deadline=LONG) as client:
        client.submit_hint(fetch(), "master")
        pids = []
        for w in range(4):
            if (pid := os.fork()) == 0:
                try:
                    for i in range(1 << 30):
                        client.submit_hint(fetch(i % 100), f"w{w}-{i % 100}")
                        if w and i > 300:
                            os._exit(0 if client.status(f"w{w}-1").state == "live" else 1)
                finally:
                    os._exit(2)
            pids.append(pid)
        assert [os.waitpid(pid, 0)[1] for pid in pids[1:]] == [0, 0, 0]
        until(lambda: client.status("w0-99").state == "live")
        os.kill(pids[0], signal.SIGKILL)
        os.waitpid(pids[0], 0)
        until(lambda: live(client, "master", "w1-50", "w2-50", "w3-50"))
        assert client.counters().disconnects == 0


def test_twin_cancelled(daemon: Daemon) -> None:
    """Calls of the twin that are cancelled, anywhere: the others get their own answers."""

    async def main() -> None:
        async with kvrt.AsyncClient(daemon.path, deadline=LONG) as client:
            for i in range(5):
                await client.submit(fetch(*range(i + 1)), f"s{i}")
            for round_ in range(200):
                tasks = [asyncio.create_task(client.status(f"s{i}")) for i in range(5)]
                victims = [asyncio.create_task(client.submit(fetch(), f"v{i}")) for i in range(5)]
                for _ in range(round_ % 4):
                    await asyncio.sleep(0)
                for v in victims:
                    v.cancel()
                done = await asyncio.gather(*tasks, *victims, return_exceptions=True)
                assert [d.hashes for d in done[:5]] == [1, 2, 3, 4, 5]
                assert not client._futures and not client._link.waiting
                assert client.counters().adds_up, client.counters()
            with pytest.raises(asyncio.TimeoutError):
                daemon.pause()
                await asyncio.wait_for(client.submit(fetch(), "t"), 0.01)
            daemon.resume()
            assert await client.ping(timeout=LONG) and client.counters().adds_up, client.counters()

    asyncio.run(main())
