"""A posterior at one moment, as plain arrays: the tree, the prior by class, and the laws of the touched nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from bough._arrays import Flags, Floats, Integers, Nodes

if TYPE_CHECKING:
    from bough.inference.scalar import ScalarEngine
    from bough.inference.vector import VectorEngine
    from bough.model.model import Model
    from bough.posterior import Posterior

WIDEST = 1e6
"""Variances that are further apart than this are computed with 64 bits."""


class Frozen(NamedTuple):
    """What decisions are made from; parameters are deviations from the prior mean, divided by `unit`.

    A touched node is A theta_p + o + F n, with n standard normal.
    """

    parent: Nodes
    """(V,)"""
    child_start: Nodes
    """(V + 1,)"""
    level_start: Nodes
    """(levels + 1,) the first node of each depth."""
    class_of_node: Nodes
    """(V,)"""
    factor: Floats
    """(n_classes, d, d) a root of each class's covariance."""
    is_zero: Flags
    """(n_classes,) whether nodes of a class are where their parents are."""
    mean: Floats
    """(d,) the prior mean, as it was given."""
    unit: Floats
    """(d,) powers of two, about the size of each coordinate; what a context is multiplied by."""
    touched: Nodes
    """(T,) node numbers."""
    gain: Floats
    """(T, d, d) A."""
    offset: Floats
    """(T, d) o."""
    root: Floats
    """(T, d, d) F."""
    retired: Nodes
    """The actions that are never chosen."""
    is_scalar: bool
    """Whether decisions take no contexts."""

    @property
    def dim(self) -> int:
        """How many numbers a parameter has."""
        return int(self.factor.shape[1])

    @property
    def leaves(self) -> Nodes:
        """(K,) the nodes of the actions."""
        return np.flatnonzero(np.diff(self.child_start) == 0).astype(np.int32)

    @property
    def may_tie(self) -> bool:
        """Whether some covariance is singular and not zero, so that actions tie in some contexts and not in others."""
        values = np.linalg.svd(self.factor, compute_uv=False)
        return bool(((values[:, -1] <= 1e-6 * values[:, 0]) & (values[:, 0] > 0.0)).any())

    def spread(self) -> float:
        """How far variances, and squares of offsets, are apart: the largest over the smallest that is not zero."""
        sizes = [np.linalg.svd(roots, compute_uv=False).ravel() ** 2 for roots in (self.factor, self.root)]
        variances = np.concatenate(sizes)
        smallest = variances[variances > 1e-300].min(initial=np.inf)
        largest = max(variances.max(initial=0.0), float(np.square(self.offset).max(initial=0.0)))
        return largest / smallest if smallest < np.inf else 1.0

    def explored(self, factor: float) -> Frozen:
        """The same with all deviations from the posterior mean times a factor."""
        return self if factor == 1.0 else self._replace(factor=factor * self.factor, root=factor * self.root)


def freeze(posterior: Posterior) -> tuple[Frozen, Model]:
    """The posterior as it is now, with what was added and moved in its tree, and the model on that tree."""
    twin = posterior._twin()
    model = twin.model  # which takes changes into the tree
    model._refuse_factors("batches are not laid out for a model")
    engine, tree = twin._engine, model.tree
    if not engine.is_normal:
        raise ValueError(
            "the model has a noise variance per action, and a batch on a device draws normal laws alone; decide on the "
            "CPU, or give the model noise_variance"
        )
    nodes = engine.slots.node.copy()
    gain: Any
    offset: Any
    root: Any
    if model.is_scalar:
        gain, offset, root = cast("ScalarEngine", engine).laws(nodes)
        gain, offset, root = gain[:, None, None], offset[:, None], root[:, None, None]
        factor = np.asarray(model.class_factors)[:, None, None]
    else:
        gain, offset, root = cast("VectorEngine", engine).slot_laws()
        factor = np.asarray(model.class_factors)
    unit = _units(factor, tree.height)
    frozen = Frozen(
        tree.parent, tree.child_start, np.asarray(tree.level_start), model.classes.of_node, factor / unit[:, None],
        np.asarray(~factor.any(axis=(1, 2))),
        np.atleast_1d(np.asarray(model.mean, dtype=np.float64)), unit, nodes,
        gain * unit / unit[:, None], offset / unit, root / unit[:, None],
        np.array(sorted(twin._retired), dtype=np.int32), model.is_scalar,
    )  # fmt: skip
    return frozen, model


def _units(factor: Floats, height: int) -> Floats:
    """(d,) powers of two near the widest prior deviation of each coordinate."""
    widest = np.sqrt(np.square(factor).sum(axis=2).max(axis=0) * (height + 1))
    return np.asarray(np.where(widest > 0.0, np.exp2(np.rint(np.log2(np.where(widest > 0.0, widest, 1.0)))), 1.0))


def allowed(frozen: Frozen, among: Nodes | None) -> Integers:
    """(K,) 1 for each action that may be chosen: of these, or of all but the retired."""
    leaves = frozen.leaves
    flags = np.zeros(len(leaves), dtype=np.int64)
    if among is not None:
        flags[np.searchsorted(leaves, among)] = 1
    else:
        flags[:] = 1
    flags[np.searchsorted(leaves, frozen.retired)] = 0
    return flags
