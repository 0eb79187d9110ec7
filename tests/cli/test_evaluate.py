"""bough evaluate: what agents in files would have earned on a log, as the library says it."""

import io
import json
import sys

import numpy as np
import polars
import pytest

import bough
from bough import cli

TREE = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso", "filter"]})
RATES = {"green": 0.05, "black": 0.1, "espresso": 0.15, "filter": 0.2}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def log(here):
    rng = np.random.default_rng(0)
    names = rng.choice(list(RATES), 2_000)
    rewards = (rng.random(2_000) < [RATES[name] for name in names]).astype(float)
    frame = polars.DataFrame({"action": names, "reward": rewards, "propensity": [0.25] * 2_000})
    frame.write_parquet("log.parquet")
    frame.write_csv("log.csv")
    agent = bough.HierTS(bough.GaussianModel(TREE, 0.1, 0.01, 0.1), seed=0)
    agent.update(names[:1_000].tolist(), rewards[:1_000])
    agent.save("agent.bough")
    bough.TS(bough.GaussianModel(TREE, 0.1, 0.01, 0.1), seed=0).save("other.bough")
    return frame


def evaluated(capsys, *arguments):
    assert cli.main(["evaluate", *arguments, "--json"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    return json.loads(shown.out)


def test_the_numbers_are_those_of_the_library(log, capsys):
    found = evaluated(capsys, "log.parquet", "--agent", "new=agent.bough", "--agent", "other.bough")
    agents = {"new": bough.HierTS.load("agent.bough"), "other": bough.TS.load("other.bough")}
    report = bough.evaluate(agents, log, TREE)
    assert found["rows"] == 2_000
    assert [(one["policy"], one["estimator"]) for one in found["values"]] == [
        (one.policy, one.estimator) for one in report.values
    ]
    for mine, theirs in zip(found["values"], report.values, strict=True):
        assert mine["value"] == pytest.approx(theirs.value, rel=1e-12)
        assert mine["low"] == pytest.approx(theirs.low, rel=1e-9)
    assert found["diagnostics"]["policies"]["new"]["is_usable"] is True


def test_logs_come_from_csv_and_the_standard_input(log, capsys, monkeypatch):
    wanted = evaluated(capsys, "log.parquet", "--agent", "agent.bough")["values"]
    assert evaluated(capsys, "log.csv", "--agent", "agent.bough")["values"] == wanted
    with open("log.csv", "rb") as file:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(file.read())))
    assert evaluated(capsys, "-", "--agent", "agent.bough")["values"] == wanted


def test_other_columns_estimators_and_a_picture(log, here, capsys):
    log.rename({"action": "product", "reward": "click", "propensity": "p"}).write_parquet("named.parquet")
    columns = ["--action", "product", "--reward", "click", "--propensity", "p"]
    arguments = [
        "--agent",
        "agent.bough",
        "--estimators",
        "ips,mips-1",
        "--interval",
        "normal",
        "--reward-range",
        "0,1",
    ]
    assert cli.main(["evaluate", "named.parquet", *columns, *arguments, "--plot", "values.png"]) == 0
    shown = capsys.readouterr().out
    assert "2,000 rows earned" in shown
    assert "mips-1" in shown
    assert (here / "values.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["log.parquet"], "--agent"),
        (["nowhere.parquet", "--agent", "agent.bough"], "nowhere.parquet"),
        (["log.parquet", "--agent", "agent.bough", "--agent", "agent.bough"], "two agents are called 'agent'"),
        (["log.parquet", "--agent", "log.parquet"], "log.parquet"),
        (["log.parquet", "--agent", "agent.bough", "--propensity", "p"], "p"),
        (["log.parquet", "--agent", "agent.bough", "--estimators", "magic"], "magic"),
        (["log.parquet", "--agent", "agent.bough", "--reward-range", "0"], "--reward-range is '0'"),
        (["log.parquet", "--agent", "agent.bough", "--interval", "anytime"], "reward_range"),
        (["log.parquet", "--agent", "agent.bough", "--plot", "values.txt"], "--plot is values.txt"),
    ],
)
def test_odd_arguments_are_refused_in_one_line(log, capsys, arguments, said):
    try:
        status = cli.main(["evaluate", *arguments])
    except SystemExit as end:  # argparse's own
        status = end.code
    assert status == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert said in shown.err
    assert shown.err.count("\n") == 1
