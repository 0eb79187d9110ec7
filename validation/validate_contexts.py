"""Clicks with contexts: each way of settling against long Polya-Gamma chains, which approximate nothing.

Only propagation has targets. One pass and Laplace's approximation are cheaper, and are here to show what that costs.
"""

import numpy as np
import pytest
from scipy.special import expit

import bough
from bough.inference.oracles.grid import GridPosterior


@pytest.mark.parametrize("per_action", [5, 50])
def test_contexts(figures, per_action):
    """Sites made once and Laplace's approximation, against long chains."""
    rng = np.random.default_rng(11)
    tree = bough.Tree.balanced(5, 2)
    model = bough.BernoulliModel(tree, [-2.0, 0.0, 0.0], bough.by_depth([0.3, 0.5, 0.3]))
    n = per_action * tree.n_actions
    actions = np.repeat(tree.leaves, per_action)
    contexts = np.column_stack([np.ones(n), rng.normal(size=(n, 2))])
    score = np.einsum("nd,nd->n", model.draw(rng)[actions], contexts)
    log = bough.Observations(actions, (rng.random(n) < expit(score)).astype(float), contexts)
    chains = bough.gibbs(model, log, draws=10_000, chains=2, seed=12)
    exact = np.sqrt(np.einsum("vdd->vd", chains.covariance))
    one_pass, laplace, propagated = (bough.Posterior(model) for _ in range(3))
    one_pass.update(log.action, log.reward, log.context)
    laplace.settle(log, method="laplace")
    propagated.settle(log)
    for what, posterior in (("one pass", one_pass), ("Laplace", laplace), ("propagation", propagated)):
        off = np.abs(posterior.mean - chains.mean) / exact
        narrow = np.abs(np.sqrt(np.einsum("vdd->vd", posterior.covariance)) / exact - 1.0)
        limit = 0.1 if what == "propagation" else None
        name = f"contexts, {per_action} clicks per action, {what}"
        figures.errors(f"{name}, error of means: median (worst)", off, limit)
        figures.errors("  the same, standard deviations", narrow, limit)


def test_rare_clicks_in_one_context(figures):
    """The worst case of one pass: every site is made from what was known then."""
    tree = bough.Tree.from_parents([-1])
    exact = GridPosterior(bough.BernoulliModel(tree, 0.0, 1.0))
    exact.update([0], [0], trials=[1_000])
    deviation = float(np.sqrt(exact.covariance[0]))
    model, log = bough.BernoulliModel(tree, [0.0], 1.0), (np.zeros(1_000, int), np.zeros(1_000), np.ones((1_000, 1)))
    one_pass, laplace, propagated = (bough.Posterior(model) for _ in range(3))
    one_pass.update(*log)
    laplace.settle(log, method="laplace")
    propagated.settle(log)
    for what, posterior in (("one pass", one_pass), ("Laplace", laplace), ("propagation", propagated)):
        off = abs(float(posterior.mean[0, 0] - exact.mean[0])) / deviation
        narrow = abs(float(np.sqrt(posterior.covariance[0, 0, 0])) / deviation - 1.0)
        limit = 0.1 if what == "propagation" else None
        figures.at_most(f"0 clicks of 1,000 in one context, {what}, error of the mean", off, limit)
        figures.at_most("  the same, standard deviation", narrow, limit)


def test_the_chains_mix(figures):
    model, rng = bough.problems.clicks(height=2, variances=(0.1, 0.6, 0.3)), np.random.default_rng(13)
    log = bough.Observations(model.tree.leaves, rng.binomial(500, 0.05, 100), trials=500)
    size = bough.gibbs(model, log, draws=1_000, chains=4, seed=0).effective_sample_size().min()
    figures.at_least("chains of 4 x 1,000 draws, 500 trials per action: smallest effective size", float(size), 400)
