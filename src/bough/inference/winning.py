"""How likely each action is to be the best of a posterior draw, without drawing; see docs/explanation/being-best.md.

Only where parameters are numbers. Touched nodes have messages of their own. Untouched subtrees that are alike
throughout come in groups, whatever their number; see alike.py.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bough._arrays import Flags, Floats, Integers, Nodes
from bough.inference.alike import Alike, TooFineError
from bough.inference.kernels import winning as kernels
from bough.inference.kernels import winning_grids as shapes

PER_WIDTH = 1.0  # points of a node's grid in one width of what is integrated over it
PANEL = 6.5  # widths of a panel of Gauss-Legendre points
POINTS = 12  # of a panel
LOGISTIC_PANEL = 6.0  # scores of one where rewards are logistic, with poles at a distance of pi: 1e-9 is lost
MOST_WORK, MOST_WORK_EACH = 1e9, 5e5  # numbers to go through, in all and per place: beyond, draws have to do
_CUT = 30.0  # how much longer a number takes where a node is cut at x
_MOST_PANELS = 1_000
_MOST_NUMBERS = 2e7  # that messages may take at once
_MOST_AT_ONCE = 48  # points of x
_NEGLIGIBLE = 1e-17  # where the best is lower with this probability, nothing more is looked at


class Places(NamedTuple):
    """The part of a tree that is looked at place by place, parents first, and how each is given its parent.

    Values are deviations from the prior mean.
    """

    node: Nodes
    """(n,) the node's number."""
    parent: Nodes
    """(n,) where its parent is; -1 for the root's."""
    gain: Floats
    offset: Floats
    deviation: Floats
    choosable: Flags
    """(n,) whether it is an action that counts."""


class Groups(NamedTuple):
    """Untouched subtrees that are alike, by the place that they hang below."""

    owner: Integers
    """(n,) the place."""
    type: Integers
    """(n,) which type they are of."""
    n_alike: Integers
    """(n,) how many there are."""


class MaximumLaw(NamedTuple):
    """The law of the best action's score, on points that can be summed over."""

    x: Floats
    """(n,) ascending."""
    at_most: Floats
    """(n,) the probability that the best is at most x."""
    density: Floats
    weight: Floats
    """(n,) the integral of a function times the density is the sum of weight * density * function(x)."""
    atom: float
    """The probability that the best is the first x: where that is an action whose score is known."""


class Winners(NamedTuple):
    """The probabilities of being best, and the law of the best."""

    place: Floats
    """(n,) of each place; zero where it is not an action that counts."""
    group: Floats
    """(n,) of each action of a group."""
    maximum: MaximumLaw
    total: float
    """What all add up to: one, but for the spacing of grids, and they are divided by it."""


def winners(
    places: Places,
    groups: Groups,
    alike: Alike,
    class_deviation: Floats,
    *,
    tilt: float = 0.0,
    longest: float = math.inf,
    fineness: float = 1.0,
) -> Winners | None:
    """How likely each action is to be the best; None where steps are so unlike that grids would be too large.

    `tilt` is 1 where mean rewards are exponential in the score, which asks for more of its tail. No panel of scores is
    longer than `longest`, so that mean rewards are smooth in it. All grids have `fineness` times as many points as they
    need.
    """
    try:
        tree = _SteppedTree(places, groups, alike, class_deviation, tilt)
        x, weight = tree.score_points(fineness, longest)
        return tree.passes(x, weight, tree.grids(x, fineness))
    except TooFineError:
        return None


class _Grids(NamedTuple):
    """The points of all nodes, one after the other."""

    start: Integers
    """(N + 1,) where those of each node begin."""
    point: Floats
    weight: Floats
    sent_start: Integers
    """(N,) where what a node sends, which has one row per point of its parent, begins."""
    n_sent: int


