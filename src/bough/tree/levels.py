"""Names of levels: what the nodes of each depth are called, such as root, department, category and product."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bough import _checks

if TYPE_CHECKING:
    from bough.tree.tree import Tree

_SHOWN = 12  # names in a message


def all_levels(below: Sequence[str]) -> tuple[str, ...]:
    """The names of all levels, given those below the root's.

    >>> all_levels(["department", "product"])
    ('root', 'department', 'product')
    """
    root = "root"
    while root in below:
        root = f"({root})"
    return (root, *below)


def given_levels(levels: Any, height: int) -> tuple[str, ...]:
    """The names of all levels of a tree of that height, as a user gives them: from the root's children on."""
    if levels is None:
        return ()
    listed = list(levels) if _checks.is_list(levels) else []
    if not listed or not all(isinstance(name, str) for name in listed):
        raise ValueError(f"levels is {reprlib.repr(levels)}; give a list of names, that of the root's children first")
    twice = next((name for i, name in enumerate(listed) if name in listed[:i]), None)
    if twice is not None:
        raise ValueError(f"levels has {twice!r} twice; give each level a name of its own")
    if len(listed) != height:
        raise ValueError(f"levels has {len(listed)} names; the tree has {height} levels below its root")
    return all_levels(listed)


def level_of(tree: Tree, depth: int) -> str | int:
    """What the level of that depth is called; the depth itself where levels have no names."""
    return depth if tree.levels is None else tree.levels[depth]


def depth_of(tree: Tree, level: Any) -> int:
    """The depth of a level that is given by its depth or its name."""
    names = tree.levels
    if names is not None and isinstance(level, str) and level in names:
        return names.index(level)
    if _checks.is_whole(level) and 0 <= level <= tree.height:
        return int(level)
    depths = f"a depth from 0, the root's, to {tree.height}"
    wanted = f"{depths}, or None for all nodes" if names is None else f"{shown(names)}, or {depths}"
    raise ValueError(f"level is {reprlib.repr(level)}; give {wanted}")


def shown(names: Sequence[str]) -> str:
    """The names as a message lists them."""
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else "")
