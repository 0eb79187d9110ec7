"""Agents with crossed factors: decisions have the exact law, and everything an agent does works."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import bough
import file_parts
from bough import _storage
from bough.inference.oracles.dense import DensePosterior

TREE = bough.Tree.from_nested({"kitchen": ["kettle", "toaster", "mug"], "garden": ["spade", "rake"]})
DRAWS = 40_000


def shop():
    factors = {
        "brand": bough.Factor(
            {"kettle": "Acme", "spade": "Acme", "toaster": "Bolt", "mug": ["Bolt", "Acme"]}, variance=0.6
        ),
        "store": bough.Factor(levels=["north", "south"], variance=0.4, at_decision=True),
    }
    return bough.GaussianModel(TREE, 0.1, bough.by_depth([0.3, 0.4, 0.5]), 0.6, factors=factors)


ROWS = (
    ["kettle", "spade", "kettle", "rake", "toaster"],
    [0.8, 0.5, 0.2, -0.1, 0.3],
    {"store": ["north", "south", "north", "north", "south"]},
)


def taught(policy=bough.HierTS, seed=0, **options):
    agent = policy(shop(), seed=seed, **options)
    agent.update(ROWS[0], ROWS[1], factors=ROWS[2])
    return agent


def exact_draws(n, seed=1, scale=1.0):
    """(n, K) the scores of draws from the oracle's joint law."""
    dense = DensePosterior(shop())
    dense.update(ROWS[0], ROWS[1], factors=ROWS[2])
    rows = dense.score_root()
    centre, root = rows @ dense.mean, rows @ dense.joint_root
    return centre + scale * np.random.default_rng(seed).standard_normal((n, root.shape[1])) @ root.T


def same_law(found, wanted):
    """Two samples of categories, by chi-squared: false alarm 1e-4."""
    names = sorted(set(found) | set(wanted), key=str)
    table = [[column.count(name) for name in names] for column in (found, wanted)]
    assert stats.chi2_contingency(np.array(table) + 1).pvalue > 1e-4


@pytest.mark.parametrize("explore", [1.0, 0.5])
def test_decisions_have_the_law_of_the_oracles_draws(explore):
    agent = taught(explore=explore)
    actions = np.asarray(TREE.actions)
    found = [agent.decide() for _ in range(DRAWS)]
    best = exact_draws(DRAWS, scale=explore).argmax(axis=1)
    same_law(found, actions[best].tolist())


def test_slates_restrictions_and_retired_actions_have_it_too():
    actions = np.asarray(TREE.actions)
    scores = exact_draws(DRAWS)
    places = {name: i for i, name in enumerate(actions.tolist())}
    agent = taught()
    top = np.argsort(-scores, axis=1)[:, :2]
    same_law([tuple(agent.decide(k=2)) for _ in range(DRAWS)], [tuple(row) for row in actions[top].tolist()])
    few = ["kettle", "rake", "mug"]
    among = scores[:, [places[name] for name in few]].argmax(axis=1)
    same_law([agent.decide(among=few) for _ in range(DRAWS)], np.asarray(few)[among].tolist())
    agent.retire("mug")
    left = [name for name in actions.tolist() if name not in ("mug", "spade")]
    rest = scores[:, [places[name] for name in left]].argmax(axis=1)
    same_law([agent.decide(exclude=["spade"]) for _ in range(DRAWS)], np.asarray(left)[rest].tolist())
    same_law(agent.decide_many(DRAWS, among=left), np.asarray(left)[rest].tolist())


