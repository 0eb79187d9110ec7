"""What new users do with the README and the pages at hand, one script a test, and what they should see."""

import json
import subprocess
import sys
from functools import partial

import numpy as np
import pandas
import polars
import pytest

import bough

LEVELS = ["department", "category", "product"]
SHELVES = {"home": ["kitchen", "garden"], "toys": ["outdoor", "indoor"], "food": ["fresh", "dry"]}
PRODUCTS = polars.DataFrame(
    [(shop, shelf, f"{shelf} {i}") for shop, shelves in SHELVES.items() for shelf in shelves for i in range(5)],
    schema=LEVELS,
    orient="row",
)


@pytest.fixture
def tree():
    return bough.Tree.from_frame(PRODUCTS, LEVELS)


@pytest.fixture
def sales(tree):
    """A log of 1,500 rows, and the mean of each action that it was drawn from."""
    rng = np.random.default_rng(2)
    truth = bough.GaussianModel(tree, 5.0, bough.by_depth([0.0, 1.0, 0.5, 0.2])).draw(rng)[tree.leaves]
    shown = rng.integers(0, tree.n_actions, 1_500)
    log = {"product": np.asarray(tree.actions)[shown], "sales": truth[shown] + rng.normal(size=1_500)}
    return polars.DataFrame(log), truth


def test_a_log_of_top_fives_teaches_an_agent_that_goes_on_in_another_process(tree, tmp_path):
    rng = np.random.default_rng(0)
    model = bough.BernoulliModel(tree, mean=-1.0, covariance=bough.by_depth([0.1, 0.3, 0.3, 0.2]))
    chance = dict(zip(tree.actions, model.mean_reward(model.draw(rng)[tree.leaves]), strict=True))
    agent, rewards = bough.HierTS(model, seed=0), []
    with (tmp_path / "decisions.jsonl").open("w") as log:
        for _ in range(20):
            stock = [*rng.choice(tree.actions, 12, replace=False).tolist(), "sold out"]
            seen = [stock[0], "withdrawn"]
            top = agent.decision(k=5, among=stock, exclude=seen, missing="ignore", at_most=True, samples=200)
            assert set(top.actions) <= set(stock[1:-1])
            print(json.dumps({**top.to_dict(), "propensities": top.propensities}), file=log)
            rewards += [(top.decision_id, name, int(rng.random() < chance[name])) for name in top.actions]
    assert agent.decide(k=5, among=["dry 1", "sold out"], missing="ignore", at_most=True) == ["dry 1"]
    with pytest.raises(KeyError, match="unknown action 'sold out'"):
        agent.decide(among=["dry 1", "sold out"])

    rows = polars.read_ndjson(tmp_path / "decisions.jsonl").select("decision_id", "actions", "propensities")
    rows = rows.explode("actions", "propensities").rename({"actions": "product"})
    clicks = polars.DataFrame(rewards, schema=["decision_id", "product", "click"], orient="row")
    joined = rows.join(clicks, on=["decision_id", "product"])
    assert joined.height == 100
    assert joined["propensities"].is_between(0.0, 1.0).all()

    agent.update(joined["product"], joined["click"])
    known = agent.posterior.statistics
    assert known.n_rows == 100
    np.testing.assert_array_equal(known.sum_y.sum(), joined["click"].sum())

    agent.save(tmp_path / "agent.bough")
    there = "import bough, json, sys; agent = bough.HierTS.load(sys.argv[1]); print(json.dumps(agent.decide(k=5)))"
    shown = subprocess.run(
        [sys.executable, "-c", there, str(tmp_path / "agent.bough")], capture_output=True, text=True, check=True
    )
    resumed = bough.HierTS.resume(agent.posterior, seed=7)
    again = bough.HierTS.resume(bough.HierTS.load(tmp_path / "agent.bough").posterior, seed=7)
    assert resumed.decide_many(20) == again.decide_many(20)
    assert json.loads(shown.stdout) == agent.decide(k=5)


