"""bough decide: what the agent in a file would choose, with its propensity; the file stays as it is."""

import io
import json
import sys

import pytest

import bough
from bough import cli
from bough.cli.contexts import context_of

TREE = bough.Tree.from_nested({"home": ["kettle", "toaster"], "toys": ["kite", "ball", "yoyo"]})
MODEL = bough.GaussianModel(TREE)
POLICIES = (bough.HierTS, bough.FlatTS, bough.TS, bough.BayesUCB, bough.Greedy)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(policy=bough.HierTS, model=MODEL):
    agent = policy(model, seed=3)
    agent.update(["kettle", "kite", "kite"], [1.0, 2.0, 2.5])
    agent.save("agent.bough")
    return agent


def decided(capsys, *arguments):
    assert cli.main(["decide", "agent.bough", *arguments, "--json"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    return json.loads(shown.out)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_decision_is_the_one_that_the_agent_would_make_and_the_file_stays(policy, here, capsys):
    agent = made(policy)
    before = (here / "agent.bough").read_bytes()
    first, second = decided(capsys, "--k", "2"), decided(capsys, "--k", "2")
    assert (here / "agent.bough").read_bytes() == before
    expected = agent.decision(k=2)
    assert first["actions"] == second["actions"] == expected.actions
    assert first["scores"] == expected.scores
    assert first["propensities"] == expected.propensities
    assert first["propensity"] == first["propensities"][0]
    assert first["n_observations"] == 3
    assert first["decision_id"] != second["decision_id"]


def test_the_text_has_a_line_per_action(capsys):
    made()
    assert cli.main(["decide", "agent.bough", "--k", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["action", "score", "propensity"]
    assert [line.split()[0] for line in lines[1:]] == bough.HierTS.load("agent.bough").decide(k=3)
    assert all(" ± " in line for line in lines[1:])
    assert cli.main(["decide", "agent.bough", "--samples", "0"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["action", "score"]


def test_a_seed_draws_anew_and_repeats(capsys):
    made()
    drawn = [decided(capsys, "--seed", str(seed), "--samples", "0")["action"] for seed in (*range(12), 0)]
    assert drawn[0] == drawn[-1]
    assert len(set(drawn)) > 1  # all twelve alike: fewer than one in a thousand seeds of the agent
    assert decided(capsys, "--samples", "0")["propensity"] is None


def test_the_choice_is_restricted_by_names_or_files(here, monkeypatch, capsys):
    made()
    assert decided(capsys, "--among", "ball")["action"] == "ball"
    assert set(decided(capsys, "--among", "ball, yoyo", "--k", "2")["actions"]) == {"ball", "yoyo"}
    assert set(decided(capsys, "--exclude", "ball,yoyo,kite", "--k", "2")["actions"]) == {"kettle", "toaster"}
    (here / "stock.txt").write_text("ball\n\nyoyo\n")
    assert decided(capsys, "--among", "@stock.txt", "--exclude", "ball")["action"] == "yoyo"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"toaster\n")))
    found = decided(capsys, "--among", "@-")
    assert (found["action"], found["among"], found["propensity"]) == ("toaster", ["toaster"], 1.0)


def test_names_that_are_integers_are_meant_by_their_digits(capsys):
    bough.HierTS(bough.GaussianModel(bough.Tree.balanced(3, 2)), seed=0).save("agent.bough")
    found = decided(capsys, "--among", "4,5", "--exclude", "5")
    assert (found["action"], found["among"], found["exclude"]) == (4, [4, 5], [5])


def test_contexts_are_numbers_pairs_or_json(capsys):
    model = bough.GaussianModel(TREE, mean=[0.0, 0.0])
    agent = bough.Greedy(model, seed=0)
    agent.update(["kite", "kettle"], [3.0, 1.0], context=[[1.0, 0.0], [0.0, 1.0]])
    agent.save("agent.bough")
    for words, action in ((["1,0"], "kite"), (["-1,2"], "kettle"), (["[0, 1]"], "kettle"), (["1", "0"], "kite")):
        options = [option for word in words for option in ("--context", word)]
        assert decided(capsys, *options)["action"] == action
    assert decided(capsys, "--context", "1,0.5")["context"] == [1.0, 0.5]
    # Names go to the library, which knows whether the model has them.
    assert context_of(["age=3,price=2.5", '{"colour": "red"}']) == {"age": 3.0, "price": 2.5, "colour": "red"}


def test_a_value_of_a_category_that_reads_as_a_number_stays_text(capsys):
    pytest.importorskip("sklearn")
    features = bough.Features(["age"], [40.0], [10.0], {"zip": ["075", "75"]}, intercept=False)
    agent = bough.Greedy(bough.GaussianModel(TREE, mean=[0.0] * 4, features=features), seed=0)
    agent.update(["kite", "kettle"], [3.0, 3.0], context={"age": [40, 40], "zip": ["075", "75"]})
    agent.save("agent.bough")
    for value, action in (("075", "kite"), ("75", "kettle")):
        found = decided(capsys, "--context", f"age=40,zip={value}")
        assert (found["action"], found["context"]) == (action, {"age": 40.0, "zip": value})


def test_beta_sampling_decides_too(capsys):
    agent = bough.BetaTS(bough.BernoulliModel(TREE, mean=-2.0), seed=0)
    agent.update("kite", 40, trials=40)
    agent.save("agent.bough")
    assert decided(capsys)["action"] == "kite"


BAD = {
    "no file": (["nowhere.bough"], "there is no file 'nowhere.bough'; "),
    "a model": (["model.bough"], "model.bough holds a model, and no agent; bough fit ... --agent FILE writes one"),
    "a name misspelled": (["agnt.bough"], "there is no file 'agnt.bough'; did you mean 'agent.bough'?"),
    "no bough file": (["stock.txt"], "stock.txt is not a bough file; expected one that bough wrote"),
    "too many": (["agent.bough", "--k", "6"], "k is 6; give at most 5"),
    "none": (["agent.bough", "--k", "0"], "--k is 0; give at least 1"),
    "no samples": (["agent.bough", "--samples", "-1"], "--samples is -1; give at least 0"),
    "a negative seed": (["agent.bough", "--seed", "-1"], "--seed is -1"),
    "an unknown action": (["agent.bough", "--among", "ketle"], "did you mean 'kettle'?"),
    "no names": (["agent.bough", "--among", ","], "--among is ','; give actions with commas between them"),
    "no file of names": (
        ["agent.bough", "--among", "@nowhere.txt"],
        "there is no file 'nowhere.txt'; give one that is there",
    ),
    "an empty file of names": (["agent.bough", "--exclude", "@stock.txt"], "the file has no names"),
    "all left out": (["agent.bough", "--among", "kite", "--exclude", "kite"], "exclude leaves out every action"),
    "a context too many": (["agent.bough", "--context", "1"], "to a model without contexts"),
    "no context": (["linear.bough"], "this model takes contexts of length 2"),
    "a context too long": (["linear.bough", "--context", "1,2,3"], "give a vector of length 2"),
    "a context that is not finite": (["linear.bough", "--context", "nan,1"], "it must be finite"),
    "unknown features": (["linear.bough", "--context", "age=1,price=2"], "age"),
    "numbers and names": (["linear.bough", "--context", "1", "--context", "a=2"], "both numbers and names"),
    "a feature twice": (["linear.bough", "--context", "a=1", "--context", "a=2"], "--context has 'a' more than once"),
    "a feature twice at once": (["linear.bough", "--context", "a=1,a=2"], "give each feature a name and one value"),
    "a feature without a name": (["linear.bough", "--context", "=1"], "give each feature a name and one value"),
    "half a pair": (["linear.bough", "--context", "a=1,2"], "--context is 'a=1,2'; give numbers such as"),
    "no JSON": (["linear.bough", "--context", '{"a": '], "which is no JSON"),
    "odd JSON": (["linear.bough", "--context", '[1, "a"]'], "give numbers such as"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_decided_is_one_line_with_exit_status_two(what, here, capsys):
    made()
    MODEL.save("model.bough")
    bough.HierTS(bough.GaussianModel(TREE, mean=[0.0, 0.0])).save("linear.bough")
    (here / "stock.txt").write_text("\n")
    arguments, text = BAD[what]
    assert cli.main(["decide", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.strip().splitlines()) == 1
    assert text in said.err


def test_the_levels_of_a_decision_are_named_and_logged(capsys):
    factors = {
        "brand": bough.Factor({"kettle": "Acme"}, variance=0.3),
        "store": bough.Factor(levels=["north", "7"], variance=4.0, at_decision=True),
        "hour": bough.Factor(levels=["early", 7, 8], at_decision=True),
    }
    agent = bough.HierTS(bough.GaussianModel(TREE, factors=factors), seed=3)
    agent.update("kettle", 5.0, factors={"store": "north", "hour": 7})
    agent.save("agent.bough")
    levels = {"store": "7", "hour": 7}
    found = decided(capsys, "--decision-factor", "store=7", "--decision-factor", "hour=7")
    expected = agent.decision(factors=levels)
    assert (found["action"], found["scores"], found["factors"]) == (expected.action, expected.scores, levels)
    assert "factors" not in decided(capsys)
    for words, message in (
        (["store"], "--decision-factor is 'store'; give a factor and its level, such as store=north"),
        (["store=7", "store=north"], "--decision-factor has 'store' more than once"),
        (["store=east"], "unknown level 'east' of 'store'; it has 'north', '7'"),
        (["brand=Acme"], "'brand' is a factor of the actions"),
        (["shop=north"], "factors has 'shop', which is no factor of the decision"),
    ):
        given = [one for word in words for one in ("--decision-factor", word)]
        assert cli.main(["decide", "agent.bough", *given]) == 2
        assert message in capsys.readouterr().err
    made()
    assert cli.main(["decide", "agent.bough", "--decision-factor", "store=north"]) == 2
    assert "store" in capsys.readouterr().err
