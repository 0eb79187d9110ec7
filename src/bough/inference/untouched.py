"""Untouched: what hangs below the touched nodes, for deciding without drawing it.

Kept by slot: how many untouched nodes there are below it at each level, and which of its children are touched. The
rest is about the tree and its prior alone.
"""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from bough.arrays import Flags, Floats, Nodes
from bough.inference import regular_kernels
from bough.inference import search_kernels as kernels
from bough.inference.touched import Touched, grown
from bough.tree import Tree

DEEPEST = 64  # a slot keeps a number for each level below it, so very deep trees are left to the full sampler
_TIE = 1e-9  # steps of actions this small beside the rest may be lost in rounding
_MANY = 1_000  # children that it still pays to draw one by one
_PER_DEVIATION = 8  # entries of a table in one standard deviation of the narrowest step
_LARGEST_GRID = 20_000
_EDGES = (
    kernels.RATE_FROM + np.arange(int((kernels.RATE_TO - kernels.RATE_FROM) * kernels.RATE_STEP)) / kernels.RATE_STEP
)
_RATES = -log_ndtr(_EDGES)  # the left end of a cell has its largest rate, so the table bounds it from above


class Untouched:
    """The groups of untouched nodes below the touched ones."""

    def __init__(self, tree: Tree, class_of_node: Nodes) -> None:
        self._tree = tree
        self._class_of_node = class_of_node
        levels = list(zip(tree.level_start[:-1].tolist(), tree.level_start[1:].tolist(), strict=True))
        self._classes = [np.unique(class_of_node[start:end]) for start, end in levels]
        self._has_actions = np.bincount(tree.depth[tree.leaves], minlength=tree.height + 1) > 0
        self._leaf_classes = np.unique(class_of_node[tree.leaves])
        self._typical = _typical(tree)
        self._patchy = _is_patchy(tree, self._classes)
        single = all(len(classes) == 1 for classes in self._classes)
        self._one_class = (
            np.concatenate(self._classes) if single else None
        )  # by depth, where nodes of a depth are alike
        self._branching = _branching(tree) if single else None
        self._root_alone: tuple[Untouched, Touched] | None = None
        self._tables: dict[str, Any] = {}  # shared with copies
        self._count = 0
        self._free = np.zeros((16, tree.height + 2), dtype=np.int32)  # the last level is always empty
        self._first_child = np.empty(16, dtype=np.int32)
        self._next_sibling = np.empty(16, dtype=np.int32)
        self._depth = np.empty(16, dtype=np.int32)

    def copy(self) -> Untouched:
        """A copy whose slots can be extended without changing this one's."""
        twin = copy.copy(self)
        twin._free, twin._first_child = self._free.copy(), self._first_child.copy()
        twin._next_sibling, twin._depth = self._next_sibling.copy(), self._depth.copy()
        return twin

    def sync(self, touched: Touched) -> None:
        """Take in the nodes that were touched since the last time."""
        if touched.count == self._count and self._count:
            return
        if touched.count > len(self._free):
            size = max(touched.count, 2 * len(self._free))
            self._free, self._first_child = grown(self._free, size), grown(self._first_child, size)
            self._next_sibling, self._depth = grown(self._next_sibling, size), grown(self._depth, size)
        kernels.sync(
            self._count, touched.node, touched.parent, self._tree.child_start, self._free, self._first_child,
            self._next_sibling, self._depth,
        )  # fmt: skip
        n = self._count = touched.count
        self._kept = (self._depth[:n], self._first_child[:n], self._next_sibling[:n], self._free[:n])

    def limits(self, deviation: Floats, size: float) -> tuple[Floats, Floats] | None:
        """(height + 1,) twice: the widest and the narrowest step at each depth; None where a search is no good.

        That is where actions may tie, to rounding, and where a node has very many children of unlike variances, which
        would have to be drawn one by one.
        """
        if self._patchy or deviation[self._leaf_classes].min() <= _TIE * max(deviation.max(), abs(size)):
            return None
        if self._one_class is not None:
            alike = deviation[self._one_class]
            return alike, alike
        widest = np.array([deviation[classes].max() for classes in self._classes])
        narrowest = np.array([deviation[classes].min() for classes in self._classes])
        return widest, narrowest

    def extend(
        self, nodes: Nodes, touched: Touched, value: Floats, deviation: Floats, mean: float, rng: np.random.Generator
    ) -> tuple[Untouched, Touched, Floats]:
        """These nodes and their paths drawn as if touched, in copies: the groups below, the slots, their values."""
        if not touched.count and len(nodes) == 1:  # before any observation: the root alone, every time
            if self._root_alone is None:
                self._root_alone = self._extended(nodes, touched)
            twin, more = self._root_alone
        else:
            twin, more = self._extended(nodes, touched)
        values = grown(value, more.count)
        with rng.bit_generator.lock:
            kernels.extend_values(len(value), values, more.node, more.parent, self._class_of_node, deviation, mean, rng)
        return twin, more, values

    def _extended(self, nodes: Nodes, touched: Touched) -> tuple[Untouched, Touched]:
        more, twin = touched.copy(), self.copy()
        more.touch(nodes)
        twin.sync(more)
        return twin, more

    def search(
        self, touched: Touched, value: Floats, allowed: Flags, deviation: Floats, limits: tuple[Floats, Floats], k: int,
        rng: np.random.Generator,
    ) -> tuple[Nodes, Floats, int]:  # fmt: skip
        """The k best actions of the sample whose touched nodes have these values, with theirs, and the work it took."""
        groups = (value, allowed, touched.node, *self._kept, self._tree.child_start)
        top_node, top_score = np.empty(k, dtype=np.int32), np.empty(k)
        tables = self._tables_for(limits[0]) if k == 1 else None
        if tables is not None:
            uniforms = rng.random(16)
            while (looked_at := regular_kernels.search_regular(*groups, *tables, uniforms, top_node, top_score)) < 0:
                uniforms = np.concatenate([uniforms, rng.random(len(uniforms))])
            return top_node, top_score, looked_at
        with rng.bit_generator.lock:
            looked_at = kernels.search(
                *groups, self._class_of_node, deviation, *limits, self._has_actions, self._typical, _RATES, rng,
                top_node, top_score,
            )  # fmt: skip
        return top_node, top_score, looked_at

    def _tables_for(self, deviation: Floats) -> RateTables | None:
        """The tables of a regular tree for these standard deviations by depth, which scale with them."""
        if self._branching is None:
            return None
        if not self._tables:
            self._tables["reference"] = deviation
            self._tables["tables"] = _rate_tables(deviation, self._branching)
        reference: Floats = self._tables["reference"]
        tables: RateTables | None = self._tables["tables"]
        if tables is None or deviation is reference:
            return tables
        scale = float(deviation[-1] / reference[-1])
        if np.abs(deviation - scale * reference).max() > 1e-14 * deviation.max():
            return None  # other proportions, as contexts may give
        return tables._replace(start=tables.start * scale, step=tables.step * scale)


