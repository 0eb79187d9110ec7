"""Agents travel between processes and threads, and odd but finite input neither crashes nor corrupts them."""

import contextlib
import copy
import pickle
import subprocess
import sys
import threading

import numpy as np
import pandas
import pyarrow
import pytest

import bough
from bough.inference.oracles.dense import DensePosterior

TREE = bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])


def agent_with_names(dim=None):
    agent = bough.HierTS(bough.GaussianModel(TREE, 0.0 if dim is None else np.zeros(dim)), seed=0)
    agent.update(["coffee", "tea/green"], [1.0, 2.0], None if dim is None else np.ones((2, dim)))
    assert list(agent.posterior.model.tree.actions)  # fills every cache that could be pickled by mistake
    return agent


@pytest.mark.parametrize("dim", [None, 2])
@pytest.mark.parametrize("travel", [copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a, protocol=5))])
def test_a_copied_agent_goes_on_as_the_original_would(dim, travel):
    agent, context = agent_with_names(dim), None if dim is None else np.ones(dim)
    twin = travel(agent)
    for one in (agent, twin):
        for i in range(200):
            one.update(TREE.actions[i % 3], float(i), context)
    np.testing.assert_array_equal(agent.posterior.mean, twin.posterior.mean)
    assert agent.decide(context) == twin.decide(context)


def test_a_pickled_agent_finds_its_names_in_another_process(tmp_path):
    (tmp_path / "agent.pickle").write_bytes(pickle.dumps(agent_with_names()))
    code = (
        f"import pickle; a = pickle.load(open({str(tmp_path / 'agent.pickle')!r}, 'rb'));"
        "a.update('coffee', 1.0); print(a.posterior.n_observations)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "3"


def test_threads_share_an_agent():
    tree = bough.Tree.balanced(10, 4)
    posterior = bough.Posterior(bough.GaussianModel(tree))

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(50):
            posterior.update(rng.choice(tree.leaves, 100), rng.normal(size=100))
            posterior.sample(rng)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert posterior.n_observations == 20_000
    whole = bough.Posterior(posterior.model)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        for _ in range(50):
            whole.update(rng.choice(tree.leaves, 100), rng.normal(size=100))
            whole.sample(rng)
    np.testing.assert_allclose(posterior.mean, whole.mean, rtol=1e-9, atol=1e-12)


def test_a_batch_with_tiny_contexts_equals_one_by_one():
    contexts = [[1.0, 0.0], [1.0, 1e-170], [1.0, 2e-170]]
    batch, single = (bough.Posterior(bough.GaussianModel(TREE, [0.0, 0.0])) for _ in range(2))
    batch.update(["coffee"] * 3, [1.0] * 3, contexts)
    for context in contexts:
        single.update("coffee", 1.0, context)
    np.testing.assert_allclose(batch.mean, single.mean, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("reward", [1e160, -1e300, 10**400])
def test_rewards_too_large_to_square_are_refused(reward):
    agent = agent_with_names()
    with pytest.raises(ValueError, match="reward"):
        agent.update("coffee", reward)
    assert agent.posterior.n_observations == 2


def test_contexts_too_large_to_square_are_refused():
    agent = agent_with_names(2)
    for use in (lambda: agent.update("coffee", 1.0, [1e200, 0.0]), lambda: agent.decide([1e200, 0.0])):
        with pytest.raises(ValueError, match=r"below 1e\+150"):
            use()


def test_large_values_within_range_still_agree_with_the_oracle():
    model = bough.GaussianModel(TREE, [0.0, 0.0], noise_variance=1e-3)
    posterior, dense = bough.Posterior(model), DensePosterior(model)
    for one in (posterior, dense):
        one.update(["coffee", "coffee", "tea/green"], [1e6, 5.0, 1e7], [[1e3, 0.0], [1.0, 1.0], [0.0, 1e4]])
    np.testing.assert_allclose(posterior.mean, dense.mean, rtol=1e-8)


def test_bayes_ucb_works_where_the_covariance_is_singular():
    rng = np.random.default_rng(0)
    for _ in range(20):
        direction = rng.normal(size=3)
        agent = bough.BayesUCB(bough.GaussianModel(TREE, np.zeros(3), np.outer(direction, direction)), seed=0)
        agent.update("coffee", 1.0, rng.normal(size=3))
        assert agent.decide(np.cross(direction, rng.normal(size=3))) in TREE.actions


def test_what_is_returned_cannot_be_written_to():
    model = bough.GaussianModel(TREE)
    posterior = bough.Posterior(model)
    arrays = [
        np.asarray(TREE.actions),
        TREE.actions[:],
        TREE.parent,
        TREE.leaves,
        model.classes.table,
        model.class_factors,
        model.marginal_covariance,
        posterior.mean,
        posterior.covariance,
    ]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]


def test_names_and_variances_come_from_pandas_by_position_or_by_index():
    names = pandas.Series(["root", "x", "y"], index=[2, 1, 0])
    tree = bough.Tree.from_parents([-1, 0, 0], names)
    assert tree.name(0) == "root"
    by_name = bough.by_node(pandas.Series({"y": 3.0, "x": 2.0, "root": 1.0}))
    assert bough.GaussianModel(tree, covariance=by_name).marginal_covariance.tolist() == [1.0, 3.0, 4.0]


def test_numpy_integers_make_the_same_balanced_tree():
    assert bough.Tree.balanced(np.int8(10), np.int8(3)).n_actions == 1000


def test_arrow_columns_are_batches_and_candidates():
    agent = agent_with_names()
    agent.update(pyarrow.array(["coffee", "coffee"]), pyarrow.array([1.0, 2.0]))
    assert agent.posterior.n_observations == 4
    assert agent.decide(among=pyarrow.array(["coffee"])) == "coffee"


BAD = {
    "depths as a mapping": lambda: bough.GaussianModel(TREE, covariance=bough.by_depth({0: 4.0, 1: 2.0, 2: 1.0})),
    "depths as text": lambda: bough.GaussianModel(TREE, covariance=bough.by_depth("412")),
    "huge mean": lambda: bough.GaussianModel(TREE, mean=10**400),
    "tiny noise": lambda: bough.GaussianModel(TREE, noise_variance=1e-320),
    "huge covariance": lambda: bough.GaussianModel(TREE, [0.0, 0.0], 1e308),
    "missing value": lambda: bough.Tree.from_frame(pandas.DataFrame({"a": pandas.array([1, None], "Int64")}), ["a"]),
    "missing name": lambda: bough.Tree.from_parents([-1, 0], ["a", pandas.NA]),
    "lists in a column": lambda: bough.Tree.from_frame(pandas.DataFrame({"a": [[1]], "b": [2]}), ["a", "b"]),
    "a tree for a model": lambda: bough.Posterior(TREE),
    "no paths": lambda: bough.Tree.from_paths(None),
    "columns": lambda: bough.Tree.from_frame(pandas.DataFrame({"a": [1]}), 5),
    "names": lambda: bough.Tree.from_parents([-1], 5),
    "separator": lambda: bough.Tree.from_nested(["a"], sep=None),
    "bytes": lambda: bough.Tree.from_nested({"a": b"xy"}),
    "one candidate": lambda: agent_with_names().decide(among=np.array("coffee")),
    "column of columns": lambda: bough.HierTS(bough.GaussianModel(bough.Tree.balanced(2, 1))).update([[1]], [1.0]),
    "table of numbers": lambda: bough.Tree.balanced(2, 1).action_nodes(np.array([[1]])),
    "complex reward": lambda: agent_with_names().update(["coffee"], np.array([1.0 + 2.0j])),
    "ragged rewards": lambda: agent_with_names().update(["coffee"], [[1.0], 2.0]),
    "sample seed": lambda: agent_with_names().posterior.sample("x"),
}


@pytest.mark.parametrize("what", BAD)
def test_odd_input_is_a_clear_error(what):
    with pytest.raises((ValueError, KeyError)) as caught:
        BAD[what]()
    assert len(str(caught.value)) > 20


def test_a_deep_tree_shows_without_recursion(capsys):
    bough.Tree.from_parents(range(-1, 2999)).show(max_depth=5000)
    assert capsys.readouterr().out.count("\n") == 3000


def test_many_rewards_of_one_action_take_little_memory():
    tree = bough.Tree.balanced(10, 6)
    posterior = bough.Posterior(bough.GaussianModel(tree))
    posterior.update(np.full(150_000, tree.leaves[0]), np.zeros(150_000))
    assert len(posterior._engine.slots._table) <= 1024


def test_a_file_whose_arrays_do_not_fit_each_other_is_refused(tmp_path):
    from bough import _storage

    path = tmp_path / "posterior.bough"
    agent_with_names().posterior.save(path)
    with _storage.read(path, "posterior", 2) as contents:
        header = contents.header
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files if name != "header"}
    changes = {
        "evidence": arrays["evidence"][:-1],
        "evidence_of": arrays["evidence_of"][:1].repeat(len(arrays["evidence_of"])),
        "covariances": -arrays["covariances"],
        "n_children": arrays["n_children"][::-1],
        "actions_ends": arrays["actions_ends"][:-1],
    }
    for name, changed in changes.items():
        _storage.write(path, header, {**arrays, name: changed})
        with pytest.raises(ValueError, match="not a complete posterior file"):
            bough.Posterior.load(path)


