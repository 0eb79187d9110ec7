"""What people read of an experiment: its best actions, its tree, names, what happened over time, and why.

All numbers of one answer are of one moment. Means, deviations and intervals are those of the mean reward, on the scale
of the rewards; of a category, that of an action like it. In a model with contexts they are those in a context that is
given, or else in the average context of the decisions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import numpy as np

from bough import _checks
from bough._arrays import Floats, Integers, Nodes
from bough.policies.posterior_policy import PosteriorPolicy
from bough.service.explain import explained
from bough.service.name_search import find_nodes
from bough.service.node_numbers import Moment, NodeNumbers, best_places, fields, largest_places, moment_of
from bough.service.over_time import series
from bough.service.prior_view import prior
from bough.service.records import Name
from bough.service.schema import BestNode, FoundNode, Order, TreeColumns, TreeNode, TreeNodes, TreeView
from bough.service.traffic import Traffic
from bough.tree.levels import depth_of, level_of
from bough.tree.name_columns import integer_of

__all__ = ["Order", "explained", "nested", "prior", "search", "series", "top", "tree"]

_DIGITS = 6  # that numbers of the tree are rounded to, so that an answer stays small

# -- the best --------------------------------------------------------------------------------------


def top(
    agent: PosteriorPolicy,
    traffic: Traffic,
    n: int = 20,
    context: Any = None,
    level: int | str | None = None,
    order: Order = "mean",
) -> list[BestNode]:
    """The actions that are not retired, or the nodes of a level, with the highest mean rewards, the best first.

    With ``order="uncertain"`` come those first of which least is known, with ``order="newest"`` only those that were
    added since the beginning, the last one first, and ``order="retired"`` has retired actions only.

    >>> import bough
    >>> agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])), seed=0)
    >>> agent.update(["tea/green", "tea/black"], [2.0, 1.0])
    >>> [node.name for node in top(agent, Traffic(), n=2)]
    ['tea/green', 'tea/black']
    """
    n = _checks.whole_number("n", n, least=1)
    _checks.one_of("order", order, get_args(Order))
    added = traffic.history.added
    with moment_of(agent, traffic, context) as moment:
        if order == "newest":
            nodes = _newest(moment, list(added))[:n]
        else:
            nodes = _candidates(moment, level, order == "retired")
        score, variance = moment.scores(nodes)
        moment.keep_slots()  # so that nobody has to wait for what follows
    if not len(nodes):
        return []
    if order == "newest":
        best: Integers = np.arange(len(nodes))
    elif order == "uncertain":
        best = largest_places(variance, n)
    else:
        best = best_places(moment.likelihood, score, variance, n)
    numbers = moment.numbers(nodes[best], (score[best], variance[best]))
    intervals = zip(numbers.low.tolist(), numbers.high.tolist(), strict=True)
    found = []
    for node, one, interval in zip(nodes[best].tolist(), fields(moment, numbers), intervals, strict=True):
        path = moment.names(np.array(moment.path(node), dtype=np.int32))
        found.append(BestNode(*one, *interval, path, added.get(one[0])))
    return found


def _newest(moment: Moment, added: list[Name]) -> Nodes:
    """The actions that were added, the last one first: those that are on top of the tree, and those that are told."""
    catalogue = moment.catalogue
    later = np.arange(catalogue.n_tree_nodes, len(catalogue.parents), dtype=np.int32)
    later = later[~catalogue.are_gone(later)]
    found = {node: None for node in (catalogue.find(name) for name in added[::-1]) if node >= 0}
    found |= dict.fromkeys(later[::-1].tolist())
    nodes = [node for node in found if catalogue.is_action(node) and node not in moment.retired]
    return np.array(nodes, dtype=np.int32)


def _candidates(moment: Moment, level: Any, retired: bool) -> Nodes:
    """The actions, or the nodes of a level, that are retired, or that are not."""
    catalogue, tree = moment.catalogue, moment.model.tree
    out = np.array(sorted(moment.retired), dtype=np.int32)
    if level is None and retired:
        return out
    if level is None:
        nodes = catalogue.actions
    else:
        depth = depth_of(tree, level)
        inside = np.arange(*tree.level_start[depth : depth + 2], dtype=np.int32)
        later = np.arange(tree.n_nodes, len(catalogue.parents), dtype=np.int32)
        nodes = np.append(inside, later[[catalogue.depth(node) == depth for node in later.tolist()]])
        nodes = nodes[~catalogue.are_gone(nodes)]
    return np.intersect1d(nodes, out) if retired else nodes if not len(out) else np.setdiff1d(nodes, out)


# -- the tree --------------------------------------------------------------------------------------


def tree(
    agent: PosteriorPolicy,
    traffic: Traffic,
    node: Name | None = None,
    levels: int = 2,
    most: int = 40,
    context: Any = None,
    most_nodes: int = 20_000,
) -> TreeColumns:
    """A node, the root unless given, its path, and its children down to some levels below it.

    A name that is a number may be given as text, unless another node is called so.

    Of each node at most the `most` children with the most decisions are shown, among equals those with the highest mean
    rewards; `more` says how many are not. There are at most about `most_nodes` in all: of the last level those below
    the nodes with the most decisions. Numbers have six digits, and intervals four. A `KeyError` where there is no such
    node.

    >>> import bough
    >>> agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])), seed=0)
    >>> agent.update(["tea/green", "tea/black"], [2.0, 1.0])
    >>> found = tree(agent, Traffic(), levels=1)
    >>> found.nodes.name, found.nodes.mean, found.nodes.more
    (['', 'tea', 'coffee'], [0.5, 1.0, 0.5], [0, 2, 0])
    """
    levels = _checks.whole_number("levels", levels, least=0)
    most = _checks.whole_number("most", most, least=1)
    room = _checks.whole_number("most_nodes", most_nodes, least=1) - 1
    with moment_of(agent, traffic, context) as moment:
        first = np.array([0 if node is None else _node(moment, node)], dtype=np.int32)
        path = np.array(moment.path(int(first[0])), dtype=np.int32)
        rows = [_Row(first, np.array([-1]), *moment.scores(first))]
        for _ in range(levels):
            rows.append(_row_below(moment, rows[-1], most, room))
            room -= len(rows[-1].nodes)
        rows[-1].count_children(moment)
        depth = moment.catalogue.depth(int(first[0]))
        moment.keep_slots()
    nodes, score, variance, more = (np.concatenate(column) for column in zip(*map(_Row.columns, rows), strict=True))
    numbers = _rounded(moment.numbers(nodes, (score, variance)))
    starts = np.cumsum([0, 0, *(len(row.nodes) for row in rows)])
    above = np.concatenate([start + row.above for start, row in zip(starts, rows, strict=False)])
    np.subtract.at(more, above[1:], 1)
    names, means, deviations, observed, decisions = (
        list(column) for column in zip(*fields(moment, numbers), strict=True)
    )
    retired = [place for place, one in enumerate(nodes.tolist()) if one in moment.retired]
    low, high = float(numbers.low[0]), float(numbers.high[0])
    new = traffic.history.added
    added = [place for place, name in enumerate(names) if name in new] if new else []
    return TreeColumns(
        moment.names(path), level_of(moment.model.tree, depth), low, high, round(float(moment.weights(first)[0][0])),
        short(np.array(moment.prior_deviations())).tolist(), moment.model.tree.sep,
        TreeNodes(
            names, above.tolist(), means, deviations, observed, decisions, more.tolist(), retired,
            short(numbers.low, 4).tolist(), short(numbers.high, 4).tolist(), added,
        ),
    )  # fmt: skip


def _node(moment: Moment, name: Name) -> int:
    number = integer_of(name) if isinstance(name, str) and moment.catalogue.find(name) < 0 else None
    return moment.catalogue.index(name if number is None or moment.catalogue.find(number) < 0 else number)


def nested(found: TreeColumns) -> TreeView:
    """The same, with the children of each node in it.

    >>> import bough
    >>> agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])), seed=0)
    >>> [child.name for child in nested(tree(agent, Traffic(), levels=1)).node.children]
    ['tea', 'coffee']
    """
    columns, retired = found.nodes, set(found.nodes.retired)
    numbers = zip(
        columns.name, columns.mean, columns.deviation, columns.observed_mean, columns.decisions, columns.more,
        strict=True,
    )  # fmt: skip
    nodes = [
        TreeNode(name, mean, deviation, observed, decisions, more, place in retired)
        for place, (name, mean, deviation, observed, decisions, more) in enumerate(numbers)
    ]
    for node, above in zip(nodes[1:], columns.parent[1:], strict=True):
        nodes[above].children.append(node)
    return TreeView(found.path, found.level, found.low, found.high, found.observations, nodes[0])


class _Row:
    """The nodes of one level that are shown, and which of the level above each hangs below."""

    def __init__(self, nodes: Nodes, above: Integers, score: Floats, variance: Floats) -> None:
        self.nodes, self.above, self.score, self.variance = nodes, above, score, variance
        self.n_children: Integers = np.zeros(len(nodes), dtype=np.int64)

    def count_children(self, moment: Moment) -> tuple[Nodes, Integers]:
        """The children of all nodes, and whose they are."""
        below, above = moment.catalogue.children(self.nodes)
        self.n_children = np.bincount(above, minlength=len(self.nodes))
        return below, above

    def columns(self) -> tuple[Nodes, Floats, Floats, Integers]:
        """What is shown of it."""
        return self.nodes, self.score, self.variance, self.n_children


def _row_below(moment: Moment, row: _Row, most: int, room: int) -> _Row:
    """The children to show of the nodes of a row, those of each in their order, as far as there is room for them."""
    below, above = row.count_children(moment)
    shown = np.minimum(row.n_children, most)
    if shown.sum() > room:  # only those below the nodes with the most decisions, so that the rest costs nothing
        order = np.argsort(-moment.decisions[row.nodes], kind="stable")
        opened = np.zeros(len(row.nodes), dtype=np.bool_)
        opened[order[np.cumsum(shown[order]) <= room]] = True
        below, above = below[opened[above]], above[opened[above]]
    score, variance = moment.scores(below)
    decisions = moment.decisions[below]
    reward = np.asarray(moment.likelihood.expected_reward(score, variance))
    order = np.lexsort((below, -reward, -decisions, above))
    first = np.concatenate([[0], np.cumsum(np.bincount(above, minlength=len(row.nodes)))[:-1]])
    kept = order[np.arange(len(order)) - first[above[order]] < most]
    return _Row(below[kept], above[kept], score[kept], variance[kept])


def _rounded(numbers: NodeNumbers) -> NodeNumbers:
    names = ("mean", "deviation", "low", "high", "observed_mean")
    columns: dict[str, Any] = {name: short(getattr(numbers, name)) for name in names}
    return replace(numbers, **columns)


def short(values: Floats, digits: int = _DIGITS) -> Floats:
    """Numbers rounded to so many significant digits, which JSON writes in as many.

    >>> short(np.array([0.123456789, -12345678.9, 0.0, np.nan])).tolist()
    [0.123457, -12345700.0, 0.0, nan]
    """
    size = np.abs(values)
    known = np.isfinite(size) & (size > 1e-300)
    exponent = np.zeros(len(values))
    np.log10(size, out=exponent, where=known)
    places = digits - 1 - np.floor(exponent)
    scale = 10.0 ** np.minimum(np.abs(places), 300.0)
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.where(places >= 0.0, np.rint(values * scale) / scale, np.rint(values / scale) * scale)
    return np.asarray(rounded)


# -- names -----------------------------------------------------------------------------------------


def search(agent: PosteriorPolicy, traffic: Traffic, text: str, n: int = 20, context: Any = None) -> list[FoundNode]:
    """The nodes whose names contain a text, in any case: exact ones, then those that begin so, then by decisions.

    >>> import bough
    >>> agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])), seed=0)
    >>> [(node.name, node.path) for node in search(agent, Traffic(), "GREEN")]
    [('tea/green', ['', 'tea', 'tea/green'])]
    """
    if not isinstance(text, str):
        raise ValueError(f"text is {text!r:.80}; give a part of a name")
    n = _checks.whole_number("n", n, least=1)
    with moment_of(agent, traffic, context) as moment:
        catalogue, decisions = moment.catalogue, moment.decisions
    chosen = find_nodes(catalogue, decisions, text, n)  # nobody has to wait for it
    with moment_of(agent, traffic, context) as moment:
        if moment.catalogue is not catalogue:  # there is another since, with other numbers
            chosen = [moment.catalogue.find(catalogue.name(node)) for node in chosen]
        nodes = np.array([node for node in chosen if node >= 0], dtype=np.int32)
        found = list(fields(moment, moment.numbers(nodes)))
        paths = [moment.names(np.array(moment.path(node), dtype=np.int32)) for node in nodes.tolist()]
    retired = [node in moment.retired for node in nodes.tolist()]
    return [FoundNode(*one, path, out) for one, path, out in zip(found, paths, retired, strict=True)]
