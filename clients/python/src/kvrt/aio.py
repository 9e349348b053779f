"""The client for an event loop."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any

from ._aio_blocks import AsyncWithBlocks
from ._base import (
    discard_request,
    encoded,
    finish_request,
    formulate_request,
    formulated,
    formulated_batch,
    text_id,
)
from ._codec import DISCARD, FINISH, FORWARD, MSGPACK, ONEWAY, PING, STATUS, SUBMIT
from ._options import Options
from ._process import at_fork
from .results import Formulated, Identity, Reply, Status

class _Done:
    """What the one-way methods return: it may be awaited, and need not be."""

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield


_DONE = _Done()


class AsyncClient(AsyncWithBlocks):
    """Client's twin for one event loop: the same options, counters and rules.

    The one-way methods never wait, so they may be called with or without await. There is no thread:
    what is left in the buffer leaves by a timer of the loop.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, **options: Any) -> None:
        if path is not None:
            options["path"] = os.fspath(path)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watched = -1
        self._timer: asyncio.TimerHandle | None = None
        self._futures: dict[int, tuple[int, asyncio.Future[Any]]] = {}
        self._setup(Options(**options))
        at_fork(self)

    def submit_hint(
        self, hints: Any, request_id: str | None = None, *, identity: Identity | None = None
    ) -> Awaitable[None]:
        """Hands an envelope, a mapping or a struct, to the daemon. Waits for nothing."""
        hints = self._checked(hints)
        link = self._link
        link.submitted += 1
        try:
            head = (SUBMIT, 0, ONEWAY, *self._who(identity), text_id(request_id))
            self._send((*head, MSGPACK, "", hints), now=True)
        except Exception as e:
            self._failed(e)
        return _DONE

    def discard_hint(self, request_id: str, *, identity: Identity | None = None) -> Awaitable[None]:
        """Forgets the hints of a request. Idempotent."""
        self._link.discarded += 1
        if request_id is None:  # what has no id was not stored
            return _DONE
        return self._oneway(lambda: discard_request(self._who(identity), request_id))

    def finish(self, request_id: str, *, aborted: bool = False, identity: Identity | None = None) -> Awaitable[None]:
        """Says that a request is over."""
        self._link.finished += 1
        return self._oneway(lambda: finish_request(self._who(identity), request_id, aborted))

    async def submit(
        self,
        hints: Any,
        request_id: str | None = None,
        *,
        forward: bool = False,
        dialect: str = "",
        timeout: float | None = None,
        identity: Identity | None = None,
    ) -> Reply:
        """Hands an envelope to the daemon and waits for a result per action. See Client.submit."""
        if not dialect and not encoded(hints):
            hints = self._checked(hints)
        self._link.submitted += 1
        flags = FORWARD if forward else 0
        message, error = await self._call(
            lambda seq: self._submit_request(hints, request_id, flags, identity, dialect, seq), timeout
        )
        try:
            return self._reply(message, error)
        except ValueError as e:
            if not error and message[2] == 1:
                self._link.malformed += 1
                raise
            return self._odd(e)
        except Exception as e:
            return self._odd(e)

    async def status(
        self, request_id: str, *, timeout: float | None = None, identity: Identity | None = None
    ) -> Status:
        """What the daemon keeps for a request."""
        message, error = await self._call(
            lambda seq: (STATUS, seq, 0, *self._who(identity), text_id(request_id)), timeout
        )
        try:
            return self._status(message, error)
        except Exception as e:
            return Status("unknown", error=self._odd(e).error)

    async def discard(
        self, request_id: str, *, timeout: float | None = None, identity: Identity | None = None
    ) -> str:
        """discard_hint with an answer: "" when it is done, else what went wrong."""
        self._link.discarded += 1
        message, error = await self._call(
            lambda seq: (DISCARD, seq, 0, *self._who(identity), text_id(request_id)), timeout
        )
        return error or ("" if message[2] == 0 else str(message[3]))

    async def finished(
        self,
        request_id: str,
        *,
        aborted: bool = False,
        timeout: float | None = None,
        identity: Identity | None = None,
    ) -> str:
        """finish with an answer: "" when it is done, else what went wrong."""
        self._link.finished += 1
        message, error = await self._call(
            lambda seq: (FINISH, seq, 0, *self._who(identity), text_id(request_id), bool(aborted)), timeout
        )
        return error or ("" if message[2] == 0 else str(message[3]))

    async def formulate(self, context: Any, *, output: str = "", timeout: float | None = None) -> Formulated:
        """The envelope that the policies attach to a routed request. See Client.formulate."""
        message, error = await self._call(lambda seq: formulate_request(seq, [context], output, False), timeout)
        try:
            return formulated(message, error)
        except Exception as e:
            return Formulated(error=self._odd(e).error)

    async def formulate_batch(
        self, contexts: Sequence[Any], *, output: str = "", timeout: float | None = None
    ) -> tuple[Formulated, ...]:
        """One for each of at most 1,024 contexts, in order, in one exchange."""
        message, error = await self._call(lambda seq: formulate_request(seq, contexts, output, True), timeout)
        try:
            return formulated_batch(message, error, len(contexts))
        except Exception as e:
            return (Formulated(error=self._odd(e).error),) * len(contexts)

    async def ping(self, *, timeout: float | None = None) -> bool:
        """Whether the daemon answers within the deadline."""
        message, error = await self._call(lambda seq: (PING, seq), timeout)
        return not error and bool(message[2] == 0)

    def flush(self) -> bool:
        """Sends what waits in this process. True when nothing is left."""
        try:
            return not self._link.frames or self._link.push()
        finally:
            self._watch()

    async def close(self) -> None:
        """Sends what can be sent at once, and closes."""
        await self._close_side()
        self.flush()
        self._link.lose("the client closed it")
        self._link.abandon()
        self._watch()
        self._settle()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # Inside.

    def _oneway(self, request: Callable[[], Any]) -> Awaitable[None]:
        try:
            self._send(request())
        except Exception as e:
            self._failed(e)
        return _DONE

    def _send(self, request: tuple[Any, ...], now: bool = False) -> None:
        link = self._link
        if link.add(request):
            if now or len(link.buffer) > 16 << 10 or not self._options.flush_interval:
                link.push()
        self._watch()

    def _watch(self) -> None:
        """Keeps the loop's reader and timer in step with the link."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            if self._link.frames:
                self._link.push()  # nobody would come back for it
            return
        if loop is not self._loop:
            self._loop, self._watched, self._timer = loop, -1, None
            self._futures.clear()
        link = self._link
        fd = -1 if link.sock is None else link.sock.fileno()
        if (fd, link.connects) != (self._watched, self._connection):
            if self._watched >= 0:
                loop.remove_reader(self._watched)
            if fd >= 0:
                loop.add_reader(fd, self._readable)
            self._watched, self._connection = fd, link.connects
            self._settle()
        if link.frames and self._timer is None:
            wait = 0.001 if link.stalled_until else self._options.flush_interval
            self._timer = loop.call_later(wait, self._due)

    _connection = -1

    def _due(self) -> None:
        self._timer = None
        try:
            self._link.push()
        except Exception as e:
            self._failed(e, count=False)
        self._watch()

    def _readable(self) -> None:
        try:
            self._link.receive()
        except Exception as e:
            self._failed(e, count=False)
        self._settle()
        self._watch()

    def _settle(self) -> None:
        """Gives replies to those who wait, and tells the others when the connection is another."""
        link = self._link
        for seq, (epoch, future) in list(self._futures.items()):
            reply = link.waiting.get(seq)
            if reply is None and link.sock is not None and link.epoch == epoch:
                continue
            del self._futures[seq]
            link.waiting.pop(seq, None)
            if not future.done():
                future.set_result(reply)

    async def _call(self, request: Any, timeout: float | None) -> tuple[Any, str]:
        link = self._link
        link.calls += 1
        until = time.monotonic() + (float(timeout) if isinstance(timeout, (int, float)) else self._options.deadline)
        seq = 0
        error = "unavailable"
        message = None
        try:
            if link.sock is None or not link.proven:
                link.revive()
            if link.sock is None or not link.proven:
                link.requests += 1
                link.dropped_unavailable += 1
                return None, error
            link.seq = seq = link.seq + 1
            try:
                frame = request(seq)
            except Exception as e:  # of what the caller has given
                link.requests += 1
                link.dropped_invalid += 1
                link.warn("a request is out of the protocol's bounds: %s", e)
                return None, "invalid"
            before = link.dropped_invalid + link.dropped_too_large
            if not link.add(frame):
                return None, "invalid" if link.dropped_invalid + link.dropped_too_large > before else error
            link.push()
            if link.sock is None:
                return None, error
            link.waiting[seq] = None
            self._watch()
            future = asyncio.get_running_loop().create_future()
            self._futures[seq] = (link.epoch, future)
            timer = asyncio.get_running_loop().call_later(until - time.monotonic(), self._expire, seq)
            try:
                message = await future
            finally:
                timer.cancel()
            error = "" if message is not None else error
            if message is False:
                link.distrust()
                message, error = None, "timeout"
            return message, error
        except Exception as e:
            self._failed(e, count=False)
            return None, error
        finally:
            self._futures.pop(seq, None)
            link.waiting.pop(seq, None)
            self._watch()
            if message is not None and error == "":
                link.answered += message[2] == 0
                link.refused += message[2] != 0
            elif error == "timeout":
                link.timeouts += 1
            else:
                link.unavailable += 1

    def _expire(self, seq: int) -> None:
        self._readable()  # the reply may be there, and the loop be late
        entry = self._futures.get(seq)
        if entry is not None and not entry[1].done():
            entry[1].set_result(False)

    def _odd(self, e: Exception) -> Reply:
        self._link.protocol_errors += 1
        self._link.warn("the daemon's reply cannot be read: %r", e)
        return Reply(error="unavailable", detail="the daemon's reply cannot be read")

    def _failed(self, e: Exception, count: bool = True) -> None:
        link = self._link
        if isinstance(e, ValueError) and count:
            link.requests += 1
            link.dropped_invalid += 1
            link.warn("a request is out of the protocol's bounds: %s", e)
            return
        link.warn("a defect of this client: %r", e)
        link.lose("interrupted")
        link.abandon()
        link.settle()

    def _forked(self) -> None:
        super()._forked()
        self._loop, self._watched, self._timer = None, -1, None
        self._futures = {}
        self._link.reset()

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (vars(self._options),)


def _rebuild(options: dict[str, Any]) -> AsyncClient:
    return AsyncClient(**options)
