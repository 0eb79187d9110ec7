"""World: what every policy of one run meets. A problem makes one for each run; a model is the simplest problem."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from bough import _checks
from bough._arrays import Flags, Floats, Integers
from bough.data.contexts import many_by_name
from bough.model.effects import Effects
from bough.model.model import Model
from bough.simulation.protocols import check_pays

Contexts = Callable[[np.random.Generator, int], Floats] | Floats | None


@dataclass(frozen=True, eq=False)
class Residuals:
    """Real deviations of rewards from their action's mean, to be drawn with replacement.

    In round t an action with n of them gets number ``int(pick[t] * n)``, so that all policies of a run draw alike.
    """

    values: Floats
    """(n,) one action's after another's."""
    start: Integers
    """(K + 1,) where each action's begin; none may be without."""
    pick: Floats
    """(rounds,) uniform on [0, 1)."""

    def __post_init__(self) -> None:
        _set(self, "values", _finite("residuals", self.values, 1))
        _set(self, "pick", _finite("pick", self.pick, 1))
        start = _checks.integers(self.start, "start")
        sound = len(start) > 1 and start[0] == 0
        if not sound or start[-1] != len(self.values) or (np.diff(start) < 1).any():
            raise ValueError(
                f"start does not cut {len(self.values)} residuals into one or more for each action; give the places, "
                f"from 0 to {len(self.values)}, where each action's begin"
            )
        _set(self, "start", np.ascontiguousarray(start, dtype=np.int64))
        if ((self.pick < 0.0) | (self.pick >= 1.0)).any():
            raise ValueError("pick has numbers outside [0, 1); give uniform ones, such as rng.random(rounds)")


