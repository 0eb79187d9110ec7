"""bough.Features and scikit-learn's transformers: frames of contexts as numbers, in fits, agents and files."""

import datetime
import json
import pickle
import subprocess
import sys

import numpy as np
import pandas
import polars
import pyarrow
import pytest

import bough
import file_parts
from bough._extras import install
from bough.model.encoders import LostEncoder, dense

sklearn = pytest.importorskip("sklearn")
from sklearn.compose import ColumnTransformer  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler  # noqa: E402

TREE = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso", "filter"]})
RNG = np.random.default_rng(0)
N = 300
VISITS = pandas.DataFrame({
    "age": RNG.integers(18, 80, N),
    "country": RNG.choice(["fr", "de", "it", "li"], N, p=[0.5, 0.3, 0.19, 0.01]),
    "price": RNG.normal(5.0, 2.0, N),
    "mobile": RNG.random(N) < 0.5,
})  # fmt: skip
LOG = VISITS.assign(drink=RNG.choice(["green", "black", "espresso"], N), sold=RNG.normal(size=N))
LOG["clicked"] = (LOG["sold"] > 0.0).astype(int)
FEATURES = bough.Features.learn(VISITS)
NAMES = ("intercept", "age", "price", "mobile", "country=de", "country=fr", "country=it", "country=other")
ONE = {"country": "fr", "mobile": True, "age": 30, "price": 4.0}


def other_transformer(frame=VISITS):
    numeric, text = ["age", "price"], ["country"]
    parts = [("n", StandardScaler(), numeric), ("c", OneHotEncoder(handle_unknown="ignore"), text)]
    return ColumnTransformer(parts).fit(frame[["country", "price", "age"]])


# -- what bough.Features makes -----------------------------------------------------------------------


def test_features_are_those_of_scikit_learns_scaler_and_encoder():
    numbers = VISITS[["age", "price", "mobile"]].to_numpy(dtype=float)
    expected = np.column_stack([
        np.ones(N),
        (numbers - numbers.mean(axis=0)) / numbers.std(axis=0),
        *(VISITS["country"] == country for country in ("de", "fr", "it")),
        ~VISITS["country"].isin(["de", "fr", "it"]),
    ])  # fmt: skip
    assert FEATURES.names == NAMES
    np.testing.assert_allclose(FEATURES.transform(VISITS), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 17])
def test_frames_of_all_kinds_and_dicts_make_the_same_numbers_in_any_order(n):
    part = VISITS[["mobile", "country", "price", "age"]][:n]
    expected = FEATURES.transform(VISITS)[:n]
    for given in (
        part,
        polars.from_pandas(part),
        polars.from_pandas(part).lazy(),
        pyarrow.Table.from_pandas(part),
        part.to_dict("list"),
        LOG[:n],
    ):
        np.testing.assert_array_equal(FEATURES.transform(given), expected)
    np.testing.assert_array_equal(FEATURES.transform(part.iloc[0].to_dict()), expected[:1])


def test_a_frame_without_rows_makes_no_numbers():
    assert FEATURES.transform(VISITS[:0]).shape == (0, 8)
    assert FEATURES.inverse(np.empty((0, 8)), "pandas").columns.tolist() == ["age", "price", "mobile", "country"]


@pytest.mark.parametrize("value", ["li", "atlantis", "other", None, float("nan"), pandas.NA, 7, ""])
def test_a_value_that_is_rare_new_or_missing_is_other(value):
    found = FEATURES.transform({**ONE, "country": value})
    assert found[0, 4:].tolist() == [0.0, 0.0, 0.0, 1.0]
    many = FEATURES.transform({name: [one, one] for name, one in {**ONE, "country": value}.items()})
    np.testing.assert_array_equal(many, np.vstack([found, found]))


