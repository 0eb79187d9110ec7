"""What every log promises, on each kind of log."""

import hashlib
import threading

import pytest

from bough.service.log.base import LogError
from bough.service.records import (
    ExperimentRow,
    Key,
    KeyRow,
    ModelRow,
    Position,
    SnapshotRow,
    State,
)
from log_rows import a_change, a_decision, an_outcome, append

CONTEXTS = [
    None,
    [],
    [1.0, -0.25, 1e-300],
    {},
    {"age": 7, "city": "Zürich", "old": None, "new": True, "x": 0.5},
]
NAMES = ["kettle", "", "7", 7, 0, -1, 2**63, -(10**30), "Käse ☕ \x00 \\ \"'"]


def state(log, id, experiment=1):
    return log.states([Key(experiment, id)])[Key(experiment, id)]


def ids(log, experiment=1):
    return [row.id for _, row in log.decisions_after(experiment, Position(), 10_000)]


# -- decisions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_decision_comes_back_as_it_was(log, context):
    row = a_decision(
        "d1",
        at=1.7e9 + 1e-6,
        actions=["kettle", 7, "spade"],
        context=context,
        offered={"k": 3, "among": ["kettle", 7, "spade"], "exclude": []},
        model_version=12,
        learned_xid=2**40,
        learned_seq=2**50,
        propensity=[0.5, 0.25, 1e-9],
        mode="observe",
        active=None,
        closes=1e10 / 3,
        learning="at_close",
        open=True,
    )
    append(log, row)
    assert log.states([row.key]) == {row.key: State(row, [])}
    with log.transaction() as transaction:
        assert transaction.decisions([row.key]) == {row.key: row}


@pytest.mark.parametrize("name", NAMES)
def test_every_name_that_json_has_comes_back_as_it_was(log, name):
    append(log, a_decision("d1", actions=[name]), an_outcome("d1", action=name))
    decision, [outcome] = state(log, "d1")
    assert (decision.actions, outcome.action) == ([name], name)
    assert type(outcome.action) is type(name)


def test_a_decision_whose_id_is_there_already_is_left_and_returned(log):
    append(log, a_decision("d1", actions=["first"]), a_decision("d3"))
    with log.transaction() as transaction:
        rows = [a_decision(id, actions=["second"]) for id in ("d0", "d1", "d2", "d3", "d4")]
        found = transaction.add_decisions(rows)
    assert found == {Key(1, "d1"): a_decision("d1", actions=["first"]), Key(1, "d3"): a_decision("d3")}
    assert [(id, state(log, id).decision.actions) for id in ids(log)] == [
        ("d1", ["first"]),
        ("d3", ["kettle"]),
        ("d0", ["second"]),
        ("d2", ["second"]),
        ("d4", ["second"]),
    ]


def test_a_decision_logged_in_the_same_transaction_is_found_as_well(log):
    with log.transaction() as transaction:
        assert transaction.add_decisions([a_decision("d1", actions=["first"])]) == {}
        found = transaction.add_decisions([a_decision("d1", actions=["second"])])
        assert found == {Key(1, "d1"): a_decision("d1", actions=["first"])}
        transaction.add_outcomes([an_outcome("d1")])
        assert len(transaction.states([Key(1, "d1")])[Key(1, "d1")].outcomes) == 1
    assert state(log, "d1").decision.actions == ["first"]


def test_the_same_id_in_another_experiment_is_another_decision(log):
    append(log, a_decision("d1"), a_decision("d1", experiment=2, actions=["spade"]))
    append(log, an_outcome("d1", experiment=2, value=5.0))
    assert state(log, "d1").outcomes == []
    decision, [outcome] = state(log, "d1", experiment=2)
    assert (decision.actions, outcome.value) == (["spade"], 5.0)


def test_ids_differ_by_case_and_by_spaces(log):
    append(log, a_decision("d1"), a_decision("D1"), a_decision("d1 "))
    assert ids(log) == ["d1", "D1", "d1 "]


def test_keys_without_a_decision_are_left_out(log):
    append(log, a_decision("d1"))
    asked = [Key(1, "d1"), Key(2, "d1"), Key(1, "nobody")]
    assert list(log.states(asked)) == [Key(1, "d1")]
    assert log.states([]) == {}
    with log.transaction() as transaction:
        assert list(transaction.states(asked)) == [Key(1, "d1")]
        assert list(transaction.decisions(asked)) == [Key(1, "d1")]
        assert transaction.add_decisions([]) == {}
        transaction.add_outcomes([])
        transaction.set_states([])


