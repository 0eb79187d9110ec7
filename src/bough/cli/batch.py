"""bough batch: what an agent in a file would choose for every row of a file."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from bough import _seeds
from bough._arrays import Floats
from bough.cli import inputs, output

_CHUNK = {"cpu": 2**14, "gpu": 2**18}  # rows that are read, decided and written at a time


class _Rows(NamedTuple):
    """Some rows: how many, what they go by, and their contexts, which are None where there are none."""

    n: int
    ids: Any
    contexts: Any


def batch(given: argparse.Namespace) -> None:
    """Decide for every row, and write the decisions; the agent's file stays as it is."""
    from bough.batch import streams

    inputs.check_target(given.out, "--out")
    inputs.check_seed(given.seed)
    for option, value, least in (("k", given.k, 1), ("samples", given.samples, 1), ("n", given.n, 0)):
        if value is not None and value < least:
            raise ValueError(f"--{option} is {value}; give at least {least}")
    streams.is_parquet(given.out, "--out")
    output.watch(given, lambda: [given.out])
    agent = inputs.load_agent(given.agent)
    if given.seed is not None:
        agent._rng = _seeds.generator(given.seed)
    among = None if given.among is None else inputs.names_in(agent._model.tree, given.among, "--among")
    decide, note = _decider(agent, given, among)
    likely = _propensities(agent, given, among) if given.propensities else None
    done = 0
    with (
        _opened(given, agent._model) as (total, parts),
        streams.DecisionFile(given.out, given.k, given.id, given.propensities) as out,
        output.progress("batch", total) as advance,
    ):
        for rows in parts:
            try:
                actions, scores = decide(rows, done)
                chances = None if likely is None else likely(actions, rows, done)
            except ValueError as error:
                if given.contexts is None:
                    raise
                raise ValueError(f"{given.contexts}, from row {done}: {error}") from error
            out.write(rows.ids, actions, scores, chances)
            done += rows.n
            advance(rows.n)
    text = f"decisions: {given.out} ({done:,})" + (f"\nnote: {note}" if note else "")
    output.show(given, text, {"decisions": given.out, "n": done, "columns": out.columns, "note": note or None})


def _decider(
    agent: Any, given: argparse.Namespace, among: list[Any] | None
) -> tuple[Callable[[_Rows, int], tuple[Any, Floats]], str]:
    """What gives (n, k) names and scores of rows, of which so many came before; and a note about its digits."""
    if given.device == "cpu":
        from bough.policies.many import checked_jobs

        jobs = checked_jobs(given.jobs)

        def on_cpu(rows: _Rows, _: int) -> tuple[Any, Floats]:
            asked = rows.n if rows.contexts is None else rows.contexts
            names, scores = agent._decided_many(asked, given.k, among, "cpu", jobs)
            actions = np.empty(len(names), dtype=object)
            actions[:] = names
            return actions.reshape(scores.shape), scores

        return on_cpu, ""
    if given.jobs is not None:
        raise ValueError("--jobs goes with --device cpu; leave it out")
    scorer = agent._scorer("gpu")
    decide = scorer._stream(1 if given.k is None else given.k, agent._rng, among)

    def on_gpu(rows: _Rows, first: int) -> tuple[Any, Floats]:
        chosen = decide(rows.n if rows.contexts is None else rows.contexts, first)
        return chosen.actions, chosen.scores

    return on_gpu, scorer.note


def _propensities(
    agent: Any, given: argparse.Namespace, among: list[Any] | None
) -> Callable[[Any, _Rows, int], Floats]:
    """What gives (n, k) propensities of the actions of rows, of which so many came before."""
    known: dict[Any, float] = {}  # of actions, where there are no contexts
    seeds = _seeds.sequence(agent._rng)

    def likely(actions: Any, rows: _Rows, first: int) -> Floats:
        found = np.empty(actions.shape)
        contexts = rows.contexts
        if contexts is not None:
            contexts = agent._checked_rows(contexts)
        for i, names in enumerate(actions.tolist()):
            asked = [name for name in names if contexts is not None or name not in known]
            if asked:
                rng = np.random.default_rng(_seeds.child(seeds, first + i))
                context = None if contexts is None else contexts[i]
                answer = agent.propensity(asked, context, k=given.k, among=among, samples=given.samples, seed=rng)
                known.update(zip(asked, answer.probability.tolist(), strict=True))
            found[i] = [known[name] for name in names]
        return found

    return likely


# -- reading ---------------------------------------------------------------------------------------


@contextmanager
def _opened(given: argparse.Namespace, model: Any) -> Iterator[tuple[int, Iterator[_Rows]]]:
    """How many rows there are, and the rows, chunk by chunk."""
    size = _CHUNK[given.device]
    if model.is_scalar:
        if given.contexts is not None or given.context is not None or given.id is not None:
            raise ValueError("the agent takes no contexts; leave out the file, --context and --id, and give --n")
        if given.n is None:
            raise ValueError("--n is missing; the agent takes no contexts, so give how many decisions")
        yield given.n, (_numbered(start, min(size, given.n - start), None) for start in range(0, given.n, size))
        return
    if given.n is not None:
        raise ValueError("--n goes with an agent that takes no contexts; leave it out, there is one decision for a row")
    if given.contexts is None:
        raise ValueError(f"the agent takes contexts of length {model.dim}; give a file with one in each row")
    from bough.batch import streams

    by_place = None if given.context is None else inputs.listed(given.context, "--context")
    names = by_place or _feature_columns(model)
    others = [] if given.id is None or given.id in names else [given.id]
    if streams.is_parquet(given.contexts, "the file of contexts"):
        file = streams.opened_parquet(given.contexts)
        present = set(file.schema_arrow.names)
        wanted = [name for name in names if by_place or name in present or name != "intercept"]
        tables = streams.parquet_tables(given.contexts, wanted + others, size)
        yield file.metadata.num_rows, _rows(tables, given.id, wanted, by_place)
        return
    from bough.data.files import opened_table

    wanted = names if by_place else [name for name in names if name != "intercept"]
    with opened_table(given.contexts, wanted + others, size) as (total, tables):
        yield total, _rows(tables, given.id, wanted, by_place)


def _feature_columns(model: Any) -> list[str]:
    """The columns that an agent's features take."""
    from bough.model.encoders import input_names

    if model.feature_names is None:
        raise ValueError(f"the agent's features have no names; name the {model.dim} columns by --context, in its order")
    taken = None if isinstance(model.features, tuple) else input_names(model.features)
    return list(model.feature_names if taken is None else taken)


def _rows(tables: Iterator[Any], id_name: str | None, names: Sequence[str], by_place: Any) -> Iterator[_Rows]:
    start = 0
    for table in tables:
        contexts = table.select(list(names))
        if by_place:
            contexts = np.column_stack([_numbers(table[name], name) for name in names])
        if id_name is None:
            yield _numbered(start, table.num_rows, contexts)
        else:
            yield _Rows(table.num_rows, table[id_name].combine_chunks(), contexts)
        start += table.num_rows


def _numbered(start: int, n: int, contexts: Any) -> _Rows:
    return _Rows(n, np.arange(start, start + n), contexts)


def _numbers(column: Any, name: str) -> Floats:
    values = column.to_numpy()
    if values.dtype.kind not in "iufb":
        raise ValueError(f"the column {name!r} is not of numbers; give others by --context")
    return np.asarray(values, dtype=np.float64)
