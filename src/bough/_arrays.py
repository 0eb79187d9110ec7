"""The array types that the rest of bough is annotated with."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
"""Parameters, rewards, contexts, covariances."""

Nodes: TypeAlias = NDArray[np.int32]
"""Node numbers, slots and classes: a tree has fewer than 2**31 nodes."""

Integers: TypeAlias = NDArray[np.int64]
"""Counts and hashes."""

Names: TypeAlias = NDArray[Any]
"""Names of nodes: int64, numpy's variable-width string, or Python objects."""

Flags: TypeAlias = NDArray[np.bool_]
"""True or False for each slot or row."""