def test_decisions_are_read_in_the_order_in_which_they_were_logged_piece_by_piece(log):
    append(log, *[a_decision(f"z{9 - n}", experiment=1 + n % 2) for n in range(10)])
    first = log.decisions_after(1, Position(), 3)
    assert [row.id for _, row in first] == ["z9", "z7", "z5"]
    rest = log.decisions_after(1, first[-1][0], 3)
    assert [row.id for _, row in rest] == ["z3", "z1"]
    assert log.decisions_after(1, rest[-1][0], 3) == []


# -- outcomes and changes --------------------------------------------------------------------------


@pytest.mark.parametrize("factors", [None, {}, {"store": "north", "till": 7}, {"Käse ☕ \x00": "\\ \"'"}])
def test_the_levels_of_decisions_come_back_as_they_were(log, factors):
    row, outcome = a_decision("d1", factors=factors), an_outcome("d1", factors=factors)
    append(log, row, outcome)
    assert state(log, "d1") == State(row, [outcome])
    assert log.read_after(Position(), 10) == [outcome]


@pytest.mark.parametrize("context", CONTEXTS)
def test_an_outcome_comes_back_as_it_was(log, context):
    row = an_outcome(
        "d1", slot=2, id="r1", kind="late", value=-1.7e308, trials=3.0, exposure=0.1, context=context, learn=False
    )
    append(log, a_decision("d1"), row)
    assert log.read_after(Position(), 10) == [row]
    assert state(log, "d1").outcomes == [row]
    assert row.position == log.end() > Position()


def test_a_change_comes_back_as_it_was(log):
    body = {"op": "add", "name": ["kettle", 7], "under": None, "share": 0.1, "nested": {"a": [1, 2.5, "x"]}}
    row = a_change(experiment=0, kind="key", by="k1", body=body)
    append(log, row)
    assert log.read_after(Position(), 10) == [row]


def test_records_of_all_kinds_and_experiments_are_read_in_the_order_of_their_commits(log):
    append(log, *[a_decision(f"d{n}", experiment=1 + n % 2) for n in range(20)])
    rows = []
    for n in range(20):
        row = a_change(experiment=n % 3) if n % 5 == 4 else an_outcome(f"d{n}", experiment=1 + n % 2)
        append(log, row)
        rows.append(row)
    positions = [row.position for row in rows]
    assert positions == sorted(set(positions))
    assert log.read_after(Position(), 100) == rows
    assert log.end() == positions[-1]
    found, position = [], Position()
    while piece := log.read_after(position, 3):
        assert len(piece) <= 3
        found += piece
        position = piece[-1].position
    assert found == rows


def test_the_records_of_one_experiment_are_a_stream_between_two_positions(log):
    append(log, *[a_decision(f"d{n}", experiment=1 + n % 2) for n in range(20)])
    rows = []
    for n in range(20):
        row = a_change(experiment=n % 3) if n % 5 == 4 else an_outcome(f"d{n}", experiment=1 + n % 2)
        append(log, row)
        rows.append(row)
    of_one = [row for row in rows if row.experiment == 1]
    assert list(log.records(1, Position(), log.end())) == of_one
    since, until = of_one[1].position, of_one[-2].position
    assert list(log.records(1, since, until)) == of_one[2:-1]
    assert list(log.records(1, log.end(), log.end())) == []
    assert list(log.records(7, Position(), log.end())) == []


def test_a_long_stream_misses_nothing_and_repeats_nothing(log):
    with log.transaction() as transaction:
        transaction.add_decisions([a_decision("d1")])
        transaction.states([Key(1, "d1")])
        for start in range(0, 11_000, 1_000):
            transaction.add_outcomes([an_outcome("d1", id=f"r{n}") for n in range(start, start + 1_000)])
            transaction.add_change(a_change())
    found = list(log.records(1, Position(), log.end()))
    assert len(found) == 11_011
    assert [row.position for row in found] == sorted({row.position for row in found})


def test_an_outcome_that_is_there_already_fails_the_transaction_and_leaves_nothing_of_it(log):
    append(log, a_decision("d1"), an_outcome("d1", id="r1"))
    end = log.end()
    transaction = log.begin()
    transaction.add_decisions([a_decision("d2")])
    transaction.states([Key(1, "d1"), Key(1, "d2")])
    transaction.add_outcomes([an_outcome("d2")])
    with pytest.raises(LogError):
        transaction.add_outcomes([an_outcome("d1", id="r2"), an_outcome("d1", id="r1", value=2.0)])
    log.rollback()
    assert (ids(log), log.end(), len(state(log, "d1").outcomes)) == (["d1"], end, 1)
    append(log, an_outcome("d1", id="r2"), an_outcome("d1", id="r1", slot=1))
    assert [(row.id, row.slot) for row in state(log, "d1").outcomes] == [("r1", 0), ("r2", 0), ("r1", 1)]


