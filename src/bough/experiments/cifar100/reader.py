"""The official archive of CIFAR-100: 60 000 small photographs of 100 fine classes, in 20 coarse ones.

It holds pickles, which can run any code when they are loaded; `unpickling` reads them without.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tarfile
import urllib.request
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Any, TypeVar
from urllib.error import HTTPError

import numpy as np
from numpy.typing import NDArray

from bough.experiments.cifar100.files import Progress, append, check_place, report
from bough.experiments.cifar100.unpickling import PickledArray, text, unpickle

URL = "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz"
MD5 = "eb9058c3a382ffc7106e4002c42a8d85"
SHA256 = "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7"
ARCHIVE_BYTES = 169_001_437

_T = TypeVar("_T")

_SHAPE = (3, 32, 32)
_N_PIXELS = 3 * 32 * 32
_N_FINE, _N_COARSE = 100, 20
_LARGEST_MEMBER = {"train": 2**28, "test": 2**28, "meta": 2**20}  # bytes
_CHUNK = 2**20  # bytes
_TIMEOUT = 60  # seconds without a byte
_NO_NETWORK = "see whether the network is there, or fetch the file in another way"
_DAMAGE = (tarfile.TarError, zlib.error, EOFError, OSError)


@dataclass(frozen=True, eq=False)
class Archive:
    """What the official archive holds: the training images, then the test images."""

    images: NDArray[np.uint8]
    """(n, 3, 32, 32), red, green and blue."""

    fine: NDArray[np.uint8]
    """(n,), which of `fine_names` it shows."""

    coarse: NDArray[np.uint8]
    """(n,), and which of `coarse_names`."""

    split: NDArray[np.uint8]
    """(n,), 0 for training and 1 for test."""

    fine_names: tuple[str, ...]
    coarse_names: tuple[str, ...]


def download(
    target: Path, url: str = URL, progress: Progress | None = None, *, md5: str = MD5, sha256: str = SHA256
) -> Path:
    """Download the archive to `target`, which is written only when both checksums are right.

    An archive that is there already is kept, and what an interrupted download has left is gone on with. `progress` is
    called with the number of bytes that have just arrived, of `ARCHIVE_BYTES` in all.
    """
    check_place(target)
    if target.exists():
        _verify(target, md5, sha256, "delete it, or give another place")
        report(progress, target.stat().st_size)
        return target
    partial = target.with_name(f"{target.name}.partial")
    there = partial.stat().st_size if partial.exists() else 0
    for start, chunk in _chunks(url, there):
        append(partial, chunk, start)
        report(progress, len(chunk) + (start if start == there else 0))
        there = -1  # only the first chunk reports what was there before
    try:
        _verify(partial, md5, sha256, "try again, or fetch the file in another way")
    except ValueError:
        partial.unlink()
        raise
    os.replace(partial, target)
    return target


def _verify(path: Path, md5: str, sha256: str, remedy: str) -> None:
    """Refuse a file with other checksums."""
    found = {"md5": hashlib.md5(usedforsecurity=False), "sha256": hashlib.sha256()}
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            for checksum in found.values():
                checksum.update(chunk)
    for name, expected in (("md5", md5), ("sha256", sha256)):
        actual = found[name].hexdigest()
        if actual != expected:
            raise ValueError(
                f"{path.name} has the {name} {actual} instead of {expected}, so it was cut short or is another file; "
                f"{remedy}"
            )


def read_archive(path: Path) -> Archive:
    """Read the archive without extracting it and without running anything in it."""
    try:
        return _assemble({name: unpickle(name, data) for name, data in _read_members(path).items()})
    except (ValueError, *_DAMAGE) as error:
        raise ValueError(
            f"{path} cannot be read as CIFAR-100's python archive ({error}); download it again from {URL}"
        ) from error


def _chunks(url: str, there: int) -> Iterator[tuple[int, bytes]]:
    """The bytes from `there` on, with where they begin; from the beginning where the server gives no part of a file."""
    try:
        request = urllib.request.Request(url, headers={"Range": f"bytes={there}-"} if there else {})
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
            start = there if answer.status == HTTPStatus.PARTIAL_CONTENT else 0
            while chunk := answer.read(_CHUNK):
                yield start, chunk
                start += len(chunk)
    except HTTPError as error:
        if error.code != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:  # that is: all of it is there
            raise ValueError(f"{url} cannot be downloaded ({error}); {_NO_NETWORK}") from error
    except (OSError, HTTPException, ValueError) as error:
        raise ValueError(f"{url} cannot be downloaded ({error}); {_NO_NETWORK}") from error


def _read_members(path: Path) -> dict[str, bytes]:
    """The bytes of the three files in the archive, by their base names."""
    found: dict[str, bytes] = {}
    with gzip.open(path) as stream:
        with tarfile.open(fileobj=stream, mode="r:") as archive:
            for member in archive:
                name = member.name.rpartition("/")[2]
                if name in _LARGEST_MEMBER and not member.isdir():
                    if name in found:
                        raise ValueError(f"it has more than one file called {name}")
                    found[name] = _read_member(archive, member, _LARGEST_MEMBER[name])
        while stream.read(_CHUNK):  # the checksum of the whole comes at its end
            pass
    missing = [name for name in _LARGEST_MEMBER if name not in found]
    if missing:
        raise ValueError(f"it has no file called {' or '.join(missing)}")
    return found


def _read_member(archive: tarfile.TarFile, member: tarfile.TarInfo, largest: int) -> bytes:
    file = archive.extractfile(member) if member.isreg() else None
    if file is None:
        raise ValueError(f"{member.name} in it is a link or a device instead of a file")
    if member.size > largest:
        raise ValueError(f"{member.name} in it has {member.size} bytes; at most {largest} are expected")
    return file.read()


def _assemble(files: Mapping[str, Mapping[str, Any]]) -> Archive:
    """The archive that the three dictionaries make, when they fit together."""
    parts = [_images(name, files[name]) for name in ("train", "test")]
    archive = Archive(
        images=np.concatenate(parts),
        fine=_both_labels(files, parts, "fine_labels", _N_FINE),
        coarse=_both_labels(files, parts, "coarse_labels", _N_COARSE),
        split=np.repeat(np.array([0, 1], dtype=np.uint8), [len(part) for part in parts]),
        fine_names=_names(files["meta"], "fine_label_names", _N_FINE),
        coarse_names=_names(files["meta"], "coarse_label_names", _N_COARSE),
    )
    _check_nesting(archive)
    return archive


def _images(name: str, file: Mapping[str, Any]) -> NDArray[np.uint8]:
    data = _entry(name, file, "data", PickledArray).bytes_array()
    if len(data) == 0 or data.shape[1] != _N_PIXELS:
        raise ValueError(f"data of {name} in it has the shape {data.shape}; rows of {_N_PIXELS} are expected")
    return data.reshape(-1, *_SHAPE)


def _both_labels(
    files: Mapping[str, Mapping[str, Any]], parts: Sequence[NDArray[np.uint8]], key: str, n_classes: int
) -> NDArray[np.uint8]:
    named = zip(("train", "test"), parts, strict=True)
    return np.concatenate([_labels(name, files[name], key, len(part), n_classes) for name, part in named])


def _labels(name: str, file: Mapping[str, Any], key: str, n: int, n_classes: int) -> NDArray[np.uint8]:
    labels = _entry(name, file, key, list)
    stray = next((type(label).__name__ for label in labels if type(label) is not int), None)
    if stray is not None:
        raise ValueError(f"{key} of {name} in it has a {stray}; whole numbers are expected")
    odd = next((label for label in labels if not 0 <= label < n_classes), None)
    if odd is not None:
        raise ValueError(f"{key} of {name} in it has {odd}; numbers from 0 to {n_classes - 1} are expected")
    if len(labels) != n:
        raise ValueError(f"{key} of {name} in it has {len(labels)} labels for {n} images")
    return np.array(labels, dtype=np.uint8)


def _names(meta: Mapping[str, Any], key: str, n_classes: int) -> tuple[str, ...]:
    names = tuple(text(name) for name in _entry("meta", meta, key, list))
    if len(set(names)) != n_classes or len(names) != n_classes:
        raise ValueError(f"{key} of meta in it has {len(set(names))} different names; {n_classes} are expected")
    return names


def _entry(name: str, file: Mapping[str, Any], key: str, kind: type[_T]) -> _T:
    value = file.get(key)
    if not isinstance(value, kind):
        raise ValueError(f"{name} in it has no {key} of the kind expected")
    return value


def _check_nesting(archive: Archive) -> None:
    """See to it that the classes are a tree: every fine class in one coarse class."""
    pairs = np.unique(np.stack([archive.fine, archive.coarse], axis=1), axis=0)
    torn = pairs[1:, 0][pairs[1:, 0] == pairs[:-1, 0]]
    if len(torn):
        raise ValueError(f"the fine class {archive.fine_names[torn[0]]!r} in it is in more than one coarse class")