@pytest.mark.parametrize("question", [{}, {"k": 2}, {"among": ["kettle", "rake", "mug"]}, {"exclude": ["mug"]}])
def test_propensities_are_how_often_it_happens(question):
    agent = taught()
    scores, actions = exact_draws(200_000), TREE.actions
    kept = [i for i, name in enumerate(actions) if name in question.get("among", actions)]
    kept = [i for i in kept if actions[i] not in question.get("exclude", [])]
    order = np.argsort(-scores[:, kept], axis=1)[:, : question.get("k", 1)]
    names = [actions[i] for i in kept]
    found = agent.propensity(names, samples=20_000, seed=5, **question)
    truth = np.array([(order == i).any(axis=1).mean() for i in range(len(kept))])
    error = np.sqrt(found.standard_error**2 + truth * (1 - truth) / len(scores))
    assert (np.abs(found.probability - truth) < 4.5 * error + 1e-12).all()  # false alarm below 1e-4 in all
    with_store = agent.propensity(names, samples=20_000, seed=5, factors={"store": "north"}, **question)
    assert with_store.probability == pytest.approx(found.probability, abs=1e-9)  # it cancels


def test_the_probability_of_being_best_is_estimated_and_says_so():
    best = taught().best(samples=20_000, seed=2)
    truth = np.bincount(exact_draws(200_000).argmax(axis=1), minlength=5) / 200_000
    assert best.method == "sampled"
    assert (np.abs(best.probability - truth) < 4.5 * best.standard_error + 0.005).all()
    assert best.mean_reward == pytest.approx(taught().posterior.action_moments()[0])


def test_greedy_and_bayes_ucb_go_by_scores():
    mean, variance = taught().posterior.action_moments()
    assert taught(bough.Greedy).decide() == TREE.actions[int(mean.argmax())]
    quantile = stats.norm.ppf(1 - 1 / 6)
    assert taught(bough.BayesUCB).decide() == TREE.actions[int((mean + quantile * np.sqrt(variance)).argmax())]


@pytest.mark.parametrize("policy", [bough.TS, bough.FlatTS])
def test_policies_without_the_tree_refuse_factors_with_the_reason(policy):
    with pytest.raises(
        ValueError, match=r"TS takes .* in a model with crossed factors, and .* 'brand', 'store'; .*use HierTS"
    ):
        policy(shop())


def test_a_logged_decision_names_its_store_and_can_be_explained():
    agent = taught()
    decision = agent.decision(factors={"store": "north"})
    assert decision.to_dict()["factors"] == {"store": "north"}
    assert "factors" not in agent.decision().to_dict()
    explanation = agent.explain(decision)
    assert [(one.factor, one.level) for one in explanation.effects][-1] == ("store", "north")
    text = str(agent.explain("kettle", factors={"store": "north"}))
    assert "brand Acme" in text
    assert "store north" in text
    frame = agent.posterior.effects("brand", "polars")
    acme = next(one for one in agent.explain("kettle").effects if one.level == "Acme")
    assert acme.mean == pytest.approx(frame["mean"][0])
    assert acme.observations == 3  # kettle twice, spade once


def test_a_file_goes_on_where_the_agent_stood(tmp_path):
    for agent in (taught(refit=True), taught(bough.Greedy), taught(bough.BayesUCB), taught(half_life=5.0)):
        agent.save(tmp_path / "agent.bough")
        again = type(agent).load(tmp_path / "agent.bough")
        assert again.posterior.action_moments()[0] == pytest.approx(agent.posterior.action_moments()[0], abs=1e-12)
        for one in (agent, again):
            one.update("mug", 2.0, factors={"store": "south"})
        assert [again.decide() for _ in range(20)] == [agent.decide() for _ in range(20)]


def test_an_older_bough_refuses_files_with_factors_and_reads_the_others(tmp_path):
    """And files that were written before they had versions of their own are still read."""
    store = {"store": ["north"]}
    agent, plain = taught(refit=True), bough.HierTS(bough.GaussianModel(TREE), seed=0, refit=True)
    sums = bough.Statistics.from_rows
    path = tmp_path / "file.bough"
    for kind, old, with_factors, without in (
        ("model", 1, agent.posterior.model, plain.posterior.model),
        ("model", 1, bough.GaussianModel(TREE, drift=9.0), plain.posterior.model),
        ("posterior", 2, agent.posterior, plain.posterior),
        ("agent", 2, agent, plain),
        ("statistics", 1, sums(["kettle"], [1.0], factors=store), sums(["kettle"], [1.0])),
    ):
        without.save(path)
        with _storage.read(path, kind, old) as contents:
            assert contents.header["version"] == old
        with_factors.save(path)
        with (
            pytest.raises(ValueError, match=f"has format version {old + 1}; this bough reads up to {old}"),
            _storage.read(path, kind, old),
        ):
            pass
        type(with_factors).load(path)
        file_parts.change(path, {"version": old})
        assert str(type(with_factors).load(path)) == str(with_factors)


