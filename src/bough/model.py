"""Models: a prior on a tree, and how the reward of an action comes about."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit, pdtr, pdtrik

from bough import inputs, storage
from bough.arrays import Floats
from bough.covariance import LARGEST, checked_classes
from bough.links import logistic_mean
from bough.prior import TreePrior
from bough.statistics import Statistics
from bough.treefile import restored_tree, tree_arrays

MOST_COUNTED = 1e8  # a rate beyond which drawing a count would take too long
_KIND = "model"
_VERSION = 1


class MeanReward(NamedTuple):
    """The mean reward of each action, and the ends of its credible interval; made by `Posterior.mean_reward`."""

    mean: Floats
    low: Floats
    high: Floats


class Model(TreePrior, ABC):
    """What every policy takes: a prior on a tree, and the distribution of a reward given x'theta, the *score*.

    The mean reward is an increasing function of the score, so that the best action has the highest score.
    """

    rewards: ClassVar[str]
    """What a file calls the distribution."""
    has_counts: ClassVar[bool] = True
    """Whether rewards are counts, so that the posterior is an approximation."""

    def __repr__(self) -> str:
        tree = self.tree
        return f"{type(self).__name__}(n_actions={tree.n_actions}, height={tree.height}, dim={self.dim})"

    @abstractmethod
    def mean_reward(self, score: Any) -> Any:
        """The mean reward of an action whose score is known."""

    @abstractmethod
    def expected_reward(self, mean: Floats, variance: Floats) -> Floats:
        """The mean reward where the score is normal."""

    @classmethod
    @abstractmethod
    def checked_exposure(cls, rewards: Floats, trials: Any, exposure: Any) -> Floats | None:
        """How many trials, or how much exposure, each reward had; a `ValueError` where it cannot be a reward."""

    @classmethod
    def check_sums(cls, statistics: Statistics) -> None:
        """Refuse sums that rewards of this kind cannot have."""
        if not cls.has_counts:
            if statistics.exposure is not None:
                raise ValueError(
                    "the statistics have trials or exposures, which go with a bough.BernoulliModel or PoissonModel, "
                    f"and not with a {cls.__name__}"
                )
            return
        total, exposure = statistics.sum_y, statistics.exposure_or_count
        clicks = cls.rewards == "bernoulli"
        bad = (total < 0.0) | ((total > exposure * (1.0 + 1e-12)) if clicks else False)
        wanted = "give counts of 0 or more" if not clicks else "give clicks of 0 to as many as there were trials"
        if clicks and statistics.exposure is None:  # each is 0 or 1, so that squares change nothing
            bad |= np.abs(statistics.sum_yy - total) > 1e-9 * statistics.sum_yy
            wanted = "give 0 or 1, or, where they are clicks of many views, these as trials="
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"the action {statistics.actions[i]!r} has rewards that a {cls.__name__} cannot have (a sum of "
                f"{total[i]:g}, and of their squares {statistics.sum_yy[i]:g}, in {exposure[i]:g}); {wanted}"
            )

    @classmethod
    def counted(cls, rows: Any, exposure: Any) -> Any:
        """How many observations rows are: as many as their trials where rewards are clicks, one each otherwise."""
        return exposure if cls.rewards == "bernoulli" else rows

    @classmethod
    def check_word(cls, trials: Any, exposure: Any) -> None:
        """Refuse trials or exposure where they go with another kind of rewards."""
        if cls.rewards != "bernoulli":
            _refuse(trials, "trials", "BernoulliModel")
        if cls.rewards != "poisson":
            _refuse(exposure, "exposure", "PoissonModel")

    @abstractmethod
    def draw_noise(self, rng: np.random.Generator, rounds: int) -> Floats:
        """(rounds,) what decides the rewards of a simulation together with their means."""

    @abstractmethod
    def reward(self, mean: float, noise: float) -> float:
        """The reward that this noise gives around this mean."""

    # -- files ---------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tree, the prior and the noise to one file, whole or not at all.

        >>> import bough, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.bough"
        >>> bough.GaussianModel(bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])).save(path)
        >>> bough.GaussianModel.load(path)
        GaussianModel(n_actions=3, height=2, dim=1, noise_variance=1.0)
        """
        header, arrays = self.contents()
        storage.write(path, {**header, "kind": _KIND, "version": _VERSION}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """The model that `save` wrote, whatever its rewards; a `ValueError` where the file is damaged or no model."""
        header, arrays = storage.read(path, _KIND, _VERSION)
        try:
            return cls.from_contents(header, arrays)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a complete model file (missing or odd: {error})") from error

    def contents(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The header and the arrays that a file keeps of a model."""
        header = {"rewards": self.rewards, "scalar": self.is_scalar, "covariance": self.classes.kind}
        arrays = {"mean": np.asarray(self.mean), "covariances": self.classes.table, **tree_arrays(self.tree)}
        if self.classes.kind == "node":
            arrays["covariance_of_node"] = self.classes.of_node
        return header, arrays

    @staticmethod
    def from_contents(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Model:
        """The model that `contents` took apart, checked like the user's own."""
        tree, kind = restored_tree(arrays), header["covariance"]
        by_tree = {"depth": "depth", "height": "node_height"}
        of_node = getattr(tree, by_tree[kind]) if kind in by_tree else arrays["covariance_of_node"]
        mean = float(arrays["mean"]) if header["scalar"] else arrays["mean"]
        classes = checked_classes(kind, of_node, arrays["covariances"], np.size(mean), header["scalar"])
        kinds: dict[str, Any] = {model.rewards: model for model in (GaussianModel, BernoulliModel, PoissonModel)}
        own = {key: header[key] for key in ("noise_variance",) if key in header}
        return kinds[header.get("rewards", "gaussian")](tree, mean, classes, **own)  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False, repr=False)
class GaussianModel(Model):
    """A Gaussian hierarchical prior on a tree, with Gaussian rewards.

    The root's parameter is drawn around `mean`, every other node's around its parent's, each with its own
    covariance; a reward is the action's parameter (or its product with the context) plus noise of variance
    `noise_variance`.

    A number for `mean` makes a K-armed bandit: parameters are numbers and no context is taken. A vector, also one of
    length 1, makes a contextual linear bandit with contexts of that length. `covariance` is a number or a matrix
    for every node, or `by_depth`, `by_height`, `by_node`; a number stands for that multiple of the identity, and
    zeros are fine.

    >>> import bough
    >>> tree = bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])
    >>> bough.GaussianModel(tree, mean=[0.0, 0.0], covariance=bough.by_depth([4.0, 2.0, 1.0]))
    GaussianModel(n_actions=3, height=2, dim=2, noise_variance=1.0)
    """

    noise_variance: float = 1.0
    rewards: ClassVar[str] = "gaussian"
    has_counts: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "noise_variance", _checked_noise(self.noise_variance))

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, noise_variance={self.noise_variance})"

    def contents(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The header and the arrays that a file keeps of a model."""
        header, arrays = super().contents()
        return {**header, "noise_variance": self.noise_variance}, arrays

    def mean_reward(self, score: Any) -> Any:
        """The score itself."""
        return score

    def expected_reward(self, mean: Floats, variance: Floats) -> Floats:  # noqa: ARG002
        """The mean of the score."""
        return mean

    @classmethod
    def checked_exposure(cls, rewards: Floats, trials: Any, exposure: Any) -> None:  # noqa: ARG003
        """Gaussian rewards have none."""
        cls.check_word(trials, exposure)

    def draw_noise(self, rng: np.random.Generator, rounds: int) -> Floats:
        """Normal, with the noise's variance."""
        return np.asarray(rng.standard_normal(rounds) * np.sqrt(self.noise_variance))

    def reward(self, mean: float, noise: float) -> float:
        """Their sum."""
        return mean + noise


@dataclass(frozen=True, eq=False, repr=False)
class BernoulliModel(Model):
    """The same prior on a tree, for clicks: a reward is 1 with probability sigmoid(parameter), and 0 otherwise.

    Parameters, and so `mean` and `covariance`, are log-odds; with a vector for `mean`, the log-odds of a reward are the
    product of the action's parameter with the context. Rewards may also come as n successes out of m `trials`.
    The posterior is Gaussian as well, by expectation propagation: docs/clicks.md says how close that is.

    >>> import bough
    >>> tree = bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])
    >>> model = bough.BernoulliModel(tree, mean=-3.0, covariance=0.5)
    >>> model
    BernoulliModel(n_actions=3, height=2, dim=1)
    >>> posterior = bough.Posterior(model)
    >>> posterior.update("coffee", 1)
    >>> posterior.update(["tea/green", "tea/black"], [30, 12], trials=[200, 150])
    >>> posterior.mean_reward().mean.round(2)
    array([0.15, 0.15, 0.08])
    """

    rewards: ClassVar[str] = "bernoulli"

    def mean_reward(self, score: Any) -> Any:
        """The probability of a success."""
        return expit(score)

    def expected_reward(self, mean: Floats, variance: Floats) -> Floats:
        """The mean of the sigmoid of a normal score."""
        return logistic_mean(mean, variance)

    @classmethod
    def checked_exposure(cls, rewards: Floats, trials: Any, exposure: Any) -> Floats:
        """The trials of each reward: 1 where none are given."""
        cls.check_word(trials, exposure)
        given = _columns(trials, "trials", rewards)
        sound = (given >= 1.0) & (given == np.floor(given)) & (given < LARGEST)
        _check(given, sound, "number of trials", "a whole number of 1 or more")
        _check(
            rewards,
            (rewards >= 0.0) & (rewards <= given) & (rewards == np.floor(rewards)),
            "reward",
            "0 or 1, or with trials=m a whole number of successes from 0 to m"
            if trials is None
            else "a whole number of successes from 0 to its trials",
        )
        return given

    def draw_noise(self, rng: np.random.Generator, rounds: int) -> Floats:
        """Uniform on [0, 1)."""
        return rng.random(rounds)

    def reward(self, mean: float, noise: float) -> float:
        """A success where the noise is below the probability."""
        return float(noise < mean)


@dataclass(frozen=True, eq=False, repr=False)
class PoissonModel(Model):
    """The same prior on a tree, for counts: a reward is Poisson with mean exposure times exp(parameter).

    Parameters, and so `mean` and `covariance`, are logarithms of rates; with a vector for `mean`, the log-rate is the
    product of the action's parameter with the context. `exposure` is how long, or how much, was counted.

    >>> import bough
    >>> tree = bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])
    >>> model = bough.PoissonModel(tree, mean=1.0, covariance=0.5)
    >>> posterior = bough.Posterior(model)
    >>> posterior.update("coffee", 4)
    >>> posterior.update(["tea/green", "tea/black"], [12, 31], exposure=[2.0, 4.5])
    >>> posterior.mean_reward().mean.round(1)
    array([4.1, 5.9, 6.8])
    """

    rewards: ClassVar[str] = "poisson"

    def mean_reward(self, score: Any) -> Any:
        """The rate."""
        with np.errstate(over="ignore"):
            return np.exp(score)

    def expected_reward(self, mean: Floats, variance: Floats) -> Floats:
        """The mean of the exponential of a normal score."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(mean + 0.5 * variance))

    @classmethod
    def checked_exposure(cls, rewards: Floats, trials: Any, exposure: Any) -> Floats:
        """The exposure of each reward: 1 where none is given."""
        cls.check_word(trials, exposure)
        given = _columns(exposure, "exposure", rewards)
        _check(given, (given > 1.0 / LARGEST) & (given < LARGEST), "exposure", "a positive, finite number")
        sound = (rewards >= 0.0) & (rewards == np.floor(rewards)) & (rewards < LARGEST)
        _check(rewards, sound, "reward", "a count, a whole number of 0 or more")
        return given

    def draw_noise(self, rng: np.random.Generator, rounds: int) -> Floats:
        """Uniform on [0, 1)."""
        return rng.random(rounds)

    def reward(self, mean: float, noise: float) -> float:
        """The quantile of the Poisson distribution."""
        if not mean <= MOST_COUNTED:
            raise ValueError(f"a mean reward of {mean:g} is too large to simulate counts of; give smaller variances")
        if mean == 0.0 or noise <= float(np.exp(-mean)):
            return 0.0
        found = float(np.ceil(pdtrik(noise, mean)))
        return found - 1.0 if found >= 1.0 and pdtr(found - 1.0, mean) >= noise else found


def _refuse(given: Any, what: str, owner: str) -> None:
    if given is not None:
        raise ValueError(f"{what} was given, which goes with a bough.{owner}; leave it out")


def _columns(given: Any, what: str, rewards: Floats) -> Floats:
    """Numbers beside the rewards, all 1 where none are given."""
    if given is None:
        return np.ones(len(rewards))
    column = inputs.floats(given, what)
    if column.ndim == 0:
        column = np.broadcast_to(column, rewards.shape)
    if column.shape != rewards.shape:
        raise ValueError(f"{what} has shape {column.shape} and the rewards {rewards.shape}; give one for each")
    return np.ascontiguousarray(column)


def _check(values: Floats, sound: Any, what: str, wanted: str) -> None:
    if not sound.all():
        row = int(np.flatnonzero(~sound)[0])
        where = f" in row {row}" if len(values) > 1 else ""
        raise ValueError(f"the {what}{where} is {values[row]:g}; give {wanted}")


def _checked_noise(noise_variance: Any) -> float:
    try:
        value = inputs.number(noise_variance, "noise_variance")
    except ValueError:
        value = float("nan")
    if not 1.0 / LARGEST < value < LARGEST:
        raise ValueError(
            f"noise_variance is {noise_variance!r}; give a positive, finite number, "
            f"between {1 / LARGEST:g} and {LARGEST:g}"
        )
    return value
