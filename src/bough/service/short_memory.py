"""Answers that take long are kept for a moment, so that many who look cost little more than one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable
from typing import Any

_TIMES = 20.0  # as long as it took, that an answer is kept
_MOST = 256  # answers
_QUICK = 0.005  # seconds: what takes less is not kept


class ShortMemory:
    """Answers by what was asked; each is kept for 20 times as long as it took, and asked for by one at a time."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._kept: dict[Hashable, tuple[float, Any]] = {}
        self._locks: dict[Hashable, asyncio.Lock] = {}

    async def get(self, key: Hashable, look: Callable[[], Any]) -> Any:
        """The answer that there is, or a new one, which is looked for in a thread."""
        async with self._locks.setdefault(key, asyncio.Lock()):
            until, known = self._kept.get(key, (0.0, None))
            began = self._clock()
            if began < until:
                return known
            found = await asyncio.to_thread(look)
            ended = self._clock()
            while len(self._kept) >= _MOST:
                gone = next(iter(self._kept))
                del self._kept[gone]
                self._locks.pop(gone, None)
            if ended - began > _QUICK:
                self._kept[key] = (ended + _TIMES * (ended - began), found)
            return found
