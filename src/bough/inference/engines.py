"""Which engine a model's posterior has."""

from __future__ import annotations

from bough.inference.crossed import CrossedEngine
from bough.inference.drift import DriftEngine
from bough.inference.engine import Engine
from bough.inference.filtering import ContextCountEngine
from bough.inference.noisy import NoisyEngine
from bough.inference.propagation import CountEngine
from bough.inference.scalar import ScalarEngine
from bough.inference.vector import VectorEngine
from bough.model.model import Model


def engine_for(model: Model) -> Engine:
    """A fresh engine: exact where rewards are conjugate, by expectation propagation otherwise."""
    if model.drift_half_life is not None:
        return DriftEngine(model)
    if model.effects is not None:
        return CrossedEngine(model)
    if model.kind.has_own_noise:
        return NoisyEngine(model)
    if model.is_scalar:
        return ScalarEngine(model) if model.kind.is_conjugate else CountEngine(model)
    return VectorEngine(model) if model.kind.is_conjugate else ContextCountEngine(model)
