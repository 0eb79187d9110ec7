"""What a policy is, and how one chooses from scores of all actions."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, overload, runtime_checkable

import numpy as np

from bough import _checks
from bough._arrays import Flags, Floats, Integers, Nodes
from bough.data.rows import checked_context, checked_contexts
from bough.model.model import Model
from bough.tree.catalogue import Catalogue

NOTHING = np.empty(0, dtype=np.int32)


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


class ScoringPolicy(ABC):
    """A policy that gives every action a score and chooses the highest; subclasses say how they score and learn."""

    _rng: np.random.Generator

    @property
    @abstractmethod
    def _model(self) -> Model:
        """The model that the policy reasons with; what there is to choose from is in the catalogue."""

    @property
    @abstractmethod
    def _catalogue(self) -> Catalogue:
        """The actions there are now."""

    @property
    @abstractmethod
    def _retired(self) -> Mapping[int, None]:
        """The nodes of actions that are never chosen."""

    @property
    @abstractmethod
    def _moment(self) -> AbstractContextManager[Any]:
        """A lock that keeps the catalogue, and the numbers of its nodes, as they are."""

    def _prepare(self) -> None:  # noqa: B027
        """Make ready for a decision; the numbers of nodes may change."""

    @property
    def retired(self) -> list[Hashable]:
        """The names of the actions that are never chosen, in the order in which they were retired.

        >>> import bough
        >>> agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_nested(["left", "middle", "right"])), seed=0)
        >>> agent.retire("left")
        >>> agent.retired
        ['left']
        """
        with self._moment:
            return [self._catalogue.name(node) for node in self._retired]

    def _choose_place(self, context: Floats | None) -> int:
        """`decide`, of a context that has been checked: the place of the action in `tree.actions`."""
        with self._moment:
            self._prepare()
            leaf = self._choose(context, 1, None, NOTHING)[0]
            return int(np.searchsorted(self._model.tree.leaves, leaf))

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
        with self._moment:
            model = self._model
            if context is not None or not model.is_scalar:
                context = checked_context(model, context)
            self._prepare()
            candidates, excluded = None, NOTHING  # what most decisions have
            if among is not None or not isinstance(exclude, tuple) or exclude:
                candidates, excluded = self._checked_choices(among, exclude)
            if k is None:
                chosen = self._choose(context, 1, candidates, excluded)
                return self._catalogue.name(int(chosen[0]))
            n_choices = self._n_choices(excluded) if candidates is None else len(candidates)
            chosen = self._choose(context, _checked_k(k, n_choices), candidates, excluded)
            return [self._catalogue.name(leaf) for leaf in chosen.tolist()]

    def _n_choices(self, excluded: Nodes) -> int:
        """How many actions there are without the retired and the excluded ones."""
        left_out = sum(node not in self._retired for node in excluded.tolist())
        return self._catalogue.n_actions - len(self._retired) - left_out

    def _checked_choices(self, among: Sequence[Any] | None, exclude: Sequence[Any]) -> tuple[Nodes | None, Nodes]:
        """The candidates (None: all actions), and the actions that are left out of all."""
        excluded = NOTHING
        left_out = [] if exclude is None else listed(exclude, "exclude")
        if left_out:
            excluded = np.unique(self._catalogue.action_nodes(left_out))
        if among is None:
            if len(excluded) and not self._n_choices(excluded):
                raise ValueError(f"exclude leaves out all {self._n_choices(NOTHING)} actions; leave at least one")
            return None, excluded
        names = listed(among, "among")
        if not names:
            raise ValueError("among is empty; give at least one action, or leave it out to choose among all")
        wanted = np.setdiff1d(self._catalogue.action_nodes(names), excluded)
        candidates = wanted[[node not in self._retired for node in wanted.tolist()]]
        if not len(candidates):
            what = "exclude leaves out every action" if len(excluded) else "every action is retired"
            raise ValueError(f"{what} that among has; leave at least one")
        return candidates, excluded[:0]

    def _choose(self, context: Floats | None, k: int, candidates: Nodes | None, excluded: Nodes) -> Nodes:
        """The k best leaves, best first, of the candidates, or of all but the excluded."""
        leaves, scores = self._model.tree.leaves, self._scores(context)
        if candidates is not None:
            leaves, scores = candidates, scores[np.searchsorted(leaves, candidates)]
        elif len(excluded) or self._retired:
            scores = scores.copy()
            scores[np.searchsorted(leaves, excluded)] = -np.inf
            scores[np.searchsorted(leaves, list(self._retired))] = -np.inf
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
        if self._model.is_scalar:
            if not _checks.is_whole(contexts):
                raise ValueError(f"contexts is {contexts!r}; this model takes none, so give how many decisions")
            rows = itertools.repeat(None, _checks.whole_number("contexts", contexts, least=0))
        else:
            rows = checked_contexts(self._model, contexts)
        return [self._chosen(row) for row in rows]

    def _chosen(self, context: Floats | None) -> Hashable:
        """`decide`, of a context that has been checked."""
        with self._moment:
            self._prepare()
            return self._catalogue.name(int(self._choose(context, 1, None, NOTHING)[0]))

    def propensity(self, actions: Sequence[Any], context: Any = None, samples: int = 1_000) -> Propensity:
        """How likely `decide(context)` is to choose each of the given actions, from that many decisions.

        Where an action was never chosen, the probability is an upper bound that holds with 95% confidence; where it is
        retired, it is zero. The decisions use up the policy's own random numbers, so the next ones differ from those
        without this call.

        >>> import bough
        >>> tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]})
        >>> agent = bough.HierTS(bough.GaussianModel(tree, covariance=bough.by_depth([0.0, 0.0, 1.0])), seed=0)
        >>> agent.propensity(["green", "black"], samples=10_000).probability.round(2)
        array([0.32, 0.34])
        """
        samples = _checks.whole_number("samples", samples, least=1)
        with self._moment:
            if context is not None or not self._model.is_scalar:
                context = checked_context(self._model, context)
            nodes = self._catalogue.action_nodes(listed(actions, "actions")).tolist()
            names = [self._catalogue.name(node) for node in nodes]
            never_chosen = np.array([node in self._retired for node in nodes], dtype=np.bool_)
        times = Counter(self._chosen(context) for _ in range(samples))  # others may learn in between
        share = np.array([times[name] for name in names], dtype=np.float64) / samples
        never = (share == 0.0) & ~never_chosen
        error = np.sqrt(share * (1.0 - share) / samples)
        return Propensity(np.where(never, 1.0 - 0.05 ** (1.0 / samples), share), error, never)

    @abstractmethod
    def _scores(self, context: Floats | None) -> Floats:
        """(K,) how good each action looks this time."""


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


def listed(names: Any, what: str) -> list[Any]:
    """The names as a list; a `ValueError` where they are one name, or masked."""
    if isinstance(names, (str, bytes)) or not hasattr(names, "__len__") or getattr(names, "ndim", 1) != 1:
        raise ValueError(f"{what} is {names!r}; give a list of action names")
    _checks.refuse_masked(names, what)
    return names.to_pylist() if hasattr(names, "to_pylist") else list(names)


def as_list(name: Any) -> Sequence[Any]:
    """One name as a list of one; names that come as a list, an array or a column of a frame, as they are."""
    if isinstance(name, np.ndarray):
        return name.tolist() if name.ndim else [name.item()]
    for columns_own in ("to_list", "to_pylist"):
        if hasattr(name, columns_own):
            return list(getattr(name, columns_own)())
    return name if isinstance(name, list) else [name]


def _checked_k(k: int, n_choices: int) -> int:
    k = _checks.whole_number("k", k, least=1)
    if k > n_choices:
        raise ValueError(f"k is {k}; give at most {n_choices}, the number of actions to choose from")
    return k
