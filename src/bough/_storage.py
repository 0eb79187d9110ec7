"""Files of arrays: a zip of .npy members and a JSON header, written whole or not at all.

A file that comes from elsewhere is not believed: nothing in it is executable, a member that nobody asks for is not
decompressed, and one that is asked for takes no more memory than its array.
docs/reference/file-format.md describes what the files hold.
"""

from __future__ import annotations

import copy
import errno
import io
import json
import math
import os
import re
import reprlib
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

_HEADER = "header"
_BEGINNING = b"PK"  # of a zip
_LARGEST_HEADER = 1_000_000  # bytes
_LONGEST_DESCRIPTION = 10_000  # bytes before the numbers of an array; numpy's own limit
_MOST_COMPRESSED = 1_100  # deflate makes no more than 1,032 bytes out of one
_MOST_MEMBERS = 1_000
_LONGEST_CAUSE = 300  # characters of a message
_PIECE = 1 << 20  # bytes that are read at once
_ENCRYPTED = 0x1  # a flag of a zip's member
_DESCRIPTION = re.compile(
    r"\{\s*'descr':\s*'(?P<type>[<>|]\w+)',\s*'fortran_order':\s*(?P<fortran>True|False),"
    r"\s*'shape':\s*\((?P<shape>[0-9, ]{0,80})\),?\s*\}\s*",
    re.ASCII,
)
_TYPES = {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"}
_STORED_KINDS = {"b": "b", "i": "iu", "u": "u", "f": "f"}  # what is stored, by what is wanted
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    LookupError,
    TypeError,
    ValueError,
    ArithmeticError,
    RuntimeError,  # zipfile's for what it cannot read, and json's for what is nested too deeply
    MemoryError,
)


