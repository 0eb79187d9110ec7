"""Policies: Thompson sampling on the exact posterior (HierTS, FlatTS, TS), and what people compare it with."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, overload, runtime_checkable

import numpy as np

from bough import inputs, seeds
from bough.arrays import Flags, Floats, Integers, Nodes
from bough.model import GaussianModel
from bough.posterior import Posterior
from bough.statistics import Statistics

if TYPE_CHECKING:
    from bough.learning.online import Refit

_NOTHING = np.empty(0, dtype=np.int32)
SMALL = 2_000  # nodes: drawing so few takes less time than searching


class Propensity(NamedTuple):
    """How likely each of some actions is to be chosen; made by `propensity`."""

    probability: Floats
    standard_error: Floats
    is_upper_bound: Flags
    """True where the action was never chosen and `probability` is only known not to be exceeded."""


@runtime_checkable
class Policy(Protocol):
    """Anything that decides and learns: what `HierTS` and the others are, and what your own may be.

    >>> import bough
    >>> class Stubborn:
    ...     def decide(self, context=None, *, k=None, among=None):
    ...         return "coffee"
    ...     def update(self, action, reward, context=None):
    ...         pass
    >>> isinstance(Stubborn(), bough.Policy)
    True
    """

    def decide(self, context: Any = None, *, k: int | None = None, among: Any = None) -> Any:
        """An action's name; a list of k names, best first, where k is given."""
        ...

    def update(self, action: Any, reward: Any, context: Any = None) -> None:
        """Learn from the reward of an action."""
        ...