def test_contexts_of_a_fitted_model_go_by_name_in_any_order(tmp_path):
    rng = np.random.default_rng(1)
    drinks = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso", "filter"]})
    log = pandas.DataFrame({
        "drink": rng.choice(drinks.actions, 800),
        "age": rng.normal(40.0, 10.0, 800),
        "price": rng.uniform(1.0, 5.0, 800),
        "country": rng.choice(["fr", "de", "it"], 800),
    })  # fmt: skip
    slope = dict(zip(drinks.actions, [0.5, 0.4, -0.3, -0.2], strict=True))
    log["sold"] = 1.0 + log["drink"].map(slope) * (log["price"] - 3.0) + rng.normal(0.0, 0.3, 800)

    fit = bough.fit_prior(drinks, log, action="drink", reward="sold", context=["age", "price"], intercept=True)
    assert fit.model.feature_names == ("intercept", "age", "price")
    shuffled = log[["price", "age"]]
    agents = []
    for given in (log[["age", "price"]], shuffled, polars.from_pandas(shuffled), shuffled.to_dict("records")):
        agents.append(fit.agent(seed=0))
        agents[-1].update(log["drink"], log["sold"], given)
        np.testing.assert_array_equal(agents[-1].posterior.mean, agents[0].posterior.mean)
    dear = {"price": 4.8, "age": 30.0}
    kinds = (dear, pandas.Series(dear), pandas.DataFrame([dear]), [1.0, 30.0, 4.8])
    assert len({agent.decide(given) for agent, given in zip(agents, kinds, strict=True)} - {"espresso", "filter"}) == 1
    with pytest.raises(ValueError, match="lacks 'age', and has 'aeg'"):
        agents[0].decide({"price": 4.8, "aeg": 30.0})
    with pytest.raises(ValueError, match=r"'country' is of type String; .* or give features=bough.Features"):
        bough.fit_prior(drinks, log, action="drink", reward="sold", context=["age", "country"])

    columns = ["country", "price", "age"]
    visitor = {"age": 30.0, "country": "fr", "price": 4.8}
    agent = bough.fit_prior(
        drinks, log, action="drink", reward="sold", features=bough.Features.learn(log[columns])
    ).agent(seed=0)
    agent.save(tmp_path / "agent.bough")
    loaded = bough.HierTS.load(tmp_path / "agent.bough")
    logged = json.loads(json.dumps(loaded.decision(pandas.Series(visitor)).to_dict()))
    assert logged["context"] == visitor
    assert logged["action"] == agent.decide(visitor) in {"green", "black"}
    loaded.update(logged["action"], 1.0, logged["context"])
    assert loaded.posterior.n_observations == 801
    with pytest.raises(ValueError, match="the context's 'age' is nan"):
        loaded.decide({**visitor, "age": None})

    compose = pytest.importorskip("sklearn.compose")
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    transformer = compose.make_column_transformer(
        (preprocessing.StandardScaler(), ["age", "price"]),
        (preprocessing.OneHotEncoder(handle_unknown="ignore"), ["country"]),
    ).fit(log[["age", "price", "country"]])
    fit = bough.fit_prior(drinks, log, action="drink", reward="sold", features=transformer, intercept=True)
    agent = fit.agent(seed=0)
    agent.save(tmp_path / "agent.bough")
    with pytest.raises(ValueError, match=r"give it to load\(path, features=...\)"):
        bough.HierTS.load(tmp_path / "agent.bough").decide(visitor)
    loaded = bough.HierTS.load(tmp_path / "agent.bough", features=transformer)
    assert loaded.decide(visitor) == agent.decide({name: visitor[name] for name in columns})


