"""Clients and the life of their process: its end, and its forks."""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from typing import Protocol


class Ends(Protocol):
    def _end(self) -> None: ...


class Forks(Protocol):
    def _forked(self) -> None: ...


_ends: weakref.WeakSet[Ends] = weakref.WeakSet()
_forks: weakref.WeakSet[Forks] = weakref.WeakSet()
_registered = 0  # the process whose end is waited for


def at_exit(client: Ends) -> None:
    """Has the client told when the interpreter, or this worker of multiprocessing, ends."""
    global _registered
    _ends.add(client)
    if _registered == os.getpid():
        return
    _registered = os.getpid()
    atexit.unregister(_end_all)
    atexit.register(_end_all)
    # A worker of multiprocessing ends without atexit.
    util, process = sys.modules.get("multiprocessing.util"), sys.modules.get("multiprocessing.process")
    if util is not None and process is not None and process.parent_process() is not None:
        util.Finalize(None, _end_all, exitpriority=0)


def _end_all() -> None:
    for client in list(_ends):
        try:
            client._end()
        except Exception:  # the end of a process is no place for it
            pass


def at_fork(client: Forks) -> None:
    """Has the client told, in every child, that it is in a child."""
    _forks.add(client)


def _fork_all() -> None:
    for client in list(_forks):
        client._forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_fork_all)
