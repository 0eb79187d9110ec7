"""fit_prior(...): the mean, the covariances and the noise of a model, learned from logs by their evidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from bough.arrays import Flags, Floats
from bough.covariance import resolve_one
from bough.learning.classes import NodeClasses
from bough.learning.forest import Forest
from bough.learning.objective import Objective, Penalty
from bough.learning.report import Estimate, PriorFit, share_of_classes
from bough.learning.scalar import ScalarEvidence
from bough.learning.vector import Structure, VectorEvidence
from bough.logs import summarise
from bough.model import GaussianModel
from bough.statistics import Statistics
from bough.tree import Tree

_STRUCTURES = ("full", "diagonal", "scaled")
_FURTHEST = 30.0  # how far from its start a logarithm may go; what reaches the lower end is zero
_NEAR_ZERO = 1e-4  # of the rewards' variance: smaller variances are asked whether they are zero
_VAGUE = 1.5  # a standard error of a log-variance beyond which its interval begins at zero
_DROP = 1.3528  # of the log evidence at the upper end of a one-sided 95% interval
_SLOPE = 1e-3  # the largest gradient, for each square root of a node, that counts as none


def fit_prior(
    tree: Tree | Sequence[Tree],
    data: Any,
    by: Any = "depth",
    noise: Any = "learn",
    *,
    mean: Any = "learn",
    root: Any = None,
    structure: Structure = "full",
    penalty: float | None = 2.0,
    action: str | None = None,
    reward: str | None = None,
    context: Sequence[str] | None = None,
    weight: str | None = None,
    bad: Literal["error", "skip"] = "error",
) -> PriorFit:
    """Learn a prior from a log: maximise the exact evidence over the variances, with the mean by least squares.

    `data` is `Statistics`, or any log that `summarise` takes, with the names of its columns in `action`, `reward`,
    `context` and `weight`. Several trees, each with its log, in two lists, share one prior.

    `by` says which nodes share a covariance: those of one "depth", of one "height", or a mapping from each node's
    name to its class. `noise` is the variance of a reward, or "learn"; `mean` the prior mean, or "learn". `root` is the
    root's covariance: one tree cannot tell it from the mean, so it is set, to zero unless given, and learned only where
    there are several trees or it is "learn". With contexts, `structure` is that of a class's covariance: "full",
    "diagonal", or "scaled", a multiple of the identity.

    `penalty` is the width of a weak normal prior on each log-variance, around equal shares of the rewards' variance;
    None is plain maximum likelihood, in which variances may come out as zero.

    >>> import bough, numpy
    >>> truth = bough.GaussianModel(bough.Tree.balanced(20, 2), 3.0, bough.by_depth([0.0, 4.0, 1.0]), 0.5)
    >>> rng = numpy.random.default_rng(0)
    >>> actions = rng.choice(truth.tree.leaves, 2_000)
    >>> rewards = truth.draw(rng)[actions] + rng.normal(0.0, 0.5**0.5, 2_000)
    >>> fit = bough.fit_prior(truth.tree, bough.Statistics.from_rows(actions, rewards))
    >>> print(fit.summary())
                         estimate      95% interval  share     told by
    mean                    2.781    1.745 to 3.816
    variance at depth 0         0               set     0%      1 node
    variance at depth 1     5.527     2.997 to 10.2    78%    20 nodes
    variance at depth 2     1.028   0.8765 to 1.206    15%   398 nodes
    noise variance         0.4964  0.4632 to 0.5319     7%  2,000 rows
    log evidence -2,648.9, converged
    >>> agent = bough.HierTS(fit.model, seed=0)
    """
    trees, logs = _paired(tree, data, action, reward, context, weight, bad)
    if structure not in _STRUCTURES:
        raise ValueError(f"structure is {structure!r}; give one of {', '.join(_STRUCTURES)}")
    classes = NodeClasses.of(by, trees)
    return fit(trees, logs, classes, Wishes.checked(noise, mean, root, penalty, logs[0].dim, structure))


class Wishes(NamedTuple):
    """What to learn, and what is given instead."""

    noise: float | None
    mean: Any
    """None where it is learned, else a number or a vector."""
    root: Any
    """"learn", None for the usual, or a covariance."""
    width: float | None
    """Of the penalty."""
    structure: Structure = "full"
    base: Floats | None = None
    """(n_classes,) or (n_classes, d, d): where the search begins, and what "scaled" learns multiples of; the identity
    where None."""
    fixed: Flags | None = None
    """(n_classes,) those that stay as `base` has them."""

    @classmethod
    def checked(cls, noise: Any, mean: Any, root: Any, penalty: Any, dim: int | None, structure: Structure) -> Wishes:
        checked_noise = None if isinstance(noise, str) and noise == "learn" else _positive("noise", noise)
        learned_mean = isinstance(mean, str) and mean == "learn"
        shape = () if dim is None else (dim,)
        given = None if learned_mean else _numbers("mean", mean, shape)
        if not (root is None or (isinstance(root, str) and root == "learn")):
            root = resolve_one(root, "root", dim)
        return cls(checked_noise, given, root, None if penalty is None else _positive("penalty", penalty), structure)


def fit(trees: Sequence[Tree], logs: Sequence[Statistics], classes: NodeClasses, wishes: Wishes) -> PriorFit:
    """`fit_prior` of what has been checked already."""
    forest = Forest.planted(trees, logs, classes)
    total = forest.reward_variance() if forest.n_rows else 0.0
    if not total > 0.0:
        raise ValueError(f"the {forest.n_rows:g} rewards do not vary; there is no variance to learn from them")
    learned = _learned_classes(trees, classes, wishes)
    if wishes.fixed is not None:
        learned &= ~wishes.fixed
    silent = np.flatnonzero(learned & (forest.nodes_of_class == 0))
    if wishes.width is None and len(silent):
        raise ValueError(
            f"no observed node has {classes.labels[silent[0]]}, so plain maximum likelihood cannot learn its "
            "variance; give a penalty, or other classes"
        )
    objective = _objective(forest, learned, wishes, total)
    parameters, converged = _maximised(objective)
    covariance, noise = objective.unpacked(parameters)
    zero = np.zeros(len(learned), dtype=np.bool_)
    if covariance.ndim == 1 and wishes.width is None:
        zero = _zeros(objective, covariance, noise, total)
        covariance[zero] = 0.0
    log_evidence, _ = objective.evidence(covariance, noise)
    mean, mean_error = objective.mean, objective.mean_error
    intervals = _intervals(objective, parameters, covariance, noise, zero)
    models = tuple(
        GaussianModel(tree, mean, one, noise)
        for tree, one in zip(trees, classes.covariances(trees, covariance), strict=True)
    )
    shares = share_of_classes(forest, covariance, noise)
    sizes = covariance if covariance.ndim == 1 else np.einsum("njj->n", covariance) / covariance.shape[1]
    estimates = {"mean": Estimate(mean, mean - 1.96 * mean_error, mean + 1.96 * mean_error, None, None)}
    for i, label in enumerate(classes.labels):
        estimates[label] = Estimate(float(sizes[i]), *intervals[i], shares[i], int(forest.nodes_of_class[i]))
    estimates["noise"] = Estimate(noise, *intervals[-1], shares[-1], round(forest.n_rows))
    table = {
        label: one if covariance.ndim > 1 else float(one) for label, one in zip(classes.labels, covariance, strict=True)
    }
    return PriorFit(models, mean, table, noise, log_evidence, converged, estimates)


# -- what is asked ---------------------------------------------------------------------------------


def _paired(
    tree: Any, data: Any, action: Any, reward: Any, context: Any, weight: Any, bad: Any
) -> tuple[list[Tree], list[Statistics]]:
    """The trees and the statistics of their logs."""
    several = isinstance(tree, (list, tuple))
    trees = list(tree) if several else [tree]
    logs = list(data) if several and isinstance(data, (list, tuple)) else [data]
    if len(trees) != len(logs) or not trees:
        raise ValueError(f"there are {len(trees)} trees and {len(logs)} logs; give one log a tree, in the same order")
    for one in trees:
        if not isinstance(one, Tree):
            raise ValueError(
                f"tree is a {type(one).__name__}; give a bough.Tree, or a list of them with a list of logs"
            )
    found = []
    for one, log in zip(trees, logs, strict=True):
        if not isinstance(log, Statistics):
            if action is None or reward is None:
                raise ValueError("the log's columns are not named; give action= and reward=, or give bough.Statistics")
            log = summarise(log, one, action, reward, context, weight, bad=bad)
        found.append(log)
    if len({log.dim for log in found}) > 1:
        raise ValueError("some logs have contexts of another length than the others; give all the same columns")
    return trees, found


def _positive(what: str, value: Any) -> float:
    try:
        number = float("nan") if isinstance(value, (str, bool)) else float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not 0.0 < number < math.inf:
        extra = ', or "learn"' if what == "noise" else ", or None for plain maximum likelihood"
        raise ValueError(f"{what} is {value!r}; give a positive number{extra}")
    return number


def _numbers(what: str, value: Any, shape: tuple[int, ...]) -> Any:
    try:
        given = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.full((0,), np.nan)
    if given.shape != shape or not np.isfinite(given).all():
        wanted = f"{shape[0]} numbers" if shape else "a number"
        raise ValueError(f'{what} is {value!r}; give {wanted}, or "learn"')
    return given if shape else float(given)


def _learned_classes(trees: Sequence[Tree], classes: NodeClasses, wishes: Wishes) -> Flags:
    lone = classes.lone_roots
    if wishes.base is not None and not isinstance(wishes.root, str):
        return ~lone
    if isinstance(wishes.root, str) or (wishes.root is None and len(trees) > 1):
        return np.ones(len(lone), dtype=np.bool_)
    if wishes.root is not None and not lone.any():
        raise ValueError("root was given, but the root shares its class with other nodes; leave it out, or change by")
    return ~lone


# -- how it is found -------------------------------------------------------------------------------


def _objective(forest: Forest, learned: Flags, wishes: Wishes, total: float) -> Objective:
    dim = forest.statistics.dim
    noise_learned = wishes.noise is None
    components = int(learned.sum()) + noise_learned
    # A priori every level, and the noise, has an equal share of the variance of the rewards.
    if wishes.noise is None:
        share = noise = total / components
    else:
        noise = wishes.noise
        share = max(total - noise, 0.1 * total) / max(components, 1)
    centre = math.log(share / (dim or 1))
    penalty = None if wishes.width is None else Penalty(centre, math.log(share), wishes.width)
    covariance = _first_guess(forest, learned, wishes, share)
    if dim is None:
        return ScalarEvidence(forest, covariance, learned, noise, noise_learned, wishes.mean, penalty)
    return VectorEvidence(forest, covariance, learned, noise, noise_learned, wishes.mean, penalty, wishes.structure)


def _first_guess(forest: Forest, learned: Flags, wishes: Wishes, share: float) -> Floats:
    """The covariances that are set, and equal shares of the rewards' variance for those that are learned."""
    dim = forest.statistics.dim
    lone_root = 0.0 if wishes.root is None or isinstance(wishes.root, str) else wishes.root
    if dim is None:
        table = np.full(len(learned), share)
    else:
        assert forest.statistics.sum_xx is not None
        unit = np.einsum("njj->j", forest.statistics.sum_xx) / forest.n_rows
        unit[unit == 0.0] = 1.0
        one = np.eye(dim) / unit.sum() if wishes.structure == "scaled" else np.diag(1.0 / (dim * unit))
        table = np.repeat(share * one[None], len(learned), axis=0)
    if wishes.base is None:
        table[~learned] = lone_root
    else:
        kept = ~learned if dim is None else np.ones(len(learned), dtype=np.bool_)
        table[kept] = wishes.base[kept]
    return table


