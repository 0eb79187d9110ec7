"""Names of features: kept wherever a model, its sums or its rows go, and contexts by name in any order."""

import copy
import pickle

import numpy as np
import pandas
import polars
import pyarrow
import pytest

import bough
import file_parts

TREE = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso", "filter"]})
NAMES = ("intercept", "age", "price")
MODELS = {
    "gaussian": bough.GaussianModel(TREE, [0.5, 0.0, 1.0], 2.0, 0.3, features=NAMES),
    "bernoulli": bough.BernoulliModel(TREE, [0.5, 0.0, 1.0], 2.0, features=NAMES),
    "poisson": bough.PoissonModel(TREE, [0.5, 0.0, 1.0], 0.5, features=NAMES),
}
GAUSSIAN = MODELS["gaussian"]
UNNAMED = bough.GaussianModel(TREE, [0.5, 0.0, 1.0], 2.0, 0.3)
ACTIONS, REWARDS = ["green", "black", "espresso", "green"], [1.0, 0.0, 1.0, 1.0]
AGES, PRICES = [0.3, -0.2, 1.5, 0.1], [1.0, 2.0, -1.0, 0.5]
ROWS = np.column_stack([np.ones(4), AGES, PRICES])
SHUFFLED = {"price": PRICES, "age": AGES}
TABLES = {
    "pandas": pandas.DataFrame(SHUFFLED),
    "polars": polars.DataFrame(SHUFFLED),
    "lazy polars": polars.LazyFrame(SHUFFLED),
    "pyarrow": pyarrow.table(SHUFFLED),
    "dict of columns": SHUFFLED,
    "list of dicts": [{"price": p, "age": a} for p, a in zip(PRICES, AGES, strict=True)],
    "list of Series": [pandas.Series({"price": p, "age": a}) for p, a in zip(PRICES, AGES, strict=True)],
    "with the intercept": pandas.DataFrame({"age": AGES, "intercept": 1.0, "price": PRICES}),
}
ONE = {
    "dict": {"price": 1.0, "age": 0.3},
    "Series": pandas.Series({"price": 1.0, "age": 0.3}),
    "row of a frame": pandas.DataFrame(SHUFFLED).iloc[0],
    "pandas": pandas.DataFrame(SHUFFLED)[:1],
    "polars": polars.DataFrame(SHUFFLED)[:1],
    "pyarrow": pyarrow.table(SHUFFLED)[:1],
    "numbers of numpy": {"age": np.float32(0.3), "price": np.int64(1)},
}


def observed(model, *rows):
    posterior = bough.Posterior(model)
    posterior.update(*(rows or (ACTIONS, REWARDS, ROWS)))
    return posterior


# -- contexts by name --------------------------------------------------------------------------------


def test_a_wrong_order_of_columns_no_longer_swaps_what_is_learned():
    rng = np.random.default_rng(0)
    visits = pandas.DataFrame({"age": rng.normal(size=400), "price": rng.normal(size=400)})
    rewards = 2.0 * visits["age"] - visits["price"]
    one = bough.Tree.from_nested(["buy"])
    by_name = bough.Posterior(bough.GaussianModel(one, [0.0, 0.0], noise_variance=0.01, features=["age", "price"]))
    by_name.update(["buy"] * 400, rewards, visits[["price", "age"]])
    np.testing.assert_allclose(by_name.mean[1], [2.0, -1.0], atol=1e-3)
    by_position = bough.Posterior(bough.GaussianModel(one, [0.0, 0.0], noise_variance=0.01))
    by_position.update(["buy"] * 400, rewards, visits[["price", "age"]].to_numpy())
    np.testing.assert_allclose(by_position.mean[1], [-1.0, 2.0], atol=1e-3)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("table", TABLES)
def test_rows_with_names_in_any_order_are_those_by_position(kind, table):
    named = observed(MODELS[kind], ACTIONS, REWARDS, TABLES[table])
    np.testing.assert_array_equal(named.mean, observed(MODELS[kind]).mean)


