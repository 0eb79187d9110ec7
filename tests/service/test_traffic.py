"""Totals of decisions and rewards: per action, per node, and per minute, however they came in."""

import math

import msgspec
import numpy as np
import pytest

import bough
from bough.service.records import DecisionRow, OutcomeRow
from bough.service.traffic import DAY, HOUR, MINUTE, Sums, Traffic

START = 1_700_000_040.0  # the beginning of a minute


def decision(action, at=START, mode="learn", context=None, suggested=None, id="d"):
    actions = action if isinstance(action, list) else [action]
    offered = None if suggested is None else {"suggested": suggested}
    return DecisionRow(1, id, at, actions, context, offered, 1, 0, 0, None, mode, b"", at, None, "at_once", False)


def outcome(value, at=START, kind="reward", learn=True, action="tea/green", id=""):
    return OutcomeRow(1, "d", 0, id, at, kind, value, None, None, action, None, at, learn)


def noted(rows):
    traffic = Traffic()
    traffic.note_decisions(rows)
    return traffic


TREE = bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])


def agent():
    return bough.HierTS(bough.GaussianModel(TREE), seed=0)


def of_names(traffic, agent):
    catalogue = agent.posterior._catalogue
    counts = traffic.at_nodes(catalogue)
    return {catalogue.name(node): int(counts[node]) for node in range(len(counts)) if counts[node]}


def test_all_slots_of_a_slate_count_for_their_actions():
    traffic = noted([decision(["tea/green", "coffee"]), decision("coffee")])
    assert (traffic.total, traffic.decisions("coffee"), traffic.decisions("tea/green")) == (3, 2, 1)
    assert traffic.spans()[0].sums.decisions == 2


def test_inner_nodes_have_the_decisions_of_all_actions_below_them():
    traffic = noted([decision("tea/green"), decision("tea/black"), decision("tea/black"), decision("coffee")])
    assert of_names(traffic, agent()) == {"": 4, "tea": 3, "tea/green": 1, "tea/black": 2, "coffee": 1}


def test_actions_that_are_not_in_the_tree_count_at_the_root_alone():
    traffic = noted([decision("tea/green"), decision("gone"), decision(7)])
    assert of_names(traffic, agent()) == {"": 3, "tea": 1, "tea/green": 1}


def test_counts_at_nodes_follow_new_decisions_and_changes_of_the_catalogue():
    shop, traffic = agent(), noted([decision("tea/green"), decision("tea/white")])
    assert of_names(traffic, shop) == {"": 2, "tea": 1, "tea/green": 1}
    shop.add("tea/white", "tea")  # decided for before, as it may be in another process
    shop.add("tea/oolong", "tea")
    traffic.note_decisions([decision("tea/oolong"), decision("tea/oolong")])
    assert of_names(traffic, shop)["tea/oolong"] == 2
    shop.move("tea/green", "")
    moved = of_names(traffic, shop)
    assert (moved["tea"], moved["tea/green"], moved[""]) == (3, 1, 4)
    shop.posterior.model  # noqa: B018, which makes a tree of it all
    assert of_names(traffic, shop) == moved


def test_counts_at_nodes_are_not_counted_again_where_nothing_changed():
    shop, traffic = agent(), noted([decision("coffee")])
    first = traffic.at_nodes(shop.posterior._catalogue)
    assert np.shares_memory(first, traffic.at_nodes(shop.posterior._catalogue))
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 9


def test_rewards_are_summed_by_the_minute_in_which_they_came():
    traffic = Traffic()
    traffic.note_outcomes([outcome(2.0), outcome(3.0, START + 59.9), outcome(1.0, START + 60.0)])
    first, second = traffic.spans()
    assert first == (START, MINUTE, Sums(rewards=2, total=5.0, squares=13.0))
    assert second == (START + 60, MINUTE, Sums(rewards=1, total=1.0, squares=1.0))


def test_late_rewards_are_apart_and_what_was_cancelled_or_retracted_is_none():
    traffic = Traffic()
    rows = [outcome(5.0, kind="late", learn=False), outcome(0.0, kind="cancelled", learn=False)]
    traffic.note_outcomes([*rows, outcome(1.0, kind="retracted")])
    assert [span.sums for span in traffic.spans()] == [Sums(late=1)]


def test_parts_of_what_is_learned_at_the_close_are_not_counted_twice():
    parts = [outcome(1.0, learn=False, id="a"), outcome(2.0, learn=False, id="b")]
    close = [outcome(3.0, kind="closed", id="!close"), outcome(0.0, kind="default", id="!close")]
    traffic = Traffic()
    traffic.note_outcomes(parts + close, learning="at_close")
    assert traffic.spans()[0].sums == Sums(rewards=2, total=3.0, squares=9.0)
    frozen = Traffic()
    frozen.note_outcomes(parts)
    assert frozen.spans()[0].sums == Sums(rewards=2, total=3.0, squares=5.0)


