"""kvrt beside KVCR; see scripts/bench-peers.sh."""

from __future__ import annotations

import logging
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kvcr_instance import running

import kvrt

ROUNDS = 20 * int(os.environ.get("ROUNDS", "1"))
PAIRS = 100  # of one side before the other has its turn: a machine drifts
clock = time.perf_counter_ns
Figures = tuple[float, float, float]  # p50 of the best round, p50, p99


def fetch(n: int) -> dict[str, Any]:
    hashes = [(i * 0x9E3779B97F4A7C15 + 1) % 2**64 for i in range(n)]
    payload = {"source_control_endpoint": "tcp://127.0.0.1:23280", "block_hashes": hashes}
    action = {"action_id": "a1", "action_type": "kv.fetch", "action_version": "1.0", "payload": payload}
    return {"protocol_version": "0.1", "message_id": "m1", "actions": [action]}


class Daemon:
    def __init__(self, binary: str, folder: str) -> None:
        self.binary, self.path = binary, os.path.join(folder, "kvrt.sock")

    def start(self) -> None:
        command = [self.binary, "serve", "--socket", self.path, "--admin", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with kvrt.Client(self.path, deadline=1) as client:
            while not client.ping():
                time.sleep(0.01)


def percentiles(took: list[int]) -> tuple[float, float]:
    took.sort()
    return took[len(took) // 2] / 1000, took[len(took) * 99 // 100] / 1000


def one(what: Callable[[str], None], names: list[str], idle: Callable[[], Any], took: list[int], pause: float) -> None:
    for i, name in enumerate(names):
        if i % 8 == 0:
            idle()  # the daemon's buffer never fills: what is dropped is cheap, and no figure
        if pause:
            time.sleep(pause)
        began = clock()
        what(name)
        took.append(clock() - began)


def makers(kvcr: Any, client: kvrt.Client, waits: kvrt.Client, hints: Any) -> dict[str, Callable[[str], None]]:
    def theirs(name: str) -> None:
        kvcr.submit_hint(hints, name)
        kvcr.discard_hint(name)

    def oneway(name: str) -> None:
        client.submit_hint(hints, name)
        client.discard_hint(name)

    def results(name: str) -> None:
        waits.submit(hints, name)
        waits.discard_hint(name)

    return {"KVCR": theirs, "kvrt one-way": oneway, "kvrt with results": results}


def processor(kvcr: Any, client: kvrt.Client, waits: kvrt.Client, n: int) -> list[float]:
    """Processor time of this process, all of its threads and its system calls, in us a pair: no thread hides a cost."""
    took: dict[str, list[float]] = {}
    for r in range(ROUNDS):
        for side, what in makers(kvcr, client, waits, fetch(n)).items():
            spent = 0
            for i in range(0, 256, 32):
                client.ping(timeout=1)  # the daemon's buffer never fills
                names = [f"cpu-{n}-{side}-{r}-{i + k}" for k in range(32)]
                began = time.process_time_ns()
                for name in names:
                    what(name)
                client.flush()
                spent += time.process_time_ns() - began
            took.setdefault(side, []).append(spent / 256 / 1000)
    return [statistics.median(t) for t in took.values()]


def compare(kvcr: Any, client: kvrt.Client, waits: kvrt.Client, n: int, pause: float) -> dict[str, Figures]:
    hints = fetch(n)

    sides = makers(kvcr, client, waits, hints)
    client.ping(timeout=1)
    took: dict[str, list[int]] = {side: [] for side in sides}
    best: dict[str, float] = dict.fromkeys(sides, float("inf"))

    def idle() -> None:  # for every side alike
        client.ping(timeout=1)

    pairs = 5 if pause > 0.01 else PAIRS // 4 if pause else PAIRS
    for r in range(ROUNDS + 1):
        for side, what in sides.items():
            names = [f"{n}-{pause}-{side}-{r}-{i}" for i in range(pairs)]
            round_: list[int] = []
            one(what, names, idle, round_, pause)
            if r:  # the first round warms up
                took[side] += round_
                best[side] = min(best[side], percentiles(round_)[0])
    return {side: (best[side], *percentiles(t)) for side, t in took.items()}


def outage(daemon: Daemon, what: str) -> list[str]:
    """What the engine's thread pays from the moment that the daemon is gone, in five outages."""
    rows = []
    for mode in ("one-way", "with results"):
        firsts: list[float] = []
        rest: list[int] = []
        for _ in range(5):
            took = one_outage(daemon, what, mode)
            firsts.append(took[0] / 1000)
            rest += took[1:]
        worst = max(rest) / 1000
        p50, p99 = percentiles(rest)
        firsts.sort()
        rows.append(f"| {what} | {mode} | {firsts[2]:,.0f} | {firsts[4]:,.0f} | {p50:.1f} | {p99:.1f} | {worst:,.0f} |")
    return rows


def one_outage(daemon: Daemon, what: str, mode: str) -> list[int]:
    hints = fetch(1)
    daemon.start()
    with kvrt.Client(daemon.path) as client:
        while not client.ping(timeout=1):
            pass
        if what == "stopped":
            daemon.process.send_signal(signal.SIGTERM)
            daemon.process.wait()
        elif what == "killed":
            daemon.process.kill()
            daemon.process.wait()
        else:
            daemon.process.send_signal(signal.SIGSTOP)
        took = []
        for i in range(2000):
            began = clock()
            if mode == "one-way":
                client.submit_hint(hints, f"r{i}")
            else:
                client.submit(hints, f"r{i}")
            client.discard_hint(f"r{i}")
            took.append(clock() - began)
        assert client.counters().adds_up
    daemon.process.kill()
    daemon.process.wait()
    return took


def runtime(path: str) -> dict[int, Figures]:
    """BenchmarkSubmitDiscard's, in us: its quietest round, and the medians of its runs."""
    found: dict[int, list[list[float]]] = {}
    for line in Path(path).read_text().splitlines():
        if m := re.match(r"BenchmarkSubmitDiscard/hashes=(\d+)", line):
            units = ("quiet-ns", "p50-ns", "p99-ns")
            figures = [float(re.search(rf"([\d.]+) {unit}", line)[1]) / 1000 for unit in units]  # type: ignore[index]
            found.setdefault(int(m[1]), []).append(figures)
    median = statistics.median
    return {
        n: (min(r[0] for r in rows), median(r[1] for r in rows), median(r[2] for r in rows))
        for n, rows in found.items()
    }


def main() -> None:
    binary, bench = sys.argv[1:]
    logging.getLogger("kvrt").setLevel(logging.ERROR)  # outages are the subject here
    inside = runtime(bench)
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    with tempfile.TemporaryDirectory() as folder, running() as kvcr:
        daemon = Daemon(binary, folder)
        daemon.start()
        print(f"{cpu[1] if cpu else 'unknown CPU'}, {os.cpu_count()} cores, Python {sys.version.split()[0]},")
        print(f"load average {os.getloadavg()[0]:.1f} before the run. us: p50 of the quietest round, p50 / p99 of all;")
        print("in brackets the quietest round against KVCR's.\n")
        print("| hashes | calls | KVCR | kvrt one-way | kvrt with results | kvrt in the runtime |")
        print("|---|---|---|---|---|---|")
        with kvrt.Client(daemon.path) as client, kvrt.Client(daemon.path, deadline=1) as waits:
            for n in (1, 32, 1024):
                for pause in (0.0, 0.001, 0.05):
                    row = compare(kvcr, client, waits, n, pause)
                    base = row["KVCR"][0]
                    cells = []
                    for best, p50, p99 in row.values():
                        cells.append(f"{best:.1f}, {p50:.1f} / {p99:.1f} ({best / base:.2f}x)")
                    best, p50, p99 = inside[n]
                    cells.append("" if pause else f"{best:.2f}, {p50:.2f} / {p99:.2f} (1/{base / best:.0f})")
                    pattern = f"{pause * 1000:.0f} ms apart" if pause else "back to back"
                    print(f"| {n:,} | {pattern} | {' | '.join(cells)} |", flush=True)
            print("\nProcessor time of the whole process, us a pair, median of its rounds:\n")
            print("| hashes | KVCR | kvrt one-way | kvrt with results |")
            print("|---|---|---|---|")
            for n in (1, 32, 1024):
                print(f"| {n:,} | {' | '.join(f'{us:.1f}' for us in processor(kvcr, client, waits, n))} |", flush=True)
            for counters in (client.counters(), waits.counters()):
                assert counters.adds_up, counters
                assert counters.dropped == counters.dropped_unavailable <= counters.unavailable, counters
        print()
        daemon.process.terminate()
        daemon.process.wait()
        print("| the daemon | calls | first of 5 outages: median, us | worst | then p50 | p99 | worst |")
        print("|---|---|---|---|---|---|---|")
        for what in ("stopped", "paused", "killed"):
            print("\n".join(outage(daemon, what)), flush=True)


main()
