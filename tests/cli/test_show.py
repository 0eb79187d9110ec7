"""bough show: what is in a file of any kind, as text and as JSON; the file stays as it is."""

import json
from datetime import datetime, timedelta

import numpy as np
import pytest
from scipy import stats

import bough
from bough import cli

TREE = bough.Tree.from_nested({"home": ["kettle", "toaster"], "toys": ["kite", "ball", "yoyo"]})
MODEL = bough.GaussianModel(TREE, mean=0.25, covariance=bough.by_depth([1.0, 0.5, 0.2]), noise_variance=0.5)
POLICIES = (bough.HierTS, bough.FlatTS, bough.TS, bough.BayesUCB, bough.Greedy)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(policy, **options):
    agent = policy(MODEL, seed=0, **options)
    agent.update(["kettle", "kite", "kite"], [1.0, 2.0, 2.5])
    agent.retire("ball")
    return agent


def shown(capsys, *arguments):
    assert cli.main(["show", *arguments]) == 0
    text = capsys.readouterr()
    assert text.err == ""
    assert cli.main(["show", *arguments, "--json"]) == 0
    return text.out, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("policy", POLICIES)
def test_an_agent_is_shown_with_its_tree_its_prior_and_its_best_actions(policy, here, capsys):
    agent = made(policy)
    agent.save("agent.bough")
    before = (here / "agent.bough").read_bytes()
    text, found = shown(capsys, "agent.bough", "--top", "2")
    assert (here / "agent.bough").read_bytes() == before
    assert found["policy"] == policy.__name__
    assert found["tree"] == {
        "actions": 5,
        "nodes": 8,
        "height": 2,
        "levels": [1, 2, 5],
        "children": ["home", "toys"],
    }  # the whole tree, also of those that reason with a star
    assert found["prior"]["mean"] == 0.25
    assert found["prior"]["covariances"] == [1.0, 0.5, 0.2]
    assert found["rewards"]["noise_variance"] == 0.5
    assert (found["observations"], found["observed_actions"], found["retired"]) == (3, 2, ["ball"])
    mean, low, high = agent.posterior.mean_reward()
    actions = list(TREE.actions)
    order = [i for i in np.argsort(-mean, kind="stable") if actions[i] != "ball"][:2]
    assert [row["action"] for row in found["best"]] == [actions[i] for i in order]
    assert [(row["mean"], row["low"], row["high"]) for row in found["best"]] == [
        (mean[i], low[i], high[i]) for i in order
    ]
    lines = text.splitlines()
    assert lines[0] == f"agent         {policy.__name__}"
    assert "tree          5 actions, 8 nodes, height 2 (nodes per level: 1, 2, 5)" in lines
    assert "prior         mean 0.25; variances by depth, root first: 1, 0.5, 0.2" in lines
    assert "observations  3, of 2 of 5 actions" in lines
    assert "retired       1: ball" in lines
    assert "The 2 best of 4 actions" in lines
    assert lines[-2].split()[0] == "kite"


def test_the_clock_and_the_half_life_are_shown(capsys):
    agent = bough.HierTS(MODEL, seed=0, half_life=timedelta(days=30))
    agent.now = datetime(2024, 5, 1, 12)
    agent.save("agent.bough")
    text, found = shown(capsys, "agent.bough")
    assert (found["now"], found["half_life"]) == ("2024-05-01T12:00:00", 30 * 86_400.0)
    assert "clock         now 2024-05-01 12:00:00\n" in text
    assert "half-life     a reward counts half after 30 days\n" in text
    drifting = bough.GaussianModel(TREE, drift=20.0)
    bough.HierTS(drifting).save("agent.bough")
    text, found = shown(capsys, "agent.bough", "--top", "0")
    assert found["prior"]["drift"] == 20.0
    assert text.endswith("observations  0, of 0 of 5 actions\n")


def test_a_posterior_and_a_model_are_shown(capsys):
    made(bough.HierTS).posterior.save("posterior.bough")
    text, found = shown(capsys, "posterior.bough")
    assert (found["kind"], found["observations"]) == ("posterior", 3)
    assert "All 4 actions, best first" in text
    MODEL.save("model.bough")
    text, found = shown(capsys, "model.bough")
    assert found["kind"] == "model"
    assert "best" not in found
    assert text.startswith("model    GaussianModel\n")


def test_priors_by_height_and_by_node_are_told_apart(capsys):
    bough.GaussianModel(TREE, covariance=bough.by_height([0.5, 1.0, 2.0])).save("model.bough")
    assert "variances by height, leaves first: 0.5, 1, 2" in shown(capsys, "model.bough")[0]
    bough.GaussianModel(TREE, covariance=bough.by_node({"kite": 9.0}, default=0.5)).save("model.bough")
    text, found = shown(capsys, "model.bough")
    assert "variances by node from 0.5 to 9, 2 different ones" in text
    assert found["prior"]["covariances"] == {"least": 0.5, "most": 9.0, "different": 2}


