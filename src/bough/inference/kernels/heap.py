"""A heap of entries by their bounds, largest first, in plain arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from bough._arrays import Floats, Nodes
from bough.inference.kernels.jit import kernel


@kernel
def push(heap: Nodes, size: int, bounds: Floats, entry: int) -> None:
    """Overwrites heap (largest bound first) with the entry at its place."""
    i = size
    while i > 0 and bounds[heap[(i - 1) // 2]] < bounds[entry]:
        heap[i] = heap[(i - 1) // 2]
        i = (i - 1) // 2
    heap[i] = entry


@kernel
def pop(heap: Nodes, size: int, bounds: Floats) -> int:
    """Overwrites heap, which has size entries, and returns the entry of the largest bound."""
    first = heap[0]
    moved = heap[size - 1]
    i = 0
    while 2 * i + 1 < size - 1:
        child = 2 * i + 1
        if child + 1 < size - 1 and bounds[heap[child + 1]] > bounds[heap[child]]:
            child += 1
        if bounds[heap[child]] <= bounds[moved]:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = moved
    return int(first)


@kernel
def grown(array: Any, size: int) -> Any:
    """A copy with room for size entries."""
    larger = np.empty(size, dtype=array.dtype)
    larger[: len(array)] = array
    return larger


@kernel
def grown_rows(array: Floats, size: int) -> Floats:
    """A copy with room for size rows."""
    larger = np.empty((size, array.shape[1]))
    larger[: len(array)] = array
    return larger
