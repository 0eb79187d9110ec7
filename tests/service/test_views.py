"""What people read of an experiment has the numbers of the library itself, each of them."""

import math
import threading

import msgspec
import numpy as np
import pytest

import bough
from bough.service import views
from bough.service.name_search import NameIndex
from bough.service.node_numbers import best_places
from bough.service.records import DecisionRow
from bough.service.traffic import DAY, HOUR, MINUTE, Sums, Traffic

TREE = bough.Tree.from_paths(
    ["tea/green/sencha", "tea/green/matcha", "tea/black/assam", "coffee/espresso", "coffee/filter", "water"]
)
ACTIONS = ["tea/green/sencha", "tea/green/matcha", "coffee/espresso"]
KINDS = {
    "rewards": lambda: bough.GaussianModel(TREE, 0.5, bough.by_depth([1.0, 0.5, 2.0, 0.5]), 0.3),
    "clicks": lambda: bough.BernoulliModel(TREE, -1.0),
    "counts": lambda: bough.PoissonModel(TREE, 0.2, 0.3),
    "rewards in contexts": lambda: bough.GaussianModel(TREE, [0.5, -1.0], np.array([[2.0, 0.5], [0.5, 1.0]])),
    "clicks in contexts": lambda: bough.BernoulliModel(TREE, [0.0, 0.3]),
}
CONTEXT = [0.7, -1.2]


def taught(model, n=40, seed=0):
    rng = np.random.default_rng(seed)
    agent = bough.HierTS(model, seed=0)
    contexts = None if model.is_scalar else rng.normal(size=(n, 2))
    names, rewards = [str(name) for name in rng.choice(ACTIONS, n)], (rng.random(n) < 0.4).astype(float)
    agent.update(names, rewards, contexts)
    traffic = Traffic()
    traffic.add_counts({name: names.count(name) for name in ACTIONS})
    return agent, traffic, None if model.is_scalar else CONTEXT, list(zip(names, rewards, strict=True))


def rows_of(agent, context, **options):
    """What `to_frame` says, by name; with the mean reward, which it leaves to the likelihood."""
    frame = agent.posterior.to_frame(context=context, backend="polars", **options)
    rows = {row["name"]: row for row in frame.to_dicts()}
    likelihood = agent.posterior.model.likelihood
    for row in rows.values():
        score, variance = np.array([row["mean"]]), np.array([row["deviation"] ** 2])
        row["reward"] = float(likelihood.expected_reward(score, variance)[0])
        row["spread"] = math.sqrt(likelihood.reward_variance(score, variance)[0])
    return rows


def observed(log, name):
    below = [reward for action, reward in log if name in TREE.path(action)]
    return float(np.mean(below)) if below else None


def decisions(log, name):
    return sum(name in TREE.path(action) for action, _ in log)


def close(value, rel=1e-9):
    return None if value is None else pytest.approx(value, rel=rel, abs=rel)


# -- top -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_best_actions_have_the_numbers_of_to_frame_and_their_order(kind):
    agent, traffic, context, log = taught(KINDS[kind]())
    wanted = rows_of(agent, context)
    found = views.top(agent, traffic, context=context)
    assert sorted(node.name for node in found) == sorted(TREE.actions)
    for node in found:
        row = wanted[node.name]
        assert (node.mean, node.deviation) == (close(row["reward"]), close(row["spread"]))
        assert (node.low, node.high) == (close(row["low"]), close(row["high"]))
        assert (node.observed_mean, node.decisions) == (close(observed(log, node.name)), decisions(log, node.name))
    means = [node.mean for node in found]
    assert means == sorted(means, reverse=True)
    assert [node.name for node in views.top(agent, traffic, n=2, context=context)] == [node.name for node in found[:2]]


