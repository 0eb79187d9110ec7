"""fit_drift(...): whether, and at what pace, the actions of a log drift or its old rewards lose their worth."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from operator import itemgetter
from typing import Any, Literal

import numpy as np

from bough import _checks
from bough._arrays import Floats, Nodes
from bough.data.logs import Bad
from bough.inference.kernels.prediction import drifting_score, fading_score
from bough.inference.slots import Slots
from bough.learning.fit import fit_prior
from bough.learning.timed_log import TimedLog
from bough.model.covariance import ClassCovariances
from bough.model.gaussian import GaussianModel
from bough.policy_table import named
from bough.posterior import Posterior
from bough.tree.tree import Tree

Kind = Literal["none", "half_life", "drift"]
_MOVING: tuple[Kind, ...] = ("half_life", "drift")

_WORTH = 2.0  # nats that a kind must predict better than "none"
_STEPS = 10  # half-lives that are tried first
_LONGEST = 30.0  # half-life, in spans of the log
_SHORTEST = 0.5  # half-life, in blocks
_FACTORS = (-14.0, 14.0)  # how far the logarithms of the factors of variances may go
_MOST_GROUPS = 4  # classes of actions whose variances are learned each by itself
_STEP = 0.5  # of a search, at first, in logarithms
_ROUGH, _CLOSE = 0.1, 0.02  # in logarithms, and in nats: where a search ends


@dataclass(frozen=True)
class DriftFit:
    """Whether, and at what pace, the actions of a log drift; made by `fit_drift`.

    >>> import bough, polars
    >>> tree = bough.Tree.from_nested(["left", "right"])
    >>> rewards = [1.2, 3.1, 0.9, 2.7, 1.1, 3.2, 1.0, 2.9]
    >>> log = polars.DataFrame({"side": ["left", "right"] * 4, "reward": rewards, "day": [1, 1, 2, 2, 3, 3, 4, 4]})
    >>> fit = bough.fit_drift(tree, log, action="side", reward="reward", time="day")
    >>> fit.kind, fit.half_life, fit.model.drift
    ('none', None, None)
    >>> fit.agent(seed=0)
    HierTS(n_actions=2, n_observations=8)
    """

    kind: Kind
    """What predicts best: "none", "half_life" (old rewards fade), or "drift" (actions drift)."""
    half_life: Any
    """Of that kind, in the units of the log's times, or as a `timedelta` where they are dates; None for "none"."""
    model: GaussianModel
    """The fitted model; with `drift` where that is the kind."""
    scores: dict[Kind, float]
    """For each kind, the log predictive density of the rewards at its best."""
    half_lives: dict[Kind, Any]
    """For each kind the half-life that is best for it."""
    profile: dict[Kind, list[tuple[Any, float]]]
    """For "half_life" and "drift", the half-lives that were tried first, with their scores: for a plot."""
    n_blocks: int
    """How many blocks of time the log was cut into."""
    n_predicted: int
    """How many rewards were predicted: all but the first block's."""
    log: TimedLog = field(compare=False)
    """The rewards with their times, which `posterior` and `agent` observe."""

    def __repr__(self) -> str:
        shown = "" if self.half_life is None else f", half_life={_shown(self.half_life)}"
        return f"DriftFit({self.kind}{shown}, n_blocks={self.n_blocks})"

    @property
    def posterior(self) -> Posterior:
        """A fresh posterior of the fitted model at the fitted pace, which has observed the log at its times.

        >>> import bough, polars
        >>> tree = bough.Tree.from_nested(["left", "right"])
        >>> log = polars.DataFrame({"side": ["left", "right"] * 4, "reward": [1, 2, 2, 2, 1, 3, 2, 2], "day": range(8)})
        >>> posterior = bough.fit_drift(tree, log, action="side", reward="reward", time="day").posterior
        >>> posterior, posterior.now
        (Posterior(n_actions=2, dim=1, n_observations=8), 7.0)
        """
        posterior = Posterior(self.model, half_life=self.half_life if self.kind == "half_life" else None)
        actions, rewards, times = self.log.as_rewards(self.model.tree)
        posterior.update(actions, rewards, at=times)
        return posterior

    def agent(self, seed: Any = None, slower: float = 3.0, **options: Any) -> Any:
        """A `HierTS` that goes along with what was found, and has observed the log at its times.

        Its half-life is `slower` times the fitted one: Thompson sampling explores too much where what it learns
        expires, and 3 to 10 times the pace that predicts best has less regret. Options are those of `HierTS`.

        >>> import bough, polars
        >>> tree = bough.Tree.from_nested(["left", "right"])
        >>> log = polars.DataFrame({"side": ["left", "right"] * 4, "reward": [1, 2, 2, 2, 1, 3, 2, 2], "day": range(8)})
        >>> agent = bough.fit_drift(tree, log, action="side", reward="reward", time="day").agent(seed=0)
        >>> agent, agent.now
        (HierTS(n_actions=2, n_observations=8), 7.0)
        """
        if not _checks.number(slower, "slower") > 0.0:
            raise ValueError(f"slower is {slower!r}; give a positive number, such as 3.0")
        model = self.model
        if self.kind == "drift":
            model = replace(model, drift=self.half_life * float(slower))
        elif self.kind == "half_life":
            options = {"half_life": self.half_life * float(slower), **options}
        agent = named("HierTS").policy(model, seed, **options)
        actions, rewards, times = self.log.as_rewards(model.tree)
        agent.update(actions, rewards, at=times)
        return agent

    def summary(self) -> str:
        """The log predictive density of each kind, what it gains over "none", and its half-life."""
        table = [("", "log predictive", "gain", "half-life")]
        for kind, score in self.scores.items():
            half_life = self.half_lives[kind]
            mark = " *" if kind == self.kind else ""
            gain = f"{score - self.scores['none']:+,.1f}" if kind != "none" else ""
            table.append((kind + mark, f"{score:,.1f}", gain, "" if half_life is None else _shown(half_life)))
        widths = [max(len(row[i]) for row in table) for i in range(4)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *(row[i].rjust(widths[i]) for i in range(1, 4))]).rstrip()
            for row in table
        ]
        return "\n".join([*lines, f"{self.n_predicted:,} rewards predicted, in {self.n_blocks} blocks of time"])


