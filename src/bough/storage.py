"""Files of arrays: a zip of .npy members and a JSON header, written whole or not at all.

Nothing in such a file is executable: members are read with pickling off. docs/file-format.md describes what the
files hold.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bough.arrays import Names
from bough.names import as_column

_HEADER = "header"
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, TypeError, ValueError, RuntimeError)


def write(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write the file beside `path` and put it in place when it is complete."""
    target = Path(os.path.realpath(path))  # behind a link, the file that it leads to
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: the folder {target.parent} does not exist; make it first")
    encoded = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, array in {_HEADER: encoded, **arrays}.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
        _keep_mode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _keep_mode(target: Path, temporary: str) -> None:
    """Give the new file the permissions of the old one, or the usual ones; mkstemp's are private."""
    if target.exists():
        mode = target.stat().st_mode & 0o777
    else:
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o666 & ~mask
    os.chmod(temporary, mode)


def read(
    path: str | os.PathLike[str], kind: str, version: int
) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """The header and the arrays of a file of that kind, of that version or older."""
    try:
        with zipfile.ZipFile(path) as archive:
            arrays = {name.removesuffix(".npy"): _member(archive, name) for name in archive.namelist()}
        header = json.loads(arrays.pop(_HEADER).tobytes())
        found_kind, found_version = header["kind"], header["version"]
    except _DAMAGE as error:
        raise ValueError(
            f"{path} is not a bough file, or is damaged or cut short ({error}); expected a {kind} file"
        ) from error
    if found_kind != kind:
        raise ValueError(f"{path} holds a {found_kind!r}; expected a {kind} file")
    if found_version not in range(1, version + 1):
        raise ValueError(
            f"{path} has format version {found_version!r}; this bough reads up to {version}, a newer one may read it"
        )
    return header, arrays


def _member(archive: zipfile.ZipFile, name: str) -> np.ndarray[Any, Any]:
    # Reading the whole member first has its checksum verified before anything is made of it.
    return np.lib.format.read_array(io.BytesIO(archive.read(name)), allow_pickle=False)


def pack_names(prefix: str, column: Names) -> dict[str, np.ndarray[Any, Any]]:
    """A column of names as arrays without objects: integers, or UTF-8 text and where each name ends."""
    if column.dtype.kind in "iu":
        return {f"{prefix}_integers": column.astype(np.int64)}
    values = column.tolist()
    odd = next((value for value in values if not isinstance(value, str)), None)
    if odd is not None:
        raise ValueError(
            f"the name {odd!r} is a {type(odd).__name__}; only names that are all strings or all integers can be saved"
        )
    encoded = [value.encode() for value in values]
    text = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)))
    return {f"{prefix}_text": text, f"{prefix}_ends": ends}


def unpack_names(prefix: str, arrays: Mapping[str, np.ndarray[Any, Any]]) -> Names:
    """What `pack_names` packed."""
    if f"{prefix}_integers" in arrays:
        return arrays[f"{prefix}_integers"]
    text, ends = arrays[f"{prefix}_text"].tobytes(), arrays[f"{prefix}_ends"].tolist()
    starts = [0, *ends][:-1]
    return as_column([text[start:end].decode() for start, end in zip(starts, ends, strict=True)])
