"""Files that are written whole or not at all, and that say beforehand where they cannot be."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeAlias

Progress: TypeAlias = Callable[[int], None]
"""Called with how many were just finished."""

PLACE = "give a place with room that you may write to"


@contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """A file beside `target` that takes its place when all went well and is removed when not."""
    target = Path(os.path.realpath(target))  # behind a link, the file that it leads to
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    check_place(target)
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise ValueError(f"{target} cannot be written ({error}); {PLACE}") from error
        raise


def check_place(target: Path) -> None:
    """Find out before the work is done whether there is a place for what it makes."""
    folder = Path(os.path.realpath(target)).parent
    if not folder.is_dir():
        raise ValueError(f"{target} cannot be written: the folder {folder} does not exist; make it first")
    if target.is_dir():
        raise ValueError(f"{target} cannot be written: it is a folder; give the name of a file in it")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{target} cannot be written: the folder {folder} is read-only; {PLACE}")


def report(progress: Progress | None, n: int) -> None:
    if progress is not None:
        progress(n)


def append(path: Path, data: bytes, start: int | None = None) -> None:
    """Write at the end of a file, or from `start` on, where the rest of it is given up."""
    try:
        with open(path, "ab") as file:
            if start is not None:
                file.truncate(start)
            file.write(data)
    except OSError as error:
        raise ValueError(f"{path} cannot be written ({error}); {PLACE}") from error
