"""The search for the best actions of one draw, without drawing what cannot win; see docs/explanation/decisions.md."""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np

from bough._arrays import Floats, Nodes
from bough.inference.alike import Alike
from bough.inference.engine import Engine
from bough.inference.scalar import ScalarEngine
from bough.inference.slots import Slots
from bough.inference.switch import Switch
from bough.inference.untouched import Untouched
from bough.model.model import Model

_NOTHING = np.empty(0, dtype=np.int32)
_DEEPEST = 64  # a slot keeps a number for each level below it, so very deep trees are left to the full sampler


class Search:
    """What a search keeps between decisions: the groups of untouched nodes, and the widths of steps."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._untouched: Untouched | None = None
        self._noted: set[int] = set()  # classes of actions, until that is made
        self._alike: Alike | None = None
        self._limits: tuple[Floats, Floats] | None = None
        self._scale = 1.0  # that these are for
        self.switch = Switch(self.alike)
        self.visited = 0
        """How many nodes the last search went to."""

    def prepared(self) -> Untouched:
        """What depends on the tree and the prior alone, made the first time: in a large tree that takes a while."""
        if self._untouched is None:
            self._untouched = Untouched(self._model.tree, self._model.classes.of_node)
            for class_ in self._noted:
                self._untouched.note_leaf_class(class_)
        return self._untouched

    def alike(self) -> Alike:
        """Which subtrees are alike, found out the first time: in a large tree that takes a while."""
        if self._alike is None:
            self._alike = Alike(self._model.tree, self._model.classes.of_node)
        return self._alike

    @property
    def n_unlike(self) -> int | None:
        """How many inner nodes have something below them that is not alike; None where nobody has asked yet."""
        return None if self._alike is None else len(self._alike.unlike)

    def note_leaf_class(self, class_: int) -> None:
        """Mind that an action of this class was added to the tree."""
        if self._untouched is None:
            self._noted.add(class_)
        elif self._untouched.note_leaf_class(class_):
            self._limits = None

    def best(
        self,
        engine: Engine,
        rng: np.random.Generator,
        context: Floats | None,
        k: int,
        excluded: Nodes,
        scale: float = 1.0,
    ) -> tuple[Nodes, Floats] | None:
        """The k best actions of one joint draw with their scores, best first; None where the tree cannot be searched.

        The draw's deviations from the mean are times the scale. A tree cannot be searched where actions may tie, where
        a node has very many children of unlike variances, and where it has more than 64 levels.
        """
        capped = None if context is not None else self.switch.ready(engine, scale)
        if capped is not None:
            nodes, scores, self.visited = capped.best(rng, k, excluded)
            self.switch.after_capped(self.visited, float(scores[-1]))
            return nodes, scores
        prepared = self.without(engine, context, excluded, scale)
        if prepared is None:
            return None
        nodes, scores, self.visited = prepared.best(prepared.draw(rng, k == 1).values, k, rng)
        self.switch.after_plain(self.visited, engine.slots.count, float(scores[-1]))
        return nodes, scores

    def highest(self, engine: Engine, rng: np.random.Generator) -> float | None:
        """The best score of a draw, where nothing is to be remembered of it; None where the tree cannot be searched."""
        capped = self.switch.look(engine, 1.0)
        if capped is not None:
            return float(capped.others(rng, 1, _NOTHING, _NOTHING)[0][0])
        prepared = self.without(engine, None, _NOTHING)
        return None if prepared is None else float(prepared.best(prepared.draw(rng, True).values, 1, rng)[1][0])

    def without(
        self, engine: Engine, context: Floats | None, excluded: Nodes, scale: float = 1.0
    ) -> PreparedSearch | None:
        """What searches of several draws share, until the engine learns more; None where the tree cannot be searched.

        The excluded actions are drawn with the rest, and not chosen. A draw whose deviations from the mean are times
        the scale has the same gains and offsets from parent to child, and steps that are times the scale.
        """
        model = self._model
        if not engine.is_searchable or model.tree.height > _DEEPEST:
            return None
        untouched, slots = self._untouched or self.prepared(), engine.slots
        deviation = engine.class_deviations(context)
        mean = float(model.mean if context is None else model.mean @ context)
        if scale != 1.0:
            deviation = scale * deviation
        limits = self._limits
        if limits is None or not model.is_scalar or scale != self._scale:
            limits = self._limits = untouched.limits(deviation, mean)
            self._scale = scale
        if limits is None:
            return None
        untouched.sync(slots)
        if len(excluded) or not slots.count:
            untouched, slots = untouched.extended(excluded, slots)
        return PreparedSearch(engine, context, untouched, slots, deviation, mean, limits, scale, len(excluded) > 0)

    def ready(self, engine: Engine, excluded: Nodes) -> tuple[Untouched, Slots] | None:
        """What searches in all contexts share; None where the tree cannot be searched in any."""
        untouched, slots = self._untouched or self.prepared(), engine.slots
        if not engine.is_searchable or self._model.tree.height > _DEEPEST or untouched.is_patchy:
            return None
        untouched.sync(slots)
        return untouched.extended(excluded, slots) if len(excluded) or not slots.count else (untouched, slots)


class Draw(NamedTuple):
    """One joint draw of the touched nodes, and of what a search has in addition."""

    parameters: Floats
    """(T,) or (T, d) of the touched nodes, by slot."""
    values: Floats
    """(T + more,) in the direction of the context, by the slots of the search."""


class PreparedSearch(NamedTuple):
    """What searches share while nothing is learned: one context, and the same actions left out."""

    engine: Engine
    context: Floats | None
    untouched: Untouched
    slots: Slots
    deviation: Floats
    mean: float
    limits: tuple[Floats, Floats]
    scale: float
    excludes: bool
    """Whether there are touched actions that may not be chosen here, and may otherwise."""

    def draw(self, rng: np.random.Generator, only_best: bool = False) -> Draw:
        """The part of a joint draw that has to be drawn; `only_best` where nothing but its best action is asked for."""
        parameters = self.engine.touched_values(rng, self.scale, only_best and not self.excludes)
        values = parameters if self.context is None else parameters @ self.context
        if self.slots.count > len(values):
            values = self.untouched.extend_values(values, self.slots, self.deviation, self.mean, rng)
        return Draw(parameters, values)

    def best(self, values: Floats, k: int, rng: np.random.Generator) -> tuple[Nodes, Floats, int]:
        """The k best actions of the draw that has these values, their scores, and the work it took."""
        return self.untouched.search(self.slots, values, self.deviation, self.limits, k, rng)

    def many(self, rng: np.random.Generator, n: int, k: int) -> tuple[Nodes, Floats]:
        """(n, k) twice: the k best actions of n draws, in a model without contexts, and their scores.

        It changes nothing but the generator, so that threads may share what is prepared.
        """
        engine = cast(ScalarEngine, self.engine)
        draw = (engine.slots.count, self.scale, *engine.draw_arrays())
        return self.untouched.search_many(rng, n, k, self.slots, draw, self.deviation, self.limits)
