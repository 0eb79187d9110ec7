"""A tree as lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def lines(tree: Any, max_depth: int, max_children: int) -> Iterator[str]:
    """The tree down to that depth, one node a line, with at most so many of each node's children."""
    # What is still to print, last first: a node or a text, its own indent, and that of what is below it.
    pending: list[tuple[int | str, str, str]] = [(0, "", "")]
    while pending:
        node, indent, below = pending.pop()
        if isinstance(node, str):
            yield indent + node
            continue
        name = tree.name(node)
        label = repr(name) if name == "" else str(name)
        children = tree.children(node).tolist()
        if children and tree.depth[node] >= max_depth:
            yield f"{indent}{label} ({_n_below(tree, node):,} nodes below)"
            continue
        yield indent + label
        shown: list[int | str] = list(children[:max_children])
        if len(children) > max_children:
            shown.append(f"... {len(children) - max_children:,} more")
        for i, line in reversed(list(enumerate(shown))):
            last = i == len(shown) - 1
            pending.append((line, below + ("└── " if last else "├── "), below + ("    " if last else "│   ")))


def _n_below(tree: Any, node: int) -> int:
    start, end, total = node, node + 1, 0
    while start < end:
        start, end = int(tree.child_start[start]), int(tree.child_start[end])
        total += end - start
    return total
