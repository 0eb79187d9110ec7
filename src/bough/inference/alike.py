"""Subtrees that are alike throughout, and the law of the best action in them where nothing has been observed.

A subtree is *alike throughout* where all children of a node are alike, at each of its levels: any two actions in it
can change places. Its *type* says its steps and how many children its nodes have, level by level. Untouched subtrees of
one type below one node are a group, and actions of a group have equal chances.

With u the distance of x from the parameter of the node above, the probability that all actions of a subtree are at most
x is a function of u alone. For an action with step s it is Phi(u / s). For a node with k children, each with the
function g, it is g^k, smoothed by the node's own step. It is tabulated by its *rate* -log g, and the *hazard* g' / g,
the density of the best action at x given that all are at most x.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr

from bough._arrays import Floats, Integers, Nodes
from bough.tree.tree import Tree

_REACH = 9.0  # deviations that a table goes either way
_PER_WIDTH = 16  # entries of a table in one width of what it tabulates
_LARGEST = 10_000  # entries of a table, to either side
_SMALLEST = 1e-300


class Recipe(NamedTuple):
    """What the subtrees of one type are made of."""

    class_: int
    """The covariance class of the top node."""
    n_children: int
    """How many it has; none where it is an action."""
    child: int
    """The type of its children; -1 where it has none."""


class TooFineError(Exception):
    """Steps that are so unlike that tables would be too large."""


class Table(NamedTuple):
    """The law of the best action of a subtree, on an even grid of distances from the parameter above it."""

    start: float
    step: float
    log_rate: Floats
    log_hazard: Floats
    variance: float
    """Of an action around the parameter above the subtree."""
    width: float
    """About how far one has to go for the law to change."""


class Alike:
    """The types of all subtrees of a tree."""

    def __init__(self, tree: Tree, class_of_node: Nodes) -> None:
        self.of_node = np.full(tree.n_nodes, -1, dtype=np.int32)
        """(V,) the type of the subtree below each node; -1 where it is not alike throughout."""
        self.recipes: list[Recipe] = []
        n_children = np.diff(tree.child_start)
        for start, end in reversed(list(pairwise(tree.level_start.tolist()))):
            nodes, counts, classes = np.arange(start, end), n_children[start:end], class_of_node[start:end]
            below = self.of_node[tree.child_start[start] : tree.child_start[end]]
            if all(_is_constant(each) for each in (counts, classes, below)) and (not len(below) or below[0] >= 0):
                child = int(below[0]) if len(below) else -1
                self.of_node[start:end] = len(self.recipes)
                self.recipes.append(Recipe(int(classes[0]), int(counts[0]), child))
                continue
            leaves, inner = nodes[counts == 0], nodes[counts > 0]
            self._add(leaves, class_of_node[leaves], np.zeros(len(leaves), np.int64), np.full(len(leaves), -1))
            if len(inner):
                first = tree.child_start[inner] - tree.child_start[start]
                least, most = np.minimum.reduceat(below, first), np.maximum.reduceat(below, first)
                same = (least == most) & (least >= 0)
                kept = inner[same]
                self._add(kept, class_of_node[kept], n_children[kept], least[same])
        self.unlike = np.flatnonzero(self.of_node < 0).astype(np.int32)
        """The inner nodes below which not all is alike."""
        self._tables: dict[tuple[tuple[float, int], ...], Table | None] = {}

    def _add(self, nodes: Nodes, classes: Nodes, counts: Integers, children: Nodes) -> None:
        """Give nodes their types, of which new ones are made."""
        if not len(nodes):
            return
        key = (classes.astype(np.int64) * (len(self.recipes) + 1) + children + 1) * (int(counts.max()) + 1) + counts
        _, first, type_ = np.unique(key, return_index=True, return_inverse=True)
        self.of_node[nodes] = len(self.recipes) + type_
        self.recipes += [Recipe(int(classes[i]), int(counts[i]), int(children[i])) for i in first.tolist()]

    def n_actions(self, type_: int) -> int:
        """How many actions a subtree of this type has."""
        recipe, n = self.recipes[type_], 1
        while recipe.n_children:
            n *= recipe.n_children
            recipe = self.recipes[recipe.child]
        return n

    def table(self, type_: int, deviation: Floats) -> Table | None:
        """The law of the best action of a type, with these deviations by class; None where no node has a step."""
        steps = []
        recipe = self.recipes[type_]
        while True:
            steps.append((float(deviation[recipe.class_]), recipe.n_children))
            if not recipe.n_children:
                break
            recipe = self.recipes[recipe.child]
        key = tuple(steps)
        if key not in self._tables:
            self._tables[key] = _table(key)
        return self._tables[key]


def _is_constant(numbers: Nodes) -> bool:
    """Whether all are the same; also where there are none."""
    return not len(numbers) or bool(numbers.min() == numbers.max())


def _table(steps: tuple[tuple[float, int], ...]) -> Table | None:
    """Of a subtree whose nodes have these steps and numbers of children, from the top down."""
    table: Table | None = None
    for step, count in reversed(steps):
        if table is None:  # all actions below are where this node is, if there are any
            table = _action(step) if step > 0.0 else None
            continue
        table = table._replace(log_rate=table.log_rate + math.log(count), log_hazard=table.log_hazard + math.log(count))
        table = table._replace(width=table.width / math.sqrt(1.0 + math.log(count)))
        if step > 0.0:
            table = _smoothed(table, step)
    return table


def _grid(reach: float, step: float) -> Floats:
    half = math.ceil(reach / step)
    if half > _LARGEST:
        raise TooFineError
    return np.asarray(step * np.arange(-half, half + 1), dtype=np.float64)


def _action(deviation: float) -> Table:
    """Of one action: a normal distribution function."""
    step = deviation / _PER_WIDTH
    u = _grid(_REACH * deviation, step)
    z = u / deviation
    log = log_ndtr(z)
    hazard = -0.5 * z**2 - log - math.log(deviation * math.sqrt(2.0 * math.pi))
    return Table(float(u[0]), step, np.log(-log), hazard, deviation**2, deviation)


def _smoothed(table: Table, deviation: float) -> Table:
    """After a step of the node above; sums over even grids, which are exact to rounding for smooth functions."""
    variance, width = table.variance + deviation**2, math.hypot(table.width, deviation)
    step = min(width / _PER_WIDTH, 0.4 / math.hypot(1.0 / table.width, 1.0 / deviation))
    u = _grid(_REACH * math.sqrt(variance), step)
    margin = math.ceil(_REACH * deviation / step)
    y = np.concatenate([u[0] + step * np.arange(-margin, 0), u, u[-1] + step * np.arange(1, margin + 1)])
    place = (y - table.start) / table.step
    inside = (place >= 0.0) & (place <= len(table.log_rate) - 2)
    rate = np.where(place < 0.0, np.inf, 0.0)
    rate[inside] = np.exp(_cubic(place[inside], table.log_rate))
    hazard = np.zeros(len(y))
    hazard[inside] = np.exp(_cubic(place[inside], table.log_hazard))
    kernel = np.exp(-0.5 * np.square(step * np.arange(-margin, margin + 1) / deviation))
    kernel /= kernel.sum()
    below, above, slope = (
        np.convolve(part, kernel, mode="valid") for part in (np.exp(-rate), -np.expm1(-rate), np.exp(-rate) * hazard)
    )
    rate = np.where(below < 0.5, -np.log(np.maximum(below, _SMALLEST)), -np.log1p(-np.minimum(above, 0.6)))
    log_hazard = np.log(np.maximum(slope, _SMALLEST) / np.maximum(below, _SMALLEST))
    return Table(float(u[0]), step, np.log(np.maximum(rate, _SMALLEST)), log_hazard, variance, width)


def _cubic(place: Floats, table: Floats) -> Floats:
    """The cubics through the four nearest entries."""
    i = np.clip(place.astype(np.int64), 1, len(table) - 3)
    u = place - i
    return np.asarray(
        -u * (u - 1.0) * (u - 2.0) / 6.0 * table[i - 1]
        + (u + 1.0) * (u - 1.0) * (u - 2.0) / 2.0 * table[i]
        - (u + 1.0) * u * (u - 2.0) / 2.0 * table[i + 1]
        + (u + 1.0) * u * (u - 1.0) / 6.0 * table[i + 2]
    )
