"""Which search an agent's decisions take, what it remembers of them, and that those who look on change nothing."""

import numpy as np
import pytest
from scipy.stats import chi2

import bough
import file_parts
from bough.inference.pace import FEWEST, LOOK, PAYS, TUNE, Pace

TREE = bough.Tree.balanced(21, 3)  # 9,724 nodes


def touched(model, seed=0, kind=bough.HierTS, rounds=60, **options):
    """An agent that has tried everything, and decided often enough for the capped search."""
    agent, rng = kind(model, seed=seed, **options), np.random.default_rng(seed)
    truth = model.draw(rng)[TREE.leaves]
    agent.update(TREE.leaves.tolist(), [earned(model, score, rng) for score in truth])
    for _ in range(rounds):
        action = agent.decide()
        agent.update(action, earned(model, truth[np.searchsorted(TREE.leaves, action)], rng))
    return agent


def earned(model, score, rng):
    if model.kind.is_conjugate:
        return float(score + model.likelihood.noise_deviation * rng.normal())
    mean = float(model.likelihood.mean_reward(score))
    return float(rng.random() < mean if isinstance(model, bough.BernoulliModel) else rng.poisson(mean))


def switch(agent):
    return agent.posterior._search_state.switch


@pytest.mark.parametrize("kind", [bough.HierTS, bough.FlatTS, bough.TS])
def test_the_capped_search_takes_over_where_much_is_touched(kind):
    agent = touched(bough.GaussianModel(TREE, noise_variance=0.1), kind=kind)
    assert (switch(agent)._capped is not None) == (agent.posterior._engine.slots.count >= FEWEST)
    few = kind(bough.GaussianModel(TREE), seed=0)
    for _ in range(40):
        few.update(few.decide(), 1.0)
    assert switch(few)._capped is None


@pytest.mark.parametrize("model", [bough.BernoulliModel(TREE), bough.PoissonModel(TREE)])
def test_it_does_so_for_clicks_and_counts(model):
    assert switch(touched(model))._capped is not None


def test_searching_can_be_left_out():
    agent = touched(bough.GaussianModel(TREE), search=False)
    assert switch(agent)._capped is None
    assert agent.posterior.nodes_visited == 0


def test_the_same_seed_gives_the_same_decisions():
    one, other = (touched(bough.GaussianModel(TREE, noise_variance=0.1), seed=3) for _ in range(2))
    assert [one.decide(k=2) for _ in range(100)] == [other.decide(k=2) for _ in range(100)]


@pytest.mark.parametrize("stale", [False, True])
def test_a_loaded_agent_makes_the_same_next_decisions(tmp_path, stale):
    agent = touched(bough.GaussianModel(TREE, noise_variance=0.1), rounds=300, half_life=50.0)
    agent.retire(TREE.leaves[:3].tolist())
    if stale:
        agent.now = 0.0
        agent.now = 1.0
    assert switch(agent)._capped is not None
    agent.save(tmp_path / "agent.bough")
    again = bough.HierTS.load(tmp_path / "agent.bough")
    for _ in range(300):
        action = agent.decide()
        assert again.decide() == action
        agent.update(action, 0.5)
        again.update(action, 0.5)


def test_a_file_without_what_the_search_remembers_loads(tmp_path):
    agent = touched(bough.GaussianModel(TREE, noise_variance=0.1))
    agent.save(tmp_path / "agent.bough")
    file_parts.change(tmp_path / "agent.bough", {"search": None})
    again = bough.HierTS.load(tmp_path / "agent.bough")
    assert switch(again)._capped is None
    assert again.posterior.n_observations == agent.posterior.n_observations


@pytest.mark.parametrize(
    "spoilt",
    [
        {"search_references": np.array([3.0, 2.0, 1.0])},
        {"search_references": np.zeros(2)},
        {"search_caps": np.zeros((2, 2))},
        {"search_champions": np.array([-1], dtype=np.int32)},
        {"search_champions": np.array([0], dtype=np.int32)},
        {"search_touched": np.array([5, 5], dtype=np.int32)},
        {"search_bests": np.array([np.nan])},
    ],
)
def test_a_file_that_remembers_what_cannot_be_is_refused(tmp_path, spoilt):
    agent = touched(bough.GaussianModel(TREE, noise_variance=0.1))
    agent.save(tmp_path / "agent.bough")
    file_parts.change(tmp_path / "agent.bough", **spoilt)
    with pytest.raises(ValueError, match=r"agent\.bough"):
        bough.HierTS.load(tmp_path / "agent.bough")


@pytest.mark.parametrize(
    ("name", "value"),
    [("rest", -1), ("rest", 0.5), ("average", None), ("work", "much"), ("n_tunings", True), ("capped", 7)],
)
def test_a_header_that_remembers_what_cannot_be_is_refused(tmp_path, name, value):
    agent = touched(bough.GaussianModel(TREE, noise_variance=0.1))
    agent.save(tmp_path / "agent.bough")
    header = file_parts.header(tmp_path / "agent.bough")
    file_parts.change(tmp_path / "agent.bough", {"search": {**header["search"], name: value}})
    with pytest.raises(ValueError, match=r"agent\.bough"):
        bough.HierTS.load(tmp_path / "agent.bough")


