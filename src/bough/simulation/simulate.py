"""simulate(...): many runs of many policies on problems drawn from a model, from one seed.

Each run draws its own true parameters, so what is estimated is the Bayes regret. Every policy of a run meets the same
truth, the same contexts and the same noise in each round. A policy's own randomness depends on the seed, the run
and the policy's name, so neither the number of jobs nor the other policies change its numbers.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np

from bough import _checks, _seeds
from bough._arrays import Floats, Integers
from bough._frames import make_frame
from bough.model.model import Model
from bough.policies.base import Policy
from bough.simulation.drifting import Drifting
from bough.simulation.runs import Runner, RunResult, is_compiled, runner
from bough.simulation.worlds import Contexts, FromPrior, Problem, World, context_rows

_MOST_JOBS = 1_000_000  # what joblib takes
_CHUNKS = 32  # tasks that the runs are dealt out in: enough to balance jobs, few enough to start quickly


@dataclass(frozen=True)
class Simulation:
    """The regret of every policy in every run and round.

    >>> import bough
    >>> model = bough.problems.increasing(branching=3, height=2)
    >>> run = bough.simulate(model, {"HierTS": bough.HierTS, "TS": bough.TS}, rounds=100, runs=20, seed=0)
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
    """For each policy how long a run took by the clock, (runs,)."""
    n_actions: int
    """How many actions there were; in the first run, where runs differ."""
    best: float
    """The mean reward that regret is measured against, averaged over runs and rounds."""

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
        if not isinstance(policy, str) or policy not in self.regret:
            raise KeyError(f"no policy {policy!r} was simulated; there are {list(self.regret)}")
        return self.regret[policy]

    def summary(self) -> str:
        """The final regret of each policy with its standard error, as a small table to print."""
        width = max(8, *(len(name) for name in self.regret))
        title = f"(cumulative, after {self.rounds} rounds, mean of {self.runs} runs and its standard error)"
        rows = [(name, f"{self.mean(name)[-1]:.1f}", f"{self.standard_error(name)[-1]:.1f}") for name in self.regret]
        wide, narrow = (max(least, *(2 + len(row[i]) for row in rows)) for i, least in ((1, 10), (2, 7)))
        lines = [f"{'policy':<{width}}{'regret':>{wide}}{'±':>{narrow}}  {title}"]
        lines += [f"{name:<{width}}{mean:>{wide}}{error:>{narrow}}" for name, mean, error in rows]
        return "\n".join(lines)

    def to_frame(self, backend: str | None = None) -> Any:
        """A tidy frame with columns policy, round, mean, se and runs.

        `backend` is "pandas", "polars" or "pyarrow"; the first of them that is installed where it is None.
        """
        rounds = np.tile(np.arange(1, self.rounds + 1), len(self.regret))
        columns = {
            "policy": np.repeat(list(self.regret), self.rounds).tolist(),
            "round": rounds,
            "mean": np.concatenate([self.mean(name) for name in self.regret]),
            "se": np.concatenate([self.standard_error(name) for name in self.regret]),
            "runs": np.full(len(rounds), self.runs),
        }
        return make_frame(columns, backend)

    def plot(self, ax: Any = None) -> Any:
        """Draw the mean regret of each policy against rounds with standard-error bands; returns the axes."""
        from bough.plotting import plot_regret  # matplotlib loads when something is drawn

        curves = {name: (self.mean(name), self.standard_error(name)) for name in self.regret}
        return plot_regret(curves, ax)


