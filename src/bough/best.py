"""How likely each action is to be the best, what committing to it would cost, and whether it is time to."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.interpolate import BarycentricInterpolator
from scipy.optimize import brentq
from scipy.special import ndtri

from bough import _checks, _seeds
from bough._arrays import Flags, Floats, Integers, Nodes
from bough._frames import make_frame
from bough.data.rows import checked_context
from bough.explanation import one_type, paths
from bough.inference.answers import Answers
from bough.inference.contest_draws import drawn_winners
from bough.inference.winning import MaximumLaw
from bough.model.likelihood import Likelihood
from bough.tree.tree import Tree

_NOTHING = np.empty(0, dtype=np.int32)
_SHOWN = 5  # actions that are printed
_NEIGHBOURS = 10  # points that a quantile is interpolated from

Method = Literal["exact", "sampled"]


@dataclass(frozen=True, repr=False, eq=False)
class Maximum:
    """The mean reward of the best action, whichever that is; made by `Posterior.best`.

    >>> import bough
    >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])))
    >>> posterior.best().maximum
    Maximum(mean=0.564)
    """

    mean: float
    """Its mean."""
    standard_error: float
    """Of that; zero where nothing was drawn."""
    _likelihood: Likelihood
    _scores: Floats
    """Ascending."""
    _at_most: Floats | None
    """How likely the best score is at most each of these; None where they are draws of it."""

    @classmethod
    def of_law(cls, law: MaximumLaw, centre: float, likelihood: Likelihood) -> Maximum:
        """From the law of the best score, as a deviation from the centre."""
        scores, mass = centre + law.x, law.weight * law.density
        rewards = np.asarray(likelihood.mean_reward(scores))
        if law.atom > 0.0 or not len(scores):
            scores = scores if len(scores) else np.array([centre])
            rewards = np.append(likelihood.mean_reward(centre), rewards)
            mass = np.append(law.atom, mass)
        base = float(rewards[np.argmax(mass)])  # so that little is left to add up, and to round
        with np.errstate(over="ignore", invalid="ignore"):
            mean = base + float(np.where(mass > 0.0, mass * (rewards - base), 0.0).sum() / mass.sum())
        return cls(mean, 0.0, likelihood, scores, law.at_most if len(law.x) else np.ones(1))

    @classmethod
    def of_draws(cls, scores: Floats, likelihood: Likelihood) -> Maximum:
        """From draws of the best score."""
        rewards = np.asarray(likelihood.mean_reward(scores))
        error = float(rewards.std(ddof=1) / np.sqrt(len(rewards))) if len(rewards) > 1 else float("inf")
        return cls(float(rewards.mean()), error, likelihood, np.sort(scores), None)

    def __repr__(self) -> str:
        return f"Maximum(mean={self.mean:.3g})"

    def quantile(self, level: float) -> float:
        """What the best action's mean reward is below with this probability.

        >>> import bough
        >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])))
        >>> round(posterior.best().maximum.quantile(0.95), 3)
        2.71
        """
        return float(self._likelihood.mean_reward(self._score(_checks.level(level))))

    def _score(self, level: float) -> float:
        scores, at_most = self._scores, self._at_most
        if at_most is None:
            return float(np.quantile(scores, level))
        i = int(np.searchsorted(at_most, level))
        if i in (0, len(scores)):
            return float(scores[min(i, len(scores) - 1)])
        near = slice(max(0, i - _NEIGHBOURS // 2), i + _NEIGHBOURS // 2)
        normal = ndtri(np.clip(at_most[near], 1e-300, 1.0 - 1e-16))  # which is close to a straight line
        curve = BarycentricInterpolator(scores[near] - scores[i], normal - ndtri(level))
        return float(scores[i] + brentq(lambda x: float(curve(x)), scores[i - 1] - scores[i], 0.0))


@dataclass(frozen=True, repr=False, eq=False)
class Best:
    """How likely each action is to be the best, and what committing to it would cost; made by `Posterior.best`.

    Arrays are in the order of `tree.actions`. Actions that are left out have probability zero.

    >>> import bough
    >>> tree = bough.Tree.from_paths(["tea/green", "tea/black", "coffee/filter", "coffee/espresso"])
    >>> posterior = bough.Posterior(bough.GaussianModel(tree))
    >>> posterior.update(["tea/green", "tea/black", "coffee/filter"], [2.0, 1.0, -1.0])
    >>> best = posterior.best()
    >>> print(best)
                     probability  expected loss  mean reward
    tea/green              0.612          0.284         1.43
    tea/black              0.266          0.784        0.932
    coffee/espresso        0.111            1.9       -0.182
    coffee/filter         0.0113           2.31       -0.591
    >>> best.probability.round(3), best.method
    (array([0.612, 0.266, 0.011, 0.111]), 'exact')
    """

    tree: Tree
    probability: Floats
    """(K,) that the action is the best of all that count."""
    standard_error: Floats
    """(K,) of the probability; zero where nothing was drawn."""
    expected_loss: Floats
    """(K,) the mean reward of the best action, whichever that is, less that of this one: what each round would cost if
    one committed to it now. Infinite where the action is left out."""
    mean_reward: Floats
    """(K,) the expected reward of each action."""
    maximum: Maximum
    """The mean reward of the best action."""
    method: Method
    """Whether probabilities are exact, or from draws."""
    _counts: Flags
    """(K,) whether the action is not left out."""

    @property
    def action(self) -> Hashable:
        """The action to commit to: the one with the least expected loss.

        >>> import bough
        >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])))
        >>> posterior.update("left", 1.0)
        >>> posterior.best().action
        'left'
        """
        return self.tree.name(int(self.tree.leaves[self._place]))

    @property
    def _place(self) -> int:
        """Of the action to commit to; where losses are equal, the likeliest to be the best."""
        least = np.flatnonzero(self.expected_loss == self.expected_loss.min())
        return int(least[np.argmax(self.probability[least])])

    def of(self, name: Hashable) -> float:
        """How likely the best action is the one of that name, or below the category of that name.

        >>> import bough
        >>> tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]})
        >>> best = bough.Posterior(bough.GaussianModel(tree)).best()
        >>> round(best.of("espresso"), 3), round(best.of("tea"), 3)
        (0.385, 0.615)
        """
        low = self.tree.index(name)
        high, total = low + 1, 0.0
        while low < high:  # descendants at one level have consecutive numbers
            total += float(self.probability[slice(*np.searchsorted(self.tree.leaves, [low, high]))].sum())
            low, high = int(self.tree.child_start[low]), int(self.tree.child_start[high])
        return total

    def to_frame(self, top: int | None = 20, backend: str | None = None) -> Any:
        """A frame with one row per action, the likeliest to be the best first; `top=None` has all that count.

        Its columns are name, path, probability, standard_error, expected_loss and mean_reward. `backend` is "pandas",
        "polars" or "pyarrow"; the first of them that is installed where it is None.

        >>> import bough
        >>> tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]})
        >>> frame = bough.Posterior(bough.GaussianModel(tree)).best().to_frame(top=1, backend="polars")
        >>> frame["path"].to_list(), frame["probability"].round(3).to_list()
        (['coffee/espresso'], [0.385])
        """
        if top is not None:
            top = _checks.whole_number("top", top, least=1)
        order = self.likeliest(top)
        nodes = self.tree.leaves[order]
        columns = {name: getattr(self, name)[order] for name in _COLUMNS}
        names = {"name": one_type(self.tree.node_names.names(nodes)), "path": paths(self.tree, nodes)}
        return make_frame({**names, **columns}, backend)

    def likeliest(self, top: int | None) -> Integers:
        """The places of the actions that count, the likeliest to be the best first."""
        counted = np.flatnonzero(self._counts)
        return counted[np.argsort(-self.probability[counted], kind="stable")[:top]]

    def __repr__(self) -> str:
        return f"Best({self.action!r}, probability={self.probability[self._place]:.3g}, method={self.method!r})"

    def __str__(self) -> str:
        rows = [("", "probability", "expected loss", "mean reward")]
        for place in self.likeliest(_SHOWN).tolist():
            numbers = (self.probability[place], self.expected_loss[place], self.mean_reward[place])
            name = str(self.tree.name(int(self.tree.leaves[place])))
            rows.append((name, *(f"{number:.3g}" for number in numbers)))  # type: ignore[arg-type]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows)


_COLUMNS = ("probability", "standard_error", "expected_loss", "mean_reward")


def best_of(
    posterior: Answers,
    context: Any,
    among: Any,
    exclude: Any,
    samples: Any,
    seed: Any,
    *,
    with_retired: bool,
    tree: Tree | None = None,
) -> Best:
    """`Posterior.best`; `tree` has the same actions in the same order, and the names of categories to ask for."""
    samples = _checks.whole_number("samples", samples, least=2)
    rng = _seeds.generator(seed)
    with posterior._lock:
        model = posterior.model  # with all changes of the catalogue, so that the engine has the same nodes
        if context is not None or not model.is_scalar:
            context = checked_context(model, context)
        retired = np.array(list(posterior._retired), dtype=np.int32)
        candidates, excluded = _choices(posterior, among, exclude, _NOTHING if with_retired else retired)
        restored = np.setdiff1d(retired, excluded) if with_retired else _NOTHING
        left_out = excluded if with_retired else np.union1d(excluded, retired)
        actions = np.setdiff1d(model.tree.leaves, left_out).astype(np.int32) if candidates is None else candidates
        reward = np.asarray(model.likelihood.expected_reward(*posterior._engine.action_moments(context)))
        found = posterior._winners(candidates, excluded, restored)
        if found is not None:
            contest, winners = found
            probability = contest.everywhere(winners.place, winners.group)
            error = np.zeros(len(probability))
            maximum = Maximum.of_law(winners.maximum, float(model.mean), model.likelihood)
        else:
            searched = (excluded, restored) if candidates is None else None
            probability, error, scores = drawn_winners(
                posterior._engine, posterior._search_state, context, actions, searched, samples, rng
            )
            maximum = Maximum.of_draws(scores, model.likelihood)
    counts = np.zeros(len(probability), dtype=np.bool_)
    counts[np.searchsorted(model.tree.leaves, actions)] = True
    with np.errstate(invalid="ignore"):
        loss = np.where(counts, np.maximum(maximum.mean - reward, 0.0), np.inf)
    loss[np.isnan(loss)] = np.inf  # both are larger than any number
    method: Method = "sampled" if found is None else "exact"
    return Best(tree or model.tree, probability, error, loss, reward, maximum, method, counts)


def _choices(posterior: Answers, among: Any, exclude: Any, retired: Nodes) -> tuple[Nodes | None, Nodes]:
    """The candidates (None: all actions), and the actions that are left out beside the retired ones."""
    catalogue = posterior._catalogue
    excluded = np.unique(catalogue.action_nodes(_checks.listed(() if exclude is None else exclude, "exclude")))
    if among is None:
        if len(np.union1d(excluded, retired)) == catalogue.n_actions:
            raise ValueError(f"exclude leaves out all {catalogue.n_actions} actions; leave at least one")
        return None, excluded.astype(np.int32)
    names = _checks.listed(among, "among")
    if not names:
        raise ValueError("among is empty; give at least one action, or leave it out for all")
    candidates = np.setdiff1d(catalogue.action_nodes(names), np.union1d(excluded, retired)).astype(np.int32)
    if not len(candidates):
        raise ValueError("every action that among has is excluded or retired; leave at least one")
    return candidates, _NOTHING


# -- when to stop ----------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class StopDecision:
    """Whether to stop and commit to an action, and the numbers that say so; made by `should_stop`.

    Its truth value is `stop`.

    >>> import bough
    >>> agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])), seed=0)
    >>> agent.update(["left", "right"] * 10, [0.0, 1.0] * 10)
    >>> decision = agent.should_stop(loss=0.01)
    >>> print(decision)
    stop: 'right' is the best with probability 0.983 (0.95 wanted) and expected loss 0.0025 (0.01 allowed)
    >>> bool(decision), decision.action
    (True, 'right')
    """

    stop: bool
    action: Hashable
    """The action to commit to: the one with the least expected loss."""
    expected_loss: float
    """What committing to it would cost per round."""
    probability: float
    """How likely it is the best."""
    loss: float | None
    """The largest loss to stop at; None where that does not matter."""
    least_probability: float | None
    """The smallest probability to stop at; None where that does not matter."""
    method: Method
    """Whether these are exact, or from draws."""

    @classmethod
    def of(cls, best: Best, loss: float | None, probability: float | None) -> StopDecision:
        """By limits that have been checked."""
        place = best._place
        found = float(best.expected_loss[place]), float(best.probability[place])
        stop = (loss is None or found[0] <= loss) and (probability is None or found[1] >= probability)
        return cls(stop, best.action, *found, loss, probability, best.method)

    def __bool__(self) -> bool:
        return self.stop

    def __repr__(self) -> str:
        return f"StopDecision(stop={self.stop}, action={self.action!r})"

    def __str__(self) -> str:
        limit = "" if self.least_probability is None else f" ({self.least_probability:g} wanted)"
        most = "" if self.loss is None else f" ({self.loss:g} allowed)"
        what = f"is the best with probability {self.probability:.3g}{limit}"
        cost = f"expected loss {self.expected_loss:.2g}{most}"
        return f"{'stop' if self.stop else 'go on'}: {self.action!r} {what} and {cost}"


def checked_limits(loss: Any, probability: Any) -> tuple[float | None, float | None]:
    """The limits of `should_stop`, or a `ValueError`."""
    if loss is None and probability is None:
        raise ValueError("loss and probability are both None; give at least one of them to stop by")
    if loss is not None:
        number = _checks.number(loss, "loss")
        if isinstance(loss, bool) or number < 0.0:
            raise ValueError(f"loss is {loss!r}; give a number of at least 0, in units of the reward, or None")
        loss = number
    return loss, None if probability is None else _checks.level(probability, "probability")
