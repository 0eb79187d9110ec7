"""The code of the README runs, block by block, on data such as it speaks of."""

import numpy as np
import polars
import pytest

import bough
import bough.cli
from pages import FILES, blocks

FIRST, FIT, CHANGES, EVALUATE = blocks(FILES[0], "python")
SHELVES = {"home": ["kitchen", "garden"], "toys": ["outdoor", "indoor"]}


@pytest.fixture
def products():
    """A product table."""
    rows = [(shop, shelf, f"{shelf} {i}") for shop, shelves in SHELVES.items() for shelf in shelves for i in range(6)]
    return polars.DataFrame(rows, schema=["department", "category", "product"], orient="row")


@pytest.fixture
def here(tmp_path, monkeypatch, products):
    """A folder with a log of decisions, sales by name, in two files."""
    rng = np.random.default_rng(0)
    names = np.asarray(products["product"].to_list())
    worth = dict(zip(names, rng.normal(5.0, 1.0, len(names)), strict=True))
    shown = rng.choice(names, 2_000)
    sales = np.array([worth[name] for name in shown]) + rng.normal(size=2_000)
    log = polars.DataFrame(
        {
            "product": shown,
            "sales": sales,
            "action": shown,
            "reward": sales,
            "propensity": [1 / len(names)] * 2_000,
        }
    )
    (tmp_path / "logs").mkdir()
    for part in (0, 1):
        log[part::2].write_parquet(tmp_path / "logs" / f"{part}.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_from_a_log_to_an_agent_and_to_its_evaluation(here, products, capsys):
    names = {"bough": bough, "products": products}
    exec(FIT, names)
    assert "variance at department" in capsys.readouterr().out
    assert names["agent"].posterior.n_observations == 2_000
    exec(EVALUATE, names)
    assert {one.policy for one in names["report"].values} == {"new"}


def test_the_commands_of_the_readme_do_the_same(here, products, capsys):
    products.write_csv("products.csv")
    log = "logs/0.parquet --tree products.csv --levels department,category,product --action product --reward sales"
    assert bough.cli.main(["fit", *log.split(), "--agent", "agent.bough"]) == 0
    assert bough.cli.main(["show", "agent.bough"]) == 0
    assert bough.cli.main(["decide", "agent.bough", "--k", "5", "--json"]) == 0
    assert capsys.readouterr().out.count('"actions"') >= 1


def test_the_first_block_and_the_changes_are_tested_as_they_stand():
    """In tests/test_facade.py, which finds them by what is in them."""
    assert FIRST.startswith("import bough\n")
    assert len([line for line in FIRST.splitlines() if line]) == 5
    assert "agent.adopt(" in CHANGES
