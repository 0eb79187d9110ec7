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
from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np

from bough._arrays import Flags, Integers, Names, Nodes

_LARGEST_SELF_HASH = 2**61 - 2  # Python hashes an integer up to here (but -1) to itself
_BOOL_HASHES = (0, 1)  # of False and True, and so of all that equals them
_SUGGEST_UP_TO = 5_000  # looking for a close match among more names than this is too slow
_SHORTEST_RUN = 8  # names that stand together, from which on copying them as slices is quicker


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

    def suggestion(self, name: object, /) -> str: ...


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

    def suggestion(self, name: object) -> str:
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
        rank = np.searchsorted(self._inner_nodes, nodes[inner])
        for i, name in zip(inner.tolist(), self.inner[rank].tolist(), strict=True):
            names[i] = name
        return names

    @cached_property
    def _index(self) -> tuple[Integers, Nodes]:
        """All hashes in ascending order, and the node that each belongs to."""
        hashes = np.concatenate([_hashes(self.inner), _hashes(self.actions)])
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
            wanted = _hashes(column) if column is not None else _hash_each(given, len(given))
        except TypeError:
            return np.fromiter(map(self.find, given), np.int32, len(given))
        hashes, nodes = self._index
        position = np.minimum(np.searchsorted(hashes, wanted), len(hashes) - 1)
        found = nodes[position]
        likely = self.names(found)
        sure = np.ones(len(given), dtype=np.bool_)
        for i in ((wanted == 0) | (wanted == 1)).nonzero()[0].tolist():  # as _BOOL_HASHES
            sure[i] = is_bool(given[i]) == is_bool(likely[i])
        try:
            if likely == given and sure.all():
                return found
            # What is unknown, or shares its hash with another, is looked up by itself.
            for i, (name, one) in enumerate(zip(given, likely, strict=True)):
                if not (sure[i] and name == one):
                    found[i] = self.find(name)
        except TypeError:  # pandas.NA will not say what it equals
            return np.fromiter(map(self.find, given), np.int32, len(given))
        return found

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
            unsure[own] &= ~_are_equal(mine, its, _ranks(own_of_it, len(theirs))[found[own]])
        first, last = np.searchsorted(hashes, [min(_BOOL_HASHES), max(_BOOL_HASHES) + 1])
        unsure[nodes[first:last]] = True  # True equals 1 but does not name the same
        unsure &= found >= 0
        for node in np.flatnonzero(unsure).tolist():
            found[node] = other.find(self.name(node))
        return found

    def suggestion(self, name: object) -> str:
        if twin(self, name) is not None:
            return _cast(name)
        total = len(self.inner) + len(self.actions)
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
        place = _ranks(nodes, n + len(added))[wanted]
        elsewhere = np.flatnonzero(place < 0)
        others = as_column(added[i - n] if i >= n else self.name(i) for i in wanted[elsewhere].tolist())
        if len(others) == len(wanted):
            return others
        place[elsewhere] = 0
        mixed = column.dtype.kind == "O" or (len(others) > 0 and others.dtype != column.dtype)
        picked = _taken(column.astype(object) if mixed else column, place)
        picked[elsewhere] = others
        return as_column(picked) if mixed else picked

    def _edited_index(self, number: Nodes, added: Sequence[Hashable]) -> tuple[Integers, Nodes]:
        hashes, nodes = self._index
        nodes = number[nodes]
        kept = nodes >= 0
        hashes, nodes = hashes[kept], nodes[kept]
        more = _hash_each(added, len(added))
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
    meant: str | int
    if isinstance(name, str):
        if not name.isdecimal() and not name[1:].isdecimal():
            return None
        try:
            meant = int(name)
        except ValueError:
            return None
    elif isinstance(name, (int, np.integer)) and not isinstance(name, bool):
        meant = str(name)
    else:
        return None
    return meant if str(meant) == str(name) and names.find(meant) >= 0 else None


def _cast(name: object) -> str:
    has, given = ("an integer", "text") if isinstance(name, str) else ("text", "an integer")
    return f"in the tree it is {has} and here it is {given}; cast one of them"


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or one of pandas' NA."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # pandas.NA will not say; an array says many things
        return type(value).__name__ == "NAType"


def is_bool(value: object) -> bool:
    """Whether a value is True or False, which equal 1 and 0 but do not name the same."""
    kind = type(value)
    return kind is bool or kind is np.bool_


def plain(value: Any) -> Hashable:
    """The Python value behind a numpy scalar."""
    return cast(Hashable, value.item() if isinstance(value, np.generic) else value)


def as_column(names: Iterable[object]) -> Names:
    """The names as one array: int64 or variable-width strings where they are all of that kind."""
    if isinstance(names, np.ndarray) and (names.dtype.kind == "i" or (names.dtype.kind == "u" and not _is_huge(names))):
        return names.astype(np.int64)
    values: list[Any] = names.tolist() if isinstance(names, np.ndarray) else [plain(n) for n in names]
    kinds = set(map(type, values))
    if kinds == {str}:
        return np.array(values, dtype=np.dtypes.StringDType())
    if kinds == {int} and all(-(2**63) <= n < 2**63 for n in values):
        return np.array(values, dtype=np.int64)
    for value in values:
        if is_missing(value):
            raise ValueError(f"{value!r} cannot be a node's name; give every node a name")
        try:
            hash(value)
        except TypeError:
            raise ValueError(
                f"{value!r} cannot be a node's name: it is not hashable; use a string, an integer or a tuple"
            ) from None
    return np.fromiter(values, dtype=object, count=len(values))


def _ranks(nodes: Nodes, total: int) -> Nodes:
    """(total + 1,) the position of each number among these nodes; -1 where it is none of them, and in the end."""
    ranks = np.full(total + 1, -1, dtype=np.int32)
    ranks[nodes] = np.arange(len(nodes), dtype=np.int32)
    return ranks


def _are_equal(column: Names, other: Names, place: Nodes) -> Flags:
    """Whether each name of a column is the one in that place of another; False where the place is -1."""
    equal = place >= 0
    if not equal.all():
        column, place = column[equal], place[equal]
    likely = _taken(other, place)
    if column.dtype == likely.dtype and column.dtype.kind != "O":
        equal[equal] = column == likely
    else:
        pairs = zip(column.tolist(), likely.tolist(), strict=True)
        equal[equal] = np.fromiter((a == b for a, b in pairs), np.bool_, len(column))
    return equal


def _taken(column: Names, place: Nodes) -> Names:
    """`column[place]`, by slices where places follow one another: numpy takes strings slowly one by one."""
    breaks = np.flatnonzero(np.diff(place) != 1) + 1
    if _SHORTEST_RUN * len(breaks) >= len(place):
        return column[place]
    starts = np.concatenate([[0], breaks])
    first = place[starts]
    last = first + np.diff(starts, append=len(place))
    return np.concatenate([column[a:b] for a, b in zip(first.tolist(), last.tolist(), strict=True)])


def _is_huge(column: Names) -> bool:
    return len(column) > 0 and int(column.max()) >= 2**63


def _hashes(column: Names) -> Integers:
    """Python's own hash of every name, so that 3, numpy's 3 and 3.0 find the same node."""
    if column.dtype.kind == "i" and (
        not len(column) or max(-int(column.min()), int(column.max())) <= _LARGEST_SELF_HASH
    ):
        return np.where(column == -1, -2, column).astype(np.int64)
    return _hash_each(column.tolist() if column.dtype.kind in "iufUSO" else column, len(column))


def _hash_each(values: Iterable[object], count: int) -> Integers:
    return np.fromiter(map(hash, values), np.int64, count)
