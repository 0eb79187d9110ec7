"""Connections to a log in SQLite, the lock of its folder, and what its errors mean."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import time
from pathlib import Path
from urllib.parse import quote

from bough.service.log.base import LogBusyError, LogError, LogFullError, LogSchemaError

OLDEST = (3, 37, 0)  # the first SQLite with STRICT tables
_ROOM = 1 << 20  # bytes; a disk with less is full, where SQLite only says that it could not write


def connect(path: Path, synchronous: str, vfs: str | None) -> sqlite3.Connection:
    """A connection that waits for nothing, begins and ends transactions only when told to, and makes no checkpoints."""
    if sqlite3.sqlite_version_info < OLDEST:
        raise LogSchemaError(
            f"this Python has SQLite {sqlite3.sqlite_version}, and the log needs 3.37; use a Python with a newer one, "
            "or --database postgresql://..."
        )
    address = f"file:{quote(str(path.absolute()))}" + (f"?vfs={vfs}" if vfs else "")
    connection = sqlite3.connect(
        address, uri=True, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    for setting in (
        f"synchronous = {synchronous}",
        "wal_autocheckpoint = 0",
        "fullfsync = 1",
        "checkpoint_fullfsync = 1",
        "cache_size = -32768",
        "journal_size_limit = 67108864",
    ):
        connection.execute(f"PRAGMA {setting}")
    return connection


def prepare(connection: sqlite3.Connection) -> None:
    """What is set once for a file and stays with it."""
    if connection.execute("PRAGMA page_count").fetchone()[0] == 0:
        patiently(connection, "PRAGMA auto_vacuum = INCREMENTAL")
    patiently(connection, "PRAGMA journal_mode = WAL")


def patiently(connection: sqlite3.Connection, statement: str, timeout: float = 30.0) -> None:
    """Run a statement as soon as no other process writes; asks often, since a busy service writes most of the time."""
    until = time.monotonic() + timeout
    while True:
        try:
            connection.execute(statement).fetchall()
            return
        except sqlite3.OperationalError as error:
            if not isinstance(meaning(error), LogBusyError) or time.monotonic() > until:
                raise
        time.sleep(0.001)


def meaning(error: Exception, folder: Path | None = None) -> LogError:
    """What an error of sqlite3, or of a file, means for the log."""
    if isinstance(error, OSError) and error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return LogError(str(error))
    code = getattr(error, "sqlite_errorcode", None)
    code = code & 0xFF if code is not None else None  # without what extends it
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LogBusyError("another process writes to the log; try again soon")
    if (
        isinstance(error, OSError)
        or code == sqlite3.SQLITE_FULL
        or (code == sqlite3.SQLITE_IOERR and folder is not None and _is_full(folder))
    ):
        return LogFullError("the disk of the log is full; make room, and it goes on")
    return LogError(f"SQLite: {error}")


def _is_full(folder: Path) -> bool:
    try:
        disk = os.statvfs(folder)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _ROOM


class FolderLock:
    """A lock of a folder, which dies with the process that has it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "lock"
        self._file: int | None = None

    @property
    def held(self) -> bool:
        """Whether this is who has it."""
        return self._file is not None

    def take(self, patience: float) -> bool:
        """Take it; False where another has it, and still has it after so many seconds."""
        file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        until = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= until:
                    os.close(file)
                    return False
            time.sleep(0.01)
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        self._file = file
        return True

    def owner(self) -> str:
        """The process that has it, in words."""
        try:
            return f"process {int(self._path.read_text())}"
        except (OSError, ValueError):
            return "another process"

    def release(self) -> None:
        """Let another have it."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
