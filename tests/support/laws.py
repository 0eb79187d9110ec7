"""Whether two ways of deciding have the same law: actions by chi-squared, values by Kolmogorov-Smirnov."""

import numpy as np
from scipy.stats import chi2_contingency, ks_2samp

import bough

FALSE_ALARM = 1e-4
UNEVEN = bough.Tree.from_paths(
    ["a/b/c", "a/b/d", "a/e", "f", "g/h", "g/i/j/k", "g/i/j/l", "m/n/o", "m/n/p", "m/q", "r/s/t/u/v"]
)
BALANCED = bough.Tree.balanced(3, 3)


def observed(model, n, seed=0):
    """A posterior that has seen n rewards of actions taken at random."""
    posterior = bough.Posterior(model)
    rng = np.random.default_rng(seed)
    actions = rng.choice(np.asarray(model.tree.actions), n)
    posterior.update(actions, 2 * rng.normal(size=n), None if model.is_scalar else rng.normal(size=(n, model.dim)))
    return posterior


def drawn(posterior, context, n, k=1, among=None, seed=7):
    """(n, k) the nodes and the scores of the k best, by drawing everything; ties in random order."""
    rng = np.random.default_rng(seed)
    leaves = posterior.model.tree.leaves if among is None else np.sort(posterior.model.tree.action_nodes(among))
    draws = posterior.sample(rng, size=n)[:, leaves]
    scores = draws if context is None else np.einsum("nkd,d->nk", draws, context)
    mixed = np.argsort(rng.random(scores.shape), axis=1)
    order = np.argsort(-np.take_along_axis(scores, mixed, axis=1), axis=1, kind="stable")[:, :k]
    best = np.take_along_axis(mixed, order, axis=1)
    return leaves[best], np.take_along_axis(scores, best, axis=1)


def p_of_actions(ours, reference):
    """That rows of nodes come from one law: rare ones are pooled."""
    names, code = np.unique(np.concatenate([ours, reference]), axis=0, return_inverse=True)
    code = code.ravel()
    counts = np.array([np.bincount(part, minlength=len(names)) for part in np.split(code, [len(ours)])])
    rare = counts.sum(axis=0) < 20
    pooled = np.column_stack([counts[:, ~rare], counts[:, rare].sum(axis=1)])
    pooled = pooled[:, pooled.sum(axis=0) > 0]
    return chi2_contingency(pooled).pvalue if pooled.shape[1] > 1 else 1.0


def p_of_scores(ours, reference):
    return min(ks_2samp(a, b).pvalue for a, b in zip(ours.T, reference.T, strict=True))