@dataclass(frozen=True, eq=False)
class World:
    """The truth of one run: mean rewards, contexts and noise, with the model that policies are given to start from.

    >>> import bough
    >>> class Coins:
    ...     '''Two coins, tossed before policies that take their outcomes for numbers with Gaussian noise.'''
    ...     def world(self, rounds, rng):
    ...         model = bough.GaussianModel(bough.Tree.from_nested(["fair", "bent"]))
    ...         heads = lambda mean, noise: float(noise < mean)
    ...         return bough.World(model, truth=[0.5, 0.7], noise=rng.random(rounds), pays=heads)
    >>> bough.simulate(Coins(), {"TS": bough.TS}, rounds=10, runs=2, seed=0).regret["TS"].shape
    (2, 10)
    """

    model: Model
    truth: Floats | Callable[[Floats], Any]
    """(K,) each action's mean reward, or (K, d) its parameter, in `tree.actions` order. Where the world moves, in a
    K-armed model, (rounds, K): a row for each round. With contexts also a function of a context that gives the (K,)
    mean rewards in it, which need not be as the model has them. Where the model has crossed factors, an action's mean
    reward includes the effects of its own levels, such as its brand's, and not those of the decisions' levels."""
    noise: Floats
    """(rounds,) what is added to the mean reward in each round; where the model's rewards are counts, numbers uniform
    on [0, 1), whose quantile of the reward's distribution is the reward. With `pays` any numbers."""
    contexts: Floats | None = None
    """(rounds, d), with contexts."""
    residuals: Residuals | None = None
    """Each action's own noise, instead of `noise`."""
    eligible: Flags | None = None
    """(K,) the actions among which the best is sought that regret is measured against; all where None."""
    pays: Callable[[float, float], float] | None = None
    """The reward, a function of the mean reward of the action that was taken and of the round's noise; where None, as
    the model has it. It has to be one that the model takes, and regret goes by the means in any case."""
    factors: Mapping[str, Any] | None = None
    """The levels that the decisions have, such as the store where each is made: a dict from the name of every factor
    of the decision to (rounds,) levels. Policies are told them."""
    added: Floats | None = None
    """(rounds,) what these levels add to the mean reward of every action in each round; nothing where None. Regret
    goes without it, since it is the same for all actions."""
    noise_deviations: Floats | None = None
    """(K,) what the round's noise is multiplied by for each action, where actions differ in it; 1 where None. With
    standard normal `noise` these are the standard deviations of the actions' noise."""

    def __post_init__(self) -> None:
        model = self.model
        if not isinstance(model, Model):
            raise ValueError(f"the world's model is a {type(model).__name__}; give one such as bough.GaussianModel")
        n, d = model.tree.n_actions, model.dim
        _set(self, "noise", _finite("noise", self.noise, 1))
        if not callable(self.truth):
            self._check_array(self.truth)
        elif model.is_scalar:
            raise ValueError("the truth is a function, which is one of contexts, and the model has none; give an array")
        if self.pays is not None:
            check_pays(self.pays)
        elif not model.kind.noise_is_added:
            self._check_quantiles()
        if (self.contexts is None) != model.is_scalar:
            raise ValueError(f"contexts go with a model that takes them, and only with such a one; this has d = {d}")
        if self.contexts is not None:
            contexts = context_rows(many_by_name(model, self.contexts), (self.rounds, d))
            contexts.setflags(write=False)  # what one policy does to them, the next would see
            _set(self, "contexts", contexts)
        self._check_factors()
        if self.noise_deviations is not None:
            self._check_noise_deviations(self.noise_deviations)
        if self.residuals is not None and not isinstance(self.residuals, Residuals):
            raise ValueError(f"residuals is a {type(self.residuals).__name__}; give bough.Residuals")
        if self.residuals is not None and self.pays is not None:
            raise ValueError("residuals and pays were given, and either says what the rewards are; choose one")
        if self.residuals is not None and (len(self.residuals.start), len(self.residuals.pick)) != (n + 1, self.rounds):
            raise ValueError(f"the residuals are not those of {n} actions in {self.rounds} rounds")
        if self.eligible is not None:
            _checks.refuse_masked(self.eligible, "eligible")
            eligible = np.asarray(self.eligible)
            if eligible.shape != (n,) or eligible.dtype != np.bool_ or not eligible.any():
                raise ValueError(f"eligible has to be {n} truth values, one or more of them True")
            _set(self, "eligible", np.ascontiguousarray(eligible))

    def _check_factors(self) -> None:
        """Have factors as columns, and what they add as an array; a `ValueError` where they do not go together."""
        effects = self.model.effects
        codes = None if effects is None else effects.decided_codes(self.factors, self.rounds)
        if effects is None and self.factors:
            raise ValueError("factors were given, and the model has none; leave them out")
        if self.added is not None:
            if codes is None:
                raise ValueError("added is what the levels of decisions add, and there are none; leave it out")
            added = _finite("added", self.added, 1)
            if len(added) != self.rounds:
                raise ValueError(f"added has length {len(added)}; give {self.rounds}, one for each round")
            _set(self, "added", added)

    def levels_for(self, model: Model) -> Floats | None:
        """(rounds, m) the levels of the decisions as a model knows them, by their places; None where it has none."""
        if model.effects is None or not model.effects.decided:
            return None
        known = {name: (self.factors or {}).get(name) for name, _, _ in model.effects.decided}
        missing = next((name for name, levels in known.items() if levels is None), None)
        if missing is not None:
            raise ValueError(f"the policy's model has the factor {missing!r}, and the world says nothing of its levels")
        codes = model.effects.decided_codes(known, self.rounds)
        return None if codes is None else codes.astype(np.float64)

    def level_names(self) -> dict[str, list[Any]]:
        """The levels of the decisions by name, (rounds,) of each factor of the decision."""
        effects = self.model.effects
        codes = None if effects is None else effects.decided_codes(self.factors, self.rounds)
        names = None if effects is None or codes is None else effects.decided_names(codes.astype(np.int64))
        return {name: column.tolist() for name, column in (names or {}).items()}

    def _check_array(self, truth: Any) -> None:
        n, d = self.model.tree.n_actions, self.model.dim
        shapes = [(n,), (self.rounds, n)] if self.model.is_scalar else [(n, d)]
        given = _finite("truth", truth, *sorted({len(shape) for shape in shapes}))
        if given.shape not in shapes:
            wanted = " or, where it moves, ".join(map(str, shapes))
            raise ValueError(f"the truth has shape {given.shape}; give {wanted}, in the order of tree.actions")
        _set(self, "truth", given)

    def _check_noise_deviations(self, given: Any) -> None:
        """Refuse deviations that are none, or that nothing would be multiplied by."""
        deviations = _finite("noise_deviations", given, 1)
        n = self.model.tree.n_actions
        if deviations.shape != (n,):
            raise ValueError(
                f"noise_deviations has length {len(deviations)}; give {n}, one per action in the order of tree.actions"
            )
        if (deviations < 0.0).any():
            raise ValueError(f"noise_deviations has {deviations.min():g}; give numbers of 0 or more")
        if self.residuals is not None or self.pays is not None or not self.model.kind.noise_is_added:
            raise ValueError("noise_deviations go with noise that is added to the mean; leave them out here")
        _set(self, "noise_deviations", deviations)

    def _check_quantiles(self) -> None:
        """Refuse what rewards that are quantiles of a distribution cannot be made of."""
        if self.residuals is not None:
            raise ValueError(f"residuals are added to a mean, which makes no reward of a {type(self.model).__name__}")
        if ((self.noise < 0.0) | (self.noise >= 1.0)).any():
            raise ValueError("the noise has numbers outside [0, 1); give uniform ones, such as rng.random(rounds)")
        if self.model.is_scalar:
            self._check_means(self.parameters)

    def _check_means(self, means: Floats) -> None:
        """Refuse mean rewards of no count."""
        most = self.model.kind.largest_mean
        if ((means < 0.0) | (means > most)).any():
            raise ValueError(
                f"the truth is not all from 0 to {most:g}; give the actions' mean rewards, or a model with smaller "
                "variances"
            )

    @property
    def rounds(self) -> int:
        """How many rounds there are."""
        return len(self.noise)

    @property
    def parameters(self) -> Floats:
        """The truth, where it is an array and not a function."""
        if callable(self.truth):
            raise ValueError("the truth is a function of contexts; ask mean_rewards(t) for the means in a round")
        return self.truth

    @property
    def moves(self) -> bool:
        """Whether mean rewards change from round to round, contexts apart."""
        return self.model.is_scalar and self.parameters.ndim == 2

    @property
    def is_plain(self) -> bool:
        """Whether there is one truth for all rounds, and rewards come about as the model has it: what kernels know."""
        is_one = self.noise_deviations is None
        return is_one and self.pays is None and not callable(self.truth) and not self.moves

    def mean_rewards(self, t: int) -> Floats:
        """(K,) the mean reward of each action in round t."""
        return self._mean_rewards(_place("round", t, self.rounds))

    def _mean_rewards(self, t: int) -> Floats:
        if self.contexts is None:
            return self.parameters[t] if self.moves else self.parameters
        if callable(self.truth):
            return self._means_in(self.contexts[t])
        return np.asarray(self.model.mean_reward(self.parameters @ self.contexts[t]))

    def _means_in(self, context: Floats) -> Floats:
        """(K,) what the truth, a function, says in a context."""
        assert callable(self.truth)
        means = _finite("truth", self.truth(context), 1)
        if means.shape != (self.model.tree.n_actions,):
            raise ValueError(
                f"the truth gave {means.shape} mean rewards; give {self.model.tree.n_actions}, one per action"
            )
        if self.pays is None and not self.model.kind.noise_is_added:
            self._check_means(means)
        return means

    def best(self, rewards: Floats) -> float:
        """The highest of mean rewards that counts."""
        if not isinstance(rewards, np.ndarray) or rewards.shape != (self.model.tree.n_actions,):
            raise ValueError(f"the rewards are {reprlib.repr(rewards)}; give an array with one for each action")
        return float(rewards.max() if self.eligible is None else rewards[self.eligible].max())

    def best_rewards(self) -> Floats:
        """(rounds,) the highest mean reward that counts in each round."""
        if self.contexts is None and not self.moves:
            return np.full(self.rounds, self.best(self.parameters))
        counts: Any = slice(None) if self.eligible is None else self.eligible
        if self.contexts is None:
            return np.asarray(self.parameters[:, counts].max(axis=1))
        if callable(self.truth):
            return np.array([self.best(self._means_in(context)) for context in self.contexts])
        truth = self.parameters[counts]
        pieces = [truth @ self.contexts[start : start + 256].T for start in range(0, self.rounds, 256)]
        return np.asarray(self.model.mean_reward(np.concatenate([piece.max(axis=0) for piece in pieces])))

    def average_best(self) -> float:
        """The highest mean reward that counts, averaged over the rounds."""
        if self.contexts is None and not self.moves:
            return self.best(self.parameters)
        return float(self.best_rewards().mean())

    def reward(self, t: int, action: int, mean: float) -> float:
        """The reward of an action, given by its place and its mean reward, in round t."""
        t, mean = _place("round", t, self.rounds), _checks.number(mean, "mean reward")
        return self._reward(t, _place("action", action, self.model.tree.n_actions), mean)

    def _reward(self, t: int, action: int, mean: float) -> float:
        if self.added is not None:
            mean += float(self.added[t])
        if self.pays is not None:
            return self._paid(t, mean)
        if self.residuals is None:
            noise = float(self.noise[t])
            if self.noise_deviations is not None:
                noise *= float(self.noise_deviations[action])
            return float(self.model.likelihood.reward(mean, noise))
        start, end = self.residuals.start[action : action + 2].tolist()
        return mean + float(self.residuals.values[start + int(self.residuals.pick[t] * (end - start))])

    def _paid(self, t: int, mean: float) -> float:
        assert self.pays is not None
        reward = _checks.number(self.pays(mean, float(self.noise[t])), "reward that the world pays")
        if not self.model.likelihood.is_plain(reward):
            raise ValueError(
                f"the world pays {reward:g} in round {t}, which is no reward of a {type(self.model).__name__}; give "
                "policies a model of such rewards"
            )
        return reward


