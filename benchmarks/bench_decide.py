"""Deciding among very many actions: against the full sampler, against K, against peers, on a real taxonomy."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from search_runs import species

import bough

HERE = Path(__file__).parent


def played(model, rounds, seed=0):
    """HierTS after that many rounds on a problem drawn from its model."""
    rng = np.random.default_rng(seed)
    truth, agent = model.draw(rng), bough.HierTS(model, seed=seed, search=True)
    for _ in range(rounds):
        action = agent.decide()
        agent.update(action, truth[model.tree.index(action)] + rng.normal())
    return agent


@pytest.mark.parametrize(("rounds", "target"), [(100, 300), (10_000, 40)])
def test_decide_against_the_full_sampler(benchmark, table, rounds, target):
    agent = played(bough.problems.constant(10, 6), rounds)
    full = bough.HierTS.resume(agent.posterior, seed=1, search=False)
    full.decide()
    table.ratio(
        benchmark,
        f"decide, 10^6 actions, {rounds:,} rounds: full sampler / search",
        agent.decide,
        full.decide,
        at_least=target,
        rounds=20,
        burst=10,
    )


def test_the_time_of_a_decision_follows_the_data(benchmark, table):
    times, looked = {}, {}
    for height in range(3, 8):
        agent = played(bough.problems.constant(10, height), 1_000)
        touched = agent.posterior._engine.slots.count
        spent = []
        for _ in range(300):
            start = time.perf_counter()
            agent.decide()
            spent.append(time.perf_counter() - start)
        times[10**height] = (min(spent), touched)
        looked[10**height] = agent.posterior.nodes_visited
    benchmark.pedantic(lambda: None, rounds=1)
    a_node = [spent / touched for spent, touched in times.values()]
    for actions, (spent, touched) in times.items():
        table.note(f"decide, K = {actions:.0e}, 1,000 rounds, {touched} touched", f"{spent * 1e6:.1f} us")
    table.spread("decide's time per touched node, K = 10^3 to 10^7: largest / smallest", max(a_node) / min(a_node), 3.0)
    out = os.environ.get("BOUGH_BENCH_OUT")
    if out:
        Path(out).write_text(json.dumps({"times": times, "looked": looked}))


LARGE = r"""
import re, numpy as np, time, bough
rng = np.random.default_rng(0)
tree = bough.Tree.balanced(10, 7)
agent = bough.HierTS(bough.GaussianModel(tree, np.zeros(32)), seed=0)
agent.update(rng.choice(tree.leaves, 10_000), rng.normal(size=10_000), rng.normal(size=(10_000, 32)))
agent.decide(rng.normal(size=32))
start = time.perf_counter(); agent.decide(rng.normal(size=32)); spent = time.perf_counter() - start
print(spent, int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1]) / 1e6)
"""


def test_ten_million_actions_with_vectors(benchmark, table):
    def run():
        done = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True, check=True)
        return [float(number) for number in done.stdout.split()]

    spent, size = benchmark.pedantic(run, rounds=1)
    table.amount("10^7 actions, d = 32, 10^4 observations: peak memory", size, 2.0, "GB")
    table.note("the same: decide", f"{spent * 1e3:.0f} ms")


def test_peers_with_contexts(benchmark, table):
    """Each peer in an environment of its own, made here; K = 10^4, fan-out 10, d = 10, one thread."""
    tree, rng = bough.Tree.balanced(10, 4), np.random.default_rng(0)
    agent = bough.HierTS(bough.GaussianModel(tree, np.zeros(10)), seed=0)
    agent.update(tree.leaves[:1_000], np.zeros(1_000), rng.normal(size=(1_000, 10)))
    contexts, spent = rng.normal(size=(200, 10)), []
    for context in contexts:
        start = time.perf_counter()
        action = agent.decide(context)
        agent.update(action, 0.3, context)
        spent.append(time.perf_counter() - start)
    ours = float(np.median(spent[20:]))
    benchmark.pedantic(lambda: None, rounds=1)
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        packages = ["bayesianbandits>=1.5", "mabwiser>=2.7", "vowpalwabbit>=9.10"]
        subprocess.run([python, "-m", "pip", "install", "-qq", *packages], check=True, capture_output=True)
        done = subprocess.run([python, HERE / "peers.py"], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert len(lines) == 4, done.stderr
    for line in lines:
        result = json.loads(line)
        if "error" in result:
            table.note(f"decide + update, K = 10^4, d = 10: {result['name']}", result["error"][:40])
        else:
            table.compared(
                f"decide + update, K = 10^4, d = 10: {result['name']} / bough", ours, result["seconds"], at_least=100
            )


def test_a_real_taxonomy(benchmark, table):
    """The species of iNaturalist, kingdom to genus above them."""
    start = time.perf_counter()
    tree = species()
    built = time.perf_counter() - start
    agent = played(bough.GaussianModel(tree), 1_000)
    full = bough.HierTS.resume(agent.posterior, seed=1, search=False)
    name = f"{tree.n_actions / 1e6:.2f} million species of iNaturalist"
    table.note(f"{name}: read, and Tree.from_frame", f"{built:.1f} s")
    table.ratio(
        benchmark, f"decide, {name}: full / search", agent.decide, full.decide, at_least=1.0, rounds=10, burst=5
    )
