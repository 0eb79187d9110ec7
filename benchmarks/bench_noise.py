"""Noise per action: updates, decisions and fits beside those with one noise variance for all."""

import numpy as np
import pytest

import bough

THOUSAND = bough.Tree.balanced(10, 3)
TEN_THOUSAND = bough.Tree.balanced(10, 4)
NOISE = bough.per_action(1.0, 1.1, 1e-3)


def models(tree) -> tuple[bough.GaussianModel, bough.GaussianModel]:
    variances = bough.by_depth([1.0] * (tree.height + 1))
    own = bough.GaussianModel(tree, 0.0, variances, noise=NOISE)
    return own, bough.GaussianModel(tree, 0.0, variances, float(NOISE.floor + NOISE.median * np.exp(0.5 * 1.1**2)))


def log_of(model, n: int):
    rng = np.random.default_rng(0)
    leaves = rng.choice(model.tree.leaves, n)
    deviation = np.sqrt(NOISE.draw(rng, model.tree.n_nodes))
    return leaves, model.draw(rng)[leaves] + deviation[leaves] * rng.standard_normal(n)


def taught(tree, n: int) -> list[bough.HierTS]:
    found = []
    for model in models(tree):
        agent = bough.HierTS(model, seed=0)
        agent.update(*log_of(models(tree)[0], n))
        agent.decide()
        found.append(agent)
    return found


@pytest.mark.parametrize("per_action", [2, 20])
def test_update_in_the_engine(benchmark, table, per_action):
    agents = taught(THOUSAND, per_action * THOUSAND.n_actions)
    leaf = int(THOUSAND.leaves[5])
    engines = [agent.posterior._engine for agent in agents]
    table.ratio(
        benchmark,
        f"update in the engine, noise per action / one variance, 10^3 actions of {per_action} rewards each",
        lambda: engines[0].observe_one(leaf, 1.0),
        lambda: engines[1].observe_one(leaf, 1.0),
        at_most=4,
        rounds=30,
        burst=10,
    )


@pytest.mark.parametrize(("tree", "name"), [(THOUSAND, "10^3"), (TEN_THOUSAND, "10^4")])
def test_decide(benchmark, table, tree, name):
    agents = taught(tree, 5_000)
    table.ratio(
        benchmark,
        f"decide, noise per action / one variance, {name} actions, 5,000 rewards, plain search",
        agents[0].decide,
        lambda: agents[1].posterior.best_actions(agents[1]._rng),
        at_most=1.5,
        rounds=60,
        burst=10,
    )


def test_decide_beside_today(benchmark, table):
    agents = taught(THOUSAND, 5_000)
    table.ratio(
        benchmark,
        "  the same with 10^3 actions, beside HierTS as it is, which draws all of so few",
        agents[0].decide,
        agents[1].decide,
        at_most=1.5,
        rounds=60,
        burst=10,
    )


def test_fit(benchmark, table):
    tree = bough.Tree.balanced(22, 3)
    log = bough.Statistics.from_rows(*log_of(models(tree)[0], 10 * tree.n_actions))
    table.ratio(
        benchmark,
        "fit_prior of 10^4 actions of 10 rewards each, noise per action / one variance",
        lambda: bough.fit_prior(tree, log, noise="per action"),
        lambda: bough.fit_prior(tree, log, noise="learn"),
        at_most=10,
        rounds=10,
        burst=1,
    )