def test_who_looks_on_changes_no_decision():
    model = bough.GaussianModel(TREE, noise_variance=0.1)
    one, other = (touched(model, seed=5) for _ in range(2))
    rng = np.random.default_rng(0)
    for i in range(200):
        action = one.decide()
        assert other.decide() == action
        reward = float(np.random.default_rng(i).normal())
        one.update(action, reward)
        other.update(action, reward)
        other.propensity([action], samples=8, seed=i)
        other.posterior._highest(rng)


def test_a_decision_is_made_with_the_numbers_that_decide_would_have_taken():
    model = bough.GaussianModel(TREE, noise_variance=0.1)
    one, other = (touched(model, seed=6) for _ in range(2))
    assert [one.decide() for _ in range(50)] == [other.decision(samples=16).action for _ in range(50)]


def test_propensities_of_the_capped_search_are_the_exact_ones():
    """Each within 5 standard errors: a false alarm once in a million runs."""
    agent = touched(bough.GaussianModel(TREE, noise_variance=0.5), rounds=400)
    best = agent.best()
    order = np.argsort(-best.probability)[[0, 1, 3, 10]]
    names = [TREE.actions[i] for i in order.tolist()]
    agent.posterior._answers.clear()  # or the exact ones would be known
    found = agent.propensity(names, samples=20_000, seed=1)
    assert found.method == "sampled"
    assert (np.abs(found.probability - best.probability[order]) < 5.0 * found.standard_error).all()
    two = agent.propensity(names, k=2, samples=4_000, seed=1)
    assert (two.probability >= found.probability - 5.0 * (two.standard_error + found.standard_error)).all()


def test_single_decisions_and_many_at_once_have_the_exact_probabilities():
    """By chi-squared, 10^5 decisions each, at a false-alarm rate of 1e-4."""
    agent = touched(bough.GaussianModel(TREE, noise_variance=0.5), rounds=400)
    probability = agent.best().probability
    assert switch(agent)._capped is not None
    many = agent._decided_many(100_000, None, None, "cpu", 2)[0]
    many_pairs = agent._decided_many(100_000, 2, None, "cpu", 2)[0][::2]
    single = [agent.decide() for _ in range(100_000)]
    assert switch(agent)._capped is not None
    for chosen in (many, many_pairs, single):
        assert as_likely(np.array(chosen), probability) > 1e-4


def as_likely(chosen, probability):
    """The p-value of choices being as likely as they should; rare ones are pooled."""
    found = np.bincount(np.searchsorted(TREE.leaves, chosen), minlength=len(probability))
    expected = len(chosen) * probability
    often = expected >= 10.0
    pooled = [*zip(found[often], expected[often], strict=True), (found[~often].sum(), expected[~often].sum())]
    return chi2.sf(sum((one - other) ** 2 / other for one, other in pooled), len(pooled) - 1)


def test_threads_change_nothing():
    model = bough.GaussianModel(TREE, noise_variance=0.1)
    one, other = (touched(model, seed=7) for _ in range(2))
    assert one.decide_many(2_000, jobs=1) == other.decide_many(2_000, jobs=3)
    assert [one.decide() for _ in range(20)] == [other.decide() for _ in range(20)]


# -- the pace --------------------------------------------------------------------------------------


def due(n_touched=10_000):
    pace = Pace()
    for _ in range(40):
        pace.after_plain(10_000, 10_000, 1.0)
    assert pace.is_due(n_touched)
    pace.begin()
    return pace


def test_the_capped_search_rests_longer_each_time_that_it_is_no_better():
    pace, rests = due(), []
    for _ in range(4):
        while pace.after_capped(9_000, 1.0, 10_000) != "rest":
            pass
        rests.append(pace.rest)
        while not pace.is_due(10_000):
            pace.after_plain(10_000, 10_000, 1.0)
        pace.begin()
    assert np.allclose(np.array(rests[1:]) / rests[:-1], 2.0)


def test_tuning_becomes_rarer_as_work_adds_up():
    pace, at = due(), []
    for i in range(200_000):
        if pace.after_capped(100, 1.0, 10_000) == "tune":
            at.append(i)
            pace.begin()
    gaps = np.diff(at)
    assert len(at) > 3
    assert (gaps[1:] > 1.8 * gaps[:-1]).all()


def test_more_work_than_usual_has_it_tuned():
    pace = due()
    pace.n_tunings = 50
    for _ in range(100):
        assert pace.after_capped(100, 1.0, 10_000) == "go on"
    n = 0
    while pace.after_capped(1_000, 1.0, 10_000) != "tune":
        n += 1
    assert n <= TUNE * 10_000 / LOOK / 700


def test_a_world_in_which_everything_changes_all_the_time_is_left_to_the_plain_search():
    pace = due()
    n_capped = 0
    for _ in range(20_000):
        if pace.is_due(10_000):
            pace.after_capped(50, 1.0, 10_000)
            n_capped += 1
            pace.after_change()
        else:
            pace.after_plain(10_000, 10_000, 1.0)
    assert n_capped < 20
    rare = due()
    for i in range(20 * PAYS):
        rare.after_capped(50, 1.0, 10_000)
        if i % (2 * PAYS) == 0 and i:
            rare.after_change()
    assert rare.rest == 0
