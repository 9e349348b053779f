"""The client that has no daemon: the same methods, and nothing behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ._base import encoded
from ._envelope import envelope
from .blocks import Block, Fetched, Outcome, Outcomes, Stored
from .results import Counters, Formulated, Identity, Reply, Status


class NullClient:
    """Judges the envelope's shape as Client does, drops it, and counts it.

    An engine that runs without kvrt holds one of these instead of a test for None.
    """

    def __init__(self, *_: Any, **__: Any) -> None:
        self._submitted = self._discarded = self._finished = self._described = 0
        self._calls = self._malformed = 0

    def submit_hint(self, hints: Any, request_id: str | None = None, *, identity: Identity | None = None) -> None:
        try:
            envelope(hints)
        except ValueError:
            self._malformed += 1
            raise
        self._submitted += 1

    def discard_hint(self, request_id: str, *, identity: Identity | None = None) -> None:
        self._discarded += 1

    def finish(self, request_id: str, *, aborted: bool = False, identity: Identity | None = None) -> None:
        self._finished += 1

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
        if not dialect and not encoded(hints):
            self.submit_hint(hints, request_id)
        else:
            self._submitted += 1
        self._calls += 1
        return Reply(error="unavailable")

    def status(self, request_id: str, *, timeout: float | None = None, identity: Identity | None = None) -> Status:
        self._calls += 1
        return Status("unknown", error="unavailable")

    def discard(self, request_id: str, *, timeout: float | None = None, identity: Identity | None = None) -> str:
        self._discarded += 1
        self._calls += 1
        return "unavailable"

    def finished(
        self,
        request_id: str,
        *,
        aborted: bool = False,
        timeout: float | None = None,
        identity: Identity | None = None,
    ) -> str:
        self._finished += 1
        self._calls += 1
        return "unavailable"

    def formulate(self, context: Any, *, output: str = "", timeout: float | None = None) -> Formulated:
        self._calls += 1
        return Formulated(error="unavailable")

    def formulate_batch(
        self, contexts: Sequence[Any], *, output: str = "", timeout: float | None = None
    ) -> tuple[Formulated, ...]:
        self._calls += 1
        return (Formulated(error="unavailable"),) * len(contexts)

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
        self._described += 1

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
        self._described += 1
        self._calls += 1
        return "unavailable"

    def outcomes(
        self,
        request_id: str | None = None,
        *,
        message_id: str = "",
        limit: int = 0,
        timeout: float | None = None,
        identity: Identity | None = None,
    ) -> Outcomes:
        self._calls += 1
        return Outcomes(error="unavailable")

    def follow(
        self, request_id: str | None = None, *, message_id: str = "", identity: Identity | None = None
    ) -> NullFollowing:
        return NullFollowing()

    def fetch(
        self,
        request_id: str,
        hashes: Any = (),
        *,
        tenant: str = "",
        namespace: str = "",
        block_bytes: int = 0,
        timeout: float = 0.0,
        identity: Identity | None = None,
    ) -> Fetched:
        self._calls += 1
        return Fetched(error="unavailable")

    def put_block(
        self, block_hash: int, block: Any, *, tenant: str = "", namespace: str = "", timeout: float = 0.0
    ) -> Stored:
        self._calls += 1
        return Stored(error="unavailable")

    def get_block(self, block_hash: int, *, tenant: str = "", namespace: str = "", timeout: float = 0.0) -> Block:
        self._calls += 1
        return Block(error="unavailable")

    def ping(self, *, timeout: float | None = None) -> bool:
        self._calls += 1
        return False

    def flush(self) -> bool:
        return True

    def close(self) -> None:
        pass

    def __enter__(self) -> NullClient:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @property
    def server_version(self) -> str:
        return ""

    def counters(self) -> Counters:
        answerless = self._calls
        others = self._submitted + self._discarded + self._finished + self._described
        return Counters(
            requests=others,
            submitted=self._submitted,
            discarded=self._discarded,
            finished=self._finished,
            dropped_unavailable=others,
            calls=answerless,
            unavailable=answerless,
            malformed=self._malformed,
        )


class NullFollowing:
    """Nothing comes."""

    lost = restarts = 0

    def poll(self, wait: float = 1.0, *, limit: int = 0) -> Outcomes:
        return Outcomes(error="unavailable")

    def __iter__(self) -> Iterator[Outcome]:
        return iter(())

    def close(self) -> None:
        pass

    def __enter__(self) -> NullFollowing:
        return self

    def __exit__(self, *_: object) -> None:
        pass
