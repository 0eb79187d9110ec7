"""Names that contain a text, also among millions: all names are kept as one text, which is searched as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

import numpy as np

from bough._arrays import Integers, Nodes
from bough.tree.catalogue import Catalogue
from bough.tree.tree import Tree

_MOST = 3_000  # names that are ranked
_POPULAR = 2_000  # nodes with the most decisions, which are looked at in any case
_LOOKED_AT = 1 << 23  # bytes of names, of which categories come first, for those that begin with a text
_INDEXES: WeakKeyDictionary[Tree, NameIndex] = WeakKeyDictionary()


def find_nodes(catalogue: Catalogue, decisions: Integers, text: str, n: int) -> list[int]:
    """The nodes whose names contain the text in any case, the best first, at most n of them.

    First come names that are it, or whose last part is; then those that begin with it, or whose last part does; then
    all others. Among equals those with more decisions come first. Where thousands of names contain it, only the first
    of them, the first that begin with it, and the nodes with the most decisions are looked at.
    """
    wanted = folded(text)
    if not wanted:
        return []
    tree = catalogue.tree
    index = _index_of(tree)
    sep = folded(tree.sep)
    candidates = dict.fromkeys(index.containing(wanted, _MOST))
    if len(candidates) == _MOST:  # there are more
        for begin in (b"\n" + wanted, sep + wanted):
            candidates |= dict.fromkeys(index.containing(begin, _POPULAR, _LOOKED_AT))
        often = np.argpartition(-decisions[: tree.n_nodes], min(_POPULAR, tree.n_nodes - 1))[:_POPULAR]
        candidates |= {node: None for node in often.tolist() if wanted in index.name(node)}
        exact = tree.node_names.find(text)
        candidates |= {exact: None} if exact >= 0 else {}
    names = {node: index.name(node) for node in candidates}
    if catalogue.is_changed:
        gone = catalogue.are_gone(np.fromiter(names, np.int32, len(names)))
        names = {node: name for (node, name), left in zip(names.items(), gone.tolist(), strict=True) if not left}
        names |= {node: name for node, name in _added(catalogue) if wanted in name}
    ranked = sorted(names, key=lambda node: (_rank(names[node], wanted, sep), -int(decisions[node]), node))
    return ranked[:n]


def prepare_search(tree: Tree) -> None:
    """Have the names of a tree ready, so that the first search does not wait for them."""
    _index_of(tree)


def _index_of(tree: Tree) -> NameIndex:
    """The names of a tree, which are kept as long as the tree is; of a million it takes half a second to make."""
    index = _INDEXES.get(tree)
    if index is None:
        index = _INDEXES[tree] = NameIndex(tree)
    return index


def folded(text: str) -> bytes:
    """A text without regard to case, as bytes without line breaks."""
    return text.replace("\n", " ").casefold().encode("utf-8", "surrogatepass")


def _rank(name: bytes, wanted: bytes, sep: bytes) -> int:
    last = name[name.rfind(sep) + len(sep) :] if sep in name else name
    if wanted in (name, last):
        return 0
    return 1 if name.startswith(wanted) or last.startswith(wanted) else 2


def _added(catalogue: Catalogue) -> Iterator[tuple[int, bytes]]:
    """The nodes that were added since the tree was made, and their names."""
    added = np.arange(catalogue.n_tree_nodes, len(catalogue.parents), dtype=np.int32)
    for node, left in zip(added.tolist(), catalogue.are_gone(added).tolist(), strict=True):
        if not left:
            yield node, folded(str(catalogue.name(node)))


class NameIndex:
    """All names of a tree, one line each.

    >>> import bough
    >>> index = NameIndex(bough.Tree.from_paths(["tea/Green", "tea/black", "coffee"]))
    >>> index.containing(b"green", 10), index.name(3)
    ([3], b'tea/green')
    """

    def __init__(self, tree: Tree) -> None:
        names = [str(name) for name in tree.node_names.names(np.arange(tree.n_nodes, dtype=np.int32))]
        lines = "\n".join(names)
        if lines.count("\n") >= len(names):
            lines = "\n".join(name.replace("\n", " ") for name in names)
        self._text = b"\n" + lines.casefold().encode("utf-8", "surrogatepass") + b"\n"
        self._breaks: Nodes | Integers = np.flatnonzero(np.frombuffer(self._text, dtype=np.uint8) == ord("\n"))

    def name(self, node: int) -> bytes:
        """The name of a node, without regard to case."""
        return self._text[int(self._breaks[node]) + 1 : int(self._breaks[node + 1])]

    def containing(self, wanted: bytes, most: int, end: int | None = None) -> list[int]:
        """The first nodes whose names contain something, or begin with it where it begins with a line break.

        With `end`, only so many bytes of names are looked at.
        """
        text, place = self._text, 0
        places: list[int] = []
        while len(places) < most and (place := text.find(wanted, place, end)) >= 0:
            places.append(place)
            place = text.find(b"\n", place + 1)
        nodes: list[int] = (np.searchsorted(self._breaks, places, side="right") - 1).tolist()
        return nodes
