"""Frames of whichever library the user has."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import narwhals as nw

_BACKENDS = ("pandas", "polars", "pyarrow")


def make_frame(columns: dict[str, Any], backend: str | None = None) -> Any:
    """A pandas, polars or pyarrow frame of these columns; the first that is installed where backend is None.

    >>> make_frame({"x": [1, 2]}, "polars").shape
    (2, 1)
    """
    if backend is None:
        backend = next((name for name in _BACKENDS if find_spec(name)), None)
        if backend is None:
            raise ValueError("no frame library is installed; pip install 'bough[frames]'")
    elif not isinstance(backend, str) or backend not in _BACKENDS:
        raise ValueError(f"backend is {backend!r}; give one of {', '.join(_BACKENDS)}")
    elif not find_spec(backend):
        raise ValueError(f"{backend} is not installed; pip install {backend}, or 'bough[frames]'")
    return nw.from_dict(columns, backend=backend).to_native()  # type: ignore[arg-type]
