"""Snapshots as files of a folder, each of which is there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Make durable which files a folder has."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


class SnapshotFiles:
    """The files `{experiment}-{seq}.bough` of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, experiment: int, seq: int, data: bytes) -> None:
        """Write one; when this returns, it is durable."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        sync_folder(self._folder.parent)
        path = self._path(experiment, seq)
        unfinished = path.with_suffix(".unfinished")
        try:
            with open(unfinished, "wb", opener=_private) as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        except OSError:
            unfinished.unlink(missing_ok=True)  # it may be what fills the disk
            raise
        sync_folder(self._folder)

    def read(self, experiment: int, seq: int) -> bytes:
        """One of them; an `OSError` where it is gone."""
        return self._path(experiment, seq).read_bytes()

    def keep_only(self, experiment: int, seqs: Collection[int]) -> None:
        """Delete all others of an experiment, also what was left of unfinished ones."""
        kept = {self._path(experiment, seq) for seq in seqs}
        for path in self._folder.glob(f"{experiment}-*"):
            if path not in kept:
                path.unlink(missing_ok=True)

    def _path(self, experiment: int, seq: int) -> Path:
        return self._folder / f"{experiment}-{seq}.bough"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
