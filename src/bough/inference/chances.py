"""The chances of actions given a draw of everything else: what probabilities of being best are averages of.

Given a draw of all but an action's own step, its score is normal around what its parent's value gives it, so that it
beats a threshold with a probability in closed form (Rao-Blackwell). Where it has no step of its own, its wins are
counted, and ties shared.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from bough._arrays import Floats, Nodes
from bough.inference.engine import Engine
from bough.inference.noisy import NoisyEngine

_STEPLESS = 1e-9  # of the scores: a deviation this small is lost in their rounding


def tied_shares(scores: Floats, own: Floats, k: int) -> Floats:
    """The probability that each of some scores, which are among all, is of the k largest, where ties are random."""
    ascending = np.sort(scores)
    above = len(scores) - np.searchsorted(ascending, own, side="right")
    tied = len(scores) - np.searchsorted(ascending, own, side="left") - above
    return np.clip((k - above) / tied, 0.0, 1.0)


def best_of_others(scores: Floats, own: Floats, k: int) -> Floats:
    """(n, r) the k-th best of each row of scores, which has the r own scores, without each of these."""
    last = scores.shape[1] - k
    ordered = np.partition(scores, (last - 1, last), axis=1)
    kth, next_ = ordered[:, [last]], ordered[:, [last - 1]]
    return np.where(own >= kth, next_, kth)


class Laws(NamedTuple):
    """The scores of actions given their parents' parameters p: normal, with mean ``gain p + offset``."""

    gain: Floats
    """(r,) or (r, d)."""
    offset: Floats
    deviation: Floats

    def centre(self, parents: Floats) -> Floats:
        """(..., r) the means, of parents (..., r) or (..., r, d)."""
        centre = parents * self.gain
        return (centre if self.gain.ndim == 1 else centre.sum(axis=-1)) + self.offset

    def above(self, limit: Floats, centre: Floats) -> Floats:
        """(..., r) how likely each score is to be above a limit, of (..., r) parents' `centre`."""
        return np.asarray(ndtr((centre - limit) / np.where(self.deviation > 0.0, self.deviation, 1.0)))


class MixedLaws(Laws):
    """The same where scores given their parents are mixtures: what is asked for as a centre is the parent itself."""

    engine: NoisyEngine
    slots: Nodes
    """(r,) -1 for actions without rewards, whose laws are normal."""
    scale: float

    @classmethod
    def of(cls, engine: NoisyEngine, nodes: Nodes, laws: Laws, scale: float) -> MixedLaws:
        """The laws of actions, of which those without rewards are normal."""
        made = cls(*laws)
        made.engine, made.slots, made.scale = engine, engine.slots_with_rewards(nodes), scale
        return made

    def centre(self, parents: Floats) -> Floats:
        return parents

    def above(self, limit: Floats, centre: Floats) -> Floats:
        found = super().above(limit, super().centre(centre))
        known = np.flatnonzero(self.slots >= 0)
        limits = np.broadcast_to(limit, found.shape)
        found[:, known] = self.engine.exceedance(self.slots[known], limits[:, known], centre[:, known], self.scale)
        return found


def laws_of(engine: Engine, nodes: Nodes, context: Floats | None, scale: float = 1.0) -> Laws:
    """The laws of actions, which have parents, in draws whose deviations from the mean are times the scale."""
    found = _normal_laws(engine, nodes, context, scale)
    return MixedLaws.of(engine, nodes, found, scale) if isinstance(engine, NoisyEngine) else found


def _normal_laws(engine: Engine, nodes: Nodes, context: Floats | None, scale: float) -> Laws:
    laws = [engine.conditional(node) for node in nodes.tolist()]
    gain, offset, covariance = (np.array(part, dtype=np.float64) for part in zip(*laws, strict=True))
    if context is None:
        return Laws(gain, offset, scale * np.sqrt(covariance))
    variance = np.einsum("i,nij,j->n", context, covariance, context)
    return Laws(context @ gain, offset @ context, scale * np.sqrt(np.maximum(variance, 0.0)))


def chances(scores: Floats, own: Floats, centre: Floats, laws: Laws, k: int) -> Floats:
    """(n, r) the chances of actions with these (n, r) own scores, drawn around their centres, among (n, m) scores."""
    steps = laws.deviation > _STEPLESS * np.abs(own).max(axis=0)
    best = best_of_others(scores, own, k)
    found = laws.above(best, centre)
    if not steps.all():
        for row, among, mine in zip(found, scores, own, strict=True):
            row[~steps] = tied_shares(among, mine[~steps], k)
    return found
