"""What is behind Client's methods: the lock, the riders, the exchange with its deadline."""

from __future__ import annotations

import select
import sys
import threading
import time
from collections import deque
from dataclasses import replace
from typing import Any

from ._base import Base
from ._codec import DISCARD, ONEWAY
from ._flusher import Flusher
from ._options import Options
from ._process import at_exit, at_fork
from .results import Counters, Reply

# What waits for another frame to ride with: frames, and bytes of hints. More is sent at once.
RIDERS = 32
RIDER_BYTES = 64 << 10
_FRAME_BYTES = 16 << 10
# Hints that come within this time of one that was sent at once, in seconds, are a burst.
_BURST = 0.005
# The most that a call looks away from its connection, in seconds: another thread may have read its reply.
_LOOK = 0.0002
_LOOK_ALONE = 0.01


class Inside(Base):
    """One thread at a time is in the link, and none waits in it: whoever waits for the daemon is outside.

    The lock is taken by `with` alone, which no signal handler's exception can get in between of, after a
    look whether it is free: a handler, or a finalizer, may have interrupted this very thread inside.
    """

    def _open(self, options: Options) -> None:
        self._flusher: Flusher | None = None
        self._lock = threading.Lock()
        self._aside = threading.Lock()
        self._busy_counts: dict[str, int] = {}
        # In the order of the calls: payloads of hints, request ids of discards. Appended to without the lock.
        self._riders: deque[bytes | str] = deque()
        self._hinted = False  # there are hints among them
        self._held = 0  # bytes of hints among them, about
        self._burst_until = 0.0
        self._setup(options)
        self._encode = self._link.encode
        self._heads: dict[int, bytes] = {}
        self._deadline = self._options.deadline
        self._lazy = self._options.flush_interval > 0
        self._linger = self._options.linger if self._lazy else 0.0
        at_fork(self)

    def counters(self) -> Counters:
        free = self._free()
        with self._aside:
            aside = dict(self._busy_counts)
        if not free:
            return self._counted(aside, 0, 0)
        with self._lock:
            self._mend()
            waiting = list(self._riders)
            return self._counted(aside, len(waiting), sum(type(r) is str for r in waiting))

    def _counted(self, aside: dict[str, int], riders: int, discards: int) -> Counters:
        more = {"requests": riders, "pending": riders, "discarded": discards, "submitted": riders - discards}
        counts = super().counters()
        for name in aside.keys() | more.keys():
            more[name] = more.get(name, 0) + aside.get(name, 0) + getattr(counts, name)
        return replace(counts, **more)

    def _free(self, until: float | None = None) -> bool:
        """Waits until nobody is in the link, for at most the deadline. Takes nothing."""
        if not self._lock.locked():
            return True
        if until is None:
            until = time.monotonic() + self._deadline
        while self._lock.locked():
            if time.monotonic() >= until:
                return False
            time.sleep(0.00005)
        return True

    def _submit(self, request: Any) -> None:
        """A hint, behind all that came before it; None: only that."""
        if self._lock.locked() and not self._free():
            if request is not None:
                self._busy("submitted")
            return
        with self._lock:
            link = self._link
            try:
                self._drain()
                if request is None:
                    link.push()
                else:
                    link.submitted += 1
                    if link.add(request):
                        self._go()
                if link.frames and not self._left():
                    link.push()
            except Exception as e:
                link.broken = type(e)
            except BaseException as e:
                link.broken = type(e)
                raise

    def _go(self) -> None:
        """Sends at once what is not part of a burst; a burst is the thread's."""
        link = self._link
        if self._linger and len(link.buffer) < _FRAME_BYTES and link.sock is not None:
            flusher = self._flusher
            if flusher is not None and flusher.fast:
                if link.frames < RIDERS:
                    self._hinted = True
                    return
            elif (now := time.monotonic()) >= self._burst_until:
                self._burst_until = now + _BURST
            elif self._left(fast=True):
                self._hinted = True
                return
        link.push()

    def _ride(self, request: tuple[Any, ...], counter: str = "") -> None:
        """Adds a frame that may wait for the next."""
        if not self._free():
            return self._busy(*filter(None, [counter]))
        with self._lock:
            link = self._link
            try:
                if counter:
                    setattr(link, counter, getattr(link, counter) + 1)
                self._drain()
                if not link.add(request):
                    return
                if not self._lazy or link.frames > RIDERS or len(link.buffer) > _FRAME_BYTES:
                    link.push()
                if link.frames and not self._left():
                    link.push()
            except Exception as e:
                link.broken = type(e)
            except BaseException as e:
                link.broken = type(e)
                raise

    def _drain(self) -> None:
        """Turns the riders into frames, in order, before any other request."""
        riders, link = self._riders, self._link
        if link.broken is not None:
            self._mend()
        self._hinted = False
        self._held = 0
        if not riders:
            return
        buffer = link.buffer
        if not link.greeted or link.full or len(buffer) + 2 * RIDER_BYTES > link.max_buffer:
            while riders:
                rider = riders.popleft()
                if type(rider) is str:
                    link.discarded += 1
                    link.add((DISCARD, 0, ONEWAY, *self._identity, rider))
                else:
                    link.submitted += 1
                    link.add(rider)
            return
        # The same for a connection in order, without the calls.
        if not link.frames:
            buffer.clear()
        heads = self._heads
        hints = discards = 0
        while riders:
            rider = riders.popleft()
            size = len(rider)
            if type(rider) is str:
                buffer += (heads.get(size) or self._head(size)) + rider.encode()
                discards += 1
            else:
                buffer += size.to_bytes(4, "big")
                buffer += rider  # type: ignore[arg-type]
                hints += 1
        link.frames += hints + discards
        link.requests += hints + discards
        link.submitted += hints
        link.discarded += discards

    def _head(self, size: int) -> bytes:
        """A discard's frame up to a request id of so many bytes."""
        whole = bytearray()
        self._link.put((DISCARD, 0, ONEWAY, *self._identity, "x" * size), whole, 0)
        head = self._heads[size] = bytes(whole[: len(whole) - size])
        return head

    def _wake(self) -> None:
        if not self._free():
            return  # whoever is inside takes the riders along, or the next call does
        with self._lock:
            try:
                if not self._left():
                    self._drain()
                    self._link.push()
            except Exception as e:
                self._link.broken = type(e)

    def _left(self, fast: bool = False) -> bool:
        """Frames stay behind: somebody must come back for them. Whether somebody will."""
        flusher = self._flusher
        if flusher is None:
            if not self._lazy:
                return False
            if sys.is_finalizing():  # a thread would never begin, and start waits for it
                self._lazy, self._linger = False, 0.0
                return False
            try:
                self._flusher = Flusher(self._round, self._options.flush_interval, self._linger, fast)
                at_exit(self)
            except RuntimeError:  # a limit of threads is reached
                self._lazy, self._linger = False, 0.0
                return False
        elif fast or flusher.parked:
            flusher.wake(fast)
        return True

    def _round(self, whole: bool) -> bool:
        """The flusher's turn; whether there was anything to do. Discards alone wait for a whole one."""
        link = self._link
        if not link.frames and not (self._riders and (whole or self._hinted)):
            return False
        with self._lock:
            try:
                self._drain()
                link.push()
            except Exception as e:
                link.broken = type(e)
            return True

    def _end(self) -> None:
        """The process ends: what waits leaves, and from here on everything is sent at once."""
        self._lazy, self._linger = False, 0.0
        flusher, self._flusher = self._flusher, None
        if flusher is not None:
            flusher.stop()
        if self._free():
            self._round(True)

    def _call(self, request: Any, timeout: float | None, counter: str = "") -> tuple[Any, str]:
        """One exchange: the reply, or why there is none."""
        deadline = time.monotonic() + (float(timeout) if isinstance(timeout, (int, float)) else self._deadline)
        if not self._free(deadline):
            self._busy("calls", "timeouts", *filter(None, [counter]))
            return None, "timeout"
        link = self._link
        seq = 0
        error, message = "unavailable", None
        try:
            with self._lock:
                try:
                    if counter:
                        setattr(link, counter, getattr(link, counter) + 1)
                    error, seq = self._ask(request)
                except Exception as e:
                    link.broken = type(e)
                except BaseException as e:
                    link.broken = type(e)
                    raise
                epoch = link.epoch
            if seq:
                error, message = self._await(seq, epoch, deadline)
            return message, error
        finally:
            with self._lock:
                link.waiting.pop(seq, None)
                link.calls += 1  # from here to the end no signal can come between
                if message is not None:
                    link.answered += message[2] == 0
                    link.refused += message[2] != 0
                elif error == "timeout":
                    link.timeouts += 1
                else:
                    link.unavailable += 1

    def _ask(self, request: Any) -> tuple[str, int]:
        """Sends a request that wants an answer: its number, or why there will be none."""
        link = self._link
        self._mend()
        if link.sock is None or not link.proven:
            link.revive()
        if link.sock is None or not link.proven:
            link.requests += 1
            link.dropped_unavailable += 1
            return "unavailable", 0
        self._drain()
        link.seq = seq = link.seq + 1
        try:
            frame = request(seq)
        except Exception as e:  # of what the caller has given
            link.requests += 1
            link.dropped_invalid += 1
            link.warn("a request is out of the protocol's bounds: %s", e)
            return "invalid", 0
        before = link.dropped_invalid + link.dropped_too_large
        if not link.add(frame):
            invalid = link.dropped_invalid + link.dropped_too_large > before
            return ("invalid" if invalid else "unavailable"), 0
        link.waiting[seq] = None
        link.push()
        link.waiting.setdefault(seq, None)  # a new connection has forgotten what the old one waited for
        return "unavailable", seq

    def _await(self, seq: int, epoch: int, deadline: float) -> tuple[str, Any]:
        link = self._link
        poll = select.poll()
        readable = False
        while True:
            with self._lock:
                try:
                    if readable:
                        link.receive()
                        if link.frames and link.sock is not None and link.epoch == epoch:
                            link.stalled_until = 0.0
                            link.push()
                    self._mend()
                    if link.epoch != epoch or link.sock is None:
                        return "unavailable", None
                    if (reply := link.waiting.get(seq)) is not None:
                        return "", reply
                    left = deadline - time.monotonic()
                    if left <= 0:
                        link.distrust()
                        if link.frames:
                            self._left()
                        return "timeout", None
                    poll.register(link.sock, select.POLLIN | (select.POLLOUT if link.frames else 0))
                    left = min(left, _LOOK_ALONE if len(link.waiting) < 2 else _LOOK)
                except Exception as e:
                    link.broken = type(e)
                    return "unavailable", None
                except BaseException as e:
                    link.broken = type(e)
                    raise
            # A descriptor that another thread has closed meanwhile costs one such look.
            readable = bool(poll.poll(left * 1000))

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

    def _rejected(self, e: Exception, *counter: str) -> None:
        """A request that cannot be."""
        self._aside_count("requests", "dropped_invalid", *counter)
        self._link.warn("a request is out of the protocol's bounds: %s", e)

    def _aside_count(self, *names: str) -> None:
        with self._aside:
            for name in names:
                self._busy_counts[name] = self._busy_counts.get(name, 0) + 1

    def _count_malformed(self) -> None:
        self._aside_count("malformed")

    def _mend(self) -> None:
        """After an exception in the link, a signal handler's or a defect: a frame may be half written, so nothing
        of the buffer may go out. It is left to whoever comes next: there may be no stack left to do it at once."""
        link = self._link
        kind = link.broken
        if kind is None:
            return
        link.lose("interrupted")
        link.abandon()
        link.settle()
        link.broken = None
        if issubclass(kind, Exception):
            link.warn("a call ended with %s: what had not been sent is dropped", kind.__name__)

    def _forked(self) -> None:
        """In a forked child: the connection, its buffer and the counters are the parent's."""
        self._lock = threading.Lock()
        self._aside = threading.Lock()
        self._busy_counts = {}
        self._riders = deque()
        self._hinted = False
        self._held = 0
        self._burst_until = 0.0
        self._flusher = None
        self._link.reset()
