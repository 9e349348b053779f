"""Blocks that accepted hints ask to keep, or to drop: one table a process, read per block."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

_MAX_BLOCKS = 1 << 20
_MAX_REQUESTS = 1 << 16
_MAX_CLAIMS = 8  # of one block; the weakest goes

EVICT = -1


class Retained:
    """Claims by block hash: a priority until a time. EVICT stands for a wish to drop.

    A block has the highest priority of its live claims; no claim takes another's time. Claims of a
    request wait until it is over, as `execute_at: request_completion` says.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._blocks: dict[int, list[tuple[int, float]]] = {}
        self._waiting: OrderedDict[str, list[Mapping[str, Any]]] = OrderedDict()
        self._lock = threading.Lock()
        self.unresolved = 0
        """Claims over blocks of the current request, which have no hashes in the hint."""
        self.dropped = 0
        """Claims beyond a cap of this table."""

    def __len__(self) -> int:
        return len(self._blocks)

    def take(self, actions: list[Mapping[str, Any]], request_id: str | None) -> None:
        """Notes accepted kv.retain and kv.evict actions; those of a request wait for its end."""
        actions = [a for a in actions if isinstance(a.get("payload"), Mapping) and "block_hashes" in a["payload"]]
        if not actions:
            return
        if request_id is None:
            self._apply(actions)
            return
        with self._lock:
            self._waiting.setdefault(request_id, []).extend(actions)
            self._waiting.move_to_end(request_id)
            while len(self._waiting) > _MAX_REQUESTS:
                self.dropped += len(self._waiting.popitem(last=False)[1])

    def over(self, request_id: str) -> None:
        """The request is over: its claims begin."""
        if not self._waiting:
            return
        with self._lock:
            actions = self._waiting.pop(request_id, None)
        if actions:
            self._apply(actions)

    def priority(self, block: int) -> int | None:
        """The highest priority of the block's live claims; None when there is none."""
        claims = self._blocks.get(block)
        if not claims:
            return None
        now = self._clock()
        live = [c for c in claims if c[1] > now]
        if len(live) != len(claims):
            with self._lock:
                if live:
                    self._blocks[block] = live
                else:
                    self._blocks.pop(block, None)
        return max(live)[0] if live else None

    def forget(self, block: int) -> None:
        """The block is gone, and so is a wish to drop it. Claims to keep it stay, should it come back."""
        with self._lock:
            claims = [c for c in self._blocks.get(block, ()) if c[0] != EVICT]
            if claims:
                self._blocks[block] = claims
            else:
                self._blocks.pop(block, None)

    def _apply(self, actions: list[Mapping[str, Any]]) -> None:
        now = self._clock()
        for action in actions:
            payload = action["payload"]
            try:
                hashes = [int(h) for h in payload["block_hashes"]]
                retain = action.get("action_type") == "kv.retain"
                priority = int(payload["priority"]) if retain else EVICT
                until = now + float(payload["ttl_seconds"]) if retain else math.inf
            except (KeyError, TypeError, ValueError, OverflowError):
                self.dropped += 1
                continue
            if payload.get("include_current_request") or "current_request_block_count" in payload:
                self.unresolved += 1
            with self._lock:
                for block in hashes:
                    self._add(block, (priority, until))

    def _add(self, block: int, claim: tuple[int, float]) -> None:
        claims = self._blocks.get(block)
        if claims is None:
            if len(self._blocks) >= _MAX_BLOCKS:
                self.dropped += 1
                return
            self._blocks[block] = [claim]
            return
        kept = [c for c in claims if c[0] != EVICT or claim[0] == EVICT]  # a later claim outlives a wish to drop
        if claim[0] == EVICT:
            kept = []
        self._blocks[block] = sorted([*kept, claim], reverse=True)[:_MAX_CLAIMS]


retained = Retained()
"""The table of this process: what a Guard notes, a cache policy reads."""
