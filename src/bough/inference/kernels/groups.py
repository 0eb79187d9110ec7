"""The groups of untouched nodes below the touched ones, kept by slot as observations come in."""

from __future__ import annotations

from bough._arrays import Flags, Floats, Nodes
from bough.inference.kernels.jit import kernel


@kernel
def sync(
    start: int,
    slot_node: Nodes,  # (T,)
    slot_parent: Nodes,  # (T,)
    child_start: Nodes,  # (V + 1,)
    free: Nodes,  # (T, height + 2)
    first_child: Nodes,  # (T,)
    next_sibling: Nodes,  # (T,)
    slot_depth: Nodes,  # (T,)
) -> None:
    """Overwrites the rows of slots from start on, and takes them out of their parents' groups.

    The descendants of a node at one level have consecutive numbers, so two of them bound a level. Nodes that were added
    to the tree since it was made are in no group, and have none.
    """
    n_nodes = len(child_start) - 1
    for slot in range(start, len(slot_node)):
        above = slot_parent[slot]
        first_child[slot] = -1
        slot_depth[slot] = 0
        if above >= 0:
            next_sibling[slot] = first_child[above]
            first_child[above] = slot
            slot_depth[slot] = slot_depth[above] + 1
        low = slot_node[slot]
        if low >= n_nodes:
            free[slot] = 0
            continue
        if above >= 0:
            free[above, 1] -= 1
        high = low + 1
        for level in range(1, free.shape[1]):
            low = child_start[low]
            high = child_start[high]
            free[slot, level] = high - low
            if above >= 0 and level + 1 < free.shape[1]:
                free[above, level + 1] -= high - low


@kernel
def extend_values(
    start: int,
    value: Floats,  # (T,) standard normals from start on
    slot_node: Nodes,  # (T,)
    slot_parent: Nodes,  # (T,)
    class_of_node: Nodes,  # (V,)
    deviation: Floats,  # (n_classes,)
    mean: float,
) -> None:
    """Overwrites the values of slots from start on, where nothing has been observed, with draws from the prior."""
    for slot in range(start, len(value)):
        above = value[slot_parent[slot]] if slot_parent[slot] >= 0 else mean
        value[slot] = above + deviation[class_of_node[slot_node[slot]]] * value[slot]


@kernel
def mark_touched(
    slot: int, start: int, slot_node: Nodes, first_child: Nodes, next_sibling: Nodes, marked: Flags
) -> None:
    """Overwrites marked with the touched children, counted from start, of the node in that slot (-1: none are)."""
    marked[:] = False
    child = first_child[slot] if slot >= 0 else -1
    while child >= 0:
        if slot_node[child] - start < len(marked):  # or it was added to the tree since
            marked[slot_node[child] - start] = True
        child = next_sibling[child]


@kernel
def free_child(start: int, marked: Flags, wanted: int) -> int:
    """The child of that rank among those that are not marked, the children being counted from start."""
    child = start
    while marked[child - start] or wanted > 0:
        if not marked[child - start]:
            wanted -= 1
        child += 1
    return child
