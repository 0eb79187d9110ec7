"""The paper's synthetic problems, as models: balanced trees, mean 0, noise variance 1 (sections 5.3 and 6.1)."""

from __future__ import annotations

from bough.covariance import by_height
from bough.model import GaussianModel
from bough.tree import Tree


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
