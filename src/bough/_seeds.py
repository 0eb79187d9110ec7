"""Seeds: anything that `numpy.random.default_rng` takes, and a clear error for the rest."""

from __future__ import annotations

from typing import Any

import numpy as np

_LIVE = (np.random.Generator, np.random.BitGenerator, np.random.RandomState)


def generator(seed: Any) -> np.random.Generator:
    """A generator from a seed; a generator is taken as it is, so that its stream goes on.

    >>> generator(0).integers(100)
    np.int64(85)
    """
    if isinstance(seed, np.random.Generator):
        return seed
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise ValueError(f"the seed is {seed!r}; give a whole number of at least 0, or a numpy generator") from None


def sequence(seed: Any) -> np.random.SeedSequence:
    """A seed sequence from a seed; a generator gives one by moving on."""
    if isinstance(seed, np.random.SeedSequence):
        return child(seed)  # a copy: spawning from it leaves the caller's as it was
    if isinstance(seed, _LIVE):
        return np.random.SeedSequence(generator(seed).integers(2**32, size=4).tolist())
    generator(seed)  # for its error
    return np.random.SeedSequence(seed)


def child(parent: np.random.SeedSequence, *key: int) -> np.random.SeedSequence:
    """The child of that key, whatever other children there are."""
    return np.random.SeedSequence(parent.entropy, spawn_key=(*parent.spawn_key, *key), pool_size=parent.pool_size)