def test_a_refit_after_loading_is_that_of_the_agent_that_was_saved(tmp_path):
    agent = taught(refit=True)
    rng = np.random.default_rng(0)

    def reward(*agents, n):
        for _ in range(n):
            action, store, reward = str(rng.choice(TREE.actions)), str(rng.choice(["north", "south"])), rng.normal()
            for one in agents:
                one.update(action, reward, factors={"store": store})

    def variances(one):
        model = one.posterior.model
        return [factor.variance for factor in model.factors.values()] + [*model.classes.table, model.noise_variance]

    reward(agent, n=20)
    assert agent.posterior.model.factors["brand"].variance != 0.6  # which a refit changed
    path = tmp_path / "agent.bough"
    agent.save(path)
    again = bough.HierTS.load(path)
    reward(agent, again, n=30)
    assert variances(again) == pytest.approx(variances(agent), rel=1e-10)
    for odd in ([0.6, -1.0], [0.6], [0.6, np.nan]):
        file_parts.change(path, given_factors=np.array(odd))
        with pytest.raises(ValueError, match="is not a complete agent file"):
            bough.HierTS.load(path)
    file_parts.change(path, given_factors=None)  # as it was before they were kept
    assert bough.HierTS.load(path)._refit._given.factors["brand"].variance != 0.6


def test_rewards_fade_by_the_clock():
    agent = taught(half_life=2.0)
    agent.now = 0.0
    agent.now = 2.0
    half = bough.Posterior(shop())
    half.absorb(
        bough.Statistics(
            *(np.asarray(column) for column in (["kettle", "spade", "rake", "toaster"], [1.0, 0.5, 0.5, 0.5])),
            sum_y=[0.5, 0.25, -0.05, 0.15],
            sum_yy=[0.34, 0.125, 0.005, 0.045],
            factors={"store": ["north", "south", "north", "south"]},
        )
    )
    assert agent.posterior.action_moments()[0] == pytest.approx(half.action_moments()[0], rel=1e-9)


def test_the_store_adds_its_mean_effect_to_every_score_of_a_quantile():
    agent = taught(bough.BayesUCB)
    effects = agent.posterior.effects("store", "polars")
    mean = dict(zip(effects["level"], effects["mean"], strict=True))
    without = agent.decision(k=5)
    for store in ("north", "south"):
        found = agent.decision(k=5, factors={"store": store})
        assert found.actions == without.actions
        assert found.scores == pytest.approx([score + mean[store] for score in without.scores], abs=1e-12)


def test_several_levels_are_added_or_none():
    agent = taught()
    known = agent.posterior.model.factors["brand"].levels
    for levels, message in (
        (["Newco", known[0]], f"'brand' has a level '{known[0]}' already"),
        (["Newco", "Newco"], "'brand' has a level 'Newco' already"),
        (["Newco", None], "is None, a NoneType"),
    ):
        with pytest.raises(ValueError, match=message):
            agent.add_level("brand", levels)
        assert agent.posterior.model.factors["brand"].levels == known
    mean = agent.posterior.action_moments()[0]
    agent.add_level("brand", ["Newco", 7, ("Newco", 7)])
    assert agent.posterior.model.factors["brand"].levels == (*known, "Newco", 7, ("Newco", 7))
    assert agent.posterior.action_moments()[0] == pytest.approx(mean, abs=1e-12)


