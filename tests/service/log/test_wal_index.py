"""The index of the write-ahead log is looked at without giving up the locks that hold it in place."""

import os
import subprocess
import sys

import pytest

from bough.service.log.sqlite import SqliteLog

LOCK = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 128)  # https://sqlite.org/walformat.html, section 2.3
    except OSError:
        print("in use")
    else:
        print("unused")
"""


def is_in_use(folder):
    """What another process that opens the database is told: it cuts off an index that nobody uses."""
    words = [sys.executable, "-c", LOCK, folder / "bough.sqlite-shm"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout == "in use\n"


def add(log, name):
    with log.transaction() as transaction:
        transaction.add_experiment(name, {}, 0.0)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "data"


def test_other_processes_still_know_that_the_log_is_in_use(folder):
    log = SqliteLog(folder)
    add(log, "shop")
    assert is_in_use(folder)
    assert log.sizes()["waiting"] > 0
    assert is_in_use(folder)
    log.close()


def test_so_they_do_when_a_second_log_of_the_same_process_was_closed(folder):
    log = SqliteLog(folder)
    other = SqliteLog(folder, exclusive=False)
    other.sizes()
    other.close()
    assert is_in_use(folder)
    log.close()


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="what Linux has")
def test_closing_leaves_no_file_open(folder):
    SqliteLog(folder).close()  # what is loaded only once
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        log = SqliteLog(folder)
        log.sizes()
        log.close()
    assert len(os.listdir("/proc/self/fd")) == before
