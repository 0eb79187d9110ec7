"""Rewards that fade, that come late, and that are taken back."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bough
from shop import Shop

NAMES = {"": None, "tea": "", "green": "tea", "black": "tea", "coffee": "", "espresso": "coffee", "milk": ""}
DIMS = [None, 3]


def shop_and_model(dim):
    mean = 0.2 if dim is None else np.linspace(0.0, 0.4, dim)
    shop = Shop(NAMES, lambda name, depth: [1.0, 0.5, 2.0][depth], mean, 0.3)
    return shop, bough.GaussianModel(shop.tree(), mean, bough.by_depth([1.0, 0.5, 2.0]), 0.3)


def assert_dense(shop, posterior, tolerance=1e-9):
    dense = shop.dense()
    np.testing.assert_allclose(posterior.mean, dense.mean, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(posterior.covariance, dense.covariance, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dim", DIMS)
@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 12), singly=st.booleans())
def test_faded_rewards_are_those_with_more_noise_in_whatever_order_they_come(dim, seed, n, singly):
    rng = np.random.default_rng(seed)
    shop, model = shop_and_model(dim)
    posterior = bough.Posterior(model, half_life=2.0)
    names = [shop.actions[i] for i in rng.integers(4, size=n)]
    rewards, times = rng.normal(size=n), rng.uniform(0.0, 10.0, n)
    contexts = None if dim is None else rng.normal(size=(n, dim))
    now = float(times.max() + rng.choice([0.0, 1.5]))
    for i in range(n):
        shop.update(names[i], rewards[i], None if dim is None else contexts[i], 0.5 ** ((now - times[i]) / 2.0))
    if singly:
        for i in range(n):
            context = None if dim is None else contexts[i]
            posterior.update(names[i], float(rewards[i]), context, at=float(times[i]))
            if rng.random() < 0.3:
                posterior.mean  # noqa: B018, what is read is taken in
    else:
        posterior.update(names, rewards, contexts, at=times)
    posterior.now = now
    assert_dense(shop, posterior)


@pytest.mark.parametrize("kind", ["clicks", "counts"])
def test_faded_counts_are_the_posterior_of_the_faded_totals(kind):
    shop, _ = shop_and_model(None)
    model = (bough.BernoulliModel if kind == "clicks" else bough.PoissonModel)(shop.tree(), -0.5)
    word = {"clicks": "trials", "counts": "exposure"}[kind]
    posterior = bough.Posterior(model, half_life=1.0)
    totals, size = np.array([3.0, 0.0, 6.0, 2.0]), np.array([10.0, 5.0, 9.0, 20.0])
    posterior.update(shop.actions, totals, **{word: size}, at=0.0)
    posterior.update("milk", 1.0, at=2.0)  # a single one, later
    posterior.update("green", 1.0, at=1.0)  # a late one
    posterior.now = 3.0
    posterior.settle()
    sums = {name: np.array([total, n]) / 8.0 for name, total, n in zip(shop.actions, totals, size, strict=True)}
    sums["milk"] += 0.5
    sums["green"] += 0.25
    fresh = bough.Posterior(model)
    table = np.array([sums[name] for name in shop.actions])
    observations = table[:, 1] if kind == "clicks" else np.full(4, 1.0)
    fresh.absorb(bough.Statistics(shop.actions, observations, table[:, 0], table[:, 0] ** 2, exposure=table[:, 1]))
    np.testing.assert_allclose(posterior.mean, fresh.mean, atol=1e-6)
    np.testing.assert_allclose(posterior.covariance, fresh.covariance, atol=1e-6)


def test_clicks_in_contexts_fade_as_their_factors_do():
    shop, _ = shop_and_model(None)
    model = bough.BernoulliModel(shop.tree(), [0.0, 0.0])
    posterior = bough.Posterior(model)
    rng = np.random.default_rng(0)
    posterior.update(
        [shop.actions[i] for i in rng.integers(4, size=30)], rng.integers(0, 2, 30), rng.normal(size=(30, 2))
    )
    wide = posterior.covariance[0, 0, 0]
    posterior.discount(1e-9)
    np.testing.assert_allclose(posterior.mean, 0.0, atol=1e-6)
    assert posterior.covariance[0, 0, 0] > wide
    assert posterior.n_observations == 0


def test_what_has_faded_away_is_nothing():
    shop, model = shop_and_model(None)
    posterior = bough.Posterior(model, half_life=1.0)
    posterior.update("green", 5.0, at=0.0)
    posterior.now = 1e6
    np.testing.assert_allclose(posterior.mean, 0.2)
    assert posterior.statistics.count.size == 0
    posterior.update("green", 5.0)
    shop.update("green", 5.0)
    assert_dense(shop, posterior)


@pytest.mark.parametrize("dim", DIMS)
def test_rewards_older_than_numbers_can_say_are_nothing(dim):
    shop, model = shop_and_model(dim)
    agent = bough.HierTS(model, seed=0, half_life=1.0)
    contexts = None if dim is None else np.ones((3, dim))
    agent.update(["green", "black", "milk"], [1.0, 2.0, 3.0], contexts, at=[0.0, 1200.0, 1200.0])
    agent.update("green", 7.0, None if dim is None else np.ones(dim), at=0.0)
    agent.retract("green", 1.0, None if dim is None else np.ones(dim), at=0.0)
    for name, reward in (("black", 2.0), ("milk", 3.0)):
        shop.update(name, reward, None if dim is None else np.ones(dim))
    assert_dense(shop, agent.posterior)


def test_many_ticks_fade_as_one_does():
    shop, model = shop_and_model(None)
    agent = bough.HierTS(model, seed=0, half_life=1_000.0)
    agent.update(["green", "black"], [1.0, 2.0], at=0.0)
    for t in range(1, 20_001):
        agent.now = float(t)
        if t % 100 == 0:
            agent.decide()
        if t % 5_000 == 0:
            agent.update("green", 0.5)
    for age in (0.0, 5_000.0, 10_000.0, 15_000.0):
        shop.update("green", 0.5, None, 0.5 ** (age / 1_000.0))
    for name, reward in (("green", 1.0), ("black", 2.0)):
        shop.update(name, reward, None, 0.5**20)
    assert_dense(shop, agent.posterior)


def test_sums_that_are_absorbed_count_from_now():
    shop, model = shop_and_model(None)
    posterior = bough.Posterior(model, half_life=1.0)
    posterior.now = 0.0
    posterior.update("green", 5.0)
    posterior.now = 1.0
    posterior.absorb(bough.Statistics.from_rows(["green", "green", "milk"], [1.0, 2.0, 0.5]))
    for name, reward, weight in (("green", 5.0, 0.5), ("green", 1.0, 1.0), ("green", 2.0, 1.0), ("milk", 0.5, 1.0)):
        shop.update(name, reward, None, weight)
    assert_dense(shop, posterior)
    assert sorted(posterior.statistics.count.tolist()) == [1.0, 2.5]


def test_a_policy_that_forgets_refits_to_what_is_left():
    rng = np.random.default_rng(1)
    agent = bough.HierTS(bough.GaussianModel(bough.Tree.balanced(3, 2)), seed=0, refit=True, half_life=200.0)
    for t in range(100):
        agent.now = float(t)
        action = agent.decide()
        agent.update(action, float(rng.normal(scale=0.1)))
    assert agent.posterior.model.noise_variance < 0.1
    clicks = bough.HierTS(bough.BernoulliModel(bough.Tree.balanced(3, 2)), seed=0, refit=True, half_life=200.0)
    for t in range(100):
        clicks.now = float(t)
        clicks.update(clicks.decide(), float(rng.random() < 0.02))
    assert clicks.posterior.model.mean < -0.5


# -- taking back -------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", DIMS)
@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 10), n_contexts=st.integers(1, 20))
def test_a_reward_that_is_taken_back_was_never_there(dim, seed, n, n_contexts):
    rng = np.random.default_rng(seed)
    shop, model = shop_and_model(dim)
    posterior = bough.Posterior(model)
    contexts = None if dim is None else rng.normal(size=(n_contexts, dim))  # where there are few, some come twice
    rows = []
    for _ in range(n):
        context = None if contexts is None else contexts[rng.integers(n_contexts)]
        rows.append((shop.actions[rng.integers(4)], float(rng.normal()), context))
        posterior.update(*rows[-1])
    gone = set(rng.choice(n, rng.integers(0, n + 1), replace=False).tolist())
    for i in gone:
        posterior.retract(*rows[i])
    for i in set(range(n)) - gone:
        shop.update(*rows[i])
    assert posterior.n_observations == n - len(gone)
    assert_dense(shop, posterior, 1e-8)


def test_a_refund_of_a_faded_reward_takes_back_what_is_left_of_it():
    shop, model = shop_and_model(None)
    agent = bough.HierTS(model, seed=0, half_life=2.0)
    agent.update("green", 3.0, at=0.0)
    agent.update("green", 1.0, at=1.0)
    agent.now = 4.0
    agent.retract("green", 3.0, at=0.0)
    shop.update("green", 1.0, None, 0.5**1.5)
    assert_dense(shop, agent.posterior)
    with pytest.raises(ValueError, match="after now"):
        agent.retract("green", 1.0, at=9.0)
    assert agent.now == 4.0


@pytest.mark.parametrize("unit", [1e-9, 1e6, 1e13])
def test_units_of_features_do_not_decide_what_can_be_taken_back(unit):
    units = np.array([1.0, unit, 1.0])
    model = bough.GaussianModel(bough.Tree.from_nested(["left"]), np.zeros(3), np.diag(units**-2.0))
    rng = np.random.default_rng(0)
    rewards, contexts = rng.normal(size=6), rng.normal(size=(6, 3)) * units
    with_it, without = bough.Posterior(model), bough.Posterior(model)
    with_it.update(["left"] * 6, rewards, contexts)
    with_it.retract("left", rewards[-1], contexts[-1])
    without.update(["left"] * 5, rewards[:-1], contexts[:-1])
    np.testing.assert_allclose(with_it.mean * units, without.mean * units, rtol=1e-9, atol=1e-9)
    assert with_it.log_evidence() == pytest.approx(without.log_evidence(), rel=1e-9)


def test_clicks_are_taken_back_by_their_totals():
    shop, _ = shop_and_model(None)
    model = bough.BernoulliModel(shop.tree())
    posterior, fresh = bough.Posterior(model), bough.Posterior(model)
    posterior.update(["green", "milk"], [3, 5], trials=[10, 9])
    posterior.update("green", 1)
    posterior.retract("green", 1)
    posterior.retract("milk", 2, trials=3)
    posterior.settle()
    fresh.update(["green", "milk"], [3, 3], trials=[10, 6])
    np.testing.assert_allclose(posterior.mean, fresh.mean, atol=1e-6)
    posterior.retract("green", 3, trials=10)
    assert posterior.statistics.actions.tolist() == ["milk"]


@pytest.mark.parametrize("family", [bough.BernoulliModel, bough.PoissonModel])
def test_many_may_be_taken_back_as_one(family, tmp_path):
    shop, _ = shop_and_model(None)
    posterior = bough.Posterior(family(shop.tree()))
    for reward in (1, 1, 1, 0, 0, 0, 0, 0, 0, 0):
        posterior.update("green", reward)
    word = "trials" if family is bough.BernoulliModel else "exposure"
    posterior.retract("green", 2, **{word: 2})
    assert posterior.statistics.sum_y.tolist() == [1.0]
    assert posterior.statistics.exposure_or_count.tolist() == [8.0]
    posterior.save(tmp_path / "posterior.bough")
    assert bough.Posterior.load(tmp_path / "posterior.bough").n_observations == posterior.n_observations
    posterior.retract("green", 1, **{word: 8})
    assert posterior.n_observations == 0


def test_what_cannot_have_been_observed_cannot_be_taken_back():
    _, model = shop_and_model(None)
    posterior = bough.Posterior(model)
    posterior.update(["green", "green"], [1.0, 2.0])
    before = posterior.mean.copy()
    for name, reward, message in (
        ("milk", 1.0, "'milk' cannot have that reward taken back: there are 0 observations"),
        ("green", 9.0, "a reward of 9 cannot have been"),
    ):
        with pytest.raises(ValueError, match=message):
            posterior.retract(name, reward)
    with pytest.raises(ValueError, match="the actions cannot have that reward taken back: there are"):
        posterior.retract(["green", "green", "green"], [1.0, 2.0, 1.0])
    np.testing.assert_array_equal(posterior.mean, before)
    posterior.retract("green", 2.0)
    with pytest.raises(ValueError, match="cannot have been"):
        posterior.retract("green", 1.5)
    contextual = bough.Posterior(bough.GaussianModel(model.tree, [0.0, 0.0]))
    contextual.update("green", 1.0, [1.0, 0.0])
    for reward, context in ((1.0, [0.0, 1.0]), (2.0, [1.0, 0.0]), (2.0, [2.0, 0.0])):
        with pytest.raises(ValueError, match="cannot have been"):
            contextual.retract("green", reward, context)
    clicks = bough.Posterior(bough.BernoulliModel(model.tree))
    clicks.update("green", 1)
    with pytest.raises(ValueError, match="cannot have been"):
        clicks.retract("green", 0)
    contextual_clicks = bough.Posterior(bough.BernoulliModel(model.tree, [0.0]))
    contextual_clicks.update("green", 1, [1.0])
    with pytest.raises(ValueError, match="cannot be taken back one by one"):
        contextual_clicks.retract("green", 1, [1.0])


def test_drift_has_neither_discounts_nor_refunds_nor_half_lives():
    tree = bough.Tree.from_nested(["left", "right"])
    agent = bough.HierTS(bough.GaussianModel(tree, drift=5.0), seed=0)
    agent.update("left", 1.0, at=3.0)
    with pytest.raises(ValueError, match="with drift old rewards count less by themselves"):
        agent.posterior.discount(0.5)
    with pytest.raises(ValueError, match="with drift rewards cannot be taken back"):
        agent.retract("left", 1.0)
    with pytest.raises(ValueError, match="choose one"):
        bough.HierTS(bough.GaussianModel(tree, drift=5.0), half_life=3.0)
    with pytest.raises(ValueError, match="'left' is earlier than the last one"):
        agent.update(["right", "left"], [1.0, 1.0], at=[4.0, 2.0])
    assert agent.now == 3.0
    assert agent.posterior.n_observations == 1


def test_what_an_engine_refuses_leaves_the_clock_as_it_was():
    shop, _ = shop_and_model(None)
    agent = bough.HierTS(bough.BernoulliModel(shop.tree(), [-12.0, -12.0], 1e6), seed=0, half_life=2.0)
    agent.update("green", 1, [1.0, 1.0], at=1.0)
    before = agent.posterior.mean.copy()
    contexts = 1e5 * np.random.default_rng(0).normal(size=(3, 2))
    with pytest.raises(ValueError, match="cannot be computed with"):
        agent.update(["green", "black", "milk"], [5e8, 1, 9e8], contexts, trials=10**9, at=5.0)
    assert agent.now == 1.0
    np.testing.assert_array_equal(agent.posterior.mean, before)


# -- the clock ---------------------------------------------------------------------------------


def test_the_clock_starts_at_the_first_time_and_never_goes_back():
    _, model = shop_and_model(None)
    agent = bough.HierTS(model, seed=0, half_life=10.0)
    agent.update("green", 1.0)
    assert agent.now is None
    agent.update("green", 1.0, at=5.0)
    assert agent.now == 5.0
    agent.update("green", 1.0, at=2.0)
    assert agent.now == 5.0
    agent.now = 5.0
    agent.now = 6.5
    for wrong in (6.0, float("nan"), float("inf"), "noon", None, [1.0, 2.0], datetime(2026, 1, 1)):
        with pytest.raises(ValueError, match=r"time|now|not finite"):
            agent.now = wrong
    for wrong in ("noon", float("nan"), [1.0, 2.0], datetime(2026, 1, 1)):
        with pytest.raises(ValueError, match=r"time|at has shape|times are numbers"):
            agent.update("green", 1.0, at=wrong)
    assert agent.now == 6.5
    assert agent.posterior.n_observations == 3


@pytest.mark.parametrize("zone", [None, UTC])
def test_times_may_be_dates_and_half_lives_spans_of_time(zone):
    shop, model = shop_and_model(None)
    agent = bough.HierTS(model, seed=0, half_life=timedelta(days=30))
    monday = datetime(2026, 11, 16, 9, tzinfo=zone)
    agent.now = monday
    agent.update("green", 1.0, at=monday - timedelta(days=15))
    agent.now = monday + timedelta(days=15)
    assert agent.now == monday + timedelta(days=15)
    shop.update("green", 1.0, None, 0.5)
    assert_dense(shop, agent.posterior)
    other = datetime(2026, 12, 1, tzinfo=None if zone else UTC)
    with pytest.raises(ValueError, match="a zone"):
        agent.now = other
    with pytest.raises(ValueError, match="times are datetimes"):
        agent.update("green", 1.0, at=3.0)


@pytest.mark.parametrize("options", [{"half_life": 30.0}, {"half_life": timedelta(days=30)}, {"drift": 5.0}])
def test_the_clock_has_the_units_of_the_half_life(options):
    tree = bough.Tree.from_nested(["left", "right"])
    drift = {"drift": options.pop("drift")} if "drift" in options else {}
    agent = bough.HierTS(bough.GaussianModel(tree, **drift), seed=0, **options)
    by_date = isinstance(options.get("half_life"), timedelta)
    wrong, right = (3.0, datetime(2026, 1, 1)) if by_date else (datetime(2026, 1, 1), 3.0)
    with pytest.raises(ValueError, match="so times are"):
        agent.now = wrong
    with pytest.raises(ValueError, match="so times are"):
        agent.update("left", 1.0, at=wrong)
    assert agent.now is None
    agent.now = right
    assert agent.now == right


def test_missing_times_are_no_times():
    import pandas

    _, model = shop_and_model(None)
    agent = bough.HierTS(model, seed=0, half_life=timedelta(days=1))
    for wrong in (pandas.NaT, np.datetime64("NaT")):
        with pytest.raises(ValueError, match="missing"):
            agent.now = wrong
        with pytest.raises(ValueError, match="missing"):
            agent.update("green", 1.0, at=wrong)
    with pytest.raises(ValueError, match="missing"):
        agent.update(["green"], [1.0], at=[pandas.NaT])
    assert agent.now is None


@pytest.mark.parametrize("span", [np.timedelta64(30, "D"), timedelta(days=30)])
def test_spans_of_time_of_any_kind_come_back_from_files(span, tmp_path):
    _, model = shop_and_model(None)
    agent = bough.HierTS(model, seed=0, half_life=span)
    agent.save(tmp_path / "agent.bough")
    again = bough.HierTS.load(tmp_path / "agent.bough")
    assert again.posterior.half_life == timedelta(days=30)
    again.now = datetime(2026, 1, 1)
    assert bough.GaussianModel(model.tree, drift=span).drift == timedelta(days=30)
    numbered = bough.Posterior(model)
    numbered.now = 3.0
    with pytest.raises(ValueError, match="so times are datetimes"):
        bough.HierTS(numbered, half_life=span)


def test_a_log_without_times_does_not_undo_fading():
    shop, _ = shop_and_model(None)
    posterior = bough.Posterior(bough.BernoulliModel(shop.tree(), [0.0]), half_life=1.0)
    with pytest.raises(ValueError, match="a log has no times"):
        posterior.settle(bough.Observations(["green"], [1], context=[[1.0]]))


def test_columns_of_times_are_taken_as_frames_have_them():
    import pandas
    import polars

    _, model = shop_and_model(None)
    days = [datetime(2026, 1, 1), datetime(2026, 1, 3), datetime(2026, 1, 2)]
    means = []
    for at in (days, np.array(days, dtype="datetime64[us]"), pandas.Series(days), polars.Series(days)):
        posterior = bough.Posterior(model, half_life=timedelta(days=1))
        posterior.update(["green", "black", "milk"], [1.0, 2.0, 3.0], at=at)
        assert posterior.now == days[1]
        means.append(posterior.mean)
    for mean in means[1:]:
        np.testing.assert_array_equal(mean, means[0])
    with pytest.raises(ValueError, match="are missing"):
        posterior.update(["green"], [1.0], at=np.array(["NaT"], dtype="datetime64[s]"))
    with pytest.raises(ValueError, match="one time for each"):
        posterior.update(["green"], [1.0], at=days)


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("nan"), float("inf"), "day", timedelta(0), timedelta(-1), True])
def test_half_lives_are_positive(wrong):
    _, model = shop_and_model(None)
    with pytest.raises(ValueError, match="half_life is"):
        bough.HierTS(model, half_life=wrong)


@pytest.mark.parametrize("wrong", [0.0, -0.5, 1.5, float("nan"), "half"])
def test_a_discount_leaves_some_of_what_there_was(wrong):
    _, model = shop_and_model(None)
    posterior = bough.Posterior(model)
    posterior.update("green", 1.0)
    with pytest.raises(ValueError, match="factor"):
        posterior.discount(wrong)
    assert posterior.n_observations == 1