def test_what_an_agent_knows_can_be_read_and_drawn(tree, sales, tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    log, truth = sales
    fit = bough.fit_prior(tree, log, action="product", reward="sales")
    agent = fit.agent(seed=0)
    departments = agent.posterior.to_frame(level="department", backend="pandas").set_index("name")
    assert departments.index.tolist() == list(SHELVES)
    assert departments["observations"].sum() == 1_500
    assert departments["share"].sum() == pytest.approx(1.0)
    assert (departments["low"] < departments["mean"]).all()
    with pytest.raises(ValueError, match="level is 'departments'; give root, department, category, product"):
        agent.posterior.to_frame(level="departments")

    decision = agent.decision()
    explanation = agent.explain(decision)
    assert [node.level for node in explanation.nodes] == ["root", *LEVELS]
    assert explanation.nodes[-1].name == decision.action
    assert f"a propensity of {decision.propensity:.2g}" in str(explanation)

    best = agent.posterior.plot(top=5)
    assert best.get_yticklabels()[0].get_text() in {tree.actions[i] for i in np.argsort(truth)[-10:]}
    _, mine = pyplot.subplots(1, 2)
    variances, _ = fit.plot(axes=mine)
    assert variances is mine[0]
    assert [label.get_text() for label in variances.get_yticklabels()] == [*LEVELS, "noise"]
    run = bough.simulate(fit.model, {"HierTS": bough.HierTS, "TS": bough.TS}, rounds=100, runs=20, seed=0, jobs=1)
    axes = run.plot()
    assert "regret" in axes.get_ylabel()
    axes.figure.savefig(tmp_path / "run.png")
    assert (tmp_path / "run.png").stat().st_size > 1_000
    pyplot.close("all")
    assert str(run.compare("HierTS", "TS")).startswith("HierTS - TS: ")
    difference = run.regret["HierTS"][:, -1].mean() - run.regret["TS"][:, -1].mean()
    assert float(str(run.compare("HierTS", "TS")).split()[3]) == pytest.approx(difference, rel=0.1)


def test_a_table_with_gaps_becomes_a_tree(tmp_path):
    table = pandas.DataFrame(
        [("home", "kitchen", "kettle"), ("home", None, "gift card"), ("toys", "kitchen", "pan"), (None, None, "stamp")],
        columns=LEVELS,
    )
    for frame in (table, polars.from_pandas(table)):
        with pytest.raises(ValueError, match=r"1 in 'department' .*2 in 'category' .*missing='parent'"):
            bough.Tree.from_frame(frame, LEVELS)
        tree = bough.Tree.from_frame(frame, LEVELS, missing="parent", sep=" > ")
        assert tree.path("gift card") == ["", "home", "gift card"]
        assert tree.path("stamp") == ["", "stamp"]
        assert tree.find("kitchen") == ["home > kitchen", "toys > kitchen"]
    with pytest.raises(KeyError, match="unknown name 'kitchen'; did you mean"):
        tree.index("kitchen")
    variances = {"root": 0.1, "department": 0.8, "category": 0.3, "product": 0.1}
    agent = bough.HierTS(bough.GaussianModel(tree, covariance=bough.by_depth(variances)), seed=0)
    agent.save(tmp_path / "agent.bough")
    loaded = bough.HierTS.load(tmp_path / "agent.bough").posterior
    assert (loaded.model.tree.sep, loaded.model.tree.levels) == (" > ", ("root", *LEVELS))
    categories = loaded.to_frame(level="category", backend="polars")["name"].to_list()
    assert categories == ["home > kitchen", "gift card", "toys > kitchen"]


def test_a_log_becomes_an_agent(tree, sales, tmp_path):
    """Thirty 95% intervals, if they were independent, would hold fewer than 24 true means once in 1,600 logs."""
    log, truth = sales
    (tmp_path / "logs").mkdir()
    for part in (0, 1):
        log[part::2].write_csv(tmp_path / "logs" / f"{part}.csv")
    sums = bough.summarise(str(tmp_path / "logs" / "*.csv"), tree, action="product", reward="sales")
    assert sums.n_rows == 1_500
    fit = bough.fit_prior(tree, sums)
    in_memory = bough.fit_prior(tree, log, action="product", reward="sales")
    assert fit.log_evidence == pytest.approx(in_memory.log_evidence)
    assert "variance at department" in fit.summary()
    assert list(fit.estimates) == ["mean", "depth 0", "depth 1", "depth 2", "depth 3", "noise"]
    mean, low, high = fit.posterior.mean_reward()
    assert ((low <= truth) & (truth <= high)).sum() >= 24
    agent = fit.agent(seed=0)
    assert agent.posterior.n_observations == 1_500
    assert agent.decide() in {tree.actions[i] for i in np.argsort(mean)[-8:]}
    assert fit.agent("TS", seed=0).posterior.n_observations == 1_500

    rng = np.random.default_rng(3)
    chances = 1.0 / (1.0 + np.exp(6.0 - truth))
    views = rng.integers(50, 500, tree.n_actions)
    clicks = pandas.DataFrame({"product": list(tree.actions), "views": views, "clicks": rng.binomial(views, chances)})
    columns = dict(action="product", reward="clicks", trials="views")
    agent = bough.fit_prior(tree, clicks, model=bough.BernoulliModel, **columns).agent(seed=0)
    assert agent.posterior.n_observations == views.sum()
    mean, low, high = agent.posterior.mean_reward()
    assert ((low <= chances) & (chances <= high)).sum() >= 24
    with pytest.raises(ValueError, match=r"trials was given, .* bough.BernoulliModel; give that model"):
        bough.fit_prior(tree, clicks, **columns)
    with pytest.raises(ValueError, match="with more clicks than trials, such as"):
        bough.fit_prior(tree, clicks.assign(clicks=views + 1), model=bough.BernoulliModel, **columns)

    shown, hour = rng.integers(0, tree.n_actions, 2_000), rng.uniform(-1.0, 1.0, 2_000)
    clicked = rng.random(2_000) < 1.0 / (1.0 + np.exp(6.0 - truth[shown] - 1.5 * hour))
    visits = polars.DataFrame({"product": np.asarray(tree.actions)[shown], "hour": hour, "click": clicked})
    fit = bough.fit_prior(
        tree, visits, action="product", reward="click", context=["hour"], intercept=True,
        model=bough.BernoulliModel, structure="diagonal",
    )  # fmt: skip
    assert fit.mean[1] == pytest.approx(1.5, abs=0.88)  # four of its standard errors
    early, late = (fit.posterior.mean_reward({"hour": hour}).mean for hour in (-0.9, 0.9))
    assert (late > early).all()


class UCB1:
    def __init__(self, model, seed, width=1.0):
        self.names, self.width, self.round = list(model.tree.actions), width, 0
        self.total, self.count = np.zeros(len(self.names)), np.zeros(len(self.names))

    def decide(self, context):
        self.round += 1
        if not self.count.all():
            return self.names[int(np.argmin(self.count))]
        return self.names[
            int(np.argmax(self.total / self.count + self.width * np.sqrt(np.log(self.round) / self.count)))
        ]

    def update(self, action, reward, context):
        self.total[self.names.index(action)] += reward
        self.count[self.names.index(action)] += 1


class Forgetful(UCB1):
    def update(self, action, reward):
        pass


class Shop:
    model = bough.BernoulliModel(bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]}), -2.0, 0.5)
    rates = (0.1, 0.3, 0.05)

    def world(self, rounds, rng):
        return bough.World(self.model, truth=self.rates, noise=rng.random(rounds))


