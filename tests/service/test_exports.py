"""The log as tables: what is written and read again is the same, and what it is for can be done with it."""

import asyncio
import csv
import hashlib
import json
import os
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bough
from bough.service import exports, tables
from bough.service.exports import read_events, write_decisions, write_events
from bough.service.log.sqlite import SqliteLog
from bough.service.problems import Problem
from bough.service.records import CLOSE, ChangeRow, OutcomeRow
from bough.service.routes import NDJSON, PARQUET
from bough.service.schema import ExportQuery
from log_rows import a_change, a_decision, an_outcome, append

ENDINGS = [".parquet", ".ndjson", ".csv"]

# -- what is written is read -------------------------------------------------------------------------

ODD = ["", "7", "a\0b", "\r", "\n", "\r\n", "a\rb", '"', "'", ",", "é☕", "NaN", " x ", "\u2028", "\x85"]
TEXTS = st.text(max_size=20) | st.sampled_from(ODD)
NAMES = TEXTS | st.integers(-(2**70), 2**70)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | NUMBERS | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.text(max_size=8), JSON, max_size=4)
FLAT = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | NUMBERS | st.text(max_size=10)
CONTEXTS = st.none() | st.lists(NUMBERS, max_size=4) | st.dictionaries(TEXTS, FLAT, max_size=4)
PLACES = st.integers(0, 2**62)
OUTCOMES = st.builds(
    OutcomeRow,
    experiment=st.integers(1, 9),
    decision=TEXTS,
    slot=st.integers(0, 9),
    id=TEXTS,
    at=NUMBERS,
    kind=st.sampled_from(["reward", "closed", "default", "late", "cancelled", "retracted"]),
    value=NUMBERS,
    trials=st.none() | NUMBERS,
    exposure=st.none() | NUMBERS,
    action=NAMES,
    context=CONTEXTS,
    earned=NUMBERS,
    learn=st.booleans(),
    xid=PLACES,
    seq=PLACES,
    factors=st.none() | st.dictionaries(TEXTS, NAMES, max_size=2),
)
CHANGES = st.builds(
    ChangeRow,
    experiment=st.integers(0, 9),
    at=NUMBERS,
    kind=st.sampled_from(["tree", "action", "model", "config", "tick", "key"]),
    by=TEXTS,
    body=OBJECTS,
    xid=PLACES,
    seq=PLACES,
)


@pytest.mark.parametrize("ending", ENDINGS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=st.lists(OUTCOMES | CHANGES, max_size=6))
def test_records_come_back_as_they_were_whatever_they_are_called(tmp_path, ending, records):
    path = tmp_path / f"events{ending}"
    assert tables.write_table(path, exports.EVENTS, map(exports.event_row, records)) == len(records)
    assert list(read_events(path)) == records


@pytest.mark.parametrize("ending", ENDINGS)
def test_odd_names_come_back(tmp_path, ending):
    records = [an_outcome(name, action=name, id=name, context={name: name}) for name in ODD]
    records += [a_change(by=name, body={name: [name]}) for name in ODD]
    path = tmp_path / f"events{ending}"
    tables.write_table(path, exports.EVENTS, map(exports.event_row, records))
    assert list(read_events(path)) == records


@pytest.fixture
def log(tmp_path):
    log = SqliteLog(tmp_path / "data")
    with log.transaction() as transaction:
        transaction.add_experiment("shop", {}, 0.0)
    yield log
    log.close()


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_log_comes_back_with_its_files_and_without_its_decisions(log, tmp_path, ending):
    data = os.urandom(200_000)  # more than a cell of Python's csv has room for
    digest = hashlib.sha256(data).hexdigest()
    with log.transaction() as transaction:
        transaction.put_file(digest, data)
    rows = [
        a_decision("d1", context={"age": 7}, offered={"k": 1}, propensity=[0.5]),
        an_outcome("d1"),
        a_change(kind="tree", body={"digest": digest, "gone": "retire"}),
        a_change(kind="model", body={"digest": "not there", "version": 2}),
        a_decision("d2", actions=[7, "kettle"], learned_seq=3),
        an_outcome("d2", slot=1, action="kettle", value=0.1, context=[1.0, 2.0]),
    ]
    append(log, *rows)
    path, files = tmp_path / f"events{ending}", {}
    assert write_events(path, log, 1) == 6
    assert list(read_events(path, files)) == [row for row in rows if not hasattr(row, "actions")]
    assert files == {digest: data}
    assert write_events(path, log, 1, decisions=False) == 4
    assert list(read_events(path)) == [row for row in rows if not hasattr(row, "actions")]