def test_the_catalogue_lives_with_brands():
    agent = taught()
    agent.add("pan", under="kitchen", factors={"brand": "Acme"})
    agent.add(["hoe", "pot"], under="garden", factors={"brand": ["Bolt", ["Bolt", "Acme"]]})
    agent.add("fork", under="garden")
    effects = agent.posterior.model.effects
    names = list(agent.posterior.model.tree.actions)
    assert [effects.of_action(names.index(name)).tolist() for name in ("pan", "hoe", "pot", "fork")] == [
        [0],
        [1],
        [0, 1],
        [],
    ]
    mean = dict(zip(names, agent.posterior.action_moments()[0].tolist(), strict=True))
    assert mean["pan"] > mean["fork"]  # Acme did well
    with pytest.raises(KeyError, match=r"unknown level 'Newco' of 'brand'.*add_level"):
        agent.add("whisk", under="kitchen", factors={"brand": "Newco"})
    agent.add_level("brand", "Newco")
    agent.add("whisk", under="kitchen", factors={"brand": "Newco"})
    agent.update("whisk", 3.0, factors={"store": "north"})
    agent.add_level("store", "east")
    agent.update("whisk", 3.0, factors={"store": "east"})
    agent.move("whisk", under="garden")
    table = bough.Tree.from_nested({"kitchen": ["kettle", "toaster", "jug"], "garden": ["spade", "whisk"]})
    before = agent.posterior.n_observations
    changes = agent.adopt(
        table, factors={"brand": {"kettle": "Zed", "toaster": "Bolt", "jug": "Acme", "whisk": "Newco"}}
    )
    assert changes.added == ["jug"]
    assert agent.posterior.n_observations == before
    effects = agent.posterior.model.effects
    names = list(agent.posterior.model.tree.actions)
    brands = effects.factor("brand").levels
    found = {name: [brands[one] for one in effects.of_action(names.index(name)).tolist()] for name in names}
    assert found["kettle"] == ["Zed"]
    assert found["jug"] == ["Acme"]
    assert found["spade"] == ["Acme"]  # which the mapping leaves out, so that it keeps it
    assert found["mug"] == ["Acme", "Bolt"]  # gone from the table, retired, and what it taught stays
    twin = bough.Posterior(agent.posterior.model)
    twin.absorb(agent.posterior.statistics)
    assert agent.posterior.action_moments()[0] == pytest.approx(twin.action_moments()[0], rel=1e-9, abs=1e-9)
    agent.adopt(bough.Tree.from_nested({"kitchen": ["kettle", "jug", "ladle"]}))
    effects, names = agent.posterior.model.effects, list(agent.posterior.model.tree.actions)
    assert effects.of_action(names.index("ladle")).tolist() == []  # unlabelled
    assert [effects.factor("brand").levels[i] for i in effects.of_action(names.index("jug")).tolist()] == ["Acme"]


def test_refits_learn_the_factors_variances(tmp_path):
    rng = np.random.default_rng(3)
    tree = bough.Tree.balanced(6, 2)
    brands = rng.integers(8, size=36)
    truth = bough.GaussianModel(
        tree, 1.0, bough.by_depth([0.0, 0.2, 0.1]), 0.3, factors={"brand": bough.Factor(brands, variance=2.0)}
    )
    drawn = truth.draw(rng, effects=True)
    scores = drawn[tree.leaves] + truth.effects.totals(drawn[tree.n_nodes :])
    start = bough.GaussianModel(
        tree, 0.0, bough.by_depth([0.0, 1.0, 1.0]), 1.0, factors={"brand": bough.Factor(brands, variance=0.1)}
    )
    agent = bough.HierTS(start, seed=0, refit=True)
    places = rng.integers(36, size=640)
    for place in places:
        agent.update(int(tree.leaves[place]), float(scores[place] + rng.normal() * 0.3**0.5))
    learned = agent.posterior.model.factors["brand"].variance
    assert 0.5 < learned < 8.0
    assert agent.posterior.model.noise_variance == pytest.approx(0.3, rel=0.2)
    agent.add_level("brand", 99)
    agent.add("new", under=1, factors={"brand": 99})
    agent.save(tmp_path / "agent.bough")
    again = bough.HierTS.load(tmp_path / "agent.bough")
    assert again.posterior.model.factors["brand"].levels[-1] == 99


