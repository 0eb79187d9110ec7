"""CIFAR-100: 60 000 small photographs of 100 fine classes, in 20 coarse ones, as a file of features.

The official archive holds pickles, which can run any code when they are loaded; `unpickling` reads them without.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import tarfile
import urllib.request
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias, TypeVar
from urllib.error import HTTPError

import numpy as np
from numpy.typing import NDArray

from bough.arrays import Floats
from bough.datasets import efficientnet
from bough.datasets.unpickling import PickledArray, text, unpickle

URL = "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz"
MD5 = "eb9058c3a382ffc7106e4002c42a8d85"
SHA256 = "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7"
ARCHIVE_BYTES = 169_001_437

Network: TypeAlias = Literal["efficientnet-lite0", "pixels"]
_T = TypeVar("_T")
Progress: TypeAlias = Callable[[int], None]

_SHAPE = (3, 32, 32)
_N_PIXELS = 3 * 32 * 32
_N_FINE, _N_COARSE = 100, 20
_N_COMPONENTS = 100
_LARGEST_MEMBER = {"train": 2**28, "test": 2**28, "meta": 2**20}  # bytes
_CHUNK = 2**20  # bytes
_BATCH = 128  # images
_TIMEOUT = 60  # seconds without a byte
_NO_NETWORK = "see whether the network is there, or fetch the file in another way"
_PLACE = "give a place with room that you may write to"
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
    _check_place(target)
    if target.exists():
        _verify(target, md5, sha256, "delete it, or give another place")
        _report(progress, target.stat().st_size)
        return target
    partial = target.with_name(f"{target.name}.partial")
    there = partial.stat().st_size if partial.exists() else 0
    for start, chunk in _chunks(url, there):
        _append(partial, chunk, start)
        _report(progress, len(chunk) + (start if start == there else 0))
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


def check_network(network: str) -> None:
    """Refuse a network whose packages are not installed, before anything is downloaded for it."""
    if network == "efficientnet-lite0":
        efficientnet.check_installed()


def read_archive(path: Path) -> Archive:
    """Read the archive without extracting it and without running anything in it."""
    try:
        return _assemble({name: unpickle(name, data) for name, data in _read_members(path).items()})
    except (ValueError, *_DAMAGE) as error:
        raise ValueError(
            f"{path} cannot be read as CIFAR-100's python archive ({error}); download it again from {URL}"
        ) from error


def make_features(archive: Archive, out: Path, network: Network, progress: Progress | None = None) -> Path:
    """Write a file of 100 features of every image, with its classes and its split, that `numpy.load` reads.

    "pixels" are the first principal components of the pixels. "efficientnet-lite0" are the scores that a softmax
    regression gives the 100 fine classes, from what a network pretrained on ImageNet sees in the image. Both are fitted
    on the training images alone; test images played no part in what makes their features.

    The network takes long without a GPU. What it has done is kept beside `out`, and an interrupted call goes on from
    there when it is made again. `progress` is called with the number of images that were just finished.
    """
    if network not in ("efficientnet-lite0", "pixels"):
        raise ValueError(f"the network is {network!r}; give 'efficientnet-lite0' or 'pixels'")
    _check_place(out)
    features = _principal_components(archive, progress) if network == "pixels" else _scores(archive, out, progress)
    with _replacing(out) as file:
        np.savez_compressed(
            file,
            features=features.astype(np.float16),
            fine=archive.fine,
            coarse=archive.coarse,
            split=archive.split,
            fine_names=np.array(archive.fine_names, dtype=np.str_),
            coarse_names=np.array(archive.coarse_names, dtype=np.str_),
        )
    if network != "pixels":
        _Kept.beside(out).remove()
    return out


@contextmanager
def _replacing(target: Path) -> Iterator[BinaryIO]:
    """A file beside `target` that takes its place when all went well and is removed when not."""
    target = Path(os.path.realpath(target))  # behind a link, the file that it leads to
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    _check_place(target)
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
            raise ValueError(f"{target} cannot be written ({error}); {_PLACE}") from error
        raise


def _check_place(target: Path) -> None:
    """Find out before the work is done whether there is a place for what it makes."""
    folder = Path(os.path.realpath(target)).parent
    if not folder.is_dir():
        raise ValueError(f"{target} cannot be written: the folder {folder} does not exist; make it first")
    if target.is_dir():
        raise ValueError(f"{target} cannot be written: it is a folder; give the name of a file in it")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{target} cannot be written: the folder {folder} is read-only; {_PLACE}")


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


def _report(progress: Progress | None, n: int) -> None:
    if progress is not None:
        progress(n)


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


def _principal_components(archive: Archive, progress: Progress | None) -> NDArray[np.float32]:
    pixels = archive.images.reshape(len(archive.images), _N_PIXELS)
    fitted = pixels[archive.split == 0]
    if len(fitted) <= _N_COMPONENTS:
        raise ValueError(
            f"the archive has {len(fitted)} training images; {_N_COMPONENTS} principal components need more of them"
        )
    mean = fitted.mean(axis=0, dtype=np.float64).astype(np.float32)
    axes = _principal_axes(fitted, mean)
    features = np.empty((len(pixels), _N_COMPONENTS), dtype=np.float32)
    for rows in _batches(0, len(pixels), _BATCH):
        features[rows] = (pixels[rows] - mean) / np.float32(255) @ axes
        _report(progress, rows.stop - rows.start)
    return features


def _principal_axes(pixels: NDArray[np.uint8], mean: NDArray[np.float32]) -> NDArray[np.float32]:
    """The directions (pixels, components) in which the pixels vary most, the most first, each with a fixed sign."""
    n, width = pixels.shape
    if n < width:
        directions = np.linalg.svd((pixels - mean).astype(np.float64), full_matrices=False)[2].T
    else:  # a matrix of pixels by pixels is smaller than one of images by pixels
        scatter: Floats = np.zeros((width, width))
        for rows in _batches(0, n, 4096):
            centred = pixels[rows] - mean
            scatter += centred.T @ centred
        directions = np.linalg.eigh(scatter)[1][:, ::-1]
    axes = directions[:, :_N_COMPONENTS]
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=0)[None], axis=0)
    return np.asarray(axes * np.sign(largest), dtype=np.float32)


def _batches(start: int, stop: int, size: int) -> Iterator[slice]:
    for first in range(start, stop, size):
        yield slice(first, min(first + size, stop))


def _scores(archive: Archive, out: Path, progress: Progress | None) -> NDArray[np.float32]:
    pooled = _embedded(archive.images, efficientnet.load(), efficientnet.WIDTH, _Kept.beside(out), progress)
    return efficientnet.class_scores(pooled, archive.fine, archive.split == 0, len(archive.fine_names))


@dataclass(frozen=True)
class _Kept:
    """Files beside the features: the rows that are done, one after the other, and a note of what they are made from."""

    rows: Path
    note: Path

    @classmethod
    def beside(cls, out: Path) -> _Kept:
        target = Path(os.path.realpath(out))
        return cls(target.with_name(f"{target.name}.partial"), target.with_name(f"{target.name}.partial.json"))

    def resume(self, note: Mapping[str, Any], n: int, row_bytes: int) -> int:
        """How many rows are done and kept: the whole batches of what the note says, and none of anything else."""
        n_done = self._n_written(note, row_bytes)
        if n_done < n:
            n_done -= n_done % _BATCH
        if n_done == 0 or n_done > n:
            n_done = 0
            self.remove()
            with _replacing(self.note) as file:
                file.write(json.dumps(note).encode())
            self.rows.touch()
        os.truncate(self.rows, n_done * row_bytes)
        return n_done

    def _n_written(self, note: Mapping[str, Any], row_bytes: int) -> int:
        try:
            return self.rows.stat().st_size // row_bytes if json.loads(self.note.read_text()) == note else 0
        except (OSError, ValueError):  # absent, or damaged
            return 0

    def remove(self) -> None:
        self.note.unlink(missing_ok=True)
        self.rows.unlink(missing_ok=True)


def _embedded(
    images: NDArray[np.uint8], embed: efficientnet.Embedding, width: int, kept: _Kept, progress: Progress | None
) -> NDArray[np.float32]:
    """What `embed` says of all images, (n, width), going on from the rows that were kept."""
    digest = hashlib.sha256(np.ascontiguousarray(images).data).hexdigest()
    note = {"network": "efficientnet-lite0", "images": digest, "width": width}
    n_done = kept.resume(note, len(images), 4 * width)
    if n_done:
        _report(progress, n_done)
    for batch in _batches(n_done, len(images), _BATCH):
        _append(kept.rows, embed(images[batch]).astype(np.float32).tobytes())
        _report(progress, batch.stop - batch.start)
    return np.fromfile(kept.rows, dtype=np.float32).reshape(len(images), width)


def _append(path: Path, data: bytes, start: int | None = None) -> None:
    """Write at the end of a file, or from `start` on, where the rest of it is given up."""
    try:
        with open(path, "ab") as file:
            if start is not None:
                file.truncate(start)
            file.write(data)
    except OSError as error:
        raise ValueError(f"{path} cannot be written ({error}); {_PLACE}") from error
