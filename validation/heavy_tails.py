"""Thompson sampling where actions differ from their parents by a mixture of normals: measured here, not in bough.

An action's effect is normal around its parent's, with variance v_k with probability w_k. Two or three of these have
heavier tails than one normal distribution has, and a fine grid of them is Student's distribution. Given its parent, the
mean of an action's n rewards is then a mixture of normals of the variances v_k + s / n, where s is the noise variance.
Expectation propagation replaces it by one normal factor, a *site*, and given the sites everything above the actions is
Gaussian. An action given its parent is an exact draw from its mixture.

All of it is the plain way: messages along one path per reward, and a draw of every node per decision.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numba
import numpy as np
from scipy.optimize import minimize
from scipy.stats import invgamma

import bough

SWEEPS, STILL = 100, 1e-7


class Law(NamedTuple):
    """Of an action's effect around its parent's: the weights and the variances of normals."""

    weights: np.ndarray
    variances: np.ndarray

    @property
    def variance(self) -> float:
        """The variance of the whole."""
        return float(self.weights @ self.variances)


def mixture(parameters: np.ndarray) -> Law:
    """Any number of normals: the logarithms of their variances, and of weights relative to the first's."""
    n = (len(parameters) + 1) // 2
    weights = np.exp(np.append(0.0, parameters[n:]))
    return Law(weights / weights.sum(), np.exp(parameters[:n]))


def student(parameters: np.ndarray) -> Law:
    """Student's distribution, from the logarithms of its scale squared and of its degrees of freedom."""
    scale, freedom = np.exp(parameters)
    variances = invgamma(0.5 * freedom, scale=0.5 * freedom * scale)
    edges = np.linspace(np.log(variances.ppf(1e-7)), np.log(variances.isf(1e-7)), 41)
    shares = np.diff(variances.cdf(np.exp(edges)))
    return Law(shares / shares.sum(), np.exp(0.5 * (edges[1:] + edges[:-1])))


@numba.njit(cache=True, nogil=True)
def refresh(action, parent, variance, noise, weights, variances, sums, above, site):
    """Make the site of an action with rewards again, and tell its ancestors; how far its cavity's mean is off.

    `sums` has counts and totals, `above` the precision and the linear term of what is below each node.
    """
    path, n = np.empty(32, dtype=np.int64), 0
    node = parent[action]
    while node >= 0:
        path[n] = node
        node, n = parent[node], n + 1
    mean, spread = 0.0, 0.0
    for i in range(n - 1, -1, -1):
        node = path[i]
        keeps = 1.0 / (1.0 + variance[node] * above[node, 0])
        mean = keeps * (mean + variance[node] * above[node, 1])
        spread = keeps * (variance[node] + keeps * spread)
    precision = 1.0 / spread - site[action, 0]
    cavity, width = (mean / spread - site[action, 1]) / precision, 1.0 / precision
    average, of_average = sums[action, 1] / sums[action, 0], noise / sums[action, 0]
    top = -np.inf
    for k in range(len(weights)):
        total = width + variances[k] + of_average
        top = max(top, np.log(weights[k]) - 0.5 * np.log(total) - 0.5 * (average - cavity) ** 2 / total)
    z, first, second = 0.0, 0.0, 0.0
    for k in range(len(weights)):
        own = variances[k] + of_average
        total = width + own
        share = np.exp(np.log(weights[k]) - 0.5 * np.log(total) - 0.5 * (average - cavity) ** 2 / total - top)
        step = width / total * (average - cavity)
        z, first = z + share, first + share * step
        second += share * (width * own / total + step * step)
    step = first / z
    new = max(1.0 / (second / z - step * step) - precision, 0.0)
    linear = (cavity + step) * (precision + new) - cavity * precision
    more, more_linear = new - site[action, 0], linear - site[action, 1]
    site[action, 0], site[action, 1] = new, linear
    for i in range(n):
        node = path[i]
        before = 1.0 + variance[node] * above[node, 0]
        after = before + variance[node] * more
        was, was_linear = above[node, 0] / before, above[node, 1] / before
        above[node, 0] += more
        above[node, 1] += more_linear
        more, more_linear = above[node, 0] / after - was, above[node, 1] / after - was_linear
    return np.log(z) + top, cavity, width


@numba.njit(cache=True, nogil=True)
def settle(actions, parent, variance, noise, weights, variances, sums, above, site, where, sweeps, still):
    """Make sites again until no cavity moves; `where` has the mean and the variance of each cavity, and log z."""
    for _ in range(sweeps):
        moved = 0.0
        for action in actions:
            log_z, cavity, width = refresh(action, parent, variance, noise, weights, variances, sums, above, site)
            moved = max(moved, abs(cavity - where[action, 0]) / np.sqrt(width), abs(width / where[action, 1] - 1.0))
            where[action, 0], where[action, 1], where[action, 2] = cavity, width, log_z
        if moved < still:
            return


