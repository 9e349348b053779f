"""The client for threads: what a scheduler calls."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

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
from ._inside import RIDER_BYTES, RIDERS
from ._options import Options
from ._with_blocks import WithBlocks
from .results import Formulated, Identity, Reply, Status

class Client(WithBlocks):
    """A connection to the daemon, for any number of threads.

    Nothing is opened before the first call. submit_hint and discard_hint have KVCR's signatures, do not
    wait for the daemon, and raise nothing but ValueError, for a malformed envelope. The methods that
    answer wait for at most the deadline, and not at all while the daemon is known not to answer.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, **options: Any) -> None:
        if path is not None:
            options["path"] = os.fspath(path)
        self._open(Options(**options))

    # One-way.

    def submit_hint(self, hints: Any, request_id: str | None = None, *, identity: Identity | None = None) -> None:
        """Hands an envelope, a mapping or a struct, to the daemon. Waits for nothing."""
        if type(hints) is dict and type(actions := hints.get("actions")) is list:
            for action in actions:
                if type(action) is not dict:
                    hints = self._checked(hints)
                    break
        else:
            hints = self._checked(hints)
        try:
            if request_id is None:
                request_id = ""
            elif type(request_id) is not str or len(request_id) > 128:
                request_id = text_id(request_id)
            engine, dp_rank, leg, attempt = self._identity if identity is None else self._who(identity)
            request: Any = (SUBMIT, 0, ONEWAY, engine, dp_rank, leg, attempt, request_id, MSGPACK, "", hints)
            flusher = self._flusher
            if flusher is not None and flusher.fast:
                try:
                    request = self._encode(request)
                except Exception:  # link.add knows what to do
                    return self._submit(request)
                riders, size = self._riders, len(request)
                if len(riders) < RIDERS and (held := self._held + size) < RIDER_BYTES:
                    self._held = held
                    riders.append(request)  # no lock, no system call: the thread sends it within `linger`
                    self._hinted = True
                    if flusher.fast:
                        return
                    request = None  # the thread may have looked for the last time before that
        except Exception as e:
            return self._rejected(e, "submitted")
        self._submit(request)

    def discard_hint(self, request_id: str, *, identity: Identity | None = None) -> None:
        """Forgets the hints of a request. Idempotent."""
        riders = self._riders
        if (
            identity is None
            and self._lazy
            and type(request_id) is str
            and len(request_id) <= 128
            and request_id.isascii()
            and len(riders) < RIDERS
        ):
            riders.append(request_id)  # no lock, no frame: the next one takes it along
            flusher = self._flusher
            if flusher is None or flusher.parked:
                self._wake()
            return
        if request_id is None:  # what has no id was not stored
            return
        try:
            request = discard_request(self._who(identity), request_id)
        except Exception as e:
            return self._rejected(e, "discarded")
        self._ride(request, "discarded")

    def finish(self, request_id: str, *, aborted: bool = False, identity: Identity | None = None) -> None:
        """Says that a request is over: its hints go, and late ones are refused for a while."""
        try:
            request = finish_request(self._who(identity), request_id, aborted)
        except Exception as e:
            return self._rejected(e, "finished")
        self._ride(request, "finished")

    def flush(self) -> bool:
        """Sends what waits in this process. True when nothing is left. Does not wait."""
        if not self._free():
            return False
        with self._lock:
            link = self._link
            try:
                self._drain()
                return not link.frames or link.push()
            except Exception as e:
                link.broken = type(e)
                return False
            except BaseException as e:
                link.broken = type(e)
                raise

    # With an answer.

    def submit(
        self,
        hints: Any,
        request_id: str | None = None,
        *,
        forward: bool = False,
        dialect: str = "",
        timeout: float | None = None,
        identity: Identity | None = None,
    ) -> Reply:
        """Hands an envelope to the daemon and waits for a result per action.

        With forward the reply has the envelope to pass on as well. An encoded envelope, bytes, is taken
        too; with a dialect, whatever that dialect's parser reads. ValueError: the envelope is malformed.
        """
        if not dialect and not encoded(hints):
            hints = self._checked(hints)

        def request(seq: int) -> tuple[Any, ...]:
            return self._submit_request(hints, request_id, FORWARD if forward else 0, identity, dialect, seq)

        message, error = self._call(request, timeout, "submitted")
        try:
            return self._reply(message, error)
        except ValueError as e:
            if not error and message[2] == 1:
                self._count_malformed()
                raise
            return self._odd(e)
        except Exception as e:
            return self._odd(e)

    def status(
        self, request_id: str, *, timeout: float | None = None, identity: Identity | None = None
    ) -> Status:
        """What the daemon keeps for a request."""

        def request(seq: int) -> tuple[Any, ...]:
            return (STATUS, seq, 0, *self._who(identity), text_id(request_id))

        message, error = self._call(request, timeout)
        try:
            return self._status(message, error)
        except Exception as e:
            return Status("unknown", error=self._odd(e).error)

    def discard(
        self, request_id: str, *, timeout: float | None = None, identity: Identity | None = None
    ) -> str:
        """discard_hint with an answer: "" when it is done, else what went wrong."""

        def request(seq: int) -> tuple[Any, ...]:
            return (DISCARD, seq, 0, *self._who(identity), text_id(request_id))

        return self._done(*self._call(request, timeout, "discarded"))

    def finished(
        self,
        request_id: str,
        *,
        aborted: bool = False,
        timeout: float | None = None,
        identity: Identity | None = None,
    ) -> str:
        """finish with an answer: "" when it is done, else what went wrong."""

        def request(seq: int) -> tuple[Any, ...]:
            return (FINISH, seq, 0, *self._who(identity), text_id(request_id), bool(aborted))

        return self._done(*self._call(request, timeout, "finished"))

    def formulate(self, context: Any, *, output: str = "", timeout: float | None = None) -> Formulated:
        """The envelope that the policies attach to a routed request.

        context is what the router knows of it, a mapping or encoded bytes. output: json or msgpack, of
        envelope_bytes; "": as the context came, msgpack for a mapping. It raises nothing.
        """
        message, error = self._call(lambda seq: formulate_request(seq, [context], output, False), timeout)
        try:
            return formulated(message, error)
        except Exception as e:
            return Formulated(error=self._odd(e).error)

    def formulate_batch(
        self, contexts: Sequence[Any], *, output: str = "", timeout: float | None = None
    ) -> tuple[Formulated, ...]:
        """One for each of at most 1,024 contexts, in order, in one exchange."""
        message, error = self._call(lambda seq: formulate_request(seq, contexts, output, True), timeout)
        try:
            return formulated_batch(message, error, len(contexts))
        except Exception as e:
            return (Formulated(error=self._odd(e).error),) * len(contexts)

    def ping(self, *, timeout: float | None = None) -> bool:
        """Whether the daemon answers within the deadline."""
        return not self._done(*self._call(lambda seq: (PING, seq), timeout))

    def close(self) -> None:
        """Sends what can be sent at once, and closes. Calls after it open the connection anew."""
        flusher, self._flusher = self._flusher, None
        if flusher is not None:
            flusher.stop()
        side, self._side = self._side, None
        if side is not None:
            self._past = self._past.plus(side.counters())
            side.shut()
        if not self._free():
            return
        with self._lock:
            link = self._link
            try:
                self._drain()
                if link.frames:
                    link.push()
                link.lose("the client closed it")
                link.abandon()
            except Exception as e:
                link.broken = type(e)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except BaseException:  # an interpreter that goes down has less than it takes
            pass

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (vars(self._options),)  # a spawned process gets a client of its own


def _rebuild(options: Mapping[str, Any]) -> Client:
    return Client(**options)
