"""kvrt in front of KVCR: what is refused never reaches it. With the real kvcr where it is installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Daemon, fetch

import kvrt
from kvrt.guard import Guard, Passage, guard
from kvrt.retained import EVICT, Retained

LONG = 10.0


class Recorder:
    """An executor that remembers."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def submit_hint(self, hints: Any, request_id: str | None = None) -> None:
        self.calls.append(("submit", hints, request_id))

    def discard_hint(self, request_id: str) -> None:
        self.calls.append(("discard", request_id))

    def query(self) -> str:
        return "its own"


def retain(*hashes: int, priority: int = 5, ttl: float = 60.0, kind: str = "kv.retain") -> dict[str, Any]:
    payload = {
        "execute_at": "request_completion",
        "include_current_request": False,
        "block_hashes": [str(h) for h in hashes],
        "priority": priority,
        "ttl_seconds": ttl,
    }
    return {"action_id": "r1", "action_type": kind, "action_version": "1.0", "payload": payload}


@pytest.fixture
def client(daemon: Daemon) -> Iterator[kvrt.Client]:
    with kvrt.Client(daemon.path, deadline=LONG) as c:
        yield c


def test_a_refused_source_never_reaches_it(client: kvrt.Client) -> None:
    recorder = Recorder()
    front = Guard(recorder, client, claims=Retained())
    bad = fetch(1, source="tcp://203.0.113.9:1")
    front.submit_hint(bad, "bad")
    assert recorder.calls == []
    front.submit_hint(fetch(1, 2), "good")
    mixed = fetch(3)
    mixed["actions"].insert(0, {**bad["actions"][0], "action_id": "a0"})
    front.submit_hint(mixed, "mixed")
    front.discard_hint("good")
    assert recorder.calls == [
        ("submit", fetch(1, 2), "good"),
        ("submit", {**mixed, "actions": mixed["actions"][1:]}, "mixed"),
        ("discard", "good"),
    ]
    assert client.status("good").state == "finished"
    with pytest.raises(ValueError, match="malformed envelope"):
        front.submit_hint({"actions": 1}, "r")
    assert front.passage == Passage(envelopes=4, passed=2, withheld=1, actions_rejected=2, malformed=1)
    assert front.query() == "its own"


def test_without_a_daemon(client: kvrt.Client) -> None:
    for gone in (kvrt.Client("/nowhere/s"), kvrt.NullClient()):
        for without, calls in (("drop", []), ("pass", [("submit", fetch(), "r")])):
            recorder = Recorder()
            front = Guard(recorder, gone, without_daemon=without)
            front.submit_hint(fetch(), "r")
            front.discard_hint("r")
            assert recorder.calls == [*calls, ("discard", "r")]
            assert front.passage.unjudged == 1 and front.passage.unjudged_passed == len(calls)


def test_garbage_to_pass_on(fake: Any) -> None:
    """What is no envelope is not handed on, and raises nothing."""
    recorder = Recorder()
    with kvrt.Client(fake("odd-forward"), deadline=LONG) as client:
        front = Guard(recorder, client)
        for i in range(500):
            front.submit_hint(fetch(), f"r{i}")
        assert recorder.calls == [] and front.passage.withheld > 100 and front.passage.malformed == 0
        assert client.counters().adds_up and client.counters().disconnects == 0


def test_in_place(client: kvrt.Client) -> None:
    recorder = Recorder()
    held = recorder.submit_hint.__self__
    front = guard(recorder, client)
    held.submit_hint(fetch(1, source="tcp://203.0.113.9:1"), "r")
    held.submit_hint(fetch(1), "r2")
    held.discard_hint("r2")
    assert [c[0] for c in recorder.calls] == ["submit", "discard"] and front.passage.envelopes == 2


def test_claims(client: kvrt.Client) -> None:
    """Accepted claims wait for the end of their request; what nobody judged is no claim."""
    now = 100.0
    claims = Retained(lambda: now)
    front = Guard(Recorder(), client, claims=claims)
    envelope = fetch(1)
    envelope["actions"] += [
        retain(1, 2, priority=5, ttl=60),
        retain(2, priority=9, ttl=10),
        retain(3, ttl=-1.0),
        retain(4),
        retain(4, kind="kv.evict"),
        retain(5, kind="kv.forget"),
    ]
    front.submit_hint(envelope, "r")
    assert [claims.priority(b) for b in (1, 2, 3)] == [None] * 3
    front.discard_hint("r")
    assert [claims.priority(b) for b in (1, 2, 3, 4, 5)] == [5, 9, None, EVICT, None]
    now += 30
    assert [claims.priority(b) for b in (1, 2)] == [5, 5], "no claim takes another's time"
    now += 31
    assert [claims.priority(b) for b in (1, 2)] == [None, None] and len(claims) == 1
    claims.forget(4)
    assert len(claims) == 0, "what is gone need not be dropped"
    claims.take([retain(1), retain(1, kind="kv.evict")], None)
    assert claims.priority(1) == EVICT
    claims.take([retain(1)], None)
    assert claims.priority(1) == 5
    claims.take([{"action_type": "kv.retain", "payload": {"block_hashes": ["x"]}}, {"action_type": "kv.retain"}], None)
    assert claims.dropped == 1


# With real KVCR.