def test_the_best_actions_in_a_context(capsys):
    model = bough.GaussianModel(TREE, mean=[0.0, 0.0])
    agent = bough.HierTS(model, seed=0)
    agent.update(["kite", "kettle"], [3.0, 1.0], context=[[1.0, 0.0], [0.0, 1.0]])
    agent.save("agent.bough")
    text, found = shown(capsys, "agent.bough")
    assert found["best"] is None
    assert "give --context to see them" in text
    assert "contexts of length 2" in text
    assert shown(capsys, "agent.bough", "--context", "1,0")[1]["best"][0]["action"] == "kite"
    assert shown(capsys, "agent.bough", "--context", "-1,2")[1]["best"][0]["action"] == "kettle"
    assert shown(capsys, "agent.bough", "--context", "[0, 1]")[1]["context"] == [0.0, 1.0]


def test_beta_sampling_has_beta_intervals(capsys):
    agent = bough.BetaTS(bough.BernoulliModel(TREE, mean=-2.0), seed=0)
    agent.update(["kettle", "kite"], [3, 30], trials=[40, 40])
    agent.retire("ball")
    agent.save("agent.bough")
    _, found = shown(capsys, "agent.bough", "--top", "1")
    (best,) = found["best"]
    place = list(TREE.actions).index("kite")
    law = stats.beta(agent.successes[place], agent.failures[place])
    assert (best["action"], best["observations"]) == ("kite", 40)
    assert [best[key] for key in ("mean", "low", "high")] == pytest.approx([law.mean(), *law.interval(0.95)])
    assert (found["observations"], found["observed_actions"], found["retired"]) == (80, 2, ["ball"])


def test_statistics_and_simulations_are_shown(capsys):
    bough.Statistics.from_rows(["kettle", "kite", "kite"], [1.0, 2.0, 2.5]).save("sums.bough")
    text, found = shown(capsys, "sums.bough")
    assert found["most_observed"] == [
        {"action": "kite", "rows": 2.0, "mean": 2.25},
        {"action": "kettle", "rows": 1.0, "mean": 1.0},
    ]
    assert text.startswith("statistics  3 rows of 2 actions\n")
    run = bough.simulate(MODEL, {"TS": bough.TS}, rounds=10, runs=3, seed=0)
    run.save("run.bough")
    text, found = shown(capsys, "run.bough")
    assert run.summary() in text
    assert found["policies"]["TS"]["regret"] == run.mean("TS")[-1]


def test_long_lists_are_cut_short_in_the_text_alone(capsys):
    chain = bough.Tree.from_parents([*range(-1, 29), *[29] * 9])
    agent = bough.HierTS(bough.GaussianModel(chain), seed=0)
    agent.retire([30, 31, 32, 33])
    agent.save("agent.bough")
    text, found = shown(capsys, "agent.bough")
    assert len(found["tree"]["levels"]) == 31
    assert "1, 1, ...)" in text
    assert "retired       4: 30, 31, 32 and 1 more" in text


class Stubborn(bough.Greedy):
    """A policy of a user's own."""


BAD = {
    "no file": (["nowhere.bough"], "there is no file 'nowhere.bough'; "),
    "a folder": (["."], "Is a directory"),
    "no file of bough": (["notes.txt"], "notes.txt is not a bough file"),
    "an empty file": (["empty"], "empty is not a bough file"),
    "cut short": (["cut.bough"], "cut.bough is not a bough file, or is damaged or cut short"),
    "a file of another kind": (["other.bough"], "other.bough holds 'simulated-cell'; show is for agent, posterior"),
    "a policy of one's own": (["own.bough"], "own.bough holds a 'Stubborn', which is not built in"),
    "a context of a model": (["model.bough", "--context", "1"], "--context goes with an agent or a posterior"),
    "a context of none": (["agent.bough", "--context", "1"], "to a model without contexts; leave it out"),
    "a context of clicks": (["beta.bough", "--context", "1"], "which knows no contexts; leave out --context"),
    "a context that is none": (["agent.bough", "--context", "x"], "--context is 'x'; give numbers such as 1,0.5"),
    "fewer than none": (["agent.bough", "--top", "-1"], "--top is -1"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_shown_is_one_line_with_exit_status_two(what, here, capsys):
    from bough import _storage

    made(bough.HierTS).save("agent.bough")
    (here / "cut.bough").write_bytes((here / "agent.bough").read_bytes()[:-40])
    (here / "notes.txt").write_text("kettle")
    (here / "empty").touch()
    _storage.write("other.bough", {"kind": "simulated-cell", "version": 1}, {})
    Stubborn(MODEL).save("own.bough")
    MODEL.save("model.bough")
    bough.BetaTS(bough.BernoulliModel(TREE)).save("beta.bough")
    arguments, text = BAD[what]
    assert cli.main(["show", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.strip().splitlines()) == 1
    assert text in said.err
