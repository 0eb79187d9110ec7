"""What the dashboard has beside the tree: history, exploration, the prior, siblings, lists, and short answers."""

import asyncio
import math

import msgspec
import numpy as np
import pytest

import bough
from bough.service import views
from bough.service.exploration import Exploration
from bough.service.history import History
from bough.service.records import ChangeRow, DecisionRow
from bough.service.short_memory import ShortMemory
from bough.service.state_view import RecentRequests
from bough.service.traffic import Traffic

TREE = bough.Tree.from_paths(
    ["tea/green/sencha", "tea/green/matcha", "tea/black/assam", "coffee/espresso", "coffee/filter", "water"]
)
PRIOR = bough.by_depth([1.0, 0.5, 2.0, 0.5])


def agent_of(model=None, rewards=((("tea/green/sencha",) * 6), (2.0, 1.5, 2.5, 2.0, 1.0, 2.0))):
    agent = bough.HierTS(bough.GaussianModel(TREE, 0.5, PRIOR, 0.3) if model is None else model, seed=0)
    agent.update(*map(list, rewards))
    return agent


def decided(action, at=100.0, **more):
    given = dict(context=None, offered=None, mode="learn") | more
    return DecisionRow(
        1, f"d-{at}", at, [action], given["context"], given["offered"], 1, 0, 2, None, given["mode"], b"", at, None,
        "at_once", False,
    )  # fmt: skip


def change(kind, body, seq, at=0.0):
    return ChangeRow(1, at, kind, "me", body, seq=seq)


# -- history ---------------------------------------------------------------------------------------


def test_changes_are_told_in_words_and_those_of_one_minute_together():
    history = History()
    history.note_change(change("model", {"version": 1}, 1))
    history.note_change(change("action", {"op": "add", "names": ["a", "b"]}, 2, 10.0))
    history.note_change(change("action", {"op": "add", "names": ["c"]}, 3, 40.0))
    history.note_change(change("action", {"op": "retire", "names": ["c"]}, 4, 41.0))
    history.note_change(change("config", {"config": {"mode": "learn"}}, 5, 42.0))
    history.note_change(change("config", {"config": {"mode": "frozen"}}, 6, 50.0))
    history.note_change(
        change("model", {"version": 2, "refit": True, "estimates": {"depth 1": [1.0, 0.5, 2.0]}}, 7, 60.0)
    )
    history.note_change(change("tree", {}, 8, 70.0))
    history.note_change(change("tick", {"now": 1.0}, 9, 80.0))
    assert [(one.kind, one.text) for one in history.changes] == [
        ("catalogue", "3 actions added"), ("catalogue", "1 action retired"), ("mode", "mode frozen"),
        ("model", "another model: a refit, version 2"), ("catalogue", "a new catalogue"),
    ]  # fmt: skip
    assert list(history.added) == ["a", "b", "c"]
    assert history.fitted.version == 2


def test_a_change_that_is_read_twice_is_told_once_also_after_a_restart():
    history = History()
    history.note_change(change("tree", {}, 8))
    history.note_decisions([decided("water")])
    again = History.restored(msgspec.json.decode(msgspec.json.encode(history.contents())))
    again.note_change(change("tree", {}, 8))
    assert len(again.changes) == 1
    assert again.decisions == [("d-100.0", 100.0, "water", 1)]


def test_a_history_is_bounded():
    history = History()
    for i in range(2_000):
        history.note_change(change("action", {"op": "add", "names": [f"n{i}"]}, i + 1, 100.0 * i))
        history.note_decisions([decided("water", float(i))])
    assert len(history.changes) == 300
    assert len(history.added) == 500
    assert len(history.decisions) == 50
    assert history.decisions[0][1] == 1_999.0


def test_a_snapshot_of_traffic_has_its_history():
    traffic = Traffic()
    traffic.note_decisions([decided("water")])
    traffic.note_exploration(100.0, 1, 1, 1, 0.25)
    traffic.history.note_change(change("tree", {}, 8))
    again = Traffic.restored(*traffic.contents())
    assert again.history.changes == traffic.history.changes
    assert again.spans() == traffic.spans()
    found = views.series(again, 0.0, 300.0)
    assert [one for one in found.exploration if one is not None] == [1.0]
    assert [one for one in found.gain_left if one is not None] == [0.25]
    assert [one.text for one in found.changes] == ["a new catalogue"]


# -- exploration -----------------------------------------------------------------------------------


