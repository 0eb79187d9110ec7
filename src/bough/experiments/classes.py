"""classes: the image-classification bandit of section 6.2, on features of images whose classes form a tree.

Five super-classes are drawn for each run; their classes are the actions. An action's parameter is the mean feature of
its *test* images, a context is a random test image of these classes, and a reward is their product plus noise. The
prior is `prior_from_features` of the *training* images.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bough import _checks
from bough._arrays import Floats, Integers
from bough.experiments.claims import by_gaps
from bough.experiments.experiment import Claim, Experiment, Outcome, PaperNumber, Results
from bough.experiments.figures import curves
from bough.experiments.options import FEATURES, REDUCTIONS, SCALES, MissingDataError, Options, Reduce, Scale
from bough.learning.feature_prior import prior_of_items
from bough.model.gaussian import GaussianModel
from bough.plotting import regret_panels
from bough.simulation.worlds import World
from bough.tree.tree import Tree

DIM = 10
NOISE = 0.5  # the standard deviation of a reward
SUPER_CLASSES = 5
_NEEDED = ("features", "fine", "coarse", "split", "fine_names", "coarse_names")


@dataclass(frozen=True)
class ClassCell:
    """One way to make the problem from the features."""

    features: Path
    digest: int
    """Of the file, so that another file's results are not taken for this one's."""
    reduce: Reduce
    scale: Scale
    which: Literal["five", "all", "tree"] = "five"
    tree: Path | None = None
    runs: int = 100

    @property
    def usual(self) -> tuple[int, int]:
        """The usual rounds and runs: fewer for what is only there to compare with."""
        return 1_000, self.runs

    @property
    def name(self) -> str:
        """What the cell is called in tables."""
        which = {"five": "", "all": ", all classes", "tree": ", all classes, own tree"}[self.which]
        return f"{self.reduce}, {self.scale} scale{which}"

    @property
    def slug(self) -> str:
        """What the cell is called in the names of files."""
        return f"{self.reduce}-{self.scale}-{self.which}"

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the cell's numbers."""
        tree = None if self.tree is None else zlib.crc32(self.tree.read_bytes())
        return {"features": self.digest, "reduce": self.reduce, "scale": self.scale, "which": self.which, "tree": tree}

    def problem(self) -> ClassProblem:
        """The problem itself."""
        images = read_features(self.features)
        tree = None if self.tree is None else read_class_tree(self.tree, images.fine_names)
        small = replace(images, features=reduced(images, self.reduce, self.scale))
        return ClassProblem(small, SUPER_CLASSES if self.which == "five" else None, tree)


def experiment(options: Options) -> Experiment:
    """The experiment on these features: the chosen setting first, then the others, then all classes at once."""
    features, reduce, scale = options.features or FEATURES, options.reduce, options.scale
    try:
        images = read_features(features)
    except MissingDataError as error:
        if options.tree is not None:
            raise ValueError(f"--tree goes with classes: {error}") from error
        raise
    digest = zlib.crc32(features.read_bytes())
    settings = [(reduce, scale)] + [(r, s) for r in REDUCTIONS for s in SCALES if (r, s) != (reduce, scale)]
    cells = [ClassCell(features, digest, r, s, runs=100 if r == reduce else 50) for r, s in settings]
    cells.append(ClassCell(features, digest, reduce, scale, "all"))
    if options.tree is not None:
        read_class_tree(options.tree, images.fine_names)  # a file that cannot be used is refused here
        cells.append(ClassCell(features, digest, reduce, scale, "tree", options.tree))
    return Experiment(
        "classes",
        "Classes of images in super-classes, linear rewards",
        "section 6.2, figure 4",
        tuple(cells),
        figure=figure,
        claims=claims,
        paper=paper,
    )


def paper(outcome: Outcome) -> list[PaperNumber]:
    """What section 6.2 says of its experiment, beside the first cell here."""
    first = outcome.results[0]
    where = "section 6.2, figure 4"
    gains = [f"{base} / HierTS = {{:.2f}} ± {{:.2f}}".format(*first.ratio(base, "HierTS")) for base in ("FlatTS", "TS")]
    return [
        PaperNumber(
            "Classes: size",
            where,
            "10 runs; the rounds are not stated",
            f"{first.runs:,} runs of {first.rounds:,} rounds",
        ),
        PaperNumber("Classes: actions", where, "K = 25 classes in 5 super-classes", f"K = {first.n_actions}"),
        PaperNumber(
            "Classes: features and noise",
            where,
            "d = 10 from 100 numbers of an EfficientNet-L2; standard deviation 0.5",
            f"d = {DIM}, {first.cell.reduce} of the file's, {first.cell.scale} scale; standard deviation {NOISE}",
        ),
        PaperNumber("Classes: regret", where, "HierTS outperforms both baselines", "; ".join(gains)),
    ]


