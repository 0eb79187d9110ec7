"""A bough file taken apart into its members, and put together again with some of them changed."""

import io
import json
import struct
import zipfile
import zlib
from dataclasses import dataclass

import numpy as np


def members(path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def arrays(path) -> dict[str, np.ndarray]:
    """Everything but the header."""
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files if name != "header"}


def header(path) -> dict:
    with np.load(path, allow_pickle=False) as archive:
        return json.loads(archive["header"].tobytes())


def npy(array, version=None) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asanyarray(array), version, allow_pickle=False)
    return file.getvalue()


def npy_of(description: str, data: bytes) -> bytes:
    """A member whose description is this text, whatever it says."""
    text = description.encode("latin-1") + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


def npy_header(content) -> bytes:
    """The header's member: JSON of anything, or these bytes."""
    given = content if isinstance(content, bytes) else json.dumps(content).encode()
    return npy(np.frombuffer(given, dtype=np.uint8))


def write(path, parts: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def change(path, settings: dict | None = None, **changed) -> None:
    """Write the file again with header entries and arrays changed; None takes one out."""
    parts = members(path)
    if settings is not None:
        kept = {key: value for key, value in header(path).items() if key not in settings}
        parts["header.npy"] = npy_header(kept | {key: value for key, value in settings.items() if value is not None})
    for name, array in changed.items():
        if array is None:
            del parts[f"{name}.npy"]
        else:
            parts[f"{name}.npy"] = array if isinstance(array, bytes) else npy(array)
    write(path, parts)


@dataclass
class Entry:
    """A member of a zip, with all that its directory says of it, whether or not that is so."""

    name: str
    data: bytes
    size: int
    checksum: int
    method: int = zipfile.ZIP_DEFLATED
    flags: int = 0
    claimed: int | None = None
    """How many bytes the directory says that the data has."""
    directory_name: str | None = None
    offset: int = 0
    """How far from the data's beginning the directory says that it is."""

    @classmethod
    def of(cls, name: str, content: bytes, level: int = 6) -> "Entry":
        deflate = zlib.compressobj(level, zlib.DEFLATED, -15)
        return cls(name, deflate.compress(content) + deflate.flush(), len(content), zlib.crc32(content))


def zipped(entries: list[Entry]) -> bytes:
    """A zip of these entries, lies and all."""
    out, directory = bytearray(), bytearray()
    for entry in entries:
        claimed = len(entry.data) if entry.claimed is None else entry.claimed
        numbers = (entry.flags, entry.method, 0, 33, entry.checksum, claimed, entry.size)
        name, listed = entry.name.encode(), (entry.directory_name or entry.name).encode()
        place = max(len(out) + entry.offset, 0)
        out += struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, *numbers, len(name), 0) + name + entry.data
        directory += struct.pack("<4s6H3L5H2L", b"PK\x01\x02", 20, 20, *numbers, len(listed), 0, 0, 0, 0, 0, place)
        directory += listed
    n = len(entries)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, n, n, len(directory), len(out), 0)
    return bytes(out + directory + end)