def test_agreement_is_counted_in_the_mode_observe():
    rows = [
        decision("coffee", mode="observe", suggested="coffee"),
        decision("coffee", mode="observe", suggested=["coffee"]),
        decision("coffee", mode="observe", suggested=["tea/green"]),
        decision(["coffee", "tea/green"], mode="observe", suggested=["coffee", "tea/green"]),
        decision("coffee"),
    ]
    sums = noted(rows).spans()[0].sums
    assert (sums.decisions, sums.observed, sums.agreed) == (5, 4, 3)


def test_old_minutes_become_hours_and_old_hours_days_and_nothing_is_lost():
    traffic, days = Traffic(), 100
    times = [START + i * 7 * MINUTE for i in range(days * 24 * 60 // 7)]
    for at in times:
        traffic.note_decisions([decision("coffee", at)])
        traffic.note_outcomes([outcome(0.5, at)])
    spans = traffic.spans()
    assert sum(span.sums.decisions for span in spans) == len(times) == traffic.total
    assert math.isclose(sum(span.sums.total for span in spans), 0.5 * len(times))
    widths = [span.seconds for span in spans]
    assert widths == sorted(widths, reverse=True)
    assert set(widths) == {MINUTE, HOUR, DAY}
    assert len(spans) < 2_000
    ends = [span.start + span.seconds for span in spans]
    assert all(end <= span.start for end, span in zip(ends, spans[1:], strict=False))


def test_what_comes_for_a_time_long_ago_goes_to_its_hour_or_day():
    traffic = noted(
        [decision("coffee", START), decision("coffee", START - 3 * DAY), decision("coffee", START - 99 * DAY)]
    )
    assert [span.seconds for span in traffic.spans()] == [DAY, HOUR, MINUTE]


def test_counts_in_bulk_are_the_same_as_one_by_one():
    rows = [decision("coffee"), decision("tea/green", START + 61), decision("coffee", START + 61)]
    rewards = [outcome(2.0), outcome(1.5, START + 61)]
    one_by_one = noted(rows)
    one_by_one.note_outcomes(rewards)
    bulk = Traffic()
    spans = [(START, Sums(1, 1, 2.0, 4.0)), (START + 60, Sums(2, 1, 1.5, 2.25))]
    bulk.add_counts({"coffee": 2, "tea/green": 1}, spans)
    assert bulk.spans() == one_by_one.spans()
    assert of_names(bulk, agent()) == of_names(one_by_one, agent())


def test_a_snapshot_restores_the_same_traffic():
    names = ["coffee", "café \u2603", "a\0b", "", 7, -3, 2**40, "7"]
    traffic = noted([decision(name, START + i * 40) for i, name in enumerate(names)])
    traffic.note_outcomes([outcome(1.0), outcome(3.0, START - 3 * DAY), outcome(3.0, START - 99 * DAY)])
    traffic.note_decisions([decision("coffee", context=[1.0, 3.0]), decision("coffee", context=[2.0, 5.0])])
    model = bough.GaussianModel(TREE, mean=[0.0, 0.0])
    traffic.mean_context(model)
    header, arrays = traffic.contents()
    again = Traffic.restored(msgspec.json.decode(msgspec.json.encode(header)), arrays)
    assert again.spans() == traffic.spans()
    assert [again.decisions(name) for name in names] == [traffic.decisions(name) for name in names]
    assert again.total == traffic.total
    np.testing.assert_array_equal(again.mean_context(model), [1.5, 4.0])
    again.note_decisions([decision("coffee", START + 9)])
    assert again.decisions("coffee") == traffic.decisions("coffee") + 1


def test_a_damaged_snapshot_is_refused():
    header, arrays = noted([decision("coffee")]).contents()
    with pytest.raises(ValueError, match="version 9"):
        Traffic.restored({**header, "version": 9}, arrays)
    with pytest.raises(ValueError, match="do not go together"):
        Traffic.restored(header, {**arrays, "decisions": np.array([1, 2])})


def test_the_mean_context_is_that_of_decisions_as_the_model_has_it():
    features = bough.Features(["age"], [40.0], [10.0], {"country": ["de", "fr"]})
    model = bough.GaussianModel(TREE, mean=np.zeros(len(features.names)), features=features)
    traffic = Traffic()
    np.testing.assert_array_equal(traffic.mean_context(model), [1.0, 0.0, 0.0, 0.0, 0.0])
    contexts = [{"age": 50, "country": "fr"}, {"age": 40, "country": "de"}, {"other": 1}]
    traffic.note_decisions([decision("coffee", context=context) for context in contexts])
    np.testing.assert_array_equal(traffic.mean_context(model), [1.0, 0.5, 0.5, 0.5, 0.0])
    assert traffic.mean_context(bough.GaussianModel(TREE)) is None
    np.testing.assert_array_equal(Traffic().mean_context(bough.GaussianModel(TREE, mean=[0.0, 0.0])), [1.0, 1.0])
