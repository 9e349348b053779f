"""Random envelopes, well-formed and not, to real KVCR and to kvrt: where KVCR raises, and where kvrt does."""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping
from typing import Any

import pytest
from conftest import Daemon, fetch
from test_guard import hints_of, kvcr_module  # noqa: F401 - a fixture

import kvrt

# What kvrt refuses in an action that KVCR takes: a source that is not allowed, another major version,
# ids and versions that are no text or number, and what no encoding has.
STRICTER = {"source_not_allowed", "unsupported_action_version", "malformed_action"}
SOURCE = "tcp://127.0.0.1:23280"
ODD: list[Any] = [None, 0, 1, -1, 1.5, True, False, "", "x", b"x", [], {}, (), [1], {"a": 1}, 2**64, float("nan"), object()]


def mutated(rng: random.Random) -> Any:
    """An envelope with none to three changes, anywhere."""
    envelope: Any = fetch(*(rng.randrange(2**64) for _ in range(rng.randrange(1, 5))), source=SOURCE)
    if rng.random() < 0.3:
        other = fetch(rng.randrange(2**64), source=SOURCE)["actions"][0]
        other["action_type"] = rng.choice(["kv.fetch", "kv.retain", "kv.dance", 7])
        envelope["actions"].insert(rng.randrange(2), other)
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        if not isinstance(envelope, dict):
            break
        actions = envelope.get("actions")
        action = rng.choice(actions) if isinstance(actions, list) and actions else None
        payload = action.get("payload") if isinstance(action, dict) else None
        odd = rng.choice(ODD)
        match rng.randrange(9):
            case 0 if rng.random() < 0.3:
                envelope = odd
            case 1:
                envelope[rng.choice(["actions", "protocol_version", "message_id", "more", 7])] = odd
            case 2:
                envelope.pop(rng.choice(["actions", "protocol_version", "message_id"]), None)
            case 3 if isinstance(actions, list):
                actions.insert(rng.randrange(len(actions) + 1), odd)
            case 4 if isinstance(action, dict):
                action[rng.choice(["payload", "action_type", "action_id", "action_version", "more"])] = odd
            case 5 if isinstance(action, dict):
                action.pop(rng.choice(list(action)), None) if action else None
            case 6 if isinstance(payload, dict):
                payload[rng.choice(["source_control_endpoint", "block_hashes", "mode", "no_retain", "more"])] = odd
            case 7 if isinstance(payload, dict) and isinstance(payload.get("block_hashes"), list):
                payload["block_hashes"].append(odd)
            case 8 if isinstance(payload, dict):
                payload.pop(rng.choice(["source_control_endpoint", "block_hashes"]), None)
    return envelope


def raised(call: Any, *args: Any) -> str:
    try:
        call(*args)
    except ValueError as e:
        return str(e) or "ValueError"
    return ""


def fetches(envelope: Any) -> list[Any]:
    actions = envelope["actions"]
    return [a for a in actions if isinstance(a, Mapping) and a.get("action_type") == "kv.fetch"]


@pytest.mark.parametrize("encoder", ["msgspec", "msgpack"])
def test_against_kvcr(kvcr_module: Any, daemon: Daemon, encoder: str) -> None:  # noqa: F811
    rng = random.Random(5)
    both = neither = ours_only = stricter = 0
    logging.disable(logging.NOTSET)
    with kvcr_module.running() as kvcr, kvrt.Client(daemon.path, deadline=10.0, encoder=encoder) as client:
        for i in range(1500):
            envelope, name = mutated(rng), f"r{i}"
            theirs = raised(kvcr.submit_hint, envelope, name)
            ours = raised(client.submit_hint, envelope, name)
            malformed = not isinstance(envelope, Mapping) or not isinstance(envelope.get("actions"), list)
            assert bool(ours) == malformed, (envelope, ours)
            assert raised(kvrt.NullClient().submit_hint, envelope) == ours
            assert not ours or theirs, f"kvrt raises, and KVCR does not: {envelope}"
            if ours:
                both += 1
                continue
            hashes = client.status(name).hashes
            reply = client.submit(envelope, f"s{i}")
            assert reply.ok and len(reply.results) == len(envelope["actions"]), (envelope, reply)
            accepted = [r for r in reply.accepted if r.action_type == "kv.fetch"]
            if not theirs:
                neither += 1
                if len(fetches(envelope)) != 1:
                    continue
                if accepted:
                    assert hashes == len(hints_of(kvcr)[name][1]), (envelope, reply)
                else:  # KVCR looks neither at these fields nor at what it does not know
                    unheard_of = any("NaN" in r.detail or "integer" in r.detail for r in reply.rejected)
                    assert unheard_of or {r.reason for r in reply.rejected} & STRICTER, (envelope, reply)
                    stricter += 1
            elif accepted:
                # KVCR looks at the first kv.fetch alone, and does not have these two yet.
                ours_only += 1
                first = fetches(envelope)[0]
                payload = first.get("payload")
                unknown = isinstance(payload, Mapping) and (
                    "no_retain" in payload or payload.get("source_control_endpoint") is None
                )
                assert unknown or len(fetches(envelope)) > 1, (envelope, theirs, reply)
        assert min(both, neither, ours_only, neither - 2 * stricter) > 50, (both, neither, ours_only, stricter)
        assert client.counters().adds_up and client.counters().dropped == 0, client.counters()
