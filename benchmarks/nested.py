"""A nested log, and gpboost's fit of it: what bough's fit is timed against, and compared with in validation/."""

import time

import gpboost
import numpy as np

import bough


def nested_log():
    """10^4 actions below three levels of variance, 5 x 10^4 rows."""
    tree = bough.Tree.from_parents(
        [-1] + [0] * 40 + [1 + i // 25 for i in range(1_000)] + [41 + i // 10 for i in range(10_000)]
    )
    model = bough.GaussianModel(tree, 2.0, bough.by_depth([0.0, 1.0, 0.5, 0.7]), 1.5)
    rng = np.random.default_rng(0)
    actions = rng.choice(tree.leaves, 50_000)
    return tree, actions, model.draw(rng)[actions] + rng.normal(0.0, 1.5**0.5, len(actions))


def by_gpboost(tree, actions, rewards, method):
    """The seconds that gpboost's fit takes, its variances (the noise first), and its log likelihood."""
    above = tree.parent[actions]
    groups = np.column_stack([tree.parent[above], above, actions])
    model = gpboost.GPModel(group_data=groups, likelihood="gaussian", matrix_inversion_method=method)
    start = time.perf_counter()
    model.fit(y=rewards, X=np.ones((len(rewards), 1)), params={"maxit": 1_000, "delta_rel_conv": 1e-9})
    spent = time.perf_counter() - start
    estimates = np.asarray(model.get_cov_pars()).ravel()
    return spent, estimates, -float(model.get_current_neg_log_likelihood())


def variances(fit) -> np.ndarray:
    """Those of a fit of ours, in the same order."""
    return np.array([fit.noise_variance, *(fit.covariances[f"depth {i}"] for i in (1, 2, 3))])
