"""Evaluation in contexts: the target is asked row by row, and an n x K array never exists."""

import tracemalloc

import numpy as np
import polars
import pytest

import bough

TREE = bough.Tree.balanced(3, 2)
WEIGHTS = np.random.default_rng(3).normal(size=(2, 3, 9))  # of the truth, and of the target


def softmax(scores):
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def target(contexts):
    return softmax(contexts @ WEIGHTS[1])


def logged(seed, n=2_000):
    """A log by a logger that acts on the context, and the value of the target in all such contexts."""
    rng = np.random.default_rng(seed)
    contexts = np.column_stack([np.ones(n), rng.uniform(-1.0, 1.0, size=(n, 2))])
    logger = softmax(0.7 * contexts @ WEIGHTS[0])
    place = (logger.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=8)
    means = contexts @ WEIGHTS[0] / 3.0
    reward = means[np.arange(n), place] + rng.normal(0.0, 0.3, n)
    columns = {f"x{i}": contexts[:, i] for i in range(3)}
    return polars.DataFrame(
        {"action": TREE.leaves[place], "reward": reward, "propensity": logger[np.arange(n), place], **columns}
    )


def truth():
    rng = np.random.default_rng(0)
    contexts = np.column_stack([np.ones(200_000), rng.uniform(-1.0, 1.0, size=(200_000, 2))])
    return float((target(contexts) * (contexts @ WEIGHTS[0] / 3.0)).sum(axis=1).mean())


FEATURES = ["x0", "x1", "x2"]
MODEL = bough.GaussianModel(TREE, np.zeros(3), 0.3, 0.09)


@pytest.mark.parametrize("interval", ["normal", "cressie-read"])
def test_intervals_in_contexts_hold_the_truth(interval):
    """At 90%, 60 logs: a share below 0.75 comes once in 2,000 times."""
    value, held = truth(), {name: [] for name in ("ips", "snips", "dm", "dr")}
    for seed in range(60):
        report = bough.evaluate(
            {"t": target},
            logged(seed, 1_000),
            TREE,
            context=FEATURES,
            model=MODEL,
            estimators=list(held),
            interval=interval,
            level=0.9,
            reward_range=(-5, 5),
        )
        for one in report.values:
            held[one.estimator].append(one.low <= value <= one.high)
    assert min(np.mean(inside) for inside in held.values()) >= 0.75, {k: np.mean(v) for k, v in held.items()}


def test_an_agent_is_asked_in_each_context_and_agrees_with_counting():
    agent = bough.HierTS(MODEL, seed=0)
    first = logged(100, 200)
    agent.update(first["action"].to_list(), first["reward"].to_numpy(), first.select(FEATURES).to_numpy())
    log = logged(101, 400)
    report = bough.evaluate({"agent": agent}, log, TREE, context=FEATURES, model=MODEL, estimators=["ips", "dm"])
    contexts = log.select(FEATURES).to_numpy()
    place = np.searchsorted(TREE.leaves, log["action"].to_numpy())
    counted = np.zeros((400, 9))
    twin = bough.HierTS.resume(agent.posterior, seed=1)
    for _ in range(300):
        chosen = np.searchsorted(TREE.leaves, twin.decide_many(contexts))
        counted[np.arange(400), chosen] += 1 / 300
    w = counted[np.arange(400), place] / log["propensity"].to_numpy()
    values = {one.estimator: one.value for one in report.values}
    # the noise of counting is far below the error of the estimate itself
    error = (w * log["reward"].to_numpy()).std() / 400**0.5
    assert values["ips"] == pytest.approx((w * log["reward"].to_numpy()).mean(), abs=0.3 * error)
    posterior = bough.Posterior(MODEL)
    posterior.update(log["action"].to_list(), log["reward"].to_numpy(), contexts)
    direct = (counted * (contexts @ posterior.mean[TREE.leaves].T)).sum(axis=1).mean()
    assert values["dm"] == pytest.approx(direct, abs=0.05)
    assert agent.posterior.n_observations == 200


def test_a_residual_in_context_leaves_its_row_out():
    from bough.data.decision_logs import LogColumns
    from bough.data.logged_rows import read_logged_rows
    from bough.evaluation.outcomes import outcomes_of_rows

    log = logged(5, 40)
    rows = read_logged_rows(log, TREE, LogColumns("action", "reward", "propensity", context=tuple(FEATURES)))
    slope, intercept = outcomes_of_rows(MODEL, TREE, rows).residual_of_rows(rows)
    for i in (0, 7, 23):
        rest = bough.Posterior(MODEL)
        keep = np.arange(40) != i
        rest.update(TREE.leaves[rows.place[keep]], rows.reward[keep], rows.context[keep])
        predicted = rest.mean[TREE.leaves[rows.place[i]]] @ rows.context[i]
        assert slope[i] * rows.reward[i] + intercept[i] == pytest.approx(rows.reward[i] - predicted, abs=1e-9)