class PosteriorPolicy(ABC):
    """A policy that scores actions by its posterior; subclasses say how."""

    def __init__(self, model: GaussianModel, seed: Any = None, *, refit: bool = False) -> None:
        if not isinstance(model, GaussianModel):
            raise ValueError(f"model is a {type(model).__name__}; give a bough.GaussianModel")
        self.posterior = Posterior(self._believed(model))
        self._rng = seeds.generator(seed)
        self._refit = _made_refit(self.posterior, refit, None)

    def _believed(self, model: GaussianModel) -> GaussianModel:
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

    def update(self, action: Any, reward: Any, context: Any = None) -> None:
        """Learn from one reward, or from arrays of them; as `Posterior.update`.

        >>> import bough
        >>> agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])), seed=0)
        >>> agent.update("left", 1.0)
        >>> agent
        HierTS(n_actions=2, n_observations=1)
        """
        if self._refit is None:
            self.posterior.update(action, reward, context)
            return
        with self._refit.lock:
            self._refit.check(self.posterior, 1 if inputs.is_one(reward) else len(reward))
            self.posterior.update(action, reward, context)
            self.posterior = self._refit.observe(action, reward, context) or self.posterior

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
            self._refit.check(self.posterior, getattr(statistics, "n_rows", 0.0))
            self.posterior.absorb(statistics)
            self.posterior = self._refit.absorb(statistics) or self.posterior

    def choose(self, context: Floats | None) -> int:
        """`decide`, of a context that has been checked: the place of the action in `tree.actions`."""
        leaf = self._choose(context, 1, None, _NOTHING)[0]
        return int(np.searchsorted(self.posterior.model.tree.leaves, leaf))

    def learn(self, place: int, reward: float, context: Floats | None) -> None:
        """`update`, of an action given by its place in `tree.actions`, and of numbers that have been checked."""
        tree = self.posterior.model.tree
        rewards, contexts = np.array([reward]), None if context is None else context[None]
        self.posterior.observe(tree.leaves[place : place + 1], rewards, contexts)
        if self._refit is not None:
            with self._refit.lock:
                self.posterior = self._refit.observe(tree.actions[place], reward, context) or self.posterior

    @overload
    def decide(
        self, context: Any = None, *, k: None = None, among: Sequence[Any] | None = None, exclude: Sequence[Any] = ()
    ) -> Hashable: ...

    @overload
    def decide(
        self, context: Any = None, *, k: int, among: Sequence[Any] | None = None, exclude: Sequence[Any] = ()
    ) -> list[Hashable]: ...

    def decide(
        self,
        context: Any = None,
        *,
        k: int | None = None,
        among: Sequence[Any] | None = None,
        exclude: Sequence[Any] = (),
    ) -> Hashable | list[Hashable]:
        """The action to take: its name, or with `k` the names of the k best, best first.

        `among` restricts the choice to the given actions, and `exclude` leaves some out. Ties are broken at random.

        >>> import bough
        >>> tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]})
        >>> agent = bough.HierTS(bough.GaussianModel(tree), seed=0)
        >>> agent.decide(), agent.decide(k=2), agent.decide(among=["green", "black"]), agent.decide(exclude=["black"])
        ('espresso', ['black', 'green'], 'black', 'espresso')
        """
        tree = self.posterior.model.tree
        if context is not None or not self.posterior.model.is_scalar:
            context = self.posterior.checked_context(context)
        candidates, excluded = self._checked_choices(among, exclude)
        if k is None:
            return tree.node_names.name(int(self._choose(context, 1, candidates, excluded)[0]))
        n_choices = tree.n_actions - len(excluded) if candidates is None else len(candidates)
        chosen = self._choose(context, _checked_k(k, n_choices), candidates, excluded)
        return [tree.node_names.name(int(leaf)) for leaf in chosen]

    def _checked_choices(self, among: Sequence[Any] | None, exclude: Sequence[Any]) -> tuple[Nodes | None, Nodes]:
        """The candidates (None: all actions), and the actions that are left out of all."""
        tree = self.posterior.model.tree
        excluded = _NOTHING
        if exclude is not None and (not hasattr(exclude, "__len__") or len(exclude)):
            excluded = np.unique(tree.action_nodes(_listed(exclude, "exclude")))
        if among is None:
            if len(excluded) and len(excluded) == tree.n_actions:
                raise ValueError(f"exclude leaves out all {tree.n_actions} actions; leave at least one")
            return None, excluded
        names = _listed(among, "among")
        if not names:
            raise ValueError("among is empty; give at least one action, or leave it out to choose among all")
        candidates = np.setdiff1d(tree.action_nodes(names), excluded)
        if not len(candidates):
            raise ValueError("exclude leaves out every action that among has; leave at least one")
        return candidates, excluded[:0]

    def _choose(self, context: Floats | None, k: int, candidates: Nodes | None, excluded: Nodes) -> Nodes:
        """The k best leaves, best first, of the candidates, or of all but the excluded."""
        leaves, scores = self.posterior.model.tree.leaves, self._scores(context)
        if candidates is not None:
            leaves, scores = candidates, scores[np.searchsorted(leaves, candidates)]
        elif len(excluded):
            scores = scores.copy()
            scores[np.searchsorted(leaves, excluded)] = -np.inf
        return leaves[largest(scores, k, self._rng)]

    def decide_many(self, contexts: Any) -> list[Hashable]:
        """One decision for each row of an (n, d) array of contexts, or, in a K-armed model, n of them.

        Each is made from a posterior sample of its own.

        >>> import bough
        >>> tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]})
        >>> bough.HierTS(bough.GaussianModel(tree), seed=0).decide_many(4)
        ['espresso', 'black', 'black', 'green']
        """
        rows: Iterable[Any]
        if self.posterior.model.is_scalar:
            if isinstance(contexts, bool) or not isinstance(contexts, (int, np.integer)) or contexts < 0:
                raise ValueError(f"contexts is {contexts!r}; this model takes none, so give how many decisions")
            rows = itertools.repeat(None, int(contexts))
        else:
            rows = self.posterior.checked_contexts(contexts)
        tree = self.posterior.model.tree
        return [tree.node_names.name(int(self._choose(row, 1, None, _NOTHING)[0])) for row in rows]

    def propensity(self, actions: Sequence[Any], context: Any = None, samples: int = 1_000) -> Propensity:
        """How likely `decide(context)` is to choose each of the given actions, from that many decisions.

        Where an action was never chosen, the probability is an upper bound that holds with 95% confidence. The
        decisions use up the policy's own random numbers, so the next ones differ from those without this call.

        >>> import bough
        >>> tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]})
        >>> agent = bough.HierTS(bough.GaussianModel(tree, covariance=bough.by_depth([0.0, 0.0, 1.0])), seed=0)
        >>> agent.propensity(["green", "black"], samples=10_000).probability.round(2)
        array([0.32, 0.34])
        """
        nodes = self.posterior.model.tree.action_nodes(_listed(actions, "actions"))
        samples = inputs.whole_number("samples", samples, least=1)
        if context is not None or not self.posterior.model.is_scalar:
            context = self.posterior.checked_context(context)
        chosen = np.array([self._choose(context, 1, None, _NOTHING)[0] for _ in range(samples)])
        found, times = np.unique(chosen, return_counts=True)
        place = np.minimum(np.searchsorted(found, nodes), len(found) - 1)
        share = np.where(found[place] == nodes, times[place], 0) / samples
        never = share == 0.0
        error = np.sqrt(share * (1.0 - share) / samples)
        return Propensity(np.where(never, 1.0 - 0.05 ** (1.0 / samples), share), error, never)

    @abstractmethod
    def _scores(self, context: Floats | None) -> Floats:
        """(K,) how good each action looks this time."""


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

    def __init__(
        self, model: GaussianModel, seed: Any = None, *, search: bool | None = None, refit: bool = False
    ) -> None:
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

    def _believed(self, model: GaussianModel) -> GaussianModel:
        return model.flat()