def test_values_of_one_column_go_by_their_text_whatever_the_frame_made_of_them():
    codes = polars.DataFrame({"code": [7, 7, 8, 8]})
    features = bough.Features.learn(codes, categorical=["code"], other_below=2)
    assert features.names == ("intercept", "code=7", "code=8", "code=other")
    for value in (7, 7.0, "7", np.int8(7), np.float64(7.0)):
        assert features.transform({"code": value}).tolist() == [[1.0, 1.0, 0.0, 0.0]]
    gaps = pandas.DataFrame({"code": [7, None, 8]})  # which makes floats of them
    assert features.transform(gaps)[:, 1:].tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]


def test_there_and_back_again():
    rows = FEATURES.transform(VISITS)
    for backend in ("pandas", "polars", "pyarrow"):
        frame = FEATURES.inverse(rows, backend)
        np.testing.assert_allclose(FEATURES.transform(frame), rows, rtol=1e-12, atol=1e-12)
    back = FEATURES.inverse(rows, "pandas")
    np.testing.assert_allclose(back["age"], VISITS["age"], rtol=1e-12)
    assert back["country"].tolist() == VISITS["country"].replace("li", "other").tolist()
    for odd in (rows[0], rows[:, :3], np.zeros((1, 8)), rows * 2.0):
        with pytest.raises(ValueError, match="give"):
            FEATURES.inverse(odd)


def test_missing_numbers_stay_missing_and_are_refused_as_contexts():
    found = FEATURES.transform({**ONE, "age": None})
    assert np.isnan(found[0, 1])
    assert np.isfinite(found).sum() == 7
    model = bough.GaussianModel(TREE, np.zeros(8), features=FEATURES)
    with pytest.raises(ValueError, match="the context's 'age' is nan; it must be finite"):
        bough.HierTS(model).decide({**ONE, "age": None})


def test_columns_may_be_named_and_the_intercept_left_out():
    some = bough.Features.learn(VISITS, numeric=["price"], intercept=False)
    assert some.names == ("price",)
    assert bough.Features.learn(VISITS, categorical=["country"], other_below=100).names == (
        "intercept",
        "country=fr",
        "country=other",
    )
    swapped = bough.Features.learn(VISITS, ["price", "age"], ["country"])
    assert swapped.feature_names_in_.tolist() == ["price", "age", "country"]
    assert swapped.get_feature_names_out().tolist() == list(swapped.names)


def test_a_constant_column_is_zero_throughout():
    features = bough.Features.learn(pandas.DataFrame({"x": [3.0, 3.0]}))
    assert features.transform({"x": [3.0, 4.0]}).tolist() == [[1.0, 0.0], [1.0, 1.0]]


@pytest.mark.parametrize(
    ("use", "text"),
    [
        (lambda: bough.Features.learn(5), "frame is a int; give a pandas"),
        (lambda: bough.Features.learn(VISITS[:0]), "has no rows"),
        (lambda: bough.Features.learn(VISITS, numeric=["weight"]), "has no column 'weight'; it has age"),
        (lambda: bough.Features.learn(VISITS, numeric="age"), "numeric is 'age'; give a list"),
        (lambda: bough.Features.learn(VISITS, ["age", "age"]), "'age' twice"),
        (lambda: bough.Features.learn(VISITS, ["country"]), "column 'country' is .* give numbers"),
        (lambda: bough.Features.learn(VISITS, ["age"], ["age"]), "'age' is numeric and categorical"),
        (lambda: bough.Features.learn(VISITS, []), "there are no columns"),
        (lambda: bough.Features.learn(VISITS, other_below=0), "other_below is 0"),
        (lambda: bough.Features.learn(VISITS, other_below=1000), "'country' has no value with 1000 or more rows"),
        (lambda: bough.Features.learn(VISITS, intercept="yes"), "intercept is 'yes'"),
        (lambda: bough.Features.learn(pandas.DataFrame({"x": [None, None]}), ["x"]), "no number"),
        (lambda: bough.Features.learn(pandas.DataFrame({"x": [1.0, np.inf]})), "infinite"),
        (lambda: bough.Features.learn(pandas.DataFrame({"x": [datetime.datetime(2026, 1, 1)]})), "is of type Datetime"),
        (lambda: bough.Features.learn(pandas.DataFrame({"intercept": [1.0, 2.0]})), "'intercept' twice"),
        (lambda: bough.Features(["a"], [1.0], [0.0]), "scales positive"),
        (lambda: bough.Features(["a"], [1.0], []), "1 numeric columns"),
        (lambda: bough.Features(["a"], [np.nan], [1.0]), "means must be finite"),
        (lambda: bough.Features(categories={"c": ["other"]}), 'not "other"'),
        (lambda: bough.Features(categories={"c": []}), "values of 'c'"),
        (lambda: bough.Features(categories={"c": ["x", "x"]}), "distinct"),
        (lambda: bough.Features(categories=["c"]), "give a mapping"),
        (lambda: FEATURES.transform(VISITS[["age"]]), "the frame has no column 'price'"),
        (lambda: FEATURES.transform({**ONE, "age": [1, 2]}), "not all of one length"),
        (lambda: FEATURES.transform({**ONE, "age": "old"}), "'age' is .'old'.; give numbers"),
        (lambda: FEATURES.transform(3), "frame is a int"),
    ],
)  # fmt: skip
def test_what_features_cannot_be_made_of_is_refused_in_words(use, text):
    with pytest.raises(ValueError, match=text):
        use()


