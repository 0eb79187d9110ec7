"""A batch has the law of the full sampler, on JAX's CPU.

Actions by chi-squared and scores by Kolmogorov-Smirnov, fixed seeds, false-alarm rate 1e-4 a test.
"""

import subprocess
import sys

import numpy as np
import pytest

import bough
from bough.batch import stages
from laws import BALANCED, FALSE_ALARM, UNEVEN, drawn, observed, p_of_actions, p_of_scores

DRAWS = 10_000
SPD = np.array([[1.0, 0.4], [0.4, 0.5]])
SINGULAR = np.diag([1.0, 0.0])
WIDE = np.linspace(-1.0, 1.0, 10)
HEIGHTS = [0.5, 1.0, 2.0, 0.7, 1.0, 0.4]


def uneven(heights, mean=0.0):
    return bough.GaussianModel(UNEVEN, mean, bough.by_height(heights))


def balanced(depths, mean=0.0):
    return bough.GaussianModel(BALANCED, mean, bough.by_depth(depths))


TWO = np.zeros(2)
CASES = {
    "numbers, nothing touched": (bough.GaussianModel(BALANCED), 0, None),
    "numbers, subtrees alike": (balanced([1.0, 0.5, 2.0, 0.3], 0.4), 4, None),
    "numbers, uneven": (uneven(HEIGHTS, 0.2), 4, None),
    "numbers, one variance each": (bough.GaussianModel(UNEVEN, 0.0, bough.by_node(np.linspace(0.1, 2, 23))), 40, None),
    "numbers, zero variances": (uneven([0.0, 1.0, 0.0, 1.0, 1.0, 1.0]), 6, None),
    "numbers, all known": (bough.GaussianModel(UNEVEN, 0.0, 0.0), 6, None),
    "one action": (bough.GaussianModel(bough.Tree.from_parents([-1])), 2, None),
    "vectors, nothing touched": (bough.GaussianModel(UNEVEN, [0.3, -0.2]), 0, [1.0, -0.5]),
    "vectors, subtrees alike": (balanced([1, 2, 0.5, 1], TWO), 8, [1.0, 2.0]),
    "vectors, subtrees not alike": (balanced([1, SPD, 1, 2], [0.1, 0.0]), 8, [1.0, 2.0]),
    "vectors, uneven": (uneven([0.5, SPD, 1, 1, 1, 1], TWO), 30, [1.0, 2.0]),
    "vectors, zero variances": (uneven([0, SPD, 0, 1, 1, 1], TWO), 9, [1.0, 2.0]),
    "vectors, some directions known": (bough.GaussianModel(UNEVEN, TWO, SINGULAR), 4, [0.0, 1.0]),
    "vectors, a context of zeros": (bough.GaussianModel(UNEVEN, TWO), 4, [0.0, 0.0]),
    "ten numbers, uneven": (bough.GaussianModel(UNEVEN, np.zeros(10)), 30, WIDE),
    "fourteen numbers": (bough.GaussianModel(BALANCED, np.zeros(14)), 30, np.linspace(-1.0, 1.0, 14)),
    "clicks": (bough.BernoulliModel(BALANCED), 0, None),
}


def rows_of(context, n):
    return n if context is None else np.tile(np.asarray(context, dtype=float), (n, 1))


@pytest.mark.parametrize("name", CASES)
def test_the_law_is_that_of_the_full_sampler(name):
    model, n, context = CASES[name]
    posterior = observed(model, n)
    scorer = bough.batch.Scorer(posterior, device="cpu")
    k = 2 if model.tree.n_actions > 2 and model.dim <= 2 and "nothing" not in name else 1
    x = None if context is None else np.asarray(context, dtype=float)
    for wanted in {1, k}:
        chosen = scorer.best(rows_of(context, DRAWS), k=wanted, seed=wanted)
        nodes, scores = drawn(posterior, x, DRAWS, wanted)
        assert p_of_actions(chosen.nodes, nodes) > FALSE_ALARM
        assert p_of_scores(chosen.scores, scores) > FALSE_ALARM


