"""What an agent and its traffic say of some nodes at one moment; only those nodes are computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from bough._arrays import Flags, Floats, Integers, Nodes
from bough.data.rows import checked_context
from bough.model.likelihood import Likelihood
from bough.policies.posterior_policy import PosteriorPolicy
from bough.posterior import Posterior
from bough.service.records import Name
from bough.service.traffic import Traffic

_QUANTILE = 1.959963984540054  # of a 95% interval
_MANY = 20_000  # nodes whose mean rewards are not computed where most of them cannot be among the best
_SHARE = 0.1  # of all nodes, from which on it is quicker to compute all
_BINS = 64  # of variances
_ROUNDING = 1e-6  # of a mean reward, which is an integral


def name_in_json(name: Hashable) -> Name:
    """A name as JSON has it: text or a whole number.

    >>> name_in_json("tea"), name_in_json(7), name_in_json(("tea", 7)), name_in_json(True)
    ('tea', 7, "('tea', 7)", 'True')
    """
    return name if type(name) in (str, int) else str(name)  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class NodeNumbers:
    """Columns of numbers, one entry for each of some nodes."""

    nodes: Nodes
    mean: Floats
    """Of the mean reward of an action like this node."""
    deviation: Floats
    """Of that mean reward, as it is known."""
    low: Floats
    """Where the 95% interval of the mean reward begins."""
    high: Floats
    observed_mean: Floats
    """Of the rewards at or below each node; NaN where there are none."""
    decisions: Integers


@contextmanager
def moment_of(agent: PosteriorPolicy, traffic: Traffic, context: Any = None) -> Iterator[Moment]:
    """One moment of an agent, which does not learn meanwhile."""
    posterior = agent.posterior
    traffic.prepare(posterior._engine.model.tree)  # before anyone has to wait for it
    with posterior._lock:
        yield Moment(posterior, traffic, context)


class Moment:
    """What an agent knows while it does not learn, see `moment_of`; what says so can be asked later as well."""

    def __init__(self, posterior: Posterior, traffic: Traffic, context: Any) -> None:
        self.posterior = posterior
        self.engine, self.catalogue = posterior._engine, posterior._catalogue
        self.slots = self.engine.slots
        self.model = self.engine.model
        self.likelihood = self.model.likelihood
        self.retired = frozenset(posterior._retired)
        self.decisions = traffic.at_nodes(self.catalogue)
        given = None if context is None else checked_context(self.model, context)
        self.context = traffic.mean_context(self.model) if given is None else given
        self._averages = self._kept("slot averages", self.engine.slot_averages)
        self._weights = self._kept("slot weights", self.engine.slot_weights)

    def _kept(self, what: str, found: Callable[[], Floats]) -> Floats:
        """What is computed once until something changes."""
        answers: dict[str, Floats] = self.posterior._answers
        if what not in answers:
            answers[what] = found()
        return answers[what]

    def keep_slots(self) -> None:
        """Have `numbers`, given scores, and `names` answer as of now also later."""
        self.slots = self.slots.copy()

    def names(self, nodes: Nodes) -> list[Name]:
        """The names of nodes, as JSON has them."""
        n = self.catalogue.n_tree_nodes
        inside = np.flatnonzero(nodes < n)
        found: list[Any] = [self.catalogue.name(node) if node >= n else None for node in nodes.tolist()]
        for place, name in zip(inside.tolist(), self.model.tree.node_names.names(nodes[inside]), strict=True):
            found[place] = name
        return [name_in_json(name) for name in found]

    def path(self, node: int) -> list[int]:
        """The nodes from the root down to a node."""
        path = [node]
        while (node := self.catalogue.parent(node)) >= 0:
            path.append(node)
        return path[::-1]

    def scores(self, nodes: Nodes) -> tuple[Floats, Floats]:
        """The means and the variances of the scores of nodes."""
        if len(nodes) < _SHARE * self.catalogue.n_tree_nodes:
            return self.posterior._moments_of(nodes, self.context)
        score, variance = self.posterior._moments_of(None, self.context)
        return score[nodes], variance[nodes]

    @property
    def has_observations(self) -> Flags:
        """Whether there are observations at or below the node of each slot; retired actions have slots without."""
        return self._weights > 0.0

    def weights(self, nodes: Nodes) -> tuple[Floats, float]:
        """How many observations there are at or below nodes, and at all."""
        return self._at(nodes, self._weights, 0.0), float(self._weights[:1].sum())

    def _at(self, nodes: Nodes, by_slot: Floats, otherwise: float) -> Floats:
        slots = self.slots.find(nodes)
        found = np.full(len(nodes), otherwise)
        touched = np.flatnonzero(slots >= 0)
        found[touched] = by_slot[slots[touched]]
        return found

    def numbers(self, nodes: Nodes, scores: tuple[Floats, Floats] | None = None) -> NodeNumbers:
        """All that is shown of nodes, whose scores may be known already."""
        score, variance = self.scores(nodes) if scores is None else scores
        width = _QUANTILE * np.sqrt(variance)
        of = self.likelihood
        return NodeNumbers(
            nodes,
            np.asarray(of.expected_reward(score, variance)),
            np.sqrt(of.reward_variance(score, variance)),
            np.asarray(of.mean_reward(score - width)),
            np.asarray(of.mean_reward(score + width)),
            self._at(nodes, self._averages, np.nan),
            self.decisions[nodes],
        )

    def prior_deviations(self) -> list[float]:
        """How uncertain the mean reward of a node of each depth was before all observations: of its first node."""
        steps = self.engine.class_deviations(self.context) ** 2
        centre = float(self.model.mean if self.context is None else self.context @ self.model.mean)
        tree = self.model.tree
        paths = [tree.path_nodes(int(start)) for start in tree.level_start[:-1]]
        variance = np.array([steps[self.model.classes.of_node[path]].sum() for path in paths])
        return [float(one) for one in np.sqrt(self.likelihood.reward_variance(np.full(len(paths), centre), variance))]


def fields(moment: Moment, numbers: NodeNumbers) -> Iterator[tuple[Name, float, float, float | None, int]]:
    """What a `Node` has, of each node."""
    observed = [None if math.isnan(one) else one for one in numbers.observed_mean.tolist()]
    columns = (numbers.mean.tolist(), numbers.deviation.tolist(), observed, numbers.decisions.tolist())
    return zip(moment.names(numbers.nodes), *columns, strict=True)


# -- the best of very many -------------------------------------------------------------------------


def best_places(likelihood: Likelihood, score: Floats, variance: Floats, n: int) -> Integers:
    """Where the n largest mean rewards are, the largest first; of equal ones the first come first.

    A mean reward increases with the score, and at a given score it goes one way with the variance. So that of a score
    with a variance between two values is at most the larger of the mean rewards at these. Where there are very many,
    they are put into bins of like variances, and in each bin a score is found below which nothing can be among the
    best; mean rewards, which are integrals, are computed of the rest.
    """
    places = np.arange(len(score))
    if len(score) > max(_MANY, n):
        guess = np.argpartition(-score, n)[:n]
        least = float(np.min(likelihood.expected_reward(score[guess], variance[guess])))
        least -= _ROUNDING * abs(least)
        places = np.flatnonzero(_may_exceed(likelihood, score, variance, least))
    reward = np.asarray(likelihood.expected_reward(score[places], variance[places]))
    found: Integers = places[largest_places(reward, n)]
    return found


def largest_places(values: Floats, n: int) -> Integers:
    """Where the n largest values are, the largest first; of equal ones the first come first.

    >>> largest_places(np.array([1.0, 3.0, 2.0, 3.0, 2.0]), 3).tolist()
    [1, 3, 2]
    """
    if len(values) <= n:
        return np.argsort(-values, kind="stable")
    least = np.partition(values, len(values) - n)[len(values) - n]
    above, level = np.flatnonzero(values > least), np.flatnonzero(values == least)
    chosen = np.concatenate([above, level[: n - len(above)]])
    found: Integers = chosen[np.lexsort((chosen, -values[chosen]))]
    return found


def _may_exceed(likelihood: Likelihood, score: Floats, variance: Floats, least: float) -> Flags:
    """Whether each mean reward may be at least that large; it says yes to some that are not."""
    edges = np.linspace(variance.min(), variance.max() * (1.0 + 1e-9) + 1e-300, _BINS + 1)
    low, high = np.full(_BINS + 1, score.min()), np.full(_BINS + 1, score.max())
    for _ in range(30):  # the scores at which mean rewards are that large, at each edge
        middle = 0.5 * (low + high)
        enough = likelihood.expected_reward(middle, edges) >= least
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    limit = np.minimum(low[:-1], low[1:])
    step = edges[1] - edges[0]
    bins = np.minimum(((variance - edges[0]) / step).astype(np.int64), _BINS - 1)
    return np.asarray(score >= limit[bins])
