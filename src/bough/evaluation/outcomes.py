"""What a model predicts that actions earn, for the direct method and the doubly robust one.

The model learns from the very log that it is used on. A row's residual must not come from a model that has seen the
row: with few rows per action it would hardly be one. So it comes from the posterior without that row, in closed form.
With m and v the posterior mean and variance of the row's score:

- Gaussian rewards: y less the mean without the row is (y - m) / (1 - v / sigma^2), exactly.
- Clicks: dividing N(m, v) by the row's likelihood leaves the probability of a click sigmoid(m - v/2) where the row was
  one, and sigmoid(m + v/2) where it was none, exactly for that normal distribution.
- Others: one step of Newton's method, as for Gaussian rewards with v times the information of a row.

All are linear in y, so that sums are enough. The direct part keeps all rows: one more or less changes it by a share of
one in n.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from bough import _checks
from bough._arrays import Floats, Integers, Nodes
from bough.data.logged_rows import LoggedRows
from bough.data.propensities import PropensitySums
from bough.data.rows import Rows
from bough.data.statistics import Statistics
from bough.evaluation.targets import Chances, block_rows
from bough.evaluation.totals import Outcome
from bough.learning.fit import fit_prior
from bough.learning.report import PriorFit
from bough.model.model import Model
from bough.posterior import Posterior
from bough.tree.name_columns import as_column
from bough.tree.tree import Tree

_DRAWS = 1_000  # that a deviation is computed from
_LEAST_DRAWS = 100
_NUMBERS = 20_000_000  # that all draws may have together
_MOST_LEVERAGE = 1.0 - 1e-6


def left_out(model: Model, mean: Floats, variance: Floats) -> Outcome:
    """A reward less its prediction from all other rows, as a line in the reward; mean and variance are of the score."""
    if model.kind.is_logistic:
        missed = expit(mean + 0.5 * variance)
        return Outcome(1.0 - expit(mean - 0.5 * variance) + missed, -missed)
    information = model.likelihood.log_partition(mean)[2] / model.likelihood.noise_deviation**2
    rest = 1.0 - np.minimum(variance * information, _MOST_LEVERAGE)
    return Outcome(1.0 / rest, -model.likelihood.expected_reward(mean, variance) / rest)


class Outcomes(ABC):
    """What a model predicts."""

    @abstractmethod
    def means(self) -> Floats:
        """(S, K) the mean reward of each action at each position; without contexts."""

    @abstractmethod
    def residual(self) -> Outcome:
        """(S, K) what is left of a reward; without contexts."""

    @abstractmethod
    def deviations(self, probabilities: Sequence[Floats], shares: Floats) -> list[float]:
        """How uncertain the direct value of each target is; NaN where that is not known. Without contexts."""

    @abstractmethod
    def residual_of_rows(self, rows: LoggedRows) -> Outcome:
        """(n,) what is left of each reward, in contexts."""

    @abstractmethod
    def direct(self, rows: LoggedRows, chances: Chances) -> tuple[Floats, float]:
        """(n,) what a target earns in each context, and how uncertain the mean of that is."""


class Fixed(Outcomes):
    """Mean rewards that the user gives, of whose uncertainty nothing is known."""

    def __init__(self, means: Floats | None, function: Callable[[Floats], Any] | None, n_actions: int) -> None:
        self._means = means
        self._function = function
        self._n_actions = n_actions

    def means(self) -> Floats:
        assert self._means is not None
        return self._means

    def residual(self) -> Outcome:
        return Outcome(np.ones(self.means().shape), -self.means())

    def deviations(self, probabilities: Sequence[Floats], shares: Floats) -> list[float]:  # noqa: ARG002
        return [float("nan")] * len(probabilities)

    def _at(self, block: Integers, rows: LoggedRows) -> Floats:
        """(m, K) what some rows of the log are predicted to earn."""
        if self._function is None:
            return np.broadcast_to(self.means(), (len(block), self._n_actions))
        contexts = rows.numbers()[block]
        found = _checks.floats(self._function(contexts), "model")
        if found.shape != (len(contexts), self._n_actions) or not np.isfinite(found).all():
            raise ValueError(
                f"model gave an array of shape {found.shape}, or one that is not finite, for {len(contexts)} contexts; "
                f"give ({len(contexts)}, {self._n_actions}), a mean reward for each action"
            )
        return found

    def residual_of_rows(self, rows: LoggedRows) -> Outcome:
        found = np.empty(len(rows.reward))
        for block in block_rows(len(found), self._n_actions):
            found[block] = self._at(block, rows)[np.arange(len(block)), rows.place[block]]
        return Outcome(np.ones(len(found)), -found)

    def direct(self, rows: LoggedRows, chances: Chances) -> tuple[Floats, float]:
        found = np.empty(len(rows.reward))
        for block, places, probabilities in chances.blocks():
            for part in block_rows(len(block), self._n_actions):
                predicted = np.take_along_axis(self._at(block[part], rows), places[part], axis=1)
                found[block[part]] = (predicted * probabilities[part]).sum(axis=1)
        return found, float("nan")


class Learned(Outcomes):
    """The predictions of posteriors, one for each position."""

    def __init__(self, posteriors: Sequence[Posterior], has_seen_the_log: bool, contexts: Floats | None = None) -> None:
        self._posteriors = posteriors
        self._contexts = contexts  # (n, d) of the log's rows, as the model takes them
        self._has_seen_the_log = has_seen_the_log
        self._moments = [one.action_moments() if one.model.is_scalar else None for one in posteriors]

    @property
    def _model(self) -> Model:
        return self._posteriors[0].model

    def means(self) -> Floats:
        of = self._model.likelihood
        return np.stack([of.expected_reward(*moments) for moments in self._moments if moments is not None])

    def residual(self) -> Outcome:
        if not self._has_seen_the_log:
            return Outcome(np.ones(self.means().shape), -self.means())
        parts = [left_out(self._model, *moments) for moments in self._moments if moments is not None]
        return Outcome(np.stack([one.slope for one in parts]), np.stack([one.intercept for one in parts]))

    def deviations(self, probabilities: Sequence[Floats], shares: Floats) -> list[float]:
        variances = np.zeros(len(probabilities))
        for i, (posterior, moments, share) in enumerate(zip(self._posteriors, self._moments, shares, strict=True)):
            assert moments is not None
            steepness = self._model.likelihood.log_partition(moments[0])[2]
            weights = np.stack([share * one[i] * steepness for one in probabilities], axis=1)
            variances += _variances(posterior, weights)
        return np.sqrt(variances).tolist()  # type: ignore[no-any-return]

    def _scores(self, leaves: Nodes, contexts: Floats) -> tuple[Floats, Floats]:
        """(m,) the means and variances of scores, of (m,) leaves in (m, d) contexts."""
        posterior = self._posteriors[0]
        mean = np.einsum("id,id->i", posterior.mean[leaves], contexts)
        variance = np.empty(len(mean))
        for block in block_rows(len(mean), contexts.shape[1] ** 2):
            x = contexts[block]
            variance[block] = np.einsum("id,ide,ie->i", x, posterior.covariance[leaves[block]], x, optimize=True)
        return mean, variance

    def _scores_everywhere(self, contexts: Floats) -> tuple[Floats, Floats]:
        """(m, K) the same of all actions; zero variances where they do not matter for the mean reward."""
        posterior, leaves = self._posteriors[0], self._model.tree.leaves
        mean = contexts @ posterior.mean[leaves].T
        if posterior.model.kind.is_conjugate:
            return mean, np.zeros(mean.shape)
        return mean, np.einsum("id,kde,ie->ik", contexts, posterior.covariance[leaves], contexts, optimize=True)

    def residual_of_rows(self, rows: LoggedRows) -> Outcome:
        assert self._contexts is not None
        mean, variance = self._scores(self._model.tree.leaves[rows.place], self._contexts)
        if self._has_seen_the_log:
            return left_out(self._model, mean, variance)
        return Outcome(np.ones(len(mean)), -self._model.likelihood.expected_reward(mean, variance))

    def direct(self, rows: LoggedRows, chances: Chances) -> tuple[Floats, float]:
        assert self._contexts is not None
        posterior, of, tree = self._posteriors[0], self._model.likelihood, self._model.tree
        found = np.empty(len(rows.reward))
        weights = np.zeros((tree.n_actions, self._model.dim))
        for block, places, probabilities in chances.blocks():
            contexts = self._contexts[block]
            if places.shape[1] == tree.n_actions:  # all of them, in order
                mean, variance = self._scores_everywhere(contexts)
                steepness = probabilities * of.log_partition(mean)[2]
                weights += steepness.T @ contexts
            else:
                mean, variance = (part[:, None] for part in self._scores(tree.leaves[places[:, 0]], contexts))
                steepness = probabilities * of.log_partition(mean)[2]
                np.add.at(weights, places[:, 0], steepness * contexts)
            found[block] = (of.expected_reward(mean, variance) * probabilities).sum(axis=1)
        drawn = _drawn_variance(posterior, weights / len(found), np.random.default_rng(0))
        return found, float(np.sqrt(drawn))


def _variances(posterior: Posterior, weights: Floats) -> Floats:
    """(P,) the posterior variances of sums of the actions' parameters, with (K, P) weights.

    A draw is theta = gain * parent's theta + offset + step * normal at each node, and so the sum is linear in the
    normals: a node's coefficient is its step times what all paths through it carry, added up rootward.
    """
    tree = posterior.model.tree
    gain, step = _steps(posterior)
    carried = np.zeros((tree.n_nodes, weights.shape[1]))
    carried[tree.leaves] = weights
    for start, end in zip(tree.level_start[-2:0:-1], tree.level_start[:1:-1], strict=True):
        np.add.at(carried, tree.parent[start:end], gain[start:end, None] * carried[start:end])
    return np.asarray(np.square(carried * step[:, None]).sum(axis=0))


def _steps(posterior: Posterior) -> tuple[Floats, Floats]:
    """(V,) and (V,): how much of its parent's value a node takes over, and the deviation of its own step.

    The draw of normals that are 1 down to a depth and 0 below it shows both, depth by depth.
    """
    tree = posterior.model.tree
    gain, step = np.zeros(tree.n_nodes), np.empty(tree.n_nodes)
    mean = before = posterior.from_normals(np.zeros(tree.n_nodes))
    for depth in range(tree.height + 1):
        after = posterior.from_normals((tree.depth <= depth).astype(np.float64))
        here = slice(int(tree.level_start[depth]), int(tree.level_start[depth + 1]))
        step[here] = after[here] - before[here]
        if depth < tree.height:
            below = slice(int(tree.level_start[depth + 1]), int(tree.level_start[depth + 2]))
            moved = (after - mean)[tree.parent[below]]
            gain[below] = np.where(moved == 0.0, 0.0, (after - mean)[below] / np.where(moved == 0.0, 1.0, moved))
        before = after
    return gain, step


def _drawn_variance(posterior: Posterior, weights: Floats, rng: np.random.Generator) -> float:
    """The same of vectors, with (K, d) weights, from draws."""
    leaves, size = posterior.model.tree.leaves, int(np.prod(posterior._shape))
    draws = int(np.clip(_NUMBERS // size, _LEAST_DRAWS, _DRAWS))
    at_once = max(1, min(draws, _NUMBERS // (10 * size)))
    found = []
    for start in range(0, draws, at_once):
        sample = posterior.sample(rng, size=min(at_once, draws - start))
        found.append(np.tensordot(sample[:, leaves], weights, axes=2))
    return float(np.concatenate(found).var(ddof=1))


# -- where predictions come from -------------------------------------------------------------------


def outcomes_of_sums(model: Any, tree: Tree, sums: PropensitySums) -> Outcomes:
    """What a model predicts of a log without contexts; learned from it where the model is a prior, or None."""
    given = _checked_model(model, tree, None)
    if isinstance(given, Posterior):
        return Learned([given] * len(sums.positions), has_seen_the_log=False)
    if not isinstance(given, Model) and given is not None:
        return Fixed(_given_means(given, tree, len(sums.positions)), None, tree.n_actions)
    prior = _learned_prior(tree, statistics_of(tree, sums)) if given is None else given
    posteriors = []
    for position in range(len(sums.positions)):
        posterior = Posterior(prior)
        posterior.absorb(statistics_of(tree, sums, sums.position == position))
        posteriors.append(posterior)
    return Learned(posteriors, has_seen_the_log=True)


def outcomes_of_rows(model: Any, tree: Tree, rows: LoggedRows) -> Outcomes:
    """The same of a log with contexts."""
    given = _checked_model(model, tree, rows)
    if isinstance(given, Posterior):
        return Learned([given], has_seen_the_log=False, contexts=rows.contexts_for(given.model))
    if not isinstance(given, Model) and given is not None:
        if callable(given):
            return Fixed(None, given, tree.n_actions)
        return Fixed(_given_means(given, tree, 1), None, tree.n_actions)
    if given is None:
        sums = Statistics.from_rows(as_column(tree.actions[rows.place]), rows.reward, rows.numbers())
        given = _learned_prior(tree, sums)
    posterior = Posterior(given)
    exposure = given.kind.checked_exposure(rows.reward, None, None)
    contexts = rows.contexts_for(given)
    posterior._observe(Rows(tree.leaves[rows.place], rows.reward, contexts, exposure))
    return Learned([posterior], has_seen_the_log=True, contexts=contexts)


def statistics_of(tree: Tree, sums: PropensitySums, which: Any = slice(None)) -> Statistics:
    """The sums that a model learns from; those of an action at several positions added up."""
    place, group = np.unique(sums.place[which], return_inverse=True)
    n, y, yy = (np.bincount(group, values[which]).astype(np.float64) for values in (sums.n, sums.y, sums.yy))
    return Statistics._trusted(as_column(tree.actions[place]), count=n, sum_y=y, sum_yy=yy)


def _learned_prior(tree: Tree, statistics: Statistics) -> Model:
    """A Gaussian prior, for clicks too: a mean is a mean, and it is learned in a moment."""
    try:
        return fit_prior(tree, statistics, structure="diagonal").model
    except ValueError as error:
        raise ValueError(
            f'no prior can be learned from this log ({error}); give a model, or estimators=("ips", "snips")'
        ) from error


def _checked_model(model: Any, tree: Tree, rows: LoggedRows | None) -> Any:
    """A prior, a posterior, what else may predict, or None."""
    if isinstance(model, PriorFit):
        model = model.model
    if not isinstance(model, (Model, Posterior)):
        return model
    prior = model if isinstance(model, Model) else model.model
    if prior.tree is not tree and not np.array_equal(np.asarray(prior.tree.actions), np.asarray(tree.actions)):
        raise ValueError("the model's tree has other actions than the given tree, or in another order; give the same")
    prior._refuse_factors("rewards are not predicted by a model")
    if prior.kind.has_own_noise:
        raise ValueError(
            f"model is {prior!r}, with a noise variance per action; what a row adds to its own prediction has no "
            "closed form there: give a model with noise_variance, or mean rewards"
        )
    if prior.is_scalar != (rows is None):
        raise ValueError(
            f"model is {model!r}; give one {'without' if rows is None else 'with'} contexts, as the log is"
        )
    dim = prior.dim if rows is None else rows.contexts_for(prior).shape[1]
    if prior.dim != dim:
        raise ValueError(f"model is {model!r}; give one with contexts of length {dim}, as the log is")
    return model


def _given_means(given: Any, tree: Tree, n_positions: int) -> Floats:
    """(S, K) mean rewards, from a mapping or an array."""
    if isinstance(given, Mapping):
        found: Floats = np.full(tree.n_actions, np.nan)
        found[np.searchsorted(tree.leaves, tree.action_nodes(list(given)))] = _checks.vector(
            list(given.values()), "mean rewards"
        )
        if np.isnan(found).any():
            missing = tree.actions[int(np.flatnonzero(np.isnan(found))[0])]
            raise ValueError(f"model has no mean reward for {missing!r}; give one for each action")
    else:
        try:
            found = _checks.floats(given, "model")
        except ValueError:
            raise ValueError(
                f"model is {given!r:.80}; give a model, a fit, a posterior, or a mean reward for each action"
            ) from None
    table: Floats = found[None] if found.ndim == 1 else found
    if table.shape not in ((1, tree.n_actions), (n_positions, tree.n_actions)) or not np.isfinite(table).all():
        raise ValueError(
            f"model is an array of shape {np.shape(given)}, or not finite; give ({tree.n_actions},), a mean reward for "
            "each action"
        )
    return np.broadcast_to(table, (n_positions, tree.n_actions))
