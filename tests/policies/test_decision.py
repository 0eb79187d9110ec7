"""Decisions that can be logged choose as `decide` does, and their propensities are those of counting.

Propensities are compared with shares of 5,000 decisions, fixed seeds, at most 5 standard errors of the difference
apart: false-alarm rate 6e-7 a comparison where the errors are normal, about 1e-4 over all.
"""

import copy
import json
import uuid
from datetime import UTC, date, datetime

import numpy as np
import pytest
from scipy.special import ndtr

import bough
from bough._text import rounded
from bough.policies import propensity as formulas

UNEVEN = bough.Tree.from_paths(
    ["a/b/c", "a/b/d", "a/e", "f", "g/h", "g/i/j/k", "g/i/j/l", "m/n/o", "m/n/p", "m/q", "r/s/t/u/v"]
)
SPREAD = bough.by_depth([0.5, 1.0, 2.0, 0.7, 1.0, 0.4])
CONTEXT = np.array([1.0, -0.5, 0.3])
COUNTED = 5_000
MOST_ERRORS = 5.0

MODELS = {
    "numbers": bough.GaussianModel(UNEVEN, 0.2, SPREAD),
    "vectors": bough.GaussianModel(UNEVEN, [0.1, 0.0, -0.2], SPREAD),
    "clicks": bough.BernoulliModel(UNEVEN, -1.0, SPREAD),
    "clicks in contexts": bough.BernoulliModel(UNEVEN, [0.1, 0.0, -0.2], SPREAD),
    "drift": bough.GaussianModel(UNEVEN, 0.4, 1.0, drift=3.0),
    "ties": bough.GaussianModel(UNEVEN, 0.2, bough.by_depth([0.5, 1.0, 0.0, 0.0, 0.0, 0.0])),
    "ties in contexts": bough.GaussianModel(UNEVEN, [0.1, 0.0, -0.2], bough.by_depth([0.5, 1.0, 0.0, 0.0, 0.0, 0.0])),
}


def taught(model, policy=bough.HierTS, n=8, seed=0, **options):
    """An agent that has seen some rewards, with most actions untouched."""
    agent = policy(model, seed=seed, **options)
    rng = np.random.default_rng(1)
    for _ in range(n):
        reward = float(rng.integers(2)) if isinstance(model, bough.BernoulliModel) else float(rng.normal())
        action = str(rng.choice(["a/b/c", "f", "g/i/j/k", "m/q"]))
        agent.update(action, reward, *([] if model.is_scalar else [rng.normal(size=3)]))
    return agent


def context_of(agent):
    return None if agent._model.is_scalar else CONTEXT


def shares(agent, names, context, k=None, **how):
    """How often each action is chosen in COUNTED decisions of a copy of the agent."""
    twin = copy.deepcopy(agent)
    times = dict.fromkeys(names, 0)
    for _ in range(COUNTED):
        chosen = twin.decide(context, k=k, **how)
        for name in [chosen] if k is None else chosen:
            times[name] += 1
    return np.array([times[name] for name in names]) / COUNTED


def assert_as_counted(agent, names, context=None, **how):
    probability, error, is_bound = agent.propensity(names, context, seed=7, **how)
    counted = shares(agent, names, context, **{name: value for name, value in how.items() if name != "samples"})
    width = np.sqrt(error**2 + np.maximum(counted * (1.0 - counted), 1.0 / COUNTED) / COUNTED)
    assert (np.abs(probability - counted)[~is_bound] <= MOST_ERRORS * width[~is_bound]).all()
    assert (counted[is_bound] == 0.0).all()
    k = how.get("k") or 1
    assert probability.sum() == pytest.approx(k, abs=MOST_ERRORS * max(float(error.sum()), 1e-9))


@pytest.fixture
def draws_only(monkeypatch):
    """Have no propensity computed without draws."""
    monkeypatch.setattr(formulas, "PLACE", np.inf)


@pytest.fixture
def all_samples(monkeypatch, draws_only):
    """Have every propensity take all of its samples, so that nothing depends on when they were enough."""
    monkeypatch.setattr(formulas, "PRECISE", 0.0)


