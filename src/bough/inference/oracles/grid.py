"""The posterior of a small K-armed model with any rewards, by belief propagation on grids.

Rewards that are not Gaussian leave no closed form but, on a tree, integrals over one parameter at a time: here sums
over a grid for each node. Exact but for the spacing of its points: the oracle for expectation propagation.

Where data contradict each other, the posterior lies in the far tails of the messages. Tilting mends that: a Gaussian
prior times exp(g' theta) is the same prior with its mean moved by covariance @ g, so the log likelihoods may hand
linear parts g' theta over to the prior. With g their slopes at the joint mode, the prior is centred there, and what is
left of each likelihood has its maximum there as well.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from bough import _checks
from bough._arrays import Floats
from bough.data.rows import checked_rows
from bough.model.model import Model

_REACH = 10.0  # standard deviations that a grid spans either way; log-concave likelihoods only narrow the prior
_FALL = 60.0  # where a log likelihood is so far below its maximum, no mass is left
_SPACING = 0.8  # of points, in units of the narrowest Gaussian to sum: the sum is off by 1e-13
_COARSEST = 0.4  # spacing that resolves a sigmoid or an exponential
_MOST_POINTS = 1_000_000
_BLOCK = 1 << 18  # entries of a kernel that are held at once


class _Grid(NamedTuple):
    """The points of a node, as offsets from its centre."""

    offsets: Floats
    spacing: float


_KNOWN = _Grid(np.zeros(1), 1.0)  # a parameter that is known has a single point, of mass 1


class GridPosterior:
    """The marginal posteriors of all nodes of a small tree; each grid has `points`, or as many as it takes.

    >>> import bough
    >>> from bough.inference.oracles.grid import GridPosterior
    >>> from bough.model.bernoulli import BernoulliModel
    >>> grid = GridPosterior(BernoulliModel(bough.Tree.balanced(branching=2, height=1), covariance=0.5))
    >>> grid.update([1, 2], [1, 30], trials=[1, 100])
    >>> grid.mean_reward.round(3)
    array([0.495, 0.311])
    """

    def __init__(self, model: Model, points: int | None = None) -> None:
        if not model.is_scalar:
            raise ValueError(f"the model takes contexts of length {model.dim}; a grid is for models without contexts")
        self.model = model
        self._points = None if points is None else _checks.whole_number("points", points, least=2)
        self._variance = model.classes.table[model.classes.of_node]
        # An action's log likelihood is total * theta - exposure * A(theta): two sums hold all of its data.
        self._total, self._exposure = np.zeros((2, model.tree.n_nodes))
        self._constant = 0.0
        self._solution: tuple[list[tuple[Floats, Floats]], float] | None = None

    def update(self, actions: Any, rewards: Any, *, trials: Any = None, exposure: Any = None) -> None:
        """Add observations, given as lists."""
        rows = checked_rows(self.model, actions, rewards, None, trials, exposure)
        noise = self.model.likelihood.noise_deviation**2
        np.add.at(self._total, rows.leaves, rows.rewards / noise)
        np.add.at(self._exposure, rows.leaves, 1.0 / noise if rows.exposure is None else rows.exposure)
        if self.model.kind.is_conjugate:
            self._constant -= 0.5 * float((rows.rewards**2 / noise + math.log(2.0 * math.pi * noise)).sum())
        self._solution = None

    @property
    def mean(self) -> Floats:
        """(V,) the posterior means."""
        return np.array([np.average(values, weights=density) for values, density in self._solved()[0]])

    @property
    def covariance(self) -> Floats:
        """(V,) the posterior variances."""
        pairs = zip(self._solved()[0], self.mean, strict=True)
        return np.array([np.average((values - mean) ** 2, weights=density) for (values, density), mean in pairs])

    @property
    def mean_reward(self) -> Floats:
        """(K,) the posterior means of the actions' mean rewards."""
        at_leaves = [self.marginal(leaf) for leaf in self.model.tree.leaves.tolist()]
        return np.array([np.average(self.model.mean_reward(values), weights=density) for values, density in at_leaves])

    def log_evidence(self) -> float:
        """The log probability of all rewards, less what no parameter enters: binomial coefficients and factorials."""
        return self._solved()[1]

    def marginal(self, node: int) -> tuple[Floats, Floats]:
        """A node's points and the posterior density there; where the parameter is known, its value and the mass 1."""
        return self._solved()[0][node]

    def _solved(self) -> tuple[list[tuple[Floats, Floats]], float]:
        if self._solution is None:
            with np.errstate(over="ignore"):  # an exponential that overflows makes a likelihood of zero, as it should
                self._solution = self._solve()
        return self._solution

    def _solve(self) -> tuple[list[tuple[Floats, Floats]], float]:
        tree, parent = self.model.tree, self.model.tree.parent.tolist()
        slope, centre, log_evidence = self._tilt()
        grids = self._grids(slope, centre)
        below, message = [np.ones(1)] * len(parent), [np.ones(1)] * len(parent)
        for node in reversed(range(len(parent))):  # rootward: how likely the data below are, at either end of the edge
            product = np.ones_like(grids[node].offsets)
            if self._exposure[node]:
                product = np.exp(self._left_over(node, slope[node], centre[node], grids[node].offsets))
            for child in tree.children(node).tolist():
                product = product * message[child]
            below[node] = product / product.max()
            log_evidence += math.log(product.max())
            if node:
                message[node] = self._spread(node, below[node], grids[node], grids[parent[node]])

        above = [self._spread(0, np.ones(1), _KNOWN, grids[0])]
        for node in range(1, len(parent)):  # leafward: the density given all data but those below
            others = [message[child] for child in tree.children(parent[node]).tolist() if child != node]
            product = np.prod([above[parent[node]], *others], axis=0)
            above.append(self._spread(node, product / product.max(), grids[parent[node]], grids[node]))
        joint = [density * likelihood for density, likelihood in zip(above, below, strict=True)]
        total = [density.sum() * grid.spacing for density, grid in zip(joint, grids, strict=True)]
        marginals = [(centre[node] + grids[node].offsets, joint[node] / total[node]) for node in range(len(parent))]
        return marginals, log_evidence + math.log(total[0])

    def _partition(self, theta: Any) -> tuple[Any, Any, Any]:
        """A, with which a log likelihood is total * theta - exposure * A, and A', which is the mean reward, and A''."""
        found: tuple[Any, Any, Any] = self.model.likelihood.log_partition(theta)
        return found

    def _tilt(self) -> tuple[Floats, Floats, float]:
        """(V,) the slopes of the log likelihoods at the joint mode, (V,) the mode, and the log evidence's part there.

        The last digits of the mode do not matter: any slopes are right, with the mean to which they move the prior.
        """
        root = np.diag(np.sqrt(self._variance))  # parameters = mean + root @ normals
        for node, parent in enumerate(self.model.tree.parent.tolist()[1:], start=1):
            root[node] += root[parent]
        seen, normals, slope = self._exposure > 0.0, np.zeros(len(root)), np.zeros(len(root))
        total, exposure, design = self._total[seen], self._exposure[seen], root[seen]
        for _ in range(1000):
            _, mean, curvature = self._partition(self.model.mean + design @ normals)
            weight, gradient = exposure * curvature, total - exposure * mean
            precision = np.eye(len(root)) + design.T @ (weight[:, None] * design)
            step = np.linalg.solve(precision, design.T @ gradient - normals)
            slope[seen] = gradient - weight * (design @ step)
            moved = np.abs(design @ step).max(initial=0.0)
            # A'' changes by a factor of e at most where theta moves by 1, so a Newton step of that length must climb.
            normals += step if self.model.kind.is_conjugate else step / max(moved, 1.0)
            if moved < 1e-9:
                break
        normals = root.T @ slope
        centre = self.model.mean + root @ normals
        log_likelihood = total @ centre[seen] - exposure @ self._partition(centre[seen])[0]
        return slope, centre, self._constant + float(log_likelihood - 0.5 * normals @ normals)

    def _left_over(self, leaf: int, slope: float, centre: float, offsets: Floats) -> Floats:
        """The log likelihood of an action less the part that tilts the prior; zero at the centre."""
        change = self._partition(centre + offsets)[0] - self._partition(centre)[0]
        return np.asarray((self._total[leaf] - slope) * offsets - self._exposure[leaf] * change)

    def _reach(self, variance: Any) -> Any:
        """How far a prior spreads; where rewards are exp(theta), their mean moves a Gaussian by its variance."""
        return _REACH * np.sqrt(variance) + self.model.kind.is_exponential * variance

    def _grids(self, slope: Floats, centre: Floats) -> list[_Grid]:
        """For each node, points where the posterior can have mass, as close as the narrowest factor there asks for."""
        parent, variance = self.model.tree.parent.tolist(), self._variance.tolist()
        high, reach = self._reach(self.model.marginal_covariance), self._reach(self._variance)
        low, precision = -high, np.zeros(len(parent))
        for leaf in np.flatnonzero(self._exposure).tolist():
            for ends in (low, high):
                away = ends[leaf] * np.geomspace(1e-9, 1.0, 500)
                fall = -self._left_over(leaf, slope[leaf], centre[leaf], away)
                last = min(int(np.searchsorted(fall, _FALL)), len(away) - 1)
                ends[leaf] = away[last]
                curvature = self._exposure[leaf] * self._partition(centre[leaf] + away[: max(last, 1)])[2]
                precision[leaf] = max(precision[leaf], curvature.max())
        for node in reversed(range(1, len(parent))):
            low[parent[node]] = max(low[parent[node]], low[node] - reach[node])
            high[parent[node]] = min(high[parent[node]], high[node] + reach[node])
            precision[parent[node]] += 1.0 / variance[node] if variance[node] else precision[node]
        grids: list[_Grid] = []
        for node, above in enumerate(parent):
            if variance[node] == 0.0:  # the parent's value, on the parent's grid
                grids.append(grids[above] if node else _KNOWN)
                continue
            if node:
                low[node] = max(low[node], low[above] - reach[node])
                high[node] = min(high[node], high[above] + reach[node])
            spacing = _SPACING / math.sqrt(precision[node] + 1.0 / variance[node])
            spacing = spacing if self.model.kind.is_conjugate else min(spacing, _COARSEST)
            points = self._points or math.ceil((high[node] - low[node]) / spacing) + 1
            if points > _MOST_POINTS:
                raise ValueError(f"node {node} takes {points:,} points; give `points`, or variances less far apart")
            offsets, step = np.linspace(low[node], high[node], points, retstep=True)
            grids.append(_Grid(offsets, float(step)))
        return grids

    def _spread(self, node: int, density: Floats, source: _Grid, target: _Grid) -> Floats:
        """A function on the grid at one end of the edge above a node, convolved with the edge's prior, at the other."""
        variance = float(self._variance[node])
        if variance == 0.0:
            return density
        # Sums of positive terms keep the digits of far tails, which a Fourier transform would lose.
        reach = self._reach(variance)
        width = min(len(density), math.ceil(2.0 * reach / source.spacing) + 1)
        rows, steps, sums = sliding_window_view(density, width), source.spacing * np.arange(width), []
        for points in np.array_split(target.offsets, math.ceil(len(target.offsets) * width / _BLOCK)):
            first = np.searchsorted(source.offsets, points - reach).clip(max=len(rows) - 1)
            gaps = (points - source.offsets[first])[:, None] - steps
            sums.append(np.einsum("ij,ij->i", np.exp(gaps**2 * (-0.5 / variance)), rows[first]))
        return np.concatenate(sums) * (source.spacing / math.sqrt(2.0 * math.pi * variance))
