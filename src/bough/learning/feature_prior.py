"""prior_from_features(...): a prior for a contextual model from features of items whose actions are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from bough import _checks
from bough._arrays import Floats, Integers
from bough.data.contexts import without_model
from bough.data.statistics import Statistics
from bough.learning.fit import fit_prior
from bough.model.covariance import by_depth, by_node
from bough.model.gaussian import GaussianModel
from bough.tree.tree import Tree


def prior_from_features(
    tree: Tree,
    features: Any,
    action: Any,
    *,
    spread: Literal["items", "means"] = "items",
    noise_variance: float = 1.0,
    penalty: float | None = 2.0,
) -> GaussianModel:
    """A contextual model from the features of items, one row an item, and the action that each belongs to.

    With ``spread="items"`` this is the prior of section 6.2 of the paper: the mean of all rows, and for every node the
    covariance of the rows at or below it. Those are fits to single items, and so wider than the spread of the
    parameters, which are means of items. ``spread="means"`` fits what the model asks for, the covariances of a node's
    mean around its parent's, one for each depth, by the evidence, with the sampling error of the means taken off; the
    root, of which there is one, is then known. `noise_variance` is that of a reward, and `penalty` as in `fit_prior`.
    Where `features` is a frame, the model keeps the names of its columns.

    >>> import bough, numpy
    >>> tree = bough.Tree.from_nested({"animal": ["cat", "dog"], "plant": ["oak", "fir"]})
    >>> centre = {"cat": [1.0, 0.0], "dog": [1.0, 0.5], "oak": [-1.0, 0.0], "fir": [-1.0, 0.5]}
    >>> labels = list(centre) * 50
    >>> features = numpy.random.default_rng(0).normal([centre[label] for label in labels], 0.5)
    >>> items = bough.prior_from_features(tree, features, labels)
    >>> means = bough.prior_from_features(tree, features, labels, spread="means")
    >>> numpy.diag(items.marginal_covariance[tree.index("cat")]).round(1)
    array([1.6, 0.8])
    >>> numpy.diag(means.marginal_covariance[tree.index("cat")]).round(1)
    array([0.8, 0.2])
    """
    if not isinstance(tree, Tree):
        raise ValueError(f"tree is a {type(tree).__name__}; give a bough.Tree")
    _checks.one_of("spread", spread, ("items", "means"))
    given, names = without_model(features)
    rows = _checks.floats(given, "features")
    if rows.ndim != 2 or not len(rows):
        raise ValueError(f"the features have shape {rows.shape}; give (n, d), a row an item")
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        row = int(np.flatnonzero(~finite)[0])
        raise ValueError(f"the features in row {row} are {rows[row]}; features must be finite")
    leaves = tree.action_nodes(_checks.as_names(action))
    if len(leaves) != len(rows):
        raise ValueError(f"action has length {len(leaves)} and features {len(rows)}; give one for each item")
    place = np.searchsorted(tree.leaves, leaves)
    counts = np.bincount(place, minlength=tree.n_actions)
    if (counts < 2).any():
        short = int(np.flatnonzero(counts < 2)[0])
        raise ValueError(
            f"the action {tree.actions[short]!r} has {counts[short]} rows of features; give at least 2 for every action"
        )
    if spread == "items":
        order = np.argsort(place, kind="stable")
        items = np.split(rows[order], np.cumsum(counts)[:-1])
        return replace(prior_of_items(tree, items, noise_variance), features=names)
    centre = rows.mean(axis=0)
    fitted = _fitted_means(tree, rows - centre, place, counts, centre, noise_variance, penalty)
    return replace(fitted, features=names)


def prior_of_items(tree: Tree, items: Sequence[Floats], noise_variance: float) -> GaussianModel:
    """The prior of the paper's section 6.2, from the features of each action's items, in the order of `tree.actions`.

    Every node's covariance is merged from those of its children, so that nothing is lost where means are far apart.
    """
    d, leaves = items[0].shape[1], tree.leaves
    count, mean = np.zeros(tree.n_nodes), np.zeros((tree.n_nodes, d))
    scatter = np.zeros((tree.n_nodes, d, d))
    for leaf, rows in zip(leaves.tolist(), items, strict=True):
        count[leaf], mean[leaf] = len(rows), rows.mean(axis=0)
        centred = rows - mean[leaf]
        scatter[leaf] = centred.T @ centred
    for start, end in tree._levels_upward():
        if start == 0:
            break
        above, here = tree.parent[start:end], slice(start, end)
        inner = np.unique(above)
        np.add.at(count, above, count[here])
        np.add.at(mean, above, count[here, None] * mean[here])
        mean[inner] /= count[inner, None]
        off = mean[here] - mean[above]
        between = count[here, None, None] * off[:, :, None] * off[:, None, :]
        np.add.at(scatter, above, scatter[here] + between)
    return GaussianModel(tree, mean[0], by_node(scatter / count[:, None, None]), noise_variance)


def _fitted_means(
    tree: Tree,
    rows: Floats,
    place: Integers,
    counts: Integers,
    centre: Floats,
    noise_variance: float,
    penalty: float | None,
) -> GaussianModel:
    """The covariances between nodes, where an item's features are its action's mean plus noise.

    In coordinates where that noise is standard, feature j of an item is a reward in the context e_j, so that the
    features of all items are a log, and its evidence says what the means' covariances are.
    """
    n, d = rows.shape
    total = np.zeros((len(counts), d))
    np.add.at(total, place, rows)
    within = rows - (total / counts[:, None])[place]
    try:
        root = np.linalg.cholesky(within.T @ within / (n - len(counts)))
    except np.linalg.LinAlgError:
        raise ValueError(
            "some features are constant, or combinations of others, within the actions; drop or reduce them first"
        ) from None
    white: Floats = np.linalg.solve(root, rows.T).T.astype(np.float64)
    sums: Floats = np.linalg.solve(root, total.T).T.astype(np.float64)
    squares = np.bincount(place, np.square(white).sum(axis=1), minlength=len(counts)).astype(np.float64)
    items = counts.astype(np.float64)
    log = Statistics(
        np.asarray(tree.actions), d * items, sums.sum(axis=1), squares, sums, items[:, None, None] * np.eye(d)
    )
    fit = fit_prior(tree, log, noise=1.0, penalty=penalty)
    covariances = [root @ covariance @ root.T for covariance in fit.covariances.values()]
    return GaussianModel(tree, centre + root @ fit.mean, by_depth(covariances), noise_variance)
