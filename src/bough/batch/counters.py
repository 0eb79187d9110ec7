"""Random numbers by counter: what is drawn for a decision depends on the seed and on its number, and on nothing else.

Threefry (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) makes two words of 32 bits out of a key
and two counters. Here one counter is the decision's number and the other says what is drawn, so that neither blocks nor
chunks change anything. It is written out, and not taken from `jax.random`, so that XLA computes it where its words are
used and never writes them to memory.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax.numpy as jnp

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def words(key: Any, first: Any, second: Any) -> tuple[Any, Any]:
    """Two words of 32 random bits for each pair of counters, which are broadcast; the key has two words."""
    schedule = (key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(_PARITY))
    a = first + schedule[0]
    b = second + schedule[1]
    a, b = jnp.broadcast_arrays(a, b)
    for turn in range(5):
        for shift in _ROTATIONS[turn % 2]:
            a = a + b
            b = (b << jnp.uint32(shift)) | (b >> jnp.uint32(32 - shift))
            b = b ^ a
        a = a + schedule[(turn + 1) % 3]
        b = b + schedule[(turn + 2) % 3] + jnp.uint32(turn + 1)
    return a, b


def exponential(word: Any, dtype: Any) -> Any:
    """Standard exponentials, each from a word; the largest is 22.9."""
    return -jnp.log((word.astype(dtype) + dtype(0.5)) * dtype(2.0**-32))


class Drawn(NamedTuple):
    """Two independent normals for each pair of counters, and two independent exponentials of the same words.

    The exponentials break ties, which are there only where scores do not depend on the normals.
    """

    first: Any
    second: Any
    exponential: Any
    other_exponential: Any


def normals(key: Any, first: Any, second: Any, dtype: Any) -> Drawn:
    """Standard normals by Box and Muller's transform, and the exponentials of the words that they are made from."""
    a, b = words(key, first, second)
    half_square, angle = exponential(a, dtype), dtype(2.0 * math.pi * 2.0**-32) * b.astype(dtype)
    radius = jnp.sqrt(dtype(2.0) * half_square)
    return Drawn(radius * jnp.cos(angle), radius * jnp.sin(angle), half_square, exponential(b, dtype))
