"""Why an action was chosen, by what is known now."""

from __future__ import annotations

import copy
import math
from typing import Any, cast

import numpy as np

from bough.best import best_of
from bough.inference.crossed import CrossedEngine
from bough.policies.posterior_policy import PosteriorPolicy
from bough.service.node_numbers import Moment, NodeNumbers, fields, moment_of
from bough.service.records import DecisionRow, Name
from bough.service.schema import Explained, ExplainedNode, Sibling
from bough.service.traffic import Traffic
from bough.tree.levels import level_of
from bough.tree.names import UnknownNameError

_BESIDE = 4  # siblings that a node is shown beside
_CHEAP, _FEW = 2_500, 100_000  # nodes with rewards, and actions, of which it takes a tenth of a second what is best
_SAMPLES = 1_000  # where it cannot be known exactly


def explained(agent: PosteriorPolicy, decision: DecisionRow, traffic: Traffic | None = None) -> Explained:
    """Why the first action of a logged decision was chosen: the path to it, each node against its siblings.

    It is explained by what is known now, which may be more than when it was decided. A decision in a model with
    contexts whose own context was deleted is explained in the average one.

    >>> import bough
    >>> agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])), seed=0)
    >>> agent.update(["tea/green", "tea/black"], [2.0, 1.0])
    >>> row = DecisionRow(
    ...     1, "d1", 0.0, ["tea/green"], None, None, 1, 0, 2, [0.5], "learn", b"", 0.0, None, "at_once", False
    ... )
    >>> found = explained(agent, row)
    >>> print(found.sentence)
    of 2 categories, 'tea' looks best; its 2 rewards averaged 1.5
    >>> [(node.name, node.rank, node.of) for node in found.nodes]
    [('', 1, 1), ('tea', 1, 2), ('tea/green', 1, 2)]
    """
    posterior, action = agent.posterior, decision.actions[0]
    propensity = None if decision.propensity is None else decision.propensity[0]
    model = posterior._engine.model
    without = not model.is_scalar and decision.context is None
    context = None if model.is_scalar else decision.context
    try:
        with moment_of(agent, traffic or Traffic(), context) as moment:
            nodes = _explained_nodes(moment, moment.catalogue.index(action))
            now = posterior.n_observations
    except (UnknownNameError, ValueError) as error:
        return Explained(
            decision.id, action, [], "", f"it cannot be explained any more: {error}", propensity, None, None
        )
    seen = "1 reward" if now == 1 else f"{now:,} rewards"
    note = f"by what is known now, from {seen}; it was decided by version {decision.model_version} of the model"
    if without:
        note += ", in a context that has been deleted: these numbers are of the average context"
    if model.effects is not None:
        note += _effects_said(agent, action, decision)
    gain = _gain_left(agent, action, decision)
    drawn = None if decision.offered is None else decision.offered.get("drawn")
    if drawn is not None:
        drawn = float(np.asarray(model.likelihood.mean_reward(np.array([drawn])))[0])
    return Explained(decision.id, action, nodes, _sentence(nodes), note, propensity, gain, drawn)


def _effects_said(agent: PosteriorPolicy, action: Any, decision: DecisionRow) -> str:
    """What the brand of the action, and the store of the decision, add to its score."""
    with agent._moment:
        posterior = agent.posterior
        model, engine = posterior.model, cast(CrossedEngine, posterior._engine)
        effects, tree = model.effects, model.tree
        assert effects is not None
        wanted: list[int] = []
        if action in tree.actions:  # it may have become a category since, which has no brand
            wanted += effects.of_action(int(np.searchsorted(tree.leaves, tree.action_node(action)))).tolist()
        try:
            levels = effects.some_codes(decision.factors)
        except (KeyError, ValueError):  # of a model that there is no longer
            levels = None
        if levels is not None:
            decided = zip(effects.decided, levels.tolist(), strict=True)
            wanted += [first + int(code) for (_, _, first), code in decided if code >= 0]
        means = engine.effect_means()
        said = [
            f"{means[one]:+.2g} of the {factor} {level!r}" for one in wanted for factor, level in [effects.name_of(one)]
        ]
    return f"; in its score are {', '.join(said)}" if said else ""


