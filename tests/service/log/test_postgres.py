"""What the log in PostgreSQL promises beyond what every log does."""

import random
import re
import threading
from pathlib import Path

import psycopg
import pytest

import postgres
from bough.service.log import postgres as postgres_log
from bough.service.log import postgres_pruning, postgres_rows, postgres_transaction
from bough.service.log.base import LogAwayError, LogBusyError, LogError, LogFullError, LogSchemaError
from bough.service.log.migrations import steps
from bough.service.log.postgres_connections import meaning
from bough.service.records import Key, Position, SnapshotRow
from log_rows import a_change, a_decision, an_outcome, append
from threads import in_threads

SCHEMA_1 = Path(__file__).parents[2] / "fixtures" / "service-schema-1-postgres.sql"
STEPS = steps("postgres")
CURRENT = len(STEPS)


@pytest.fixture
def address(server):
    """That of an empty log."""
    return postgres.empty_log()


@pytest.fixture
def log(address, open_postgres):
    return open_postgres(address)


def ask(address, query, *given):
    with psycopg.connect(address, autocommit=True) as connection:
        cursor = connection.execute(query, given or None)
        return cursor.fetchall() if cursor.description else []


# -- locks -----------------------------------------------------------------------------------------


def test_changes_of_an_experiment_are_appended_by_one_process_at_a_time(address, log, open_postgres):
    other, order = open_postgres(address), []

    def change():
        with other.transaction() as transaction:
            transaction.lock_changes(1)
            order.append("second")
            transaction.add_change(a_change(by="second"))

    transaction = log.begin()
    transaction.lock_changes(1)
    thread = threading.Thread(target=change)
    thread.start()
    postgres.wait_for_lock(address)
    order.append("first")
    transaction.add_change(a_change(by="first"))
    log.commit()
    thread.join()
    assert order == [row.by for row in log.read_after(Position(), 10)] == ["first", "second"]


def test_changes_of_other_experiments_do_not_wait(address, log, open_postgres):
    transaction = log.begin()
    transaction.lock_changes(1)
    with open_postgres(address).transaction() as beside:
        beside.lock_changes(2)
        beside.add_change(a_change(experiment=2))
    log.commit()


def test_changes_are_locked_before_anything_is_written(log):
    def write_first():
        with log.transaction() as transaction:
            transaction.add_decisions([a_decision("d1")])
            transaction.lock_changes(1)

    with pytest.raises(RuntimeError, match="call it first"):
        write_first()
    assert log.decisions_after(1, Position(), 10) == []


def test_the_changes_of_a_new_experiment_need_no_lock_and_those_of_an_old_one_can_be_locked_by_its_name(log):
    for _ in range(40):  # the numbers of experiments are drawn in blocks, and the first of a block is a write
        with log.transaction() as transaction:
            row = transaction.add_experiment("shop", {}, 1.0)
            transaction.lock_changes(row.id)
            transaction.add_change(a_change(experiment=row.id))
    assert len(log.read_after(Position(), 100)) == 40


def test_states_of_overlapping_decisions_never_wait_in_a_circle(address, log, open_postgres):
    ids = [f"d{n}" for n in range(12)]
    append(log, *[a_decision(id) for id in random.Random(1).sample(ids, 12)])
    logs, rounds = [log, open_postgres(address), open_postgres(address), open_postgres(address)], 25

    def reward(number):
        chance = random.Random(number)
        for round in range(rounds):
            chosen = chance.sample(ids, 8)
            with logs[number].transaction() as transaction:
                found = transaction.states([Key(1, id) for id in chosen])
                transaction.set_propensities([(key, [0.5]) for key in found])
                transaction.add_outcomes([an_outcome(id, id=f"r{number}-{round}") for id in chosen])

    in_threads(*[lambda number=number: reward(number) for number in range(len(logs))])
    assert len(log.read_after(Position(), 10_000)) == len(logs) * rounds * 8


