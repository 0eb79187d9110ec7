"""What the arguments of a command stand for: trees, models, numbers, names, and the standard input."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import bough
from bough import _checks, _storage
from bough._extras import install
from bough.cli.output import one_line
from bough.model.kinds import MODELS
from bough.tree.names import twin

TABLES = (".csv", ".tsv", ".parquet", ".pq")
NO_TREE = "no tree was given; give --tree FILE, one path per action, or a table with --levels"
_PARQUET = b"PAR1"  # how such a file begins


@contextmanager
def standard_input(given: argparse.Namespace) -> Iterator[None]:
    """Put a file with the standard input in the place of every `-` among the arguments that are read as files.

    `given.reads` says which those are, and what the file's name ends with: readers go by that. The file is gone in the
    end, and errors call it standard input.
    """
    reads: dict[str, str] = getattr(given, "reads", {})
    asking = [name for name in reads for one in _listed_values(getattr(given, name)) if str(one) in ("-", "@-")]
    if not asking:
        yield
        return
    if len(asking) > 1:
        raise ValueError("- is given more than once; there is one standard input, so give a file for the others")
    with tempfile.TemporaryDirectory(prefix="bough-") as folder:
        path = _spooled(Path(folder) / "standard-input", reads[asking[0]])
        setattr(given, asking[0], _replaced(getattr(given, asking[0]), path))
        try:
            yield
        except (ValueError, KeyError, OSError) as error:
            raise ValueError(one_line(error).replace(str(path), "standard input")) from error


def _listed_values(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _spooled(path: Path, ending: str) -> Path:
    """The standard input as a file; formats that are read from their end need one."""
    first = sys.stdin.buffer.read(len(_PARQUET))
    path = path.with_suffix(".parquet" if first == _PARQUET else ending)
    with open(path, "wb") as file:
        file.write(first)
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path


def _replaced(value: Any, path: Path) -> Any:
    if isinstance(value, list):
        return [_replaced(one, path) for one in value]
    if str(value) == "@-":
        return f"@{path}"
    return type(value)(path) if str(value) == "-" else value


# -- words and numbers -----------------------------------------------------------------------------


def number(text: str, option: str, other: str = "") -> float:
    """A number that an option has as text; `other` says what else it may be."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{option} has {text!r}; give a number{other}") from None


