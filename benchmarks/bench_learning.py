"""Learning priors: the fit beside gpboost's, and the summary of a large log beside the bare group-by.

DuckDB has as many threads as there are cores, on both sides; both fits run in one, as `make bench` sets it.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import numpy as np
import pytest
from nested import by_gpboost, nested_log, variances

import bough

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
