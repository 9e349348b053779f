"""The thread that sends what no call has taken along."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable

# Rounds without work before the thread parks.
_IDLE = 20


class Flusher:
    """A daemon thread that polls while there is work, and waits for wake() when there is none."""

    def __init__(self, flush: Callable[[], bool], interval: float) -> None:
        self.parked = False
        self._flush = weakref.WeakMethod(flush)  # a client that nobody holds may go
        self._interval = interval
        self._event = threading.Event()
        self._stop = False
        self._thread = threading.Thread(target=self._run, name="kvrt-flush", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        self.parked = False
        self._event.set()

    def stop(self) -> None:
        self._stop = True
        self._event.set()

    def _run(self) -> None:
        idle = 0
        while not self._stop:
            self._event.wait(self._interval)
            self._event.clear()
            if (worked := self._round()) is None:
                return
            idle = 0 if worked else idle + 1
            if idle < _IDLE:
                continue
            idle = 0
            self.parked = True
            if self._round():  # what came in before parked could be seen
                self.parked = False
                continue
            self._event.wait()

    def _round(self) -> bool | None:
        """Whether there was work; None when the thread has nothing to live for."""
        flush = self._flush()
        return None if flush is None or self._stop else flush()
