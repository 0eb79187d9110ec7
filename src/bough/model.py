"""GaussianModel: the prior on a tree, and the noise of a reward."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from bough import seeds, storage
from bough.arrays import Floats, Nodes
from bough.covariance import LARGEST, ClassCovariances, checked_classes, factors, resolve
from bough.tree import Tree
from bough.treefile import restored_tree, tree_arrays

_KIND = "model"
_VERSION = 1


@dataclass(frozen=True, eq=False, repr=False)
class GaussianModel:
    """A Gaussian hierarchical prior on a tree, with Gaussian rewards.

    The root's parameter is drawn around `mean`, every other node's around its parent's, each with its own
    covariance; a reward is the action's parameter (or its product with the context) plus noise of variance
    `noise_variance`.

    A number for `mean` makes a K-armed bandit: parameters are numbers and no context is taken. A vector, also one of
    length 1, makes a contextual linear bandit with contexts of that length. `covariance` is a number or a matrix
    for every node, or `by_depth`, `by_height`, `by_node`; a number stands for that multiple of the identity, and
    zeros are fine.

    >>> import bough
    >>> tree = bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])
    >>> bough.GaussianModel(tree, mean=[0.0, 0.0], covariance=bough.by_depth([4.0, 2.0, 1.0]))
    GaussianModel(n_actions=3, height=2, dim=2, noise_variance=1.0)
    """

    tree: Tree
    mean: Any = 0.0
    covariance: Any = 1.0
    noise_variance: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.tree, Tree):
            raise ValueError(f"tree is a {type(self.tree).__name__}; give a bough.Tree")
        object.__setattr__(self, "mean", _checked_mean(self.mean))
        object.__setattr__(self, "noise_variance", _checked_noise(self.noise_variance))
        classes = resolve(self.covariance, self.tree, self.dim, self.is_scalar)
        object.__setattr__(self, "_classes", classes)

    def __repr__(self) -> str:
        return (
            f"GaussianModel(n_actions={self.tree.n_actions}, height={self.tree.height}, dim={self.dim}, "
            f"noise_variance={self.noise_variance})"
        )

    @property
    def is_scalar(self) -> bool:
        """Whether parameters are numbers, so that no context is taken."""
        return isinstance(self.mean, float)

    @property
    def dim(self) -> int:
        """The length of a parameter; 1 in a K-armed bandit.

        >>> import bough
        >>> bough.GaussianModel(bough.Tree.balanced(2, 2), mean=[0.0, 1.0, 2.0]).dim
        3
        """
        return 1 if self.is_scalar else len(self.mean)

    @property
    def classes(self) -> ClassCovariances:
        """The nodes' covariances by class, as the engine reads them."""
        return self._classes  # type: ignore[attr-defined,no-any-return]

    @cached_property
    def class_factors(self) -> Floats:
        """For each class, L with L L' = Sigma: (n_classes,) or (n_classes, d, d)."""
        return factors(self.classes.table)

    @cached_property
    def marginal_covariance(self) -> Floats:
        """(V,) or (V, d, d): each node's covariance before any observation.

        >>> import bough
        >>> bough.GaussianModel(bough.Tree.balanced(2, 1)).marginal_covariance
        array([1., 2., 2.])
        """
        path_of_node, below_root = self._path_sums
        marginal = (self._root_covariance + below_root)[path_of_node]
        marginal.setflags(write=False)
        return marginal

    @property
    def _root_covariance(self) -> Floats:
        return self.classes.table[self.classes.of_node[0]]  # type: ignore[no-any-return]

    @cached_property
    def _path_sums(self) -> tuple[Nodes, Floats]:
        """Which path each node ends, and the sum of the covariances on it without the root's.

        Paths with the same classes count as one, so there are few where covariances go by depth or height,
        however many nodes. The root's covariance is left out, not taken off later, to lose no precision.
        """
        tree, classes = self.tree, self.classes
        path_of_node = np.zeros(tree.n_nodes, dtype=np.int32)
        sums = [np.zeros_like(classes.table[:1])]
        first_above, n_paths = 0, 1
        starts = tree.level_start.tolist()
        for start, end in pairwise(starts[1:]):
            above = path_of_node[tree.parent[start:end]].astype(np.int64)
            key = above * len(classes.table) + classes.of_node[start:end]
            distinct, inverse = np.unique(key, return_inverse=True)
            above, class_here = np.divmod(distinct, len(classes.table))
            sums.append(sums[-1][above - first_above] + classes.table[class_here])
            path_of_node[start:end] = n_paths + inverse
            first_above, n_paths = n_paths, n_paths + len(distinct)
        return path_of_node, np.concatenate(sums)

    def independent(self) -> GaussianModel:
        """The model of independent actions, as TS has it, with every action's marginal prior kept.

        The root is known exactly and each action carries its whole marginal covariance.

        >>> import bough
        >>> bough.GaussianModel(bough.Tree.balanced(2, 2)).independent().marginal_covariance
        array([0., 3., 3., 3., 3.])
        """
        return self._star(keep_root=False)

    def flat(self) -> GaussianModel:
        """The model of actions below one root, as FlatTS has it, with every action's marginal prior kept.

        The root stays as it is and each action carries the rest of its marginal covariance.

        >>> import bough
        >>> bough.GaussianModel(bough.Tree.balanced(2, 2)).flat().marginal_covariance
        array([1., 3., 3., 3., 3.])
        """
        return self._star(keep_root=True)

    def _star(self, keep_root: bool) -> GaussianModel:
        tree = self.tree
        if tree.height == 0:  # one action and nothing above it
            return self
        path_of_node, below_root = self._path_sums
        paths, path_of_leaf = np.unique(path_of_node[tree.leaves], return_inverse=True)
        root, leaves = self._root_covariance, below_root[paths]
        if not keep_root:
            root, leaves = np.zeros_like(root), root + leaves
        table = np.concatenate([root[None], leaves])
        of_node = np.concatenate([[0], 1 + path_of_leaf]).astype(np.int32)
        classes = ClassCovariances("node", of_node, table)
        return GaussianModel(tree.star(), self.mean, classes, self.noise_variance)

    # -- files ---------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tree, the prior and the noise to one file, whole or not at all.

        >>> import bough, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.bough"
        >>> bough.GaussianModel(bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])).save(path)
        >>> bough.GaussianModel.load(path)
        GaussianModel(n_actions=3, height=2, dim=1, noise_variance=1.0)
        """
        header, arrays = self.contents()
        storage.write(path, {**header, "kind": _KIND, "version": _VERSION}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> GaussianModel:
        """The model that `save` wrote; a `ValueError` where the file is not such a one, or damaged."""
        header, arrays = storage.read(path, _KIND, _VERSION)
        try:
            return cls.from_contents(header, arrays)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a complete model file (missing or odd: {error})") from error

    def contents(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The header and the arrays that a file keeps of a model."""
        header = {
            "scalar": self.is_scalar,
            "noise_variance": self.noise_variance,
            "covariance": self.classes.kind,
        }
        arrays = {"mean": np.asarray(self.mean), "covariances": self.classes.table, **tree_arrays(self.tree)}
        if self.classes.kind == "node":
            arrays["covariance_of_node"] = self.classes.of_node
        return header, arrays

    @classmethod
    def from_contents(cls, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> GaussianModel:
        """The model that `contents` took apart, checked like the user's own."""
        tree, kind = restored_tree(arrays), header["covariance"]
        by_tree = {"depth": "depth", "height": "node_height"}
        of_node = getattr(tree, by_tree[kind]) if kind in by_tree else arrays["covariance_of_node"]
        mean = float(arrays["mean"]) if header["scalar"] else arrays["mean"]
        classes = checked_classes(kind, of_node, arrays["covariances"], np.size(mean), header["scalar"])
        return cls(tree, mean, classes, header["noise_variance"])

    # -- draws ---------------------------------------------------------------------------------

    def draw(self, rng: Any = None) -> Floats:
        """True parameters drawn from the prior, in node order: (V,) or (V, d).

        `rng` is anything that `numpy.random.default_rng` takes.

        >>> import bough
        >>> bough.GaussianModel(bough.Tree.balanced(2, 1)).draw(0).round(2)
        array([ 0.13, -0.01,  0.77])
        """
        tree, of_node = self.tree, self.classes.of_node
        shape = (tree.n_nodes,) if self.is_scalar else (tree.n_nodes, self.dim)
        parameters = seeds.generator(rng).standard_normal(shape)
        starts = tree.level_start.tolist()
        for start, end in pairwise(starts):
            step = self._prior_step(of_node[start:end], parameters[start:end])
            parameters[start:end] = step + (parameters[tree.parent[start:end]] if start else self.mean)
        return parameters

    def _prior_step(self, classes: Nodes, normals: Floats) -> Floats:
        """What nodes of these classes add to their parents, from standard normals."""
        if self.is_scalar:
            return np.asarray(self.class_factors[classes] * normals)
        if (classes == classes[0]).all():
            return np.asarray(normals @ self.class_factors[classes[0]].T)
        return np.asarray(np.einsum("nij,nj->ni", self.class_factors[classes], normals))


def _checked_mean(mean: Any) -> float | Floats:
    try:
        given = np.asarray(float("x") if isinstance(mean, str) else mean, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"mean is {mean!r}; give a number, or a vector for a contextual model") from None
    if given.ndim > 1 or given.size == 0:
        raise ValueError(f"mean has shape {given.shape}; give a number, or a vector for a contextual model")
    if not (np.abs(given) < LARGEST).all():
        raise ValueError(f"mean is {mean!r}; it must be finite and below {LARGEST:g}")
    if given.ndim == 0:
        return float(given)
    vector = given.copy()
    vector.setflags(write=False)
    return vector


def _checked_noise(noise_variance: Any) -> float:
    try:
        value = float(noise_variance)
    except (TypeError, ValueError, OverflowError):
        value = float("nan")
    if not 1.0 / LARGEST < value < LARGEST:
        raise ValueError(
            f"noise_variance is {noise_variance!r}; give a positive, finite number, "
            f"between {1 / LARGEST:g} and {LARGEST:g}"
        )
    return value