def _explained_nodes(moment: Moment, end: int) -> list[ExplainedNode]:
    path = np.array(moment.path(end), dtype=np.int32)
    below, above = moment.catalogue.children(path[:-1])
    counts = np.isin(below, path) | ~np.isin(below, list(moment.retired))
    below, above = below[counts], above[counts]
    scores = moment.scores(below)
    reward = np.asarray(moment.likelihood.expected_reward(*scores))
    numbers = moment.numbers(path)
    weights, total = moment.weights(path)
    found = []
    for i, (name, mean, _, observed, decisions) in enumerate(fields(moment, numbers)):
        beside = np.flatnonzero((above == i - 1) & (below != path[i]))
        rank = 1 + int((reward[beside] > mean).sum())
        best = beside[np.argsort(-reward[beside], kind="stable")[:_BESIDE]]
        others = moment.numbers(below[best], (scores[0][best], scores[1][best]))
        found.append(
            ExplainedNode(
                name, level_of(moment.model.tree, i), mean, float(numbers.low[i]), float(numbers.high[i]),
                rank, 1 + len(beside), round(float(weights[i])),
                float(weights[i]) / total if total > 0.0 else 0.0, observed, decisions,
                _siblings(moment, others, rank),
            )
        )  # fmt: skip
    return found


def _siblings(moment: Moment, numbers: NodeNumbers, rank: int) -> list[Sibling]:
    """The best siblings of a node of some rank, which is counted among them."""
    intervals = zip(numbers.low.tolist(), numbers.high.tolist(), strict=True)
    rows = zip(fields(moment, numbers), intervals, strict=True)
    return [
        Sibling(name, mean, low, high, decisions, place + (place >= rank))
        for place, ((name, mean, _, _, decisions), (low, high)) in enumerate(rows, start=1)
    ]


def _sentence(nodes: list[ExplainedNode]) -> str:
    """What a manager reads: of the category right below the root, or of the action where that is there."""
    node = nodes[min(1, len(nodes) - 1)]
    words = {1: "best", 2: "second best", 3: "third best"}
    level = node.level if isinstance(node.level, str) else "action" if len(nodes) <= 2 else "category"
    kind = f"{level[:-1]}ies" if level.endswith("y") else f"{level}s"
    rank = words.get(node.rank, f"number {node.rank:,}")
    text = f"of {node.of:,} {kind}, {node.name!r} looks {rank}"
    if node.observed_mean is None:
        return f"{text}; it has no reward yet"
    if node.observations == 1:
        return f"{text}; its only reward was {node.observed_mean:.3g}"
    return f"{text}; its {node.observations:,} rewards averaged {node.observed_mean:.3g}"


def _gain_left(agent: PosteriorPolicy, action: Name, decision: DecisionRow) -> float | None:
    """How much better the best of what was offered is expected to be than the action; None where it takes long."""
    posterior, offered = agent.posterior, decision.offered or {}
    with posterior._lock:
        catalogue, engine = posterior._catalogue, posterior._engine
        node = catalogue.find(action)
        is_cheap = engine.slots.count <= _CHEAP and catalogue.n_actions <= _FEW and engine.model.is_scalar
        if not is_cheap or node < 0 or not catalogue.is_action(node) or node in posterior._retired:
            return None
        among, exclude = (
            None if offered.get(what) is None else [name for name in offered[what] if catalogue.find(name) >= 0]
            for what in ("among", "exclude")
        )
        twin = copy.copy(posterior)  # so that nobody has to wait for what follows
    try:
        best = best_of(twin, None, among, exclude, _SAMPLES, 0, with_retired=False)
    except (ValueError, KeyError):  # nothing of what was offered is left
        return None
    loss = float(best.expected_loss[np.searchsorted(best.tree.leaves, best.tree.index(action))])
    return loss if math.isfinite(loss) else None
