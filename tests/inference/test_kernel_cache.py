"""Compiled kernels on disk: never a stale one, and none compiled twice. A package of three files is the forest here."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import bough.inference.kernels

JIT = Path(bough.inference.kernels.__path__[0]) / "jit.py"
GROVE = {
    "__init__.py": "",
    "constants.py": "RATE = 2.0\n",
    "branch.py": """
from bough.inference.kernels.jit import kernel
from grove.constants import RATE

@kernel
def scaled(x):
    return RATE * x + 1.0
""",
    "trunk.py": """
from bough.inference.kernels.jit import kernel
from grove import branch

@kernel
def total(n):
    '''The sum of the scaled numbers below n.'''
    result = 0.0
    for i in range(n):
        result += branch.scaled(float(i))
    return result
""",
}
RUN = """
import json
from grove import trunk

value = trunk.total(4)
stats = getattr(trunk.total, "stats", None)
print(json.dumps({
    "value": value,
    "loaded": stats and sum(stats.cache_hits.values()),
    "compiled": stats and sum(stats.cache_misses.values()),
    "folder": stats and stats.cache_path,
    "names": [trunk.total.__doc__, trunk.total.__module__],
}))
"""


def run(folder, before="", warn="error", **environment):
    """What a new process finds the sum to be, and whether it compiled the kernel or loaded it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    kept["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, [kept.get("PYTHONPATH")])])
    command = [sys.executable, "-W", warn, "-c", before + RUN]
    done = subprocess.run(command, env=kept | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) | {"stderr": done.stderr}


def edit(file, old, new):
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A grove whose kernels are on disk, beside their sources."""
    folder = tmp_path_factory.mktemp("compiled")
    write(folder / "grove", GROVE)
    first = run(folder)
    assert (first["value"], first["compiled"], first["loaded"]) == (16.0, 1, 0)
    assert first["folder"] == str(folder / "grove" / "__pycache__")
    return folder


@pytest.fixture
def warm(compiled, tmp_path):
    return Path(shutil.copytree(compiled, tmp_path / "warm"))


@pytest.fixture
def cold(tmp_path):
    write(tmp_path / "cold" / "grove", GROVE)
    return tmp_path / "cold"


def test_kernels_of_unchanged_files_are_loaded_and_not_compiled(warm):
    for file in (warm / "grove").glob("*.py"):
        os.utime(file, (0, 0))  # texts count, and times do not
    found = run(warm)
    assert (found["value"], found["compiled"], found["loaded"]) == (16.0, 0, 1)
    assert found["names"] == ["The sum of the scaled numbers below n.", "grove.trunk"]


@pytest.mark.parametrize(
    ("file", "old", "new", "value"),
    [("branch.py", "+ 1.0", "+ 2.0", 20.0), ("constants.py", "2.0", "3.0", 22.0)],
)
def test_an_edit_of_what_a_kernel_uses_of_another_file_compiles_it_again(warm, file, old, new, value):
    edit(warm / "grove" / file, old, new)
    found = run(warm)
    assert (found["value"], found["compiled"]) == (value, 1)


def test_what_an_older_version_left_under_the_same_name_is_not_loaded(warm):
    # One process has written the index of an edited kernel, and not yet its code, when another starts.
    cache = warm / "grove" / "__pycache__"
    old = {file: file.read_bytes() for file in cache.glob("*.nbc")}
    edit(warm / "grove" / "branch.py", "+ 1.0", "+ 2.0")
    assert run(warm)["value"] == 20.0
    assert set(cache.glob("*.nbc")) == set(old)
    for file, code in old.items():
        file.write_bytes(code)
    found = run(warm)
    assert (found["value"], found["compiled"]) == (20.0, 1)


def test_a_file_edited_after_its_import_does_not_pass_for_what_was_compiled(cold):
    constants = str(cold / "grove" / "constants.py")
    before = f"from grove import trunk\nopen({constants!r}, 'w').write('RATE = 3.0')\n"
    assert run(cold, before)["value"] == 16.0
    assert run(cold)["value"] == 22.0


def test_a_file_edited_before_its_import_does_not_pass_for_what_it_was(cold):
    trunk = cold / "grove" / "trunk.py"
    edited = GROVE["trunk.py"].replace("0.0", "5.0")
    assert run(cold, f"from grove import branch\nopen({str(trunk)!r}, 'w').write({edited!r})\n")["value"] == 21.0
    trunk.write_text(GROVE["trunk.py"])
    assert run(cold)["value"] == 16.0


def test_the_users_cache_serves_where_the_package_cannot_be_written(cold, tmp_path):
    (cold / "grove" / "__pycache__").write_text("not a folder")
    elsewhere = {
        "HOME": str(tmp_path / "home"),
        "XDG_CACHE_HOME": str(tmp_path / "home"),
        "LOCALAPPDATA": str(tmp_path),
    }
    first, second = run(cold, **elsewhere), run(cold, **elsewhere)
    assert first["folder"].startswith(str(tmp_path / "home"))
    assert (first["value"], first["compiled"]) == (16.0, 1)
    assert (second["value"], second["compiled"], second["loaded"]) == (16.0, 0, 1)


def test_the_folder_named_by_the_environment_serves(cold, tmp_path):
    first, second = (run(cold, NUMBA_CACHE_DIR=str(tmp_path / "named")) for _ in range(2))
    assert first["folder"].startswith(str(tmp_path / "named"))
    assert (second["value"], second["compiled"], second["loaded"]) == (16.0, 0, 1)


def test_where_nothing_can_be_written_kernels_are_compiled_and_one_warning_says_so(cold, tmp_path):
    (cold / "grove" / "__pycache__").write_text("not a folder")
    nowhere = str(tmp_path / "file")
    Path(nowhere).write_text("not a folder")
    found = run(cold, warn="always", HOME=nowhere, XDG_CACHE_HOME=nowhere, LOCALAPPDATA=nowhere)
    assert (found["value"], found["compiled"], found["folder"]) == (16.0, 1, None)
    assert found["stderr"].count("RuntimeWarning: compiled kernels cannot be kept on disk") == 1


def test_a_numba_with_another_inside_keeps_nothing_on_disk(warm):
    edit(warm / "grove" / "branch.py", "+ 1.0", "+ 2.0")
    before = (
        "import numba.core.caching as c\nc.Cache._cache_file = property(lambda self: None, lambda self, file: None)\n"
    )
    found = run(warm, before, warn="always")
    assert (found["value"], found["compiled"], found["folder"]) == (20.0, 1, None)
    assert found["stderr"].count("RuntimeWarning: compiled kernels cannot be kept on disk") == 1


def test_kernels_are_plain_functions_where_compiling_is_disabled(cold):
    found = run(cold, NUMBA_DISABLE_JIT="1")
    assert (found["value"], found["folder"]) == (16.0, None)
    assert not list((cold / "grove").rglob("*.nbi"))


def test_six_processes_at_once_fill_an_empty_cache(cold):
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(run, [cold] * 6))
    assert [one["value"] for one in found] == [16.0] * 6
    assert run(cold)["compiled"] == 0


# -- the stamp -------------------------------------------------------------------------------------


def stamp(path, jit=JIT):
    """The stamp of a file of kernels as a new process would find it."""
    spec = importlib.util.spec_from_file_location("jit_of_a_new_process", jit)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.stamp(str(path))


def test_the_stamp_changes_with_the_flags_that_kernels_are_compiled_with(cold, tmp_path):
    trunk = cold / "grove" / "trunk.py"
    (tmp_path / "other").mkdir()
    other = Path(shutil.copy(JIT, tmp_path / "other"))
    assert stamp(trunk, other) == stamp(trunk)
    edit(other, 'error_model="numpy"', 'error_model="python"')
    assert stamp(trunk, other) != stamp(trunk)


@pytest.mark.parametrize(
    "statement",
    [
        "import grove.leaf",
        "import grove.leaf as one, math",
        "from grove.leaf import N",
        "from grove.leaf import *",
        "from grove import leaf",
        "from grove import N",  # by way of __init__.py
        "from . import leaf",
        "from .leaf import N",
        "import leaf",  # the folder itself is on Python's path
        "from grove.inner.twig import N",
        "from .inner import twig",
        "if True:\n    try:\n        from grove.leaf import N\n    except ImportError:\n        pass",
        "def constant():\n    from grove.leaf import N\n    return N",
        "from grove.middle import f",  # which imports the leaf, and the trunk again
    ],
)
def test_the_stamp_follows_imports_however_they_are_written(tmp_path, statement):
    files = {
        "__init__.py": "from grove.leaf import N" if statement == "from grove import N" else "",
        "trunk.py": statement,
        "middle.py": "from grove import trunk\nfrom grove.leaf import N\n",
        "inner/__init__.py": "",
        "inner/twig.py": "from ..leaf import N",
        "leaf.py": "N = 1",
        "other.py": "N = 1",
    }
    write(tmp_path / "grove", files)
    trunk = tmp_path / "grove" / "trunk.py"
    before = stamp(trunk)
    (tmp_path / "grove" / "other.py").write_text("N = 2")
    assert stamp(trunk) == before
    (tmp_path / "grove" / "leaf.py").write_text("N = 2")
    assert stamp(trunk) != before


def test_the_stamp_is_the_same_wherever_the_folder_lies(cold, tmp_path):
    moved = shutil.copytree(cold, tmp_path / "moved")
    assert stamp(moved / "grove" / "trunk.py") == stamp(cold / "grove" / "trunk.py")


def test_an_editors_link_to_nothing_is_passed_over(cold):
    (cold / "grove" / ".#trunk.py").symlink_to("nobody@nowhere.1")
    assert stamp(cold / "grove" / "trunk.py")
