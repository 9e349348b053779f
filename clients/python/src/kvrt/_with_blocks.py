"""The client's methods about blocks and outcomes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from . import blocks
from ._about_blocks import AboutBlocks
from ._codec import PING
from ._inside import Inside
from .blocks import Block, Fetched, Outcome, Outcomes, Stored
from .results import Counters, Identity


class Exchange(Inside):
    """A connection that may wait for long, and counts by itself."""

    def exchange(self, request: Callable[[int], Any], timeout: float) -> tuple[Any, str]:
        return self._call(request, timeout)

    def shut(self) -> None:
        with self._lock:
            self._link.lose("the client closed it")
            self._link.abandon()

    def __del__(self) -> None:
        try:
            self.shut()
        except BaseException:  # an interpreter that goes down has less than it takes
            pass


class WithBlocks(AboutBlocks, Inside):
    _side: Exchange | None = None

    # Told one-way, or with an answer.

    def describe(
        self,
        request_id: str,
        hashes: Any,
        block_size: int,
        *,
        tenant: str = "",
        namespace: str = "",
        identity: Identity | None = None,
    ) -> None:
        """Says which blocks a request has, before its hints: the hashes of its full blocks from the first
        token on, block_size tokens each. Waits for nothing."""
        try:
            request = self._describe_request(request_id, hashes, block_size, tenant, namespace, identity)(0)
        except Exception as e:
            return self._rejected(e)
        self._ride(request)

    def described(
        self,
        request_id: str,
        hashes: Any,
        block_size: int,
        *,
        tenant: str = "",
        namespace: str = "",
        timeout: float | None = None,
        identity: Identity | None = None,
    ) -> str:
        """describe with an answer: "" when it is kept, else what went wrong."""
        request = self._describe_request(request_id, hashes, block_size, tenant, namespace, identity)
        return self._read(blocks.described, self._call(request, timeout), "unavailable")

    def outcomes(
        self,
        request_id: str | None = None,
        *,
        message_id: str = "",
        limit: int = 0,
        timeout: float | None = None,
        identity: Identity | None = None,
    ) -> Outcomes:
        """What became of the hints of a request, or of all: the one that was accepted last first."""
        request = self._outcomes_request(request_id, message_id, limit, identity)
        return self._read(Outcomes.from_reply, self._call(request, timeout), Outcomes(error="unavailable"))

    def follow(
        self, request_id: str | None = None, *, message_id: str = "", identity: Identity | None = None
    ) -> Following:
        """Outcomes as they come, of a request or of all, from now on. Has a connection of its own."""
        return Following(self._apart(), self._follow_request(request_id, message_id, identity))

    # What takes as long as blocks take: not for a scheduler's thread.

    def fetch(
        self,
        request_id: str,
        hashes: Any = (),
        *,
        tenant: str = "",
        namespace: str = "",
        block_bytes: int = 0,
        timeout: float = blocks.FETCH_TIMEOUT,
        identity: Identity | None = None,
    ) -> Fetched:
        """Brings what the request's hint names, or those of the hashes that are not here, into the daemon's store."""
        until = time.monotonic() + timeout
        message, error = self._call(lambda seq: (PING, seq), timeout)  # its hint is there before it is carried out
        if error:
            return Fetched(error=error)
        request = self._fetch_request(request_id, hashes, tenant, namespace, block_bytes, identity)
        return self._read(Fetched.from_reply, self._beside(request, until - time.monotonic()), Fetched(error="unavailable"))

    def put_block(
        self,
        block_hash: int,
        block: Any,
        *,
        tenant: str = "",
        namespace: str = "",
        timeout: float = blocks.BLOCK_TIMEOUT,
    ) -> Stored:
        """Copies a block, anything that has bytes, into the daemon's store. For tests and tools."""
        answer = self._beside(lambda seq: blocks.put_request(seq, tenant, namespace, block_hash, block), timeout)
        return self._read(Stored.from_reply, answer, Stored(error="unavailable"))

    def get_block(
        self, block_hash: int, *, tenant: str = "", namespace: str = "", timeout: float = blocks.BLOCK_TIMEOUT
    ) -> Block:
        """Copies a block out of the daemon's store. For tests and tools."""
        answer = self._beside(lambda seq: blocks.get_request(seq, tenant, namespace, block_hash), timeout)
        return self._read(Block.from_reply, answer, Block(error="unavailable"))

    # Inside.

    def _apart(self) -> Exchange:
        """Another connection with these options; it has no thread, and waits for a silent daemon as long as a fetch may take."""
        other = Exchange()
        patient = max(self._options.reconnect_after, 2 * blocks.FETCH_TIMEOUT)
        other._open(replace(self._options, flush_interval=0.0, reconnect_after=patient))
        return other

    def _forked(self) -> None:
        super()._forked()
        self._past = Counters()

    def _beside(self, request: Callable[[int], Any], timeout: float) -> tuple[Any, str]:
        side = self._side
        if side is None:
            with self._aside:
                if (side := self._side) is None:
                    side = self._side = self._apart()
        return side.exchange(request, timeout)


class Following:
    """Outcomes as they come. For one thread."""

    def __init__(self, exchange: Exchange, request: Callable[[int, int, float], Any]) -> None:
        self._exchange, self._request = exchange, request
        self._lost = blocks.Lost()
        self._closed = False
        self._ahead: tuple[Outcome, ...] = ()
        self._ahead = self.poll(0).outcomes  # from here on the daemon keeps them for it

    def poll(self, wait: float = 1.0, *, limit: int = 0) -> Outcomes:
        """What has ended since the last one, in the order in which it ended; waits so long for the first, in
        seconds, 10 at most. Its error is that of the daemon, and the next one tries again."""
        if self._closed:
            return Outcomes(error="unavailable")
        message, error = self._exchange.exchange(
            lambda seq: self._request(seq, limit, wait),
            min(max(wait, 0.0), blocks.MOST_WAIT / 1000) + blocks.ANSWER_TIME,
        )
        if error == "timeout":  # an answer that comes later would be missed: begin anew
            self._exchange.shut()
        try:
            answer = self._lost.take(message, error, self._exchange._link.connects)
        except Exception as e:
            self._exchange._odd(e)
            return Outcomes(error="unavailable")
        ahead, self._ahead = self._ahead, ()
        return replace(answer, outcomes=ahead + answer.outcomes) if ahead else answer

    def __iter__(self) -> Iterator[Outcome]:
        """Each outcome as it comes, until close() or until the daemon does not answer."""
        while (answer := self.poll()).ok:
            yield from answer

    @property
    def lost(self) -> int:
        """Outcomes that came too fast for this one."""
        return self._lost.outcomes

    @property
    def restarts(self) -> int:
        """Connections that ended: what came until the next poll is not known."""
        return self._lost.restarts

    def close(self) -> None:
        self._closed = True
        self._exchange.shut()

    def __enter__(self) -> Following:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
