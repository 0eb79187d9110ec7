"""What to say of a log with rows that cannot be used: how many, why, some of them, and what would help."""

from __future__ import annotations

from itertools import islice
from typing import Any

from bough.data.columns import Columns
from bough.tree.names import twin
from bough.tree.tree import Tree

_SHOWN = 3  # rows and names that a message shows
_COMPARED = 1_000  # unknown names that are looked for under another type


def unusable(
    columns: Columns,
    tree: Tree,
    strange: list[Any],
    n_rows: int,
    odd_values: int,
    unknown: int,
    bad: str,
) -> str:
    """What is wrong with the rows of a log; `strange` has the names that are no actions of the tree."""
    parts = []
    if odd_values:
        rows = "; ".join(map(str, columns.shown(~columns.usable, _SHOWN)))
        parts.append(f"{odd_values} with {' or '.join(columns.faults())}, such as {rows}")
    if unknown:
        parts.append(unknown_actions(tree, columns.names.action, strange, unknown))
    what = f"{odd_values + unknown} of {n_rows} rows cannot be used: {', and '.join(parts)}; "
    if odd_values + unknown == n_rows:
        wrong = columns.without_numbers()
        if wrong is not None:
            return what + f"the column {wrong!r} has not one number and looks wrong; give one of numbers such as 2.25"
        return what + "put them right"
    if bad == "error":
        return what + 'put them right, or leave them out with bad="skip" (on the command line --skip-bad)'
    return what + 'put them right, or leave out most of the log with bad="skip-most" (on the command line --skip-most)'


def no_action(action: str, tree: Tree, names: list[Any], better: str | None, n_rows: int) -> str:
    """What to say of a log whose column of actions has none of the tree; `better` is a column that has some."""
    other = "" if better is None else f"; the column {better!r} has actions of the tree, give that one"
    return (
        f"{n_rows} of {n_rows} rows cannot be used: the column {action!r} has no action of the tree, but values such "
        f"as {names[0]!r} ({hint_of(tree, action, names)}){other}"
    )


def unknown_actions(tree: Tree, column: str, strange: list[Any], n_rows: int) -> str:
    """What to say of rows whose names, in the column of the actions, are no actions of the tree."""
    names = sorted(dict.fromkeys(strange), key=str)
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    return f"{n_rows} with one of {len(names)} unknown actions, such as {shown} ({hint_of(tree, column, names)})"


def hint_of(tree: Tree, column: str, names: list[Any]) -> str:
    """What to say of names that are no actions of the tree."""
    if tree.node_names.find(names[0]) >= 0:
        return "a category, which is no action"
    return other_type(tree, column, names) or tree.node_names.suggestion(names[0], tree.sep)


def other_type(tree: Tree, column: str, names: list[Any]) -> str | None:
    """What to say where the log's names are text and the tree's integers, or the reverse."""
    for name in islice(names, _COMPARED):
        meant = twin(tree.node_names, name)
        if meant is not None:
            log, own = ("text", "integers") if isinstance(name, str) else ("integers", "text")
            return f"the log's column {column!r} holds {log} ({name!r}), the tree {own} ({meant!r}); cast one of them"
    return None
