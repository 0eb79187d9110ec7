"""Posterior files of version 1, which kept the messages of every touched node: the evidence behind them.

Where parameters are numbers, an action's state says what was observed there, and the rest is made again from that. In
contexts an action's rows [C | E | f] say L'M and L'eta alone, so that where its covariance L L' is singular part of the
evidence is only to be found in messages: then these are kept as they are, and the posterior is *partial*. It answers
and learns as before; only its evidence cannot be taken elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bough._arrays import Flags, Floats, Nodes
from bough._storage import Contents
from bough.inference.engine import Engine
from bough.inference.kernels import vector
from bough.inference.vector import VectorEngine

_AGREEMENT = 1e-6  # to which messages made again have to be those of the file


def restore_version_1(engine: Any, contents: Contents) -> None:
    """Take over what a file of version 1 has of a fresh engine."""
    nodes = _checked_slots(engine, contents)
    if isinstance(engine, VectorEngine):
        _restore_vector(engine, contents, nodes)
    else:
        _restore_scalar(engine, contents, nodes)


def _checked_slots(engine: Engine, contents: Contents) -> Nodes:
    """The touched nodes, which are those of some sequence of observations."""
    tree = engine.model.tree
    node = contents.array("touched", np.int32, (None,))
    parent = contents.array("touched_parent", np.int32, (len(node),))
    sound = len(np.unique(node)) == len(node)
    if sound and len(node):
        sound = bool((node >= 0).all() and (node < tree.n_nodes).all() and (parent < np.arange(len(node))).all())
        sound = sound and parent[0] == -1 and node[0] == 0 and bool((parent[1:] >= 0).all())
        sound = sound and bool((tree.parent[node[1:]] == node[parent[1:]]).all())
    if not sound:
        raise ValueError("the touched nodes do not fit the tree")
    return node


def _is_action(engine: Any, nodes: Nodes) -> Flags:
    tree = engine.model.tree
    return np.asarray(tree.child_start[nodes] == tree.child_start[nodes + 1])


def _restore_scalar(engine: Engine, contents: Contents, nodes: Nodes) -> None:
    conjugate = engine.model.kind.is_conjugate
    state = contents.array("state", np.float64, (len(nodes), 6 if conjugate else 9))
    actions = _is_action(engine, nodes)
    if (state[~actions, 4:] != 0.0).any() or (state[actions, 4] <= 0.0).any():
        raise ValueError("the state has observations of nodes that are no actions, or actions without any")
    m, eta, _, _, count = state[actions, :5].T
    if (m <= 0.0).any():
        raise ValueError("the state has a precision that is not positive")
    if conjugate:
        noise = engine.model.likelihood.noise_deviation**2
        if (np.abs(m * noise - count) > _AGREEMENT * count).any():
            raise ValueError("the state has precisions that its counts do not give")
        table = np.column_stack([count, float(engine.model.mean) + eta / m, state[actions, 5]])
    else:
        total, exposure, cavity, width = state[actions, 5:].T
        table = np.column_stack([count, total, total, exposure, m, eta, cavity, width])
    if not engine.kind.sound(table).all():
        raise ValueError("the state is none that observations could have made")
    engine.place(nodes[actions], table)


def _restore_vector(engine: VectorEngine, contents: Contents, nodes: Nodes) -> None:
    n, d = len(nodes), engine.model.dim
    triangle = contents.array("triangle", np.float64, (n, d, d))
    pull = contents.array("pull", np.float64, (n, d, d))
    target = contents.array("target", np.float64, (n, d))
    count = contents.array("count", np.float64, (n,))
    surprise = contents.array("surprise", np.float64, (1,))
    actions = _is_action(engine, nodes)
    diagonal = np.diagonal(triangle, axis1=1, axis2=2)
    below = np.abs(np.tril(triangle, -1)).max(axis=(1, 2), initial=0.0)
    if (diagonal < 1.0 - 1e-9).any() or (below > 1e-9 * diagonal.max(axis=1, initial=1.0)).any():
        raise ValueError("triangle is not upper triangular with a diagonal of 1 or more")
    if (count[~actions] != 0.0).any() or (count[actions] <= 0.0).any() or surprise[0] < 0.0:
        raise ValueError("count or surprise are none that observations could have made")
    table = _recovered(engine, triangle[actions], pull[actions].transpose(0, 2, 1), target[actions], count[actions])
    engine.place(nodes[actions], table)
    slots = engine.slots.find(nodes)
    messages = {"_triangle": triangle, "_pull": pull, "_target": target}
    agree = all(_close(getattr(engine, name)[slots], array) for name, array in messages.items())
    engine.is_partial = True  # the rewards' sum was not kept
    if not agree:
        singular = np.linalg.matrix_rank(engine.model.class_factors, hermitian=False) < d
        if not singular[engine.model.classes.of_node[nodes[actions]]].any():
            raise ValueError("its messages are not those of its actions")
        for name, array in messages.items():
            getattr(engine, name)[slots] = array
    rest = max(float(surprise[0]) - float(engine._account[0]), 0.0) if agree else 0.0
    share = count[actions] / max(count.sum(), 1.0)
    rows = engine.slots.row[engine.slots.find(nodes[actions])]
    engine._table[rows, vector.RESIDUAL] = rest * share * engine.model.likelihood.noise_deviation**2
    engine._account[0] = surprise[0]


def _close(found: Floats, wanted: Floats) -> bool:
    size = np.abs(wanted).reshape(len(wanted), -1).max(axis=1, initial=0.0) if len(wanted) else np.zeros(0)
    off = np.abs(found - wanted).reshape(len(wanted), -1).max(axis=1, initial=0.0) if len(wanted) else np.zeros(0)
    return bool((off <= _AGREEMENT * (1.0 + size)).all())


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
