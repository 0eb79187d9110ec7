"""Posterior files of version 1, which kept the messages of every touched node: the evidence behind them.

Where parameters are numbers, an action's state says what was observed there, and the rest is made again from that. In
contexts an action's rows [C | E | f] say L'M and L'eta alone, so that where its covariance L L' is singular part of the
evidence is only to be found in messages: then these are kept as they are, in files that are written later as well, and
the posterior is *partial*. It answers and learns as before; only its evidence cannot be taken elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bough._arrays import Flags, Floats, Nodes
from bough._storage import Contents
from bough.inference.engine import Engine
from bough.inference.kernels import vector
from bough.inference.vector import VectorEngine
from bough.model.likelihood import LARGEST

_AGREEMENT = 1e-6  # relative: to which messages are those that others make; rotations of 10^9 rows are off by less
_FARTHEST = 1e6 * LARGEST  # the root of a sum of squares of 10^12 rewards
_BLOCK = 1 << 18  # numbers that are checked at once


def restore_version_1(engine: Any, contents: Contents) -> None:
    """Take over what a file of version 1 has of a fresh engine."""
    nodes = _checked_slots(engine, contents)
    if isinstance(engine, VectorEngine):
        _restore_vector(engine, contents, nodes)
    else:
        _restore_scalar(engine, contents, nodes)


def restore_messages(engine: Any, contents: Contents) -> None:
    """Take over the messages that a file keeps because its evidence, which the engine has already, does not say all."""
    nodes = contents.array("touched", np.int32, (engine.slots.count,))
    if not isinstance(engine, VectorEngine) or not engine.is_partial:
        raise ValueError("there are messages beside evidence that says it all")
    if (np.sort(nodes) != engine.slots.leafward[0]).any():
        raise ValueError("the touched nodes are not those above the evidence")
    messages = _checked_messages(engine, contents, nodes)
    surprise = _checked_surprise(engine, contents)
    _check_kept(engine, nodes, *messages)
    engine.keep_messages(engine.slots.find(nodes), *messages, surprise)


def _checked_slots(engine: Engine, contents: Contents) -> Nodes:
    """The touched nodes, which are those of some sequence of observations."""
    tree = engine.model.tree
    node = contents.array("touched", np.int32, (None,))
    parent = contents.array("touched_parent", np.int32, (len(node),))
    sound = len(node) <= tree.n_nodes and len(np.unique(node)) == len(node)
    if sound and len(node):
        sound = bool((node >= 0).all() and (node < tree.n_nodes).all() and (parent < np.arange(len(node))).all())
        sound = sound and parent[0] == -1 and node[0] == 0 and bool((parent[1:] >= 0).all())
        sound = sound and bool((tree.parent[node[1:]] == node[parent[1:]]).all())
    if sound:
        ends = np.ones(len(node), dtype=np.bool_)  # of paths, which are actions
        ends[parent[1:]] = False
        sound = bool(_is_action(engine, node[ends]).all())
    if not sound:
        raise ValueError("the touched nodes do not fit the tree")
    return node


def _is_action(engine: Any, nodes: Nodes) -> Flags:
    tree = engine.model.tree
    return np.asarray(tree.child_start[nodes] == tree.child_start[nodes + 1])


def _check_counts(count: Floats, actions: Flags) -> None:
    if (count[~actions] != 0.0).any() or (count[actions] <= 0.0).any():
        raise ValueError("there are observations of nodes that are no actions, or actions without any")


def _restore_scalar(engine: Engine, contents: Contents, nodes: Nodes) -> None:
    conjugate = engine.model.kind.is_conjugate
    state = contents.array("state", np.float64, (len(nodes), 6 if conjugate else 9))
    actions = _is_action(engine, nodes)
    _check_counts(state[:, 4], actions)
    if (state[~actions, 5:] != 0.0).any():
        raise ValueError("the state has rewards of nodes that are no actions")
    m, eta, _, _, count = state[actions, :5].T
    if conjugate:
        noise = engine.model.likelihood.noise_deviation**2
        if (np.abs(m * noise - count) > _AGREEMENT * count).any():
            raise ValueError("the state has precisions that its counts do not give")
        table = np.column_stack([count, float(engine.model.mean) + eta / m, state[actions, 5]])
    else:
        total, exposure, cavity, width = state[actions, 5:].T
        squares = np.maximum(total, total**2 / count)  # were not kept: the least that whole numbers can have
        table = np.column_stack([count, total, squares, exposure, m, eta, cavity, width])
    if not engine.kind.sound(table).all():
        raise ValueError("the state is none that observations could have made")
    engine.place(nodes[actions], table)


def _restore_vector(engine: VectorEngine, contents: Contents, nodes: Nodes) -> None:
    triangle, pull, target = messages = _checked_messages(engine, contents, nodes)
    count = contents.array("count", np.float64, (len(nodes),))
    actions = _is_action(engine, nodes)
    _check_counts(count, actions)
    table = _recovered(engine, triangle[actions], pull[actions].transpose(0, 2, 1), target[actions], count[actions])
    engine.place(nodes[actions], table)
    engine.is_partial = True  # the rewards' sum was not kept
    surprise = _checked_surprise(engine, contents)
    slots = engine.slots.find(nodes)
    if not all(_close(*pair).all() for pair in zip(_made(engine, slots), messages, strict=True)):
        _check_kept(engine, nodes, *messages)
        engine.keep_messages(slots, *messages, surprise)
        return
    share = count[actions] / max(count.sum(), 1.0)
    rows = engine.slots.row[slots[actions]]
    rest = max(surprise - float(engine._account[0]), 0.0)
    engine._table[rows, vector.RESIDUAL] = rest * share * engine.model.likelihood.noise_deviation**2
    engine._account[0] = surprise


def _checked_surprise(engine: VectorEngine, contents: Contents) -> float:
    """The sum of the squared surprises, of which the evidence that the engine has explains a part or all."""
    surprise, least = float(contents.array("surprise", np.float64, (1,))[0]), float(engine._account[0])
    if not surprise >= least * (1.0 - _AGREEMENT) - _AGREEMENT:
        raise ValueError(f"surprise is {surprise:g}; the evidence alone has {least:g}")
    return surprise


def _checked_messages(engine: VectorEngine, contents: Contents, nodes: Nodes) -> tuple[Floats, Floats, Floats]:
    """C, E' and f of the touched nodes: rotations keep C'C - I = L'ML and C'E = L'M, with the same M."""
    n, d = len(nodes), engine.model.dim
    triangle = contents.array("triangle", np.float64, (n, d, d))
    pull = contents.array("pull", np.float64, (n, d, d))
    target = contents.array("target", np.float64, (n, d))
    diagonal = np.diagonal(triangle, axis1=1, axis2=2)
    sound = bool((diagonal >= 1.0 - _AGREEMENT).all()) and not np.tril(triangle, -1).any()
    sound = sound and bool((np.abs(triangle) < LARGEST).all() and (np.abs(pull) < LARGEST).all())
    step = max(1, _BLOCK // (d * d))
    for start in range(0, n if sound else 0, step):
        part = slice(start, start + step)
        L = engine.model.class_factors[engine.model.classes.of_node[nodes[part]]]
        sound = sound and _are_made_of_rows(triangle[part], pull[part].transpose(0, 2, 1), L)
    if not sound:
        raise ValueError("triangle and pull are not such as rows could have made")
    if not (np.abs(target) < _FARTHEST).all():
        raise ValueError("target has numbers that are too large to compute with")
    return triangle, pull, target


def _are_made_of_rows(C: Floats, E: Floats, L: Floats) -> bool:
    """Whether C'C - I is C'E L, but for rounding; in units of the largest entry, whose square may be no number."""
    size = np.abs(C).max(axis=(1, 2), keepdims=True)
    C, E, identity = C / size, E / size, np.eye(C.shape[1]) / size**2
    off = np.abs(C.transpose(0, 2, 1) @ (C - E @ L) - identity).max(axis=(1, 2))
    reach = np.abs(E).sum(axis=(1, 2)) * np.abs(L).sum(axis=(1, 2))
    return bool((off <= _AGREEMENT * (1.0 + reach)).all())


def _check_kept(engine: VectorEngine, nodes: Nodes, triangle: Floats, pull: Floats, target: Floats) -> None:
    """Refuse messages that may not differ from those of the evidence, which the engine has, in the way they do.

    Where an action's covariance is singular, what is missing in the evidence is missing above: actions' own rows are
    those of their evidence, and inner nodes know no less than from it.
    """
    slots, actions = engine.slots.find(nodes), _is_action(engine, nodes)
    made = _made(engine, slots)
    singular = np.linalg.matrix_rank(engine.model.class_factors) < engine.model.dim
    sound = bool(singular[engine.model.classes.of_node[nodes[actions]]].any())
    for found, wanted in zip(made, (triangle, pull, target), strict=True):
        sound = sound and bool(_close(found[actions], wanted[actions]).all())
    if sound:
        size = np.abs(triangle).max(axis=(1, 2), keepdims=True)
        known, least = triangle / size, made[0] / size
        more = known.transpose(0, 2, 1) @ known - least.transpose(0, 2, 1) @ least
        sound = bool((np.linalg.eigvalsh(more)[:, 0] >= -_AGREEMENT * triangle.shape[1]).all())
    if not sound:
        raise ValueError("its messages are not those of its actions")


def _made(engine: VectorEngine, slots: Nodes) -> tuple[Floats, Floats, Floats]:
    """The messages at slots that the evidence makes."""
    return engine._triangle[slots], engine._pull[slots], engine._target[slots]


def _close(found: Floats, wanted: Floats) -> Flags:
    """(n,) whether the numbers of each slot are the same, but for rounding."""
    rest = tuple(range(1, wanted.ndim))
    size, off = np.abs(wanted).max(axis=rest, initial=0.0), np.abs(found - wanted).max(axis=rest, initial=0.0)
    return np.asarray(off <= _AGREEMENT * (1.0 + size))


def _recovered(engine: VectorEngine, C: Floats, E: Floats, f: Floats, count: Floats) -> Floats:
    """The least evidence that gives actions these rows: with P = C'C - I = L'ML = V diag(p) V', R = p^-1/2 V' C'E."""
    d, noise = engine.model.dim, engine.model.likelihood.noise_deviation
    mean = np.asarray(engine.model.mean)
    values, vectors = np.linalg.eigh(C.transpose(0, 2, 1) @ C - np.eye(d))
    seen = values > 1e-12 * np.maximum(values[:, -1:], 1.0)
    inverse = np.where(seen, 1.0 / np.sqrt(np.where(seen, values, 1.0)), 0.0)
    half = inverse[:, :, None] * vectors.transpose(0, 2, 1) @ C.transpose(0, 2, 1)
    rows = np.concatenate([half @ E, half @ f[:, :, None]], axis=2)  # (n, d, d + 1), in units of the noise
    r = np.linalg.qr(rows)[1] if len(rows) else rows
    r = r * np.where(np.einsum("nii->ni", r[:, :, :d]) < 0.0, -1.0, 1.0)[:, :, None]
    r = r * noise
    r[:, :, d] += r[:, :, :d] @ mean
    table = np.zeros((len(C), engine.kind.width))
    vector.pack(r, vector.TRIANGLE, table)
    table[:, vector.COUNT] = count
    return table
