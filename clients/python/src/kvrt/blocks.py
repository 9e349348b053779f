"""Blocks of requests: what the daemon is told of them, what it fetched, and what became of each hint."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ._codec import DESCRIBE, FETCH, FOLLOW, GET_BLOCK, ONEWAY, OUTCOMES, PUT_BLOCK
from .results import LEGS, Identity, error_name, reason_name

_OUTCOME_STATES = ("open", "completed", "partial", "failed", "superseded", "discarded", "expired")
_MAX_NAMESPACE = 512
_LEG_NAMES = {number: name for name, number in LEGS.items()}

# What a fetch may take: the daemon gives up after 10 s. In seconds.
FETCH_TIMEOUT = 12.0
# Copying a block through the socket.
BLOCK_TIMEOUT = 1.0
MOST_OUTCOMES = 1024
# Milliseconds that the daemon waits for an outcome, and seconds that an answer has beyond it.
MOST_WAIT = 10_000
ANSWER_TIME = 2.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one accepted kv.fetch."""

    identity: Identity
    request_id: str
    message_id: str
    index: int
    """Of the action in its envelope."""
    state: str
    """open, completed, partial, failed, superseded, discarded or expired."""
    reason: str
    """Of partial and failed, a name of the ABI; else ""."""
    blocks: int
    """How many the hint names."""
    fetched: int
    """How many of them have come."""
    bytes: int
    accepted_ns: int
    """Nanoseconds since 1970, as ended_ns, which is 0 while the hint is open."""
    ended_ns: int

    @property
    def open(self) -> bool:
        return self.state == "open"

    @staticmethod
    def from_row(row: Any) -> Outcome:
        engine, dp_rank, leg, attempt, request, message, *rest = row
        index, state, reason, blocks, fetched, size, accepted, ended = (int(n) for n in rest)
        for text in (engine, request, message):
            if not isinstance(text, str):
                raise ValueError("a text of an outcome is no string")
        name = _OUTCOME_STATES[state] if 0 <= state < len(_OUTCOME_STATES) else f"state_{state}"
        who = Identity(engine, int(dp_rank), _LEG_NAMES.get(leg, f"leg_{leg}"), int(attempt))
        return Outcome(who, request, message, index, name, reason_name(reason), blocks, fetched, size, accepted, ended)


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Outcomes, the hint that was accepted last first. `error` is "" when the daemon answered in time."""

    outcomes: tuple[Outcome, ...] = ()
    error: str = ""
    detail: str = ""

    @property
    def ok(self) -> bool:
        return not self.error

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.outcomes)

    def __len__(self) -> int:
        return len(self.outcomes)

    @staticmethod
    def from_reply(message: Any, error: str) -> Outcomes:
        if error or message[2] != 0:
            return Outcomes(error=error or error_name(message[2]), detail=_text(message))
        return Outcomes(tuple(Outcome.from_row(row) for row in message[3]))


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a fetch brought. `error` is "" when the daemon answered in time."""

    here: int = 0
    """Blocks that were in the daemon's store already."""
    fetched: int = 0
    """Blocks that have come."""
    bytes: int = 0
    states: tuple[bool, ...] = ()
    """For each of the hashes that were named, whether its block is in the store now."""
    why: str = ""
    """Why not all are there; "" when they are."""
    error: str = ""
    detail: str = ""

    @property
    def ok(self) -> bool:
        """Everything that was asked for is in the daemon's store."""
        return not self.error and not self.why

    @staticmethod
    def from_reply(message: Any, error: str) -> Fetched:
        if error or message[2] != 0:
            return Fetched(error=error or error_name(message[2]), detail=_text(message))
        _, _, _, here, fetched, size, states, why = message
        return Fetched(int(here), int(fetched), int(size), tuple(s != 0 for s in states or b""), str(why))