def test_retired_actions_are_not_among_the_best_and_are_there_when_asked_for():
    agent, traffic, _, _ = taught(KINDS["rewards"]())
    best = views.top(agent, traffic, n=1)[0].name
    agent.retire(best)
    assert best not in [node.name for node in views.top(agent, traffic)]
    assert [node.name for node in views.top(agent, traffic, order="retired")] == [best]


@pytest.mark.parametrize("level", [1, 2, "kind"])
def test_a_level_has_its_own_best(level):
    tree = bough.Tree.from_paths(list(TREE.actions), levels=["kind", "sort", "product"])
    agent = bough.HierTS(bough.GaussianModel(tree), seed=0)
    agent.update(ACTIONS, [1.0, 2.0, 0.5])
    agent.add("tea/white", "tea")
    found = views.top(agent, Traffic(), level=level)
    frame = agent.posterior.to_frame(level=level, backend="polars").sort("mean", descending=True)
    assert {node.name: close(node.mean) for node in found} == dict(zip(frame["name"], frame["mean"], strict=True))


def test_the_most_uncertain_come_first_when_asked_for():
    agent, traffic, _, _ = taught(KINDS["rewards"]())
    found = [node.deviation for node in views.top(agent, traffic, order="uncertain")]
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("kind", ["rewards", "clicks", "counts"])
def test_the_best_of_very_many_are_those_of_a_plain_sort(kind):
    likelihood = KINDS[kind]().likelihood
    rng = np.random.default_rng(1)
    for n in (1, 20, 300):
        score, variance = rng.normal(-1.0, 1.0, 30_000), rng.choice([0.1, 0.5, 2.0], 30_000) * rng.random(30_000)
        score[::7], variance[::7] = 0.25, 0.5  # ties
        reward = likelihood.expected_reward(score, variance)
        np.testing.assert_array_equal(
            best_places(likelihood, score, variance, n), np.argsort(-reward, kind="stable")[:n]
        )


def test_the_best_of_fewer_than_asked_for_are_all_of_them():
    likelihood = KINDS["clicks"]().likelihood
    assert best_places(likelihood, np.array([0.0, 1.0]), np.ones(2), 9).tolist() == [1, 0]


# -- the tree --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_node_of_the_tree_has_the_numbers_of_to_frame(kind):
    agent, traffic, context, log = taught(KINDS[kind]())
    wanted = rows_of(agent, context)
    view = views.tree(agent, traffic, levels=3, context=context)
    columns = view.nodes
    assert sorted(columns.name) == sorted(wanted)
    for i, name in enumerate(columns.name):
        row = wanted[name]
        assert (columns.mean[i], columns.deviation[i]) == (close(row["reward"], 1e-5), close(row["spread"], 1e-5))
        assert columns.observed_mean[i] == close(observed(log, name), 1e-5)
        assert (columns.decisions[i], columns.more[i]) == (decisions(log, name), 0)
        parents = TREE.path(name)[-2:-1]
        assert [columns.name[place] for place in columns.parent[i : i + 1] if place >= 0] == parents
    root = wanted[""]
    assert (view.low, view.high) == (close(root["low"], 1e-5), close(root["high"], 1e-5))
    assert (view.path, view.level, view.observations) == ([""], 0, len(log))


def test_a_node_has_its_path_and_a_missing_one_is_a_key_error():
    agent, traffic, _, _ = taught(KINDS["rewards"]())
    view = views.tree(agent, traffic, node="tea/green", levels=1)
    assert view.path == ["", "tea", "tea/green"]
    assert view.level == 2
    assert sorted(view.nodes.name[1:]) == ["tea/green/matcha", "tea/green/sencha"]
    action = views.tree(agent, traffic, node="water")
    assert (action.nodes.name, action.nodes.more) == (["water"], [0])
    with pytest.raises(KeyError, match="unknown name 'cocoa'"):
        views.tree(agent, traffic, node="cocoa")


