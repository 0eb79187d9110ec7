"""What the posterior asks of an engine: K-armed or contextual, exact or by expectation propagation."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from bough._arrays import Floats, Integers, Nodes
from bough.data.rows import Rows
from bough.data.statistics import Statistics
from bough.inference.evidence import Evidence
from bough.inference.news import News
from bough.inference.slots import Slots, grown
from bough.model.model import Model

_LARGE = 20_000  # leaves of a batch that it pays to sort
_LEAST_FADED = 1e-100  # weights of new rewards are divided by what has faded meanwhile


class Engine(Protocol):
    """The state of a posterior and the operations on it; everything comes in checked."""

    slots: Slots
    kind: Evidence
    model: Model
    is_searchable: bool
    """Whether the law of what is untouched is the prior's below each touched node, so that it need not be drawn."""
    is_normal: bool
    """Whether each node is normal given its parent, as its law says; otherwise touched actions have to be drawn."""
    is_partial: bool
    """Whether some of the evidence is only in messages, as in old files: it cannot be taken elsewhere then."""
    now: float
    """How long after the clock was started it is, as far as that matters."""
    may_refuse: bool
    """Whether it may find that rewards which have been checked cannot be computed with."""
    news: News
    """What has changed since a search last asked."""

    @property
    def n_effects(self) -> int:
        """How many crossed effects there are, each with a normal of a draw; they come after the nodes."""
        ...

    @property
    def table(self) -> Floats:
        """(n_rows, width) the evidence, one row per touched action."""
        ...

    def evidence_rows(self) -> tuple[Nodes, Floats]:
        """(n,) and (n, width): the actions that rows of evidence are of, and the rows."""
        ...

    def raw_rows(self) -> tuple[Nodes, Floats, float]:
        """Copies of the rows as they stand, with their actions, and how much an observation in them counts.

        Nothing is taken in for it. The action is -1 for a row of what is an action no longer.
        """
        ...

    def observe_one(self, leaf: int, reward: float) -> None:
        """Add one reward of a leaf, in a model without contexts; a count is of one trial or exposure 1."""
        ...

    def observe(self, rows: Rows, settle: bool = True) -> None:
        """Add rewards of leaves, with contexts in a contextual model, and trials or exposure of counts.

        Without `settle` what is approximated is refined only where rewards came, and the rest left to a later `settle`.
        """
        ...

    def check(self, rows: Rows) -> None:
        """A `ValueError` where `observe` could not compute with one of these by itself; nothing changes."""
        ...

    def absorb(self, leaves: Nodes, statistics: Statistics, settle: bool = True) -> None:
        """Add the rewards that were summed for distinct leaves, with contexts in a contextual model."""
        ...

    def place(self, leaves: Nodes, evidence: Floats) -> None:
        """Forget everything, and know this evidence of distinct leaves and nothing else."""
        ...

    def touch(self, leaves: Nodes) -> Nodes:
        """The slots of leaves, which get one if they had none."""
        ...

    def add(self, node: int, parent: int, class_: int) -> None:
        """Have one more action, a node beyond the tree's last, below an inner node or an action without evidence."""
        ...

    def weight(self, leaf: int) -> float:
        """How many observations there are of a leaf, as they count now."""
        ...

    def forget(self, leaf: int) -> None:
        """Have no evidence of a leaf any more."""
        ...

    def forget_all(self, leaves: Nodes) -> None:
        """Have no evidence of any of some leaves any more."""
        ...

    def relocate(self, leaf: int, to: int) -> None:
        """Have a leaf's evidence at another one, which has none, and none at the first."""
        ...

    def retract(self, rows: Rows) -> None:
        """Take back rewards that were observed; a `ValueError`, and nothing, where they cannot have been."""
        ...

    def discount(self, factor: float) -> None:
        """Have everything observed so far count that much of what it did."""
        ...

    def advance(self, now: float) -> None:
        """Have it be that long after the clock was started."""
        ...

    def settle(self, log: Rows | None, propagate: bool) -> None:
        """Refine what was only approximated; a contextual engine of counts needs the whole log for it."""
        ...

    def settle_again(self) -> None:
        """Refine what was approximated in another tree or prior, if the evidence says how."""
        ...

    def snapshot(self) -> Self:
        """An engine that goes on by itself: what was learned is copied, the tree and the prior are shared."""
        ...

    def extra_arrays(self) -> dict[str, Any]:
        """What a file keeps beside the evidence."""
        ...

    def take_extra(self, arrays: Mapping[str, Any]) -> None:
        """Take over what `extra_arrays` gave."""
        ...

    def is_finite(self) -> bool:
        """Whether the laws of all touched nodes are numbers that can be computed with."""
        ...

    def transform(self, normals: Floats, scale: float = 1.0) -> Floats:
        """A posterior sample of every node from standard normals times the scale, which are overwritten."""
        ...

    def transform_some(self, nodes: Nodes, parent_position: Nodes, normals: Floats, scale: float = 1.0) -> Floats:
        """A joint posterior sample of nodes (ascending, closed under parents); overwrites normals times the scale."""
        ...

    def touched_values(self, rng: np.random.Generator, scale: float = 1.0, only_best: bool = False) -> Floats:
        """(T,) or (T, d): a joint draw of the touched nodes, by slot, its deviations from the mean times the scale.

        With `only_best`, actions that are not the best of them may have other values, which are not the highest either.
        """
        ...

    def class_deviations(self, context: Any) -> Floats:
        """(n_classes,) the standard deviation of a node given its parent, in the direction of the context."""
        ...

    def mean(self) -> Floats:
        """The posterior mean of every node."""
        ...

    def covariance(self) -> Floats:
        """The posterior covariance of every node by itself."""
        ...

    def node_moments(self, context: Any) -> tuple[Floats, Floats]:
        """(V,) and (V,): the mean and the variance of each node's score."""
        ...

    def some_moments(self, nodes: Nodes, parent_position: Nodes, context: Any) -> tuple[Floats, Floats]:
        """(n,) and (n,): the mean and the variance of the scores of nodes (ascending, closed under parents)."""
        ...

    def action_moments(self, context: Any) -> tuple[Floats, Floats]:
        """(K,) and (K,): the mean and the variance of each action's score."""
        ...

    def conditional(self, node: int) -> tuple[Any, Any, Any]:
        """(gain, offset, covariance) of a node given its parent."""
        ...

    def log_evidence(self) -> float:
        """The log density of all rewards observed so far."""
        ...

    @property
    def n_observations(self) -> int:
        """How many observations there are."""
        ...

    def slot_weights(self) -> Floats:
        """(T,) how many observations there are at or below each slot, as they count now."""
        ...

    def slot_counts(self) -> Integers:
        """(T,) the observations at or below each slot."""
        ...

    def slot_averages(self) -> Floats:
        """(T,) the mean of the rewards at or below each slot; NaN where there are none."""
        ...