def fit_drift(
    tree: Tree, log: Any, *, action: str, reward: str, time: str, by: Any = "depth", bad: Bad = "error"
) -> DriftFit:
    """Find out from a log whether its actions stand still, and if not, at what pace they drift.

    `log` is a frame as `summarise` takes it, and `action`, `reward`, `time` the names of its columns. Times are numbers
    or dates; half-lives come in their units, or as `timedelta`. Rewards are Gaussian, without contexts. `by` is that of
    `fit_prior`, which the mean and the variances above actions come from.

    Time is cut into blocks: each distinct time where there are up to 100, or else 100 of about as many rewards. From
    all blocks before it, the rewards of each action in a block are predicted: by a posterior to which nothing happens
    ("none"), by one in which each reward's precision halves in every half-life ("half_life"), and by one whose
    actions drift around their categories ("drift"). Each kind's log predictive density is maximised over its
    half-life, the noise variance and the actions' variance. The best kind wins, but "none" unless that is better by
    2 nats or more.

    Where nothing changes, about one log in thirty is said to change all the same.

    >>> import bough, numpy, polars
    >>> tree = bough.Tree.balanced(branching=4, height=2)
    >>> rng = numpy.random.default_rng(0)
    >>> worth, rows = numpy.zeros(tree.n_nodes), []
    >>> for day in range(300):  # half of a deviation is left after 20 days
    ...     worth = 0.5 ** (1 / 20) * worth + 0.26 * rng.normal(size=tree.n_nodes)
    ...     rows += [(day, product, worth[product] + rng.normal()) for product in rng.choice(tree.leaves, 20)]
    >>> log = polars.DataFrame(rows, schema=["day", "product", "sales"], orient="row")
    >>> fit = bough.fit_drift(tree, log, action="product", reward="sales", time="day")
    >>> fit.kind, round(fit.half_life)
    ('drift', 21)
    >>> print(fit.summary())
               log predictive      gain  half-life
    none            -10,333.1
    half_life        -9,108.5  +1,224.7       2...
    drift *          -9,097.1  +1,236.0       2...
    5,940 rewards predicted, in 100 blocks of time
    >>> agent = fit.agent(seed=0)
    """
    if not isinstance(tree, Tree):
        raise ValueError(f"tree is a {type(tree).__name__}; give a bough.Tree")
    rows = TimedLog.read(log, tree, action, reward, time, bad)
    prior = fit_prior(tree, rows.statistics(tree), by).model
    assert isinstance(prior, GaussianModel)
    prediction = _Prediction(rows, prior)
    start = np.zeros(1 + prediction.n_groups)
    factors, none = _maximised(lambda x: prediction.score("none", math.inf, x), [start], [_FACTORS] * len(start))
    scores: dict[Kind, float] = {"none": none}
    half_lives: dict[Kind, Any] = {"none": None}
    models: dict[Kind, GaussianModel] = {"none": prior}
    profile: dict[Kind, list[tuple[Any, float]]] = {}
    for kind in _MOVING:
        tried, best, scores[kind] = _searched(prediction, kind, factors)
        half_lives[kind] = rows.shown(math.exp(best[0]))
        profile[kind] = [(rows.shown(math.exp(x)), score) for x, score in tried]
        models[kind] = prediction.scaled(best[1:], half_lives[kind] if kind == "drift" else None)
    found = max(scores, key=scores.__getitem__)
    if scores[found] < none + _WORTH:
        found = "none"
    return DriftFit(
        found, half_lives[found], models[found], scores, half_lives, profile, rows.n_blocks, rows.n_predicted, rows
    )