def test_a_failed_transaction_cannot_be_committed(log):
    append(log, a_decision("d1"), an_outcome("d1"))
    transaction = log.begin()
    transaction.states([Key(1, "d1")])
    with pytest.raises(LogError):
        transaction.add_outcomes([an_outcome("d1")])
    with pytest.raises(LogError):
        log.commit()
    append(log, a_decision("d2"))
    assert ids(log) == ["d1", "d2"]


# -- transactions ----------------------------------------------------------------------------------


def append_everything(transaction):
    """One of each thing that a transaction appends, beside a decision d1."""
    transaction.lock_changes(1)
    transaction.add_decisions([a_decision("d2")])
    transaction.states([Key(1, "d1")])
    transaction.add_outcomes([an_outcome("d1")])
    transaction.set_states([a_decision("d1", active=None, closes=5.0, open=True)])
    transaction.set_propensities([(Key(1, "d1"), [0.5])])
    transaction.add_change(a_change())
    transaction.add_experiment("shop", {}, 1.0)
    transaction.add_model(ModelRow(1, 1, "ab", 0))
    transaction.put_file("ab", b"bytes")
    transaction.add_key(KeyRow("k1", b"hash", ["read"], None, None, 1.0))
    transaction.quarantine(Position(0, 1), "why")


def everything(log):
    return (
        ids(log),
        state(log, "d1"),
        log.read_after(Position(), 100),
        log.experiments(),
        log.models(1),
        log.keys(),
        log.quarantined(),
        log.end(),
        log.due(1, 1e9, 10),
    )


def test_a_transaction_left_by_an_exception_leaves_nothing(log):
    append(log, a_decision("d1"))
    before = everything(log)

    def fail():
        with log.transaction() as transaction:
            append_everything(transaction)
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        fail()
    assert everything(log) == before
    with pytest.raises(KeyError):
        log.file("ab")


def test_what_was_rolled_back_leaves_nothing_and_what_was_not_yet_committed_is_seen_by_nobody(log):
    append(log, a_decision("d1"))
    before = everything(log)
    append_everything(log.begin())
    assert everything(log) == before
    log.rollback()
    assert everything(log) == before
    append_everything(log.begin())
    log.commit()
    found = everything(log)
    assert all(new != old for new, old in zip(found, before, strict=True))
    assert log.file("ab") == b"bytes"


def test_the_commit_may_be_in_another_thread(log):
    log.begin().add_decisions([a_decision("d1")])
    thread = threading.Thread(target=log.commit)
    thread.start()
    thread.join()
    log.begin().add_decisions([a_decision("d2")])
    thread = threading.Thread(target=log.rollback)
    thread.start()
    thread.join()
    append(log, a_decision("d3"))
    assert ids(log) == ["d1", "d3"]


def test_readers_in_other_threads_see_whole_transactions_only(log):
    append(log, a_decision("d1"))
    found, done = [], threading.Event()

    def read():
        while not done.is_set():
            found.append(len(log.read_after(Position(), 1_000)) % 4)
            found.append(len(state(log, "d1").outcomes) % 4)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for n in range(50):
        with log.transaction() as transaction:
            transaction.states([Key(1, "d1")])
            for part in range(4):
                transaction.add_outcomes([an_outcome("d1", id=f"r{n}-{part}")])
    done.set()
    for thread in threads:
        thread.join()
    assert set(found) == {0}


def test_all_is_there_when_the_log_is_opened_again(make_log):
    log = make_log()
    append(log, a_decision("d1"))
    append_everything(log.begin())
    log.commit()
    before, end = everything(log), log.end()
    log.close()
    again = make_log()
    assert everything(again) == before
    append(again, a_change())
    assert again.end() > end


# -- windows ---------------------------------------------------------------------------------------