def test_children_come_by_decisions_and_then_by_mean_and_the_rest_is_counted():
    tree = bough.Tree.from_nested({"a": list("bcdefg"), "x": ["y"]})
    agent = bough.HierTS(bough.GaussianModel(tree), seed=0)
    agent.update(list("efg"), [1.0, 3.0, 2.0])
    traffic = Traffic()
    traffic.add_counts({"b": 2, "c": 5, "gone": 4})
    nodes = views.tree(agent, traffic, most=4).nodes
    place = nodes.name.index("a")
    assert (nodes.decisions[place], nodes.more[place]) == (7, 2)
    assert [name for name, above in zip(nodes.name, nodes.parent, strict=True) if above == place] == [
        "c",
        "b",
        "f",
        "g",
    ]
    assert nodes.decisions[0] == 11  # with those that are gone
    assert views.tree(agent, traffic, levels=0).nodes.more == [2]


def test_retired_actions_are_marked_by_their_places():
    agent, traffic, _, _ = taught(KINDS["clicks"]())
    agent.retire("water")
    nodes = views.tree(agent, traffic).nodes
    assert [nodes.name[place] for place in nodes.retired] == ["water"]


def test_a_number_may_be_given_as_text_unless_another_node_is_called_so():
    tree = bough.Tree.from_parents([-1, 0, 0, 0], names=["root", 7, "8", 8])
    agent = bough.HierTS(bough.GaussianModel(tree), seed=0)
    assert [views.tree(agent, Traffic(), node=name).path[-1] for name in ("7", 7, "8", 8)] == [7, 7, "8", 8]
    with pytest.raises(KeyError, match="unknown name '9'"):
        views.tree(agent, Traffic(), node="9")


def test_before_all_observations_deviations_are_those_of_the_prior():
    for make in KINDS.values():
        model = make()
        view = views.tree(
            bough.HierTS(model, seed=0), Traffic(), levels=3, context=None if model.is_scalar else CONTEXT
        )
        depth = {name: len(TREE.path(name)) - 1 for name in view.nodes.name}
        for name, deviation in zip(view.nodes.name, view.nodes.deviation, strict=True):
            assert deviation == close(view.prior_deviation[depth[name]], 1e-5)
        assert view.nodes.observed_mean == [None] * TREE.n_nodes


def test_added_and_moved_actions_are_shown_before_there_is_another_tree():
    agent, traffic, _, _ = taught(KINDS["rewards"]())
    agent.add("tea/white", "tea")
    agent.move("coffee/filter", "tea/black")
    traffic.add_counts({"tea/white": 3})
    before, best = views.tree(agent, traffic, levels=3), views.top(agent, traffic)
    found = views.search(agent, traffic, "white")
    assert agent.posterior._catalogue.is_changed
    agent.posterior.model  # noqa: B018, which makes a tree of it all
    after = views.tree(agent, traffic, levels=3)
    assert sorted(zip(before.nodes.name, before.nodes.mean, strict=True)) == sorted(
        zip(after.nodes.name, after.nodes.mean, strict=True)
    )
    numbers = {one.name: (close(one.mean), one.decisions) for one in best}
    assert {one.name: (one.mean, one.decisions) for one in views.top(agent, traffic)} == numbers
    assert [(one.name, one.path, one.decisions) for one in found] == [("tea/white", ["", "tea", "tea/white"], 3)]


def test_without_a_context_numbers_are_those_of_the_average_one():
    agent, traffic, _, _ = taught(KINDS["rewards in contexts"]())
    for context in ([1.0, 0.0], [0.0, 2.0]):
        row = DecisionRow(
            1, "d", 0.0, ["water"], context, None, 1, 0, 0, None, "learn", b"", 0.0, None, "at_once", False
        )
        traffic.note_decisions([row])
    found, wanted = views.top(agent, traffic), views.top(agent, traffic, context=[0.5, 1.0])
    assert found == wanted
    with pytest.raises(ValueError, match="length 2"):
        views.top(agent, traffic, context=[1.0])


