"""How much of SQLite's write-ahead log waits to be moved into the database, from the index beside it.

A process that closes a file loses all locks that it has on it, also those that SQLite took by a file of its own
(https://sqlite.org/howtocorrupt.html, section 2.2). Another process would then take the log for unused, and cut the
index off while it is in use here: a bus error, or a damaged database. So the file stays open for as long as anybody in
this process has the log open, and is closed by the last one, after its connections.
"""

from __future__ import annotations

import os
import struct
import threading
from pathlib import Path

_lock = threading.Lock()
_files: dict[str, tuple[int, int]] = {}  # by path: the open file, and how many use it


class WalIndex:
    """The index of the write-ahead log of a database, while there are connections to it."""

    def __init__(self, database: Path) -> None:
        self._path = f"{database.absolute()}-shm"
        self._file: int | None = None
        with _lock:
            try:
                file, users = _files.get(self._path) or (os.open(self._path, os.O_RDONLY), 0)
            except OSError:  # a way to the disk that keeps its index elsewhere
                return
            _files[self._path] = (file, users + 1)
            self._file = file

    def waiting(self) -> int:
        """Bytes that have been committed and are not in the database file yet.

        From the first bytes of the index, https://sqlite.org/walformat.html: the size of a page, how many pages the
        log has, and how many of them have been moved.
        """
        if self._file is None:
            return 0
        try:
            found: tuple[int, int, int] = struct.unpack("=14x HI 76x I", os.pread(self._file, 100, 0))
        except (OSError, struct.error):
            return 0
        page, pages, moved = found
        return max(pages - moved, 0) * (65_536 if page == 1 else page)

    def close(self) -> None:
        """Close it, after all connections were closed; the last one in this process does."""
        if self._file is None:
            return
        with _lock:
            file, users = _files.pop(self._path)
            if users > 1:
                _files[self._path] = (file, users - 1)
            else:
                os.close(file)
        self._file = None
