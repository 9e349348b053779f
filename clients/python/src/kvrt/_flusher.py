"""The thread that sends what no call has taken along."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable

# Rounds without work before the thread slows down, and before it parks.
_IDLE = 20


class Flusher:
    """A daemon thread. While `fast`, it looks every `linger` seconds; else every `interval`;
    parked, only when it is woken."""

    def __init__(self, flush: Callable[[bool], bool], interval: float, linger: float, fast: bool) -> None:
        self.parked = False
        self.fast = fast
        self._flush = weakref.WeakMethod(flush)  # a client that nobody holds may go
        self._interval, self._linger = interval, linger
        self._event = threading.Event()
        self._stop = False
        self._thread = threading.Thread(target=self._run, name="kvrt-flush", daemon=True)
        self._thread.start()

    def wake(self, fast: bool = False) -> None:
        if fast:
            self.fast = True
        self.parked = False
        self._event.set()

    def stop(self) -> None:
        self._stop, self.fast = True, False
        self._event.set()

    def _run(self) -> None:
        idle = 0
        while not self._stop:
            if fast := self.fast:
                time.sleep(self._linger)  # costs less than the event, and nobody need wake it
            else:
                self._event.wait(self._interval)
                self._event.clear()
            if (worked := self._round(not fast)) is None:
                return
            idle = 0 if worked else idle + 1
            if idle < _IDLE:
                continue
            idle = 0
            if fast:
                self.fast = False
            else:
                self.parked = True
            if (worked := self._round(True)) is None:  # what came in before that could be seen
                return
            if not fast:
                if worked:
                    self.parked = False
                else:
                    self._event.wait()

    def _round(self, whole: bool) -> bool | None:
        """Whether there was work; None when the thread has nothing to live for."""
        flush = self._flush()
        return None if flush is None or self._stop else flush(whole)