@numba.njit(cache=True, nogil=True)
def best(rng, parent, is_action, variance, noise, weights, variances, sums, above, draw, chances):
    """The best action of a posterior draw of every node."""
    found, highest = -1, -np.inf
    until = np.cumsum(weights)
    for node in range(len(parent)):
        around = draw[parent[node]] if parent[node] >= 0 else 0.0
        if not is_action[node]:
            keeps = 1.0 / (1.0 + variance[node] * above[node, 0])
            mean, spread = keeps * (around + variance[node] * above[node, 1]), variance[node] * keeps
        elif sums[node, 0] == 0.0:
            mean, spread = around, variances[min(np.searchsorted(until, rng.random()), len(weights) - 1)]
        else:
            average, of_average = sums[node, 1] / sums[node, 0], noise / sums[node, 0]
            top = -np.inf
            for k in range(len(weights)):
                total = variances[k] + of_average
                chances[k] = np.log(weights[k]) - 0.5 * np.log(total) - 0.5 * (average - around) ** 2 / total
                top = max(top, chances[k])
            z = 0.0
            for k in range(len(weights)):
                z += np.exp(chances[k] - top)
                chances[k] = z
            k = min(np.searchsorted(chances, rng.random() * z), len(weights) - 1)
            share = variances[k] / (variances[k] + of_average)
            mean, spread = around + share * (average - around), share * of_average
        draw[node] = mean + np.sqrt(spread) * rng.standard_normal()
        if is_action[node] and draw[node] > highest:
            found, highest = node, draw[node]
    return found


class HeavyTails:
    """A policy for `bough.simulate`: HierTS, but for the law of the actions' effects."""

    def __init__(self, model: bough.GaussianModel, seed: np.random.Generator, law: Law) -> None:
        self.tree, self.rng, self.mean = model.tree, seed, model.mean
        n = self.tree.n_nodes
        self.is_action = np.zeros(n, dtype=np.bool_)
        self.is_action[self.tree.leaves] = True
        parent = np.asarray(self.tree.parent, dtype=np.int64)
        total = model.marginal_covariance
        variance = total - np.where(parent < 0, 0.0, total[parent])  # the actions' own come from the law
        self.law = parent, variance, float(model.noise_variance), *law
        self.sums, self.above, self.site = np.zeros((3, n, 2))
        self.draw, self.chances = np.empty(n), np.empty(len(law.weights))

    def decide(self, _context: object) -> object:
        """The best of a draw."""
        parent, *rest = self.law
        node = best(self.rng, parent, self.is_action, *rest, self.sums, self.above, self.draw, self.chances)
        return self.tree.name(node)

    def update(self, action: object, reward: float, _context: object) -> None:
        """Count a reward, and make its action's site again."""
        node = self.tree.index(action)
        self.sums[node] += 1.0, reward - self.mean
        refresh(node, *self.law, self.sums, self.above, self.site)


class Sums:
    """The rewards of a log, and how likely they are under laws that are asked about one after the other."""

    def __init__(self, model: bough.GaussianModel, statistics: bough.Statistics) -> None:
        self.model, self.actions = model, model.tree.action_nodes(statistics.actions).astype(np.int64)
        n = model.tree.n_nodes
        self.sums, self.above, self.site = np.zeros((3, n, 2))
        self.where = np.ones((n, 3))
        self.sums[self.actions, 0] = statistics.count
        self.sums[self.actions, 1] = statistics.sum_y - statistics.count * model.mean
        # what a reward says of its action beyond the mean of all is the same under any law
        spread = statistics.sum_yy - statistics.sum_y**2 / statistics.count
        noise, n_rows = model.noise_variance, statistics.count
        self.rest = float((-0.5 * (n_rows - 1.0) * np.log(2 * np.pi * noise) - 0.5 * spread / noise).sum())
        self.rest -= 0.5 * float(np.log(2 * np.pi * n_rows).sum())

    def log_evidence(self, law: Law) -> float:
        """Expectation propagation's log density of the rewards, with sites that begin where the last law left them."""
        parent, variance, noise, *_ = HeavyTails(self.model, np.random.default_rng(0), law).law
        settle(self.actions, parent, variance, noise, *law, self.sums, self.above, self.site, self.where, SWEEPS, STILL)
        (mean, width, log_z), (precision, linear) = self.where[self.actions].T, self.site[self.actions].T
        # the mass of the mixtures under their cavities, less that of the sites there, and the sites' under the prior
        total = 1.0 + width * precision
        of_sites = -0.5 * np.log(total) + 0.5 * (width * linear**2 + 2 * mean * linear - mean**2 * precision) / total
        inner = np.setdiff1d(np.arange(len(parent)), self.model.tree.leaves)
        variance, (below, slope) = variance[inner], self.above[inner].T
        keeps = 1.0 + variance * below
        of_prior = -0.5 * np.log(keeps) + 0.5 * variance * slope**2 / keeps
        return float((log_z - of_sites).sum() + of_prior.sum()) + self.rest

    def fit(self, family: Callable[[np.ndarray], Law], start: Sequence[float]) -> Law:
        """The law of most evidence in a family."""
        found = minimize(
            lambda parameters: -self.log_evidence(family(parameters)),
            start,
            method="Nelder-Mead",
            options={"xatol": 1e-2, "fatol": 1e-1, "maxfev": 600},
        )
        return family(found.x)
