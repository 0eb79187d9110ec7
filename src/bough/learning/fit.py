"""fit_prior(...): the mean, the covariances and the noise of a model, learned from logs by their evidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from inspect import isabstract
from typing import Any, Literal, NamedTuple

import numpy as np

from bough import _checks
from bough._arrays import Flags, Floats, Integers
from bough._progress import reporting
from bough.data.encoding import checked_encoder
from bough.data.rows import Observations
from bough.data.statistics import Statistics
from bough.learning.count_evidence import ScalarSiteEvidence, VectorSiteEvidence
from bough.learning.crossed_factors import CrossedFactors
from bough.learning.factor_evidence import FactorEvidence
from bough.learning.forest import Forest
from bough.learning.node_classes import NodeClasses
from bough.learning.noise_evidence import NoiseEvidence
from bough.learning.objective import LEAST_NOISE, Objective, Penalty
from bough.learning.options import (
    NOISE_NAMES,
    Columns,
    FitOptions,
    Structure,
    check_noise,
    groups_of,
    paired,
    with_factors,
    without,
)
from bough.learning.report import Estimate, PriorFit, share_of_classes
from bough.learning.scalar_evidence import ScalarEvidence
from bough.learning.vector_evidence import VectorEvidence
from bough.model.encoders import encoded_names, is_encoder
from bough.model.gaussian import GaussianModel
from bough.model.model import Model
from bough.tree.tree import Tree

_STRUCTURES = ("full", "diagonal", "scaled")
_FURTHEST = 30.0  # how far below its start a logarithm may go; what reaches that is zero
_NEAR_ZERO = 1e-4  # of the rewards' variance: smaller variances are asked whether they are zero
_VAGUE = 1.5  # a standard error of a log-variance beyond which its interval begins at zero
_UNKNOWN = 3.0  # a standard error of the logarithm beyond which what says the noise is not known
_DROP = 1.3528  # of the log evidence at the upper end of a one-sided 95% interval
_CONSTANT = 1e-13  # of the rewards' mean square: less variance is rounding
_PRECISION = 2e-16  # of the log evidence, relative, at which the search ends
_SLOPE = 0.02  # the largest gradient that counts as none, in standard errors of a parameter


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
    trials: str | None = None,
    exposure: str | None = None,
    intercept: bool = False,
    features: Any = None,
    factors: Mapping[str, Any] | None = None,
    bad: Literal["error", "skip", "skip-most"] = "error",
    model: type[Model] = GaussianModel,
    progress: bool | Callable[[int], None] | None = None,
) -> PriorFit:
    """Learn a prior from a log: maximise the exact evidence over the variances, with the mean by least squares.

    `data` is `Statistics`, or any log that `summarise` takes, with the names of its columns in `action`, `reward`,
    `context` and `weight`, and its `intercept`, `features` and `bad`. Several trees, each with its log, in two lists,
    share one prior. The model keeps the names of the context's columns as its `features`, or the `features` that are
    given: a `Features` or another fitted transformer, or names for data that have none.

    `by` says which nodes share a covariance: those of one "depth", of one "height", or a mapping from each node's
    name to its class. `noise` is the variance of a reward, "learn", or "per action", where each action has a noise
    variance of its own and its median, spread and floor are learned; `mean` the prior mean, or "learn". `root` is the
    root's covariance: one tree cannot tell it from the mean, so it is set, to zero unless given, and learned only where
    there are several trees or it is "learn". With contexts, `structure` is that of a class's covariance: "full",
    "diagonal", or "scaled", a multiple of the diagonal that has every feature, at its usual size, matter alike.

    `factors` are crossed factors, whose variances are learned with the rest. A factor of the actions comes as a
    `Factor` or as its labels, ``{"brand": brand_of_product}``, and one of the decision as the name of the log's column
    that has its levels, ``{"store": "store"}``; of `Statistics`, that of their own factor. A `Factor` none of whose
    levels was observed keeps its variance.

    `penalty` is the width of a weak normal prior on each log-variance, around equal shares of the rewards' variance;
    None is plain maximum likelihood, in which variances may come out as zero.

    `model` is the kind of model: with `BernoulliModel` or `PoissonModel` rewards are clicks or counts, `trials` or
    `exposure` the column that says out of how many or how much, and the evidence that of expectation propagation. The
    variances, and the penalty's centre, which shares out a variance of 1, are then those of log-odds or log-rates; with
    contexts give `Observations`, or a log whose rows fit into memory, since sums over contexts are not enough. Such a
    fit may take a while: `progress=True` shows how many sweeps over the log it has taken, some hundred in all, and a
    function is called with 1 after each.

    >>> import bough, numpy
    >>> truth = bough.GaussianModel(bough.Tree.balanced(20, 2), 3.0, bough.by_depth([0.0, 4.0, 1.0]), 0.5)
    >>> rng = numpy.random.default_rng(0)
    >>> actions = rng.choice(truth.tree.leaves, 2_000)
    >>> rewards = truth.draw(rng)[actions] + rng.normal(0.0, 0.5**0.5, 2_000)
    >>> fit = bough.fit_prior(truth.tree, bough.Statistics.from_rows(actions, rewards))
    >>> print(fit.summary())
                         estimate      95% interval  share    based on
    mean                    2.781    1.745 to 3.816
    variance at depth 0         0               set     0%      1 node
    variance at depth 1     5.527     2.997 to 10.2    78%    20 nodes
    variance at depth 2     1.028   0.8765 to 1.206    15%   398 nodes
    noise variance         0.4964  0.4632 to 0.5319     7%  2,000 rows
    log evidence -2,648.9, converged
    >>> agent = fit.agent(seed=0)  # which knows the log; bough.HierTS(fit.model) has seen nothing yet
    """
    if not (isinstance(model, type) and issubclass(model, Model)) or isabstract(model):
        raise ValueError(f"model is {model!r}; give the class, such as bough.BernoulliModel")
    model.kind.check_words(trials, exposure)
    encoder = checked_encoder(features, intercept) if is_encoder(features) else None
    given = CrossedFactors.checked(factors, tree, model)
    check_noise(noise, bool(given.given))
    made = None if encoder is None else features
    named = Columns(action, reward, context, weight, trials, exposure, intercept, bad, made, given.columns or None)
    names = features if encoder is None else encoded_names(encoder)
    trees, logs, rows = paired(tree, data, named, model, names)
    _checks.one_of("structure", structure, _STRUCTURES)
    classes = NodeClasses.of(by, trees)
    options = FitOptions.checked(noise, mean, root, penalty, logs[0].dim, structure, model)
    options = options._replace(features=logs[0].features if encoder is None else encoder)
    effects = given.on(trees[0], logs[0], classes.labels)
    options = options._replace(effects=effects, without_variance=given.without_variance)
    with reporting(progress, "fit", unit="sweep") as advance:
        return fit(trees, logs, classes, options, rows, advance)


class Learned(NamedTuple):
    """The maximum of an objective."""

    objective: Objective
    parameters: Floats
    covariance: Floats
    noise: Any
    """Its variance, or how that is spread over the actions."""
    zero: Flags
    """(n_classes,) variances that came out as zero."""
    converged: bool

    @classmethod
    def of(
        cls,
        forest: Forest,
        labels: Sequence[str],
        group: Integers,
        options: FitOptions,
        advance: Callable[[int], None] | None = None,
    ) -> Learned:
        """What has the most evidence; a `ValueError` where the rewards cannot tell."""
        total = _total_variance(forest, options.model)
        group = without(group, options.kept(forest.nodes_of_class))
        silent = np.flatnonzero((group >= 0) & (forest.nodes_of_class == 0))
        if options.width is None and len(silent):
            raise ValueError(
                f"no observed node has {labels[silent[0]]}, so plain maximum likelihood cannot learn its variance; "
                "give a penalty, or other classes"
            )
        objective = _objective(forest, group, options, total)
        if advance is not None:
            objective.advance = advance
        parameters, converged = objective.simplest(*_maximised(objective, math.log(LEAST_NOISE * total)))
        covariance, noise = objective.unpacked(parameters)
        zero = np.zeros(len(group), dtype=np.bool_)
        if covariance.ndim == 1 and options.width is None:
            zero = _zeros(objective, covariance, noise, total)
            covariance[zero] = 0.0
        return cls(objective, parameters, covariance, noise, zero, converged)


def fit(
    trees: Sequence[Tree],
    logs: Sequence[Statistics],
    classes: NodeClasses,
    options: FitOptions,
    rows: Sequence[Observations] | None = None,
    advance: Callable[[int], None] | None = None,
) -> PriorFit:
    """`fit_prior` of what has been checked already."""
    forest = Forest.from_logs(trees, logs, classes, rows, options.effects)
    labels = (*classes.labels, *options.factor_names)
    learned = Learned.of(forest, labels, with_factors(groups_of(trees, classes, options), options), options, advance)
    objective, covariance, noise = learned.objective, learned.covariance, learned.noise
    log_evidence, _ = objective.evidence(covariance, noise)
    mean, mean_error = objective.mean, objective.mean_error
    intervals = _intervals(learned)
    of_tree, of_factors = np.split(covariance, [len(classes.labels)])
    models = tuple(
        options.built(tree, mean, one, noise, of_factors)
        for tree, one in zip(trees, classes.covariances(trees, of_tree), strict=True)
    )
    has_noise = options.learns_noise
    noises = objective.noise_numbers(noise)
    shares = share_of_classes(forest, covariance, objective.mean_noise(noise) if has_noise else 0.0)
    sizes = covariance if covariance.ndim == 1 else np.einsum("njj->n", covariance) / covariance.shape[1]
    estimates = {"mean": Estimate(mean, mean - 1.96 * mean_error, mean + 1.96 * mean_error, None, None)}
    for i, label in enumerate(labels):
        estimates[label] = Estimate(float(sizes[i]), *intervals[i], shares[i], int(forest.nodes_of_class[i]))
    if has_noise and not options.per_action:
        estimates["noise"] = Estimate(noise, *intervals[-1], shares[-1], round(forest.n_rows))
    if options.per_action:
        told_by = (shares[-1], round(forest.n_rows)), (None, None), (None, None)
        for name, value, interval, told in zip(NOISE_NAMES, noises, intervals[-3:], told_by, strict=True):
            estimates[name] = Estimate(value, *interval, *told)
    table: dict[str, Any] = dict(zip(labels, covariance if covariance.ndim > 1 else covariance.tolist(), strict=True))
    known: tuple[Statistics | Observations, ...] = tuple(logs) if rows is None else tuple(rows)
    return PriorFit(
        models,
        mean,
        table,
        noise if has_noise and not options.per_action else None,
        log_evidence,
        learned.converged,
        estimates,
        known,
    )


# -- how it is found -------------------------------------------------------------------------------


def _total_variance(forest: Forest, model: type[Model]) -> float:
    """What the learned variances and the noise are to share out a priori; a `ValueError` where nothing varies."""
    sums, n = forest.statistics, forest.n_rows
    if model.kind.usual_variance is not None:
        model.kind.check_variation(float(sums.sum_y.sum()), float(sums.exposure_or_count.sum()))
        return model.kind.usual_variance
    variance = forest.reward_variance() if n else 0.0
    if not variance > _CONSTANT * float(sums.sum_yy.sum()) / max(n, 1.0):
        raise ValueError(
            f"the {n:g} rewards do not vary, or so little that rounding hides it; there is no variance to learn from "
            "them (take off what they have in common)"
        )
    return variance


def _objective(forest: Forest, group: Integers, options: FitOptions, total: float) -> Objective:
    dim = forest.statistics.dim
    noise_learned = options.noise is None
    # A priori every learned level of a path, and the noise, has an equal share of the variance of the rewards.
    components = max(float(forest.nodes_a_path()[group >= 0].sum()), 1.0) + noise_learned
    if options.noise is None:
        share = noise = total / components
    else:
        noise = options.noise
        share = (max(total - noise, 0.1 * total) if options.learns_noise else total) / components
    penalty = None
    if options.width is not None:
        penalty = Penalty(math.log(share / (dim or 1)), math.log(share), options.width)
    covariance = _first_guess(forest, group >= 0, options, share)
    if not options.model.kind.is_conjugate:
        start = (forest, covariance, group, options.mean, penalty)
        if dim is None:
            return ScalarSiteEvidence(*start, options.model)
        return VectorSiteEvidence(*start, options.structure, options.model)
    if forest.cells is not None:
        return FactorEvidence(forest, covariance, group, noise, noise_learned, options.mean, penalty)
    if options.per_action:
        one = ScalarEvidence(forest, covariance, group, noise, True, options.mean, penalty)
        found, converged = _maximised(one, math.log(LEAST_NOISE * total))
        return NoiseEvidence(forest, covariance, group, options.mean, penalty, found, converged)
    if dim is None:
        return ScalarEvidence(forest, covariance, group, noise, noise_learned, options.mean, penalty)
    return VectorEvidence(forest, covariance, group, noise, noise_learned, options.mean, penalty, options.structure)


def _first_guess(forest: Forest, learned: Flags, options: FitOptions, share: float) -> Floats:
    """The covariances that are set, and equal shares of the rewards' variance for those that are learned."""
    if options.base is not None:
        return options.base.copy()
    dim = forest.statistics.dim
    if dim is None:
        table = np.full(len(learned), share)
    else:
        table = np.repeat(np.diag(share / (dim * forest.mean_squares()))[None], len(learned), axis=0)
    table[~learned] = 0.0 if options.root is None or isinstance(options.root, str) else options.root
    if options.effects is not None:
        given = [factor.variance for factor in options.effects.factors.values()]
        table[-len(given) :] = np.where(learned[-len(given) :], table[-len(given) :], given)
    return table


