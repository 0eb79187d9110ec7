"""gibbs(...): draws from the posterior of clicks as it is, where `Posterior` keeps the Gaussian that is closest to it.

Given a Polya-Gamma variable for each reward, the rewards of a `BernoulliModel` are Gaussian (Polson, Scott and Windle
2013), so each sweep draws those variables given the parameters, and then the whole tree at once given the variables.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from bough import _checks, _seeds
from bough._arrays import Floats
from bough._extras import install
from bough.data.rows import Rows, check_context_presence, checked_context, rows_of
from bough.data.statistics import Statistics
from bough.inference.normals import standard_normals
from bough.inference.polya_gamma import polya_gamma
from bough.inference.scalar import ScalarEngine
from bough.inference.vector import VectorEngine
from bough.model.bernoulli import BernoulliModel
from bough.model.model import MeanReward, Model
from bough.tree.name_columns import as_column

_SHOWN = 5  # how many nodes a summary lists
_ENOUGH, _AGREED = 400, 1.01  # the usual bars for the effective sample size and for R-hat


@dataclass(frozen=True, eq=False, repr=False)
class GibbsDraws:
    """Draws of every node's parameter from the posterior, in chains; `gibbs` makes them.

    Before use, look at `summary`: the usual bar is an R-hat below 1.01 and an effective sample size above 400.
    """

    parameters: Floats
    """(chains, draws, V), or (chains, draws, V, d) with contexts, in node order."""
    model: BernoulliModel

    def __repr__(self) -> str:
        chains, draws, nodes = self.parameters.shape[:3]
        return f"GibbsDraws(chains={chains}, draws={draws}, n_nodes={nodes}, dim={self.model.dim})"

    @property
    def mean(self) -> Floats:
        """(V,) or (V, d): the posterior mean of every node."""
        return np.asarray(self.parameters.mean(axis=(0, 1)))

    @property
    def covariance(self) -> Floats:
        """(V,) or (V, d, d): the posterior covariance of every node, each by itself."""
        centred = (self.parameters - self.mean).reshape(-1, *self.parameters.shape[2:])
        products = "nv,nv->v" if self.model.is_scalar else "nvi,nvj->vij"
        return np.asarray(np.einsum(products, centred, centred) / (len(centred) - 1))

    def mean_reward(self, context: Any = None, level: float = 0.95) -> MeanReward:
        """The probability of a success of each action, in `tree.actions` order, with its credible interval."""
        check_context_presence(self.model, context)
        tail = 0.5 - 0.5 * _checks.level(level)
        leaves = self.model.tree.leaves
        direction = None if self.model.is_scalar else checked_context(self.model, context)
        found = np.empty((3, len(leaves)))
        for i, leaf in enumerate(leaves.tolist()):  # one at a time, for memory
            draws = self.parameters[:, :, leaf].reshape(-1, *self.parameters.shape[3:])
            rewards = self.model.mean_reward(draws if direction is None else draws @ direction)
            found[0, i], found[1:, i] = rewards.mean(), np.quantile(rewards, [tail, 1.0 - tail])
        return MeanReward(*found)

    def effective_sample_size(self) -> Floats:
        """(V,) or (V, d): how many independent draws would know the mean as well; NaN where nothing varies."""
        return self._diagnosed("ess")

    def r_hat(self) -> Floats:
        """(V,) or (V, d): how far the chains are from agreeing, 1 where they do; NaN for one chain, or no variance."""
        return self._diagnosed("rhat")

    def _diagnosed(self, name: str) -> Floats:
        arviz = _arviz()
        shape = self.parameters.shape[2:]
        columns = self.parameters.reshape(*self.parameters.shape[:2], -1)
        # ArviZ divides by the variance, so that only what varies by more than rounding may go there.
        spread, size = np.ptp(columns, axis=(0, 1)), np.abs(columns).max(axis=(0, 1))
        varies = spread > 64.0 * np.finfo(float).eps * size
        found = np.full(columns.shape[2], np.nan)
        if varies.any() and (name == "ess" or len(columns) > 1):
            data = arviz.convert_to_dataset({"x": columns[:, :, varies]})
            found[varies] = getattr(arviz, name)(data)["x"].values
        return found.reshape(shape)

    def summary(self) -> str:
        """How well the chains have mixed, and the nodes where they did worst, as a small table to print.

        MCSE is the Monte Carlo standard error of the mean, and ESS the effective sample size.
        """
        chains, draws = self.parameters.shape[:2]
        size, r_hat = self.effective_sample_size().ravel(), self.r_hat().ravel()
        mean, deviation = self.mean.ravel(), self.parameters.std(axis=(0, 1), ddof=1).ravel()
        worst = np.argsort(size)[: min(_SHOWN, int(np.isfinite(size).sum()))].tolist()  # NaN sorts last
        title = f"chains={chains}, draws={draws}"
        if worst:
            largest = f"{np.nanmax(r_hat):.3f}" if chains > 1 else "unknown"  # it takes two chains
            title += f", smallest ESS {size[worst[0]]:.0f}, largest R-hat {largest}"
            if size[worst[0]] < _ENOUGH or (chains > 1 and np.nanmax(r_hat) > _AGREED):
                title += "; NOT mixed yet: take more draws"
        lines = [title, f"{'mean':>9}{'sd':>9}{'MCSE':>9}{'ESS':>8}{'R-hat':>8}  node, the worst first"]
        for i in worst:
            numbers = f"{mean[i]:>9.3f}{deviation[i]:>9.3f}{deviation[i] / np.sqrt(size[i]):>9.4f}"
            node, feature = divmod(i, self.model.dim)
            label = f"{self.model.tree.name(node)!r}{'' if self.model.is_scalar else f', feature {feature}'}"
            lines.append(f"{numbers}{size[i]:>8.0f}{r_hat[i]:>8.3f}  {label}")
        return "\n".join(lines)

    def to_arviz(self) -> Any:
        """The draws as `arviz.InferenceData`, with the names of the nodes as a coordinate, for ArviZ's plots."""
        tree = self.model.tree
        names = as_column([tree.name(node) for node in range(tree.n_nodes)])
        # xarray does not know numpy's variable-width strings.
        coords: dict[str, Any] = {"node": np.array(names.tolist()) if names.dtype.kind == "T" else names}
        if not self.model.is_scalar:
            coords["feature"] = np.arange(self.model.dim)
        return _arviz().from_dict(
            posterior={"parameter": self.parameters}, coords=coords, dims={"parameter": [*coords]}
        )


