"""Ctrl-C: exit status 130, no traceback, and a line that says what has been written and nothing else."""

import os
import signal
import subprocess
import sys
import time

import pytest

import bough
from bough import cli
from bough.cli import adopt, output
from bough.experiments import runner

TINY = ["--runs", "3", "--rounds", "4"]


def stop(*_, **__):
    raise KeyboardInterrupt


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys):
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.strip().splitlines()) == 1
    return shown.err.strip()


def test_a_simulation_that_is_stopped_has_written_nothing(here, monkeypatch, capsys):
    (here / "a.csv").write_text("an older table")
    monkeypatch.setattr(bough, "simulate", stop, raising=False)
    options = ["--branching", "2", "--height", "1", "--csv", "a.csv", "--plot", "a.png"]
    assert cli.main(["simulate", *options]) == 130
    assert said(capsys) == "bough: stopped; nothing was written"
    assert (here / "a.csv").read_text() == "an older table"


def test_what_was_written_before_an_interrupt_is_named(here, monkeypatch, capsys):
    monkeypatch.setattr(bough.Simulation, "plot", stop)
    options = ["--branching", "2", "--height", "1", *TINY, "--csv", "a.csv", "--plot", "a.png"]
    assert cli.main(["simulate", *options]) == 130
    shown = capsys.readouterr()
    assert shown.out.startswith("policy")  # what was computed is not lost
    assert shown.err == "bough: stopped; written: a.csv\n"
    assert (here / "a.csv").exists()
    assert not (here / "a.png").exists()


def test_finished_cells_are_counted_and_the_same_command_goes_on_from_them(here, monkeypatch, capsys):
    simulate, calls = runner.simulate, []

    def interrupted(*args, **kwargs):
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return simulate(*args, **kwargs)

    monkeypatch.setattr(runner, "simulate", interrupted)
    command = ["reproduce", "height-constant", *TINY, "--out", "r", "--jobs", "1"]
    assert cli.main(command) == 130
    cells = os.path.join("r", "cells")
    assert said(capsys) == f"bough: stopped; written: 2 finished cells in {cells}; the same command goes on from there"
    assert len(list((here / "r" / "cells").iterdir())) == 2
    assert cli.main(command) == 0
    assert len(calls) == 3 + 5  # of seven cells, two were finished


def test_a_repeated_command_that_is_stopped_at_once_has_written_nothing(here, monkeypatch, capsys):
    command = ["reproduce", "height-constant", *TINY, "--out", "r", "--jobs", "1"]
    assert cli.main(command) == 0
    capsys.readouterr()
    monkeypatch.setattr(runner, "simulate", stop)
    assert cli.main([*command, "--seed", "1"]) == 130
    assert said(capsys) == "bough: stopped; nothing was written"


def test_tables_of_finished_experiments_are_named(here, monkeypatch, capsys):
    from bough.experiments import reproduction

    monkeypatch.setattr(reproduction, "write_all", stop)
    assert cli.main(["reproduce", "height-constant", *TINY, "--out", "r", "--jobs", "1"]) == 130
    text = said(capsys)
    tables = ", ".join(os.path.join("r", f"height-constant.{ending}") for ending in ("csv", "json"))
    assert f"written: 7 finished cells in {os.path.join('r', 'cells')}, {tables};" in text


def test_an_agent_whose_adoption_is_stopped_is_as_it_was(here, monkeypatch, capsys):
    tree = bough.Tree.from_nested({"home": ["kettle", "mug"]})
    bough.HierTS(bough.GaussianModel(tree), seed=0).save("agent.bough")
    before = (here / "agent.bough").read_bytes()
    (here / "tree.txt").write_text("home/kettle\nhome/mug\n")
    monkeypatch.setattr(adopt, "_check_same_names", stop)
    assert cli.main(["adopt", "agent.bough", "--tree", "tree.txt", "--out", "agent.bough"]) == 130
    assert said(capsys) == "bough: stopped; nothing was written"
    assert (here / "agent.bough").read_bytes() == before


def test_an_interrupt_while_bough_loads_leaves_no_traceback():
    code = """
import sys
class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Stop())
from bough.cli import main
sys.exit(main(["--version"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr == "bough: stopped; nothing was written\n"


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_real_signal_while_the_standard_input_is_awaited_is_answered_alike(here):
    (here / "tree.txt").write_text("home/kettle\nhome/mug\n")
    words = ["fit", "-", "--tree", "tree.txt", "--action", "item", "--reward", "sales"]
    (here / "tmp").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "bough.cli", *words],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(here / "tmp")},
    )
    while process.poll() is None and not any((here / "tmp").iterdir()):
        time.sleep(0.01)  # until there is a place for what comes in
    process.send_signal(signal.SIGINT)
    _, shown = process.communicate(timeout=60)
    assert process.returncode == 130
    assert shown == "bough: stopped; nothing was written\n"
    assert not (here / "model.bough").exists()
    assert list((here / "tmp").iterdir()) == []


def test_what_was_written_is_told_by_the_files_themselves(tmp_path):
    kept, changed, new = (tmp_path / name for name in ("kept", "changed", "new"))
    for path in (kept, changed):
        path.write_text("before")
    written = output.Written(lambda: [kept, changed, new, None])
    assert str(written) == "nothing was written"
    changed.write_text("afterwards")
    new.write_text("new")
    assert written.since() == [changed, new]
    assert str(written) == f"written: {changed}, {new}"
