"""replay(...): what a *learning* agent would have earned, from a log of uniformly random decisions.

The agent decides on each row in turn. Where it decides for the logged action it sees the reward and learns from it;
other rows are as if they had not been. Since the logger chose at random, which rows are kept says nothing about their
rewards, and what was kept is a sample of the agent's own life. (Li, Chu, Langford and Wang, "Unbiased offline
evaluation of contextual-bandit-based news article recommendation algorithms", WSDM 2011.)
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bough import _checks
from bough._arrays import Floats
from bough.data.decision_logs import LogColumns
from bough.data.logged_rows import LoggedRows, read_logged_rows
from bough.evaluation.columns import checked_columns
from bough.evaluation.targets import contexts_of
from bough.policies.base import Policy, ScoringPolicy
from bough.tree.tree import Tree

_ROUNDING = 1e-6
_IMPOSSIBLE = 1e-6  # a p-value below which counts are not those of uniform choice
_LEAST_EXPECTED = 5.0


@dataclass(frozen=True, repr=False)
class Replay:
    """What a learning agent earned on the rows where it decided as the log did; made by `replay`.

    >>> import bough, polars
    >>> tree = bough.Tree.from_nested(["left", "right"])
    >>> log = polars.DataFrame({"action": ["left", "right"] * 200, "reward": [0.0, 1.0] * 200})
    >>> found = bough.replay(bough.HierTS(bough.GaussianModel(tree), seed=0), log, tree)
    >>> found
    Replay(value=0.96, low=0.94, high=0.99, kept=208, n_rows=400)
    """

    value: float
    """The mean reward of the rows that were kept; NaN where none was."""
    low: float
    high: float
    """The ends of Student's interval: of the mean reward of the decisions that this run made."""
    kept: int
    """How many rows the agent decided as the log did: about one in K."""
    n_rows: int
    rewards: Floats
    """(kept,) the rewards, in order."""

    @property
    def curve(self) -> Floats:
        """(kept,) the mean reward up to each decision that was kept."""
        return np.cumsum(self.rewards) / np.arange(1.0, self.kept + 1.0)

    def __repr__(self) -> str:
        ends = f"low={self.low:.2f}, high={self.high:.2f}"
        return f"Replay(value={self.value:.2f}, {ends}, kept={self.kept}, n_rows={self.n_rows})"


def replay(
    agent: Any,
    log: Any,
    tree: Tree,
    action: str = "action",
    reward: str = "reward",
    *,
    context: Any = None,
    propensity: str | None = None,
    level: float = 0.95,
    bad: Literal["error", "skip", "skip-most"] = "error",
) -> Replay:
    """What a copy of a learning agent earns on a log of uniformly random decisions, learning as it goes.

    `evaluate` judges a policy that stays as it is; this judges how an agent learns. It takes a log whose actions were
    chosen uniformly at random, in the order of time, and keeps about one row in K, so that it says something only for
    few actions or very long logs. A log that was not chosen uniformly is refused: where a `propensity` column is
    named, it has to be constant, and counts that uniform choice does not have are an error in any case. The agent
    itself stays as it is.

    >>> import bough, polars
    >>> tree = bough.Tree.from_nested(["left", "right"])
    >>> log = polars.DataFrame({"action": ["left", "right"] * 200, "reward": [0.0, 1.0] * 200})
    >>> found = bough.replay(bough.HierTS(bough.GaussianModel(tree), seed=0), log, tree)
    >>> found.kept, found.curve[[0, -1]].round(2)
    (208, array([1.  , 0.96]))
    """
    if not isinstance(agent, Policy) or isinstance(agent, type):
        raise ValueError(f"agent is a {type(agent).__name__}; give an agent, with decide and update")
    _refuse_factors(agent)
    level = _checks.level(level)
    uniform = "propensity" if propensity is None else propensity
    named = checked_columns(log, tree, action, reward, uniform, None, context)
    columns = LogColumns(action, reward, propensity, None, None, named.context, named.context_list)
    rows = read_logged_rows(log, tree, columns, bad)
    _check_uniform(rows, propensity)
    twin = copy.deepcopy(agent)
    kept = []
    names = tree.actions[rows.place].tolist()
    for name, y, given in zip(names, rows.reward.tolist(), contexts_of(agent, rows), strict=True):
        if twin.decide(given) == name:
            twin.update(name, y, given)
            kept.append(y)
    return _of_rewards(np.array(kept), len(names), level)


def _of_rewards(rewards: Floats, n_rows: int, level: float) -> Replay:
    from scipy.special import stdtrit  # takes longer to load than all the rest

    n = len(rewards)
    value = float(rewards.mean()) if n else math.nan
    width = math.nan
    if n > 1:
        width = float(stdtrit(n - 1, 0.5 + 0.5 * level)) * float(rewards.std(ddof=1)) / math.sqrt(n)
    return Replay(value, value - width, value + width, n, n_rows, rewards)


def _refuse_factors(agent: Any) -> None:
    """Refuse an agent that needs the levels of decisions to learn from them, which are not read from the log."""
    effects = agent._model.effects if isinstance(agent, ScoringPolicy) else None
    decided = () if effects is None else effects.decided
    if decided:
        raise ValueError(
            f"the agent's model has the factor {decided[0][0]!r} of the decision, whose levels replay does not read "
            "from the log; replay an agent without it, or have evaluate judge this one as it is"
        )


def _check_uniform(rows: LoggedRows, propensity: str | None) -> None:
    from scipy.special import chdtrc

    p = rows.propensity
    if len(p) and p.max() - p.min() > _ROUNDING * p.max():
        raise ValueError(
            f"the column {propensity!r} goes from {p.min():g} to {p.max():g}; replay takes a log of uniformly random "
            "decisions, whose propensities are all the same (evaluate takes any)"
        )
    counts = np.bincount(rows.place)
    counts = counts[counts > 0]
    if len(counts) > 1 and counts.mean() >= _LEAST_EXPECTED:
        statistic = float(np.square(counts - counts.mean()).sum() / counts.mean())
        if chdtrc(len(counts) - 1, statistic) < _IMPOSSIBLE:
            raise ValueError(
                f"actions have from {counts.min()} to {counts.max()} rows each, which uniformly random decisions do "
                "not have; replay takes such a log only (evaluate takes any)"
            )
