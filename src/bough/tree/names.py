"""Names of nodes, stored as arrays and found by hash: no Python object a node, no dictionary.

Two kinds. `NumberedNames` stores nothing: a node's name is its number. `StoredNames` keeps one
column for the inner nodes and one for the actions (in a catalogue the categories are strings and the
products often integers), and finds a name by binary search in the sorted hashes of all of them.
"""

from __future__ import annotations

import difflib
import itertools
import operator
from bisect import bisect_left
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np

from bough._arrays import Flags, Integers, Names, Nodes
from bough.tree.name_columns import (
    are_equal,
    as_column,
    end_in,
    hash_each,
    hashes_of,
    integer_of,
    is_bool,
    plain,
    ranks,
    read_column,
    taken,
)

_BOOL_HASHES = (0, 1)  # of False and True, and so of all that equals them
_SUGGEST_UP_TO = 5_000  # looking for a close match among more names than this is too slow
_SHOWN = 3  # names in a suggestion
_SEARCH_UP_TO = 100_000  # reading more names than this for an error is too slow
_MANY = 2_000  # names that it pays to sort before they are looked up


class UnknownNameError(KeyError):
    """A name that the tree does not have; a `KeyError` whose text reads as a sentence.

    >>> import bough
    >>> tree = bough.Tree.from_nested({"tea": ["green", "black"]})
    >>> tree.index("blakc")
    Traceback (most recent call last):
    ...
    bough.tree.names.UnknownNameError: unknown name 'blakc'; did you mean 'black'?
    """

    def __str__(self) -> str:
        return str(self.args[0])


class NodeNames(Protocol):
    """What a tree asks of its names. Nodes go by their numbers here."""

    def name(self, node: int) -> Hashable: ...

    def names(self, nodes: Nodes) -> list[Hashable]:
        """The names of many nodes."""
        ...

    def find(self, name: object) -> int:
        """The node of that name, or -1."""
        ...

    def find_all(self, names: Sequence[object] | Names) -> Nodes:
        """The node of each name, or -1."""
        ...

    def ending_in(self, part: str, sep: str) -> Nodes:
        """The nodes whose name is this text, or ends in it after a separator, ascending."""
        ...

    def suggestion(self, name: object, sep: str, /) -> str:
        """What to say of a name that no node has."""
        ...


class NumberedNames:
    """The name of a node is its number, and nothing is stored."""

    def __init__(self, n_nodes: int) -> None:
        self._n_nodes = n_nodes

    def name(self, node: int) -> Hashable:
        return int(node)

    def names(self, nodes: Nodes) -> list[Hashable]:
        return cast(list[Hashable], nodes.tolist())

    def find(self, name: object) -> int:
        try:
            node = operator.index(name)  # type: ignore[arg-type]
        except TypeError:
            return -1
        if isinstance(name, bool) or not 0 <= node < self._n_nodes:
            return -1
        return node

    def find_all(self, names: Sequence[object] | Names) -> Nodes:
        given = names if isinstance(names, np.ndarray) else as_column(names)
        if given.dtype.kind in "iu":
            known = (given >= 0) & (given < self._n_nodes)
            return np.where(known, given, -1).astype(np.int32)
        return np.fromiter(map(self.find, given), np.int32, len(given))

    def ending_in(self, part: str, _sep: str) -> Nodes:
        node = twin(self, part)
        return np.array([] if node is None else [node], dtype=np.int32)

    def suggestion(self, name: object, _sep: str) -> str:
        if twin(self, name) is not None:
            return _cast(name)
        return f"names are the numbers 0 to {self._n_nodes - 1} here"


