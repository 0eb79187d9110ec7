"""Which nodes share a covariance that is to be learned: those of one depth, of one height, or of one named class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bough._arrays import Flags, Floats, Nodes
from bough.model.covariance import ClassCovariances
from bough.tree.tree import Tree


@dataclass(frozen=True)
class NodeClasses:
    """The classes of the nodes of one or several trees."""

    kind: Literal["depth", "height", "node"]
    labels: tuple[str, ...]
    of_node: tuple[Nodes, ...]
    """For each tree (V,) the class of each node."""

    @classmethod
    def of(cls, by: Any, trees: Sequence[Tree]) -> NodeClasses:
        """The classes that a user's `by` means on these trees."""
        if hasattr(by, "to_dict"):  # a pandas Series, whose index has the names
            by = by.to_dict()
        if isinstance(by, str) and by == "depth":
            most = max(tree.height for tree in trees)
            return cls("depth", tuple(f"depth {i}" for i in range(most + 1)), tuple(tree.depth for tree in trees))
        if isinstance(by, str) and by == "height":
            most = max(tree.height for tree in trees)
            heights = tuple(tree.node_height for tree in trees)
            return cls("height", tuple(f"height {i}" for i in range(most + 1)), heights)
        if not isinstance(by, Mapping):
            raise ValueError(f'by is {by!r}; give "depth", "height", or a mapping from the nodes\' names to classes')
        given = [str(label) for label in by.values()]
        labels = list(dict.fromkeys(given))
        taken = next((label for label in labels if label in ("mean", "noise", "noise spread", "noise floor")), None)
        if taken is not None:
            raise ValueError(
                f"a class is called {taken!r}, which is an estimate's name already; call it something else"
            )
        code = {label: i for i, label in enumerate(labels)}
        names = list(by)
        nowhere = next((name for name in names if all(tree.node_names.find(name) < 0 for tree in trees)), None)
        if nowhere is not None:
            hint = trees[0].node_names.suggestion(nowhere, trees[0].sep)
            raise ValueError(f"by has {nowhere!r}, which is no node; {hint}")
        codes = np.array([code[label] for label in given], dtype=np.int32)
        return cls("node", tuple(labels), tuple(_named(tree, names, codes) for tree in trees))

    @classmethod
    def of_model(cls, classes: ClassCovariances) -> NodeClasses:
        """The classes that a model has already."""
        labels = tuple(f"{'class' if classes.kind == 'node' else classes.kind} {i}" for i in range(len(classes.table)))
        return cls(classes.kind, labels, (classes.of_node,))

    @property
    def lone_roots(self) -> Flags:
        """(n,) the classes that have no node but a root."""
        below = np.zeros(len(self.labels), dtype=np.bool_)
        roots = np.zeros(len(self.labels), dtype=np.bool_)
        for of_node in self.of_node:
            below[of_node[1:]] = True
            roots[of_node[0]] = True
        return np.asarray(roots & ~below)

    def covariances(self, trees: Sequence[Tree], table: Floats) -> list[ClassCovariances]:
        """The same covariances by class for each of the trees."""
        found = []
        for tree, of_node in zip(trees, self.of_node, strict=True):
            used = table if self.kind == "node" else table[: tree.height + 1]
            found.append(ClassCovariances(self.kind, of_node, used.copy()))
        return found


def _named(tree: Tree, names: list[Any], codes: Nodes) -> Nodes:
    nodes = np.array([tree.node_names.find(name) for name in names], dtype=np.int64)
    of_node = np.full(tree.n_nodes, -1, dtype=np.int32)
    of_node[nodes[nodes >= 0]] = codes[nodes >= 0]
    left_out = np.flatnonzero(of_node < 0)
    if len(left_out):
        raise ValueError(
            f"by leaves out {len(left_out)} of {tree.n_nodes} nodes, {tree.name(int(left_out[0]))!r} among them; "
            "name them all"
        )
    return of_node
