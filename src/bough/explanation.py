"""What a posterior says of its nodes, as a table; and of one action, as the path that leads to it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, NamedTuple, cast

import numpy as np

from bough import _checks
from bough._arrays import Floats, Integers, Nodes
from bough._frames import make_frame
from bough._text import rounded
from bough.data.rows import checked_context, refuse_factors
from bough.inference.answers import Answers
from bough.inference.crossed import CrossedEngine
from bough.model.likelihood import Likelihood
from bough.tree.levels import depth_of, level_of
from bough.tree.tree import Tree

_MOST_SHOWN = 1_000  # lines of a figure


@dataclass(frozen=True, eq=False)
class NodeTable:
    """What is known of some nodes at one moment, as columns in their order."""

    tree: Tree
    nodes: Nodes
    mean: Floats
    """Of the parameter, or of its product with the context."""
    deviation: Floats
    weight: Floats
    """How many observations there are at or below each node, as they count now."""
    total: float
    """That of the root."""
    retired: frozenset[int]
    likelihood: Likelihood
    quantile: float
    """How many deviations an interval reaches to either side."""

    @classmethod
    def of(cls, posterior: Answers, interval: Any, context: Any) -> NodeTable:
        """The table of all nodes."""
        quantile = NormalDist().inv_cdf(0.5 + 0.5 * _checks.level(interval, "interval"))
        with posterior._lock:
            model = posterior.model  # with all changes of the catalogue, so that the engine has the same nodes
            if context is not None or not model.is_scalar:
                context = checked_context(model, context)
            engine = posterior._engine
            mean, variance = engine.node_moments(context)
            weight = np.zeros(model.tree.n_nodes)
            weight[engine.slots.node] = engine.slot_weights()
            retired = frozenset(posterior._retired)
        nodes, total = np.arange(model.tree.n_nodes, dtype=np.int32), float(weight[0])
        return cls(model.tree, nodes, mean, np.sqrt(variance), weight, total, retired, model.likelihood, quantile)

    @property
    def reward(self) -> Floats:
        """The mean reward of an action with that parameter."""
        return self.likelihood.expected_reward(self.mean, self.deviation**2)

    @property
    def low(self) -> Floats:
        """Where the interval of the mean reward begins."""
        return np.asarray(self.likelihood.mean_reward(self.mean - self.quantile * self.deviation))

    @property
    def high(self) -> Floats:
        """Where it ends."""
        return np.asarray(self.likelihood.mean_reward(self.mean + self.quantile * self.deviation))

    @property
    def observations(self) -> Integers:
        """How many rewards were observed at or below each node."""
        return np.rint(self.weight).astype(np.int64)

    @property
    def share(self) -> Floats:
        """Of all observations."""
        return self.weight / self.total if self.total > 0.0 else self.weight

    def at(self, nodes: Any) -> NodeTable:
        """The rows of these nodes, in that order; only of a table of all nodes."""
        columns = {name: getattr(self, name)[nodes] for name in ("nodes", "mean", "deviation", "weight")}
        return replace(self, **columns)

    def of_level(self, level: Any) -> NodeTable:
        """The rows of one level, given by its depth or its name."""
        depth = depth_of(self.tree, level)
        start, end = self.tree.level_start[depth : depth + 2].tolist()
        return self.at(slice(start, end))

    def _levels(self) -> Any:
        """What the level of each node is called, or its depth."""
        depth, names = self.tree.depth[self.nodes], self.tree.levels
        return depth if names is None else [names[one] for one in depth.tolist()]

    def columns(self) -> dict[str, Any]:
        """What a frame has."""
        return {
            "name": one_type(self.tree.node_names.names(self.nodes)),
            "level": self._levels(),
            "path": paths(self.tree, self.nodes),
            "mean": self.mean,
            "deviation": self.deviation,
            "low": self.low,
            "high": self.high,
            "observations": self.observations,
            "share": self.share,
        }


def paths(tree: Tree, nodes: Nodes) -> list[str]:
    """Where each node hangs, as text such as "home/kitchen/kettle"; the root is "" where that is its name.

    A name that begins with its parent's and the separator, as those of inner nodes mostly do, is not repeated.
    """
    sep = tree.sep
    is_all = len(nodes) == tree.n_nodes
    needed, above = (nodes, tree.parent) if is_all else tree.with_ancestors(nodes)  # parents come first in both
    names = tree.node_names.names(needed)
    found: list[str] = []
    for name, parent in zip(names, above.tolist(), strict=True):
        text = str(name)
        if parent < 0:
            found.append(text)
            continue
        own = text.removeprefix(f"{names[parent]}{sep}")
        found.append(f"{found[parent]}{sep}{own}" if found[parent] else own)
    return found if is_all else [found[place] for place in np.searchsorted(needed, nodes).tolist()]


def one_type(names: list[Hashable]) -> list[Hashable]:
    """Names as a column of a frame can have them: all integers, or else all text."""
    kinds = set(map(type, names))
    return names if kinds <= {int} or kinds <= {str} else list(map(str, names))


# -- one action ------------------------------------------------------------------------------------


class ExplainedNode(NamedTuple):
    """A node on the path to an action, beside its siblings."""

    name: Hashable
    """The node's name."""
    level: int | str
    """What its level is called, or its depth where levels have no names."""
    path: str
    """Where it is in the tree, as text."""
    reward: float
    """The mean reward of an action with the parameter of this node, in the context if there is one."""
    low: float
    """Where the interval of `reward` begins."""
    high: float
    """Where it ends."""
    rank: int
    """1 where no sibling has a higher mean reward."""
    siblings: int
    """How many it is ranked among, itself included; retired actions are not."""
    observations: int
    """How many rewards were observed at the node or below it."""
    share: float
    """These as a part of all observations."""
    mean: float
    """Of the parameter, or of its product with the context."""
    deviation: float
    """The standard deviation of the same."""