def test_the_same_new_ids_in_two_processes_are_one_decision_each_in_whatever_order(address, log, open_postgres):
    logs, found, together = [log, open_postgres(address)], [{}, {}], threading.Barrier(2, timeout=30.0)
    ids, rounds = [f"d{n}" for n in range(200)], 10

    def decide(number):
        for round in range(rounds):
            rows = [a_decision(f"{id}-{round}", actions=[number]) for id in (ids, ids[::-1])[number]]
            together.wait()
            with logs[number].transaction() as transaction:
                there = transaction.add_decisions(rows)
            found[number].update({row.id: there.get(row.key, row).actions for row in rows})

    in_threads(lambda: decide(0), lambda: decide(1))
    logged = {row.id: row.actions for _, row in log.decisions_after(1, Position(), 10_000)}
    assert found[0] == found[1] == logged
    assert len(logged) == rounds * len(ids)


def test_what_another_process_holds_for_long_is_busy_and_can_be_tried_again(address, log, open_postgres, monkeypatch):
    monkeypatch.setattr("bough.service.log.postgres_connections._SETTINGS", "SET lock_timeout = '20ms'")
    impatient = open_postgres(address)
    append(log, a_decision("d1"))
    log.begin().states([Key(1, "d1")])
    transaction = impatient.begin()
    with pytest.raises(LogBusyError, match="try again soon"):
        transaction.states([Key(1, "d1")])
    impatient.rollback()
    log.rollback()
    append(impatient, an_outcome("d1"))
    assert len(log.read_after(Position(), 10)) == 1


def test_pruning_leaves_what_someone_else_holds_for_the_next_time(address, log, open_postgres):
    append(log, *[a_decision(f"d{n}", at=1.0) for n in range(5)])
    log.begin().states([Key(1, "d3")])
    other = open_postgres(address)
    assert other.prune(1, 50.0, Position(), contexts_only=False) == 4
    log.rollback()
    assert [row.id for _, row in log.decisions_after(1, Position(), 10)] == ["d3"]
    assert other.prune(1, 50.0, Position(), contexts_only=False) == 1


# -- waiting ---------------------------------------------------------------------------------------


def test_what_one_appends_oneself_does_not_end_the_wait(address, log, open_postgres):
    while log.wait(0.0):
        pass
    append(log, a_change())
    assert not log.wait(0.2)
    append(open_postgres(address), a_decision("d1"))
    assert not log.wait(0.2)
    append(open_postgres(address), a_change())
    assert log.wait(10.0)


def test_a_log_is_closed_while_someone_waits(log):
    while log.wait(0.0):
        pass
    found = []
    thread = threading.Thread(target=lambda: found.append(log.wait(60.0)))
    thread.start()
    log.close()
    thread.join(timeout=30.0)
    assert found == [False]
    with pytest.raises(LogError, match="closed"):
        log.begin()


# -- what is stored --------------------------------------------------------------------------------


def test_a_file_and_a_snapshot_of_20_megabytes_come_back_as_they_were(log):
    data = random.Random(2).randbytes(20_000_000)
    with log.transaction() as transaction:
        transaction.put_file("large", data)
    assert log.file("large") == data
    row = SnapshotRow(1, 5, 7, "large", 1.0)
    log.put_snapshot(row, data)
    assert log.snapshot(row) == data


def test_nul_and_odd_letters_are_kept_in_json_and_written_out_elsewhere(log):
    odd = dict(enumerate(["\x00", "\ufffe", "☕", '\\u0000 "quoted"', "\\"]))
    odd = {f"a\x00{place}": text for place, text in odd.items()}
    append(log, a_decision("d1", context=odd, offered=odd), an_outcome("d1", context=odd), a_change(body=odd))
    outcome, change = log.read_after(Position(), 10)
    [state] = log.states([Key(1, "d1")]).values()
    assert outcome.context == change.body == state.decision.context == state.decision.offered == odd
    with log.transaction() as transaction:
        transaction.quarantine(outcome.position, "no action 'a\x00b' \ud800")
    assert log.quarantined() == [(outcome.position, r"no action 'a\x00b' \ud800")]