def _maximised(objective: Objective) -> tuple[Floats, bool]:
    """The best parameters, and whether they are known to be."""
    from scipy.optimize import minimize  # takes longer to load than most fits take

    start = objective.start()
    if not len(start):
        objective.value_and_gradient(start)
        return start, True

    def descent(parameters: Floats) -> tuple[float, Floats]:
        value, gradient = objective.value_and_gradient(parameters)
        return -value, -gradient

    found = minimize(
        descent,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(value - _FURTHEST, value + _FURTHEST) for value in start],
        options={"maxiter": 1_000, "maxfun": 5_000, "maxcor": 20, "ftol": 1e-15, "gtol": 1e-7},
    )
    _, gradient = objective.value_and_gradient(found.x)
    inside = np.abs(found.x - start) < _FURTHEST * (1.0 - 1e-9)
    slope = float(np.abs(gradient[inside]).max()) if inside.any() else 0.0
    return found.x, slope <= _SLOPE * math.sqrt(len(objective.forest.parent))


def _zeros(objective: Objective, variance: Floats, noise: float, total: float) -> Flags:
    """The learned classes for which a variance of zero has no less evidence than the small one that was found."""
    zero = np.zeros(len(variance), dtype=np.bool_)
    for i in np.flatnonzero(objective.learned & (variance < _NEAR_ZERO * total)):
        without = np.where(zero, 0.0, variance)
        best, _ = objective.evidence(without, noise)
        without[i] = 0.0
        zero[i] = objective.evidence(without, noise)[0] >= best - 1e-7
    return zero


