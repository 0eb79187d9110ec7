"""How likely actions are to be chosen: averages of a closed form over draws of everything else.

Let a be an action, and t the k-th best of the others in one joint draw. Given that draw of all but a's own step, a's
score is normal with the mean m that its parent's value gives it and its own deviation s, so it is among the k best with
probability Phi((m - t) / s). The mean of these over draws is unbiased for a's probability of being chosen, and varies
less than counting how often a is chosen, since it is the expectation of that count given all but a's step
(Rao-Blackwell). Where an action has no step of its own, its wins are counted, and ties shared.

`Counted` is the obvious version, for any policy. The others take the same draws as the policies that they are for, and
give for each draw the probability of each asked action.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol

import numpy as np
from scipy.special import betaincc

from bough._arrays import Flags, Floats, Integers, Nodes
from bough.inference.answers import BestActions
from bough.inference.capped import CappedSearch
from bough.inference.chances import Laws, best_of_others, chances, laws_of
from bough.inference.drawn_actions import ActionDraws
from bough.inference.search import PreparedSearch
from bough.posterior import Posterior

FIRST_DRAWS = 32
PRECISE = 0.1  # of a probability: an error so small is small enough
_LARGE = 2_000_000  # numbers that draws may take at once

# Nanoseconds, about, of what messages and draws take: only for which of them is quicker.
PLACE = 60_000.0  # of messages, for each node that is looked at
NODE = 100.0  # to find out which subtrees are alike, for each node of the tree
DRAW, DRAWN, ASKED = 5_000.0, 20.0, 50.0  # of a draw, for each node that is drawn, and for each action
CHEAP = 1e6  # nobody waits for a millisecond


class _Numbers(NamedTuple):
    probability: Floats
    standard_error: Floats
    is_upper_bound: Flags
    """True where no draw gave the action a chance, and `probability` is only known not to be exceeded."""


class Propensity(_Numbers):
    """How likely each of some actions is to be chosen: three arrays; made by `propensity`.

    >>> import bough
    >>> agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])), seed=0)
    >>> probability, standard_error, is_upper_bound = found = agent.propensity(["left", "right"])
    >>> probability.round(6), found.method
    (array([0.5, 0.5]), 'exact')
    """

    method: Literal["exact", "sampled"] = "exact"
    """Whether probabilities are exact, or estimated from draws."""


class Asked(NamedTuple):
    """What is asked: the probabilities of some actions to be among the k that are chosen."""

    nodes: Nodes
    """(r,) distinct actions that may be chosen, ascending."""
    context: Floats | None
    k: int
    """Fewer than there are to choose from."""
    candidates: Nodes | None
    """The actions to choose from; None for all but the excluded."""
    excluded: Nodes
    n_choices: int


class Chances(Protocol):
    """What gives chances draw by draw."""

    width: int
    """About how many numbers a draw takes."""

    def __call__(self, n: int) -> Floats:
        """(n, r) the probability of each action given the rest, in each of n draws."""
        ...


class Mean(NamedTuple):
    """The mean of chances over draws, and its standard error."""

    probability: Floats
    error: Floats
    n_draws: int
    """Zero where probabilities are exact."""


def estimated(
    chances: Chances, n_asked: int, samples: int, instead: Callable[[int], Mean | None] | None = None
) -> Mean:
    """The mean of chances over draws, which double in number until it is precise for every action, up to `samples`.

    Where it is not precise yet, `instead` is told how many more draws it would take, about, and may know a quicker way.
    """
    mean, squares = np.zeros(n_asked), np.zeros(n_asked)
    error = mean
    drawn, wanted = 0, min(FIRST_DRAWS, samples)
    at_once = max(1, _LARGE // max(chances.width, n_asked, 1))
    while True:
        while drawn < wanted:
            n = min(at_once, wanted - drawn)
            found = chances(n)
            step = found.mean(axis=0) - mean
            squares += np.square(found - found.mean(axis=0)).sum(axis=0) + step**2 * (drawn * n / (drawn + n))
            drawn += n
            mean = mean + step * (n / drawn)
        # Of one draw nothing is known but that a chance varies less than a count.
        error = np.sqrt(squares / (drawn - 1) / drawn) if drawn > 1 else np.sqrt(mean * (1.0 - mean))
        if drawn == samples or ((mean > 0.0) & (error <= PRECISE * mean)).all():
            return Mean(mean, error, drawn)
        other = None if instead is None else instead(_still_needed(mean, error, drawn, samples))
        if other is not None:
            return other
        wanted = min(2 * drawn, samples)


def _still_needed(mean: Floats, error: Floats, drawn: int, samples: int) -> int:
    """How many more draws a mean that is not precise takes, about."""
    precise = PRECISE * mean
    if not (precise > 0.0).all():
        return samples - drawn
    times = float(np.square(error / precise).max())
    doublings = max(1, math.ceil(math.log2(min(times, samples))))
    return int(min(drawn * 2**doublings, samples)) - drawn


def own_generator(rng: np.random.Generator) -> np.random.Generator:
    """A generator that follows from the state of another one, which stays as it is."""
    twin = type(rng.bit_generator)(0)
    twin.state = rng.bit_generator.state
    return np.random.default_rng(np.random.Generator(twin).integers(2**63, size=4))


class Counted:
    """Whether a policy chooses each action, decision by decision: for policies of which no more is known."""

    def __init__(
        self, decide: Callable[[np.random.Generator], BestActions], nodes: Nodes, rng: np.random.Generator
    ) -> None:
        self._decide = decide
        self._nodes = nodes
        self._rng = rng
        self.width = 1

    def __call__(self, n: int) -> Floats:
        return np.array([np.isin(self._nodes, self._decide(self._rng).nodes) for _ in range(n)], dtype=np.float64)


class BetaDraws:
    """Chances where the actions' scores are independent, each with a Beta distribution."""

    def __init__(self, successes: Floats, failures: Floats, asked: Integers, k: int, rng: np.random.Generator) -> None:
        self._laws = successes, failures
        self._asked = asked  # where they are
        self._k = k
        self._rng = rng
        self.width = len(successes)

    def __call__(self, n: int) -> Floats:
        successes, failures = self._laws
        scores = self._rng.beta(successes, failures, size=(n, len(successes)))
        best = best_of_others(scores, scores[:, self._asked], self._k)
        return np.asarray(betaincc(successes[self._asked], failures[self._asked], best))


