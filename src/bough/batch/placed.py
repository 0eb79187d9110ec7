"""A layout as arrays on a device, padded to the sizes that compiled functions are for."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bough._arrays import Floats, Integers, Nodes
from bough.batch.frozen import Frozen
from bough.batch.layout import Inner, Layout
from bough.batch.shapes import CLASS_TILE, GROUP_TILE, LONGEST_WRITTEN_OUT, NODE_TILE, padded, row_tile, row_width

_STARTS = 16
_LEAST_BLOCK = 32
_LARGEST_BLOCK = {"gpu": 32_768, "cpu": 256}
_ROOM = {"gpu": 2**31, "cpu": 2**27}  # bytes that a block of decisions may take, where the device does not say more


class Placed(NamedTuple):
    """What the stages take, in their order."""

    nodes: tuple[Any, ...]
    walk: tuple[Any, ...]
    groups: tuple[Any, ...]
    leaves: tuple[Any, ...]
    tile: int
    """How many rows of touched actions are scored at once."""
    plan: str
    """How touched actions are scored."""
    node_plan: str
    """How nodes inside the tree are drawn."""
    has_groups: bool
    has_leaves: bool
    leaf_nodes: Nodes
    """The action of each code from 0 on."""
    bytes_per_decision: int


def usual_plans(d: int, kind: str, dtype: Any) -> tuple[str, str]:
    """How touched actions are scored, and how nodes inside the tree are drawn."""
    if d <= LONGEST_WRITTEN_OUT and kind == "gpu" and dtype == np.float32:
        return "kernel", "kernel"
    if d > LONGEST_WRITTEN_OUT:
        return "products", "products"
    return "apart", "products" if kind == "cpu" else "apart"


def place(frozen: Frozen, layout: Layout, dtype: Any, kind: str, put: Any, plans: tuple[str, str]) -> Placed:
    """The arrays of a layout, each taken to a device of a kind by `put`."""
    d, (plan, node_plan) = frozen.dim, plans
    slot_of = np.full(len(frozen.parent), -1, dtype=np.int64)
    slot_of[frozen.touched] = np.arange(len(frozen.touched))
    vectors, numbers, groups = layout.vectors, layout.numbers, layout.groups
    n_vectors = padded(len(vectors.nodes) + NODE_TILE, NODE_TILE)
    n_numbers = padded(len(numbers.nodes) + NODE_TILE, NODE_TILE)

    def row(positions: Integers) -> Integers:
        """Where in the scores of nodes inside the tree a position is."""
        return np.where(positions >= 0, positions, n_vectors - 1 - positions)

    laws = np.zeros((n_vectors, d, 2 * d + 1))
    slots = slot_of[vectors.nodes[1:]]
    laws[1 : 1 + len(slots)] = np.concatenate(
        [frozen.gain[slots], _triangles(frozen, slots).transpose(0, 2, 1), frozen.offset[slots][:, :, None]], axis=2
    )
    classes = np.unique(np.concatenate([groups.classes, frozen.class_of_node[numbers.nodes], [0]]))
    factor = np.zeros((padded(len(classes), CLASS_TILE), d, d))
    factor[: len(classes)] = frozen.factor[classes]
    n_groups = len(groups.parents)
    room = padded(n_groups, GROUP_TILE)
    leaf_arrays, leaf_nodes, width, tile = _rows(frozen, layout, slot_of, plan, kind)
    tables = layout.laws.tables
    filled = np.zeros((padded(len(tables), 1), tables.shape[1]))
    filled[: len(tables)] = tables
    held = d * 2 * n_vectors + 2 * (n_vectors + n_numbers) + len(factor) + tile * width * (d + 8) + GROUP_TILE * 8

    def floats(array: Floats) -> Any:
        return put(array.astype(dtype))

    def whole(array: Any, size: int) -> Any:
        return put(_filled(array, size, np.int32))

    def counters(array: Any, size: int) -> Any:
        return put(_filled(array, size, np.uint32))

    return Placed(
        (
            floats(laws), whole(vectors.parents, n_vectors), counters(vectors.nodes, n_vectors), *_tiles(vectors, put),
        ),
        (
            floats(factor), whole(row(numbers.parents), n_numbers),
            whole(np.searchsorted(classes, frozen.class_of_node[numbers.nodes]), n_numbers),
            counters(numbers.nodes, n_numbers), *_tiles(numbers, put),
        ),
        (
            floats(filled), whole(row(groups.parents), room), whole(np.diff(groups.first), room),
            whole(groups.laws, room), whole(np.searchsorted(classes, groups.classes), room),
            counters(groups.members[groups.first[:-1]], room), put(np.int32(-(-n_groups // GROUP_TILE))),
        ),
        (
            floats(leaf_arrays[0]), floats(leaf_arrays[1]), put(leaf_arrays[2].astype(np.int32)),
            put(leaf_arrays[3].astype(np.uint32)), put(np.int32(-(-leaf_arrays[4] // tile))),
        ),
        tile, plan, node_plan, n_groups > 0, leaf_arrays[4] > 0, leaf_nodes, held * np.dtype(dtype).itemsize,
    )  # fmt: skip


def _filled(array: Any, size: int, dtype: Any) -> Any:
    out = np.zeros(size, dtype=dtype)
    out[: len(array)] = array
    return out


def _tiles(inner: Inner, put: Any) -> tuple[Any, Any]:
    starts = _filled(inner.starts, padded(len(inner.starts), _STARTS), np.int32)
    return put(starts), put(np.int32(len(inner.starts)))


def _rows(
    frozen: Frozen, layout: Layout, slot_of: Integers, plan: str, kind: str
) -> tuple[tuple[Any, ...], Nodes, int, int]:
    """Laws, biases, parents, nodes and number of rows of touched actions; the action of each place; width and tile."""
    parents, counts = np.unique(layout.leaf_parents, return_counts=True)
    width = row_width(counts) if len(counts) else 2
    tile = row_tile(width, kind)
    n_rows = -(-counts // width)
    first_row, first_leaf = np.cumsum(n_rows) - n_rows, np.cumsum(counts) - counts
    which = np.repeat(np.arange(len(counts)), counts)
    rank = np.arange(len(layout.leaves)) - first_leaf[which]
    at = (first_row[which] + rank // width, rank % width)
    total = int(n_rows.sum())
    room = padded(total, tile)
    slots = slot_of[layout.leaves]
    packed = _products(frozen, slots) if plan == "products" else _packed(frozen, slots)
    laws = np.zeros((room, width, *packed.shape[1:]))
    bias, nodes = np.full((room, width), -np.inf), np.zeros((room, width), dtype=np.int32)
    laws[at], bias[at], nodes[at] = packed, 0.0, layout.leaves
    row_parents = np.zeros(room, dtype=np.int64)
    row_parents[:total] = np.repeat(parents, n_rows)
    return (laws, bias, row_parents, nodes, total), nodes.ravel(), width, tile


def _triangles(frozen: Frozen, slots: Integers) -> Floats:
    """(n, d, d) upper triangular R with R'R = F F': |R x| is the deviation of x' theta."""
    triangles: Any = np.linalg.qr(frozen.root[slots].transpose(0, 2, 1), mode="r")
    return np.asarray(triangles)


