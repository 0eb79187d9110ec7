"""Exact Bayesian bandits on trees of actions: one posterior, Thompson sampling on it.

Names load when they are first used, so that `import bough` is quick and brings in neither numba nor matplotlib.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bough import problems, theory
    from bough.choosing import Policy, Propensity
    from bough.model.covariance import by_depth, by_height, by_node
    from bough.learning.features import prior_from_features
    from bough.learning.fit import fit_prior
    from bough.learning.report import Estimate, PriorFit
    from bough.logs import summarise
    from bough.mcmc import GibbsDraws, gibbs
    from bough.model.bernoulli import BernoulliModel
    from bough.model.gaussian import GaussianModel
    from bough.model.model import MeanReward
    from bough.model.poisson import PoissonModel
    from bough.names import UnknownNameError
    from bough.observations import Observations
    from bough.policies import TS, BayesUCB, BetaTS, FlatTS, Greedy, HierTS
    from bough.inference.answers import BestActions, Conditional
    from bough.posterior import Posterior
    from bough.simulation import Simulation, simulate
    from bough.statistics import Statistics
    from bough.tree import Tree
    from bough.worlds import Problem, Residuals, World

_HOME = {
    "BayesUCB": "bough.policies",
    "BernoulliModel": "bough.model.bernoulli",
    "BestActions": "bough.inference.answers",
    "BetaTS": "bough.policies",
    "Conditional": "bough.inference.answers",
    "Estimate": "bough.learning.report",
    "FlatTS": "bough.policies",
    "GaussianModel": "bough.model.gaussian",
    "GibbsDraws": "bough.mcmc",
    "Greedy": "bough.policies",
    "HierTS": "bough.policies",
    "MeanReward": "bough.model.model",
    "Observations": "bough.observations",
    "PoissonModel": "bough.model.poisson",
    "Policy": "bough.choosing",
    "Posterior": "bough.posterior",
    "PriorFit": "bough.learning.report",
    "Problem": "bough.worlds",
    "Propensity": "bough.choosing",
    "Residuals": "bough.worlds",
    "Simulation": "bough.simulation",
    "Statistics": "bough.statistics",
    "TS": "bough.policies",
    "Tree": "bough.tree",
    "UnknownNameError": "bough.names",
    "World": "bough.worlds",
    "by_depth": "bough.model.covariance",
    "by_height": "bough.model.covariance",
    "by_node": "bough.model.covariance",
    "fit_prior": "bough.learning.fit",
    "gibbs": "bough.mcmc",
    "prior_from_features": "bough.learning.features",
    "problems": "bough",
    "simulate": "bough.simulation",
    "summarise": "bough.logs",
    "theory": "bough",
}

__all__ = [
    "TS",
    "BayesUCB",
    "BernoulliModel",
    "BestActions",
    "BetaTS",
    "Conditional",
    "Estimate",
    "FlatTS",
    "GaussianModel",
    "GibbsDraws",
    "Greedy",
    "HierTS",
    "MeanReward",
    "Observations",
    "PoissonModel",
    "Policy",
    "Posterior",
    "PriorFit",
    "Problem",
    "Propensity",
    "Residuals",
    "Simulation",
    "Statistics",
    "Tree",
    "UnknownNameError",
    "World",
    "by_depth",
    "by_height",
    "by_node",
    "fit_prior",
    "gibbs",
    "prior_from_features",
    "problems",
    "simulate",
    "summarise",
    "theory",
]

__version__ = version("bough")


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'bough' has no attribute {name!r}")
    home = _HOME[name]
    value = import_module(f"bough.{name}") if home == "bough" else getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
