"""bough prune: contexts and decisions go from the log, and what they taught stays."""

import io
import json
import sys
from datetime import UTC, datetime

import pytest

import bough
from bough import cli
from bough.service.access import Events
from bough.service.log import open_log
from bough.service.restore import restored
from served import Served

DATA = ["--data", "data"]
N = 20


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a model that takes contexts."""
    monkeypatch.chdir(tmp_path)
    tree = bough.Tree.from_nested({"home": ["kettle", "mug"], "garden": ["spade", "rake"]})
    bough.GaussianModel(tree, mean=[0.0, 0.0]).save("model.bough")
    return tmp_path


def play(service):
    """Decisions with rewards, and one that is left open."""
    for i in range(N):
        decided = service.decide(decision_id=f"d{i}", context=[1.0, i / N])
        service.reward(decided["decision_id"], float(i % 2))
    service.wait(lambda: service.ask("GET", "/v1/shop").body["observations"] == N)


def agent_of(service):
    """The library's own agent, fed with what the service was fed with."""
    agent = bough.HierTS(bough.GaussianModel.load("model.bough"), seed=0)
    for i in range(N):
        agent.update(service.decide(decision_id=f"d{i}", context=[1.0, i / N])["action"], float(i % 2), [1.0, i / N])
    return agent


def now():
    return datetime.now(UTC).isoformat()


@pytest.mark.parametrize("running", [True, False], ids=["while it runs", "while it is stopped"])
def test_what_was_taught_outlives_what_taught_it(running, here, capsys):
    with Served(here, *DATA, "--model", "model.bough", "--experiment", "shop") as service:
        key = service.key
        play(service)
        expected = agent_of(service)
        if not running:
            service.process.kill()
            service.ended()
        words = ["prune", *DATA, "--before", now(), "--yes", "--json"]
        assert cli.main([*words, "--contexts-only"]) == 0
        assert json.loads(capsys.readouterr().out)["deleted"] == {"shop": N}
        if running:
            found = service.ask("GET", "/v1/shop/decisions/d1")
            assert found.body["status"] == "rewarded"
            assert found.body.get("context") is None
        assert cli.main(words) == 0
        assert json.loads(capsys.readouterr().out)["deleted"] == {"shop": N}
        assert cli.main(words) == 0
        assert json.loads(capsys.readouterr().out)["deleted"] == {"shop": 0}
        if running:
            assert service.ask("GET", "/v1/shop/decisions/d1").status == 404
            service.process.kill()  # so that it writes no snapshot of its own
            service.ended()
    with Served(here, *DATA) as again:
        again.key = key
        assert again.ask("GET", "/v1/shop").body["observations"] == N
        nodes = again.ask("GET", "/v1/shop/top?k=4").body["nodes"]
        assert sum(node["decisions"] for node in nodes) == N
        log = open_log(here / "data", exclusive=False)
        agent = restored(log, *log.experiments(), None, Events()).experiment.agent
        log.close()
    for action in ("kettle", "mug", "spade", "rake"):
        for context in ([1.0, 0.0], [1.0, 0.5]):
            mine, other = (one.posterior.explain(action, context).nodes[-1] for one in (agent, expected))
            assert mine[3:6] == pytest.approx(other[3:6], rel=1e-9, abs=1e-9)  # the mean reward and its interval


def test_only_what_is_old_goes(here, capsys):
    with Served(here, *DATA, "--model", "model.bough", "--experiment", "shop") as service:
        play(service)
        assert cli.main(["prune", *DATA, "--before", "2020-01-01", "--yes"]) == 0
        assert capsys.readouterr().out == "shop: 0 decisions deleted\n"
        assert service.ask("GET", "/v1/shop/decisions/d1").body["context"] == [1.0, 1 / N]


def test_an_experiment_without_a_model_has_nothing_to_delete(here, capsys):
    log = open_log(here / "data")
    with log.transaction() as transaction:
        transaction.add_experiment("bare", {}, 0.0)
    log.close()
    assert cli.main(["prune", *DATA, "--before", "2020-01-01", "--yes"]) == 0
    assert capsys.readouterr().out == "bare: 0 decisions deleted\n"


class Terminal(io.StringIO):
    """A person who types."""

    def isatty(self):
        return True


@pytest.mark.parametrize(("typed", "status"), [("y\n", 0), ("yes\n", 0), ("n\n", 2), ("\n", 2)])
def test_a_person_is_asked_first(typed, status, here, monkeypatch, capsys):
    log = open_log(here / "data")
    with log.transaction() as transaction:
        transaction.add_experiment("shop", {}, 0.0)
    log.close()
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    assert cli.main(["prune", *DATA, "--before", "2020-01-01"]) == status
    shown = capsys.readouterr()
    assert "Delete the decisions before 2020-01-01 of shop? [y/N]" in shown.err
    assert ("nothing was deleted" in shown.err) == (status == 2)


REFUSED = {
    "no time": (["--before", "soon", "--yes"], "--before is 'soon'; give a time such as 2026-01-01"),
    "yet to come": (["--before", "2999-01-01", "--yes"], "which is yet to come; give a time that is past"),
    "no such experiment": (["--before", "2020-01-01", "--experiment", "a", "--yes"], "there is no experiment 'a'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_refused_in_one_line(case, here, monkeypatch, capsys):
    log = open_log(here / "data")
    with log.transaction() as transaction:
        transaction.add_experiment("shop", {}, 0.0)
    log.close()
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    words, message = REFUSED[case]
    assert cli.main(["prune", *DATA, *words]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert len(shown.err.strip().splitlines()) == 1
