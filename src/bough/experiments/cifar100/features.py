"""Features of CIFAR-100's images: from a pretrained network, or from their pixels alone."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bough._arrays import Floats
from bough.experiments.cifar100 import efficientnet
from bough.experiments.cifar100.files import Progress, append, check_place, replacing, report
from bough.experiments.cifar100.reader import Archive

Network: TypeAlias = Literal["efficientnet-lite0", "pixels"]
"""What describes an image: a pretrained network, or its pixels."""

_N_COMPONENTS = 100
_BATCH = 128  # images


def check_network(network: str) -> None:
    """Refuse a network whose packages are not installed, before anything is downloaded for it."""
    if network == "efficientnet-lite0":
        efficientnet.check_installed()


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
    check_place(out)
    features = _principal_components(archive, progress) if network == "pixels" else _scores(archive, out, progress)
    with replacing(out) as file:
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


def _principal_components(archive: Archive, progress: Progress | None) -> NDArray[np.float32]:
    pixels = archive.images.reshape(len(archive.images), -1)
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
        report(progress, rows.stop - rows.start)
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
            with replacing(self.note) as file:
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
        report(progress, n_done)
    for batch in _batches(n_done, len(images), _BATCH):
        append(kept.rows, embed(images[batch]).astype(np.float32).tobytes())
        report(progress, batch.stop - batch.start)
    return np.fromfile(kept.rows, dtype=np.float32).reshape(len(images), width)
