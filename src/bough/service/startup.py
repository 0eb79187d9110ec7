"""The start of a process: what it is busy with, for whoever asks too early, and for whoever started it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from numba.core import event

from bough.service.problems import Problem

COMPILING = "code is being compiled, which takes about a minute on a new machine"
READY = "ready: requests are answered now"
_COMPILED = "numba:compile"  # which is no event of code that is loaded from disk
_BETWEEN = 2.0  # seconds that may pass between two pieces of code
_SOON, _LATER = 1.0, 5.0  # seconds after which to ask again


class Startup(event.Listener):
    """What a process does before it can answer.

    >>> startup = Startup(print, clock=lambda: 0.0)
    >>> startup.problem().detail
    'the log is being replayed; try again in a second'
    >>> startup.on_start(None)
    code is being compiled, which takes about a minute on a new machine
    >>> startup.problem().detail
    'code is being compiled, which takes about a minute on a new machine; try again in a few seconds'
    """

    def __init__(self, tell: Callable[[str], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._tell, self._clock = tell, clock
        self._compiled: float | None = None
        """When code was compiled for the last time; None where all of it was there."""
        self._under_way = 0
        self.is_read = False
        """Whether the log has been read, and only what decisions need is still to be made ready."""

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Notice, for a while, that code is compiled."""
        with event.install_listener(_COMPILED, self):
            yield

    def on_start(self, _: Any) -> None:
        """Code begins to be compiled, which may call for other code."""
        if self._compiled is None:
            self.tell(COMPILING)
        self._compiled = self._clock()
        self._under_way += 1

    def on_end(self, _: Any) -> None:
        """Code has been compiled."""
        self._compiled = self._clock()
        self._under_way -= 1

    def tell(self, line: str) -> None:
        """Say something to whoever started the process, and may be gone."""
        with suppress(OSError, ValueError):  # a broken pipe; a closed file
            self._tell(line)

    def problem(self) -> Problem:
        """Why there is no answer yet."""
        if self._is_compiling:
            return _starting(f"{COMPILING}; try again in a few seconds", _LATER)
        if self.is_read:
            return _starting("the process is made ready to decide; try again in a second", _SOON)
        return _starting("the log is being replayed; try again in a second", _SOON)

    @property
    def _is_compiling(self) -> bool:
        return self._compiled is not None and (self._under_way > 0 or self._clock() - self._compiled < _BETWEEN)


def _starting(detail: str, seconds: float) -> Problem:
    return Problem("starting", detail, retry_after=seconds)
