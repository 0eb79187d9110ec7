"""What a block of decisions computes, as functions that JAX compiles; docs/explanation/batches.md derives them.

Decisions are the last axis of every array, so that a law is read once for many of them. Arrays are padded to powers of
two, and the loops go over tiles of a fixed size as often as the tree needs: a function is compiled again for another
power of two, and not for another tree. All values are deviations from the prior mean.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from bough.batch import counters
from bough.batch.shapes import CLASS_TILE, GROUP_TILE, NODE_TILE, QUANTILE_FROM, QUANTILE_STEP

# What random words are for: a part of their key.
_NODES, _STEPS, _LEAVES, _RANKS, _GROUPS = range(1, 6)  # the last of them with one more for each of the k best

_KERNELS = ("kernel", "interpreted")  # plans; the second is for a machine without a GPU, and slow

_traced: list[str] = []  # the names of the functions that were compiled, one entry each time


def n_traces() -> int:
    """How often one of the functions here has been compiled, in this process."""
    return len(_traced)


def _kernels() -> Any:
    return import_module("bough.batch.kernels")


def _key(key: Any, purpose: Any) -> Any:
    return key[0], key[1] ^ jnp.uint32(purpose)


def _rows(first: Any, x: Any) -> Any:
    """(B,) the numbers of the decisions of a block."""
    return first + jnp.arange(x.shape[1], dtype=jnp.uint32)


def _tile(array: Any, start: Any, size: int) -> Any:
    return lax.dynamic_slice_in_dim(array, start, size)


# -- nodes inside the tree -------------------------------------------------------------------------


def _draw_nodes(
    x: Any,  # (d, B)
    first: Any,
    key: Any,
    laws: Any,  # (N, d, 2 d + 1) [A | F | o], F lower triangular
    parent: Any,  # (N,) positions
    node: Any,  # (N,) numbers
    starts: Any,  # (tiles,)
    n_tiles: Any,
    *,
    plan: str,
) -> tuple[Any, ...]:
    """d arrays (N, B), a draw of the touched nodes inside the tree: A theta_p + F n + o. Position 0 is above the root.

    There is an array for each coordinate, so that XLA can make all of them in one pass.
    """
    _traced.append("nodes")
    d, size = x.shape
    rows, dtype, pairs = _rows(first, x), x.dtype.type, (d + 1) // 2
    step = _affine_by_products if plan == "products" else _affine
    nothing = (jnp.zeros((len(parent), size), dtype),) * d
    if plan in _KERNELS:
        draw, numbers = _kernels().draw_tile, _key(key, _NODES)

        def by_kernel(i: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
            return draw(first, numbers, laws, parent, node, starts[i], values, interpret=plan == "interpreted")  # type: ignore[no-any-return]

        return lax.fori_loop(0, n_tiles, by_kernel, nothing)  # type: ignore[no-any-return]

    def body(i: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
        start = starts[i]
        at, number = _tile(parent, start, NODE_TILE), _tile(node, start, NODE_TILE)[:, None] * jnp.uint32(pairs)
        noise: list[Any] = []
        for pair in range(pairs):
            noise += counters.normals(_key(key, _NODES), rows, number + jnp.uint32(pair), dtype)[:2]
        above = [coordinate[at] for coordinate in values]
        # Behind a barrier, or each coordinate would draw all normals again.
        drawn = step(_tile(laws, start, NODE_TILE), above, lax.optimization_barrier(noise[:d]))
        return tuple(
            lax.dynamic_update_slice_in_dim(old, new, start, 0) for old, new in zip(values, drawn, strict=True)
        )

    return lax.fori_loop(0, n_tiles, body, nothing)  # type: ignore[no-any-return]


def _affine(laws: Any, above: list[Any], noise: list[Any]) -> list[Any]:
    """A theta_p + F n + o, as sums written out."""
    d, found = len(above), []
    for i in range(d):
        total = laws[:, i, 2 * d, None]
        for j in range(d):
            total = total + laws[:, i, j, None] * above[j]
        for j in range(i + 1):
            total = total + laws[:, i, d + j, None] * noise[j]
        found.append(total)
    return found


def _affine_by_products(laws: Any, above: list[Any], noise: list[Any]) -> list[Any]:
    """The same by matrix products, for vectors too long to write out."""
    stacked = jnp.stack([*above, *noise, jnp.ones_like(above[0])], axis=1)
    found = jnp.einsum("wij,wjb->iwb", laws, stacked, precision=lax.Precision.HIGHEST)
    return [found[i] for i in range(len(above))]


def _walk(
    x: Any,  # (d, B)
    first: Any,
    key: Any,
    values: tuple[Any, ...],  # d of (N, B)
    factor: Any,  # (n_classes, d, d) L, by column
    parent: Any,  # (M,) rows of what is returned
    class_: Any,  # (M,)
    node: Any,  # (M,)
    starts: Any,  # (tiles,)
    n_tiles: Any,
) -> tuple[Any, Any]:
    """(N + M, B) the scores of nodes inside the tree, touched ones first; (n_classes, B) the deviations of a step.

    Below a node without observations only the score matters: a walk of numbers.
    """
    _traced.append("walk")
    rows, dtype = _rows(first, x), x.dtype.type

    def deviations(roots: Any) -> Any:
        projected = jnp.einsum("cij,ib->cjb", roots, x, precision=lax.Precision.HIGHEST)
        return jnp.sqrt(jnp.square(projected).sum(axis=1))

    deviation = lax.map(deviations, factor.reshape(-1, CLASS_TILE, *factor.shape[1:])).reshape(len(factor), -1)
    scores = _projected(values, x)
    above = len(scores)

    def body(i: Any, scores: Any) -> Any:
        start = starts[i]
        noise = counters.normals(_key(key, _STEPS), rows, _tile(node, start, NODE_TILE)[:, None], dtype).first
        drawn = scores[_tile(parent, start, NODE_TILE)] + deviation[_tile(class_, start, NODE_TILE)] * noise
        return lax.dynamic_update_slice_in_dim(scores, drawn, above + start, 0)

    scores = jnp.concatenate([scores, jnp.zeros((len(parent), x.shape[1]), dtype)])
    return lax.fori_loop(0, n_tiles, body, scores), deviation


def _projected(values: tuple[Any, ...], x: Any) -> Any:
    """(N, B) the scores of vectors."""
    total = values[0] * x[0]
    for one, coordinate in zip(values[1:], x[1:], strict=True):
        total = total + one * coordinate
    return total


# -- the best so far -------------------------------------------------------------------------------


def _start(k: int, size: int, dtype: Any) -> tuple[Any, ...]:
    """The best so far: scores, what breaks ties, and codes, (k, B) each."""
    lowest = jnp.full((k, size), -jnp.inf, dtype)
    return lowest, lowest, jnp.zeros((k, size), jnp.int32)


def _largest(scores: Any, breaker: Any, place: Any) -> tuple[Any, Any, Any]:
    """The largest of (n, B) scores, its breaker and its place; a breaker of None leaves ties to the first place."""
    lowest = jnp.array(-jnp.inf, scores.dtype)
    if breaker is None:

        def larger(one: Any, other: Any) -> Any:
            takes = (one[0] > other[0]) | ((one[0] == other[0]) & (one[1] < other[1]))
            return tuple(jnp.where(takes, a, b) for a, b in zip(one, other, strict=True))

        score, where = lax.reduce((scores, place), (lowest, jnp.int32(2**31 - 1)), larger, (0,))
        return score, score, where

    def larger_in_turn(one: Any, other: Any) -> Any:
        takes = (one[0] > other[0]) | ((one[0] == other[0]) & (one[1] > other[1]))
        return tuple(jnp.where(takes, a, b) for a, b in zip(one, other, strict=True))

    breaker = jnp.broadcast_to(breaker, scores.shape)
    return lax.reduce((scores, breaker, place), (lowest, lowest, jnp.int32(0)), larger_in_turn, (0,))  # type: ignore[no-any-return]


def _inserted(best: tuple[Any, ...], score: Any, breaker: Any, code: Any) -> tuple[Any, ...]:
    """The k best with one more, in their order."""
    above = (best[0] > score) | ((best[0] == score) & (best[1] >= breaker))
    if len(best[0]) == 1:
        return tuple(jnp.where(above, old, new) for old, new in zip(best, (score, breaker, code), strict=True))
    before = jnp.concatenate([jnp.ones_like(above[:1]), above[:-1]])

    def moved(old: Any, new: Any) -> Any:
        down = jnp.concatenate([old[:1], old[:-1]])
        return jnp.where(above, old, jnp.where(before, new, down))

    return tuple(moved(old, new) for old, new in zip(best, (score, breaker, code), strict=True))


def _with_the_best(best: tuple[Any, ...], score: Any, breaker: Any, place: Any, offset: Any) -> tuple[Any, ...]:
    """The k best with the best of (n, B) scores, whose codes are their places and an offset."""
    if len(best[0]) == 1:
        found, broken, where = _largest(score, breaker, place)
        return _inserted(best, found, broken, offset + where)

    def next_best(_: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
        best, score = state
        found, broken, where = _largest(score, breaker, place)
        return _inserted(best, found, broken, offset + where), jnp.where(place == where, -jnp.inf, score)

    return lax.fori_loop(0, len(best[0]), next_best, (best, score))[0]  # type: ignore[no-any-return]


# -- groups of untouched actions -------------------------------------------------------------------


def _quantile(log_rate: Any, law: Any, tables: Any) -> Any:
    """Where a rate is that low, by the cubic through the four nearest entries of the law's table."""
    n = tables.shape[1]
    place = (log_rate - QUANTILE_FROM) * (1.0 / QUANTILE_STEP)
    i = jnp.clip(place.astype(jnp.int32), 1, n - 3)
    u = place - i.astype(place.dtype)
    flat, at = tables.reshape(-1), law * n + i
    a, b, c, e = flat[at - 1], flat[at], flat[at + 1], flat[at + 2]
    return (
        -u * (u - 1.0) * (u - 2.0) / 6.0 * a
        + (u + 1.0) * (u - 1.0) * (u - 2.0) / 2.0 * b
        - (u + 1.0) * u * (u - 2.0) / 2.0 * c
        + (u + 1.0) * u * (u - 1.0) / 6.0 * e
    )