def figure(_: Experiment, results: Results) -> Any:
    """Regret against rounds, a panel for each cell with features reduced as in the first."""
    first = results[0].cell
    shown = [r for r in results if r.cell.reduce == first.reduce]
    return regret_panels({r.cell.name: curves(r) for r in shown})


def claims(results: Results) -> list[Claim]:
    """The order of the policies as figure 4 has it, in the first cell and over all ways to make the features."""
    five = [result for result in results if result.cell.which == "five"]
    first = results[0].cell.name
    judged = [
        in_order(results[:1], f"Classes ({first}): HierTS below FlatTS below TS", "section 6.2, figure 4"),
        in_order(five, "Classes: the same however features are reduced and scaled", "beyond the paper"),
    ]
    others = [result for result in results if result.cell.which != "five"]
    if others:
        judged.append(in_order(others, "Classes: the same with all classes at once", "beyond the paper"))
    return judged


def in_order(results: Results, claim: str, where: str) -> Claim:
    """Holds where HierTS is significantly below FlatTS, and FlatTS below TS, in every cell."""
    pairs = [("FlatTS", "HierTS"), ("TS", "FlatTS"), ("TS", "HierTS")]
    return by_gaps([(r, *pair) for r in results for pair in pairs], claim, where)


# -- features --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Images:
    """Features of images with their classes."""

    features: Floats  # (n, p)
    fine: Integers  # (n,) class
    coarse: Integers  # (n,) super-class
    training: Any  # (n,) bool
    fine_names: tuple[str, ...]
    coarse_names: tuple[str, ...]

    def super_class(self) -> Integers:
        """(n_classes,) the super-class of each class."""
        found = np.zeros(len(self.fine_names), dtype=np.int64)
        found[self.fine] = self.coarse
        return found


def read_features(path: Path) -> Images:
    """The images of a file as `bough data` makes it; a `MissingDataError` where it is not such a one, or not there."""
    if not path.exists():
        where = "" if path == FEATURES else f": there is no {path}"
        raise MissingDataError(f"the features of the images are not here{where}; make them with bough data cifar100")
    return _read(path, path.stat().st_mtime_ns)


@cache
def _read(path: Path, _changed: int) -> Images:
    try:
        with np.load(path, allow_pickle=False) as file:
            missing = [name for name in _NEEDED if name not in file.files]
            if missing:
                raise ValueError(f"it has no {missing[0]!r}")
            arrays = {name: file[name] for name in _NEEDED}
            whole = all(arrays[name].dtype.kind in "iu" for name in ("fine", "coarse", "split"))
            if not whole or not np.isin(arrays["split"], (0, 1)).all():
                raise ValueError("fine, coarse and split are not whole numbers, or split is not 0 or 1")
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        why = "it is not a file of arrays" if "pickle" in str(error) else error
        raise MissingDataError(
            f"{path} is not a file of features ({why}); make one with bough data cifar100"
        ) from error
    images = Images(
        arrays["features"].astype(np.float64),
        arrays["fine"].astype(np.int64),
        arrays["coarse"].astype(np.int64),
        arrays["split"] == 0,
        tuple(map(str, arrays["fine_names"])),
        tuple(map(str, arrays["coarse_names"])),
    )
    _check(images, path)
    return images


def _check(images: Images, path: Path) -> None:
    n = len(images.features)
    trouble = ""
    if images.features.ndim != 2 or images.features.shape[1] < DIM or not np.isfinite(images.features).all():
        trouble = f"its features have shape {images.features.shape} or are not finite; (n, p) with p >= {DIM} is right"
    elif not all(column.shape == (n,) for column in (images.fine, images.coarse, images.training)):
        trouble = "fine, coarse and split are not as long as features"
    elif min(images.fine.min(initial=0), images.coarse.min(initial=0)) < 0:
        trouble = "there are negative classes"
    elif images.fine.max(initial=0) >= len(images.fine_names) or images.coarse.max(initial=0) >= len(
        images.coarse_names
    ):
        trouble = "there are classes without names"
    elif len(np.unique(np.stack([images.fine, images.coarse]), axis=1).T) != len(np.unique(images.fine)):
        trouble = "a class is in more than one super-class"
    elif any("/" in name for name in images.fine_names) or len(np.unique(images.coarse)) < len(images.coarse_names):
        trouble = "a class has a / in its name, or a super-class no images"
    else:
        for which, chosen in (("training", images.training), ("test", ~images.training)):
            counts = np.bincount(images.fine[chosen], minlength=len(images.fine_names))
            if (counts < 2).any():
                short = images.fine_names[int(np.flatnonzero(counts < 2)[0])]
                trouble = trouble or f"the class {short!r} has fewer than 2 {which} images"
    if trouble:
        raise MissingDataError(f"{path} cannot be used: {trouble}; make one with bough data cifar100")


