"""--json: one document on the standard output, with the numbers that the text rounds."""

import json

import numpy as np
import pytest

import bough
from bough import cli
from bough.cli.output import plain

TINY = ["--runs", "3", "--rounds", "4", "--jobs", "1"]
TREE = ["--branching", "3", "--height", "2"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def document(capsys, *arguments):
    """What the command prints with --json, and what it prints without."""
    assert cli.main([*arguments, "--json"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert cli.main([*arguments]) == 0
    return json.loads(shown.out), capsys.readouterr().out


def test_simulate(here, capsys):
    found, text = document(capsys, "simulate", *TREE, *TINY, "--csv", "a.csv", "--seed", "5")
    run = bough.simulate(
        bough.problems.increasing(3, 2), {name: getattr(bough, name) for name in ("HierTS", "FlatTS", "TS")}, 4, 3, 5
    )
    for name, row in found["policies"].items():
        assert row["regret"] == run.mean(name)[-1]
        assert row["standard_error"] == run.standard_error(name)[-1]
        assert f"{row['regret']:.1f}" in text
    assert [found[key] for key in ("rounds", "runs", "seed", "actions")] == [4, 3, 5, 9]
    assert (here / "a.csv").exists()


def test_bound(here, capsys):
    found, text = document(capsys, "bound", *TREE, "--delta", "best", "--rounds", "50")
    bound = bough.theory.regret_bound(bough.problems.increasing(3, 2), 50, "best")
    assert found["bounds"]["HierTS"] == {
        "bound": bound.total,
        "first_term": bound.first,
        "second_term": bound.second,
        "complexity": bound.complexity,
        "c": bound.c,
        "sigma_max": bound.sigma_max,
        "delta": bound.delta,
    }
    assert list(found["bounds"]) == ["HierTS", "FlatTS", "TS"]
    assert f"{found['uniform']:.1f}" in text


def test_fit(here, capsys):
    rng = np.random.default_rng(0)
    lines = [f"{group},{item},{rng.normal(item)}" for group in "ab" for item in (1, 2, 3) for _ in range(5)]
    (here / "log.csv").write_text("\n".join(["group,item,sales", *lines, "a,1,"]))
    (here / "tree.csv").write_text("group,sku\na,1\na,2\nb,3\n")
    words = ["--tree", "tree.csv", "--levels", "group,sku", "--action", "item", "--reward", "sales", "--skip-bad"]
    found, text = document(capsys, "fit", "log.csv", *words)
    model = bough.GaussianModel.load("model.bough")
    assert found["model"] == "model.bough"
    assert found["left_out"] == {"bad number": 1}
    assert found["features"] is None
    assert found["converged"] is True
    assert found["estimates"]["noise"]["value"] == model.noise_variance
    assert found["estimates"]["depth 2"]["level"] == "sku"
    assert f"{found['estimates']['mean']['low']:.4g}" in text
    assert f"{found['log_evidence']:.1f}" in text


def test_adopt(here, capsys):
    (here / "tree.txt").write_text("home/kettle\nhome/cup\n")
    bough.HierTS(bough.GaussianModel(bough.Tree.from_paths(["home/kettle", "home/mug"])), seed=0).save("agent.bough")
    found, text = document(capsys, "adopt", "agent.bough", "--tree", "tree.txt", "--renamed", "home/mug=home/cup")
    assert found == {
        "added": [],
        "retired": [],
        "moved": [],
        "renamed": {"home/mug": "home/cup"},
        "restored": [],
        "forgotten": [],
        "agent": None,
    }
    assert "not written" in text


def test_reproduce(here, capsys):
    found, text = document(capsys, "reproduce", "height-constant", *TINY, "--out", "r")
    assert list(found) == ["claims", "not_run", "report"]
    for claim in found["claims"]:
        assert claim["claim"] in text
        assert claim["measured"] in text
        assert (claim["holds"] is not None) == (claim["verdict"] == "holds in part")
    assert found["report"] == "r/report.html"
    assert "bough reproduce height-constant --runs 3" in (here / "r" / "report.md").read_text()


def test_what_is_no_number_is_null_and_other_names_are_text():
    assert plain([np.nan, np.float64(np.inf), np.int64(3), np.bool_(True)]) == [None, None, 3, True]
    assert plain({("a", 1): np.datetime64("2024-05-01")}) == {"('a', 1)": "2024-05-01"}
    assert json.loads(json.dumps(plain({"x": np.zeros((2, 2))}), allow_nan=False)) == {"x": [[0.0, 0.0], [0.0, 0.0]]}
