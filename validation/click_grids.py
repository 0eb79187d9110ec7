"""Thompson sampling for clicks with the exact posterior of a whole tree, by belief propagation on a grid of log-odds.

It takes a thousand times as long as what bough does, and shows what that costs: nothing here is taken to be normal but
the prior. Messages go along one path per click, and every node is drawn for each decision.
"""

from itertools import pairwise

import numba
import numpy as np

import bough

REACH, POINTS = 6.5, 321  # of the grid, in standard deviations of an action, and how fine it is


@numba.njit(cache=True, nogil=True)
def tell(node, of_reward, parent, depth, steps, log_likelihood, log_message):
    """Add what a reward says of an action, and tell its ancestors."""
    log_likelihood[node] += of_reward
    while parent[node] >= 0:
        top = log_likelihood[node].max()
        message = np.log(steps[depth[node]] @ np.exp(log_likelihood[node] - top)) + top
        log_likelihood[parent[node]] += message - log_message[node]
        log_message[node] = message
        node = parent[node]


@numba.njit(cache=True, nogil=True)
def best(rng, parent, depth, is_action, tried, grid, steps, variances, root, likelihood, draw):
    """The best action of an exact posterior draw of every node."""
    step, highest, found = grid[1] - grid[0], -np.inf, -1
    for node in range(len(parent)):
        if not tried[node]:  # nothing is known of what is below
            around = draw[parent[node]] if parent[node] >= 0 else 0.5 * (grid[0] + grid[-1])
            draw[node] = around + np.sqrt(variances[depth[node]]) * rng.standard_normal()
        else:
            if parent[node] >= 0:
                place = int((draw[parent[node]] - grid[0]) / step + 0.5)
                prior = steps[depth[node], min(max(place, 0), len(grid) - 1)]
            else:
                prior = root
            level, total, k = rng.random() * (prior * likelihood[node]).sum(), 0.0, 0
            share = prior[0] * likelihood[node, 0]
            while total + share < level and k < len(grid) - 1:
                total += share
                k += 1
                share = prior[k] * likelihood[node, k]
            draw[node] = grid[k] + step * ((level - total) / share - 0.5)
        if is_action[node] and draw[node] > highest:
            found, highest = node, draw[node]
    return found


class ExactClicks:
    """A policy for `bough.simulate`: HierTS for clicks, without an approximation but the grid."""

    def __init__(self, model: bough.BernoulliModel, seed: np.random.Generator) -> None:
        tree, total = model.tree, model.marginal_covariance
        self.tree, self.rng = tree, seed
        self.parent = np.asarray(tree.parent, dtype=np.int64)
        self.depth = np.asarray(tree.depth, dtype=np.int64)
        self.is_action = np.zeros(tree.n_nodes, dtype=np.bool_)
        self.is_action[tree.leaves] = True
        of_depth = np.array([total[self.depth == d][0] for d in range(tree.height + 1)])
        self.variances = np.diff(of_depth, prepend=0.0)
        self.grid = model.mean + REACH * np.sqrt(of_depth[-1]) * np.linspace(-1.0, 1.0, POINTS)
        apart = (self.grid[:, None] - self.grid) ** 2
        densities = np.exp(-0.5 * apart / self.variances[:, None, None])
        self.steps = densities / densities.sum(axis=2, keepdims=True)
        self.root = np.exp(-0.5 * (self.grid - model.mean) ** 2 / self.variances[0])
        self.log_likelihood, self.log_message = np.zeros((2, tree.n_nodes, POINTS))
        self.likelihood = np.ones((tree.n_nodes, POINTS))
        self.tried = np.zeros(tree.n_nodes, dtype=np.bool_)
        self.draw = np.empty(tree.n_nodes)
        self.of_reward = -np.logaddexp(0.0, self.grid), -np.logaddexp(0.0, -self.grid)  # of none, of a click

    def decide(self, _context: object) -> object:
        """The best of a draw."""
        node = best(
            self.rng, self.parent, self.depth, self.is_action, self.tried, self.grid, self.steps, self.variances,
            self.root, self.likelihood, self.draw,
        )  # fmt: skip
        return self.tree.name(node)

    def update(self, action: object, reward: float, _context: object) -> None:
        """Add a click, or none."""
        node = self.tree.index(action)
        of_reward = self.of_reward[int(reward)]
        tell(node, of_reward, self.parent, self.depth, self.steps, self.log_likelihood, self.log_message)
        while node >= 0:
            self.tried[node] = True
            self.likelihood[node] = np.exp(self.log_likelihood[node] - self.log_likelihood[node].max())
            node = self.parent[node]

    def mean(self, action: object) -> float:
        """The posterior mean of an action's log-odds, by messages from the root down."""
        path = [self.tree.index(action)]
        while self.parent[path[0]] >= 0:
            path.insert(0, int(self.parent[path[0]]))
        belief = self.root
        for node, below in pairwise(path):
            others = belief * np.exp(self.log_likelihood[node] - self.log_message[below])
            belief = others @ self.steps[self.depth[below]]
        belief = belief * self.likelihood[path[-1]]
        return float(belief @ self.grid / belief.sum())