def test_decisions_stand_where_they_were_made(log, tmp_path):
    append(log, a_decision("d1"), an_outcome("d1"), a_decision("d2", learned_seq=1), an_outcome("d2"), a_change())
    append(log, a_decision("d3", learned_seq=3))
    path = tmp_path / "events.ndjson"
    write_events(path, log, 1)
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(row["kind"], row["decision_id"]) for row in found] == [
        ("decision", "d1"), ("reward", "d1"), ("decision", "d2"), ("reward", "d2"), ("tick", None), ("decision", "d3")
    ]  # fmt: skip
    assert found[0]["body"] == {"active": 100.0, "closes": None, "learning": "at_once", "open": False}


def test_only_what_happened_between_two_times_is_written(log, tmp_path):
    append(log, *(a_change(at=float(at)) for at in range(10)))
    path = tmp_path / "events.csv"
    assert write_events(path, log, 1, since=3.0, until=5.0) == 2
    assert [row.at for row in read_events(path)] == [3.0, 4.0]


def test_other_experiments_are_left_out(log, tmp_path):
    append(log, a_change(experiment=1), a_change(experiment=2))
    path = tmp_path / "events.csv"
    assert write_events(path, log, 2) == 1
    assert [row.experiment for row in read_events(path)] == [2]


def test_rows_go_in_groups_so_that_memory_stays_flat(tmp_path):
    path = tmp_path / "events.parquet"
    alive = most = 0

    class Row(tuple):
        def __new__(cls, values):
            nonlocal alive, most
            alive += 1
            most = max(most, alive)
            return super().__new__(cls, values)

        def __del__(self):
            nonlocal alive
            alive -= 1

    one = exports.event_row(a_change())
    assert tables.write_table(path, exports.EVENTS, (Row(one) for _ in range(55_000))) == 55_000
    file = pyarrow.parquet.ParquetFile(path)
    assert (file.metadata.num_rows, file.metadata.num_row_groups) == (55_000, 6)
    assert most <= 20_001
    assert sum(1 for _ in read_events(path)) == 55_000


def test_large_files_make_smaller_groups(tmp_path):
    path = tmp_path / "events.parquet"
    change = a_change(kind="tree", body={"digest": "d"})
    tables.write_table(path, exports.EVENTS, (exports.event_row(change, bytes(1 << 23)) for _ in range(12)))
    assert pyarrow.parquet.ParquetFile(path).metadata.num_row_groups == 3


# -- files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_failure_leaves_the_file_that_was_there(tmp_path, ending):
    path = tmp_path / f"events{ending}"
    path.write_bytes(b"before")

    def rows():
        yield exports.event_row(a_change())
        raise RuntimeError("the database went away")

    with pytest.raises(RuntimeError, match="went away"):
        tables.write_table(path, exports.EVENTS, rows())
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == [path.name]


def test_a_new_file_is_for_its_owner_alone_and_an_old_one_stays_as_it_was(tmp_path):
    path = tmp_path / "events.csv"
    tables.write_table(path, exports.EVENTS, [])
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o640)
    tables.write_table(path, exports.EVENTS, [])
    assert path.stat().st_mode & 0o777 == 0o640


