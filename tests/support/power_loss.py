"""A disk that loses what was not synced when the power fails, for SQLite, without C and without root.

SQLite reaches the disk through a table of functions, its VFS. Here a copy of the usual table is registered under
another name, in the library that Python's own module uses. Files opened through it go to the disk as ever; beside that,
every write and every truncation is noted until the file is synced. At a chosen operation the power fails: what the disk
has then, everything synced and a random part of the rest, sector by sector and in any order, is kept as an image, and
the program goes on without knowing. A file is there from its first sync on, as SQLite syncs the folder with it. The
index of the write-ahead log is not part of an image: SQLite makes it again.
"""

from __future__ import annotations

import ctypes
import random
import sqlite3
from collections import Counter
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_int, c_int64, c_void_p, cast, memmove, sizeof
from pathlib import Path

SECTOR = 512

_Open = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)  # the name as an address: NULL is allowed
_Delete = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int)
_Close = CFUNCTYPE(c_int, c_void_p)
_Write = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_Truncate = CFUNCTYPE(c_int, c_void_p, c_int64)
_Sync = CFUNCTYPE(c_int, c_void_p, c_int)


class _Methods(Structure):
    """sqlite3_io_methods, version 3."""

    _fields_ = [
        ("version", c_int),
        ("close", c_void_p),
        ("read", c_void_p),
        ("write", c_void_p),
        ("truncate", c_void_p),
        ("sync", c_void_p),
        ("rest", c_void_p * 13),
    ]


class _File(Structure):
    """The beginning of every sqlite3_file."""

    _fields_ = [("methods", POINTER(_Methods))]


class _Vfs(Structure):
    """sqlite3_vfs, version 3."""

    _fields_ = [
        ("version", c_int),
        ("file_size", c_int),
        ("longest_path", c_int),
        ("next", c_void_p),
        ("name", c_char_p),
        ("data", c_void_p),
        ("open", c_void_p),
        ("delete", c_void_p),
        ("rest", c_void_p * 14),
    ]


def library() -> ctypes.CDLL:
    """The library of SQLite that Python's own module uses; an `OSError` where it is not a library of its own."""
    for line in Path("/proc/self/maps").read_text().splitlines() if Path("/proc/self/maps").exists() else []:
        if "libsqlite3" in line:
            found = ctypes.CDLL(line.split(maxsplit=5)[5])
            found.sqlite3_libversion.restype = c_char_p
            if found.sqlite3_libversion().decode() == sqlite3.sqlite_version:
                return found
    raise OSError("this Python has SQLite inside its own module, where no VFS can be registered from outside")


