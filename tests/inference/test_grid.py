"""The grid against closed forms, 20-digit quadrature and identities that any posterior keeps.

Each tolerance is at least ten times what was measured, and the grid was made for 1e-6.
"""

import functools
import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.special import comb, logsumexp

import bough
from bough.inference.oracles.dense import DensePosterior
from bough.inference.oracles.grid import GridPosterior
from bough.model.bernoulli import BernoulliModel
from bough.model.gaussian import GaussianModel
from bough.model.poisson import PoissonModel
from cases import SHAPES, parents

UNBALANCED = [-1, 0, 0, 0, 1, 1, 2, 4, 4]


def solved(model, actions, rewards, **exposure) -> GridPosterior:
    posterior = GridPosterior(model)
    posterior.update(actions, rewards, **exposure)
    return posterior


def check_same(one: GridPosterior, other: GridPosterior, nodes=slice(None), others=slice(None)) -> None:
    """To 1e-9 standard deviations: measured below 1e-10."""
    deviation = np.sqrt(other.covariance[others])
    assert (np.abs(one.mean[nodes] - other.mean[others]) <= 1e-9 * deviation + 1e-14).all()
    np.testing.assert_allclose(np.sqrt(one.covariance[nodes]), deviation, rtol=1e-9, atol=1e-15)
    assert one.log_evidence() == pytest.approx(other.log_evidence(), rel=1e-12, abs=1e-9)


# -- closed forms ------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_gaussian_rewards_agree_with_the_dense_oracle(shape):
    # Measured over 150 cases: 3e-12 standard deviations, and 3e-11 of a log evidence in the thousands.
    rng = np.random.default_rng(len(shape))
    for _ in range(8):
        tree = bough.Tree.from_parents(parents(shape, int(rng.integers(2, 12)), rng))
        variance = 10.0 ** rng.uniform(-3.0, 1.4, tree.n_nodes) * (rng.random(tree.n_nodes) > 0.2)
        model = GaussianModel(tree, rng.normal(), bough.by_node(variance), 10.0 ** rng.uniform(-3.0, 1.0))
        actions = rng.choice(np.asarray(tree.actions), int(rng.integers(0, 30))).tolist()
        rewards = 3.0 * rng.normal(size=len(actions))
        grid, dense = solved(model, actions, rewards), DensePosterior(model)
        dense.update(actions, rewards)
        deviation = np.sqrt(dense.covariance)
        assert (np.abs(grid.mean - dense.mean) <= 1e-10 * deviation + 1e-14).all()
        np.testing.assert_allclose(np.sqrt(grid.covariance), deviation, rtol=1e-10, atol=1e-14)
        assert grid.log_evidence() == pytest.approx(dense.log_evidence(), abs=1e-9)
        np.testing.assert_array_equal(grid.mean_reward, grid.mean[tree.leaves])


def quadrature(log_joint, link) -> tuple:
    """Mean, deviation, mean of the link and log integral of exp(log_joint), which is concave, in 20 digits."""
    with mpmath.workdps(20):
        low, high = mpmath.mpf(-300), mpmath.mpf(300)
        for _ in range(100):  # the maximum, by thirds
            left, right = (2 * low + high) / 3, (low + 2 * high) / 3
            low, high = (left, high) if log_joint(left) < log_joint(right) else (low, right)
        top = log_joint(low)

        def end(sign: int) -> mpmath.mpf:
            away = mpmath.mpf("1e-4")
            while top - log_joint(low + sign * away) < 60:
                away *= 1.2
            return low + sign * away

        points = mpmath.linspace(end(-1), low, 6) + mpmath.linspace(low, end(1), 6)[1:]

        @functools.cache  # all integrals meet the same points
        def density(t) -> mpmath.mpf:
            return mpmath.exp(log_joint(t) - top)

        def integral(function) -> mpmath.mpf:
            return mpmath.quad(lambda t: function(t) * density(t), points, method="gauss-legendre")

        mass = integral(lambda t: 1)
        mean = integral(lambda t: t) / mass
        deviation = mpmath.sqrt(integral(lambda t: (t - mean) ** 2) / mass)
        return tuple(map(float, (mean, deviation, integral(link) / mass, mpmath.log(mass) + top)))