@runtime_checkable
class Problem(Protocol):
    """Anything that makes a `World` for each run; what `simulate` takes beside a model.

    The page "Your own policy, your own world, your own reward" has examples.
    """

    def world(self, rounds: int, rng: np.random.Generator, /) -> World:
        """A world of that many rounds, with all that is random in it drawn from the generator."""
        ...


@dataclass(frozen=True, eq=False)
class FromPrior:
    """The problem of a model: every run draws its own true parameters from the prior."""

    model: Model
    contexts: Contexts = None

    def world(self, rounds: int, rng: np.random.Generator) -> World:
        """True parameters, noise and contexts, drawn in this order."""
        if self.model.effects is not None:
            return self._crossed_world(self.model.effects, rounds, rng)
        truth = np.ascontiguousarray(self.model.tree.at_leaves(self.model.draw(rng)))
        if self.model.is_scalar:
            truth = self.model.mean_reward(truth)
        noise = self.model.likelihood.draw_noise(rng, rounds)
        deviations = self.model.likelihood.draw_deviations(rng, self.model.tree.n_actions)
        contexts: Floats | None = None
        if callable(self.contexts):
            drawn = many_by_name(self.model, self.contexts(rng, rounds))
            contexts = context_rows(drawn, (rounds, self.model.dim)).copy()
        elif self.contexts is not None:
            contexts = self.contexts[rng.integers(len(self.contexts), size=rounds)]
        return World(self.model, truth, noise, contexts, noise_deviations=deviations)

    def _crossed_world(self, effects: Effects, rounds: int, rng: np.random.Generator) -> World:
        """One with crossed effects: decisions come with levels that are all equally likely."""
        model, n_nodes = self.model, self.model.tree.n_nodes
        drawn = model.draw(rng, effects=True)
        truth = model.tree.at_leaves(drawn[:n_nodes]) + effects.totals(drawn[n_nodes:])
        noise = model.likelihood.draw_noise(rng, rounds)
        added, factors = np.zeros(rounds), {}
        for name, factor, first in effects.decided:
            if not factor.levels:
                raise ValueError(
                    f"the factor {name!r} of the decision has no level yet, and each decision is made at one; give it "
                    "levels, as in bough.Factor(levels=[...], at_decision=True)"
                )
            codes = rng.integers(len(factor.levels), size=rounds)
            added += drawn[n_nodes + first + codes]
            factors[name] = [factor.levels[code] for code in codes.tolist()]
        return World(model, truth, noise, factors=factors or None, added=added if factors else None)


