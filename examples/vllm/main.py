"""The KVCR tier of a real vllm wheel behind kvrt, made as vLLM makes it from kv-transfer-config.json.

vLLM's engine needs a GPU. Its tier does not: this calls it as the scheduler would.
"""

import json
import logging
import mmap
import sys
from pathlib import Path
from types import SimpleNamespace

import vllm_wheel  # stands in for torch and what else the tier's module imports

logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
vllm_wheel.open_wheel(sys.argv[1])

from vllm.v1.kv_hints.protocol import KvHintAction, KvHintsEnvelope  # noqa: E402
from vllm.v1.kv_offload.base import ReqContext  # noqa: E402
from vllm.v1.kv_offload.tiering.factory import SecondaryTierFactory  # noqa: E402

config = json.loads(Path(__file__).with_name("kv-transfer-config.json").read_text())
(tier_config,) = config["kv_connector_extra_config"]["secondary_tiers"]
# For this program: one machine, and the time that a busy one may need; an engine keeps the 2 ms.
tier_config |= {"control_host": "127.0.0.1", "control_advertise_host": "127.0.0.1"}
tier_config["kvrt"]["deadline"] = 1.0

spec = SimpleNamespace(
    config=SimpleNamespace(parallel=SimpleNamespace(data_parallel_rank_local=0)),
    kv_events_config=SimpleNamespace(enable_kv_cache_events=False, self_describing_kv_events=False),
)
memory = memoryview(mmap.mmap(-1, 64 * 4096)).cast("B", (64, 4096))
tier = SecondaryTierFactory.create_secondary_tier(tier_config, memory, spec)
print("tier:", type(tier).__module__, type(tier).__name__, "of", type(tier).__mro__[1].__module__)


def request(name: str, source: str) -> ReqContext:
    payload = {"source_control_endpoint": source, "block_hashes": [1, 2, 3]}
    return ReqContext(name, kv_hints=KvHintsEnvelope("0.1", name, [KvHintAction("a1", "kv.fetch", "1.0", payload)]))


good, bad = request("r1", "tcp://127.0.0.1:23281"), request("r2", "tcp://203.0.113.9:1")
tier.on_new_request(good)
tier.on_new_request(bad)  # its source is not in fetch.allowed_sources
tier.on_new_request(ReqContext("r3"))  # no hint: nothing happens
print("requests whose hint reached KVCR:", list(tier._kvcr._core._remote_fw_dram._request_hints))
for context in (good, bad):
    tier.on_request_finished(context)
print("what became of the envelopes:", tier._kvcr.passage)
tier.shutdown()
