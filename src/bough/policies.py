"""Policies: Thompson sampling on the posterior (HierTS, FlatTS, TS), and what people compare it with."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bough import inputs, observations, seeds
from bough.arrays import Floats, Nodes
from bough.choosing import Chooser, largest
from bough.links import logistic_moments
from bough.model import BernoulliModel, Model
from bough.posterior import Posterior
from bough.statistics import Statistics

if TYPE_CHECKING:
    from bough.learning.online import Refit

SMALL = 2_000  # nodes: drawing so few takes less time than searching


class PosteriorPolicy(Chooser):
    """A policy that scores actions by its posterior; subclasses say how."""

    def __init__(self, model: Model, seed: Any = None, *, refit: bool = False) -> None:
        if not isinstance(model, Model):
            raise ValueError(f"model is a {type(model).__name__}; give a model, such as bough.GaussianModel")
        self.posterior = Posterior(self._believed(model))
        self._rng = seeds.generator(seed)
        self._refit = _made_refit(self.posterior, refit, None)

    @property
    def _model(self) -> Model:
        return self.posterior.model

    def _believed(self, model: Model) -> Model:
        """The model that the policy reasons with, which has the same actions in the same order."""
        return model

    @classmethod
    def resume(
        cls, posterior: Posterior, seed: Any = None, *, refit: bool = False, statistics: Statistics | None = None
    ) -> Self:
        """A policy that goes on from a posterior, such as one that `Posterior.load` read back.

        With `refit`, give the `statistics` that the policy had: a posterior alone cannot be refitted.

        >>> import bough
        >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])))
        >>> posterior.update("left", 1.0)
        >>> bough.HierTS.resume(posterior, seed=0)
        HierTS(n_actions=2, n_observations=1)
        """
        if not isinstance(posterior, Posterior):
            raise ValueError(f"posterior is a {type(posterior).__name__}; give a bough.Posterior")
        policy = cls.__new__(cls)
        if policy._believed(posterior.model).tree is not posterior.model.tree:
            raise ValueError(f"the posterior is of another model than {cls.__name__} has; save and resume its own")
        policy.posterior, policy._rng = posterior, seeds.generator(seed)
        policy._refit = _made_refit(posterior, refit, statistics)
        return policy

    @property
    def statistics(self) -> Statistics | None:
        """What a policy with ``refit=True`` has observed, to be saved beside its posterior; None otherwise."""
        return None if self._refit is None else self._refit.statistics

    def __repr__(self) -> str:
        tree = self.posterior.model.tree
        return f"{type(self).__name__}(n_actions={tree.n_actions}, n_observations={self.posterior.n_observations})"

    def update(
        self, action: Any, reward: Any, context: Any = None, *, trials: Any = None, exposure: Any = None
    ) -> None:
        """Learn from one reward, or from arrays of them; as `Posterior.update`.

        >>> import bough
        >>> agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])), seed=0)
        >>> agent.update("left", 1.0)
        >>> agent
        HierTS(n_actions=2, n_observations=1)
        """
        if self._refit is None:
            self.posterior.update(action, reward, context, trials=trials, exposure=exposure)
            return
        with self._refit.lock:
            n = math.inf if trials is not None else 1 if inputs.is_one(reward) else len(reward)
            self._refit.check(self.posterior, n)
            self.posterior.update(action, reward, context, trials=trials, exposure=exposure)
            seen = inputs.either(trials, exposure)
            self.posterior = self._refit.observe(action, reward, context, seen) or self.posterior

    def absorb(self, statistics: Statistics) -> None:
        """Learn from rows that come summed; as `Posterior.absorb`.

        >>> import bough
        >>> agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])), seed=0)
        >>> agent.absorb(bough.Statistics.from_rows(["left", "left", "right"], [1.0, 2.0, 0.5]))
        >>> agent
        HierTS(n_actions=2, n_observations=3)
        """
        if self._refit is None:
            self.posterior.absorb(statistics)
            return
        with self._refit.lock:
            self._refit.check(self.posterior, math.inf)
            self.posterior.absorb(statistics)
            self.posterior = self._refit.absorb(statistics) or self.posterior

    def learn(self, place: int, reward: float, context: Floats | None) -> None:
        """`update`, of an action given by its place in `tree.actions`, and of numbers that have been checked."""
        tree = self.posterior.model.tree
        rewards, contexts = np.array([reward]), None if context is None else context[None]
        exposure = np.ones(1) if self.posterior.model.has_counts else None
        self.posterior.observe(tree.leaves[place : place + 1], rewards, contexts, exposure)
        if self._refit is not None:
            with self._refit.lock:
                self.posterior = self._refit.observe(tree.actions[place], reward, context) or self.posterior


class HierTS(PosteriorPolicy):
    """Thompson sampling on the whole hierarchy: the best action of one joint posterior sample.

    In a tree of more than 2,000 nodes the sample is searched for its best actions without drawing what cannot win,
    which has the same law and costs about what has been observed. `search=False` draws everything, always, and
    `search=True` searches in small trees too.

    With ``refit=True`` the sizes of the prior's variances, the noise and the mean are learned from the policy's own
    observations, at 20, 40, 80, ... of them; until then the given model holds.

    >>> import bough
    >>> model = bough.GaussianModel(bough.Tree.from_paths(["tea/green", "tea/black", "coffee"]))
    >>> agent = bough.HierTS(model, seed=1)
    >>> for _ in range(50):
    ...     action = agent.decide()
    ...     agent.update(action, 1.0 if action == "tea/black" else 0.0)
    >>> agent.posterior.count[model.tree.index("tea/black")]
    np.int64(43)
    """

    def __init__(self, model: Model, seed: Any = None, *, search: bool | None = None, refit: bool = False) -> None:
        super().__init__(model, seed, refit=refit)
        self._search = _checked_search(search)

    @classmethod
    def resume(
        cls,
        posterior: Posterior,
        seed: Any = None,
        *,
        search: bool | None = None,
        refit: bool = False,
        statistics: Statistics | None = None,
    ) -> Self:
        """A policy that goes on from a posterior; see `PosteriorPolicy.resume`."""
        policy = super().resume(posterior, seed, refit=refit, statistics=statistics)
        policy._search = _checked_search(search)
        return policy

    def _choose(self, context: Floats | None, k: int, candidates: Nodes | None, excluded: Nodes) -> Nodes:
        posterior = self.posterior
        if candidates is not None:
            parameters = posterior.sample_actions(candidates, self._rng)
            scores = parameters if context is None else parameters @ context
            return candidates[largest(scores, k, self._rng)]
        if self._search or (self._search is None and posterior.model.tree.n_nodes > SMALL):
            best = posterior.search(self._rng, context, k, excluded)
            if best is not None:
                return best.nodes
        return super()._choose(context, k, None, excluded)

    def _scores(self, context: Floats | None) -> Floats:
        parameters = self.posterior.model.tree.at_leaves(self.posterior.sample(self._rng))
        return parameters if context is None else parameters @ context


class FlatTS(HierTS):
    """Thompson sampling that knows only the root and the actions: HierTS on `model.flat()`.

    >>> import bough
    >>> agent = bough.FlatTS(bough.GaussianModel(bough.Tree.balanced(branching=3, height=3)))
    >>> agent.posterior.model.tree
    Tree(n_nodes=28, n_actions=27, height=1)
    """

    def _believed(self, model: Model) -> Model:
        return model.flat()


class TS(HierTS):
    """Thompson sampling with independent actions: HierTS on `model.independent()`.

    >>> import bough
    >>> agent = bough.TS(bough.GaussianModel(bough.Tree.balanced(branching=3, height=3)))
    >>> agent.update(20, 1.0)
    >>> agent.posterior.mean[agent.posterior.model.tree.index(21)]  # learns nothing from its sibling
    np.float64(0.0)
    """

    def _believed(self, model: Model) -> Model:
        return model.independent()


class BayesUCB(PosteriorPolicy):
    """The action with the highest quantile 1 - 1/t of its exact marginal, t the round.

    The first round, where that quantile is the lowest there is, goes by the median as the second does.

    >>> import bough
    >>> agent = bough.BayesUCB(bough.GaussianModel(bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])), seed=0)
    >>> agent.update(["coffee", "tea/green"], [3.0, -1.0])
    >>> agent.decide()
    'coffee'
    """

    def _scores(self, context: Floats | None) -> Floats:
        round_ = self.posterior.n_observations + 1
        quantile = NormalDist().inv_cdf(1.0 - 1.0 / max(round_, 2))
        mean, variance = self.posterior.action_moments(context)
        return mean + quantile * np.sqrt(variance)


class Greedy(PosteriorPolicy):
    """The action with the highest expected reward: no exploration but what ties and priors give.

    >>> import bough
    >>> agent = bough.Greedy(bough.GaussianModel(bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])), seed=0)
    >>> agent.update("tea/green", -1.0)
    >>> agent.decide()
    'coffee'
    """

    def _scores(self, context: Floats | None) -> Floats:
        if self.posterior.model.has_counts:  # uncertainty counts: the mean of a sigmoid is not the sigmoid of the mean
            return self.posterior.model.expected_reward(*self.posterior.action_moments(context))
        mean = self.posterior.model.tree.at_leaves(self.posterior.mean)
        return mean if context is None else mean @ context


class BetaTS(Chooser):
    """Thompson sampling with an independent Beta distribution for each action's probability of a click.

    What most people use for clicks today, as a baseline: it knows nothing of the tree. Each action's prior is the Beta
    distribution with the mean and the variance that its click probability has under the model.

    >>> import bough
    >>> model = bough.BernoulliModel(bough.Tree.from_paths(["tea/green", "tea/black", "coffee"]), mean=-3.0)
    >>> agent = bough.BetaTS(model, seed=0)
    >>> agent.update(["coffee", "tea/green"], [1, 4], trials=[1, 100])
    >>> agent.decide()
    'coffee'
    """

    def __init__(self, model: BernoulliModel, seed: Any = None) -> None:
        if not isinstance(model, BernoulliModel) or not model.is_scalar:
            raise ValueError(f"model is {model!r}; BetaTS takes a bough.BernoulliModel without contexts")
        self.model = model
        self._rng = seeds.generator(seed)
        spread, which = np.unique(model.tree.at_leaves(model.marginal_covariance), return_inverse=True)
        prior = np.array([_matched_beta(model.mean, variance) for variance in spread.tolist()])
        self.successes, self.failures = np.ascontiguousarray(prior[which].T)
        self._n_observations = 0

    @property
    def _model(self) -> Model:
        return self.model

    def __repr__(self) -> str:
        return f"BetaTS(n_actions={self.model.tree.n_actions}, n_observations={self._n_observations})"

    def update(self, action: Any, reward: Any, context: Any = None, *, trials: Any = None) -> None:
        """Learn from one reward, or from arrays of them; as `Posterior.update`."""
        rows = observations.checked_rows(self.model, action, reward, context, trials, None)
        assert rows.exposure is not None
        places = np.searchsorted(self.model.tree.leaves, rows.leaves)
        np.add.at(self.successes, places, rows.rewards)
        np.add.at(self.failures, places, rows.exposure - rows.rewards)
        self._n_observations += int(rows.exposure.sum())

    def absorb(self, statistics: Statistics) -> None:
        """Learn from rows that come summed; as `Posterior.absorb`."""
        if not isinstance(statistics, Statistics) or statistics.dim is not None:
            raise ValueError("statistics is not bough.Statistics of rewards without contexts, as summarise makes them")
        self.model.check_sums(statistics)
        places = np.searchsorted(self.model.tree.leaves, self.model.tree.action_nodes(statistics.actions))
        np.add.at(self.successes, places, statistics.sum_y)
        np.add.at(self.failures, places, statistics.exposure_or_count - statistics.sum_y)
        self._n_observations += round(float(statistics.exposure_or_count.sum()))

    def learn(self, place: int, reward: float, _context: None) -> None:
        """`update`, of an action given by its place in `tree.actions`, and of a reward that has been checked."""
        self.successes[place] += reward
        self.failures[place] += 1.0 - reward
        self._n_observations += 1

    def _scores(self, _context: Floats | None) -> Floats:
        return np.asarray(self._rng.beta(self.successes, self.failures))


def _matched_beta(mean: float, variance: float) -> tuple[float, float]:
    """The Beta distribution with the moments of sigmoid(score), the score normal."""
    p, spread = logistic_moments(mean, variance)
    size = min(p * (1.0 - p) / max(spread, 1e-300) - 1.0, 1e12)  # where nothing is uncertain, as good as known
    return max(p * size, 1e-9), max((1.0 - p) * size, 1e-9)


def _made_refit(posterior: Posterior, refit: bool, statistics: Statistics | None) -> Refit | None:
    """What a policy needs to learn its prior as it goes; None where it is not to."""
    if not isinstance(refit, (bool, np.bool_)):
        raise ValueError(f"refit is {refit!r}; give True or False")
    if not refit:
        return None
    if statistics is not None and not isinstance(statistics, Statistics):
        raise ValueError(f"statistics is a {type(statistics).__name__}; give bough.Statistics, as policy.statistics is")
    from bough.learning.online import Refit, observed  # loads what few policies need

    known = 0.0 if statistics is None else observed(posterior.model, statistics)
    if abs(known - posterior.n_observations) > 0.75:  # the posterior's is rounded
        raise ValueError(
            f"the posterior has {posterior.n_observations} observations and the statistics {known:g}; give the "
            "statistics that the policy had, policy.statistics"
        )
    return Refit(posterior.model, statistics)


def _checked_search(search: bool | None) -> bool | None:
    if search is not None and not isinstance(search, (bool, np.bool_)):
        raise ValueError(f"search is {search!r}; give True, False, or None for where it pays")
    return search
