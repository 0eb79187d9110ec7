"""Sums by the levels of decisions: from every kind of log, they add up, and files keep them."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import bough
import file_parts

TREE = bough.Tree.from_nested({"kitchen": ["kettle", "toaster"], "garden": ["spade"]})
ROWS = {
    "sku": ["kettle", "spade", "kettle", "kettle", "toaster", "spade"],
    "sales": [1.0, 2.0, 3.0, 5.0, 7.0, 11.0],
    "shop": ["north", "south", "south", "north", "north", "south"],
    "till": [1, 2, 1, 1, 2, 2],
}
WANTED = {
    ("kettle", "north", 1): (2.0, 6.0, 26.0),
    ("kettle", "south", 1): (1.0, 3.0, 9.0),
    ("toaster", "north", 2): (1.0, 7.0, 49.0),
    ("spade", "south", 2): (2.0, 13.0, 125.0),
}


def table(sums):
    columns = (sums.actions, sums.factors["store"], sums.factors["till"], sums.count, sums.sum_y, sums.sum_yy)
    return {tuple(row[:3]): tuple(row[3:]) for row in zip(*(column.tolist() for column in columns), strict=True)}


def summed(log):
    return bough.summarise(log, TREE, "sku", "sales", factors={"store": "shop", "till": "till"})


@pytest.mark.parametrize(
    "make",
    [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table, "parquet", "csv"],
    ids=["pandas", "polars", "lazy", "pyarrow", "parquet", "csv"],
)
def test_every_kind_of_log_is_summed_by_level(make, tmp_path):
    if make == "parquet":
        pl.DataFrame(ROWS).write_parquet(tmp_path / "log.parquet")
        log = str(tmp_path / "log.parquet")
    elif make == "csv":
        pl.DataFrame(ROWS).write_csv(tmp_path / "log.csv")
        log = str(tmp_path / "log.csv")
    else:
        log = make(ROWS)
    assert table(summed(log)) == WANTED


def test_rows_parts_and_files_give_the_same_sums(tmp_path):
    by_rows = bough.Statistics.from_rows(
        ROWS["sku"], ROWS["sales"], factors={"store": ROWS["shop"], "till": ROWS["till"]}
    )
    assert table(by_rows) == WANTED
    parts = [summed(pl.DataFrame(ROWS)[part]) for part in (slice(0, 2), slice(2, 6))]
    assert table(sum(parts)) == WANTED
    by_rows.save(tmp_path / "sums.bough")
    assert table(bough.Statistics.load(tmp_path / "sums.bough")) == WANTED
    assert repr(by_rows) == "Statistics(n_actions=3, n_rows=6, factors=['store', 'till'])"


@pytest.mark.parametrize(
    "levels",
    [
        [("north", 1), ("south", 2), ("north", 1)],
        [("north", 1), "south", 3],
        [(1, 2), (1, 3), (1,)],
        [3, ("a", "b", "c"), ("a/b", 7)],
        [],
    ],
    ids=["pairs", "mixed", "integers", "long", "none"],
)
def test_files_keep_levels_that_are_pairs(levels, tmp_path):
    n = len(levels)
    sums = bough.Statistics.from_rows(["kettle"] * n, [1.0] * n, factors={"store": levels, "till": [1] * n})
    sums.save(tmp_path / "sums.bough")
    again = bough.Statistics.load(tmp_path / "sums.bough")
    assert again.factors["store"].tolist() == sums.factors["store"].tolist()
    assert again.factors["till"].tolist() == sums.factors["till"].tolist()
    assert set(levels) == set(again.factors["store"].tolist())


def test_what_a_posterior_observed_at_pairs_is_kept(tmp_path):
    store = bough.Factor(levels=[("n", 1), ("s", 2)], at_decision=True)
    posterior = bough.Posterior(bough.GaussianModel(TREE, factors={"store": store}))
    posterior.update(["kettle", "spade"], [1.0, 2.0], factors={"store": [("n", 1), ("s", 2)]})
    posterior.statistics.save(tmp_path / "sums.bough")
    again = bough.Posterior(posterior.model)
    again.absorb(bough.Statistics.load(tmp_path / "sums.bough"))
    assert again.mean == pytest.approx(posterior.mean)


@pytest.mark.parametrize("sizes", [[-1, 2], [0, 1, 2], [2, 3], [2**31 - 1, 2]])
def test_damaged_sizes_of_pairs_are_refused(sizes, tmp_path):
    path = tmp_path / "sums.bough"
    bough.Statistics.from_rows(["a", "b"], [1.0, 2.0], factors={"store": [("n", 1), ("s", 2)]}).save(path)
    file_parts.change(path, factor_0_sizes=np.array(sizes, dtype=np.int32))
    with pytest.raises(ValueError, match="is not a complete statistics file"):
        bough.Statistics.load(path)


def test_rows_without_a_level_are_bad_rows():
    holes = {**ROWS, "shop": ["north", None, "south", "north", "north", "south"]}
    with pytest.raises(ValueError, match="1 of 6 rows cannot be used"):
        summed(pl.DataFrame(holes))
    found = bough.summarise(
        pl.DataFrame(holes), TREE, "sku", "sales", factors={"store": "shop", "till": "till"}, bad="skip"
    )
    assert found.n_rows == 5
    assert found.skipped == {"bad number": 1}


def log_of(kind, levels, folder):
    """A log of six rows whose decisions had these levels."""
    rows = {"sku": ROWS["sku"], "sales": ROWS["sales"]}
    if kind == "pandas":
        return pd.DataFrame({**rows, "shop": pd.Series(levels)})
    if kind == "pyarrow":
        return pa.table({**rows, "shop": levels})
    log = pl.DataFrame({**rows, "shop": levels})
    if kind == "parquet":
        log.write_parquet(folder / "log.parquet")
        return folder / "log.parquet"
    return duckdb.from_arrow(log.to_arrow()) if kind == "duckdb" else log.lazy() if kind == "lazy" else log


KINDS = ["pandas", "polars", "lazy", "pyarrow", "parquet", "duckdb"]


@pytest.mark.parametrize("kind", KINDS)
def test_nan_is_a_missing_level_in_every_kind_of_log(kind, tmp_path):
    log = log_of(kind, [1.0, float("nan"), 2.0, 1.0, 2.0, 2.0], tmp_path)
    with pytest.raises(ValueError, match="1 of 6 rows cannot be used: 1 with a missing level"):
        bough.summarise(log, TREE, "sku", "sales", factors={"store": "shop"})
    found = bough.summarise(log, TREE, "sku", "sales", factors={"store": "shop"}, bad="skip")
    assert found.skipped == {"bad number": 1}
    assert sorted(set(found.factors["store"].tolist())) == [1, 2]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ([["a"]] * 6, "the column 'shop' has levels of type .*ist.*; make them text or whole numbers"),
        ([{"a": 1}] * 6, "the column 'shop' has levels of type .*; make them text or whole numbers"),
        ([True, False] * 3, "'store'.* is (True|False), a bool"),
        ([1.5, 2.0] * 3, "'store'.* is 1.5, a float"),
    ],
    ids=["lists", "dicts", "flags", "fractions"],
)
def test_levels_that_are_none_are_refused_by_the_name_of_their_column(kind, levels, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        bough.summarise(log_of(kind, levels, tmp_path), TREE, "sku", "sales", factors={"store": "shop"})


def test_levels_of_a_log_may_be_pairs_and_of_several_types():
    levels = [("a", 1), (2, "b"), 7, ("a", 1), "x", (2, "b")]
    log = pd.DataFrame({"sku": ROWS["sku"], "sales": ROWS["sales"], "shop": levels})
    found = bough.summarise(log, TREE, "sku", "sales", factors={"store": "shop"})
    rows = zip(found.actions.tolist(), found.factors["store"].tolist(), found.count.tolist(), strict=True)
    assert list(rows) == [
        ("kettle", 7, 1.0), ("kettle", ("a", 1), 2.0), ("toaster", "x", 1.0), ("spade", (2, "b"), 2.0)
    ]  # fmt: skip
    log["shop"] = [("a", [1])] * 6
    with pytest.raises(ValueError, match="the column 'shop' has levels of type tuple"):
        bough.summarise(log, TREE, "sku", "sales", factors={"store": "shop"})


@pytest.mark.parametrize(("column", "what"), [("sku", "actions"), ("sales", "rewards")])
def test_the_columns_of_actions_and_rewards_are_no_factors(column, what):
    log, message = pl.DataFrame(ROWS), f"the factor 'store' is the column '{column}', which has the {what}"
    with pytest.raises(ValueError, match=message):
        bough.summarise(log, TREE, "sku", "sales", factors={"store": column})
    with pytest.raises(ValueError, match=message):
        bough.fit_prior(TREE, log, action="sku", reward="sales", factors={"store": column})


def test_sums_that_do_not_go_together_are_refused():
    sums = summed(pl.DataFrame(ROWS))
    with pytest.raises(ValueError, match="statistics of the same factors add up"):
        sums + bough.Statistics.from_rows(["kettle"], [1.0])
    for factors, message in (
        ({"store": ["a"]}, "1 levels of 'store' for 2 actions"),
        ({"store": "a"}, "give one for each row"),
        ({"store": [1.5, 2.5]}, "a level of 'store' is 1.5, a float"),
        ({"store": [True, False]}, "a level of 'store' is True, a bool"),
        (["a", "b"], "give a mapping"),
    ):
        with pytest.raises(ValueError, match=message):
            bough.Statistics(["x", "y"], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0], factors=factors)
    with pytest.raises(ValueError, match=r"'x' at .* more than once"):
        bough.Statistics(["x", "x"], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0], factors={"store": ["a", "a"]})
    with pytest.raises(ValueError, match="names of columns"):
        bough.summarise(pl.DataFrame(ROWS), TREE, "sku", "sales", factors={"store": ["shop"]})
    with pytest.raises(ValueError, match="no column 'nowhere'"):
        bough.summarise(pl.DataFrame(ROWS), TREE, "sku", "sales", factors={"store": "nowhere"})


def test_what_is_no_level_is_refused_with_the_factor_and_its_column():
    log = pl.DataFrame({**ROWS, "open": [True] * 6})
    log = log.with_columns(price=pl.col("sales") + 0.5)
    for column in ("price", "open"):
        for factor, where in (("store", f"'store', in the column '{column}',"), (column, f"'{column}'")):
            with pytest.raises(ValueError, match=rf"^a level of {where} is \S+, a (float|bool); a level is text"):
                bough.summarise(log, TREE, "sku", "sales", factors={factor: column})


def test_a_log_may_have_pairs_of_levels_and_numbers_beside_them():
    log = pd.DataFrame({**ROWS, "shop": [("n", 1), ("n", "x"), 3, "n", ("n", 1), "n"]})
    found = bough.summarise(log, TREE, "sku", "sales", factors={"store": "shop"})
    rows = zip(found.actions.tolist(), found.factors["store"].tolist(), found.count.tolist(), strict=True)
    assert set(rows) == {
        ("kettle", 3, 1.0), ("kettle", "n", 1.0), ("kettle", ("n", 1), 1.0), ("toaster", ("n", 1), 1.0),
        ("spade", "n", 1.0), ("spade", ("n", "x"), 1.0),
    }  # fmt: skip


def test_a_world_of_ones_own_has_levels_that_policies_see():
    model = bough.GaussianModel(
        TREE, factors={"store": bough.Factor(levels=["north", "south"], variance=4.0, at_decision=True)}
    )

    class Shop:
        def world(self, rounds, rng):
            stores = rng.choice(["north", "south"], rounds)
            return bough.World(
                model, np.array([1.0, 0.0, 0.5]), rng.normal(size=rounds), factors={"store": stores},
                added=np.where(stores == "north", 3.0, -3.0),
            )  # fmt: skip

    run = bough.simulate(Shop(), {"HierTS": bough.HierTS}, rounds=200, runs=4, seed=0, jobs=1)
    assert (run.regret["HierTS"][:, -1] < 0.5 * 200).all()
    with pytest.raises(ValueError, match="the levels of 'store' are missing"):
        bough.World(model, np.zeros(3), np.zeros(5))
    with pytest.raises(ValueError, match="there are none"):
        bough.World(bough.GaussianModel(TREE), np.zeros(3), np.zeros(5), added=np.zeros(5))
    with pytest.raises(ValueError, match="the model has none"):
        bough.World(bough.GaussianModel(TREE), np.zeros(3), np.zeros(5), factors={"store": ["north"] * 5})
