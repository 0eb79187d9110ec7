"""Untouched: what hangs below the touched nodes, for deciding without drawing it.

Kept by slot: how many untouched nodes there are below it at each level, and which of its children are touched. The
rest is about the tree and its prior alone.
"""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtri

from bough._arrays import Floats, Nodes
from bough.inference.kernels import groups, many_scalar, regular, search
from bough.inference.normals import standard_normals
from bough.inference.rate_tables import RateTables, rate_tables
from bough.inference.slots import Slots, grown
from bough.tree.tree import Tree

_TIE = 1e-9  # steps of actions this small beside the rest may be lost in rounding
_MANY = 1_000  # children that it still pays to draw one by one
_EDGES = search.RATE_FROM + np.arange(int((search.RATE_TO - search.RATE_FROM) * search.RATE_STEP)) / search.RATE_STEP
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
        self._known_leaf_classes = set(self._leaf_classes.tolist())
        self._typical = _typical(tree)
        self._patchy = _is_patchy(tree, self._classes)
        single = all(len(classes) == 1 for classes in self._classes)
        # By depth, where nodes of a depth are alike.
        self._one_class = np.concatenate(self._classes) if single else None
        self._branching = _branching(tree) if single else None
        self._root_alone: tuple[Untouched, Slots] | None = None
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

    def sync(self, touched: Slots) -> None:
        """Take in the nodes that were touched since the last time."""
        if touched.count == self._count and self._count:
            return
        if touched.count > len(self._free):
            size = max(touched.count, 2 * len(self._free))
            links = [grown(array, size) for array in (self._first_child, self._next_sibling, self._depth)]
            self._free, (self._first_child, self._next_sibling, self._depth) = grown(self._free, size), links
        groups.sync(
            self._count, touched.node, touched.parent, self._tree.child_start, self._free, self._first_child,
            self._next_sibling, self._depth,
        )  # fmt: skip
        n = self._count = touched.count
        self._kept = (self._depth[:n], self._first_child[:n], self._next_sibling[:n], self._free[:n])

    def note_leaf_class(self, class_: int) -> bool:
        """Mind that there is an action of this class; whether there was none before."""
        if class_ in self._known_leaf_classes:
            return False
        self._known_leaf_classes.add(class_)
        self._leaf_classes = np.append(self._leaf_classes, class_)
        return True

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

    def extended(self, excluded: Nodes, touched: Slots) -> tuple[Untouched, Slots]:
        """The groups below, and the slots, as if the root and the excluded actions were touched, in copies.

        The excluded ones cannot be chosen there.
        """
        if touched.count or len(excluded):
            return self._extended(excluded, touched)
        if self._root_alone is None:  # before any observation: the root alone, every time
            self._root_alone = self._extended(excluded, touched)
        return self._root_alone

    def extend_values(
        self, value: Floats, more: Slots, deviation: Floats, mean: float, rng: np.random.Generator
    ) -> Floats:
        """The values of touched nodes, and draws of what `extended` has in addition."""
        n = len(value)
        values = np.empty(more.count)
        values[:n], values[n:] = value, standard_normals(rng, (more.count - n,))
        groups.extend_values(n, values, more.node, more.parent, self._class_of_node, deviation, mean)
        return values

    def _extended(self, excluded: Nodes, touched: Slots) -> tuple[Untouched, Slots]:
        more, twin = touched.copy(), self.copy()
        more.touch(np.zeros(1, dtype=np.int32), are_leaves=self._tree.n_nodes == 1)
        slots = more.touch(excluded)
        more.choosable[slots] = False
        twin.sync(more)
        return twin, more

    def search(
        self, touched: Slots, value: Floats, deviation: Floats, limits: tuple[Floats, Floats], k: int,
        rng: np.random.Generator,
    ) -> tuple[Nodes, Floats, int]:  # fmt: skip
        """The k best actions of the sample whose touched nodes have these values, with theirs, and the work it took."""
        data = (value, touched.choosable, touched.node, *self._kept, self._tree.child_start)
        top_node, top_score = np.empty(k, dtype=np.int32), np.empty(k)
        tables = self._tables_for(limits[0]) if k == 1 else None
        if tables is not None:
            uniforms = rng.random(16)
            while (visited := regular.search_regular(*data, *tables, uniforms, top_node, top_score)) < 0:
                uniforms = np.concatenate([uniforms, rng.random(len(uniforms))])
            return top_node, top_score, visited
        with rng.bit_generator.lock:
            visited = search.search(
                *data, self._class_of_node, deviation, *limits, self._has_actions, self._typical, _RATES, rng,
                top_node, top_score,
            )  # fmt: skip
        return top_node, top_score, visited

    @property
    def is_patchy(self) -> bool:
        """Whether some node has very many children of unlike variances, so that a search is no good."""
        return self._patchy

    def search_many(
        self, rng: np.random.Generator, n: int, k: int, touched: Slots, draw: tuple[Any, ...], deviation: Floats,
        limits: tuple[Floats, Floats],
    ) -> tuple[Nodes, Floats]:  # fmt: skip
        """(n, k) twice: the k best actions of n draws of a model without contexts, and their scores."""
        top_node, top_score = np.empty((n, k), dtype=np.int32), np.empty((n, k))
        given: tuple[Any, ...] = (
            rng, *draw, touched.parent, self._class_of_node, deviation, touched.choosable, touched.node, *self._kept,
            self._tree.child_start,
        )  # fmt: skip
        tables = self._tables_for(limits[0]) if k == 1 else None
        if tables is not None:
            given = (*given, *tables, top_node, top_score)
            many_scalar.best_in_regular_tree(*given)
        else:
            given = (*given, *limits, self._has_actions, self._typical, _RATES, top_node, top_score)
            many_scalar.best_in_any_tree(*given)
        return top_node, top_score

    def search_arrays(self, touched: Slots, deviation: Floats, k: int) -> tuple[Any, ...]:
        """What `many_vector.best_of_searches` takes; tables are in proportion to the deviations of some context."""
        limits = None if k > 1 else self.limits(deviation, 0.0)
        tables = None if limits is None else self._tables_for(limits[0])
        if tables is None:
            reference, tables = np.empty(0), RateTables(np.empty((0, 0)), np.empty((0, 0)), 0.0, 1.0)
        else:
            reference = limits[0]  # type: ignore[index]
        first = np.cumsum([0, *(len(classes) for classes in self._classes)]).astype(np.int32)
        return (
            touched.parent, self._class_of_node, self._leaf_classes.astype(np.int32), first,
            np.concatenate(self._classes).astype(np.int32), touched.choosable, touched.node, *self._kept,
            self._tree.child_start, self._has_actions, self._typical, _RATES, reference, *tables,
        )  # fmt: skip

    def _tables_for(self, deviation: Floats) -> RateTables | None:
        """The tables of a regular tree for these standard deviations by depth, which scale with them."""
        if self._branching is None:
            return None
        if not self._tables:
            self._tables["reference"] = deviation
            self._tables["tables"] = rate_tables(deviation, self._branching)
        reference: Floats = self._tables["reference"]
        tables: RateTables | None = self._tables["tables"]
        if tables is None or deviation is reference:
            return tables
        scale = float(deviation[-1] / reference[-1])
        if np.abs(deviation - scale * reference).max() > 1e-14 * deviation.max():
            return None  # other proportions, as contexts may give
        return tables._replace(start=tables.start * scale, step=tables.step * scale)


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