def test_clicks_in_contexts_take_a_model_of_clicks():
    rng = np.random.default_rng(0)
    log = logged(6, 800)
    clicks = (rng.random(800) < 1 / (1 + np.exp(-log["reward"].to_numpy()))).astype(float)
    log = log.with_columns(reward=polars.Series(clicks))
    model = bough.BernoulliModel(TREE, np.zeros(3), 0.3)
    report = bough.evaluate({"t": target}, log, TREE, context=FEATURES, model=model)
    assert report.reward_range == (0.0, 1.0)
    values = {one.estimator: one for one in report.values}
    assert all(0.0 < one.low < one.value < one.high < 1.0 for one in values.values())
    assert abs(values["dm"].value - values["dr"].value) < 0.1


def test_a_column_of_lists_is_a_context():
    log = logged(7, 300)
    lists = log.select("action", "reward", "propensity", polars.concat_list(FEATURES).alias("context"))
    found, expected = (
        bough.evaluate({"t": target}, each, TREE, context=context, model=MODEL)
        for each, context in ((lists, "context"), (log, FEATURES))
    )
    assert found.values == expected.values


def test_a_policy_without_contexts_is_the_same_in_all_of_them():
    log = logged(8, 300)
    uniform = np.full(9, 1 / 9)
    constant, function = (
        bough.evaluate({"u": policy}, log, TREE, context=FEATURES, model=MODEL).values
        for policy in (uniform, lambda contexts: np.full((len(contexts), 9), 1 / 9))
    )
    np.testing.assert_allclose([one[2:] for one in constant], [one[2:] for one in function], rtol=1e-9)
    plain = bough.evaluate({"u": uniform}, log, TREE, estimators=["ips", "snips"], interval="normal").values
    within = bough.evaluate(
        {"u": uniform}, log, TREE, context=FEATURES, estimators=["ips", "snips"], interval="normal"
    ).values
    np.testing.assert_allclose([one[2:] for one in plain], [one[2:] for one in within], rtol=1e-9)


def test_the_prior_is_learned_where_no_model_is_given():
    report = bough.evaluate({"t": target}, logged(9, 1_500), TREE, context=FEATURES)
    values = {one.estimator: one for one in report.values}
    assert values["dm"].value == pytest.approx(truth(), abs=0.1)


def test_an_array_of_all_rows_and_actions_never_exists():
    """4,000 rows and 3,000 actions: 96 MB as one array; what is allocated at once stays far below."""
    tree = bough.Tree.balanced(3_000, 1)
    rng = np.random.default_rng(0)
    log = polars.DataFrame(
        {
            "action": rng.choice(tree.leaves, 4_000),
            "reward": rng.normal(size=4_000),
            "propensity": np.full(4_000, 1 / 3_000),
            "x": np.ones(4_000),
        }
    )
    model = bough.GaussianModel(tree, np.zeros(1))
    tracemalloc.start()
    try:
        bough.evaluate(
            {"u": lambda contexts: np.full((len(contexts), 3_000), 1 / 3_000)}, log, tree, context=["x"], model=model
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.5 * 4_000 * 3_000 * 8


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"estimators": ["mips-1"]}, "vary with the context"),
        ({"position": "x0"}, "both context and position"),
        ({"model": bough.GaussianModel(TREE)}, "give one with contexts, as the log is"),
        ({"model": bough.GaussianModel(TREE, [0.0, 0.0])}, "with contexts of length 3"),
        ({"context": []}, "give a list of columns"),
        ({"context": ["x0", "x0"]}, "twice"),
        ({"context": ["x0", "x9"]}, "no column 'x9'"),
        ({"model": lambda contexts: np.ones(3)}, "model gave an array of shape"),
    ],
)
def test_what_does_not_go_with_contexts_is_refused(more, text):
    with pytest.raises(ValueError, match=text):
        bough.evaluate({"t": target}, logged(0, 50), TREE, **({"context": FEATURES} | more))


# -- contexts with names ---------------------------------------------------------------------------


NAMED = bough.GaussianModel(TREE, np.zeros(3), 0.3, 0.09, features=["intercept", "age", "price"])