@pytest.mark.parametrize("one", ONE)
def test_one_context_with_names_is_that_by_position_wherever_one_is_taken(one):
    posterior, context, plain = observed(GAUSSIAN), ONE[one], np.array([1.0, 0.3, 1.0])
    if one == "numbers of numpy":
        plain[1] = np.float32(0.3)
    agent, twin = bough.HierTS.resume(posterior, 0), bough.HierTS.resume(copy.deepcopy(posterior), 0)
    for mine, theirs in (
        (posterior.action_moments(context), posterior.action_moments(plain)),
        (posterior.mean_reward(context), posterior.mean_reward(plain)),
        (posterior.best_actions(0, context), posterior.best_actions(0, plain)),
        (agent.propensity(["green"], context, seed=1), twin.propensity(["green"], plain, seed=1)),
    ):
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(a, b)
    assert posterior.to_frame(context=context, backend="polars").equals(
        posterior.to_frame(context=plain, backend="polars")
    )
    assert str(posterior.explain("green", context)) == str(posterior.explain("green", plain))
    assert [agent.decide(context) for _ in range(20)] == [twin.decide(plain) for _ in range(20)]
    assert agent.decision(context).actions == twin.decision(plain).actions
    agent.update("filter", 2.0, context)
    twin.update("filter", 2.0, plain)
    np.testing.assert_array_equal(agent.posterior.mean, twin.posterior.mean)
    agent.retract("filter", 2.0, context)
    assert agent.posterior.n_observations == 4


def test_many_decisions_and_simulations_take_frames():
    mine, twin = bough.HierTS(GAUSSIAN, 0), bough.HierTS(GAUSSIAN, 0)
    assert mine.decide_many(TABLES["polars"]) == twin.decide_many(ROWS)
    ways = (TABLES["pandas"], ROWS, lambda rng, n: polars.DataFrame(SHUFFLED)[rng.integers(4, size=n)])
    runs = [bough.simulate(GAUSSIAN, {"TS": bough.TS}, 5, 3, seed=0, jobs=1, contexts=way) for way in ways]
    np.testing.assert_array_equal(runs[0].regret["TS"], runs[1].regret["TS"])
    np.testing.assert_array_equal(runs[0].regret["TS"], runs[2].regret["TS"])
    world = bough.World(GAUSSIAN, np.zeros((4, 3)), np.zeros(4), TABLES["pandas"])
    np.testing.assert_array_equal(world.contexts, ROWS)


def test_a_series_without_names_goes_by_position():
    posterior = observed(GAUSSIAN)
    for bare in (
        pandas.Series([1.0, 0.3, 1.0]),
        polars.Series([1.0, 0.3, 1.0]),
        (1.0, 0.3, 1.0),
        pyarrow.array([1, 2, 3]),
    ):
        plain = np.asarray(bare, dtype=float)
        np.testing.assert_array_equal(posterior.action_moments(bare), posterior.action_moments(plain))


def test_a_frame_whose_columns_are_only_numbered_goes_by_position():
    frame = pandas.DataFrame(ROWS)
    np.testing.assert_array_equal(observed(GAUSSIAN, ACTIONS, REWARDS, frame).mean, observed(GAUSSIAN).mean)
    assert bough.Statistics.from_rows(ACTIONS, REWARDS, frame).features is None


def test_an_intercept_that_is_given_by_name_is_taken_as_it_is():
    posterior = observed(GAUSSIAN)
    given = posterior.action_moments({"intercept": 0.0, "age": 0.3, "price": 1.0})
    np.testing.assert_array_equal(given, posterior.action_moments([0.0, 0.3, 1.0]))


