"""A policy whose decisions can be logged: `decision` and `propensity`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bough import _checks, _seeds
from bough._arrays import Floats, Nodes
from bough._checks import listed
from bough.data.contexts import as_logged
from bough.inference.answers import BestActions
from bough.inference.chances import tied_shares
from bough.policies.base import ScoringPolicy, checked_k
from bough.policies.decision import Decision, new_id
from bough.policies.propensity import (
    Asked,
    Counted,
    Mean,
    Propensity,
    estimated,
    named_probabilities,
    own_generator,
)


class LoggedPolicy(ScoringPolicy):
    """A scoring policy that says how likely its decisions are; subclasses may know better than to count."""

    @property
    @abstractmethod
    def _n_seen(self) -> int:
        """How many rewards have been observed."""

    @property
    def _time(self) -> Any:
        """What time it is; None where that is not known."""
        return None

    def decision(
        self,
        context: Any = None,
        *,
        k: int | None = None,
        among: Sequence[Any] | None = None,
        exclude: Sequence[Any] | None = None,
        missing: str = "error",
        at_most: bool = False,
        samples: int = 1_000,
        factors: Mapping[str, Any] | None = None,
    ) -> Decision:
        """What `decide` would have chosen, with how likely that was, ready to be logged.

        The propensity is that of `propensity`, from up to `samples` draws; with ``samples=0`` it is left out. The
        agent's own random numbers go on as after `decide`. All of it is of one moment: others learn before or after.

        >>> import bough
        >>> tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]})
        >>> agent = bough.HierTS(bough.GaussianModel(tree), seed=0)
        >>> decision = agent.decision(k=2)
        >>> decision.actions, [round(p, 1) for p in decision.propensities]
        (['espresso', 'green'], [0.6, 0.7])
        """
        if type(samples) is not int or samples:  # nothing to check in the 0 of those who cannot wait
            samples = _checks.whole_number("samples", samples, least=0)
        with self._moment:
            checked = self._checked_context(context, factors)
            chosen = self._decided(checked, k, among, exclude, missing, at_most)
            names = self._names(chosen)
            found = None
            if samples:
                rng = own_generator(self._rng)
                size = None if k is None else len(names)
                found = self._propensity(names, checked, size, among, exclude, missing, samples, rng)
            return Decision(  # by position, which takes half the time
                new_id(),
                names[0],
                names,
                chosen.scores.tolist(),
                None if found is None else found.probability.tolist(),
                # Where there is only a bound, the probability may be all of it lower.
                None if found is None else np.where(found[2], found[0], found[1]).tolist(),
                None if context is None or checked is None else as_logged(self._model, context, checked),
                None if among is None else listed(among, "among"),
                None if exclude is None else listed(exclude, "exclude"),
                self._time,
                self._n_seen,
                factors=None if checked is None or factors is None else dict(factors),
            )

    def propensity(
        self,
        actions: Sequence[Any],
        context: Any = None,
        *,
        k: int | None = None,
        among: Sequence[Any] | None = None,
        exclude: Sequence[Any] | None = None,
        samples: int = 1_000,
        seed: Any = None,
        factors: Mapping[str, Any] | None = None,
    ) -> Propensity:
        """How likely `decide`, asked the same, is to choose each of the given actions; with k, among the k.

        Draws double in number until each standard error is at most a tenth of its probability, up to `samples` of
        them. A draw gives the probability that the action wins against the rest of it, which says far more than whether
        it won. Where no draw gave an action a chance, the probability is an upper bound that holds with 95% confidence;
        where it is retired, left out, or not among the candidates, it is zero. Policies that draw nothing have exact
        probabilities. So has Thompson sampling without contexts and without `k`, where these are known already, take
        about a millisecond, or no longer than the draws that would be needed; `method` says which they are.

        The agent's random numbers stay as they are. The draws follow from their state, or from `seed`.

        >>> import bough
        >>> tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]})
        >>> agent = bough.HierTS(bough.GaussianModel(tree, covariance=bough.by_depth([0.0, 0.0, 1.0])), seed=0)
        >>> agent.propensity(["green", "black"], seed=1).probability.round(1)
        array([0.3, 0.3])
        """
        samples = _checks.whole_number("samples", samples, least=1)
        with self._moment:
            rng = own_generator(self._rng) if seed is None else _seeds.generator(seed)
            checked = self._checked_context(context, factors)
            return self._propensity(listed(actions, "actions"), checked, k, among, exclude, "error", samples, rng)

    def _propensity(
        self,
        names: list[Any],
        context: Floats | None,
        k: int | None,
        among: Sequence[Any] | None,
        exclude: Sequence[Any] | None,
        missing: str,
        samples: int,
        rng: np.random.Generator,
    ) -> Propensity:
        """`propensity` in a context that has been checked."""
        self._prepare()
        candidates, excluded = self._checked_choices(among, exclude, missing)
        n_choices = self._n_choices(excluded) if candidates is None else len(candidates)
        size = 1 if k is None else checked_k(k, n_choices)
        nodes = self._catalogue.action_nodes(names)
        if candidates is None:
            may_be = ~np.isin(nodes, excluded) & ~np.isin(nodes, list(self._retired))
        else:
            may_be = np.isin(nodes, candidates)
        distinct, place = np.unique(nodes[may_be], return_inverse=True)
        if size == n_choices or not len(distinct):  # all of them, whatever is drawn
            return named_probabilities(Mean(np.ones(len(distinct)), np.zeros(len(distinct)), 0), place, may_be)
        asked = Asked(distinct, context, size, candidates, excluded, n_choices)
        return named_probabilities(self._probabilities(asked, samples, rng), place, may_be)

    def _probabilities(self, asked: Asked, samples: int, rng: np.random.Generator) -> Mean:
        """The probabilities of actions to be chosen; counted, where a subclass does not know better."""

        def decided(other: np.random.Generator) -> BestActions:
            mine, self._rng = self._rng, other
            try:
                return self._choose(asked.context, asked.k, asked.candidates, asked.excluded)
            finally:
                self._rng = mine

        return estimated(Counted(decided, asked.nodes, rng), len(asked.nodes), samples)

    def _certain(self, asked: Asked) -> Mean:
        """`_probabilities` of a policy whose scores are not random: only ties are."""
        leaves, scores = self._scored(asked.context, asked.candidates, asked.excluded)
        own = scores[np.searchsorted(leaves, asked.nodes)]
        return Mean(tied_shares(scores, own, asked.k), np.zeros(len(own)), 0)

    def _choices(self, excluded: Nodes) -> Nodes:
        """The actions that may be chosen, ascending."""
        actions = self._catalogue.actions
        left_out = np.union1d(excluded, list(self._retired))
        return actions[~np.isin(actions, left_out)] if len(left_out) else actions

    def __init_subclass__(cls) -> None:
        """Have a subclass that decides in its own way not take over what is known of its parent's decisions."""
        own = vars(cls)
        if "_probabilities" not in own and ("_scores" in own or "_choose" in own):
            cls._probabilities = LoggedPolicy._probabilities  # type: ignore[method-assign]
