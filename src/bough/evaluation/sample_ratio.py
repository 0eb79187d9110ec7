"""sample_ratio(...): whether the logged propensities fit the logged counts.

Where the propensities of an action are right, the sum s of 1/p over its rows is n in expectation, n the number of all
rows: each row adds 1/p with probability p. The variance of s is v - n, where v is the sum of 1/p over *all* rows, and
the covariance of two actions is -n. v is n times the mean of 1/p over the action's rows, weighted by 1/p. So
(s - n)' (diag v - n 1 1')^-1 (s - n), over all actions that should have ten rows or more, has a chi-squared
distribution: Pearson's statistic, with the other actions as one. Of these, it is compared how often they repeat
themselves.

Where propensities vary, an action may have been all but given up for most of the log, and s is far below n almost
always, and far above once in a while. So only too many rows count: s over the mean of 1/p, weighted by 1/p, is compared
with a Poisson count, and the least probability taken as many times as there are actions. One row with a tiny propensity
makes that a count of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bough._arrays import Floats
from bough._frames import make_frame
from bough.data.propensities import PropensitySums, summed_propensities
from bough.evaluation.columns import checked_columns
from bough.tree.tree import Tree

_LEAST_EXPECTED = 10.0
_ROUNDING = 1e-6  # of what propensities sum to
_LEAST_VARIANCE = 4.0  # or one repetition would be a discovery
_SUSPICIOUS = 1e-4
_WORST = 3


@dataclass(frozen=True, repr=False)
class SampleRatio:
    """How the counts of a log compare with its propensities; made by `sample_ratio`.

    >>> import bough, polars
    >>> log = polars.DataFrame({"action": ["a"] * 60 + ["b"] * 40, "reward": 0.0, "propensity": 0.5})
    >>> found = bough.sample_ratio(log, bough.Tree.from_nested(["a", "b"]))
    >>> round(found.p_value, 3), found.fits
    (0.046, True)
    """

    statistic: float
    """Pearson's; where propensities vary, the largest excess of an action's rows, in deviations."""
    degrees: int
    """Of freedom; where propensities vary, how many actions were compared."""
    p_value: float
    """How likely counts that fit this badly, or worse, are where the propensities are right."""
    actions: list[Any]
    """The actions that were compared, those that fit worst first."""
    count: Floats
    """How many rows each has."""
    expected: Floats
    """How many it should have."""
    z: Floats
    """How many standard deviations it has too many."""
    n_rows: float

    @property
    def fits(self) -> bool:
        """Whether the counts are as likely as one log in ten thousand."""
        return self.p_value >= _SUSPICIOUS

    def __repr__(self) -> str:
        return f"SampleRatio(fits={self.fits}, p_value={self.p_value:.3g}, n_actions={len(self.actions)})"

    def summary(self) -> str:
        """The verdict in words.

        >>> import bough, polars
        >>> log = polars.DataFrame({"action": ["a"] * 80 + ["b"] * 20, "reward": 0.0, "propensity": 0.5})
        >>> print(bough.sample_ratio(log, bough.Tree.from_nested(["a", "b"])).summary())
        The propensities do not fit the counts (p = 2e-09): 'a' has 80 rows, not 50.0; 'b' has 20 rows, not 50.0
        """
        if self.fits:
            return f"The propensities fit the counts (p = {self.p_value:.2g})"
        worst = zip(self.actions[:_WORST], self.count, self.expected, strict=False)
        shown = "; ".join(f"{name!r} has {count:,.0f} rows, not {wanted:,.1f}" for name, count, wanted in worst)
        return f"The propensities do not fit the counts (p = {self.p_value:.1g}): {shown}"

    def to_frame(self, backend: str | None = None) -> Any:
        """A frame with columns action, count, expected and z, those that fit worst first.

        >>> import bough, polars
        >>> log = polars.DataFrame({"action": ["a"] * 60 + ["b"] * 40, "reward": 0.0, "propensity": 0.5})
        >>> bough.sample_ratio(log, bough.Tree.from_nested(["a", "b"])).to_frame("polars").columns
        ['action', 'count', 'expected', 'z']
        """
        columns = {"action": self.actions, "count": self.count, "expected": self.expected, "z": self.z}
        return make_frame(columns, backend)


def sample_ratio(
    log: Any,
    tree: Tree,
    action: str = "action",
    reward: str = "reward",
    propensity: str = "propensity",
    *,
    position: str | None = None,
    bad: Literal["error", "skip", "skip-most"] = "error",
) -> SampleRatio:
    """Whether the actions of a log are logged as often as their propensities say.

    The log and its columns are those of `evaluate`. Where the logger's propensities are wrong, such as 1/K for one that
    did not choose uniformly, no estimate from them is right, and this is how it shows. With `position`, each has a log
    of its own.

    >>> import bough, polars
    >>> log = polars.DataFrame({"action": ["a"] * 60 + ["b"] * 40, "reward": 0.0, "propensity": 0.5})
    >>> bough.sample_ratio(log, bough.Tree.from_nested(["a", "b"]))
    SampleRatio(fits=True, p_value=0.0455, n_actions=2)
    """
    columns = checked_columns(log, tree, action, reward, propensity, None, None, position)
    return ratio_of_sums(tree, summed_propensities(log, tree, columns, bad))


def ratio_of_sums(tree: Tree, sums: PropensitySums) -> SampleRatio:
    """`sample_ratio` of what has been summed already."""
    rows_at = sums.rows_at[sums.position]
    expected = rows_at * sums.n / sums.ip
    variance = rows_at * sums.ipp / sums.ip  # v
    varies = bool((sums.n * sums.ipp > (1.0 + _ROUNDING) * sums.ip**2).any())
    statistic, degrees, p_value = _with_a_tail(sums, rows_at) if varies else _pearson(sums, expected, variance)
    listed = (expected >= _LEAST_EXPECTED) | (sums.n >= _LEAST_EXPECTED)
    z = ((sums.ip - rows_at) / np.sqrt(np.maximum(variance - rows_at, 1e-9 * variance)))[listed]
    order = np.argsort(-z if varies else -np.abs(z), kind="stable")
    return SampleRatio(
        statistic,
        degrees,
        p_value,
        tree.actions[sums.place[listed][order]].tolist(),
        sums.n[listed][order],
        expected[listed][order],
        z[order],
        sums.n_rows,
    )


def _pearson(sums: PropensitySums, expected: Floats, variance: Floats) -> tuple[float, int, float]:
    """The statistic, its degrees of freedom and p-value, where propensities do not vary."""
    from scipy.special import chdtrc  # takes longer to load than all the rest

    enough = expected >= _LEAST_EXPECTED
    statistic, degrees = 0.0, 0
    for position, n in enumerate(sums.rows_at.tolist()):
        here = enough & (sums.position == position)
        distance, spread = sums.ip[here] - n, variance[here]
        rest = 1.0 - n * float((1.0 / spread).sum())
        statistic += float((distance**2 / spread).sum())
        degrees += int(here.sum())
        if rest > _ROUNDING:
            statistic += n * float((distance / spread).sum()) ** 2 / rest
        elif here.any():
            degrees -= 1  # all rows are in the counts, which sum to n
    statistic += _repetition(sums.n[~enough], expected[~enough])
    degrees = max(degrees + bool((~enough).any()), 1)
    return statistic, degrees, float(chdtrc(degrees, statistic))


def _with_a_tail(sums: PropensitySums, rows_at: Floats) -> tuple[float, int, float]:
    """The largest excess of an action's rows, of how many actions, and its p-value, where propensities vary."""
    from scipy.special import gammainc

    count = sums.ip**2 / sums.ipp
    wanted = rows_at * sums.ip / sums.ipp
    tails = np.where(count > wanted, gammainc(count, wanted), 1.0)
    excess = float(((count - wanted) / np.sqrt(wanted)).max())
    return excess, len(count), min(1.0, float(tails.min()) * len(count))


def _repetition(n: Floats, expected: Floats) -> float:
    """The square of how many deviations rare actions repeat themselves too often.

    A count X that is Poisson with mean m has E[X (X - 1 - m)] = 0 and the variance m^3 + 2 m^2; sums of n m and n m^2
    over the actions that were logged are those of m^2 and m^3 over all actions in expectation.
    """
    too_many = float((n * (n - 1.0 - expected)).sum())
    variance = float((n * (expected**2 + 2.0 * expected)).sum())
    return max(too_many, 0.0) ** 2 / max(variance, _LEAST_VARIANCE)
