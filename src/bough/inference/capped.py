"""The capped search: decisions in little more time where much is touched; see docs/explanation/decisions.md.

What is kept, beside the laws of the engine: the families of inner nodes, and how much each child takes of its family's
line; kernels/lines.py says how. References, caps and champions may be anything: only the time of a decision depends on
them, and not its law.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bough._arrays import Floats, Nodes
from bough.inference.engine import Engine
from bough.inference.kernels import capped_calls as kernels
from bough.inference.kernels import families
from bough.inference.kernels.lengths import N_COLUMNS, N_REFERENCES
from bough.inference.kernels.lines import (
    CHILD_KIND,
    COUNT,
    FIRST_GROUP,
    N_FIELDS,
    N_GROUPS,
    NODE,
    OWN_STEP,
    SIZE,
    STEP,
    WIDTH,
    Lines,
)
from bough.inference.kinds import Kinds, KindTables
from bough.inference.scalar import ScalarEngine
from bough.inference.slots import grown

N_CHAMPIONS = 32
_FEWEST = kernels.FEWEST_UNIFORMS
_BELOW = 0.7  # of an action's prior deviation: where the lowest reference is, below the others
_SPACING = (3.0, 0.0)  # where these are, in deviations of past bests below their median


_NOBODY = np.empty((0, 2))


class Memory(NamedTuple):
    """What a search knows that does not follow from the evidence: with it another one makes the same decisions."""

    scale: float
    n_uniforms: int
    """Random numbers that the next decision begins with."""
    is_stale: bool
    """Whether everything has changed since the last decision."""
    references: Floats
    """(n_references,) ascending."""
    champions: Nodes
    """(n,) actions, those that are drawn first before the others."""
    touched: Nodes
    """(n,) actions, in the order in which they were touched: families have their members in that order."""
    inner: Nodes
    """(m,) the nodes that have families."""
    caps: Floats
    """(m, 2) the means and the deviations that their caps were set for."""


class CappedSearch:
    """The families of a tree, and their lines, for draws whose deviations from the mean are times a scale."""

    def __init__(self, engine: ScalarEngine, kinds: Kinds, tables: KindTables, scale: float) -> None:
        self._engine = engine
        self._kinds = kinds
        self._tables = tables
        self.scale = scale
        self._mean = float(engine.model.mean)
        tree = engine.model.tree
        self._child_start = tree.child_start
        self._height = tree.height
        self._counts = np.zeros(1, dtype=np.int64)
        self.references = np.zeros(N_REFERENCES)
        self.champions: Nodes = np.empty(0, dtype=np.int32)  # slots
        self.n_uniforms = _FEWEST
        self._lay_out()

    @property
    def n_touched(self) -> int:
        """How many nodes are touched."""
        return self._engine.slots.count

    @property
    def n_bytes(self) -> int:
        """How much memory it takes, beside the tables of kinds."""
        kept = (self._unit, self._number, self._row, self._member, self._block, self._group, self._place)
        return sum(array.nbytes for array in kept)

    def is_of(self, engine: Engine) -> bool:
        """Whether it is about this engine."""
        return self._engine is engine

    def bring_up_to_date(self) -> None:
        """Have the engine take in what was put off, so that laws can be read."""
        self._engine.bring_up_to_date()

    # -- families ------------------------------------------------------------------------------

    def _lay_out(self) -> None:
        """Make the families anew."""
        slots, kinds, tree = self._engine.slots, self._kinds, self._engine.model.tree
        n_most = int((slots.row < 0).sum()) + len(kinds.unlike)
        room = n_most + n_most // 8 + 16
        self._place = np.zeros(len(slots._node), dtype=np.int32)
        unit = np.zeros((room, N_FIELDS), dtype=np.int32)
        n = families.begin_units(
            slots.node, slots.parent, slots.row, tree.parent, kinds.of_node, kinds.unlike, self._place, unit
        )
        start, kind, count = kinds.groups
        group = np.zeros((len(kind) + room, 2), dtype=np.int32)
        n_groups, n_members, n_blocks = families.begin_groups(
            n, tree.child_start, kinds.of_node, len(kinds.unlike), start, kind, count, unit, group
        )
        self._member = np.zeros(n_members + n_members // 4 + 64, dtype=np.int32)
        families.fill_families(
            n, slots.node, slots.parent, slots.row, kinds.of_node, self._place, unit, group, self._member
        )
        self._unit, self._group = unit, group
        self._used = np.array([n, n_members, n_blocks, n_groups])
        self._block = np.zeros((n_blocks + n_blocks // 4 + 16, N_COLUMNS), dtype=np.float32)
        self._row = np.zeros((room, 2 * N_COLUMNS), dtype=np.float32)
        self._number = np.zeros((room, 3), dtype=np.float32)
        classes = self._engine.model.classes.of_node
        self._number[: len(kinds.unlike), STEP] = self._engine.class_deviations()[classes[kinds.unlike]]
        self._known = slots.count
        self._kept: tuple[Any, ...] = ()

    def _take_in(self) -> None:
        """Have the slots that are new be in the families."""
        slots = self._engine.slots
        if len(slots._node) > len(self._place):
            self._place = grown(self._place, len(slots._node))
        first = self._known
        while first < slots.count:
            first = families.take_in(
                first, slots.count, slots._node, slots._parent, slots._row, self._child_start, self._kinds.of_node,
                self._kinds.unlike, self._place, self._used, self._unit, self._number, self._group, self._member,
                len(self._block),
            )  # fmt: skip
            if first < slots.count:
                self._make_room()
        self._known = slots.count

    def _make_room(self) -> None:
        """Room for an eighth more families, and for what the widest takes when it grows."""
        widest = 4 * int(self._unit.max(axis=0)[SIZE])
        units = len(self._unit) + len(self._unit) // 8 + 64
        self._unit, self._number = grown(self._unit, units), grown(self._number, units)
        self._row = grown(self._row, units)
        self._group = grown(self._group, len(self._group) + len(self._unit) // 8 + 64)
        self._member = grown(self._member, len(self._member) + len(self._member) // 4 + widest)
        self._block = grown(self._block, len(self._block) + len(self._block) // 4 + widest // 8)

    def _all_kept(self) -> tuple[Any, ...]:
        """Everything that kernels read, made anew where an array was."""
        kept, engine, slots = self._kept, self._engine, self._engine.slots
        if kept and kept[0] is self._unit and kept[8] is engine._law and kept[10] is slots._node:
            return kept
        self._kept = (
            self._unit, self._number, self._row, self._member, self._block, self._group, self._tables.of_kind,
            self._tables.rates, engine._law, slots._choosable, slots._node, slots._parent, slots._row, slots._table,
            self._child_start, self._kinds.of_node, self._place,
        )  # fmt: skip
        return self._kept

    # -- lines ---------------------------------------------------------------------------------

    def remake(self, recentre: bool = True) -> None:
        """Make all rows and sums anew, and the caps, if these are to be where nodes are now."""
        if self._engine.news.of_families or self._engine.slots.count < self._known:
            self._lay_out()
        self._engine.news.taken()
        self._take_in()
        kernels.remake(self._all_kept(), self.references, self.scale, int(self._used[0]), recentre)

    def refresh(self) -> None:
        """Take in what has changed since the last time, one path at a time, as the next decision would."""
        changed, first_new, count = self._news()
        if len(changed) or first_new < count:
            kernels.refresh_all(
                self._all_kept(), self.references, self.scale, self._height, changed, first_new, count, True
            )

    def _news(self) -> tuple[Nodes, int, int]:
        """The actions that have changed, and which slots are new: the first, and the end; families have them now."""
        changed, first_new, count = self._engine.news.taken(), self._known, self._engine.slots.count
        if first_new < count:
            self._take_in()
        return np.unique(changed) if len(changed) > 1 else changed, first_new, count

    def refer_to(self, bests: Floats) -> None:
        """Set references by the best values of past draws."""
        median, spread = float(np.median(bests)), float(bests.std())
        high = [median - below * spread - self._mean for below in _SPACING]
        lowest = min(high[0], float(bests.min()) - self._mean) - _BELOW * self._largest_step()
        self.references = np.array([lowest, *high])

    def _largest_step(self) -> float:
        actions = self._tables.of_kind[:, CHILD_KIND] < 0.0
        return float(self._tables.of_kind[actions, OWN_STEP].max(initial=0.0))

    def find_champions(self) -> None:
        """Begin with the actions of the highest means."""
        slots = self._engine.slots
        means = self._engine.touched_means()
        actions = np.flatnonzero(slots.choosable)
        n = min(N_CHAMPIONS, len(actions))
        if n < len(actions):
            actions = actions[np.argpartition(-means[actions], n)[:n]]
        self.champions = actions[np.argsort(-means[actions], kind="stable")].astype(np.int32)

    # -- what tests look at --------------------------------------------------------------------

    def lines(self) -> Lines:
        """All that a decision reads."""
        unit, number, row, member, block, group, kind, rates, law, choosable = self._all_kept()[:10]
        return Lines(unit, number, row, member, block, group, kind, rates, law, choosable, self.references, self.scale)

    def sums(self) -> tuple[Floats, Floats]:
        """The rows with the sums of families, and the sums in wide families, as they are kept."""
        n = int(self._used[0])
        return self._row[:n].astype(np.float64), self._block[: int(self._used[2])].astype(np.float64)

    def counts_of_groups(self) -> dict[int, int]:
        """How many untouched subtrees hang below each node that has a family."""
        n, found = int(self._used[0]), {}
        for unit in self._unit[:n]:
            first = unit[FIRST_GROUP]
            found[int(unit[NODE])] = int(self._group[first : first + unit[N_GROUPS], COUNT].sum())
        return found

    # -- decisions -----------------------------------------------------------------------------

    def best(self, rng: np.random.Generator, k: int, excluded: Nodes) -> tuple[Nodes, Floats, int]:
        """The k best actions of one joint draw but the excluded, with their scores, and how much was looked at."""
        found = self._decided(self._news(), self.champions, rng, self.n_uniforms, k, excluded, _NOBODY)
        self.n_uniforms = max(_FEWEST, 2 * int(self._counts[0]))
        return found

    def look(self) -> bool:
        """Whether draws can be looked at as things are now: then rows are, and later decisions as if nobody had."""
        news, count = self._engine.news, self._engine.slots.count
        if news.of_everything or count != self._known:
            return False
        changed = np.unique(news.seen())
        if len(changed):
            kernels.refresh_all(
                self._all_kept(), self.references, self.scale, self._height, changed, count, count, False
            )
        return True

    def others(self, rng: np.random.Generator, k: int, excluded: Nodes, asked: Nodes) -> tuple[Floats, Floats]:
        """The scores of the k best actions of a draw but the excluded, and two numbers for each of some slots.

        These are of touched actions that are excluded: the values of their parents in that draw, and their own.
        """
        champions = np.concatenate([asked, self.champions])
        values = np.empty((len(asked), 2))
        nothing_new = excluded[:0], self._known, self._known
        _, scores, _ = self._decided(nothing_new, champions, rng, _FEWEST, k, excluded, values)
        return scores, values

    def many(self, k: int, excluded: Nodes) -> Callable[[np.random.Generator, int, Any], tuple[Nodes, Floats]]:
        """What makes blocks of decisions from what is known now, and may be called by several threads at once.

        It takes a generator, the number of decisions, and nothing for contexts. Every block begins with the same
        champions, and nothing is remembered of it.
        """
        self.refresh()
        kept, champions = self._all_kept(), self.champions.copy()
        by_name = self._tells_apart(k, excluded)

        def block(rng: np.random.Generator, n: int, _: Any) -> tuple[Nodes, Floats]:
            top, score = np.empty((n, k), dtype=np.int32), np.empty((n, k))
            kernels.decide_block(
                kept, self.references, self.scale, self._height, champions.copy(), excluded, by_name, rng, self._mean,
                top, score,
            )  # fmt: skip
            return top, score

        return block

    def _tells_apart(self, k: int, excluded: Nodes) -> bool:
        """Whether it matters at once which untouched action is which."""
        return k > 1 or (len(excluded) > 0 and bool((self._engine.slots.find(excluded) < 0).any()))

    def _decided(
        self,
        news: tuple[Nodes, int, int],
        champions: Nodes,
        rng: np.random.Generator,
        n_uniforms: int,
        k: int,
        excluded: Nodes,
        asked: Floats,
    ) -> tuple[Nodes, Floats, int]:
        changed, first_new, count = news
        top, score = np.empty(k, dtype=np.int32), np.empty(k)
        by_name = self._tells_apart(k, excluded)
        kept, uniforms = self._all_kept(), rng.random(n_uniforms)
        while True:
            looked = kernels.decide_next(
                kept, self.references, self.scale, self._height, changed, first_new, count, champions, excluded,
                by_name, uniforms, self._mean, asked, self._counts, top, score,
            )  # fmt: skip
            if looked >= 0:
                return top, score, looked
            changed, first_new = changed[:0], count
            uniforms = np.concatenate([uniforms, rng.random(len(uniforms))])

    # -- what it knows -------------------------------------------------------------------------

    def memory(self) -> Memory:
        """What another search of the same evidence needs to make the same decisions."""
        is_stale = self._engine.news.of_everything
        if not is_stale:
            self.refresh()
        slots, n = self._engine.slots, int(self._used[0])
        return Memory(
            self.scale,
            self.n_uniforms,
            is_stale,
            self.references.copy(),
            slots.node[self.champions],
            slots.node[slots.row >= 0],
            self._unit[:n, NODE].copy(),
            self._number[:n, : WIDTH + 1].astype(np.float64),
        )

    def recall(self, memory: Memory) -> None:
        """Go on with what another search knew; its actions were touched in the same order."""
        slots, n = self._engine.slots, int(self._used[0])
        self.references, self.n_uniforms = memory.references.copy(), memory.n_uniforms
        self.champions = slots.find(memory.champions)
        self.remake()
        order = np.argsort(memory.inner)
        nodes = self._unit[:n, NODE]
        place = np.minimum(np.searchsorted(memory.inner, nodes, sorter=order), max(len(order) - 1, 0))
        if len(order):
            known = memory.inner[order[place]] == nodes
            self._number[:n][known, : WIDTH + 1] = memory.caps[order[place[known]]]
        self.remake(recentre=False)
        if memory.is_stale:
            self._engine.news.of_all()
