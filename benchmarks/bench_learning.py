"""Learning priors: the fit beside gpboost's, and the summary of a large log beside the bare group-by.

Two threads for DuckDB and for gpboost, as they come; the fit itself runs in one.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import gpboost
import numpy as np
import pytest

import bough

ROWS = 20_000_000
FEATURES = 10
ACTIONS = 10_000


def nested_log():
    """10^4 actions below three levels of variance, 5 x 10^4 rows."""
    tree = bough.Tree.from_parents(
        [-1] + [0] * 40 + [1 + i // 25 for i in range(1_000)] + [41 + i // 10 for i in range(10_000)]
    )
    model = bough.GaussianModel(tree, 2.0, bough.by_depth([0.0, 1.0, 0.5, 0.7]), 1.5)
    rng = np.random.default_rng(0)
    actions = rng.choice(tree.leaves, 50_000)
    return tree, actions, model.draw(rng)[actions] + rng.normal(0.0, 1.5**0.5, len(actions))


def by_gpboost(tree, actions, rewards, method):
    above = tree.parent[actions]
    groups = np.column_stack([tree.parent[above], above, actions])
    model = gpboost.GPModel(group_data=groups, likelihood="gaussian", matrix_inversion_method=method)
    start = time.perf_counter()
    model.fit(y=rewards, X=np.ones((len(rewards), 1)), params={"maxit": 1_000, "delta_rel_conv": 1e-9})
    spent = time.perf_counter() - start
    estimates = np.asarray(model.get_cov_pars()).ravel()
    return spent, estimates, -float(model.get_current_neg_log_likelihood())


def test_the_fit_beside_gpboost(table):
    tree, actions, rewards = nested_log()
    times, fit = [], None
    for _ in range(5):
        start = time.perf_counter()
        fit = bough.fit_prior(tree, bough.Statistics.from_rows(actions, rewards), penalty=None)
        times.append(time.perf_counter() - start)
    ours = np.array([fit.noise_variance, *(fit.covariances[f"depth {i}"] for i in (1, 2, 3))])
    for method in ("cholesky", "iterative"):
        spent, theirs, log_likelihood = min(by_gpboost(tree, actions, rewards, method) for _ in range(2))
        apart = np.abs(theirs / ours - 1.0).max()
        label = f"fit, 10^4 actions, 5 x 10^4 rows / gpboost ({method})"
        if method == "cholesky":
            table.compared(label, min(times), spent, at_least=10)
        else:
            table.comparison(label, min(times), spent)
        table.note(
            f"  its variances from ours, log likelihood from ours ({method})",
            f"{apart:.1e}, {log_likelihood - fit.log_evidence:.1e}",
        )


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
    table.spread(
        f"summary of 2 x 10^7 rows, 10 features ({ours:.1f} s) / group-by ({bare:.1f} s)", ours / bare, at_most=1.5
    )
    table.amount("  its memory at the peak", max(pair[0][1] for pair in pairs), 2.0, "GB")