@pytest.mark.parametrize("variance", [1e-3, 1.0, 25.0])
@pytest.mark.parametrize(
    ("kind", "reward", "amount"),
    [
        (BernoulliModel, 0, 1),
        (BernoulliModel, 1, 1),
        (BernoulliModel, 0, 10**4),
        (BernoulliModel, 10**4, 10**4),
        (BernoulliModel, 5000, 10**4),
        (PoissonModel, 0, 1.0),
        (PoissonModel, 3, 0.5),
        (PoissonModel, 10**5, 1.0),
    ],
)
def test_one_action_agrees_with_quadrature_in_twenty_digits(kind, reward, amount, variance):
    # Measured: 4e-11 standard deviations and, of a log evidence of 1e6, 2e-10, both for the count of 1e5.
    mean, clicks = -1.0, kind is BernoulliModel

    def link(t):
        return 1 / (1 + mpmath.exp(-t)) if clicks else mpmath.exp(t)

    def log_joint(t):
        partition = mpmath.log1p(mpmath.exp(t)) if clicks else mpmath.exp(t)
        prior = (t - mean) ** 2 / variance + mpmath.log(2 * mpmath.pi * variance)
        return reward * t - amount * partition - prior / 2

    model = kind(bough.Tree.from_parents([-1]), mean, variance)
    grid = solved(model, [0], [reward], **{"trials" if clicks else "exposure": [amount]})
    expected_mean, deviation, expected_reward, log_evidence = quadrature(log_joint, link)
    assert abs(grid.mean[0] - expected_mean) <= 1e-9 * deviation
    assert grid.covariance[0] == pytest.approx(deviation**2, rel=1e-9)
    assert grid.mean_reward[0] == pytest.approx(expected_reward, rel=1e-9)
    assert grid.log_evidence() == pytest.approx(log_evidence, abs=1e-8)


def test_actions_that_contradict_each_other_agree_with_plain_sums_of_logarithms():
    # The posterior is where both messages are below exp(-900) of their maxima. Measured: 1e-12.
    model = BernoulliModel(bough.Tree.from_parents([-1, 0, 0]), 0.5, bough.by_depth([1.0, 0.01]))
    grid = solved(model, [1, 2], [0, 10**4], trials=[10**4, 10**4])
    t, spacing = np.linspace(-8.0, 8.0, 2001, retstep=True)
    edge = -0.5 * (t[:, None] - t) ** 2 / 0.01 + math.log(spacing / math.sqrt(2.0 * math.pi * 0.01))
    none, all_ = (logsumexp(edge - 10**4 * np.logaddexp(0.0, sign * t), axis=1) for sign in (1.0, -1.0))
    joint = none + all_ - 0.5 * (t - 0.5) ** 2 + math.log(spacing / math.sqrt(2.0 * math.pi))
    mass = np.exp(joint - logsumexp(joint))
    assert min(none[np.argmax(mass)] - none.max(), all_[np.argmax(mass)] - all_.max()) < -900.0
    assert grid.log_evidence() == pytest.approx(logsumexp(joint), rel=1e-12)
    assert grid.mean[0] == pytest.approx(mass @ t, abs=1e-10)
    assert grid.covariance[0] == pytest.approx(mass @ (t - mass @ t) ** 2, rel=1e-9)


# -- identities --------------------------------------------------------------------------------


CLICKS = (BernoulliModel, "trials", [0, 3, 10**4, 60, 0], [1, 4, 10**4, 100, 10**4])
COUNTS = (PoissonModel, "exposure", [0, 3, 10**5, 60, 0], [1.0, 0.5, 2.0, 100.0, 30.0])
BOTH = pytest.mark.parametrize(("kind", "what", "rewards", "amounts"), [CLICKS, COUNTS], ids=["clicks", "counts"])


@BOTH
def test_nodes_without_variance_are_their_parents(kind, what, rewards, amounts):
    # Node 1 is the root, node 3 is 1, and the actions 4 and 6 are the nodes above them.
    tree = bough.Tree.from_parents([-1, 0, 1, 1, 2, 2, 3])
    long = kind(tree, -0.5, bough.by_node([2.0, 0.0, 0.7, 0.0, 0.0, 1.3, 0.0]))
    short = kind(bough.Tree.from_parents([-1, 0, 1]), -0.5, bough.by_node([2.0, 0.7, 1.3]))
    for reward, amount in zip(rewards, amounts, strict=True):
        grid = solved(long, [5], [reward], **{what: [amount]})
        check_same(grid, solved(short, [2], [reward], **{what: [amount]}), slice(None), [0, 0, 1, 0, 1, 2, 0])


