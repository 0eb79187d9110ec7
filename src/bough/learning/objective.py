"""What is maximised: the log evidence of a forest, and a weak prior that keeps variances off zero and infinity."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bough._arrays import Flags, Floats, Integers
from bough.learning.forest import Forest

STEP = 1e-4  # of a log-variance, for differences of the exact gradient
LEAST_NOISE = 1e-8  # of the rewards' variance: the noise that is learned is never less


class Penalty(NamedTuple):
    """A normal prior on every log-variance that is learned, the noise's around a centre of its own."""

    centre: float
    centre_of_noise: float
    width: float


class Objective(ABC):
    """A log evidence, penalised or not, as a function of a vector of parameters."""

    furthest = 30.0  # how far above its start a logarithm may go
    flat = 1e-7  # the gradient at which the search ends, in standard errors of a parameter
    is_slow = False  # so that differences of the gradient are taken to one side
    mean: Any  # the prior mean at the last evaluation
    mean_error: Any  # its standard error; zero where it is given

    def __init__(self, forest: Forest, group: Integers, noise_learned: bool, penalty: Penalty | None) -> None:
        self.forest = forest
        self.group = group
        self.noise_learned = noise_learned
        self.penalty = penalty
        self.advance: Callable[[int], object] = _unreported
        """Called with 1 after every pass over the forest: what a fit spends its time with."""

    @property
    def n_noise(self) -> int:
        """How many parameters, the last ones, say how noisy rewards are."""
        return int(self.noise_learned)

    def mean_noise(self, noise: Any) -> float:
        """The noise variance of an action, on average."""
        return float(noise)

    def simplest(self, parameters: Floats, converged: bool) -> tuple[Floats, bool]:
        """What has no less evidence than what was found, and says less; and whether it is known to be the best."""
        return parameters, converged

    def noise_numbers(self, noise: Any) -> list[float]:
        """The numbers that say how noisy rewards are, in the order of their parameters."""
        return [float(noise)]

    def lowest(self, start: Floats, furthest: float, least_log_noise: float) -> Floats:
        """How far below the start each logarithm may go."""
        found = np.full(len(start), -furthest)
        if self.noise_learned:
            found[-1] = least_log_noise - start[-1]
        return found

    def highest(self, start: Floats) -> Floats:
        """How far above the start each logarithm may go."""
        return np.full(len(start), self.furthest)

    @property
    def learned(self) -> Flags:
        """(n_classes,) those whose covariance is learned."""
        return np.asarray(self.group >= 0)

    @property
    def n_groups(self) -> int:
        """How many sizes are learned: classes of one group keep the proportions that they begin with."""
        return int(self.group.max(initial=-1)) + 1

    def by_group(self, of_class: Floats) -> Floats:
        """(n_groups,) sums over the classes of each group."""
        return np.bincount(self.group[self.learned], of_class[self.learned], minlength=self.n_groups).astype(np.float64)

    def prepare(self) -> None:  # noqa: B027
        """Go closer to the maximum by cheaper means than the search."""

    def expect(self, slope: float) -> None:  # noqa: B027
        """Told how steep the last evaluation was, in standard errors: the next need not be much closer than that."""

    @abstractmethod
    def start(self) -> Floats:
        """Where the search begins."""

    @abstractmethod
    def curvature(self) -> Floats:
        """About how curved the evidence is in each parameter, so that the search can take steps of one size in all."""

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
        """The gradient by the logarithms of factors, one a group and one for the noise."""

    @abstractmethod
    def sizes(self, parameters: Floats) -> Floats:
        """(n_classes,) the variance of each class; of a covariance, the mean of its diagonal."""

    def are_free(self, parameters: Floats) -> Flags:  # noqa: ARG002
        """(n,) the sizes and the noise: whether each is where the evidence has it, and not where it had to stop."""
        return np.ones(self.n_groups + self.n_noise, dtype=np.bool_)

    def size_errors(self, parameters: Floats) -> Floats:
        """The standard errors of the logarithms of the groups' sizes and of the noise, from the curvature; inf where

        that is flat.
        """
        free = np.flatnonzero(self.are_free(parameters))
        errors, information = np.zeros(self.n_groups + self.n_noise), self.information(parameters, free)
        values, vectors = np.linalg.eigh(information) if len(free) else (np.empty(0), np.empty((0, 0)))
        # A standard error of a thousand in the logarithm is no knowledge, and differences have their rounding.
        flat = values <= 1e-6 + 1e-8 * values.max(initial=0.0)
        variances = np.square(vectors[:, ~flat]) @ (1.0 / values[~flat])
        unknown = (np.square(vectors[:, flat]) > 1e-6).any(axis=1)
        errors[free] = np.sqrt(np.where(unknown, np.inf, variances))
        return errors

    def information(self, parameters: Floats, free: Integers) -> Floats:
        """Minus the second derivatives by the logarithms of these of the groups' sizes and of the noise."""
        n = self.n_groups + self.n_noise
        hessian = np.empty((len(free), len(free)))
        here = self.scale_gradient(parameters, np.zeros(n)) if self.is_slow else None
        for i, step in enumerate(np.eye(n)[free] * STEP):
            ahead = self.scale_gradient(parameters, step)
            behind = self.scale_gradient(parameters, -step) if here is None else here
            hessian[i] = (ahead - behind)[free] / ((2.0 if here is None else 1.0) * STEP)
        return -(hessian + hessian.T) / 2.0


def _unreported(_: int) -> None:
    """Nobody asked."""