def _place(what: str, given: Any, n: int) -> int:
    if not _checks.is_whole(given) or not 0 <= given < n:
        raise ValueError(f"the {what} is {reprlib.repr(given)}; give a place from 0 to {n - 1}")
    return int(given)


def _set(owner: Any, name: str, value: Any) -> None:
    object.__setattr__(owner, name, value)


def _finite(what: str, values: Any, *ndims: int) -> Floats:
    """Values as an array that a kernel can read, in one of these numbers of dimensions."""
    given = _checks.floats(values, what)
    if given.ndim not in ndims or not given.size:
        wanted = " or ".join(map(str, ndims))
        raise ValueError(f"the {what} has shape {given.shape}; give numbers in {wanted} dimension(s), one or more")
    if not np.isfinite(given).all():
        place = tuple(np.argwhere(~np.isfinite(given))[0].tolist())
        at = place[0] if len(place) == 1 else place
        raise ValueError(f"the {what} has {given[place]:g} at {at}; give finite numbers")
    return np.ascontiguousarray(given)


def context_rows(contexts: Any, shape: tuple[int, int]) -> Floats:
    given = np.ascontiguousarray(_checks.floats(contexts, "context"))
    if given.shape != shape or not len(given):
        raise ValueError(f"the contexts have shape {given.shape}; give rows of length {shape[1]}")
    if not np.isfinite(given).all():
        raise ValueError("the contexts are not all finite; drop the rows with NaN or infinite values")
    return given
