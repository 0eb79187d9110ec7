"""PriorFit: what was learned, how sure it is, what it says about the hierarchy, and who goes on from it."""

from __future__ import annotations

import copy
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from bough import _checks
from bough._arrays import Floats
from bough.data.rows import Observations
from bough.data.statistics import Statistics
from bough.learning.forest import Forest
from bough.learning.options import NOISE_NAMES
from bough.model.model import Model
from bough.policy_table import named
from bough.posterior import Posterior

_KNOWN = "_known"  # where a fit keeps the posteriors that it was asked for, to copy


class Estimate(NamedTuple):
    """A number that was learned or set, with its 95% interval; of a covariance, the mean of its diagonal."""

    value: Any
    """The number itself."""
    low: Any
    """Where the interval begins."""
    high: Any
    """Where it ends."""
    share: float | None
    """Of the variance of a reward of the observed actions; where rewards are counts, of their log-odds or log-rates."""
    told_by: int | None
    """How many observed nodes, or for the noise how many rows, speak for it."""


@dataclass(frozen=True)
class PriorFit:
    """A prior that was learned; made by `fit_prior`.

    >>> import bough
    >>> tree = bough.Tree.from_paths(["tea/green", "tea/black", "coffee/filter", "coffee/espresso"])
    >>> rewards = [1.0, 1.5, 4.0, 3.0, 1.2, 1.6, 3.9, 3.1, 0.9, 1.3, 4.2, 3.3]
    >>> log = bough.Statistics.from_rows([*tree.actions] * 3, rewards)
    >>> fit = bough.fit_prior(tree, log)
    >>> fit.converged, round(fit.log_evidence, 2)
    (True, -3.91)
    >>> fit.covariances["depth 2"] < fit.covariances["depth 1"]
    True
    >>> fit.model
    GaussianModel(n_actions=4, height=2, dim=1, noise_variance=0.028...)
    >>> fit.agent(seed=0)
    HierTS(n_actions=4, n_observations=12)
    """

    models: tuple[Model, ...]
    """The prior on each of the trees."""
    mean: Any
    """The prior mean."""
    covariances: dict[str, Any]
    """The variance or covariance of each class, by "depth 1", "height 0" or its own name, and of each factor."""
    noise_variance: float | None
    """None where rewards are counts, and where each action has its own, of which `model.noise` has the law."""
    log_evidence: float
    """The log density of the rewards under the fitted model, without the penalty."""
    converged: bool
    """Whether the search for the maximum ended at one."""
    estimates: dict[str, Estimate]
    """All that was learned or set, with intervals: "mean", each class, "noise"."""
    logs: tuple[Statistics | Observations, ...] = field(compare=False)
    """What was learned from, one for each of the trees: sums, or the rows of clicks and counts in contexts."""

    @property
    def model(self) -> Model:
        """The learned model, which has seen nothing yet; of several trees, the first one's."""
        return self.models[0]

    @property
    def posterior(self) -> Posterior:
        """The posterior of the learned model given the log that it was learned from; of several trees, the first one's.

        It is a copy each time, so that what is done to it stays there.

        >>> import bough
        >>> tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["filter", "espresso"]})
        >>> log = bough.Statistics.from_rows([*tree.actions] * 2, [1.0, 1.5, 4.0, 3.0, 1.2, 1.6, 3.9, 3.1])
        >>> posterior = bough.fit_prior(tree, log).posterior
        >>> posterior
        Posterior(n_actions=4, dim=1, n_observations=8)
        >>> posterior.mean[tree.index("filter")].round(2)
        np.float64(3.93)
        """
        return self._posterior_of(0)

    @property
    def posteriors(self) -> tuple[Posterior, ...]:
        """`posterior`, for each of the trees."""
        return tuple(self._posterior_of(which) for which in range(len(self.models)))

    def agent(self, policy: Any = None, *, seed: Any = None, which: int = 0, **options: Any) -> Any:
        """A policy that knows the log: `HierTS` on the learned model, with all rewards observed.

        `policy` is another one, as a class such as ``bough.BayesUCB`` or by its name, and the options are its own. Of
        several trees, `which` says whose agent it is, counted from 0.

        >>> import bough
        >>> tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["filter", "espresso"]})
        >>> log = bough.Statistics.from_rows([*tree.actions] * 2, [1.0, 1.5, 4.0, 3.0, 1.2, 1.6, 3.9, 3.1])
        >>> fit = bough.fit_prior(tree, log)
        >>> agent = fit.agent(seed=0)
        >>> agent, agent.decide()
        (HierTS(n_actions=4, n_observations=8), 'filter')
        >>> fit.agent("Greedy", seed=0)
        Greedy(n_actions=4, n_observations=8)
        """
        if _checks.whole_number("which", which, least=0) >= len(self.models):
            raise ValueError(f"which is {which!r}, and the fit has {len(self.models)} tree(s), counted from 0")
        agent = _checked_policy(policy)(self.models[which], seed=seed, **options)
        log = self.logs[which]
        if isinstance(log, Observations):
            taught = getattr(agent, "posterior", None)
            teach = None if taught is None else taught.settle
        else:
            teach = getattr(agent, "absorb", None)
        if teach is None:
            raise ValueError(f"policy makes a {type(agent).__name__}, which cannot take in a log; give one of bough's")
        teach(log)
        return agent

    def _posterior_of(self, which: int) -> Posterior:
        known: dict[int, Posterior] = self.__dict__.setdefault(_KNOWN, {})
        if which not in known:
            posterior, log = Posterior(self.models[which]), self.logs[which]
            if isinstance(log, Observations):
                posterior.settle(log)
            else:
                posterior.absorb(log)
            known[which] = posterior
        return copy.copy(known[which])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != _KNOWN}

    def __repr__(self) -> str:
        state = "converged" if self.converged else "not converged"
        return f"PriorFit({', '.join(self.covariances)}, log_evidence={self.log_evidence:.6g}, {state})"

    def summary(self, names: Mapping[str, str] | None = None, features: Sequence[str] | None = None) -> str:
        """Each estimate with its 95% interval, its share of a reward's variance, and how many nodes speak for it.

        Of a covariance, the mean of its diagonal is shown; `covariances` has the whole. Intervals are from the
        curvature of what was maximised, those of a covariance for its size alone. A depth is called as its level is,
        where levels have names. `names` says what to call a class instead, such as ``{"depth 1": "department"}``, and
        `features` those of a context, where the model's own will not do.
        """
        names = self._shown_names(names)
        width = np.size(self.mean)
        if features is not None and (not _checks.is_list(features) or len(list(features)) != width):
            raise ValueError(f"features is {reprlib.repr(features)}; give {width} name(s), one for each feature")
        features = self.model.feature_names if features is None else list(features)
        table = [("", "estimate", "95% interval", "share", "based on"), *self._rows(names, features)]
        widths = [max(len(row[i]) for row in table) for i in range(5)]
        lines = []
        for row in table:
            cells = [row[0].ljust(widths[0]), *(row[i].rjust(widths[i]) for i in range(1, 5))]
            lines.append("  ".join(cells).rstrip())
        state = "converged" if self.converged else "NOT converged: take the estimates as rough"
        return "\n".join([*lines, f"log evidence {self.log_evidence:,.1f}, {state}"])

    def plot(self, names: Mapping[str, str] | None = None, axes: Any = None) -> Any:
        """Draw each variance with its 95% interval, and its share of a reward's variance; returns the two axes.

        `names` says what to call a class, as in `summary`. What is set to zero is left out. An interval that begins at
        zero, or does not end, goes to the edge. `axes`, if given, are two of matplotlib's. Needs matplotlib.

        >>> import bough
        >>> tree = bough.Tree.from_paths(["tea/green", "tea/black", "coffee/filter", "coffee/espresso"])
        >>> log = bough.Statistics.from_rows([*tree.actions] * 2, [1.0, 1.5, 4.0, 3.0, 1.2, 1.6, 3.9, 3.1])
        >>> variances, shares = bough.fit_prior(tree, log).plot({"depth 1": "kind"})
        >>> [label.get_text() for label in variances.get_yticklabels()]
        ['kind', 'depth 2', 'noise']
        """
        names = self._shown_names(names)
        if axes is not None and np.shape(axes) != (2,):
            raise ValueError(
                f"axes is {reprlib.repr(axes)}; give two of matplotlib's, as plt.subplots(1, 2) makes them"
            )
        from bough.plotting import plot_variances  # matplotlib loads when something is drawn

        shown = {name: one for name, one in self.estimates.items() if name != "mean" and one.high > 0.0}
        labels = [names.get(name, name) for name in shown]
        value, low, high = (np.array([one[i] for one in shown.values()], dtype=np.float64) for i in range(3))
        return plot_variances(labels, value, low, high, [one.share for one in shown.values()], axes)

    def _shown_names(self, names: Mapping[str, str] | None) -> Mapping[str, str]:
        """What to call the classes: as the user says, or else as all trees call the level."""
        if names is not None and not isinstance(names, Mapping):
            raise ValueError(
                f"names is {names!r}; give a mapping from classes, such as 'depth 1', to what to call them"
            )
        if self.model.classes.kind != "depth":
            return names or {}
        levels = [model.tree.levels or () for model in self.models]
        deepest = max(levels, key=len)
        shared = {
            f"depth {i}": name
            for i, name in enumerate(deepest)
            if all(one[i : i + 1] in ((name,), ()) for one in levels)
        }
        return shared | dict(names or {})

    def _rows(self, names: Mapping[str, str], features: Sequence[str] | None) -> list[tuple[str, str, str, str, str]]:
        rows = []
        for name, one in self.estimates.items():
            if name == "mean":
                values = np.atleast_1d(one.value)
                for i, (value, low, high) in enumerate(
                    zip(values, np.atleast_1d(one.low), np.atleast_1d(one.high), strict=True)
                ):
                    feature = f"feature {i}" if features is None else features[i]
                    label = "mean" if len(values) == 1 and features is None else f"mean of {feature}"
                    rows.append((label, f"{value:.4g}", _interval(low, high), "", ""))
                continue
            is_factor = name in self.model.factors
            what = f"variance {'of' if is_factor else 'at'} {names.get(name, name)}"
            unit = "level" if is_factor else "node"
            if name in NOISE_NAMES:
                median = "noise variance, median" if "noise spread" in self.estimates else "noise variance"
                what, unit = median if name == "noise" else name, "row"
            told = "" if one.told_by is None else f"{one.told_by:,} {unit}{'s' if one.told_by != 1 else ''}"
            share = "" if one.share is None else f"{one.share:.0%}"
            rows.append((what, f"{one.value:.4g}", _interval(one.low, one.high), share, told))
        return rows


def _checked_policy(policy: Any) -> Any:
    """A policy's class. Policies stand to the right of learning, so that it goes by the name that the façade loads."""
    if policy is None or isinstance(policy, str):
        return named("HierTS" if policy is None else policy).policy
    if not callable(policy) or (isinstance(policy, type) and not hasattr(policy, "decide")):
        raise ValueError(f"policy is {policy!r:.80}; give a policy's class, such as bough.TS, or its name")
    return policy


def _interval(low: float, high: float) -> str:
    if low == high:
        return "set"
    if not np.isfinite(high):
        return "not known"
    return f"{low:.4g} to {high:.4g}"


def share_of_classes(forest: Forest, covariance: Floats, noise: float) -> list[float]:
    """Of the variance of a reward, averaged over the observed actions, what each class and, last, the noise is."""
    sizes = covariance
    if covariance.ndim > 1:
        xx = forest.statistics.sum_xx
        assert xx is not None
        sizes = np.einsum("njk,jk->n", covariance, xx.sum(axis=0) / forest.n_rows)
    parts = np.append(forest.nodes_a_path() * sizes, noise)
    return (parts / max(parts.sum(), 1e-300)).tolist()  # type: ignore[no-any-return]
