"""bough adopt: an agent's file and tonight's table in, what has changed and the agent's file out."""

import numpy as np
import polars
import pytest

import bough
from bough import cli
from bough.data.files import tree_of_table

MONDAY = [("home", 1001, "kettle"), ("home", 1002, "toaster"), ("toys", 1003, "kite")]
TUESDAY = [("home", 1001, "kettle-2"), ("home", 1004, "mug"), ("toys", 1002, "toaster")]
BY_SKU = ["--tree", "tuesday.csv", "--levels", "group,sku"]
BY_NAME = ["--tree", "tuesday.csv", "--levels", "group,name"]
POLICIES = (bough.HierTS, bough.FlatTS, bough.TS, bough.BayesUCB, bough.Greedy)


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A folder with the tables of two days, and Monday's agents: by number and by name."""
    monkeypatch.chdir(tmp_path)
    for day, rows in (("monday", MONDAY), ("tuesday", TUESDAY)):
        lines = ["group,sku,name", *(",".join(map(str, row)) for row in rows)]
        (tmp_path / f"{day}.csv").write_text("\n".join(lines))
    made(bough.HierTS, "sku").save("numbered.bough")
    made(bough.HierTS, "name").save("named.bough")
    return tmp_path


def made(policy, column):
    tree = tree_of_table("monday.csv", ["group", column])
    agent = policy(bough.GaussianModel(tree), seed=0)
    agent.update(list(tree.actions), [1.0, 2.0, 3.0])
    return agent


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_goes_on_with_the_table_in_the_same_file(policy, shop, capsys):
    made(policy, "sku").save("agent.bough")
    assert cli.main(["adopt", "agent.bough", *BY_SKU, "--out", "agent.bough"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert shown.out.splitlines() == [
        "added 1: 1004",
        "retired 1: 1003; restored 0; forgotten 0",
        "moved 1: 1002; renamed 0",
        "agent: agent.bough",
    ]
    agent, expected = policy.load("agent.bough"), made(policy, "sku")
    expected.adopt(tree_of_table("tuesday.csv", ["group", "sku"]))
    assert agent.retired == expected.retired == [1003]
    assert np.array_equal(agent.posterior.mean, expected.posterior.mean)
    assert agent.decide_many(20) == expected.decide_many(20)


def test_without_out_it_only_says_what_would_change(shop, capsys):
    before = (shop / "named.bough").read_bytes()
    assert cli.main(["adopt", "named.bough", *BY_NAME]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "agent: not written; give --out FILE for that"
    assert (shop / "named.bough").read_bytes() == before


def test_what_is_gone_is_forgotten_on_request(shop, capsys):
    assert cli.main(["adopt", "numbered.bough", *BY_SKU, "--gone", "forget", "--out", "new.bough"]) == 0
    assert "forgotten 1: 1003" in capsys.readouterr().out
    assert bough.HierTS.load("new.bough").posterior.statistics.actions.tolist() == [1001, 1002]


def test_renamed_actions_come_in_pairs_or_in_a_table(shop, capsys):
    (shop / "renamed.csv").write_text("old,new\nkettle,kettle-2\n")
    polars.DataFrame({"old": ["kite"], "new": ["mug"]}).write_parquet(shop / "more.parquet")
    for given in (["renamed.csv", "more.parquet"], ["kettle=kettle-2", "kite=mug"]):
        options = [word for one in given for word in ("--renamed", one)]
        assert cli.main(["adopt", "named.bough", *BY_NAME, *options]) == 0
        assert capsys.readouterr().out.splitlines()[:3] == [
            "added 0",
            "retired 0; restored 0; forgotten 0",
            "moved 2: 'toaster', 'kite'; renamed 2: 'kettle' to 'kettle-2', 'kite' to 'mug'",
        ]
    assert cli.main(["adopt", "numbered.bough", *BY_SKU, "--renamed", "1003=1004"]) == 0
    assert "renamed 1: 1003 to 1004" in capsys.readouterr().out


def test_names_that_look_like_numbers_are_text_where_the_agents_are(shop, capsys):
    tree = bough.Tree.from_nested({"home": ["1001", "1002"], "toys": ["1003"]})
    bough.HierTS(bough.GaussianModel(tree), seed=0).save("text.bough")
    assert cli.main(["adopt", "text.bough", *BY_SKU]) == 0
    assert capsys.readouterr().out.startswith("added 1: '1004'\nretired 1: '1003'")


def test_a_model_brings_its_tree_and_its_prior(shop, capsys):
    tree = tree_of_table("tuesday.csv", ["group", "sku"])
    bough.GaussianModel(tree, covariance=4.0).save("model.bough")
    assert cli.main(["adopt", "numbered.bough", "--model", "model.bough", "--out", "new.bough"]) == 0
    assert "added 1: 1004" in capsys.readouterr().out
    assert bough.HierTS.load("new.bough").posterior.model.marginal_covariance[0] == 4.0


def test_paths_and_another_separator(shop, capsys):
    old = bough.Tree.from_paths(["home>kitchen>kettle", "home>garden>spade"], sep=">")
    bough.HierTS(bough.GaussianModel(old), seed=0).save("agent.bough")
    (shop / "tree.txt").write_text("home>kitchen>kettle\nhome>kitchen>mug\n")
    assert cli.main(["adopt", "agent.bough", "--tree", "tree.txt", "--sep", ">", "--out", "agent.bough"]) == 0
    assert "moved 0" in capsys.readouterr().out
    tree = bough.HierTS.load("agent.bough").posterior.model.tree
    assert tree.path("home>garden>spade") == ["", "home", "home>garden", "home>garden>spade"]
    assert cli.main(["adopt", "agent.bough", "--tree", "tree.txt"]) == 0  # the agent's own is the default
    assert capsys.readouterr().out.startswith("added 0\n")


def test_rows_with_gaps_hang_one_level_higher_on_request(shop, capsys):
    (shop / "gaps.csv").write_text("group,name,sku\nhome,kettle,1001\n,toaster,1002\n,,1003\n,,1003\n")
    table = ["--tree", "gaps.csv", "--levels", "group,name,sku"]
    assert cli.main(["adopt", "numbered.bough", *table]) == 2
    words = "gaps.csv has rows that lack a name: 3 without a group, 2 without a name; put them right"
    shown = capsys.readouterr().err
    assert words in shown
    assert "--missing parent" in shown
    assert cli.main(["adopt", "numbered.bough", *table, "--missing", "parent", "--out", "new.bough"]) == 0
    tree = bough.HierTS.load("new.bough").posterior.model.tree
    assert [tree.path(name) for name in (1002, 1003)] == [["", "toaster", 1002], ["", 1003]]
    assert tree.levels == ("root", "group", "name", "sku")


class Stubborn(bough.Greedy):
    """A policy of a user's own."""


BAD = {
    "no tree": (["numbered.bough"], "no tree was given; give --tree FILE"),
    "no levels": (["numbered.bough", "--tree", "tuesday.csv"], "name its columns, coarsest first, with --levels"),
    "two trees": (["numbered.bough", *BY_SKU, "--model", "model.bough"], "--model has a tree already"),
    "no agent": (["nowhere.bough", *BY_SKU], "there is no file 'nowhere.bough'; "),
    "no file of bough": (["monday.csv", *BY_SKU], "monday.csv is not a bough file"),
    "a posterior": (["posterior.bough", *BY_SKU], "holds a posterior, and no agent; bough fit"),
    "a policy without a tree": (["beta.bough", *BY_SKU], "beta.bough holds a BetaTS, which does without a tree"),
    "a policy of one's own": (["own.bough", *BY_SKU], "own.bough holds a 'Stubborn', which is not built in"),
    "no table": (
        ["numbered.bough", "--tree", "nowhere.csv", "--levels", "sku"],
        "there is no file 'nowhere.csv'; give one that is there",
    ),
    "no column": (["numbered.bough", "--tree", "tuesday.csv", "--levels", "kind,sku"], "no column 'kind'"),
    "a table with a gap": (["numbered.bough", "--tree", "gap.csv", "--levels", "group,sku"], "1 without a sku; put"),
    "gaps in paths": (["named.bough", "--tree", "tree.txt", "--missing", "parent"], "--missing goes with a table"),
    "gone": (["numbered.bough", *BY_SKU, "--gone", "raise"], "1003"),
    "another table": (["numbered.bough", *BY_NAME], "has none of the agent's 3 actions"),
    "other types": (
        ["numbered.bough", "--tree", "odd.csv", "--levels", "group,sku"],
        "1001 is an integer in the agent and text in odd.csv ('B-17' is no integer)",
    ),
    "too deep": (["numbered.bough", "--tree", "tuesday.csv", "--levels", "group,name,sku"], "by_depth has"),
    "renamed from nowhere": (["named.bough", *BY_NAME, "--renamed", "ketle=kettle-2"], "did you mean 'kettle'?"),
    "renamed twice": (
        ["named.bough", *BY_NAME, "--renamed", "kettle=mug", "--renamed", "kettle=kettle-2"],
        "--renamed gives 'kettle' more than one new name",
    ),
    "no renaming": (["named.bough", *BY_NAME, "--renamed", "kettle"], "--renamed is 'kettle'; give OLD=NEW"),
    "no table of names": (
        ["named.bough", *BY_NAME, "--renamed", "nowhere.csv"],
        "there is no file 'nowhere.csv'; give one that is there",
    ),
    "another table of names": (["named.bough", *BY_NAME, "--renamed", "monday.csv"], "no column 'old'"),
    "a name without another": (["named.bough", *BY_NAME, "--renamed", "half.csv"], "rows without a 'new'"),
    "no separator": (["numbered.bough", *BY_SKU, "--sep", ""], "sep is ''"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_adopted_is_one_line_and_nothing_is_written(what, shop, capsys):
    agent = made(bough.HierTS, "sku")
    agent.posterior.save("posterior.bough")
    agent.posterior.model.save("model.bough")
    deep = bough.by_depth([1.0, 1.0, 0.5])
    bough.HierTS(bough.GaussianModel(agent.posterior.model.tree, covariance=deep)).save("numbered.bough")
    Stubborn(agent.posterior.model).save("own.bough")
    bough.BetaTS(bough.BernoulliModel(agent.posterior.model.tree)).save("beta.bough")
    (shop / "odd.csv").write_text("group,sku\nhome,1001\nhome,B-17\n")
    (shop / "gap.csv").write_text("group,sku\nhome,1001\nhome,\n")
    (shop / "half.csv").write_text("old,new\nkettle,\n")
    before = {path.name: path.read_bytes() for path in shop.iterdir()}
    arguments, text = BAD[what]
    assert cli.main(["adopt", *arguments, "--out", arguments[0]]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.strip().splitlines()) == 1
    assert text in shown.err
    assert {path.name: path.read_bytes() for path in shop.iterdir()} == before


def test_a_folder_that_is_not_there_is_told_before_anything_else(shop, capsys):
    assert cli.main(["adopt", "nowhere.bough", *BY_SKU, "--out", "a/b"]) == 2
    assert "--out a/b cannot be written" in capsys.readouterr().err
