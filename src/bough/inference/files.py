"""What a posterior's file keeps: the evidence. Files of version 1 kept messages, from which it is found again.

A file that comes from elsewhere is not believed: a posterior that is restored has evidence that observations could have
made, and laws that can be computed with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bough._arrays import Floats, Nodes
from bough._clock import Clock, check_units, restored_span, span_contents
from bough._storage import Contents
from bough.inference.capped import N_CHAMPIONS, Memory
from bough.inference.engine import Engine
from bough.inference.evidence import Evidence
from bough.inference.kernels.lengths import N_REFERENCES
from bough.inference.old_files import restore_messages, restore_version_1
from bough.inference.scalar import ScalarEngine
from bough.inference.search import Search
from bough.tree.tree import Tree

VERSION = 3  # with crossed factors; without them 2
_MOST_OBSERVATIONS = 2.0**63  # they are shown as integers
_MOST_UNIFORMS = 2**32
_LARGEST_NUMBER = 1e150  # whose square is a number


def evidence_contents(engine: Engine) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header and the arrays that a file keeps of an engine; copies, so that the engine may go on."""
    nodes, table = engine.evidence_rows()
    observed = table[:, 0] > 0.0  # not so where a log that an action is not in was settled since
    arrays = {"evidence_of": nodes[observed], "evidence": table[observed]}
    arrays |= engine.extra_arrays()
    return {"partial": engine.is_partial}, arrays