def _maximised(objective: Objective, least_log_noise: float) -> tuple[Floats, bool]:
    """The best parameters, and whether they are known to be."""
    from scipy.optimize import minimize  # takes longer to load than most fits take

    start = objective.start()
    if not len(start):
        objective.value_and_gradient(start)
        return start, True

    objective.prepare()
    start, unit = objective.start(), 1.0 / np.sqrt(objective.curvature())

    def descent(steps: Floats) -> tuple[float, Floats]:
        value, gradient = objective.value_and_gradient(start + unit * steps)
        objective.expect(float(np.abs(gradient * unit).max()))
        return -value, -gradient * unit

    lowest, highest = objective.lowest(start, _FURTHEST, least_log_noise), objective.highest(start)
    found = minimize(
        descent,
        np.zeros(len(start)),
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(lowest / unit, highest / unit, strict=True)),
        options={"maxiter": 1_000, "maxfun": 5_000, "maxcor": 20, "ftol": _PRECISION, "gtol": objective.flat},
    )
    parameters = start + unit * found.x
    objective.expect(0.0)
    _, gradient = objective.value_and_gradient(parameters)
    step = parameters - start
    inside = (step > lowest + 1e-9) & (step < highest - 1e-9)
    slope = float(np.abs(gradient * unit)[inside].max(initial=0.0))
    floored = objective.n_noise == 1 and not inside[-1]  # rewards that do not vary within actions
    return parameters, slope <= _SLOPE and not floored


