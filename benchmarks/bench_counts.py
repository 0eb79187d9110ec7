"""Clicks and counts: the speed of expectation propagation beside the Gaussian posterior's, and how close it comes.

Accuracy is measured against posteriors that approximate nothing: belief propagation on a grid (d = 1), and long
Polya-Gamma chains (contexts).
"""

import sys
import time
from pathlib import Path
from statistics import NormalDist

import numba
import numpy as np
import pytest
from scipy.special import expit

import bough
from bough.inference.oracles.grid import GridPosterior
from bough.worlds import Drawn

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from test_sites import SHAPES, both, errors, make_case  # the cases of the tests

MILLION = bough.Tree.balanced(10, 6)
VARIANCES = bough.by_depth([0.3, 0.4, 0.2, 0.2, 0.1, 0.1, 0.1])
GAUSSIAN = bough.GaussianModel(MILLION, -3.0, VARIANCES, 0.05)
CLICKS = bough.BernoulliModel(MILLION, -3.0, VARIANCES)


def played(model, rounds: int) -> bough.HierTS:
    """An agent after so many rounds of its own choice, with clicks drawn at random."""
    agent, rng = bough.HierTS(model, seed=0), np.random.default_rng(1)
    for _ in range(rounds):
        agent.update(agent.decide(), float(rng.random() < 0.05))
    return agent


@pytest.fixture(scope="module")
def agents() -> tuple[bough.HierTS, bough.HierTS]:
    """The same log in both models."""
    first = played(CLICKS, 1_000)
    count = first.posterior.count[MILLION.leaves]
    leaves = np.repeat(MILLION.leaves[count > 0], count[count > 0])
    rewards = (np.random.default_rng(2).random(len(leaves)) < 0.05).astype(float)
    agents = bough.HierTS(CLICKS, seed=0), bough.HierTS(GAUSSIAN, seed=0)
    for agent in agents:
        agent.update(leaves, rewards)
    return agents


def test_update(benchmark, table, agents):
    action = int(MILLION.leaves[np.flatnonzero(agents[0].posterior.count[MILLION.leaves])[0]])
    table.ratio(
        benchmark,
        "update of one click, 10^6 actions / of a Gaussian reward",
        lambda: agents[0].update(action, 1.0),
        lambda: agents[1].update(action, 1.0),
        at_most=20,
        rounds=30,
        burst=20,
    )


def test_update_without_python(benchmark, table, agents):
    leaf = MILLION.leaves[np.flatnonzero(agents[0].posterior.count[MILLION.leaves])[:1]]
    one, engines = np.ones(1), [agent.posterior._engine for agent in agents]
    table.ratio(
        benchmark,
        "  the same in the engine, without checks and names",
        lambda: engines[0].observe(leaf, one, None, one),
        lambda: engines[1].observe(leaf, one, None, None),
        at_most=20,
        rounds=30,
        burst=50,
    )


def test_decide(benchmark, table, agents):
    table.ratio(
        benchmark,
        "decide, 10^6 actions, 1,000 clicks / 1,000 Gaussian rewards",
        agents[0].decide,
        agents[1].decide,
        at_most=1.2,
        rounds=100,
        burst=5,
    )


def test_settle(table):
    rng = np.random.default_rng(3)
    leaves = rng.choice(MILLION.leaves, 100_000, replace=False)
    posterior = bough.Posterior(CLICKS)
    start = time.perf_counter()
    posterior.update(leaves, (rng.random(100_000) < 0.05).astype(float))
    table.note("a batch of 10^5 clicks of as many actions, settled", f"{time.perf_counter() - start:.2f} s")


def test_accuracy(table):
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
        table.amount(f"2,000 random trees, error of {what}: median", float(np.median(values)), median, "")
        table.amount("  the same: 99.9%", float(np.quantile(values, 0.999)), worst, "")
        table.amount("  the same: worst", float(values.max()), worst, "")


def test_one_by_one(table):
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
    table.note("5,000 rounds never settled, means: median, worst", f"{np.median(off):.3f}, {off.max():.3f}")
    table.note("  the same, standard deviations", f"{np.median(narrow):.3f}, {narrow.max():.3f}")


def test_coverage_in_the_closed_loop(table):
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
        share = f"{inside[i] / runs:.2%}, {above[i] / runs:.2%}"
        table.note(f"95% intervals of {what} that hold the truth; truth above the mean", share)


@pytest.mark.parametrize("per_action", [5, 50])
def test_contexts(table, per_action):
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
    laplace.settle(log)
    propagated.settle(log, method="propagation")
    for what, posterior in (("one pass", one_pass), ("Laplace", laplace), ("propagation", propagated)):
        off = np.abs(posterior.mean - chains.mean) / exact
        narrow = np.abs(np.sqrt(np.einsum("vdd->vd", posterior.covariance)) / exact - 1.0)
        table.note(
            f"contexts, {per_action} clicks an action, {what}: means, deviations",
            f"{np.median(off):.3f} ({off.max():.2f}), {np.median(narrow):.3f} ({narrow.max():.2f})",
        )