def reduced(images: Images, reduce: Reduce, scale: Scale) -> Floats:
    """(n, 10) the features "downsampled" to d = 10, which the paper leaves open.

    "pca": the first principal components of the training images; "mean": averages of ten blocks of neighbours;
    "stride": every so many-th feature. "unit" scale makes the mean norm of the training images 1.
    """
    features, p = images.features, images.features.shape[1]
    if reduce == "pca":
        centre = features[images.training].mean(axis=0)
        _, directions = np.linalg.eigh(np.cov(features[images.training].T))
        small = (features - centre) @ directions[:, : -DIM - 1 : -1]
    elif reduce == "mean":
        edges = np.linspace(0, p, DIM + 1).astype(int)
        small = np.stack([features[:, a:b].mean(axis=1) for a, b in pairwise(edges)], axis=1)
    else:
        small = features[:, :: p // DIM][:, :DIM].copy()
    if scale == "unit":
        small = small / np.linalg.norm(small[images.training], axis=1).mean()
    return np.ascontiguousarray(small)


def read_class_tree(path: Path, classes: Sequence[str]) -> Tree:
    """A tree over the classes from a text file with one path a class, its last component the class's name."""
    lines = _checks.text_lines(path, "one path a class, one a line")
    found = [line.split("/")[-1] for line in lines]
    wrong = sorted(set(found) ^ set(classes))
    if wrong or len(found) != len(classes):
        example = f", such as {wrong[0]!r}" if wrong else ""
        raise ValueError(
            f"{path} does not have each of the {len(classes)} classes just once{example}; one a line is right"
        )
    return Tree.from_paths(lines)


# -- the problem -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ClassProblem:
    """Worlds of some super-classes, or of all."""

    images: Images
    """With features of d = 10."""
    super_classes: int | None
    """How many are drawn for a run; all where None."""
    tree: Tree | None = None
    """A tree over all classes in place of the super-classes."""

    def world(self, rounds: int, rng: np.random.Generator) -> World:
        """Super-classes, contexts and noise, drawn in this order."""
        if self.super_classes is None:
            model, truth, pool = self._everything
        else:
            n_super = len(self.images.coarse_names)
            drawn = np.sort(rng.choice(n_super, min(self.super_classes, n_super), replace=False))
            model, truth, pool = self._bandit(self._tree(drawn))
        contexts = pool[rng.integers(len(pool), size=rounds)]
        return World(model, truth, NOISE * rng.standard_normal(rounds), contexts)

    @cached_property
    def _everything(self) -> tuple[GaussianModel, Floats, Floats]:
        """The bandit of all classes, which is the same in every run."""
        return self._bandit(self._tree(np.arange(len(self.images.coarse_names))) if self.tree is None else self.tree)

    def _tree(self, super_classes: Integers) -> Tree:
        """The tree over the classes of these super-classes."""
        images, above = self.images, self.images.super_class()
        classes = {s: [images.fine_names[c] for c in np.flatnonzero(above == s)] for s in super_classes.tolist()}
        return Tree.from_nested({images.coarse_names[s]: names for s, names in classes.items()})

    def _bandit(self, tree: Tree) -> tuple[GaussianModel, Floats, Floats]:
        """The prior from training images, the parameters from test images, and the test images themselves."""
        number = {name: i for i, name in enumerate(self.images.fine_names)}
        classes = [number[str(name).split("/")[-1]] for name in tree.actions]
        training, test = ([by_class[c] for c in classes] for by_class in self._by_class)
        truth = np.array([rows.mean(axis=0) for rows in test])
        return prior_of_items(tree, training, NOISE**2), truth, np.concatenate(test)

    @cached_property
    def _by_class(self) -> tuple[list[Floats], list[Floats]]:
        """The features of the training and of the test images of each class."""
        images, found = self.images, []
        for chosen in (images.training, ~images.training):
            order = np.flatnonzero(chosen)[np.argsort(images.fine[chosen], kind="stable")]
            counts = np.bincount(images.fine[chosen], minlength=len(images.fine_names))
            found.append(np.split(images.features[order], np.cumsum(counts)[:-1]))
        return found[0], found[1]
