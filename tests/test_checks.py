"""The recipe of `make check` fails where it should: its own commands, run on a copy of the source with a fault."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from places import ROOT

BIN = Path(sys.executable).parent


def recipe_of_check(word: str) -> str:
    """The one line of the Makefile's check that has this word in it, as make would run it."""
    if shutil.which("make") is None or not (ROOT / "Makefile").exists():
        pytest.skip("needs make, and the Makefile of a clone")
    command = ["make", "--dry-run", "--no-print-directory", "check", f"BIN={BIN}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    (line,) = [line for line in done.stdout.splitlines() if word in line]
    return line


def run_on(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    return subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A folder with the package and its contracts."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.mark.skipif(not (BIN / "lint-imports").exists(), reason="import-linter is not installed")
def test_an_import_against_the_layers_fails_the_check_and_is_named(copied):
    command = recipe_of_check("lint-imports")
    clean = run_on(copied, command)
    assert (clean.returncode, clean.stdout, clean.stderr) == (0, "", "")
    with (copied / "src" / "bough" / "tree" / "tree.py").open("a") as file:
        file.write("\nimport bough.cli\n")
    broken = run_on(copied, command)
    assert broken.returncode != 0
    assert "Data flows one way BROKEN" in broken.stdout
    assert "bough.tree.tree -> bough.cli" in broken.stdout