def test_rare_clicks_in_one_context(table):
    """The worst case of one pass: every site is made from what was known then."""
    tree = bough.Tree.from_parents([-1])
    exact = GridPosterior(bough.BernoulliModel(tree, 0.0, 1.0))
    exact.update([0], [0], trials=[1_000])
    deviation = float(np.sqrt(exact.covariance[0]))
    model, log = bough.BernoulliModel(tree, [0.0], 1.0), (np.zeros(1_000, int), np.zeros(1_000), np.ones((1_000, 1)))
    one_pass, laplace, propagated = (bough.Posterior(model) for _ in range(3))
    one_pass.update(*log)
    laplace.settle(log)
    propagated.settle(log, method="propagation")
    for what, posterior in (("one pass", one_pass), ("Laplace", laplace), ("propagation", propagated)):
        off = abs(float(posterior.mean[0, 0] - exact.mean[0])) / deviation
        narrow = float(np.sqrt(posterior.covariance[0, 0, 0])) / deviation
        table.note(f"0 of 1,000 in one context, {what}: mean, deviation", f"{off:.2f}, {narrow:.2f}")


def test_settling_a_large_log(table):
    rng = np.random.default_rng(15)
    model = bough.BernoulliModel(bough.Tree.balanced(20, 2), [-3.0, 0.0, 0.0], bough.by_depth([0.3, 0.5, 0.3]))
    actions, contexts = rng.choice(model.tree.leaves, 40_000), rng.normal(size=(40_000, 3))
    contexts[:, 0] = 1.0
    score = np.einsum("nd,nd->n", model.draw(rng)[actions], contexts)
    log = bough.Observations(actions, (rng.random(40_000) < expit(score)).astype(float), contexts)
    spent = []
    for method in ("laplace", "propagation"):
        bough.Posterior(model).settle((actions[:99], log.reward[:99], contexts[:99]), method=method)  # compiles
        start = time.perf_counter()
        bough.Posterior(model).settle(log, method=method)
        spent.append(time.perf_counter() - start)
    table.note("settle(log), 40,000 rows, d = 3: Laplace, propagation", f"{spent[0]:.2f} s, {spent[1]:.2f} s")


def test_gibbs(table):
    model, rng = bough.problems.clicks(), np.random.default_rng(13)
    log = bough.Observations(model.tree.leaves, rng.binomial(20, 0.05, 1_000), trials=20)
    bough.gibbs(model, log, draws=10, chains=1, seed=0, warmup=0)
    start = time.perf_counter()
    bough.gibbs(model, log, draws=500, chains=1, seed=0, warmup=0)
    table.note("Gibbs sweeps a second, 1,000 actions of 20 trials", f"{500 / (time.perf_counter() - start):.0f}")
    model = bough.problems.clicks(height=2, variances=(0.1, 0.6, 0.3))
    log = bough.Observations(model.tree.leaves, rng.binomial(500, 0.05, 100), trials=500)
    size = bough.gibbs(model, log, draws=1_000, chains=4, seed=0).effective_sample_size().min()
    table.note("  smallest effective size of 4 x 1,000 draws, 500 trials an action", f"{size:.0f}")


@numba.njit
def play_exactly(rng, truth, noise, grid, log_prior, gap):
    """Overwrites gap: Thompson sampling with independent actions, each with its exact posterior on a grid."""
    of_click, of_none = -np.log1p(np.exp(-grid)), -np.log1p(np.exp(grid))
    log_density, below = np.empty((len(truth), len(grid))), np.empty((len(truth), len(grid)))
    for action in range(len(truth)):
        log_density[action] = log_prior
        below[action] = np.cumsum(np.exp(log_prior))
    for t in range(len(gap)):
        best, chosen = -np.inf, 0
        for action in range(len(truth)):
            level = rng.random() * below[action, -1]
            k = np.searchsorted(below[action], level)
            under = below[action, k - 1] if k > 0 else 0.0
            score = grid[k] + (grid[1] - grid[0]) * ((level - under) / (below[action, k] - under) - 0.5)
            if score > best:
                best, chosen = score, action
        gap[t] = truth.max() - truth[chosen]
        log_density[chosen] += of_click if noise[t] < truth[chosen] else of_none
        below[chosen] = np.cumsum(np.exp(log_density[chosen] - log_density[chosen].max()))


class Kept:
    """Click problems whose worlds are kept, so that the exact sampler can meet the same."""

    def __init__(self, model) -> None:
        self.model, self.worlds = model, []

    def world(self, rounds, rng):
        self.worlds.append(Drawn(self.model).world(rounds, rng))
        return self.worlds[-1]


def test_what_gaussian_tails_cost(table):
    """Independent actions, 20,000 rounds: the regret with Gaussian posteriors, with exact ones, and with Beta's."""
    problem = Kept(bough.problems.clicks())
    run = bough.simulate(problem, {"TS": bough.TS, "BetaTS": bough.BetaTS}, rounds=20_000, runs=24, seed=14, jobs=1)
    mean, spread = problem.model.mean, problem.model.marginal_covariance[-1]
    grid = np.linspace(mean - 7.0, mean + 7.0, 500)
    exact = []
    for i, world in enumerate(problem.worlds):
        gap = np.empty(world.rounds)
        play_exactly(np.random.default_rng(i), world.truth, world.noise, grid, -0.5 * (grid - mean) ** 2 / spread, gap)
        exact.append(gap.sum())
    table.note("clicks, independent actions, exact posteriors: regret", f"{np.mean(exact):.0f}")
    for name in ("TS", "BetaTS"):
        more = run.regret[name][:, -1] - exact
        table.note(f"  {name} less that", f"{more.mean():.0f} ± {more.std(ddof=1) / np.sqrt(len(more)):.0f}")