def test_other_endings_and_missing_folders_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"events\.xlsx ends in none of \.parquet"):
        tables.write_table(tmp_path / "events.xlsx", exports.EVENTS, [])
    with pytest.raises(FileNotFoundError, match="make it first"):
        tables.write_table(tmp_path / "nowhere" / "events.csv", exports.EVENTS, [])


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr(tables, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install '\.\[logs\]'"):
        tables.write_table(tmp_path / "events.parquet", exports.EVENTS, [])
    with pytest.raises(Problem) as found:
        exports.exported(None, None, ExportQuery(format="parquet"))
    assert found.value.code == "conflict"


DAMAGED = {
    "other.csv": (b"a,b\n1,2\n", "no column 'xid'"),
    "cut.ndjson": (b'{"xid": 1, "seq"', "after row 0"),
    "other.parquet": (b"PAR1", "cannot be read"),
    "other.ndjson": (b'{"a": 1}\n', "no column 'xid'"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_file_of_something_else_is_refused(tmp_path, name):
    data, text = DAMAGED[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=text):
        list(read_events(tmp_path / name))


@pytest.mark.parametrize(
    ("before", "after"),
    [('"tick"', '"tock"'), ('"seq":0', '"seq":"0"'), ('"body":{', '"body":[{'), ('"kind":"tick"', '"kind":"reward"')],
)
def test_a_row_that_is_no_record_is_refused(tmp_path, before, after):
    path = tmp_path / "events.ndjson"
    tables.write_table(path, exports.EVENTS, [exports.event_row(a_change(body={}))])
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after).replace("[{}", "[{}]"))
    with pytest.raises(ValueError, match=r"no record, with seq '?0'?: "):
        list(read_events(path))


# -- decisions ---------------------------------------------------------------------------------------


def table_of(path):
    if path.suffix == ".parquet":
        return pyarrow.parquet.read_table(path).to_pylist()
    if path.suffix == ".ndjson":
        return [json.loads(line) for line in path.read_text().splitlines()]
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_each_decision_has_the_reward_that_was_learned(log, tmp_path):
    append(
        log,
        a_decision("once", propensity=[0.25]),
        an_outcome("once", value=3.0, trials=4.0),
        a_decision("closed", learning="at_close"),
        an_outcome("closed", id="a", value=1.0, learn=False),
        an_outcome("closed", id="b", value=1.0, learn=False),
        an_outcome("closed", id=CLOSE, kind="closed", value=2.0),
        a_decision("default", learning="at_close"),
        an_outcome("default", id=CLOSE, kind="default", value=0.0),
        a_decision("frozen", mode="frozen"),
        an_outcome("frozen", value=5.0, learn=False),
        a_decision("late"),
        an_outcome("late", kind="late", value=9.0, learn=False),
        a_decision("open", learning="at_close", open=True),
        an_outcome("open", id="a", learn=False),
        a_decision("cancelled"),
        an_outcome("cancelled", id="!cancel", kind="cancelled", value=0.0, learn=False),
        a_decision("retracted"),
        an_outcome("retracted"),
        an_outcome("retracted", id="!retract", kind="retracted"),
        a_decision("none"),
    )
    path = tmp_path / "decisions.parquet"
    assert write_decisions(path, log, 1) == 4
    found = {row["decision_id"]: row for row in table_of(path)}
    assert {id: row["reward"] for id, row in found.items()} == {
        "once": 3.0,
        "closed": 2.0,
        "default": 0.0,
        "frozen": 5.0,
    }
    assert (found["once"]["propensity"], found["once"]["trials"]) == (0.25, 4.0)
    assert write_decisions(path, log, 1, unrewarded=True) == 9
    assert sum(row["reward"] is None for row in table_of(path)) == 5


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_levels_of_decisions_have_columns(log, tmp_path, ending):
    levels = {"store": "north", "till": 7}
    append(
        log,
        a_decision("d1", factors=levels),
        an_outcome("d1", factors=levels),
        a_decision("d2"),
        an_outcome("d2"),
        a_decision("d3", factors={"till": 9}),
        an_outcome("d3", factors={"store": "south", "till": 9}),
    )
    path = tmp_path / f"decisions{ending}"
    write_decisions(path, log, 1)
    table = table_of(path)
    found = [row["factors"] for row in table]
    assert [one if isinstance(one, dict) else json.loads(one) if one else None for one in found] == [
        levels, None, {"store": "south", "till": 9}
    ]  # fmt: skip
    assert [row["store"] or None for row in table] == ["north", None, "south"]
    assert [None if row["till"] in (None, "") else int(row["till"]) for row in table] == [7, None, 9]


def test_a_factor_that_is_called_as_another_column_has_a_name_of_its_own(log, tmp_path):
    odd = {"action": "a", "factor_action": "b", "city": 1, "Käse ☕": "c"}
    append(log, a_decision("d1", factors=odd, context={"city": "Bern"}), an_outcome("d1", factors=odd))
    append(log, a_decision("d2", factors={"city": "Rom"}), an_outcome("d2", factors={"city": "Rom"}))
    path = tmp_path / "decisions.parquet"
    write_decisions(path, log, 1)
    first, second = table_of(path)
    assert (first["action"], first["city"]) == ("kettle", "Bern")
    columns = ("factor_factor_action", "factor_action", "factor_city", "Käse ☕")
    assert [first[name] for name in columns] == ["a", "b", "1", "c"]
    assert (second["city"], second["factor_city"]) == (None, "Rom")


def test_a_table_with_levels_is_ready_to_be_fitted(log, tmp_path):
    rng = np.random.default_rng(0)
    rows = []
    for i in range(200):
        levels = {"store": ["north", "south"][i % 2]}
        action = ["left", "right"][int(rng.integers(2))]
        rows += [
            a_decision(f"d{i}", actions=[action], factors=levels),
            an_outcome(f"d{i}", action=action, value=3.0 * (i % 2) + rng.normal(), factors=levels),
        ]
    append(log, *rows)
    path, tree = tmp_path / "decisions.csv", bough.Tree.from_nested(["left", "right"])
    write_decisions(path, log, 1)
    fit = bough.fit_prior(tree, path, action="action", reward="reward", factors={"store": "store"})
    effects = fit.posterior.effects("store", "polars").sort("level")["mean"].to_list()
    assert effects[1] - effects[0] == pytest.approx(3.0, abs=0.5)


def test_a_slate_has_a_row_for_each_position(log, tmp_path):
    append(
        log,
        a_decision("d1", actions=["kettle", "spade"], propensity=[0.5, 0.25], offered={"k": 2, "exclude": ["hoe"]}),
        an_outcome("d1", slot=1, action="spade", value=2.0),
    )
    path = tmp_path / "decisions.ndjson"
    write_decisions(path, log, 1, unrewarded=True)
    rows = [(row["position"], row["action"], row["reward"], row["propensity"]) for row in table_of(path)]
    assert rows == [(0, "kettle", None, 0.5), (1, "spade", 2.0, 0.25)]
    assert table_of(path)[0]["exclude"] == ["hoe"]


def test_features_have_a_column_each(log, tmp_path):
    append(
        log,
        a_decision("d1", context={"age": 7, "city": "Bern", "action": 1}),
        an_outcome("d1"),
        a_decision("d2", context={"age": "?", "city": "Rom", "new": 3}),
        an_outcome("d2"),
    )
    path = tmp_path / "decisions.parquet"
    write_decisions(path, log, 1)
    first, second = table_of(path)
    assert (first["city"], second["city"], first["age"], second["age"]) == ("Bern", "Rom", None, "?")
    assert (json.loads(first["context"]), first["action"]) == ({"age": 7, "city": "Bern", "action": 1}, "kettle")


@pytest.mark.parametrize(("features", "names"), [(None, ["x0", "x1"]), (["age", "hour"], ["age", "hour"])])
def test_features_of_lists_go_by_the_names_that_are_given(log, tmp_path, features, names):
    append(log, a_decision("d1", context=[1.5, 2.0]), an_outcome("d1"))
    path = tmp_path / "decisions.parquet"
    write_decisions(path, log, 1, features=features)
    assert [table_of(path)[0][name] for name in names] == [1.5, 2.0]


def test_actions_that_are_numbers_stay_numbers(log, tmp_path):
    append(log, a_decision("d1", actions=[7]), an_outcome("d1", action=7))
    path = tmp_path / "decisions.parquet"
    write_decisions(path, log, 1)
    assert table_of(path)[0]["action"] == 7


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
@pytest.mark.parametrize("names", [["left", "right"], [1, 2]])
def test_the_table_of_decisions_is_ready_to_be_evaluated(log, tmp_path, ending, names):
    rng = np.random.default_rng(0)
    rewards = rng.random(200) < 0.3
    rows = []
    for i in range(200):
        rows += [
            a_decision(f"d{i}", actions=[names[i % 2]], propensity=[0.5]),
            an_outcome(f"d{i}", action=names[i % 2], value=float(rewards[i])),
        ]
    append(log, *rows)
    path = tmp_path / f"decisions{ending}"
    write_decisions(path, log, 1)
    tree = bough.Tree.from_parents([-1, 0, 0], names=["all", *names])
    report = bough.evaluate({"left": {names[0]: 1.0}}, path, tree, estimators=["snips"])
    assert report.values[0].value == pytest.approx(rewards[::2].mean())


def test_a_table_in_contexts_is_ready_to_be_evaluated(log, tmp_path):
    rows = []
    for i in range(50):
        context = {"age": float(i % 5), "hour": 1.0}
        rows += [
            a_decision(f"d{i}", actions=["left"], propensity=[0.5], context=context),
            an_outcome(f"d{i}", action="left", value=float(i % 5), context=context),
        ]
    append(log, *rows)
    path = tmp_path / "decisions.parquet"
    write_decisions(path, log, 1)
    tree = bough.Tree.from_nested(["left", "right"])
    policy = {"always": lambda contexts: np.tile([1.0, 0.0], (len(contexts), 1))}
    report = bough.evaluate(policy, path, tree, context=["age", "hour"], estimators=["snips"])
    assert report.values[0].value == pytest.approx(2.0)


@pytest.mark.parametrize("format", ["ndjson", "parquet"])
def test_an_answer_in_parts_is_the_file(log, tmp_path, format):
    append(log, *(row for i in range(30) for row in (a_decision(f"d{i}", at=float(i)), an_outcome(f"d{i}"))))
    stream = exports.exported(
        log, SimpleNamespace(id=1, name="shop", agent=None), ExportQuery(format=format, since=10.0)
    )

    async def collected():
        return b"".join([part async for part in stream.parts])

    path = tmp_path / stream.name
    path.write_bytes(asyncio.run(collected()))
    assert stream.name == f"shop.{format}"
    assert [row["decision_id"] for row in table_of(path)] == [f"d{i}" for i in range(10, 30)]
    assert stream.media in (NDJSON, PARQUET)
