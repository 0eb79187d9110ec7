"""What is maximised: the log evidence of a forest, and a weak prior that keeps variances off zero and infinity."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from bough.arrays import Flags, Floats
from bough.learning.forest import Forest

_STEP = 1e-4  # of a log-variance, for differences of the exact gradient


class Penalty(NamedTuple):
    """A normal prior on every log-variance that is learned, the noise's around a centre of its own."""

    centre: float
    centre_of_noise: float
    width: float


class Objective(ABC):
    """A log evidence, penalised or not, as a function of a vector of parameters."""

    mean: Any  # the prior mean at the last evaluation
    mean_error: Any  # its standard error; zero where it is given

    def __init__(self, forest: Forest, learned: Flags, noise_learned: bool, penalty: Penalty | None) -> None:
        self.forest = forest
        self.learned = learned
        self.noise_learned = noise_learned
        self.penalty = penalty

    @abstractmethod
    def start(self) -> Floats:
        """Where the search begins."""

    @abstractmethod
    def unpacked(self, parameters: Floats) -> tuple[Floats, float]:
        """The covariances by class, and the noise variance."""

    @abstractmethod
    def evidence(self, covariance: Floats, noise: float) -> tuple[float, Any]:
        """The log evidence without the penalty, and something about its gradient; sets `mean` and `mean_error`."""

    @abstractmethod
    def value_and_gradient(self, parameters: Floats) -> tuple[float, Floats]:
        """The penalised log evidence and its gradient by the parameters."""

    @abstractmethod
    def scale_gradient(self, parameters: Floats, log_scale: Floats) -> Floats:
        """The gradient by the logarithms of factors, one a learned class and one for the noise."""

    @abstractmethod
    def sizes(self, parameters: Floats) -> Floats:
        """(n_classes,) the variance of each class; of a covariance, the mean of its diagonal."""

    def size_errors(self, parameters: Floats) -> Floats:
        """The standard errors of the logarithms of the sizes and of the noise, from the curvature; inf where flat."""
        n = int(self.learned.sum()) + self.noise_learned
        hessian = np.empty((n, n))
        for i, step in enumerate(np.eye(n) * _STEP):
            ahead, behind = self.scale_gradient(parameters, step), self.scale_gradient(parameters, -step)
            hessian[i] = (ahead - behind) / (2.0 * _STEP)
        information = -(hessian + hessian.T) / 2.0
        values, vectors = np.linalg.eigh(information) if n else (np.empty(0), np.empty((0, 0)))
        flat = values <= 1e-6  # a standard error of a thousand in the logarithm is no knowledge
        variances = np.square(vectors[:, ~flat]) @ (1.0 / values[~flat])
        unknown = (np.square(vectors[:, flat]) > 1e-6).any(axis=1)
        return np.sqrt(np.where(unknown, np.inf, variances))