# -- how it is found -------------------------------------------------------------------------------


class _Prediction:
    """How well each kind predicts a log.

    Factors are the logarithms of what the prior's noise variance is multiplied by, and of what the variances of actions
    are: each class that actions have its own, where they are few.
    """

    def __init__(self, rows: TimedLog, prior: GaussianModel) -> None:
        self.rows = rows
        self._prior = prior
        self._table = prior.classes.table
        observed = np.unique(prior.classes.of_node[rows.leaves])
        self.n_groups = len(observed) if len(observed) <= _MOST_GROUPS else 1
        self._group = np.zeros(len(self._table), dtype=np.int64)
        self._group[observed] = np.arange(len(observed)) % self.n_groups
        self._first = observed[: self.n_groups]  # of each group's classes
        slots = Slots(prior.tree, _doubled(prior))
        touched = slots.touch(np.unique(rows.leaves))
        self._slots = (slots.parent.copy(), slots.class_.copy(), slots.row.copy())
        n_slots, n_actions = slots.count, len(touched)
        new = np.ones(len(rows.leaves), dtype=np.bool_)
        new[1:] = (rows.leaves[1:] != rows.leaves[:-1]) | (rows.block[1:] != rows.block[:-1])
        cells = np.flatnonzero(new)
        self._block_cell = np.searchsorted(rows.block[cells], np.arange(rows.n_blocks + 1))
        self._block_time = rows.block_times
        deviations = rows.average - float(prior.mean)
        self._cells = (np.append(cells, len(new)), slots.find(rows.leaves[cells]))
        self._data = (*self._cells, rows.count, deviations, rows.squares, rows.times)
        self._room = (np.zeros((n_slots, 4)), np.zeros((n_slots, 3)), np.zeros(n_slots), np.zeros(n_slots))
        self._sums, self._filters = np.zeros((n_actions, 3)), np.zeros((n_actions + 1, 9))

    def score(self, kind: Kind, half_life: float, factors: Floats) -> float:
        """The log predictive density of all blocks but the first."""
        noise, actions = self._variances(factors)
        table, nothing = self._table, np.zeros_like(self._table)
        if kind == "drift":
            above, own = np.concatenate([table, nothing]), np.concatenate([nothing, actions])
            return drifting_score(
                self._block_cell, *self._data, *self._slots, above, own, noise, half_life, self._filters, *self._room
            )
        return fading_score(
            self._block_cell, self._block_time, *self._data, *self._slots, np.concatenate([table, actions]), noise,
            half_life, self._sums, *self._room,
        )  # fmt: skip

    def _variances(self, factors: Floats) -> tuple[float, Floats]:
        """The noise variance, and the variance of an action of each class."""
        return self._prior.noise_variance * math.exp(factors[0]), self._table * np.exp(factors[1:])[self._group]

    def shifted(self, factors: Floats) -> Floats:
        """Where half of the noise is variance of actions: what a posterior that stands still takes for noise."""
        noise, actions = self._variances(factors)
        grown = (actions + 0.5 * noise)[self._first] / np.maximum(self._table[self._first], 1e-300)
        return np.append(factors[0] - math.log(2.0), np.log(grown))

    def scaled(self, factors: Floats, drift: float | timedelta | None) -> GaussianModel:
        """The prior with these variances, and drift."""
        model, classes = self._prior, self._prior.classes
        noise, actions = self._variances(factors)
        inner = np.ones(model.tree.n_nodes, dtype=np.bool_)
        inner[model.tree.leaves] = False
        of_actions = np.unique(classes.of_node[model.tree.leaves])
        if np.isin(classes.of_node[inner], of_actions).any():
            covariance = ClassCovariances("node", _doubled(model), np.concatenate([classes.table, actions]))
        else:
            table = classes.table.copy()
            table[of_actions] = actions[of_actions]
            covariance = ClassCovariances(classes.kind, classes.of_node, table)
        return replace(model, covariance=covariance, noise_variance=noise, drift=drift)


