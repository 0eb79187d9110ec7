"""What people compare Thompson sampling on a tree with: BayesUCB, Greedy, and Beta sampling of clicks."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from statistics import NormalDist
from typing import Any, Self, cast

import numpy as np

from bough import _seeds
from bough._arrays import Floats, Nodes
from bough.data.rows import checked_rows, checked_sums
from bough.data.statistics import Statistics
from bough.inference.files import restored_retired, retired_contents
from bough.model.bernoulli import BernoulliModel
from bough.model.files import model_contents, restored_model
from bough.model.logistic import logistic_moments
from bough.model.model import Model
from bough.policies import files
from bough.policies.base import as_list
from bough.policies.logged import LoggedPolicy
from bough.policies.posterior_policy import PosteriorPolicy
from bough.policies.propensity import Asked, BetaDraws, Mean, estimated
from bough.tree.catalogue import Catalogue


class BayesUCB(PosteriorPolicy):
    """The action with the highest quantile 1 - 1/t of its exact marginal, t the round.

    The first round, where that quantile is the lowest there is, goes by the median as the second does. With a
    `half_life` the round is what is left of the observations, and one more. The levels of a decision, such as its
    store, add the means of their effects to all scores alike, and nothing to their deviations, so that they do not
    change the choice.

    >>> import bough
    >>> agent = bough.BayesUCB(bough.GaussianModel(bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])), seed=0)
    >>> agent.update(["coffee", "tea/green"], [3.0, -1.0])
    >>> agent.decide()
    'coffee'
    """

    def _scores(self, context: Floats | None) -> Floats:
        round_ = self.posterior.n_observations + 1
        quantile = NormalDist().inv_cdf(1.0 - 1.0 / max(round_, 2))
        mean, variance = self.posterior._score_moments(context)
        return mean + quantile * np.sqrt(variance)

    def _probabilities(self, asked: Asked, _samples: int, _rng: np.random.Generator) -> Mean:
        return self._certain(asked)


class Greedy(PosteriorPolicy):
    """The action with the highest expected reward: no exploration but what ties and priors give.

    >>> import bough
    >>> agent = bough.Greedy(bough.GaussianModel(bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])), seed=0)
    >>> agent.update("tea/green", -1.0)
    >>> agent.decide()
    'coffee'
    """

    def _scores(self, context: Floats | None) -> Floats:
        reward = self.posterior.model.likelihood
        if not reward.is_conjugate:  # uncertainty counts: the mean of a sigmoid is not the sigmoid of the mean
            return np.asarray(reward.expected_reward(*self.posterior.action_moments(context)))
        return self.posterior._draw_scores(self._rng, 0.0, context)

    def _reward_of_score(self, score: float) -> float:
        return score  # which is an expected reward already

    def _probabilities(self, asked: Asked, _samples: int, _rng: np.random.Generator) -> Mean:
        return self._certain(asked)


class BetaTS(LoggedPolicy):
    """Thompson sampling with an independent Beta distribution for each action's probability of a click.

    What most people use for clicks today, as a baseline: it knows nothing of the tree. Each action's prior is the Beta
    distribution with the mean and the variance that its click probability has under the model.

    >>> import bough
    >>> model = bough.BernoulliModel(bough.Tree.from_paths(["tea/green", "tea/black", "coffee"]), mean=-3.0)
    >>> agent = bough.BetaTS(model, seed=0)
    >>> agent.update(["coffee", "tea/green"], [1, 4], trials=[1, 100])
    >>> agent.decide()
    'coffee'
    """

    def __init__(self, model: BernoulliModel, seed: Any = None) -> None:
        if not isinstance(model, Model) or not model.kind.is_logistic or not model.is_scalar:
            raise ValueError(f"model is {model!r}; BetaTS takes a bough.BernoulliModel without contexts")
        self.model = model
        self._rng = _seeds.generator(seed)
        spread, which = np.unique(model.tree.at_leaves(model.marginal_covariance), return_inverse=True)
        prior = np.array([_matched_beta(model.mean, variance) for variance in spread.tolist()])
        self.successes, self.failures = np.ascontiguousarray(prior[which].T)
        self._n_observations = 0
        self._places = Catalogue(model.tree)
        self._never: dict[int, None] = {}
        self._lock = threading.RLock()  # counts are added in place

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            state = {name: value for name, value in self.__dict__.items() if name != "_lock"}
            counts = {"successes": self.successes.copy(), "failures": self.failures.copy()}
            return {**state, **counts, "_never": dict(self._never)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    @property
    def _model(self) -> Model:
        return self.model

    @property
    def _catalogue(self) -> Catalogue:
        return self._places

    @property
    def _retired(self) -> Mapping[int, None]:
        return self._never

    @property
    def _moment(self) -> AbstractContextManager[Any]:
        return self._lock

    @property
    def _n_seen(self) -> int:
        return self._n_observations

    def retire(self, name: Any) -> None:
        """Never choose an action again, or a list of them; as `HierTS.retire`.

        >>> import bough
        >>> agent = bough.BetaTS(bough.BernoulliModel(bough.Tree.from_nested(["left", "right"])), seed=0)
        >>> agent.retire("left")
        >>> agent.decide()
        'right'
        """
        with self._lock:
            self._never |= dict.fromkeys(self._places.to_retire(as_list(name), self._never))

    def restore(self, name: Any) -> None:
        """Choose a retired action again, or a list of them; as `HierTS.restore`.

        >>> import bough
        >>> agent = bough.BetaTS(bough.BernoulliModel(bough.Tree.from_nested(["left", "right"])), seed=0)
        >>> agent.retire("left")
        >>> agent.restore("left")
        >>> agent.retired
        []
        """
        with self._lock:
            for node in self._places.to_restore(as_list(name), self._never):
                del self._never[node]

    @property
    def n_observations(self) -> int:
        """How many trials have been observed."""
        return self._n_observations

    def __repr__(self) -> str:
        return f"BetaTS(n_actions={self.model.tree.n_actions}, n_observations={self._n_observations})"

    def update(self, action: Any, reward: Any, context: Any = None, *, trials: Any = None) -> None:
        """Learn from one reward, or from arrays of them; as `Posterior.update`."""
        rows = checked_rows(self.model, action, reward, context, trials, None)
        assert rows.exposure is not None
        self._add(rows.leaves, rows.rewards, rows.exposure)

    def absorb(self, statistics: Statistics) -> None:
        """Learn from rows that come summed; as `Posterior.absorb`."""
        leaves = checked_sums(self.model, statistics)
        self._add(leaves, statistics.sum_y, statistics.exposure_or_count)

    def _add(self, leaves: Nodes, successes: Floats, trials: Floats) -> None:
        places = np.searchsorted(self.model.tree.leaves, leaves)
        with self._lock:
            np.add.at(self.successes, places, successes)
            np.add.at(self.failures, places, trials - successes)
            self._n_observations += round(float(trials.sum()))

    def _learn(self, place: int, reward: float, _context: None) -> None:
        """`update`, of an action given by its place in `tree.actions`, and of a reward that has been checked."""
        with self._lock:
            self.successes[place] += reward
            self.failures[place] += 1.0 - reward
            self._n_observations += 1

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to one file, whole or not at all; as `HierTS.save`."""
        header, arrays = model_contents(self.model)
        with self._lock:
            counts = {"successes": self.successes.copy(), "failures": self.failures.copy()}
            own, retired = retired_contents(list(self._never))
            more = {"n_observations": self._n_observations, "generator": files.generator_state(self._rng)}
        files.write(path, type(self).__name__, {**header, **more, **own}, {**arrays, **counts, **retired})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The policy that `save` wrote; a `ValueError` where the file is not such a one, or damaged."""
        with files.read(path, cls.__name__) as contents:
            policy = cls(
                cast(BernoulliModel, restored_model(contents)), files.restored_generator(contents.header["generator"])
            )
            n = policy.model.tree.n_actions
            for name in ("successes", "failures"):
                counts = contents.array(name, np.float64, (n,))
                prior = getattr(policy, name)
                if (counts < prior - 1e-6 * np.minimum(prior, 1.0)).any() or not (counts < files.MOST).all():
                    raise ValueError(f"{name} has fewer than the prior does, or more than can be counted")
                setattr(policy, name, counts)
            policy._n_observations = files.whole_number(contents.header, "n_observations")
            policy._never = dict.fromkeys(restored_retired(contents, policy.model.tree).tolist())
            return policy

    def _scores(self, _context: Floats | None) -> Floats:
        with self._lock:
            return np.asarray(self._rng.beta(self.successes, self.failures))

    def _probabilities(self, asked: Asked, samples: int, rng: np.random.Generator) -> Mean:
        candidates = self._choices(asked.excluded) if asked.candidates is None else asked.candidates
        places = np.searchsorted(self.model.tree.leaves, candidates)
        chances = BetaDraws(
            self.successes[places], self.failures[places], np.searchsorted(candidates, asked.nodes), asked.k, rng
        )
        return estimated(chances, len(asked.nodes), samples)


def _matched_beta(mean: float, variance: float) -> tuple[float, float]:
    """The Beta distribution with the moments of sigmoid(score), the score normal."""
    p, spread = logistic_moments(mean, variance)
    size = min(p * (1.0 - p) / max(spread, 1e-300) - 1.0, 1e12)  # where nothing is uncertain, as good as known
    return max(p * size, 1e-9), max((1.0 - p) * size, 1e-9)