class StoredNames:
    """Names kept in two columns, the inner nodes' and the actions', in the order of their numbers."""

    def __init__(self, inner_nodes: Nodes, leaves: Nodes, inner: Names, actions: Names) -> None:
        self._inner_nodes = inner_nodes
        self._leaves = leaves
        self.inner = inner
        self.actions = actions
        for column in (inner, actions):
            column.setflags(write=False)

    @classmethod
    def of(
        cls, inner_nodes: Nodes, leaves: Nodes, names: Sequence[Hashable], order: Integers | None = None
    ) -> StoredNames:
        """Names that are given as a list, whose place `order[i]` has that of node i; the i-th where order is None."""
        (inner, of_inner), (actions, of_actions) = (
            read_column(names, nodes if order is None else order[nodes]) for nodes in (inner_nodes, leaves)
        )
        stored = cls(inner_nodes, leaves, inner, actions)
        stored._index = stored._indexed(of_inner, of_actions)
        return stored

    def __getstate__(self) -> dict[str, Any]:
        # Python salts the hashes of strings anew in every process.
        return {name: value for name, value in self.__dict__.items() if name not in ("_index", "_views")}

    def name(self, node: int) -> Hashable:
        place = np.int32(node)  # another type would have the whole array converted first
        rank = int(self._leaves.searchsorted(place))
        if rank < len(self._leaves) and self._leaves[rank] == node:
            return plain(self.actions[rank])
        return plain(self.inner[int(self._inner_nodes.searchsorted(place))])

    def names(self, nodes: Nodes) -> list[Hashable]:
        rank = np.minimum(np.searchsorted(self._leaves, nodes), len(self._leaves) - 1)
        names: list[Hashable] = self.actions[rank].tolist()
        inner = np.flatnonzero(self._leaves[rank] != nodes)
        if len(inner):
            rank = np.searchsorted(self._inner_nodes, nodes[inner])
            for i, name in zip(inner.tolist(), self.inner[rank].tolist(), strict=True):
                names[i] = name
        return names

    @cached_property
    def _index(self) -> tuple[Integers, Nodes]:
        """All hashes in ascending order, and the node that each belongs to."""
        return self._indexed(hashes_of(self.inner), hashes_of(self.actions))

    def _indexed(self, of_inner: Integers, of_actions: Integers) -> tuple[Integers, Nodes]:
        hashes = np.concatenate([of_inner, of_actions])
        nodes = np.concatenate([self._inner_nodes, self._leaves])
        order = np.argsort(hashes, kind="stable")
        return hashes[order], nodes[order]

    @cached_property
    def _views(self) -> tuple[Any, Any, Any]:
        """Of the index, the hashes and the nodes, and the actions' nodes, as what Python reads quickest one by one."""
        return tuple(memoryview(cast(Any, array)) for array in (*self._index, self._leaves))  # type: ignore[return-value]

    def find(self, name: object) -> int:
        try:
            wanted = hash(name)
        except TypeError:
            return -1
        hashes, nodes, leaves = self._views
        position = bisect_left(hashes, wanted)
        while position < len(hashes) and hashes[position] == wanted:
            node: int = nodes[position]
            rank = bisect_left(leaves, node)
            action = rank < len(leaves) and leaves[rank] == node
            found = plain(self.actions[rank]) if action else self.name(node)
            if found == name and (wanted not in _BOOL_HASHES or is_bool(found) == is_bool(name)):
                return node
            position += 1
        return -1

    def find_all(self, names: Sequence[object] | Names) -> Nodes:
        column = names if isinstance(names, np.ndarray) else None
        given = names.tolist() if isinstance(names, np.ndarray) else list(names)
        try:
            wanted = hashes_of(column) if column is not None else hash_each(given, len(given))
        except TypeError:
            return np.fromiter(map(self.find, given), np.int32, len(given))
        found, likely, known = self._likely(wanted)
        sure = np.ones(len(given), dtype=np.bool_)
        for i in ((wanted == 0) | (wanted == 1)).nonzero()[0].tolist():  # as _BOOL_HASHES
            sure[i] = is_bool(given[i]) == is_bool(likely[i])
        try:
            if likely == given and sure.all():
                return found
            # What shares its hash with another name is looked up by itself.
            for i, (name, one) in enumerate(zip(given, likely, strict=True)):
                if not (sure[i] and name == one):
                    found[i] = self.find(name) if known[i] else -1
        except TypeError:  # pandas.NA will not say what it equals
            return np.fromiter(map(self.find, given), np.int32, len(given))
        return found

    def _likely(self, wanted: Integers) -> tuple[Nodes, list[Hashable], Flags]:
        """For each hash the node that most likely has it, the name of that, and whether any name has the hash.

        Of many, each is looked for once and names are read in the order in which they lie in memory.
        """
        hashes, nodes = self._index
        if len(wanted) < _MANY:
            position = np.minimum(np.searchsorted(hashes, wanted), len(hashes) - 1)
            found = nodes[position]
            return found, self.names(found), hashes[position] == wanted
        distinct, of_wanted = np.unique(wanted, return_inverse=True)
        position = np.minimum(np.searchsorted(hashes, distinct), len(hashes) - 1)
        found, known = nodes[position], hashes[position] == distinct
        order = np.argsort(found)
        names = np.empty(len(found), dtype=object)
        names[order] = np.fromiter(self.names(found[order]), dtype=object, count=len(found))
        return found[of_wanted], names[of_wanted].tolist(), known[of_wanted]

    def found_in(self, other: StoredNames) -> Nodes:
        """(V,) the node that has the same name among those of another tree, or -1.

        Both indexes are in the order of their hashes, so that going through them finds all that may be the same.
        """
        hashes, nodes = self._index
        theirs, their_nodes = other._index
        place = np.minimum(np.searchsorted(theirs, hashes), len(theirs) - 1)
        found = np.empty(len(nodes), dtype=np.int32)
        found[nodes] = np.where(theirs[place] == hashes, their_nodes[place], -1)
        unsure = found >= 0
        for mine, own, its, own_of_it in (
            (self.inner, self._inner_nodes, other.inner, other._inner_nodes),
            (self.actions, self._leaves, other.actions, other._leaves),
        ):
            unsure[own] &= ~are_equal(mine, its, ranks(own_of_it, len(theirs))[found[own]])
        first, last = np.searchsorted(hashes, [min(_BOOL_HASHES), max(_BOOL_HASHES) + 1])
        unsure[nodes[first:last]] = True  # True equals 1 but does not name the same
        unsure &= found >= 0
        for node in np.flatnonzero(unsure).tolist():
            found[node] = other.find(self.name(node))
        return found

    def ending_in(self, part: str, sep: str) -> Nodes:
        nodes = [self._inner_nodes[end_in(self.inner, part, sep)], self._leaves[end_in(self.actions, part, sep)]]
        return np.sort(np.concatenate(nodes))

    def suggestion(self, name: object, sep: str) -> str:
        if twin(self, name) is not None:
            return _cast(name)
        total = len(self.inner) + len(self.actions)
        if isinstance(name, str) and total <= _SEARCH_UP_TO:
            found = self.names(self.ending_in(name, sep))
            if len(found) > _SHOWN:
                return f"{len(found):,} names end in it, such as {found[0]!r}; tree.find({name!r}) lists them"
            if found:
                return f"did you mean {' or '.join(map(repr, found))}?"
        if isinstance(name, str) and total <= _SUGGEST_UP_TO:
            every = {str(n): n for n in itertools.chain(self.inner.tolist(), self.actions.tolist())}
            close = difflib.get_close_matches(name, every, n=1)
            if close:
                return f"did you mean {every[close[0]]!r}?"
        return f"an action of this tree is {plain(self.actions[0])!r}"

    def duplicate(self) -> tuple[Hashable, int] | None:
        """A name that more than one node has, with how many have it; None if there is none."""
        hashes, nodes = self._index
        twins = np.flatnonzero(hashes[1:] == hashes[:-1])
        if not len(twins):
            return None
        seen: dict[Hashable, int] = {}
        for position in np.union1d(twins, twins + 1):
            name = self.name(int(nodes[position]))
            seen[name] = seen.get(name, 0) + 1
        name, times = max(seen.items(), key=lambda item: item[1])
        return (name, times) if times > 1 else None

    def edited(self, source: Nodes, number: Nodes, child_start: Nodes, added: Sequence[Hashable]) -> StoredNames:
        """The names of a tree whose node i is this one's node `source[i]`, or the j-th added where that is V + j.

        `number` is the way back, -1 for nodes that are gone; `child_start` is the new tree's.
        """
        n_children = np.diff(child_start)
        inner, leaves = (np.flatnonzero(flags).astype(np.int32) for flags in (n_children, n_children == 0))
        names = StoredNames(
            inner,
            leaves,
            self._picked(self.inner, self._inner_nodes, source[inner], added),
            self._picked(self.actions, self._leaves, source[leaves], added),
        )
        names._index = self._edited_index(number, added)
        return names

    def _picked(self, column: Names, nodes: Nodes, wanted: Nodes, added: Sequence[Hashable]) -> Names:
        """The names of the wanted nodes, nearly all of which are in this column, the one of these nodes."""
        n = len(self.inner) + len(self.actions)
        place = ranks(nodes, n + len(added))[wanted]
        elsewhere = np.flatnonzero(place < 0)
        others = as_column(added[i - n] if i >= n else self.name(i) for i in wanted[elsewhere].tolist())
        if len(others) == len(wanted):
            return others
        place[elsewhere] = 0
        mixed = column.dtype.kind == "O" or (len(others) > 0 and others.dtype != column.dtype)
        picked = taken(column.astype(object) if mixed else column, place)
        picked[elsewhere] = others
        return as_column(picked) if mixed else picked

    def _edited_index(self, number: Nodes, added: Sequence[Hashable]) -> tuple[Integers, Nodes]:
        hashes, nodes = self._index
        nodes = number[nodes]
        kept = nodes >= 0
        hashes, nodes = hashes[kept], nodes[kept]
        more = hash_each(added, len(added))
        order = np.argsort(more, kind="stable")
        place = np.searchsorted(hashes, more[order])
        coming = number[len(number) - len(added) :][order]
        return np.insert(hashes, place, more[order]), np.insert(nodes, place, coming)


