"""What a policy is, and how one chooses from scores of all actions."""

from __future__ import annotations

import reprlib
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, overload, runtime_checkable

import numpy as np

from bough import _checks, _seeds
from bough._arrays import Floats, Integers, Nodes
from bough._checks import listed
from bough.data.rows import (
    check_context_presence,
    checked_context,
    checked_contexts,
    checked_levels_of_decision,
)
from bough.inference.answers import BestActions
from bough.model.model import Model
from bough.policies.many import checked_device, checked_jobs
from bough.tree.catalogue import Catalogue

NOTHING = np.empty(0, dtype=np.int32)


@runtime_checkable
class Policy(Protocol):
    """Anything that decides and learns: what `HierTS` and the others are, and what your own may be.

    These two calls, with arguments by position, are all that `simulate` makes; where the model has factors of the
    decision, their levels come as well, as ``factors={"store": "north"}``. The page "Your own policy, your own world,
    your own reward" has examples.

    >>> import bough
    >>> class Stubborn:
    ...     def decide(self, context):
    ...         return "coffee"
    ...     def update(self, action, reward, context):
    ...         pass
    >>> isinstance(Stubborn(), bough.Policy)
    True
    """

    def decide(self, context: Any, /) -> Any:
        """The name of an action, in a context: an array of d numbers, or None where the model has none."""
        ...

    def update(self, action: Any, reward: Any, context: Any, /) -> None:
        """Learn from the reward of an action, in the context that it was taken in."""
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
            leaf = self._choose(context, 1, None, NOTHING).nodes[0]
            return int(np.searchsorted(self._model.tree.leaves, leaf))

    @overload
    def decide(
        self,
        context: Any = None,
        *,
        k: None = None,
        among: Sequence[Any] | None = None,
        exclude: Sequence[Any] | None = (),
        missing: str = "error",
        at_most: bool = False,
        factors: Mapping[str, Any] | None = None,
    ) -> Hashable: ...

    @overload
    def decide(
        self,
        context: Any = None,
        *,
        k: int,
        among: Sequence[Any] | None = None,
        exclude: Sequence[Any] | None = (),
        missing: str = "error",
        at_most: bool = False,
        factors: Mapping[str, Any] | None = None,
    ) -> list[Hashable]: ...

    def decide(
        self,
        context: Any = None,
        *,
        k: int | None = None,
        among: Sequence[Any] | None = None,
        exclude: Sequence[Any] | None = (),
        missing: str = "error",
        at_most: bool = False,
        factors: Mapping[str, Any] | None = None,
    ) -> Hashable | list[Hashable]:
        """The action to take: its name, or with `k` the names of the k best, best first.

        `among` restricts the choice to the given actions, and `exclude` leaves some out. Ties are broken at random.
        ``missing="ignore"`` passes over names in these that there are no longer, and with ``at_most=True`` a k beyond
        the actions to choose from gives all of them. `factors` has levels of the model's factors of the decision: they
        are the same for all actions, so that they change scores and not the choice, and may be left out.

        >>> import bough
        >>> tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]})
        >>> agent = bough.HierTS(bough.GaussianModel(tree), seed=0)
        >>> agent.decide(), agent.decide(k=2), agent.decide(among=["green", "black"]), agent.decide(exclude=["black"])
        ('espresso', ['black', 'green'], 'black', 'espresso')
        >>> agent.decide(k=5, among=["green", "oolong"], missing="ignore", at_most=True)
        ['green']
        """
        with self._moment:
            checked = self._checked_context(context, factors)
            names = self._names(self._decided(checked, k, among, exclude, missing, at_most))
            return names[0] if k is None else names

    def _decide_with_score(
        self,
        context: Any,
        k: int | None,
        among: Sequence[Any] | None,
        exclude: Sequence[Any] | None,
        factors: Mapping[str, Any] | None = None,
    ) -> tuple[list[Hashable], float]:
        """The actions that `decide` chooses, as a list, and the score of the first."""
        with self._moment:
            chosen = self._decided(self._checked_context(context, factors), k, among, exclude, "error", False)
            return self._names(chosen), float(chosen.scores[0])

    def _checked_context(self, context: Any, factors: Any = None) -> Floats | None:
        """What a decision is made in: a context, or, where the model has factors, the levels that are named."""
        model = self._model
        if isinstance(context, (int, np.integer)) and not isinstance(context, bool):
            raise ValueError(f"the context is the number {context}; to choose so many actions, give k={context}")
        levels = checked_levels_of_decision(model, factors)
        if model.effects is not None:
            check_context_presence(model, context)
            return levels
        return None if context is None and model.is_scalar else checked_context(model, context)

    def _checked_rows(self, contexts: Any) -> Floats:
        return checked_contexts(self._model, contexts)

    def _names(self, chosen: BestActions) -> list[Hashable]:
        return [self._catalogue.name(leaf) for leaf in chosen.nodes.tolist()]

    def _decided(
        self,
        context: Floats | None,
        k: int | None,
        among: Sequence[Any] | None,
        exclude: Sequence[Any] | None,
        missing: str,
        at_most: bool,
    ) -> BestActions:
        """`decide`, of a context that has been checked: nodes and scores."""
        self._prepare()
        candidates, excluded = self._checked_choices(among, exclude, missing)
        if k is None:
            return self._choose(context, 1, candidates, excluded)
        n_choices = self._n_choices(excluded) if candidates is None else len(candidates)
        return self._choose(context, checked_k(k, n_choices, at_most), candidates, excluded)

    def _n_choices(self, excluded: Nodes) -> int:
        """How many actions there are without the retired and the excluded ones."""
        left_out = sum(node not in self._retired for node in excluded.tolist())
        return self._catalogue.n_actions - len(self._retired) - left_out

    def _checked_choices(
        self, among: Sequence[Any] | None, exclude: Sequence[Any] | None, missing: str
    ) -> tuple[Nodes | None, Nodes]:
        """The candidates (None: all actions), and the actions that are left out of all."""
        if not isinstance(missing, str) or missing != "error":
            _checks.one_of("missing", missing, ("error", "ignore"))
        if among is None and (exclude is None or (isinstance(exclude, tuple) and not exclude)):
            return None, NOTHING  # what most decisions have
        excluded = NOTHING
        left_out = [] if exclude is None else self._present(listed(exclude, "exclude"), missing)
        if left_out:
            excluded = np.unique(self._catalogue.action_nodes(left_out))
        if among is None:
            if len(excluded) and not self._n_choices(excluded):
                raise ValueError(f"exclude leaves out all {self._n_choices(NOTHING)} actions; leave at least one")
            return None, excluded
        names = listed(among, "among")
        if not names:
            raise ValueError("among is empty; give at least one action, or leave it out to choose among all")
        names = self._present(names, missing)
        if not names:
            raise ValueError(f"among is {reprlib.repr(among)}, and none of these is there; give at least one that is")
        wanted = np.setdiff1d(self._catalogue.action_nodes(names), excluded)
        candidates = wanted[[node not in self._retired for node in wanted.tolist()]]
        if not len(candidates):
            what = "exclude leaves out every action" if len(excluded) else "every action is retired"
            raise ValueError(f"{what} that among has; leave at least one")
        return candidates, excluded[:0]

    def _present(self, names: list[Any], missing: str) -> list[Any]:
        """The names, or, where missing ones are ignored, those that there are."""
        return names if missing == "error" else [name for name in names if self._catalogue.find(name) >= 0]

    def _choose(self, context: Floats | None, k: int, candidates: Nodes | None, excluded: Nodes) -> BestActions:
        """The k best leaves, best first, of the candidates, or of all but the excluded."""
        leaves, scores = self._scored(context, candidates, excluded)
        best = largest(scores, k, self._rng)
        return BestActions(leaves[best], scores[best])

    def _scored(self, context: Floats | None, candidates: Nodes | None, excluded: Nodes) -> tuple[Nodes, Floats]:
        """Leaves and their scores; what cannot be chosen scores minus infinity."""
        leaves, scores = self._model.tree.leaves, self._scores(context)
        if candidates is not None:
            leaves, scores = candidates, scores[np.searchsorted(leaves, candidates)]
        elif len(excluded) or self._retired:
            scores = scores.copy()
            scores[np.searchsorted(leaves, excluded)] = -np.inf
            scores[np.searchsorted(leaves, list(self._retired))] = -np.inf
        return leaves, scores

    @overload
    def decide_many(
        self,
        contexts: Any,
        k: None = None,
        among: Sequence[Any] | None = None,
        device: str | None = None,
        jobs: int | None = None,
    ) -> list[Hashable]: ...

    @overload
    def decide_many(
        self,
        contexts: Any,
        k: int,
        among: Sequence[Any] | None = None,
        device: str | None = None,
        jobs: int | None = None,
    ) -> list[list[Hashable]]: ...

    def decide_many(
        self,
        contexts: Any,
        k: int | None = None,
        among: Sequence[Any] | None = None,
        device: str | None = None,
        jobs: int | None = None,
    ) -> list[Hashable] | list[list[Hashable]]:
        """One decision for each row of an (n, d) array of contexts, or, in a K-armed model, n of them.

        Each is made from a posterior sample of its own, and all from what is known now. With `k` each is a list of the
        k best, best first, and `among` restricts the choice for all of them. `HierTS`, `FlatTS` and `TS` decide in
        compiled code on `jobs` threads, one for each core where it is None; how many there are changes nothing else.
        ``device="gpu"`` has them decide on a GPU, by the same law: the page "Nightly batches" has more.

        >>> import bough
        >>> tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]})
        >>> agent = bough.HierTS(bough.GaussianModel(tree), seed=0)
        >>> agent.decide_many(4), agent.decide_many(2, k=2, among=["green", "black"], jobs=1)
        (['black', 'black', 'espresso', 'green'], [['green', 'black'], ['black', 'green']])
        """
        names, scores = self._decided_many(contexts, k, among, checked_device(device), checked_jobs(jobs))
        if k is None:
            return names
        size = scores.shape[1]
        return [names[i : i + size] for i in range(0, len(names), size)]

    def _decided_many(
        self, contexts: Any, k: int | None, among: Sequence[Any] | None, device: str, jobs: int
    ) -> tuple[list[Hashable], Floats]:
        """The names of the actions of many decisions, one after the other, and (n, k) their scores."""
        with self._moment:
            self._prepare()
            candidates, excluded = self._checked_choices(among, (), "error")
            n_choices = self._n_choices(excluded) if candidates is None else len(candidates)
            wanted = 1 if k is None else checked_k(k, n_choices)
            model, rows, n = self._model, None, 0
            if model.is_scalar:
                if not _checks.is_whole(contexts):
                    raise ValueError(f"contexts is {contexts!r}; this model takes none, so give how many decisions")
                n = _checks.whole_number("contexts", contexts, least=0)
            else:
                rows = checked_contexts(model, contexts)
                n = len(rows)
            if device == "cpu":
                found = self._choose_many(n, rows, wanted, candidates, jobs)
                return self._catalogue.names(found.nodes.ravel()).tolist(), found.scores
            scorer = self._scorer(device)
            seed = _seeds.sequence(self._rng)
        chosen = scorer.best(n if rows is None else rows, wanted, seed, among=among)  # frozen: others may learn
        return chosen.actions.ravel().tolist(), chosen.scores

    def _choose_many(
        self, n: int, contexts: Floats | None, k: int, candidates: Nodes | None, _jobs: int
    ) -> BestActions:
        """(n, k) the leaves and the scores of n decisions, of what has been checked."""
        found = BestActions(np.empty((n, k), dtype=np.int32), np.empty((n, k)))
        for i in range(n):
            one = self._choose(None if contexts is None else contexts[i], k, candidates, NOTHING)
            found.nodes[i], found.scores[i] = one
        return found

    def _scorer(self, _device: str) -> Any:
        """What decides for many contexts on a device of JAX, by what is known now."""
        raise ValueError(f'device is "gpu", and a {type(self).__name__} decides on the CPU; leave out device=')

    @abstractmethod
    def _scores(self, context: Floats | None) -> Floats:
        """(K,) how good each action looks this time."""