def test_one_bad_row_changes_nothing():
    agent = taught()
    mean = agent.posterior.action_moments()[0].copy()
    for action, reward, factors, message in (
        (["kettle", "mug"], [1.0, 2.0], {"store": ["north", "east"]}, "unknown level 'east'"),
        ("kettle", 1.0, None, "the levels of 'store' are missing"),
        ("kettle", 1.0, {}, "the levels of 'store' are missing"),
        ("kettle", 1.0, {"store": "north", "brand": "Acme"}, "'brand' is a factor of the actions"),
        ("kettle", 1.0, {"store": "north", "shelf": 3}, "'shelf', which is no factor of the decision"),
        ("kettle", 1.0, "north", "give a mapping"),
        (["kettle"], [1.0], {"store": ["north", "south"]}, "give 1, one for each reward"),
        (["kettle", "kettel"], [1.0, 2.0], {"store": "north"}, "unknown action 'kettel'"),
        ("kettle", float("nan"), {"store": "north"}, "nan"),
    ):
        with pytest.raises((ValueError, KeyError), match=message):
            agent.update(action, reward, factors=factors)
    with pytest.raises(ValueError, match="the model has none"):
        bough.HierTS(bough.GaussianModel(TREE), seed=0).update("kettle", 1.0, factors={"store": "north"})
    with pytest.raises(ValueError, match="the model has none"):
        bough.HierTS(bough.GaussianModel(TREE), seed=0).decide(factors={"store": "north"})
    with pytest.raises(ValueError, match="the levels of 'store' are missing"):
        agent.absorb(bough.Statistics.from_rows(["kettle"], [1.0]))
    assert (agent.posterior.action_moments()[0] == mean).all()


def test_simulations_draw_brands_and_stores_and_are_the_same_whatever_the_jobs():
    model = shop()
    plan = {"HierTS": bough.HierTS, "Greedy": bough.Greedy, "UCB": bough.BayesUCB}
    one, two = (bough.simulate(model, plan, rounds=60, runs=4, seed=3, jobs=jobs) for jobs in (1, 2))
    for name in plan:
        assert (one.regret[name] == two.regret[name]).all()
        assert (np.diff(one.regret[name], axis=1) >= -1e-12).all()


def test_knowing_both_beats_knowing_one():
    """What the factor is for, in a small shop: with these seeds by more than three standard errors."""
    tree = bough.Tree.balanced(5, 2)
    brands = np.random.default_rng(0).integers(5, size=25)
    both = bough.GaussianModel(
        tree, 0.0, bough.by_depth([0.0, 1.0, 0.1]), 1.0, factors={"brand": bough.Factor(brands, variance=1.0)}
    )
    alone = bough.GaussianModel(tree, 0.0, bough.by_depth([0.0, 1.0, 1.1]), 1.0)
    run = bough.simulate(
        both, {"both": bough.HierTS, "tree": lambda model, seed: bough.HierTS(alone, seed)}, rounds=300, runs=40, seed=0
    )
    gap = run.regret["tree"][:, -1] - run.regret["both"][:, -1]
    assert gap.mean() > 3.0 * gap.std(ddof=1) / np.sqrt(len(gap))


def test_what_does_not_know_of_factors_says_so():
    agent = taught()
    with pytest.raises(ValueError, match="crossed factors"):
        bough.theory.regret_bound(shop(), rounds=100)
    with pytest.raises(ValueError, match="crossed factors"):
        bough.problems.drifting(shop(), 100.0)
    with pytest.raises(ValueError, match="crossed factors"):
        bough.batch.Scorer(agent.posterior, device="cpu")