def test_numbers_are_rounded_to_six_digits():
    values = np.array([0.0, 1.0, -0.1234567891, 123456.789, 1e-12, 987654321.0, np.nan, np.inf, 5e-324])
    found = views.short(values)
    np.testing.assert_allclose(found[:6], values[:6], rtol=5e-6)
    assert [len(repr(one).strip("-")) for one in found[1:4].tolist()] == [3, 8, 8]
    assert math.isnan(found[6])
    assert found[7] == np.inf


def test_answers_are_of_one_moment_while_others_learn():
    agent, traffic, _, _ = taught(KINDS["rewards"]())
    stop = threading.Event()

    def learn():
        while not stop.is_set():
            agent.update(["coffee/espresso", "coffee/filter"], [1.0, -1.0])

    start = views.tree(agent, traffic, node="coffee", levels=0)
    total = start.observations * start.nodes.observed_mean[0]  # which pairs of 1 and -1 leave as it is
    thread = threading.Thread(target=learn)
    thread.start()
    try:
        for _ in range(50):
            view = views.tree(agent, traffic, node="coffee", levels=0)
            assert view.observations * view.nodes.observed_mean[0] == pytest.approx(total, rel=1e-5)
    finally:
        stop.set()
        thread.join()


# -- search ----------------------------------------------------------------------------------------


def names_of(agent, traffic, text, **options):
    return [node.name for node in views.search(agent, traffic, text, **options)]


def test_search_ranks_exact_names_then_beginnings_then_decisions():
    tree = bough.Tree.from_paths(["shop/tea", "shop/teapot", "shop/green tea", "shop/steak", "tea", "other/Teaspoon"])
    agent, traffic = bough.HierTS(bough.GaussianModel(tree), seed=0), Traffic()
    traffic.add_counts({"shop/steak": 9, "shop/green tea": 2, "other/Teaspoon": 3, "shop/tea": 1})
    wanted = ["shop/tea", "tea", "other/Teaspoon", "shop/teapot", "shop/steak", "shop/green tea"]
    assert names_of(agent, traffic, "TEA") == wanted
    assert names_of(agent, traffic, "tea", n=2) == wanted[:2]
    assert names_of(agent, traffic, "shop/t") == ["shop/tea", "shop/teapot"]
    assert names_of(agent, traffic, "nothing") == names_of(agent, traffic, "") == []


def test_search_finds_odd_names_and_numbers():
    names = ["ÉCLAIR", "straße", "a\nb", "<script>", "nul\0l", "日本茶", "100%"]
    tree = bough.Tree.from_parents([-1, 0, 0, 0, 0, 0, 0, 0, 0], names=["root", *names, 12345])
    agent, traffic = bough.HierTS(bough.GaussianModel(tree), seed=0), Traffic()
    for text, name in [
        ("éclair", "ÉCLAIR"), ("STRASSE", "straße"), ("a\nb", "a\nb"), ("SCRIPT", "<script>"), ("l\0l", "nul\0l"),
        ("本", "日本茶"), ("0%", "100%"), ("234", 12345),
    ]:  # fmt: skip
        assert names_of(agent, traffic, text) == [name]


def test_of_very_many_matches_those_with_the_most_decisions_are_found():
    tree = bough.Tree.balanced(30, 3)
    agent, traffic = bough.HierTS(bough.GaussianModel(tree), seed=0), Traffic()
    traffic.add_counts({27_925: 10_000})
    assert names_of(agent, traffic, "2", n=2) == [2, 27_925]
    found = names_of(agent, traffic, "5", n=1_200)  # thousands of names before it have a 5
    begin = [str(name).startswith("5") for name in found]
    assert found[begin.index(False)] == 27_925


def test_an_index_has_every_name_once():
    index = NameIndex(TREE)
    assert [index.name(node).decode() for node in range(TREE.n_nodes)] == [TREE.name(i) for i in range(TREE.n_nodes)]
    assert index.containing(b"coffee", 2) == [TREE.index("coffee"), TREE.index("coffee/espresso")]


