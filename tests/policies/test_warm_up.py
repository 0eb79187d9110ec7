"""After `warm_up` in a fresh process no kernel is compiled, or loaded, by the first requests of an agent."""

import json
import subprocess
import sys

import pytest

import bough
from places import ROOT

# By name: what the agent is, and whether it is given itself, or its model.
CASES = {
    "numbers in a large regular tree": ("HierTS(GaussianModel(LARGE), 0)", False),
    "numbers in an uneven tree": ("HierTS(GaussianModel(UNEVEN, 0.5, by_height([1.0, 2.0, 0.5, 1.0])), 0)", False),
    "numbers with a variance per node": ("HierTS(GaussianModel(UNEVEN, 0.0, by_node(VARIANCES)), 0)", False),
    "numbers in a small tree": ("TS(GaussianModel(SMALL), 0)", False),
    "vectors in a large tree": ("HierTS(GaussianModel(LARGE, [0.0, 0.0, 0.0]), 0)", False),
    "vectors in a small tree": ("FlatTS(GaussianModel(SMALL, [0.0, 0.0, 0.0]), 0)", True),
    "clicks in a large tree": ("HierTS(BernoulliModel(LARGE, -1.0), 0)", False),
    "counts in contexts": ("HierTS(PoissonModel(UNEVEN, [0.0, 0.0, 0.0]), 0)", False),
    "optimism in contexts": ("BayesUCB(BernoulliModel(SMALL, [0.0, 0.0, 0.0]), 0)", True),
    "drift": ("HierTS(GaussianModel(LARGE, drift=10.0), 0)", False),
    "a half-life": ("HierTS(PoissonModel(LARGE), 0, half_life=10.0)", True),
}

# A process that has no kernel yet forks one for each case, where nothing is but what the warm-up brought.
SCRIPT = """
import functools, json, multiprocessing, pathlib, sys, tempfile
import numba, numpy as np
import bough
from bough import *

SMALL, LARGE = Tree.balanced(3, 2), Tree.balanced(21, 3)
UNEVEN = Tree.from_paths([f"{i % 7}/{i % 50}/{i}" for i in range(9000)] + ["x"])
VARIANCES = np.linspace(1.0, 2.0, UNEVEN.n_nodes)
FOLDER = pathlib.Path(tempfile.mkdtemp())


def variants():
    found = {}
    for home, module in list(sys.modules.items()):
        if home.startswith("bough.inference.kernels."):
            for name, one in vars(module).items():
                if hasattr(one, "overloads") and one.__module__ == home:
                    found[f"{home}.{name}"] = len(one.overloads)
    return found


def requests(agent, name):
    names = list(agent.posterior.model.tree.actions[:5])
    context = None if agent.posterior.model.is_scalar else np.array([0.3, -1.0, 0.2])
    batch = names, np.ones(5), None if context is None else np.tile(context, (5, 1))
    agent.decide(context)
    agent.update(names[0], 1.0, context)
    for ask in (agent.decide, functools.partial(agent.decision, samples=3)):
        for narrowed in ({}, {"k": 3}, {"among": names}, {"exclude": names[:1]}, {"k": 2, "among": names}):
            ask(context, **narrowed)
    agent.update(*batch)
    if context is None or agent.posterior.model.kind.sums_suffice:
        agent.absorb(Statistics.from_rows(*batch))
    agent.decide(context)
    agent.best(context)
    agent.save(FOLDER / name)
    again = type(agent).load(FOLDER / name)
    again.decide(context)
    again.update(names[0], 1.0, context)


def much(agent, name):
    # What is called once most actions have been tried: enough decisions for the other search, and to tune it.
    tree = agent.posterior.model.tree
    agent.update(list(tree.actions[10:]), np.zeros(tree.n_actions - 10))
    for i in range(60):
        agent.update(agent.decide(), 1.0)
    for narrowed in ({"k": 2}, {"exclude": list(tree.actions[:3])}):
        agent.decide(**narrowed)
    agent.decision(samples=3)
    agent.update(tree.actions[5], 1.0)
    agent.propensity([tree.actions[20]], samples=3)
    agent.save(FOLDER / name)
    type(agent).load(FOLDER / name).decide()


def case(given):
    name, (make, whole) = given
    agent = eval(make)
    bough.warm_up(agent if whole else agent.posterior.model)
    before = variants()
    requests(agent, name)
    if agent.posterior.model.is_scalar and agent.posterior.model.tree.n_nodes > 2_000:
        much(agent, name)
    if "half_life" in make or "drift" in make:
        for now in (1.0, 30.0):
            agent.now = now
            requests(agent, name)
    return name, sum(before.values()), [one for one, n in variants().items() if n > before.get(one, 0)]


bough.warm_up, HierTS, Greedy
assert not sum(variants().values())
numba.njit(lambda rng: rng.random())(np.random.default_rng(0))  # numba itself takes a second to begin
with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
    print(json.dumps(pool.map(case, json.loads(sys.argv[1]).items(), chunksize=1)))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="processes cannot fork")
def test_the_first_requests_after_a_warm_up_compile_and_load_nothing():
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, json.dumps(CASES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [name for name, _, _ in found] == list(CASES)
    assert {name: new for name, _, new in found if new} == {}
    assert all(warm > 10 for _, warm, _ in found)


def test_a_warm_up_leaves_the_agent_as_it_is():
    agent = bough.HierTS(bough.GaussianModel(bough.Tree.balanced(3, 2)), seed=0)
    twin = bough.HierTS(agent.posterior.model, seed=0)
    assert bough.warm_up(agent) > 0.0
    assert agent.posterior.n_observations == 0
    assert [agent.decide() for _ in range(5)] == [twin.decide() for _ in range(5)]


def test_a_class_of_the_users_own_is_warmed_up_as_what_it_is_derived_from():
    class Mine(bough.TS):
        def __init__(self, model, colour, shape):
            super().__init__(model, seed=0)

    model = bough.BernoulliModel(bough.Tree.balanced(3, 2))
    assert bough.warm_up(Mine(model, "red", "round")) > 0.0
    assert isinstance(bough.warm_up(bough.BetaTS(model)), float)  # which has nothing compiled


def test_what_reads_contexts_by_name_is_imported_by_a_warm_up():
    script = """
import sys
import bough
features = bough.Features(("age",), (30.0,), (10.0,), {"device": ("desk", "phone")})
model = bough.GaussianModel(bough.Tree.from_nested(["left", "right"]), mean=[0.0] * 5, features=features)
assert "sklearn" not in sys.modules
bough.warm_up(model)
assert "sklearn.preprocessing" in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)
