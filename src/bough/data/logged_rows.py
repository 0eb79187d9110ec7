"""The rows of a log of decisions, where sums are not enough: with contexts, and in their order."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from bough._arrays import Floats, Integers
from bough._frames import collected
from bough.data.columns import floats
from bough.data.contexts import named_rows
from bough.data.decision_logs import DOUBTFUL, LogColumns, allowed, check_bad, complaint, numbered, opened
from bough.data.logs import Bad, action_nodes
from bough.data.propensities import SUMS, PropensitySums
from bough.data.rows import checked_contexts
from bough.model.model import Model
from bough.tree.tree import Tree


@dataclass(frozen=True, eq=False)
class LoggedRows:
    """The rows of a log of decisions, in its order."""

    place: Integers
    """(n,) the action of each, by its place in `tree.actions`."""
    reward: Floats
    propensity: Floats
    """(n,); ones where the log has none."""
    position: Integers
    positions: tuple[Any, ...]
    context: Floats | None
    """(n, d); None where there are none, or some are no numbers."""
    named: Mapping[str, Any] | None
    """The contexts' columns by name; None where they have none."""
    doubtful: int
    skipped: int

    def contexts_for(self, model: Model) -> Floats:
        """(n, d) the contexts as a model takes them: by the names of its features where both have names."""
        if self.named is not None and model.feature_names is not None:
            return checked_contexts(model, self.named)
        return self.numbers()

    def numbers(self) -> Floats:
        """(n, d) the contexts in the order of the log's columns; a `ValueError` where some are no numbers."""
        if self.context is None:
            raise ValueError(
                f"the contexts {reprlib.repr(list(self.named or ()))} are not all numbers, and something here takes "
                "numbers; give a model or an agent whose features encode them, or leave out what takes numbers"
            )
        return self.context

    def sums(self) -> PropensitySums:
        """The sums of the rows."""
        width = len(self.positions)
        cell, group = np.unique(self.place * width + self.position, return_inverse=True)
        y, ip = self.reward, 1.0 / self.propensity
        yy, ipp = y * y, ip * ip
        products = dict(zip(SUMS, (y, yy, ip, y * ip, yy * ip, ipp, y * ipp, yy * ipp), strict=True))
        least = np.full(len(cell), np.inf)
        np.minimum.at(least, group, self.propensity)
        return PropensitySums(
            cell // width,
            cell % width,
            self.positions,
            np.bincount(group, minlength=len(cell)).astype(np.float64),
            **{
                name: np.bincount(group, values, minlength=len(cell)).astype(np.float64)
                for name, values in products.items()
            },
            least_p=least,
            least_y=float(y.min(initial=np.inf)),
            most_y=float(y.max(initial=-np.inf)),
            doubtful=self.doubtful,
            skipped=self.skipped,
        )


def read_logged_rows(log: Any, tree: Tree, columns: LogColumns, bad: Bad = "error") -> LoggedRows:
    """The rows of a log in memory, in its order; those that cannot be used are an error, or are left out."""
    check_bad(bad)
    with opened(log, tree, columns) as logged:
        whole = collected(logged.frame.select(nw.len().alias("n"))) if isinstance(logged.frame, nw.LazyFrame) else None
        n_rows = len(logged.frame) if whole is None else int(whole["n"][0])  # type: ignore[arg-type]
        found = logged.rows(logged.usable)
        keys = found[columns.action].to_list()
        distinct = list(dict.fromkeys(keys))
        node = dict(zip(distinct, action_nodes(tree, distinct).tolist(), strict=True))
        nodes = np.array([node[key] for key in keys], dtype=np.int64)
        known = nodes >= 0
        odd, unknown = n_rows - len(keys), int((~known).sum())
        if odd + unknown > allowed(bad, n_rows):
            strange = [key for key in distinct if node[key] < 0]
            raise ValueError(complaint(logged, tree, strange, n_rows, odd, unknown, bad))

    def number(name: str) -> Floats:
        return floats(found[name])[known]

    positions: tuple[Any, ...] = (None,)
    position = np.zeros(int(known.sum()), dtype=np.int64)
    if columns.position is not None:
        values = found[columns.position].to_list()
        positions, position = numbered([one for one, kept in zip(values, known.tolist(), strict=True) if kept])
    reward = number(columns.reward)
    propensity = np.ones(len(reward)) if columns.propensity is None else number(columns.propensity)
    doubtful = 0 if columns.error is None else int((number(columns.error) > DOUBTFUL * propensity).sum())
    return LoggedRows(
        np.searchsorted(tree.leaves, nodes[known]),
        reward,
        propensity,
        position,
        positions,
        *_contexts(found, columns, known),
        doubtful,
        odd + unknown,
    )


def _contexts(
    found: nw.DataFrame[Any], columns: LogColumns, known: Any
) -> tuple[Floats | None, Mapping[str, Any] | None]:
    """The contexts as numbers, where they are, and by name, where they have names."""
    if columns.context:
        kept = {name: found[name].filter(known.tolist()) for name in columns.context}
        are_numbers = all(one.dtype.is_numeric() or one.dtype == nw.Boolean for one in kept.values())
        numbers = np.column_stack([floats(one) for one in kept.values()]) if are_numbers else None
        return numbers, {name: one.to_list() for name, one in kept.items()}
    if columns.context_list is None:
        return None, None
    each = [one for one, keep in zip(found[columns.context_list].to_list(), known.tolist(), strict=True) if keep]
    rows = named_rows(each)
    if rows is not None:
        each = list(zip(*rows.columns.values(), strict=True))
    try:
        contexts = np.array(each, dtype=np.float64)
    except (TypeError, ValueError):
        contexts = np.empty(0)
    if contexts.ndim == 2 and np.isfinite(contexts).all():
        return contexts, None if rows is None else rows.columns
    if rows is not None and not any(value is None for values in rows.columns.values() for value in values):
        return None, rows.columns
    raise ValueError(
        f"the column {columns.context_list!r} has rows that are no list of numbers and no dict, or of several lengths; "
        "put them right, or leave them out of the log"
    )
