"""Joint draws of the scores of actions, with where each of them would be on average given all the rest of the draw."""

from __future__ import annotations

from typing import cast

import numpy as np

from bough._arrays import Floats, Integers, Nodes
from bough.inference.chances import Laws, laws_of
from bough.inference.crossed import CrossedEngine
from bough.inference.engine import Engine
from bough.inference.normals import scaled_normals


class ActionDraws:
    """Draws of actions, some of which are asked for; deviations from the mean are times the scale."""

    def __init__(
        self, engine: Engine, nodes: Nodes, position: Nodes, actions: Nodes, asked: Integers, context: Floats | None,
        scale: float = 1.0,
    ) -> None:  # fmt: skip
        self._engine, self._nodes, self._position, self._actions = engine, nodes, position, actions
        self._context, self._scale = context, scale
        self._at = np.searchsorted(nodes, actions)
        self._asked = actions[asked]
        self._parents = position[self._at[asked]]
        self._crossed = cast(CrossedEngine, engine) if engine.n_effects else None
        self._shape = (len(nodes) + engine.n_effects, *np.shape(engine.model.mean))
        if self._crossed is None:
            self.laws = laws_of(engine, self._asked, context, scale)
        else:  # around centres that the effects have moved already
            deviation = scale * self._crossed.laws(self._asked)[2]
            self.laws = Laws(np.ones(len(deviation)), np.zeros(len(deviation)), deviation)
        """How the scores of the asked actions are spread around their centres."""
        self.width = int(np.prod(self._shape))
        """How many normals a draw takes."""

    def __call__(self, rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        """(n, m) the scores of all actions in each draw, and (n, r) the centres of those that are asked for."""
        draws = scaled_normals(rng, (n, *self._shape), self._scale)
        if self._crossed is not None:
            scores, centre = np.empty((n, len(self._actions))), np.empty((n, len(self._asked)))
            for i, draw in enumerate(draws):
                scores[i], centre[i] = self._given_effects(self._crossed, draw)
            return scores, centre
        for draw in draws:
            self._engine.transform_some(self._nodes, self._position, draw, self._scale)
        scores = draws[:, self._at]
        if self._context is not None:
            scores = np.einsum("nmd,d->nm", scores, self._context)  # equal where parameters are
        return scores, self.laws.centre(draws[:, self._parents])

    def _given_effects(self, engine: CrossedEngine, normals: Floats) -> tuple[Floats, Floats]:
        """One draw where there are crossed effects, which all actions share; overwrites normals."""
        n, mean = len(self._nodes), float(engine.model.mean)
        effects = engine.effects_from(normals[n:])
        tree = engine.given(effects)
        draw = tree.transform_some(self._nodes, self._position, normals[:n])
        gain, offset, _ = tree.laws(self._asked)
        above = np.where(self._parents < 0, mean, draw[self._parents])
        centre = mean + gain * (above - mean) + offset
        return (
            engine.scores(self._actions, draw[self._at], effects, self._context),
            engine.scores(self._asked, centre, effects, self._context),
        )
