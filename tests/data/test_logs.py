"""Summaries of logs: the same from every kind of frame, merged or whole, and as good as the rows."""

import shutil
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bough
from bough.data.files import tree_of_table

from cases import cases  # isort: skip

TREE = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso", "filter"], "water": None})
FEATURES = ["price", "new"]


def rows(n=2_000, seed=0):
    rng = np.random.default_rng(seed)
    names = np.array(["green", "black", "espresso"])  # two actions have no row
    return {
        "product": names[rng.integers(len(names), size=n)].tolist(),
        "sales": rng.normal(10.0, 3.0, n),
        "price": rng.lognormal(size=n),
        "new": rng.integers(2, size=n).astype(bool),
        "weight": rng.integers(0, 3, n),
    }


def pandas_frame(columns):
    import pandas

    return pandas.DataFrame(columns)


def polars_frame(columns):
    import polars

    return polars.DataFrame(columns)


def polars_lazy(columns):
    return polars_frame(columns).lazy()


def pyarrow_table(columns):
    import pyarrow

    return pyarrow.table(columns)


def duckdb_relation(columns):
    import duckdb

    return duckdb.from_arrow(pyarrow_table(columns))


FRAMES = [pandas_frame, polars_frame, polars_lazy, pyarrow_table, duckdb_relation]
SETTINGS = [
    dict(action="product", reward="sales"),
    dict(action="product", reward="sales", context=FEATURES),
    dict(action="product", reward="sales", context=FEATURES, weight="weight"),
]


def expected(columns, context=None, weight=None, **_):
    x = None if context is None else np.column_stack([columns[c] for c in context]).astype(float)
    return bough.Statistics.from_rows(
        columns["product"], columns["sales"], x, None if weight is None else columns[weight]
    )


def assert_same(one, other, rtol=1e-12):
    order = np.argsort(one.actions.tolist()), np.argsort(other.actions.tolist())
    assert sorted(one.actions.tolist()) == sorted(other.actions.tolist())
    assert one.dim == other.dim
    for name in ("count", "sum_y", "sum_yy", "sum_xy", "sum_xx"):
        mine, theirs = getattr(one, name), getattr(other, name)
        assert (mine is None) == (theirs is None)
        if mine is not None:
            np.testing.assert_allclose(mine[order[0]], theirs[order[1]], rtol=rtol)


@pytest.mark.parametrize("make", FRAMES)
@pytest.mark.parametrize("columns", SETTINGS)
def test_every_frame_gives_the_same_sums(make, columns):
    log = rows()
    assert_same(bough.summarise(make(log), TREE, **columns), expected(log, **columns))


def test_a_frame_of_many_slices_is_summed_once(monkeypatch):
    monkeypatch.setattr("bough.data.columns._SLICE", 300)
    log = rows()
    assert_same(bough.summarise(pandas_frame(log), TREE, **SETTINGS[2]), expected(log, **SETTINGS[2]))


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("columns", SETTINGS)
def test_files_and_globs_of_them(ending, columns, tmp_path):
    log = rows()
    for part in range(3):
        shard = polars_frame({name: values[part::3] for name, values in log.items()})
        getattr(shard, f"write_{ending}")(tmp_path / f"day{part}.{ending}")
    whole = bough.summarise(tmp_path / f"day*.{ending}", TREE, **columns)
    assert_same(whole, expected(log, **columns))
    shards = [bough.summarise(str(tmp_path / f"day{part}.{ending}"), TREE, **columns) for part in range(3)]
    assert_same(shards[0] + shards[1] + shards[2], whole)
    if ending == "parquet":
        assert_same(bough.summarise(tmp_path, TREE, **columns), whole)


