"""What is SQLite's own: the lock of the folder, writers beside each other, checkpoints, and files."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import pytest

from bough.service.log import open_log
from bough.service.log.base import LogBusyError, LogError
from bough.service.log.sqlite import SqliteLog
from bough.service.log.sqlite_connections import FolderLock
from bough.service.records import Key, Position, SnapshotRow
from log_rows import a_change, a_decision, an_outcome, append

HOLDS = """
import sys, time
from pathlib import Path
from bough.service.log.sqlite import SqliteLog
log = SqliteLog(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def log(tmp_path):
    log = SqliteLog(tmp_path / "data")
    yield log
    log.close()


# -- who writes ------------------------------------------------------------------------------------


def test_a_folder_has_one_service_and_its_lock_dies_with_it(tmp_path):
    other = subprocess.Popen([sys.executable, "-c", HOLDS, str(tmp_path)], stdout=subprocess.PIPE)
    try:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(LogError, match=f"process {other.pid} serves from the folder .*; stop it, or give another"):
            SqliteLog(tmp_path)
        beside = open_log(tmp_path, exclusive=False)
        append(beside, a_change())
        assert not beside.try_to_keep()
        beside.close()
    finally:
        os.kill(other.pid, signal.SIGKILL)
        other.communicate()
    log = open_log(tmp_path)
    assert log.try_to_keep()
    assert len(log.read_after(Position(), 10)) == 1
    log.close()


def test_a_folder_is_free_again_when_opening_it_has_failed(tmp_path):
    path = tmp_path / "bough.sqlite"
    path.write_bytes(b"this is no database" * 100)
    for _ in range(2):
        with pytest.raises(LogError, match="not a database"):
            SqliteLog(tmp_path)
    path.unlink()
    SqliteLog(tmp_path).close()


def test_the_folder_and_its_files_are_the_owners_alone(log, tmp_path):
    log.put_snapshot(SnapshotRow(1, 0, 5, "digest", 1.0), b"data")
    folder = tmp_path / "data"
    assert folder.stat().st_mode & 0o077 == 0
    assert (folder / "snapshots" / "1-5.bough").stat().st_mode & 0o077 == 0


def test_a_log_is_in_a_folder_or_in_a_database_and_not_in_both(tmp_path):
    for given in ({}, {"data": tmp_path, "database": "postgresql://"}):
        with pytest.raises(ValueError, match="either a folder, --data DIR, or a database"):
            open_log(**given)


def test_while_another_process_writes_a_transaction_is_busy_at_once_and_later_is_not(log, tmp_path):
    beside = SqliteLog(tmp_path / "data", exclusive=False)
    beside.begin().add_change(a_change())
    for _ in range(3):
        with pytest.raises(LogBusyError, match="another process writes"):
            log.begin()
    log.rollback()  # of what was never begun: nothing happens
    beside.commit()
    append(log, a_change())
    assert [row.seq for row in log.read_after(Position(), 10)] == [1, 2]
    beside.close()


def test_a_command_waits_for_its_turn_beside_a_busy_service(log, tmp_path):
    beside = SqliteLog(tmp_path / "data", exclusive=False)
    log.begin().add_change(a_change())
    thread = threading.Thread(target=append, args=(beside, a_change()))
    thread.start()
    assert log.end().seq == 0
    log.commit()
    thread.join()
    assert [row.seq for row in beside.read_after(Position(), 10)] == [1, 2]
    beside.close()


def test_a_service_waits_for_a_command_that_is_opening_the_log(tmp_path):
    lock = FolderLock(tmp_path)
    assert lock.take(patience=0.0)
    timer = threading.Timer(0.1, lock.release)
    timer.start()
    log = SqliteLog(tmp_path)
    assert log.try_to_keep()
    log.close()
    timer.join()


def test_a_second_transaction_waits_for_the_first(log):
    log.begin()
    with pytest.raises(LogBusyError, match="another thread writes"):
        log.begin()
    log.rollback()
    append(log, a_change())


def test_one_that_writes_beside_the_writer_gets_its_turn(log):
    """The writer begins again the moment that it has ended; snapshots still come through."""
    done, busy = threading.Event(), 0

    def snapshots():
        for seq in range(1, 6):
            log.put_snapshot(SnapshotRow(1, 0, seq, "digest", 1.0), b"data")
        done.set()

    thread = threading.Thread(target=snapshots)
    thread.start()
    count = 0
    while not done.is_set():
        try:
            append(log, a_change())
            count += 1
        except LogBusyError:
            busy += 1
    thread.join()
    assert [row.seq for row in log.snapshots(1)] == [5, 4, 3]
    assert log.end().seq == count > 0


# -- what SQLite does not take ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "row",
    [
        an_outcome("d1", value=float("nan")),
        an_outcome("d1", slot=2**70),
        an_outcome("d1", id="\ud800"),
        an_outcome("d1", context={"a": "\ud800"}),
        an_outcome("d1", value="much"),
        an_outcome("nobody"),
    ],
)
def test_what_cannot_be_stored_fails_its_transaction_and_no_later_one(log, row):
    append(log, a_decision("d1"))
    transaction = log.begin()
    transaction.add_decisions([a_decision("d2")])
    transaction.states([Key(1, "d1")])
    with pytest.raises(LogError):
        transaction.add_outcomes([an_outcome("d1", id="good"), row])
    with pytest.raises(LogError, match="nothing of it was kept"):
        transaction.add_decisions([a_decision("d3")])
    with pytest.raises(LogError, match="no transaction to commit"):
        log.commit()
    append(log, an_outcome("d1"))
    assert [row.id for _, row in log.decisions_after(1, Position(), 10)] == ["d1"]
    assert [row.id for row in log.read_after(Position(), 10)] == [""]


