"""evaluate(...): what policies would have earned, from a log of another policy's decisions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from bough import _checks, _seeds
from bough._arrays import Floats
from bough.data.logged_rows import LoggedRows, read_logged_rows
from bough.data.propensities import PropensitySums, summed_propensities
from bough.evaluation import estimators as methods
from bough.evaluation import intervals
from bough.evaluation.columns import checked_columns
from bough.evaluation.diagnostics import Diagnostics, diagnosed, never_logged
from bough.evaluation.estimators import Estimated
from bough.evaluation.outcomes import Outcomes, outcomes_of_rows, outcomes_of_sums
from bough.evaluation.report import Evaluation, PolicyValue
from bough.evaluation.sample_ratio import ratio_of_sums
from bough.evaluation.targets import chances, checked_policies, probabilities_of
from bough.evaluation.totals import PLAIN, Totals, of_rows, of_sums
from bough.learning.report import PriorFit
from bough.model.model import Model
from bough.posterior import Posterior
from bough.tree.tree import Tree

_INTERVALS = ("cressie-read", "normal", "anytime")


def evaluate(
    policies: Any,
    log: Any,
    tree: Tree,
    action: str = "action",
    reward: str = "reward",
    propensity: str = "propensity",
    *,
    context: Any = None,
    position: str | None = None,
    propensity_error: str | None = None,
    model: Any = None,
    estimators: Sequence[str] = ("snips", "dr", "dm"),
    interval: Literal["cressie-read", "normal", "anytime"] = "cressie-read",
    level: float = 0.95,
    reward_range: tuple[float, float] | None = None,
    samples: int = 200,
    seed: Any = 0,
    bad: Literal["error", "skip", "skip-most"] = "error",
) -> Evaluation:
    """What policies would have earned per row of a log, with intervals, and whether the log can tell.

    `policies` maps names to agents, to dicts or arrays of probabilities (in the order of `tree.actions`), or to
    functions: of the list of actions, or with contexts of an (m, d) array of them, for which it returns (m, K)
    probabilities. `log` is whatever `summarise` takes: a frame, a DuckDB relation, Parquet or CSV files, Spark. Its
    columns have the names that `Decision.to_dict` writes unless you say otherwise. `context` names one column for each
    feature, or one column of lists or dicts; agents and models with features take them by name. `position` is the
    column that says where in a list the row's action was shown. `propensity_error` is used where there is such a
    column.

    `estimators` are "ips", "snips", "dm", "dr", and "mips-1", "mips-2", ... at a depth of the tree. The last two of the
    default need a `model`: a prior or a fit (learned further from this log), a posterior (taken as it is), mean rewards
    for each action (a dict, an array, or with contexts a function), or None for a prior learned from this log.

    `interval` is "cressie-read", "normal", or "anytime" for a log that grows and is looked at again and again.
    `reward_range` is the least and the largest reward that there can be: that of clicks, or of the log, unless given.
    Agents are asked for probabilities with `samples` draws, in contexts for each row. Rows that cannot be used are an
    error, unless `bad` says otherwise, as in `summarise`.

    >>> import bough, numpy, polars
    >>> tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso", "filter"]})
    >>> rng = numpy.random.default_rng(0)
    >>> chosen = rng.integers(4, size=4_000)
    >>> rewards = rng.random(4_000) < numpy.array([0.05, 0.1, 0.15, 0.2])[chosen]
    >>> names = numpy.array(["green", "black", "espresso", "filter"])[chosen]
    >>> log = polars.DataFrame({"action": names, "reward": rewards, "propensity": [0.25] * 4_000})
    >>> report = bough.evaluate({"coffee": {"espresso": 0.5, "filter": 0.5}}, log, tree)
    >>> [(one.estimator, round(one.value, 3)) for one in report.values]
    [('snips', 0.182), ('dr', 0.182), ('dm', 0.181)]
    >>> report.diagnostics.problems
    []
    """
    columns = checked_columns(log, tree, action, reward, propensity, propensity_error, context, position)
    named = checked_policies(policies)
    names = methods.checked_names(estimators, tree)
    _checks.one_of("interval", interval, _INTERVALS)
    level = _checks.level(level)
    given_range = _checked_range(reward_range)
    samples = _checks.whole_number("samples", samples, least=1)
    _seeds.generator(seed)  # for its error
    if interval == "anytime" and given_range is None and not _is_clicks(model):
        raise ValueError(
            'the interval "anytime" needs reward_range, the least and the largest reward that there can be; give both'
        )
    wanted = _Wanted(names, interval, level, samples, seed)
    if context is not None:
        if any(methods.depth_of(name) for name in names):
            raise ValueError("mips needs the logger's probabilities of categories, which vary with the context")
        rows = read_logged_rows(log, tree, columns, bad)
        return _in_contexts(named, rows, tree, model, wanted, given_range)
    if interval == "anytime":
        rows = read_logged_rows(log, tree, columns, bad)
        return _without_contexts(named, rows.sums(), rows, tree, model, wanted, given_range)
    sums = summed_propensities(log, tree, columns, bad)
    return _without_contexts(named, sums, None, tree, model, wanted, given_range)


class _Wanted(NamedTuple):
    """What was asked for, checked."""

    estimators: tuple[str, ...]
    interval: str
    level: float
    samples: int
    seed: Any

    @property
    def needs_a_model(self) -> bool:
        return any(name in methods.NEED_A_MODEL for name in self.estimators)


class _Judged(NamedTuple):
    """One policy: its estimates by name, the totals of its plain rewards, and what was never logged."""

    estimates: dict[str, Estimated]
    totals: Totals
    missing: tuple[float, ...]
    weights: Floats | None
    """(n,) in the order of the log, where an interval needs it."""


def _without_contexts(
    policies: dict[str, Any],
    sums: PropensitySums,
    rows: LoggedRows | None,
    tree: Tree,
    model: Any,
    wanted: _Wanted,
    given_range: tuple[float, float] | None,
) -> Evaluation:
    _check_not_empty(sums)
    limits, notes = _limits(model, sums, given_range)
    shares = sums.rows_at / sums.n_rows
    targets = {
        name: _named(name, probabilities_of, policy, tree, len(sums.positions), wanted.samples, wanted.seed)
        for name, policy in policies.items()
    }
    outcomes = outcomes_of_sums(model, tree, sums) if wanted.needs_a_model else None
    deviations = [math.nan] * len(targets)
    if outcomes is not None and "dm" in wanted.estimators:
        deviations = outcomes.deviations(list(targets.values()), shares)
    judged = {}
    for (name, target), deviation in zip(targets.items(), deviations, strict=True):
        plain = of_sums(sums, target, PLAIN, limits)
        estimates = _of_totals(plain, wanted)
        if outcomes is not None:
            direct = float(shares @ (target * outcomes.means()).sum(axis=1))
            residual = of_sums(sums, target, outcomes.residual(), limits)
            estimates |= {"dm": methods.dm(plain, direct, deviation), "dr": methods.dr(residual, direct)}
        for estimator in wanted.estimators:
            depth = methods.depth_of(estimator)
            if depth is not None:
                estimates[estimator] = methods.mips(tree, depth, sums, target, limits)
        weights = None if rows is None else target[rows.position, rows.place] / rows.propensity
        judged[name] = _Judged(estimates, plain, never_logged(tree, sums.place, shares @ target), weights)
    return _reported(judged, sums, rows, tree, wanted, limits, notes)


def _in_contexts(
    policies: dict[str, Any],
    rows: LoggedRows,
    tree: Tree,
    model: Any,
    wanted: _Wanted,
    given_range: tuple[float, float] | None,
) -> Evaluation:
    sums = rows.sums()
    _check_not_empty(sums)
    limits, notes = _limits(model, sums, given_range)
    outcomes = outcomes_of_rows(model, tree, rows) if wanted.needs_a_model else None
    residual = None if outcomes is None else outcomes.residual_of_rows(rows)
    judged = {}
    for name, policy in policies.items():
        found = _named(name, chances, policy, tree, rows, wanted.samples, wanted.seed)
        weights = found.logged / rows.propensity
        plain = of_rows(weights, rows.reward, PLAIN, limits)
        estimates = _of_totals(plain, wanted)
        if outcomes is not None and residual is not None:
            estimates |= _with_model(outcomes, residual, rows, found, weights, plain, limits)
        judged[name] = _Judged(estimates, plain, never_logged(tree, sums.place, found.mean), weights)
    return _reported(judged, sums, rows, tree, wanted, limits, notes)


def _with_model(
    outcomes: Outcomes,
    residual: Any,
    rows: LoggedRows,
    found: Any,
    weights: Floats,
    plain: Totals,
    limits: tuple[float, float],
) -> dict[str, Estimated]:
    """The estimates of a target that use a model: the direct part varies from row to row."""
    direct, deviation = outcomes.direct(rows, found)
    spread = float(direct.std(ddof=1)) / math.sqrt(len(direct))  # the contexts themselves are a sample
    return {
        "dm": methods.dm(plain, float(direct.mean()), math.hypot(deviation, spread)),
        "dr": methods.dr(of_rows(weights, rows.reward, residual, limits, direct), 0.0),
    }


def _of_totals(plain: Totals, wanted: _Wanted) -> dict[str, Estimated]:
    found = {"ips": methods.ips(plain)}
    if "snips" in wanted.estimators:
        nothing = Estimated(math.nan, math.nan, math.nan, math.nan, None)
        found["snips"] = methods.snips(plain) if plain.w > 0.0 else nothing
    return found


# -- the report ----------------------------------------------------------------------------------


def _reported(
    judged: dict[str, _Judged],
    sums: PropensitySums,
    rows: LoggedRows | None,
    tree: Tree,
    wanted: _Wanted,
    limits: tuple[float, float],
    notes: list[str],
) -> Evaluation:
    values, diagnostics = [], {}
    for name, one in judged.items():
        for estimator in wanted.estimators:
            found = one.estimates[estimator]
            ends, lift_ends = _ends(estimator, found, one, rows, wanted, limits)
            values.append(PolicyValue(name, estimator, found.value, *ends, found.lift, *lift_ends))
        dm, dr = one.estimates.get("dm"), one.estimates.get("dr")
        numbers = () if dm is None or dr is None else (dm.value, dr.value, dr.error)
        diagnostics[name] = diagnosed(one.totals, one.missing, *numbers)
    any_totals = next(iter(judged.values())).totals
    if wanted.interval == "anytime" and any(name not in ("ips", "snips", "dm") for name in wanted.estimators):
        notes.append("only ips and snips have an anytime interval: a model that has seen the log knows its future")
    if sums.skipped:
        notes.append(f"{sums.skipped:,} rows were left out")
    return Evaluation(
        values,
        Diagnostics(diagnostics, tuple(_about_the_log(tree, sums))),
        round(sums.n_rows),
        any_totals.mean_reward,
        math.sqrt(any_totals.reward_variance / any_totals.n),
        wanted.interval,
        wanted.level,
        limits,
        tuple(notes),
    )


def _ends(
    estimator: str,
    found: Estimated,
    one: _Judged,
    rows: LoggedRows | None,
    wanted: _Wanted,
    limits: tuple[float, float],
) -> tuple[intervals.Ends, intervals.Ends]:
    """The intervals of a value and of its lift."""
    if math.isnan(found.value):
        return intervals.NOTHING, intervals.NOTHING
    if wanted.interval == "normal" or estimator == "dm":
        lift = intervals.normal(found.lift, found.lift_error, wanted.level)
        return intervals.normal(found.value, found.error, wanted.level), lift
    if wanted.interval == "anytime":
        if estimator not in ("ips", "snips") or rows is None or one.weights is None:
            return intervals.NOTHING, intervals.NOTHING
        given = one.weights, rows.reward, wanted.level, limits
        return intervals.anytime(*given), intervals.anytime_lift(*given)
    assert found.totals is not None
    widest = limits[1] - limits[0]
    ends = intervals.cressie_read(found.totals, wanted.level).moved(found.offset, limits)
    lift = intervals.cressie_read_lift(found.totals, wanted.level, limits)
    return ends, lift.moved(found.offset, (-widest, widest))


def _about_the_log(tree: Tree, sums: PropensitySums) -> list[str]:
    found = []
    if sums.doubtful:
        found.append(
            f"{sums.doubtful:,} of {sums.n_rows:,.0f} propensities have an error above a third of them; log more "
            "draws (samples=), or exact ones"
        )
    ratio = ratio_of_sums(tree, sums)
    if not ratio.fits:
        found.append(ratio.summary()[0].lower() + ratio.summary()[1:] + "; no estimate can be trusted")
    return found


# -- checks --------------------------------------------------------------------------------------


def _named(name: str, function: Any, *arguments: Any) -> Any:
    """What a function gives for a policy; its errors say which."""
    try:
        return function(*arguments)
    except KeyError as error:
        raise KeyError(f"policy {name!r}: {error.args[0]}") from error
    except ValueError as error:
        raise ValueError(f"policy {name!r}: {error}") from error


def _checked_range(given: Any) -> tuple[float, float] | None:
    if given is None:
        return None
    try:
        found = _checks.floats(given, "reward_range")
    except ValueError:
        found = np.empty(0)
    if found.shape != (2,) or not np.isfinite(found).all() or found[0] >= found[1]:
        raise ValueError(f"reward_range is {given!r:.80}; give the least and the largest reward, such as (0, 1)")
    return float(found[0]), float(found[1])


def _limits(
    model: Any, sums: PropensitySums, given: tuple[float, float] | None
) -> tuple[tuple[float, float], list[str]]:
    """The least and the largest reward that there can be, and what is to be said of them."""
    if given is not None:
        if sums.least_y < given[0] or sums.most_y > given[1]:
            raise ValueError(
                f"reward_range is {given}, and the log has rewards from {sums.least_y:g} to {sums.most_y:g}; give the "
                "range of all rewards that there can be"
            )
        return given, []
    if _is_clicks(model) or (sums.least_y >= 0.0 and sums.most_y <= 1.0 and np.array_equal(sums.y, sums.yy)):
        return (0.0, 1.0), []
    low, high = sums.least_y, sums.most_y
    if low == high:
        low, high = low - 0.5, high + 0.5
    return (low, high), [f"rewards are taken to be between {low:g} and {high:g}, as in the log; give reward_range"]


def _is_clicks(model: Any) -> bool:
    prior = model.model if isinstance(model, (PriorFit, Posterior)) else model
    return isinstance(prior, Model) and prior.kind.largest_mean == 1.0


def _check_not_empty(sums: PropensitySums) -> None:
    if sums.n_rows < 2:
        raise ValueError(f"the log has {sums.n_rows:g} rows that can be used; give at least 2")