def test_a_decision_explores_where_its_action_is_not_the_best_by_mean():
    agent, traffic = agent_of(), Traffic()
    best = views.top(agent, traffic, 1)[0].name
    rows = [decided(best), decided(best), decided("water"), decided(best, at=10.0), decided("water", mode="observe")]
    rows.append(decided("water", offered={"among": ["water"]}))
    Exploration(seed=0).judge(agent, rows, traffic, now=110.0)
    sums = traffic.spans()[0].sums
    assert (sums.judged, sums.explored, sums.weighed) == (3, 1, 3)


@pytest.mark.parametrize("kind", ["rewards", "clicks"])
def test_the_gain_left_is_the_expected_maximum_less_the_mean_of_the_chosen(kind):
    # The mean of 64 draws of a maximum whose deviation is at most 2 is within 5 standard errors: 1 in a million.
    model = None if kind == "rewards" else bough.BernoulliModel(TREE, 0.0)
    agent = agent_of(model, (["tea/green/sencha"] * 6, [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]))
    traffic = Traffic()
    Exploration(seed=1).judge(agent, [decided("water")], traffic, now=110.0)
    wanted = agent.best().expected_loss[agent.posterior.model.tree.actions.index("water")]
    assert traffic.spans()[0].sums.gain == pytest.approx(wanted, abs=5 * 2.0 / math.sqrt(64))
    assert traffic.spans()[0].sums.gain > 0.0


def test_retired_actions_are_not_the_best():
    agent, traffic = agent_of(), Traffic()
    agent.retire("tea/green/sencha")
    Exploration(seed=0).judge(agent, [decided("tea/green/matcha")], traffic, now=110.0)
    assert traffic.spans()[0].sums.explored == 0


def test_what_is_the_best_is_found_out_again_only_when_that_costs_little():
    times = iter(np.arange(0.0, 100.0, 0.5))  # each look takes half a second
    exploration, agent, traffic = Exploration(0, lambda: next(times)), agent_of(), Traffic()
    exploration._best(agent, traffic)
    known = exploration._known
    agent.update("water", 99.0)
    for _ in range(20):
        exploration._best(agent, traffic)
    assert exploration._known is known
    for _ in range(40):
        exploration._best(agent, traffic)
    assert exploration._known[0] == "water"


# -- the prior -------------------------------------------------------------------------------------


def test_the_prior_has_the_variances_of_the_model_and_the_intervals_of_a_refit():
    agent, traffic = agent_of(), Traffic()
    agent.retire("water")
    body = {"version": 2, "refit": True, "estimates": {"depth 1": [0.5, 0.2, 1.1]}}
    traffic.history.note_change(change("model", body, 1, 7.0))
    found = views.prior(agent, traffic)
    assert [level.variance for level in found.levels] == pytest.approx([1.0, 0.5, 2.0, 0.5])
    assert sum(level.share for level in found.levels) == pytest.approx(1.0)
    assert [(level.low, level.high) for level in found.levels] == [(None, None), (0.2, 1.1), (None, None), (None, None)]
    assert [(level.touched, level.nodes) for level in found.levels] == [(1, 1), (1, 3), (1, 4), (1, 3)]
    assert (found.actions, found.untouched, found.retired) == (6, 5, 1)
    assert found.fitted.refit


def test_the_prior_by_height_is_an_average_of_each_level_and_by_clicks_is_on_their_scale():
    model = bough.BernoulliModel(TREE, -1.0, bough.by_height([0.5, 1.0, 2.0, 4.0]))
    found = views.prior(agent_of(model, (["water"], [1.0])), Traffic())
    of_node = model.classes.table[model.classes.of_node]
    wanted = [of_node[TREE.depth == depth].mean() for depth in range(4)]
    assert [level.variance for level in found.levels] == pytest.approx(wanted)
    assert found.noise_variance is None
    assert 0.0 < found.mean < 1.0


def test_an_action_that_was_added_counts_where_it_hangs():
    agent, traffic = agent_of(), Traffic()
    agent.add("coffee/ristretto", "coffee")
    agent.update("coffee/ristretto", 1.0)
    found = views.prior(agent, traffic)
    assert (found.actions, found.untouched) == (7, 5)
    assert found.levels[2].touched == 2


# -- lists, siblings, parts of the tree ------------------------------------------------------------