@pytest.mark.parametrize("explore", [0.0, 0.5])
def test_explore_is_that_of_the_agent(explore):
    model, n, context = CASES["vectors, subtrees alike"]
    posterior = observed(model, n)
    agent = bough.HierTS.resume(posterior, seed=0, explore=explore)
    expected = model.tree.action_nodes([agent.decide(context) for _ in range(3_000)])[:, None]
    chosen = bough.batch.Scorer(posterior, device="cpu", explore=explore).best(rows_of(context, 3_000), k=1)
    assert p_of_actions(chosen.nodes, expected) > FALSE_ALARM


def test_without_exploring_untouched_siblings_tie():
    posterior = observed(bough.GaussianModel(BALANCED), 0)
    chosen = bough.batch.Scorer(posterior, device="cpu", explore=0.0).best(5_000, k=1)
    expected = np.random.default_rng(0).choice(BALANCED.leaves, (5_000, 1))
    assert p_of_actions(chosen.nodes, expected) > FALSE_ALARM


@pytest.mark.parametrize("name", ["numbers, subtrees alike", "vectors, uneven"])
def test_among_and_retired_actions(name):
    model, n, context = CASES[name]
    posterior, x = observed(model, n), None if context is None else np.asarray(context, dtype=float)
    some = [model.tree.name(node) for node in model.tree.leaves[[0, 1, 3, 4, 5, 8, 9]]]
    chosen = bough.batch.Scorer(posterior, device="cpu").best(rows_of(context, DRAWS), k=2, among=some)
    assert p_of_actions(chosen.nodes, drawn(posterior, x, DRAWS, 2, some)[0]) > FALSE_ALARM
    agent = bough.HierTS.resume(posterior, seed=0)
    agent.retire(some[1])
    left = [action for action in model.tree.actions if action != some[1]]
    chosen = bough.batch.Scorer(agent.posterior, device="cpu").best(rows_of(context, DRAWS), k=1)
    assert p_of_actions(chosen.nodes, drawn(posterior, x, DRAWS, 1, left)[0]) > FALSE_ALARM
    assert some[1] not in chosen.actions


def test_actions_that_were_added_and_moved_are_where_they_are_now():
    agent = bough.HierTS(bough.GaussianModel(UNEVEN), seed=0)
    agent.update(["a/e", "f"], [1.0, 0.5])
    agent.add("new", under="g")
    agent.move("m/q", "g")
    scorer = bough.batch.Scorer(agent.posterior, device="cpu")
    nodes, _ = drawn(agent.posterior, None, DRAWS)
    chosen = scorer.best(DRAWS, k=1)
    assert p_of_actions(chosen.nodes, nodes) > FALSE_ALARM
    assert {"new", "m/q"} <= set(chosen.actions.ravel().tolist())


def test_it_stays_as_it_was_when_the_posterior_learns():
    posterior = observed(bough.GaussianModel(UNEVEN), 3)
    scorer = bough.batch.Scorer(posterior, device="cpu")
    before = scorer.best(50, k=2, seed=1)
    posterior.update(["f"] * 50, [9.0] * 50)
    assert (scorer.best(50, k=2, seed=1).nodes == before.nodes).all()
    assert (bough.batch.Scorer(posterior, device="cpu").best(50, k=1).actions == "f").all()


# -- chunks, digits, compilations ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["numbers, uneven", "vectors, subtrees not alike"])
def test_chunks_give_identical_results(name):
    model, n, _ = CASES[name]
    scorer = bough.batch.Scorer(observed(model, n), device="cpu")
    rows = 900 if model.is_scalar else np.random.default_rng(0).normal(size=(900, 2))
    whole = scorer.best(rows, k=3, seed=5)
    for chunk in (1, 300, 10_000):
        part = scorer.best(rows, k=3, seed=5, chunk=chunk)
        assert (part.nodes == whole.nodes).all()
        assert (part.scores == whole.scores).all()
    assert (scorer.best(rows, k=3, seed=6).nodes != whole.nodes).any()


def test_contexts_on_the_device_give_the_same_decisions():
    jax = pytest.importorskip("jax")
    model, n, _ = CASES["vectors, uneven"]
    scorer = bough.batch.Scorer(observed(model, n), device="cpu")
    rows = np.random.default_rng(0).normal(size=(300, 2)).astype(np.float32)
    there, here = scorer.best(jax.numpy.asarray(rows), k=1), scorer.best(rows.astype(float), k=1)
    assert (there.nodes == here.nodes).mean() > 0.99
    np.testing.assert_allclose(there.scores, here.scores, rtol=1e-3, atol=1e-3)
    with pytest.raises(ValueError, match="not finite"):
        scorer.best(jax.numpy.asarray([[np.nan, 1.0]]))


