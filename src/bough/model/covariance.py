"""How the user says which covariance a node has: one for all, by depth, by height, by node."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bough import _checks
from bough._arrays import Floats, Nodes
from bough.model.likelihood import LARGEST
from bough.tree.levels import shown
from bough.tree.tree import Tree

_SPARE_CLASSES = 10_000  # that only other trees have, with which a prior was learned
_ROUNDING = 1e-10  # how far from symmetric and semi-definite rounding may have brought a matrix


@dataclass(frozen=True, eq=False)
class CovarianceRule:
    """Which covariance a node has; made by `by_depth`, `by_height` or `by_node`."""

    kind: Literal["depth", "height", "node"]
    values: Any
    default: Any = None


def by_depth(values: Sequence[Any] | Floats | Mapping[str, Any]) -> CovarianceRule:
    """One covariance (a number or a matrix) for each depth, the root's first, or for each level by its name.

    >>> import bough
    >>> tree = bough.Tree.balanced(branching=2, height=2)
    >>> model = bough.GaussianModel(tree, covariance=bough.by_depth([4.0, 2.0, 1.0]))
    >>> model.marginal_covariance
    array([4., 6., 6., 7., 7., 7., 7.])
    >>> shop = bough.Tree.from_paths(["tea/green", "tea/black"], levels=["kind", "drink"])
    >>> model = bough.GaussianModel(shop, covariance=bough.by_depth({"root": 4.0, "kind": 2.0, "drink": 1.0}))
    >>> model.marginal_covariance
    array([4., 6., 7., 7.])
    """
    return CovarianceRule("depth", values)


def by_height(values: Sequence[Any] | Floats) -> CovarianceRule:
    """One covariance (a number or a matrix) for each height, the leaves' first.

    >>> import bough
    >>> tree = bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])
    >>> model = bough.GaussianModel(tree, covariance=bough.by_height([1.0, 2.0, 4.0]))
    >>> model.marginal_covariance
    array([4., 6., 5., 7., 7.])
    """
    return CovarianceRule("height", values)


def by_node(values: Mapping[Any, Any] | Sequence[Any] | Floats, default: Any = None) -> CovarianceRule:
    """A covariance of its own for each node: a mapping from names, or an array in node order.

    A mapping may leave nodes out where `default` says what the rest have.

    >>> import bough
    >>> tree = bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])
    >>> model = bough.GaussianModel(tree, covariance=bough.by_node({"coffee": 9.0}, default=1.0))
    >>> model.marginal_covariance
    array([ 1.,  2., 10.,  3.,  3.])
    """
    if hasattr(values, "to_dict"):  # a pandas Series, whose index has the names
        values = values.to_dict()
    if default is not None and not isinstance(values, Mapping):
        raise ValueError("default goes with a mapping; an array has a covariance for every node already")
    return CovarianceRule("node", values, default)


@dataclass(frozen=True, eq=False, repr=False)
class ClassCovariances:
    """Covariances stored by class: node i has `table[of_node[i]]`."""

    kind: Literal["depth", "height", "node"]
    of_node: Nodes  # (V,)
    table: Floats  # (n_classes,) or (n_classes, d, d)

    def __post_init__(self) -> None:
        for array in (self.of_node, self.table):
            array.setflags(write=False)

    def __repr__(self) -> str:
        return f"by_{self.kind}({_short(self.table)})"


def resolve(rule: Any, tree: Tree, dim: int, scalar: bool) -> ClassCovariances:
    """The covariances that `rule` gives to the nodes of `tree`, checked."""
    if isinstance(rule, ClassCovariances):  # made by bough itself, and so checked already
        return rule
    if not isinstance(rule, CovarianceRule):
        shared = _checked([rule], ["covariance"], dim, scalar)
        return ClassCovariances("depth", tree.depth, np.repeat(shared, tree.height + 1, axis=0))
    if rule.kind == "node":
        return _resolve_nodes(rule, tree, dim, scalar)
    by_name = rule.kind == "depth" and isinstance(rule.values, Mapping)
    values = _of_levels(rule.values, tree) if by_name else _as_list(rule.values, f"by_{rule.kind}")
    names = tree.levels if rule.kind == "depth" else None
    if len(values) != tree.height + 1:
        size = f"height {tree.height}" if names is None else f"{len(names)} levels ({shown(names)})"
        raise ValueError(
            f"by_{rule.kind} has {len(values)} covariances; the tree has {size}, so give {tree.height + 1}"
        )
    places = [f"{rule.kind} {i}" for i in range(len(values))] if names is None else names
    table = _checked(values, [f"covariance at {place}" for place in places], dim, scalar)
    return ClassCovariances(rule.kind, tree.depth if rule.kind == "depth" else tree.node_height, table)


def _of_levels(values: Mapping[str, Any], tree: Tree) -> list[Any]:
    """Covariances that go by the names of levels, the root's first."""
    if tree.levels is None:
        raise ValueError(
            "by_depth was given a mapping, and the levels of this tree have no names; give a list of covariances, the "
            "root's first, or build the tree with levels="
        )
    odd = next((name for name in (*values, *tree.levels) if (name in values) != (name in tree.levels)), None)
    if odd is not None:
        what = f"leaves out {odd!r}" if odd in tree.levels else f"has {reprlib.repr(odd)}, which is no level"
        raise ValueError(f"by_depth {what}; give one covariance for each of {shown(tree.levels)}")
    return [values[name] for name in tree.levels]


