"""One connection to the daemon: never blocks, never raises, reconnects by itself.

A Link has no lock: its owner sees to it that one thread at a time is in it.
"""

from __future__ import annotations

import logging
import random
import socket
import time
from collections.abc import Sequence
from typing import Any

from ._codec import ERROR, HELLO, MAX_FRAME, SUBMIT, VERSION, codec
from ._envelope import put_slowly
from .results import error_name

log = logging.getLogger("kvrt")

_FLAGS = getattr(socket, "MSG_NOSIGNAL", 0)
_READ = 64 << 10
# A connection that ended sooner than this was no sign of health: the next try waits.
_SETTLED = 0.1
# The most of one read before the owner looks at its deadline again.
_READS = 16


class Link:
    """The connection, its buffer of whole frames, and every counter."""

    __slots__ = (
        "path", "name", "max_buffer", "backoff_min", "backoff_max", "reconnect_after",
        "put", "encode", "decode", "random", "sock", "buffer", "frames", "head", "full", "stalled_until", "stalled_since",
        "retry_at", "failures", "connected_at", "greeted", "proven", "unproven_since", "max_frame",
        "inbox", "waiting", "epoch", "seq", "warned", "server", "broken",
        "requests", "submitted", "discarded", "finished", "sent", "dropped_unavailable", "dropped_full",
        "dropped_lost", "dropped_busy", "dropped_invalid", "dropped_too_large", "dropped_error",
        "calls", "answered", "refused", "timeouts", "unavailable", "malformed", "late_replies",
        "connects", "disconnects", "protocol_errors",
    )  # fmt: skip

    def __init__(
        self, path: str, name: str, max_buffer: int, backoff: tuple[float, float], reconnect_after: float, encoder: str
    ) -> None:
        self.path = path
        self.name = name[:128]
        self.max_buffer = max_buffer
        self.backoff_min, self.backoff_max = backoff
        self.reconnect_after = reconnect_after
        self.put, self.encode, self.decode = codec(encoder)
        self.warned: set[str] = set()
        self.sock: socket.socket | None = None
        self.reset()

    def reset(self) -> None:
        """The state of a process that has not connected yet; what the parent sent is the parent's."""
        self.random = random.Random()  # of its own: the engine's generator stays as it is
        if self.sock is not None:
            self.sock.close()  # of a fork's copy: the parent's connection goes on
        self.sock = None
        self.buffer = bytearray()
        self.frames = 0  # whole frames in buffer; when 0, what the buffer holds means nothing
        self.head = 0  # bytes of the first frame that were sent
        self.full = False  # the last frame found no room
        self.stalled_until = 0.0  # the kernel's buffer is full; 0: it is not
        self.stalled_since = 0.0
        self.retry_at = 0.0
        self.failures = 0
        self.connected_at = 0.0
        self.greeted = False
        self.proven = True  # answers come: a call may wait
        self.unproven_since = 0.0
        self.max_frame = MAX_FRAME
        self.inbox = bytearray()
        self.waiting: dict[int, Any] = {}  # seq of a call to its reply, None until it came
        self.epoch = 0
        self.seq = 0
        self.server = ""
        self.broken: type[BaseException] | None = None  # what ended a call in here, until that is mended
        self.requests = self.submitted = self.discarded = self.finished = self.sent = 0
        self.dropped_unavailable = self.dropped_full = self.dropped_lost = self.dropped_busy = 0
        self.dropped_invalid = self.dropped_too_large = self.dropped_error = 0
        self.calls = self.answered = self.refused = self.timeouts = self.unavailable = 0
        self.malformed = self.late_replies = self.connects = self.disconnects = self.protocol_errors = 0

    # Sending.

    def add(self, request: Sequence[Any]) -> bool:
        """Puts one frame behind the others; bytes are a payload that is encoded. False: it was dropped, and counted."""
        self.requests += 1
        if self.sock is None and not self.connect():
            self.abandon()
            self.dropped_unavailable += 1
            return False
        if self.full and not self.push() and self.full:
            self.dropped_full += 1
            return False
        n = self.frames
        buffer = self.buffer
        at = len(buffer) if n else 0
        try:
            if type(request) is bytes:
                buffer[at:] = len(request).to_bytes(4, "big")
                buffer += request
            else:
                self.put(request, buffer, at)
        except Exception as e:
            if request[0] != SUBMIT or not put_slowly(tuple(request), self.put, buffer, at):
                del buffer[at:]
                self.dropped_invalid += 1
                self.warn("a request cannot be encoded: %r", e)
                return False
        size = len(buffer) - at
        if size - 4 > self.max_frame:
            del buffer[at:]
            self.dropped_too_large += 1
            self.warn("a request of %d bytes is larger than a frame may be", size - 4)
            return False
        if n and at + size > self.max_buffer:
            frame = buffer[at:]
            del buffer[at:]
            if not self.push():
                self.full = self.frames > 0
                self.dropped_full += 1
                return False
            self.buffer[:] = frame
            n = 0
        self.frames = n + 1
        return True

    def push(self) -> bool:
        """Sends what the buffer holds. False: some of it is still there, or was dropped."""
        for _ in range(2):
            sock = self.sock
            if sock is None:
                if not self.connect():
                    return self.abandon()
                continue
            if not self.frames:
                return True
            if self.stalled_until:
                now = time.monotonic()
                if now < self.stalled_until:
                    return False
                if now - self.stalled_since > self.reconnect_after:
                    self.lose("the daemon reads nothing")
                    return self.abandon()
            if not self.greeted:
                self.receive()
                if self.sock is None:
                    continue
                if not self.greeted and time.monotonic() - self.connected_at > self.reconnect_after:
                    self.lose("the daemon does not answer")
                    continue
            try:
                head = self.head
                n = sock.send(memoryview(self.buffer)[head:] if head else self.buffer, _FLAGS)
            except (BlockingIOError, InterruptedError):
                self.stall()
                return False
            except OSError as e:
                self.receive()  # it may have said why
                self.lose(str(e))
                continue
            if n + head == len(self.buffer):
                self.sent += self.frames
                self.frames = self.head = 0
                self.stalled_until = 0.0
                self.full = False
                if len(self.buffer) > self.max_buffer:
                    self.buffer = bytearray()
                return True
            self.advance(head + n)
            self.stall()
            return False
        return self.abandon() if self.sock is None else False

    def stall(self) -> None:
        now = time.monotonic()
        if not self.stalled_until:
            self.stalled_since = now
        self.stalled_until = now + 0.001

    def advance(self, sent: int) -> None:
        """Takes the frames that went out whole from a buffer that went out in part."""
        at, buffer = 0, self.buffer
        while (end := at + 4 + int.from_bytes(buffer[at : at + 4], "big")) <= sent:
            at = end
            self.frames -= 1
            self.sent += 1
        del buffer[:at]
        self.head = sent - at
        self.stalled_until = 0.0  # something went out: a stall begins anew
        self.full = False

    def abandon(self) -> bool:
        """Drops what is in the buffer: there is nobody to send it to."""
        self.dropped_lost += self.frames
        self.frames = self.head = 0
        self.full = False
        return False

    def settle(self) -> None:
        """After an interruption: a request that has no fate yet is dropped."""
        known = self.sent + self.frames + self.dropped_unavailable + self.dropped_full + self.dropped_lost
        known += self.dropped_busy + self.dropped_invalid + self.dropped_too_large
        self.dropped_error = self.requests - known

    # Connecting.

    def connect(self) -> bool:
        """One try, when it is due. It does not wait: the hello's answer is read later."""
        now = time.monotonic()
        if now < self.retry_at:
            return False
        sock = None
        try:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.setblocking(False)
            sock.connect(self.path)
            hello = bytearray()
            self.put((HELLO, 0, VERSION, self.name), hello, 0)
            sock.send(hello, _FLAGS)
        except Exception as e:  # a path with a NUL is a ValueError
            if sock is not None:
                sock.close()
            self.backoff(now)
            self.warn("no daemon at the socket: hints are dropped until there is one: %s", e)
            return False
        except BaseException:  # of a signal handler
            if sock is not None:
                sock.close()
            raise
        self.sock = sock
        self.connects += 1
        self.connected_at = now
        self.greeted = False
        if self.failures:
            self.proven = False
            self.unproven_since = now
        self.head = 0
        self.stalled_until = 0.0
        self.inbox.clear()
        return True

    def backoff(self, now: float) -> None:
        wait = min(self.backoff_max, self.backoff_min * 2.0 ** min(self.failures, 32))
        self.failures += 1
        self.retry_at = now + wait * (0.5 + self.random.random())

    def lose(self, why: str) -> None:
        """The connection ended. One that was in order may be replaced at once; others wait."""
        sock, self.sock = self.sock, None
        if sock is None:
            return
        # First what cannot fail: there may be no stack left for a call.
        healthy, self.greeted = self.greeted, False
        self.disconnects += 1
        self.epoch += 1
        self.head = 0
        self.stalled_until = 0.0
        sock.close()
        self.waiting.clear()
        self.inbox.clear()
        now = time.monotonic()
        if not healthy or now - self.connected_at < _SETTLED:
            self.backoff(now)
        log.debug("the connection to the daemon ended: %s", why)

    def distrust(self) -> None:
        """No answer in time: until one comes, no call waits."""
        if self.proven:
            self.proven = False
            self.unproven_since = time.monotonic()

    def revive(self) -> None:
        """Looks, without waiting, whether answers come again; leaves a connection that stays silent."""
        if self.sock is None and not self.connect():
            return
        if self.receive() and not self.proven:
            if time.monotonic() - self.unproven_since > self.reconnect_after:
                self.unproven_since = time.monotonic()
                self.lose("the daemon does not answer")

    # Receiving.

    def receive(self) -> bool:
        """Reads what is there. False: there is no connection any more."""
        for i in range(_READS):
            sock = self.sock
            if sock is None:
                return False
            try:
                data = sock.recv(_READ)
            except (BlockingIOError, InterruptedError):
                return True
            except OSError as e:
                if i == 0:  # what the daemon wrote before it closed stands behind the first error
                    continue
                self.lose(str(e))
                return False
            if not data:
                self.lose("the daemon closed it")
                return False
            self.inbox += data
            self.unpack()
            if len(data) < _READ:
                break
        return self.sock is not None

    def unpack(self) -> None:
        inbox, at = self.inbox, 0
        while len(inbox) - at >= 4:
            size = int.from_bytes(inbox[at : at + 4], "big")
            if size > max(self.max_frame, MAX_FRAME):
                return self.garbage(f"a frame of {size} bytes")
            if len(inbox) - at - 4 < size:
                break
            payload = bytes(memoryview(inbox)[at + 4 : at + 4 + size])
            at += 4 + size
            try:
                message = self.decode(payload)
                op, seq, code = message[0], message[1], message[2]
                if not (type(message) is list and type(op) is type(seq) is type(code) is int):
                    raise ValueError("no reply")
                if op == HELLO and code == 0:
                    if message[3] != VERSION:
                        raise ValueError(f"protocol version {message[3]!r}")
                    self.max_frame = int(message[5])
                    self.server = str(message[4])
            except Exception as e:
                return self.garbage(repr(e))
            if op == ERROR or (op == HELLO and code != 0):
                text = str(message[3]) if len(message) > 3 else ""
                self.warn("the daemon refused the connection: %s: %s", error_name(code), text)
                return self.lose(text)
            self.proven = True
            if op == HELLO:
                self.greeted = True
                self.failures = 0
            elif seq in self.waiting:
                self.waiting[seq] = message
            else:
                self.late_replies += 1
        del inbox[:at]

    def garbage(self, what: str) -> None:
        self.protocol_errors += 1
        self.greeted = False  # no sign of health: the next try waits
        self.warn("the daemon's answer is none of this protocol: %s", what)
        self.lose(what)

    def warn(self, text: str, *args: object) -> None:
        """Each text once; the texts are this module's, so their set is bounded."""
        if text in self.warned:
            return
        self.warned.add(text)
        try:
            log.warning(text, *args)
        except Exception:  # a handler of the engine's that fails is not the hint's business
            pass
