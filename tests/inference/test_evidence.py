"""What a posterior keeps is what was observed: messages made again from it are the same, on any model and tree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bough
from cases import cases, learned
from naive import textbook
from test_updates import assert_same

TREE = bough.Tree.from_nested({"tea": ["green", "black", "white"], "coffee": {"hot": ["espresso"], "cold": ["brew"]}})
OTHER = bough.Tree.from_nested({"drinks": ["black", "brew", "green", "espresso", "white", "water"]})
NAMES = ["green", "black", "espresso", "green", "brew", "green"]
REWARDS = np.array([1.0, 0.5, -0.3, 2.0, 0.1, 1.7])
CONTEXTS = np.random.default_rng(0).normal(size=(6, 3))
CLICKS, TRIALS = np.array([1, 0, 3, 2, 0, 1]), np.array([1, 1, 5, 2, 4, 1])
KINDS = {
    "gaussian": (bough.GaussianModel, 0.3, dict(reward=REWARDS)),
    "vector": (bough.GaussianModel, [0.3, -0.1, 0.2], dict(reward=REWARDS, context=CONTEXTS)),
    "clicks": (bough.BernoulliModel, -1.0, dict(reward=CLICKS, trials=TRIALS)),
    "counts": (bough.PoissonModel, 0.2, dict(reward=CLICKS, exposure=0.5 * TRIALS)),
}


@settings(max_examples=80)
@given(cases())
def test_messages_made_again_are_those_kept_up_to_date(case):
    posterior = bough.Posterior(case.model)
    for start in range(0, len(case.actions), max(1, len(case.actions) // 4)):
        part = slice(start, start + max(1, len(case.actions) // 4))
        contexts = None if case.contexts is None else case.contexts[part]
        posterior.update(case.actions[part], case.rewards[part], contexts)
    assert_same(posterior.on(case.model), posterior)


@settings(max_examples=60)
@given(cases(most_nodes=7), st.floats(0.1, 10.0), st.floats(-2.0, 2.0))
def test_the_same_evidence_under_another_model_is_what_that_model_would_have_learned(case, factor, shift):
    model = case.model
    table = factor * model.classes.table[model.classes.of_node]
    other = bough.GaussianModel(model.tree, model.mean + shift, bough.by_node(table), factor * model.noise_variance)
    moved, fresh = case.posterior().on(other), bough.Posterior(other)
    fresh.update(case.actions, case.rewards, case.contexts)
    assert_same(moved, fresh, tolerance=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_evidence_goes_by_names_to_another_tree(kind):
    make, mean, rows = KINDS[kind]
    posterior = bough.Posterior(make(TREE, mean, 0.5))
    posterior.update(NAMES, **rows)
    before = learned(posterior)
    target = make(OTHER, mean, 0.7)
    moved, fresh = posterior.on(target), bough.Posterior(target)
    fresh.update(NAMES, **rows)
    np.testing.assert_allclose(moved.mean, fresh.mean, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(moved.covariance, fresh.covariance, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(moved.count, fresh.count)
    assert moved.log_evidence() == pytest.approx(fresh.log_evidence(), rel=1e-7)
    for name, array in learned(posterior).items():
        np.testing.assert_array_equal(array, before[name])  # the first one stays as it was


def test_renamed_actions_are_found_and_missing_ones_are_named():
    posterior = bough.Posterior(bough.GaussianModel(TREE))
    posterior.update(NAMES, REWARDS)
    tree = bough.Tree.from_nested({"tea": ["sencha", "black"], "coffee": ["espresso", "brew"]})
    moved = posterior.on(bough.GaussianModel(tree), renamed={"green": "sencha"})
    assert moved.count[tree.index("sencha")] == 3
    with pytest.raises(KeyError, match="unknown action 'green'"):
        posterior.on(bough.GaussianModel(tree))
    with pytest.raises(ValueError, match="the same name in the new tree"):
        posterior.on(bough.GaussianModel(tree), renamed={"green": "black"})
    for wrong in (bough.GaussianModel(TREE, [0.0]), bough.BernoulliModel(TREE)):
        with pytest.raises(ValueError, match="the evidence is that of GaussianModel"):
            posterior.on(wrong)
    with pytest.raises(ValueError, match="model is a Tree"):
        posterior.on(TREE)


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_learned_can_be_taken_out_and_learned_again(kind):
    make, mean, rows = KINDS[kind]
    posterior, again = (bough.Posterior(make(TREE, mean, 0.5)) for _ in range(2))
    posterior.update(NAMES, **rows)
    again.absorb(posterior.statistics)
    np.testing.assert_allclose(again.mean, posterior.mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(again.covariance, posterior.covariance, rtol=1e-6, atol=1e-9)
    assert again.log_evidence() == pytest.approx(posterior.log_evidence(), rel=1e-8)
    sums = bough.Statistics.from_rows(
        NAMES, rows["reward"], rows.get("context"), trials=rows.get("trials"), exposure=rows.get("exposure")
    )
    order = [sums.actions.tolist().index(name) for name in posterior.statistics.actions.tolist()]
    for name in ("sum_y", "sum_yy", "sum_xy", "sum_xx", "exposure"):
        wanted, found = getattr(sums, name), getattr(posterior.statistics, name)
        assert (wanted is None) == (found is None)
        if wanted is not None:
            np.testing.assert_allclose(found, wanted[order], rtol=1e-9, atol=1e-12)


def test_sums_that_would_not_say_it_all_are_refused():
    posterior = bough.Posterior(bough.BernoulliModel(TREE, [0.0, 0.0, 0.0]))
    posterior.update(NAMES, CLICKS, CONTEXTS, trials=TRIALS)
    with pytest.raises(ValueError, match="which rewards came in which contexts"):
        _ = posterior.statistics
    twin = posterior.on(posterior.model)
    np.testing.assert_allclose(twin.mean, posterior.mean, rtol=1e-9, atol=1e-10)
    assert twin.log_evidence() == posterior.log_evidence()


LOST_DIGITS = {
    "as reported": ([-1, 0], [0.0], 100.0, 1e-9),
    "two features": ([-1, 0, 0, 1, 1, 2, 2], [0.0, 0.0], 100.0, 1e-9),
    "narrow actions": ([-1, 0, 0, 1, 1, 2, 2], [0.0] * 3, bough.by_depth([1e6, 1e6, 1e-6]), 1e-9),
    "a feature without variance": ([-1, 0, 0, 1, 1, 2, 2], [0.0] * 3, np.diag([1.0, 0.0, 2.0]), 1e-9),
    "usual": ([-1, 0, 0, 1, 1, 2, 2], [0.0] * 3, 1.0, 1.0),
}


def surprising_rows(which, n):
    parents, mean, covariance, noise = LOST_DIGITS[which]
    rng = np.random.default_rng(0)
    model = bough.GaussianModel(bough.Tree.from_parents(parents), mean, covariance, noise)
    actions = rng.choice(model.tree.leaves, n).tolist()
    return model, actions, 3.0 * rng.normal(size=n), 10.0 * rng.normal(size=(n, len(mean)))


def one_by_one(model, actions, rewards, contexts):
    posterior = bough.Posterior(model)
    for action, reward, context in zip(actions, rewards, contexts, strict=True):
        posterior.update(action, reward, context)
    return posterior


@pytest.mark.parametrize("which", [name for name in LOST_DIGITS if name != "a feature without variance"])
def test_single_rewards_far_from_what_is_known_lose_no_digits(which):
    model, actions, rewards, contexts = surprising_rows(which, 24)
    single = one_by_one(model, actions, rewards, contexts)
    mean, joint, log_evidence = textbook(
        model, actions, rewards, contexts
    )  # in 80 digits; QR of all rows is wrong here
    deviation = np.sqrt(np.diag(joint)).reshape(single.mean.shape)
    assert (np.abs(single.mean - mean.reshape(single.mean.shape)) <= 1e-8 * (np.abs(single.mean) + deviation)).all()
    assert single.log_evidence() == pytest.approx(log_evidence, rel=1e-9)


@pytest.mark.parametrize("which", LOST_DIGITS)
def test_many_such_rewards_one_by_one_equal_a_batch(which):
    model, actions, rewards, contexts = surprising_rows(which, 1_000)
    single, batch = one_by_one(model, actions, rewards, contexts), bough.Posterior(model)
    batch.update(actions, rewards, contexts)
    unit = np.sqrt(np.abs(batch.covariance).max(axis=(1, 2)))[:, None]
    assert (np.abs(single.mean - batch.mean) <= 1e-9 * (np.abs(batch.mean) + unit)).all()
    np.testing.assert_allclose(single.covariance, batch.covariance, rtol=1e-7, atol=1e-14)
    assert single.log_evidence() == pytest.approx(batch.log_evidence(), rel=1e-10)


def test_a_hundred_thousand_surprising_rewards_one_by_one_equal_a_batch():
    rng = np.random.default_rng(1)
    tree = bough.Tree.balanced(3, 2)
    model = bough.GaussianModel(tree, [0.0, 0.0], 100.0, 1e-9)
    n = 100_000
    actions = rng.choice(tree.leaves, n)
    rewards, contexts = 3.0 * rng.normal(size=n), 10.0 * rng.normal(size=(n, 2))
    single, batch = bough.Posterior(model), bough.Posterior(model)
    for i, action in enumerate(actions.tolist()):
        single.update(action, rewards[i], contexts[i])
    batch.update(actions, rewards, contexts)
    unit = np.sqrt(np.abs(batch.covariance).max(axis=(1, 2)))[:, None]
    assert (np.abs(single.mean - batch.mean) <= 1e-8 * (np.abs(batch.mean) + unit)).all()


def test_clicks_in_huge_contexts_are_computed_with_or_refused_and_never_leave_nan():
    tree = bough.Tree.from_nested(["left", "right"])
    refused = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        posterior = bough.Posterior(bough.BernoulliModel(tree, [-12.0, -12.0], 1e6))
        for trials in (1, 10**9, 10**6):
            action, clicks = str(rng.choice(["left", "right"])), float(rng.integers(0, trials + 1))
            before = (posterior.n_observations, posterior.log_evidence(), posterior.mean, posterior.covariance)
            try:
                posterior.update(action, clicks, 1e5 * rng.normal(size=2), trials=trials)
            except ValueError as error:
                refused.append(str(error))
                assert (posterior.n_observations, posterior.log_evidence()) == before[:2]
                np.testing.assert_array_equal(posterior.mean, before[2])
                np.testing.assert_array_equal(posterior.covariance, before[3])
            assert np.isfinite(posterior.mean).all()
            assert np.isfinite(posterior.covariance).all()
            assert np.isfinite(posterior.log_evidence())
    assert 30 < len(refused) < 150
    assert all("cannot be computed with" in text for text in refused)


def test_a_refused_batch_of_clicks_in_contexts_goes_back_whole():
    posterior = bough.Posterior(bough.BernoulliModel(TREE, [-12.0, -12.0, 0.0], 1e6))
    posterior.update(["green", "brew"], [1, 0], np.ones((2, 3)))
    mean, evidence = posterior.mean.copy(), posterior.log_evidence()
    rng = np.random.default_rng(0)
    contexts = np.concatenate([rng.normal(size=(3, 3)), 1e5 * rng.normal(size=(3, 3))])
    with pytest.raises(ValueError, match="cannot be computed with"):
        posterior.update(
            ["green", "white", "black", *NAMES[:3]], [1, 0, 1, 5e8, 1, 9e8], contexts, trials=[1, 1, 1] + [10**9] * 3
        )
    np.testing.assert_array_equal(posterior.mean, mean)
    assert (posterior.log_evidence(), posterior.n_observations) == (evidence, 2)
    posterior.update("white", 1, [1.0, 0.0, 1.0])
    twin = bough.Posterior(posterior.model)
    twin.update(["green", "brew"], [1, 0], np.ones((2, 3)))
    twin.update("white", 1, [1.0, 0.0, 1.0])
    np.testing.assert_allclose(posterior.mean, twin.mean, rtol=1e-12, atol=1e-12)