def named_agent(model=NAMED):
    agent = bough.HierTS(model, seed=0)
    agent.update([4, 5, 7], [1.0, -0.5, 0.3], np.array([[1.0, 0.2, 0.5], [1.0, -0.4, 0.1], [1.0, 0.9, -0.3]]))
    return agent


def values(policies, log, **options):
    report = bough.evaluate(policies, log, TREE, model=NAMED, samples=50, **options)
    return [one.value for one in report.values]


def test_contexts_go_by_the_names_of_features_in_any_order():
    frame = logged(0, 300).rename({"x0": "one", "x1": "age", "x2": "price"})
    numbers = bough.GaussianModel(TREE, np.zeros(3), 0.3, 0.09)
    by_position = bough.evaluate(
        {"a": named_agent(numbers)}, frame, TREE, model=numbers, samples=50, context=["one", "age", "price"]
    )
    wanted = [one.value for one in by_position.values]
    np.testing.assert_allclose(values({"a": named_agent()}, frame, context=["price", "age"]), wanted, rtol=1e-12)
    contexts = [{"price": price, "age": age} for age, price in frame.select("age", "price").rows()]
    with_dicts = frame.drop("one", "age", "price").with_columns(context=polars.Series(contexts))
    np.testing.assert_allclose(values({"a": named_agent()}, with_dicts, context="context"), wanted, rtol=1e-12)
    with pytest.raises(ValueError, match="height"):
        values({"a": named_agent()}, frame.rename({"age": "height"}), context=["price", "height"])


def test_what_decisions_log_is_evaluated_and_replayed_as_it_stands():
    """Contexts with text, which the features of the agent encode, come back from `Decision.to_dict`."""
    rng = np.random.default_rng(1)
    people = polars.DataFrame(
        {"age": rng.uniform(20.0, 70.0, 200), "country": rng.choice(["DE", "FR", "IT"], 200).tolist()}
    )
    model = bough.GaussianModel(TREE, np.zeros(6), 0.3, 0.25, features=bough.Features.learn(people))
    agent = bough.HierTS(model, seed=0)
    rows = []
    for person in people.rows(named=True):
        decision = agent.decision(person, samples=200)
        reward = 0.01 * person["age"] + (decision.action % 3) * (person["country"] == "DE") + rng.normal(0.0, 0.1)
        rows.append({**decision.to_dict(), "reward": reward})
    log = polars.DataFrame(rows)
    greedy = bough.Greedy(model, seed=0)
    report = bough.evaluate({"itself": agent, "greedy": greedy}, log, TREE, context="context", model=model, samples=200)
    itself = {one.estimator: one for one in report.values if one.policy == "itself"}
    assert itself["snips"].low <= log["reward"].mean() <= itself["snips"].high
    assert itself["dr"].value == pytest.approx(itself["snips"].value, abs=0.2)
    with pytest.raises(ValueError, match="are not all numbers"):
        bough.evaluate({"f": target}, log, TREE, context="context", estimators=["ips"])
    with pytest.raises(ValueError, match="are not all numbers"):
        bough.evaluate({"itself": agent}, log, TREE, context="context")  # a model learned from the log takes numbers
    uniform = log.with_columns(action=polars.Series(rng.choice(TREE.leaves, 200)))
    found = bough.replay(bough.HierTS(model, seed=0), uniform, TREE, context="context")
    assert 5 < found.kept < 60


@pytest.mark.parametrize("where", ["frame", "parquet", "csv"])
def test_columns_of_text_go_to_agents_that_encode_them(where, tmp_path):
    rng = np.random.default_rng(2)
    people = polars.DataFrame({"age": rng.uniform(20.0, 70.0, 60), "country": rng.choice(["DE", "FR"], 60).tolist()})
    model = bough.GaussianModel(TREE, np.zeros(5), 0.3, 0.25, features=bough.Features.learn(people))
    actions = polars.Series(rng.choice(TREE.leaves, 60))
    frame = people.with_columns(action=actions, reward=rng.normal(size=60), propensity=1 / 9)
    wanted = [one.value for one in _evaluated(model, frame)]
    log = frame
    if where != "frame":
        log = str(tmp_path / f"log.{where}")
        getattr(frame, f"write_{where}")(log)
    np.testing.assert_allclose([one.value for one in _evaluated(model, log)], wanted, rtol=1e-12)


def _evaluated(model, log):
    agent = bough.HierTS(model, seed=0)
    return bough.evaluate({"a": agent}, log, TREE, context=["country", "age"], model=model, samples=20).values
