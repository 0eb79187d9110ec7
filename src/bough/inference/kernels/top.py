"""The largest of many scores, with ties in random order, and a list that is kept in order."""

from __future__ import annotations

import math

import numpy as np

from bough._arrays import Floats, Nodes
from bough.inference.kernels.jit import kernel


@kernel
def top_of(
    value: Floats,  # (n,)
    candidates: Nodes,  # positions
    rng: np.random.Generator,
    top: Nodes,  # (k,)
    top_score: Floats,  # (k,)
) -> None:
    """Overwrites top and top_score with the positions and the values of the k largest candidates, largest first.

    What may be among them gets a random number when it is met, and the larger one of two that tie stands first.
    """
    last = len(top) - 1
    top_score[:] = -math.inf
    key = np.full(len(top), -1.0)
    for position in candidates:
        score = value[position]
        if score < top_score[last]:
            continue
        own = rng.random() if score == top_score[last] or last > 0 else 2.0
        if score == top_score[last] and last == 0 and key[0] == 2.0:
            key[0] = rng.random()  # it had no rival when it was met
        if score == top_score[last] and own < key[last]:
            continue
        at = last
        while at > 0 and (top_score[at - 1] < score or (top_score[at - 1] == score and key[at - 1] < own)):
            top[at], top_score[at], key[at] = top[at - 1], top_score[at - 1], key[at - 1]
            at -= 1
        top[at], top_score[at], key[at] = position, score, own


@kernel
def insert(node: int, score: float, top: Nodes, top_score: Floats) -> None:
    """Overwrites top_*, which are kept best first, with the action in its place."""
    place = len(top_score) - 1
    while place > 0 and top_score[place - 1] < score:
        top_score[place] = top_score[place - 1]
        top[place] = top[place - 1]
        place -= 1
    top_score[place] = score
    top[place] = node
