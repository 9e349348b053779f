"""The tier for vLLM: with recorded calls, and with the real tier where KVRT_VLLM names an unpacked wheel.

The recorded ones are what vLLM 0.33.0's KVCR tier does: it makes its KVCR in __init__, submits the
envelope as builtins, by keywords, in on_new_request, and discards in on_request_finished.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conftest import Daemon, fetch
from test_guard import Recorder

import kvrt


class Action(msgspec.Struct, frozen=True):
    action_id: str
    action_type: str
    action_version: str
    payload: dict[str, Any]


class Envelope(msgspec.Struct, frozen=True):
    protocol_version: str
    message_id: str
    actions: list[Action]


class Tier:
    """What vLLM's own tier does with hints."""

    def __init__(self, offloading_spec: Any, primary_kv_view: Any, tier_type: str, policy: str | None = None) -> None:
        self.tier_type, self.policy = tier_type, policy
        self._kvcr = Recorder()

    def on_new_request(self, context: Any) -> None:
        if (hint := context.kv_hints) is not None:
            self._kvcr.submit_hint(request_id=context.req_id, hints=msgspec.to_builtins(hint))

    def on_request_finished(self, context: Any) -> None:
        self._kvcr.discard_hint(context.req_id)

    def shutdown(self) -> None:
        pass


def context(req_id: str, source: str | None = "", **envelope: Any) -> Any:
    hints = msgspec.convert({**fetch(1, 2, source=source), **envelope}, Envelope)
    return types.SimpleNamespace(req_id=req_id, kv_hints=hints if source != "" or envelope else None)


@pytest.fixture
def tier(monkeypatch: pytest.MonkeyPatch, daemon: Daemon) -> Any:
    """As vLLM's factory makes it: the class by name from the module, the configuration as keywords."""
    name = "vllm.v1.kv_offload.tiering.kvcr.manager"
    module = types.ModuleType(name)
    module.KVCRSecondaryTierManager = Tier  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, name, module)
    ours = importlib.import_module("kvrt.vllm")
    ours._made.cache_clear()
    cls = getattr(ours, "KVCRTier")  # noqa: B009
    assert issubclass(cls, Tier) and cls is ours.KVCRTier
    yield lambda **options: cls(
        offloading_spec=None,
        primary_kv_view=None,
        tier_type="KVCRTier",
        policy="lru",
        kvrt={"path": daemon.path, "deadline": 10.0, **options},
    )
    ours._made.cache_clear()


def test_recorded_calls(tier: Any) -> None:
    t = tier()
    recorder = t._kvcr._executor
    t.on_new_request(context("good", "tcp://127.0.0.1:23280"))
    t.on_new_request(context("bad", "tcp://203.0.113.9:1"))
    t.on_new_request(context("no hint"))
    t.on_new_request(context("no actions", actions=[]))
    for r in ("good", "bad", "no hint"):
        t.on_request_finished(context(r))
    assert recorder.calls == [
        ("submit", fetch(1, 2), "good"),
        *[("discard", r) for r in ("good", "bad", "no hint")],
    ]
    assert t._kvcr.passage.withheld == 2 and t.policy == "lru"
    t.shutdown()


def test_nothing_is_raised_into_the_scheduler(tier: Any) -> None:
    t = tier(without_daemon="pass")

    def refuse(*_: Any) -> None:
        raise ValueError("source-less hints are not currently supported")

    t._kvcr._submit = refuse
    t.on_new_request(context("r", "tcp://127.0.0.1:1"))
    t._kvcr.submit_hint({"actions": 7}, "r")
    assert t._kvcr.passage.silenced == 2


def test_start_fails_closed(tier: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for options in ({"nonsense": 1}, {"leg": "sideways"}, {"without_daemon": "perhaps"}):
        with pytest.raises((TypeError, ValueError)):
            tier(**options)
    monkeypatch.setattr(Tier, "__init__", lambda self, *args, **options: None)
    with pytest.raises(RuntimeError, match="does not know this version"):
        tier()


def test_import_needs_no_vllm() -> None:
    module = importlib.import_module("kvrt.vllm")
    with pytest.raises(AttributeError):
        module.nonsense  # noqa: B018


def test_keys() -> None:
    pytest.importorskip("kvcr")
    from kvcr.policy import KVCachePolicy

    policy = importlib.import_module("kvrt.vllm").Policy
    assert issubclass(policy, KVCachePolicy)
    assert policy().block_hash(bytes(24) + (2**64 - 2).to_bytes(8, "big") + bytes(4)) == 2**64 - 2


REAL = """
import mmap, sys
from types import SimpleNamespace as Bag
import vllm_wheel
vllm_wheel.open_wheel(sys.argv[1])
from vllm.v1.kv_hints.protocol import KvHintAction, KvHintsEnvelope
from vllm.v1.kv_offload.base import ReqContext
import kvrt.vllm
spec = Bag(config=Bag(parallel=Bag(data_parallel_rank_local=0)),
           kv_events_config=Bag(enable_kv_cache_events=False, self_describing_kv_events=False))
tier = kvrt.vllm.KVCRTier(
    offloading_spec=spec, primary_kv_view=memoryview(mmap.mmap(-1, 1 << 18)).cast("B", (64, 4096)),
    tier_type="KVCRTier", kvrt={"path": sys.argv[2], "deadline": 10.0}, policy="kvrt.vllm.Policy",
    router_capabilities=["router_hint"], control_host="127.0.0.1", control_ports=[int(sys.argv[3])],
    control_advertise_host="127.0.0.1")
def hint(source):
    payload = {"source_control_endpoint": source, "block_hashes": [1, 2]}
    return KvHintsEnvelope("0.1", "m", [KvHintAction("a1", "kv.fetch", "1.0", payload)])
tier.on_new_request(ReqContext("good", kv_hints=hint("tcp://127.0.0.1:23280")))
tier.on_new_request(ReqContext("bad", kv_hints=hint("tcp://203.0.113.9:1")))
tier.on_new_request(ReqContext("none"))
held = tier._kvcr._core._remote_fw_dram._request_hints
assert list(held) == ["good"] and held["good"].block_hashes == {1, 2}, held
tier.on_request_finished(ReqContext("good"))
assert not held and tier._kvcr.client.status("good").state == "finished"
tier.shutdown()
print("real tier:", type(tier).__mro__[1].__module__)
"""


@pytest.mark.skipif(not os.environ.get("KVRT_VLLM"), reason="KVRT_VLLM names no unpacked vllm wheel")
def test_the_real_tier(daemon: Daemon) -> None:
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    path = os.pathsep.join([str(Path(kvrt.__file__).parents[1]), str(Path(__file__).parent), *sys.path])
    command = [sys.executable, "-c", REAL, os.environ["KVRT_VLLM"], daemon.path, port]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "real tier: vllm.v1.kv_offload.tiering.kvcr.manager" in done.stdout
