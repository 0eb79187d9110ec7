"""Diagnostics: what says whether a log can tell what a policy is worth, in numbers and in words."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bough._arrays import Floats, Integers
from bough._frames import make_frame
from bough.evaluation.estimators import ancestors
from bough.evaluation.totals import Totals
from bough.tree.tree import Tree

_LEAST_ROWS = 30.0  # an effective sample below which nothing can be said
_FEW_ROWS = 200.0
_ONE_ROW = 0.1  # of all the weight: that one row has more says that the estimate is that row
_FAR = 4.0  # standard errors
_MISSING = 0.01  # of a target: mass that was never logged


@dataclass(frozen=True)
class PolicyDiagnostics:
    """What the log can say of one policy."""

    n_rows: float
    mean_weight: float
    """1 but for noise, where the propensities are right and the log has all that the policy may do."""
    weight_error: float
    """The standard error of the mean weight."""
    effective_rows: float
    """How many rows of equal weight would say as much."""
    largest_weight: float
    largest_share: float
    """Of all weight, that of the row that has the most."""
    never_logged: tuple[float, ...]
    """The policy's probability of nodes without any row, at depths 1, 2, ... of the tree; the last is of actions."""
    dm_less_dr: float
    """In standard errors of `dr`; NaN where one of them was not asked for."""
    problems: tuple[str, ...] = field(default=())
    """What is wrong, in words; empty where nothing is."""
    is_usable: bool = True
    """Whether estimates that use propensities mean anything."""


def diagnosed(
    totals: Totals, never_logged: tuple[float, ...], dm: float = math.nan, dr: float = math.nan, error: float = math.nan
) -> PolicyDiagnostics:
    """The diagnostics of a policy from the totals of its plain rewards."""
    share = totals.largest / totals.w if totals.w > 0.0 else math.nan
    apart = (dm - dr) / error if error > 0.0 else math.nan
    found = PolicyDiagnostics(
        totals.n,
        totals.mean_weight,
        totals.weight_error,
        totals.effective_rows,
        totals.largest,
        share,
        never_logged,
        apart,
    )
    fatal, others = _problems(found)
    usable = not fatal
    return PolicyDiagnostics(**{**vars(found), "problems": (*fatal, *others), "is_usable": usable})


def _problems(found: PolicyDiagnostics) -> tuple[list[str], list[str]]:
    fatal: list[str] = []
    others: list[str] = []
    missing = found.never_logged[-1]
    if found.mean_weight == 0.0:
        fatal.append("the log has no action that the policy takes; collect rows that do")
        return fatal, others
    shown = f"{found.effective_rows:,.0f}"
    worth = f"{shown} row{'' if shown == '1' else 's'} chosen by the policy itself"
    if found.effective_rows < _LEAST_ROWS:
        why = f"; one row has {found.largest_share:.0%} of all weight" if found.largest_share > _ONE_ROW else ""
        fatal.append(f"the {found.n_rows:,.0f} rows say as much as {worth}{why}")
    elif found.effective_rows < _FEW_ROWS:
        others.append(f"the {found.n_rows:,.0f} rows say only as much as {worth}")
    if found.largest_share > _ONE_ROW:
        row = (
            f"one row has the weight {found.largest_weight:,.0f}, {found.largest_share:.0%} of all; look at its "
            "propensity: is it true, or floored, or counted from draws?"
        )
        (fatal if found.effective_rows < _LEAST_ROWS else others).append(row)
    if missing > _MISSING:
        depths = ", ".join(f"{mass:.0%} at depth {depth}" for depth, mass in enumerate(found.never_logged, 1))
        text = f"{missing:.0%} of what the policy does was never logged ({depths}); only a model says what that earns"
        (fatal if missing > 0.5 else others).append(text)
    if abs(found.mean_weight - 1.0) > _FAR * found.weight_error + _MISSING * missing + 1e-9:
        others.append(
            f"the mean weight is {found.mean_weight:.3g} ± {found.weight_error:.1g}, and should be 1: propensities are "
            "wrong, or the log lacks what the policy does"
        )
    if abs(found.dm_less_dr) > _FAR:
        others.append(
            f"DM is {abs(found.dm_less_dr):.1f} standard errors {'above' if found.dm_less_dr > 0 else 'below'} DR; do "
            "not trust the model, and so DM"
        )
    return fatal, others


@dataclass(frozen=True, repr=False)
class Diagnostics:
    """What the log can say of each policy, and what is wrong with the log itself; `print` it."""

    policies: dict[str, PolicyDiagnostics]
    log: tuple[str, ...]
    """What is wrong with the log, whatever the policy."""

    def __getitem__(self, policy: str) -> PolicyDiagnostics:
        if policy not in self.policies:
            raise KeyError(f"no policy {policy!r} was evaluated; there are {list(self.policies)}")
        return self.policies[policy]

    @property
    def problems(self) -> list[str]:
        """All that is wrong, in words."""
        own = [f"{name}: {text}" for name, found in self.policies.items() for text in found.problems]
        return [*(f"the log: {text}" for text in self.log), *own]

    def __str__(self) -> str:
        width = max(8, *(len(name) + 2 for name in self.policies))
        heads = ("rows", "effective", "mean weight", "largest weight", "never logged", "DM - DR")
        lines = [f"{'policy':<{width}}" + "".join(f"{head:>16}" for head in heads)]
        for name, one in self.policies.items():
            cells = (
                f"{one.n_rows:,.0f}",
                f"{one.effective_rows:,.0f}",
                f"{one.mean_weight:.3f} ± {one.weight_error:.1g}",
                f"{one.largest_weight:,.1f}",
                f"{one.never_logged[-1]:.1%}",
                "" if math.isnan(one.dm_less_dr) else f"{one.dm_less_dr:+.1f} errors",
            )
            lines.append(f"{name:<{width}}" + "".join(f"{cell:>16}" for cell in cells))
        for text in self.log:
            lines.append(f"WARNING, the log: {text}")
        for name, one in self.policies.items():
            word = "WARNING" if one.is_usable else "UNUSABLE"
            lines += [f"{word}, {name}: {text}" for text in one.problems]
        return "\n".join(line.rstrip() for line in lines)

    def __repr__(self) -> str:
        return f"Diagnostics({len(self.policies)} policies, {len(self.problems)} problems)"

    def to_frame(self, backend: str | None = None) -> Any:
        """A frame with one row per policy."""
        columns: dict[str, Any] = {"policy": list(self.policies)}
        for name in ("n_rows", "mean_weight", "weight_error", "effective_rows", "largest_weight", "largest_share"):
            columns[name] = [getattr(one, name) for one in self.policies.values()]
        depths = len(next(iter(self.policies.values())).never_logged)
        for depth in range(depths):
            columns[f"never_logged_{depth + 1}"] = [one.never_logged[depth] for one in self.policies.values()]
        columns["dm_less_dr"] = [one.dm_less_dr for one in self.policies.values()]
        columns["is_usable"] = [one.is_usable for one in self.policies.values()]
        columns["problems"] = ["; ".join(one.problems) for one in self.policies.values()]
        return make_frame(columns, backend)


def never_logged(tree: Tree, place: Integers, probabilities: Floats) -> tuple[float, ...]:
    """The probability of nodes that no row is below, at depths 1, 2, ...; `place` has the actions of all rows."""
    found = []
    for depth in range(1, tree.height + 1):
        above = ancestors(tree, depth)
        seen = np.zeros(tree.n_nodes, dtype=np.bool_)
        seen[above[place]] = True
        found.append(float(probabilities[~seen[above]].sum()))
    return tuple(found) or (0.0,)
