"""TreePrior: a Gaussian prior on the parameters of all nodes of a tree; what every model has in common."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np

from bough import _checks, _seeds
from bough._arrays import Floats, Integers, Nodes
from bough.model.covariance import ClassCovariances, factors, rehung, resolve
from bough.model.effects import Effects
from bough.model.encoders import LostEncoder, check_same_numbers, checked_features
from bough.model.feature_names import shown
from bough.model.likelihood import LARGEST
from bough.tree.tree import Tree


@dataclass(frozen=True, eq=False, repr=False)
class TreePrior:
    """The root's parameter is drawn around `mean`, every other node's around its parent's, each with its covariance."""

    tree: Tree
    mean: Any = 0.0
    covariance: Any = 1.0
    features: Any = field(default=None, kw_only=True)
    factors: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.tree, Tree):
            raise ValueError(f"tree is a {type(self.tree).__name__}; give a bough.Tree")
        object.__setattr__(self, "mean", _checked_mean(self.mean))
        classes = resolve(self.covariance, self.tree, self.dim, self.is_scalar)
        object.__setattr__(self, "_classes", classes)
        features, names = checked_features(self.features, None if self.is_scalar else self.dim)
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "_feature_names", names)
        effects = None if _checks.is_nothing(self.factors) else Effects.checked(self.factors, self.tree)
        object.__setattr__(self, "factors", effects.factors if effects else {})
        object.__setattr__(self, "_effects", effects)

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
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the entries of a parameter, and of a context; None where they have none.

        >>> import bough
        >>> tree = bough.Tree.balanced(2, 2)
        >>> bough.GaussianModel(tree, mean=[0.0, 0.0], features=["intercept", "age"]).feature_names
        ('intercept', 'age')
        """
        return self._feature_names  # type: ignore[attr-defined,no-any-return]

    def with_features_of(self, other: TreePrior) -> Self:
        """The model with the features of another where it has none; a `ValueError` where it has other ones.

        >>> import bough
        >>> tree = bough.Tree.balanced(2, 2)
        >>> named = bough.GaussianModel(tree, mean=[0.0, 0.0], features=["intercept", "age"])
        >>> bough.GaussianModel(tree, mean=[1.0, 1.0]).with_features_of(named).feature_names
        ('intercept', 'age')
        """
        if other.feature_names is None:
            return self
        if self.feature_names is None:
            return replace(self, features=other.features)
        if self.feature_names == other.feature_names:
            check_same_numbers(self.features, other.features)
            return replace(self, features=other.features) if isinstance(self.features, LostEncoder) else self
        raise ValueError(
            f"the model has the features {shown(self.feature_names)}, and what was observed came with "
            f"{shown(other.feature_names)}; give a model with these, in this order"
        )

    @property
    def effects(self) -> Effects | None:
        """The effects of the crossed factors, as the engine reads them; None where there are none."""
        return self._effects  # type: ignore[attr-defined,no-any-return]

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

    def independent(self) -> Self:
        """The model of independent actions, as TS has it, with every action's marginal prior kept.

        The root is known exactly and each action carries its whole marginal covariance.

        >>> import bough
        >>> bough.GaussianModel(bough.Tree.balanced(2, 2)).independent().marginal_covariance
        array([0., 3., 3., 3., 3.])
        """
        return self._star(keep_root=False)

    def flat(self) -> Self:
        """The model of actions below one root, as FlatTS has it, with every action's marginal prior kept.

        The root stays as it is and each action carries the rest of its marginal covariance.

        >>> import bough
        >>> bough.GaussianModel(bough.Tree.balanced(2, 2)).flat().marginal_covariance
        array([1., 3., 3., 3., 3.])
        """
        return self._star(keep_root=True)

    def _refuse_factors(self, what: str, instead: str = "give one without") -> None:
        """A `ValueError` where there are crossed factors, of something that does not know of them."""
        if self.effects is not None:
            raise ValueError(
                f"{what} with crossed factors, and the model has {', '.join(map(repr, self.factors))}; {instead}"
            )

    def _star(self, keep_root: bool) -> Self:
        tree = self.tree
        if self.effects is not None:
            raise ValueError(
                f"the model has factors ({', '.join(self.factors)}), which tie the actions to each other beside the "
                "tree; there is no model of it without the tree. Give a model without factors, or use HierTS"
            )
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
        return replace(self, tree=tree.star(), covariance=classes)

    def rehung(self, tree: Tree, number: Nodes, class_of: Nodes | None = None) -> Self:
        """The same prior on another tree, where the nodes of this one are at `number` (-1: nowhere).

        `class_of` has the covariance classes of those nodes, where they are not just those of this tree.

        >>> import bough
        >>> tree = bough.Tree.from_nested(["left", "right"])
        >>> model = bough.GaussianModel(tree, covariance=bough.by_depth([4.0, 1.0]))
        >>> model.rehung(tree.edited(add={"middle": ""}), range(3)).marginal_covariance
        array([4., 5., 5., 5.])
        """
        places = np.asarray(number, dtype=np.int32)
        classes = rehung(self.classes, tree, places, self.classes.of_node if class_of is None else class_of)
        if self.effects is None:
            return replace(self, tree=tree, covariance=classes)
        return replace(
            self, tree=tree, covariance=classes, factors=self.effects.moved(tree, self._old_places(tree, places))
        )

    def _old_places(self, tree: Tree, number: Nodes) -> Integers:
        """(K,) which of this tree's actions each of another tree is, where nodes have these numbers there; or -1."""
        leaves = self.tree.leaves
        new = number[leaves]
        kept = np.flatnonzero(new >= 0)
        into = np.searchsorted(tree.leaves, new[kept])
        into[into == tree.n_actions] = 0
        stays = tree.leaves[into] == new[kept]
        places = np.full(tree.n_actions, -1, dtype=np.int64)
        places[into[stays]] = kept[stays]
        return places

    def is_same_prior(self, other: TreePrior) -> bool:
        """Whether the other has the same tree and mean, the same covariance at every node, and the same factors.

        >>> import bough
        >>> star = bough.GaussianModel(bough.Tree.balanced(3, 1))
        >>> star.is_same_prior(star.flat()), star.is_same_prior(star.independent())
        (True, False)
        """
        if self is other:
            return True
        mine, theirs = self.classes, other.classes
        return (
            self.tree is other.tree
            and np.array_equal(self.mean, other.mean)
            and np.array_equal(mine.table[mine.of_node], theirs.table[theirs.of_node])
            and (other.effects is None if self.effects is None else self.effects.is_same(other.effects))
        )

    # -- draws ---------------------------------------------------------------------------------

    def draw(self, rng: Any = None, *, effects: bool = False) -> Floats:
        """True parameters drawn from the prior, in node order: (V,) or (V, d).

        `rng` is anything that `numpy.random.default_rng` takes. With ``effects=True`` the effects of crossed factors
        come after the nodes' parameters, factor by factor, in the order of their levels.

        >>> import bough
        >>> bough.GaussianModel(bough.Tree.balanced(2, 1)).draw(0).round(2)
        array([ 0.13, -0.01,  0.77])
        """
        tree, of_node, generator = self.tree, self.classes.of_node, _seeds.generator(rng)
        shape = (tree.n_nodes,) if self.is_scalar else (tree.n_nodes, self.dim)
        parameters = generator.standard_normal(shape)
        starts = tree.level_start.tolist()
        for start, end in pairwise(starts):
            step = self._prior_step(of_node[start:end], parameters[start:end])
            parameters[start:end] = step + (parameters[tree.parent[start:end]] if start else self.mean)
        if not _checks.flag("effects", effects) or self.effects is None:
            return parameters
        return np.concatenate([parameters, generator.standard_normal(self.effects.n) * np.sqrt(self.effects.variance)])

    def _prior_step(self, classes: Nodes, normals: Floats) -> Floats:
        """What nodes of these classes add to their parents, from standard normals."""
        if self.is_scalar:
            return np.asarray(self.class_factors[classes] * normals)
        if (classes == classes[0]).all():
            return np.asarray(normals @ self.class_factors[classes[0]].T)
        return np.asarray(np.einsum("nij,nj->ni", self.class_factors[classes], normals))


def _checked_mean(mean: Any) -> float | Floats:
    given = _checks.floats(mean, "mean")
    if given.ndim > 1 or given.size == 0:
        raise ValueError(f"mean has shape {given.shape}; give a number, or a vector for a contextual model")
    if not (np.abs(given) < LARGEST).all():
        raise ValueError(f"mean is {mean!r}; it must be finite and below {LARGEST:g}")
    if given.ndim == 0:
        return float(given)
    vector = given.copy()
    vector.setflags(write=False)
    return vector