REFUSED = {
    "a missing name": ({"age": 1.0}, "lacks 'price'; give 'intercept', 'age', 'price'"),
    "an unknown name": ({"age": 1.0, "price": 1.0, "prize": 2.0}, "has 'prize', which the model does not know"),
    "a typing error": ({"age": 1.0, "prize": 2.0}, "lacks 'price', and has 'prize'"),
    "no names": ({}, "lacks 'age', 'price'"),
    "a name that is no text": ({"age": 1.0, "price": 1.0, 7: 2.0}, "has 7, which"),
    "the intercept by position": ([0.3, 1.0], "length 3: 'intercept', 'age', 'price' .the intercept is missing"),
    "too many numbers": ([1.0, 0.3, 1.0, 2.0], r"length 3: 'intercept', 'age', 'price'$"),
    "two rows": (pandas.DataFrame({"age": [1.0, 2.0], "price": [1.0, 2.0]}), "has 2 rows; give one row for one action"),
    "no row": (pandas.DataFrame({"age": [], "price": []}), "has 0 rows; give one"),
    "a column": ({"age": [1.0, 2.0], "price": 1.0}, "'age' of the context has shape"),
    "text": ({"age": "old", "price": 1.0}, "the context's 'age' is .'old'.; give numbers"),
    "NaN": ({"age": np.nan, "price": 1.0}, "the context's 'age' is nan; it must be finite"),
    "None": ({"age": None, "price": 1.0}, "the context's 'age' is nan; it must be finite"),
    "no context": (None, "no context was given; this model takes contexts with 'intercept', 'age', 'price'"),
    "an entry twice": (pandas.Series([1.0, 2.0], index=["age", "age"]), "Series of the context has 'age', 'age'"),
    "a column twice": (pandas.DataFrame([[1.0, 2.0]], columns=["age", "age"]), "give each a name of its own|unique"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_context_that_does_not_fit_the_names_is_refused_and_changes_nothing(what):
    context, text = REFUSED[what]
    agent = bough.HierTS.resume(observed(GAUSSIAN), 0)
    before = agent.posterior.mean.copy()
    for use in (
        lambda: agent.update("green", 1.0, context),
        lambda: agent.decide(context),
        lambda: agent.posterior.explain("green", context),
    ):
        with pytest.raises(ValueError, match=text):
            use()
    np.testing.assert_array_equal(agent.posterior.mean, before)


MANY_REFUSED = {
    "columns of other lengths": ({"age": [1.0] * 4, "price": [1.0] * 3}, r"have lengths \[3, 4\]"),
    "one value for all": ({"age": [1.0] * 4, "price": 2.0}, "'price' of the contexts is 2.0; give a column"),
    "rows of other names": (
        [{"age": 1.0, "price": 1.0}, {"age": 1.0}],
        "the context in row 1 has 'age', and that in row 0",
    ),
    "too few rows": ({"age": [1.0], "price": [1.0]}, r"shape \(1, 3\); give \(4, 3\)"),
    "without the intercept": (ROWS[:, 1:], "the intercept is missing"),
    "a null": ({"age": [1.0, None, 1.0, 1.0], "price": [1.0] * 4}, "the context's 'age' in row 1 is nan"),
}


@pytest.mark.parametrize("what", MANY_REFUSED)
def test_a_batch_that_does_not_fit_the_names_is_refused_and_changes_nothing(what):
    contexts, text = MANY_REFUSED[what]
    posterior = observed(GAUSSIAN)
    with pytest.raises(ValueError, match=text):
        posterior.update(ACTIONS, REWARDS, contexts)
    assert posterior.n_observations == 4


@pytest.mark.parametrize("context", [{"age": 1.0}, TABLES["polars"][:1], pandas.Series({"age": 1.0})])
def test_a_model_without_names_says_how_to_give_them(context):
    with pytest.raises(ValueError, match=r"the model has no names for its features; give it features=\[...\]"):
        observed(UNNAMED).update("green", 1.0, context)


def test_a_short_context_of_a_model_without_names_hints_at_the_intercept():
    with pytest.raises(ValueError, match=r"length 3 .with an intercept, its 1 is one of them"):
        observed(UNNAMED).update("green", 1.0, [1.0, 2.0])


# -- kept wherever the model goes --------------------------------------------------------------------


@pytest.mark.parametrize("kind", MODELS)
def test_names_stay_with_a_model_through_all_that_is_made_of_it(kind, tmp_path):
    model = MODELS[kind]
    number = np.arange(TREE.n_nodes)
    made = [model.independent(), model.flat(), model.rehung(TREE, number), pickle.loads(pickle.dumps(model))]
    model.save(tmp_path / "model")
    made += [bough.GaussianModel.load(tmp_path / "model"), copy.deepcopy(model)]
    posterior = observed(model)
    posterior.save(tmp_path / "posterior")
    made += [bough.Posterior.load(tmp_path / "posterior").model, pickle.loads(pickle.dumps(posterior)).model]
    made.append(posterior.on(type(model)(TREE, [0.0, 0.0, 0.0])).model)
    for policy in (bough.HierTS, bough.TS, bough.FlatTS, bough.Greedy):
        agent = policy(model, 0)
        agent.add("matcha", under="tea")
        agent.save(tmp_path / "agent")
        made += [agent.posterior.model, policy.load(tmp_path / "agent").posterior.model]
        if agent._star is not None:
            made.append(policy.load(tmp_path / "agent")._star.whole)
        agent.adopt(TREE)
        agent.adopt(type(model)(bough.Tree.from_nested({"tea": ["green"], "water": ["still"]}), [0.0, 0.0, 0.0]))
        made.append(agent.posterior.model)
    assert [one.feature_names for one in made] == [NAMES] * len(made)
    assert "features=['intercept', 'age', 'price']" in repr(model)


def test_names_stay_with_a_policy_that_refits(tmp_path):
    agent = bough.HierTS(GAUSSIAN, 0, refit=True)
    rng = np.random.default_rng(0)
    visits = {"price": rng.normal(size=60), "age": rng.normal(size=60)}
    agent.update(rng.choice(["green", "black", "espresso"], 60), rng.normal(size=60), visits)
    assert agent.posterior.model.noise_variance != GAUSSIAN.noise_variance
    assert agent.posterior.model.feature_names == NAMES
    agent.save(tmp_path / "agent")
    again = bough.HierTS.load(tmp_path / "agent")
    assert again._refit._given.feature_names == again.statistics.features == NAMES


def test_a_model_with_other_names_is_not_taken_over():
    other = bough.GaussianModel(TREE, [0.0, 0.0, 0.0], features=["intercept", "price", "age"])
    posterior, agent = observed(GAUSSIAN), bough.HierTS(GAUSSIAN)
    for use in (lambda: posterior.on(other), lambda: agent.adopt(other)):
        with pytest.raises(ValueError, match="the model has the features 'intercept', 'price', 'age', and what was"):
            use()


def test_a_file_without_names_gets_them_when_it_is_loaded(tmp_path):
    bough.HierTS.resume(observed(UNNAMED), 0).save(tmp_path / "agent")
    assert bough.HierTS.load(tmp_path / "agent").posterior.model.feature_names is None
    agent = bough.HierTS.load(tmp_path / "agent", features=NAMES)
    by_name, by_position = agent.posterior.action_moments(ONE["dict"]), agent.posterior.action_moments([1, 0.3, 1])
    np.testing.assert_array_equal(by_name, by_position)


def test_names_that_are_not_those_of_the_file_are_refused(tmp_path):
    observed(GAUSSIAN).save(tmp_path / "posterior")
    with pytest.raises(
        ValueError, match="posterior has the features 'intercept', 'age', 'price', and 'a', 'b', 'c' were"
    ):
        bough.Posterior.load(tmp_path / "posterior", features=["a", "b", "c"])
    with pytest.raises(ValueError, match=r"posterior cannot be read with these features: .* give 3 names"):
        bough.Posterior.load(tmp_path / "posterior", features=["a", "b"])


@pytest.mark.parametrize(
    ("settings", "changed"),
    [
        ({"features": None}, {}),
        ({}, {"features_text": None}),
        ({}, {"features_ends": np.array([9, 12])}),
        ({"features": {"encoder": "pickle"}}, {}),
        ({"features": {"encoder": 5}}, {}),
        ({"features": {"encoder": {}}}, {}),
        ({"features": {}}, {}),
        ({"features": []}, {}),
        ({}, {"features_text": np.frombuffer(b"interceptageage", np.uint8), "features_ends": np.array([9, 12, 15])}),
    ],
)
def test_a_file_whose_names_do_not_fit_is_refused(tmp_path, settings, changed):
    GAUSSIAN.save(tmp_path / "model.bough")
    file_parts.change(tmp_path / "model.bough", settings, **changed)
    with pytest.raises(ValueError, match=r"model\.bough"):
        bough.GaussianModel.load(tmp_path / "model.bough")


def test_names_too_long_to_be_read_again_are_not_written(tmp_path):
    features = bough.Features(categories={"country": ["x" * 600_000, "y" * 600_000]})
    model = bough.GaussianModel(TREE, np.zeros(4), features=features)
    with pytest.raises(ValueError, match=r"cannot be written: its header takes 1,.* give fewer or shorter"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


# -- sums and rows -----------------------------------------------------------------------------------

FRAME = pandas.DataFrame({"drink": ACTIONS, "sold": REWARDS, "age": AGES, "price": PRICES})


def summed(context, frame=FRAME, **options):
    return bough.summarise(frame, TREE, "drink", "sold", context, **options)


def test_sums_keep_the_names_of_the_columns_and_the_intercept(tmp_path):
    sums = summed(["price", "age"], intercept=True)
    assert sums.features == ("intercept", "price", "age")
    assert summed(None).features is None
    sums.save(tmp_path / "sums")
    assert bough.Statistics.load(tmp_path / "sums").features == sums.features
    assert (sums + sums).features == pickle.loads(pickle.dumps(sums)).features == sums.features
    assert repr(sums) == "Statistics(n_actions=3, n_rows=4, dim=3, features=['intercept', 'price', 'age'])"


def test_sums_of_other_orders_add_up_by_name():
    forth, back = summed(["age", "price"]), summed(["price", "age"])
    added, twice = forth + back, forth + forth
    assert added.features == ("age", "price")
    np.testing.assert_allclose(added.sum_xy, twice.sum_xy, rtol=1e-15)
    np.testing.assert_allclose(added.sum_xx, twice.sum_xx, rtol=1e-15)
    assert not np.allclose(forth.sum_xy + back.sum_xy, twice.sum_xy)


def test_sums_without_names_take_those_of_the_others():
    bare = bough.Statistics.from_rows(ACTIONS, REWARDS, ROWS[:, 1:])
    assert bare.features is None
    for added in (bare + summed(["age", "price"]), summed(["age", "price"]) + bare):
        assert added.features == ("age", "price")


@pytest.mark.parametrize("other", [["age"], ["age", "height"]])
def test_sums_of_other_features_are_not_added(other):
    frame = FRAME.assign(height=1.0)
    with pytest.raises(ValueError, match=r"has the features|cannot be added"):
        summed(["age", "price"]) + summed(other, frame)


@pytest.mark.parametrize("context", [FRAME[["price", "age"]], {"price": PRICES, "age": AGES}])
def test_rows_of_a_frame_are_summed_with_its_names(context):
    sums = bough.Statistics.from_rows(ACTIONS, REWARDS, context)
    assert sums.features == ("price", "age")
    ordered = bough.Statistics.from_rows(ACTIONS, REWARDS, context, features=["age", "price"])
    np.testing.assert_array_equal(ordered.sum_xy, sums.sum_xy[:, ::-1])


def test_a_posterior_absorbs_sums_by_name():
    posterior = bough.Posterior(GAUSSIAN)
    posterior.absorb(summed(["price", "age"], intercept=True))
    np.testing.assert_allclose(posterior.mean, observed(GAUSSIAN).mean, rtol=1e-12)
    assert posterior.statistics.features == NAMES
    with pytest.raises(
        ValueError, match="'intercept', 'age', 'price' are wanted; was it summed without intercept=True"
    ):
        posterior.absorb(summed(["price", "age"]))
    with pytest.raises(ValueError, match="has the features 'intercept', 'age', 'height', and"):
        posterior.absorb(summed(["age", "height"], FRAME.assign(height=1.0), intercept=True))
    assert posterior.n_observations == 4


def test_rows_are_settled_and_added_by_name():
    model = MODELS["bernoulli"]
    back = bough.Observations.from_frame(FRAME, "drink", "sold", ["price", "age"], intercept=True)
    assert back.features == ("intercept", "price", "age")
    raw = bough.Observations(ACTIONS, REWARDS, TABLES["polars"])
    plain = bough.Observations(ACTIONS, REWARDS, ROWS)
    found = []
    for log in (
        plain,
        back,
        raw,
        bough.Observations(ACTIONS, REWARDS, ROWS[:, [2, 0, 1]], features=["price", "intercept", "age"]),
    ):
        posterior = bough.Posterior(model)
        posterior.settle(log)
        found.append(posterior.mean)
    for mean in found[1:]:
        np.testing.assert_array_equal(mean, found[0])
    np.testing.assert_array_equal((plain.arranged(NAMES) + back).context, np.vstack([ROWS, ROWS]))
    assert (back + back).features == back.features
    with pytest.raises(ValueError, match="the other log has the features"):
        back + bough.Observations.from_frame(FRAME, "drink", "sold", ["price", "age"])


@pytest.mark.parametrize(
    ("data", "kind"),
    [("frame", "gaussian"), ("sums", "gaussian"), ("rows", "gaussian"), ("frame", "poisson"), ("rows", "poisson")],
)
def test_a_fit_keeps_the_names_of_its_log(data, kind):
    log = {
        "frame": FRAME,
        "sums": summed(["price", "age"], intercept=True),
        "rows": bough.Observations.from_frame(FRAME, "drink", "sold", ["price", "age"], intercept=True),
    }[data]
    columns = {"action": "drink", "reward": "sold", "context": ["price", "age"], "intercept": True}
    options = {"model": type(MODELS[kind]), "structure": "scaled"}
    fit = bough.fit_prior(TREE, log, **options, **(columns if data == "frame" else {}))
    assert fit.model.feature_names == ("intercept", "price", "age")
    assert "mean of price" in fit.summary()
    assert "mean of x" in fit.summary(features=["one", "x", "y"])
    ordered = bough.fit_prior(TREE, log, **options, **(columns if data == "frame" else {}), features=NAMES)
    assert ordered.model.feature_names == NAMES
    np.testing.assert_allclose(ordered.mean, fit.mean[[0, 2, 1]], atol=1e-4)


def test_logs_of_several_trees_are_brought_to_one_order():
    logs = [summed(["age", "price"]), summed(["price", "age"])]
    both = bough.fit_prior([TREE, TREE], logs, structure="scaled")
    same = bough.fit_prior([TREE, TREE], [logs[0], logs[0]], structure="scaled")
    np.testing.assert_allclose(both.mean, same.mean, rtol=1e-9)
    assert [one.feature_names for one in both.models] == [("age", "price")] * 2


def test_data_without_names_take_those_that_are_given():
    bare = bough.Statistics.from_rows(ACTIONS, REWARDS, ROWS)
    assert bough.fit_prior(TREE, bare, structure="scaled").model.feature_names is None
    assert bough.fit_prior(TREE, bare, structure="scaled", features=NAMES).model.feature_names == NAMES
    with pytest.raises(ValueError, match="give 3 names"):
        bough.fit_prior(TREE, bare, features=["a"])
    with pytest.raises(ValueError, match="there are no contexts"):
        bough.fit_prior(TREE, summed(None), features=["a"])


def test_a_prior_from_a_frame_of_features_keeps_its_names():
    rng = np.random.default_rng(0)
    items = pandas.DataFrame({"size": rng.normal(size=40), "red": rng.normal(size=40)})
    for spread in ("items", "means"):
        model = bough.prior_from_features(TREE, items, [*TREE.actions] * 10, spread=spread)
        bare = bough.prior_from_features(TREE, items.to_numpy(), [*TREE.actions] * 10, spread=spread)
        assert (model.feature_names, bare.feature_names) == (("size", "red"), None)
        np.testing.assert_allclose(model.mean, bare.mean, rtol=1e-14)


@pytest.mark.parametrize("intercept", [1, "yes", None])
def test_an_odd_intercept_is_refused(intercept):
    with pytest.raises(ValueError, match=r"intercept is .*; give True or False"):
        summed(["age"], intercept=intercept)
    with pytest.raises(ValueError, match=r"intercept is .*; give True or False"):
        bough.Observations.from_frame(FRAME, "drink", "sold", ["age"], intercept=intercept)


def test_a_column_that_is_called_intercept_is_not_there_twice():
    frame = FRAME.assign(intercept=1.0)
    assert summed(["intercept", "age"], frame).features == ("intercept", "age")
    with pytest.raises(ValueError, match="context has a column 'intercept', which is what intercept=True adds"):
        summed(["intercept", "age"], frame, intercept=True)


# -- decisions that are logged -----------------------------------------------------------------------


@pytest.mark.parametrize("given", [[1.0, 0.3, 1.0], ONE["dict"], ONE["polars"]], ids=["list", "dict", "frame"])
def test_a_logged_context_goes_by_name_and_can_be_given_back(given):
    agent = bough.HierTS(GAUSSIAN, 0)
    logged = agent.decision(given).to_dict()["context"]
    assert logged == {"intercept": 1.0, "age": 0.3, "price": 1.0}
    agent.update("green", 1.0, logged)
    np.testing.assert_array_equal(agent.posterior.mean, observed(GAUSSIAN, "green", 1.0, [1.0, 0.3, 1.0]).mean)
    back = bough.Posterior(bough.GaussianModel(TREE, np.zeros(3), features=["price", "intercept", "age"]))
    back.update(["green", "black"], [1.0, 2.0], [logged, logged])
    assert back.n_observations == 2
    assert bough.HierTS(UNNAMED, 0).decision([1.0, 0.3, 1.0]).to_dict()["context"] == [1.0, 0.3, 1.0]


def test_named_tuples_go_by_name_where_the_model_has_names():
    tree = bough.Tree.from_nested(["left", "right"])
    frame = pandas.DataFrame({"price": [5.0, 4.0], "age": [30.0, 40.0]})
    rows = list(frame.itertuples(index=False))
    named = bough.GaussianModel(tree, mean=[0.0, 0.0], features=["age", "price"])
    wanted, many, one = (bough.Posterior(named) for _ in range(3))
    wanted.update(["left", "right"], [1.0, 2.0], frame)
    many.update(["left", "right"], [1.0, 2.0], rows)
    for action, reward, row in zip(["left", "right"], [1.0, 2.0], rows, strict=True):
        one.update(action, reward, row)
    np.testing.assert_array_equal(many.mean, wanted.mean)
    np.testing.assert_allclose(one.mean, wanted.mean, rtol=1e-9)
    with pytest.raises(ValueError, match="'Index', which the model does not know"):
        one.update("left", 1.0, next(frame.itertuples()))
    unnamed = bough.Posterior(bough.GaussianModel(tree, mean=[0.0, 0.0]))
    unnamed.update("left", 1.0, rows[0])  # by position: there are no names to go by
    assert unnamed.n_observations == 1


def test_a_series_with_some_names_does_not_go_by_position():
    model = bough.GaussianModel(bough.Tree.from_nested(["left", "right"]), mean=[0.0, 0.0], features=["age", "price"])
    with pytest.raises(ValueError, match="has 0, which the model does not know"):
        bough.HierTS(model, seed=0).decide(pandas.Series([5.0, 30.0], index=["price", 0]))