class TS(HierTS):
    """Thompson sampling with independent actions: HierTS on `model.independent()`.

    >>> import bough
    >>> agent = bough.TS(bough.GaussianModel(bough.Tree.balanced(branching=3, height=3)))
    >>> agent.update(20, 1.0)
    >>> agent.posterior.mean[agent.posterior.model.tree.index(21)]  # learns nothing from its sibling
    np.float64(0.0)
    """

    def _believed(self, model: GaussianModel) -> GaussianModel:
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
    """The action with the highest posterior mean: no exploration but what ties and priors give.

    >>> import bough
    >>> agent = bough.Greedy(bough.GaussianModel(bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])), seed=0)
    >>> agent.update("tea/green", -1.0)
    >>> agent.decide()
    'coffee'
    """

    def _scores(self, context: Floats | None) -> Floats:
        mean = self.posterior.model.tree.at_leaves(self.posterior.mean)
        return mean if context is None else mean @ context


def largest(scores: Floats, k: int, rng: np.random.Generator) -> Integers:
    """Where the k largest scores are, largest first; ties in random order."""
    if k == 1:
        best = np.flatnonzero(scores == scores[scores.argmax()])
        return best if len(best) == 1 else best[[int(rng.random() * len(best))]]
    threshold = np.partition(scores, len(scores) - k)[len(scores) - k]
    above = np.flatnonzero(scores > threshold)
    level = np.flatnonzero(scores == threshold)
    if len(above) + len(level) > k:
        level = rng.choice(level, k - len(above), replace=False)
    chosen = rng.permutation(np.concatenate([above, level]))
    return chosen[np.argsort(-scores[chosen], kind="stable")]


def _made_refit(posterior: Posterior, refit: bool, statistics: Statistics | None) -> Refit | None:
    """What a policy needs to learn its prior as it goes; None where it is not to."""
    if refit not in (True, False):
        raise ValueError(f"refit is {refit!r}; give True or False")
    if not refit:
        return None
    known = 0.0 if statistics is None else statistics.n_rows
    if abs(known - posterior.n_observations) > 0.75:  # the posterior's is rounded
        raise ValueError(
            f"the posterior has {posterior.n_observations} observations and the statistics {known:g}; give the "
            "statistics that the policy had, policy.statistics"
        )
    from bough.learning.online import Refit  # loads what few policies need

    return Refit(posterior.model, statistics)


def _checked_search(search: bool | None) -> bool | None:
    if search not in (True, False, None):
        raise ValueError(f"search is {search!r}; give True, False, or None for where it pays")
    return search


def _listed(names: Any, what: str) -> list[Any]:
    if isinstance(names, str) or not hasattr(names, "__len__") or getattr(names, "ndim", 1) == 0:
        raise ValueError(f"{what} is {names!r}; give a list of action names")
    return names.to_pylist() if hasattr(names, "to_pylist") else list(names)


def _checked_k(k: int, n_choices: int) -> int:
    k = inputs.whole_number("k", k, least=1)
    if k > n_choices:
        raise ValueError(f"k is {k}; give at most {n_choices}, the number of actions to choose from")
    return k
