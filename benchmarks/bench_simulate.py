"""Simulations: whole runs compiled beside the same runs of policy objects in Python, decision by decision the same."""

import numpy as np
import pytest

import bough

rng = np.random.default_rng(0)
TREE = bough.Tree.balanced(10, 2)
VARIANCES = bough.by_depth([0.3, 0.4, 0.3])
CLICKS = bough.BernoulliModel(TREE, -3.0, VARIANCES)
CONTEXTUAL = bough.BernoulliModel(TREE, [-3.0, 0.0, 0.0, 0.0], VARIANCES)
COUNTS = bough.PoissonModel(TREE, [0.0, 0.0, 0.0, 0.0], bough.by_depth([0.1, 0.1, 0.1]))
VISITS = np.column_stack([np.ones(1_000), rng.normal(size=(1_000, 3))])
CASES = {
    "HierTS, clicks in contexts, d = 4": (CONTEXTUAL, bough.HierTS, 5),
    "HierTS, counts in contexts, d = 4": (COUNTS, bough.HierTS, 5),
    "BayesUCB, clicks in contexts, d = 4": (CONTEXTUAL, bough.BayesUCB, 5),
    "Greedy, clicks": (CLICKS, bough.Greedy, 5),
    "Greedy, clicks in contexts, d = 4": (CONTEXTUAL, bough.Greedy, 5),
    "BetaTS, clicks": (CLICKS, bough.BetaTS, 2),
}


@pytest.mark.parametrize("case", CASES)
def test_a_compiled_run(benchmark, table, case):
    model, policy, at_least = CASES[case]

    def played(policy):
        contexts = None if model.is_scalar else VISITS
        return bough.simulate(model, {"one": policy}, rounds=500, runs=2, seed=0, jobs=1, contexts=contexts)

    def in_python(model, seed):
        return policy(model, seed=seed)

    np.testing.assert_allclose(played(policy).regret["one"], played(in_python).regret["one"], rtol=1e-9)
    table.ratio(
        benchmark,
        f"simulate 1,000 rounds, 100 actions: {case}: in Python / compiled",
        lambda: played(policy),
        lambda: played(in_python),
        at_least=at_least,
        rounds=5,
    )