# -- over time -------------------------------------------------------------------------------------


def test_the_mean_over_time_has_the_interval_of_a_sample():
    rng = np.random.default_rng(0)
    rewards = rng.normal(3.0, 2.0, 50)
    traffic = Traffic()
    traffic.add_counts(
        {}, [(6_000, Sums(60, 50, rewards.sum(), (rewards**2).sum(), 2, 10, 4)), (6_060, Sums(1, 1, 2.0, 4.0))]
    )
    found = views.series(traffic, 5_940, 6_180)
    assert (found.seconds, found.start) == (60, [5_940, 6_000, 6_060, 6_120])
    assert (found.decisions, found.rewards, found.late) == ([0, 60, 1, 0], [0, 50, 1, 0], [0, 2, 0, 0])
    width = 1.959963984540054 * rewards.std(ddof=1) / math.sqrt(50)
    assert found.mean == [None, close(rewards.mean()), 2.0, None]
    assert found.low == [None, close(rewards.mean() - width), None, None]
    assert found.high == [None, close(rewards.mean() + width), None, None]
    assert found.agreement == [None, 0.4, None, None]


@pytest.mark.parametrize(
    ("span", "seconds"),
    [(HOUR, MINUTE), (4 * HOUR, MINUTE), (5 * HOUR, 2 * MINUTE), (DAY, 10 * MINUTE), (90 * DAY, 12 * HOUR)],
)
def test_spans_are_as_short_as_the_points_allow(span, seconds):
    found = views.series(Traffic(), 0.0, float(span))
    assert found.seconds == seconds
    assert len(found.start) <= 240


def test_nothing_is_lost_between_spans_and_old_times_have_longer_ones():
    traffic = Traffic()
    now = 1_700_000_000 // DAY * DAY + 5 * HOUR
    traffic.add_counts({}, [(now - i * 13 * MINUTE, Sums(decisions=1)) for i in range(10_000)])
    found = views.series(traffic, now - 100 * DAY, now + MINUTE, points=2_000)
    assert sum(found.decisions) == 10_000
    assert found.seconds == DAY
    assert views.series(traffic, now - DAY, now + MINUTE, points=2_000).seconds == MINUTE


@pytest.mark.parametrize("times", [(5.0, 5.0), (6.0, 5.0), (math.nan, 5.0), (0.0, math.inf)])
def test_times_in_the_wrong_order_are_refused(times):
    with pytest.raises(ValueError, match="the earlier one first"):
        views.series(Traffic(), *times)


# -- why -------------------------------------------------------------------------------------------


def decided(action, context=None, offered=None, propensity=None):
    return DecisionRow(
        1, "d7", 0.0, [action], context, offered, 3, 0, 9, propensity, "learn", b"", 0.0, None, "at_once", False
    )


@pytest.mark.parametrize("kind", KINDS)
def test_an_explanation_has_the_numbers_of_the_librarys_own(kind):
    agent, traffic, context, log = taught(KINDS[kind]())
    agent.retire("coffee/filter")
    for action in ("tea/green/matcha", "coffee/espresso", "water", "coffee/filter"):
        found = views.explained(agent, decided(action, context), traffic)
        wanted = agent.explain(action, context)
        assert len(found.nodes) == len(wanted.nodes)
        for one, other in zip(found.nodes, wanted.nodes, strict=True):
            assert (one.name, one.level, one.rank, one.of) == (other.name, other.level, other.rank, other.siblings)
            assert (one.mean, one.low, one.high) == (close(other.reward), close(other.low), close(other.high))
            assert (one.observations, one.share) == (other.observations, close(other.share))
            assert (one.observed_mean, one.decisions) == (close(observed(log, one.name)), decisions(log, one.name))
    assert "40 rewards" in found.note
    assert "version 3" in found.note


