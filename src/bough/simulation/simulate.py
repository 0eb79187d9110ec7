"""simulate(...): many runs of many policies on problems drawn from a model, from one seed.

Each run draws its own true parameters, so what is estimated is the Bayes regret. Every policy of a run meets the same
truth, the same contexts and the same noise in each round. A policy's own randomness depends on the seed, the run
and the policy's name, so neither the number of jobs nor the other policies change its numbers.
"""

from __future__ import annotations

import reprlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import numpy as np

from bough import _checks, _seeds
from bough._extras import install
from bough._progress import reporting
from bough.data.contexts import many_by_name
from bough.model.model import Model
from bough.policy_table import find_built_in
from bough.simulation.compiled_runs import is_compiled
from bough.simulation.drifting import Drifting
from bough.simulation.protocols import PROBLEM, check_contexts, check_policy, check_problem
from bough.simulation.result import Simulation
from bough.simulation.runs import Position, Runner, RunResult, check_factors, made, runner
from bough.simulation.worlds import Contexts, FromPrior, Problem, World, context_rows

_MOST_JOBS = 1_000_000  # what joblib takes
_CHUNKS = 32  # tasks that the runs are dealt out in: enough to balance jobs, few enough to start quickly


def simulate(
    model: Model | Problem,
    policies: Mapping[str, Any],
    rounds: int,
    runs: int,
    seed: Any = None,
    jobs: int | None = None,
    *,
    contexts: Contexts = None,
    progress: bool | Callable[[int], None] | None = None,
) -> Simulation:
    """Simulate policies on problems drawn from the model, or on those of a `Problem` of your own.

    Where the model has `drift`, its actions drift in the world as well, with that half-life in rounds.

    `policies` maps a name to a policy class such as `HierTS`, to a class or a function of your own that makes a
    `Policy`, or to a policy object. A class or a function is called as ``policy(model, seed=generator)`` for each
    run, with a numpy Generator. An object is copied for each run as it is: one that has learned begins every run with
    what it knows, which in worlds drawn from the prior is of another truth. (Unless it is one of bough's, it also draws
    the same random numbers in each run, so prefer a function.) In each round a policy of your own is called as
    ``decide(context)`` and then as ``update(action, reward, context)``: the action is its name, the reward a float, and
    the context an array that cannot be written to, or None where the model has none. One that has an attribute ``now``
    is told the number of each round in it, from 0. Where the model has factors of the decision, `update` is also given
    ``factors={"store": "north"}``, and so is `decide` if it takes it.

    On trees of up to 2,000 nodes bough's own run compiled from the first to the last round. Others run at the speed of
    Python, with the same results but for how ties round, and so do all in worlds that move, or have their own rewards.

    `contexts`, for a contextual model, is an array whose rows are drawn at random, or a function of a generator
    and a number n that gives (n, d); where the model has `features`, either may be a frame. `jobs` goes to joblib: None
    leaves it to `joblib.parallel_config`, which also takes a cluster; any other number needs the extra ``simulate``.
    `progress=True` shows a bar (extra ``progress``); a function is called with the number of runs that were just
    finished. An error in a policy or a world has a note that says in which policy, run and round it was.

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
    plan = _checked_policies(policies)
    problem = _checked_problem(model, contexts)
    run_seeds = list(enumerate(_seeds.sequence(seed).spawn(runs)))
    size = -(-runs // _CHUNKS)
    chunks = [run_seeds[start : start + size] for start in range(0, runs, size)]
    # Compiled runs release the interpreter's lock, so threads share one copy of everything.
    in_threads = isinstance(problem, FromPrior) and all(is_compiled(problem.model, policy) for policy in plan.values())
    regret = {name: np.empty((runs, rounds)) for name in plan}
    tried = {name: np.empty(runs, dtype=np.int64) for name in plan}
    seconds = {name: np.empty(runs) for name in plan}
    best, n_actions = np.empty(runs), np.empty(runs, dtype=np.int64)
    done = 0
    with reporting(progress, "simulate", runs) as advance:
        for part in _in_parallel(jobs, in_threads, chunks, problem, plan, rounds):
            n = len(next(iter(part.values())))
            for name, played in part.items():
                for i, one in enumerate(played, done):
                    regret[name][i] = np.cumsum(one.gaps)
                    tried[name][i], seconds[name][i] = one.tried, one.seconds
                    best[i], n_actions[i] = one.best, one.n_actions
            done += n
            advance(n)
    return Simulation(regret, tried, seconds, int(n_actions[0]), float(best.mean()))


def _in_parallel(
    jobs: int | None, in_threads: bool, chunks: list[list[tuple[int, np.random.SeedSequence]]], *task: Any
) -> Iterator[dict[str, list[RunResult]]]:
    try:
        import joblib
    except ImportError:
        if jobs not in (None, 1):
            raise ValueError(f"jobs is {jobs} but joblib is not installed; {install('simulate')}") from None
        return (_run_chunk(chunk, *task) for chunk in chunks)
    parallel = joblib.Parallel(n_jobs=jobs, prefer="threads" if in_threads else "processes", return_as="generator")
    return iter(parallel(joblib.delayed(_run_chunk)(chunk, *task) for chunk in chunks))


def _run_chunk(
    run_seeds: Iterable[tuple[int, np.random.SeedSequence]], problem: Problem, plan: Mapping[str, Any], rounds: int
) -> dict[str, list[RunResult]]:
    """What each policy came to in the runs with these numbers and seeds; an error has a note that says where."""
    at = Position()
    try:
        return _play_chunk(run_seeds, problem, plan, rounds, at)
    except Exception as error:
        error.add_note(at.note)
        raise


def _play_chunk(
    run_seeds: Iterable[tuple[int, np.random.SeedSequence]],
    problem: Problem,
    plan: Mapping[str, Any],
    rounds: int,
    at: Position,
) -> dict[str, list[RunResult]]:
    played: dict[str, list[RunResult]] = {name: [] for name in plan}
    runners: dict[str, Runner] = {}
    model = None
    for at.run, seed in run_seeds:
        at.policy = at.round = None
        world = problem.world(rounds, np.random.default_rng(_seeds.child(seed, 0)))
        if not isinstance(world, World) or world.rounds != rounds:
            what = f"a World of {world.rounds} rounds" if isinstance(world, World) else f"{world!r:.80}"
            raise ValueError(f"the problem made {what}; give a bough.World of {rounds} rounds")
        if world.model is not model:  # most problems have one model for all runs
            model = world.model
            runners = {name: runner(name, model, policy) for name, policy in plan.items()}
        rngs = {name: np.random.default_rng(_seeds.child(seed, 1, zlib.crc32(name.encode()))) for name in plan}
        # A policy that somebody brings may not be one: all of them are made before anything is played.
        own = {name: policy for name, policy in plan.items() if find_built_in(policy) is None}
        agents = {name: made(name, policy, model, rngs[name]) for name, policy in own.items()}
        for name, agent in agents.items():
            check_factors(name, world, agent)
        for name, play in runners.items():
            played[name].append(play(world, rngs[name], agents.pop(name, None), at))
    return played


def _checked_policies(policies: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(policies, Mapping) or not policies:
        shown = "empty" if isinstance(policies, Mapping) else reprlib.repr(policies)
        raise ValueError(f'policies is {shown}; give a mapping from names to policies, such as {{"TS": bough.TS}}')
    for name, policy in policies.items():
        if not isinstance(name, str):
            raise ValueError(f"the policy name {name!r:.80} is not a string; give names such as {str(name)!r:.80}")
        check_policy(name, policy)
    return dict(policies)


def _checked_problem(model: Model | Problem, contexts: Contexts) -> Problem:
    if not isinstance(model, Model):
        given: Any = model
        if not isinstance(given, Problem):
            one = "" if isinstance(given, World) else "one such as bough.GaussianModel, or "
            raise ValueError(f"model is a {type(given).__name__}; give {one}{PROBLEM}")
        check_problem(model)
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
        check_contexts(contexts)
        return FromPrior(model, contexts)
    given = _checks.floats(many_by_name(model, contexts), "context")
    return FromPrior(model, context_rows(given, (len(given) if given.ndim else 0, model.dim)))
