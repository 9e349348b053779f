"""From a routed request to an envelope, through the socket."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgpack
from conftest import ROOT, Daemon, fetch

import kvrt

LONG = 10.0
ADDED = {"action_id": "s1", "action_type": "demo.note", "action_version": "1.0", "payload": {"n": 2**64 - 1}}


def context(request_id: str = "r1", **more: Any) -> dict[str, Any]:
    return {"request_id": request_id, "selected": {"worker_id": 7}, **more}


def both() -> dict[str, Any]:
    """A request that came with a hint, and a selection that adds one."""
    return context(request_hint=fetch(1, 2), selection_hint=fetch(message_id="s", actions=[ADDED]))


def test_composed(daemon: Daemon) -> None:
    composed = fetch(1, 2)
    composed["actions"].append(ADDED)
    with kvrt.Client(daemon.path, deadline=LONG) as client:
        answer = client.formulate(both())
        assert answer.ok and answer.envelope == composed and answer.envelope_bytes[:1] != b"{"
        assert client.formulate(json.dumps(both()).encode()).envelope_bytes[:1] == b"{"
        assert json.loads(client.formulate(both(), output="json").envelope_bytes) == composed
        assert msgpack.unpackb(client.formulate(json.dumps(both()).encode(), output="msgpack").envelope_bytes) == composed
        none = client.formulate(context())
        assert none.ok and none.envelope is None
        batch = client.formulate_batch([both(), context(), {"request_id": 7}, json.dumps(both()).encode()])
        assert [a.envelope for a in batch] == [composed, None, None, composed]
        assert [a.error for a in batch] == ["", "", "malformed", ""] and batch[2].detail.startswith("malformed context: ")
        assert client.formulate_batch([]) == ()
        counters = client.counters()
        assert counters.adds_up and counters.dropped == 0 and counters.answered == counters.calls


def test_it_raises_nothing(daemon: Daemon) -> None:
    with kvrt.Client(daemon.path, deadline=LONG) as client:
        assert client.formulate({"request_id": 7}).error == "malformed"
        assert client.formulate(b"{").error == "malformed"
        for wrong in (None, 7, [], object(), {"request_id": object()}, {"request_id": 2**70}):
            assert client.formulate(wrong).error == "invalid", wrong
            assert [a.error for a in client.formulate_batch([both(), wrong])] == ["invalid"] * 2
        assert client.formulate(both(), output="xml").error == "invalid"
        assert [a.error for a in client.formulate_batch([context()] * 1025)][:1] == ["bad_request"]
        huge = context(request_hint=fetch(actions=[{**ADDED, "payload": {"n": "x" * (9 << 20)}}]))
        assert client.formulate(huge).error == "invalid"
        assert client.ping() and client.counters().adds_up
    for gone in (kvrt.Client("/nowhere/s"), kvrt.NullClient()):
        assert gone.formulate(both()).error == "unavailable"
        assert [a.error for a in gone.formulate_batch([both()] * 3)] == ["unavailable"] * 3
        assert gone.counters().adds_up


def test_twin(daemon: Daemon) -> None:
    async def main() -> None:
        async with kvrt.AsyncClient(daemon.path, deadline=LONG) as client:
            answers = await asyncio.gather(*(client.formulate(both()) for _ in range(50)))
            assert all(a.envelope == answers[0].envelope and a.ok for a in answers)
            assert [a.error for a in await client.formulate_batch([both(), b"{"])] == ["", "malformed"]

    asyncio.run(main())


def test_policy(stopped: Daemon, tmp_path: Path) -> None:
    """The cases of a policy that ships with kvrt, in one batch through the socket."""
    folder = ROOT / "policies" / "fetch-longest-prefix"
    config = tmp_path / "kvrt.yaml"
    module = folder / "fetch-longest-prefix.wasm"
    config.write_text(
        f"guests: [{{name: longest, module: {module}, grants: [kvrt_session, kvrt_worker, kvrt_log]}}]\n"
        "kv_hint_policy: {type: longest}\n"
    )
    cases = [json.loads(line) for line in (folder / "cases" / "choice.jsonl").read_text().splitlines()]
    cases = [c for c in cases if "envelope" in c and not c.keys() & {"params", "events"}]
    assert len(cases) > 3
    stopped.config = str(config)
    stopped.start()
    with kvrt.Client(stopped.path, deadline=LONG) as client:
        answers = client.formulate_batch([c["context"] for c in cases])
        for case, answer in zip(cases, answers, strict=True):
            assert answer.envelope == case["envelope"], case["name"]
            (row,) = answer.policies
            assert row.name == "longest" and row.actions == len((case["envelope"] or {"actions": []})["actions"])
        (row,) = client.formulate(context()).policies
        assert row.error == "not_found" and "candidates" in row.detail and row.generation > 0
