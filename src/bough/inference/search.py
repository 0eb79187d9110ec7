"""The search for the best actions of one posterior draw, without drawing what cannot win; see docs/decisions.md."""

from __future__ import annotations

import numpy as np

from bough._arrays import Floats, Nodes
from bough.inference.engine import Engine
from bough.inference.untouched import Untouched
from bough.model.model import Model

_DEEPEST = 64  # a slot keeps a number for each level below it, so very deep trees are left to the full sampler


class Search:
    """What a search keeps between decisions: the groups of untouched nodes, and the widths of steps."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._untouched: Untouched | None = None
        self._limits: tuple[Floats, Floats] | None = None
        self.visited = 0
        """How many nodes the last search went to."""

    def prepared(self) -> Untouched:
        """What depends on the tree and the prior alone, made the first time: in a large tree that takes a while."""
        if self._untouched is None:
            self._untouched = Untouched(self._model.tree, self._model.classes.of_node)
        return self._untouched

    def note_leaf_class(self, class_: int) -> None:
        """Mind that an action of this class was added to the tree."""
        if self.prepared().note_leaf_class(class_):
            self._limits = None

    def best(
        self, engine: Engine, rng: np.random.Generator, context: Floats | None, k: int, excluded: Nodes
    ) -> tuple[Nodes, Floats] | None:
        """The k best actions of one joint draw with their scores, best first; None where the tree cannot be searched.

        That is where actions may tie, where a node has very many children of unlike variances, and in trees of more
        than 64 levels.
        """
        model = self._model
        if not engine.is_searchable or model.tree.height > _DEEPEST:
            return None
        untouched, slots = self._untouched or self.prepared(), engine.slots
        deviation = engine.class_deviations(context)
        mean = float(model.mean if context is None else model.mean @ context)
        limits = self._limits
        if limits is None or not model.is_scalar:
            limits = self._limits = untouched.limits(deviation, mean)
        if limits is None:
            return None
        untouched.sync(slots)
        value = engine.touched_values(rng, context)
        if len(excluded) or not slots.count:
            untouched, slots, value = untouched.extend(excluded, slots, value, deviation, mean, rng)
        nodes, scores, self.visited = untouched.search(slots, value, deviation, limits, k, rng)
        return nodes, scores
