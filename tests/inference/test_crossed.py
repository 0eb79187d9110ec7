"""Crossed factors against the dense oracle, whatever the way in which the rewards came."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import bough
from crossed_cases import CrossedCase, crossed_cases, make_crossed_case

TOLERANCE = 1e-8


def spreads(dense):
    """(V + q,) the prior deviation of every parameter: the unit of what the data hardly tell."""
    root = dense.prior_root[:, 0, :, 0]
    return np.sqrt((root**2).sum(axis=1))


def check(posterior, case: CrossedCase):
    """Nodes, effects, scores, draws and the evidence are those of the oracle."""
    dense = case.dense()
    n, mean, root, prior = case.model.tree.n_nodes, dense.mean, dense.joint_root, spreads(dense)
    variance = (root**2).sum(axis=1)
    size = np.abs(mean) + prior

    assert (np.abs(posterior.mean - mean[:n]) <= TOLERANCE * size[:n]).all()
    assert (np.abs(posterior.covariance - variance[:n]) <= TOLERANCE * prior[:n] ** 2).all()
    effect_mean, effect_variance = posterior._engine.effect_moments()
    assert (np.abs(effect_mean - mean[n:]) <= TOLERANCE * size[n:]).all()
    assert (np.abs(effect_variance - variance[n:]) <= TOLERANCE * prior[n:] ** 2).all()

    rows = dense.score_root()  # scores by themselves: what is exact however the data split it
    score, score_root = rows @ mean, rows @ root
    score_variance = (score_root**2).sum(axis=1)
    found, found_variance = posterior.action_moments()
    rounding = np.finfo(float).eps * (np.abs(rows) @ np.abs(mean))  # the oracle adds up what the engine does
    assert (np.abs(found - score) <= TOLERANCE * (np.abs(score) + np.sqrt(score_variance)) + 100 * rounding).all()
    left = np.finfo(float).eps * (np.abs(rows) @ np.abs(root)).max(axis=1)
    assert (
        np.abs(found_variance - score_variance)
        <= TOLERANCE * score_variance + 100 * left * np.sqrt(score_variance) + 100 * left**2
    ).all()

    assert posterior.log_evidence() == pytest.approx(dense.log_evidence(), rel=TOLERANCE, abs=TOLERANCE)

    centre = posterior.from_normals(np.zeros(len(mean)))
    assert (np.abs(centre - mean) <= TOLERANCE * size).all()
    drawn = np.array([posterior.from_normals(unit) - centre for unit in np.eye(len(mean))]).T
    off = np.abs(drawn @ drawn.T - root @ root.T)
    lost = 100 * np.finfo(float).eps * np.abs(centre)
    assert (
        off <= TOLERANCE * np.outer(prior, prior) + np.outer(prior, lost) + np.outer(lost, prior) + np.outer(lost, lost)
    ).all()


@settings(max_examples=100)
@given(crossed_cases())
def test_the_next_reward_in_a_decision_is_the_oracles(case):
    dense, model = case.dense(), case.model
    rows, given_levels = dense.score_root(), {}
    for name, factor, first in model.effects.decided:
        given_levels[name] = factor.levels[-1]
        rows[:, model.tree.n_nodes + first + len(factor.levels) - 1] += 1.0
    actions = list(model.tree.actions)
    found = case.posterior().predictive(actions, factors=given_levels or None)
    mean, root = rows @ dense.mean, rows @ dense.joint_root
    deviation = np.sqrt((root**2).sum(axis=1) + model.noise_variance)
    lost = 1e3 * np.finfo(float).eps * (np.abs(rows) @ np.abs(dense.mean))
    assert (np.abs(found.mean - mean) <= TOLERANCE * (np.abs(mean) + deviation) + lost).all()
    assert (np.abs((found.high - found.low) / (2 * 1.959963984540054 * deviation) - 1.0) <= 1e-6).all()


def test_the_next_reward_needs_the_levels_of_its_decision():
    tree = bough.Tree.from_nested(["kettle", "spade"])
    store = bough.Factor(levels=["north", "south"], variance=9.0, at_decision=True)
    posterior = bough.Posterior(bough.GaussianModel(tree, factors={"store": store}))
    posterior.update(["kettle"] * 50, [5.0] * 50, factors={"store": ["north"] * 50})
    assert posterior.predictive("kettle", factors={"store": "north"}).mean == pytest.approx(5.0, abs=0.05)
    with pytest.raises(ValueError, match="'store' are missing"):
        posterior.predictive("kettle")
    with pytest.raises(KeyError, match="'nort'"):
        posterior.predictive("kettle", factors={"store": "nort"})
    with pytest.raises(ValueError, match="factors"):
        bough.Posterior(bough.GaussianModel(tree)).predictive("kettle", factors={"store": "north"})


@settings(max_examples=300)
@given(crossed_cases(), st.booleans())
@example(make_crossed_case("random", 8, 30, np.random.default_rng(5)), True)
def test_the_posterior_is_the_oracles(case, one_by_one):
    check(case.posterior(one_by_one), case)


def test_ten_thousand_rewards_one_by_one_keep_their_digits_where_effects_are_a_million_times_the_noise():
    tree = bough.Tree.from_parents([-1, 0, 0, 0, 1, 2, 3, 4, 4])
    store = bough.Factor(levels=["north", "south"], variance=1.4e5, at_decision=True)
    prior = bough.by_node(np.array([4.7e4, 7e-6, 6.8e5, 6e-6, 0.0, 0.0, 0.0, 40.0, 2.3e5]))
    model = bough.GaussianModel(tree, -0.1, prior, 0.018, factors={"store": store})
    rng, n = np.random.default_rng(0), 10_000
    codes = rng.integers(2, size=n)
    rewards = np.array([-623.7, -250.4])[codes] + rng.normal(size=n) * 0.13
    rewards[17] += 60.0
    case = CrossedCase(model, [5] * n, rewards, {"store": [store.levels[code] for code in codes]})
    check(case.posterior(one_by_one=True), case)


@settings(max_examples=150)
@given(crossed_cases())
def test_all_is_the_same_where_it_is_made_again_by_rows_or_by_sums(case):
    posterior = case.posterior()
    engine = posterior._engine
    engine._take_rows(*engine._cell_sites())
    check(posterior, case)
    if engine._is_mild:
        engine._take_sums(*engine._cell_sites())
        posterior._answers.clear()
        check(posterior, case)


def test_rows_of_many_rewards_say_the_same_whatever_the_order_of_the_factors():
    tree, rng = bough.Tree.balanced(4, 2), np.random.default_rng(0)
    factors = {
        "brand": bough.Factor(rng.integers(5, size=16).tolist(), levels=list(range(5)), variance=0.3),
        "store": bough.Factor(levels=["n", "s", "w"], variance=0.1, at_decision=True),
        "tag": bough.Factor([[1], [], [1, 2], [2]] * 4, variance=0.0),
        "hour": bough.Factor(levels=[7, 8], variance=0.2, at_decision=True),
    }
    n = 60
    levels = {"store": rng.choice(["n", "s", "w"], n).tolist(), "hour": rng.choice([7, 8], n).tolist()}
    actions, rewards, found = rng.choice(tree.leaves, n), rng.normal(size=n), []
    for order in (list(factors), list(reversed(factors))):
        posterior = bough.Posterior(bough.GaussianModel(tree, factors={name: factors[name] for name in order}))
        posterior.absorb(bough.Statistics.from_rows(actions, rewards, weight=np.full(n, 1e6), factors=levels))
        assert not posterior._engine._is_mild
        effects = [posterior.effects(name, "polars").sort("level") for name in factors]
        moments = [one[column].to_numpy() for one in effects for column in ("mean", "deviation")]
        found.append(np.concatenate([*posterior.action_moments(), *moments, [posterior.log_evidence() / 1e6]]))
    np.testing.assert_allclose(*found, rtol=1e-7, atol=1e-9)


@settings(max_examples=150)
@given(crossed_cases(), st.integers(0, 10**6))
def test_any_order_any_split_and_sums_give_the_same_posterior(case, seed):
    rng = np.random.default_rng(seed)
    whole, other, summed = case.posterior(), bough.Posterior(case.model), bough.Posterior(case.model)
    order = rng.permutation(len(case.actions))
    for part in np.array_split(order, rng.integers(1, 6)):
        rows = part.tolist()
        factors = {name: [column[i] for i in rows] for name, column in case.levels.items()} or None
        other.update([case.actions[i] for i in rows], case.rewards[rows], factors=factors)
    summed.absorb(bough.Statistics.from_rows(case.actions, case.rewards, factors=case.levels))
    mean, variance = whole.action_moments()
    for one in (other, summed):
        m, v = one.action_moments()
        assert np.abs(m - mean) == pytest.approx(0.0, abs=1e-8 * float(np.abs(mean).max() + np.sqrt(variance).max()))
        assert v == pytest.approx(variance, rel=1e-7, abs=1e-12 * float(variance.max()))
        assert one.log_evidence() == pytest.approx(whole.log_evidence(), rel=1e-8, abs=1e-8)


@settings(max_examples=100)
@given(crossed_cases())
def test_a_conditional_is_that_of_the_joint_law(case):
    posterior, dense = case.posterior(), case.dense()
    mean, root, prior, tree = dense.mean, dense.joint_root, spreads(dense), case.model.tree
    for node in range(1, tree.n_nodes):
        above = int(tree.parent[node])
        parent_variance = root[above] @ root[above]
        if parent_variance <= 1e-9 * prior[above] ** 2:  # as good as known: nothing to regress on
            continue
        gain = (root[node] @ root[above]) / parent_variance
        found = posterior.conditional(node)
        scale = np.sqrt(root[node] @ root[node] / parent_variance) + 1.0
        assert found.gain == pytest.approx(gain, abs=1e-6 * scale)
        left = root[node] - gain * root[above]
        assert found.covariance == pytest.approx(left @ left, abs=1e-8 * prior[node] ** 2)
        at_mean = found.gain * mean[above] + found.offset
        assert at_mean == pytest.approx(mean[node], abs=1e-7 * (prior[node] + abs(mean[node])))


def shop(**options):
    """Four products with a brand, tags, and a store."""
    tree = bough.Tree.from_nested({"kitchen": ["kettle", "toaster"], "garden": ["spade", "rake"]})
    factors = {
        "brand": bough.Factor({"kettle": "Acme", "spade": "Acme", "toaster": "Bolt"}, variance=0.5),
        "tag": bough.Factor({"kettle": ["red", "new"], "rake": ["new"]}, variance=0.2),
        "store": bough.Factor(levels=["north", "south"], variance=0.3, at_decision=True),
    }
    return bough.GaussianModel(tree, 0.2, bough.by_depth([0.5, 0.4, 0.3]), 0.7, factors=factors, **options)


def rewarded(posterior, n=40, seed=0):
    rng = np.random.default_rng(seed)
    actions = rng.choice(np.asarray(posterior.model.tree.actions), n).tolist()
    stores = rng.choice(["north", "south"], n).tolist()
    rewards = rng.normal(size=n).round(3)
    posterior.update(actions, rewards, factors={"store": stores})
    return actions, rewards, stores


def same(one, other, tolerance=1e-9):
    for mine, theirs in zip(one.action_moments(), other.action_moments(), strict=True):
        assert mine == pytest.approx(theirs, rel=tolerance, abs=tolerance)
    assert one.log_evidence() == pytest.approx(other.log_evidence(), rel=tolerance, abs=tolerance)


def test_a_posterior_says_the_same_after_a_file_a_pickle_and_a_copy(tmp_path):
    import copy
    import pickle

    posterior = bough.Posterior(shop())
    rewarded(posterior)
    posterior.save(tmp_path / "posterior.bough")
    for other in (
        bough.Posterior.load(tmp_path / "posterior.bough"),
        pickle.loads(pickle.dumps(posterior)),
        copy.deepcopy(posterior),
        posterior.on(shop()),
    ):
        same(other, posterior)
        other.update("kettle", 3.0, factors={"store": "north"})  # and goes on by itself
        assert other.n_observations == posterior.n_observations + 1


def test_what_is_retracted_forgotten_and_faded_was_never_there():
    posterior, twin = bough.Posterior(shop()), bough.Posterior(shop())
    actions, rewards, stores = rewarded(posterior)
    for i in range(20, 40):
        posterior.retract(actions[i], float(rewards[i]), factors={"store": stores[i]})
    twin.update(actions[:20], rewards[:20], factors={"store": stores[:20]})
    same(posterior, twin, 1e-8)
    kept = [i for i in range(20) if actions[i] != "kettle"]
    posterior._forget(["kettle"])
    other = bough.Posterior(shop())
    other.update([actions[i] for i in kept], rewards[kept], factors={"store": [stores[i] for i in kept]})
    same(posterior, other, 1e-8)
    posterior.discount(0.5)
    half = bough.Posterior(shop())
    sums = other.statistics
    half.absorb(bough.Statistics(sums.actions, sums.count / 2, sums.sum_y / 2, sums.sum_yy / 2, factors=sums.factors))
    for mine, theirs in zip(posterior.action_moments(), half.action_moments(), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-9)
    posterior.update("rake", 1.0, factors={"store": "south"})
    half.update("rake", 1.0, factors={"store": "south"})
    for mine, theirs in zip(posterior.action_moments(), half.action_moments(), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-9)


def test_sums_are_by_action_and_level_and_add_up():
    posterior = bough.Posterior(shop())
    actions, rewards, stores = rewarded(posterior)
    sums = posterior.statistics
    keys = list(zip(sums.actions.tolist(), sums.factors["store"].tolist(), strict=True))
    assert sorted(keys) == sorted(set(zip(actions, stores, strict=True)))
    for i, key in enumerate(keys):
        mine = [y for a, s, y in zip(actions, stores, rewards, strict=True) if (a, s) == key]
        assert (sums.count[i], sums.sum_y[i], sums.sum_yy[i]) == pytest.approx(
            (len(mine), sum(mine), sum(y * y for y in mine))
        )
    halves = [
        bough.Statistics.from_rows(actions[part], rewards[part], factors={"store": stores[part]})
        for part in (slice(0, 15), slice(15, 40))
    ]
    both = halves[0] + halves[1]
    assert both.n_rows == 40
    other = bough.Posterior(shop())
    other.absorb(both)
    same(other, posterior)


def test_without_effects_of_any_variance_the_tree_is_as_it_was():
    tree = bough.Tree.balanced(3, 2)
    rng = np.random.default_rng(4)
    actions, rewards = rng.choice(tree.leaves, 30), rng.normal(size=30)
    plain, crossed = bough.Posterior(bough.GaussianModel(tree)), None
    plain.update(actions, rewards)
    for factor in (
        bough.Factor([None] * 9, variance=2.0, levels=["nobody"]),
        bough.Factor(["one", "two", "one"] * 3, variance=0.0),
        bough.Factor([None] * 9),
    ):
        crossed = bough.Posterior(bough.GaussianModel(tree, factors={"brand": factor}))
        crossed.update(actions, rewards)
        assert crossed.mean == pytest.approx(plain.mean, abs=1e-12)
        assert crossed.covariance == pytest.approx(plain.covariance, abs=1e-12)
        assert crossed.log_evidence() == pytest.approx(plain.log_evidence(), abs=1e-10)


def test_a_factor_that_is_the_category_again_shares_its_variance_and_stays_proper():
    tree = bough.Tree.from_nested({"a": ["a1", "a2"], "b": ["b1", "b2"]})
    brand = bough.Factor(["A", "A", "B", "B"], variance=1.0)
    crossed = bough.Posterior(
        bough.GaussianModel(tree, 0.0, bough.by_depth([0.0, 1.0, 0.5]), 0.2, factors={"brand": brand})
    )
    wide = bough.Posterior(bough.GaussianModel(tree, 0.0, bough.by_depth([0.0, 2.0, 0.5]), 0.2))
    for one in (crossed, wide):
        one.update(["a1", "b1"] * 500, [3.0, -1.0] * 500)
    for mine, theirs in zip(crossed.action_moments(), wide.action_moments(), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-9)
    effects = crossed.effects("brand", "polars")
    deviation = effects["deviation"].to_numpy()
    assert (deviation > 0.6).all()  # half of what is known of the sum, in either: nothing tells them apart
    assert (deviation < 1.0).all()
    assert effects["mean"].to_numpy() == pytest.approx(crossed.mean[1:3], rel=1e-9)


def test_rewards_in_a_store_say_nothing_of_which_action_is_better_there():
    model = shop()
    posterior = bough.Posterior(model)
    rewarded(posterior)
    agent = bough.HierTS.resume(posterior, seed=3)
    twin = bough.HierTS.resume(posterior, seed=3)
    assert [agent.decide() for _ in range(50)] == [twin.decide(factors={"store": "north"}) for _ in range(50)]


def test_planted_errors_are_each_noticed(monkeypatch):
    """The comparison with the oracle can fail: with each of these mistakes it does."""
    from bough.inference.kernels import crossed as kernels
    from bough.inference.kernels import crossed_draws as draws
    from bough.inference.kernels import crossed_evidence as sums

    rng = np.random.default_rng(11)
    cases = [make_crossed_case("random", 8, 25, rng) for _ in range(12)]

    def fails():
        for case in cases:
            try:
                check(case.posterior(one_by_one=True), case)
            except AssertionError:
                return True
        return False

    assert not fails()
    learn, laws = kernels.learn, draws.laws_given
    planted = {
        "the noise is left out": (kernels, "learn", lambda *a: learn(*a[:3], 1e-3 * a[3], *a[4:])),
        "the reward's effects are left out": (kernels, "learn", lambda *a: learn(a[0], a[1][:0], *a[2:])),
        "the tree learns first": (kernels, "learn", lambda *a: None),
        "effects do not move the tree": (draws, "laws_given", lambda b, *a: laws(0.0 * b, *a)),
        "scores lack effects": (draws, "add_effects", lambda *a: None),
        "the evidence lacks the cells": (sums, "deviance", lambda b, *a: 0.0),
        "the triangle is not updated": (kernels, "say", lambda *a: None),
    }
    for what, (module, name, mistake) in planted.items():
        with monkeypatch.context() as patch:
            patch.setattr(module, name, mistake)
            assert fails(), what
