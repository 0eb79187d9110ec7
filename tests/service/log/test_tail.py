"""Reading a log in PostgreSQL while others write: no record is missed, and none is read twice or out of order."""

import random
import threading
import time
from contextlib import closing
from functools import partial

import psycopg
import pytest

import postgres
from bough.service.records import Key, Position
from log_rows import a_change, a_decision, an_outcome, append
from threads import in_threads

WRITERS, TRANSACTIONS, LONGEST = 4, 40, 0.01
SEED = 16


class NaiveTail:
    """The reader that goes by `seq` alone."""

    def __init__(self, connection):
        self._connection, self._last, self.found = connection, 0, []

    def read(self):
        query = "SELECT seq FROM outcomes WHERE seq > %(seq)s UNION ALL SELECT seq FROM changes WHERE seq > %(seq)s"
        self.found += sorted(seq for (seq,) in self._connection.execute(query, {"seq": self._last}))
        self._last = self.found[-1] if self.found else 0


def read_records(log, position):
    return log.read_after(position, 7)


def read_decisions(log, position):
    return log.decisions_after(1, position, 7)


class Tail:
    """The reader that a service has."""

    def __init__(self, log, read):
        self._log, self._read, self._position = log, read, Position()
        self.found = []

    def read(self):
        while rows := self._read(self._log, self._position):
            self.found += rows
            last = rows[-1]
            self._position = last[0] if isinstance(last, tuple) else last.position


@pytest.fixture
def address(open_postgres):
    """That of a log with a decision per writer."""
    address = postgres.empty_log()
    append(open_postgres(address), *[a_decision(f"d{writer}") for writer in range(WRITERS)])
    return address


@pytest.fixture
def naive(address):
    with closing(psycopg.connect(address, autocommit=True)) as connection:
        yield NaiveTail(connection)


def write(log, writer, appended, passed):
    """Append in transactions that take a while; the first one of the first writer until everyone has gone past it."""
    chance = random.Random(SEED + writer)
    for number in range(TRANSACTIONS):
        rows = [an_outcome(f"d{writer}", id=f"r{number}-{n}") for n in range(chance.randint(1, 3))]
        with log.transaction() as transaction:
            transaction.add_decisions([a_decision(f"w{writer}-{number}")])
            transaction.add_outcomes(rows)
            if chance.random() < 0.2:
                rows.append(a_change(body={"writer": writer}))
                transaction.add_change(rows[-1])
            if (writer, number) == (0, 0):
                passed.wait()
            else:
                time.sleep(chance.random() * LONGEST)
        appended.extend(rows)


def test_no_record_is_missed_where_four_write_and_the_reader_by_number_misses_some(address, open_postgres, naive):
    reader, writers = open_postgres(address), [open_postgres(address) for _ in range(WRITERS)]
    records, decisions = Tail(reader, read_records), Tail(reader, read_decisions)
    appended, passed, done = [], threading.Event(), threading.Event()

    def read():
        while not done.is_set():
            read_all()

    def read_all():
        for tail in (records, decisions, naive):
            tail.read()
        if naive.found:
            passed.set()

    def write_all():
        try:
            in_threads(*[partial(write, log, number, appended, passed) for number, log in enumerate(writers)])
        finally:
            done.set()

    in_threads(read, write_all)
    read_all()
    everything = sorted(appended, key=lambda row: row.position)
    assert len(everything) > WRITERS * TRANSACTIONS
    assert records.found == everything
    positions, logged = zip(*decisions.found, strict=True)
    assert list(positions) == sorted(set(positions))
    expected = {f"w{w}-{n}" for w in range(WRITERS) for n in range(TRANSACTIONS)}
    assert {row.id for row in logged[WRITERS:]} == expected
    assert len(logged) == WRITERS + len(expected)
    assert len(set(naive.found)) < len(everything)


def test_what_was_committed_waits_for_a_transaction_that_began_before(address, open_postgres):
    log, other, reader = open_postgres(address), open_postgres(address), open_postgres(address)
    early = an_outcome("d0")
    log.begin().add_outcomes([early])
    late = an_outcome("d1")
    append(other, late)
    assert late.position > early.position
    assert reader.read_after(Position(), 10) == []
    assert reader.end() == Position()
    assert reader.decisions_after(1, Position(), 10) != []
    log.commit()
    assert reader.read_after(Position(), 10) == [early, late]
    assert reader.end() == late.position


def test_a_change_that_waited_for_a_reward_comes_after_it(address, open_postgres):
    log, other = open_postgres(address), open_postgres(address)
    reward, retraction = an_outcome("d0"), a_change(kind="retract", body={"decision": "d0"})

    def retract():
        with other.transaction() as transaction:
            transaction.lock_changes(1)
            [found] = transaction.states([Key(1, "d0")]).values()
            assert found.outcomes == [reward]
            transaction.add_change(retraction)

    transaction = log.begin()
    transaction.states([Key(1, "d0")])
    thread = threading.Thread(target=retract)
    thread.start()
    postgres.wait_for_lock(address)
    transaction.add_outcomes([reward])
    log.commit()
    thread.join()
    assert log.read_after(Position(), 10) == [reward, retraction]


def test_the_positions_of_a_log_that_was_restored_elsewhere_stay_in_order(address, open_postgres):
    log = open_postgres(address)
    old = [an_outcome("d0", id=f"r{n}") for n in range(3)]
    append(log, *old)
    with psycopg.connect(address, autocommit=True) as connection:  # rows of a server that had counted further
        for table in ("outcomes", "decisions"):
            connection.execute(f"UPDATE {table} SET xid = xid + 1000000000")
    for row in old:
        row.xid += 1_000_000_000
    log, other = open_postgres(address), open_postgres(address)
    assert log.read_after(Position(), 10) == old
    assert len(log.decisions_after(1, Position(), 10)) == WRITERS
    new = [an_outcome("d1", id="r1"), an_outcome("d2", id="r2")]
    append(log, a_decision("d9"), new[0])
    append(other, new[1])
    assert log.read_after(Position(), 10) == old + new
    assert log.read_after(old[-1].position, 10) == new
    assert [row.id for _, row in log.decisions_after(1, Position(), 10)] == ["d0", "d1", "d2", "d3", "d9"]
