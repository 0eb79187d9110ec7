"""What a fit is asked for: the log as it is given, and what to learn from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from bough import _checks
from bough._arrays import Flags, Floats, Integers
from bough.data.encoding import encoded_rows
from bough.data.logs import Bad, read_rows, summarise
from bough.data.rows import Observations
from bough.data.statistics import Statistics
from bough.learning.node_classes import NodeClasses
from bough.model.covariance import resolve_one
from bough.model.effects import Effects
from bough.model.gaussian import GaussianModel
from bough.model.likelihood import LARGEST
from bough.model.model import Model
from bough.model.noise import PerAction
from bough.tree.tree import Tree

NOISE_NAMES = ("noise", "noise spread", "noise floor")
"""What estimates call the median, the spread and the floor of noise variances per action."""

Structure = Literal["full", "diagonal", "scaled"]


class Columns(NamedTuple):
    """What a log's columns are called, and what to do with rows that cannot be used."""

    action: Any
    reward: Any
    context: Any
    weight: Any
    trials: Any
    exposure: Any
    intercept: bool
    bad: Any
    features: Any = None
    """What makes numbers of the context's columns, if anything does."""
    factors: Mapping[str, str] | None = None
    """Those of the levels that decisions had, by the name of the factor."""


def paired(
    tree: Any, data: Any, columns: Columns, model: type[Model], features: Any = None
) -> tuple[list[Tree], list[Statistics], list[Observations] | None]:
    """The trees, the statistics of their logs and, where sums are not enough, the logs' rows.

    `features` has the names of the contexts' entries, in the order that all are brought to; None for that of the first
    log that has names.
    """
    several = isinstance(tree, (list, tuple))
    if not several and isinstance(data, (list, tuple)):
        raise ValueError("there is one tree and a list of logs; give a list of trees as well, or add the logs up")
    trees = list(tree) if several else [tree]
    logs = list(data) if several and isinstance(data, (list, tuple)) else [data]
    if len(trees) != len(logs) or not trees:
        raise ValueError(f"there are {len(trees)} trees and {len(logs)} logs; give one log a tree, in the same order")
    for one in trees:
        if not isinstance(one, Tree):
            raise ValueError(
                f"tree is a {type(one).__name__}; give a bough.Tree, or a list of them with a list of logs"
            )
    read = [_read(log, one, columns, model) for one, log in zip(trees, logs, strict=True)]
    if features is None:
        features = next((one.features for one in read if one.features is not None), None)
    read = [one.arranged(features) for one in read]
    rows = [one for one in read if isinstance(one, Observations)]
    sums = [_summed(one, model) if isinstance(one, Observations) else one for one in read]
    if len({one.dim for one in sums}) > 1:
        raise ValueError("some logs have contexts of another length than the others; give all the same columns")
    needs_rows = not model.kind.sums_suffice and sums[0].dim is not None
    if needs_rows and len(rows) < len(read):
        raise ValueError(
            f"sums cannot tell which rewards came in which contexts, and a {model.__name__} needs that; give "
            "bough.Observations, or a frame with the names of its columns"
        )
    for one in sums:
        if not needs_rows:
            one.check_kind(model)
    return trees, sums, rows if needs_rows else None


def _read(log: Any, tree: Tree, columns: Columns, model: type[Model]) -> Statistics | Observations:
    if isinstance(log, Observations):
        encoder = columns.features
        return log.arranged() if encoder is None else encoded_rows(log, encoder, columns.intercept)
    if isinstance(log, Statistics):
        return log
    if columns.action is None or columns.reward is None:
        raise ValueError("the log's columns are not named; give action= and reward=, or give bough.Statistics")
    action, reward, context, weight, trials, exposure, intercept, bad, features, factors = columns
    if context is not None and not (_checks.is_list(context) and all(isinstance(name, str) for name in context)):
        raise ValueError(f"context is {context!r}; give a list of column names")
    if not isinstance(intercept, (bool, np.bool_)):
        raise ValueError(f"intercept is {intercept!r}; give True or False")
    _checks.one_of("bad", bad, get_args(Bad))
    shared: dict[str, Any] = {"trials": trials, "exposure": exposure, "intercept": intercept, "bad": bad}
    shared |= {"features": features, "model": model}
    if not model.kind.sums_suffice and (context is not None or features is not None):
        if weight is not None:
            raise ValueError(f"a weight was given, but a {model.__name__} with contexts keeps its rows one by one")
        return read_rows(log, tree, action, reward, context, **shared)[0]
    return summarise(log, tree, action, reward, context, weight, **shared, factors=factors)


def _summed(rows: Observations, model: type[Model]) -> Statistics:
    """The sums of rows, which are checked."""
    exposure = model.kind.checked_exposure(_checks.vector(rows.reward, "rewards"), rows.trials, rows.exposure)
    return Statistics.from_rows(rows.action, rows.reward, rows.context, exposure=exposure, features=rows.features)