class _SteppedTree:
    """The nodes that have steps, what is at each of them, and what hangs below."""

    def __init__(self, places: Places, groups: Groups, alike: Alike, class_deviation: Floats, tilt: float) -> None:
        n_places = len(places.node)
        self._choosable, self._tilt = places.choosable, tilt
        self._node, up = np.empty(n_places, dtype=np.int32), np.empty(n_places + 1, dtype=np.int32)
        law = np.empty((n_places + 1, 3))
        n = shapes.contract(places.parent, places.gain, places.offset, places.deviation, self._node, up, law)
        self._up, self._law = up[:n], law[:n]
        self._ties = np.bincount(self._node[places.choosable], minlength=n).astype(np.float64)
        self._take_groups(groups, alike, class_deviation)
        self._mean, self._deviation, self._top, self._width = np.empty((4, n))
        self._kind = np.empty(n, dtype=np.int32)
        shapes.survey(
            self._up, self._law, self._ties, *self._groups, self._type_variance, self._type_width, tilt, self._mean,
            self._deviation, self._top, self._kind, self._width,
        )  # fmt: skip

    def _take_groups(self, groups: Groups, alike: Alike, class_deviation: Floats) -> None:
        """Have the groups that have steps, by node; actions of the others are at the node itself, and tie."""
        types, type_ = np.unique(groups.type, return_inverse=True)
        tables = [alike.table(one, class_deviation) for one in types.tolist()]
        self._n_each = np.array([alike.n_actions(one) for one in types.tolist()], dtype=np.float64)[type_]
        has_steps = np.array([table is not None for table in tables], dtype=np.bool_)
        self._owner, self._has_steps = self._node[groups.owner], has_steps[type_]
        tied = ~self._has_steps
        np.add.at(self._ties, self._owner[tied], groups.n_alike[tied] * self._n_each[tied])
        kept = np.flatnonzero(self._has_steps)
        self._kept = kept = kept[np.argsort(self._owner[kept], kind="stable")]
        start = np.searchsorted(self._owner[kept], np.arange(len(self._up) + 1))
        number = (np.cumsum(has_steps) - 1)[type_[kept]].astype(np.int32)
        self._groups: tuple[Integers, Nodes, Floats] = (start, number, groups.n_alike[kept].astype(np.float64))
        listed = [table for table in tables if table is not None]
        self._type_variance = np.array([table.variance for table in listed])
        self._type_width = np.array([table.width for table in listed])
        self._table_places = (
            np.cumsum([0, *(len(table.log_rate) for table in listed)]),
            np.array([table.start for table in listed]),
            np.array([table.step for table in listed]),
        )
        self._log_rate = np.concatenate([np.empty(0), *(table.log_rate for table in listed)])
        self._log_hazard = np.concatenate([np.empty(0), *(table.log_hazard for table in listed)])

    # -- points --------------------------------------------------------------------------------

    def score_points(self, fineness: float, longest: float = math.inf) -> tuple[Floats, Floats]:
        """Points for the score of the best action, ascending, and their weights.

        The first is zero, of weight zero, where the actions whose scores are known may be the best.
        """
        _, type_, count = self._groups
        single, owner = np.flatnonzero(self._ties[1:] > 0.0) + 1, self._owner[self._kept]
        mean = np.concatenate([self._mean[single], self._mean[owner]])
        spread = np.sqrt(self._deviation[owner] ** 2 + self._type_variance[type_])
        deviation = np.concatenate([self._deviation[single], spread])
        low = mean - shapes.REACH * deviation
        high = mean + shapes.REACH * deviation + self._tilt * deviation**2
        lowest = max(low.max(initial=-np.inf), 0.0 if self._ties[0] > 0.0 else -np.inf)
        edges, n = np.empty(_MOST_PANELS), 0
        if len(low):
            counts = np.concatenate([np.ones(len(single)), count * self._n_each[self._kept]])
            n = shapes.panels(lowest, deviation, high, counts, PANEL / fineness, longest / fineness, edges)
            if not n:
                raise TooFineError
        x, weight = _gauss_legendre(edges[:n])
        return (np.append(0.0, x), np.append(0.0, weight)) if self._has_atom(lowest) else (x, weight)

    def _has_atom(self, lowest: float) -> bool:
        return bool(self._ties[0] > 0.0 and lowest == 0.0)

    def grids(self, x: Floats, fineness: float) -> _Grids:
        """The points of all nodes: even ones where the value is integrated over, distances below x where it is cut."""
        n, mean, deviation = len(self._up), self._mean, self._deviation
        low = mean - shapes.REACH * deviation
        length = 2.0 * shapes.REACH * deviation + self._tilt * deviation * deviation.max()
        soft, hard = self._kind == shapes.SOFT, self._kind == shapes.HARD
        soft[0] = hard[0] = False
        sizes = np.zeros(n)
        sizes[0] = 1.0
        sizes[soft] = np.ceil(fineness * PER_WIDTH * length[soft] / self._width[soft]) + 1.0
        cut = {}
        for j in np.flatnonzero(hard).tolist():
            n_panels = math.ceil(fineness * (x[-1] - low[j]) / (PANEL * self._width[j]))
            if n_panels > _MOST_PANELS:
                raise TooFineError
            distance, weight = _gauss_legendre(np.linspace(0.0, x[-1] - low[j], n_panels + 1))
            cut[j] = np.append(0.0, distance), np.append(0.0, weight)
            sizes[j] = len(distance) + 1.0
        self._check_work(sizes, length, len(x))
        size = sizes.astype(np.int64)
        start = np.append(0, np.cumsum(size))
        step = length / np.maximum(size - 1, 1)
        rank = np.arange(start[-1]) - np.repeat(start[:-1], size)
        point, weight = np.repeat(low, size) + np.repeat(step, size) * rank, np.repeat(step, size)
        point[0], weight[0] = 0.0, 1.0
        for j, (distance, share) in cut.items():
            point[start[j] : start[j + 1]], weight[start[j] : start[j + 1]] = distance, share
        n_rows = np.where(soft | hard, size[self._up], 0)
        sent = np.append(0, np.cumsum(n_rows))
        return _Grids(start, point, weight, sent[:-1], int(sent[-1]))

    def _check_work(self, sizes: Floats, length: Floats, n_x: int) -> None:
        """Refuse what would take too long."""
        above = np.maximum(self._up, 0)
        step = length / np.maximum(sizes - 1.0, 1.0)
        reached = np.minimum(sizes, 1.0 + 2.0 * shapes.REACH * self._law[:, 2] / np.maximum(step, 1e-300))
        hard = (self._kind == shapes.HARD) & (self._up >= 0)
        reached[hard | hard[above]] = (_CUT * sizes)[hard | hard[above]]
        reached[self._kind == shapes.LEAF] = 20.0  # for a look into a table and an exponential
        work = (sizes[above] * reached)[1:].sum() + sizes.sum()
        if not n_x * work <= MOST_WORK + MOST_WORK_EACH * len(self._choosable):
            raise TooFineError

    # -- passes --------------------------------------------------------------------------------

    def passes(self, x: Floats, weight: Floats, grids: _Grids) -> Winners:
        """All probabilities, from the highest x down to where the best surely is not."""
        n_rows, most = grids.start[-1] + grids.n_sent, int(np.diff(grids.start).max())
        at_once = int(np.clip(_MOST_NUMBERS / n_rows, 1, _MOST_AT_ONCE))
        mass, sent = np.empty((grids.start[-1], at_once)), np.empty((grids.n_sent, at_once))
        row, values, upto = np.empty(most), np.empty((most, at_once)), np.empty(len(self._up), dtype=np.int64)
        node_wins, group_wins = np.zeros(len(self._up)), np.zeros(len(self._kept))
        at_most, density = np.zeros(len(x)), np.zeros(len(x))
        points = grids.start, grids.point, grids.weight, grids.sent_start
        tables = self._table_places
        begin = len(x)
        while begin > 0 and (begin == len(x) or at_most[begin] > _NEGLIGIBLE):
            end, begin = begin, max(0, begin - at_once)
            kernels.rootward(
                x[begin:end], self._up, self._law, self._kind, self._top, *points, *self._groups, *tables,
                self._log_rate, row, mass, sent, upto,
            )  # fmt: skip
            at_most[begin:end] = mass[0, : end - begin]
            kernels.leafward(
                x[begin:end], weight[begin:end], self._up, self._law, self._kind, *points, *self._groups, *tables,
                self._log_hazard, row, values, mass, sent, upto, node_wins, group_wins, density[begin:end],
            )  # fmt: skip
        atom = 0.0
        if self._ties[0] > 0.0 and begin == 0 and (not len(x) or x[0] == 0.0):
            node_wins[0] = atom = at_most[0] if len(x) else 1.0
        seen = slice(begin, None)
        at_most = np.maximum.accumulate(np.minimum(at_most, 1.0))  # what is wrong with its last digits aside
        maximum = MaximumLaw(x[seen], at_most[seen], density[seen], weight[seen], atom)
        return self._shared_out(node_wins, group_wins, maximum)

    def _shared_out(self, node_wins: Floats, group_wins: Floats, maximum: MaximumLaw) -> Winners:
        """The probability of each action: those that tie have equal parts."""
        total = float(node_wins.sum() + group_wins @ self._groups[2])
        share = node_wins / np.maximum(self._ties, 1.0) / total
        group = share[self._owner]
        group[self._kept] = group_wins / self._n_each[self._kept] / total
        return Winners(np.where(self._choosable, share[self._node], 0.0), group, maximum, total)


def _gauss_legendre(edges: Floats) -> tuple[Floats, Floats]:
    """Points between edges, and their weights."""
    node, share = np.polynomial.legendre.leggauss(POINTS)
    half = 0.5 * np.diff(edges)[:, None]
    return (edges[:-1, None] + half * (node + 1.0)).ravel(), (half * share).ravel()