class ShortShop(Shop):
    def world(self, rounds, rng):
        return super().world(3, rng)


def test_a_policy_and_a_world_of_ones_own_are_played():
    options = dict(rounds=100, runs=10, seed=0, jobs=1)
    with pytest.raises(
        ValueError, match=r"update of policy 'mine' cannot be called as update\(action, reward, context"
    ):
        bough.simulate(Shop(), {"mine": Forgetful}, **options)
    with pytest.raises(ValueError, match=r"a World of 3 rounds; give a bough.World of 100 rounds"):
        bough.simulate(ShortShop(), {"mine": UCB1}, **options)
    policies = {"HierTS": bough.HierTS, "narrow": partial(UCB1, width=0.1), "UCB1": UCB1}
    run = bough.simulate(Shop(), policies, **options)
    assert run.best == pytest.approx(max(Shop.rates))
    assert isinstance(UCB1(Shop.model, None), bough.Policy)
    assert run.regret["UCB1"][:, 2] == pytest.approx(0.2 + 0.0 + 0.25)  # each action once
    assert (run.regret["UCB1"] <= 0.25 * np.arange(1, 101) + 1e-9).all()
    alone = bough.simulate(Shop(), {"UCB1": UCB1}, **options)
    np.testing.assert_array_equal(alone.regret["UCB1"], run.regret["UCB1"])
