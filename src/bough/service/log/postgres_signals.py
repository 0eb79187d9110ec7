"""What processes tell each other through PostgreSQL: that something was appended, and who is the keeper."""

from __future__ import annotations

import threading
import time

import psycopg

from bough.service.log.postgres_connections import CHANNEL, KEEPER, Connection, connect

_GLANCE = 0.5  # seconds after which one who waits looks whether the log has been closed


class Listener:
    """Waits for what other processes append. What it misses is only noticed later."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._connection: Connection | None = None
        self._turn, self._closed = threading.Lock(), threading.Event()

    def wait(self, timeout: float, own: int | None) -> bool:
        """Wait for so long, or until another than one's own backend has appended; whether something may have been."""
        until = time.monotonic() + timeout
        with self._turn:
            try:
                return self._wait(until, own)
            except psycopg.Error:
                self._drop()
        self._closed.wait(max(until - time.monotonic(), 0))
        return True

    def _wait(self, until: float, own: int | None) -> bool:
        if self._closed.is_set():
            return False
        if self._connection is None:
            self._connection = connect(self._address)
            self._connection.execute(f"LISTEN {CHANNEL}")
            return True  # something may have been appended before
        while not self._closed.is_set():
            left = until - time.monotonic()
            told = self._connection.notifies(timeout=max(min(left, _GLANCE), 0), stop_after=1)
            if any(each.pid != own for each in told):
                return True
            if left <= 0:
                return False
        return False

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        """Have whoever waits go on, and close the connection."""
        self._closed.set()
        with self._turn:
            self._drop()


class Keeper:
    """A lock that one process has, for as long as it lives and its connection does."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._connection: Connection | None = None
        self._held = False
        self._turn = threading.Lock()

    def try_to_keep(self) -> bool:
        """Take the lock, or keep it; False where another process has it, and where PostgreSQL does not answer."""
        with self._turn:
            try:
                if self._connection is None:
                    self._connection = connect(self._address)
                ask = "SELECT true" if self._held else f"SELECT pg_try_advisory_lock({KEEPER}, 0)"
                self._held = self._connection.execute(ask).fetchone() == (True,)
            except psycopg.Error:
                self._drop()
            return self._held

    def _drop(self) -> None:
        self._held = False
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        """Give the lock up."""
        with self._turn:
            self._drop()