def test_a_mapping_of_a_new_table_speaks_of_its_own_actions_and_a_column_of_all():
    table = bough.Tree.from_nested({"kitchen": ["pot", "toaster", "mug", "new"], "garden": ["spade", "rake"]})
    agent = taught()
    agent.adopt(table, renamed={"kettle": "pot"}, factors={"brand": {"new": "Newco", "mug": None}})
    assert brands_of(agent) == {
        "pot": ["Acme"], "toaster": ["Bolt"], "mug": [], "new": ["Newco"], "spade": ["Acme"], "rake": []
    }  # fmt: skip
    agent = taught()
    agent.adopt(table, renamed={"kettle": "pot"}, factors={"brand": [None] * 5 + ["Acme"]})
    assert brands_of(agent) == {name: [] for name in table.actions} | {table.actions[5]: ["Acme"]}


def test_a_posterior_that_has_observed_nothing_takes_any_factors():
    plain = bough.GaussianModel(TREE, factors={"brand": bough.Factor({"kettle": "Acme"})})
    assert bough.Posterior(plain).on(shop()).n_observations == 0
    agent = bough.HierTS(plain, seed=0)
    agent.adopt(shop())
    agent.update("kettle", 1.0, factors={"store": "north"})
    assert agent.posterior.on(bough.GaussianModel(TREE)).n_observations == 1  # levels that are not wanted add up


def test_many_are_forgotten_at_once():
    agent, other = taught(), bough.HierTS(shop(), seed=0)
    agent.forget(["kettle", "spade", "mug"])
    other.update(["rake", "toaster"], [-0.1, 0.3], factors={"store": ["north", "south"]})
    assert agent.posterior.action_moments()[0] == pytest.approx(other.posterior.action_moments()[0], abs=1e-9)


def brands_of(agent):
    effects, names = agent.posterior.model.effects, list(agent.posterior.model.tree.actions)
    levels = effects.factor("brand").levels
    return {name: [levels[i] for i in effects.of_action(names.index(name)).tolist()] for name in names}


TONIGHT = bough.Tree.from_nested({"kitchen": ["kettle", "toaster", "mug", "jug"], "garden": ["spade", "rake"]})


def test_the_factors_of_a_model_hand_its_labels_on():
    agent, first = taught(), shop().factors
    assert first["brand"].labelled == [name for name in TREE.actions if name != "rake"]
    assert first["store"].labelled is None
    agent.adopt(TREE, factors={"brand": {"rake": "Newco", "kettle": "Bolt"}})
    agent.add("jug", under="kitchen", factors={"brand": "Newco"})
    more = {**first, "store": bough.Factor(levels=["south", "east"], at_decision=True)}
    for factors in (first, more):
        agent.adopt(TONIGHT.edited(remove=["mug"]), factors=factors)
    wanted = {"kettle": ["Acme"], "toaster": ["Bolt"], "mug": ["Acme", "Bolt"], "spade": ["Acme"]}
    assert brands_of(agent) == {**wanted, "rake": ["Newco"], "jug": ["Newco"]}  # which the first model had none of
    assert agent.posterior.model.factors["store"].levels == ("north", "south", "east")
    assert agent.posterior.model.factors["brand"].variance == 0.6
    agent.update("jug", 1.0, factors={"store": "east"})


def test_labels_of_a_new_table_are_a_mapping_from_factors_of_their_kind():
    agent = taught()
    brand = {"kettle": "Acme"}
    for factors, message in (
        ([brand], r"factors is \[.*\]; give a mapping, such as {\"brand\": "),
        ("brand", "factors is 'brand'; give a mapping"),
        (5, "factors is 5; give a mapping"),
        (pl.DataFrame({"brand": ["Acme"]}), "give a mapping"),
        (bough.Factor(brand), "give a mapping"),
        ({"brand": bough.Factor(levels=["q"], at_decision=True)}, "one of the decision was given; give the labels of"),
        ({"store": brand}, "'store' is a factor of the decision"),
        ({"store": bough.Factor(brand)}, "'store' is a factor of the decision"),
        ({"brand": bough.Factor({"kettel": "Acme"})}, "did you mean 'kettle'"),
    ):
        with pytest.raises((ValueError, KeyError), match=message):
            agent.adopt(TONIGHT, factors=factors)
    assert brands_of(agent) == brands_of(taught())


