"""The stages that take most of the time, as kernels for a GPU: Pallas, by way of Triton.

XLA reads every number of a law again for each score. Here a program has a row of decisions, some of them in each
thread, and a number that is read once serves all of these. Normals are drawn where they are used, and of touched
actions only the best are written. Random words, and what is computed from them, are those of `stages`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from bough.batch import counters
from bough.batch.shapes import NODE_TILE

MOST_KEPT = 8
"""The best actions that a program can keep; more are left to XLA."""
DECISIONS = 512
"""Decisions of one program, where it scores actions."""
NODE_DECISIONS = 256
"""The same, where it draws nodes."""
WARPS = 4
PROGRAMS = 16_384
"""How many programs there are at least, so that all of a GPU has work."""


def _call(kernel: Any, grid: tuple[int, ...], out: Any, aliases: dict[int, int], interpret: bool) -> Any:
    options: dict[str, Any] = {"interpret": True} if interpret else {}
    return pl.pallas_call(
        kernel, grid=grid, out_shape=out, input_output_aliases=aliases,
        compiler_params=triton.CompilerParams(num_warps=WARPS, num_stages=1), **options,
    )  # fmt: skip


def _counters(first: Any, key: Any) -> Any:
    """(3,) the number of the first decision, and a key."""
    return jnp.stack([first, *key]).astype(jnp.uint32)


def _here(ref: Any, tile: Any, size: int) -> tuple[Any, tuple[Any, Any]]:
    """The numbers of the decisions of a program, and the key."""
    start = ref[0] + (tile * size).astype(jnp.uint32)
    return start + lax.broadcasted_iota(jnp.uint32, (size,), 0), (ref[1], ref[2])


# -- nodes inside the tree -------------------------------------------------------------------------


def draw_tile(
    first: Any, key: Any, laws: Any, parent: Any, node: Any, start: Any, values: tuple[Any, ...], *, interpret: bool
) -> tuple[Any, ...]:
    """The values with those of a tile of nodes, A theta_p + F n + o, drawn in their place."""
    d, size = len(values), values[0].shape[1]
    width, dtype, pairs = min(NODE_DECISIONS, size), values[0].dtype.type, (len(values) + 1) // 2

    def kernel(counters_ref: Any, start_ref: Any, laws_ref: Any, parent_ref: Any, node_ref: Any, *refs: Any) -> None:
        row, tile = start_ref[0] + pl.program_id(0), pl.program_id(1)
        at = pl.ds(tile * width, width)
        rows, words = _here(counters_ref, tile, width)
        number = node_ref[row] * jnp.uint32(pairs)
        noise: list[Any] = []
        for pair in range(pairs):
            noise += counters.normals(words, rows, number + jnp.uint32(pair), dtype)[:2]
        above = [refs[j][parent_ref[row], at] for j in range(d)]
        for i in range(d):
            total = jnp.full((width,), laws_ref[row, i, 2 * d])
            for j in range(d):
                total = total + laws_ref[row, i, j] * above[j]
            for j in range(i + 1):
                total = total + laws_ref[row, i, d + j] * noise[j]
            refs[d + i][row, at] = total

    out = [jax.ShapeDtypeStruct(one.shape, one.dtype) for one in values]
    run = _call(kernel, (NODE_TILE, size // width), out, {5 + j: j for j in range(d)}, interpret)
    return tuple(run(_counters(first, key), start[None], laws, parent, node, *values))


# -- touched actions -------------------------------------------------------------------------------


def _law(ref: Any, place: tuple[Any, Any], x: list[Any], above: list[Any]) -> tuple[Any, Any]:
    """Mean and deviation of a touched action, whose law is packed."""
    d = len(x)
    entry = iter(range(ref.shape[2]))
    mean: Any = 0.0
    for i in range(d):
        row = ref[(*place, next(entry))] + ref[(*place, next(entry))] * above[0]
        for j in range(1, d):
            row = row + ref[(*place, next(entry))] * above[j]
        mean = mean + x[i] * row
    square: Any = 0.0
    for i in range(d):
        row = ref[(*place, next(entry))] * x[i]
        for j in range(i + 1, d):
            row = row + ref[(*place, next(entry))] * x[j]
        square = square + row * row
    return mean, jnp.sqrt(square)


def _with(best: list[Any], new: list[Any]) -> list[Any]:
    """The best, a list of [score, code] or [score, code, breaker] in their order, with one more."""
    kept = []
    for old in best:
        takes = new[0] > old[0]
        if len(new) == 3:
            takes = takes | ((new[0] == old[0]) & (new[2] > old[2]))
        kept.append([jnp.where(takes, a, b) for a, b in zip(new, old, strict=True)])
        new = [jnp.where(takes, b, a) for a, b in zip(new, old, strict=True)]
    return kept


def best_of_rows(
    x: Any,  # (d, B)
    first: Any,
    key: Any,
    values: tuple[Any, ...],  # d of (N, B)
    laws: Any,  # (R, C, q)
    bias: Any,  # (R, C)
    parent: Any,  # (R,)
    node: Any,  # (R, C)
    n_rows: Any,
    *,
    k: int,
    ties: bool,
    interpret: bool,
) -> tuple[Any, ...]:
    """(n, B) each: the scores, codes and, for ties, breakers of the k best of every share of the rows."""
    (d, size), side = x.shape, node.shape[1]
    width, dtype, half = min(DECISIONS, size), x.dtype.type, side // 2
    shares = min(max(PROGRAMS // (size // width), 1), len(parent))

    def kernel(
        counters_ref: Any, n_rows_ref: Any, x_ref: Any, laws_ref: Any, bias_ref: Any, parent_ref: Any, node_ref: Any,
        *refs: Any,
    ) -> None:  # fmt: skip
        tile, share = pl.program_id(0), pl.program_id(1)
        at = pl.ds(tile * width, width)
        rows, words = _here(counters_ref, tile, width)
        own = [x_ref[i, at] for i in range(d)]

        def of_row(turn: Any, flat: tuple[Any, ...]) -> tuple[Any, ...]:
            row = share + turn * shares
            above = [refs[j][parent_ref[row], at] for j in range(d)]

            def of_pair(left: Any, flat: tuple[Any, ...]) -> tuple[Any, ...]:
                best = [list(flat[i : i + len(flat) // k]) for i in range(0, len(flat), len(flat) // k)]
                noise = counters.normals(words, rows, node_ref[row, left], dtype)
                for side_, normal, exponential in (
                    (left, noise.first, noise.exponential), (left + half, noise.second, noise.other_exponential),
                ):  # fmt: skip
                    mean, deviation = _law(laws_ref, (row, side_), own, above)
                    score = mean + deviation * normal + bias_ref[row, side_]
                    new = [score, jnp.full((width,), row * side + side_, jnp.int32)]
                    best = _with(best, [*new, -exponential] if ties else new)
                return tuple(part for one in best for part in one)

            return lax.fori_loop(0, half, of_pair, flat)  # type: ignore[no-any-return]

        lowest = jnp.full((width,), -jnp.inf, dtype)
        nothing = [lowest, jnp.zeros((width,), jnp.int32), *([lowest] if ties else [])]
        turns = (n_rows_ref[0] - share + shares - 1) // shares
        found = lax.fori_loop(0, turns, of_row, tuple(nothing * k))
        for i, part in enumerate(found):
            which, kind = divmod(i, len(nothing))
            refs[d + kind][share * k + which, at] = part

    out = [jax.ShapeDtypeStruct((shares * k, size), each) for each in (dtype, jnp.int32, *([dtype] if ties else []))]
    run = _call(kernel, (size // width, shares), out, {}, interpret)
    return tuple(run(_counters(first, key), n_rows[None], x, laws, bias, parent, node, *values))