@dataclass(frozen=True)
class RawEvidence:
    """Copies of all that an engine has observed, as it stands there: taking them is quick, whatever is put off."""

    kind: Evidence
    is_partial: bool
    table: Floats
    """(n_rows, width)"""
    unit: float
    """How much an observation of the table counts."""
    node: Nodes
    """(n_rows,) the action of each row; -1 where there is none any more."""
    extra: dict[str, Any]

    @classmethod
    def of(cls, engine: Engine) -> RawEvidence:
        """That of an engine, which nobody may change meanwhile."""
        nodes, table, unit = engine.raw_rows()
        return cls(engine.kind, engine.is_partial, table, unit, nodes, engine.extra_arrays())

    def contents(self, number: Nodes | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """What `evidence_contents` gives; `number` has the numbers that the nodes have in another tree."""
        table, nodes = self.table, self.node
        if self.unit != 1.0:
            table = table.copy()
            self.kind.scale(table, self.unit)
        observed = (table[:, 0] > 0.0) & (nodes >= 0)
        nodes, table = nodes[observed], table[observed]
        if number is not None:
            nodes = number[nodes]
        order = np.argsort(nodes)
        return {"partial": self.is_partial}, {"evidence_of": nodes[order], "evidence": table[order], **self.extra}


def living_contents(retired: list[int], clock: Clock, half_life: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header and the arrays that a file keeps of a catalogue that lives."""
    header = {"clock": clock.contents(), "half_life": span_contents(half_life)}
    more, arrays = retired_contents(retired)
    return {**header, **more}, arrays


def retired_contents(retired: list[int]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header and the arrays that a file keeps of retired actions."""
    return {"n_retired": len(retired)}, {"retired": np.array(retired, dtype=np.int32)}


def restored_time(contents: Contents) -> tuple[Clock, Any]:
    """The clock and the half-life of a file, checked; none where it was written before there were any."""
    if contents.header["version"] == 1:
        return Clock(), None
    clock = Clock.restored(contents.header["clock"])
    half_life = restored_span(contents.header["half_life"], "half_life")
    if half_life is not None and clock.is_started:
        check_units(half_life, clock.now, "half_life")
    return clock, half_life


def restored_retired(contents: Contents, tree: Tree) -> Nodes:
    """The retired actions of a file, checked: distinct ones, and not all that there are."""
    if contents.header["version"] == 1:
        return np.empty(0, dtype=np.int32)
    retired = contents.array("retired", np.int32, (None,))
    if contents.header["n_retired"] != len(retired):
        raise ValueError(f"there are {len(retired)} retired actions; expected {contents.header['n_retired']!r:.40}")
    check_actions(tree, retired, "it retires")
    if len(retired) == tree.n_actions:
        raise ValueError("all actions are retired")
    return retired


def search_contents(search: Search, engine: Engine) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header and the arrays that a file keeps of a search, so that the next decisions are the same."""
    header: dict[str, Any] = search.switch.pace.numbers()
    arrays: dict[str, Any] = {"search_bests": np.array(search.switch.pace.bests)}
    memory = search.switch.memory(engine)
    if memory is not None:
        header["capped"] = {name: getattr(memory, name) for name in ("scale", "n_uniforms", "is_stale")}
        names = ("references", "champions", "touched", "inner", "caps")
        arrays |= {f"search_{name}": getattr(memory, name) for name in names}
    return {"search": header}, arrays


def restore_search(search: Search, engine: Engine, contents: Contents) -> None:
    """Take over what a file has of a search, of an engine that is restored; nothing in older files, which had none."""
    header = contents.header.get("search")
    if header is None:
        return
    if not isinstance(header, dict):
        raise ValueError(f"search is {header!r:.40}; expected a JSON object")
    search.switch.pace.recall(header, contents.array("search_bests", np.float64, (None,)).tolist())
    capped = header.get("capped")
    if capped is not None and isinstance(engine, ScalarEngine):
        search.switch.recall(engine, _restored_memory(engine, capped, contents))


def _restored_memory(engine: Engine, capped: Any, contents: Contents) -> Memory:
    """What a capped search knew, checked: numbers that can be computed with, of nodes that there are."""
    tree = engine.model.tree
    champions = contents.array("search_champions", np.int32, (None,))
    check_actions(tree, champions, "the search favours")
    inner = contents.array("search_inner", np.int32, (None,))
    caps = contents.array("search_caps", np.float64, (len(inner), 2))
    references = contents.array("search_references", np.float64, (N_REFERENCES,))
    numbers: list[Any] = [None] * 3
    if isinstance(capped, dict):
        numbers = [capped.get(name) for name in ("scale", "n_uniforms", "is_stale")]
    scale, n_uniforms, is_stale = numbers
    sound = (
        isinstance(scale, float) and 0.0 < scale < _LARGEST_NUMBER
        and type(n_uniforms) is int and 0 < n_uniforms < _MOST_UNIFORMS and isinstance(is_stale, bool)
        and bool((np.diff(references) >= 0.0).all()) and bool((np.abs(references) < _LARGEST_NUMBER).all())
        and bool((np.abs(caps) < _LARGEST_NUMBER).all()) and bool((caps[:, 1] >= 0.0).all())
        and len(champions) <= N_CHAMPIONS and bool((engine.slots.find(champions) >= 0).all())
    )  # fmt: skip
    if not sound:
        raise ValueError("what the search remembers is nothing that decisions could have left")
    touched = np.empty(0, dtype=np.int32)  # which was touched before the evidence was placed
    return Memory(scale, n_uniforms, is_stale, references, champions, touched, inner, caps)


def restore(engine: Engine, contents: Contents) -> None:
    """Take over what a file has of a fresh engine; a `ValueError` where no observations could have made it."""
    if "search_touched" in contents:  # so that all is in the order in which it was
        touched = contents.array("search_touched", np.int32, (None,))
        check_actions(engine.model.tree, touched, "there are")
        engine.touch(touched)
    restore_extra(engine, contents)
    if contents.header["version"] == 1:
        restore_version_1(engine, contents)
    else:
        _restore_evidence(engine, contents)
    if not engine.table[:, 0].sum() < _MOST_OBSERVATIONS:
        raise ValueError("there are too many observations to count")
    if engine.slots.count and not (engine.is_finite() and np.isfinite(engine.log_evidence())):
        raise ValueError("the evidence is too large to compute with")


def _restore_evidence(engine: Engine, contents: Contents) -> None:
    partial = contents.header["partial"]
    if not isinstance(partial, bool):
        raise ValueError(f"partial is {partial!r:.40}; expected true or false")
    nodes = contents.array("evidence_of", np.int32, (None,))
    table = contents.array("evidence", np.float64, (len(nodes), engine.kind.width))
    check_actions(engine.model.tree, nodes if engine.kind.has_one_row else np.unique(nodes))
    if not engine.kind.sound(table).all() or not engine.kind.are_distinct(nodes, table):
        raise ValueError("the evidence is none that observations could have made")
    engine.place(nodes, table)
    engine.is_partial = partial
    if "touched" in contents:
        restore_messages(engine, contents)


def restore_extra(engine: Engine, contents: Contents) -> None:
    """Take over what a file always keeps beside the evidence."""
    wanted = engine.extra_arrays()
    engine.take_extra({name: contents.array(name, np.float64, array.shape) for name, array in wanted.items()})


def check_actions(tree: Tree, nodes: Nodes, what: str = "there is evidence of") -> None:
    """Refuse numbers that are not those of distinct actions."""
    if len(nodes) > tree.n_actions:
        raise ValueError(f"{what} {len(nodes)} actions; the tree has {tree.n_actions}")
    known = (nodes >= 0) & (nodes < tree.n_nodes)
    if not known.all() or (tree.child_start[nodes] != tree.child_start[nodes + 1]).any():
        raise ValueError(f"{what} nodes that are no actions")
    if len(np.unique(nodes)) != len(nodes):
        raise ValueError(f"{what} an action twice")
