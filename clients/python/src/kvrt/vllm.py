"""kvrt in front of vLLM's KVCR tier, chosen by configuration alone.

    --kv-transfer-config '{"kv_connector": "OffloadingConnector", "kv_role": "kv_both",
      "kv_connector_extra_config": {"spec_name": "TieringOffloadingSpec", "cpu_bytes_to_use": ...,
        "secondary_tiers": [{"type": "KVCRTier", "module_path": "kvrt.vllm",
          "kvrt": {"path": "/run/kvrt/kvrt.sock"}, "policy": "kvrt.vllm.Policy",
          "router_capabilities": ["router_hint"], "control_ports": [23280]}]}}'

Every key but `kvrt` is vLLM's own KVCR tier's. The tier is a subclass of vLLM's, made when it is
asked for, so that importing this module needs no vLLM; it takes whatever arguments that version's
tier takes, and asks of it only that it hands hints to `self._kvcr`.
"""

from __future__ import annotations

import importlib
from functools import lru_cache
from typing import Any, cast

from .client import Client
from .guard import Executor, Guard

_TIER = "vllm.v1.kv_offload.tiering.kvcr.manager"


def tier_class(base: type) -> type:
    """A subclass of a tier whose hints go through kvrt."""

    class KVCRTier(base):  # type: ignore[misc]
        def __init__(self, *args: Any, kvrt: dict[str, Any] | None = None, **options: Any) -> None:
            ours = dict(kvrt or {})
            guarding = {name: ours.pop(name) for name in ("without_daemon",) if name in ours}
            client = Client(**ours)  # a wrong option fails the start, before anything is set up
            super().__init__(*args, **options)
            inner = getattr(self, "_kvcr", None)
            if not (hasattr(inner, "submit_hint") and hasattr(inner, "discard_hint")):
                raise RuntimeError(
                    f"kvrt does not know this version of {base.__module__}.{base.__name__}: "
                    "it has no KVCR instance in _kvcr; use vLLM's own tier, or another version of kvrt"
                )
            # vLLM's scheduler expects no exception of a hint.
            self._kvcr = Guard(cast("Executor", inner), client, quiet=True, **guarding)

        def shutdown(self) -> None:
            super().shutdown()
            guard: Guard = self._kvcr
            guard.client.close()

    KVCRTier.__module__, KVCRTier.__qualname__ = __name__, "KVCRTier"
    return KVCRTier


@lru_cache(maxsize=None)
def _made(name: str) -> Any:
    if name == "KVCRTier":
        return tier_class(importlib.import_module(_TIER).KVCRSecondaryTierManager)
    from . import kvcr_policy

    class Keys(kvcr_policy.Claims):
        @staticmethod
        def block_hash(key: bytes) -> int:
            """vLLM's keys end with 4 bytes that name the cache group; hints say the low 64 bits before."""
            return int.from_bytes(key[-12:-4], "big")

    return type(name, (Keys, getattr(kvcr_policy, name)), {"__module__": __name__})


def __getattr__(name: str) -> Any:
    if name in ("KVCRTier", "Policy", "G3Policy"):
        return _made(name)
    raise AttributeError(name)
