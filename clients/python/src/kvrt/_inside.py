"""What is behind Client's methods: the lock, the riders, the exchange with its deadline."""

from __future__ import annotations

import select
import threading
import time
from collections import deque
from dataclasses import replace
from typing import Any

from ._base import Base
from ._codec import DISCARD, ONEWAY
from ._flusher import Flusher
from ._options import Options
from .results import Counters, Reply

# Frames that wait for another to ride with; more are sent at once.
RIDERS = 64
_RIDER_BYTES = 16 << 10


class Inside(Base):
    """One thread at a time is in the link; the others wait for it, for at most the deadline."""

    def _open(self, options: Options) -> None:
        self._flusher: Flusher | None = None
        self._lock = threading.Lock()
        self._aside = threading.Lock()
        self._busy_counts: dict[str, int] = {}
        self._riders: deque[str] = deque()  # request ids of discards; appended to without the lock
        self._setup(options)
        self._heads: dict[int, bytes] = {}
        self._deadline = self._options.deadline
        self._lazy = self._options.flush_interval > 0

    def counters(self) -> Counters:
        held = self._lock.acquire(True, self._deadline)
        try:
            with self._aside:
                aside = dict(self._busy_counts)
            riders = len(self._riders)
            for name in ("requests", "discarded", "pending"):
                aside[name] = aside.get(name, 0) + riders
            counts = super().counters()
            return replace(counts, **{name: getattr(counts, name) + n for name, n in aside.items()})
        finally:
            if held:
                self._lock.release()

    def _ride(self, request: tuple[Any, ...]) -> None:
        """Adds a frame that may wait for the next."""
        link = self._link
        self._drain()
        if not link.add(request):
            return
        if not self._lazy or link.frames > RIDERS or len(link.buffer) > _RIDER_BYTES:
            link.push()
        if link.frames:
            self._left()

    def _drain(self) -> None:
        """Turns what discard_hint noted into frames, in order, before any other request."""
        riders, link = self._riders, self._link
        if link.frames or not link.greeted or link.sock is None:
            while riders:
                request_id = riders.popleft()
                link.discarded += 1
                link.add((DISCARD, 0, ONEWAY, *self._identity, request_id))
            return
        frames, n = b"", 0
        while riders:
            request_id = riders.popleft()
            frames += self._head(len(request_id)) + request_id.encode()
            n += 1
        if n:
            link.buffer[:] = frames
            link.frames = n
            link.requests += n
            link.discarded += n

    def _head(self, size: int) -> bytes:
        """A discard's frame up to a request id of so many bytes."""
        head = self._heads.get(size)
        if head is None:
            whole = bytearray()
            self._link.put((DISCARD, 0, ONEWAY, *self._identity, "x" * size), whole, 0)
            head = self._heads[size] = bytes(whole[: len(whole) - size])
        return head

    def _wake(self) -> None:
        lock = self._lock
        if not lock.acquire(True, self._deadline):
            return  # whoever holds it takes the riders along, or the next call does
        try:
            self._left()
        except Exception as e:
            self._failed(e, count=False)
        finally:
            lock.release()

    def _left(self) -> None:
        """Frames stay behind: somebody must come back for them."""
        flusher = self._flusher
        if flusher is None:
            if self._lazy:
                try:
                    self._flusher = Flusher(self._round, self._options.flush_interval)
                except RuntimeError:  # no threads: the interpreter is ending, or a limit is reached
                    self._lazy = False
                    self._link.push()
        elif flusher.parked:
            flusher.wake()

    def _round(self) -> bool:
        """The flusher's turn; whether there was anything to do."""
        with self._lock:
            link = self._link
            if not link.frames and not self._riders:
                return False
            try:
                self._drain()
                link.push()
            except Exception as e:
                self._failed(e, count=False)
            return True

    def _call(self, request: Any, timeout: float | None, counter: str = "") -> tuple[Any, str]:
        """One exchange: the reply, or why there is none."""
        deadline = time.monotonic() + (float(timeout) if isinstance(timeout, (int, float)) else self._deadline)
        lock, link = self._lock, self._link
        if not lock.acquire(True, max(0.0, deadline - time.monotonic())):
            self._busy("calls", "timeouts", *filter(None, [counter]))
            return None, "timeout"
        error = "unavailable"
        try:
            link.calls += 1
            if counter:
                setattr(link, counter, getattr(link, counter) + 1)
            error, message = self._exchange(request, deadline)
            return message, error
        except Exception as e:
            self._failed(e, count=False)
            return None, error
        except BaseException:
            self._interrupted()
            raise
        finally:
            if error == "":
                link.answered += message[2] == 0
                link.refused += message[2] != 0
            elif error == "timeout":
                link.timeouts += 1
            else:
                link.unavailable += 1
            lock.release()

    def _exchange(self, request: Any, deadline: float) -> tuple[str, Any]:
        link = self._link
        if link.sock is None or not link.proven:
            link.revive()
        if link.sock is None or not link.proven:
            link.requests += 1
            link.dropped_unavailable += 1
            return "unavailable", None
        self._drain()
        link.seq = seq = link.seq + 1
        try:
            frame = request(seq)
        except ValueError:
            link.requests += 1
            link.dropped_invalid += 1
            return "invalid", None
        before = link.dropped_invalid + link.dropped_too_large
        if not link.add(frame):
            invalid = link.dropped_invalid + link.dropped_too_large > before
            return ("invalid" if invalid else "unavailable"), None
        link.waiting[seq] = None
        link.push()
        link.waiting.setdefault(seq, None)  # a new connection has forgotten what the old one waited for
        epoch = link.epoch
        try:
            return self._await(seq, epoch, deadline)
        finally:
            link.waiting.pop(seq, None)

    def _await(self, seq: int, epoch: int, deadline: float) -> tuple[str, Any]:
        link = self._link
        poll = select.poll()
        while True:
            if link.sock is None or link.epoch != epoch:
                return "unavailable", None
            if link.waiting.get(seq) is not None:
                return "", link.waiting[seq]
            left = deadline - time.monotonic()
            if left <= 0:
                link.distrust()
                if link.frames:
                    self._left()
                return "timeout", None
            poll.register(link.sock, select.POLLIN | (select.POLLOUT if link.frames else 0))
            if poll.poll(left * 1000):
                link.receive()
                if link.frames and link.sock is not None and link.epoch == epoch:
                    link.stalled_until = 0.0
                    link.push()

    def _done(self, message: Any, error: str) -> str:
        if error or message[2] == 0:
            return error
        return str(message[3])

    def _odd(self, e: Exception) -> Reply:
        """A reply of the right form with something else in it."""
        self._aside_count("protocol_errors")
        self._link.warn("the daemon's reply cannot be read: %r", e)
        return Reply(error="unavailable", detail="the daemon's reply cannot be read")

    def _busy(self, *names: str) -> None:
        """Another thread is in the link, so its counters are not to be touched."""
        self._aside_count("requests", "dropped_busy", *names)

    def _aside_count(self, *names: str) -> None:
        with self._aside:
            for name in names:
                self._busy_counts[name] = self._busy_counts.get(name, 0) + 1

    def _count_malformed(self) -> None:
        self._aside_count("malformed")

    def _failed(self, e: Exception, count: bool = True) -> None:
        """A request that cannot be, or a defect: it is dropped, and the connection begins anew."""
        link = self._link
        if isinstance(e, ValueError) and count:
            link.requests += 1
            link.dropped_invalid += 1
            link.warn("a request is out of the protocol's bounds: %s", e)
            return
        link.warn("a defect of this client: %r", e)
        self._interrupted()

    def _interrupted(self) -> None:
        """A frame may be half written: nothing of the buffer may go out."""
        self._link.lose("interrupted")
        self._link.abandon()
        self._link.settle()

    def _forked(self) -> None:
        """In a forked child: the connection, its buffer and the counters are the parent's."""
        self._lock = threading.Lock()
        self._aside = threading.Lock()
        self._busy_counts = {}
        self._riders = deque()
        self._flusher = None
        self._link.reset()
