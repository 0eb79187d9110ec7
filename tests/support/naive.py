"""The obvious versions: the paper's formulas (with the corrected index), and textbook algebra in 80 digits.

Also expectation propagation over the rows of a log, one after the other, with dense algebra and integrals on a grid.
"""

import mpmath
import numpy as np
from scipy.special import logsumexp

import bough
from bough.inference.oracles.dense import DensePosterior


def paper_scalar(model: bough.GaussianModel, actions: list, rewards: np.ndarray) -> dict:
    """Section 4.1: (sigma_hat^2, and theta_hat as a function of the parent's value) of every node with data below."""
    tree, prior = model.tree, model.classes.table[model.classes.of_node]
    messages, answers = {}, {}
    for node in range(tree.n_nodes - 1, -1, -1):
        if tree.is_action(node):
            own = [y for a, y in zip(actions, rewards, strict=True) if tree.index(a) == node]
            if not own:
                continue
            lower = [(model.noise_variance / len(own), np.mean(own))]
            messages[node] = (prior[node] + model.noise_variance / len(own), np.mean(own))
        else:
            lower = [messages[c] for c in tree.children(node).tolist() if c in messages]
            if not lower:
                continue
            M = sum(1 / variance for variance, _ in lower)
            messages[node] = (prior[node] + 1 / M, sum(value / variance for variance, value in lower) / M)
        variance = 1 / (1 / prior[node] + sum(1 / v for v, _ in lower))
        answers[node] = (variance / prior[node], variance * sum(value / v for v, value in lower), variance)
    return answers


def paper_linear(model: bough.GaussianModel, actions: list, rewards: np.ndarray, contexts: np.ndarray) -> dict:
    """Section 4.2 with G = sum x x' / sigma^2 and Lambda~_k inside the sum: (gain, offset, covariance)."""
    tree, prior = model.tree, model.classes.table[model.classes.of_node]
    inv = np.linalg.inv
    messages, answers = {}, {}
    for node in range(tree.n_nodes - 1, -1, -1):
        if tree.is_action(node):
            own = [i for i, a in enumerate(actions) if tree.index(a) == node]
            x, y = contexts[own], rewards[own]
            G = x.T @ x / model.noise_variance
            lower_precision, lower_value = G, inv(G) @ x.T @ y / model.noise_variance
        else:
            below = [messages[c] for c in tree.children(node).tolist()]
            lower_precision = sum(precision for precision, _ in below)
            lower_value = inv(lower_precision) @ sum(precision @ value for precision, value in below)
        messages[node] = (inv(prior[node] + inv(lower_precision)), lower_value)
        covariance = inv(inv(prior[node]) + lower_precision)
        answers[node] = (covariance @ inv(prior[node]), covariance @ lower_precision @ lower_value, covariance)
    return answers


def textbook(model: bough.GaussianModel, actions: list, rewards: np.ndarray, contexts: np.ndarray | None) -> tuple:
    """Conditioning a joint Gaussian, in 80 digits: (mean, covariance of all parameters, log evidence)."""
    mpmath.mp.dps = 80
    tree, d = model.tree, model.dim
    prior = model.classes.table[model.classes.of_node].reshape(-1, d, d)
    size = tree.n_nodes * d

    def ancestors(node: int) -> set:
        found = set()
        while node >= 0:
            found.add(node)
            node = int(tree.parent[node])
        return found

    joint = mpmath.zeros(size)
    for a in range(tree.n_nodes):
        for b in range(tree.n_nodes):
            for shared in ancestors(a) & ancestors(b):
                for i in range(d):
                    for j in range(d):
                        joint[a * d + i, b * d + j] += mpmath.mpf(float(prior[shared, i, j]))
    n = len(actions)
    x = np.ones((n, 1)) if contexts is None else contexts
    design = mpmath.zeros(n, size)
    for row, action in enumerate(actions):
        for i in range(d):
            design[row, tree.index(action) * d + i] = mpmath.mpf(float(x[row, i]))
    mean = mpmath.matrix([mpmath.mpf(float(m)) for _ in range(tree.n_nodes) for m in np.atleast_1d(model.mean)])
    target = mpmath.matrix([mpmath.mpf(float(y)) for y in rewards]) - design * mean
    marginal = design * joint * design.T + mpmath.mpf(model.noise_variance) * mpmath.eye(n)
    gain = joint * design.T * marginal**-1
    quadratic = (target.T * marginal**-1 * target)[0]
    log_evidence = -(n * mpmath.log(2 * mpmath.pi) + mpmath.log(mpmath.det(marginal)) + quadratic) / 2

    def array(matrix: mpmath.matrix) -> np.ndarray:
        return np.array(matrix.tolist(), dtype=float)

    return array(mean + gain * target).ravel(), array(joint - gain * design * joint), float(log_evidence)


def propagated(model: bough.BernoulliModel | bough.PoissonModel, log: bough.Observations) -> tuple:
    """The mean and the covariance of all nodes, (V d,) and (V d, V d), and the log evidence, with a site for each row.

    Of every row the site is taken out, the score's exact moments with the row itself are found on a grid, and the site
    is what gives the Gaussian those; again and again, until nothing moves.
    """
    rows, n_nodes, d = log.rows(model), model.tree.n_nodes, model.dim
    root = DensePosterior(model).prior_root.reshape(n_nodes * d, n_nodes * d)
    design = np.einsum("nd,ndk->nk", rows.contexts, root.reshape(n_nodes, d, n_nodes * d)[rows.leaves])
    shift, standard = rows.contexts @ model.mean, np.linspace(-12.0, 12.0, 4_001)
    tau, nu = np.zeros(len(shift)), np.zeros(len(shift))  # about design @ normals
    while True:
        before, surplus = np.append(tau, nu), 0.0
        for i, (x, y, e) in enumerate(zip(design, rows.rewards, rows.exposure, strict=True)):
            covariance = np.linalg.inv(np.eye(len(root)) + design.T @ (tau[:, None] * design))
            m, v = x @ covariance @ (design.T @ nu), x @ covariance @ x
            m, v = (m - v * nu[i]) / (1.0 - v * tau[i]), v / (1.0 - v * tau[i])
            t = m + np.sqrt(v) * standard
            score = shift[i] + t
            losses = np.logaddexp(0.0, score) if isinstance(model, bough.BernoulliModel) else np.exp(score)
            density = y * score - e * losses - 0.5 * standard**2
            log_z = logsumexp(density)
            weight = np.exp(density - log_z)
            centre = weight @ t
            spread = weight @ (t - centre) ** 2
            tau[i], nu[i] = 1.0 / spread - 1.0 / v, centre / spread - m / v
            widening = 1.0 + v * tau[i]
            of_site = (nu[i] * m - 0.5 * tau[i] * m**2 + 0.5 * v * nu[i] ** 2) / widening - 0.5 * np.log(widening)
            surplus += log_z + np.log((standard[1] - standard[0]) / np.sqrt(2.0 * np.pi)) - of_site
        if np.abs(np.append(tau, nu) - before).max() < 1e-11:
            break
    precision = np.eye(len(root)) + design.T @ (tau[:, None] * design)
    pull = design.T @ nu
    evidence = surplus + 0.5 * pull @ np.linalg.solve(precision, pull) - 0.5 * np.linalg.slogdet(precision)[1]
    mean = np.tile(model.mean, n_nodes) + root @ np.linalg.solve(precision, pull)
    return mean, root @ np.linalg.solve(precision, root.T), float(evidence)