def gibbs(
    model: BernoulliModel, data: Any, draws: int = 1_000, chains: int = 4, seed: Any = None, *, warmup: int = 200
) -> GibbsDraws:
    """Draw from the posterior of a `BernoulliModel` by Gibbs sampling, which approximates nothing but by its length.

    `data` is `Observations`, or a tuple (actions, rewards) or (actions, rewards, contexts), or, without contexts,
    `Statistics`. Every chain starts at a draw from the prior, leaves out its first `warmup` sweeps and keeps `draws`
    after them: chains * draws * V * d numbers of 8 bytes. One seed gives the same draws, and a chain does not change
    with the number of chains or draws. Chains move slowly where many trials have hardly a success or a failure and
    the prior is wide; `summary` shows it.

    >>> import bough
    >>> model = bough.BernoulliModel(bough.Tree.from_paths(["tea/green", "tea/black", "coffee"]), mean=-1.0)
    >>> found = bough.gibbs(model, (["tea/green", "tea/green", "coffee"], [1, 1, 0]), draws=500, seed=0)
    >>> found
    GibbsDraws(chains=4, draws=500, n_nodes=5, dim=1)
    >>> dict(zip(model.tree.actions, found.mean_reward().mean.round(1).tolist()))
    {'coffee': 0.3, 'tea/green': 0.6, 'tea/black': 0.5}
    >>> print(found.summary())
    chains=4, draws=500, smallest ESS 1..., largest R-hat 1.00...
         mean       sd     MCSE     ESS   R-hat  node, the worst first
    ...
    """
    _check_model(model)
    rows = _checked_data(model, data)
    draws = _checks.whole_number("draws", draws, least=4)  # what R-hat takes
    chains = _checks.whole_number("chains", chains, least=1)
    warmup = _checks.whole_number("warmup", warmup, least=0)
    shape = (model.tree.n_nodes,) if model.is_scalar else (model.tree.n_nodes, model.dim)
    parameters = np.empty((chains, draws, *shape))
    for child, out in zip(_seeds.sequence(seed).spawn(chains), parameters, strict=True):
        _run_chain(model, rows, np.random.default_rng(child), warmup, out)
    return GibbsDraws(parameters, model)


