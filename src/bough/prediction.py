"""What the next reward may be, and how noisy each action is."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from bough import _checks
from bough._arrays import Floats
from bough._frames import make_frame
from bough.data.rows import checked_context, checked_levels
from bough.explanation import one_type
from bough.inference.answers import Answers
from bough.inference.noisy import NoisyActions, NoisyEngine
from bough.model.likelihood import Likelihood
from bough.model.noise import PerAction

_MOST_HALVINGS = 200  # of the interval that a quantile is in
_NEAR = 1e-9  # how wide that is in the end, in deviations of the narrowest part
_NEGLIGIBLE = 1e-12  # weight of a part, as a share of the tail
_MOST = 1e12  # trials, or exposure
_LARGEST, _ROUNDING = 1e300, 1e-15  # of counts
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_POINTS = 400  # of the law of a log variance
_ROUNDS = 4  # in which these are brought to where it is
_REACH, _FALL = 9.5, 30.0  # spreads, and a log density below its top, beyond which nothing is left
_AT_ONCE = 1_000  # actions


class Prediction(NamedTuple):
    """The next reward of an action: its mean, and the ends of an interval; made by `Posterior.predictive`.

    >>> import bough
    >>> bough.Posterior(bough.PoissonModel(bough.Tree.from_nested(["left", "right"]))).predictive("left").high
    17.0
    """

    mean: Any
    """The reward that is expected."""
    low: Any
    """Where the interval of the next reward begins."""
    high: Any
    """Where it ends."""


def predictive(
    posterior: Answers, action: Any, level: Any, context: Any, trials: Any, exposure: Any, factors: Any
) -> Prediction:
    """`Posterior.predictive`."""
    tail = 0.5 - 0.5 * _checks.level(level)
    several = _checks.is_list(action)
    names: list[Hashable] = list(action) if several else [action]
    with posterior._lock:
        model = posterior._engine.model
        model.kind.check_words(trials, exposure)
        given = trials if exposure is None else exposure
        size = _checks.number(1.0 if given is None else given, "trials" if exposure is None else "exposure")
        if not 0.0 < size <= _MOST or (trials is not None and size % 1.0):
            raise ValueError(
                f"trials or exposure is {given!r}; give a positive number up to {_MOST:g}, and of trials a whole one"
            )
        if context is not None or not model.is_scalar:
            context = checked_context(model, context)
        levels = checked_levels(model, factors, 1)
        if levels is not None:
            context = levels[0].astype(np.float64)
        nodes = posterior._catalogue.action_nodes(names).astype(np.int32)
        distinct, which = np.unique(nodes, return_inverse=True)
        mean, variance = posterior._moments_of(distinct.astype(np.int32), context)
        mean, variance, engine = mean[which], variance[which], posterior._engine
        if isinstance(engine, NoisyEngine):
            low, high = _of_mixtures(*engine.reward_mixtures(nodes, mean, variance), tail)
        elif model.kind.noise_is_added:
            noise = model.likelihood.noise_deviation**2
            low, high = _of_mixtures(np.ones((len(mean), 1)), mean[:, None], (variance + noise)[:, None], tail)
        else:
            low, high = _of_counts(model.likelihood, mean, variance, size, tail)
        expected = size * np.asarray(model.likelihood.expected_reward(mean, variance))
    if several:
        return Prediction(expected, low, high)
    return Prediction(float(expected[0]), float(low[0]), float(high[0]))


def _of_mixtures(weight: Floats, mean: Floats, variance: Floats, tail: float) -> tuple[Floats, Floats]:
    """(n,) twice: where mixtures of normals, which come as (n, K), leave that much below and above."""
    deviation = np.sqrt(variance)
    matters = weight > _NEGLIGIBLE * tail
    narrowest = np.where(matters, deviation, np.inf).min(axis=1)

    def quantile(share: float) -> Floats:
        own = mean + deviation * ndtri(share)  # that of the mixture is between those of its parts
        low = np.where(matters, own, np.inf).min(axis=1)
        high = np.where(matters, own, -np.inf).max(axis=1)
        for _ in range(_MOST_HALVINGS):
            if (high - low <= _NEAR * narrowest).all():
                break
            middle = 0.5 * (low + high)
            below = (weight * ndtr((middle[:, None] - mean) / deviation)).sum(axis=1) < share
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(0.5 * (low + high))

    return quantile(tail), quantile(1.0 - tail)


def _of_counts(
    likelihood: Likelihood, mean: Floats, variance: Floats, size: float, tail: float
) -> tuple[Floats, Floats]:
    """The same of counts: the least ones that as much, or more, is at or below."""
    means = np.asarray(likelihood.mean_reward(mean[:, None] + np.sqrt(variance)[:, None] * _NODES))

    def quantile(share: float) -> Floats:
        low, high = np.full(len(mean), -1.0), np.full(len(mean), 1.0)
        while ((short := likelihood.at_most(high[:, None], means, size) @ _WEIGHTS < share) & (high < _LARGEST)).any():
            high[short] *= 2.0
        while (high - low > np.maximum(1.0, _ROUNDING * high)).any():
            middle = np.floor(0.5 * (low + high))
            below = likelihood.at_most(middle[:, None], means, size) @ _WEIGHTS < share
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return high

    return quantile(tail), quantile(1.0 - tail)


# -- noise -----------------------------------------------------------------------------------------


def noise_frame(posterior: Answers, level: Any, backend: str | None) -> Any:
    """`Posterior.noise`."""
    tail = 0.5 - 0.5 * _checks.level(level)
    with posterior._lock:
        model = posterior.model  # with all changes of the catalogue
        engine = posterior._engine
        if not isinstance(engine, NoisyEngine):
            raise ValueError(
                f"the model is {model!r}, which has no noise variance per action to learn; give it "
                "noise=bough.per_action(...), or learn that with fit_prior(..., noise='per action')"
            )
        found = engine.noisy_actions()
        names = one_type(model.tree.node_names.names(found.nodes))
    median, low, high = noise_quantiles(found, model.likelihood.per_action, (0.5, tail, 1.0 - tail))
    counts = np.rint(found.counts).astype(np.int64)
    columns = {"name": names, "median": median, "low": low, "high": high, "observations": counts}
    return make_frame(columns, backend)


def noise_quantiles(actions: NoisyActions, noise: PerAction, shares: tuple[float, ...]) -> list[Floats]:
    """(n,) for each share: the noise variance that it is below with that probability."""
    n = len(actions.nodes)
    found = [np.full(n, noise.floor + noise.median) for _ in shares]
    if noise.spread == 0.0:
        return found
    for start in range(0, n, _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        u, at_most = _laws(actions.at(part), noise)
        for values, share in zip(found, shares, strict=True):
            after = np.minimum((at_most < share).sum(axis=1), u.shape[1] - 1)
            rows = np.arange(len(u))
            before = np.maximum(after - 1, 0)
            p, q = at_most[rows, before], at_most[rows, after]
            part_of_step = np.where(q > p, (share - p) / np.where(q > p, q - p, 1.0), 0.0)
            values[part] = noise.floor + np.exp(u[rows, before] + part_of_step * (u[rows, after] - u[rows, before]))
    return found


def _laws(actions: NoisyActions, noise: PerAction) -> tuple[Floats, Floats]:
    """(n, points) log variances beyond the floor, and how likely each action's is at most that."""
    centre, count = np.log(noise.median), actions.counts[:, None]
    # No further from the prior than rewards that all say less noise could move it, and not far below the floor.
    moved = 0.5 * actions.counts * noise.spread**2
    lowest = np.maximum(centre - moved, min(centre, np.log(noise.floor)) - np.log1p(moved)) - 1.0
    low = lowest - _REACH * noise.spread
    seen = np.maximum(actions.spread, actions.counts * actions.off**2)
    high = np.maximum(centre + _REACH * noise.spread, np.log(np.maximum(seen, 1e-300)) + 1.0)
    steps = np.linspace(0.0, 1.0, _POINTS)
    for _ in range(_ROUNDS):
        u = low[:, None] + (high - low)[:, None] * steps
        w = noise.floor + np.exp(u)
        total = actions.variance[:, None] + w / count
        height = -0.5 * (count - 1.0) * np.log(w) - 0.5 * actions.spread[:, None] / w
        height += (
            -0.5 * ((u - centre) / noise.spread) ** 2 - 0.5 * np.log(total) - 0.5 * actions.off[:, None] ** 2 / total
        )
        height -= height.max(axis=1, keepdims=True)
        inside, rows = height > -_FALL, np.arange(len(u))
        first = np.maximum(inside.argmax(axis=1) - 1, 0)
        last = np.minimum(_POINTS - inside[:, ::-1].argmax(axis=1), _POINTS - 1)
        low, high = u[rows, first], u[rows, last]
    density = np.exp(height)
    at_most = np.zeros(u.shape)
    np.cumsum(0.5 * (density[:, 1:] + density[:, :-1]), axis=1, out=at_most[:, 1:])
    return u, at_most / at_most[:, -1:]
