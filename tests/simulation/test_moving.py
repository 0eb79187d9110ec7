"""Worlds that move: what regret is measured against, who is told the time, and the law of a truth that drifts."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

import numpy as np
import pytest

import bough
from bough.simulation.compiled_runs import is_compiled

TREE = bough.Tree.balanced(branching=3, height=2)
MODEL = bough.GaussianModel(TREE)
N = 20_000  # actions, where a law is tested


class Fixed:
    """A policy of the user's own that takes one action for ever."""

    def __init__(self, action):
        self.action = action

    def decide(self, context=None, *, k=None, among=None):
        return self.action

    def update(self, action, reward, context=None):
        pass


class Made:
    """The problem with this world in every run."""

    def __init__(self, make):
        self.make = make

    def world(self, rounds, rng):
        return self.make(rounds, rng)


# -- worlds --------------------------------------------------------------------------------------------


def test_regret_is_measured_against_the_best_of_each_round():
    truth = np.random.default_rng(0).normal(size=(20, 9))
    problem = Made(lambda rounds, rng: bough.World(MODEL, truth, rng.normal(size=rounds)))
    run = bough.simulate(problem, {"fixed": Fixed(TREE.actions[4])}, rounds=20, runs=2, seed=0)
    np.testing.assert_allclose(run.regret["fixed"][0], np.cumsum(truth.max(axis=1) - truth[:, 4]))
    assert run.best == pytest.approx(truth.max(axis=1).mean())
    assert run.n_actions == 9