def _best_of_groups(
    x: Any,  # (d, B)
    first: Any,
    key: Any,
    best: tuple[Any, ...],
    scores: Any,  # (N + M, B)
    deviation: Any,  # (n_classes, B)
    tables: Any,  # (n_laws, n)
    base: Any,  # (G,) rows of scores
    size: Any,  # (G,) how many actions; 0 where there is no group
    law: Any,  # (G,)
    class_: Any,  # (G,)
    counter: Any,  # (G,)
    n_tiles: Any,
    *,
    ties: bool,
) -> tuple[Any, ...]:
    """The k best with those of groups of actions alike: their order statistics, by one exponential each."""
    _traced.append("groups")
    rows, dtype, k = _rows(first, x), x.dtype.type, len(best[0])

    def body(i: Any, best: tuple[Any, ...]) -> tuple[Any, ...]:
        start = i * GROUP_TILE
        at, members, laws, classes, which = (
            _tile(array, start, GROUP_TILE)[:, None] for array in (base, size, law, class_, counter)
        )
        above, step = scores[at[:, 0]], deviation[classes[:, 0]]

        def drawn(time: Any, taken: Any, turn: Any) -> tuple[Any, Any]:
            word, _ = counters.words(_key(key, jnp.uint32(_GROUPS) + turn), rows, which)
            left = members - taken
            time = time + counters.exponential(word, dtype) / jnp.maximum(left, 1).astype(dtype)
            score = above + step * _quantile(jnp.log(time), laws, tables)
            return time, jnp.where(left > 0, score, -jnp.inf)

        time, score = drawn(jnp.zeros_like(above), jnp.zeros((1, 1), jnp.int32), jnp.uint32(0))
        place = lax.broadcasted_iota(jnp.int32, score.shape, 0)
        if k == 1:
            found, breaker, where = _largest(score, -time if ties else None, place)
            return _inserted(best, found, breaker, -1 - (start + where))

        def next_best(turn: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
            best, time, score, taken = state
            found, breaker, where = _largest(score, -time if ties else None, place)
            best = _inserted(best, found, breaker, -1 - (start + where))
            wins = place == where
            taken = taken + wins
            later, lower = drawn(time, taken, turn.astype(jnp.uint32) + jnp.uint32(1))
            return best, jnp.where(wins, later, time), jnp.where(wins, lower, score), taken

        none = jnp.zeros(score.shape, jnp.int32)
        return lax.fori_loop(0, k, next_best, (best, time, score, none))[0]  # type: ignore[no-any-return]

    return lax.fori_loop(0, n_tiles, body, best)  # type: ignore[no-any-return]


# -- touched actions -------------------------------------------------------------------------------


def _best_of_leaves(
    x: Any,  # (d, B)
    first: Any,
    key: Any,
    best: tuple[Any, ...],
    values: tuple[Any, ...],  # d of (N, B)
    laws: Any,  # (R, C, q) a law packed, or for `products` (R, C, 2 d, d + 1) of it by rows
    bias: Any,  # (R, C) minus infinity where there is no action
    parent: Any,  # (R,)
    node: Any,  # (R, C)
    n_tiles: Any,
    *,
    tile: int,
    ties: bool,
    plan: str,
) -> tuple[Any, ...]:
    """The k best with those of touched actions, which need one normal each: x'(A theta_p + o) + |R x| z.

    The actions of a row are scored in pairs, one of the first half and one of the second, whose normals come of the
    same words.
    """
    _traced.append("leaves")
    rows, dtype, k, width = _rows(first, x), x.dtype.type, len(best[0]), node.shape[1]
    half = width // 2
    if plan in _KERNELS and k <= _kernels().MOST_KEPT:
        found = _kernels().best_of_rows(
            x, first, _key(key, _LEAVES), values, laws, bias, parent, node, n_tiles * tile, k=k, ties=ties,
            interpret=plan == "interpreted",
        )  # fmt: skip
        return _with_the_best(best, found[0], found[2] if ties else None, found[1], jnp.int32(0))
    moments = _by_products if plan == "products" else _written_out
    row = lax.broadcasted_iota(jnp.int32, (tile, half, x.shape[1]), 0) * width
    left_place = row + lax.broadcasted_iota(jnp.int32, row.shape, 1)

    def body(i: Any, best: tuple[Any, ...]) -> tuple[Any, ...]:
        start = i * tile
        at, law, barred = _tile(parent, start, tile), _tile(laws, start, tile), _tile(bias, start, tile)
        above = [coordinate[at] for coordinate in values]
        counter = _tile(node, start, tile)[:, :half, None]
        noise = counters.normals(_key(key, _LEAVES), rows, counter, dtype)

        def scored(part: slice, normal: Any) -> Any:
            mean, deviation = moments(x, above, law[:, part])
            return mean + deviation * normal + barred[:, part, None]

        left, right = scored(slice(None, half), noise.first), scored(slice(half, None), noise.second)
        breakers = (-noise.exponential, -noise.other_exponential)
        if k == 1:
            takes = right > left
            if ties:
                takes = takes | ((right == left) & (breakers[1] > breakers[0]))
            score, place = jnp.where(takes, right, left), jnp.where(takes, left_place + half, left_place)
            breaker = jnp.where(takes, *breakers[::-1]) if ties else None
        else:
            score, place = jnp.concatenate([left, right], 1), jnp.concatenate([left_place, left_place + half], 1)
            breaker = jnp.concatenate(breakers, 1) if ties else None
        score, place, breaker = (
            None if each is None else each.reshape(-1, x.shape[1]) for each in (score, place, breaker)
        )
        score, place = lax.optimization_barrier((score, place))
        return _with_the_best(best, score, breaker, place, start * width)

    return lax.fori_loop(0, n_tiles, body, best)  # type: ignore[no-any-return]


def _written_out(x: Any, above: list[Any], laws: Any) -> tuple[Any, Any]:
    """(rows, C, B) mean and deviation, as sums written out, which XLA computes in one pass over the decisions."""
    d = len(x)
    entry = iter(range(laws.shape[2]))

    def take() -> Any:
        return laws[:, :, next(entry)][:, :, None]

    mean = 0.0
    for i in range(d):
        row = take()
        for j in range(d):
            row = row + take() * above[j][:, None, :]
        mean = mean + x[i] * row
    square = 0.0
    for i in range(d):
        row = take() * x[i]
        for j in range(i + 1, d):
            row = row + take() * x[j]
        square = square + row * row
    return mean, jnp.sqrt(square)


def _by_products(x: Any, above: list[Any], laws: Any) -> tuple[Any, Any]:
    """The same by matrix products, for vectors too long to write out."""
    d = len(x)
    stacked = jnp.stack([*above, jnp.ones_like(above[0])], axis=1)
    shifted = jnp.einsum("rcij,rjb->rcib", laws[:, :, :d], stacked, precision=lax.Precision.HIGHEST)
    rooted = jnp.einsum("rcij,jb->rcib", laws[:, :, d:, :d], x, precision=lax.Precision.HIGHEST)
    return (shifted * x).sum(axis=2), jnp.sqrt(jnp.square(rooted).sum(axis=2))


def _ranks(x: Any, first: Any, key: Any, k: int) -> tuple[Any, Any]:
    """(k, B) twice: random words that say which action of a group it is."""
    return counters.words(_key(key, _RANKS), _rows(first, x), jnp.arange(k, dtype=jnp.uint32)[:, None])


def _taken(contexts: Any, start: Any, unit: Any, size: int) -> Any:
    """(d, B) a block of contexts that are on the device already; zero beyond the last."""
    rows = start + jnp.arange(size, dtype=jnp.int32)
    found = contexts.at[rows].get(mode="fill", fill_value=0)
    return (found.astype(unit.dtype) * unit).T


taken = jax.jit(_taken, static_argnums=(3,))
draw_nodes = jax.jit(_draw_nodes, static_argnames=("plan",))
walk = jax.jit(_walk)
start = partial(jax.jit, static_argnums=(0, 1, 2))(_start)
best_of_groups = jax.jit(_best_of_groups, static_argnames=("ties",))
best_of_leaves = jax.jit(_best_of_leaves, static_argnames=("tile", "ties", "plan"))
ranks = jax.jit(_ranks, static_argnums=(3,))