def class_with(classes: ClassCovariances, value: Any, dim: int, scalar: bool) -> tuple[ClassCovariances, int]:
    """The class of this covariance, and the covariances with it: as they are, or with one more class."""
    checked = _checked([value], ["covariance"], dim, scalar)
    same = np.flatnonzero((classes.table == checked).reshape(len(classes.table), -1).all(axis=1))
    if len(same):
        return classes, int(same[0])
    return ClassCovariances(classes.kind, classes.of_node, np.concatenate([classes.table, checked])), len(classes.table)


def resolve_one(value: Any, what: str, dim: int | None) -> Any:
    """One covariance, checked: a number, or a matrix where there are contexts."""
    return _checked([value], [f"covariance of the {what}"], dim or 1, dim is None)[0]


def checked_classes(
    kind: Literal["depth", "height", "node"], of_node: Nodes, table: Floats, dim: int, scalar: bool
) -> ClassCovariances:
    """Covariances by class as a file has them, checked like the user's own."""
    most = len(of_node) + _SPARE_CLASSES
    if not len(table) <= most or of_node.min() < 0 or of_node.max() >= len(table):
        raise ValueError(f"the covariances do not fit the nodes (by {kind}, {len(table)} classes)")
    return ClassCovariances(kind, of_node, _checked(table, None, dim, scalar))


def rehung(classes: ClassCovariances, tree: Tree, number: Nodes, class_of: Nodes) -> ClassCovariances:
    """The covariances on another tree, to which nodes of these classes went: `number` has their numbers there, or -1.

    Where covariances go by depth or height, all nodes have that of their place. Deeper or higher places than there were
    have the same covariance as all others, where all have one. A `ValueError` where some node has none.
    """
    if classes.kind == "node":
        of_node = np.full(tree.n_nodes, -1, dtype=np.int32)
        stays = number >= 0
        of_node[number[stays]] = class_of[stays]
        without = np.flatnonzero(of_node < 0)
        if len(without):
            raise ValueError(
                f"each node has a covariance of its own here, and {tree.name(int(without[0]))!r} has none; give "
                "covariance= where one node is added, or adopt a model whose by_node has them all"
            )
        return ClassCovariances("node", of_node, classes.table)
    of_node, table = tree.depth if classes.kind == "depth" else tree.node_height, classes.table
    if tree.height >= len(table):
        check_reaches(classes, tree.height)
        table = np.repeat(table[:1], tree.height + 1, axis=0)
    return ClassCovariances(classes.kind, of_node, table)


def check_reaches(classes: ClassCovariances, place: int) -> None:
    """Refuse a depth, or height, that the covariances do not have, unless all others have the same one."""
    table = classes.table
    if place >= len(table) and not (table == table[0]).all():
        raise ValueError(
            f"by_{classes.kind} has covariances for {classes.kind} 0 to {len(table) - 1}, and there would be nodes at "
            f"{place}; adopt a model that has one for it"
        )


def _resolve_nodes(rule: CovarianceRule, tree: Tree, dim: int, scalar: bool) -> ClassCovariances:
    if not isinstance(rule.values, Mapping):
        given = _as_list(rule.values, "by_node")
        if len(given) != tree.n_nodes:
            raise ValueError(f"by_node has {len(given)} covariances; the tree has {tree.n_nodes} nodes")
        table = _checked(given, None, dim, scalar)
        return ClassCovariances("node", np.arange(tree.n_nodes, dtype=np.int32), table)
    names = list(rule.values)
    values = [rule.values[name] for name in names]
    of_node = np.full(tree.n_nodes, len(names), dtype=np.int32)
    of_node[[tree.index(name) for name in names]] = np.arange(len(names), dtype=np.int32)
    left_out = np.flatnonzero(of_node == len(names))
    if rule.default is not None:
        names.append("default")
        values.append(rule.default)
    elif len(left_out):
        raise ValueError(
            f"by_node leaves out {len(left_out)} of {tree.n_nodes} nodes, {tree.name(int(left_out[0]))!r} among them; "
            "name them all or give default="
        )
    table = _checked(values, [f"covariance of {name!r}" for name in names], dim, scalar)
    return ClassCovariances("node", of_node, table)


