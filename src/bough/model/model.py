"""Model: a prior on a tree, and how the reward of an action comes about; what every policy takes."""

from __future__ import annotations

import os
from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from bough._arrays import Floats
from bough.model.feature_names import shown
from bough.model.likelihood import Likelihood
from bough.model.prior import TreePrior


class MeanReward(NamedTuple):
    """The mean reward of each action, and the ends of its credible interval; made by `Posterior.mean_reward`."""

    mean: Floats
    """The mean reward of each action."""
    low: Floats
    """Where its interval begins."""
    high: Floats
    """Where it ends."""


@dataclass(frozen=True, eq=False, repr=False)
class Model(TreePrior, ABC):
    """A prior on a tree, and the likelihood of a reward given x'theta, the *score*."""

    kind: ClassVar[type[Likelihood]]
    """What kind of rewards the model has."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.factors and not self.kind.takes_factors:
            raise ValueError(
                f"factors go with a bough.GaussianModel, and not with a {type(self).__name__}: each click or count "
                "would change what all others say of the shared effects. Leave them out, or have averages as Gaussian "
                "rewards"
            )
        if self.factors and not self.is_scalar:
            raise ValueError(
                "there are factors and mean is a vector; factors go with models without contexts: give a number for "
                "the mean, or make the factors features of the context"
            )

    def __repr__(self) -> str:
        tree, names = self.tree, self.feature_names
        features = "" if names is None else f", features=[{shown(names)}]"
        return f"{type(self).__name__}(n_actions={tree.n_actions}, height={tree.height}, dim={self.dim}{features})"

    @cached_property
    def likelihood(self) -> Any:
        """How a reward comes about."""
        return self.kind()

    @classmethod
    def _kind_in_file(cls, header: Mapping[str, Any]) -> type[Likelihood]:  # noqa: ARG003
        """What kind of rewards a file's header speaks of."""
        return cls.kind

    @property
    def drift_half_life(self) -> float | None:
        """The half-life with which actions drift, as a number; None where they stand still."""
        return None

    def mean_reward(self, score: Any) -> Any:
        """The mean reward of an action whose score is known: a probability for clicks, a rate for counts.

        >>> import bough
        >>> round(bough.BernoulliModel(bough.Tree.balanced(2, 1)).mean_reward(-3.0), 3)
        np.float64(0.047)
        """
        return self.likelihood.mean_reward(score)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tree, the prior and the noise to one file, whole or not at all.

        >>> import bough, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.bough"
        >>> bough.GaussianModel(bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])).save(path)
        >>> bough.GaussianModel.load(path)
        GaussianModel(n_actions=3, height=2, dim=1, noise_variance=1.0)
        """
        from bough.model.files import write_model  # to the right of this module: a file may hold any kind of model

        write_model(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str], *, features: Any = None) -> Model:
        """The model that `save` wrote, whatever its rewards; a `ValueError` where the file is damaged or no model.

        `features`, as a model takes them, are for a file that has none, or has only the names of what a transformer of
        someone else's made; names that the file has must be the same.
        """
        from bough.model.files import read_model

        return read_model(path, features)
