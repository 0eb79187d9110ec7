"""A full disk: nothing is half-written, and it goes on by itself when there is room again."""

import shutil
import subprocess

import pytest

import power_loss
from bough.service.log.base import LogFullError
from bough.service.log.sqlite import SqliteLog
from bough.service.records import Position, SnapshotRow
from log_rows import a_change, a_decision, append

BATCH = 20


def ids(log):
    return [row.id for _, row in log.decisions_after(1, Position(), 100_000)]


def append_until_full(log, prefix="d"):
    """The ids that were acknowledged before the disk was full, in batches of one transaction."""
    found = []

    def append_on_and_on():
        for n in range(10_000):
            batch = [f"{prefix}{n}-{part}" for part in range(BATCH)]
            append(log, *[a_decision(id, context=[0.5] * 50) for id in batch], a_change())
            found.extend(batch)

    with pytest.raises(LogFullError, match="make room, and it goes on"):
        append_on_and_on()
    return found


def check_that_nothing_is_half_written(log, acknowledged):
    assert ids(log) == acknowledged
    assert len(log.read_after(Position(), 100_000)) == len(acknowledged) // BATCH == log.end().seq


def test_a_database_that_may_not_grow_is_full_and_goes_on_when_it_may(tmp_path):
    log = SqliteLog(tmp_path)
    usual = log._writer.execute("PRAGMA max_page_count").fetchone()[0]
    log._writer.execute("PRAGMA max_page_count = 100")
    acknowledged = append_until_full(log)
    assert len(acknowledged) > BATCH
    check_that_nothing_is_half_written(log, acknowledged)
    assert append_until_full(log, "again") == []
    log._writer.execute(f"PRAGMA max_page_count = {usual}")
    append(log, a_decision("last"))
    assert ids(log) == [*acknowledged, "last"]
    log.close()


@pytest.mark.parametrize("room", [0, 1, 30_000, 130_000, 131_072, 133_333, 200_000])
def test_a_disk_that_is_full_in_the_midst_of_a_commit_leaves_nothing_of_it(tmp_path, room):
    try:
        disk = power_loss.FailingDisk(f"full-{room}")
    except OSError as error:
        pytest.skip(str(error))
    log = type("FullLog", (SqliteLog,), {"vfs": disk.name})(tmp_path)
    append(log, *[a_decision(f"first{n}") for n in range(BATCH)], a_change())
    first = ids(log)
    disk.room = room
    acknowledged = first + append_until_full(log)
    check_that_nothing_is_half_written(log, acknowledged)
    disk.room = None
    append(log, *[a_decision(f"last{n}") for n in range(BATCH)], a_change())
    acknowledged += [f"last{n}" for n in range(BATCH)]
    check_that_nothing_is_half_written(log, acknowledged)
    log.close()
    disk.close()
    log = SqliteLog(tmp_path)
    check_that_nothing_is_half_written(log, acknowledged)
    log.close()


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 2 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = shutil.which("mount")
    command = [mount or "mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if mount is None or subprocess.run(command, check=False, capture_output=True).returncode != 0:
        pytest.skip("only root may mount a small file system, and not everywhere")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_file_system_that_is_full_for_real_does_no_harm(small_disk):
    filler = small_disk / "filler"
    filler.write_bytes(bytes(500_000))
    log = SqliteLog(small_disk / "data")
    acknowledged = append_until_full(log)
    assert len(acknowledged) > BATCH
    check_that_nothing_is_half_written(log, acknowledged)
    row = SnapshotRow(1, 0, 5, "digest", 1.0)
    with pytest.raises(LogFullError):
        log.put_snapshot(row, bytes(1_000_000))
    assert log.snapshots(1) == []
    log.close()
    log = SqliteLog(small_disk / "data")
    check_that_nothing_is_half_written(log, acknowledged)
    filler.unlink()
    append(log, *[a_decision(f"last{n}") for n in range(BATCH)], a_change())
    acknowledged += [f"last{n}" for n in range(BATCH)]
    check_that_nothing_is_half_written(log, acknowledged)
    log.put_snapshot(row, b"data")
    assert log.snapshot(row) == b"data"
    log.close()
    log = SqliteLog(small_disk / "data")
    check_that_nothing_is_half_written(log, acknowledged)
    log.close()
