"""A crossed log, and gpboost's fit of it: what bough's fit is timed against."""

import time

import numpy as np

import bough

BRANCHING = {10_000: (10, 10, 100), 100_000: (10, 100, 100)}


def crossed_model(n_actions, n_levels):
    """Actions below three levels of a tree, each with one of the levels of a factor, drawn at random."""
    a, b, c = BRANCHING[n_actions]
    first, second = 1 + a, 1 + a + a * b
    tree = bough.Tree.from_parents(
        [-1] + [0] * a + [1 + i // b for i in range(a * b)] + [first + i // c for i in range(a * b * c)]
    )
    assert tree.n_nodes == second + n_actions
    brands = np.random.default_rng(0).integers(n_levels, size=n_actions)
    factor = bough.Factor(brands.tolist(), levels=list(range(n_levels)), variance=0.5)
    return bough.GaussianModel(tree, 0.0, bough.by_depth([0.0, 0.6, 0.4, 0.3]), 1.0, factors={"brand": factor})


def crossed_log():
    """10^4 actions, 500 levels, 5 x 10^4 rows."""
    model, rng = crossed_model(10_000, 500), np.random.default_rng(2)
    tree, effects = model.tree, model.effects
    drawn = model.draw(rng, effects=True)
    scores = drawn[tree.leaves] + effects.totals(drawn[tree.n_nodes :])
    places = rng.integers(tree.n_actions, size=50_000)
    return tree, effects.labels, tree.leaves[places], 2.0 + scores[places] + rng.normal(size=50_000)


def by_gpboost(tree, brands, actions, rewards, method):
    """The seconds that gpboost's fit takes, its variances (the noise first), and its log likelihood."""
    import gpboost

    above = tree.parent[actions]
    levels = brands[np.searchsorted(tree.leaves, actions)]
    groups = np.column_stack([tree.parent[above], above, actions, levels])
    model = gpboost.GPModel(group_data=groups, likelihood="gaussian", matrix_inversion_method=method)
    start = time.perf_counter()
    model.fit(y=rewards, X=np.ones((len(rewards), 1)), params={"maxit": 1_000, "delta_rel_conv": 1e-9})
    spent = time.perf_counter() - start
    estimates = np.asarray(model.get_cov_pars()).ravel()
    return spent, estimates, -float(model.get_current_neg_log_likelihood())


def variances(fit):
    """Those of a fit of ours, in the same order."""
    names = ("depth 1", "depth 2", "depth 3", "brand")
    return np.array([fit.noise_variance, *(fit.covariances[name] for name in names)])
