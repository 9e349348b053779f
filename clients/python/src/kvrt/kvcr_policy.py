"""Cache policies for KVCR: LRU, and what accepted hints ask to keep or to drop.

Name kvrt.kvcr_policy.Policy, or G3Policy where KVCR has a disk tier, as KVCR's policy. A hint's
claim is judged by the daemon's kv.retain handler, a Wasm guest, once per envelope, however many
blocks it names; a Guard notes the accepted ones. Here a block costs a look into that table: the
daemon takes no part in the single decision, and without it these are KVCR's own LRU policies.
"""

from __future__ import annotations

from typing import Any

from kvcr.policy import G3LRUPolicy, LRUPolicy
from kvcr.types import PlacementAction

from .retained import EVICT, Retained, retained

# Above every time of the monotonic clock; times a priority of at most 1,000 it leaves the order
# by time within a priority, to a tenth of a millisecond.
_STEP = 1e9
_TOP = 1000
# Candidates that are kept in a row before one has to go: a claim is a wish, and may yield.
_YIELD = 64


class Claims:
    """In front of a policy of KVCR's."""

    @staticmethod
    def block_hash(key: bytes) -> int:
        """The block hash in a key of KVCR's: what a hint says of the block. Engines have other keys."""
        return int.from_bytes(key[-8:], "big")

    def __init__(self, claims: Retained | None = None) -> None:
        super().__init__()
        self._claims = retained if claims is None else claims
        self._kept = 0

    def eviction_score(self, meta: Any, source: Any) -> float:
        score: float = super().eviction_score(meta, source)  # type: ignore[misc]
        priority = self._claims.priority(self.block_hash(meta.block_key))
        if priority is None or priority == 0:
            return score
        return score - _STEP if priority == EVICT else score + _STEP * min(priority, _TOP)

    def decide_eviction(self, meta: Any, source: Any) -> Any:
        """Keeps a block whose claim came after its score did; asked often enough, it yields."""
        if (self._claims.priority(self.block_hash(meta.block_key)) or 0) > 0 and self._kept < _YIELD:
            self._kept += 1
            return (PlacementAction.KEEP, None)
        self._kept = 0
        return super().decide_eviction(meta, source)  # type: ignore[misc]

    def on_remove(self, meta: Any) -> None:
        self._claims.forget(self.block_hash(meta.block_key))
        super().on_remove(meta)  # type: ignore[misc]


class Policy(Claims, LRUPolicy):  # type: ignore[misc]
    """KVCR's LRUPolicy, with claims."""


class G3Policy(Claims, G3LRUPolicy):  # type: ignore[misc]
    """KVCR's G3LRUPolicy, with claims."""