class FitOptions(NamedTuple):
    """What to learn, and what is given instead."""

    noise: float | None
    """None where it is learned; 1 where rewards are counts, which have none."""
    mean: Any
    """None where it is learned, else a number or a vector."""
    root: Any
    """"learn", None for the usual, or a covariance."""
    width: float | None
    """Of the penalty."""
    structure: Structure = "full"
    model: type[Model] = GaussianModel
    base: Floats | None = None
    """(n_classes,) or (n_classes, d, d): a prior whose sizes are learned, and which keeps its proportions otherwise."""
    features: Any = None
    """Those of the model."""
    effects: Effects | None = None
    """Those of crossed factors, whose variances are learned."""
    without_variance: tuple[str, ...] = ()
    """The factors that came with none, so that there is none to keep where no level was observed."""
    per_action: bool = False
    """Whether each action has a noise variance of its own, and the law of these is learned."""

    def built(self, tree: Tree, mean: Any, covariance: Any, noise: Any, factors: Floats) -> Model:
        """A model of the kind that is asked for; `factors` has the variances of crossed factors."""
        own: dict[str, Any] = {"noise" if self.per_action else "noise_variance": noise} if self.learns_noise else {}
        if self.effects is not None:
            found = zip(self.effects.factors.items(), factors.tolist(), strict=True)
            own["factors"] = {name: factor.with_variance(variance) for (name, factor), variance in found}
        return self.model(tree, mean, covariance, **own, features=self.features)

    def kept(self, n_observed: Integers) -> Flags:
        """(n_classes,) which classes keep what they were given, by how many nodes, or levels, of each were observed.

        They are crossed factors, which come last: rewards say nothing of a variance of which no level was observed.
        """
        kept = np.zeros(len(n_observed), dtype=np.bool_)
        for i, name in enumerate(reversed(self.factor_names), 1):
            kept[-i] = n_observed[-i] == 0 and name not in self.without_variance
        return kept

    @property
    def factor_names(self) -> tuple[str, ...]:
        """What the crossed factors are called."""
        return () if self.effects is None else tuple(self.effects.factors)

    @property
    def learns_noise(self) -> bool:
        """Whether rewards have noise of a variance that may be learned."""
        return self.model.kind.noise_is_added

    @classmethod
    def checked(
        cls, noise: Any, mean: Any, root: Any, penalty: Any, dim: int | None, structure: Structure, model: Any
    ) -> FitOptions:
        per_action = isinstance(noise, str) and noise == "per action"
        if per_action and (dim is not None or not model.kind.noise_is_added):
            what = "logs with contexts" if dim is not None else f"the rewards of a {model.__name__}"
            raise ValueError(f"noise is {noise!r}, which goes with Gaussian rewards without contexts, and not {what}")
        is_learned = per_action or (isinstance(noise, str) and noise == "learn")
        checked_noise = None if is_learned else _positive("noise", noise)
        if not model.kind.noise_is_added:
            if checked_noise is not None:
                raise ValueError(f"noise is {noise!r}, but the rewards of a {model.__name__} have none; leave it out")
            checked_noise = 1.0
        learned_mean = isinstance(mean, str) and mean == "learn"
        shape = () if dim is None else (dim,)
        given = None if learned_mean else _numbers("mean", mean, shape)
        if not (root is None or (isinstance(root, str) and root == "learn")):
            root = resolve_one(root, "root", dim)
        width = None if penalty is None else _positive("penalty", penalty)
        return cls(checked_noise, given, root, width, structure, model, per_action=per_action)


def check_noise(noise: Any, has_factors: bool) -> None:
    """Refuse noise that goes with no fit, or not with crossed factors, before a log is read."""
    if isinstance(noise, PerAction):
        raise ValueError(
            f'noise is {noise}; how noise is spread over the actions is learned with the rest: give "per action"'
        )
    if has_factors and isinstance(noise, str) and noise == "per action":
        raise ValueError(
            f"noise is {noise!r} and there are factors; what is known of shared effects is exact for one noise "
            "variance alone: leave one of the two out"
        )


def with_factors(group: Integers, options: FitOptions, fixed: Floats | None = None) -> Integers:
    """The groups of the tree's classes, and a group of its own for each factor; -1 for those of no variance."""
    n = len(options.factor_names)
    more = int(group.max(initial=-1)) + 1 + np.arange(n)
    if fixed is not None:
        kept = fixed > 0.0
        more = np.where(kept, int(group.max(initial=-1)) + np.cumsum(kept), -1)
    return np.concatenate([group, more]).astype(group.dtype)


def without(group: Integers, some: Flags) -> Integers:
    """The groups where some classes are set, and are in none."""
    left, numbered = np.unique(np.where(some, -1, group), return_inverse=True)
    return np.asarray(numbered - (left[0] < 0), dtype=group.dtype)


def groups_of(trees: Sequence[Tree], classes: NodeClasses, options: FitOptions) -> Integers:
    """(n_classes,) a number for each class that is learned, and -1 for a root's that is set."""
    lone = classes.lone_roots
    if options.root is not None and not isinstance(options.root, str) and not lone.any():
        raise ValueError("root was given, but the root shares its class with other nodes; leave it out, or change by")
    learned = np.ones(len(lone), dtype=np.bool_)
    if not isinstance(options.root, str) and not (options.root is None and len(trees) > 1):
        learned = ~lone
    return np.where(learned, np.cumsum(learned) - 1, -1)


def _positive(what: str, value: Any) -> float:
    try:
        number = float("nan") if isinstance(value, (bool, np.bool_)) else _checks.number(value, what)
    except ValueError:
        number = float("nan")
    if not 1.0 / LARGEST < number < LARGEST:
        extra = ', "learn" or "per action"' if what == "noise" else ", or None for plain maximum likelihood"
        raise ValueError(f"{what} is {value!r}; give a positive number{extra}")
    return number


def _numbers(what: str, value: Any, shape: tuple[int, ...]) -> Any:
    try:
        given = _checks.floats(value, what)
    except ValueError:
        given = np.full((0,), np.nan)
    if given.shape != shape or not (np.abs(given) < LARGEST).all():
        wanted = f"{shape[0]} numbers" if shape else "a number"
        raise ValueError(f'{what} is {value!r}; give {wanted}, or "learn"')
    return given if shape else float(given)