@pytest.mark.parametrize("name", ["numbers, uneven", "ten numbers, uneven"])
def test_scores_of_32_bits_are_those_of_64(name):
    model, n, context = CASES[name]
    posterior = observed(model, n)
    single, double = (
        bough.batch.Scorer(posterior, device="cpu", precision=precision).best(rows_of(context, 2_000), k=1)
        for precision in ("single", "double")
    )
    same = single.nodes == double.nodes
    assert same.mean() > 0.999
    assert np.abs(single.scores - double.scores)[same].max() < 1e-3 * double.scores.std()


def test_variances_far_apart_take_64_bits_and_say_so():
    model = bough.GaussianModel(BALANCED, np.zeros(2), bough.by_depth([1.0, 1.0, 1.0, 1e-8]))
    posterior = observed(model, 5)
    scorer = bough.batch.Scorer(posterior, device="cpu")
    assert scorer.precision == "double"
    assert "64 bits" in scorer.note
    chosen = scorer.best(np.tile([1.0, -0.5], (4_000, 1)), k=1)
    nodes, _ = drawn(posterior, np.array([1.0, -0.5]), 4_000)
    assert p_of_actions(chosen.nodes, nodes) > FALSE_ALARM
    assert bough.batch.Scorer(posterior, device="cpu", precision="single").precision == "single"


def test_coordinates_of_different_sizes_need_no_more_digits():
    model = bough.GaussianModel(BALANCED, np.zeros(2), np.diag([1.0, 1e12]))
    scorer = bough.batch.Scorer(observed(model, 0), device="cpu")
    assert (scorer.precision, scorer.note) == ("single", "")
    assert np.isfinite(scorer.best([[1.0, 1e-6], [9e149, 0.0], [1e-200, 0.0]], k=2).scores).all()


def test_many_uneven_trees_are_compiled_a_few_times():
    rng = np.random.default_rng(0)
    before = stages.n_traces()
    for _ in range(25):
        n = int(rng.integers(20, 60))
        parents = [-1, *(int(rng.integers(0, node)) for node in range(1, n))]
        posterior = observed(bough.GaussianModel(bough.Tree.from_parents(parents)), int(rng.integers(1, 30)))
        chosen = bough.batch.Scorer(posterior, device="cpu").best(5, k=1)
        assert np.isfinite(chosen.scores).all()
    assert stages.n_traces() - before <= 15


@pytest.mark.parametrize(("name", "k"), [("numbers, uneven", 1), ("vectors, uneven", 3), ("ten numbers, uneven", 1)])
def test_the_kernels_for_a_gpu_find_the_same(name, k):
    model, n, _ = CASES[name]
    posterior = observed(model, n)
    rows = 600 if model.is_scalar else np.random.default_rng(0).normal(size=(600, model.dim))
    found = []
    for plan in ("apart", "interpreted"):
        scorer = bough.batch.Scorer(posterior, device="cpu")
        scorer._plans = plan, plan
        found.append(scorer.best(rows, k=k, seed=1))
    assert (found[0].nodes == found[1].nodes).mean() > 0.999
    np.testing.assert_allclose(found[0].scores, found[1].scores, rtol=1e-3, atol=1e-4)


def test_the_kernels_break_ties():
    model, n, context = CASES["vectors, some directions known"]
    posterior = observed(model, n)
    scorer = bough.batch.Scorer(posterior, device="cpu")
    scorer._plans = "interpreted", "interpreted"
    chosen = scorer.best(rows_of(context, DRAWS), k=1)
    assert p_of_actions(chosen.nodes, drawn(posterior, np.asarray(context), DRAWS, 1)[0]) > FALSE_ALARM