def test_open_decisions_are_due_when_their_windows_have_closed_the_oldest_first(log):
    append(
        log,
        a_decision("late", closes=30.0, open=True),
        a_decision("early", closes=10.0, open=True),
        a_decision("done", closes=5.0),
        a_decision("never", open=True),
        a_decision("elsewhere", experiment=2, closes=1.0, open=True),
        a_decision("middle", closes=20.0, open=True),
    )
    assert log.due(1, 9.99, 10) == []
    assert log.due(1, 20.0, 10) == [Key(1, "early"), Key(1, "middle")]
    assert log.due(1, 1e9, 2) == [Key(1, "early"), Key(1, "middle")]
    assert log.due(2, 1e9, 10) == [Key(2, "elsewhere")]


def test_the_state_of_a_decision_is_written_and_nothing_else_of_it(log):
    row = a_decision("d1", active=None, context=[1.0], offered={"k": 1})
    append(log, row)
    with log.transaction() as transaction:
        transaction.states([row.key])
        transaction.set_states([a_decision("d1", active=3.0, closes=4.0, open=True, actions=["spade"], context=None)])
    row.active, row.closes, row.open = 3.0, 4.0, True
    assert state(log, "d1").decision == row
    assert log.due(1, 4.0, 10) == [row.key]
    with log.transaction() as transaction:
        row.open = False
        transaction.states([row.key])
        transaction.set_states([row])
    assert log.due(1, 4.0, 10) == []


# -- propensities ----------------------------------------------------------------------------------


def test_a_propensity_that_cannot_be_known_is_none_and_not_asked_for_again(log):
    append(log, a_decision("d1"))
    with log.transaction() as transaction:
        transaction.set_propensities([(Key(1, "d1"), [])])
    assert log.without_propensity(1, 10) == []
    assert state(log, "d1").decision.propensity is None
    assert log.decisions_after(1, Position(), 10)[0][1].propensity is None


def test_propensities_are_filled_in_once_in_the_order_of_what_had_been_learned(log):
    rows = [a_decision(f"d{n}", learned_seq=seq) for n, seq in enumerate((3, 1, 2, 7))]
    append(log, *rows, a_decision("has", propensity=[0.1]), a_decision("d9", experiment=2))
    assert [row.id for row in log.without_propensity(1, 10)] == ["d1", "d2", "d0", "d3"]
    assert len(log.without_propensity(1, 2)) == 2
    with log.transaction() as transaction:
        transaction.set_propensities([(Key(1, "d1"), [0.5]), (Key(1, "d0"), [0.25, 0.125]), (Key(1, "has"), [0.9])])
    assert [row.id for row in log.without_propensity(1, 10)] == ["d2", "d3"]
    assert [state(log, id).decision.propensity for id in ("d0", "d1", "d2", "has")] == [
        [0.25, 0.125],
        [0.5],
        None,
        [0.1],
    ]
    with log.transaction() as transaction:
        transaction.set_propensities([(Key(1, "d2"), [1.0]), (Key(1, "d3"), [1.0])])
    assert log.without_propensity(1, 10) == []
    append(log, a_decision("new", learned_seq=9))
    assert [row.id for row in log.without_propensity(1, 10)] == ["new"]


# -- experiments, models, files, keys, quarantine --------------------------------------------------


def test_an_experiment_has_one_name_and_the_second_of_a_name_is_the_first(log):
    with log.transaction() as transaction:
        shop = transaction.add_experiment("shop", {"window": 5.0}, 1.0)
        other = transaction.add_experiment("other", {}, 2.0)
        assert transaction.add_experiment("shop", {"window": 7.0}, 3.0) == shop
    assert shop == ExperimentRow(shop.id, "shop", {"window": 5.0}, 1.0)
    assert 0 < shop.id < other.id
    assert log.experiments() == [shop, other]


def test_the_versions_of_a_model_come_in_their_order(log):
    rows = [ModelRow(1, version, f"digest{version}", 10 * version) for version in (1, 2, 10)]
    with log.transaction() as transaction:
        for row in reversed(rows):
            transaction.add_model(row)
        transaction.add_model(ModelRow(2, 1, "x", 0))
    assert log.models(1) == rows
    assert log.models(3) == []


def test_a_version_of_a_model_is_given_once(log):
    with log.transaction() as transaction:
        transaction.add_model(ModelRow(1, 1, "a", 0))
    transaction = log.begin()
    with pytest.raises(LogError):
        transaction.add_model(ModelRow(1, 1, "b", 0))
    log.rollback()
    assert log.models(1) == [ModelRow(1, 1, "a", 0)]