def _zeros(objective: Objective, variance: Floats, noise: float, total: float) -> Flags:
    """The learned classes for which a variance of zero has no less evidence than the small one that was found."""
    zero = np.zeros(len(variance), dtype=np.bool_)
    for i in np.flatnonzero(objective.learned & (variance < _NEAR_ZERO * total)):
        without = np.where(zero, 0.0, variance)
        best, _ = objective.evidence(without, noise)
        without[i] = 0.0
        zero[i] = objective.evidence(without, noise)[0] >= best - 1e-7
    return zero


def _intervals(learned: Learned) -> list[tuple[float, float]]:
    """95% intervals of the sizes of all classes and, last, of the noise; a point where it is set."""
    objective, covariance, noise = learned.objective, learned.covariance, learned.noise
    sizes = np.append(objective.sizes(learned.parameters), objective.noise_numbers(noise))
    by_group = np.append(objective.size_errors(learned.parameters), 0.0)  # what is set, -1, has no error
    of_noise = by_group[objective.n_groups : -1] if objective.noise_learned else np.zeros(1)
    errors = np.append(by_group[objective.group], of_noise)
    found = []
    for i, (size, error) in enumerate(zip(sizes.tolist(), errors.tolist(), strict=True)):
        is_zero = i < len(learned.zero) and bool(learned.zero[i])
        vague = objective.penalty is None and covariance.ndim == 1 and _VAGUE < error < math.inf
        if is_zero or (vague and i < len(learned.zero)):
            found.append((0.0, _upper_end(objective, covariance, noise, i)))
        else:
            is_of_noise = i >= len(learned.zero)
            factor = math.exp(1.96 * error) if error < (_UNKNOWN if is_of_noise else 100.0) else math.inf
            found.append((size / factor, size * factor))
    return found


def _upper_end(objective: Objective, variance: Floats, noise: float, i: int) -> float:
    """How large a variance that came out as zero, or nearly, may be, with the others as they are."""
    from scipy.optimize import brentq

    best, _ = objective.evidence(variance, noise)

    def drop(log_variance: float) -> float:
        other = variance.copy()
        other[i] = math.exp(log_variance)
        return best - objective.evidence(other, noise)[0] - _DROP

    low = math.log(max(variance[i], float(np.max(noise)) * 1e-11))
    high = next((end for end in np.arange(low + 1.0, low + 60.0) if drop(end) > 0.0), None)
    return math.inf if high is None else math.exp(brentq(drop, high - 1.0, high, xtol=1e-6))