def _as_list(values: Any, what: str) -> Any:
    single = isinstance(values, np.ndarray) and values.ndim == 0
    if single or isinstance(values, (str, bytes, Mapping, Set)) or not hasattr(values, "__len__"):
        raise ValueError(f"{what} was given {values!r}; give a list of covariances")
    return values if isinstance(values, np.ndarray) else list(values)


def _checked(values: Any, labels: list[str] | None, dim: int, scalar: bool) -> Floats:
    """(n,) variances or (n, d, d) covariances, each finite, symmetric and positive semi-definite."""

    def label(i: int) -> str:
        return labels[i] if labels is not None else f"covariance of node {i}"

    table = _stacked(values, label, dim, scalar)
    sound = (np.abs(table) < LARGEST).all(axis=tuple(range(1, table.ndim)))
    if not sound.all():
        i = int(np.flatnonzero(~sound)[0])
        raise ValueError(f"the {label(i)} is {_short(table[i])}; covariances are finite and below {LARGEST:g}")
    if scalar:
        if (table < 0).any():
            i = int(np.flatnonzero(table < 0)[0])
            raise ValueError(f"the {label(i)} is {table[i]}; a variance is zero or positive")
        return table
    size = np.abs(table).max(axis=(1, 2))
    lopsided = np.abs(table - table.transpose(0, 2, 1)).max(axis=(1, 2)) > _ROUNDING * size
    if lopsided.any():
        i = int(np.flatnonzero(lopsided)[0])
        raise ValueError(f"the {label(i)} is not symmetric: {_short(table[i])}")
    table = (table + table.transpose(0, 2, 1)) / 2
    smallest = np.linalg.eigvalsh(table)[:, 0]
    if (smallest < -_ROUNDING * size).any():
        i = int(np.flatnonzero(smallest < -_ROUNDING * size)[0])
        raise ValueError(
            f"the {label(i)} is not positive semi-definite, its smallest eigenvalue is {smallest[i]:.3g}: "
            f"{_short(table[i])}"
        )
    return table


def _stacked(values: Any, label: Any, dim: int, scalar: bool) -> Floats:
    try:
        plain = _checks.floats(values, "covariances")
    except ValueError:
        plain = np.empty(0)  # ragged, such as numbers beside matrices: taken one by one
    if plain.shape == (len(values),):
        return plain if scalar else _multiples(plain, dim)
    if not scalar and plain.shape == (len(values), dim, dim):
        return plain
    rows = []
    for i, value in enumerate(values):
        try:
            one = _checks.floats(value, label(i))
        except ValueError:
            raise ValueError(f"the {label(i)} is {value!r}; give a number or a matrix") from None
        if one.ndim == 0 and not scalar:
            one = _multiples(one[None], dim)[0]
        if one.shape != (() if scalar else (dim, dim)):
            wanted = "a number, as the mean is one" if scalar else f"a number or a {dim} x {dim} matrix, as the mean"
            raise ValueError(f"the {label(i)} has shape {one.shape}; give {wanted}, or by_depth, by_height or by_node")
        rows.append(one)
    return np.array(rows)


def _multiples(variances: Floats, dim: int) -> Floats:
    """(n, d, d) the multiples of the identity that numbers stand for."""
    table = np.zeros((len(variances), dim, dim))
    table[:, range(dim), range(dim)] = variances[:, None]  # not by a product, which makes NaN of infinity times 0
    return table


def _short(value: Floats) -> str:
    return np.array2string(value, threshold=16, precision=4).replace("\n", "")


def factors(table: Floats) -> Floats:
    """L with L L' = Sigma for each covariance: the standard deviation, or (d, d) where d > 1."""
    found = _factors(table)
    found.setflags(write=False)
    return found


def _factors(table: Floats) -> Floats:
    if table.ndim == 1:
        return np.sqrt(table)
    try:
        return np.asarray(np.linalg.cholesky(table), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.array([_factor(covariance) for covariance in table])


def _factor(covariance: Floats) -> Floats:
    try:
        return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(covariance)
        noise = len(values) * np.finfo(float).eps * max(values[-1], 0.0)
        # Directions without variance must get exactly none, not the root of a rounding error.
        return np.asarray(vectors * np.sqrt(np.where(values > noise, values, 0.0)))
