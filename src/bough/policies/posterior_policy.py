"""A policy that scores actions by its posterior: how it begins, learns, and is kept in a file."""

from __future__ import annotations

import math
import os
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from bough import _checks, _seeds
from bough._arrays import Floats
from bough._extras import install
from bough._storage import Contents
from bough._text import rounded
from bough.best import Best, StopDecision, best_of, checked_limits
from bough.data.rows import Rows, checked_sums, one_row
from bough.data.statistics import Statistics
from bough.explanation import Explanation
from bough.model.files import model_contents, restored_model
from bough.model.model import Model
from bough.policies import files
from bough.policies.decision import Decision
from bough.policies.living import LivingPolicy, Star
from bough.posterior import Posterior
from bough.prediction import Prediction

if TYPE_CHECKING:
    from bough.learning.online import Refit

_WHOLE = "whole_"  # before the names of the whole model's arrays in a file


class PosteriorPolicy(LivingPolicy):
    """A policy with a posterior; subclasses say which model they assume, and how they score."""

    def __init__(
        self, model: Model | Posterior, seed: Any = None, *, refit: bool = False, half_life: Any = None
    ) -> None:
        self._rng = _seeds.generator(seed)
        self._star = None
        if isinstance(model, Posterior):
            if not self._assumed(model.model).is_same_prior(model.model):
                raise ValueError(
                    f"the posterior is of another model than {type(self).__name__} has; save and resume its own"
                )
            self.posterior = model
            if half_life is not None:
                model._fade_by(half_life)
        elif isinstance(model, Model):
            self.posterior = Posterior(self._assumed(model), half_life=half_life)
        else:
            raise ValueError(f"model is a {type(model).__name__}; give a model, such as bough.GaussianModel")
        if self._reasons_with_a_star:
            self._star = Star(model if isinstance(model, Model) else model.model, self._assumed)
        self._refit = _made_refit(self.posterior, refit)

    _reasons_with_a_star: ClassVar[bool] = False
    """Whether the policy has the actions of a tree below one root, so that the tree itself is kept apart."""

    def _assumed(self, model: Model) -> Model:
        """The model that the policy reasons with, which has the same actions in the same order."""
        return model

    @classmethod
    def resume(
        cls, posterior: Posterior, seed: Any = None, *, statistics: Statistics | None = None, **options: Any
    ) -> Self:
        """A policy that goes on from a posterior, such as one that `Posterior.load` read back.

        The options are those of the class. A posterior keeps what a ``refit=True`` policy needs, so that `statistics`
        are only taken for one from a file of an earlier version, which did not.

        >>> import bough
        >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])))
        >>> posterior.update("left", 1.0)
        >>> bough.HierTS.resume(posterior, seed=0)
        HierTS(n_actions=2, n_observations=1)
        """
        if not isinstance(posterior, Posterior):
            raise ValueError(f"posterior is a {type(posterior).__name__}; give a bough.Posterior")
        if statistics is not None:
            posterior = _checked_twin(posterior, statistics)
        return cls(posterior, seed, **options)

    @property
    def statistics(self) -> Statistics | None:
        """What a policy with ``refit=True`` has observed; None otherwise. See `Posterior.statistics`."""
        return None if self._refit is None or not self.posterior.n_observations else self.posterior.statistics

    def __repr__(self) -> str:
        n_actions, n_observations = self._catalogue.n_actions, self.posterior.n_observations
        return f"{type(self).__name__}(n_actions={n_actions}, n_observations={n_observations})"

    # -- how sure it is ------------------------------------------------------------------------

    def best(
        self,
        context: Any = None,
        among: Sequence[Any] | None = None,
        exclude: Sequence[Any] | None = None,
        *,
        samples: int = 1_000,
        seed: Any = None,
    ) -> Best:
        """How likely each action is to be the best, and what committing to it now would cost; as `Posterior.best`.

        Retired actions are left out. It is the policy's own model that says so: for `TS` and `FlatTS` the one that they
        assume. Categories are those of the whole tree.

        >>> import bough
        >>> tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]})
        >>> agent = bough.TS(bough.GaussianModel(tree), seed=0)
        >>> agent.update(["green", "black", "espresso"], [1.0, 0.5, 0.0])
        >>> best = agent.best()
        >>> best.action, round(best.of("tea"), 3)
        ('green', 0.829)
        """
        with self._moment:
            tree = None if self._star is None else self._star.whole.tree
            return best_of(self.posterior, context, among, exclude, samples, seed, with_retired=False, tree=tree)

    def should_stop(
        self,
        loss: float | None = 0.001,
        probability: float | None = 0.95,
        *,
        context: Any = None,
        among: Sequence[Any] | None = None,
        exclude: Sequence[Any] | None = None,
        samples: int = 1_000,
        seed: Any = None,
    ) -> StopDecision:
        """Whether one may stop here, and commit to the action with the least expected loss.

        One may where that loss, per round and on the scale of the rewards, is at most `loss`, and the action is the
        best with at least this `probability`. None leaves one of them out. The rest is as in `best`.

        >>> import bough
        >>> agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])), seed=0)
        >>> agent.update(["left", "right"] * 5, [0.0, 1.0] * 5)
        >>> print(agent.should_stop())
        go on: 'right' is the best with probability 0.926 (0.95 wanted) and expected loss 0.019 (0.001 allowed)
        >>> bool(agent.should_stop(loss=0.05, probability=None))
        True
        """
        limits = checked_limits(loss, probability)
        return StopDecision.of(self.best(context, among, exclude, samples=samples, seed=seed), *limits)

    # -- learning ------------------------------------------------------------------------------

    def update(
        self,
        action: Any,
        reward: Any,
        context: Any = None,
        *,
        trials: Any = None,
        exposure: Any = None,
        at: Any = None,
        settle: bool = True,
        factors: Any = None,
    ) -> None:
        """Learn from one reward, or from arrays of them, earned `at` some time; as `Posterior.update`.

        With ``settle=False`` a batch of clicks or counts leaves `posterior.settle()` to the caller.

        >>> import bough
        >>> agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])), seed=0)
        >>> agent.update("left", 1.0)
        >>> agent
        HierTS(n_actions=2, n_observations=1)
        """
        given = {"trials": trials, "exposure": exposure, "at": at, "settle": settle, "factors": factors}
        if self._refit is None:
            self.posterior.update(action, reward, context, **given)
            return
        with self._refit.lock:
            self.posterior.update(action, reward, context, **given)
            many = trials is not None or not _checks.is_one(reward)
            self._refit.after(math.inf if many else 1, self.posterior)

    def absorb(self, statistics: Statistics, *, settle: bool = True) -> None:
        """Learn from rows that come summed; as `Posterior.absorb`.

        >>> import bough
        >>> agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])), seed=0)
        >>> agent.absorb(bough.Statistics.from_rows(["left", "left", "right"], [1.0, 2.0, 0.5]))
        >>> agent
        HierTS(n_actions=2, n_observations=3)
        """
        if self._refit is None:
            self.posterior.absorb(statistics, settle=settle)
            return
        with self._refit.lock:
            self.posterior.absorb(statistics, settle=settle)
            self._refit.after(math.inf, self.posterior)

    def _learn(self, place: int, reward: float, context: Floats | None) -> None:
        """`update`, of an action given by its place in `tree.actions`, and of numbers that have been checked."""
        if self._refit is None:
            self._observe(place, reward, context)
            return
        with self._refit.lock:
            self._observe(place, reward, context)
            self._refit.after(1, self.posterior)

    def _observe(self, place: int, reward: float, context: Floats | None) -> None:
        model = self._model
        leaf = model.tree.leaves[place : place + 1]
        if context is None:
            self.posterior._observe_one(int(leaf[0]), reward)
        elif model.effects is not None:
            self.posterior._observe(Rows(leaf, np.array([reward]), None, None, levels=context[None].astype(np.int32)))
        else:
            self.posterior._observe(one_row(model, leaf, reward, context))

    # -- something to look at ------------------------------------------------------------------

    def explain(
        self, decision: Any, context: Any = None, interval: float = 0.95, factors: Mapping[str, Any] | None = None
    ) -> Explanation:
        """Why this action: the path to it, each node against its siblings, as `Posterior.explain` has it.

        `decision` is what `decision` returned, explained in its own context, or the name of an action or a category.
        It is explained by what is known now, which may be more than when it was made. Where it has several actions,
        give the name of one for another than the first.

        >>> import bough
        >>> tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]})
        >>> agent = bough.HierTS(bough.GaussianModel(tree, noise_variance=0.1), seed=0)
        >>> agent.update(["green", "black", "espresso"], [2.0, 1.0, -1.0])
        >>> decision = agent.decision()
        >>> print(agent.explain(decision))
                mean reward  95% interval    rank  observations  share
        (root)          0.2   -1.1 to 1.6                     3   100%
        tea             1.0   -0.2 to 2.3  1 of 2             2    67%
        green           1.9    1.3 to 2.5  1 of 2             1    33%
        chosen with a score of 1.9 and a propensity of 0.98
        """
        if not isinstance(decision, Decision):
            return self.posterior.explain(decision, context, interval, factors)
        if context is not None or factors is not None:
            raise ValueError(
                "a decision has its own context and factors; leave them out, or give the name of an action"
            )
        found = self.posterior.explain(decision.action, decision.context, interval, decision.factors)
        score = self._reward_of_score(decision.scores[0])
        width = found.nodes[-1].high - found.nodes[-1].low
        how_likely = "" if decision.propensity is None else f" and a propensity of {decision.propensity:.2g}"
        return replace(found, note=f"chosen with a score of {rounded(score, width)}{how_likely}")

    def predictive(
        self,
        action: Any,
        level: float = 0.95,
        context: Any = None,
        *,
        trials: Any = None,
        exposure: Any = None,
        factors: Mapping[str, Any] | None = None,
    ) -> Prediction:
        """What the next reward of an action may be, with its interval; as `Posterior.predictive`.

        >>> import bough
        >>> agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])), seed=0)
        >>> agent.update(["left", "left"], [1.0, 2.0])
        >>> mean, low, high = agent.predictive("left")
        >>> round(mean, 2), round(low, 2), round(high, 2)
        (1.2, -1.12, 3.52)
        """
        return self.posterior.predictive(action, level, context, trials=trials, exposure=exposure, factors=factors)

    def _reward_of_score(self, score: float) -> float:
        """A score on the scale of the rewards, to be shown beside mean rewards."""
        return float(self._model.likelihood.mean_reward(np.float64(score)))

    # -- looking -------------------------------------------------------------------------------

    def dashboard(self, path: str | os.PathLike[str], *, title: str | None = None) -> None:
        """Write what has been learned as one self-contained HTML page, to look at or to send to somebody.

        It needs no network and no service. Of a large tree it has the 20,000 nodes with the most rewards, and says what
        it leaves out. The page "Read the dashboard" explains its numbers. It takes the extra `dashboard`.

        >>> import bough, tempfile, pathlib
        >>> agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_nested({"tea": ["green", "black"]})), seed=0)
        >>> agent.update(["green", "black"], [1.0, 0.5])
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "page.html"
        >>> agent.dashboard(path, title="teas")
        >>> path.exists()
        True
        """
        # The views stand to the right of policies, so that it goes by the name that the façade loads.
        try:
            write = import_module("bough").write_dashboard
        except ModuleNotFoundError as error:
            if error.name != "msgspec":
                raise
            raise ModuleNotFoundError(f"the dashboard needs msgspec; {install('dashboard')}", name="msgspec") from error
        write(self, path, title=title)

    # -- files ---------------------------------------------------------------------------------

    @property
    def _options(self) -> dict[str, Any]:
        """What the policy was asked to do, by the names that its class takes; a subclass adds its own."""
        return {"refit": self._refit is not None}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything of the policy to one file, whole or not at all: `load` goes on where it stood.

        The file has the posterior with its evidence, the state of the random numbers, and the options.

        >>> import bough, tempfile, pathlib
        >>> agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])), seed=0)
        >>> agent.update("left", 1.0)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "agent.bough"
        >>> agent.save(path)
        >>> again = bough.HierTS.load(path)
        >>> again, [again.decide() for _ in range(5)] == [agent.decide() for _ in range(5)]
        (HierTS(n_actions=2, n_observations=1), True)
        """
        own_header: dict[str, Any] = {"options": self._options}
        own_arrays: dict[str, Any] = {}
        # Or a reward would be there, and not the refit that it brought about.
        with self._learning, self._moment:
            header, arrays = self.posterior._contents()
            whole = None if self._star is None else self._star.whole
            if self._refit is not None:
                given_header, given_arrays = self._refit.contents(self.posterior)
                own_header, own_arrays = {**own_header, **given_header}, given_arrays
        if whole is not None:
            own_header["whole"], parts = model_contents(whole)
            own_arrays |= {f"{_WHOLE}{name}": array for name, array in parts.items()}
        own_header["generator"] = files.generator_state(self._rng)
        files.write(path, type(self).__name__, {**header, **own_header}, {**arrays, **own_arrays})

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, features: Any = None) -> Self:
        """The policy that `save` wrote; a `ValueError` where the file is not such a one, or damaged.

        `features` are as in `GaussianModel.load`.
        """
        with files.read(path, cls.__name__) as contents:
            options = contents.header["options"]
            if not isinstance(options, dict):
                raise ValueError(f"options is {options!r:.40}; expected a JSON object")
            rng = files.restored_generator(contents.header["generator"])
            policy = cls(Posterior._restored(contents, features), rng, **options)
            if policy._options.keys() != options.keys():
                raise ValueError(f"options has {reprlib.repr(list(options))}; expected {list(policy._options)}")
            if policy._star is not None:
                policy._star.whole = _restored_whole(policy, contents)
            if policy._refit is not None:
                policy._refit.restore(contents)
            return policy


def _restored_whole(policy: PosteriorPolicy, contents: Contents) -> Model:
    """The model on the whole tree of a policy that reasons with a star; its actions are those of the star."""
    header = contents.header["whole"]
    if not isinstance(header, dict):
        raise ValueError(f"whole is {header!r:.40}; expected a JSON object")
    star = policy.posterior.model
    whole = restored_model(contents.part(_WHOLE, header), star.features)
    if type(whole) is not type(star) or np.shape(whole.mean) != np.shape(star.mean):
        raise ValueError("the whole model has other rewards than the one that the policy reasons with")
    if whole.feature_names != star.feature_names:
        raise ValueError("the whole model has other features than the one that the policy reasons with")
    if not np.array_equal(np.asarray(whole.tree.actions), np.asarray(star.tree.actions)):
        raise ValueError("the whole tree has other actions than the one that the policy reasons with")
    return whole


def _made_refit(posterior: Posterior, refit: bool) -> Refit | None:
    """What a policy needs to learn its prior as it goes; None where it is not to."""
    if not isinstance(refit, (bool, np.bool_)):
        raise ValueError(f"refit is {refit!r}; give True or False")
    if not refit:
        return None
    from bough.learning.online import Refit  # loads what few policies need

    return Refit(posterior)


def _checked_twin(posterior: Posterior, statistics: Statistics) -> Posterior:
    """The posterior itself, or, where its evidence is not known, that of the statistics, if they are the same rows."""
    leaves = checked_sums(posterior.model, statistics)
    kind = posterior.model.kind
    known = float(kind.n_observations(statistics.count, statistics.exposure_or_count).sum()) if len(leaves) else 0.0
    if abs(known - posterior.n_observations) > 0.75:  # the posterior's is rounded
        raise ValueError(
            f"the posterior has {posterior.n_observations} observations and the statistics {known:g}; give the "
            "statistics that the policy had, policy.statistics"
        )
    if not posterior._engine.is_partial:
        return posterior
    twin = Posterior(posterior.model)
    twin.absorb(statistics)
    return twin