def test_an_id_that_cannot_be_stored_fails_its_own_transaction_only(log):
    transaction = log.begin()
    with pytest.raises(LogError):
        transaction.add_decisions([a_decision("d\x001")])
    append(log, a_decision("d2"))
    assert [row.id for _, row in log.decisions_after(1, Position(), 10)] == ["d2"]


# -- the server ------------------------------------------------------------------------------------


def test_commits_are_durable_where_the_database_says_they_need_not_be(server, open_postgres):
    address = server.new_database()
    name = ask(address, "SELECT current_database()")[0][0]
    ask(address, f"ALTER DATABASE {name} SET synchronous_commit = off")
    assert ask(address, "SHOW synchronous_commit") == [("off",)]
    log = open_postgres(address)
    log.begin()
    assert log._writer.execute("SHOW synchronous_commit").fetchone() == ("on",)
    log.rollback()
    ask(address, f"ALTER DATABASE {name} SET synchronous_commit = remote_apply")
    other = open_postgres(address)
    assert other._writer.execute("SHOW synchronous_commit").fetchone() == ("remote_apply",)


def test_connections_are_known_by_their_name_and_none_is_left(address, open_postgres):
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'bough' AND datname = current_database()"
    log = open_postgres(address)
    log.wait(0.0)
    log.try_to_keep()
    log.end()
    assert ask(address, query) == [(4,)]
    log.close()
    for _ in range(1_000):
        if ask(address, query) == [(0,)]:
            break
    assert ask(address, query) == [(0,)]


@pytest.mark.parametrize(
    ("code", "error"),
    [("53100", LogFullError), ("40001", LogBusyError), ("40P01", LogBusyError), ("53200", LogError)],
)
def test_an_error_of_the_server_leaves_nothing_and_it_goes_on_by_itself(address, log, code, error):
    ask(
        address,
        f"""CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
        $$BEGIN RAISE EXCEPTION 'on purpose' USING ERRCODE = '{code}'; END$$""",
    )
    ask(address, "CREATE TRIGGER fail BEFORE INSERT ON outcomes EXECUTE FUNCTION fail()")
    transaction = log.begin()
    transaction.add_decisions([a_decision("d1")])
    with pytest.raises(error, match="on purpose") as raised:
        transaction.add_outcomes([an_outcome("d1")])
    assert type(raised.value) is error
    ask(address, "DROP TRIGGER fail ON outcomes")
    assert log.decisions_after(1, Position(), 10) == []
    append(log, a_decision("d1"), an_outcome("d1"))
    assert len(log.read_after(Position(), 10)) == 1


def test_an_error_does_not_tell_contexts(log):
    append(log, a_decision("d1"))
    transaction = log.begin()
    with pytest.raises(LogError) as raised:
        transaction.add_outcomes([an_outcome("d1", context={"name": "secret"}, earned=None)])
    assert "earned" in str(raised.value)
    assert "secret" not in str(raised.value)
    assert raised.value.__suppress_context__


def test_an_address_that_leads_nowhere_is_refused_without_telling_the_password(server, open_postgres):
    with pytest.raises(ValueError, match="cannot be read; give postgresql://") as raised:
        open_postgres("postgres//me:secret@nowhere")
    assert "secret" not in str(raised.value)
    with pytest.raises(LogError) as raised:
        open_postgres(f"postgresql://me:secret@/nothing?host={server.folder}/nowhere")
    assert "secret" not in str(raised.value)
    with pytest.raises(LogError, match="does not exist"):
        open_postgres(server.address("nothing"))


