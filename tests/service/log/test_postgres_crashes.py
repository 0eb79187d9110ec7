"""The log in PostgreSQL, where a process is killed, a connection breaks, or PostgreSQL itself dies."""

import signal
import subprocess
import sys
import time
from contextlib import closing

import pytest

import postgres
from bough.service.log.base import LogError
from bough.service.records import Key, Position
from log_rows import a_change, a_decision, an_outcome, append

PATIENCE = 30.0


@pytest.fixture(scope="module")
def server():
    """A PostgreSQL of its own, since one with few databases starts again sooner."""
    postgres.server()  # or the test is skipped
    with closing(postgres.Server()) as server:
        yield server


@pytest.fixture
def address(server):
    return server.empty_log()


@pytest.fixture
def log(address, open_postgres):
    return open_postgres(address)


def eventually(fact):
    """Wait until something holds."""
    until = time.monotonic() + PATIENCE
    while not fact():
        assert time.monotonic() < until, "it never came to hold"
        time.sleep(0.01)


KEEPER = """
import sys, time
from bough.service.log.postgres import PostgresLog

log = PostgresLog(sys.argv[1])
assert log.try_to_keep()
log.begin().lock_changes(1)
print("kept", flush=True)
time.sleep(600)
"""


def test_the_locks_of_a_process_die_with_it(address, log):
    child = subprocess.Popen([sys.executable, "-c", KEEPER, address], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "kept\n"
        assert not log.try_to_keep()
        child.send_signal(signal.SIGSTOP)
        assert not log.try_to_keep()
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    eventually(log.try_to_keep)
    assert log.try_to_keep()
    with log.transaction() as transaction:
        transaction.lock_changes(1)
        transaction.add_change(a_change())
    assert len(log.read_after(Position(), 10)) == 1


def test_a_keeper_whose_connection_breaks_says_so_and_another_may_be_it(address, log, open_postgres):
    other = open_postgres(address)
    assert log.try_to_keep()
    postgres.cut(address)
    assert other.try_to_keep()
    assert not log.try_to_keep()
    assert not log.try_to_keep()
    other.close()
    eventually(log.try_to_keep)


def test_connections_that_broke_while_nobody_used_them_are_made_again(address, log):
    append(log, a_decision("d1"))
    while log.wait(0.0):
        pass
    postgres.cut(address)
    append(log, an_outcome("d1"))
    postgres.cut(address)
    assert len(log.read_after(Position(), 10)) == 1
    eventually(lambda: log.wait(0.05))  # nobody knows what was missed
    eventually(lambda: not log.wait(0.05))


def test_a_transaction_whose_connection_breaks_leaves_nothing_and_the_next_one_works(address, log):
    append(log, a_decision("d1"))
    transaction = log.begin()
    transaction.states([Key(1, "d1")])
    transaction.add_outcomes([an_outcome("d1")])
    postgres.cut(address)
    with pytest.raises(LogError):
        transaction.add_decisions([a_decision("d2")])
    with pytest.raises(LogError, match="ended"):
        transaction.add_decisions([a_decision("d2")])
    with pytest.raises(LogError, match="no transaction to commit"):
        log.commit()
    log.rollback()
    transaction = log.begin()
    transaction.add_outcomes([an_outcome("d1", value=2.0)])
    postgres.cut(address)
    with pytest.raises(LogError):
        log.commit()
    append(log, an_outcome("d1", value=3.0))
    assert [row.value for row in log.read_after(Position(), 10)] == [3.0]


def test_a_service_goes_on_when_postgresql_was_killed_and_started_again(server, address, log):
    append(log, a_decision("d1"), an_outcome("d1"))
    assert log.try_to_keep()
    log.wait(0.0)
    log.begin().add_decisions([a_decision("d2")])
    server.kill()
    with pytest.raises(LogError):
        log.commit()
    for asks in (log.begin, log.end):
        with pytest.raises(LogError):
            asks()
    assert not log.try_to_keep()
    assert log.wait(0.01)
    server.start()
    append(log, a_decision("d3"), an_outcome("d3"))
    assert [row.id for _, row in log.decisions_after(1, Position(), 10)] == ["d1", "d3"]
    assert [row.decision for row in log.read_after(Position(), 10)] == ["d1", "d3"]
    eventually(log.try_to_keep)
    while log.wait(0.0):
        pass


WRITER = """
import sys
from bough.service.log.postgres import PostgresLog
from log_rows import a_decision, an_outcome

log = PostgresLog(sys.argv[1])
for number in range(10**9):
    with log.transaction() as transaction:
        transaction.add_decisions([a_decision(f"d{number}")])
        transaction.add_outcomes([an_outcome(f"d{number}")])
    print(number, flush=True)
"""


@pytest.mark.parametrize("victim", ["the writer", "PostgreSQL"])
def test_what_was_acknowledged_is_there_after_a_kill_and_nothing_is_there_by_half(server, address, log, victim):
    path = str(postgres.__file__).rpartition("/")[0]
    command = [sys.executable, "-c", f"import sys; sys.path.append({path!r}){WRITER}", address]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for _ in range(50):
        assert child.stdout.readline()
    if victim == "PostgreSQL":
        server.kill()
    else:
        child.kill()
    acknowledged = 50 + len(child.stdout.readlines())
    child.wait()
    child.stdout.close()
    if victim == "PostgreSQL":
        server.start()
    decisions = [row.id for _, row in log.decisions_after(1, Position(), 1_000_000)]
    outcomes = [row.decision for row in log.read_after(Position(), 1_000_000)]
    assert decisions == outcomes == [f"d{number}" for number in range(len(decisions))]
    assert acknowledged <= len(decisions) <= acknowledged + 1
