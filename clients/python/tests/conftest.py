"""A real daemon per test that asks for one, and envelopes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
BINARY = Path(os.environ.get("KVRT_BIN", ROOT / "bin" / "kvrt"))
LONG = 30.0  # the most that a test waits for what must come, in seconds


def until(what: Callable[[], Any], text: str = "") -> Any:
    """Waits for an event; the bound is a guard, not an expectation."""
    end = time.monotonic() + LONG
    while not (got := what()):
        assert time.monotonic() < end, text or "it did not come"
        time.sleep(0.002)
    return got


class Daemon:
    """`kvrt serve`, which can be stopped, killed, paused and started again at the same path."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "kvrt.sock")
        self.log = folder / "log"
        self.config = ""
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Daemon:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [str(BINARY), "serve", "--socket", self.path, "--admin", "127.0.0.1:0"]
                + (["-c", self.config] if self.config else []),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until(self._answers, "the daemon did not start: " + self.log.read_text()[-2000:])
        return self

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as s:
            try:
                s.connect(self.path)
                return True
            except OSError:
                return False

    def tell(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def pause(self) -> None:
        self.tell(signal.SIGSTOP)
        stat = Path(f"/proc/{self.process.pid}/stat")
        until(lambda: stat.read_text().rsplit(")", 1)[1].split()[0] == "T")

    def resume(self) -> None:
        self.tell(signal.SIGCONT)

    def end(self, number: int = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(number)
            self.process.wait(LONG)
            self.process = None

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(LONG)
            self.process = None


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[Daemon]:
    if not BINARY.exists():
        pytest.fail(f"{BINARY} is missing: scripts/test-python.sh builds it")
    daemon = Daemon(tmp_path)
    yield daemon
    daemon.kill()


@pytest.fixture
def daemon(stopped: Daemon) -> Daemon:
    return stopped.start()


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Starts tests/fake_daemon.py with a list of behaviours; its path comes back."""
    processes = []

    def start(*behaviours: str) -> str:
        path = str(tmp_path / f"fake-{len(processes)}.sock")
        process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("fake_daemon.py")), path, *behaviours],
            stdout=subprocess.PIPE,
        )
        processes.append(process)
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        return path

    yield start
    for process in processes:
        process.kill()
        process.wait(LONG)
        if process.stdout:
            process.stdout.close()


def fetch(*hashes: int, source: str | None = "tcp://127.0.0.1:23280", **envelope: Any) -> dict[str, Any]:
    """An envelope with one kv.fetch."""
    action = {
        "action_id": "a1",
        "action_type": "kv.fetch",
        "action_version": "1.0",
        "payload": {"source_control_endpoint": source, "block_hashes": list(hashes or (11, 2**64 - 1))},
    }
    return {"protocol_version": "0.1", "message_id": "m1", "actions": [action], **envelope}
