"""What waits in this process leaves before the process does."""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from typing import Protocol


class Ends(Protocol):
    def _end(self) -> None: ...


_waiting: weakref.WeakSet[Ends] = weakref.WeakSet()
_registered = 0  # the process that has it


def at_exit(client: Ends) -> None:
    """Has the client told when the interpreter, or this worker of multiprocessing, ends."""
    global _registered
    _waiting.add(client)
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
    for client in list(_waiting):
        try:
            client._end()
        except Exception:  # the end of a process is no place for it
            pass
