"""What the client and its twin say about blocks and outcomes, and how they read the answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from . import blocks
from ._base import Base, text_id
from .results import Counters, Identity

T = TypeVar("T")
Request = Callable[[int], tuple[Any, ...]]  # of the number that it gets


class AboutBlocks(Base):
    """What takes long has a connection of its own, for the daemon answers each connection in order."""

    _side: Any = None
    _past = Counters()  # of what was _side once

    def counters(self) -> Counters:
        """What happened so far in this process; a forked child begins at zero."""
        counts, side = super().counters().plus(self._past), self._side
        return counts if side is None else counts.plus(side.counters())

    def _read(self, read: Callable[[Any, str], T], answer: tuple[Any, str], otherwise: T) -> T:
        try:
            return read(*answer)
        except Exception as e:
            self._odd(e)
            return otherwise

    def _describe_request(
        self, request_id: str, hashes: Any, block_size: int, tenant: str, namespace: str, identity: Identity | None
    ) -> Request:
        def request(seq: int) -> tuple[Any, ...]:
            who, name = self._who(identity), text_id(request_id)
            return blocks.describe_request(seq, who, name, hashes, block_size, tenant, namespace)

        return request

    def _outcomes_request(self, request_id: str | None, message_id: str, limit: int, identity: Identity | None) -> Request:
        return lambda seq: blocks.outcomes_request(seq, self._who(identity), text_id(request_id), message_id, limit)

    def _follow_request(
        self, request_id: str | None, message_id: str, identity: Identity | None
    ) -> Callable[[int, int, float], tuple[Any, ...]]:
        def request(seq: int, limit: int, wait: float) -> tuple[Any, ...]:
            return blocks.follow_request(seq, self._who(identity), text_id(request_id), message_id, limit, wait)

        return request

    def _fetch_request(
        self, request_id: str, hashes: Any, tenant: str, namespace: str, block_bytes: int, identity: Identity | None
    ) -> Request:
        def request(seq: int) -> tuple[Any, ...]:
            who, name = self._who(identity), text_id(request_id)
            return blocks.fetch_request(seq, who, name, hashes, tenant, namespace, block_bytes)

        return request