class Drawn:
    """Chances from draws of all candidates: for few of them, and for trees that cannot be searched."""

    def __init__(
        self, posterior: Posterior, asked: Asked, candidates: Nodes, rng: np.random.Generator, scale: float
    ) -> None:
        nodes, position = posterior._catalogue.with_ancestors(candidates)
        self._asked = np.searchsorted(candidates, asked.nodes)
        self._draws = ActionDraws(
            posterior._engine, nodes, position, candidates, self._asked, asked.context, scale
        )  # fmt: skip
        self._k, self._rng = asked.k, rng
        self.width = self._draws.width

    def __call__(self, n: int) -> Floats:
        scores, centre = self._draws(self._rng, n)
        return chances(scores, scores[:, self._asked], centre, self._draws.laws, self._k)


class Searched:
    """Chances from searches of draws for the best of the rest: the asked actions are drawn, and most others are not."""

    def __init__(self, posterior: Posterior, asked: Asked, search: PreparedSearch, rng: np.random.Generator) -> None:
        self._search, self._k, self._rng = search, asked.k, rng
        self._n_best = min(asked.k, asked.n_choices - len(asked.nodes))
        own = search.slots.find(asked.nodes)
        parents = search.slots.parent[own]
        self._places = np.concatenate([own, parents])
        self._laws = laws_of(posterior._engine, asked.nodes, asked.context, search.scale)
        # A vector has to be known whole where the law is not the prior's, which needs its value alone.
        self._touched = np.flatnonzero(posterior._engine.slots.find(asked.nodes) >= 0)
        self._above = parents[self._touched]
        self.width = self._laws.gain.size + asked.k

    def __call__(self, n: int) -> Floats:
        search, rng, is_scalar = self._search, self._rng, self._laws.gain.ndim == 1
        best, values_here = np.empty((n, self._n_best)), np.empty((n, len(self._places)))
        above = np.empty((n, *self._laws.gain[self._touched].shape))
        for i in range(n):
            parameters, values = search.draw(rng)
            values_here[i] = values[self._places]
            if not is_scalar:
                above[i] = parameters[self._above]
            if self._n_best:
                best[i] = search.best(values, self._n_best, rng)[1]
        own, centre = np.hsplit(values_here, 2)
        if is_scalar:
            centre = self._laws.centre(centre)
        else:
            centre[:, self._touched] = Laws(*(part[self._touched] for part in self._laws)).centre(above)
        return chances(np.hstack([best, own]), own, centre, self._laws, self._k)