def test_names_that_look_like_numbers_stay_text_in_a_csv_file(tmp_path):
    (tmp_path / "log.csv").write_text("sku,sales\n007,1.5\n007,2.5\n012,1.0\n")
    text = bough.summarise(tmp_path / "log.csv", bough.Tree.from_nested(["007", "012"]), "sku", "sales")
    assert text.actions.tolist() == ["007", "012"]
    whole = bough.summarise(tmp_path / "log.csv", bough.Tree.from_parents([-1, 0, 0], names=[0, 7, 12]), "sku", "sales")
    assert whole.actions.tolist() == [7, 12]
    np.testing.assert_array_equal(whole.sum_y, [4.0, 1.0])


def test_a_broken_file_is_a_clear_error(tmp_path):
    (tmp_path / "log.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(ValueError, match=r"log\.parquet cannot be read: "):
        bough.summarise(tmp_path / "log.parquet", TREE, "product", "sales")


@pytest.mark.parametrize("n", [3, 30_000])
def test_a_cell_that_is_no_number_is_a_bad_row_and_not_a_bad_file(n, tmp_path):
    (tmp_path / "log.csv").write_text("product,sales\ngreen,N/A\n" + "green,1.0\n" * n + "green,much\n")
    with pytest.raises(ValueError, match=f"2 of {n + 2} rows cannot be used"):
        bough.summarise(tmp_path / "log.csv", TREE, "product", "sales")
    assert bough.summarise(tmp_path / "log.csv", TREE, "product", "sales", bad="skip").n_rows == n
    (tmp_path / "log.csv").write_text("product,sales\n")
    assert bough.summarise(tmp_path / "log.csv", TREE, "product", "sales").n_rows == 0


def test_a_number_that_is_not_whole_is_no_integer_name(tmp_path):
    (tmp_path / "log.csv").write_text("sku,sales\n1,1.0\n2.0,1.0\n1.6,1.0\n")
    tree = bough.Tree.from_parents([-1, 0, 0], names=[0, 1, 2])
    kept = bough.summarise(tmp_path / "log.csv", tree, "sku", "sales", bad="skip")
    assert dict(zip(kept.actions.tolist(), kept.count.tolist(), strict=True)) == {1: 1.0, 2: 1.0}
    assert kept.skipped == {"unknown action": 1}


ODD_NAMES = ["a.b", 'q"uote', "*", "with blank", "#1", "c0", "select", "semi;colon", "^a.*$", "naïve"]


def odd_columns():
    """One column for each odd name, and beside them a struct whose field is what a dot would find."""
    numbers = {name: [float(i), float(10 * i)] for i, name in enumerate(ODD_NAMES)}
    return {"product": ["green", "black"], "a": [{"b": -1.0}, {"b": -1.0}], "axe": [-1.0, -1.0], **numbers}


@pytest.mark.parametrize("make", FRAMES)
def test_any_name_of_a_column_reads_that_column(make):
    log = odd_columns()
    for i, name in enumerate(ODD_NAMES):
        found = bough.summarise(make(log), TREE, "product", name, context=ODD_NAMES[: i or None])
        np.testing.assert_array_equal(found.sum_y, [i, 10 * i])
    renamed = log | {"the.product": log["product"], "product": ["?", "?"]}
    assert bough.summarise(make(renamed), TREE, "the.product", "a.b").actions.tolist() == ["green", "black"]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_any_name_of_a_column_in_a_file_reads_that_column(ending, tmp_path):
    log = odd_columns()
    if ending == "csv":
        log["a"] = [-1.0, -1.0]
    getattr(polars_frame(log), f"write_{ending}")(tmp_path / f"log.{ending}")
    for i, name in enumerate(ODD_NAMES):
        found = bough.summarise(tmp_path / f"log.{ending}", TREE, "product", name)
        np.testing.assert_array_equal(found.sum_y, [i, 10 * i])
    with pytest.raises(ValueError, match=r"log\.\w+ has no column 'a\.c'; it has product, a, axe, a\.b"):
        bough.summarise(tmp_path / f"log.{ending}", TREE, "product", "a.c")


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_tree_is_read_from_columns_of_any_name(ending, tmp_path):
    table = {"a": [{"b": "x"}] * 2, "a.b": ["tea", "coffee"], 'the "name"': [2, 1]}
    if ending == "csv":
        table["a"] = ["x", "x"]
    getattr(polars_frame(table), f"write_{ending}")(tmp_path / f"table.{ending}")
    tree = tree_of_table(tmp_path / f"table.{ending}", ["a.b", 'the "name"'])
    assert tree.path(2) == ["", "tea", 2]
    assert tree.path(1) == ["", "coffee", 1]
    with pytest.raises(ValueError, match=r"has no column 'a\.c'"):
        tree_of_table(tmp_path / f"table.{ending}", ["a.c"])


def test_a_name_that_two_columns_have_is_refused(tmp_path):
    import duckdb

    relation = duckdb.sql("SELECT 'green' AS product, 1.0 AS sales, 2.0 AS sales")
    (tmp_path / "log.csv").write_text("product,sales,sales\ngreen,1.0,2.0\n")
    for log in (relation, tmp_path / "log.csv"):
        with pytest.raises(ValueError, match="more than one column 'sales'"):
            bough.summarise(log, TREE, "product", "sales")


def test_names_in_a_table_of_text_are_integers_only_where_all_are_written_so(tmp_path):
    (tmp_path / "table.csv").write_text("group,sku\n1,007\n2,12\n")
    tree = tree_of_table(tmp_path / "table.csv", ["group", "sku"])
    assert tree.actions == ["007", "12"]
    (tmp_path / "table.csv").write_text("group,sku\n1,7\n2,12\n")
    assert tree_of_table(tmp_path / "table.csv", ["group", "sku"]).actions == [7, 12]
    rows_of_numbers = "".join(f"g,{i}\n" for i in range(30_000))  # more than DuckDB would look at
    (tmp_path / "table.csv").write_text(f"group,sku\n{rows_of_numbers}g,A7\n")
    assert tree_of_table(tmp_path / "table.csv", ["group", "sku"]).actions[-1] == "A7"


def sums_of(path, text, tree=TREE):
    path.write_text(text, newline="")
    found = bough.summarise(path, tree, "product", "sales")
    return dict(zip(found.actions.tolist(), found.sum_y.tolist(), strict=True))


def test_no_line_of_a_csv_file_is_a_comment(tmp_path):
    tree = bough.Tree.from_nested(["green", "#1", "black"])
    rows = "product,sales\ngreen,2\n#1,1\ngreen,4\n"
    assert sums_of(tmp_path / "log.csv", rows, tree) == {"green": 6.0, "#1": 1.0}
    for line, found in (("#end", 1), ("# made, by, hand", 3)):
        with pytest.raises(ValueError, match=rf"log\.csv cannot be read: .*Line: 5 .*Columns: 2 Found: {found}$"):
            sums_of(tmp_path / "log.csv", f"{rows}{line}\n", tree)
    with pytest.raises(ValueError, match="1 of 2 rows cannot be used"):
        sums_of(tmp_path / "log.csv", "product,sales\ngreen,2\n#green,3\n")


@pytest.mark.parametrize("row", ["black", "black,1,2", '"black,1'])
def test_a_row_that_does_not_fit_is_an_error_that_names_its_line(row, tmp_path):
    with pytest.raises(ValueError, match=r"log\.csv cannot be read: .*Line: 3 "):
        sums_of(tmp_path / "log.csv", f"product,sales\ngreen,2\n{row}\ngreen,3\n")


def test_a_preamble_is_not_skipped(tmp_path):
    with pytest.raises(ValueError, match="has no column 'product'; it has made by hand"):
        sums_of(tmp_path / "log.csv", "made by hand\nproduct,sales\ngreen,2\n")
    with pytest.raises(ValueError, match=r"log\.csv is empty"):
        sums_of(tmp_path / "log.csv", "")


@pytest.mark.parametrize(
    ("name", "text"),
    {
        "blank lines": ("log.csv", "\n\nproduct,sales\n\ngreen,2\n\nblack,3\n"),
        "windows": ("log.csv", "product,sales\r\ngreen,2\r\nblack,3"),
        "byte order mark": ("log.csv", "\ufeffproduct,sales\ngreen,2\nblack,3\n"),
        "semicolons": ("log.csv", "product;note;sales\ngreen;a,b;2\nblack;c,d;3\n"),
        "tabs": ("log.tsv", "product\tnote\tsales\ngreen\ta,b|c\t2\nblack\tc,d|e\t3\n"),
        "bars": ("log.txt", "sales|product\n2|green\n3|black\n"),
        "blanks": ("log.txt", "sales product\n2 green\n3 black\n"),
        "after commas": ("log.csv", "product, sales\ngreen, 2\nblack, 3\n"),
        "quotes": ("log.csv", 'note,product,"sales"\n"a,""b""\nc","green",2\n5" pipe,black,"3"\n'),
        "single quotes": ("log.csv", "note,product,sales\n'tis,green,2\n'a,black,3\n"),
    }.values(),
)
def test_text_files_are_read_by_rule(name, text, tmp_path):
    assert sums_of(tmp_path / name, text) == {"green": 2.0, "black": 3.0}


def test_files_with_their_columns_in_another_order_add_up(tmp_path):
    (tmp_path / "day=1").mkdir()
    (tmp_path / "day=1" / "a.csv").write_text("product,sales\ngreen,2\n")
    (tmp_path / "day=1" / "b.csv").write_text("sales;note;product\n3;?;black\n")
    (tmp_path / "day=1" / "c[1].csv").write_text("product,sales\ngreen,4\n")
    (tmp_path / "day=1" / "empty.csv").write_text("")
    found = bough.summarise(tmp_path, TREE, "product", "sales", context=["day"])
    assert found.actions.tolist() == ["green", "black"]
    np.testing.assert_array_equal(found.sum_y, [6.0, 3.0])
    np.testing.assert_array_equal(found.sum_xy, [[6.0], [3.0]])
    (tmp_path / "day=1" / "d.csv").write_text("product,profit\ngreen,4\n")
    with pytest.raises(ValueError, match=r"d\.csv has no column 'sales'; it has product, profit, day"):
        bough.summarise(tmp_path, TREE, "product", "sales")


def test_a_cell_that_is_neither_true_nor_false_is_a_bad_row(tmp_path):
    (tmp_path / "log.csv").write_text("product,sales\n" + "green,true\ngreen,False\n" * 20_000 + "green,maybe\n")
    found = bough.summarise(tmp_path / "log.csv", TREE, "product", "sales", bad="skip")
    assert found.sum_y.tolist() == [20_000.0]
    assert found.skipped == {"bad number": 1}


def test_integers_and_text_are_told_apart_in_words():
    whole = bough.Tree.from_parents([-1, 0, 0], names=["all", 100001, 100002])
    text = bough.Tree.from_nested(["100001", "100002"])
    sales = [1.0, 2.0]
    expected = {
        (whole, "text ('100001'), the tree integers (100001)"): ["100001", "100002"],
        (text, "integers (100001), the tree text ('100001')"): [100001, 100002],
    }
    for (tree, words), names in expected.items():
        with pytest.raises(ValueError, match="2 of 2 rows cannot be used") as caught:
            bough.summarise(polars_frame({"product": names, "sales": sales}), tree, "product", "sales")
        assert f"(the log's column 'product' holds {words}; cast one of them)" in str(caught.value)


@pytest.mark.parametrize("make", FRAMES)
def test_most_rows_are_left_out_only_where_that_is_asked_for(make):
    log = {"product": ["green", "black", "ale", "beer", "cider"], "sales": [1.0, 2.0, 3.0, 4.0, 5.0]}
    with pytest.raises(ValueError, match=r'3 of 5 rows cannot be used: .*bad="skip-most"'):
        bough.summarise(make(log), TREE, "product", "sales", bad="skip")
    assert bough.summarise(make(log), TREE, "product", "sales", bad="skip-most").skipped == {"unknown action": 3}
    half = {name: values[:4] for name, values in log.items()}
    assert bough.summarise(make(half), TREE, "product", "sales", bad="skip").skipped == {"unknown action": 2}


@pytest.mark.parametrize(
    ("text", "reward"), [("green,1", "profit"), ("green", "sales"), ("ale,1", "sales"), ("green,1", "product")]
)
def test_nothing_of_duckdb_is_left_after_an_error(text, reward, tmp_path):
    (tmp_path / "log.csv").write_text(f"product,sales\n{text}\n")
    script = (
        "import bough; tree = bough.Tree.from_nested(['green', 'black']); "
        f"bough.summarise('log.csv', tree, 'product', {reward!r})"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ValueError: ")
    assert "leak" not in done.stderr


def test_a_folder_of_csv_files(tmp_path):
    for part in range(2):
        (tmp_path / f"{part}.csv").write_text("product,sales\ngreen,1.0\n")
    assert bough.summarise(tmp_path, TREE, "product", "sales").n_rows == 2


@pytest.mark.parametrize("make", FRAMES)
def test_an_intercept_is_a_feature_that_is_always_one(make):
    log = rows()
    found = bough.summarise(make(log), TREE, "product", "sales", ["price"], intercept=True)
    assert_same(found, expected(log | {"one": np.ones(2_000)}, ["one", "price"]))


def test_shards_add_up_with_sum():
    one = bough.Statistics.from_rows(["green"], [1.0])
    assert sum([one, one, one]).n_rows == 3


def test_one_unknown_action_among_many_is_found_quickly():
    """Looking names up one by one, each in time proportional to all, would take minutes here."""
    tree = bough.Tree.from_nested([f"p{i}" for i in range(200_000)])
    log = polars_frame({"product": [*tree.actions, "q"], "sales": np.zeros(200_001)})
    assert bough.summarise(log, tree, "product", "sales", bad="skip").skipped == {"unknown action": 1}


def has_java() -> str | None:
    """Why Spark cannot run, or None where it can."""
    java = shutil.which("java")
    if java is None:
        return "there is no Java"
    return None if subprocess.run([java, "-version"], capture_output=True).returncode == 0 else "Java does not run"


@pytest.mark.skipif(has_java() is not None, reason=str(has_java()))
@pytest.mark.filterwarnings("ignore")  # Spark's own
def test_spark_gives_the_same_sums(monkeypatch):
    from pyspark.sql import SparkSession

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # otherwise whatever python3 there is
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    try:
        log = rows(500)
        frame = spark.createDataFrame(
            list(zip(*(np.asarray(v).tolist() for v in log.values()), strict=True)), list(log)
        )
        for columns in SETTINGS[1:]:
            assert_same(bough.summarise(frame, TREE, **columns), expected(log, **columns))
        broken = spark.createDataFrame([("green", 1.0), ("green", float("nan")), ("ale", 1.0)], ["product", "sales"])
        with pytest.raises(ValueError, match="2 of 3 rows cannot be used"):
            bough.summarise(broken, TREE, "product", "sales")
        dotted = spark.createDataFrame([("green", (7.0,), 1.0)], "product string, a struct<b: double>, `a.b` double")
        assert bough.summarise(dotted, TREE, "product", "a.b").sum_y.tolist() == [1.0]
    finally:
        spark.stop()


@pytest.mark.parametrize("make", FRAMES)
def test_rows_that_cannot_be_used_are_counted_and_shown(make):
    log = rows(8)
    log["product"] = ["green", "grene", None, "green", "black", "black", "black", "tea"]
    log["sales"] = [1.0, 1.0, 1.0, float("nan"), float("inf"), 2.0, 3.0, 4.0]
    log["price"] = [1.0] * 6 + [None, 1.0]
    columns = dict(action="product", reward="sales", context=["price"])
    with pytest.raises(ValueError, match="6 of 8 rows cannot be used") as caught:
        bough.summarise(make(log), TREE, **columns)
    text = str(caught.value)
    assert "3 with a null, NaN or infinite value" in text
    assert "3 with one of 3 unknown actions" in text
    assert "'grene'" in text
    assert "'black'" in text  # a row is shown as it is
    kept = bough.summarise(make(log), TREE, **columns, bad="skip-most")
    assert kept.skipped == {"bad number": 3, "unknown action": 3}
    assert "skipped" in repr(kept)
    assert_same(kept, bough.Statistics.from_rows(["green", "black"], [1.0, 2.0], [[1.0], [1.0]]))
    assert (kept + kept).skipped == {"bad number": 6, "unknown action": 6}


def test_integers_that_pandas_made_floats_are_found():
    frame = pandas_frame({"product": [3.0, 4.0, None], "sales": [1.0, 2.0, 3.0]})
    kept = bough.summarise(frame, bough.Tree.balanced(2, 2), "product", "sales", bad="skip")
    assert kept.actions.tolist() == [3, 4]
    assert kept.skipped == {"unknown action": 1}


def test_categories_are_found():
    frame = pandas_frame(rows(50)).astype({"product": "category"})
    assert_same(bough.summarise(frame, TREE, "product", "sales"), expected(rows(50)))


def test_a_negative_weight_cannot_be_used():
    log = rows(3) | {"weight": [1.0, -1.0, 2.0]}
    with pytest.raises(ValueError, match="1 of 3 rows"):
        bough.summarise(polars_frame(log), TREE, **SETTINGS[2])


@pytest.mark.parametrize(
    ("log", "columns", "message"),
    [
        (3, {}, "log is a int"),
        ("log.xlsx", {}, "neither a Parquet nor a CSV"),
        ("nowhere/*.parquet", {}, r"there is no file 'nowhere/\*\.parquet'; give one that is there"),
        ("nowhere/*.csv", {}, r"there is no file 'nowhere/\*\.csv'"),
        (rows(5), dict(reward="profit"), "no column 'profit'; it has product, sales"),
        (rows(5), dict(reward="product"), "cast it to numbers$"),
        (rows(5), dict(context="price"), "give a list"),
        (rows(5), dict(context=["product"]), r"cast it to numbers, or give features=bough.Features.learn\(...\)$"),
        (rows(5), dict(context=[]), "context is empty"),
        (rows(5), dict(context=["price", "new", "price"]), "context has 'price' twice"),
        (rows(5), dict(intercept=True), "intercept goes with context, which names columns of the log"),
        (rows(5), dict(reward=["sales"]), "reward is"),
        (rows(5), dict(bad="ignore"), "bad is 'ignore'"),
        (rows(5) | {"sales": [1e300] * 5}, {}, "too large"),
    ],
)
def test_what_cannot_be_summarised_says_why(log, columns, message):
    given_log = polars_frame(log) if isinstance(log, dict) else log
    with pytest.raises(ValueError, match=message):
        bough.summarise(given_log, TREE, **{"action": "product", "reward": "sales", **columns})


def test_an_empty_log_has_no_actions():
    empty = bough.summarise(
        polars_frame({"product": [], "sales": []}).cast({"product": str, "sales": float}), TREE, "product", "sales"
    )
    assert len(empty.actions) == 0
    posterior = bough.Posterior(bough.GaussianModel(TREE))
    posterior.absorb(empty)
    assert posterior.n_observations == 0


# -- statistics -----------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(cases(), st.integers(0, 2**32 - 1))
def test_absorbing_statistics_is_updating_with_the_rows(case, seed):
    """Sums of squares lose more digits than rows do, so the case's noise and variances decide how close."""
    if len(case.rewards) >= 10_000:
        return
    names = np.array(case.actions)
    rng = np.random.default_rng(seed)
    first = rng.random(len(names)) < 0.5
    by_rows, by_sums = case.posterior(), bough.Posterior(case.model)
    for part in (first, ~first):
        contexts = None if case.contexts is None else case.contexts[part]
        by_sums.absorb(bough.Statistics.from_rows(names[part], case.rewards[part], contexts))
    scale = 1.0 + np.abs(by_rows.mean).max()
    np.testing.assert_allclose(by_sums.mean / scale, by_rows.mean / scale, atol=1e-6)
    np.testing.assert_array_equal(by_sums.count, by_rows.count)
    np.testing.assert_allclose(by_sums.log_evidence(), by_rows.log_evidence(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dim", [None, 3])
def test_ordinary_rows_and_their_sums_agree_to_rounding(dim):
    rng = np.random.default_rng(1)
    model = bough.GaussianModel(bough.Tree.balanced(3, 3), 0.5 if dim is None else [0.5, 0.0, -1.0])
    names, rewards = rng.choice(model.tree.leaves, 500), rng.normal(2.0, 1.0, 500)
    contexts = None if dim is None else rng.normal(size=(500, dim))
    by_rows, by_sums = bough.Posterior(model), bough.Posterior(model)
    by_rows.update(names, rewards, contexts)
    by_sums.absorb(bough.Statistics.from_rows(names, rewards, contexts))
    np.testing.assert_allclose(by_sums.mean, by_rows.mean, atol=1e-12)
    np.testing.assert_allclose(by_sums.covariance, by_rows.covariance, atol=1e-12)
    assert by_sums.log_evidence() == pytest.approx(by_rows.log_evidence(), rel=1e-12)


def test_a_weight_counts_as_equal_rows():
    model = bough.GaussianModel(TREE)
    weighted, repeated = bough.Posterior(model), bough.Posterior(model)
    weighted.absorb(bough.Statistics.from_rows(["green", "black", "water"], [1.0, 2.0, 9.0], weight=[3, 1, 0]))
    repeated.update(["green", "green", "green", "black"], [1.0, 1.0, 1.0, 2.0])
    np.testing.assert_allclose(weighted.mean, repeated.mean, atol=1e-14)
    np.testing.assert_array_equal(weighted.count, repeated.count)
    assert weighted.log_evidence() == pytest.approx(repeated.log_evidence(), abs=1e-13)


def test_statistics_survive_a_file(tmp_path):
    for context in (None, FEATURES):
        statistics = bough.summarise(polars_frame(rows()), TREE, "product", "sales", context)
        statistics.save(tmp_path / "sums.bough")
        assert_same(bough.Statistics.load(tmp_path / "sums.bough"), statistics, rtol=0)
    with pytest.raises(ValueError, match="holds a 'statistics'"):
        bough.Posterior.load(tmp_path / "sums.bough")


def test_statistics_that_do_not_fit_are_refused_and_change_nothing():
    posterior = bough.Posterior(bough.GaussianModel(TREE))
    with pytest.raises(KeyError, match="unknown action 'ale'"):
        posterior.absorb(bough.Statistics.from_rows(["green", "ale"], [1.0, 1.0]))
    with pytest.raises(ValueError, match="contexts of length 2; the model's is None"):
        posterior.absorb(bough.Statistics.from_rows(["green"], [1.0], [[1.0, 2.0]]))
    with pytest.raises(ValueError, match=r"give bough\.Statistics"):
        posterior.absorb([1.0])
    assert posterior.n_observations == 0
    with pytest.raises(ValueError, match="cannot be added"):
        bough.Statistics.from_rows(["green"], [1.0]) + bough.Statistics.from_rows(["green"], [1.0], [[1.0, 2.0]])
    with pytest.raises(ValueError, match="action has length 2 and reward 1"):
        bough.Statistics.from_rows(["green", "black"], [1.0])
    with pytest.raises(ValueError, match="negative"):
        bough.Statistics.from_rows(["green"], [1.0], weight=[-1.0])
