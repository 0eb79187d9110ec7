"""How long the paper takes: `bough reproduce` with its defaults, and the same work by NumPy on the joint posterior."""

import subprocess
import sys
import tempfile
import time

import numpy as np

from bough.experiments.runner import Settings
from bough.experiments.sweeps import EXPERIMENTS, Cell


def dense_run(model, rounds: int, seed: int) -> float:
    """One run of HierTS with the joint precision of all nodes as one matrix, as a short script would do it."""
    rng = np.random.default_rng(seed)
    tree = model.tree
    variance = model.classes.table[model.classes.of_node]
    precision = np.zeros((tree.n_nodes, tree.n_nodes))
    for node in range(tree.n_nodes):
        edge = np.zeros(tree.n_nodes)
        edge[node] = 1.0
        if node:
            edge[tree.parent[node]] = -1.0
        precision += np.outer(edge, edge) / variance[node]
    information = np.zeros(tree.n_nodes)
    truth = model.draw(rng)
    regret, best = 0.0, truth[tree.leaves].max()
    for _ in range(rounds):
        covariance = np.linalg.inv(precision)
        sample = rng.multivariate_normal(covariance @ information, covariance, method="cholesky")
        action = tree.leaves[sample[tree.leaves].argmax()]
        regret += best - truth[action]
        precision[action, action] += 1.0
        information[action] += truth[action] + rng.normal()
    return regret


def test_the_whole_reproduction(benchmark, table):
    def reproduce() -> float:
        with tempfile.TemporaryDirectory() as out:
            start = time.perf_counter()
            command = "import sys; from bough.cli import main; sys.exit(main(['reproduce', '--out', sys.argv[1]]))"
            subprocess.run([sys.executable, "-c", command, out], check=True, capture_output=True)
            return time.perf_counter() - start

    reproduce()  # compiles
    spent = benchmark.pedantic(reproduce, rounds=1)
    table.amount("bough reproduce, defaults, after compilation", spent, 60.0, "s")

    settings, cell = Settings(), Cell("increasing", 2, 2)
    model = cell.model()
    start = time.perf_counter()
    for seed in range(5):
        dense_run(model, settings.rounds, seed)
    a_round = (time.perf_counter() - start) / (5 * settings.rounds)
    n_rounds = sum(len(e.cells) * len(e.policies) * settings.runs * settings.rounds for e in EXPERIMENTS.values())
    table.comparison(
        f"the same {n_rounds / 1e6:.1f} million rounds by dense NumPy, extrapolated", spent, a_round * n_rounds
    )