class Looked:
    """Chances from the capped search, which draws the asked actions first, and of the others what may be the best."""

    def __init__(self, posterior: Posterior, asked: Asked, capped: CappedSearch, rng: np.random.Generator) -> None:
        self._capped, self._k, self._rng = capped, asked.k, rng
        self._left_out = np.union1d(asked.excluded, asked.nodes).astype(np.int32)
        self._slots = posterior._engine.slots.find(asked.nodes)
        self._laws = laws_of(posterior._engine, asked.nodes, None, capped.scale)
        self.width = len(asked.nodes) + asked.k

    def __call__(self, n: int) -> Floats:
        best, values = np.empty((n, self._k)), np.empty((n, len(self._slots), 2))
        for i in range(n):
            best[i], values[i] = self._capped.others(self._rng, self._k, self._left_out, self._slots)
        centre, own = self._laws.centre(values[:, :, 0]), values[:, :, 1]
        return chances(np.hstack([best, own]), own, centre, self._laws, self._k)


def _capped_for(posterior: Posterior, asked: Asked, scale: float) -> CappedSearch | None:
    """The capped search, where it is in use, all asked actions are touched, and enough others are left."""
    if asked.context is not None or asked.n_choices < asked.k + len(asked.nodes):
        return None
    capped = posterior._search_state.switch.look(posterior._engine, scale)
    return None if capped is None or (posterior._engine.slots.find(asked.nodes) < 0).any() else capped


def chances_of_posterior(
    posterior: Posterior,
    asked: Asked,
    searches: bool,
    choices: Callable[[], Nodes],
    rng: np.random.Generator,
    scale: float = 1.0,
) -> Chances:
    """The chances of actions to be the best of a posterior draw whose deviations from the mean are times the scale."""
    if asked.candidates is None and searches:
        capped = _capped_for(posterior, asked, scale)
        if capped is not None:
            return Looked(posterior, asked, capped, rng)
        left_out = np.union1d(asked.excluded, asked.nodes).astype(np.int32)
        search = posterior._search_state.without(posterior._engine, asked.context, left_out, scale)
        if search is not None:
            return Searched(posterior, asked, search, rng)
    return Drawn(posterior, asked, choices() if asked.candidates is None else asked.candidates, rng, scale)


class Exact:
    """The exact probabilities of actions to be the best of a posterior draw, where draws would take longer.

    The draw's deviations from the mean are times the scale.
    """

    def __init__(self, posterior: Posterior, asked: Asked, searches: bool, scale: float = 1.0) -> None:
        self._posterior, self._asked, self._scale = posterior, asked, scale
        self._is_possible = asked.k == 1 and asked.context is None
        tree, n_touched = posterior._engine.model.tree, posterior._engine.slots.count
        if asked.candidates is None:
            n_drawn: float = n_touched + len(asked.nodes) if searches else tree.n_nodes
            if searches and _capped_for(posterior, asked, scale) is not None:
                n_drawn = posterior._search_state.switch.nodes_drawn
            n_places, n_unlike = n_touched, posterior._search_state.n_unlike
        else:
            n_drawn = n_places = 2 * len(asked.candidates)
            n_unlike = 0
        self._time = PLACE * (n_places + (n_unlike or 0)) + (NODE * tree.n_nodes if n_unlike is None else 0.0)
        self._time_of_draw = DRAW + DRAWN * n_drawn + ASKED * len(asked.nodes)

    def at_once(self) -> Mean | None:
        """What is known already, or soon."""
        if not self._is_possible:
            return None
        is_known = self._posterior._knows_winners(self._asked.candidates, self._asked.excluded, scale=self._scale)
        is_soon = self._time <= max(CHEAP, FIRST_DRAWS * self._time_of_draw)
        return self._found() if is_known or is_soon else None

    def instead_of(self, n_draws: int) -> Mean | None:
        """The probabilities, if they take less time than so many draws."""
        return self._found() if self._is_possible and self._time <= n_draws * self._time_of_draw else None

    def _found(self) -> Mean | None:
        found = self._posterior._winners(self._asked.candidates, self._asked.excluded, scale=self._scale)
        if found is None:
            self._is_possible = False
            return None
        contest, winners = found
        nodes = self._asked.nodes
        return Mean(contest.at(nodes, winners.place, winners.group), np.zeros(len(nodes)), 0)


def named_probabilities(mean: Mean, place: Integers, asked: Flags) -> Propensity:
    """Those of actions, of which some were asked for, each at its place; the others are never chosen."""
    probability, error, bound = np.zeros(len(asked)), np.zeros(len(asked)), np.zeros(len(asked), dtype=np.bool_)
    never = mean.probability == 0.0 if mean.n_draws else np.zeros(len(mean.probability), dtype=np.bool_)
    # Chances that are all zero are no likelier than a count that is: P(chance = 0) <= 1 - p.
    most = 1.0 - 0.05 ** (1.0 / max(mean.n_draws, 1))
    probability[asked] = np.where(never, most, mean.probability)[place]
    error[asked], bound[asked] = mean.error[place], never[place]
    found = Propensity(probability, error, bound)
    found.method = "sampled" if mean.n_draws else "exact"
    return found
