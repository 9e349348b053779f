"""The twin's methods about blocks and outcomes: see _with_blocks."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from . import blocks
from ._about_blocks import AboutBlocks
from ._codec import PING
from .blocks import Block, Fetched, Outcome, Outcomes, Stored
from .results import Counters, Identity

if TYPE_CHECKING:
    from .aio import AsyncClient


class AsyncWithBlocks(AboutBlocks):
    _side: AsyncClient | None = None

    def describe(
        self,
        request_id: str,
        hashes: Any,
        block_size: int,
        *,
        tenant: str = "",
        namespace: str = "",
        identity: Identity | None = None,
    ) -> Awaitable[None]:
        """Says which blocks a request has, before its hints. See Client.describe."""
        request = self._describe_request(request_id, hashes, block_size, tenant, namespace, identity)
        return self._oneway(lambda: request(0))

    async def described(
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
        return self._read(blocks.described, await self._call(request, timeout), "unavailable")

    async def outcomes(
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
        return self._read(Outcomes.from_reply, await self._call(request, timeout), Outcomes(error="unavailable"))

    async def follow(
        self, request_id: str | None = None, *, message_id: str = "", identity: Identity | None = None
    ) -> AsyncFollowing:
        """Outcomes as they come, of a request or of all, from now on. Has a connection of its own."""
        following = AsyncFollowing(self._apart(), self._follow_request(request_id, message_id, identity))
        await following._begin()
        return following

    async def fetch(
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
        message, error = await self._call(lambda seq: (PING, seq), timeout)  # its hint is there before it is carried out
        if error:
            return Fetched(error=error)
        request = self._fetch_request(request_id, hashes, tenant, namespace, block_bytes, identity)
        answer = await self._beside(request, until - time.monotonic())
        return self._read(Fetched.from_reply, answer, Fetched(error="unavailable"))

    async def put_block(
        self,
        block_hash: int,
        block: Any,
        *,
        tenant: str = "",
        namespace: str = "",
        timeout: float = blocks.BLOCK_TIMEOUT,
    ) -> Stored:
        """Copies a block, anything that has bytes, into the daemon's store. For tests and tools."""
        answer = await self._beside(lambda seq: blocks.put_request(seq, tenant, namespace, block_hash, block), timeout)
        return self._read(Stored.from_reply, answer, Stored(error="unavailable"))

    async def get_block(
        self, block_hash: int, *, tenant: str = "", namespace: str = "", timeout: float = blocks.BLOCK_TIMEOUT
    ) -> Block:
        """Copies a block out of the daemon's store. For tests and tools."""
        answer = await self._beside(lambda seq: blocks.get_request(seq, tenant, namespace, block_hash), timeout)
        return self._read(Block.from_reply, answer, Block(error="unavailable"))

    # Inside.

    def _apart(self) -> AsyncClient:
        patient = max(self._options.reconnect_after, 2 * blocks.FETCH_TIMEOUT)
        return type(self)(**vars(replace(self._options, reconnect_after=patient)))  # type: ignore[return-value]

    async def _beside(self, request: Callable[[int], Any], timeout: float) -> tuple[Any, str]:
        if self._side is None:
            self._side = self._apart()
        return await self._side._call(request, timeout)

    async def _close_side(self) -> None:
        side, self._side = self._side, None
        if side is not None:
            await side.close()
            self._past = self._past.plus(side.counters())

    def _forked(self) -> None:
        self._past = Counters()

    def _oneway(self, request: Callable[[], Any]) -> Awaitable[None]:
        raise NotImplementedError

    async def _call(self, request: Any, timeout: float | None) -> tuple[Any, str]:
        raise NotImplementedError


class AsyncFollowing:
    """Outcomes as they come: see Following. For one task."""

    def __init__(self, client: AsyncClient, request: Callable[[int, int, float], Any]) -> None:
        self._client, self._request = client, request
        self._lost = blocks.Lost()
        self._closed = False
        self._ahead: tuple[Outcome, ...] = ()

    async def _begin(self) -> None:
        self._ahead = (await self.poll(0)).outcomes  # from here on the daemon keeps them for it

    async def poll(self, wait: float = 1.0, *, limit: int = 0) -> Outcomes:
        """What has ended since the last one, in the order in which it ended; waits so long for the first, in
        seconds, 10 at most. Its error is that of the daemon, and the next one tries again."""
        if self._closed:
            return Outcomes(error="unavailable")
        connection = 0
        whole = False
        try:
            message, error = await self._client._call(
                lambda seq: self._request(seq, limit, wait),
                min(max(wait, 0.0), blocks.MOST_WAIT / 1000) + blocks.ANSWER_TIME,
            )
            connection = self._client._link.connects
            whole = error != "timeout"
        finally:
            if not whole:  # an answer that comes later, as to a task that was cancelled, would be missed
                await self._client.close()
        answer = self._client._read(
            lambda m, e: self._lost.take(m, e, connection), (message, error), Outcomes(error="unavailable")
        )
        ahead, self._ahead = self._ahead, ()
        return replace(answer, outcomes=ahead + answer.outcomes) if ahead else answer

    async def __aiter__(self) -> AsyncIterator[Outcome]:
        """Each outcome as it comes, until close() or until the daemon does not answer."""
        while (answer := await self.poll()).ok:
            for outcome in answer:
                yield outcome

    @property
    def lost(self) -> int:
        """Outcomes that came too fast for this one."""
        return self._lost.outcomes

    @property
    def restarts(self) -> int:
        """Connections that ended: what came until the next poll is not known."""
        return self._lost.restarts

    async def close(self) -> None:
        self._closed = True
        await self._client.close()

    async def __aenter__(self) -> AsyncFollowing:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
