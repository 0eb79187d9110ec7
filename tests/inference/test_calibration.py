"""Simulation-based calibration through the closed loop: HierTS chooses what it learns from.

If the truth is drawn from the prior and the posterior is exact, the rank of any function of the truth among the
same function of posterior draws is uniform, whoever chose the actions. Talts et al. 2018 describe the method.
"""

import numpy as np
import pytest
from scipy.stats import chisquare

import bough

RUNS, ROUNDS, DRAWS, BINS = 6_000, 10, 63, 16
FALSE_ALARM = 1e-4  # a quantity, so below 1e-3 for each test here
TREE = bough.Tree.balanced(branching=2, height=2)
VARIANCES = np.array([0.5, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0])
WATCHED, ABOVE = 3, 1  # a leaf and its parent; with the root, every level of the tree


def ranks(truth_model: bough.GaussianModel, believed: bough.GaussianModel, seed: int) -> dict[str, np.ndarray]:
    found: dict[str, list[int]] = {"root": [], "inner": [], "leaf": [], "step": [], "log-likelihood": []}
    generator = np.random.default_rng(seed)
    for _ in range(RUNS):
        truth = truth_model.draw(generator)
        agent = bough.HierTS(believed, seed=generator)
        actions, rewards = [], []
        for _ in range(ROUNDS):
            action = agent.decide()
            reward = truth[action] + generator.normal()
            agent.update(action, reward)
            actions.append(action)
            rewards.append(reward)
        draws = agent.posterior.sample(generator, size=DRAWS)

        def log_likelihood(parameters, actions=actions, rewards=rewards):
            return -0.5 * ((np.array(rewards) - parameters[..., actions]) ** 2).sum(axis=-1)

        def step(parameters):
            return np.abs(parameters[..., WATCHED] - parameters[..., ABOVE])

        found["root"].append((draws[:, 0] < truth[0]).sum())
        found["inner"].append((draws[:, ABOVE] < truth[ABOVE]).sum())
        found["leaf"].append((draws[:, WATCHED] < truth[WATCHED]).sum())
        found["step"].append((step(draws) < step(truth)).sum())
        found["log-likelihood"].append((log_likelihood(draws) < log_likelihood(truth)).sum())
    return {name: np.array(values) for name, values in found.items()}


def p_value(rank: np.ndarray) -> float:
    counts = np.bincount(rank * BINS // (DRAWS + 1), minlength=BINS)
    return float(chisquare(counts).pvalue)


def test_hierts_is_calibrated_at_every_level_of_the_tree():
    model = bough.GaussianModel(TREE, covariance=bough.by_node(VARIANCES))
    for name, rank in ranks(model, model, seed=0).items():
        assert p_value(rank) > FALSE_ALARM, name


def test_a_leaf_with_a_standard_deviation_ten_percent_off_is_caught():
    wrong = VARIANCES.copy()
    wrong[WATCHED] *= 0.9**2
    truth_model = bough.GaussianModel(TREE, covariance=bough.by_node(VARIANCES))
    believed = bough.GaussianModel(TREE, covariance=bough.by_node(wrong))
    worst = min(p_value(rank) for rank in ranks(truth_model, believed, seed=0).values())
    assert worst < FALSE_ALARM


def test_hierts_with_clicks_is_calibrated_as_far_as_this_can_tell():
    """Expectation propagation is an approximation: docs/explanation/propagation.md has what more runs show."""
    model = bough.BernoulliModel(TREE, -1.0, bough.by_node(VARIANCES))
    generator = np.random.default_rng(7)
    found: dict[str, list[int]] = {"root": [], "inner": [], "leaf": [], "step": []}
    for _ in range(4_000):
        truth, agent = model.draw(generator), bough.HierTS(model, seed=generator)
        for _ in range(ROUNDS):
            place = agent._choose_place(None)
            agent._learn(place, float(generator.random() < 1.0 / (1.0 + np.exp(-truth[TREE.leaves[place]]))), None)
        draws = agent.posterior.sample(generator, size=DRAWS)
        for name, node in (("root", 0), ("inner", ABOVE), ("leaf", WATCHED)):
            found[name].append((draws[:, node] < truth[node]).sum())
        step = np.abs(draws[:, WATCHED] - draws[:, ABOVE])
        found["step"].append((step < np.abs(truth[WATCHED] - truth[ABOVE])).sum())
    for name, rank in found.items():
        assert p_value(np.array(rank)) > FALSE_ALARM, name


@pytest.mark.parametrize("dim", [2])
def test_the_contextual_posterior_is_calibrated(dim):
    tree = bough.Tree.balanced(branching=2, height=2)
    root = np.random.default_rng(5).normal(size=(dim, dim))
    prior = bough.by_depth([root @ root.T, np.eye(dim), 0.5 * np.eye(dim)])
    model = bough.GaussianModel(tree, np.zeros(dim), prior)
    generator = np.random.default_rng(6)
    found = []
    for _ in range(1_000):
        truth, agent = model.draw(generator), bough.HierTS(model, seed=generator)
        for _ in range(10):
            context = generator.normal(size=dim)
            action = agent.decide(context)
            agent.update(action, truth[action] @ context + generator.normal(), context)
        draws = agent.posterior.sample(generator, size=DRAWS)
        found.append((draws[:, WATCHED, 1] < truth[WATCHED, 1]).sum())
    assert p_value(np.array(found)) > FALSE_ALARM