class ExplainedEffect(NamedTuple):
    """What one level of a crossed factor adds to the score of an action.

    >>> import bough, polars
    >>> brand = bough.Factor({"left": "Acme"}, variance=0.25)
    >>> model = bough.GaussianModel(bough.Tree.from_nested(["left", "right"]), factors={"brand": brand})
    >>> effects = bough.Posterior(model).explain("left").effects
    >>> effects[0].factor, effects[0].level, effects[0].deviation
    ('brand', 'Acme', 0.5)
    >>> polars.DataFrame(effects)["level"].to_list()
    ['Acme']
    """

    factor: str
    """The factor's name."""
    level: Hashable
    """The level's name."""
    mean: float
    """What it is believed to add."""
    deviation: float
    """The standard deviation of that."""
    low: float
    """Where its interval begins."""
    high: float
    """Where it ends."""
    observations: int
    """How many rewards it had a part in."""
    share: float
    """Of all observations."""


@dataclass(frozen=True, repr=False, eq=False)
class Explanation:
    """The path from the root to an action, each node against its siblings; made by `Posterior.explain`.

    >>> import bough
    >>> tree = bough.Tree.from_paths(["tea/green", "tea/black", "coffee/filter", "coffee/espresso"])
    >>> posterior = bough.Posterior(bough.GaussianModel(tree))
    >>> posterior.update(["tea/green", "tea/black", "coffee/filter"], [2.0, 1.0, -1.0])
    >>> explanation = posterior.explain("tea/green")
    >>> print(explanation)
               mean reward  95% interval    rank  observations  share
    (root)             0.2   -1.2 to 1.7                     3   100%
    tea                0.9   -0.7 to 2.4  1 of 2             2    67%
    tea/green          1.4   -0.2 to 3.0  1 of 2             1    33%
    >>> explanation.nodes[1].rank
    1
    """

    name: Hashable
    """The action, or the category, that is explained."""
    interval: float
    """The level of the intervals."""
    nodes: tuple[ExplainedNode, ...]
    """From the root down to it."""
    note: str = ""
    """What is printed below the table: of a decision, its score and its propensity."""
    effects: tuple[ExplainedEffect, ...] = ()
    """What crossed factors add to the score: the brand of the action, and the store of a decision."""
    _sibling_rewards: tuple[Floats, ...] = field(default=())

    @classmethod
    def of(cls, posterior: Answers, name: Any, interval: Any, context: Any, factors: Any = None) -> Explanation:
        """`Posterior.explain`."""
        if isinstance(name, (list, np.ndarray)):
            raise ValueError(f"there are {np.size(name)} names, {name!r:.80}; give one name")
        with posterior._lock:
            end = posterior.model.tree.index(name)
            table = NodeTable.of(posterior, interval, context)
            effects = _effects_of(posterior, end, factors, table)
        tree = table.tree
        path = np.array(tree.path_nodes(end), dtype=np.int32)
        on_path = table.at(path)
        names, places = tree.node_names.names(path), paths(tree, path)
        reward, low, high = on_path.reward, on_path.low, on_path.high
        beside = tuple(table.at(_siblings(table, node)).reward for node in path.tolist())
        nodes = tuple(
            ExplainedNode(
                names[i], level_of(tree, i), places[i], float(reward[i]), float(low[i]), float(high[i]),
                1 + int((beside[i] > reward[i]).sum()), 1 + len(beside[i]), int(on_path.observations[i]),
                float(on_path.share[i]), float(on_path.mean[i]), float(on_path.deviation[i]),
            )
            for i in range(len(path))
        )  # fmt: skip
        return cls(names[-1], float(interval), nodes, effects=effects, _sibling_rewards=beside)

    def __repr__(self) -> str:
        return f"Explanation({self.name!r}, levels={len(self.nodes)})"

    def __str__(self) -> str:
        interval = f"{100 * self.interval:.3g}% interval"
        n_words = 2 if isinstance(self.nodes[0].level, str) else 1  # a depth is the number of the line
        table = [[*("", "level")[:n_words], "mean reward", interval, "rank", "observations", "share"]]
        for depth, node in enumerate(self.nodes):
            rank = f"{node.rank:,} of {node.siblings:,}" if depth else ""
            width = node.high - node.low
            interval = f"{rounded(node.low, width)} to {rounded(node.high, width)}"
            numbers = (rounded(node.reward, width), interval, rank, f"{node.observations:,}", f"{node.share:.0%}")
            table.append([*(_label(node.name), str(node.level))[:n_words], *numbers])
        for one in self.effects:
            width = one.high - one.low
            interval = f"{rounded(one.low, width)} to {rounded(one.high, width)}"
            mean = rounded(one.mean, width)
            numbers = (
                mean if mean.startswith("-") else f"+{mean}",
                interval,
                "",
                f"{one.observations:,}",
                f"{one.share:.0%}",
            )
            table.append([*(f"{one.factor} {one.level}", one.factor)[:n_words], *numbers])
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = (
            "  ".join([*map(str.ljust, row[:n_words], widths), *map(str.rjust, row[n_words:], widths[n_words:])])
            for row in table
        )
        return "\n".join([*(line.rstrip() for line in lines), *([self.note] if self.note else [])])

    def to_frame(self, backend: str | None = None) -> Any:
        """A frame with one row for each node of the path, and the columns of `ExplainedNode`.

        The rows of `effects`, which are parts of a score and no mean rewards, make a frame of their own, such as
        ``pandas.DataFrame(explanation.effects)``. `backend` is "pandas", "polars" or "pyarrow"; the first of them that
        is installed where it is None.

        >>> import bough
        >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])))
        >>> posterior.explain("left").to_frame("polars")["rank"].to_list()
        [1, 1]
        """
        columns = dict(zip(ExplainedNode._fields, map(list, zip(*self.nodes, strict=True)), strict=True))
        return make_frame({**columns, "name": one_type(columns["name"])}, backend)

    def plot(self, ax: Any = None) -> Any:
        """Draw the interval of each node of the path, over the mean rewards of its siblings; returns the axes.

        Crossed effects are not drawn: they are parts of a score, and no mean rewards. `effects` has them.
        """
        from bough.plotting import plot_intervals  # matplotlib loads when something is drawn

        labels = [_label(node.name) for node in self.nodes]
        low, mean, high = (np.array([getattr(node, what) for node in self.nodes]) for what in ("low", "reward", "high"))
        ax = plot_intervals(labels, mean, low, high, ax, beside=self._sibling_rewards)
        ax.set_title(f"{self.name}, its categories, and their siblings (grey)", fontsize=10)
        return ax


