"""Evaluation: what policies would have earned, how sure that is, and whether the log can tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from bough._frames import make_frame
from bough._text import rounded
from bough.evaluation.diagnostics import Diagnostics


class PolicyValue(NamedTuple):
    """One estimate of one policy's value."""

    policy: str
    """The policy's name."""
    estimator: str
    """The estimator's name."""
    value: float
    """Reward per row."""
    low: float
    """Where the interval of the value begins."""
    high: float
    """Where it ends."""
    lift: float
    """The value less what the log itself earned per row."""
    lift_low: float
    """Where the interval of the lift begins."""
    lift_high: float
    """Where it ends."""


@dataclass(frozen=True, repr=False)
class Evaluation:
    """What policies would have earned; made by `evaluate`.

    >>> import bough, polars
    >>> tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]})
    >>> names = ["green", "black", "espresso"] * 100
    >>> rewards = [1.0, 0.0, 0.5] * 100
    >>> log = polars.DataFrame({"action": names, "reward": rewards, "propensity": [1 / 3] * 300})
    >>> report = bough.evaluate({"always green": {"green": 1.0}}, log, tree, estimators=["snips"])
    >>> report
    Evaluation(policies=['always green'], estimators=['snips'], n_rows=300)
    >>> report.values[0].value
    1.0
    """

    values: list[PolicyValue]
    """One estimate for each policy and estimator, in the order asked for."""
    diagnostics: Diagnostics
    """Whether the log can tell, in numbers and words."""
    n_rows: int
    """How many rows were used."""
    logged_value: float
    """What the log itself earned per row."""
    logged_error: float
    """The standard error of that."""
    interval: str
    level: float
    reward_range: tuple[float, float]
    notes: tuple[str, ...]
    """What was assumed, in words."""

    @property
    def policies(self) -> list[str]:
        """The names of the policies."""
        return list(dict.fromkeys(one.policy for one in self.values))

    @property
    def estimators(self) -> list[str]:
        """The names of the estimators."""
        return list(dict.fromkeys(one.estimator for one in self.values))

    def __repr__(self) -> str:
        return f"Evaluation(policies={self.policies}, estimators={self.estimators}, n_rows={self.n_rows})"

    @property
    def table(self) -> Any:
        """A frame with columns policy, estimator, value, low, high, lift, lift_low and lift_high."""
        return self.to_frame()

    def to_frame(self, backend: str | None = None) -> Any:
        """`table`, as a "pandas", "polars" or "pyarrow" frame; the first of them that is installed where it is None."""
        names = PolicyValue._fields
        return make_frame({name: [getattr(one, name) for one in self.values] for name in names}, backend)

    def summary(self) -> str:
        """The table and the diagnostics as text, to print.

        >>> import bough, numpy, polars
        >>> tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso", "filter"]})
        >>> rng = numpy.random.default_rng(0)
        >>> chosen = rng.integers(4, size=4_000)
        >>> rewards = rng.random(4_000) < numpy.array([0.05, 0.1, 0.15, 0.2])[chosen]
        >>> names = numpy.array(["green", "black", "espresso", "filter"])[chosen]
        >>> log = polars.DataFrame({"action": names, "reward": rewards, "propensity": [0.25] * 4_000})
        >>> print(bough.evaluate({"coffee": {"espresso": 0.5, "filter": 0.5}}, log, tree).summary())
        4,000 rows earned 0.130 each; 95% intervals, cressie-read
        policy  estimator   value        interval     lift          interval
        coffee  snips      0.1824  0.165 to 0.200  +0.0524  +0.043 to +0.069
        coffee  dr         0.1818  0.165 to 0.200  +0.0518  +0.042 to +0.068
        coffee  dm         0.1814  0.167 to 0.196  +0.0514  +0.034 to +0.069
        <BLANKLINE>
        policy              rows       effective     mean weight  largest weight    never logged         DM - DR
        coffee             4,000           2,029    1.014 ± 0.02             2.0            0.0%     -0.0 errors
        """
        head = ("policy", "estimator", "value", "interval", "lift", "interval")
        rows = [head, *map(_cells, self.values)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        lines = [
            "  ".join(cell.ljust(width) if i < 2 else cell.rjust(width) for i, (cell, width) in enumerate(pairs))
            for pairs in (zip(row, widths, strict=True) for row in rows)
        ]
        logged = rounded(self.logged_value, 4.0 * self.logged_error)
        title = f"{self.n_rows:,} rows earned {logged} each; {self.level:.0%} intervals, {self.interval}"
        notes = [f"Note: {note}" for note in self.notes]
        return "\n".join([title, *(line.rstrip() for line in lines), *notes, "", str(self.diagnostics)])

    def plot(self, ax: Any = None) -> Any:
        """Draw each estimate with its interval, beside what the log itself earned; returns the axes. Needs matplotlib.

        Estimates of a policy that the log cannot tell about are hollow.
        """
        from bough.plotting import plot_values  # matplotlib loads when something is drawn

        usable = [self.diagnostics[one.policy].is_usable or one.estimator == "dm" for one in self.values]
        return plot_values(self.values, usable, self.logged_value, ax)


def _cells(one: PolicyValue) -> Sequence[str]:
    least = 0.1 * (one.high - one.low)  # of a lift that is known to be nothing, no more digits are shown
    return (
        one.policy,
        one.estimator,
        rounded(one.value, _width(one.low, one.high)),
        _interval(one.low, one.high, "", 0.0),
        f"{'+' if one.lift >= 0 else ''}{rounded(one.lift, _width(one.lift_low, one.lift_high, least))}",
        _interval(one.lift_low, one.lift_high, "+", least),
    )


def _interval(low: float, high: float, sign: str, least: float) -> str:
    if math.isnan(low) or math.isnan(high):
        return "none"
    width = 10.0 * _width(low, high, least)
    return " to ".join(f"{sign if end >= 0 else ''}{rounded(end, width)}" for end in (low, high))


def _width(low: float, high: float, least: float = 0.0) -> float:
    return 0.1 if math.isnan(high - low) else 0.1 * max(high - low, least)