class ActionNames(Sequence[Hashable]):
    """The actions' names in the order of `tree.leaves`: reads like a list, stored as an array.

    >>> import bough
    >>> actions = bough.Tree.from_paths(["tea/green", "tea/black", "coffee"]).actions
    >>> actions[0], len(actions), "coffee" in actions
    ('coffee', 3, True)
    >>> actions == ["coffee", "tea/green", "tea/black"]
    True
    """

    def __init__(self, column: Names, tree: Any) -> None:
        self._column = column
        self._tree = tree

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, index: Any) -> Any:
        """One name for an integer; an array of names for a slice or an index array."""
        chosen = self._column[index]
        return chosen if isinstance(chosen, np.ndarray) else plain(chosen)

    def __contains__(self, name: object) -> bool:
        node = self._tree.node_names.find(name)
        return node >= 0 and bool(self._tree.child_start[node] == self._tree.child_start[node + 1])

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (ActionNames, list, tuple, np.ndarray)):
            return len(self) == len(other) and list(self) == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Names:
        return np.array(self._column, dtype=dtype, copy=copy)  # a view cannot be written to

    def __repr__(self) -> str:
        shown = ", ".join(repr(plain(name)) for name in self._column[:5])
        more = f", ... {len(self) - 5:,} more" if len(self) > 5 else ""
        return f"ActionNames([{shown}{more}])"


def twin(names: NodeNames, name: object) -> str | int | None:
    """The name that reads like this one and is of another type, an integer where this is text or the reverse.

    >>> import bough
    >>> twin(bough.Tree.balanced(2, 2).node_names, "3")
    3
    """
    meant: str | int | None
    if isinstance(name, str):
        meant = integer_of(name)
    elif isinstance(name, (int, np.integer)) and not isinstance(name, bool):
        meant = str(name)
    else:
        return None
    return meant if meant is not None and names.find(meant) >= 0 else None


def _cast(name: object) -> str:
    has, given = ("an integer", "text") if isinstance(name, str) else ("text", "an integer")
    return f"in the tree it is {has} and here it is {given}; cast one of them"
