"""What the posterior asks of an engine: the scalar one, the vector one, or another."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from bough.arrays import Floats, Integers, Nodes
from bough.inference.touched import Touched
from bough.statistics import Statistics
from bough.storage import Contents


class Engine(Protocol):
    """The state of a posterior and the operations on it; everything comes in checked."""

    touched: Touched

    def observe(self, leaves: Nodes, rewards: Floats, contexts: Any, exposure: Any) -> None:
        """Add rewards of leaves, with contexts (n, d) in a contextual model, and trials or exposure of counts."""
        ...

    def absorb(self, leaves: Nodes, statistics: Statistics) -> None:
        """Add the rewards that were summed for distinct leaves, with contexts in a contextual model."""
        ...

    def transform(self, normals: Floats) -> Floats:
        """A posterior sample of every node from standard normals, which are overwritten."""
        ...

    def transform_some(self, nodes: Nodes, parent_position: Nodes, normals: Floats) -> Floats:
        """A joint posterior sample of nodes (ascending, closed under parents); overwrites normals."""
        ...

    def touched_values(self, rng: np.random.Generator, context: Any) -> Floats:
        """(T,) a joint draw of the touched nodes by slot, in the direction of the context."""
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

    def action_moments(self, context: Any) -> tuple[Floats, Floats]:
        """(K,) and (K,): the mean and the variance of each action's mean reward."""
        ...

    def conditional(self, node: int) -> tuple[Any, Any, Any]:
        """(gain, offset, covariance) of a node given its parent."""
        ...

    def log_evidence(self) -> float:
        """The log density of all rewards observed so far."""
        ...

    def slot_counts(self) -> Integers:
        """(T,) the observations at or below each slot."""
        ...

    def arrays(self) -> dict[str, Any]:
        """Everything that has been learned, for a file."""
        ...

    def restore(self, contents: Contents) -> None:
        """Take over what `arrays` gave a file, checked; what a `ValueError` leaves behind is of no use."""
        ...
