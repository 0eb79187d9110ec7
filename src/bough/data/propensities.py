"""Logs of decisions with their propensities: the sums that evaluation needs, by one group-by where the log lives.

For each action (and position, where the log has these), with y the reward of a row and p its propensity: the number of
rows, the sums of y, y^2, 1/p, y/p, y^2/p, 1/p^2, y/p^2 and y^2/p^2, the least p, and the range of y. They serve any
number of policies whose probabilities do not depend on the row; logged_rows.py is for the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from bough._arrays import Floats, Integers
from bough._frames import Frame, collected
from bough.data.columns import floats, slices
from bough.data.decision_logs import LogColumns, Logged, allowed, check_bad, complaint, numbered, opened
from bough.data.logs import Bad, action_nodes
from bough.tree.tree import Tree

SUMS = ("y", "yy", "ip", "y_ip", "yy_ip", "ipp", "y_ipp", "yy_ipp")


@dataclass(frozen=True, eq=False)
class PropensitySums:
    """Sums over the rows of each action that the log has, at each position."""

    place: Integers
    """(m,) which action, by its place in `tree.actions`."""
    position: Integers
    """(m,) which of `positions`; zeros where the log has none."""
    positions: tuple[Any, ...]
    """The positions that the log has; (None,) without a column for them."""
    n: Floats
    """(m,) how many rows."""
    y: Floats
    yy: Floats
    ip: Floats
    """(m,) the sum of 1/p."""
    y_ip: Floats
    yy_ip: Floats
    ipp: Floats
    """(m,) the sum of 1/p^2."""
    y_ipp: Floats
    yy_ipp: Floats
    least_p: Floats
    """(m,) the least propensity."""
    least_y: float
    most_y: float
    doubtful: int
    """How many rows have a propensity whose error is above a third of it."""
    skipped: int
    """How many rows were left out."""

    @property
    def n_rows(self) -> float:
        """How many rows were summed."""
        return float(self.n.sum())

    @property
    def rows_at(self) -> Floats:
        """(S,) how many rows each position has."""
        return np.bincount(self.position, self.n, minlength=len(self.positions)).astype(np.float64)


def summed_propensities(log: Any, tree: Tree, columns: LogColumns, bad: Bad = "error") -> PropensitySums:
    """The sums of a log; rows that cannot be used are an error that shows some, or are left out."""
    check_bad(bad)
    with opened(log, tree, columns) as logged:
        found = _Groups.of(logged, logged.frame)
        n_rows = int(found.n.sum())
        if not (found.least_p > 0.0).all():
            found = _Groups.of(logged, logged.frame.filter(logged.usable))
        nodes = action_nodes(tree, found.keys)
        odd, unknown = n_rows - int(found.n.sum()), int(found.n[nodes < 0].sum())
        if odd + unknown > allowed(bad, n_rows):
            strange = [found.keys[i] for i in np.flatnonzero(nodes < 0)]
            raise ValueError(complaint(logged, tree, strange, n_rows, odd, unknown, bad))
    return _at_actions(tree, nodes, found, odd + unknown)


class _Groups(NamedTuple):
    """What a group-by gave."""

    keys: list[Any]
    positions: list[Any]
    n: Floats
    sums: dict[str, Floats]
    least_p: Floats
    """Negative where a row cannot be used."""
    least_y: Floats
    most_y: Floats

    @classmethod
    def of(cls, logged: Logged, frame: Frame) -> _Groups:
        """The sums of all groups; a frame in memory goes slice by slice, and its groups come once for each."""
        parts = [_grouped(logged, part) for part in slices(frame)]

        def column(name: str) -> Floats:
            return np.concatenate([floats(part[name]) for part in parts])

        has_position = logged.columns.position is not None
        return cls(
            [key for part in parts for key in part["action"].to_list()],
            [key for part in parts for key in part["position"].to_list()] if has_position else [],
            column("n"),
            {name: column(name) for name in (*SUMS, *(["doubtful"] if logged.error is not None else []))},
            column("least p"),
            column("least y"),
            column("most y"),
        )


def _grouped(logged: Logged, frame: Frame) -> nw.DataFrame[Any]:
    columns, labels = logged.columns, logged.labels
    keys = [nw.col(labels[columns.action]).alias("action")]
    if columns.position is not None:
        keys.append(nw.col(labels[columns.position]).alias("position"))
    # One column says whether there is anything odd: each that is grouped costs a tenth of the whole.
    given = [logged.y.alias("y"), nw.when(logged.usable).then(logged.p).otherwise(nw.lit(-1.0)).alias("p")]
    more = [logged.doubtful.alias("doubtful")] if logged.error is not None else []
    selected = frame.select(*keys, *given, *more)
    y, ip = nw.col("y"), 1.0 / nw.col("p")
    products = dict(zip(SUMS[1:], (y * y, ip, y * ip, y * y * ip, ip * ip, y * ip * ip, y * y * ip * ip), strict=True))
    selected = selected.with_columns(*(product.alias(name) for name, product in products.items()))
    aggregates = [nw.len().alias("n"), nw.col("p").min().alias("least p")]
    aggregates += [nw.col("y").min().alias("least y"), nw.col("y").max().alias("most y")]
    aggregates += [nw.col(name).sum() for name in SUMS]
    aggregates += [nw.col("doubtful").sum()] if more else []
    by = ["action"] if columns.position is None else ["action", "position"]
    groups: Any = selected.group_by(*by).agg(*aggregates)
    return collected(groups)


def _at_actions(tree: Tree, nodes: Integers, found: _Groups, skipped: int) -> PropensitySums:
    """The groups that are actions, each once, in the order of the tree."""
    known = nodes >= 0
    positions, position = numbered([one for one, kept in zip(found.positions, known, strict=False) if kept])
    if not found.positions:
        positions, position = (None,), np.zeros(int(known.sum()), dtype=np.int64)
    width = len(positions)
    cell, group = np.unique(np.searchsorted(tree.leaves, nodes[known]) * max(width, 1) + position, return_inverse=True)

    def total(values: Floats) -> Floats:
        return np.bincount(group, values[known], minlength=len(cell)).astype(np.float64)

    least_p = np.full(len(cell), np.inf)
    np.minimum.at(least_p, group, found.least_p[known])
    return PropensitySums(
        cell // max(width, 1),
        cell % max(width, 1),
        positions,
        total(found.n),
        **{name: total(found.sums[name]) for name in SUMS},
        least_p=least_p,
        least_y=float(found.least_y[known].min(initial=np.inf)),
        most_y=float(found.most_y[known].max(initial=-np.inf)),
        doubtful=int(found.sums["doubtful"][known].sum()) if "doubtful" in found.sums else 0,
        skipped=skipped,
    )
