"""Clicks and counts, a number per node: expectation propagation against exact posteriors on a grid, and simulation."""

from statistics import NormalDist

import numpy as np
from scipy.special import expit

import bough
from test_sites import SHAPES, both, errors, make_case  # the cases of the tests


def test_accuracy_on_random_trees(figures):
    found = [
        errors(*both(*make_case(kind, SHAPES[seed % len(SHAPES)], 12, seed)))
        for kind in ("bernoulli", "poisson")
        for seed in range(1_000)
    ]
    mean, spread = (np.concatenate([one[i] for one in found]) for i in (0, 1))
    evidence = np.array([one[2] for one in found])
    for what, values, median, worst in (
        ("means, in standard deviations", mean, 0.02, 0.15),
        ("standard deviations", spread, 0.02, 0.10),
        ("log evidence", evidence, 0.05, 0.05),
    ):
        figures.at_most(
            f"clicks and counts, 2,000 random trees, error of {what}: median", float(np.median(values)), median
        )
        figures.at_most("  the same: 99.9%", float(np.quantile(values, 0.999)), worst)
        figures.at_most("  the same: worst", float(values.max()), worst)


def test_one_by_one(figures):
    """What a policy has that never settles, against the settled posterior of the same clicks."""
    model = bough.problems.clicks()
    parameters, rng = model.draw(7), np.random.default_rng(8)
    agent = bough.HierTS(model, seed=9)
    for _ in range(5_000):
        action = agent.decide()
        agent.update(action, int(rng.random() < expit(parameters[action])))
    before, spread = agent.posterior.mean.copy(), np.sqrt(agent.posterior.covariance)
    agent.posterior.settle()
    off = np.abs(agent.posterior.mean - before) / np.sqrt(agent.posterior.covariance)
    narrow = np.abs(spread / np.sqrt(agent.posterior.covariance) - 1.0)
    for what, values in (("means, in standard deviations", off), ("standard deviations", narrow)):
        figures.at_most(f"5,000 clicks never settled, error of {what}: median", float(np.median(values)), 0.02)
        figures.at_most("  the same: worst", float(values.max()), 0.1)


def test_coverage_in_the_closed_loop(figures):
    """How often 95% intervals hold the truth after HierTS has chosen what it learned from."""
    tree, runs, rounds = bough.Tree.balanced(2, 2), 20_000, 10
    model = bough.BernoulliModel(tree, -1.0, bough.by_depth([0.5, 0.5, 1.0]))
    rng, width = np.random.default_rng(10), NormalDist().inv_cdf(0.975)
    inside, above = np.zeros(3), np.zeros(3)
    for _ in range(runs):
        truth, agent = model.draw(rng), bough.HierTS(model, seed=rng)
        for _ in range(rounds):
            place = agent._choose_place(None)
            agent._learn(place, float(rng.random() < expit(truth[tree.leaves[place]])), None)
        z = (truth - agent.posterior.mean) / np.sqrt(agent.posterior.covariance)
        watched = z[[0, 1, int(tree.leaves[agent.posterior.count[tree.leaves].argmax()])]]
        inside += np.abs(watched) < width
        above += watched > 0.0
    for i, what in enumerate(("the root", "an inner node", "the action tried most")):
        name = f"clicks, 20,000 runs of HierTS, 95% intervals of {what} that hold the truth"
        figures.share(name, inside[i] / runs, 0.94, 0.96)
        figures.share("  the same: truths above the posterior mean", above[i] / runs, 0.49, 0.51)