def listed(text: str, option: str, what: str = "column names") -> list[str]:
    """The parts of a text between commas."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ValueError(f"{option} is {text!r}; give {what} with commas between them")
    return names


def check_counts(given: argparse.Namespace) -> None:
    """Refuse numbers of runs, rounds and jobs that cannot be, before anything is done."""
    for name, value, least in (("runs", given.runs, 2), ("rounds", given.rounds, 1)):
        if value is not None and value < least:
            raise ValueError(f"--{name} is {value}; give at least {least}")
    check_seed(given.seed)
    if given.jobs == 0:
        raise ValueError("--jobs is 0; give how many, or -1 for every core")


def check_seed(seed: int | None) -> None:
    """Refuse a negative seed."""
    if seed is not None and seed < 0:
        raise ValueError(f"--seed is {seed}; give a whole number of at least 0")


def check_target(path: Path | None, option: str) -> None:
    """Refuse a place where no file can be written, before the work is done."""
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise ValueError(f"{option} {path} cannot be written; give a file in a folder that exists")


def check_targets(targets: Mapping[str, Path | None]) -> None:
    """Refuse places, by their options, where no file can be written, or where one would be written over another."""
    places: dict[Path, str] = {}
    for option, path in targets.items():
        check_target(path, option)
        if path is not None and places.setdefault(path.resolve(), option) != option:
            first = places[path.resolve()]
            raise ValueError(f"{first} and {option} are both {path}; give each a file of its own")


def check_picture(path: Path) -> None:
    """Refuse a picture that cannot be drawn, before the work is done."""
    if find_spec("matplotlib") is None:
        raise ValueError(f"--plot draws with matplotlib, which is not installed; {install('plot')}")
    formats = import_module("matplotlib.backend_bases").FigureCanvasBase.get_supported_filetypes()
    if path.suffix.lower().lstrip(".") not in formats:
        raise ValueError(f"--plot is {path}; give a file whose name ends in .png, .svg or .pdf")


# -- names -----------------------------------------------------------------------------------------


def name_in(tree: bough.Tree, name: Any) -> Any:
    """A name of the command line as the tree has it: an integer where that is what reads so."""
    if tree.node_names.find(name) >= 0:
        return name
    meant = twin(tree.node_names, name)
    return name if meant is None else meant


def names_in(tree: bough.Tree, text: str, option: str) -> list[Any]:
    """Actions that an option names: with commas between them, or, after an @, in a text file with one per line."""
    if text.startswith("@"):
        names = _checks.text_lines(Path(text[1:]), "one action per line")
        if not names:
            raise ValueError(f"{option} is {text!r}, and the file has no names; give one action per line")
    else:
        names = listed(text, option, "actions")
    return [name_in(tree, name) for name in names]


# -- trees and models ------------------------------------------------------------------------------


def read_tree(given: argparse.Namespace, like: bough.Tree | None = None) -> bough.Tree:
    """The tree of --tree: a text file with one path per action, or, with --levels, a table."""
    path, sep = given.tree, given.sep
    if sep is None:
        sep = "/" if like is None else like.sep
    if given.levels is not None:
        read = import_module("bough.data.files").tree_of_table
        tree: bough.Tree = read(path, listed(given.levels, "--levels"), sep, like, given.missing or "error")
        return tree
    if path.suffix.lower() in TABLES:
        raise ValueError(f"{path} is a table; name its columns, coarsest first, with --levels")
    if given.missing is not None:
        raise ValueError("--missing goes with a table; name its columns with --levels, or leave it out")
    return bough.Tree.from_paths(_checks.text_lines(path, "one path per action, one on each line"), sep)


def read_labels(given: argparse.Namespace, tree: bough.Tree) -> dict[str, dict[Any, list[Any]]]:
    """The levels of actions, for each --factor, a column of the table that --tree names."""
    columns = list(dict.fromkeys(given.factor))
    if not columns:
        return {}
    if given.levels is None:
        raise ValueError("--factor names a column of a table; give the table as --tree, with --levels")
    levels = listed(given.levels, "--levels")
    action = levels[-1]
    twice = next((column for column in columns if column in levels), None)
    if twice is not None:
        raise ValueError(f"--factor is {twice!r}, a level of the tree already; give another column")
    rows = import_module("bough.data.files").rows_of_table(given.tree, [action], columns)
    labels: dict[str, dict[Any, list[Any]]] = {column: {} for column in columns}
    for name, *levels in rows:
        own = name_in(tree, name)
        for column, level in zip(columns, levels, strict=True):
            labels[column].setdefault(own, [])
            if level is not None and level not in labels[column][own]:
                labels[column][own].append(level)
    return labels


def load_agent(path: Path) -> Any:
    """The agent of a file; a `ValueError` that says how to get one where it holds something else."""
    kind = _storage.kind_of(path)
    if kind != "agent":
        raise ValueError(
            f"{path} holds a {kind}, and no agent; bough fit ... --agent FILE writes one, and so does, in Python, "
            "bough.HierTS(model).save"
        )
    return import_module("bough.policies.files").load(path)


def make_model(given: argparse.Namespace) -> Any:
    """The model of the options: one from a file, or one made of a tree and a prior."""
    if given.model is not None:
        return _loaded_model(given)
    tree = _chosen_tree(given)
    model: Any = MODELS[given.rewards or "gaussian"]
    covariance: Any = 1.0
    if given.by_depth:
        covariance = bough.by_depth([number(value, "--by-depth") for value in given.by_depth.split(",")])
    elif given.problem is None and model.kind.usual_variance is not None:
        covariance = model.kind.usual_variance / (tree.height + 1)
    elif given.problem != "constant":
        covariance = bough.by_height([2.0**height for height in range(tree.height + 1)])
    mean = 0.0 if given.mean is None else given.mean
    if model.kind.noise_is_added:
        return model(tree, mean, covariance, 1.0 if given.noise_variance is None else given.noise_variance)
    if given.noise_variance is not None:
        raise ValueError(f"--noise-variance goes with gaussian rewards, not with {given.rewards}; leave it out")
    return model(tree, mean, covariance)


def _loaded_model(given: argparse.Namespace) -> Any:
    of_tree = ("tree", "levels", "sep", "missing", "branching", "height")
    of_prior = ("problem", "by_depth", "mean", "noise_variance", "rewards")
    twice = next((name for name in (*of_tree, *of_prior) if getattr(given, name) is not None), None)
    if twice is not None:
        raise ValueError(f"--model has the tree and the prior already; leave out --{twice.replace('_', '-')}")
    loaded = bough.GaussianModel.load(given.model)
    if not loaded.is_scalar:
        raise ValueError(
            f"{given.model} takes contexts of length {loaded.dim}, which the command does not have; use the library"
        )
    return loaded


def _chosen_tree(given: argparse.Namespace) -> bough.Tree:
    if given.tree is not None:
        if given.branching is not None or given.height is not None:
            raise ValueError("--tree goes without --branching and --height; give one or the other")
        return read_tree(given)
    if given.levels is not None:
        raise ValueError("--levels names columns of a table, and there is none; give --tree FILE")
    if given.branching is None and given.height is None:
        raise ValueError("no tree was given; give --branching and --height, --tree FILE, or --model FILE")
    for missing, other in (("height", "branching"), ("branching", "height")):
        if getattr(given, missing) is None:
            raise ValueError(f"--{missing} is missing; a balanced tree takes it beside --{other}")
    return bough.Tree.balanced(given.branching, given.height)