# -- models and agents that take frames --------------------------------------------------------------


@pytest.mark.parametrize("kind", [bough.GaussianModel, bough.BernoulliModel, bough.PoissonModel])
def test_a_model_with_features_takes_frames_of_their_columns(kind):
    model = kind(TREE, np.zeros(8), features=FEATURES)
    assert model.feature_names == NAMES
    named, plain = bough.HierTS(model, 0), bough.HierTS(kind(TREE, np.zeros(8)), 0)
    part = VISITS[["price", "mobile", "country", "age"]][:40]
    rows, clicks = FEATURES.transform(VISITS)[:40], LOG["clicked"][:40]
    named.update(LOG["drink"][:40], clicks, part)
    plain.update(LOG["drink"][:40], clicks, rows)
    np.testing.assert_array_equal(named.posterior.mean, plain.posterior.mean)
    assert [named.decide(ONE) for _ in range(9)] == [plain.decide(FEATURES.transform(ONE)[0]) for _ in range(9)]
    assert named.decide_many(part) == plain.decide_many(rows)
    assert named.decide(rows[0]) == plain.decide(rows[0])


def test_columns_that_are_missing_or_unknown_are_refused():
    agent = bough.HierTS(bough.GaussianModel(TREE, np.zeros(8), features=FEATURES), 0)
    with pytest.raises(ValueError, match="lacks 'age', 'mobile'; give 'age', 'price', 'mobile', 'country'"):
        agent.decide({"price": 1.0, "country": "fr"})
    with pytest.raises(ValueError, match="has 'hour', which the model does not know"):
        agent.update("green", 1.0, {**ONE, "hour": 9})
    with pytest.raises(ValueError, match=r"length 8: 'intercept', .* .the intercept is missing"):
        agent.decide(np.zeros(7))
    assert agent.posterior.n_observations == 0


def test_a_decision_is_logged_with_the_columns_that_it_was_given():
    agent = bough.HierTS(bough.GaussianModel(TREE, np.zeros(8), features=FEATURES), 0)
    for given in (ONE, pandas.DataFrame([ONE]), polars.DataFrame([ONE]), pandas.Series(ONE)):
        row = json.loads(json.dumps(agent.decision(given).to_dict()))
        assert row["context"] == ONE
        agent.update(row["action"], 1.0, row["context"])
    numbers = FEATURES.transform(ONE)[0]
    assert agent.decision(numbers).context == numbers.tolist()
    assert agent.posterior.n_observations == 4