def _searched(prediction: _Prediction, kind: Kind, factors: Floats) -> tuple[list[tuple[float, float]], Floats, float]:
    """Logarithms of some half-lives with their scores; the best one with its factors; and the score of that."""
    rows = prediction.rows
    shortest, longest = math.log(_SHORTEST * rows.span / rows.n_blocks), math.log(_LONGEST * rows.span)

    def score(parameters: Floats) -> float:
        return prediction.score(kind, math.exp(parameters[0]), parameters[1:])

    within = [_FACTORS] * len(factors)
    tried, found = [], []
    for log_half_life in np.linspace(longest, shortest, _STEPS):
        starts = [np.append(log_half_life, one) for one in (factors, prediction.shifted(factors))]
        best, value = _maximised(score, starts, [(log_half_life, log_half_life), *within], _ROUGH)
        factors = best[1:]
        tried.append((float(log_half_life), value))
        found.append(best)
    start = found[int(np.argmax([value for _, value in tried]))]
    other = np.append(start[0], prediction.shifted(start[1:]))
    ends = [_maximised(score, [one], [(shortest, longest), *within]) for one in (start, other)]
    return tried[::-1], *max(ends, key=itemgetter(1))


def _maximised(
    score: Callable[[Floats], float], starts: list[Floats], bounds: list[tuple[float, float]], close: float = _CLOSE
) -> tuple[Floats, float]:
    """Where the score is largest, from the best of some starts, and how large it is; what has no room stays."""
    from scipy.optimize import minimize  # takes longer to load than most fits take

    low, high = np.array(bounds).T
    free = np.flatnonzero(low < high)
    best = max((np.clip(one, low, high) for one in starts), key=score)
    value = score(best)

    def full(part: Floats) -> Floats:
        whole = best.copy()
        whole[free] = part
        return whole

    def loss(part: Floats) -> float:
        return -score(full(part))

    for step in (_STEP, -_STEP, _STEP, -_STEP):  # a simplex may collapse where there is more to gain
        inside = (best + step < high) & (best + step > low)
        corners = np.vstack([best, best + np.diag(np.where(inside, step, -step))[free]])[:, free]
        options: Any = {"initial_simplex": corners, "xatol": close, "fatol": close, "maxfev": 100 * len(free)}
        within = list(zip(low[free], high[free], strict=True))
        found = minimize(loss, best[free], method="Nelder-Mead", bounds=within, options=options)
        best, before, value = full(np.asarray(found.x)), value, -float(found.fun)
        if close == _ROUGH or value < before + _ROUGH:
            break
    return best, value


def _doubled(model: GaussianModel) -> Nodes:
    """(V,) the class of each node, where those of actions come once more behind the others."""
    of_node = model.classes.of_node.copy()
    of_node[model.tree.leaves] += len(model.classes.table)
    return of_node


def _shown(half_life: float | timedelta) -> str:
    return f"{half_life:.3g}" if isinstance(half_life, float) else str(half_life).split(".")[0]
