"""The paper's regret bounds (section 5) and the lemmas behind them; :doc:`/explanation/theory` derives them.

All of it is for K-armed models, as in the paper. Bounds of TS and FlatTS are those of `model.independent()` and
`model.flat()`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from bough import _checks
from bough._arrays import Floats
from bough.model.gaussian import GaussianModel
from bough.model.model import Model

Constant = Literal["lemma", "two", "telescoped"]


@dataclass(frozen=True, eq=False)
class RegretBound:
    """Theorem 1 with its parts: `total` is `first + second`."""

    total: float
    first: float
    """sqrt(2 n G(n) log(1 / delta))"""
    second: float
    """sqrt(2 / pi) sigma_max K n delta"""
    complexity: float
    """G(n), the sum of `scaling * weight` over the nodes."""
    weight: Floats
    """(V,) w_i"""
    scaling: Floats
    """(V,) what stands in the place of c^h_i"""
    c: float
    """The constant of Lemma 4; for "telescoped" the largest factor of a single node."""
    sigma_max: float
    """The largest prior standard deviation of an action."""
    delta: float

    def __repr__(self) -> str:
        return (
            f"RegretBound(total={self.total:.1f}, first={self.first:.1f}, second={self.second:.1f}, "
            f"complexity={self.complexity:.1f}, c={self.c:g}, sigma_max={self.sigma_max:.3g}, delta={self.delta:.3g})"
        )


def regret_bound(
    model: GaussianModel, rounds: int, delta: float | Literal["best"] | None = None, constant: Constant = "lemma"
) -> RegretBound:
    """The bound of Theorem 1 on the Bayes regret of HierTS.

    `delta` is 1 / rounds unless given; "best" chooses the one with the smallest bound. `constant` says what bounds the
    growth of a node's precision in one round: "lemma" (c = 1 + sigma_0,max^2 / sigma^2, Lemma 4), "two" (c = 2,
    where the noise is at least as wide as every prior) or "telescoped", which is never worse.

    >>> import bough
    >>> model = bough.problems.constant(branching=2, height=4)
    >>> bough.theory.regret_bound(model, rounds=500)
    RegretBound(total=1262.3, first=1233.8, second=28.5, complexity=244.9, c=2, sigma_max=2.24, delta=0.002)
    >>> bough.theory.regret_bound(model, rounds=500, constant="telescoped").total
    1166.8...
    """
    _check_scalar(model)
    rounds = _checks.whole_number("rounds", rounds, least=1)
    weight, (scaling, c) = node_weights(model, rounds), scaling_constants(model, constant)
    complexity = float(scaling @ weight)
    sigma_max = math.sqrt(float(model.tree.at_leaves(model.marginal_covariance).max()))
    slope = math.sqrt(2.0 / math.pi) * sigma_max * model.tree.n_actions * rounds
    if isinstance(delta, str) and delta == "best":
        delta = _best_delta(2.0 * rounds * complexity, slope)
    elif delta is None:
        delta = 1.0 / rounds
    elif isinstance(delta, bool) or not isinstance(delta, (int, float)) or not 0.0 < delta <= 1.0:
        raise ValueError(f'delta is {delta!r}; give a probability above 0 and at most 1, or "best"')
    first = math.sqrt(2.0 * rounds * complexity * math.log(1.0 / delta))
    return RegretBound(
        first + slope * delta, first, slope * delta, complexity, weight, scaling, c, sigma_max, float(delta)
    )


def _best_delta(scale: float, slope: float) -> float:
    """The delta that makes sqrt(scale log(1 / delta)) + slope delta smallest; at 1 the first term is gone."""
    if slope == 0.0:
        return 1.0

    def bound(log_delta: float) -> float:
        return math.sqrt(-scale * log_delta) + slope * math.exp(log_delta)

    found = minimize_scalar(bound, bounds=(-700.0, -1e-12), method="bounded", options={"xatol": 1e-10})
    return math.exp(float(found.x)) if bound(float(found.x)) < bound(0.0) else 1.0


def node_weights(model: GaussianModel, rounds: int) -> Floats:
    """(V,) the w_i of Theorem 1; 0 for a node of variance zero, which there is nothing to learn about.

    A child of variance zero tells its parent all that it hears, so what it can hear stands in the place of its
    infinite precision.

    >>> import bough
    >>> bough.theory.node_weights(bough.problems.constant(branching=2, height=1), rounds=100).round(3)
    array([1.585, 6.658, 6.658])
    """
    _check_scalar(model)
    tree, noise = model.tree, model.noise_variance
    variance = model.classes.table[model.classes.of_node]
    heard = np.zeros(tree.n_nodes)  # the most precision that a node can collect from below
    heard[tree.leaves] = _checks.whole_number("rounds", rounds, least=1) / noise
    for start, end in tree._levels_upward():
        if start == 0:
            break
        own = variance[start:end]
        told = np.where(own > 0.0, 1.0 / np.where(own > 0.0, own, 1.0), heard[start:end])
        np.add.at(heard, tree.parent[start:end], told)
    positive = np.where(variance > 0.0, variance, 1.0)
    weight = positive / np.log1p(positive / noise) * np.log1p(positive * heard)
    return np.where(variance > 0.0, weight, 0.0)


def scaling_constants(model: GaussianModel, constant: Constant = "lemma") -> tuple[Floats, float]:
    """(V,) what a node's weight is multiplied with in G(n), c^h_i or its sharper form, and c.

    >>> import bough
    >>> model = bough.problems.constant(branching=2, height=3)
    >>> bough.theory.scaling_constants(model, "lemma")[0][[0, 1, 3, 7]]
    array([8., 4., 2., 1.])
    >>> bough.theory.scaling_constants(model, "telescoped")[0][[0, 1, 3, 7]]
    array([4., 3., 2., 1.])
    """
    _check_scalar(model)
    _checks.one_of("constant", constant, ("lemma", "two", "telescoped"))
    noise, largest = model.noise_variance, float(model.classes.table[np.unique(model.classes.of_node)].max())
    if constant == "telescoped":
        below = variance_below(model)
        variance = model.classes.table[model.classes.of_node]
        return 1.0 + below / noise, float(1.0 + (variance / (noise + below)).max())
    if constant == "lemma":
        c = 1.0 + largest / noise
    else:
        if largest > noise:
            raise ValueError(
                f'constant "two" needs noise at least as wide as every prior; the noise variance is {noise:g} and the '
                f'largest prior variance {largest:g}; use "lemma" or "telescoped"'
            )
        c = 2.0
    return np.power(c, model.tree.node_height, dtype=np.float64), c


def variance_below(model: GaussianModel) -> Floats:
    """(V,) the largest sum of prior variances strictly below each node on a path to a leaf.

    >>> import bough
    >>> bough.theory.variance_below(bough.problems.increasing(branching=2, height=2))
    array([3., 1., 1., 0., 0., 0., 0.])
    """
    _check_scalar(model)
    tree, variance = model.tree, model.classes.table[model.classes.of_node]
    below = np.zeros(tree.n_nodes)
    for start, end in tree._levels_upward():
        if start:
            np.maximum.at(below, tree.parent[start:end], variance[start:end] + below[start:end])
    return below


# -- the lemmas ------------------------------------------------------------------------------------


class Information(NamedTuple):
    """What one more reward adds to the conditional precision of each node on a path, root first."""

    gained: Floats
    """Exactly."""
    bound: Floats
    """At least, by Lemma 3 with the chosen constant."""


def variance_decomposition(posterior: Any, action: Any) -> Floats:
    """Lemma 2: the terms, root to leaf, whose sum is the marginal posterior variance of an action.

    >>> import bough
    >>> posterior = bough.Posterior(bough.problems.constant(branching=2, height=2))
    >>> posterior.update(3, 1.0)
    >>> terms = bough.theory.variance_decomposition(posterior, 4)
    >>> terms.sum() - posterior.covariance[4]
    np.float64(0.0)
    """
    _, gains, variances = _path(posterior, action)
    carried = np.append(np.cumprod(gains[:0:-1] ** 2)[::-1], 1.0)
    return carried * variances


def information(posterior: Any, action: Any, constant: Constant = "lemma") -> Information:
    """Lemma 3: what one more reward of the action adds to the conditional precision of each node on its path.

    Nodes of variance zero have an infinite precision and are left out.

    >>> import bough
    >>> posterior = bough.Posterior(bough.problems.constant(branching=2, height=2))
    >>> gained, bound = bough.theory.information(posterior, 3)
    >>> gained.round(3), bound.round(3)
    (array([0.333, 0.5  , 1.   ]), array([0.25, 0.5 , 1.  ]))
    """
    nodes, gains, variances = _path(posterior, action)
    model = posterior.model
    prior = model.classes.table[model.classes.of_node[nodes]]
    scaling = scaling_constants(model, constant)[0][nodes]
    gained = np.empty(len(nodes))
    extra = 1.0 / model.noise_variance
    for i in range(len(nodes) - 1, -1, -1):
        gained[i] = extra
        # the message M~ = M / (1 + v M) after the precision below has grown by extra
        extra = gains[i] ** 2 * extra / (1.0 + variances[i] * extra)
    carried = np.append(np.cumprod(gains[:0:-1] ** 2)[::-1], 1.0)
    known = prior > 0.0
    return Information(gained[known], (carried / scaling / model.noise_variance)[known])


def _path(posterior: Any, action: Any) -> tuple[Any, Floats, Floats]:
    """The nodes on the path of an action, root first, with their gains and conditional variances."""
    if not hasattr(posterior, "conditional") or not hasattr(posterior, "model"):
        raise ValueError(f"posterior is a {type(posterior).__name__}; give a bough.Posterior")
    model = posterior.model
    _check_scalar(model)
    nodes = model.tree.path_nodes(model.tree.action_node(action))
    conditionals = [posterior.conditional(node) for node in nodes]
    gains, variances = (np.array([getattr(c, part) for c in conditionals]) for part in ("gain", "covariance"))
    return np.array(nodes), gains, variances


# -- comparisons -----------------------------------------------------------------------------------


def complexity_ratio(model: GaussianModel, rounds: int, constant: Constant = "lemma") -> float:
    """How many times the complexity G(n) of TS is that of HierTS, as in section 5.3 but with the logarithms.

    >>> import bough
    >>> bough.theory.complexity_ratio(bough.problems.increasing(branching=10, height=3), 500, "telescoped")
    4.61...
    """
    ours = regret_bound(model, rounds, constant=constant).complexity
    # Only actions count for TS, and those have height 0, where every constant gives the same.
    return regret_bound(model.independent(), rounds).complexity / ours


def expected_maximum(model: GaussianModel) -> float:
    """The prior expectation of the largest mean reward among the actions, by quadrature.

    >>> import bough
    >>> tree = bough.Tree.balanced(branching=2, height=1)
    >>> bough.theory.expected_maximum(bough.GaussianModel(tree, covariance=bough.by_depth([3.0, 1.0])))  # 1 / sqrt(pi)
    0.5641...
    """
    _check_scalar(model)
    tree, deviation = model.tree, model.class_factors[model.classes.of_node]
    steps = deviation[1:][deviation[1:] > 0.0]  # the root's own step moves all actions alike
    if not len(steps):
        return float(model.mean)
    reach = 9.0 * math.sqrt(float(_below_root(model).max()))
    grid = np.linspace(-reach, reach, 2 * math.ceil(min(max(reach / steps.min() * 8.0, 2_000.0), 20_000.0)) + 1)
    # For each distinct kind of subtree, the distribution function of the largest sum of steps strictly below its top;
    # None where that sum is certainly zero, as it is below an action.
    functions: list[Floats | None] = [None]
    kind_of_subtree: dict[bytes, int] = {}
    kind = np.zeros(tree.n_nodes, dtype=np.int64)
    with_step: dict[tuple[float, float], Floats | None] = {}
    for node in np.flatnonzero(np.diff(tree.child_start))[::-1]:
        children = tree.children(int(node))
        members, count = np.unique(np.column_stack([kind[children], deviation[children]]), axis=0, return_counts=True)
        signature = members.tobytes() + count.tobytes()
        if signature not in kind_of_subtree:
            for child, spread in members.tolist():
                if (child, spread) not in with_step:
                    with_step[child, spread] = _with_step(functions[int(child)], spread, grid)
            parts = [
                (with_step[child, spread], times)
                for (child, spread), times in zip(members.tolist(), count, strict=True)
            ]
            kind_of_subtree[signature] = len(functions)
            functions.append(_product(parts, grid))
        kind[node] = kind_of_subtree[signature]
    whole = functions[int(kind[0])]
    return float(model.mean + (0.0 if whole is None else reach - np.trapezoid(whole, grid)))


def _below_root(model: GaussianModel) -> Floats:
    """(V,) the prior variance of each node given the root."""
    return np.asarray(model.marginal_covariance - model.marginal_covariance[0])


def _product(parts: list[tuple[Floats | None, int]], grid: Floats) -> Floats | None:
    """The distribution function of the largest of independent sums; None if all are certainly zero."""
    if all(function is None for function, _ in parts):
        return None
    log_function = np.zeros(len(grid))
    with np.errstate(divide="ignore"):
        for function, times in parts:
            log_function += times * np.log(np.where(grid < 0.0, 0.0, 1.0) if function is None else function)
    return np.asarray(np.exp(log_function))


def _with_step(function: Floats | None, spread: float, grid: Floats) -> Floats | None:
    """The distribution function after an independent normal step of that standard deviation."""
    if spread == 0.0:
        return function
    if function is None:
        return np.asarray(ndtr(grid / spread))
    width = spread / (grid[1] - grid[0])
    reach = math.ceil(9.5 * width) + 1
    places = np.arange(-reach, reach + 1)
    if width >= 2.0:  # fine enough for the sum to be exact to rounding
        weights = np.exp(-0.5 * np.square(places / width))
    else:
        weights = ndtr((places + 0.5) / width) - ndtr((places - 0.5) / width)
    padded = np.concatenate([np.zeros(reach), function, np.ones(reach)])
    return np.asarray(np.convolve(padded, weights / weights.sum(), mode="valid"))


def uniform_regret(model: GaussianModel, rounds: int) -> float:
    """The Bayes regret of choosing every action equally often: what a bound must beat to say anything.

    >>> import bough
    >>> round(bough.theory.uniform_regret(bough.problems.constant(branching=2, height=4), rounds=500))
    1510
    """
    return _checks.whole_number("rounds", rounds, least=1) * (expected_maximum(model) - float(model.mean))


def _check_scalar(model: GaussianModel) -> None:
    if not isinstance(model, Model) or not model.kind.is_conjugate:
        what = type(model).__name__ if getattr(model, "noise", None) is None else repr(model)
        raise ValueError(f"model is a {what}; the theory is that of a bough.GaussianModel with one noise_variance")
    if not model.is_scalar:
        raise ValueError(f"the theory is for K-armed models; this one has parameters of length {model.dim}")
    model._refuse_factors("the theory does not speak of a model")
    if model.drift is not None:
        raise ValueError(f"the theory is for actions that stand still; this model has drift={model.drift!r}")