# -- the same choices ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "how", [{}, {"k": 3}, {"among": ["f", "a/e", "m/q"]}, {"exclude": ["f"]}, {"k": 2, "exclude": ["f"]}]
)
@pytest.mark.parametrize("policy", [bough.HierTS, bough.FlatTS, bough.TS, bough.BayesUCB, bough.Greedy, bough.BetaTS])
def test_a_decision_chooses_what_decide_would_have_and_leaves_the_agent_where_it_would_be(policy, how):
    deciding, logging = (taught(MODELS["clicks"], policy) for _ in range(2))
    for samples in (0, 40, 0, 40):
        chosen = deciding.decide(**how)
        decision = logging.decision(**how, samples=samples)
        assert decision.actions == (chosen if "k" in how else [chosen])
        assert decision.action == decision.actions[0]
        assert (decision.propensity is None) == (samples == 0)
    assert logging._rng.bit_generator.state == deciding._rng.bit_generator.state


@pytest.mark.parametrize("search", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_asking_for_propensities_changes_nothing_that_is_decided_later(name, search):
    asked, left = (taught(MODELS[name], search=search) for _ in range(2))
    context = context_of(asked)
    asked.add("new", under="a")
    left.add("new", under="a")
    for i in range(10):
        assert asked.decide(context) == left.decide(context)
        asked.propensity(["f", "new"], context, samples=50, seed=i if i % 2 else None)
    assert asked.decide(context, k=3) == left.decide(context, k=3)


def test_propensities_repeat_for_a_state_and_for_a_seed(draws_only):
    agent = taught(MODELS["numbers"])
    np.testing.assert_array_equal(agent.propensity(["f"]), agent.propensity(["f"]))
    np.testing.assert_array_equal(agent.propensity(["f"], seed=1), agent.propensity(["f"], seed=1))
    assert agent.propensity(["f"], seed=1).probability != agent.propensity(["f"], seed=2).probability
    before = agent.propensity(["f"]).probability
    agent.decide()
    assert agent.propensity(["f"]).probability != before


# -- as counted ------------------------------------------------------------------------------------


@pytest.mark.parametrize("search", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_propensities_are_those_of_counting(name, search, all_samples):
    agent = taught(MODELS[name], search=search)
    agent.retire("m/n/o")
    names = [one for one in UNEVEN.actions if one != "m/n/o"]
    assert_as_counted(agent, names, context_of(agent), samples=4_000)


@pytest.mark.parametrize("name", ["numbers", "vectors", "clicks"])
def test_propensities_of_few_actions_are_those_of_counting_where_the_rest_is_searched(name, all_samples):
    agent = taught(MODELS[name], search=True)
    names, context = ["f", "g/i/j/k", "r/s/t/u/v"], context_of(agent)
    probability, error, _ = agent.propensity(names, context, samples=4_000, seed=3)
    counted = shares(agent, list(UNEVEN.actions), context)[[list(UNEVEN.actions).index(one) for one in names]]
    assert (np.abs(probability - counted) <= MOST_ERRORS * np.sqrt(error**2 + counted * (1 - counted) / COUNTED)).all()


@pytest.mark.parametrize("policy", [bough.FlatTS, bough.TS, bough.BetaTS])
def test_propensities_of_other_samplers_are_those_of_counting(policy, all_samples):
    agent = taught(MODELS["clicks"], policy)
    assert_as_counted(agent, list(UNEVEN.actions), samples=4_000)
    assert_as_counted(agent, list(UNEVEN.actions), k=4, samples=2_000)


CHOICES = {
    "k": {"k": 3},
    "among": {"among": ["a/b/c", "f", "m/q", "m/n/p"]},
    "exclude": {"exclude": ["f", "m/q"]},
    "k among": {"k": 2, "among": ["a/b/c", "f", "m/q", "m/n/p"]},
    "k and exclude": {"k": 4, "exclude": ["f", "m/q"]},
    "all but one": {"k": 8, "exclude": ["f"]},
}


@pytest.mark.parametrize("how", CHOICES)
@pytest.mark.parametrize("search", [True, False])
@pytest.mark.parametrize("name", ["numbers", "vectors"])
def test_propensities_of_restricted_choices_are_those_of_counting(name, search, how, all_samples):
    agent = taught(MODELS[name], search=search)
    agent.retire(["a/b/d"])
    agent.add(["new"], under="a")
    agent.retire(["m/n/o"])
    agent.update("new", 1.0, *([] if agent._model.is_scalar else [CONTEXT]))
    given = CHOICES[how]
    names = given.get("among") or [
        one for one in [*UNEVEN.actions, "new"] if one not in ("a/b/d", "m/n/o", *given.get("exclude", ()))
    ]
    assert_as_counted(agent, names, context_of(agent), **given, samples=2_000)


def test_what_is_retired_left_out_or_no_candidate_has_no_probability():
    agent = taught(MODELS["numbers"])
    agent.retire("f")
    assert agent.propensity(["f"]) == (0.0, 0.0, False)
    assert agent.propensity(["m/q", "m/q", "a/e"], exclude=["m/q"]).probability[:2].tolist() == [0.0, 0.0]
    result = agent.propensity(["m/q", "g/h", "a/e"], among=["a/e", "g/h", "f"], k=2)
    assert result.probability.tolist() == [0.0, 1.0, 1.0]
    assert result.standard_error.tolist() == [0.0, 0.0, 0.0]
    assert agent.propensity([]).probability.shape == (0,)
    twice = agent.propensity(["m/q", "a/e", "m/q"]).probability
    assert twice[0] == twice[2] != twice[1]


@pytest.mark.parametrize("policy", [bough.Greedy, bough.BayesUCB])
def test_where_nothing_is_drawn_ties_alone_are_random(policy):
    agent = policy(bough.GaussianModel(bough.Tree.from_nested(["a", "b", "c", "d", "e"])), seed=0)
    agent.update(["a", "b"], [5.0, -5.0])
    agent.retire("e")
    names = ["a", "b", "c", "d", "e"]
    best = agent.propensity(names)
    assert best.probability.tolist() == (
        [1.0, 0.0, 0.0, 0.0, 0.0] if policy is bough.Greedy else best.probability.tolist()
    )
    assert best.probability.sum() == 1.0
    assert not best.standard_error.any()
    assert not best.is_upper_bound.any()
    agent.forget(["a", "b"])
    assert agent.propensity(names).probability.tolist() == [0.25, 0.25, 0.25, 0.25, 0.0]
    assert agent.propensity(names, k=3).probability.tolist() == [0.75, 0.75, 0.75, 0.75, 0.0]


def test_a_policy_that_decides_in_its_own_way_is_counted():
    class Careless(bough.Greedy):
        """Half of the time anything."""

        def _scores(self, context):
            return super()._scores(context) if self._rng.random() < 0.5 else self._rng.random(4)

    agent = Careless(bough.GaussianModel(bough.Tree.from_nested(["a", "b", "c", "d"])), seed=0)
    agent.update("a", 5.0)
    state = agent._rng.bit_generator.state
    probability, error, _ = agent.propensity(["a", "b"], samples=2_000)
    assert agent._rng.bit_generator.state == state
    assert (np.abs(probability - [0.625, 0.125]) <= MOST_ERRORS * error).all()


# -- errors of propensities ------------------------------------------------------------------------


@pytest.mark.parametrize("search", [True, False])
def test_the_standard_error_is_how_far_propensities_are_from_each_other(search, all_samples):
    """300 propensities: their variance over the mean square of their errors is within 5 deviations of a chi-squared."""
    agent = taught(MODELS["numbers"], search=search)
    found = [agent.propensity(["f", "g/h"], samples=200, seed=i) for i in range(300)]
    spread = np.var([one.probability for one in found], axis=0, ddof=1)
    claimed = np.mean(np.square([one.standard_error for one in found]), axis=0)
    assert (np.abs(spread / claimed - 1.0) < MOST_ERRORS * np.sqrt(2.0 / 299)).all()


def test_a_rare_choice_that_counting_cannot_see_has_its_exact_probability(draws_only):
    """Two independent actions with known laws: the better one wins with probability Phi of their distance."""
    agent = bough.TS(bough.GaussianModel(bough.Tree.from_nested(["good", "bad"])), seed=0)
    agent.update(["good"] * 9 + ["bad"] * 9, [1.5] * 9 + [0.0] * 9)
    exact = ndtr(-1.5 * 9 / 9.5 / np.sqrt(2 / 9.5))  # prior variances of 2, and nine rewards each
    assert exact < 1e-3
    probability, error, is_bound = agent.propensity(["bad"], samples=20_000)
    assert not is_bound[0]
    assert error[0] <= 0.1 * probability[0]
    assert abs(probability[0] - exact) <= MOST_ERRORS * error[0]


@pytest.mark.parametrize("k", [1, 10])
def test_alike_actions_of_a_large_tree_have_equal_shares(k, draws_only):
    agent = bough.HierTS(bough.problems.constant(branching=10, height=4), seed=0)
    assert agent._searches
    name = agent.decide()
    probability, error, _ = agent.propensity([name, 11110], k=k, samples=4_000)
    assert (np.abs(probability - k / 10**4) <= MOST_ERRORS * error).all()
    assert (error < np.sqrt(k / 10**4 / 4_000)).all()  # less than counting's
    agent.add("new", under=agent.posterior._engine.model.tree.path(name)[-2])
    probability, error, _ = agent.propensity([name, "new"], k=k, samples=4_000)
    assert (np.abs(probability - k / 10**4) <= MOST_ERRORS * error + 0.02 * k / 10**4).all()
    assert agent.posterior._catalogue.is_changed


def test_samples_double_until_the_error_is_a_tenth():
    taken = []

    def chances(n):
        taken.append(n)
        return np.tile([0.0, 1.0], n // 2)[:n, None]

    chances.width = 1
    mean = formulas.estimated(chances, 1, 1_000)
    assert taken == [32, 32, 64]
    assert mean.error[0] <= 0.1 * mean.probability[0] == 0.05
    taken.clear()
    assert formulas.estimated(chances, 1, 50).n_draws == 50
    assert taken == [32, 18]
    taken.clear()
    chances.width = 10**5
    assert formulas.estimated(chances, 1, 64).n_draws == 64
    assert taken == [20, 12, 20, 12]


def test_an_action_without_a_chance_in_any_draw_has_an_upper_bound(draws_only):
    agent = bough.TS(bough.GaussianModel(bough.Tree.from_nested(["good", "bad"])), seed=0)
    agent.update(["good"] * 50 + ["bad"] * 50, [9.0] * 50 + [-9.0] * 50)
    probability, error, is_bound = agent.propensity(["good", "bad"], samples=400)
    assert (probability[0], is_bound[0]) == (1.0, False)
    assert (error[1], is_bound[1]) == (0.0, True)
    assert probability[1] == pytest.approx(1.0 - 0.05 ** (1 / 400))


# -- logs ------------------------------------------------------------------------------------------

KEYS = [
    "decision_id", "at", "action", "actions", "propensity", "propensity_error", "context", "among", "exclude",
    "n_observations", "version",
]  # fmt: skip


def test_a_decision_goes_through_json():
    agent = taught(MODELS["vectors"], half_life=7.0)
    agent.now = 3.0
    decision = agent.decision(CONTEXT, k=2, among=["f", "a/e", "m/q"], exclude=("f",))
    row = json.loads(json.dumps(decision.to_dict()))
    assert list(row) == KEYS
    assert row == decision.to_dict()
    assert row["context"] == CONTEXT.tolist()
    assert (row["among"], row["exclude"]) == (["f", "a/e", "m/q"], ["f"])
    assert (row["at"], row["version"]) == (3.0, bough.__version__)
    assert row["n_observations"] == agent.posterior.n_observations
    assert row["propensity"] == decision.propensities[0] == 1.0
    assert uuid.UUID(row["decision_id"]).version == 4
    assert uuid.UUID(row["decision_id"]).variant == uuid.RFC_4122
    assert uuid.UUID(row["decision_id"]).hex == row["decision_id"]
    assert agent.decision(CONTEXT, samples=0).decision_id != decision.decision_id
    assert decision.scores[0] >= decision.scores[1]


def test_names_and_times_that_json_lacks_become_lists_and_text():
    tree = bough.Tree.from_parents([-1, 0, 0], names=["root", (1, date(2026, 1, 2)), 3])
    agent = bough.HierTS(bough.GaussianModel(tree), seed=0)
    agent.now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    row = agent.decision(among=[(1, date(2026, 1, 2))]).to_dict()
    assert row["action"] == [1, "2026-01-02"]
    assert row["at"] == "2026-03-01T12:00:00+00:00"
    json.dumps(row)


def test_scores_are_those_of_the_draw():
    agent = bough.HierTS(bough.GaussianModel(UNEVEN), seed=0, search=False)
    draw = UNEVEN.at_leaves(agent.posterior.sample(copy.deepcopy(agent._rng)))
    decision = agent.decision(k=3)
    assert decision.scores == np.sort(draw)[:-4:-1].tolist()


def test_without_samples_there_is_no_propensity():
    decision = taught(MODELS["numbers"]).decision(samples=0)
    assert decision.propensity is decision.propensities is decision.propensity_error is None
    assert decision.to_dict()["propensity"] is None


def test_a_decision_is_as_it_was_made():
    decision = taught(MODELS["numbers"]).decision(samples=0)
    with pytest.raises(AttributeError):
        decision.action = "f"


# -- stale names -----------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [bough.HierTS, bough.Greedy, bough.BetaTS])
def test_missing_names_can_be_ignored(policy):
    agent = taught(MODELS["clicks"], policy)
    assert agent.decide(among=["sold out", "f"], missing="ignore") == "f"
    assert agent.decide(exclude=["sold out"], missing="ignore") in UNEVEN.actions
    assert sorted(agent.decide(k=9, among=["f", "a/e", "gone"], missing="ignore", at_most=True)) == ["a/e", "f"]
    assert len(agent.decide(k=99, exclude=["f"], at_most=True)) == 10
    decision = agent.decision(k=9, among=["f", "a/e", "gone"], missing="ignore", at_most=True)
    assert decision.propensities == [1.0, 1.0]
    assert decision.among == ["f", "a/e", "gone"]


BAD = {
    "unknown": (lambda a: a.decide(among=["f", "gone"]), KeyError, "unknown action 'gone'"),
    "none is there": (
        lambda a: a.decide(among=["gone"], missing="ignore"), ValueError, r"among is \['gone'\], and none of these",
    ),
    "a category": (lambda a: a.decide(among=["a/b"], missing="ignore"), KeyError, "not an action but a category"),
    "missing": (lambda a: a.decide(missing="skip"), ValueError, "missing is 'skip'"),
    "at_most": (lambda a: a.decide(k=2, at_most="yes"), ValueError, "at_most is 'yes'"),
    "k": (lambda a: a.decision(k=12), ValueError, "give at most 11"),
    "samples": (lambda a: a.decision(samples=-1), ValueError, "samples is -1"),
    "no samples": (lambda a: a.propensity(["f"], samples=0), ValueError, "samples is 0"),
    "propensity's k": (lambda a: a.propensity(["f"], k=3, among=["f", "a/e"]), ValueError, "give at most 2"),
    "propensity of the unknown": (lambda a: a.propensity(["gone"]), KeyError, "unknown action 'gone'"),
    "propensity's seed": (lambda a: a.propensity(["f"], seed="x"), ValueError, "the seed is 'x'"),
    "context": (lambda a: a.decision(context=[1.0]), ValueError, "without contexts"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_what_is_wrong_is_refused_and_no_random_number_is_used(what):
    call, kind, text = BAD[what]
    agent = taught(MODELS["numbers"])
    state = agent._rng.bit_generator.state
    with pytest.raises(kind, match=text):
        call(agent)
    assert agent._rng.bit_generator.state == state


# -- explained -------------------------------------------------------------------------------------


def test_a_decision_is_explained_in_its_own_context():
    agent = taught(MODELS["clicks in contexts"])
    decision = agent.decision(CONTEXT, k=2, samples=50)
    found, plain = agent.explain(decision), agent.posterior.explain(decision.action, CONTEXT)
    assert found.nodes == plain.nodes
    assert plain.note == ""
    score = 1.0 / (1.0 + np.exp(-decision.scores[0]))  # on the scale of the rewards, as all of the table
    assert f"a score of {score:.1f}" in found.note
    assert f"a propensity of {decision.propensity:.2g}" in found.note
    assert str(found) == f"{plain}\n{found.note}"
    assert (
        agent.explain(decision.actions[1], CONTEXT).nodes == agent.posterior.explain(decision.actions[1], CONTEXT).nodes
    )


def test_a_decision_without_a_propensity_is_explained_without_one():
    agent = taught(MODELS["numbers"], bough.Greedy)
    found = agent.explain(agent.decision(samples=0))
    assert found.name == agent.decide()
    assert "score" in found.note
    assert "propensity" not in found.note


def test_a_decision_given_for_an_action_is_told_where_its_action_is():
    agent = taught(MODELS["numbers"])
    for update in (agent.update, agent.posterior.update):
        with pytest.raises(ValueError, match=r"decision\.action"):
            update(agent.decision(samples=0), 1.0)


def test_what_cannot_be_explained_is_refused():
    agent = taught(MODELS["vectors"])
    decision = agent.decision(CONTEXT, samples=0)
    with pytest.raises(ValueError, match="a decision has its own context"):
        agent.explain(decision, CONTEXT)
    with pytest.raises(KeyError, match="nowhere"):
        agent.explain("nowhere", CONTEXT)
    with pytest.raises(ValueError, match="context"):
        agent.explain("f")


def test_the_score_of_greedy_is_an_expected_reward_and_shown_as_it_is():
    agent = bough.Greedy(bough.PoissonModel(bough.Tree.from_nested(["f", "g"]), mean=1.0), seed=0)
    agent.update(["f"] * 4, [3, 4, 5, 3])
    decision = agent.decision(samples=0)
    found = agent.explain(decision)
    assert decision.scores[0] == pytest.approx(found.nodes[-1].reward)
    width = found.nodes[-1].high - found.nodes[-1].low
    assert found.note == f"chosen with a score of {rounded(decision.scores[0], width)}"
