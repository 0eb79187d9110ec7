"""The evidence of vectors, as a function of the covariances' Cholesky factors.

Contexts are first scaled to unit root mean square, so that units decide nothing. A class's factor is L = L0 K, with L0
where the search begins and K lower triangular, its diagonal by logarithms. With P the sum over the class's n nodes of
the posterior second moments of e, theta = theta_parent + L e, the gradient of the log evidence by K is K'^-1 (P - n I).
"""

from __future__ import annotations

import math

import numpy as np

from bough._arrays import Floats, Integers
from bough.inference.kernels import forest as kernels
from bough.learning.forest import Forest
from bough.learning.objective import Objective, Penalty
from bough.learning.options import Structure

_FIRST_STEPS = 5  # of expectation maximisation, before the gradient takes over


class VectorEvidence(Objective):
    """The log evidence of a forest with contexts; parameters are those of the learned classes, then the log-noise."""

    def __init__(
        self,
        forest: Forest,
        covariance: Floats,  # (n_classes, d, d) what is set, and where the search begins
        group: Integers,  # (n_classes,) of classes that are learned; -1 for those that are set
        noise: float,
        noise_learned: bool,
        mean: Floats | None,  # None: by generalised least squares
        penalty: Penalty | None,
        structure: Structure,
    ) -> None:
        super().__init__(forest, group, noise_learned, penalty)
        self._structure = structure
        self._fixed_noise = noise
        sums = forest.statistics
        self._unit = np.asarray(np.sqrt(forest.mean_squares()))
        d = len(self._unit)
        rows, values, residual = sums.as_rows(np.zeros(d))
        q, r = np.linalg.qr(rows / self._unit)
        self._rows = np.concatenate([r, np.einsum("nij,ni->nj", q, values)[:, :, None]], axis=2)
        self._residual = float(residual.sum())
        self._given_mean = None if mean is None else mean * self._unit
        self._factor = _roots(self._inside(covariance))
        if structure != "scaled":  # those are triangular; a multiple of any root will do
            self._factor[self.learned] = np.linalg.cholesky(self._inside(covariance[self.learned]))
        n = len(forest.parent)
        self._collected, self._solved = np.empty((n, d, d + 1)), np.empty((n, d, 2 * d + 1))
        self._means, self._covariances = np.empty((n, d)), np.empty((n, d, d))
        self.mean = np.zeros(d)
        self.mean_error = np.zeros(d)

    def _inside(self, covariance: Floats) -> Floats:
        """A covariance in the units of the scaled contexts."""
        return np.asarray(covariance * np.outer(self._unit, self._unit))

    def prepare(self) -> None:
        """Steps of expectation maximisation, from which the factors are measured afterwards."""
        if self._structure == "scaled":
            return
        spoken = self.learned & (self.forest.nodes_of_class > 0)
        d = len(self._unit)
        for _ in range(_FIRST_STEPS):
            excess = self._rough_excess(self._factor, self._fixed_noise)
            # A little of the identity stands for what few nodes cannot say.
            moment = np.eye(d) + excess[spoken] / (self.forest.nodes_of_class[spoken, None, None] + 1.0)
            if self._structure == "diagonal":
                moment *= np.eye(d)
            L = self._factor[spoken]
            self._factor[spoken] = np.linalg.cholesky(L @ moment @ L.transpose(0, 2, 1))

    def _rough_excess(self, factor: Floats, noise: float) -> Floats:
        """The excess by class, as good as it need be before the search."""
        return self._passes(factor, noise)[1]

    # -- parameters ----------------------------------------------------------------------------

    def start(self) -> Floats:
        zeros = np.zeros(self._per_group * self.n_groups)
        return np.append(zeros, [math.log(self._fixed_noise)] * self.noise_learned)

    @property
    def _per_group(self) -> int:
        d = len(self._unit)
        return {"full": d * (d + 1) // 2, "diagonal": d, "scaled": 1}[self._structure]

    def curvature(self) -> Floats:
        nodes = 1.0 + self.by_group(self.forest.nodes_of_class.astype(np.float64))
        d = len(self._unit)
        if self._structure == "scaled":
            each = 2.0 * d * nodes[:, None]
        elif self._structure == "diagonal":
            each = 2.0 * nodes[:, None] * np.ones(d)
        else:
            each = nodes[:, None] * (1.0 + np.eye(d))[np.tril_indices(d)]
        return np.append(each.reshape(-1), [1.0 + 0.5 * self.forest.n_rows] * self.noise_learned)

    def _steps(self, parameters: Floats) -> Floats:
        """(learned, d, d) K by class."""
        d = len(self._unit)
        given = parameters[: len(parameters) - self.noise_learned].reshape(self.n_groups, self._per_group)
        given = given[self.group[self.learned]]
        if self._structure == "scaled":
            return np.asarray(np.exp(given)[:, :, None] * np.eye(d))
        K = np.zeros((len(given), d, d))
        if self._structure == "diagonal":
            K[:, range(d), range(d)] = np.exp(given)
        else:
            K[:, *np.tril_indices(d)] = given
            K[:, range(d), range(d)] = np.exp(K[:, range(d), range(d)])
        return K

    def _factors(self, parameters: Floats) -> tuple[Floats, Floats, float]:
        """K of the learned classes, L of all, and the noise."""
        K = self._steps(parameters)
        factor = self._factor.copy()
        factor[self.learned] = factor[self.learned] @ K
        return K, factor, float(np.exp(parameters[-1])) if self.noise_learned else self._fixed_noise

    def unpacked(self, parameters: Floats) -> tuple[Floats, float]:
        _, factor, noise = self._factors(parameters)
        root = factor / self._unit[:, None]
        return root @ root.transpose(0, 2, 1), noise

    def sizes(self, parameters: Floats) -> Floats:
        covariance, _ = self.unpacked(parameters)
        return np.asarray(np.einsum("njj->n", covariance) / len(self._unit))

    # -- values --------------------------------------------------------------------------------

    def _passes(self, factor: Floats, noise: float) -> tuple[float, Floats, float]:
        """The log evidence, the excess of the second moments by class, and the gradient by the log-noise."""
        forest, d = self.forest, len(self._unit)
        rows = self._rows / math.sqrt(noise)
        factor = np.ascontiguousarray(factor)
        top = np.empty((d, d + 1))
        slots = (forest.parent, forest.class_, forest.leaf, rows, factor)
        deviance = kernels.gather_vectors(*slots, self._collected, self._solved, top)
        self._top = top
        inside = self._mean_from(top)
        deviance += float(np.square(top[:, d] - top[:, :d] @ inside).sum())
        excess = np.empty_like(factor)
        squares = kernels.spread_vectors(
            *slots, np.ascontiguousarray(inside), self._solved, self._means, self._covariances, excess
        )
        self.mean = inside / self._unit
        if self._given_mean is None:
            self.mean_error = mean_errors(top[:, :d]) / self._unit
        self.advance(1)
        n, residual = forest.n_rows, self._residual / noise
        value = -0.5 * (deviance + residual + n * math.log(2.0 * math.pi * noise))
        return value, excess, 0.5 * (squares + residual - n)

    def _mean_from(self, top: Floats) -> Floats:
        """The prior mean, in the units of the scaled contexts, from what is told to it; or as it is given."""
        if self._given_mean is not None:
            return np.asarray(self._given_mean)
        found, *_ = np.linalg.lstsq(top[:, :-1], top[:, -1], rcond=None)
        return np.asarray(found, dtype=np.float64)

    def evidence(self, covariance: Floats, noise: float) -> tuple[float, Floats]:
        """The log evidence with these covariances, and the excess by class; sets `mean`."""
        value, excess, _ = self._passes(_roots(self._inside(covariance)), noise)
        return value, excess

    def value_and_gradient(self, parameters: Floats) -> tuple[float, Floats]:
        K, factor, noise = self._factors(parameters)
        value, excess, by_noise = self._passes(factor, noise)
        if self._structure == "scaled":
            gradient = self.by_group(np.einsum("njj->n", excess))
        else:
            slope = np.linalg.solve(K.transpose(0, 2, 1), excess[self.learned])
            gradient = self._by_parameters(slope.astype(np.float64, copy=False), K)
        if self.penalty is not None:
            lost, slope = self._penalised(factor, K)
            value, gradient = value - lost, gradient - slope
        if self.noise_learned:
            if self.penalty is not None:
                off = (parameters[-1] - self.penalty.centre_of_noise) / self.penalty.width
                value -= 0.5 * off**2
                by_noise -= off / self.penalty.width
            gradient = np.append(gradient, by_noise)
        return value, gradient

    def _by_parameters(self, slope: Floats, K: Floats) -> Floats:
        """A gradient by K as one by the parameters."""
        d = len(self._unit)
        on_diagonal = np.einsum("njj->nj", slope * K)
        if self._structure == "diagonal":
            return np.asarray(on_diagonal.reshape(-1))
        slope = slope.copy()
        slope[:, range(d), range(d)] = on_diagonal
        return np.asarray(slope[:, *np.tril_indices(d)].reshape(-1))

    def _penalised(self, factor: Floats, K: Floats) -> tuple[float, Floats]:
        """What the weak prior takes off, and its gradient by the parameters."""
        assert self.penalty is not None
        width = self.penalty.width
        if self._structure == "scaled":  # one number a group is penalised once
            off = (self._log_sizes(factor) - self.penalty.centre) / width
            return 0.5 * float(off @ off), 2.0 * off / width
        L, first = factor[self.learned], self._factor[self.learned]
        sizes, vectors = np.linalg.eigh(L @ L.transpose(0, 2, 1))
        sizes = np.maximum(sizes, 1e-300)
        off = (np.log(sizes) - self.penalty.centre) / width
        pulled = vectors * (off / (width * sizes))[:, None, :] @ vectors.transpose(0, 2, 1)
        slope = 2.0 * first.transpose(0, 2, 1) @ pulled @ L
        return 0.5 * float(np.square(off).sum()), self._by_parameters(slope, K)

    def _log_sizes(self, factor: Floats) -> Floats:
        """(n_groups,) the logarithm of the mean variance of a group, over classes and features."""
        sizes = np.square(factor).sum(axis=(1, 2)) / len(self._unit)
        return np.asarray(np.log(self.by_group(sizes) / self.by_group(np.ones(len(sizes)))))

    def scale_gradient(self, parameters: Floats, log_scale: Floats) -> Floats:
        _, factor, noise = self._factors(parameters)
        factor[self.learned] *= np.exp(0.5 * log_scale[self.group[self.learned]])[:, None, None]
        if self.noise_learned:
            noise *= math.exp(log_scale[-1])
        _, excess, by_noise = self._passes(factor, noise)
        gradient = 0.5 * self.by_group(np.einsum("njj->n", excess))
        if self.penalty is not None:
            width = self.penalty.width
            if self._structure == "scaled":
                gradient -= (self._log_sizes(factor) - self.penalty.centre) / width**2
            else:
                L = factor[self.learned]
                sizes = np.maximum(np.linalg.eigvalsh(L @ L.transpose(0, 2, 1)), 1e-300)
                gradient -= ((np.log(sizes) - self.penalty.centre) / width**2).sum(axis=1)
            by_noise -= (math.log(noise) - self.penalty.centre_of_noise) / width**2
        return np.append(gradient, [by_noise] * self.noise_learned)


def _roots(covariance: Floats) -> Floats:
    """(n, d, d) a root of each covariance, singular ones too."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])


def mean_errors(triangle: Floats) -> Floats:
    """The standard errors of what solves a triangular system with unit noise; inf where it does not tell."""
    _, sizes, directions = np.linalg.svd(triangle)
    told = sizes > len(sizes) * np.finfo(float).eps * sizes[0]
    known = np.square(directions[told] / sizes[told, None]).sum(axis=0)
    unknown = np.square(directions[~told]).sum(axis=0) > 1e-9
    return np.asarray(np.sqrt(np.where(unknown, np.inf, known)))
