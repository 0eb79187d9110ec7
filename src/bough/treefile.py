"""A tree as arrays of a file, and back; docs/file-format.md says what they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bough import storage
from bough.names import NumberedNames, StoredNames
from bough.tree import Tree


def tree_arrays(tree: Tree) -> dict[str, Any]:
    """The topology and the names of a tree."""
    arrays: dict[str, Any] = {"n_children": np.diff(tree.child_start)}
    if isinstance(tree.node_names, StoredNames):
        arrays |= storage.pack_names("inner", tree.node_names.inner)
        arrays |= storage.pack_names("actions", tree.node_names.actions)
    return arrays


def restored_tree(arrays: Mapping[str, Any]) -> Tree:
    """The tree that `tree_arrays` took apart; a `ValueError` where they are not those of a tree."""
    n_children = arrays["n_children"]
    n = len(n_children)
    child_start = np.concatenate([[1], 1 + np.cumsum(n_children)]).astype(np.int32)
    if not n or (n_children < 0).any() or child_start[-1] != n or (child_start[1:-1] < np.arange(2, n + 1)).any():
        raise ValueError("n_children is not that of a tree")
    parent = np.concatenate([[-1], np.repeat(np.arange(n), n_children)]).astype(np.int32)
    if "inner_integers" not in arrays and "inner_text" not in arrays:
        return Tree._frozen(parent, child_start, NumberedNames(n))
    inner, actions = storage.unpack_names("inner", arrays), storage.unpack_names("actions", arrays)
    inner_nodes = np.flatnonzero(n_children).astype(np.int32)
    leaves = np.flatnonzero(n_children == 0).astype(np.int32)
    if (len(inner), len(actions)) != (len(inner_nodes), len(leaves)):
        raise ValueError("there are not as many names as nodes")
    return Tree._frozen(parent, child_start, StoredNames(inner_nodes, leaves, inner, actions))
