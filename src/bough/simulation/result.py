"""Simulation: what many runs of many policies came to, to print, compare, draw and keep."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from bough import _checks, _storage
from bough._arrays import Floats, Integers
from bough._frames import make_frame
from bough._text import rounded
from bough.model.likelihood import LARGEST

_KIND = "simulation"
_VERSION = 1


class _ByPolicy(dict[str, Any]):
    """What there is of each policy, which says who has played where somebody else is asked for."""

    def __missing__(self, policy: Any) -> Any:
        raise KeyError(f"no policy {policy!r} was simulated; there are {list(self)}")


@dataclass(frozen=True, repr=False)
class Simulation:
    """The regret of every policy in every run and round.

    >>> import bough
    >>> model = bough.problems.increasing(branching=3, height=2)
    >>> run = bough.simulate(model, {"HierTS": bough.HierTS, "TS": bough.TS}, rounds=100, runs=20, seed=0)
    >>> run
    Simulation(policies=['HierTS', 'TS'], runs=20, rounds=100)
    >>> run.regret["HierTS"].shape
    (20, 100)
    >>> run.mean("HierTS")[-1] < run.mean("TS")[-1]
    np.True_
    >>> print(run.summary())
    policy      regret      ±  (cumulative, after 100 rounds, mean of 20 runs and its standard error)
    HierTS        30.9    2.8
    TS            35.5    2.8
    """

    regret: dict[str, Floats]
    """For each policy the cumulative regret, (runs, rounds)."""
    tried: dict[str, Integers]
    """For each policy how many different actions it took, (runs,)."""
    seconds: dict[str, Floats]
    """For each policy how long a run took by the clock, (runs,). The first run of a process also loads what is
    compiled, or compiles it, so compare medians."""
    n_actions: int
    """How many actions there were; in the first run, where runs differ."""
    best: float
    """The mean reward that regret is measured against, averaged over runs and rounds."""

    def __post_init__(self) -> None:
        for what in ("regret", "tried", "seconds"):
            object.__setattr__(self, what, _ByPolicy(getattr(self, what)))

    def __repr__(self) -> str:
        return f"Simulation(policies={list(self.regret)}, runs={self.runs}, rounds={self.rounds})"

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return len(next(iter(self.regret.values())))

    @property
    def rounds(self) -> int:
        """How many rounds a run has."""
        return int(next(iter(self.regret.values())).shape[1])

    def mean(self, policy: str) -> Floats:
        """(rounds,) the cumulative regret of a policy, averaged over the runs: the Bayes regret."""
        return np.asarray(self._of(policy).mean(axis=0))

    def standard_error(self, policy: str) -> Floats:
        """(rounds,) the standard error of `mean`."""
        return np.asarray(self._of(policy).std(axis=0, ddof=1) / np.sqrt(self.runs))

    def _of(self, policy: str) -> Floats:
        return np.asarray(self.regret[policy if isinstance(policy, str) else repr(policy)])

    def summary(self) -> str:
        """The final regret of each policy with its standard error, as a small table to print."""
        width = max(8, *(len(name) for name in self.regret))
        title = f"(cumulative, after {self.rounds:,} rounds, mean of {self.runs:,} runs and its standard error)"
        rows = [(name, f"{self.mean(name)[-1]:.1f}", f"{self.standard_error(name)[-1]:.1f}") for name in self.regret]
        wide, narrow = (max(least, *(2 + len(row[i]) for row in rows)) for i, least in ((1, 10), (2, 7)))
        lines = [f"{'policy':<{width}}{'regret':>{wide}}{'±':>{narrow}}  {title}"]
        lines += [f"{name:<{width}}{mean:>{wide}}{error:>{narrow}}" for name, mean, error in rows]
        return "\n".join(lines)

    def to_frame(self, backend: str | None = None, *, per_run: bool = False) -> Any:
        """A tidy frame with columns policy, round, mean, se and runs; `per_run`: with policy, run, round and regret.

        Regret is cumulative. `backend` is "pandas", "polars" or "pyarrow"; the first of them that is installed where it
        is None. The extra ``frames`` brings all three.

        >>> import bough
        >>> run = bough.simulate(bough.problems.constant(2, 2), {"TS": bough.TS}, rounds=10, runs=3, seed=0)
        >>> run.to_frame("polars").shape, run.to_frame("polars", per_run=True).shape
        ((10, 5), (30, 4))
        """
        if not isinstance(per_run, bool):
            raise ValueError(f"per_run is {per_run!r:.80}; give True for one row for each run and round, or False")
        names = list(self.regret)
        times = self.runs if per_run else 1
        columns: dict[str, Any] = {"policy": np.repeat(names, times * self.rounds).tolist()}
        if per_run:
            columns["run"] = np.tile(np.repeat(np.arange(self.runs), self.rounds), len(names))
        columns["round"] = np.tile(np.arange(1, self.rounds + 1), times * len(names))
        if per_run:
            columns["regret"] = np.concatenate([self.regret[name].ravel() for name in names])
        else:
            columns["mean"] = np.concatenate([self.mean(name) for name in names])
            columns["se"] = np.concatenate([self.standard_error(name) for name in names])
            columns["runs"] = np.full(len(columns["round"]), self.runs)
        return make_frame(columns, backend)

    def compare(self, first: str, second: str, interval: float = 0.95) -> Comparison:
        """How much more regret the first policy has than the second after the last round, run by run.

        The policies of a run meet the same truth and the same noise, so the difference is better known than either.

        >>> import bough
        >>> model = bough.problems.increasing(branching=3, height=2)
        >>> run = bough.simulate(model, {"HierTS": bough.HierTS, "TS": bough.TS}, rounds=100, runs=20, seed=0)
        >>> print(run.compare("HierTS", "TS"))
        HierTS - TS: -5 of regret after 100 rounds (95% interval -11 to 2, paired over 20 runs): not significant
        """
        gaps = self._of(first)[:, -1] - self._of(second)[:, -1]
        width = _quantile(_checks.level(interval, "interval"), self.runs) * float(gaps.std(ddof=1)) / self.runs**0.5
        middle = float(gaps.mean())
        return Comparison(first, second, middle, middle - width, middle + width, interval, self.runs, self.rounds)

    def plot(self, ax: Any = None) -> Any:
        """Draw the mean regret of each policy against rounds, with 95% bands; returns the axes (extra ``plot``).

        A band is where the mean of very many runs is likely to be. `compare` has the interval of a difference, which
        is mostly narrower. Policies are named where their curves end; in axes of your own, and where names are long, in
        a legend. Draw into the axes whatever else belongs there, and call their `legend()` again.
        """
        from bough.plotting import plot_regret  # matplotlib loads when something is drawn

        width = _quantile(0.95, self.runs)
        curves = {one: (self.mean(one), width * self.standard_error(one)) for one in self.regret}
        return plot_regret(curves, self.runs, ax)

    # -- files ---------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of it to one file, whole or not at all.

        >>> import bough, tempfile, pathlib
        >>> run = bough.simulate(bough.problems.constant(2, 2), {"TS": bough.TS}, rounds=10, runs=3, seed=0)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.bough"
        >>> run.save(path)
        >>> bough.Simulation.load(path)
        Simulation(policies=['TS'], runs=3, rounds=10)
        """
        header = {"kind": _KIND, "version": _VERSION, "policies": list(self.regret)}
        named: dict[str, dict[str, Any]] = {"regret": self.regret, "tried": self.tried, "seconds": self.seconds}
        arrays = {what: np.stack([by_policy[name] for name in self.regret]) for what, by_policy in named.items()}
        _storage.write(path, {**header, "n_actions": self.n_actions, "best": self.best}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Simulation:
        """The simulation that `save` wrote; a `ValueError` where the file is not such a one, or damaged."""
        with _storage.read(path, _KIND, _VERSION) as contents:
            names, n_actions, best = (contents.header[key] for key in ("policies", "n_actions", "best"))
            if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
                raise ValueError(f"policies is {names!r:.80}; expected a list of names")
            if len(set(names)) < len(names):
                raise ValueError("two policies have the same name")
            regret = contents.array("regret", np.float64, (len(names), None, None))
            runs, rounds = regret.shape[1:]
            if not (np.abs(regret) < LARGEST).all():
                raise ValueError("a regret is too large to compute with")
            if runs < 2 or rounds < 1:
                raise ValueError(f"there are {runs} runs of {rounds} rounds; expected at least 2 of 1")
            tried = contents.array("tried", np.int64, (len(names), runs))
            seconds = contents.array("seconds", np.float64, (len(names), runs))
            can_be = _checks.is_whole(n_actions) and 1 <= n_actions < 2**31
            if not can_be or (tried < 0).any() or (seconds < 0.0).any():
                raise ValueError("n_actions, tried or seconds are not what they can be")
            best = _checks.number(best, "best")
            by_name = [dict(zip(names, array, strict=True)) for array in (regret, tried, seconds)]
            return cls(by_name[0], by_name[1], by_name[2], n_actions, best)


@dataclass(frozen=True)
class Comparison:
    """The difference of two policies' final regret, paired by runs, with its interval; made by `Simulation.compare`.

    >>> import bough
    >>> model = bough.problems.increasing(branching=3, height=2)
    >>> run = bough.simulate(model, {"HierTS": bough.HierTS, "TS": bough.TS}, rounds=100, runs=20, seed=0)
    >>> run.compare("HierTS", "TS").is_clear
    False
    """

    first: str
    """The name of one policy."""
    second: str
    """The name of the other."""
    difference: float
    """The first policy's regret after the last round less the second's, mean of the runs: below zero where it is
    better."""
    low: float
    """Where the interval of the difference begins."""
    high: float
    """Where it ends."""
    interval: float
    """The level of the interval, Student's, from `low` to `high`."""
    runs: int
    """Over how many runs the policies are paired."""
    rounds: int
    """How many rounds each run has."""

    @property
    def is_clear(self) -> bool:
        """Whether zero is outside the interval."""
        return not self.low <= 0.0 <= self.high

    def __str__(self) -> str:
        # As many digits as the width justifies, or more where otherwise an end would look like 0.
        width = min([self.high - self.low, *(10.0 * abs(end) for end in (self.low, self.high) if end)])
        middle, low, high = (rounded(one, width) for one in (self.difference, self.low, self.high))
        what = f"{self.first} - {self.second}: {middle} of regret after {self.rounds:,} rounds"
        interval = f"{100 * self.interval:.3g}% interval {low} to {high}"
        lower = self.first if self.difference < 0.0 else self.second
        verdict = f"{lower} has less regret" if self.is_clear else "not significant"
        return f"{what} ({interval}, paired over {self.runs:,} runs): {verdict}"


def _quantile(level: float, runs: int) -> float:
    """How many standard errors of a mean of so many runs its interval reaches to either side: Student's."""
    from scipy.special import stdtrit  # takes longer to load than bough itself

    return float(stdtrit(runs - 1, 0.5 + 0.5 * level))