def _effects_of(posterior: Answers, node: int, factors: Any, table: NodeTable) -> tuple[ExplainedEffect, ...]:
    """The effects in the score of an action, and of a decision with these levels; nothing without factors."""
    engine, effects = posterior._engine, posterior._engine.model.effects
    if effects is None:
        refuse_factors(factors)
        return ()
    levels = effects.some_codes(factors)
    tree, crossed = engine.model.tree, cast(CrossedEngine, engine)
    wanted = effects.of_action(int(np.searchsorted(tree.leaves, node))).tolist() if tree.is_action(node) else []
    if levels is not None:
        wanted += [first + int(code) for (_, _, first), code in zip(effects.decided, levels, strict=True) if code >= 0]
    mean, variance = crossed.effect_moments()
    counts, found = crossed.effect_counts(), []
    for effect in wanted:
        factor, level = effects.name_of(effect)
        deviation = float(np.sqrt(variance[effect]))
        width, count = table.quantile * deviation, float(counts[effect])
        found.append(
            ExplainedEffect(
                factor, level, float(mean[effect]), deviation, float(mean[effect]) - width, float(mean[effect]) + width,
                round(count), count / table.total if table.total > 0.0 else 0.0,
            )
        )  # fmt: skip
    return tuple(found)


def _siblings(table: NodeTable, node: int) -> Nodes:
    """The other children of its parent that are not retired."""
    parent = int(table.tree.parent[node])
    if parent < 0:
        return np.empty(0, dtype=np.int32)
    return np.setdiff1d(table.tree.children(parent), [node, *table.retired])