@pytest.fixture
def kvcr_module() -> Any:
    pytest.importorskip("kvcr")
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
    import kvcr_instance

    yield kvcr_instance
    sys.path.pop(0)


def hints_of(kvcr: Any) -> dict[str, Any]:
    """KVCR's own store, by request."""
    return {r: (h.source, set(h.block_hashes)) for r, h in kvcr._core._remote_fw_dram._request_hints.items()}


def test_real_kvcr_behind_a_guard(kvcr_module: Any, client: kvrt.Client) -> None:
    source = "tcp://127.0.0.1:23280"
    with kvcr_module.running() as kvcr:
        front = Guard(kvcr, client)
        front.submit_hint(fetch(1, 2, 2), "good")
        front.submit_hint(fetch(1, source="tcp://203.0.113.9:1"), "bad")
        front.submit_hint({"actions": [retain(1)]}, "no fetch")  # KVCR would raise ValueError
        mixed = fetch(3, 2**64 - 1)
        mixed["actions"].insert(0, {**fetch(9, source="tcp://203.0.113.9:1")["actions"][0], "action_id": "a0"})
        front.submit_hint(mixed, "mixed")  # the first kv.fetch is KVCR's, and it is the refused one
        assert hints_of(kvcr) == {"good": (source, {1, 2}), "mixed": (source, {3, 2**64 - 1})}
        statuses = front.query([(2).to_bytes(8, "big"), (7).to_bytes(8, "big")], "good")
        assert [(s.value, t and t.value) for s, t in statuses] == [("FETCHABLE", "REMOTE_G2"), ("MISS", None)]
        front.discard_hint("good")
        assert hints_of(kvcr) == {"mixed": (source, {3, 2**64 - 1})}
        with pytest.raises(ValueError, match="source-less"):  # what KVCR raises is the caller's
            front.submit_hint(fetch(1, source=None), "local")


def test_the_same_malformed_envelopes(kvcr_module: Any, client: kvrt.Client) -> None:
    with kvcr_module.running() as kvcr:
        for hints in (None, 1, "text", b"{}", [], {}, {"actions": None}, {"actions": {}}, {"actions": ()}, object()):
            for side in (kvcr, client, kvrt.NullClient()):
                with pytest.raises(ValueError):
                    side.submit_hint(hints, "r")


def deposit(kvcr: Any, memory: Any, *keys: int) -> list[str]:
    """Copies blocks into KVCR's DRAM, through its progress thread, and says how each went."""
    from kvcr.types import MemoryRef

    blocks = {k.to_bytes(8, "big"): [MemoryRef(end_point_name=memory, element_index=0)] for k in keys}
    handle = kvcr.deposit(blocks)
    done: dict[Any, Any] = {}
    while handle not in done:
        done.update(kvcr.poll_completed())
    return [done[handle][k].status.value for k in blocks]


def resident(kvcr: Any, *keys: int) -> list[bool]:
    return [s.value == "HIT" for s, _ in kvcr.query([k.to_bytes(8, "big") for k in keys])]


def test_real_kvcr_with_the_policy(kvcr_module: Any, client: kvrt.Client) -> None:
    """In a cache of four blocks, the retained one stays where plain LRU drops it; without claims all is LRU."""
    from kvcr.policy import LRUPolicy

    from kvrt.kvcr_policy import Policy

    for retained, policy in ((False, LRUPolicy()), (False, Policy(Retained())), (True, None)):
        claims = Retained()
        with kvcr_module.running(policy=policy or Policy(claims), blocks=4) as kvcr:
            front = Guard(kvcr, client, claims=claims)
            if retained:
                front.submit_hint({"actions": [retain(1, 2)]}, "r")
                front.discard_hint("r")
            for key in range(1, 7):
                assert deposit(kvcr, kvcr.config.nixl_agent_name, key) == ["SUCCESS"]
            expected = [True, True, False, False, True, True] if retained else [False, False, True, True, True, True]
            assert resident(kvcr, *range(1, 7)) == expected


def test_the_policy_keeps_late_claims_and_yields(kvcr_module: Any) -> None:
    from kvcr.types import BlockMeta, CacheTier, PlacementAction

    from kvrt.kvcr_policy import G3Policy, Policy

    claims = Retained()
    claims.take([retain(1, priority=2), retain(2, priority=7), retain(3, kind="kv.evict")], None)

    def meta(key: int, at: float) -> Any:
        return BlockMeta(key.to_bytes(8, "big"), 4096, 1, at, frozenset({CacheTier.LOCAL_G2}))

    for policy in (Policy(claims), G3Policy(claims)):
        order = sorted([1, 2, 3, 4, 5], key=lambda k: policy.eviction_score(meta(k, 100.0 - k), CacheTier.LOCAL_G2))
        assert order == [3, 5, 4, 1, 2]
        decisions = [policy.decide_eviction(meta(1, 0.0), CacheTier.LOCAL_G2)[0] for _ in range(130)]
        assert decisions.count(PlacementAction.KEEP) == 128 and decisions[64] == decisions[129] != PlacementAction.KEEP
        policy.on_remove(meta(3, 0.0))
        claims.take([retain(3, kind="kv.evict")], None)
        assert policy.decide_ingest(meta(9, 0.0), CacheTier.FW_G2, False)[0] is PlacementAction.KEEP