class TableEngine(ABC):
    """What every engine does in the same way: slots, and a table of evidence with room to spare."""

    _learned: ClassVar[tuple[str, ...]]
    """The arrays that change as rewards come in, beside the evidence."""

    def __init__(self, model: Model, kind: Evidence) -> None:
        self.model = model
        self.kind = kind
        self.slots = Slots(model.tree, model.classes.of_node)
        self.is_searchable = True
        self.is_normal = True
        self.is_partial = False
        self.may_refuse = False
        self.now = 0.0
        self.news = News()
        self._table = np.zeros((0, kind.width))
        self._unit = 1.0  # an observation in the table counts this much, since its rows need not be scaled at once
        self._faded = 1.0  # and this much, which messages do not know of yet; taken in when something is read

    @property
    def n_effects(self) -> int:
        """None."""
        return 0

    @property
    def table(self) -> Floats:
        """(n_rows, width) the evidence, one row per touched action."""
        self._made_good()
        self._scale_rows()
        return self._table[: self.slots.n_rows]

    def evidence_rows(self) -> tuple[Nodes, Floats]:
        """(n,) and (n, width): the actions that rows of evidence are of, and the rows."""
        return self.slots.node[self.slots.of_rows], self.table

    def raw_rows(self) -> tuple[Nodes, Floats, float]:
        """Copies of the rows as they stand, with their actions, and how much an observation in them counts."""
        nodes = np.full(self.slots.n_rows, -1, dtype=np.int32)
        actions = self.slots.row >= 0
        nodes[self.slots.row[actions]] = self.slots.node[actions]
        return nodes, self._table[: self.slots.n_rows].copy(), self._unit * self._faded

    def _scale_rows(self) -> None:
        """Have an observation in the table count as one again."""
        if self._unit != 1.0:
            self.kind.scale(self._table[: self.slots.n_rows], self._unit)
            self._unit = 1.0

    def _made_good(self) -> None:
        """Take in what was put off; everything that reads begins with this."""
        self._take_in_fading()

    def _take_in_fading(self) -> None:
        if self._faded != 1.0:
            self._fade(self._faded)
            self._faded = 1.0

    def _fade(self, factor: float) -> None:
        """Have the evidence count that much of what it did, and make all messages again."""
        self._unit *= factor
        self._scale_rows()
        self._say_all()

    @abstractmethod
    def _say(self, slots: Nodes) -> None:
        """Make the messages from the slots of some actions to the root again, whose evidence has changed."""

    @abstractmethod
    def _say_all(self) -> None:
        """Make all messages again from the evidence."""

    @abstractmethod
    def _begin(self, slots: Nodes) -> None:
        """Make the laws of new slots, of actions without evidence, and of what is above them."""

    def _touch(self, leaves: Nodes) -> Nodes:
        """The leaves' slots, with room for what is kept of them; nothing changes where there is no memory for it."""
        before = self.slots.count
        slots = self.slots.touch(leaves)
        try:
            self._make_room_for_rows()
            self._make_room(before)
        except MemoryError:
            self.slots.forget(before)
            raise
        return slots

    def _touch_batch(self, leaves: Nodes) -> Nodes:
        """`_touch`, where many that are new get their slots side by side with their relatives.

        Messages go from slots to those of their parents, which are then near in memory.
        """
        if len(leaves) > _LARGE:
            self._touch(np.sort(leaves))
        return self._touch(leaves)

    def _make_room_for_rows(self) -> None:
        if self.slots.n_rows > len(self._table):
            self._table = grown(self._table, max(self.slots.n_rows, len(self._table) + len(self._table) // 2, 16))

    # -- changes -------------------------------------------------------------------------------

    def check(self, rows: Rows) -> None:  # noqa: B027
        """Nothing: whatever has been checked can be computed with."""

    def touch(self, leaves: Nodes) -> Nodes:
        """The slots of leaves, which get one if they had none."""
        before = self.slots.count
        slots = self._touch(leaves)
        if self.slots.count > before:
            self._begin(slots)
        return slots

    def add(self, node: int, parent: int, class_: int) -> None:
        """Have one more action, a node beyond the tree's last, below an inner node or an action without evidence."""
        before, slot_above = self.slots.count, self.slots.find_one(parent)
        is_category = slot_above >= 0 and self.slots._row[slot_above] < 0
        try:
            if slot_above < 0:
                slot_above = int(self.slots.touch(np.array([parent], dtype=np.int32), are_leaves=False)[0])
            slot = self.slots.add(node, slot_above, self._class_of_action(class_))
            self._make_room_for_rows()
            self._make_room(before)
        except MemoryError:
            self.slots.forget(before)
            raise
        if not is_category:
            self.news.of_a_new_category()
            self.slots.make_inner(slot_above, self._class_of_category(int(self.slots.class_[slot_above])))
        self._begin(np.array([slot], dtype=np.int32))

    def _class_of_action(self, class_: int) -> int:
        """The class of the slot of an action of this covariance class."""
        return class_

    def _class_of_category(self, class_: int) -> int:
        """The class of the slot of a category, where that of an action is given."""
        return class_

    def weight(self, leaf: int) -> float:
        """How many observations there are of a leaf, as they count now."""
        row = self._row_of(leaf)
        return 0.0 if row < 0 else float(self._table[row, 0]) * self._unit * self._faded

    def _row_of(self, leaf: int) -> int:
        """The row of a leaf's evidence, or -1."""
        slot = self.slots.find_one(leaf)
        return -1 if slot < 0 else int(self.slots._row[slot])

    def forget(self, leaf: int) -> None:
        """Have no evidence of a leaf any more."""
        if self.weight(leaf) > 0.0:
            self._table[self._row_of(leaf)] = 0.0
            self._say(np.array([self.slots.find_one(leaf)], dtype=np.int32))

    def forget_all(self, leaves: Nodes) -> None:
        """Have no evidence of any of some leaves any more."""
        for leaf in leaves.tolist():
            self.forget(leaf)

    def relocate(self, leaf: int, to: int) -> None:
        """Have a leaf's evidence at another one, which has none, and none at the first."""
        if self.weight(leaf) > 0.0:
            slots = self._touch(np.array([leaf, to], dtype=np.int32))
            old, new = self.slots.row[slots]
            self._table[new] = self._table[old]
            self._table[old] = 0.0
            self._say(slots)

    def retract(self, rows: Rows) -> None:
        """Take back rewards that were observed; a `ValueError`, and nothing, where they cannot have been."""
        table = self.table
        places = [self._row_of(leaf) for leaf in rows.leaves.tolist()]
        kept = {row: table[row].copy() if row >= 0 else np.zeros(self.kind.width) for row in places}
        for i, row in enumerate(places):
            self.kind.retract(kept[row], rows, i)
        for row, evidence in kept.items():
            self._table[row] = evidence
        self._say(np.unique(self.slots.find(rows.leaves)))

    def discount(self, factor: float) -> None:
        """Have everything observed so far count that much of what it did."""
        self._faded *= factor
        if self._faded * self._unit < _LEAST_FADED:
            self.table  # noqa: B018, which takes it in

    def advance(self, now: float) -> None:  # noqa: B027
        """Nothing: only drift minds the time."""

    @abstractmethod
    def _make_room(self, before: int) -> None:
        """Room for what is kept by slot; those from `before` on are new."""

    def snapshot(self) -> Self:
        """An engine that goes on by itself: what was learned is copied, the tree and the prior are shared."""
        twin = copy.copy(self)  # what was put off is put off there too
        twin.news = News()
        for name in ("slots", "_table", *self._learned):
            setattr(twin, name, getattr(self, name).copy())
        return twin

    def extra_arrays(self) -> dict[str, Any]:
        """Nothing: the evidence is all that is kept."""
        return {}

    def take_extra(self, _arrays: Mapping[str, Any]) -> None:
        """Nothing."""
        return

    def settle(self, log: Rows | None, propagate: bool) -> None:  # noqa: ARG002
        """Nothing to refine: the posterior is exact."""
        if log is not None:
            raise ValueError("this model keeps all that it needs; call settle() without a log")

    def settle_again(self) -> None:  # noqa: B027
        """Nothing: the posterior is exact, or only a log can refine it."""

    @property
    def n_observations(self) -> int:
        """How many observations there are."""
        return round(float(self.table[:, 0].sum()))

    def slot_weights(self) -> Floats:
        """(T,) how many observations there are at or below each slot, as they count now."""
        weights = np.zeros(self.slots.count)
        actions = self.slots.row >= 0
        weights[actions] = self.table[self.slots.row[actions], 0]
        return self.slots.add_up(weights)

    def slot_counts(self) -> Integers:
        """(T,) the observations at or below each slot."""
        return np.rint(self.slot_weights()).astype(np.int64)

    def slot_averages(self) -> Floats:
        """(T,) the mean of the rewards at or below each slot; NaN where there are none."""
        sums = np.zeros((2, self.slots.count))
        actions = np.flatnonzero(self.slots.row >= 0)
        sums[:, actions] = self.kind.totals(self.table[self.slots.row[actions]])
        total, size = (self.slots.add_up(each) for each in sums)
        averages = np.full(len(size), np.nan)
        np.divide(total, size, out=averages, where=size > 0.0)
        return averages