def test_a_file_is_kept_by_its_digest_and_twice_is_once(log):
    data = bytes(range(256)) * 40_000
    digest = hashlib.sha256(data).hexdigest()
    for _ in range(2):
        with log.transaction() as transaction:
            transaction.put_file(digest, data)
            transaction.put_file(digest, data)
    assert log.file(digest) == data
    with pytest.raises(KeyError, match="0000"):
        log.file("0000")


def test_a_key_is_revoked_once_and_stays_in_the_list(log):
    row = KeyRow("k1", b"\x00hash", ["decide", "reward"], "shop", 12.5, 1.0)
    other = KeyRow("k2", b"hash", [], None, None, 2.0)
    with log.transaction() as transaction:
        transaction.add_key(row)
        transaction.add_key(other)
    assert log.keys() == [row, other]
    with log.transaction() as transaction:
        assert transaction.revoke_key("k1", 3.0)
        assert not transaction.revoke_key("k1", 4.0)
        assert not transaction.revoke_key("nobody", 4.0)
    row.revoked = 3.0
    assert log.keys() == [row, other]


def test_a_record_is_quarantined_once(log):
    append(log, a_change())
    with log.transaction() as transaction:
        transaction.quarantine(log.end(), "unknown action")
        transaction.quarantine(log.end(), "something else")
    with log.transaction() as transaction:
        transaction.quarantine(log.end(), "something else")
    assert log.quarantined() == [(log.end(), "unknown action")]


# -- snapshots -------------------------------------------------------------------------------------


def a_snapshot(seq, experiment=1):
    data = f"snapshot {seq} of {experiment}".encode() * 1_000
    return SnapshotRow(experiment, 0, seq, hashlib.sha256(data).hexdigest(), float(seq)), data


def test_the_newest_three_snapshots_are_kept(log):
    for seq in (10, 20, 30, 9, 40):
        log.put_snapshot(*a_snapshot(seq))
    log.put_snapshot(*a_snapshot(5, experiment=12))
    assert log.snapshots(1) == [a_snapshot(seq)[0] for seq in (40, 30, 20)]
    assert log.snapshots(12) == [a_snapshot(5, experiment=12)[0]]
    assert log.snapshots(2) == []
    for row in log.snapshots(1) + log.snapshots(12):
        assert log.snapshot(row) == a_snapshot(row.seq, row.experiment)[1]
    with pytest.raises(KeyError, match="10"):
        log.snapshot(a_snapshot(10)[0])


def test_a_snapshot_of_the_same_position_takes_the_place_of_the_one_before(log):
    row, _ = a_snapshot(10)
    log.put_snapshot(row, b"one")
    log.put_snapshot(row, b"two")
    assert log.snapshots(1) == [row]
    assert log.snapshot(row) == b"two"


def test_a_snapshot_may_be_put_while_a_transaction_waits_for_its_commit(log):
    log.begin().add_decisions([a_decision("d1")])
    thread = threading.Thread(target=log.put_snapshot, args=a_snapshot(10))
    thread.start()
    log.commit()
    thread.join()
    assert len(log.snapshots(1)) == 1
    assert ids(log) == ["d1"]


# -- pruning ---------------------------------------------------------------------------------------


def test_contexts_go_first_of_what_is_old_not_open_and_in_the_snapshot(log):
    append(
        log,
        a_decision("old", at=1.0, context=[1.0]),
        an_outcome("old", context=[1.0]),
        a_decision("open", at=1.0, context=[2.0], open=True, closes=1e9),
        a_decision("new", at=50.0, context=[3.0]),
        an_outcome("new", context=[3.0]),
        a_decision("unrewarded", at=2.0, context={"a": 1}),
        a_decision("bare", at=3.0),
        a_decision("elsewhere", at=1.0, context=[4.0], experiment=2),
    )
    until = log.end()
    append(log, a_decision("unlearned", at=4.0, context=[5.0]), an_outcome("unlearned", context=[5.0]))
    assert log.prune(1, 50.0, until, contexts_only=True) == 2
    found = {id: state(log, id) for id in ids(log)}
    assert [id for id in found if found[id].decision.context is None] == ["old", "unrewarded", "bare"]
    assert [row.context for row in found["old"].outcomes] == [None]
    assert [row.context for row in found["unlearned"].outcomes] == [[5.0]]
    assert state(log, "elsewhere", experiment=2).decision.context == [4.0]
    assert log.prune(1, 50.0, until, contexts_only=True) == 0