def test_evidence_does_not_go_to_features_that_make_other_numbers(tmp_path):
    prior = np.zeros(len(NAMES))
    model = bough.GaussianModel(TREE, mean=prior, features=FEATURES)
    later = bough.Features.learn(VISITS.assign(age=VISITS["age"] + 5))
    assert later.names == FEATURES.names
    agent = bough.HierTS(model, seed=0)
    agent.update("green", 1.0, ONE)
    for go_on in (agent.posterior.on, agent.adopt):
        with pytest.raises(ValueError, match="other means, scales or values"):
            go_on(bough.GaussianModel(TREE, mean=prior, features=later))
    equal = bough.Features.learn(VISITS)
    assert agent.posterior.on(bough.GaussianModel(TREE, mean=prior, features=equal)).n_observations == 1


def test_an_encoder_that_a_file_lacks_stays_with_the_agent(tmp_path):
    encoder = other_transformer()
    prior = np.zeros(len(encoder.get_feature_names_out()))
    model = bough.GaussianModel(TREE, mean=prior, features=encoder)
    model.save(tmp_path / "model.bough")
    agent = bough.HierTS(model, seed=0)
    agent.adopt(bough.GaussianModel.load(tmp_path / "model.bough"))
    assert agent.posterior.model.features is encoder


@pytest.mark.parametrize("missing", [None, np.nan, pandas.NA, np.float32("nan")])
def test_a_missing_value_of_a_logged_context_is_null_in_json(missing):
    model = bough.GaussianModel(TREE, mean=np.zeros(len(NAMES)), features=FEATURES)
    agent = bough.HierTS(model, seed=0)
    row = agent.decision({**ONE, "country": missing}, samples=0).to_dict()
    context = json.loads(json.dumps(row, allow_nan=False))["context"]
    assert context == {**ONE, "country": None}
    agent.update(row["action"], 1.0, context)


def test_a_fit_makes_the_features_of_its_log():
    columns = {"action": "drink", "reward": "sold", "structure": "diagonal"}
    fit = bough.fit_prior(TREE, LOG, **columns, features=FEATURES)
    sums = bough.Statistics.from_rows(LOG["drink"], LOG["sold"], FEATURES.transform(LOG))
    np.testing.assert_allclose(fit.mean, bough.fit_prior(TREE, sums, structure="diagonal").mean, atol=1e-6)
    assert fit.model.features is FEATURES
    assert "mean of country=fr" in fit.summary()
    for log in (polars.from_pandas(LOG), pyarrow.Table.from_pandas(LOG)):
        again = bough.fit_prior(TREE, log, **columns, features=FEATURES, context=["country", "age", "mobile", "price"])
        np.testing.assert_allclose(again.mean, fit.mean, atol=1e-6)
    rows = bough.Observations(LOG["drink"].tolist(), LOG["sold"], VISITS)
    np.testing.assert_allclose(
        bough.fit_prior(TREE, rows, structure="diagonal", features=FEATURES).mean, fit.mean, atol=1e-6
    )
    summed = bough.summarise(LOG, TREE, "drink", "sold", features=FEATURES)
    assert summed.features == NAMES
    assert bough.fit_prior(TREE, summed, structure="diagonal", features=FEATURES).model.features is FEATURES
    assert bough.HierTS(fit.model, 0).decide(ONE) in TREE.actions


def test_a_fit_of_clicks_makes_the_features_of_its_rows():
    fit = bough.fit_prior(
        TREE, LOG, action="drink", reward="clicked", model=bough.BernoulliModel, structure="scaled", features=FEATURES
    )
    rows = bough.Observations(LOG["drink"].tolist(), LOG["clicked"], FEATURES.transform(LOG))
    other = bough.fit_prior(TREE, rows, model=bough.BernoulliModel, structure="scaled")
    np.testing.assert_allclose(fit.mean, other.mean, atol=1e-6)
    assert fit.model.features is FEATURES