def write(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write the file beside `path` and put it in place when it is complete."""
    target = Path(os.path.realpath(path))  # behind a link, the file that it leads to
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: the folder {target.parent} does not exist; make it first")
    members = _members(path, header, arrays)
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            _write_members(file, members, zipfile.ZIP_DEFLATED)
            file.flush()
            os.fsync(file.fileno())
        _keep_mode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def packed(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray[Any, Any]], what: str) -> bytes:
    """What `write` would write, as bytes and not compressed: for what is written often, and kept for a short time.

    `what` is what to call it in an error.

    >>> import numpy as np
    >>> data = packed({"kind": "score", "version": 1}, {"best": np.arange(3.0)}, "the score")
    >>> with unpacked(data, "score", 1, "the score") as contents:
    ...     contents.array("best", np.float64, (None,))
    array([0., 1., 2.])
    """
    file = io.BytesIO()
    _write_members(file, _members(what, header, arrays), zipfile.ZIP_STORED)
    return file.getvalue()


def _members(
    path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray[Any, Any]]
) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays and the header, as arrays by name."""
    encoded = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    if len(encoded) > _LARGEST_HEADER - _LONGEST_DESCRIPTION:  # which would not be read again
        raise ValueError(
            f"{path} cannot be written: its header takes {len(encoded):,} bytes; give fewer or shorter names"
        )
    return {_HEADER: encoded, **arrays}


def _write_members(file: IO[bytes], members: Mapping[str, np.ndarray[Any, Any]], compression: int) -> None:
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, array in members.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def _keep_mode(target: Path, temporary: str) -> None:
    """Give the new file the permissions of the old one, or the usual ones; mkstemp's are private."""
    if target.exists():
        mode = target.stat().st_mode & 0o777
    else:
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o666 & ~mask
    os.chmod(temporary, mode)


def version_of(header: Mapping[str, Any], newest: int, *later: str) -> int:
    """The version of a file: the newest where its header has a later key, which older readers would ignore.

    >>> version_of({"mean": 0.0}, 2, "factors"), version_of({"mean": 0.0, "factors": []}, 2, "factors")
    (1, 2)
    """
    return newest if any(key in header for key in later) else newest - 1


class OtherFileError(ValueError):
    """The file is sound, but it is not the one that was asked for; its text goes on from the file's name."""


class Contents:
    """A file that is open: its header, and its members, each of which is read when it is asked for and not before."""

    def __init__(self, archive: zipfile.ZipFile, size: int) -> None:
        self._archive = archive
        self._prefix = ""
        self._members: dict[str, zipfile.ZipInfo] = {}
        if len(archive.infolist()) > _MOST_MEMBERS:
            raise ValueError(f"it has {len(archive.infolist())} members")
        for info in archive.infolist():
            if self._members.setdefault(info.filename, info) is not info:
                raise ValueError(f"two members are called {info.filename}")
            if info.comment:  # none is ever written, and one that claims to be long hides the members behind it
                raise ValueError(f"{info.filename} has a comment")
            archive.open(info).close()  # which compares what the directory calls it with its own name
        if sum(info.compress_size for info in archive.infolist()) > size:
            raise ValueError("the members are larger than the file")
        self.header: dict[str, Any] = self._json(_HEADER)

    def part(self, prefix: str, header: dict[str, Any]) -> Contents:
        """The members whose names begin so, by the rest of their names, under a header of their own."""
        found = copy.copy(self)
        found._prefix, found.header = prefix, header
        return found

    def __contains__(self, name: str) -> bool:
        return f"{self._prefix}{name}.npy" in self._members

    def array(
        self, name: str, dtype: type[np.generic], shape: tuple[int | None, ...], *, finite: bool = True
    ) -> np.ndarray[Any, Any]:
        """The member of that name, as a new array of `dtype`; a `ValueError` where it is missing, damaged or different.

        None in `shape` stands for any length. What the member says of its type and shape is checked before its numbers
        are read, and these must be finite unless `finite` is False. Integers may be stored in another width.
        """
        if name not in self:
            raise ValueError(f"{name} is missing")
        try:
            with self._open(name) as member:
                found = _read_array(member, np.dtype(dtype), shape)
        except _DAMAGE as error:
            raise ValueError(f"{name}: {_cause(error)}") from error
        if finite and found.dtype.kind == "f" and not np.isfinite(found).all():
            raise ValueError(f"{name} has numbers that are not finite")
        return found

    def _open(self, name: str) -> _Member:
        info = self._members[f"{self._prefix}{name}.npy"]
        if info.flag_bits & _ENCRYPTED or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError("it is encrypted, or compressed in another way than by deflate")
        if info.file_size > _MOST_COMPRESSED * info.compress_size:
            raise ValueError(f"{info.compress_size} bytes cannot hold {info.file_size}")
        return _Member(self._archive.open(info), info.file_size)

    def _json(self, name: str) -> dict[str, Any]:
        if name in self and self._members[f"{name}.npy"].file_size > _LARGEST_HEADER:
            raise ValueError(f"its header has more than {_LARGEST_HEADER} bytes")
        text = self.array(name, np.uint8, (None,)).tobytes().decode()
        found = json.loads(text, parse_constant=_no_constant)
        if not isinstance(found, dict):
            raise ValueError("its header is not a JSON object")
        return found


@contextmanager
def read(path: str | os.PathLike[str], kind: str, version: int) -> Iterator[Contents]:
    """The open contents of a file of that kind, of that version or older; for a ``with`` statement.

    Whatever is wrong with the file, or is found to be wrong with it inside the statement, is a `ValueError` that names
    the file. A file that is not there, or may not be read, stays an `OSError`.
    """
    with _InPieces(io.FileIO(os.fspath(path))) as file:
        yield from _sound(file, os.fstat(file.fileno()).st_size, path, kind, version)


@contextmanager
def unpacked(data: bytes, kind: str, version: int, what: str) -> Iterator[Contents]:
    """The contents of what `packed` made, with the checks of `read`; `what` is what to call it in an error."""
    with io.BytesIO(data) as file:
        yield from _sound(file, len(data), what, kind, version)


def _sound(file: IO[bytes], size: int, path: str | os.PathLike[str], kind: str, version: int) -> Iterator[Contents]:
    """The contents of an open file of that kind and version; what is found to be wrong with them names the file."""
    wanted = f"{_with_article(kind)} file"
    contents = _opened(file, size, path, wanted)
    found_kind, found_version = contents.header["kind"], contents.header["version"]
    if found_kind != kind:
        raise ValueError(f"{path} holds {_with_article(reprlib.repr(found_kind))}; expected {wanted}")
    if isinstance(found_version, bool) or not isinstance(found_version, int) or not 1 <= found_version <= version:
        raise ValueError(
            f"{path} has format version {reprlib.repr(found_version)}; this bough reads up to {version}, "
            "a newer one may read it"
        )
    try:
        with np.errstate(all="ignore"):  # what is no number any more is refused by a check
            yield contents
    except OtherFileError as error:
        raise ValueError(f"{path} {error}") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a complete {kind} file (missing or odd: {_cause(error)})") from error


def kind_of(path: str | os.PathLike[str]) -> Any:
    """What a bough file holds, such as "agent" or "model"; a `ValueError` where it is no bough file."""
    with _InPieces(io.FileIO(os.fspath(path))) as file:
        return _opened(file, os.fstat(file.fileno()).st_size, path, "one that bough wrote").header["kind"]


def _opened(file: IO[bytes], size: int, path: str | os.PathLike[str], wanted: str) -> Contents:
    """The contents of an open file, whose header says what it is."""
    try:
        contents = Contents(zipfile.ZipFile(file), size)
        contents.header["kind"], contents.header["version"]
    except _DAMAGE as error:
        file.seek(0)
        if not file.read(len(_BEGINNING)).startswith(_BEGINNING):
            raise ValueError(f"{path} is not a bough file; expected {wanted}") from error
        raise ValueError(
            f"{path} is not a bough file, or is damaged or cut short ({_cause(error)}); expected {wanted}"
        ) from error
    return contents


class _InPieces(io.BufferedReader):
    """A file that is read a piece at a time: a zip's directory is read at once, whatever size it claims."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > _PIECE:
            raise ValueError(f"a directory of {size} bytes is too large")
        return super().read(size)


class _Member:
    """A member that is being read, for as many bytes as it says that it has."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self.left = size

    def __enter__(self) -> _Member:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def take(self, size: int) -> bytes:
        """The next bytes, at most a piece; the checksum is verified with the last of them."""
        found = self._file.read(size)
        self.left -= len(found)
        if len(found) < size:
            raise EOFError("it ends too early")
        return found


def _read_array(member: _Member, wanted: np.dtype[Any], shape: tuple[int | None, ...]) -> np.ndarray[Any, Any]:
    magic, major = member.take(6), member.take(2)[0]
    if magic != np.lib.format.MAGIC_PREFIX or major not in (1, 2, 3):
        raise ValueError("it is not an array")
    length = int.from_bytes(member.take(2 if major == 1 else 4), "little")
    if length > _LONGEST_DESCRIPTION:
        raise ValueError(f"its description has {length} bytes")
    described = _DESCRIPTION.fullmatch(member.take(length).decode("latin-1"))
    if described is None or described["type"][1:] not in _TYPES:
        raise ValueError("its description is not that of an array of numbers")
    stored = np.dtype(described["type"])
    found = tuple(int(part) for part in described["shape"].split(",") if part.strip())
    fits = len(found) == len(shape) and all(n is None or n == m for n, m in zip(shape, found, strict=True))
    if not fits or stored.kind not in _STORED_KINDS[wanted.kind]:
        raise ValueError(f"it has shape {found} of {stored}; expected {shape} of {wanted}")
    if math.prod(found) * stored.itemsize != member.left:
        raise ValueError(f"shape {found} of {stored} does not take {member.left} bytes")
    data = np.empty(member.left, dtype=np.uint8)
    for start in range(0, len(data), _PIECE):
        piece = data[start : start + _PIECE]
        piece[:] = np.frombuffer(member.take(len(piece)), dtype=np.uint8)
    values = data.view(stored)
    array = values.reshape(found[::-1]).T if described["fortran"] == "True" else values.reshape(found)
    if wanted.kind in "iu" and stored != wanted and array.size:
        limits = np.iinfo(wanted)
        if int(array.min()) < limits.min or int(array.max()) > limits.max:
            raise ValueError(f"it has integers that are no {wanted}")
    return np.array(array, dtype=wanted, order="C", copy=None)


def _with_article(word: str) -> str:
    return f"{'an' if word.lstrip(chr(39)).startswith(('a', 'e', 'i', 'o', 'u')) else 'a'} {word}"


def _no_constant(constant: str) -> float:
    raise ValueError(f"its header has {constant}")


def _cause(error: Exception) -> str:
    """What is wrong, in words; a failing disk is not the file's fault, and is raised again."""
    if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
        raise error
    words = str(error) or type(error).__name__
    return words if len(words) <= _LONGEST_CAUSE else f"{words[:_LONGEST_CAUSE]} ..."
