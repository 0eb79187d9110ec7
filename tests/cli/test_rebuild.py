"""bough export and bough rebuild: the log as a file, and the agent that the file leads to."""

import json

import numpy as np
import polars
import pytest
from polars.testing import assert_frame_equal

import bough
from bough import cli
from bough.service.log import open_log
from served import Served

TREE = {"home": ["kettle", "mug"], "garden": ["spade", "rake"]}
MODELS = {
    "numbers": lambda tree: bough.GaussianModel(tree),
    "clicks": lambda tree: bough.BernoulliModel(tree),
    "counts": lambda tree: bough.PoissonModel(tree),
    "numbers in contexts": lambda tree: bough.GaussianModel(tree, mean=[0.0, 0.0]),
    "clicks in contexts": lambda tree: bough.BernoulliModel(tree, mean=[0.0, 0.0]),
}
N = 30


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def served(here, kind):
    MODELS[kind](bough.Tree.from_nested(TREE)).save("model.bough")
    return Served(here, "--data", "data", "--model", "model.bough", "--experiment", "shop")


def play(service, contexts):
    """Decisions with rewards, one of which is taken back, and a change in their midst; what was learned."""
    rng = np.random.default_rng(0)
    learned = []
    for i in range(N):
        context = {"context": [1.0, float(rng.normal())]} if contexts else {}
        decided = service.decide(decision_id=f"d{i}", **context)
        reward = float(rng.integers(2))
        service.reward(f"d{i}", reward)
        learned.append((decided["action"], reward, context.get("context")))
        if i == N // 2:
            answer = service.ask("POST", "/v1/shop/actions", {"op": "add", "name": "hose", "under": "garden"})
            assert answer.status == 200, answer
    if not contexts:
        assert service.ask("POST", "/v1/shop/retract", {"decision_id": "d3"}).status == 200
        del learned[3]
    return learned


