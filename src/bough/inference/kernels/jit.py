"""The one place that says how kernels are compiled.

Compiled when first called and cached on disk. No `fastmath` (results must not depend on the machine's
vector width) and no `parallel` (runs are parallel, not kernels). A cached kernel is not recompiled when a function
that it calls changes in *another* file, so kernels only call kernels of their own file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

_F = TypeVar("_F", bound=Callable[..., Any])


def kernel(function: _F) -> _F:
    """The function, compiled on its first call."""
    return cast(_F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))
