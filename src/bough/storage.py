"""Files of arrays: a zip of .npy members and a JSON header, written whole or not at all.

Nothing in such a file is executable: members are read with pickling off. docs/file-format.md describes what the
files hold.
"""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bough.arrays import Names
from bough.names import as_column

_HEADER = "header"


def write(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write the file beside `path` and put it in place when it is complete."""
    target = Path(path)
    encoded = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            np.savez_compressed(file, allow_pickle=False, **{_HEADER: encoded, **arrays})
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
        with np.load(path, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile) or _HEADER not in archive:
                raise ValueError(f"{path} is not a bough file; expected a {kind} file that bough saved")
            header = json.loads(archive[_HEADER].tobytes())
            if not isinstance(header, dict) or header.get("kind") != kind:
                found = header.get("kind") if isinstance(header, dict) else header
                raise ValueError(f"{path} holds a {found!r}; expected a {kind} file")
            if header.get("version") not in range(1, version + 1):
                raise ValueError(
                    f"{path} has format version {header.get('version')!r}; this bough reads up to {version}, "
                    "a newer one may read it"
                )
            return header, {name: archive[name] for name in archive.files if name != _HEADER}
    except (zipfile.BadZipFile, zlib.error, EOFError, json.JSONDecodeError, KeyError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is damaged or cut short ({error}); restore it from a copy") from error
    except ValueError as error:
        if str(path) in str(error):
            raise
        # numpy's own words for a file that is neither .npy nor .npz
        raise ValueError(f"{path} is not a bough file, or is cut short; expected a {kind} file") from error


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
    starts: Iterable[int] = [0, *ends[:-1]]
    return as_column([text[start:end].decode() for start, end in zip(starts, ends, strict=True)])
