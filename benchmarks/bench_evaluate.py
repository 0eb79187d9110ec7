"""Evaluation on logs: a large log beside the bare group-by, and the memory that contexts take.

DuckDB has as many threads as there are cores, on both sides. The group-by is that of the sums that evaluation is named
for, n, y, y^2, 1/p, y/p, 1/p^2, y/p^2, y^2/p^2 and the least p; ours has three more. Loading and compiling are not
counted on either side.
"""

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

ROWS = 10_000_000
ACTIONS = 10_000
POLICIES = 20


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    duckdb.connect().sql(
        f"COPY (SELECT 102 + floor(random() * {ACTIONS})::INTEGER AS action, (random() < 0.05)::DOUBLE AS reward, "
        f"1.0 / {ACTIONS} AS propensity FROM range({ROWS})) TO '{path}' (FORMAT parquet)"
    )
    return path


OURS = """
import resource, sys, tempfile, time
import duckdb, numpy as np
import bough
tree = bough.Tree.from_parents([-1] + [0] * 100 + [0] + [1 + i // 100 for i in range({actions})])
rng = np.random.default_rng(0)
policies = {{str(i): rng.dirichlet(np.ones(tree.n_actions)) for i in range({policies})}}
small = tempfile.mkdtemp() + "/small.parquet"
duckdb.connect().sql(f"COPY (FROM '{{sys.argv[1]}}' LIMIT 1000) TO '{{small}}' (FORMAT parquet)")
bough.evaluate(policies, small, tree)  # loads and compiles
start = time.perf_counter()
report = bough.evaluate(policies, sys.argv[1], tree)
spent = time.perf_counter() - start
assert report.n_rows == {rows}
print(spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""
BARE = """
import resource, sys, time
import duckdb
query = (
    "SELECT action, count(*), sum(reward), sum(reward * reward), sum(1 / propensity), sum(reward / propensity), "
    "sum(1 / (propensity * propensity)), sum(reward / (propensity * propensity)), "
    "sum(reward * reward / (propensity * propensity)), min(propensity) "
    f"FROM '{{sys.argv[1]}}' GROUP BY action"
)
start = time.perf_counter()
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")
rows = connection.sql(query).fetchnumpy()
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""
CONTEXTS = """
import resource, time
import numpy as np, polars
import bough
tree = bough.Tree.balanced(10, 4)
rng = np.random.default_rng(0)
n, d = {rows}, 5
contexts = rng.normal(size=(n, d))
place = rng.integers(tree.n_actions, size=n)
log = polars.DataFrame({{
    "action": tree.leaves[place], "reward": rng.normal(size=n), "propensity": np.full(n, 1 / tree.n_actions),
    **{{f"x{{i}}": contexts[:, i] for i in range(d)}},
}})
weights = rng.normal(size=(d, tree.n_actions))

def target(x):
    odds = np.exp(x @ weights)
    return odds / odds.sum(axis=1, keepdims=True)

model = bough.GaussianModel(tree, np.zeros(d), 0.1)
start = time.perf_counter()
bough.evaluate({{"target": target}}, log, tree, context=[f"x{{i}}" for i in range(d)], model=model)
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""


def measured(code, *arguments, **names):
    given = [sys.executable, "-c", code.format(actions=ACTIONS, policies=POLICIES, **names), *map(str, arguments)]
    done = subprocess.run(given, capture_output=True, text=True, check=True, env=os.environ)
    return tuple(map(float, done.stdout.split()))


def test_twenty_policies_on_a_large_log_beside_the_bare_group_by(table, parquet: Path):
    pairs = [(measured(OURS, parquet, rows=ROWS), measured(BARE, parquet)) for _ in range(5)]
    ours, bare = (min(pair[i][0] for pair in pairs) for i in (0, 1))
    table.compared("evaluate 20 policies on 10^7 rows, 10^4 actions / group-by", ours, bare, at_most=2.0)
    table.amount("  its memory at the peak", max(pair[0][1] for pair in pairs), 2.0, "GB")


def test_the_memory_of_contexts(table):
    spent, memory = measured(CONTEXTS, rows=100_000)
    table.note("evaluate in 10^5 contexts, 10^4 actions, d = 5", f"{spent:.0f} s")
    table.amount("  its memory at the peak", memory, 2.0, "GB")
