"""What the daemon answers, and what the client counted."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from ._codec import codec

_REASONS = (
    "",
    "unsupported_action_type",
    "unsupported_action_version",
    "malformed_action",
    "invalid_payload",
    "source_not_allowed",
    "conflicting_source",
    "limit_exceeded",
    "superseded",
    "handler_error",
    "handler_trap",
    "handler_out_of_fuel",
    "handler_unavailable",
    "handler_timeout",
    "request_finished",
    "not_found",
    "state_conflict",
    "unavailable",
)
_STATES = ("none", "live", "failed", "finished")
_ERRORS = (
    "",
    "malformed",
    "bad_request",
    "unknown_op",
    "frame_too_large",
    "frame_timeout",
    "too_many_connections",
    "draining",
    "unsupported_version",
    "hello_expected",
    "unknown_dialect",
    "unavailable",
    "fatal",
    "reply_too_large",
    "overloaded",
    "unencodable",
    "not_stored",
)
LEGS = {"": 0, "aggregated": 1, "prefill": 2, "decode": 3}


def reason_name(code: int) -> str:
    """The name of a reason; later daemons may send codes that are not known here."""
    return _REASONS[code] if 0 <= code < len(_REASONS) else f"reason_{code}"


def error_name(code: int) -> str:
    """The name of an error frame's code."""
    return _ERRORS[code] if 0 <= code < len(_ERRORS) else f"error_{code}"


class Identity(NamedTuple):
    """Who asks: with the request id, the key of what the daemon keeps.

    A prefill and a decode leg share a request id, and a retry reuses it; they do not share hints.
    """

    engine: str = ""
    dp_rank: int = 0
    leg: str = ""
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one action."""

    action_id: str
    action_type: str
    action_version: str
    accepted: bool
    reason: str
    """Why it was rejected, a name of the ABI; "" when it was accepted."""
    detail: str
    guest: str
    """Who judged it; "" when it reached no guest."""
    generation: int
    fuel: int
    duration_ns: int

    @staticmethod
    def from_row(row: Any) -> Result:
        action_id, kind, version, status, reason, detail, guest, generation, fuel, took = row
        for text in (action_id, kind, version, detail, guest):
            if not isinstance(text, str):
                raise ValueError("a text of a result is no string")
        for number in (status, reason, generation, fuel, took):
            if not isinstance(number, int):
                raise ValueError("a number of a result is no integer")
        return Result(
            action_id, kind, version, status == 1, reason_name(reason), detail, guest, generation, fuel, took
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a submit that waits. `error` is "" when the daemon answered in time."""

    results: tuple[Result, ...] = ()
    """One per action, in the envelope's order."""
    forward_bytes: bytes | None = None
    """The envelope to pass on, encoded, when it was asked for."""
    error: str = ""
    """One of "timeout", "unavailable" and "invalid", or the name of the daemon's refusal."""
    detail: str = ""

    @property
    def ok(self) -> bool:
        return not self.error

    @property
    def accepted(self) -> tuple[Result, ...]:
        return tuple(r for r in self.results if r.accepted)

    @property
    def rejected(self) -> tuple[Result, ...]:
        return tuple(r for r in self.results if not r.accepted)

    @property
    def forward(self) -> dict[str, Any] | None:
        """The envelope to pass on: accepted actions in order, as their handlers left them. None without one."""
        return _decoded(self.forward_bytes)


@dataclass(frozen=True, slots=True)
class Dropped:
    """An action of a policy that is not in the envelope."""

    action_id: str
    action_type: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """What one policy had to do with an envelope."""

    name: str
    actions: int
    """How many of its actions are in the envelope."""
    dropped: tuple[Dropped, ...]
    error: str
    """Why it has no part in it at all; "" when it has."""
    detail: str
    generation: int
    fuel: int
    duration_ns: int

    @staticmethod
    def from_row(row: Any) -> PolicyResult:
        name, actions, dropped, reason, detail, generation, fuel, took = row
        if not isinstance(name, str) or not isinstance(actions, int):
            raise ValueError("a policy's row has a field of the wrong type")
        left_out = tuple(Dropped(i, kind, reason_name(why), text) for i, kind, why, text in dropped)
        return PolicyResult(name, actions, left_out, reason_name(reason), detail, generation, fuel, took)


