"""Scorer: exact decisions for very many contexts at once, on a GPU or on JAX's CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bough import _checks
from bough._arrays import Floats, Integers, Nodes
from bough.batch import devices
from bough.batch.chosen import Chosen, nodes_of
from bough.batch.frozen import WIDEST, Frozen, allowed, freeze
from bough.batch.layout import Layout, make_layout
from bough.batch.placed import Placed, block_size, place, usual_plans

if TYPE_CHECKING:
    from bough.posterior import Posterior
    from bough.tree.tree import Tree

_MOST_LAYOUTS = 4
_PRECISIONS = (None, "single", "double")
_SHARE = 4  # of what a device has free, one part in so many is for contexts and results
_BLOCK_SHARE = 8  # of all that a device has, one part in so many is for what a block computes
_CHUNK = 2**18  # decisions, where a device does not say what it has


class Scorer:
    """A posterior as it is now, taken to a device, to decide for very many contexts at once.

    Every decision is the best action of a joint posterior draw of its own: the law of `HierTS.decide`. `device` is
    "gpu" or "cpu", of JAX, which the extra `gpu` brings. `explore` is that of `HierTS`. What the posterior learns later
    does not come here.

    Numbers have 32 bits, or 64 where variances are more than six orders of magnitude apart; `precision` asks for
    "single" or "double", and `note` says what was done and why.

    >>> import bough, numpy
    >>> tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso", "mocha"]})
    >>> posterior = bough.Posterior(bough.GaussianModel(tree, mean=[0.0, 0.0]))
    >>> posterior.update(["green", "mocha"], [9.0, -9.0], [[1.0, 0.0], [1.0, 0.0]])
    >>> scorer = bough.batch.Scorer(posterior, device="cpu")
    >>> chosen = scorer.best(numpy.tile([1.0, 0.0], (1_000, 1)), k=2, seed=0)
    >>> chosen.actions.shape, bool(chosen.scores[:, 0].mean() > 0.0)
    ((1000, 2), True)
    """

    precision: str
    """Whether numbers have 32 bits, "single", or 64, "double"."""
    note: str
    """What was done about variances that are far apart; empty where nothing had to be."""

    def __init__(
        self, posterior: Posterior, device: str = "gpu", *, explore: float = 1.0, precision: str | None = None
    ) -> None:
        self._device = devices.device_of(device)
        if not hasattr(posterior, "_twin"):
            raise ValueError(f"posterior is a {type(posterior).__name__}; give a bough.Posterior")
        factor = _checks.number(explore, "explore")
        if not 0.0 <= factor <= 1e6:
            raise ValueError(f"explore is {explore!r}; give a factor from 0 to 1e+06")
        frozen, model = freeze(posterior)
        self._model: Any = model
        self._begin(frozen, device, factor, precision)

    def _begin(self, frozen: Frozen, kind: str, explore: float, precision: str | None) -> None:
        if precision not in _PRECISIONS:
            raise ValueError(f'precision is {precision!r}; give "single", "double", or None for what is needed')
        self._kind = kind
        self._stages: Any = import_module("bough.batch.stages")
        spread = frozen.spread()
        self.precision = precision or ("double" if spread > WIDEST else "single")
        self.note = _note(spread, self.precision, precision)
        self._dtype: Any = np.float64 if self.precision == "double" else np.float32
        self._ties = frozen.may_tie or explore == 0.0
        self._frozen = frozen.explored(explore)
        self._alike = explore > 0.0
        self._layouts: dict[Any, tuple[Layout, Placed]] = {}
        self._plans = usual_plans(frozen.dim, kind, self._dtype)

    @classmethod
    def _of_frozen(cls, frozen: Frozen, kind: str, explore: float = 1.0, precision: str | None = None) -> Scorer:
        """A scorer without a posterior, for what was frozen elsewhere; its actions have no names."""
        scorer = cls.__new__(cls)
        scorer._device, scorer._model = devices.device_of(kind), None
        scorer._begin(frozen, kind, explore, precision)
        return scorer

    def __repr__(self) -> str:
        n_actions = len(self._frozen.leaves)
        return f"Scorer(n_actions={n_actions}, dim={self._frozen.dim}, device={self._kind!r}, {self.precision!r})"

    # -- decisions -----------------------------------------------------------------------------

    def best(
        self,
        contexts: Any,
        k: int = 5,
        seed: Any = 0,
        chunk: int | None = None,
        among: Sequence[Any] | None = None,
    ) -> Chosen:
        """The k best actions for each row of contexts, or, in a K-armed model, for each of n decisions.

        The same seed gives the same decisions on one kind of device, whatever `chunk` is: how many contexts are on the
        device at once, in whole blocks, and what it has room for where it is None. `among` restricts the choice for all
        of them. Retired actions are never chosen.

        >>> import bough
        >>> tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]})
        >>> scorer = bough.batch.Scorer(bough.Posterior(bough.GaussianModel(tree)), device="cpu")
        >>> some = scorer.best(100, k=1, seed=3, chunk=10)
        >>> bool((some.actions == scorer.best(100, k=1, seed=3).actions).all())
        True
        """
        return self._chosen(self._checked(contexts), k, _words(seed), chunk, self._candidates(among))

    def _stream(self, k: int, seed: Any, among: Sequence[Any] | None) -> Callable[[Any, int], Chosen]:
        """`best` of contexts that come one part after the other: a function of a part, and of how many came before."""
        words, candidates = _words(seed), self._candidates(among)
        return lambda contexts, first: self._chosen(self._checked(contexts), k, words, None, candidates, first)

    def _candidates(self, among: Sequence[Any] | None) -> Nodes | None:
        if among is None:
            return None
        names = _checks.listed(among, "among")
        if not names:
            raise ValueError("among is empty; give at least one action, or leave it out to choose among all")
        return np.unique(self._tree.action_nodes(names))

    @property
    def _tree(self) -> Tree:
        return self._model.tree  # type: ignore[no-any-return]

    def _checked(self, contexts: Any) -> Any:
        """How many decisions, or (n, d) contexts, on the host or on a device."""
        if self._frozen.is_scalar:
            if not _checks.is_whole(contexts):
                raise ValueError(f"contexts is {contexts!r:.60}; this model takes none, so give how many decisions")
            return _checks.whole_number("contexts", contexts, least=0)
        if isinstance(contexts, devices.jax_module().Array):
            return _checked_on_device(contexts, self._frozen.dim)
        from bough.data.rows import checked_contexts

        return checked_contexts(self._model, contexts)

    def _chosen(
        self, contexts: Any, k: int, words: tuple[int, int], chunk: int | None, candidates: Nodes | None, first: int = 0
    ) -> Chosen:
        """`best`, of what has been checked; `first` is the number of the first decision."""
        flags = allowed(self._frozen, candidates)
        if not flags.any():
            raise ValueError("every action that there is to choose from is retired; leave at least one")
        k = _checks.whole_number("k", k, least=1)
        if k > flags.sum():
            raise ValueError(f"k is {k}; give at most {flags.sum()}, the number of actions to choose from")
        n = contexts if self._frozen.is_scalar else len(contexts)
        if chunk is not None:
            chunk = _checks.whole_number("chunk", chunk, least=1)
        with devices.double_digits() if self.precision == "double" else nullcontext():
            layout, placed = self._layout(flags, k)
            block = self._block_size(placed, n)
            size = self._chunk(block, k) if chunk is None else -(-chunk // block) * block
            parts = [
                self._part(contexts, start, min(start + size, n), block, k, words, first, layout, placed)
                for start in range(0, n, size)
            ]
        nodes = np.concatenate([part.nodes for part in parts]) if parts else np.zeros((0, k), dtype=np.int32)
        scores = np.concatenate([part.scores for part in parts]) if parts else np.zeros((0, k))
        return Chosen(nodes, scores, self._named)

    def _named(self, nodes: Nodes) -> Any:
        return nodes if self._model is None else np.asarray(self._tree.actions)[self._place_of[nodes]]

    @cached_property
    def _place_of(self) -> Nodes:
        """(V,) the place of each action among the actions."""
        places = np.zeros(len(self._frozen.parent), dtype=np.int32)
        places[self._frozen.leaves] = np.arange(len(self._frozen.leaves))
        return places

    def _layout(self, flags: Any, k: int) -> tuple[Layout, Placed]:
        """The layout for some actions, which is kept."""
        key = flags.tobytes(), k == 1, self._plans
        if key not in self._layouts:
            if len(self._layouts) == _MOST_LAYOUTS:
                self._layouts.clear()
            jax = devices.jax_module()
            layout = make_layout(self._frozen, flags, k, alike=self._alike)
            placed = place(
                self._frozen, layout, self._dtype, self._kind, lambda array: jax.device_put(array, self._device),
                self._plans,
            )  # fmt: skip
            self._layouts[key] = layout, placed
        return self._layouts[key]

    def _block_size(self, placed: Placed, n: int) -> int:
        """How many decisions are made at once, which does not depend on what is free at the moment."""
        room = devices.all_bytes(self._device)
        return block_size(placed, self._kind, n, None if room is None else room // _BLOCK_SHARE)

    def _chunk(self, block: int, k: int) -> int:
        """How many decisions the device has room for, in whole blocks."""
        free = devices.free_bytes(self._device)
        per_decision = self._frozen.dim * np.dtype(self._dtype).itemsize + k * (16 + np.dtype(self._dtype).itemsize)
        n = _CHUNK if free is None else free // _SHARE // per_decision
        return max(n // block, 1) * block

    def _part(
        self,
        contexts: Any,
        start: int,
        end: int,
        block: int,
        k: int,
        words: tuple[int, int],
        first: int,
        layout: Layout,
        placed: Placed,
    ) -> _Part:
        """The decisions from `start` to `end`, block by block, and then all of them as nodes."""
        n = end - start
        found: list[Any] = []
        given = contexts[start:end] if isinstance(contexts, np.ndarray) else None
        scale = None
        if isinstance(given, np.ndarray):
            given, scale = _scaled(given * self._frozen.unit)
        for x, row in self._blocks(given if scale is not None else contexts, start, n, block):
            if len(found) > 1:  # so that the memory of two blocks is taken, and not of all
                found[-2] = tuple(np.asarray(part) for part in found[-2])  # while the last one is computed
            found.append(self._block(x, first + row, words, k, placed))
        scores, codes, *ranks = (
            np.concatenate([np.asarray(part[i]) for part in found], axis=1)[:, :n] for i in range(4)
        )
        nodes = nodes_of(codes, (ranks[0], ranks[1]), self._frozen, layout, placed)
        scores = scores.T.astype(np.float64)
        if scale is not None:
            scores *= scale[:, None]
        if self._frozen.is_scalar:
            return _Part(nodes, scores * self._frozen.unit + self._frozen.mean)
        zero, centre = _zeros_and_centres(contexts, start, end, self._frozen.mean)
        scores += centre[:, None]
        if len(zero) and not self._ties:
            leaves = self._choosable(layout, placed)
            for i in zero.tolist():  # where a context is zero all actions tie: any of them
                rng = np.random.default_rng([*words, first + start + i])
                nodes[i], scores[i] = rng.choice(leaves, k, replace=False), 0.0
        return _Part(nodes, scores)

    def _blocks(self, given: Any, start: int, n: int, block: int) -> Iterator[tuple[Any, int]]:
        """(d, B) contexts on the device, the last ones padded, and the number of the first."""
        jax = devices.jax_module()
        for at in range(0, n, block):
            if self._frozen.is_scalar:
                x: Any = np.ones((1, block), dtype=self._dtype)
            elif isinstance(given, np.ndarray):
                x = np.zeros((self._frozen.dim, block), dtype=self._dtype)
                x[:, : min(block, n - at)] = given[at : at + block].T
            else:
                unit = self._frozen.unit.astype(self._dtype)
                x = self._stages.taken(given, np.int32(start + at), unit, block)
            yield jax.device_put(x, self._device), start + at

    def _block(self, x: Any, row: int, words: tuple[int, int], k: int, placed: Placed) -> tuple[Any, ...]:
        """Scores, codes and two random words, (k, B) each, still on the device."""
        stages, numbers = self._stages, np.uint32
        counters = numbers(row % 2**32), (numbers(words[0]), numbers(words[1] ^ (row >> 32)))
        first, key = devices.jax_module().device_put(counters, self._device)
        values = stages.draw_nodes(x, first, key, *placed.nodes, plan=placed.node_plan)
        best = stages.start(k, x.shape[1], self._dtype)
        if placed.has_groups:
            scores, deviation = stages.walk(x, first, key, values, *placed.walk)
            best = stages.best_of_groups(x, first, key, best, scores, deviation, *placed.groups, ties=self._ties)
        if placed.has_leaves:
            best = stages.best_of_leaves(
                x, first, key, best, values, *placed.leaves, tile=placed.tile, ties=self._ties,
                plan=placed.plan,
            )  # fmt: skip
        return best[0], best[2], *stages.ranks(x, first, key, k)

    def _choosable(self, layout: Layout, placed: Placed) -> Nodes:
        """The actions of a layout."""
        key = next(key for key, kept in self._layouts.items() if kept[0] is layout and kept[1] is placed)
        return self._frozen.leaves[np.frombuffer(key[0], dtype=np.int64) > 0]


class _Part(NamedTuple):
    """The decisions of a chunk."""

    nodes: Nodes
    scores: Floats


def _note(spread: float, precision: str, asked: str | None) -> str:
    if spread <= WIDEST:
        return ""
    apart = f"variances are apart by a factor of {spread:.0e}, more than 32 bits can hold"
    return f"{apart}: computed with {64 if precision == 'double' else 32} bits{', as asked' if asked else ''}"


def _words(seed: Any) -> tuple[int, int]:
    """Two words of a key, from anything that numpy takes as a seed."""
    from bough import _seeds

    first, second = _seeds.sequence(seed).generate_state(2)
    return int(first), int(second)


def _scaled(contexts: Floats) -> tuple[Floats, Floats]:
    """Contexts divided by powers of two so that none is far from one, and these; the best action stays the same."""
    widest = np.abs(contexts).max(axis=1, initial=0.0)
    scale = np.exp2(np.frexp(widest)[1].astype(np.float64))
    scale[widest == 0.0] = 1.0
    return contexts / scale[:, None], scale


def _zeros_and_centres(contexts: Any, start: int, end: int, mean: Floats) -> tuple[Integers, Floats]:
    """Which contexts are zero, and the score of the prior mean in each; on a device as far as they are there."""
    if isinstance(contexts, np.ndarray):
        part = contexts[start:end]
        return np.flatnonzero(~part.any(axis=1)), part @ mean
    numpy = devices.jax_module().numpy
    zero = np.flatnonzero(~np.asarray(contexts.any(axis=1))[start:end])
    centre = numpy.einsum("nd,d->n", contexts, mean.astype(contexts.dtype), precision="highest") if mean.any() else None
    return zero, np.zeros(end - start) if centre is None else np.asarray(centre, dtype=np.float64)[start:end]


def _checked_on_device(contexts: Any, dim: int) -> Any:
    """A JAX array of contexts, looked at where it is."""
    if contexts.ndim != 2 or contexts.shape[1] != dim:
        raise ValueError(f"contexts has shape {contexts.shape}; give (n, {dim})")
    if not bool(devices.jax_module().numpy.isfinite(contexts).all()):
        raise ValueError("contexts has a number that is not finite; put it right, or leave out its row")
    return contexts
