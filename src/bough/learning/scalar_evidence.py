"""The evidence of numbers, as a function of the logarithms of the variances."""

from __future__ import annotations

import math

import numpy as np

from bough._arrays import Floats, Integers
from bough.inference.kernels import forest as kernels
from bough.learning.forest import Forest
from bough.learning.objective import Objective, Penalty


class ScalarEvidence(Objective):
    """The log evidence of a forest in d = 1; parameters are log-variances by group, then the noise's."""

    def __init__(
        self,
        forest: Forest,
        variance: Floats,  # (n_classes,) what is set, and where the search begins
        group: Integers,  # (n_classes,) of classes that grow and shrink together; -1 for those that are set
        noise: float,
        noise_learned: bool,
        mean: float | None,  # None: by generalised least squares
        penalty: Penalty | None,
    ) -> None:
        super().__init__(forest, group, noise_learned, penalty)
        # A group's parameter is the logarithm of the mean of its variances.
        members = np.maximum(self.by_group(np.ones(len(group))), 1.0)
        self._size = self.by_group(variance) / members
        self._base = variance.copy()
        self._base[self.learned] /= self._size[group[self.learned]]
        self._fixed_noise = noise
        self._given_mean = mean
        sums = forest.statistics
        # Rewards are taken as deviations from their mean, which rounds less.
        self._centre = float(sums.sum_y.sum() / sums.count.sum())
        averages, within = sums.averages_and_spreads()
        self._within = float(within.sum())
        inside = forest.leaf < 0
        self._count = np.where(inside, 0.0, sums.count[forest.leaf])
        self._average = np.where(inside, 0.0, averages[forest.leaf] - self._centre)
        self._scratch = [np.empty(len(forest.parent)) for _ in range(4)]
        self.mean = 0.0 if mean is None else mean
        self.mean_error = 0.0

    def start(self) -> Floats:
        return np.asarray(np.log(np.append(self._size, [self._fixed_noise] * self.noise_learned)))

    def curvature(self) -> Floats:
        nodes = self.by_group(self.forest.nodes_of_class.astype(np.float64))
        return np.append(1.0 + 0.5 * nodes, [1.0 + 0.5 * self.forest.n_rows] * self.noise_learned)

    def unpacked(self, parameters: Floats) -> tuple[Floats, float]:
        """The variances by class, and the noise's."""
        variance = self._base.copy()
        variance[self.learned] *= np.exp(parameters[self.group[self.learned]])
        return variance, float(np.exp(parameters[-1])) if self.noise_learned else self._fixed_noise

    def evidence(self, variance: Floats, noise: float) -> tuple[float, Floats]:
        """The log evidence, with its gradient by all log-variances and, last, the log-noise; sets `mean`."""
        found = self._tree_evidence(variance, noise)
        self.advance(1)
        return found

    def _tree_evidence(self, variance: Floats, noise: float) -> tuple[float, Floats]:
        """`evidence` of the averages as they stand."""
        forest = self.forest
        M, eta, mean, uncertainty = self._scratch
        top = np.empty(2)
        data = (forest.parent, forest.class_, self._count, self._average, variance, noise)
        kernels.gather(*data, M, eta, top)
        deviation = top[1] / top[0] if self._given_mean is None else self._given_mean - self._centre
        gradient = np.empty(len(variance) + 1)
        deviance = kernels.spread(*data, deviation, M, eta, mean, uncertainty, gradient)
        n = forest.n_rows
        gradient[-1] += 0.5 * (self._within / noise - n)
        self.mean = float(self._centre + deviation)
        self.mean_error = 1.0 / math.sqrt(float(top[0])) if self._given_mean is None else 0.0
        value = -0.5 * (deviance + self._within / noise + n * math.log(2.0 * math.pi * noise))
        return value, gradient

    def value_and_gradient(self, parameters: Floats) -> tuple[float, Floats]:
        variance, noise = self.unpacked(parameters)
        value, gradient = self.evidence(variance, noise)
        chosen = np.append(self.by_group(gradient[:-1]), gradient[-1:] if self.noise_learned else [])
        if self.penalty is None:
            return value, chosen
        off = (parameters - self.penalty.centre) / self.penalty.width
        if self.noise_learned:
            off[-1] = (parameters[-1] - self.penalty.centre_of_noise) / self.penalty.width
        return value - 0.5 * float(off @ off), chosen - off / self.penalty.width

    def scale_gradient(self, parameters: Floats, log_scale: Floats) -> Floats:
        return self.value_and_gradient(parameters + log_scale)[1]

    def sizes(self, parameters: Floats) -> Floats:
        return self.unpacked(parameters)[0]