def test_rows_that_cannot_be_used_are_counted_and_left_out_as_in_any_log():
    log = LOG.assign(age=LOG["age"].astype(float), drink=LOG["drink"].where(LOG.index != 5, "cocoa"))
    log.loc[3, "age"] = np.nan
    with pytest.raises(ValueError, match="2 of 300 rows cannot be used"):
        bough.summarise(log, TREE, "drink", "sold", features=FEATURES)
    sums = bough.summarise(log, TREE, "drink", "sold", features=FEATURES, bad="skip")
    assert (sums.n_rows, sums.skipped) == (298.0, {"bad number": 1, "unknown action": 1})


def test_a_reward_or_weight_may_be_a_feature_too():
    sums = bough.summarise(LOG, TREE, "drink", "price", weight="age", features=FEATURES)
    plain = bough.Statistics.from_rows(LOG["drink"], LOG["price"], FEATURES.transform(LOG), weight=LOG["age"])
    assert sums.features == NAMES
    np.testing.assert_allclose(sums.sum_xy.sum(axis=0), plain.sum_xy.sum(axis=0), rtol=1e-9)


def test_a_log_that_is_not_in_memory_is_refused_in_words(tmp_path):
    polars.from_pandas(LOG).write_parquet(tmp_path / "log.parquet")
    for log, what in (
        (tmp_path / "log.parquet", "log is a path"),
        (polars.from_pandas(LOG).lazy(), "log is a LazyFrame"),
        (5, "log is a int"),
    ):
        with pytest.raises(ValueError, match=f"rows in memory, and {what}"):
            bough.summarise(log, TREE, "drink", "sold", features=FEATURES)
    with pytest.raises(ValueError, match="rows in memory"):
        bough.fit_prior(TREE, tmp_path / "log.parquet", action="drink", reward="sold", features=FEATURES)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"features": ["age"]}, "give a bough.Features"),
        ({"features": FEATURES, "intercept": True}, "features has one already"),
        ({"features": FEATURES, "context": "age"}, "context is 'age'; give a list"),
        ({"features": FEATURES, "context": ["age"]}, "features takes 'age', 'price', 'mobile', 'country'"),
        ({"features": FEATURES, "context": [*ONE, "hour"]}, "no column 'hour'"),
        ({"features": StandardScaler()}, "StandardScaler that cannot name its numbers; fit it first"),
    ],
)
def test_features_that_do_not_fit_the_log_are_refused(options, text):
    with pytest.raises(ValueError, match=text):
        bough.summarise(LOG, TREE, "drink", "sold", **options)


# -- files -------------------------------------------------------------------------------------------


def agents():
    gaussian = bough.GaussianModel(TREE, np.zeros(8), features=FEATURES)
    return [bough.HierTS(gaussian, 0), bough.TS(gaussian, 0), bough.HierTS(gaussian, 0, refit=True)]


def test_features_to_which_a_fit_adds_the_intercept_are_saved_too(tmp_path):
    bare = bough.Features.learn(VISITS, intercept=False)
    fit = bough.fit_prior(TREE, LOG, action="drink", reward="sold", features=bare, intercept=True)
    assert fit.model.feature_names == NAMES
    agent = fit.agent(seed=0)
    agent.save(tmp_path / "agent.bough")
    again = bough.HierTS.load(tmp_path / "agent.bough")
    assert again.posterior.model.features.names == NAMES
    assert again.decision(ONE).scores == pytest.approx(agent.decision(ONE).scores, rel=1e-9)
    agent.save(tmp_path / "given.bough")
    given = bough.HierTS.load(tmp_path / "given.bough", features=bare)
    assert isinstance(given.posterior.model.features, bough.Features)