def test_whole_decisions_go_with_their_outcomes_and_changes_stay(log):
    append(
        log,
        a_decision("old", at=1.0),
        an_outcome("old", id="r1"),
        a_change(),
        an_outcome("old", id="r2"),
        a_decision("open", at=1.0, open=True, closes=1e9),
        a_decision("new", at=50.0),
        an_outcome("new"),
        a_decision("elsewhere", at=1.0, experiment=2),
    )
    until = log.end()
    append(log, a_decision("unlearned", at=4.0), an_outcome("unlearned"))
    append(log, a_decision("late", at=4.0))
    assert log.prune(1, 50.0, until, contexts_only=False) == 2
    assert ids(log) == ["open", "new", "unlearned"]
    assert ids(log, experiment=2) == ["elsewhere"]
    kinds = [getattr(row, "decision", "change") for row in log.read_after(Position(), 100)]
    assert kinds == ["change", "new", "unlearned"]
    assert log.prune(1, 50.0, until, contexts_only=False) == 0


def test_decisions_that_were_never_activated_go_too_and_do_not_keep_their_contexts_for_ever(log):
    rows = [a_decision(id, at=1.0, context=[1.0], open=True, active=None) for id in ("d1", "d2")]
    append(log, *rows, a_decision("open", at=1.0, context=[1.0], open=True, active=1.0, closes=1e9))
    assert log.prune(1, 50.0, log.end(), contexts_only=True) == 2
    assert [row.context for _, row in log.decisions_after(1, Position(), 10)] == [None, None, [1.0]]
    assert log.prune(1, 50.0, log.end(), contexts_only=False) == 2
    assert ids(log) == ["open"]


def test_a_decision_with_an_outcome_that_no_snapshot_holds_keeps_all_of_them(log):
    append(log, a_decision("d1", at=1.0), an_outcome("d1", id="r1"))
    until = log.end()
    append(log, an_outcome("d1", id="r2"))
    assert log.prune(1, 50.0, until, contexts_only=False) == 0
    assert [row.id for row in state(log, "d1").outcomes] == ["r1", "r2"]
    assert log.prune(1, 50.0, log.end(), contexts_only=False) == 1
    assert log.states([Key(1, "d1")]) == {}


def test_what_is_pruned_in_several_pieces_is_all_of_it(log):
    with log.transaction() as transaction:
        transaction.add_decisions([a_decision(f"d{n}", at=float(n % 2), context=[1.0]) for n in range(4_600)])
        transaction.states([Key(1, f"d{n}") for n in range(4_600)])
        transaction.add_outcomes([an_outcome(f"d{n}") for n in range(0, 4_600, 2)])
    assert log.prune(1, 1.0, log.end(), contexts_only=True) == 2_300
    assert log.prune(1, 1.0, log.end(), contexts_only=False) == 2_300
    left = ids(log)
    assert left == [f"d{n}" for n in range(1, 4_600, 2)]
    assert log.read_after(Position(), 10) == []


def test_positions_are_never_used_again_when_the_last_rows_are_pruned(make_log):
    log = make_log()
    append(log, a_decision("d1", at=1.0), an_outcome("d1"))
    end, [(position, _)] = log.end(), log.decisions_after(1, Position(), 10)
    assert log.prune(1, 50.0, end, contexts_only=False) == 1
    log.close()
    log = make_log()
    append(log, a_decision("d1", at=2.0), an_outcome("d1"))
    assert log.end() > end
    assert log.decisions_after(1, Position(), 10)[0][0] > position
    assert log.read_after(end, 10) == state(log, "d1").outcomes


# -- life ------------------------------------------------------------------------------------------


def test_what_another_process_appends_ends_the_wait(make_log):
    log, beside = make_log(), make_log(exclusive=False)
    while log.wait(0.0):
        pass
    assert not log.wait(0.01)
    append(beside, a_change())
    assert log.wait(10.0)
    assert len(log.read_after(Position(), 10)) == 1


def test_a_command_beside_a_service_reads_and_writes_the_same_log(make_log):
    log, beside = make_log(), make_log(exclusive=False)
    append(log, a_decision("d1"), an_outcome("d1"))
    append(beside, a_change())
    append(log, an_outcome("d1", id="r2"))
    assert log.read_after(Position(), 10) == beside.read_after(Position(), 10)
    assert len(log.read_after(Position(), 10)) == 3
    assert log.try_to_keep()
    assert log.try_to_keep()
    assert not beside.try_to_keep()


def test_the_keeper_is_free_to_be_another_when_it_has_closed(make_log):
    log = make_log()
    assert log.try_to_keep()
    log.close()
    log.close()
    assert make_log().try_to_keep()