@BOTH
def test_siblings_without_variance_pool_their_data(kind, what, rewards, amounts):
    star = bough.Tree.from_parents([-1, 0, 0, 0, 0, 0])
    apart = solved(kind(star, 0.3, bough.by_depth([1.5, 0.0])), [1, 2, 3, 4, 5], rewards, **{what: amounts})
    pooled = solved(kind(bough.Tree.from_parents([-1]), 0.3, 1.5), [0], [sum(rewards)], **{what: [sum(amounts)]})
    check_same(apart, pooled, slice(None), np.zeros(6, dtype=int))


@BOTH
def test_a_unary_chain_acts_as_one_node_with_the_variances_added(kind, what, rewards, amounts):
    long = kind(bough.Tree.from_parents([-1, 0, 1, 2]), -1.0, bough.by_depth([1.0, 0.05, 4.0, 0.3]))
    one = kind(bough.Tree.from_parents([-1]), -1.0, 5.35)
    for reward, amount in zip(rewards, amounts, strict=True):
        check_same(
            solved(long, [3], [reward], **{what: [amount]}), solved(one, [0], [reward], **{what: [amount]}), [3], [0]
        )


@BOTH
def test_the_evidence_of_independent_actions_is_a_product(kind, what, rewards, amounts):
    tree = bough.Tree.from_parents([-1, 0, 0, 0, 0, 0])
    variances = [1e-3, 0.5, 25.0, 3.0, 1.0]
    together = solved(kind(tree, 1.0, bough.by_node([0.0, *variances])), [1, 2, 3, 4, 5], rewards, **{what: amounts})
    single = bough.Tree.from_parents([-1])
    alone = [
        solved(kind(single, 1.0, variance), [0], [reward], **{what: [amount]})
        for variance, reward, amount in zip(variances, rewards, amounts, strict=True)
    ]
    np.testing.assert_allclose(together.mean[1:], [one.mean[0] for one in alone], rtol=1e-10)
    np.testing.assert_allclose(together.covariance[1:], [one.covariance[0] for one in alone], rtol=1e-10)
    assert together.log_evidence() == pytest.approx(sum(one.log_evidence() for one in alone), rel=1e-12)
    assert (together.mean[0], together.covariance[0]) == (1.0, 0.0)


@BOTH
def test_the_mean_reward_is_the_chance_of_one_more(kind, what, rewards, amounts):
    # p(a success or a count more | data), by evidences alone; the exposure of that one count is next to nothing.
    model = kind(bough.Tree.from_parents(UNBALANCED), -1.0, bough.by_depth([1.0, 25.0, 0.0, 0.2]))
    actions, one = list(model.tree.actions), 1 if kind is BernoulliModel else 1e-140
    before = solved(model, actions[:4], rewards[:4], **{what: amounts[:4]})  # the last action has no data
    for action, mean_reward in zip(actions, before.mean_reward, strict=True):
        after = solved(model, [*actions[:4], action], [*rewards[:4], 1], **{what: [*amounts[:4], one]})
        # the evidences, up to exp(1e6), have 1e-10 of rounding each
        assert math.log(mean_reward) == pytest.approx(after.log_evidence() - before.log_evidence(), abs=1e-8)


def test_the_chances_of_all_that_may_happen_add_up_to_one():
    model = BernoulliModel(bough.Tree.from_parents([-1, 0, 0, 1, 1]), -1.0, bough.by_node([1.0, 25.0, 0.3, 1e-3, 4.0]))
    trials = [3, 1, 4]
    chances = [
        math.exp(solved(model, [2, 3, 4], successes, trials=trials).log_evidence()) * comb(trials, successes).prod()
        for successes in itertools.product(*(range(m + 1) for m in trials))
    ]
    assert len(chances) == 40
    assert sum(chances) == pytest.approx(1.0, abs=1e-11)


def test_failures_for_successes_turn_every_sign():
    tree, variance = bough.Tree.from_parents(UNBALANCED), bough.by_depth([2.0, 0.4, 0.0, 7.0])
    actions = list(tree.actions)
    kind, _, successes, trials = CLICKS
    given = solved(kind(tree, -1.5, variance), actions, successes, trials=trials)
    turned = solved(kind(tree, 1.5, variance), actions, np.subtract(trials, successes), trials=trials)
    deviation = np.sqrt(given.covariance)
    assert (np.abs(given.mean + turned.mean) <= 1e-9 * deviation).all()
    np.testing.assert_allclose(given.covariance, turned.covariance, rtol=1e-9)
    np.testing.assert_allclose(given.mean_reward + turned.mean_reward, 1.0, rtol=1e-12)
    assert given.log_evidence() == pytest.approx(turned.log_evidence(), rel=1e-12)


