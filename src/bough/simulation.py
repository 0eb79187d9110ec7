"""simulate(...): many runs of many policies on problems drawn from a model, from one seed.

Each run draws its own true parameters, so what is estimated is the Bayes regret. Every policy of a run meets the same
truth, the same contexts and the same noise in each round. A policy's own randomness depends on the seed, the run
and the policy's name, so neither the number of jobs nor the other policies change its numbers.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bough import inputs, seeds
from bough.arrays import Floats
from bough.episode import Contexts, World, context_rows, is_compiled, player
from bough.frames import make_frame
from bough.model import GaussianModel
from bough.policies import Policy

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
        if policy not in self.regret:
            raise KeyError(f"no policy {policy!r} was simulated; there are {list(self.regret)}")
        return self.regret[policy]

    def summary(self) -> str:
        """The final regret of each policy with its standard error, as a small table to print."""
        width = max(8, *(len(name) for name in self.regret))
        title = f"(cumulative, after {self.rounds} rounds, mean of {self.runs} runs and its standard error)"
        lines = [f"{'policy':<{width}}{'regret':>10}{'±':>7}  {title}"]
        for name in self.regret:
            lines.append(f"{name:<{width}}{self.mean(name)[-1]:>10.1f}{self.standard_error(name)[-1]:>7.1f}")
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
    model: GaussianModel,
    policies: Mapping[str, Any],
    rounds: int,
    runs: int,
    seed: Any = None,
    jobs: int | None = None,
    *,
    contexts: Contexts = None,
    progress: Callable[[int], None] | None = None,
) -> Simulation:
    """Simulate policies on problems drawn from the model.

    `policies` maps a name to a policy class such as `HierTS`, to any function of a model and `seed` that makes a
    `Policy`, or to a fresh policy object, which is copied for each run (and, unless it is one of bough's, draws the
    same random numbers in each, so prefer a function). bough's own run compiled from the first to
    the last round (all but BayesUCB with contexts); others run at the speed of Python, with the same results.

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
    rounds = inputs.whole_number("rounds", rounds, least=1)
    runs = inputs.whole_number("runs", runs, least=2)
    plan = _checked_policies(policies)
    contexts = _checked_contexts(contexts, model)
    run_seeds = seeds.sequence(seed).spawn(runs)
    size = -(-runs // _CHUNKS)
    chunks = [run_seeds[start : start + size] for start in range(0, runs, size)]
    regret = {name: np.empty((runs, rounds)) for name in plan}
    done = 0
    for part in _in_parallel(
        jobs, all(is_compiled(model, policy) for policy in plan.values()), chunks, model, plan, rounds, contexts
    ):
        n = len(next(iter(part.values())))
        for name, curves in part.items():
            regret[name][done : done + n] = curves
        done += n
        if progress is not None:
            progress(n)
    return Simulation(regret)


def _in_parallel(
    jobs: int | None, compiled: bool, chunks: list[list[np.random.SeedSequence]], *task: Any
) -> Iterator[dict[str, Floats]]:
    try:
        import joblib
    except ImportError:
        if jobs not in (None, 1):
            raise ValueError(f"jobs is {jobs} but joblib is not installed; pip install 'bough[simulate]'") from None
        return (_run_chunk(chunk, *task) for chunk in chunks)
    # Compiled runs release the interpreter's lock, so threads share one copy of everything.
    parallel = joblib.Parallel(n_jobs=jobs, prefer="threads" if compiled else "processes", return_as="generator")
    return iter(parallel(joblib.delayed(_run_chunk)(chunk, *task) for chunk in chunks))


def _run_chunk(
    run_seeds: Iterable[np.random.SeedSequence],
    model: GaussianModel,
    plan: Mapping[str, Any],
    rounds: int,
    contexts: Contexts,
) -> dict[str, Floats]:
    """The cumulative regret of each policy in the runs with these seeds."""
    players = {name: player(model, policy) for name, policy in plan.items()}
    curves: dict[str, list[Floats]] = {name: [] for name in plan}
    for seed in run_seeds:
        world = World(model, rounds, contexts, np.random.default_rng(seeds.child(seed, 0)))
        for name, play in players.items():
            rng = np.random.default_rng(seeds.child(seed, 1, zlib.crc32(name.encode())))
            curves[name].append(np.cumsum(play(world, rng)))
    return {name: np.array(each) for name, each in curves.items()}


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


def _checked_contexts(contexts: Contexts, model: GaussianModel) -> Contexts:
    if model.is_scalar:
        if contexts is not None:
            raise ValueError("contexts were given to a model without contexts; leave them out")
        return None
    if contexts is None:
        raise ValueError(f"the model takes contexts of length {model.dim}; give contexts=, an array or a function")
    if callable(contexts):
        return contexts
    given = np.asarray(contexts, dtype=np.float64)
    return context_rows(given, (len(given) if given.ndim else 0, model.dim))