class _Durable:
    """What one file has on the disk, and what has been written to it since it was last synced."""

    def __init__(self) -> None:
        self.there = False
        self.data = bytearray()
        self.waiting: list[tuple[int, bytes | None]] = []  # (offset, data), or (size, None) for a truncation

    def sync(self) -> None:
        for offset, data in self.waiting:
            _apply(self.data, offset, data)
        self.waiting.clear()
        self.there = True

    def image(self, rng: random.Random, share: float) -> bytes | None:
        """What is there after a loss of power, if `share` of what was not synced reached the disk."""
        if not self.there and not self.waiting:
            return None
        found = bytearray(self.data)
        for offset, data in self.waiting:
            if data is None:
                if rng.random() < share:
                    _apply(found, offset, None)
                continue
            start = offset
            while start < offset + len(data):
                end = min((start // SECTOR + 1) * SECTOR, offset + len(data))
                if rng.random() < share:
                    _apply(found, start, data[start - offset : end - offset])
                start = end
        return bytes(found) if self.there or found else None


def _apply(content: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del content[offset:]
        content.extend(bytes(offset - len(content)))
        return
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(data)] = data


class FailingDisk:
    """A VFS of SQLite under a name of its own, until `close`."""

    def __init__(self, name: str, seed: int = 0) -> None:
        self.name = name
        self.syncs: Counter[str] = Counter()
        """How often each file was synced, by its name."""
        self.operations = 0
        """Writes, truncations and syncs so far."""
        self.image: dict[str, bytes] | None = None
        """What the disk had when the power failed, by the names of the files; None before."""
        self.room: int | None = None
        """How many more bytes can be written before the disk is full; None for as many as there are."""
        self._fails_at: int | None = None
        self._rng = random.Random(seed)
        self._files: dict[str, _Durable] = {}
        self._open_files: dict[int, str] = {}
        self._tables: dict[int, _Methods] = {}
        self._library = library()
        self._register()

    def fail_after(self, operations: int) -> None:
        """Have the power fail after so many more operations."""
        self._fails_at = self.operations + operations

    def restore(self, folder: Path) -> None:
        """Write the image into a folder."""
        assert self.image is not None, "the power has not failed"
        for name, data in self.image.items():
            (folder / name).write_bytes(data)

    def close(self) -> None:
        """Have the VFS be gone; every connection through it must be closed."""
        assert not self._open_files, f"still open: {sorted(self._open_files.values())}"
        self._library.sqlite3_vfs_unregister(byref(self._vfs))

    # -- the table of functions ------------------------------------------------------------------

    def _register(self) -> None:
        self._library.sqlite3_vfs_find.restype = POINTER(_Vfs)
        usual = self._library.sqlite3_vfs_find(None).contents
        self._vfs = _Vfs()
        memmove(byref(self._vfs), byref(usual), sizeof(_Vfs))
        self._usual_open, self._usual_delete = _Open(usual.open), _Delete(usual.delete)
        self._vfs.name = self.name.encode()
        # Python must keep what C calls.
        self._kept = (_Open(self._open), _Delete(self._delete))
        self._vfs.open, self._vfs.delete = (cast(function, c_void_p).value for function in self._kept)
        self._callbacks = (_Close(self._close), _Write(self._write), _Truncate(self._truncate), _Sync(self._sync))
        if self._library.sqlite3_vfs_register(byref(self._vfs), 0) != 0:
            raise OSError("SQLite did not take the VFS")

    def _open(self, vfs: int, path: int, file: int, flags: int, out_flags: int) -> int:
        result: int = self._usual_open(vfs, path, file, flags, out_flags)
        if result == 0:
            name = Path(ctypes.string_at(path).decode()).name if path else ""
            self._open_files[file] = name
            self._files.setdefault(name, _Durable())
            self._replace_methods(file)
        return result

    def _replace_methods(self, file: int) -> None:
        """Have a file use our functions where something changes, and the usual ones for the rest."""
        opened = _File.from_address(file)
        usual = ctypes.addressof(opened.methods.contents)
        if usual not in self._tables:
            table = _Methods()
            memmove(byref(table), usual, sizeof(_Methods))
            self._usual = (_Close(table.close), _Write(table.write), _Truncate(table.truncate), _Sync(table.sync))
            names = ("close", "write", "truncate", "sync")
            for name, function in zip(names, self._callbacks, strict=True):
                setattr(table, name, cast(function, c_void_p).value)
            self._tables[usual] = table
        opened.methods = ctypes.pointer(self._tables[usual])

    def _delete(self, vfs: int, path: bytes, sync_folder: int) -> int:
        self._files.pop(Path(path.decode()).name, None)
        return int(self._usual_delete(vfs, path, sync_folder))

    def _close(self, file: int) -> int:
        self._open_files.pop(file, None)
        return int(self._usual[0](file))

    def _write(self, file: int, data: int, size: int, offset: int) -> int:
        if self.room is not None:
            if size > self.room:
                return sqlite3.SQLITE_FULL
            self.room -= size
        self._files[self._open_files[file]].waiting.append((offset, ctypes.string_at(data, size)))
        self._count()
        return int(self._usual[1](file, data, size, offset))

    def _truncate(self, file: int, size: int) -> int:
        self._files[self._open_files[file]].waiting.append((size, None))
        self._count()
        return int(self._usual[2](file, size))

    def _sync(self, file: int, flags: int) -> int:
        self._count()
        name = self._open_files[file]
        self.syncs[name] += 1
        self._files[name].sync()
        return 0  # the test needs no real disk to wait for

    def _count(self) -> None:
        """One more operation; the power may fail before it has done anything for good."""
        if self.operations == self._fails_at:
            share = self._rng.choice([0.0, 0.5, 1.0])
            images = {name: file.image(self._rng, share) for name, file in self._files.items()}
            self.image = {name: data for name, data in images.items() if data is not None}
        self.operations += 1
