"""Pickles of dictionaries, lists, text and arrays of bytes, read without running anything that may be hidden in them.

A pickle names the globals that it wants called. Here it gets stand-ins for the few that such files name, which only
remember what they were called with; anything else is refused. Not even numpy's own code runs on the file's bytes.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray


class _StandIn:
    """What a pickle gets in place of a global; having `__setstate__`, its classes cannot be changed by a pickle."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class PickledArray(_StandIn):
    """In place of numpy.ndarray, and of the function that makes an empty one."""

    def bytes_array(self) -> NDArray[np.uint8]:
        """The two-dimensional array of bytes that was pickled."""
        match self.state:
            case (int(), (int(n), int(width)), _Dtype(arguments=("u1" | b"u1", *_)), fortran, bytes(data)):
                if n >= 0 and width >= 0 and n * width == len(data):
                    return np.frombuffer(data, np.uint8).reshape((n, width), order="F" if fortran else "C")
        raise ValueError("its data is not a whole two-dimensional array of bytes")


class _Dtype(_StandIn):
    """In place of numpy.dtype."""


class _Encode(_StandIn):
    """In place of _codecs.encode, with which Python 3 writes bytes for Python 2."""

    def __new__(cls, text: str, encoding: str) -> bytes:  # type: ignore[misc]
        if encoding != "latin1":
            raise ValueError(f"it has bytes in the encoding {encoding!r}; latin1 is expected")
        return text.encode("latin-1")


_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): PickledArray,
    ("numpy._core.multiarray", "_reconstruct"): PickledArray,
    ("numpy", "ndarray"): PickledArray,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _Encode,
}


class _Unpickler(pickle.Unpickler):
    """An unpickler that imports nothing."""

    def find_class(self, module: str, name: str) -> type[_StandIn]:
        if (module, name) not in _ALLOWED:
            raise ValueError(f"it asks for {module}.{name}, which is forbidden because it could run any code")
        return _ALLOWED[module, name]


def unpickle(name: str, data: bytes) -> dict[str, Any]:
    """The dictionary that was pickled, with its keys as text."""
    try:
        loaded = _Unpickler(io.BytesIO(data), encoding="bytes").load()
    except Exception as error:  # a pickle made to do harm can raise anything
        raise ValueError(f"{name} in it is not a pickle that is expected there: {error}") from error
    if not isinstance(loaded, dict):
        raise ValueError(f"{name} in it holds a {type(loaded).__name__} instead of a dictionary")
    return {text(key): value for key, value in loaded.items()}


def text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, str):
        return value
    raise ValueError(f"a name in it is a {type(value).__name__} instead of text")
