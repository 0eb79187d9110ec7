"""The core's speed as ratios measured in one run. Run with `make bench`; never part of the tests.

Times are the fastest of many rounds, in one thread, since this is what a noisy machine disturbs least.
"""

import tempfile

import numpy as np
import pytest
from fresh import in_a_new_process

import bough

rng = np.random.default_rng(0)
MILLION = bough.GaussianModel(bough.Tree.balanced(10, 6))
VECTORS = bough.GaussianModel(bough.Tree.balanced(10, 4), np.zeros(10))


def observed(model: bough.GaussianModel, leaves: np.ndarray) -> bough.Posterior:
    posterior = bough.Posterior(model)
    contexts = None if model.is_scalar else rng.normal(size=(len(leaves), model.dim))
    posterior.update(leaves, rng.normal(size=len(leaves)), contexts)
    return posterior


@pytest.mark.parametrize("share", ["10^4", "all"])
def test_a_full_sample_of_numbers(benchmark, table, share):
    leaves = MILLION.tree.leaves if share == "all" else rng.choice(MILLION.tree.leaves, 10_000)
    posterior = observed(MILLION, leaves)
    table.ratio(
        benchmark,
        f"sample of 10^6 actions ({share} observed) / its normals",
        lambda: posterior.sample(rng),
        lambda: rng.standard_normal(MILLION.tree.n_nodes),
        at_most=1.3,
    )


@pytest.mark.parametrize("kind", ["new", "known"])
def test_ten_thousand_observations_in_one_call(benchmark, table, kind):
    leaves, rewards = rng.choice(MILLION.tree.leaves, 10_000), rng.normal(size=10_000)
    current = [observed(MILLION, leaves)]
    table.ratio(
        benchmark,
        f"update with 10^4 observations ({kind} actions) / 10^4 normals",
        lambda: current[0].update(leaves, rewards),
        lambda: rng.standard_normal(10_000),
        at_most=30,
        rounds=200,
        setup=(lambda: current.__setitem__(0, bough.Posterior(MILLION))) if kind == "new" else (lambda: None),
    )


def test_a_full_sample_of_vectors(benchmark, table):
    posterior = observed(VECTORS, VECTORS.tree.leaves)
    table.ratio(
        benchmark,
        "sample of 10^4 actions, d = 10 (all observed) / its normals",
        lambda: posterior.sample(rng),
        lambda: rng.standard_normal((VECTORS.tree.n_nodes, 10)),
        at_most=4,
        rounds=200,
    )


# -- against the one public library that can express the same posterior ----------------------------

FANOUT, HEIGHT = 10, 4


def path_design():
    """One row an action, a one for each node on its path: the same model as independent node effects."""
    from scipy.sparse import csr_array

    tree = bough.Tree.balanced(FANOUT, HEIGHT)
    columns = [tree.leaves.astype(np.int64)]
    while columns[-1][0] > 0:
        columns.append(tree.parent[columns[-1]].astype(np.int64))
    ones = np.ones(tree.n_actions * len(columns))
    rows = np.tile(np.arange(tree.n_actions), len(columns))
    return tree, csr_array((ones, (rows, np.concatenate(columns))), shape=(tree.n_actions, tree.n_nodes))


@pytest.fixture(scope="module")
def rivals():
    """bough and bayesianbandits after the same observations, one of each action, with the same posterior mean."""
    bayesianbandits = pytest.importorskip("bayesianbandits")
    from scipy.sparse import csc_array

    tree, design = path_design()

    class PathFeatures:
        def transform(self, _, *, action_tokens):
            return csc_array(design[np.asarray(action_tokens, dtype=int)])

    theirs = bayesianbandits.LipschitzContextualAgent(
        arms=[bayesianbandits.Arm(i) for i in range(tree.n_actions)],
        policy=bayesianbandits.ThompsonSampling(),
        arm_featurizer=PathFeatures(),
        learner=bayesianbandits.NormalRegressor(alpha=1.0, beta=1.0, sparse=True),
        random_seed=0,
    )
    rewards = rng.normal(size=tree.n_actions)
    theirs.learner.partial_fit(csc_array(design), rewards)
    ours = bough.HierTS(bough.GaussianModel(tree), seed=0)
    ours.update(tree.leaves, rewards)
    difference = np.abs(design @ np.asarray(theirs.learner.coef_).ravel() - ours.posterior.mean[tree.leaves]).max()
    assert difference < 1e-8, f"the posterior means differ by {difference}"
    return ours, theirs


def test_decide_against_bayesianbandits(benchmark, table, rivals):
    table.ratio(
        benchmark,
        "decide, K = 10^4, d = 1: bayesianbandits / bough",
        rivals[0].decide,
        lambda: rivals[1].pull(np.ones((1, 1))),
        at_least=300,
        rounds=30,
        burst=10,
    )


def test_update_against_bayesianbandits(benchmark, table, rivals):
    action = int(rivals[0].posterior.model.tree.leaves[1234])
    table.ratio(
        benchmark,
        "update, K = 10^4, d = 1: bayesianbandits / bough",
        lambda: rivals[0].update(action, 0.3),
        lambda: rivals[1].select_for_update(1234).update(np.ones((1, 1)), np.array([0.3])),
        at_least=500,
        rounds=10,
        burst=10,
    )


# -- what a new user waits for ---------------------------------------------------------------------

FIRST_DECISION = """
import time; start = time.perf_counter()
import bough
agent = bough.HierTS(bough.GaussianModel(bough.Tree.balanced(10, 3)), seed=0)
agent.update(agent.decide(), 1.0); agent.decide()
print(time.perf_counter() - start)
"""
IMPORT = "import time; start = time.perf_counter(); import bough; print(time.perf_counter() - start)"


BALANCED = """
import re, time, bough
start = time.perf_counter(); tree = bough.Tree.balanced(10, 7); spent = time.perf_counter() - start
print(spent, int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1e6)
"""


def test_what_a_new_user_waits_for(benchmark, table):
    with tempfile.TemporaryDirectory() as cache:
        table.amount("import bough", min(in_a_new_process(IMPORT, cache)[0] for _ in range(3)), 0.3, "s")
        first = in_a_new_process(FIRST_DECISION, cache)[0]
        table.amount("first decision and update on a new machine", first, 10.0, "s")
        later = benchmark.pedantic(in_a_new_process, args=(FIRST_DECISION, cache), rounds=3)[0]
        table.amount("the same in a later process", later, 2.0, "s")
        spent, size = in_a_new_process(BALANCED, cache)
        table.amount("Tree.balanced(10, 7), 10^7 actions: time", spent, 5.0, "s")
        table.amount("Tree.balanced(10, 7), 10^7 actions: peak memory", size, 1.0, "GB")