def largest(scores: Floats, k: int, rng: np.random.Generator) -> Integers:
    """Where the k largest scores are, largest first; ties in random order."""
    if k == 1:
        first = scores.argmax()
        alike = scores == scores[first]
        if np.count_nonzero(alike) == 1:
            return np.array([first])
        best = np.flatnonzero(alike)
        return best[[int(rng.random() * len(best))]]
    threshold = np.partition(scores, len(scores) - k)[len(scores) - k]
    above = np.flatnonzero(scores > threshold)
    level = np.flatnonzero(scores == threshold)
    if len(above) + len(level) > k:
        level = rng.choice(level, k - len(above), replace=False)
    chosen = rng.permutation(np.concatenate([above, level]))
    return chosen[np.argsort(-scores[chosen], kind="stable")]


def as_list(name: Any) -> Sequence[Any]:
    """One name as a list of one; names that come as a list, an array or a column of a frame, as they are."""
    if isinstance(name, np.ndarray):
        return name.tolist() if name.ndim else [name.item()]
    for columns_own in ("to_list", "to_pylist"):
        if hasattr(name, columns_own):
            return list(getattr(name, columns_own)())
    return name if isinstance(name, list) else [name]


def checked_k(k: int, n_choices: int, at_most: bool = False) -> int:
    if not isinstance(at_most, (bool, np.bool_)):
        raise ValueError(f"at_most is {at_most!r}; give True or False")
    k = _checks.whole_number("k", k, least=1)
    if k > n_choices and not at_most:
        raise ValueError(f"k is {k}; give at most {n_choices}, the number of actions to choose from")
    return min(k, n_choices)