def _label(name: Hashable) -> str:
    return str(name) if name != "" else "(root)"


# -- many nodes ------------------------------------------------------------------------------------


def plot_best(posterior: Answers, level: Any, top: Any, context: Any, ax: Any) -> Any:
    """`Posterior.plot`."""
    from bough.plotting import plot_intervals  # matplotlib loads when something is drawn

    top = _checks.whole_number("top", top, least=1)
    if top > _MOST_SHOWN:
        raise ValueError(f"top is {top}; give at most {_MOST_SHOWN:,}, each on a line of its own")
    table = NodeTable.of(posterior, 0.95, context)
    of_level = table.tree.leaves if level is None else table.of_level(level).nodes
    what = "actions" if level is None else f"nodes of level {level_of(table.tree, depth_of(table.tree, level))}"
    nodes = np.setdiff1d(of_level, list(table.retired))
    shown = table.at(nodes[np.argsort(-table.at(nodes).reward, kind="stable")[:top]])
    labels = [_label(name) for name in table.tree.node_names.names(shown.nodes)]
    ax = plot_intervals(labels, shown.reward, shown.low, shown.high, ax)
    which = "All" if len(labels) == len(nodes) else f"The best {len(labels):,} of"
    ax.set_title(f"{which} {len(nodes):,} {what}, with 95% intervals", fontsize=10)
    return ax
