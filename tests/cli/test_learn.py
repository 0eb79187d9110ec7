"""bough learn: an agent in a file learns what a log says, as the library would, and is written whole or not at all."""

import io
import json
import sys

import numpy as np
import polars
import pytest

import bough
from bough import cli

TREE = bough.Tree.from_nested({"home": ["kettle", "lamp"], "garden": ["spade", "rake"]})
MODEL = bough.GaussianModel(TREE, 1.0, 0.5, 1.0)
COLUMNS = ["--action", "item", "--reward", "sales"]
SALES = {"item": ["kettle", "rake", "kettle"], "sales": [2.0, 1.0, 4.0]}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    polars.DataFrame(SALES).write_csv("log.csv")
    return tmp_path


def assert_same(one, other):
    np.testing.assert_allclose(one.posterior.mean, other.posterior.mean, rtol=1e-9)
    assert one.posterior.n_observations == other.posterior.n_observations


@pytest.mark.parametrize("policy", [bough.HierTS, bough.TS, bough.Greedy])
def test_the_agent_in_the_file_has_learned_as_by_update_and_goes_on_as_before(policy, capsys):
    agent = policy(MODEL, seed=0)
    agent.decide()
    agent.save("agent.bough")
    assert cli.main(["learn", "agent.bough", "log.csv", *COLUMNS]) == 0
    assert capsys.readouterr().out == "learned: 3 rows of 2 actions\nagent: agent.bough (replaced)\n"
    agent.update(SALES["item"], SALES["sales"])
    found = policy.load("agent.bough")
    assert_same(found, agent)
    assert [found.decide() for _ in range(5)] == [agent.decide() for _ in range(5)]


def test_a_single_reward_comes_from_the_standard_input_and_goes_to_another_file(here, monkeypatch, capsys):
    bough.HierTS(MODEL, seed=0).save("agent.bough")
    before = (here / "agent.bough").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"item,sales\nspade,3.5\n")))
    assert cli.main(["learn", "agent.bough", "-", *COLUMNS, "--out", "new.bough", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"left_out": {}, "rows": 1.0, "actions": 1, "agent": "new.bough"}
    assert (here / "agent.bough").read_bytes() == before
    agent = bough.HierTS(MODEL, seed=0)
    agent.update("spade", 3.5)
    assert_same(bough.HierTS.load("new.bough"), agent)


@pytest.mark.parametrize(("model", "word"), [(bough.BernoulliModel, "trials"), (bough.PoissonModel, "exposure")])
def test_clicks_and_counts_come_with_their_sizes_in_contexts_too(model, word):
    log = {"item": ["kettle", "rake", "lamp"], "sales": [3, 0, 1], "size": [5, 2, 4], "age": [1.0, 0.5, 2.0]}
    polars.DataFrame(log).write_csv("sizes.csv")
    plain = model(TREE, 0.0, 0.5)
    named = model(TREE, [0.0, 0.0], 0.5 * np.eye(2), features=["intercept", "age"])
    for one, context in ((plain, None), (named, np.column_stack([np.ones(3), log["age"]]))):
        agent = bough.HierTS(one, seed=0)
        agent.save("agent.bough")
        assert cli.main(["learn", "agent.bough", "sizes.csv", *COLUMNS, f"--{word}", "size"]) == 0
        agent.update(log["item"], log["sales"], context, **{word: log["size"]})
        assert_same(bough.HierTS.load("agent.bough"), agent)


def test_contexts_without_names_are_named_by_their_columns(capsys):
    polars.DataFrame({**SALES, "price": [1.0, 2.0, 3.0]}).write_csv("prices.csv")
    agent = bough.HierTS(bough.GaussianModel(TREE, [0.0, 0.0]), seed=0)
    agent.save("agent.bough")
    assert cli.main(["learn", "agent.bough", "prices.csv", *COLUMNS]) == 2
    assert "takes contexts of length 2; name their columns with --context" in capsys.readouterr().err
    assert cli.main(["learn", "agent.bough", "prices.csv", *COLUMNS, "--context", "price"]) == 0
    agent.update(SALES["item"], SALES["sales"], [[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    assert_same(bough.HierTS.load("agent.bough"), agent)


def test_the_levels_of_decisions_are_in_columns_of_their_names():
    model = bough.GaussianModel(
        TREE, 1.0, 0.5, 1.0, factors={"store": bough.Factor(levels=["north", "south"], at_decision=True)}
    )
    stores = ["north", "south", "north"]
    polars.DataFrame({**SALES, "store": stores}).write_csv("stores.csv")
    agent = bough.HierTS(model, seed=0)
    agent.save("agent.bough")
    assert cli.main(["learn", "agent.bough", "stores.csv", *COLUMNS]) == 0
    agent.update(SALES["item"], SALES["sales"], factors={"store": stores})
    assert_same(bough.HierTS.load("agent.bough"), agent)


def test_actions_that_were_added_since_are_learned_too():
    agent = bough.HierTS(MODEL, seed=0)
    agent.add("hose", "garden")
    agent.save("agent.bough")
    polars.DataFrame({"item": ["hose"], "sales": [3.0]}).write_csv("hoses.csv")
    assert cli.main(["learn", "agent.bough", "hoses.csv", "log.csv", *COLUMNS]) == 0
    assert bough.HierTS.load("agent.bough").posterior.n_observations == 4


BAD = {
    "no agent": (["model.bough", "log.csv", *COLUMNS], "model.bough holds a model, and no agent; bough fit"),
    "no log": (["agent.bough", "nowhere.csv", *COLUMNS], "there is no file 'nowhere.csv'"),
    "an unknown action": (["agent.bough", "hoes.csv", *COLUMNS], "1 with one of 1 unknown actions, such as 'hoe'"),
    "no rows": (["agent.bough", "empty.csv", *COLUMNS], "the log has no row that can be used"),
    "no column": (["agent.bough", "log.csv", "--action", "sku", "--reward", "sales"], "log.csv has no column 'sku'"),
    "trials of no clicks": (["agent.bough", "log.csv", *COLUMNS, "--trials", "n"], "trials was given, which goes with"),
    "a context too many": (["agent.bough", "log.csv", *COLUMNS, "--context", "sales"], "contexts of length 1"),
    "one of two logs": (["agent.bough", "log.csv", "hoes.csv", *COLUMNS], "unknown actions"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_learned_is_one_line_and_nothing_is_written(what, here, capsys):
    MODEL.save("model.bough")
    bough.HierTS(MODEL, seed=0).save("agent.bough")
    before = (here / "agent.bough").read_bytes()
    (here / "hoes.csv").write_text("item,sales\nhoe,1\nrake,1\n")
    (here / "empty.csv").write_text("item,sales\n")
    arguments, text = BAD[what]
    assert cli.main(["learn", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.strip().splitlines()) == 1
    assert text in said.err
    assert (here / "agent.bough").read_bytes() == before
