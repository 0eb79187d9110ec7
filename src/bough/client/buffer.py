"""The rewards of a batch: each waits, was taken, or is in an error that is raised. None is lost."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from bough.client.answers import Rewarded
from bough.client.errors import RewardsError, ServiceError


class Buffer:
    """Rewards that wait to be sent, and those that were not taken. Any thread may call it.

    >>> buffer = Buffer(size=2)
    >>> buffer.add({"decision_id": "d1", "value": 1.0}), buffer.add({"decision_id": "d2", "value": 0.0})
    (False, True)
    >>> rows = buffer.take()
    >>> buffer.settle(rows, [Rewarded("d1", "learned"), Rewarded("d2", "learned")])
    >>> buffer.taken, len(buffer)
    (2, 0)
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._rows: list[dict[str, Any]] = []
        self._failed: list[tuple[dict[str, Any], ServiceError]] = []
        self._is_open = True
        self.taken = 0

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, row: dict[str, Any]) -> bool:
        """Let a reward wait; whether there are now enough to send."""
        with self._lock:
            if not self._is_open:
                raise ValueError("the batch is closed; use it within its `with` statement, or make another")
            self._rows.append(row)
            return len(self._rows) >= self._size

    def close(self) -> None:
        """Let no more rewards wait than there are."""
        with self._lock:
            self._is_open = False

    def take(self) -> list[dict[str, Any]]:
        """The rewards of the next request: those that have waited longest."""
        with self._lock:
            rows, self._rows = self._rows[: self._size], self._rows[self._size :]
            return rows

    def put_back(self, rows: list[dict[str, Any]]) -> None:
        """Have rewards wait again, whose request was broken off."""
        with self._lock:
            self._rows = rows + self._rows

    def settle(self, rows: list[dict[str, Any]], results: Sequence[Rewarded | ServiceError]) -> None:
        """Note what became of each reward of a request."""
        failed = [(row, one) for row, one in zip(rows, results, strict=True) if isinstance(one, ServiceError)]
        with self._lock:
            self._failed += failed
            self.taken += len(rows) - len(failed)

    def raise_failed(self) -> None:
        """Raise those that were not taken, once."""
        with self._lock:
            failed, self._failed = self._failed, []
        if failed:
            raise RewardsError.of(failed)