def test_a_log_that_was_closed_says_so(log):
    log.close()
    with pytest.raises(LogError, match="closed"):
        log.read_after(Position(), 10)
    with pytest.raises(LogError, match="closed"):
        log.begin()
    assert not log.wait(10.0)


# -- files -----------------------------------------------------------------------------------------


def test_a_snapshot_whose_file_is_damaged_or_gone_is_gone(log, tmp_path):
    row = SnapshotRow(1, 0, 5, "digest", 1.0)
    log.put_snapshot(row, b"data" * 1_000)
    path = tmp_path / "data" / "snapshots" / "1-5.bough"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(KeyError, match="snapshot 5 of experiment 1 is gone or damaged"):
        log.snapshot(row)
    path.unlink()
    with pytest.raises(KeyError, match="gone or damaged"):
        log.snapshot(row)


def test_what_is_left_of_unfinished_snapshots_goes_with_the_next_one(log, tmp_path):
    log.put_snapshot(SnapshotRow(1, 0, 5, "digest", 1.0), b"data")
    folder = tmp_path / "data" / "snapshots"
    for name in ("1-7.unfinished", "1-6.bough", "12-6.bough"):
        (folder / name).write_bytes(b"half")
    log.put_snapshot(SnapshotRow(1, 0, 8, "digest", 1.0), b"data")
    assert sorted(path.name for path in folder.iterdir()) == ["1-5.bough", "1-8.bough", "12-6.bough"]


def test_what_is_pruned_is_no_longer_in_the_file_and_the_file_is_smaller(log, tmp_path):
    secret = "a very personal context"
    with log.transaction() as transaction:
        transaction.add_decisions([a_decision(f"d{n}", context={"a": secret}) for n in range(3_000)])
    log.checkpoint()
    before = log.sizes()["database"]
    path = tmp_path / "data" / "bough.sqlite"
    assert secret.encode() in path.read_bytes()
    assert log.prune(1, 1e9, log.end(), contexts_only=True) == 3_000
    assert [file.name for file in path.parent.iterdir() if secret.encode() in file.read_bytes()] == []
    assert log.prune(1, 1e9, log.end(), contexts_only=False) == 3_000
    assert log.sizes()["database"] < before / 5


def test_a_file_that_was_not_made_to_shrink_is_pruned_as_well(tmp_path):
    connection = sqlite3.connect(tmp_path / "bough.sqlite")
    connection.execute("CREATE TABLE other (a)")
    connection.close()
    log = SqliteLog(tmp_path)
    with log.transaction() as transaction:
        transaction.add_decisions([a_decision(f"d{n}") for n in range(1_500)])
    assert log.prune(1, 1e9, log.end(), contexts_only=False) == 1_500
    log.close()


# -- checkpoints -----------------------------------------------------------------------------------


def test_closing_leaves_one_file(tmp_path):
    log = SqliteLog(tmp_path)
    append(log, a_change())
    assert log.sizes()["wal"] > 0
    log.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bough.sqlite", "lock"]


def test_commits_make_no_checkpoints_and_a_checkpoint_lets_the_write_ahead_log_be_used_again(log):
    def write(count):
        for _ in range(count):
            append(log, a_change(body={"text": "x" * 3_000}))

    database = log.sizes()["database"]
    write(200)
    full = log.sizes()
    assert full["wal"] > full["waiting"] > 600_000
    assert full["database"] == database
    log.checkpoint()
    assert log.sizes()["database"] > 600_000
    assert log.sizes()["waiting"] == 0
    write(1)
    assert 0 < log.sizes()["waiting"] < 60_000
    write(99)
    assert log.sizes()["wal"] == full["wal"]


def test_the_write_ahead_log_stays_bounded_while_the_writer_never_rests(log, monkeypatch):
    monkeypatch.setattr("bough.service.log.sqlite._LARGE", 50)
    done, failed, largest = threading.Event(), [], 0

    def write():
        count = 0
        while count < 600:
            try:
                append(log, a_change(body={"text": "x" * 3_000}))
                count += 1
            except LogBusyError:
                time.sleep(0.001)
            except Exception as error:
                failed.append(error)
                break
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    while not done.wait(0.005):
        largest = max(largest, log.sizes()["wal"])
        if log.sizes()["waiting"] > 200_000:
            log.checkpoint()
    thread.join()
    assert not failed
    assert log.end().seq == 600
    assert largest < 8_000_000  # all of it would be 12 MB


def test_a_stream_does_not_keep_the_write_ahead_log_from_being_used_again(log):
    append(log, *[a_change(body={"text": "x" * 3_000}) for _ in range(100)])
    stream = log.records(1, Position(), log.end())
    next(stream)
    log.checkpoint()
    size = log.sizes()["wal"]
    append(log, *[a_change(body={"text": "x" * 3_000}) for _ in range(50)])
    assert log.sizes()["wal"] == size
    assert len(list(stream)) == 99