def test_a_database_that_cannot_hold_every_letter_is_refused(server, open_postgres):
    ask(server.address("postgres"), "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(LogSchemaError, match=r"encoding LATIN1; make one with .*UTF8"):
        open_postgres(server.address("latin"))


# -- the schema ------------------------------------------------------------------------------------


@pytest.fixture
def old(server):
    """The address of a database of schema 1."""
    address = server.new_database()
    ask(address, SCHEMA_1.read_text(encoding="utf-8"))
    return address


def schema(address):
    """What the tables and indexes are."""
    columns = """SELECT table_name, column_name, data_type, collation_name, is_nullable, column_default
        FROM information_schema.columns WHERE table_schema = 'public' ORDER BY table_name, column_name"""
    indexes = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexname"
    storage = """SELECT relname, attname, attstorage FROM pg_attribute JOIN pg_class ON attrelid = pg_class.oid
        WHERE relnamespace = 'public'::regnamespace AND attnum > 0 ORDER BY relname, attname"""
    return ask(address, columns), ask(address, indexes), ask(address, storage)


def test_a_database_of_schema_1_has_all_its_rows_in_the_current_schema(old, open_postgres):
    log = open_postgres(old)
    [first, second, third] = [row for _, row in log.decisions_after(1, Position(), 10)]
    assert [row.id for row in (first, second, third)] == ["d1", "d2", "d3"]
    assert (first.propensity, second.actions, second.context) == ([0.25], ["kettle", 7], [0.5, 1.0])
    assert third.context == {"city": "Zürich"}
    assert log.due(1, 1e10, 10) == [Key(1, "d3")]
    records = log.read_after(Position(), 10)
    assert [row.position for row in records] == [(12, 2), (14, 1), (14, 3), (15, 4), (15, 5)]
    assert log.states([Key(1, "d2")])[Key(1, "d2")].outcomes == [records[0], records[4]]
    assert (records[0].action, records[1].action, records[2].body) == (7, "kettle", {"op": "create", "id": "k2"})
    assert (log.file("ab12"), log.models(1)[0].digest) == (b"\x00\xff\x10", "ab12")
    assert [row.name for row in log.experiments()] == ["shop"]
    [key] = log.keys()
    assert key.id == "k1"
    assert log.quarantined() == [(Position(14, 1), "unknown action")]
    assert [log.snapshot(row) for row in log.snapshots(1)] == [b"\x01\x02"]
    append(log, an_outcome("d3"))
    assert log.end().seq == 6


def test_an_older_database_ends_with_the_schema_of_a_new_one(old, server, open_postgres):
    new = server.new_database()
    for address in (old, new):
        open_postgres(address)
        assert ask(address, "SELECT max(version) FROM schema_version") == [(CURRENT,)]
    assert schema(old) == schema(new)


def test_a_newer_schema_is_refused_and_left_as_it_is(server, open_postgres):
    address = server.new_database()
    open_postgres(address).close()
    ask(address, f"INSERT INTO schema_version VALUES ({CURRENT + 1})")
    before = schema(address)
    with pytest.raises(LogSchemaError, match=f"has schema {CURRENT + 1}, .* up to {CURRENT}; use the newer bough"):
        open_postgres(address)
    assert schema(address) == before


def test_the_schema_is_not_changed_under_a_service_that_is_running(old, open_postgres, monkeypatch):
    for module in ("migrations", "postgres_connections"):
        monkeypatch.setattr(f"bough.service.log.{module}.steps", lambda dialect: STEPS[:1])
    service = open_postgres(old)
    monkeypatch.undo()
    before = schema(old)
    with pytest.raises(LogSchemaError, match="stop that service and start it with this bough"):
        open_postgres(old)
    assert schema(old) == before
    service.close()
    assert len(open_postgres(old).read_after(Position(), 10)) == 5


def test_many_that_open_a_new_database_at_once_make_one_schema(server, open_postgres):
    address = server.new_database()
    in_threads(*[lambda: open_postgres(address) for _ in range(4)])
    assert ask(address, "SELECT version FROM schema_version ORDER BY 1") == [(n + 1,) for n in range(CURRENT)]


# -- plans -----------------------------------------------------------------------------------------

_KEYS = ([1] * 100, [f"d{n}" for n in range(100)])
_RANGE = {"experiment": 1, "xid": 1, "seq": 1, "to_xid": 9, "to_seq": 9, "limit": 10}
_OLD = {"experiment": 1, "before": 1.0, "at": 0.0, "seq": 0, "piece": 10}
_CHOSEN = {"experiment": 1, "seqs": [1], "ids": ["d1"], "until_xid": 1, "until_seq": 1}
PLANS = {
    "find": (postgres_rows.FIND, _KEYS, {"decisions_pkey"}),
    "lock": (postgres_rows.LOCK, _KEYS, {"decisions_pkey"}),
    "outcomes": (postgres_rows.OUTCOMES, ([1],), {"outcomes_by_decision"}),
    "states": (postgres_rows.STATES, _KEYS, {"decisions_pkey", "outcomes_by_decision"}),
    "set states": (postgres_rows.SET_STATES, ("[]",), {"decisions_pkey"}),
    "propensities": (postgres_transaction._SET_PROPENSITIES, ("[]",), {"decisions_pkey"}),
    "read after": (postgres_log._READ_AFTER, _RANGE, {"outcomes_pkey", "changes_pkey"}),
    "records": (postgres_log._RECORDS, _RANGE, {"outcomes_pkey", "changes_pkey"}),
    "end": (postgres_log._END, None, {"outcomes_pkey", "changes_pkey"}),
    "due": (postgres_log._DUE, (1, 1.0, 10), {"decisions_due"}),
    "decisions after": (postgres_log._DECISIONS_AFTER, (1, 1, 1, 10), {"decisions_in_order"}),
    "without propensity": (postgres_log._WITHOUT_PROPENSITY, (1, 10), {"decisions_without_propensity"}),
    "old": (postgres_pruning._OLD.format(context="NULL"), _OLD, {"decisions_by_age"}),
    "old contexts": (postgres_pruning._OLD.format(context="NOT NULL"), _OLD, {"decisions_with_context_by_age"}),
    "delete": (postgres_pruning._DELETE, _CHOSEN, {"decisions_pkey", "outcomes_by_decision"}),
    "forget": (postgres_pruning._FORGET, _CHOSEN, {"decisions_pkey", "outcomes_by_decision"}),
}


PLANNED_EACH_TIME = {"set states", "propensities", "delete", "forget"}


@pytest.mark.parametrize(("rows", "counted"), [(0, False), (0, True), (3, True), (2_000, False), (2_000, True)])
def test_every_statement_goes_by_an_index_whatever_the_server_has_counted(server, open_postgres, rows, counted):
    log = open_postgres(server.new_database())
    decisions = [a_decision(f"d{n}", at=float(n), closes=1e9, open=n % 2 == 0) for n in range(rows)]
    with log.transaction() as transaction:
        transaction.add_decisions(decisions)
        transaction.add_outcomes([an_outcome(row.id) for row in decisions])
        transaction.add_change(a_change())
    if counted:
        log._writer.execute("ANALYZE")
    for name, (query, given, indexes) in PLANS.items():
        if rows < 2_000 and name in PLANNED_EACH_TIME:
            continue
        plan = "\n".join(row[0] for row in log._writer.execute(f"EXPLAIN {query}", given))
        assert set(re.findall(r"Index (?:Only )?Scan.* using (\w+)", plan)) == indexes, f"{name}\n{plan}"
        assert plan.count("Index Cond") >= len(indexes), f"{name}\n{plan}"
        assert set(re.findall(r"Seq Scan on (\w+)", plan)) <= {"clock"}, f"{name}\n{plan}"


@pytest.mark.parametrize(
    ("error", "is_away"),
    [
        (psycopg.OperationalError("connection refused"), True),
        (psycopg.errors.AdminShutdown("terminating connection"), True),
        (psycopg.errors.CannotConnectNow("the database system is starting up"), True),
        (psycopg.errors.ConnectionFailure("server closed the connection"), True),
        (psycopg.errors.TooManyConnections("sorry"), True),
        (psycopg.errors.QueryCanceled("statement timeout"), False),
        (psycopg.errors.UniqueViolation("duplicate key"), False),
        (psycopg.errors.DiskFull("could not extend file"), False),
        (psycopg.errors.DeadlockDetected("deadlock"), False),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_server_that_does_not_answer_is_told_from_one_that_refuses_a_row(error, is_away):
    assert isinstance(meaning(error), LogAwayError) == is_away
