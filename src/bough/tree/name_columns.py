"""Names as values and as columns: what can be one, what kind of array keeps many, and their hashes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, cast

import numpy as np

from bough._arrays import Flags, Integers, Names, Nodes

_LARGEST_SELF_HASH = 2**61 - 2  # Python hashes an integer up to here (but -1) to itself
_SHORTEST_RUN = 8  # names that stand together, from which on copying them as slices is quicker


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


def integer_of(text: str) -> int | None:
    """The integer that is written so; None where there is none, as of "07"."""
    if not text.isdecimal() and not text[1:].isdecimal():
        return None
    try:
        found = int(text)
    except ValueError:
        return None
    return found if str(found) == text else None


def as_column(names: Iterable[object]) -> Names:
    """The names as one array: int64 or variable-width strings where they are all of that kind."""
    if isinstance(names, np.ndarray) and (names.dtype.kind == "i" or (names.dtype.kind == "u" and not _is_huge(names))):
        return names.astype(np.int64)
    values: list[Any] = names.tolist() if isinstance(names, np.ndarray) else list(names)
    kinds = set(map(type, values))
    if any(issubclass(kind, np.generic) for kind in kinds):
        values = list(map(plain, values))
        kinds = set(map(type, values))
    if kinds == {str}:
        return np.array(values, dtype=np.dtypes.StringDType())
    if kinds == {int}:
        try:
            return np.array(values, dtype=np.int64)
        except OverflowError:
            pass
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


def ranks(nodes: Nodes, total: int) -> Nodes:
    """(total + 1,) the position of each number among these nodes; -1 where it is none of them, and in the end."""
    ranks = np.full(total + 1, -1, dtype=np.int32)
    ranks[nodes] = np.arange(len(nodes), dtype=np.int32)
    return ranks


def are_equal(column: Names, other: Names, place: Nodes) -> Flags:
    """Whether each name of a column is the one in that place of another; False where the place is -1."""
    equal = place >= 0
    if not equal.all():
        column, place = column[equal], place[equal]
    likely = taken(other, place)
    if column.dtype == likely.dtype and column.dtype.kind != "O":
        equal[equal] = column == likely
    else:
        pairs = zip(column.tolist(), likely.tolist(), strict=True)
        equal[equal] = np.fromiter((a == b for a, b in pairs), np.bool_, len(column))
    return equal


def taken(column: Names, place: Nodes) -> Names:
    """`column[place]`, by slices where places follow one another: numpy takes strings slowly one by one."""
    breaks = np.flatnonzero(np.diff(place) != 1) + 1
    if _SHORTEST_RUN * len(breaks) >= len(place):
        return column[place]
    starts = np.concatenate([[0], breaks])
    first = place[starts]
    last = first + np.diff(starts, append=len(place))
    return np.concatenate([column[a:b] for a, b in zip(first.tolist(), last.tolist(), strict=True)])


def end_in(column: Names, part: str, sep: str) -> Flags:
    """Whether each name is this text, or ends in it after a separator; an integer is what it is written as."""
    if column.dtype.kind == "i":
        return np.asarray(column == integer_of(part), dtype=np.bool_)
    tail = sep + part
    likely = np.ones(len(column), dtype=np.bool_)
    if column.dtype.kind == "T":
        try:
            likely = (column == np.array([part], dtype=column.dtype)) | np.strings.endswith(column, tail)
        except (TypeError, UnicodeError):  # half a character, which no name has
            return np.zeros(len(column), dtype=np.bool_)
    # endswith does not see zeros at the end of a text
    names = column[likely].tolist()
    likely[likely] = [str(name) == part or (isinstance(name, str) and name.endswith(tail)) for name in names]
    return likely


def _is_huge(column: Names) -> bool:
    return len(column) > 0 and int(column.max()) >= 2**63


def read_column(names: Sequence[Hashable], places: Nodes | Integers) -> tuple[Names, Integers]:
    """The names in these places of a list as a column, and their hashes.

    They are read in the order of the list, in which they mostly lie in memory, and hashed as they are there: numpy's
    strings would have to be made Python's again.
    """
    in_order = bool((np.diff(places) > 0).all())
    ascending: Any = places if in_order else np.sort(places)
    listed = list(map(names.__getitem__, ascending.tolist()))
    column = as_column(listed)
    hashes = hash_each(listed, len(listed)) if column.dtype.kind == "T" else hashes_of(column)
    if in_order:
        return column, hashes
    back = ranks(ascending, len(names))[places]
    return taken(column, back), hashes[back]


def hashes_of(column: Names) -> Integers:
    """Python's own hash of every name, so that 3, numpy's 3 and 3.0 find the same node."""
    if column.dtype.kind == "i" and (
        not len(column) or max(-int(column.min()), int(column.max())) <= _LARGEST_SELF_HASH
    ):
        return np.where(column == -1, -2, column).astype(np.int64)
    return hash_each(column.tolist() if column.dtype.kind in "iufUSO" else column, len(column))


def hash_each(values: Iterable[object], count: int) -> Integers:
    return np.fromiter(map(hash, values), np.int64, count)
