"""Whole runs of bough's own policies in one kernel each: which there are, and what each kernel is given."""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np

from bough._arrays import Floats
from bough.inference.kernels.play_beta import play as play_beta
from bough.inference.kernels.play_scalar import play as play_scalar
from bough.inference.kernels.play_vector import play as play_vector
from bough.inference.kernels.row_sites import LEAST
from bough.inference.vector import VectorEngine
from bough.model.model import Model
from bough.policies.baselines import BayesUCB, BetaTS, Greedy
from bough.policies.thompson import SMALL
from bough.policy_table import Rewards, find_built_in
from bough.simulation.worlds import World

_NO_VALUES = np.empty(0)
_NO_PLACES = np.empty(0, dtype=np.int64)

CompiledRun = Callable[[World, np.random.Generator], tuple[Floats, int] | None]
"""The regret of each round, and how many actions were tried; None where the policy itself has to say what is wrong."""


def is_compiled(model: Model, policy: Any) -> bool:
    """Whether the whole run of this policy is one kernel.

    Sampling a large tree is left to the policy itself, which looks for the best action without drawing them all.
    """
    built_in = find_built_in(policy)
    if model.kind.has_own_noise:
        return False
    if built_in is None or _rewards(model) not in built_in.compiled_for or model.drift_half_life is not None:
        return False
    if model.effects is not None:
        return False
    return not built_in.samples or model.tree.n_nodes <= SMALL


def _rewards(model: Model) -> Rewards:
    if model.is_scalar:
        return "conjugate" if model.kind.is_conjugate else "other"
    return "conjugate in contexts" if model.kind.is_conjugate else "other in contexts"


def compiled_run(model: Model, policy: Any) -> CompiledRun | None:
    """A function that plays one run of this policy in a world of this model, compiled; None where there is none."""
    if not is_compiled(model, policy):
        return None
    agent = policy(model)  # which refuses a model that is not for it
    if policy is BetaTS:
        return lambda world, rng: _play_beta(world, agent, rng)
    engine, rule = agent.posterior._engine, _Rule(model, policy)
    if model.is_scalar:
        return lambda world, rng: _play_scalar(world, engine.model, rule, rng)
    return lambda world, rng: _play_vector(world, engine, rule, rng)


class _Rule:
    """How a policy scores actions."""

    def __init__(self, model: Model, policy: Any) -> None:
        built_in = find_built_in(policy)
        assert built_in is not None
        self.is_sampled = built_in.samples
        self.is_expected = policy is Greedy and not model.kind.is_conjugate
        self._is_optimist = policy is BayesUCB

    def quantiles(self, rounds: int) -> Floats:
        """(rounds,) how many standard deviations are added to a mean."""
        if not self._is_optimist:
            return np.zeros(rounds)
        return np.array([NormalDist().inv_cdf(1.0 - 1.0 / max(t, 2)) for t in range(1, rounds + 1)])


def _residuals(world: World) -> tuple[Any, Any, Floats]:
    """Where a kernel takes an action's noise from; empty where the world's own noise is for all."""
    if world.residuals is None:
        return _NO_VALUES, _NO_PLACES, _NO_VALUES
    return world.residuals.values, world.residuals.start, world.residuals.pick


def _play_beta(world: World, agent: BetaTS, rng: np.random.Generator) -> tuple[Floats, int]:
    n, gap = world.model.tree.n_actions, np.empty(world.rounds)
    tried = np.zeros(n, dtype=np.bool_)
    successes, failures = agent.successes.copy(), agent.failures.copy()
    play_beta(
        rng, world.parameters, world.best(world.parameters), world.noise, successes, failures, tried, np.empty(n), gap
    )  # fmt: skip
    return gap, int(tried.sum())


def _play_scalar(world: World, assumed: Model, rule: _Rule, rng: np.random.Generator) -> tuple[Floats, int]:
    tree, rounds = assumed.tree, world.rounds
    even = assumed.classes.kind == "depth" and bool(tree.leaves[0] == tree.level_start[-2])
    gap = np.empty(rounds)
    likelihood = assumed.likelihood
    evidence, state = np.zeros((tree.n_nodes, 2)), np.zeros((tree.n_nodes, 4))
    play_scalar(
        likelihood.code, rule.is_sampled, rule.is_expected, even, rule.quantiles(rounds), rng, world.parameters,
        world.best(world.parameters), world.noise, *_residuals(world), tree.leaves, tree.parent,
        assumed.classes.of_node, assumed.classes.table, assumed.class_factors, assumed.mean,
        1.0 / likelihood.noise_deviation**2, evidence, state, np.empty((tree.n_nodes, 3)), np.empty(tree.n_nodes),
        np.empty(tree.n_nodes), np.empty(tree.n_actions), gap,
    )  # fmt: skip
    return gap, int((state[tree.leaves, 0] > 0.0).sum())


def _play_vector(
    world: World, engine: VectorEngine, rule: _Rule, rng: np.random.Generator
) -> tuple[Floats, int] | None:
    assert world.contexts is not None
    assumed = engine.model
    tree, d, rounds = assumed.tree, assumed.dim, world.rounds
    n, gap = tree.n_nodes, np.empty(rounds)
    triangle = np.zeros((n, d, d))
    triangle[:] = np.eye(d)
    touched = np.zeros(n, dtype=np.bool_)
    eligible = np.ones(tree.n_actions, dtype=np.bool_) if world.eligible is None else world.eligible
    is_over = play_vector(
        assumed.kind.code, rule.is_sampled, rule.is_expected, rule.quantiles(rounds), rng, world.parameters, eligible,
        world.contexts, world.noise, *_residuals(world), assumed.kind.largest_mean, tree.leaves, tree.parent,
        assumed.classes.of_node, engine._factor, assumed.classes.table, np.asarray(assumed.mean),
        assumed.likelihood.noise_deviation, LEAST, np.zeros((n, engine.kind.width)), triangle, np.zeros((n, d, d)),
        np.zeros((n, d)), np.empty((n, d, d)), touched, np.empty((n, d)), np.empty(n), np.empty(tree.n_actions), gap,
    )  # fmt: skip
    return (gap, int(touched[tree.leaves].sum())) if is_over else None