@pytest.mark.parametrize(
    ("level", "message"),
    [
        (None, "the level of 'store' is None, a missing value; it has 'north', 'south'"),
        (float("nan"), "the level of 'store' is nan, a missing value; it has"),
        (pd.NA, "the level of 'store' is <NA>, a missing value; it has"),
        (True, "the level of 'store' is True, a bool; a level is text"),
        (1.5, "the level of 'store' is 1.5, a float; a level is text"),
        ({"north"}, "the level of 'store' is {'north'}, a set"),
    ],
    ids=str,
)
def test_what_is_no_level_is_not_called_a_new_one(level, message):
    agent = taught()
    calls = [
        lambda: agent.update("kettle", 1.0, factors={"store": level}),
        lambda: agent.update(["kettle", "mug"], [1.0, 2.0], factors={"store": ["north", level]}),
        lambda: agent.decide(factors={"store": level}),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=re.escape(message)) as caught:
            call()
        assert "add_level" not in str(caught.value)
    with pytest.raises(ValueError, match=r"the level of 'store' is .*; a level is text"):
        agent.add_level("store", level)


def test_a_level_of_several_is_no_level():
    with pytest.raises(ValueError, match=r"the level of 'store' is \['north'\], a list; a level is text"):
        taught().decide(factors={"store": ["north"]})
    with pytest.raises(ValueError, match=r"the factor 'brand': a level is 1.5, a float"):
        taught().adopt(TONIGHT, factors={"brand": {"kettle": 1.5}})
    with pytest.raises(ValueError, match=r"the factor 'brand': a level is 1.5, a float"):
        taught().add("whisk", "kitchen", factors={"brand": 1.5})


def test_a_model_without_a_level_that_was_observed_needs_it_among_its_levels():
    fewer = {**shop().factors, "store": bough.Factor(levels=["south"], at_decision=True)}
    model = bough.GaussianModel(TREE, factors=fewer)
    agent = taught()
    for call in (lambda: agent.adopt(model), lambda: agent.posterior.on(model)):
        with pytest.raises(
            KeyError, match=r"unknown level 'north' of 'store', which rewards .*: put it into the lev"
        ) as it:
            call()
        assert "add_level" not in str(it.value)
    log = bough.Statistics.from_rows(ROWS[0], ROWS[1], factors=ROWS[2])
    with pytest.raises(KeyError, match="it has 'south': put it into the levels of the factor"):
        bough.fit_prior(TREE, log, factors=fewer)


def test_a_frame_is_no_mapping_from_factors():
    frame, plain = pl.DataFrame({"store": ["north"]}), bough.GaussianModel(TREE)
    log = bough.Statistics.from_rows(["kettle"], [1.0])
    for call in (
        lambda: bough.TS(plain, seed=0).adopt(TONIGHT, factors=frame),
        lambda: bough.HierTS(plain, seed=0).update("kettle", 1.0, factors=frame),
        lambda: taught().update("kettle", 1.0, factors=frame),
        lambda: taught().decide(factors=frame),
        lambda: bough.GaussianModel(TREE, factors=frame),
        lambda: bough.Statistics.from_rows(["kettle"], [1.0], factors=frame),
        lambda: bough.fit_prior(TREE, log, factors=frame),
    ):
        with pytest.raises(
            ValueError, match=r"^factors is shape: \(1, 1\).*; (give a mapping|leave it out).*$"
        ) as caught:
            call()
        assert "\n" not in str(caught.value)