def test_the_kernels_can_be_compiled_for_a_gpu():
    """As far as a machine without one goes: Pallas takes them to Triton's language."""
    jax = pytest.importorskip("jax")
    model, n, _ = CASES["ten numbers, uneven"]
    scorer = bough.batch.Scorer(observed(model, n), device="cpu")
    scorer._plans = "kernel", "kernel"
    _, placed = scorer._layout(np.ones(model.tree.n_actions, dtype=np.int64), 1)
    x, key = np.ones((10, 64), dtype=np.float32), (np.uint32(1), np.uint32(2))
    nodes = stages.draw_nodes.trace(x, np.uint32(0), key, *placed.nodes, plan="kernel")
    values = tuple(jax.numpy.zeros((len(placed.nodes[1]), 64)) for _ in range(10))
    best = stages.start(1, 64, np.float32)
    leaves = stages.best_of_leaves.trace(
        x, np.uint32(0), key, best, values, *placed.leaves, tile=placed.tile, ties=True, plan="kernel"
    )
    for traced in (nodes, leaves):
        assert "triton" in traced.lower(lowering_platforms=("cuda",)).as_text()


# -- what is refused -------------------------------------------------------------------------------

NUMBERS, VECTORS = bough.GaussianModel(UNEVEN), bough.GaussianModel(UNEVEN, np.zeros(2))
BAD = {
    "a context that is not taken": (NUMBERS, ([[1.0]],), {}, "give how many decisions"),
    "a negative number": (NUMBERS, (-1,), {}, "contexts is -1"),
    "a number where contexts are": (VECTORS, (5,), {}, "context"),
    "nan": (VECTORS, ([[np.nan, 1.0]],), {}, "finite"),
    "a shape": (VECTORS, ([[1.0, 2.0, 3.0]],), {}, "shape"),
    "k": (NUMBERS, (5,), {"k": 12}, "k is 12; give at most 11"),
    "k of none": (NUMBERS, (5,), {"k": 0}, "k is 0"),
    "among": (NUMBERS, (5,), {"among": []}, "among is empty"),
    "chunk": (NUMBERS, (5,), {"chunk": 0}, "chunk is 0"),
    "seed": (NUMBERS, (5,), {"seed": -1}, "seed is -1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name):
    model, given, options, says = BAD[name]
    scorer = bough.batch.Scorer(bough.Posterior(model), device="cpu")
    with pytest.raises(ValueError, match=says):
        scorer.best(*given, **{"k": 1, **options})


def test_unknown_actions_devices_and_precisions_are_named(monkeypatch):
    posterior = bough.Posterior(NUMBERS)
    with pytest.raises(KeyError, match="tea"):
        bough.batch.Scorer(posterior, device="cpu").best(3, k=1, among=["tea"])
    with pytest.raises(ValueError, match="device is 'tpu'"):
        bough.batch.Scorer(posterior, device="tpu")
    with pytest.raises(ValueError, match="precision is 'half'"):
        bough.batch.Scorer(posterior, device="cpu", precision="half")
    with pytest.raises(ValueError, match="explore is -1"):
        bough.batch.Scorer(posterior, device="cpu", explore=-1)
    with pytest.raises(ValueError, match=r"give a bough\.Posterior"):
        bough.batch.Scorer(NUMBERS, device="cpu")


def test_no_gpu_and_no_jax_are_said_plainly(monkeypatch):
    from bough.batch import devices

    agent = bough.HierTS(NUMBERS, seed=0)
    jax = devices.jax_module()
    if not any(device.platform == "gpu" for device in jax.devices()):
        with pytest.raises(ValueError, match="JAX finds none here, only cpu"):
            agent.decide_many(3, device="gpu")

    def missing(name):
        raise ModuleNotFoundError("No module named 'jax'", name="jax")

    monkeypatch.setattr(devices, "import_module", missing)
    with pytest.raises(ModuleNotFoundError, match=r"pip install '\.\[gpu\]'"):
        bough.batch.Scorer(bough.Posterior(NUMBERS))


def test_an_agent_decides_through_it(monkeypatch):
    """On a machine without a GPU, JAX's CPU stands in for one."""
    from bough.policies import thompson

    monkeypatch.setattr(thompson, "scorer_of", lambda p, _, explore: bough.batch.Scorer(p, "cpu", explore=explore))
    agent = bough.HierTS(NUMBERS, seed=0)
    chosen = agent.decide_many(200, k=2, among=["f", "a/e", "g/h"], device="gpu")
    assert {len(set(one)) for one in chosen} == {2}
    assert {name for one in chosen for name in one} == {"f", "a/e", "g/h"}
    assert agent.decide_many(100, device="gpu") != agent.decide_many(100, device="gpu")


def test_importing_bough_loads_neither_numba_nor_jax():
    code = (
        "import sys, bough; bough.batch.Scorer; print([m for m in ('jax', 'numba', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
