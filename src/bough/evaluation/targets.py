"""Targets: the probabilities of the policies that are evaluated.

Where a row's context does not matter, a target is its (S, K) probabilities, one row for each position of a list.
Otherwise it is asked row by row, and an (n, K) array never exists: `chances` has what evaluation needs of a target.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from bough import _checks, _seeds
from bough._arrays import Floats, Integers
from bough.data.logged_rows import LoggedRows
from bough.policies.base import NOTHING, Policy
from bough.policies.logged import LoggedPolicy
from bough.policies.thompson import HierTS
from bough.tree.tree import Tree

_SUM = 1e-6  # that probabilities may be from 1
_LARGE = 500_000  # numbers that a block of rows may take at once
_COUNTED = 10_000  # decisions of a policy of which no more is known than what it decides


def checked_policies(given: Any) -> dict[str, Any]:
    """The policies by their names, or a `ValueError`."""
    is_named = isinstance(given, Mapping) and len(given) > 0 and all(isinstance(name, str) for name in given)
    if is_named and not any(isinstance(one, (int, float, np.number)) for one in given.values()):
        for name, policy in given.items():
            if isinstance(policy, type):
                raise ValueError(f"policy {name!r} is the class {policy.__name__}; give an agent, which has learned")
        return dict(given)
    raise ValueError(
        f"policies is {given!r:.80}; give a mapping from names to agents, to dicts or arrays of probabilities, or to "
        "functions"
    )


# -- without contexts ------------------------------------------------------------------------------


def probabilities_of(policy: Any, tree: Tree, n_positions: int = 1, samples: int = 1_000, seed: Any = 0) -> Floats:
    """(S, K) how likely the policy is to take each action, at each position of a list.

    >>> import bough
    >>> tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]})
    >>> probabilities_of({"green": 0.25, "espresso": 0.75}, tree)
    array([[0.25, 0.  , 0.75]])
    """
    if isinstance(policy, LoggedPolicy):
        return _of_agent(policy, tree, n_positions, samples, seed)
    if isinstance(policy, Mapping):
        found = np.zeros(tree.n_actions)
        places = np.searchsorted(tree.leaves, tree.action_nodes(list(policy)))
        found[places] = _checks.vector(list(policy.values()), "chances")
        return checked_probabilities(found, tree.n_actions, n_positions)
    if isinstance(policy, Policy):
        return _counted(policy, tree, n_positions)
    if callable(policy):
        return checked_probabilities(policy(list(tree.actions)), tree.n_actions, n_positions)
    return checked_probabilities(policy, tree.n_actions, n_positions)


def checked_probabilities(given: Any, n_actions: int, n_rows: int) -> Floats:
    """(n_rows, K) probabilities, of which one row serves all; a `ValueError` where they are none."""
    found = _checks.floats(given, "probabilities")
    found = found[None] if found.ndim == 1 else found
    if found.ndim != 2 or found.shape[1] != n_actions or found.shape[0] not in (1, n_rows):
        wanted = f"({n_actions},)" + (f" or ({n_rows}, {n_actions})" if n_rows > 1 else "")
        raise ValueError(f"the probabilities have shape {np.shape(given)}; give {wanted}, one for each action")
    totals = found.sum(axis=1)
    if not (found >= 0.0).all() or not (np.abs(totals - 1.0) <= _SUM).all():
        worst = float(totals[np.argmax(np.abs(totals - 1.0))])
        raise ValueError(
            f"the probabilities of a policy have to be at least 0 and sum to 1; the least is {found.min():g}, and they "
            f"sum to {worst:.6g}"
        )
    return np.broadcast_to(found / totals[:, None], (n_rows, n_actions))


def _of_agent(agent: LoggedPolicy, tree: Tree, n_positions: int, samples: int, seed: Any) -> Floats:
    """The probability of being at a position is that of being among so many, less that of being among one fewer."""
    place = _places_of(agent, tree)
    known = np.flatnonzero(place >= 0)
    names = [tree.actions[i] for i in known.tolist()]
    among = np.zeros((n_positions + 1, tree.n_actions))
    _find_winners(agent, n_positions)
    for k in range(1, n_positions + 1):
        found = agent.propensity(names, k=None if n_positions == 1 else k, samples=samples, seed=seed)
        among[k, known] = np.where(found.is_upper_bound, 0.0, found.probability)
    at = np.maximum(np.diff(among, axis=0), 0.0)
    total = at.sum(axis=1, keepdims=True)
    return np.asarray(at / total)


def _find_winners(agent: LoggedPolicy, n_positions: int) -> None:
    """Have an agent's exact probabilities known, which it then gives: it is asked once, so that they may take long."""
    if n_positions == 1 and isinstance(agent, HierTS) and agent.explore:
        with agent._moment:
            agent._prepare()
            agent.posterior._winners(None, NOTHING, scale=agent.explore)


