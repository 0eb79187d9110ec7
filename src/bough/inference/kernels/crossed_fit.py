"""How the log determinant over crossed effects moves with variances; docs/explanation/crossed.md derives it."""

from __future__ import annotations

from bough._arrays import Floats, Integers, Nodes
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.scalar import M


@kernel
def _dot(row: Floats, effect: Nodes, value: Floats) -> float:
    """The sum of row[effect] value; four sums side by side, since one addition has to wait for another."""
    a = b = c = d = 0.0
    n = len(effect) - len(effect) % 4
    for g in range(0, n, 4):
        a += row[effect[g]] * value[g]
        b += row[effect[g + 1]] * value[g + 1]
        c += row[effect[g + 2]] * value[g + 2]
        d += row[effect[g + 3]] * value[g + 3]
    for g in range(n, len(effect)):
        a += row[effect[g]] * value[g]
    return (a + c) + (b + d)


@kernel
def trace_gradient(
    covariance: Floats,  # (q, q) C
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    slot_row: Nodes,  # (T,) the row of an action, -1 inside
    variance: Floats,  # (n_classes,)
    state: Floats,  # (T, 4)
    first: Integers,  # (T,)
    size: Nodes,  # (T,)
    effect: Nodes,  # (E,)
    up: Nodes,  # (E,)
    value: Floats,  # (E,)
    cell_first: Integers,  # (n + 1,)
    cell_effect: Nodes,
    precision: Floats,  # (n,) of the cells
    slope: Floats,  # (E,) scratch
    pull: Floats,  # (T,) scratch
    gradient: Floats,  # (n_classes + 1,)
) -> None:
    """Overwrites gradient: of tr(C G) by the logarithms of the variances and, last, of the noise's; C is held fixed.

    G = sum p z z' over cells - sum S H H' over slots. From the root leafward, slope is the derivative by H, and pull
    that by M.
    """
    gradient[:] = 0.0
    for slot in range(len(parent)):
        above = parent[slot]
        v = variance[slot_class[slot]]
        m = state[slot, M]
        gain = 1.0 / (1.0 + v * m)
        step = v * gain
        start = first[slot]
        end = start + size[slot]
        from_above = first[above] if above >= 0 else 0
        square = 0.0  # H' C H
        through = 0.0  # what the parent's slope makes of H
        for e in range(start, end):
            total = _dot(covariance[effect[e]], effect[start:end], value[start:end])
            square += total * value[e]
            slope[e] = -2.0 * step * total
            if above >= 0:
                own = slope[from_above + up[e]]
                through += own * value[e]
                slope[e] += gain * own
        pulled = pull[above] if above >= 0 else 0.0
        pull[slot] = square * step * step - through * gain * step + pulled * gain * gain
        gradient[slot_class[slot]] -= v * (gain * gain * (square + through * m) + pulled * (m * gain) ** 2)
        if slot_row[slot] >= 0:
            gradient[-1] -= pull[slot] * m
            for e in range(start, end):
                gradient[-1] -= slope[e] * value[e]
    for i in range(len(precision)):
        for e in range(cell_first[i], cell_first[i + 1]):
            for g in range(cell_first[i], cell_first[i + 1]):
                gradient[-1] -= precision[i] * covariance[cell_effect[e], cell_effect[g]]