@pytest.mark.parametrize("kind", [GaussianModel, BernoulliModel, PoissonModel])
def test_without_data_the_posterior_is_the_prior(kind):
    model = kind(bough.Tree.from_parents(UNBALANCED), 0.3, bough.by_depth([25.0, 1e-2, 1.0, 0.0]))
    grid = GridPosterior(model)
    np.testing.assert_allclose(grid.mean, 0.3, rtol=1e-10)
    np.testing.assert_allclose(grid.covariance, model.marginal_covariance, rtol=1e-10)
    assert grid.log_evidence() == pytest.approx(0.0, abs=1e-11)
    at_leaves = [model.tree.at_leaves(values) for values in (np.full(9, 0.3), model.marginal_covariance)]
    np.testing.assert_allclose(grid.mean_reward, model.likelihood.expected_reward(*at_leaves), rtol=1e-7)  # about 1e-8


@BOTH
def test_more_points_change_nothing(kind, what, rewards, amounts):
    model = kind(bough.Tree.from_parents(UNBALANCED), -1.0, bough.by_depth([1.0, 25.0, 0.1, 0.2]))
    actions = list(model.tree.actions)
    chosen, finer = GridPosterior(model), GridPosterior(model, points=3000)
    for posterior in (chosen, finer):
        posterior.update(actions, rewards, **{what: amounts})
    assert max(len(chosen.marginal(node)[0]) for node in range(9)) < 1500
    check_same(chosen, finer)


def test_a_marginal_is_a_density_with_the_posteriors_moments():
    model = PoissonModel(bough.Tree.from_parents([-1, 0, 0]), 1.0, bough.by_depth([0.0, 2.0]))
    grid = solved(model, [1], [4])
    values, density = grid.marginal(1)
    assert np.trapezoid(density, values) == pytest.approx(1.0, rel=1e-12)
    assert np.trapezoid(density * values, values) == pytest.approx(grid.mean[1], rel=1e-12)
    assert tuple(map(list, grid.marginal(0))) == ([1.0], [1.0])  # known, so a mass in place of a density


def test_data_may_come_in_parts():
    model = BernoulliModel(bough.Tree.from_parents([-1, 0, 0]), 0.0, 2.0)
    parts, whole = solved(model, [1], [1]), solved(model, [1, 2], [1, 7], trials=[1, 9])
    assert parts.mean[2] > 0.1
    parts.update(2, 7, trials=9)
    np.testing.assert_array_equal(parts.mean, whole.mean)
    assert parts.log_evidence() == whole.log_evidence()


# -- errors ------------------------------------------------------------------------------------


def test_a_contextual_model_is_refused():
    with pytest.raises(ValueError, match="contexts of length 2; a grid is for models without contexts"):
        GridPosterior(BernoulliModel(bough.Tree.balanced(2, 1), mean=[0.0, 0.0]))


@pytest.mark.parametrize("points", [1, 2.5, "many"])
def test_a_grid_has_at_least_two_points(points):
    with pytest.raises(ValueError, match=r"points is .*; give a whole number of at least 2"):
        GridPosterior(BernoulliModel(bough.Tree.balanced(2, 1)), points=points)


def test_variances_too_far_apart_for_a_grid_are_refused():
    grid = GridPosterior(GaussianModel(bough.Tree.balanced(2, 1), covariance=bough.by_depth([1e6, 1e-12])))
    with pytest.raises(ValueError, match=r"node 0 takes .* points; give `points`, or variances less far apart"):
        grid.log_evidence()


def test_wrong_rewards_are_refused_and_leave_no_trace():
    grid = solved(BernoulliModel(bough.Tree.balanced(2, 1)), [1], [1])
    before = grid.mean
    with pytest.raises(ValueError, match="whole number of successes"):
        grid.update([1, 2], [1, 3], trials=[1, 2])
    with pytest.raises(KeyError, match="unknown action"):
        grid.update([7], [1])
    with pytest.raises(ValueError, match="exposure was given"):
        grid.update([1], [1], exposure=[2.0])
    np.testing.assert_array_equal(grid.mean, before)