def simulate(
    model: Model | Problem,
    policies: Mapping[str, Any],
    rounds: int,
    runs: int,
    seed: Any = None,
    jobs: int | None = None,
    *,
    contexts: Contexts = None,
    progress: Callable[[int], None] | None = None,
) -> Simulation:
    """Simulate policies on problems drawn from the model, or on those of a `Problem` of your own.

    Where the model has `drift`, its actions drift in the world as well, with that half-life in rounds.

    `policies` maps a name to a policy class such as `HierTS`, to any function of a model and `seed` that makes a
    `Policy`, or to a fresh policy object, which is copied for each run (and, unless it is one of bough's, draws the
    same random numbers in each, so prefer a function). On trees of up to 2,000 nodes bough's own run compiled from the
    first to the last round (all but BayesUCB with contexts); others run at the speed of Python, with the same results,
    and so do all in worlds that move. A policy that keeps time is told the number of each round, from 0: ``now``.

    `contexts`, for a contextual model, is an array whose rows are drawn at random, or a function of a generator
    and a number n that gives (n, d). `jobs` goes to joblib: None leaves it to `joblib.parallel_config`, which also
    takes a cluster. `progress` is called with the number of runs that were just finished.

    >>> import bough
    >>> model = bough.GaussianModel(bough.Tree.balanced(branching=3, height=1), mean=[0.0, 0.0])
    >>> def customers(rng, n):
    ...     return rng.normal(size=(n, 2))
    >>> run = bough.simulate(model, {"TS": bough.TS}, rounds=50, runs=4, seed=1, contexts=customers)
    >>> (run.regret["TS"] >= 0).all()
    np.True_
    """
    rounds = _checks.whole_number("rounds", rounds, least=1)
    runs = _checks.whole_number("runs", runs, least=2)
    if jobs is not None and (not _checks.is_whole(jobs) or not -_MOST_JOBS <= jobs <= _MOST_JOBS or jobs == 0):
        raise ValueError(f"jobs is {jobs!r}; give how many, -1 for one a core, or None")
    if progress is not None and not callable(progress):
        raise ValueError(f"progress is {progress!r}; give a function of the number of runs that were just finished")
    plan = _checked_policies(policies)
    problem = _checked_problem(model, contexts)
    run_seeds = _seeds.sequence(seed).spawn(runs)
    size = -(-runs // _CHUNKS)
    chunks = [run_seeds[start : start + size] for start in range(0, runs, size)]
    # Compiled runs release the interpreter's lock, so threads share one copy of everything.
    in_threads = isinstance(problem, FromPrior) and all(is_compiled(problem.model, policy) for policy in plan.values())
    regret = {name: np.empty((runs, rounds)) for name in plan}
    tried = {name: np.empty(runs, dtype=np.int64) for name in plan}
    seconds = {name: np.empty(runs) for name in plan}
    best, n_actions = np.empty(runs), np.empty(runs, dtype=np.int64)
    done = 0
    for part in _in_parallel(jobs, in_threads, chunks, problem, plan, rounds):
        n = len(next(iter(part.values())))
        for name, played in part.items():
            for i, one in enumerate(played, done):
                regret[name][i] = np.cumsum(one.gaps)
                tried[name][i], seconds[name][i] = one.tried, one.seconds
                best[i], n_actions[i] = one.best, one.n_actions
        done += n
        if progress is not None:
            progress(n)
    return Simulation(regret, tried, seconds, int(n_actions[0]), float(best.mean()))


def _in_parallel(
    jobs: int | None, in_threads: bool, chunks: list[list[np.random.SeedSequence]], *task: Any
) -> Iterator[dict[str, list[RunResult]]]:
    try:
        import joblib
    except ImportError:
        if jobs not in (None, 1):
            raise ValueError(f"jobs is {jobs} but joblib is not installed; pip install 'bough[simulate]'") from None
        return (_run_chunk(chunk, *task) for chunk in chunks)
    parallel = joblib.Parallel(n_jobs=jobs, prefer="threads" if in_threads else "processes", return_as="generator")
    return iter(parallel(joblib.delayed(_run_chunk)(chunk, *task) for chunk in chunks))


def _run_chunk(
    run_seeds: Iterable[np.random.SeedSequence], problem: Problem, plan: Mapping[str, Any], rounds: int
) -> dict[str, list[RunResult]]:
    """What each policy came to in the runs with these seeds."""
    played: dict[str, list[RunResult]] = {name: [] for name in plan}
    runners: dict[str, Runner] = {}
    model = None
    for seed in run_seeds:
        world = problem.world(rounds, np.random.default_rng(_seeds.child(seed, 0)))
        if not isinstance(world, World) or world.rounds != rounds:
            raise ValueError(f"the problem made {world!r:.80}; give a bough.World of {rounds} rounds")
        if world.model is not model:  # most problems have one model for all runs
            model = world.model
            runners = {name: runner(model, policy) for name, policy in plan.items()}
        for name, play in runners.items():
            rng = np.random.default_rng(_seeds.child(seed, 1, zlib.crc32(name.encode())))
            played[name].append(play(world, rng))
    return played


def _checked_policies(policies: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(policies, Mapping) or not policies:
        raise ValueError(f"policies is {policies!r}; give a mapping from names to policies")
    for name, policy in policies.items():
        if not isinstance(name, str):
            raise ValueError(f"the policy name {name!r} is a {type(name).__name__}; names are strings")
        if not callable(policy) and not isinstance(policy, Policy):
            raise ValueError(
                f"policy {name!r} is {policy!r}; give a policy class, a function that makes one, or a policy"
            )
    return dict(policies)


def _checked_problem(model: Model | Problem, contexts: Contexts) -> Problem:
    if not isinstance(model, Model):
        if not isinstance(model, Problem):
            raise ValueError(
                f"model is a {type(model).__name__}; give one such as bough.GaussianModel, or a problem with world()"
            )
        if contexts is not None:
            raise ValueError("contexts were given to a problem, whose worlds have their own; leave them out")
        return model
    if model.is_scalar:
        if contexts is not None:
            raise ValueError("contexts were given to a model without contexts; leave them out")
        drift: Any = getattr(model, "drift", None)
        if isinstance(drift, timedelta):
            raise ValueError(f"the model's drift is {drift!r}, but here time is counted in rounds; give it as a number")
        return FromPrior(model) if drift is None else Drifting(model, drift)
    if contexts is None:
        raise ValueError(f"the model takes contexts of length {model.dim}; give contexts=, an array or a function")
    if callable(contexts):
        return FromPrior(model, contexts)
    given = _checks.floats(contexts, "context")
    return FromPrior(model, context_rows(given, (len(given) if given.ndim else 0, model.dim)))
