"""bough best: how sure the agent in a file is, as the library says it."""

import json

import numpy as np
import pytest

import bough
from bough import cli

TREE = bough.Tree.from_nested({"home": ["kettle", "toaster"], "toys": ["kite", "ball", "yoyo"]})


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(policy=bough.HierTS, model=None):
    agent = policy(bough.GaussianModel(TREE) if model is None else model, seed=3)
    agent.update(["kettle", "kite", "kite"], [1.0, 2.0, 2.5])
    agent.save("agent.bough")
    return agent


def asked(capsys, *arguments):
    assert cli.main(["best", "agent.bough", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("policy", [bough.HierTS, bough.TS, bough.Greedy])
def test_the_numbers_are_those_of_the_agent_and_the_file_stays(policy, here, capsys):
    agent = made(policy)
    before = (here / "agent.bough").read_bytes()
    found, best = asked(capsys), agent.best()
    assert (here / "agent.bough").read_bytes() == before
    frame = best.to_frame(top=10, backend="polars")
    assert [row["action"] for row in found["actions"]] == frame["name"].to_list()
    for column in ("probability", "expected_loss", "mean_reward"):
        assert [row[column] for row in found["actions"]] == frame[column].to_list()
    assert found["maximum"]["mean"] == best.maximum.mean
    assert found["method"] == "exact"
    assert found["should_stop"]["stop"] is False


def test_limits_and_choices_are_those_given(capsys):
    made()
    assert asked(capsys, "--loss", "10", "--probability", "none")["should_stop"]["stop"] is True
    among = asked(capsys, "--among", "kettle,toaster")
    assert {row["action"] for row in among["actions"]} == {"kettle", "toaster"}
    assert sum(row["probability"] for row in among["actions"]) == pytest.approx(1.0)
    assert len(asked(capsys, "--exclude", "kite", "--top", "2")["actions"]) == 2


def test_the_text_says_whether_to_stop(capsys):
    made()
    assert cli.main(["best", "agent.bough"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["action", "probability", "expected", "loss", "mean", "reward"]
    assert lines[1].startswith("kite")
    assert lines[-1].startswith("go on: 'kite' is the best with probability")


def test_in_contexts_the_answer_is_from_draws_that_repeat(capsys):
    agent = bough.HierTS(bough.GaussianModel(TREE, [0.0, 0.0], features=["age", "price"]), seed=0)
    agent.update("kite", 1.0, {"price": 0.5, "age": 1.0})
    agent.save("agent.bough")
    first, second = (asked(capsys, "--context", "price=0.5,age=1", "--samples", "200") for _ in range(2))
    assert first == second
    assert first["method"] == "sampled"
    assert sum(row["probability"] for row in first["actions"]) == pytest.approx(1.0, abs=0.2)
    assert cli.main(["best", "agent.bough", "--context", "price=0.5,age=1"]) == 0
    assert "draws" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--loss", "much"], "--loss has 'much'; give a number or \"none\""),
        (["--probability", "2"], "probability is 2"),
        (["--top", "0"], "--top is 0; give at least 1"),
        (["--samples", "1"], "--samples is 1; give at least 2"),
        (["--among", "sofa"], "sofa"),
        (["--seed", "-1"], "--seed is -1"),
    ],
)
def test_odd_arguments_are_refused_in_one_line(capsys, arguments, said):
    made()
    assert cli.main(["best", "agent.bough", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert said in shown.err
    assert shown.err.count("\n") == 1


def test_a_policy_without_a_posterior_is_named(capsys):
    bough.BetaTS(bough.BernoulliModel(TREE), seed=0).save("agent.bough")
    assert cli.main(["best", "agent.bough"]) == 2
    assert "holds a BetaTS, which has no posterior" in capsys.readouterr().err
    np.testing.assert_equal(cli.main(["best", "nowhere.bough"]), 2)