def test_a_world_that_moves_nowhere_is_the_world_that_stands_still():
    still = {}
    for moves in (False, True):

        def make(rounds, rng, moves=moves):
            world = bough.World(MODEL, TREE.at_leaves(MODEL.draw(rng)), rng.normal(size=rounds))
            return bough.World(MODEL, np.tile(world.truth, (rounds, 1)), world.noise) if moves else world

        still[moves] = bough.simulate(Made(make), {"HierTS": bough.HierTS, "Greedy": bough.Greedy}, 50, 4, seed=1)
    for name in still[True].regret:
        np.testing.assert_allclose(still[True].regret[name], still[False].regret[name], rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(still[True].tried[name], still[False].tried[name])


def test_rounds_of_a_moving_world_have_their_own_rewards():
    truth = np.arange(12.0).reshape(3, 4)
    star = bough.GaussianModel(bough.Tree.balanced(4, 1))
    residuals = bough.Residuals(np.array([0.0, 0.0, 0.5, 0.0]), np.arange(5), np.zeros(3))
    eligible = np.array([True, True, True, False])
    world = bough.World(star, truth, np.zeros(3), residuals=residuals, eligible=eligible)
    assert world.moves
    np.testing.assert_array_equal(world.mean_rewards(1), truth[1])
    np.testing.assert_array_equal(world.best_rewards(), truth[:, 2])
    assert world.best(world.mean_rewards(2)) == 10.0
    assert world.average_best() == 6.0
    assert world.reward(2, 2, 10.0) == 10.5
    with pytest.raises(ValueError, match="the round is 3; give a place from 0 to 2"):
        world.mean_rewards(3)


def test_clicks_may_move_as_well():
    model = bough.BernoulliModel(TREE)
    policies = {"HierTS": bough.HierTS, "BetaTS": bough.BetaTS}
    run = bough.simulate(bough.problems.drifting(model, 5.0), policies, 30, 3, seed=0)
    assert all((np.diff(regret, axis=1) > -1e-12).all() for regret in run.regret.values())
    assert 0.0 < run.best < 1.0
    with pytest.raises(ValueError, match="the truth is not all from 0 to 1"):
        bough.World(model, np.full((3, 9), 1.5), np.zeros(3))


@pytest.mark.parametrize(
    ("model", "truth", "text"),
    [
        (MODEL, np.zeros((4, 9)), r"the truth has shape \(4, 9\); give \(9,\) or, where it moves, \(3, 9\)"),
        (MODEL, np.zeros((9, 3)), "in the order of tree.actions"),
        (MODEL, np.zeros((3, 9, 1)), r"give numbers in 1 or 2 dimension\(s\)"),
        (MODEL, np.full((3, 9), np.nan), "give finite numbers"),
        (bough.GaussianModel(TREE, [0.0, 0.0]), np.zeros((3, 9)), r"give \(9, 2\), in the order"),
        (bough.GaussianModel(TREE, [0.0, 0.0]), np.zeros((3, 9, 2)), r"give numbers in 2 dimension\(s\)"),
    ],
)
def test_truths_of_other_shapes_are_refused(model, truth, text):
    with pytest.raises(ValueError, match=text):
        bough.World(model, truth, np.zeros(3))


# -- the clock -----------------------------------------------------------------------------------------


class Punctual(Fixed):
    """A policy of the user's own that has a clock."""

    now = None
    seen: tuple[float, ...] = ()

    def decide(self, context=None, *, k=None, among=None):
        Punctual.seen += (self.now,)
        return self.action


def test_a_policy_with_a_clock_is_told_each_round_before_it_decides():
    Punctual.seen = ()
    bough.simulate(MODEL, {"punctual": Punctual(TREE.actions[0])}, rounds=4, runs=2, seed=0, jobs=1)
    assert Punctual.seen == (0, 1, 2, 3) * 2


def test_a_policy_for_which_time_does_not_matter_is_not_told(monkeypatch):
    def refuse(self, value):
        raise AssertionError("told the time")

    monkeypatch.setattr(bough.HierTS, "now", property(lambda self: None, refuse), raising=False)
    bough.simulate(bough.problems.drifting(MODEL, 5.0), {"HierTS": bough.HierTS}, rounds=4, runs=2, seed=0, jobs=1)


FORGETTING = {
    "half_life": lambda half_life: partial(bough.HierTS, half_life=half_life),
    "drift": lambda half_life: lambda model, seed: bough.HierTS(replace(model, drift=half_life), seed=seed),
}


@pytest.mark.parametrize("how", FORGETTING)
def test_a_policy_that_forgets_is_told_each_round(how, monkeypatch):
    choose, seen = bough.HierTS._choose_place, []

    def watched(self, context):
        seen.append(self.now)
        return choose(self, context)

    monkeypatch.setattr(bough.HierTS, "_choose_place", watched)
    bough.simulate(MODEL, {"forgets": FORGETTING[how](5.0)}, rounds=4, runs=2, seed=0, jobs=1)
    assert seen == [0.0, 1.0, 2.0, 3.0] * 2


@pytest.mark.parametrize("how", FORGETTING)
def test_who_forgets_next_to_nothing_plays_as_who_never_forgets(how):
    problem = bough.problems.drifting(MODEL, 20.0)
    plain = bough.simulate(problem, {"one": bough.HierTS}, rounds=60, runs=4, seed=2)
    slow = bough.simulate(problem, {"one": FORGETTING[how](1e12)}, rounds=60, runs=4, seed=2)
    np.testing.assert_allclose(slow.regret["one"], plain.regret["one"], atol=1e-9)
    quick = bough.simulate(problem, {"one": FORGETTING[how](5.0)}, rounds=60, runs=4, seed=2)
    assert not np.allclose(quick.regret["one"], plain.regret["one"])


def test_a_model_with_drift_is_never_played_by_a_kernel():
    model = bough.GaussianModel(TREE, drift=5.0)
    assert is_compiled(MODEL, bough.HierTS)
    assert not is_compiled(model, bough.HierTS)
    own = bough.simulate(model, {"HierTS": bough.HierTS}, rounds=60, runs=4, seed=3)
    never = bough.simulate(bough.problems.drifting(MODEL, 5.0), {"HierTS": bough.HierTS}, rounds=60, runs=4, seed=3)
    assert not np.allclose(own.regret["HierTS"], never.regret["HierTS"])


# -- the law of a truth that drifts --------------------------------------------------------------------


def drifted(movers="actions", redrawn=False, variances=(0.0, 2.0), half_life=20.0, rounds=41):
    """(rounds, N) a truth on a tree of height 1, or of pairs below categories where three variances are given."""
    tree = bough.Tree.balanced(N, 1)
    if len(variances) == 3:
        tree = bough.Tree.from_parents([-1, *[0] * (N // 2), *np.repeat(np.arange(1, N // 2 + 1), 2)])
    model = bough.GaussianModel(tree, 0.5, bough.by_depth(variances))
    problem = bough.problems.drifting(model, half_life, movers, redrawn)
    return problem.world(rounds, np.random.default_rng(0)).truth


@pytest.mark.parametrize("redrawn", [False, True])
def test_a_deviation_keeps_its_variance_and_halves_its_correlation_in_a_half_life(redrawn):
    # 7 checks, each within 5 standard errors of 20,000 independent paths: false-alarm rate below 5e-6.
    deviation = (drifted(redrawn=redrawn) - 0.5) / np.sqrt(2.0)
    for earlier, later, expected in [
        (0, 0, 1.0), (20, 20, 1.0), (40, 40, 1.0), (0, 20, 0.5), (20, 40, 0.5), (0, 40, 0.25), (39, 40, 2 ** -0.05)
    ]:  # fmt: skip
        product = deviation[earlier] * deviation[later]
        assert abs(product.mean() - expected) < 5 * product.std() / np.sqrt(N)


def test_what_is_redrawn_stands_still_in_between():
    # Half of 20,000 paths have not moved after a half-life: within 5 standard errors, false-alarm rate below 1e-6.
    truth = drifted(redrawn=True)
    assert abs((truth[20] == truth[0]).mean() - 0.5) < 5 * 0.5 / np.sqrt(N)
    assert (drifted()[1] != drifted()[0]).all()


def test_only_actions_move_unless_all_nodes_do():
    alone = drifted(variances=(1.0, 2.0, 0.0))  # actions that are their categories, which stand still
    np.testing.assert_array_equal(alone, alone[:1].repeat(41, axis=0))
    together = drifted("nodes", variances=(0.0, 2.0, 0.0))
    np.testing.assert_array_equal(together[:, ::2], together[:, 1::2])
    product = (together[0, ::2] - 0.5) * (together[20, ::2] - 0.5) / 2.0
    assert abs(product.mean() - 0.5) < 5 * product.std() / np.sqrt(N / 2)  # false-alarm rate below 1e-6


def test_the_root_never_moves():
    truth = drifted("nodes", variances=(1.0, 0.0, 0.0))
    np.testing.assert_array_equal(truth, np.full_like(truth, truth[0, 0]))


def test_an_action_that_is_the_whole_tree_drifts_around_the_mean():
    model = bough.GaussianModel(bough.Tree.balanced(2, 0), 7.0, 1e-6)
    truth = bough.problems.drifting(model, 1.0).world(50, np.random.default_rng(0)).truth
    assert abs(truth - 7.0).max() < 0.01


def test_a_model_with_drift_is_simulated_in_worlds_that_drift():
    model = bough.GaussianModel(TREE, drift=5.0)
    own = bough.simulate(model, {"fixed": Fixed(TREE.actions[0])}, rounds=20, runs=3, seed=0).regret["fixed"]
    same = bough.simulate(bough.problems.drifting(model, 5.0), {"fixed": Fixed(TREE.actions[0])}, 20, 3, seed=0)
    np.testing.assert_array_equal(own, same.regret["fixed"])
    with pytest.raises(ValueError, match="here time is counted in rounds; give it as a number"):
        bough.simulate(bough.GaussianModel(TREE, drift=timedelta(days=5)), {"TS": bough.TS}, 20, 3)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        (dict(model=bough.GaussianModel(TREE, [0.0, 0.0])), "models without contexts"),
        (dict(model="tree"), "model is 'tree'"),
        (dict(half_life=0.0), "half_life is 0.0; give a positive number of rounds"),
        (dict(half_life=-3), "half_life is -3"),
        (dict(half_life=float("nan")), "half_life is nan"),
        (dict(half_life="slow"), "half_life is 'slow'"),
        (dict(movers="leaves"), 'movers is \'leaves\'; give "actions" or "nodes"'),
        (dict(redrawn="yes"), "redrawn is 'yes'"),
    ],
)
def test_odd_drifts_are_refused(changed, text):
    with pytest.raises(ValueError, match=text):
        bough.problems.drifting(**{"model": MODEL, "half_life": 5.0, **changed})
