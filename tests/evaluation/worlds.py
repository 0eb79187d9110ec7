"""Small worlds in which the value of every policy is known, and logs of them."""

from typing import NamedTuple

import numpy as np
import polars

import bough


class World(NamedTuple):
    """Actions with known mean rewards, a logger, and a target."""

    tree: bough.Tree
    means: np.ndarray
    logger: np.ndarray
    target: np.ndarray
    is_clicks: bool

    @property
    def value(self) -> float:
        return float(self.target @ self.means)

    def log(self, rng: np.random.Generator, n: int) -> polars.DataFrame:
        place = rng.choice(len(self.means), n, p=self.logger)
        mean = self.means[place]
        reward = (rng.random(n) < mean).astype(float) if self.is_clicks else mean + rng.normal(0.0, 0.5, n)
        names = np.asarray(self.tree.leaves)[place]
        return polars.DataFrame({"action": names, "reward": reward, "propensity": self.logger[place]})


def softmax(scores):
    odds = np.exp(scores - scores.max())
    return odds / odds.sum()


def world(seed: int, clicks: bool = True, branching: int = 4, height: int = 2, mild: float = 1.0) -> World:
    """A world drawn from a tree's prior; `mild` is how much logger and target differ among actions."""
    rng = np.random.default_rng(seed)
    tree = bough.Tree.balanced(branching, height)
    kind = bough.BernoulliModel if clicks else bough.GaussianModel
    model = kind(tree, -1.0 if clicks else 1.0, bough.by_depth([0.1, *[0.3] * height]))
    scores = model.draw(rng)[tree.leaves]
    means = model.mean_reward(scores)
    logger, target = (softmax(mild * rng.normal(size=tree.n_actions)) for _ in range(2))
    return World(tree, means, logger, target, clicks)
