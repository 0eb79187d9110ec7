"""A log with rows that cannot be used: what is said of it names the reason, the values and what would help."""

import pytest

import bough
from bough import cli

pl = pytest.importorskip("polars")
pytest.importorskip("duckdb")

TREE = bough.Tree.from_frame(pl.DataFrame({"kind": ["tea", "tea", "cup"], "sku": [1001, 1002, 1003]}), ["kind", "sku"])
COUNTS = "sku,clicks,views\n1001,3,2\n1002,1,0\n1003,0.5,3\n1003,1,3\n"


def complaint(folder, text, *columns, **options):
    (folder / "log.csv").write_text(text)
    with pytest.raises(ValueError, match="rows cannot be used: ") as caught:
        bough.summarise(folder / "log.csv", TREE, *columns, **options)
    return str(caught.value)


def test_text_in_a_column_of_numbers_is_shown(tmp_path):
    text = complaint(tmp_path, 'sku,sales\n1001,EUR 2.25\n1002,2.5\n1003,"2,25"\n', "sku", "sales")
    assert text.startswith("2 of 3 rows cannot be used: 2 with text where a number belongs, such as {")
    assert "{'sku': 1001, 'sales': 'EUR 2.25'}; {'sku': 1003, 'sales': '2,25'}" in text
    assert "null" not in text
    assert "--skip-bad" in text


def test_a_column_without_a_number_looks_wrong_and_nothing_is_to_be_skipped(tmp_path):
    for bad in ("error", "skip"):
        text = complaint(tmp_path, "sku,sales\n1001,EUR 2.25\n1002,EUR 3\n", "sku", "sales", bad=bad)
        assert text.endswith("the column 'sales' has not one number and looks wrong; give one of numbers such as 2.25")
        assert "skip" not in text


@pytest.mark.parametrize(
    ("options", "reasons"),
    [
        ({}, None),
        (dict(model=bough.PoissonModel), ["no whole number of 0 or more"]),
        (dict(model=bough.BernoulliModel), ["neither 0 nor 1"]),
        (dict(exposure="views"), ["no whole number of 0 or more", "an exposure that is not positive"]),
        (dict(trials="views"), ["no whole number of 0 or more", "trials that are not positive", "more clicks than"]),
    ],
)
def test_only_the_reasons_that_apply_are_named(options, reasons, tmp_path):
    if reasons is None:
        (tmp_path / "log.csv").write_text(COUNTS)
        assert bough.summarise(tmp_path / "log.csv", TREE, "sku", "clicks").n_rows == 4
        return
    text = complaint(tmp_path, COUNTS, "sku", "clicks", **options)
    every = ["null", "weight", "text", "no whole", "neither 0", "an exposure", "trials that are", "more clicks"]
    named = [one for one in every if one in text.replace("clicks of many views take trials", "")]
    assert len(named) == len(reasons)
    assert all(reason in text for reason in reasons)


def test_a_row_without_a_level_and_one_of_negative_weight_are_told_apart():
    log = pl.DataFrame({"sku": [1001, 1002], "sales": [1.0, 2.0], "shop": [None, "north"], "rows": [1.0, 1.0]})
    named = dict(action="sku", reward="sales", weight="rows", factors={"store": "shop"})
    with pytest.raises(ValueError, match="1 with a missing level, such as"):
        bough.summarise(log, TREE, **named)
    with pytest.raises(ValueError, match="1 with a negative weight, such as"):
        bough.summarise(log.with_columns(shop=pl.lit("north"), rows=pl.Series([1.0, -1.0])), TREE, **named)


DAYS = {"day": ["2026-01-01", "2026-01-02"], "sku": [1001, 1003], "sales": [1.0, 2.0]}


@pytest.mark.parametrize("make", [pl.DataFrame, pl.LazyFrame, lambda log: pl.DataFrame(log).to_arrow()])
def test_a_wrong_column_of_actions_is_named_with_the_right_one(make):
    with pytest.raises(ValueError, match="2 of 2 rows") as caught:
        bough.summarise(make(DAYS), TREE, "day", "sales", bad="skip")
    assert str(caught.value) == (
        "2 of 2 rows cannot be used: the column 'day' has no action of the tree, but values such as '2026-01-01' "
        "(an action of this tree is 1001); the column 'sku' has actions of the tree, give that one"
    )


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_wrong_column_of_actions_in_a_file_is_named_with_the_right_one(ending, tmp_path):
    getattr(pl.DataFrame(DAYS), f"write_{ending}")(tmp_path / f"log.{ending}")
    with pytest.raises(ValueError, match="the column 'day' has no action of the tree") as caught:
        bough.summarise(tmp_path / f"log.{ending}", TREE, "day", "sales")
    assert "values such as '2026-01-01' (an action of this tree is 1001)" in str(caught.value)
    assert str(caught.value).endswith("; the column 'sku' has actions of the tree, give that one")
    with pytest.raises(ValueError, match=r"the column 'kind' has no action .* 'tea' .a category, which is no action.$"):
        bough.summarise(pl.DataFrame({"kind": ["tea"], "sales": [1.0]}), TREE, "kind", "sales")


def test_the_command_refuses_what_no_model_of_counts_takes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "products.csv").write_text("kind,sku\ntea,1001\ntea,1002\ncup,1003\n")
    (tmp_path / "log.csv").write_text("sku,sales\n1001,2.25\n1002,3\n1003,1\n1003,4\n")
    fit = ["fit", "log.csv", "--tree", "products.csv", "--levels", "kind,sku", "--action", "sku", "--reward", "sales"]
    assert cli.main([*fit, "--rewards", "poisson"]) == 2
    assert "1 of 4 rows cannot be used: 1 with a reward that is no whole number" in capsys.readouterr().err
    assert cli.main([*fit, "--rewards", "poisson", "--skip-bad"]) == 0
    assert "left out: 1 row (bad number)" in capsys.readouterr().out