def _intervals(
    objective: Objective, parameters: Floats, covariance: Floats, noise: float, zero: Flags
) -> list[tuple[float, float]]:
    """95% intervals of the sizes of all classes and, last, of the noise; a point where it is set."""
    sizes = np.append(covariance if covariance.ndim == 1 else objective.sizes(parameters), noise)
    learned = np.append(objective.learned, objective.noise_learned)
    errors = np.zeros(len(sizes))
    errors[learned] = objective.size_errors(parameters)
    found = []
    for i, (size, error) in enumerate(zip(sizes.tolist(), errors.tolist(), strict=True)):
        if i < len(zero) and (zero[i] or (objective.penalty is None and _VAGUE < error < math.inf)):
            found.append((0.0, _upper_end(objective, covariance, noise, i)))
        else:
            factor = math.exp(1.96 * error) if error < 100.0 else math.inf
            found.append((size / factor, size * factor))
    return found


def _upper_end(objective: Objective, variance: Floats, noise: float, i: int) -> float:
    """How large a variance that came out as zero, or nearly, may be."""
    from scipy.optimize import brentq

    if variance.ndim > 1:
        return math.inf
    best, _ = objective.evidence(variance, noise)

    def drop(log_variance: float) -> float:
        other = variance.copy()
        other[i] = math.exp(log_variance)
        return best - objective.evidence(other, noise)[0] - _DROP

    low = math.log(max(variance[i], noise * 1e-11))
    high = next((end for end in np.arange(low + 1.0, low + 60.0) if drop(end) > 0.0), None)
    return math.inf if high is None else math.exp(brentq(drop, high - 1.0, high, xtol=1e-6))