@pytest.mark.parametrize("agent", agents(), ids=["HierTS", "TS", "refit"])
def test_features_are_saved_with_the_agent(tmp_path, agent):
    agent.update(LOG["drink"][:15], LOG["sold"][:15], VISITS[:15])
    agent.save(tmp_path / "agent")
    again = type(agent).load(tmp_path / "agent")
    found = again.posterior.model.features
    assert isinstance(found, bough.Features)
    assert found.contents() == FEATURES.contents()
    assert [again.decide(ONE) for _ in range(9)] == [agent.decide(ONE) for _ in range(9)]
    copied = pickle.loads(pickle.dumps(agent))
    np.testing.assert_array_equal(copied.posterior.model.features.transform(VISITS), FEATURES.transform(VISITS))


@pytest.mark.parametrize(
    "changed",
    [
        {"means": [0.0]},
        {"scales": [1.0, 0.0, 1.0]},
        {"means": ["a", "b", "c"]},
        {"numeric": ["age", "price", "weight"]},
        {"numeric": "age"},
        {"categories": {"country": ["de", "fr", "it", "other"]}},
        {"categories": {"country": ["de", "fr"]}},
        {"categories": {"country": {"de": 1}}},
        {"categories": None},
        {"intercept": False},
        {"intercept": 1},
        {"means": None},
    ],
)
def test_a_file_whose_encoder_is_odd_is_refused(tmp_path, changed):
    bough.GaussianModel(TREE, np.zeros(8), features=FEATURES).save(tmp_path / "model.bough")
    file_parts.change(tmp_path / "model.bough", {"features": {"encoder": {**FEATURES.contents(), **changed}}})
    with pytest.raises(ValueError, match=r"model\.bough"):
        bough.GaussianModel.load(tmp_path / "model.bough")


WITHOUT = """
import sys
sys.modules["sklearn"] = None
import bough
agent = bough.HierTS.load(sys.argv[1])
print(agent.posterior.model.feature_names[1], agent.decide([1.0] * 8) in agent.posterior.model.tree.actions)
try:
    agent.decide({"country": "fr", "mobile": True, "age": 30, "price": 4.0})
except ValueError as error:
    print(error)
"""


def test_without_scikit_learn_a_file_still_loads_and_says_what_is_missing(tmp_path):
    bough.HierTS(bough.GaussianModel(TREE, np.zeros(8), features=FEATURES), 0).save(tmp_path / "agent")
    command = [sys.executable, "-c", WITHOUT, str(tmp_path / "agent")]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines == [
        "age True",
        f"bough.Features takes scikit-learn; {install('sklearn')}",
    ]


# -- transformers of scikit-learn's ------------------------------------------------------------------

CONTEXT = {"country": "fr", "age": 30, "price": 4.0}


@pytest.mark.parametrize("intercept", [False, True])
def test_a_column_transformer_works_in_the_place_of_features(intercept, tmp_path):
    encoder = other_transformer()
    names = (*(["intercept"] if intercept else []), *map(str, encoder.get_feature_names_out()))
    options = {"action": "drink", "reward": "sold", "structure": "scaled", "intercept": intercept}
    fit = bough.fit_prior(TREE, LOG, **options, features=encoder)
    assert fit.model.feature_names == names
    rows = dense(encoder.transform(VISITS))
    rows = np.column_stack([np.ones(N), rows]) if intercept else rows
    sums = bough.Statistics.from_rows(LOG["drink"], LOG["sold"], rows)
    np.testing.assert_allclose(fit.mean, bough.fit_prior(TREE, sums, structure="scaled").mean, atol=1e-6)
    agent, plain = bough.HierTS(fit.model, 0), bough.HierTS(fit.model, 0)
    row = np.append(np.ones(int(intercept)), dense(encoder.transform(pandas.DataFrame([CONTEXT]))))
    assert agent.decide(CONTEXT) == plain.decide(row)
    assert agent.decide(pandas.DataFrame([CONTEXT])) == plain.decide(row)
    agent.save(tmp_path / "agent")
    lost = bough.HierTS.load(tmp_path / "agent")
    assert lost.posterior.model.feature_names == names
    with pytest.raises(ValueError, match=r"files do not keep it; give it to load\(path, features=...\)"):
        lost.decide(CONTEXT)
    lost.update("green", 1.0, row)
    lost.save(tmp_path / "agent")
    found = bough.HierTS.load(tmp_path / "agent", features=encoder)
    assert found.posterior.n_observations == 1
    assert found.decide(CONTEXT) in TREE.actions
    with pytest.raises(ValueError, match=r"agent has the features .* were given; give the same ones"):
        bough.HierTS.load(
            tmp_path / "agent", features=other_transformer(VISITS.assign(country=VISITS["country"].str.upper()))
        )