def _run_chain(model: BernoulliModel, rows: Rows, rng: np.random.Generator, warmup: int, out: Floats) -> None:
    """Overwrites out (draws, V) or (draws, V, d) with the sweeps after the warm-up."""
    engine: Any = ScalarEngine(model) if model.is_scalar else VectorEngine(model)
    slots = engine.touch(rows.leaves) if model.is_scalar else None
    parameters = model.draw(rng)
    for sweep in range(-warmup, len(out)):
        if len(rows.leaves):
            _place(engine, slots, model, rows, rng, parameters)
        parameters = engine.transform(standard_normals(rng, parameters.shape))
        if sweep >= 0:
            out[sweep] = parameters


def _place(
    engine: Any, slots: Any, model: BernoulliModel, rows: Rows, rng: np.random.Generator, parameters: Floats
) -> None:
    """Draw the Polya-Gamma variables omega, and have the engine hold the Gaussian rewards that they make.

    n successes in m trials say exp(kappa s - omega s^2 / 2) of their score s, with kappa = n - m / 2.
    """
    leaves, successes, contexts, trials = rows[:4]
    assert trials is not None
    kappa = successes - 0.5 * trials
    if contexts is None:
        omega = polya_gamma(rng, trials, parameters[leaves])
        engine.place_sites(slots, omega, kappa - omega * model.mean)
    else:
        root = np.sqrt(polya_gamma(rng, trials, np.einsum("nj,nj->n", contexts, parameters[leaves])))
        engine.place_rows(leaves, root[:, None] * contexts, kappa / root)


# -- what is given -------------------------------------------------------------------------------


def _check_model(model: Any) -> None:
    name = type(model).__name__
    if not isinstance(model, Model):
        raise ValueError(f"model is a {name}; give a bough.BernoulliModel")
    if model.kind.is_conjugate:
        raise ValueError(f"model is a {name}, whose posterior is exact already; use bough.Posterior")
    if not model.kind.is_logistic:
        raise ValueError(f"model is a {name}, and its rewards have no Polya-Gamma form; use bough.Posterior")


def _checked_data(model: BernoulliModel, data: Any) -> Rows:
    """The rows of a contextual model; otherwise one row an action, for what is drawn depends on sums alone."""
    if isinstance(data, Statistics):
        return _summed(_statistics_rows(model, data))
    rows = rows_of(data, model)
    return _summed(rows) if model.is_scalar else rows


def _statistics_rows(model: BernoulliModel, statistics: Statistics) -> Rows:
    if not model.is_scalar:
        raise ValueError("data is Statistics, and sums do not tell all of clicks in contexts; give bough.Observations")
    if statistics.dim is not None:
        raise ValueError(f"the statistics have contexts of length {statistics.dim}, and the model none; leave them out")
    leaves = model.tree.action_nodes(statistics.actions)
    successes, trials = statistics.sum_y, statistics.exposure_or_count
    sound = (successes >= 0.0) & (successes <= trials) & (successes % 1.0 == 0.0) & (trials % 1.0 == 0.0)
    if statistics.exposure is None:
        sound &= statistics.sum_yy == successes  # as it is where every reward is 0 or 1
    if not sound.all():
        i = int(np.flatnonzero(~sound)[0])
        raise ValueError(
            f"action {statistics.actions[i]!r} has {successes[i]:g} successes in {trials[i]:g} trials and a sum of "
            f"squares of {statistics.sum_yy[i]:g}; give sums of rewards of 0 or 1, or bough.Observations with trials"
        )
    return Rows(leaves, successes, None, trials)


def _summed(rows: Rows) -> Rows:
    """One row an action, in node order; without those that had no trials."""
    leaves, which = np.unique(rows.leaves, return_inverse=True)
    successes, trials = (np.bincount(which, a, len(leaves)).astype(np.float64) for a in (rows.rewards, rows.exposure))
    tried = trials > 0.0
    return Rows(leaves[tried], successes[tried], None, trials[tried])


def _arviz() -> Any:
    try:
        with warnings.catch_warnings():
            # ArviZ 0.23 says at import that version 1 will differ, which a caller of bough can do nothing about.
            warnings.filterwarnings("ignore", r"\s*ArviZ is undergoing a major refactor", FutureWarning)
            return import_module("arviz")
    except ImportError:
        raise ValueError(f"diagnostics of chains take ArviZ; {install('mcmc')}") from None
