"""A tree, and columns of names, as arrays of a file, and back; docs/reference/file-format.md says what they are."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bough._arrays import Names, Nodes
from bough._storage import Contents
from bough.tree.name_columns import as_column
from bough.tree.names import NodeNames, NumberedNames, StoredNames
from bough.tree.tree import Tree

_NAME_PARTS = ("text", "ends", "integers")
_MOST_NODES = 2**31 - 1
_BLOCK = 1 << 20
_LONGEST = 40  # digits of an integer that is a name


def tree_arrays(tree: Tree) -> dict[str, Any]:
    """The topology and the names of a tree."""
    arrays: dict[str, Any] = {"n_children": np.diff(tree.child_start)}
    if isinstance(tree.node_names, StoredNames):
        arrays |= pack_names("inner", tree.node_names.inner)
        arrays |= pack_names("actions", tree.node_names.actions)
    return arrays


def tree_header(tree: Tree) -> dict[str, Any]:
    """What the header says of a tree: the names of its levels where there are any, and a separator other than "/"."""
    levels = {"levels": list(tree.level_names)} if tree.level_names else {}
    return levels if tree.sep == Tree.sep else {**levels, "sep": tree.sep}


def restored_tree(contents: Contents) -> Tree:
    """The tree that `tree_arrays` took apart; a `ValueError` where they are not those of a tree."""
    n_children = contents.array("n_children", np.int32, (None,))
    n = len(n_children)
    if not 0 < n < _MOST_NODES or n_children.min() < 0 or n_children.sum(dtype=np.int64) != n - 1:
        raise ValueError("n_children is not that of a tree")
    child_start = np.zeros(n + 1, dtype=np.int32)
    np.cumsum(n_children, dtype=np.int32, out=child_start[1:])
    child_start += 1
    if (child_start[1:-1] < np.arange(2, n + 1, dtype=np.int32)).any():
        raise ValueError("n_children is not that of a tree")
    names = _restored_names(contents, n_children)
    tree = Tree._frozen(_parents(child_start), child_start, names)
    return replace(tree, **_restored_labels(contents.header))


def _restored_labels(header: Mapping[str, Any]) -> dict[str, Any]:
    levels, sep = header.get("levels", []), header.get("sep", Tree.sep)
    if not isinstance(levels, list) or not all(isinstance(name, str) for name in levels):
        raise ValueError(f"levels is {reprlib.repr(levels)}; expected a list of names")
    if not isinstance(sep, str) or not sep:
        raise ValueError(f"sep is {reprlib.repr(sep)}; expected text")
    return {"level_names": tuple(levels), "sep": sep}


def _parents(child_start: Nodes) -> Nodes:
    """(V,) the parent of each node: the last one whose children begin there or before."""
    n = len(child_start) - 1
    parent = np.zeros(n + 1, dtype=np.int32)
    for start in range(1, n, _BLOCK):  # numpy takes other memory for indices
        np.add.at(parent, child_start[start : min(start + _BLOCK, n)], 1)
    np.cumsum(parent, dtype=np.int32, out=parent)
    parent[0] = -1
    return parent[:n]


def has_at_most(tree: Tree, n: int) -> bool:
    """Whether a tree has at most n levels; one that is far higher takes no time to tell."""
    start, end = 0, 1
    for _ in range(n):
        if start == end:
            return True
        start, end = end, int(tree.child_start[end])
    return start == end


def _restored_names(contents: Contents, n_children: Nodes) -> NodeNames:
    if not any(f"{whose}_{part}" in contents for whose in ("inner", "actions") for part in _NAME_PARTS):
        return NumberedNames(len(n_children))
    n_inner = int(np.count_nonzero(n_children))
    inner = unpack_names("inner", contents, n_inner)
    actions = unpack_names("actions", contents, len(n_children) - n_inner)
    inner_nodes = np.flatnonzero(n_children).astype(np.int32)
    leaves = np.flatnonzero(n_children == 0).astype(np.int32)
    names = StoredNames(inner_nodes, leaves, inner, actions)
    twice = names.duplicate()
    if twice is not None:
        raise ValueError(f"the name {twice[0]!r} is given to {twice[1]} nodes")
    return names


def pack_names(prefix: str, column: Names) -> dict[str, np.ndarray[Any, Any]]:
    """A column of names as arrays without objects: integers, or UTF-8 text and where each name ends."""
    if column.dtype.kind in "iu":
        return {f"{prefix}_integers": column.astype(np.int64)}
    values = column.tolist()
    odd = next((value for value in values if type(value) not in (str, int)), None)
    if odd is not None:
        raise ValueError(f"the name {odd!r} is a {type(odd).__name__}; only strings and integers can be saved")
    encoded = [str(value).encode() for value in values]
    text = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)))
    arrays: dict[str, Any] = {f"{prefix}_text": text, f"{prefix}_ends": ends}
    integers = np.fromiter((type(value) is int for value in values), np.uint8, len(values))
    return {**arrays, f"{prefix}_are_integers": integers} if integers.any() else arrays


def unpack_names(prefix: str, contents: Contents, n: int | None = None) -> Names:
    """What `pack_names` packed: n names, or any number where n is None."""
    if f"{prefix}_integers" in contents:
        return contents.array(f"{prefix}_integers", np.int64, (n,))
    ends = contents.array(f"{prefix}_ends", np.int64, (n,))
    if (np.diff(ends, prepend=0) < 0).any():
        raise ValueError(f"{prefix}_ends is not ascending")
    text = contents.array(f"{prefix}_text", np.uint8, (int(ends[-1]) if len(ends) else 0,)).tobytes()
    stops = ends.tolist()
    names: list[Any] = [text[start:stop].decode() for start, stop in zip([0, *stops], stops, strict=False)]
    if f"{prefix}_are_integers" in contents:
        for i in np.flatnonzero(contents.array(f"{prefix}_are_integers", np.uint8, (len(ends),))).tolist():
            names[i] = _integer(names[i], prefix)
    return as_column(names)


def _integer(text: str, prefix: str) -> int:
    if len(text) > _LONGEST or not text.removeprefix("-").isdecimal() or not text.isascii():
        raise ValueError(f"{prefix} has {reprlib.repr(text)} where there should be an integer")
    return int(text)
