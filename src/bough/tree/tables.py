"""What a frame with one row per action and one column per level says about the nodes of a tree."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Hashable, Mapping
from typing import Any, Literal, NamedTuple

import narwhals as nw
import numpy as np

from bough import _checks
from bough._arrays import Flags, Integers
from bough.tree.builders import Outline, check_separator
from bough.tree.name_columns import is_missing, plain

Missing = Literal["error", "parent"]
_KEYS_A_ROW = 4  # a table of more keys than this takes longer than sorting the rows
_NEVER_MISSING = frozenset({str, int, bool})


class _Column(NamedTuple):
    """The distinct values in order of appearance, and each row's position among them; -1 where it is null."""

    values: list[Hashable]
    code_of_row: Integers


def frame_outline(frame: Any, columns: Any, sep: str, missing: Missing) -> tuple[Outline, list[str]]:
    """The nodes of a frame, and what the levels below the root are called.

    Where `missing` is "parent", a row goes on from the last level that it has, as if there were no column where it is
    null; a column of nulls alone is no level.
    """
    table, columns = _checked(frame, columns)
    check_separator(sep)
    _checks.one_of("missing", missing, ("error", "parent"))
    levels = {column: _factorised(table, column) for column in columns[:-1]}
    actions, is_null = _values(table, columns[-1])
    _refuse_nulls({column: level.code_of_row < 0 for column, level in levels.items()}, columns[-1], is_null, missing)

    parents: list[Integers] = [np.array([-1])]
    names: list[Hashable] = [""]
    has_gaps = any((code_of_row < 0).any() for _, code_of_row in levels.values())
    known: dict[tuple[int, Hashable], int] = {}  # by parent and value: where there are gaps, levels may meet
    node_of_row = np.zeros(len(table), dtype=np.int64)  # where each row's path has got to
    for values, code_of_row in levels.values():
        rows = np.flatnonzero(code_of_row >= 0)
        above, codes, place_of_row = _distinct(node_of_row[rows], len(names), code_of_row[rows], len(values))
        places = [(parent, values[code]) for parent, code in zip(above.tolist(), codes.tolist(), strict=True)]
        number = np.full(len(places), -1)
        if has_gaps:
            number[:] = [known.get(place, -1) for place in places]
        is_new = number < 0
        number[is_new] = len(names) + np.arange(is_new.sum())
        if has_gaps:
            known |= zip(places, number.tolist(), strict=True)
        for parent, value in itertools.compress(places, is_new):
            names.append(f"{names[parent]}{sep}{value}" if parent else str(value))
        parents.append(above[is_new])
        node_of_row[rows] = number[place_of_row]
    parents.append(node_of_row)
    names.extend(actions)
    named = [str(column) for column, level in levels.items() if level.values]
    sizes = {str(column): len(level.values) for column, level in levels.items()} | {str(columns[-1]): 0}
    return Outline(np.concatenate(parents), names, sep, sizes), [*named, str(columns[-1])]


def _checked(frame: Any, columns: Any) -> tuple[nw.DataFrame[Any], list[str]]:
    try:
        table = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise ValueError(
            f"frame is a {type(frame).__name__}; give a pandas, polars or pyarrow frame (collect a lazy one)"
        ) from None
    if not isinstance(columns, str) and not _checks.is_list(columns):
        raise ValueError(f"columns is {columns!r}; give a list of column names")
    columns = [columns] if isinstance(columns, str) else list(columns)
    if not columns:
        raise ValueError("columns is empty; name the columns from the root's children to the actions")
    for i, column in enumerate(columns):
        if not _checks.is_among(column, table.columns):
            raise ValueError(f"the frame has no column {column!r}; it has {table.columns}")
        if column in columns[:i]:
            raise ValueError(f"columns has {column!r} twice; name each level once")
    if not len(table):
        raise ValueError("the frame has no rows; a tree needs at least one action")
    return table, columns


def _refuse_nulls(levels: Mapping[str, Flags], last: str, is_null: Flags, missing: Missing) -> None:
    """Count the nulls of all columns at once, and say what can be done about them."""
    found = {column: flags for column, flags in levels.items() if missing == "error" and flags.any()}
    remedies = ["fill them in, drop those rows, or hang them one level higher by missing='parent'"] if found else []
    if is_null.any():
        found[last] = is_null
        remedies.append(f"an action needs a name, so fill in or drop the rows without {last!r}")
    if found:
        counts = (f"{one.sum():,} in {column!r} (first in row {one.argmax()})" for column, one in found.items())
        raise ValueError(f"the frame has nulls: {', '.join(counts)}; {'; '.join(remedies)}")


def _distinct(nodes: Integers, n_nodes: int, codes: Integers, n_codes: int) -> tuple[Integers, Integers, Integers]:
    """The distinct pairs of a node and a code in order of appearance, as two arrays, and where each row's is."""
    # Two rows go on together when they were together and have the same value here.
    key = nodes * n_codes + codes
    n_keys = n_nodes * n_codes
    if n_keys > _KEYS_A_ROW * len(key):
        distinct, key = np.unique(key, return_inverse=True)
        n_keys = len(distinct)
    first = np.full(n_keys, -1)
    first[key[::-1]] = np.arange(len(key))[::-1]  # what is written last stays
    rows = np.sort(first[first >= 0])
    rank = np.empty(n_keys, dtype=np.int64)
    rank[key[rows]] = np.arange(len(rows))
    return nodes[rows], codes[rows], rank[key]


def _values(table: nw.DataFrame[Any], column: str) -> tuple[list[Any], Flags]:
    """A column as Python values, and which of them are null."""
    values: list[Any] = table.get_column(column).to_list()
    is_null = np.zeros(len(values), dtype=np.bool_)
    if set(map(type, values)) <= _NEVER_MISSING:
        return values, is_null
    is_null[:] = [is_missing(value) for value in values]
    values = list(map(plain, values))
    if table.implementation.is_pandas_like() and is_null.any() and all(map(_is_whole, values, is_null.tolist())):
        # pandas has no integers beside nulls, and 17 must not become 17.0 on the day of the first gap.
        values = [value if is_gap else int(value) for value, is_gap in zip(values, is_null, strict=True)]
    return values, is_null


def _is_whole(value: Any, is_gap: bool) -> bool:
    return is_gap or (isinstance(value, float) and value.is_integer())


def _factorised(table: nw.DataFrame[Any], column: str) -> _Column:
    series = table.get_column(column)
    if series.dtype == nw.String:
        with contextlib.suppress(TypeError):  # narwhals says text where the first values are
            distinct: list[Any] = series.drop_nulls().unique(maintain_order=True).to_list()
            if set(map(type, distinct)) == {str}:
                codes = list(range(len(distinct)))
                if series.null_count():
                    longer = max(distinct, key=len) + "."  # than any of them, and so none of them
                    series, codes, distinct = series.fill_null(longer), [*codes, -1], [*distinct, longer]
                found = series.replace_strict(distinct, codes, return_dtype=nw.Int64).to_numpy()
                return _Column([value for value, code in zip(distinct, codes, strict=True) if code >= 0], found)
    values, is_null = _values(table, column)
    try:
        present = dict.fromkeys(value for value, is_gap in zip(values, is_null, strict=True) if not is_gap)
        code_of = {value: code for code, value in enumerate(present)}
        codes = [-1 if is_gap else code_of[value] for value, is_gap in zip(values, is_null.tolist(), strict=True)]
    except TypeError:
        raise ValueError(f"column {column!r} holds values that are not hashable; give text or numbers") from None
    return _Column(list(code_of), np.array(codes, dtype=np.int64))