def document(capsys, *words):
    assert cli.main([*words, "--json"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    return json.loads(shown.out)


def export(capsys, name, *words):
    return document(capsys, "export", "--data", "data", "--experiment", "shop", name, *words)


def check_same(agent, learned):
    """The agent is the library's own, fed with what was learned: numbers to 1e-9, counts to 1e-6."""
    model = bough.GaussianModel.load("model.bough")
    other = bough.HierTS(model, seed=0)
    other.add("hose", "garden")
    contexts = [one[2] for one in learned]
    with_contexts = contexts[0] is not None
    actions, rewards = [one[0] for one in learned], [one[1] for one in learned]
    if with_contexts and not model.kind.sums_suffice:
        other.posterior.settle(bough.Observations(actions, rewards, contexts))
    else:
        other.update(actions, rewards, contexts if with_contexts else None)
        other.posterior.settle()
    tolerance = 1e-9 if isinstance(model, bough.GaussianModel) else 1e-6
    for name in ("kettle", "mug", "spade", "rake", "hose"):
        context = [1.0, 0.5] if with_contexts else None
        mine, its = (one.posterior.explain(name, context).nodes[-1][3:6] for one in (agent, other))
        assert mine == pytest.approx(its, rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("kind", MODELS)
def test_the_agent_of_an_export_is_the_librarys_own(kind, here, capsys):
    with served(here, kind) as service:
        learned = play(service, "contexts" in kind)
        for ending in ("parquet", "ndjson", "csv"):  # while it runs
            found = export(capsys, f"events.{ending}")
            assert found["what"] == "events"
    n_learned = N if "contexts" in kind else N + 1  # the row that takes one back counts as well
    for ending in ("parquet", "ndjson", "csv"):
        found = document(capsys, "rebuild", f"events.{ending}", "--out", "agent.bough", "--seed", "0")
        assert found == {"learned": n_learned, "changes": 2, "refused": {}, "agent": "agent.bough"}
        check_same(bough.HierTS.load("agent.bough"), learned)
    found = document(capsys, "rebuild", "events.csv", "--model", "model.bough", "--out", "again.bough")
    assert found["learned"] == n_learned
    check_same(bough.HierTS.load("again.bough"), learned)


def test_another_prior_may_be_tried_on_the_same_events(here, capsys):
    with served(here, "numbers") as service:
        play(service, False)
        export(capsys, "events.ndjson")
    bough.GaussianModel(bough.Tree.from_nested(TREE), mean=100.0).save("other.bough")
    document(capsys, "rebuild", "events.ndjson", "--model", "other.bough", "--out", "agent.bough")
    agent = bough.HierTS.load("agent.bough")
    assert agent.posterior.model.mean == 100.0
    assert agent.posterior.n_observations == N - 1


def test_decisions_are_a_log_that_evaluate_reads(here, capsys):
    with served(here, "clicks") as service:
        for i in range(N):
            service.decide(decision_id=f"d{i}", propensity=True)
            service.reward(f"d{i}", float(i % 2))
        service.decide(decision_id="open")
        found = export(capsys, "decisions.parquet", "--decisions")
        assert (found["rows"], found["left_out"]) == (N, 1)
        words = ["export", "--data", "data", "--experiment", "shop", "again.csv", "--decisions"]
        assert cli.main(words) == 0
        assert "left out: 1, without a reward" in capsys.readouterr().out
        assert export(capsys, "none.csv", "--decisions", "--until", "2020-01-01")["left_out"] == 0
        export(capsys, "events.ndjson")
    table = polars.read_parquet("decisions.parquet")
    assert table["decision_id"].to_list() == [f"d{i}" for i in range(N)]
    assert table["reward"].to_list() == [float(i % 2) for i in range(N)]
    assert cli.main(["rebuild", "events.ndjson", "--out", "agent.bough"]) == 0
    capsys.readouterr()
    assert cli.main(["evaluate", "decisions.parquet", "--agent", "agent.bough", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


def crossed():
    factors = {
        "brand": bough.Factor({"kettle": "Acme", "spade": "Acme"}, variance=0.5),
        "store": bough.Factor(levels=["north", "south"], variance=0.3, at_decision=True),
    }
    return bough.GaussianModel(bough.Tree.from_nested(TREE), factors=factors)


def play_in_stores(service, agent):
    """Decisions in stores with rewards, and new levels in their midst; the agent learns and changes alike."""

    def change(**body):
        assert service.ask("POST", "/v1/shop/actions", body).status == 200

    for i in range(N):
        store = {"store": ["north", "south", "west"][i % (2 + (i > N // 2))]}
        told_later = i % 3 == 0
        decided = service.decide(decision_id=f"d{i}", propensity=True, **({} if told_later else {"factors": store}))
        service.reward(f"d{i}", float(i % 7), **({"factors": store} if told_later else {}))
        agent.update(decided["action"], float(i % 7), factors=store)
        if i == 3:
            taken_back = decided["action"], 3.0, store
        if i == N // 2:
            change(op="add_level", factor="store", name="west")
            change(op="add_level", factor="brand", name=["Newco", "Zed"])
            change(op="add", name="hose", under="garden", factors={"brand": ["Newco", "Acme"]})
            agent.add_level("store", "west")
            for brand in ("Newco", "Zed"):
                agent.add_level("brand", brand)
            agent.add("hose", "garden", factors={"brand": ["Newco", "Acme"]})
    assert service.ask("POST", "/v1/shop/retract", {"decision_id": "d3"}).status == 200
    action, reward, store = taken_back
    agent.retract(action, reward, factors=store)


def test_brands_and_stores_come_back_from_an_export(here, capsys):
    crossed().save("model.bough")
    agent = bough.HierTS(crossed(), seed=0)
    with Served(here, "--data", "data", "--model", "model.bough", "--experiment", "shop") as service:
        play_in_stores(service, agent)
        for ending in ("parquet", "ndjson", "csv"):
            export(capsys, f"events.{ending}")
        export(capsys, "decisions.csv", "--decisions")
    for ending in ("parquet", "ndjson", "csv"):
        found = document(capsys, "rebuild", f"events.{ending}", "--out", "agent.bough", "--seed", "0")
        assert found == {"learned": N + 1, "changes": 4, "refused": {}, "agent": "agent.bough"}
        again = bough.HierTS.load("agent.bough")
        for name in ("brand", "store"):
            assert_frame_equal(*(one.posterior.effects(name, "polars") for one in (again, agent)))
        assert again.posterior.n_observations == N - 1
    rows = [f"{department},{sku}\n" for department, skus in TREE.items() for sku in skus]
    (here / "products.csv").write_text("department,sku\n" + "".join(rows) + "garden,hose\n")
    tree = ["--tree", "products.csv", "--levels", "department,sku", "--action", "action", "--reward", "reward"]
    found = document(capsys, "fit", "decisions.csv", *tree, "--decision-factor", "store", "--out", "fitted.bough")
    assert found["estimates"]["store"]["told_by"] == 3
    assert document(capsys, "evaluate", "decisions.csv", "--agent", "agent.bough", "--estimators", "snips")


def test_times_narrow_an_export(here, capsys):
    with served(here, "clicks") as service:
        play(service, False)
        everything = export(capsys, "a.csv")["rows"]
        assert export(capsys, "b.csv", "--since", "2020-01-01")["rows"] == everything
        assert export(capsys, "c.csv", "--until", "2020-01-01")["rows"] == 0
    assert cli.main(["rebuild", "c.csv", "--out", "agent.bough"]) == 2
    assert "the events have no model" in capsys.readouterr().err


def test_what_cannot_be_learned_is_counted_with_the_reason(here, capsys):
    with served(here, "numbers") as service:
        play(service, False)
        export(capsys, "events.ndjson")
    bough.GaussianModel(bough.Tree.from_nested({"home": ["kettle", "mug"], "garden": ["spade"]})).save("less.bough")
    assert cli.main(["rebuild", "events.ndjson", "--model", "less.bough", "--out", "agent.bough"]) == 0
    learned, refused, reason, agent = capsys.readouterr().out.splitlines()
    n = int(refused.removeprefix("could not be learned: ").removesuffix(" rows"))
    assert n > 0
    assert learned == f"learned: {N + 1 - n} rows"
    assert reason.startswith(f"  {n}: unknown action 'rake'")
    assert agent == "agent: agent.bough"


REFUSED = {
    "no such ending": (["export", "--data", "data", "--experiment", "shop", "a.xlsx"], "ends in none of"),
    "no such experiment": (["export", "--data", "data", "--experiment", "a", "a.csv"], "there is no experiment 'a'"),
    "a file as a folder": (["export", "--data", "other.csv", "--experiment", "shop", "a.csv"], "is a file; give the"),
    "no such folder": (["export", "--data", "no", "--experiment", "shop", "a.csv"], "there is no such folder"),
    "nowhere to write": (["export", "--data", "data", "--experiment", "shop", "no/a.csv"], "cannot be written"),
    "no time": (["export", "--data", "data", "--experiment", "shop", "a.csv", "--since", "x"], "--since is 'x'"),
    "no events": (["rebuild", "no.csv", "--out", "agent.bough"], "there is no such file"),
    "no model": (["rebuild", "no.csv", "--model", "no.bough", "--out", "agent.bough"], "there is no such file"),
    "something else": (["rebuild", "other.csv", "--out", "agent.bough"], "other.csv"),
    "a negative seed": (["rebuild", "other.csv", "--out", "agent.bough", "--seed", "-1"], "--seed is -1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_refused_in_one_line(case, here, capsys):
    log = open_log(here / "data")
    with log.transaction() as transaction:
        transaction.add_experiment("shop", {}, 0.0)
    log.close()
    (here / "other.csv").write_text("a,b\n1,2\n")
    words, message = REFUSED[case]
    assert cli.main(words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err
    assert len(shown.err.strip().splitlines()) == 1
    assert not (here / "agent.bough").exists()
