"""What was acknowledged is there after the power failed; kill -9 could not tell, since the page cache survives it."""

import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bough.service.log.sqlite import SqliteLog
from bough.service.records import Key, Position
from log_rows import a_change, a_decision, an_outcome, append

power_loss = pytest.importorskip("power_loss")

try:
    power_loss.library()
except OSError as error:
    pytest.skip(str(error), allow_module_level=True)

TRIES = 40
BATCH = 3  # decisions per commit, each with an outcome in the next


@contextmanager
def failing_disk(folder, synchronous, seed) -> Iterator[tuple]:
    """A disk, and a log on it."""
    disk = power_loss.FailingDisk(f"failing-{synchronous}-{seed}", seed)
    settings = {"vfs": disk.name, "synchronous": synchronous}
    log = type("FailingLog", (SqliteLog,), settings)(folder)
    try:
        yield disk, log
    finally:
        log.close()
        disk.close()


def work_until_the_power_fails(disk, log, rng):
    """The ids of what was acknowledged: decisions, and those that were rewarded."""
    decided, rewarded, waiting = [], [], []
    disk.fail_after(rng.randrange(400))
    n = 0
    while True:
        ids = [f"d{n}-{part}" for part in range(BATCH)]
        with log.transaction() as transaction:
            transaction.add_decisions([a_decision(id, context=[float(n)] * rng.randrange(60)) for id in ids])
            transaction.states([Key(1, id) for id in waiting])
            transaction.add_outcomes([an_outcome(id) for id in waiting])
        if disk.image is not None:
            return decided, rewarded
        decided += ids
        rewarded += waiting
        waiting = ids
        n += 1
        if rng.random() < 0.15:
            log.checkpoint()
            if disk.image is not None:
                return decided, rewarded


def lost_in_one_try(folder, synchronous, seed):
    """How many acknowledged rows are missing after a loss of power; the log itself must be whole in any case."""
    rng = random.Random(seed)
    with failing_disk(folder / "before", synchronous, seed) as (disk, log):
        decided, rewarded = work_until_the_power_fails(disk, log, rng)
        after = folder / "after"
        after.mkdir()
        disk.restore(after)
    if synchronous == "OFF":
        return lost(after, decided, rewarded)
    log = SqliteLog(after)
    found = {row.id for _, row in log.decisions_after(1, Position(), 100_000)}
    outcomes = {row.decision for row in log.read_after(Position(), 100_000)}
    whole = [{id.split("-")[0] for id in ids} for ids in (found, outcomes)]
    assert [len(found), len(outcomes)] == [BATCH * len(numbers) for numbers in whole]  # transactions are whole
    append(log, a_change())
    log.close()
    return len(set(decided) - found) + len(set(rewarded) - outcomes)


def lost(folder, decided, rewarded):
    """The same of a log that may be damaged."""
    try:
        log = SqliteLog(folder)
    except Exception:
        return len(decided) + len(rewarded)
    try:
        found = {row.id for _, row in log.decisions_after(1, Position(), 100_000)}
        outcomes = {row.decision for row in log.read_after(Position(), 100_000)}
        return len(set(decided) - found) + len(set(rewarded) - outcomes)
    except Exception:
        return len(decided) + len(rewarded)
    finally:
        log.close()


def tries(tmp_path, monkeypatch, synchronous, count):
    """What was lost in each try; the seed is the number of the try."""
    monkeypatch.setattr("bough.service.log.sqlite._LARGE", 30)
    found = []
    for seed in range(count):
        folder = tmp_path / str(seed)
        folder.mkdir()
        found.append(lost_in_one_try(folder, synchronous, seed))
        shutil.rmtree(folder)
    return found


def test_nothing_that_was_acknowledged_is_lost_when_the_power_fails(tmp_path, monkeypatch):
    assert tries(tmp_path, monkeypatch, "FULL", TRIES) == [0] * TRIES


@pytest.mark.parametrize("synchronous", ["OFF", "NORMAL"])
def test_with_fewer_syncs_acknowledged_rows_are_lost(tmp_path, monkeypatch, synchronous):
    """The test above can tell: less than FULL fails it."""
    assert sum(tries(tmp_path, monkeypatch, synchronous, 10)) > 0


@pytest.mark.parametrize("operations", range(0, 60, 4))
def test_a_log_whose_making_the_power_has_cut_short_is_made_again(tmp_path, operations):
    disk = power_loss.FailingDisk(f"failing-new-{operations}", operations)
    disk.fail_after(operations)
    log = type("FailingLog", (SqliteLog,), {"vfs": disk.name})(tmp_path / "before")
    append(log, *[a_decision(f"d{n}") for n in range(1_000)])
    log.close()
    disk.close()
    after = tmp_path / "after"
    after.mkdir()
    disk.restore(after)
    log = SqliteLog(after)
    append(log, a_change())
    assert len(log.read_after(Position(), 10)) == 1
    assert len(log.decisions_after(1, Position(), 10_000)) in (0, 1_000)
    log.close()


@pytest.mark.parametrize("rows", [1, 16, 500])
def test_a_commit_has_exactly_one_sync(tmp_path, rows):
    with failing_disk(tmp_path, "FULL", rows) as (disk, log):
        for n in range(20):
            ids = [f"d{n}-{part}" for part in range(rows)]
            before = disk.syncs.copy()
            append(log, *[a_decision(id) for id in ids], *[an_outcome(id) for id in ids])
            assert disk.syncs - before == {"bough.sqlite-wal": 1}


def test_the_commit_after_a_checkpoint_that_held_the_writer_up_has_one_sync_as_well(tmp_path, monkeypatch):
    monkeypatch.setattr("bough.service.log.sqlite._LARGE", 10)
    with failing_disk(tmp_path, "FULL", 0) as (disk, log):
        for n in range(20):
            append(log, *[a_decision(f"d{n}-{part}") for part in range(100)])
            log.checkpoint()
            before = disk.syncs.copy()
            append(log, a_decision(f"e{n}"))
            assert disk.syncs - before == {"bough.sqlite-wal": 1}


def test_a_service_that_starts_again_has_one_sync_from_its_first_commit_on(tmp_path):
    SqliteLog(tmp_path).close()
    with failing_disk(tmp_path, "FULL", 1) as (disk, log):
        before = disk.syncs.copy()
        append(log, a_decision("d1"))
        assert disk.syncs - before == {"bough.sqlite-wal": 1}
