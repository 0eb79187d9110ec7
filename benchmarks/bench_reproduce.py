"""How long `bough reproduce` takes with its defaults, and the paper by NumPy on the joint posterior."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from bough.experiments import registry
from bough.experiments.synthetic import SyntheticCell

FEATURES = Path("cifar100.npz")
SYNTHETIC = ("branching", "height-constant", "height-increasing", "policies")


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


def reproduce(*arguments: str) -> float:
    """The seconds that the command takes with these arguments, into a fresh folder."""
    with tempfile.TemporaryDirectory() as out:
        start = time.perf_counter()
        command = "import sys; from bough.cli import main; sys.exit(main(['reproduce', *sys.argv[1:]]))"
        subprocess.run([sys.executable, "-c", command, *arguments, "--out", out], check=True, capture_output=True)
        return time.perf_counter() - start


def test_the_whole_paper(benchmark, table):
    reproduce(*SYNTHETIC)  # compiles
    spent = benchmark.pedantic(reproduce, SYNTHETIC, rounds=1)
    table.amount("bough reproduce, the paper's synthetic experiments, after compilation", spent, 60.0, "s")

    cell, rounds, runs = SyntheticCell("increasing", 2, 2), 500, 100
    start = time.perf_counter()
    for seed in range(5):
        dense_run(cell.model(), rounds, seed)
    a_round = (time.perf_counter() - start) / (5 * rounds)
    experiments = map(registry.make, SYNTHETIC)
    n_rounds = sum(len(e.cells) * len(e.policies) * runs * rounds for e in experiments)
    table.compared(
        f"the same {n_rounds / 1e6:.1f} million rounds by dense NumPy, extrapolated", spent, a_round * n_rounds
    )


@pytest.mark.skipif(not FEATURES.exists(), reason=f"{FEATURES} is not here; bough data cifar100 makes it")
def test_classes(table):
    reproduce("classes", "--features", str(FEATURES), "--runs", "2", "--rounds", "5")  # compiles
    table.amount("bough reproduce classes", reproduce("classes", "--features", str(FEATURES)), 30.0, "s")


def test_clicks(table):
    reproduce("clicks", "--runs", "2", "--rounds", "5")  # compiles
    table.note("bough reproduce clicks", f"{reproduce('clicks'):.0f} s")


def test_catalogue(table):
    reproduce("catalogue", "--runs", "2", "--rounds", "5")  # compiles
    table.amount("bough reproduce catalogue", reproduce("catalogue"), 300.0, "s")