class RateTables(NamedTuple):
    """The rate at which the best action below a node is above a value, by depth, on an even grid of values."""

    rates: Floats  # (height + 1, n)
    log_rates: Floats  # (height + 1, n)
    start: float
    step: float


def _is_patchy(tree: Tree, classes: list[Nodes]) -> bool:
    """Whether some node has very many children at a depth where variances differ."""
    n_children = np.diff(tree.child_start)
    most = [n_children[start:end].max() for start, end in pairwise(tree.level_start.tolist())]
    return any(len(below) > 1 and fan_out > _MANY for below, fan_out in zip(classes[1:], most, strict=False))


def _branching(tree: Tree) -> Nodes | None:
    """(height,) how many children the nodes of each depth have; None where that differs within a depth."""
    n_children = np.diff(tree.child_start)
    starts = tree.level_start.tolist()
    counts = [n_children[start:end] for start, end in pairwise(starts[:-1])]
    if not counts or any((count != count[0]).any() for count in counts):
        return None
    return np.array([count[0] for count in counts], dtype=np.int32)


def _rate_tables(deviation: Floats, branching: Nodes) -> RateTables | None:
    """-log P(no action below a node of each depth is above x, from its parent's value); None if a grid is too large.

    With U the probability that some action is: U of a leaf is a normal's upper tail. The best below b alike children is
    above x with probability 1 - (1 - U)^b, and the node's own step smooths that: a sum over the grid that is exact to
    rounding, since the step's density is sampled finely and the rest is smooth.
    """
    step = float(deviation[deviation > 0.0].min()) / _PER_DEVIATION
    half = int(np.ceil(10.0 * np.sqrt(np.square(deviation[1:]).sum()) / step))
    if half > _LARGEST_GRID:
        return None
    grid = step * np.arange(-half, half + 1)
    above = np.empty((len(deviation), len(grid)))
    above[-1] = ndtr(-grid / deviation[-1])
    for depth in range(len(deviation) - 2, 0, -1):
        with np.errstate(divide="ignore"):
            below = -np.expm1(branching[depth] * np.log1p(-np.minimum(above[depth + 1], 1.0)))
        above[depth] = _smoothed(below, deviation[depth] / step)
    above[0] = 0.0  # the root is never untouched below another
    with np.errstate(divide="ignore"):
        rates = -np.log1p(-np.minimum(above, 1.0))
        rates = np.minimum(rates, 700.0)
        return RateTables(rates, np.log(np.maximum(rates, 1e-300)), float(grid[0]), step)


def _smoothed(upper: Floats, deviation: float) -> Floats:
    """The upper tail after adding a normal step, all in units of the grid: ones to the left, zeros to the right."""
    if deviation == 0.0:
        return upper
    reach = int(np.ceil(9.5 * deviation))
    weights = np.exp(-0.5 * np.square(np.arange(-reach, reach + 1) / deviation))
    padded = np.concatenate([np.ones(reach), upper, np.zeros(reach)])
    return np.asarray(np.convolve(padded, weights / weights.sum(), mode="valid"))


def _typical(tree: Tree) -> Floats:
    """(height + 1, height + 1): about the largest of the normals at each level below a node, by the node's depth.

    Only a guide to where thresholds go: taken from the node with the most descendants at that level.
    """
    typical = np.zeros((tree.height + 1, tree.height + 1))
    for depth in range(tree.height):
        low = np.arange(tree.level_start[depth], tree.level_start[depth + 1])
        high = low + 1
        for level in range(1, tree.height - depth + 1):
            low, high = tree.child_start[low], tree.child_start[high]
            most = int((high - low).max())
            typical[depth, level] = max(0.0, float(-ndtri(-np.expm1(-1.0 / most)))) if most else 0.0
    return typical
