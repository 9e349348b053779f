"""The options of every client."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from .results import LEGS, Identity

SYSTEM_FOLDER = "/run/kvrt"


def default_socket() -> str:
    """The daemon's own rule: KVRT_SOCKET, else the first folder that this user can write to."""
    if path := os.environ.get("KVRT_SOCKET"):
        return path
    user = os.environ.get("XDG_RUNTIME_DIR", "")
    for folder in (SYSTEM_FOLDER, user):
        if os.path.isabs(folder) and os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK):
            return os.path.join(folder, "kvrt.sock")
    return f"/tmp/kvrt-{os.geteuid()}/kvrt.sock"


@dataclass(frozen=True)
class Options:
    """How a client behaves. Times are in seconds, sizes in bytes."""

    path: str = field(default_factory=default_socket)
    """The daemon's Unix socket."""
    engine: str = ""
    """The serving engine, as it names itself; with the request id, the key of what is kept."""
    dp_rank: int = 0
    leg: str = ""
    """aggregated, prefill or decode; "" when it is not told."""
    name: str = "kvrt-python"
    """What the client calls itself."""
    deadline: float = 0.002
    """The most that any call may wait."""
    max_buffer: int = 1 << 20
    """Of frames that the daemon has not taken yet. Those that find no room are dropped and counted."""
    flush_interval: float = 0.05
    """discard_hint and finish ride with the next frame, or leave within this time by a small thread,
    which starts when it is first needed. 0: each is sent at once, and there is never a thread."""
    linger: float = 0.001
    """submit_hint sends at once; when hints come fast after one another, those after the first may wait
    so long for others, and leave together by the same thread. 0, or flush_interval=0: each is sent at once."""
    backoff_min: float = 0.05
    """Between tries to connect: doubled from here, each time by 0.5 to 1.5 at random ..."""
    backoff_max: float = 2.0
    """... to here."""
    reconnect_after: float = 5.0
    """A daemon that neither reads nor answers for this long is connected to anew."""
    encoder: str = ""
    """msgspec or msgpack; "": msgspec where it is installed."""

    def __post_init__(self) -> None:
        if self.leg not in LEGS:
            raise ValueError(f"leg must be one of {', '.join(filter(None, LEGS))}, not {self.leg!r}")
        if self.encoder not in ("", "msgspec", "msgpack"):
            raise ValueError(f"encoder must be msgspec or msgpack, not {self.encoder!r}")
        if not isinstance(self.engine, str) or len(self.engine.encode()) > 256:
            raise ValueError("engine must be a string of at most 256 bytes")
        for name in ("deadline", "flush_interval", "linger", "backoff_min", "backoff_max", "reconnect_after"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must not be negative")
        identity(Identity(self.engine, self.dp_rank, self.leg))


def identity(who: Identity) -> tuple[str, int, int, int]:
    """As it stands in a request. ValueError when it is out of the protocol's bounds."""
    try:
        engine, dp_rank, leg, attempt = who
        fits = len(engine.encode()) <= 256 and 0 <= dp_rank < 1 << 32 and 0 <= attempt < 1 << 32
        if not fits:
            raise ValueError("out of bounds")
        return engine, int(dp_rank), LEGS[leg], int(attempt)
    except Exception as e:
        raise ValueError(
            f"{who!r}: an engine of at most 256 bytes, a leg that is known, and two 32-bit numbers are wanted"
        ) from e