def test_a_column_transformer_gets_frames_as_they_are_given():
    pytest.importorskip("sklearn", minversion="1.9")  # earlier ones do not read the frames of polars 2
    encoder = other_transformer()
    model = bough.GaussianModel(TREE, np.zeros(6), features=encoder)
    row = dense(encoder.transform(pandas.DataFrame([CONTEXT])))[0]
    assert bough.HierTS(model, 0).decide(polars.DataFrame([CONTEXT])) == bough.HierTS(model, 0).decide(row)
    fits = [bough.fit_prior(TREE, log, action="drink", reward="sold", structure="scaled", features=encoder)
            for log in (LOG, polars.from_pandas(LOG))]  # fmt: skip
    np.testing.assert_allclose(fits[0].mean, fits[1].mean, atol=1e-6)


def test_the_encoder_of_a_file_that_has_none_is_never_run():
    names = ("a", "b")
    with pytest.raises(ValueError, match="or give the 2 numbers themselves"):
        LostEncoder(names).transform(VISITS)
    with pytest.raises(ValueError, match=r"give a bough.Features"):
        bough.summarise(LOG, TREE, "drink", "sold", ["age"], features=LostEncoder(names))


def test_a_pipeline_that_minds_the_order_gets_it():
    encoder = make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False)).fit(VISITS[["price", "age"]])
    model = bough.GaussianModel(TREE, np.zeros(5), features=encoder)
    mine, twin = bough.HierTS(model, 0), bough.HierTS(model, 0)
    row = encoder.transform(VISITS[["price", "age"]][:1])[0]
    assert mine.decide({"age": VISITS["age"][0], "price": VISITS["price"][0]}) == twin.decide(row)
    with pytest.raises(ValueError, match="has 'country', which the model does not know"):
        mine.decide(CONTEXT)
    with pytest.raises(ValueError, match="Pipeline cannot make numbers of the contexts"):
        mine.decide({"age": 3})


class Odd:
    """Something with the right methods."""

    def __init__(self, names, rows):
        self.names, self.rows = names, rows

    def get_feature_names_out(self):
        return self.names

    def transform(self, frame):
        return self.rows


@pytest.mark.parametrize(
    ("encoder", "text"),
    [
        (Odd(["a", "b"], [[1.0, 2.0, 3.0]]), r"made numbers of shape \(1, 3\)"),
        (Odd(["a", "b"], [["x", "y"]]), "give numbers"),
        (Odd(["a", "b"], None), r"made numbers of shape \(\)"),
        (Odd(["a", "b"], [[np.nan, 1.0]]), "finite"),
        (Odd(["a", "b", "c"], None), "makes 3 numbers, 'a', 'b', 'c', and the mean has 2"),
        (Odd(["a"], None), "and the mean has 2; fit_prior.* puts an intercept before them"),
        (Odd(["a", "a"], None), "'a' twice"),
        (Odd([1, 2], None), "1 among them"),
        (Odd(5, None), "cannot name its numbers"),
    ],
)
def test_a_transformer_that_does_not_keep_its_word_is_refused(encoder, text):
    with pytest.raises(ValueError, match=text):
        bough.HierTS(bough.GaussianModel(TREE, np.zeros(2), features=encoder)).decide({"x": 1})


def test_features_are_for_models_with_contexts():
    for features in (FEATURES, ["age"]):
        with pytest.raises(ValueError, match="there are no contexts; leave it out"):
            bough.GaussianModel(TREE, features=features)
