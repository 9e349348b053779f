"""kvrt in front of whoever executes hints: a KVCR instance, a tier, anything with submit_hint.

    kvcr = kvrt.guard.Guard(KVCR(config, bindings, backends), kvrt.Client())
    kvcr.submit_hint(request.kv_hints, request.request_id)

kvrt judges the envelope, and what it refuses never reaches the executor.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

from .client import Client
from .null import NullClient
from .results import Reply
from .retained import Retained, retained

log = logging.getLogger("kvrt")

_CLAIMS = ("kv.retain", "kv.evict")
_FETCHES = ("kv.fetch", "kv.source_locations")
_WARNINGS = 64  # texts that are remembered; types and reasons are the sender's to choose


class Executor(Protocol):
    """Whoever acts on hints."""

    def submit_hint(self, hints: Mapping[str, object], request_id: str | None = None) -> Any: ...

    def discard_hint(self, request_id: str) -> Any: ...


@dataclass(frozen=True, slots=True)
class Passage:
    """What became of the envelopes: envelopes == passed + withheld + unjudged, unless it raised."""

    envelopes: int = 0
    passed: int = 0
    """Handed to the executor, as kvrt left them."""
    withheld: int = 0
    """Nothing was left in them for the executor."""
    unjudged: int = 0
    """The daemon did not answer in time."""
    unjudged_passed: int = 0
    """Those of them that were handed on all the same: without_daemon="pass"."""
    actions_rejected: int = 0
    malformed: int = 0
    """They raised ValueError before anybody was asked to execute them."""
    silenced: int = 0
    """What raised ValueError, here or in the executor, and was logged instead: quiet."""

    def __str__(self) -> str:
        """Those that are not zero."""
        return ", ".join(f"{f.name}={n}" for f in fields(self) if (n := getattr(self, f.name))) or "nothing"


class Guard:
    """An executor behind kvrt. What is not submit_hint or discard_hint is the executor's own."""

    def __init__(
        self,
        executor: Executor,
        client: Client | NullClient,
        *,
        without_daemon: str = "drop",
        fetch_only: bool = True,
        quiet: bool = False,
        claims: Retained | None = None,
    ) -> None:
        """without_daemon: "drop" hands nothing on that was not judged, "pass" everything.

        fetch_only: an envelope without an accepted kv.fetch is not handed on, since KVCR raises
        ValueError for one. quiet: a ValueError is logged and counted instead of raised, for a scheduler
        that does not expect one. claims: where accepted kv.retain and kv.evict are noted for a cache policy.
        """
        if without_daemon not in ("drop", "pass"):
            raise ValueError(f"without_daemon must be drop or pass, not {without_daemon!r}")
        self._executor = executor
        self._submit, self._discard = executor.submit_hint, executor.discard_hint
        self._client = client
        self._pass = without_daemon == "pass"
        self._fetch_only = fetch_only
        self._quiet = quiet
        self._claims = retained if claims is None else claims
        self._passage = Passage()
        self._lock = threading.Lock()
        self._warned: set[tuple[str, str]] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._executor, name)

    def submit_hint(self, hints: Any, request_id: str | None = None) -> None:
        """Asks kvrt, for at most the client's deadline, and hands on what it accepted.

        Raises what the executor raises, and ValueError for a malformed envelope.
        """
        try:
            self._judge(hints, request_id)
        except ValueError as e:
            if not self._quiet:
                raise
            self._count(silenced=1)
            self._warn("envelope", "ValueError", str(e))

    def _judge(self, hints: Any, request_id: str | None) -> None:
        try:
            reply = self._client.submit(hints, request_id, forward=True)
            forward = reply.forward if reply.ok else None
        except ValueError:
            self._count(envelopes=1, malformed=1)
            raise
        if not reply.ok:
            self._count(envelopes=1, unjudged=1, unjudged_passed=int(self._pass))
            if self._pass:
                self._submit(hints, request_id)
            return
        accepted = _accepted(reply, forward)
        self._report(reply, request_id)
        self._claims.take([a for a in accepted if a.get("action_type") in _CLAIMS], request_id)
        wanted = any(a.get("action_type") in _FETCHES for a in accepted) if self._fetch_only else bool(accepted)
        rejected = len(reply.results) - len(reply.accepted)
        if forward is None or not wanted:
            self._count(envelopes=1, withheld=1, actions_rejected=rejected)
            return
        self._count(envelopes=1, passed=1, actions_rejected=rejected)
        self._submit(forward, request_id)

    def discard_hint(self, request_id: str) -> None:
        """Both forget the request's hints; what it asked to retain begins."""
        self._claims.over(request_id)
        self._client.discard_hint(request_id)
        self._discard(request_id)

    @property
    def client(self) -> Client | NullClient:
        return self._client

    @property
    def passage(self) -> Passage:
        return self._passage

    def _count(self, **more: int) -> None:
        with self._lock:
            now = self._passage
            self._passage = replace(now, **{name: getattr(now, name) + n for name, n in more.items()})

    def _report(self, reply: Reply, request_id: str | None) -> None:
        for r in reply.rejected:
            log.debug(
                "hint rejected: request %s, action %s, %s@%s: %s: %s",
                request_id, r.action_id, r.action_type, r.action_version, r.reason, r.detail,
            )  # fmt: skip
            self._warn(r.action_type[:64], r.reason, r.detail)

    def _warn(self, kind: str, reason: str, detail: str) -> None:
        """Once for each kind and reason."""
        if (kind, reason) not in self._warned and len(self._warned) < _WARNINGS:
            self._warned.add((kind, reason))
            log.warning("a %s was rejected, %s: %s; others like it are logged at debug", kind, reason, detail)


def _accepted(reply: Reply, forward: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """The actions of the envelope to pass on that a guest accepted: unknown types may be in it as well."""
    left = [(r.action_id, r.action_type) for r in reply.accepted]
    actions = []
    for action in forward["actions"] if forward else ():
        key = (str(action.get("action_id", "")), action.get("action_type")) if isinstance(action, Mapping) else None
        if key in left:
            left.remove(key)
            actions.append(action)
    return actions


def guard(executor: Any, client: Client | NullClient, **options: Any) -> Guard:
    """Puts a Guard in front of an executor in place, for those who hold it already."""
    front = Guard(executor, client, **options)
    executor.submit_hint = front.submit_hint
    executor.discard_hint = front.discard_hint
    return front