def _packed(frozen: Frozen, slots: Integers) -> Floats:
    """(n, q) for each coordinate its offset and gains, and then the triangle by rows; q is a multiple of four."""
    n, d = len(slots), frozen.dim
    affine = np.concatenate([frozen.offset[slots][:, :, None], frozen.gain[slots]], axis=2).reshape(n, d * (d + 1))
    upper = np.triu_indices(d)
    triangle = _triangles(frozen, slots)[:, upper[0], upper[1]]
    width = affine.shape[1] + triangle.shape[1]
    return np.concatenate([affine, triangle, np.zeros((n, -width % 4))], axis=1)


def _products(frozen: Frozen, slots: Integers) -> Floats:
    """(n, 2 d, d + 1) gains with the offset behind them, and below the triangle."""
    n, d = len(slots), frozen.dim
    out = np.zeros((n, 2 * d, d + 1))
    out[:, :d, :d], out[:, :d, d] = frozen.gain[slots], frozen.offset[slots]
    out[:, d:, :d] = _triangles(frozen, slots)
    return out


def block_size(placed: Placed, kind: str, n: int, room: int | None = None) -> int:
    """How many decisions are made at once: a power of two that the tree and the kind of device say, and no chunk.

    `room` has the bytes that they may take.
    """
    most = min(_LARGEST_BLOCK[kind], padded(n, _LEAST_BLOCK))
    while most > _LEAST_BLOCK and most * placed.bytes_per_decision > (room or _ROOM[kind]):
        most //= 2
    return most
