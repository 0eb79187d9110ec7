"""The paper's synthetic problems, as models (sections 5.3 and 6.1), one with clicks, and any of them when it moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bough import _checks
from bough.model.bernoulli import BernoulliModel
from bough.model.covariance import by_height
from bough.model.gaussian import GaussianModel
from bough.model.logistic import logistic_mean
from bough.model.model import Model
from bough.simulation.drifting import Drifting, Movers
from bough.tree.tree import Tree

CLICK_VARIANCES = (0.1, 0.2, 0.4, 0.3)  # of log-odds, actions first


def constant(branching: int, height: int) -> GaussianModel:
    """Problem 1: every prior variance is 1.

    >>> import bough
    >>> bough.problems.constant(branching=2, height=4).marginal_covariance[-1]
    np.float64(5.0)
    """
    return GaussianModel(Tree.balanced(branching, height))


def increasing(branching: int, height: int) -> GaussianModel:
    """Problem 2: a node's prior variance is 2 to the power of its height.

    >>> import bough
    >>> bough.problems.increasing(branching=2, height=4).marginal_covariance[-1]
    np.float64(31.0)
    """
    tree = Tree.balanced(branching, height)
    return GaussianModel(tree, covariance=by_height([2.0**height for height in range(tree.height + 1)]))


def clicks(
    branching: int = 10, height: int = 3, rate: Any = 0.05, variances: Sequence[float] | None = None
) -> BernoulliModel:
    """Actions that are clicked at this rate on average; log-odds have these variances by height, actions first.

    Without them it is 0.1, 0.2, 0.4 and 0.3 for a tree of height 3, and equal shares of 1 for others.

    >>> import bough
    >>> model = bough.problems.clicks(rate=0.05)
    >>> model
    BernoulliModel(n_actions=1000, height=3, dim=1)
    >>> round(model.mean, 3)
    -3.372
    """
    from scipy.optimize import brentq  # takes longer to load than the rest

    rate = _checks.number(rate, "rate")
    if not 0.0 < rate < 1.0:
        raise ValueError(f"rate is {rate!r}; give a probability between 0 and 1")
    tree = Tree.balanced(branching, height)
    if variances is None:
        variances = CLICK_VARIANCES if height == len(CLICK_VARIANCES) - 1 else [1.0 / (height + 1)] * (height + 1)
    prior = BernoulliModel(tree, 0.0, by_height(variances))
    spread = float(prior.marginal_covariance[-1])
    reach = 40.0 + 10.0 * spread

    def off(mean: float) -> float:
        return float(logistic_mean(np.array([mean]), np.array([spread]))[0] - rate)

    return BernoulliModel(tree, brentq(off, -reach, reach), by_height(variances))


def drifting(model: Model, half_life: float, movers: Movers = "actions", redrawn: bool = False) -> Drifting:
    """The problem of a model without contexts whose truth moves while policies play: what `simulate` takes.

    Each action's deviation from its parent wanders about (a stationary Ornstein-Uhlenbeck process) with the prior's
    variance, so that every round by itself looks like the prior; after `half_life` rounds half of a deviation is left
    on average. With ``movers="nodes"`` the same holds for every node but the root. With ``redrawn=True`` deviations
    stand still and are drawn anew now and then instead, with the same autocorrelation. Policies are given the model as
    it is.

    >>> import bough, numpy
    >>> model = bough.GaussianModel(bough.Tree.balanced(branching=3, height=2))
    >>> problem = bough.problems.drifting(model, half_life=50.0)
    >>> problem.world(rounds=100, rng=numpy.random.default_rng(0)).truth.shape
    (100, 9)
    >>> bough.simulate(problem, {"HierTS": bough.HierTS}, rounds=100, runs=20, seed=0).regret["HierTS"].shape
    (20, 100)
    """
    return Drifting(model, half_life, movers, redrawn)