def test_the_gain_left_is_the_expected_loss_of_the_action_among_what_was_offered():
    agent, traffic, _, _ = taught(KINDS["clicks"]())
    best = agent.best()
    place = list(best.tree.actions).index("water")
    assert views.explained(agent, decided("water"), traffic).gain_left == close(best.expected_loss[place])
    few = ["water", "coffee/filter", "gone"]
    narrow = agent.best(among=few[:2])
    found = views.explained(agent, decided("water", offered={"among": few}, propensity=[0.25]), traffic)
    assert found.gain_left == close(narrow.expected_loss[place])
    assert found.propensity == 0.25
    contextual, traffic, context, _ = taught(KINDS["rewards in contexts"]())
    assert views.explained(contextual, decided("water", context), traffic).gain_left is None


def test_a_decision_whose_action_is_gone_is_answered_without_numbers():
    agent, traffic, _, _ = taught(KINDS["rewards"]())
    found = views.explained(agent, decided("cocoa"), traffic)
    assert (found.nodes, found.gain_left) == ([], None)
    assert "unknown name 'cocoa'" in found.note


def test_a_decision_whose_context_was_deleted_is_explained_in_the_average_one():
    agent, traffic, _, _ = taught(KINDS["rewards in contexts"]())
    traffic.note_decisions([decided("water", [0.5, 2.0])])
    found = views.explained(agent, decided("water"), traffic)
    wanted = agent.explain("water", [0.5, 2.0])
    assert [node.mean for node in found.nodes] == [close(node.reward) for node in wanted.nodes]
    assert "deleted" in found.note


def test_the_sentence_says_what_a_manager_asks():
    tree = bough.Tree.from_paths(["A/a", "B/b", "C/c"], levels=["department", "product"])
    agent = bough.HierTS(bough.GaussianModel(tree), seed=0)
    assert views.explained(agent, decided("A/a")).sentence == ("of 3 departments, 'A' looks best; it has no reward yet")
    agent.update(["A/a", "B/b", "B/b"], [-1.0, 3.0, 4.0])
    assert views.explained(agent, decided("A/a")).sentence == (
        "of 3 departments, 'A' looks third best; its only reward was -1"
    )


def test_every_answer_is_json():
    agent, traffic, _, _ = taught(KINDS["clicks"]())
    for answer in (
        views.top(agent, traffic), views.tree(agent, traffic), views.search(agent, traffic, "tea"),
        views.series(traffic, 0.0, 600.0), views.explained(agent, decided("water"), traffic),
    ):  # fmt: skip
        assert msgspec.json.decode(msgspec.json.encode(answer))
    odd = bough.Tree.from_parents([-1, 0, 0], names=[("a", 1), 2.5, "c"])
    view = views.tree(bough.HierTS(bough.GaussianModel(odd), seed=0), Traffic())
    assert sorted(view.nodes.name) == ["('a', 1)", "2.5", "c"]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda agent, traffic: views.top(agent, traffic, n=0), "n is 0"),
        (lambda agent, traffic: views.top(agent, traffic, n=2.5), "n is 2.5"),
        (lambda agent, traffic: views.top(agent, traffic, order="best"), "order is 'best'"),
        (lambda agent, traffic: views.top(agent, traffic, level=9), "level is 9"),
        (lambda agent, traffic: views.top(agent, traffic, context=[1.0]), "context"),
        (lambda agent, traffic: views.tree(agent, traffic, levels=-1), "levels is -1"),
        (lambda agent, traffic: views.tree(agent, traffic, most=0), "most is 0"),
        (lambda agent, traffic: views.search(agent, traffic, 7), "text is 7"),
        (lambda agent, traffic: views.search(agent, traffic, "tea", n=0), "n is 0"),
        (lambda agent, traffic: views.series(traffic, 0.0, 1.0, points=0), "points is 0"),
    ],
)
def test_odd_arguments_are_refused_in_words(call, text):
    agent, traffic, _, _ = taught(KINDS["rewards"]())
    with pytest.raises(ValueError, match=text):
        call(agent, traffic)
