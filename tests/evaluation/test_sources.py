"""A log gives the same report whatever it comes as, and rows that cannot be used are named."""

import datetime
import shutil
import sys

import numpy as np
import polars
import pytest

import bough
from bough.data.decision_logs import LogColumns
from bough.data.logged_rows import read_logged_rows
from bough.data.propensities import SUMS, summed_propensities

TREE = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso", "filter"], "water": None})
NAMES = ["green", "black", "espresso", "filter"]
POLICIES = {"coffee": {"espresso": 0.5, "filter": 0.5}, "uniform": np.full(5, 0.2)}


def columns(n=2_000, seed=0):
    rng = np.random.default_rng(seed)
    place = rng.integers(4, size=n)
    return {
        "action": [NAMES[i] for i in place],
        "reward": (rng.random(n) < 0.1 * (1 + place)).astype(float),
        "propensity": np.full(n, 0.25),
        "slot": rng.integers(1, 3, n),
        "propensity_error": np.where(np.arange(n) < 7, 0.2, 0.01),
    }


def pandas_frame(given):
    import pandas

    return pandas.DataFrame(given)


def polars_frame(given):
    return polars.DataFrame(given)


def polars_lazy(given):
    return polars.DataFrame(given).lazy()


def pyarrow_table(given):
    import pyarrow

    return pyarrow.table(given)


def duckdb_relation(given):
    import duckdb

    return duckdb.from_arrow(pyarrow_table(given))


FRAMES = [pandas_frame, polars_frame, polars_lazy, pyarrow_table, duckdb_relation]


def evaluated(log, **more):
    report = bough.evaluate(POLICIES, log, TREE, **more)
    return [(one.policy, one.estimator) for one in report.values], np.array([one[2:] for one in report.values])


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("position", [None, "slot"])
@pytest.mark.parametrize("has_errors", [True, False])
def test_every_kind_of_frame_gives_the_same(frame, position, has_errors):
    given = {name: column for name, column in columns().items() if has_errors or name != "propensity_error"}
    names, expected = evaluated(polars_frame(columns()), position=position)
    found_names, found = evaluated(frame(given), position=position)
    assert found_names == names
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_files_give_the_same(tmp_path, ending):
    _, expected = evaluated(polars_frame(columns()))
    for part, frame in enumerate(polars_frame(columns()).iter_slices(700)):
        getattr(frame, f"write_{ending}")(tmp_path / f"part{part}.{ending}")
    _, found = evaluated(tmp_path / f"part*.{ending}")
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java")
@pytest.mark.filterwarnings("ignore")  # Spark's own
def test_spark_gives_the_same(monkeypatch):
    from pyspark.sql import SparkSession

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    try:
        log = columns(200)
        rows = list(zip(*(np.asarray(values).tolist() for values in log.values()), strict=True))
        _, found = evaluated(spark.createDataFrame(rows, list(log)))
    finally:
        spark.stop()
    np.testing.assert_allclose(found, evaluated(polars_frame(columns(200)))[1], rtol=1e-9)


@pytest.mark.parametrize("position", [None, "slot"])
def test_the_sums_of_a_group_by_are_those_of_the_rows(position):
    names = LogColumns("action", "reward", "propensity", "propensity_error", position)
    given = columns()
    given["propensity"] = np.random.default_rng(1).uniform(0.01, 1.0, len(given["reward"]))
    grouped = summed_propensities(polars_lazy(given), TREE, names)
    summed = read_logged_rows(polars_frame(given), TREE, names).sums()
    assert grouped.positions == summed.positions
    for name in (*SUMS, "n", "place", "position", "least_p"):
        np.testing.assert_allclose(getattr(grouped, name), getattr(summed, name), rtol=1e-12, err_msg=name)
    assert (grouped.least_y, grouped.most_y, grouped.doubtful) == (summed.least_y, summed.most_y, summed.doubtful)


def test_a_frame_of_many_slices_is_summed_once(monkeypatch):
    import bough.data.columns

    _, expected = evaluated(pandas_frame(columns()))
    monkeypatch.setattr(bough.data.columns, "_SLICE", 300)
    np.testing.assert_allclose(evaluated(pandas_frame(columns()))[1], expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("reward", None, "missing or infinite"),
        ("reward", np.inf, "missing or infinite"),
        ("reward", np.nan, "missing or infinite"),
        ("propensity", None, "outside"),
        ("propensity", 0.0, "outside"),
        ("propensity", -0.1, "outside"),
        ("propensity", 1.1, "outside"),
        ("action", None, "unknown action"),
        ("action", "cocoa", "'cocoa'"),
        ("action", "tea", "unknown action"),
    ],
)
@pytest.mark.parametrize("interval", ["normal", "anytime"])  # the one sums, the other reads rows
def test_a_row_that_cannot_be_used_is_shown_or_left_out(column, value, text, interval):
    given = polars_frame(columns())
    broken = given.with_columns(
        polars.Series(column, [*given[column][:5].to_list(), value, *given[column][6:].to_list()], strict=False)
    )
    more = {"interval": interval, "reward_range": (0, 1)}
    with pytest.raises(ValueError, match=text) as caught:
        evaluated(broken, **more)
    assert "1 of 2000 rows" in str(caught.value)
    _, found = evaluated(broken, bad="skip", **more)
    _, expected = evaluated(given.filter(polars.int_range(polars.len()) != 5), **more)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    report = bough.evaluate(POLICIES, broken, TREE, bad="skip", **more)
    assert "1 rows were left out" in report.notes


def test_the_columns_of_logged_decisions_need_not_be_named():
    agent = bough.HierTS(bough.GaussianModel(TREE), seed=0)
    rows = []
    for i in range(200):
        decision = agent.decision()
        reward = float(i % 3)
        rows.append({**decision.to_dict(), "reward": reward})
        agent.update(decision.action, reward)
    log = polars.DataFrame(rows)
    report = bough.evaluate({"now": agent}, log, TREE, reward_range=(0, 2))
    assert report.n_rows == 200
    assert all(one.low <= one.value <= one.high for one in report.values)


def test_a_missing_column_is_named():
    with pytest.raises(ValueError, match="no column 'click'"):
        bough.evaluate(POLICIES, polars_frame(columns()), TREE, reward="click")


def test_a_column_of_times_is_no_reward():
    given = {**columns(10), "when": [datetime.datetime(2024, 1, 1)] * 10}
    with pytest.raises(ValueError, match="'when' is of type"):
        bough.evaluate(POLICIES, polars_frame(given), TREE, reward="when")