@dataclass(frozen=True, slots=True)
class Block:
    """A block of the daemon's store. `data` is None when it is not there, or `error` says more."""

    data: bytes | None = None
    error: str = ""
    detail: str = ""

    @property
    def ok(self) -> bool:
        return not self.error

    @staticmethod
    def from_reply(message: Any, error: str) -> Block:
        if error or message[2] != 0:
            return Block(error=error or error_name(message[2]), detail=_text(message))
        if message[3] is not None and not isinstance(message[3], bytes):
            raise ValueError("a block that is no bytes")
        return Block(message[3])


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of a block that was put. `stored` is False too for one that was there already."""

    stored: bool = False
    error: str = ""
    detail: str = ""

    @property
    def ok(self) -> bool:
        return not self.error

    @staticmethod
    def from_reply(message: Any, error: str) -> Stored:
        if error or message[2] != 0:
            return Stored(error=error or error_name(message[2]), detail=_text(message))
        return Stored(bool(message[3]))


def described(message: Any, error: str) -> str:
    """ "" when the daemon keeps the description."""
    if error or message[2] != 0:
        return error or _text(message) or error_name(message[2])
    return "" if message[3] else "not_kept"


def _text(message: Any) -> str:
    return str(message[3]) if message is not None and len(message) > 3 else ""


# Requests. ValueError for what the protocol cannot carry.


def hash_bytes(hashes: Any) -> bytes:
    """Block hashes as the protocol has them: 8 bytes each, little-endian.

    Takes what is bytes already, arrays of 8-byte integers (numpy's, array.array's) and any iterable of integers.
    """
    try:
        if isinstance(hashes, (bytes, bytearray, memoryview)) or hasattr(hashes, "__array_interface__"):
            view = memoryview(hashes)
            if view.itemsize not in (1, 8) or view.format[-1:] not in "BcQqLl" or view.nbytes % 8:
                raise ValueError("8 bytes for each are wanted")
            if view.itemsize == 1:
                return view.tobytes()
            hashes = view.tolist()
        numbers = hashes if type(hashes) is list else list(hashes)
        return struct.pack(f"<{len(numbers)}Q", *[n & _LOW if n < 0 else n for n in numbers])
    except Exception as e:
        raise ValueError(f"block hashes are integers of 64 bits: {e}") from e


_LOW = (1 << 64) - 1


def _number(value: Any, most: int, what: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or not 0 <= (n := int(value)) <= most:
        raise ValueError(f"{what} is an integer in [0, {most}], not {value!r}")
    return n


def _space(tenant: Any, namespace: Any) -> tuple[str, str]:
    for text in (tenant, namespace):
        if not isinstance(text, str) or len(text.encode()) > _MAX_NAMESPACE:
            raise ValueError(f"a tenant or a namespace is a string of at most {_MAX_NAMESPACE} bytes")
    return tenant, namespace


def describe_request(
    seq: int, who: Sequence[Any], request_id: str, hashes: Any, block_size: int, tenant: str, namespace: str
) -> tuple[Any, ...]:
    size = _number(block_size, (1 << 31) - 1, "block_size")
    space = _space(tenant, namespace)
    return (DESCRIBE, seq, 0 if seq else ONEWAY, *who, request_id, *space, size, hash_bytes(hashes))


def outcomes_request(seq: int, who: Sequence[Any], request_id: str, message_id: str, limit: int) -> tuple[Any, ...]:
    if not isinstance(message_id, str) or len(message_id.encode()) > 512:
        raise ValueError("a message id is a string of at most 512 bytes")
    return (OUTCOMES, seq, 0, *who, request_id, message_id, _number(limit, MOST_OUTCOMES, "limit"))


def fetch_request(
    seq: int, who: Sequence[Any], request_id: str, hashes: Any, tenant: str, namespace: str, block_bytes: int
) -> tuple[Any, ...]:
    size = _number(block_bytes, 1 << 30, "block_bytes")
    return (FETCH, seq, 0, *who, request_id, *_space(tenant, namespace), size, hash_bytes(hashes))


def put_request(seq: int, tenant: str, namespace: str, block_hash: int, block: Any) -> tuple[Any, ...]:
    data = bytes(memoryview(block))
    if not data:
        raise ValueError("a block has at least one byte")
    return (PUT_BLOCK, seq, 0, *_space(tenant, namespace), _number(block_hash, _LOW, "a block hash"), data)


def get_request(seq: int, tenant: str, namespace: str, block_hash: int) -> tuple[Any, ...]:
    return (GET_BLOCK, seq, 0, *_space(tenant, namespace), _number(block_hash, _LOW, "a block hash"))


def follow_request(
    seq: int, who: Sequence[Any], request_id: str, message_id: str, limit: int, wait: float
) -> tuple[Any, ...]:
    _, _, _, *rest = outcomes_request(seq, who, request_id, message_id, limit)
    return (FOLLOW, seq, 0, *rest, max(0, min(MOST_WAIT, int(wait * 1000))))


class Lost:
    """What a follower has missed, over the connections that it has had."""

    def __init__(self) -> None:
        self.outcomes = 0
        self.restarts = 0
        self._dropped = 0
        self._connection = 0

    def take(self, message: Any, error: str, connection: int) -> Outcomes:
        answer = Outcomes.from_reply(message, error)
        if connection != self._connection:
            self.restarts += self._connection != 0
            self._connection, self._dropped = connection, 0
        if answer.ok:
            dropped = int(message[4])
            self.outcomes += dropped - self._dropped
            self._dropped = dropped
        return answer
