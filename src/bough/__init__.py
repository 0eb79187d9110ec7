"""Exact Bayesian bandits on trees of actions: one posterior, Thompson sampling on it.

Names load when they are first used, so that `import bough` is quick and brings in neither numba nor matplotlib.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bough import batch, data, theory
    from bough.best import Best, Maximum, StopDecision
    from bough.data.logs import summarise
    from bough.data.rows import Observations
    from bough.data.statistics import Statistics
    from bough.evaluation.diagnostics import Diagnostics, PolicyDiagnostics
    from bough.evaluation.evaluate import evaluate
    from bough.evaluation.replay import Replay, replay
    from bough.evaluation.report import Evaluation, PolicyValue
    from bough.evaluation.sample_ratio import SampleRatio, sample_ratio
    from bough.explanation import ExplainedEffect, ExplainedNode, Explanation
    from bough.inference.answers import BestActions, Conditional
    from bough.learning.drift import DriftFit, fit_drift
    from bough.learning.feature_prior import prior_from_features
    from bough.learning.fit import fit_prior
    from bough.learning.report import Estimate, PriorFit
    from bough.mcmc import GibbsDraws, gibbs
    from bough.model.bernoulli import BernoulliModel
    from bough.model.covariance import by_depth, by_height, by_node
    from bough.model.factors import Factor
    from bough.model.features import Features
    from bough.model.gaussian import GaussianModel
    from bough.model.model import MeanReward
    from bough.model.noise import per_action
    from bough.model.poisson import PoissonModel
    from bough.policies.base import Policy
    from bough.policies.baselines import BayesUCB, BetaTS, Greedy
    from bough.policies.decision import Decision
    from bough.policies.propensity import Propensity
    from bough.policies.thompson import TS, FlatTS, HierTS
    from bough.policies.warm_up import warm_up
    from bough.posterior import Posterior
    from bough.prediction import Prediction
    from bough.service.agent_page import write_dashboard
    from bough.simulation import problems
    from bough.simulation.result import Comparison, Simulation
    from bough.simulation.simulate import simulate
    from bough.simulation.worlds import Problem, Residuals, World
    from bough.tree.changes import Changes
    from bough.tree.names import UnknownNameError
    from bough.tree.tree import Tree

_HOME = {
    "BayesUCB": "bough.policies.baselines",
    "BernoulliModel": "bough.model.bernoulli",
    "Best": "bough.best",
    "BestActions": "bough.inference.answers",
    "BetaTS": "bough.policies.baselines",
    "Changes": "bough.tree.changes",
    "Comparison": "bough.simulation.result",
    "Conditional": "bough.inference.answers",
    "Decision": "bough.policies.decision",
    "Diagnostics": "bough.evaluation.diagnostics",
    "DriftFit": "bough.learning.drift",
    "Estimate": "bough.learning.report",
    "Evaluation": "bough.evaluation.report",
    "ExplainedEffect": "bough.explanation",
    "ExplainedNode": "bough.explanation",
    "Explanation": "bough.explanation",
    "Factor": "bough.model.factors",
    "Features": "bough.model.features",
    "FlatTS": "bough.policies.thompson",
    "GaussianModel": "bough.model.gaussian",
    "GibbsDraws": "bough.mcmc",
    "Greedy": "bough.policies.baselines",
    "HierTS": "bough.policies.thompson",
    "Maximum": "bough.best",
    "MeanReward": "bough.model.model",
    "Observations": "bough.data.rows",
    "PoissonModel": "bough.model.poisson",
    "Policy": "bough.policies.base",
    "PolicyDiagnostics": "bough.evaluation.diagnostics",
    "PolicyValue": "bough.evaluation.report",
    "Posterior": "bough.posterior",
    "Prediction": "bough.prediction",
    "PriorFit": "bough.learning.report",
    "Problem": "bough.simulation.worlds",
    "Propensity": "bough.policies.propensity",
    "Replay": "bough.evaluation.replay",
    "Residuals": "bough.simulation.worlds",
    "SampleRatio": "bough.evaluation.sample_ratio",
    "Simulation": "bough.simulation.result",
    "Statistics": "bough.data.statistics",
    "StopDecision": "bough.best",
    "TS": "bough.policies.thompson",
    "Tree": "bough.tree.tree",
    "UnknownNameError": "bough.tree.names",
    "World": "bough.simulation.worlds",
    "batch": "bough.batch",
    "by_depth": "bough.model.covariance",
    "by_height": "bough.model.covariance",
    "by_node": "bough.model.covariance",
    "data": "bough.data",
    "evaluate": "bough.evaluation.evaluate",
    "fit_drift": "bough.learning.drift",
    "fit_prior": "bough.learning.fit",
    "gibbs": "bough.mcmc",
    "per_action": "bough.model.noise",
    "prior_from_features": "bough.learning.feature_prior",
    "problems": "bough.simulation.problems",
    "replay": "bough.evaluation.replay",
    "sample_ratio": "bough.evaluation.sample_ratio",
    "simulate": "bough.simulation.simulate",
    "summarise": "bough.data.logs",
    "theory": "bough.theory",
    "warm_up": "bough.policies.warm_up",
    "write_dashboard": "bough.service.agent_page",
}

_MODULES = ("batch", "data", "problems", "theory")

__all__ = [
    "TS",
    "BayesUCB",
    "BernoulliModel",
    "Best",
    "BestActions",
    "BetaTS",
    "Changes",
    "Comparison",
    "Conditional",
    "Decision",
    "Diagnostics",
    "DriftFit",
    "Estimate",
    "Evaluation",
    "ExplainedEffect",
    "ExplainedNode",
    "Explanation",
    "Factor",
    "Features",
    "FlatTS",
    "GaussianModel",
    "GibbsDraws",
    "Greedy",
    "HierTS",
    "Maximum",
    "MeanReward",
    "Observations",
    "PoissonModel",
    "Policy",
    "PolicyDiagnostics",
    "PolicyValue",
    "Posterior",
    "Prediction",
    "PriorFit",
    "Problem",
    "Propensity",
    "Replay",
    "Residuals",
    "SampleRatio",
    "Simulation",
    "Statistics",
    "StopDecision",
    "Tree",
    "UnknownNameError",
    "World",
    "batch",
    "by_depth",
    "by_height",
    "by_node",
    "data",
    "evaluate",
    "fit_drift",
    "fit_prior",
    "gibbs",
    "per_action",
    "prior_from_features",
    "problems",
    "replay",
    "sample_ratio",
    "simulate",
    "summarise",
    "theory",
    "warm_up",
    "write_dashboard",
]

__version__ = version("bough")


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'bough' has no attribute {name!r}")
    home = import_module(_HOME[name])
    value = home if name in _MODULES else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
