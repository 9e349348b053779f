"""What the clients share: requests in, replies out, counters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from ._codec import DISCARD, FINISH, FORMULATE, FORMULATE_BATCH, MSGPACK, ONEWAY, SUBMIT
from ._envelope import envelope
from ._link import Link
from ._options import Options, identity
from .results import Counters, Formulated, Identity, Reply, Result, Status, error_name

_COUNTED = tuple(f.name for f in fields(Counters) if f.name != "pending")
_MAX_ID = 512
_OUTPUTS = {"": 0, "json": 1, "msgpack": 2}


class Base:
    """Holds the options and the link; knows no way to wait."""

    _options: Options
    _link: Link
    _identity: tuple[str, int, int, int]

    def _setup(self, options: Options) -> None:
        self._options = options
        self._identity = identity(Identity(options.engine, options.dp_rank, options.leg))
        self._link = Link(
            options.path,
            options.name,
            options.max_buffer,
            (options.backoff_min, options.backoff_max),
            options.reconnect_after,
            options.encoder,
        )

    @property
    def options(self) -> Options:
        return self._options

    def counters(self) -> Counters:
        """What happened so far in this process; a forked child begins at zero."""
        link = self._link
        return Counters(pending=link.frames, **{name: getattr(link, name) for name in _COUNTED})

    @property
    def server_version(self) -> str:
        """The daemon's version; "" until one has answered."""
        return self._link.server

    def _who(self, who: Identity | None) -> tuple[str, int, int, int]:
        return self._identity if who is None else identity(who)

    def _checked(self, hints: Any) -> Any:
        try:
            return envelope(hints)
        except ValueError:
            self._count_malformed()
            raise

    def _odd(self, e: Exception) -> Reply:
        """Counts a reply that cannot be read."""
        raise NotImplementedError

    def _count_malformed(self) -> None:
        self._link.malformed += 1

    def _submit_request(
        self, hints: Any, request_id: str | None, flags: int, who: Identity | None, dialect: str, seq: int
    ) -> tuple[Any, ...]:
        body: Any
        if encoded(hints):
            form, body = 0, bytes(hints)
        elif isinstance(hints, dict) and dialect:
            form, body = MSGPACK, hints
        else:
            form, body = MSGPACK, self._checked(hints)
        return (SUBMIT, seq, flags, *self._who(who), text_id(request_id), form, dialect, body)

    def _reply(self, message: Any, error: str) -> Reply:
        """The answer to a submit. ValueError when the daemon found the envelope malformed."""
        if error:
            return Reply(error=error)
        if message[2] != 0:
            text = str(message[3])
            if message[2] == 1:
                raise ValueError(text)
            return Reply(error=error_name(message[2]), detail=text)
        _, _, _, rows, forward = message
        if forward is not None and not isinstance(forward, bytes):
            raise TypeError("an envelope that is no bytes")
        return Reply(tuple(Result.from_row(row) for row in rows), forward)

    def _status(self, message: Any, error: str) -> Status:
        if not error and message[2] != 0:
            error = error_name(message[2])
        return Status("unknown", error=error) if error else Status.from_reply(message)


def encoded(hints: Any) -> bool:
    """Whether it is bytes, and not the thing itself; asks the type alone, since an object may raise."""
    return issubclass(type(hints), (bytes, bytearray, memoryview))


def formulate_request(seq: int, contexts: Sequence[Any], output: str, batch: bool) -> tuple[Any, ...]:
    """ValueError for what is no routing context, or an unknown output."""
    bodies: list[Any] = []
    for context in contexts:
        if isinstance(context, (bytes, bytearray, memoryview)):
            bodies.append(bytes(context))
        elif isinstance(context, Mapping):
            bodies.append(context if type(context) is dict else dict(context))
        else:
            raise ValueError(f"a routing context is a mapping or bytes, not {type(context).__name__}")
    if output not in _OUTPUTS:
        raise ValueError(f"output is one of {', '.join(filter(None, _OUTPUTS))}, not {output!r}")
    if batch:
        return (FORMULATE_BATCH, seq, 0, 0, _OUTPUTS[output], bodies)
    return (FORMULATE, seq, 0, 0, _OUTPUTS[output], bodies[0])


def formulated(message: Any, error: str) -> Formulated:
    return Formulated(error=error) if error else Formulated.from_answer(*message[2:])


def formulated_batch(message: Any, error: str, n: int) -> tuple[Formulated, ...]:
    if error or message[2] != 0:
        return (formulated(message, error),) * n
    answers = tuple(Formulated.from_answer(*answer) for answer in message[3])
    if len(answers) != n:
        raise ValueError(f"{len(answers)} answers to {n} contexts")
    return answers


def text_id(request_id: Any) -> str:
    """A request id as the protocol has it: "" for none. ValueError when it is too long."""
    if request_id is None:
        return ""
    try:
        text = request_id if type(request_id) is str else str(request_id)
    except Exception as e:
        raise ValueError(f"a request id that is no text: {e!r}") from e
    if len(text) > _MAX_ID // 4 and len(text.encode()) > _MAX_ID:
        raise ValueError(f"a request id of over {_MAX_ID} bytes")
    return text


def discard_request(who: Sequence[Any], request_id: Any) -> tuple[Any, ...]:
    return (DISCARD, 0, ONEWAY, *who, text_id(request_id))


def finish_request(who: Sequence[Any], request_id: Any, aborted: bool) -> tuple[Any, ...]:
    return (FINISH, 0, ONEWAY, *who, text_id(request_id), bool(aborted))
