"""Blocks of decisions, each from a joint draw of its own, in compiled code that threads can share.

`of_searches` draws the touched nodes and searches the rest, `of_draws` draws all nodes that it is given. What either
returns takes a generator and a block, changes nothing else, and gives the k best nodes with their scores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np

from bough._arrays import Floats, Nodes
from bough.inference.engine import Engine
from bough.inference.kernels import many_scalar, many_vector
from bough.inference.scalar import ScalarEngine
from bough.inference.search import Search
from bough.inference.vector import VectorEngine

Block: TypeAlias = Callable[[np.random.Generator, int, Floats | None], tuple[Nodes, Floats]]
"""From a generator, the number of decisions and their (n, d) contexts: (n, k) nodes and (n, k) scores."""

_MOST = 64  # decisions in contexts that share a pass over the laws
_NUMBERS = 256  # decisions without contexts
_ROOM = 2**22  # scores of a block that are held at once


def block_size(engine: Engine, n_nodes: int) -> int:
    """How many decisions make a block, where each draws that many nodes."""
    return _NUMBERS if engine.model.is_scalar else max(1, min(_MOST, _ROOM // max(n_nodes, 1)))


def of_searches(search: Search, engine: Engine, contexts: Floats | None, k: int, excluded: Nodes, scale: float) -> (
    Block | None
):  # fmt: skip
    """Decisions by search; None where the tree cannot be searched. A first node of -1 says that actions may tie."""
    if contexts is None:
        capped = search.switch.ready(engine, scale)
        if capped is not None:
            return capped.many(k, excluded)
        prepared = search.without(engine, None, excluded, scale)
        return None if prepared is None else lambda rng, n, _: prepared.many(rng, n, k)
    ready = search.ready(engine, excluded)
    if ready is None:
        return None
    untouched, slots = ready
    vector = cast(VectorEngine, engine)
    factor, mean, *others = vector.draw_arrays()
    laws = tuple(others)
    touched = engine.slots
    place = _places(touched.row < 0)
    every = np.arange(touched.count, dtype=np.int32)
    typical = scale * engine.class_deviations(contexts[0]) if len(contexts) else np.zeros(len(factor))
    arrays = untouched.search_arrays(slots, typical, k)

    def block(rng: np.random.Generator, n: int, contexts: Floats | None) -> tuple[Nodes, Floats]:
        x = np.ascontiguousarray(cast(Floats, contexts).T)
        deviation = many_vector.class_deviations(x, factor, scale)
        tree = (touched.parent, every, touched.class_, place)
        drawn = _drawn(x, rng, scale, tree, mean, deviation, laws)
        nodes, scores = np.empty((n, k), dtype=np.int32), np.empty((n, k))
        given: tuple[Any, ...] = (x, rng, drawn, mean, deviation, *arrays, nodes, scores)
        many_vector.best_of_searches(*given)
        return nodes, scores

    return block


def _drawn(
    x: Floats, rng: np.random.Generator, scale: float, tree: tuple[Nodes, ...], mean: Floats, deviation: Floats,
    laws: tuple[Floats, ...],
) -> Floats:  # fmt: skip
    """(B, n) the scores of nodes, which come by parent, slot, class and place, for each decision of a block."""
    n_inside = int(tree[-1].max(initial=-1)) + 1
    out, vectors = np.empty((x.shape[1], len(tree[0]))), np.empty((n_inside, *x.shape))
    given: tuple[Any, ...] = (x, rng, scale, *tree, mean, deviation, *laws, vectors, out)
    many_vector.draw(*given)
    return out


def of_draws(engine: Engine, nodes: Nodes, parent_position: Nodes, candidates: Nodes, k: int, scale: float) -> Block:
    """Decisions among candidates by drawing the nodes (ascending, closed under parents); ties in random order."""
    wanted = np.searchsorted(nodes, candidates).astype(np.int32)
    slots = engine.slots.find(nodes)
    classes = engine.model.classes.of_node.take(nodes, mode="clip")  # nodes beyond the tree's have slots
    parents = np.ascontiguousarray(parent_position, dtype=np.int32)
    if engine.model.is_scalar:
        scalar = cast(ScalarEngine, engine)
        deviation = scalar.class_deviations()
        _, mean, law = scalar.draw_arrays()

        def block(rng: np.random.Generator, n: int, _: Floats | None) -> tuple[Nodes, Floats]:
            top, scores = np.empty((n, k), dtype=np.int32), np.empty((n, k))
            many_scalar.best_of_drawn(
                rng, scale, parents, classes, deviation, mean, slots, law, wanted, top, scores
            )  # fmt: skip
            return nodes[top], scores

        return block
    factor, centre, *others = cast(VectorEngine, engine).draw_arrays()
    laws = tuple(others)
    inside = np.zeros(len(nodes), dtype=np.bool_)
    inside[parents[(slots >= 0) & (parents >= 0)]] = True  # vectors are wanted where touched nodes are below
    place = _places(inside)

    def block_in_contexts(rng: np.random.Generator, n: int, contexts: Floats | None) -> tuple[Nodes, Floats]:
        x = np.ascontiguousarray(cast(Floats, contexts).T)
        deviation = many_vector.class_deviations(x, factor, scale)
        drawn = _drawn(x, rng, scale, (parents, slots, classes, place), centre, deviation, laws)
        top, scores = np.empty((n, k), dtype=np.int32), np.empty((n, k))
        many_vector.best_of_drawn(rng, drawn, wanted, top, scores)
        return nodes[top], scores

    return block_in_contexts


def _places(inside: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Nodes:
    """(n,) the number of each node inside the tree among them; -1 elsewhere."""
    return np.where(inside, np.cumsum(inside) - 1, -1).astype(np.int32)
