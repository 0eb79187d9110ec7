"""- is the standard input, wherever a log, a tree or a table is read."""

import io
import sys

import polars
import pytest

import bough
from bough import cli

LOG = "item,sales\n" + "\n".join(f"{group}/{i},{i + n}" for group in "ab" for i in range(3) for n in (0.5, 1.5))
PATHS = "a/0\na/1\na/2\nb/0\nb/1\nb/2\n"
COLUMNS = ["--action", "item", "--reward", "sales"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text(LOG)
    (tmp_path / "tree.txt").write_text(PATHS)
    return tmp_path


def given(monkeypatch, data):
    raw = data if isinstance(data, bytes) else data.encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))


def noise_of(path="model.bough"):
    return bough.GaussianModel.load(path).noise_variance


def test_a_log_from_the_standard_input_is_the_log_of_the_file(here, monkeypatch, capsys):
    assert cli.main(["fit", "log.csv", "--tree", "tree.txt", *COLUMNS]) == 0
    expected = noise_of()
    (here / "model.bough").unlink()
    given(monkeypatch, LOG)
    assert cli.main(["fit", "-", "--tree", "tree.txt", *COLUMNS]) == 0
    assert noise_of() == expected
    parquet = io.BytesIO()
    polars.read_csv(io.StringIO(LOG)).write_parquet(parquet)
    given(monkeypatch, parquet.getvalue())
    assert cli.main(["fit", "-", "--tree", "tree.txt", *COLUMNS]) == 0
    assert noise_of() == pytest.approx(expected, rel=1e-6)


def test_the_standard_input_adds_up_with_files(here, monkeypatch, capsys):
    given(monkeypatch, LOG)
    assert cli.main(["fit", "log.csv", "-", "--tree", "tree.txt", *COLUMNS]) == 0
    assert "24 rows" in capsys.readouterr().out


def test_a_tree_comes_as_paths_or_as_a_table(here, monkeypatch, capsys):
    given(monkeypatch, PATHS)
    assert cli.main(["bound", "--tree", "-"]) == 0
    by_paths = capsys.readouterr().out
    assert cli.main(["bound", "--tree", "tree.txt"]) == 0
    assert capsys.readouterr().out == by_paths
    given(monkeypatch, "group\titem\na\t1\na\t2\nb\t3\n")
    assert cli.main(["bound", "--tree", "-", "--levels", "group,item", "--json"]) == 0


def test_renamed_actions_come_from_the_standard_input(here, monkeypatch, capsys):
    bough.HierTS(bough.GaussianModel(bough.Tree.from_paths(PATHS.split())), seed=0).save("agent.bough")
    (here / "new.txt").write_text(PATHS.replace("a/0", "a/9"))
    given(monkeypatch, "old,new\na/0,a/9\n")
    assert cli.main(["adopt", "agent.bough", "--tree", "new.txt", "--renamed", "-"]) == 0
    assert "renamed 1: 'a/0' to 'a/9'" in capsys.readouterr().out


BAD = {
    "an empty log": (["fit", "-", "--tree", "tree.txt", *COLUMNS], "", "standard input"),
    "another log": (["fit", "-", "--tree", "tree.txt", *COLUMNS], "a,b\n1,2\n", "standard input has no column 'item'"),
    "a tree without levels": (["bound", "--tree", "-"], "a//b\n", "path 'a//b' has an empty component"),
    "a table of no such column": (["bound", "--tree", "-", "--levels", "x"], "a\nb\n", "no column 'x'"),
    "twice": (["fit", "-", "--tree", "-", *COLUMNS], LOG, "- is given more than once"),
    "twice in one": (["fit", "-", "-", "--tree", "tree.txt", *COLUMNS], LOG, "- is given more than once"),
    "what is no text": (["bound", "--tree", "-"], b"\xff\xfe\x00", "standard input is not a text file"),
}


@pytest.mark.parametrize("what", BAD)
def test_errors_call_it_standard_input_and_leave_nothing_behind(what, here, monkeypatch, capsys):
    arguments, data, text = BAD[what]
    (here / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(here / "tmp"))
    given(monkeypatch, data)
    assert cli.main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.strip().splitlines()) == 1
    assert text in shown.err
    assert str(here) not in shown.err
    assert list((here / "tmp").iterdir()) == []
    assert not (here / "model.bough").exists()