@dataclass(frozen=True, slots=True)
class Formulated:
    """The envelope to attach to a request. `error` is "" when the daemon answered in time."""

    envelope_bytes: bytes | None = None
    """The envelope, encoded; None when there is none to attach."""
    policies: tuple[PolicyResult, ...] = ()
    error: str = ""
    detail: str = ""

    @property
    def ok(self) -> bool:
        return not self.error

    @property
    def envelope(self) -> dict[str, Any] | None:
        return _decoded(self.envelope_bytes)

    @staticmethod
    def from_answer(code: Any, *rest: Any) -> Formulated:
        """One answer, from its code on."""
        if code != 0:
            return Formulated(error=error_name(code), detail=str(rest[0]))
        body, policies = rest
        if body is not None and not isinstance(body, bytes):
            raise ValueError("an envelope that is no bytes")
        return Formulated(body, tuple(PolicyResult.from_row(row) for row in policies))


def _decoded(body: bytes | None) -> dict[str, Any] | None:
    """None for what is no envelope, too: whoever asks has no use for an exception."""
    if not body:
        return None
    try:
        whole = json.loads(body) if body[:1] == b"{" else codec()[2](body)
    except Exception:
        return None
    return whole if isinstance(whole, dict) and isinstance(whole.get("actions"), list) else None


@dataclass(frozen=True, slots=True)
class Status:
    """What the daemon keeps for a request. `state` is "unknown" when it did not answer: see `error`."""

    state: str
    cause: str = ""
    hashes: int = 0
    has_source: bool = False
    no_retain: bool = False
    submitted_ns: int = 0
    expires_ns: int = 0
    error: str = ""

    @staticmethod
    def from_reply(reply: Any) -> Status:
        _, _, _, state, cause, hashes, has_source, no_retain, submitted, expires = reply
        name = _STATES[state] if 0 <= state < len(_STATES) else f"state_{state}"
        return Status(
            name, reason_name(cause), int(hashes), bool(has_source), bool(no_retain), int(submitted), int(expires)
        )


@dataclass(frozen=True, slots=True)
class Counters:
    """A snapshot. Two sums hold at every moment:

    requests == sent + dropped + pending, and
    calls == answered + refused + timeouts + unavailable.
    """

    requests: int = 0
    """Well-formed requests of every kind."""
    submitted: int = 0
    """Those that carry an envelope."""
    discarded: int = 0
    finished: int = 0
    sent: int = 0
    """Frames handed to the kernel whole. What a killed daemon had not read is lost all the same."""
    pending: int = 0
    """Frames in this process that were not handed to the kernel yet."""
    dropped_unavailable: int = 0
    """No daemon, and the next try to connect is not due."""
    dropped_full: int = 0
    """The daemon reads too slowly, or is paused, and the buffer is full."""
    dropped_lost: int = 0
    """They were pending when the connection ended and no other could be made."""
    dropped_busy: int = 0
    """Another thread held the client for longer than the deadline."""
    dropped_invalid: int = 0
    """They cannot be encoded, or an id is longer than the protocol allows."""
    dropped_too_large: int = 0
    """Larger than a frame may be."""
    dropped_error: int = 0
    """A defect in this client, which is logged once."""
    calls: int = 0
    """Requests that waited, or would have, for an answer."""
    answered: int = 0
    refused: int = 0
    """The daemon answered with an error."""
    timeouts: int = 0
    """The deadline passed."""
    unavailable: int = 0
    """Nothing was waited for, or the connection ended meanwhile."""
    malformed: int = 0
    """Envelopes that raised ValueError. They are in no other counter."""
    late_replies: int = 0
    connects: int = 0
    disconnects: int = 0
    protocol_errors: int = 0
    """Answers that are none of this protocol."""

    def __str__(self) -> str:
        """Those that are not zero."""
        return ", ".join(f"{f.name}={n}" for f in fields(self) if (n := getattr(self, f.name))) or "nothing"

    @property
    def dropped(self) -> int:
        return sum(getattr(self, f.name) for f in fields(self) if f.name.startswith("dropped_"))

    def plus(self, other: Counters) -> Counters:
        """Both together, as of two connections."""
        return Counters(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def adds_up(self) -> bool:
        return (
            self.requests == self.sent + self.dropped + self.pending
            and self.calls == self.answered + self.refused + self.timeouts + self.unavailable
        )