def test_saving_through_a_link_keeps_the_link(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    agent_with_names().posterior.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert bough.Posterior.load(tmp_path / "real").n_observations == 2


@pytest.mark.parametrize("dim", [None, 2])
@pytest.mark.parametrize("enough_for", range(0, 36, 3))
def test_where_memory_runs_out_nothing_changes_and_learning_goes_on(monkeypatch, dim, enough_for):
    from bough.inference import engine, scalar, slots, vector

    model = bough.GaussianModel(bough.Tree.balanced(40, 2), 0.0 if dim is None else np.zeros(dim))
    posterior, twin = bough.Posterior(model), bough.Posterior(model)
    left, really_grown = [enough_for], slots.grown

    def grown(array, size):
        left[0] -= 1
        if left[0] < 0:
            raise MemoryError("no more")
        return really_grown(array, size)

    for module in (engine, scalar, slots, vector):
        monkeypatch.setattr(module, "grown", grown)
    actions, contexts = np.arange(41, 1641, 7), None if dim is None else np.ones((229, 2))
    with contextlib.suppress(MemoryError):
        posterior.update(actions, np.ones(229), contexts)
    monkeypatch.undo()
    assert posterior.n_observations in (0, 229)
    if posterior.n_observations:
        twin.update(actions, np.ones(229), contexts)
    for one in (posterior, twin):
        for action in range(41, 1641, 100):
            one.update(action, 5.0, None if dim is None else [1.0, 0.5])
    np.testing.assert_allclose(posterior.mean, twin.mean, rtol=1e-9, atol=1e-12)
