"""Order, splitting and batching change nothing; a batch with one bad row changes nothing at all."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bough
from cases import cases, learned, make_case


def assert_same(one: bough.Posterior, other: bough.Posterior, tolerance: float = 1e-9) -> None:
    unit = np.sqrt(np.abs(other.covariance).reshape(len(other.mean), -1).max(axis=1))
    off = np.abs(one.mean - other.mean).reshape(len(unit), -1).max(axis=1)
    size = np.abs(other.mean).reshape(len(unit), -1).max(axis=1)
    assert (off <= tolerance * (size + unit)).all()
    off = np.abs(one.covariance - other.covariance).reshape(len(unit), -1).max(axis=1)
    assert (off <= tolerance * unit**2).all()
    assert one.log_evidence() == pytest.approx(other.log_evidence(), rel=tolerance, abs=tolerance)
    assert (one.count == other.count).all()


@settings(max_examples=100)
@given(cases(dims=(None, 1, 3)), st.integers(0, 2**32 - 1))
def test_order_and_splitting_change_nothing(case, seed):
    whole = case.posterior()
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(case.actions))
    pieces = bough.Posterior(case.model)
    for part in np.array_split(order, rng.integers(1, 6)):
        contexts = None if case.contexts is None else case.contexts[part]
        pieces.update([case.actions[i] for i in part], case.rewards[part], contexts)
    assert_same(pieces, whole)


@settings(max_examples=60)
@given(cases(dims=(None, 1, 3)))
def test_one_by_one_equals_a_batch(case):
    one_by_one = bough.Posterior(case.model)
    for i in range(len(case.actions))[:200]:
        one_by_one.update(case.actions[i], case.rewards[i], None if case.contexts is None else case.contexts[i])
    batch = bough.Posterior(case.model)
    first = slice(200)
    batch.update(case.actions[first], case.rewards[first], None if case.contexts is None else case.contexts[first])
    assert_same(one_by_one, batch)


@pytest.mark.parametrize("dim", [None, 3])
def test_a_hundred_thousand_single_updates_equal_one_batch(dim):
    rng = np.random.default_rng(0)
    tree = bough.Tree.balanced(branching=3, height=3)
    model = bough.GaussianModel(tree, 0.3 if dim is None else np.full(dim, 0.3), bough.by_depth([2.0, 1.0, 0.5, 0.1]))
    n = 100_000
    actions = rng.choice(tree.leaves, n)
    rewards = rng.normal(size=n) + actions / 10
    contexts = None if dim is None else rng.normal(size=(n, dim))
    batch = bough.Posterior(model)
    batch.update(actions, rewards, contexts)
    single = bough.Posterior(model)
    for i, (action, reward) in enumerate(zip(actions.tolist(), rewards.tolist(), strict=True)):
        single.update(action, reward, None if contexts is None else contexts[i])
    assert_same(single, batch)


def test_counts_are_of_observations_at_or_below_each_node():
    tree = bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])
    posterior = bough.Posterior(bough.GaussianModel(tree))
    posterior.update(["tea/green", "tea/green", "coffee"], [1.0, 2.0, 3.0])
    assert dict(zip(map(tree.name, range(5)), posterior.count.tolist(), strict=True)) == {
        "": 3,
        "tea": 2,
        "coffee": 1,
        "tea/green": 2,
        "tea/black": 0,
    }
    assert posterior.n_observations == 3


def test_state_exists_for_touched_nodes_only():
    tree = bough.Tree.balanced(branching=10, height=6)
    posterior = bough.Posterior(bough.GaussianModel(tree, np.zeros(4)))
    posterior.update([int(tree.leaves[0]), int(tree.leaves[-1])], [1.0, 2.0], np.ones((2, 4)))
    arrays = learned(posterior)
    assert posterior._engine.slots.count == 13  # two paths of seven nodes that share the root
    assert posterior._engine.slots.n_rows == 2
    assert sum(array.nbytes for array in arrays.values()) < 20_000


def test_an_empty_batch_is_nothing():
    posterior = bough.Posterior(bough.GaussianModel(bough.Tree.balanced(2, 2)))
    posterior.update([], [])
    assert posterior.n_observations == 0
    assert posterior.log_evidence() == 0.0


@pytest.mark.parametrize("dim", [None, 2])
@pytest.mark.parametrize("bad", ["nan reward", "infinite reward", "unknown action", "inner node", "context", "lengths"])
def test_a_batch_with_one_bad_row_changes_nothing(dim, bad):
    tree = bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])
    posterior = bough.Posterior(bough.GaussianModel(tree, 0.0 if dim is None else np.zeros(dim)))
    context = None if dim is None else [1.0, 1.0]
    posterior.update("coffee", 1.0, context)
    before = learned(posterior)
    actions, rewards = ["tea/green", "tea/black", "coffee"], [1.0, 2.0, 3.0]
    contexts = None if dim is None else np.ones((3, 2))
    if bad == "nan reward":
        rewards[2] = float("nan")
    elif bad == "infinite reward":
        rewards[1] = float("inf")
    elif bad == "unknown action":
        actions[2] = "cocoa"
    elif bad == "inner node":
        actions[2] = "tea"
    elif bad == "lengths":
        rewards = rewards[:2]
    elif dim is None:
        contexts = np.ones((3, 1))
    else:
        contexts[2, 1] = np.nan
    with pytest.raises((ValueError, KeyError)):
        posterior.update(actions, rewards, contexts)
    after = learned(posterior)
    assert before.keys() == after.keys()
    for name, array in before.items():
        np.testing.assert_array_equal(array, after[name])


def test_columns_of_frames_are_taken_as_batches():
    import pandas
    import polars

    tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]})
    expected = bough.Posterior(bough.GaussianModel(tree))
    expected.update(["green", "espresso"], [1.0, 2.0])
    for library in (pandas, polars):
        frame = library.DataFrame({"product": ["green", "espresso"], "reward": [1.0, 2.0]})
        posterior = bough.Posterior(bough.GaussianModel(tree))
        posterior.update(frame["product"], frame["reward"])
        np.testing.assert_array_equal(posterior.mean, expected.mean)


def test_a_large_tree_and_a_long_history_keep_the_hash_table_right():
    rng = np.random.default_rng(1)
    tree = bough.Tree.balanced(branching=7, height=5)
    model = bough.GaussianModel(tree)
    actions, rewards = rng.choice(tree.leaves, 20_000), rng.normal(size=20_000)
    whole, grown = bough.Posterior(model), bough.Posterior(model)
    whole.update(actions, rewards)
    for start in range(0, 20_000, 700):
        grown.update(actions[start : start + 700], rewards[start : start + 700])
    assert_same(grown, whole)
    touched = grown._engine.slots
    np.testing.assert_array_equal(touched.find(touched.node), np.arange(touched.count))
    untouched = np.setdiff1d(np.arange(tree.n_nodes), touched.node).astype(np.int32)
    assert (touched.find(untouched) == -1).all()
    assert (touched.parent[1:] < np.arange(1, touched.count)).all()


def test_make_case_covers_what_it_promises():
    rng = np.random.default_rng(2)
    variances = np.concatenate([make_case(None, "random", 9, 5, rng).model.classes.table for _ in range(200)])
    assert (variances == 0).mean() > 0.05
    assert variances[variances > 0].min() < 1e-5
    assert variances.max() > 1e5
