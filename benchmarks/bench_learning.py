"""Learning priors: the fit beside gpboost's, and the summary of a large log beside the bare group-by.

DuckDB has as many threads as there are cores, on both sides; both fits run in one, as `make bench` sets it.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import numba
import numpy as np
import pytest
from nested import by_gpboost, nested_log, variances
from scipy.special import expit

import bough
from bough.inference.kernels.likelihoods import BERNOULLI
from bough.inference.kernels.sites import tilted

ROWS = 20_000_000
FEATURES = 10
ACTIONS = 10_000


def test_the_fit_beside_gpboost(table):
    tree, actions, rewards = nested_log()
    times, fit = [], None
    for _ in range(5):
        start = time.perf_counter()
        fit = bough.fit_prior(tree, bough.Statistics.from_rows(actions, rewards), penalty=None)
        times.append(time.perf_counter() - start)
    for method in ("cholesky", "iterative"):
        spent, theirs, _ = min(by_gpboost(tree, actions, rewards, method) for _ in range(2))
        exact = method == "cholesky"
        if exact:  # the same optimum; validation/ prints how close
            np.testing.assert_allclose(theirs, variances(fit), rtol=1e-4)
        label = f"fit, 10^4 actions, 5 x 10^4 rows / gpboost ({method})"
        table.compared(label, min(times), spent, at_least=10 if exact else None)


# -- clicks in contexts ----------------------------------------------------------------------------

CLICKS = 200_000
SWEEPS_BEFORE = 187  # that this fit took while every site was made by Newton's method and settled to 1e-9


@numba.njit
def sites_by_newton(clicks, scores, variance):
    """One sweep over the rows as it was, without all that is around it: a mode and a quadrature around it for each."""
    total = 0.0
    for i in range(len(scores)):
        total += tilted(BERNOULLI, clicks[i], 1.0, scores[i], variance)[1]
    return total


@pytest.mark.parametrize("contexts", ["that never repeat", "of 16 kinds"])
def test_a_fit_of_clicks_in_contexts(table, contexts):
    rng = np.random.default_rng(0)
    tree = bough.Tree.balanced(10, 3)
    truth = bough.BernoulliModel(tree, [-2.0, 0.0, 0.0], bough.by_depth([0.0, 0.5, 0.3, 0.2]))
    actions, x = rng.choice(tree.leaves, CLICKS), np.ones((CLICKS, 3))
    x[:, 1:] = rng.normal(size=(CLICKS, 2)) if contexts == "that never repeat" else rng.integers(-2, 2, (CLICKS, 2))
    scores = np.einsum("nd,nd->n", truth.draw(rng)[actions], x)
    clicks = (rng.random(CLICKS) < expit(scores)).astype(float)
    bough.fit_prior(tree, bough.Observations(actions[:999], clicks[:999], x[:999]), model=bough.BernoulliModel)
    log, times, sweeps = bough.Observations(actions, clicks, x), [], []
    for _ in range(2):
        start = time.process_time()
        fit = bough.fit_prior(tree, log, model=bough.BernoulliModel)
        times.append(time.process_time() - start)
        assert fit.converged
    for _ in range(4):
        start = time.process_time()
        sites_by_newton(clicks, scores, 0.05)
        sweeps.append(time.process_time() - start)
    label = f"fit, clicks in contexts {contexts}, 2 x 10^5 rows, d = 3 / all sites by Newton's method"
    table.compared(label, min(times), SWEEPS_BEFORE * min(sweeps), at_least=5)


# -- 2 x 10^7 rows ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    features = ", ".join(f"random() - 0.5 AS x{i}" for i in range(FEATURES))
    duckdb.connect().sql(
        f"COPY (SELECT 1 + (random() * {ACTIONS - 1})::INTEGER AS action, random() AS reward, {features} "
        f"FROM range({ROWS})) TO '{path}' (FORMAT parquet)"
    )
    return path


OURS = """
import resource, sys, time
import bough
tree = bough.Tree.balanced({actions}, 1)
start = time.perf_counter()
statistics = bough.summarise(sys.argv[1], tree, "action", "reward", [f"x{{i}}" for i in range({features})])
spent = time.perf_counter() - start
assert statistics.n_rows == {rows}
print(spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""
BARE = """
import resource, sys, time
import duckdb
x = [f"x{{i}}" for i in range({features})]
sums = ["reward", "reward * reward", *(f"{{a}} * reward" for a in x)]
sums += [f"{{x[i]}} * {{x[j]}}" for i in range(len(x)) for j in range(i, len(x))]
query = "SELECT action, count(*), " + ", ".join(f"sum({{s}})" for s in sums)
query += f" FROM '{{sys.argv[1]}}' GROUP BY action"
start = time.perf_counter()
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")
rows = connection.sql(query).fetchnumpy()
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""


def test_a_large_log_beside_the_bare_group_by(table, parquet: Path):
    def measured(code):
        text = code.format(actions=ACTIONS, features=FEATURES, rows=ROWS)
        done = subprocess.run(
            [sys.executable, "-c", text, str(parquet)], capture_output=True, text=True, check=True, env=os.environ
        )
        return tuple(map(float, done.stdout.split()))

    pairs = [(measured(OURS), measured(BARE)) for _ in range(3)]
    ours, bare = (min(pair[i][0] for pair in pairs) for i in (0, 1))
    table.compared("summary of 2 x 10^7 rows, 10 features / group-by", ours, bare, at_most=1.5)
    table.amount("  its memory at the peak", max(pair[0][1] for pair in pairs), 2.0, "GB")