def _places_of(agent: LoggedPolicy, tree: Tree) -> Integers:
    """(K,) where each action of the tree is among those that the agent may choose; -1 where it is none of them."""
    nodes = agent._catalogue.actions
    nodes = nodes[~np.isin(nodes, list(agent._retired))]
    names = agent._catalogue.names(nodes)
    found = np.asarray(tree.node_names.find_all(names), dtype=np.int64)
    is_action = found >= 0
    is_action[is_action] = tree.child_start[found[is_action]] == tree.child_start[found[is_action] + 1]
    if not is_action.all():
        missing = names[int(np.flatnonzero(~is_action)[0])]
        raise ValueError(
            f"the agent may choose {missing!r}, which is not an action of the tree; give the tree that has its actions"
        )
    place = np.full(tree.n_actions, -1, dtype=np.int64)
    place[np.searchsorted(tree.leaves, found)] = np.arange(len(nodes))
    return place


def _counted(policy: Policy, tree: Tree, n_positions: int) -> Floats:
    """Counts of decisions: for policies of which no more is known; for a list they have to take k."""
    twin: Any = copy.deepcopy(policy)
    counts = np.zeros((n_positions, tree.n_actions))
    for _ in range(_COUNTED):
        chosen = [twin.decide(None)] if n_positions == 1 else twin.decide(None, k=n_positions)
        counts[np.arange(n_positions), np.searchsorted(tree.leaves, tree.action_nodes(chosen))] += 1.0
    return counts / _COUNTED


# -- with contexts ---------------------------------------------------------------------------------


class Chances(NamedTuple):
    """What a target does in the contexts of a log."""

    logged: Floats
    """(n,) its probability of the logged action."""
    mean: Floats
    """(K,) its mean probability of each action."""
    blocks: Callable[[], Any]
    """Its choices, as blocks (rows, places, probabilities): (m,) rows, and (m, c) actions with their probabilities.
    Where a target is sampled, c is 1."""


def chances(policy: Any, tree: Tree, rows: LoggedRows, samples: int, seed: Any) -> Chances:
    """What a target does in the contexts of the rows; agents are asked with `samples` draws per row."""
    if isinstance(policy, LoggedPolicy):
        return _chances_of_agent(policy, tree, rows, samples, seed)
    if isinstance(policy, Policy):
        return _chances_by_deciding(policy, tree, rows)
    if callable(policy):
        contexts = rows.numbers()
        return _chances_of_function(lambda block: policy(contexts[block]), tree, rows)
    same = probabilities_of(policy, tree)
    return _chances_of_function(lambda block: np.broadcast_to(same, (len(block), tree.n_actions)), tree, rows)


def block_rows(n_rows: int, n_actions: int) -> list[Integers]:
    """The rows, in blocks whose (m, K) arrays are small."""
    size = max(1, _LARGE // n_actions)
    return [np.arange(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def _chances_of_function(policy: Callable[[Integers], Any], tree: Tree, rows: LoggedRows) -> Chances:
    n, everything = len(rows.reward), np.arange(tree.n_actions)

    def blocks() -> Any:
        for block in block_rows(n, tree.n_actions):
            found = checked_probabilities(policy(block), tree.n_actions, len(block))
            yield block, np.broadcast_to(everything, found.shape), found

    logged, mean = np.empty(n), np.zeros(tree.n_actions)
    for block, _, found in blocks():
        logged[block] = found[np.arange(len(block)), rows.place[block]]
        mean += found.sum(axis=0) / n
    return Chances(logged, mean, blocks)


def _chances_of_agent(agent: LoggedPolicy, tree: Tree, rows: LoggedRows, samples: int, seed: Any) -> Chances:
    place = _places_of(agent, tree)
    twin = copy.deepcopy(agent)
    twin._rng = _seeds.generator(seed)
    logged = np.zeros(len(rows.reward))
    names = tree.actions
    for i, (action, context) in enumerate(zip(rows.place.tolist(), contexts_of(agent, rows), strict=True)):
        if place[action] >= 0:
            found = twin.propensity([names[action]], context, samples=samples, seed=twin._rng)
            logged[i] = 0.0 if found.is_upper_bound[0] else found.probability[0]
    return _sampled(logged, twin, tree, rows)


def _chances_by_deciding(policy: Policy, tree: Tree, rows: LoggedRows) -> Chances:
    """Whether the policy decides for the logged action: a probability's estimate from one draw, and unbiased."""
    twin = copy.deepcopy(policy)
    chosen = _places(tree, [twin.decide(context) for context in rows.numbers()])
    return _sampled((chosen == rows.place).astype(np.float64), twin, tree, rows)


def _sampled(logged: Floats, twin: Any, tree: Tree, rows: LoggedRows) -> Chances:
    """The chances of a policy whose choices are drawn, one for each row."""
    chosen = _places(tree, [twin.decide(context) for context in contexts_of(twin, rows)])

    def blocks() -> Any:
        yield np.arange(len(chosen)), chosen[:, None], np.ones((len(chosen), 1))

    return Chances(logged, np.bincount(chosen, minlength=tree.n_actions) / len(chosen), blocks)


def contexts_of(policy: Any, rows: LoggedRows) -> Any:
    """The contexts as a policy takes them: none where it has none."""
    if rows.context is None and rows.named is None:
        return [None] * len(rows.reward)
    if not isinstance(policy, LoggedPolicy):
        return rows.numbers()
    return [None] * len(rows.reward) if policy._model.is_scalar else rows.contexts_for(policy._model)


def _places(tree: Tree, names: list[Any]) -> Integers:
    return np.searchsorted(tree.leaves, tree.action_nodes(names)).astype(np.int64)