def test_the_newest_actions_are_those_that_were_added_the_last_one_first():
    agent, traffic = agent_of(), Traffic()
    assert views.top(agent, traffic, order="newest") == []
    for i, name in enumerate(["coffee/ristretto", "coffee/lungo"]):
        agent.add(name, "coffee")
        traffic.history.note_change(change("action", {"op": "add", "names": [name]}, i + 1, 60.0 * i))
    found = views.top(agent, traffic, order="newest")
    assert [(node.name, node.added) for node in found] == [("coffee/lungo", 60.0), ("coffee/ristretto", 0.0)]
    assert found[0].path == ["", "coffee", "coffee/lungo"]
    columns = views.tree(agent, traffic, levels=3).nodes
    assert {columns.name[place] for place in columns.added} == {"coffee/lungo", "coffee/ristretto"}
    assert views.top(agent, traffic, order="retired") == []
    agent.retire("coffee/lungo")
    assert [node.name for node in views.top(agent, traffic, order="retired")] == ["coffee/lungo"]


def test_a_part_of_the_tree_has_as_many_nodes_as_there_is_room_for_below_those_with_the_most_decisions():
    tree = bough.Tree.balanced(branching=10, height=3)
    agent, traffic = bough.HierTS(bough.GaussianModel(tree), seed=0), Traffic()
    traffic.add_counts({tree.actions[0]: 5, tree.actions[990]: 9})
    whole = views.tree(agent, traffic, levels=3, most=10)
    assert len(whole.nodes.name) == 1_111
    found = views.tree(agent, traffic, levels=3, most=10, most_nodes=131).nodes
    assert len(found.name) == 131
    by_name = dict(zip(found.name, zip(found.decisions, found.more, strict=True), strict=True))
    assert by_name[tree.parent[tree.index(tree.actions[990])]] == (9, 0)
    assert sum(found.more) == sum(
        len(tree.children(tree.index(name))) for name in found.name
    ) - (len(found.name) - 1)  # fmt: skip


def test_each_node_of_an_explanation_stands_beside_its_best_siblings_in_their_order():
    agent, traffic = agent_of(), Traffic()
    agent.update(["coffee/espresso", "water"], [3.0, -1.0])
    agent.retire("coffee/filter")
    found = views.explained(agent, decided("coffee/espresso", offered={"drawn": 1.5}), traffic)
    assert found.drawn == 1.5
    top = {node.name: node for node in views.top(agent, traffic, 20, level=1)}
    coffee = found.nodes[1]
    assert {one.name for one in coffee.beside} == set(top) - {"coffee"}
    for one in coffee.beside:
        assert (one.mean, one.low, one.high) == (top[one.name].mean, top[one.name].low, top[one.name].high)
    ranks = [coffee.rank, *(one.rank for one in coffee.beside)]
    assert sorted(ranks) == [1, 2, 3]
    means = {coffee.rank: coffee.mean} | {one.rank: one.mean for one in coffee.beside}
    assert means[1] > means[2] > means[3]
    assert found.nodes[2].beside == []


def test_the_drawn_score_of_clicks_is_a_probability():
    agent = agent_of(bough.BernoulliModel(TREE, -1.0), (["water"], [1.0]))
    assert views.explained(agent, decided("water", offered={"drawn": 0.0}), Traffic()).drawn == 0.5
    assert views.explained(agent, decided("water"), Traffic()).drawn is None


# -- the service -----------------------------------------------------------------------------------


def test_requests_are_counted_for_a_quarter_of_an_hour():
    now = [0.0]
    recent = RecentRequests(lambda: now[0])
    for minute in range(30):
        now[0] = 60.0 * minute
        recent.note(200)
        recent.note(503)
        recent.note(404)
    assert recent.totals() == (45, 15)
    now[0] += 60.0 * 14
    assert recent.totals() == (3, 1)


def test_an_answer_that_took_long_is_kept_for_a_moment_and_looked_for_once():
    now, looks = [0.0], []

    def look():
        looks.append(now[0])
        now[0] += 0.1
        return len(looks)

    async def ask():
        memory = ShortMemory(lambda: now[0])
        first = await asyncio.gather(*(memory.get("top", look) for _ in range(5)))
        now[0] += 1.9
        kept = await memory.get("top", look)
        other = await memory.get("other", look)
        now[0] += 0.2
        return first, kept, other, await memory.get("top", look)

    assert asyncio.run(ask()) == ([1] * 5, 1, 2, 3)


def test_what_is_quick_is_not_kept():
    async def ask():
        memory, n = ShortMemory(lambda: 0.0), iter(range(9))
        return [await memory.get("top", lambda: next(n)) for _ in range(3)]

    assert asyncio.run(ask()) == [0, 1, 2]
