"""Crossed factors as a header and arrays of a file, and back; docs/reference/file-format.md says what they are."""

from __future__ import annotations

import reprlib
from collections.abc import Hashable
from typing import Any

import numpy as np

from bough._arrays import Names
from bough._storage import Contents
from bough.model.effects import Effects
from bough.model.factors import LabelledFactor, checked_levels, checked_variance
from bough.tree.files import pack_names, unpack_names
from bough.tree.name_columns import as_column
from bough.tree.tree import Tree

_MOST_FACTORS = 1_000


def factors_contents(effects: Effects | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a file keeps of factors: nothing where there are none."""
    if effects is None:
        return {}, {}
    header, arrays = [], {}
    for i, (name, factor) in enumerate(effects.factors.items()):
        levels = [list(level) if isinstance(level, tuple) else level for level in factor.levels]
        header.append({"name": name, "variance": factor.variance, "at_decision": factor.at_decision, "levels": levels})
        if not factor.at_decision:
            arrays[f"factor_{i}_sizes"] = np.diff(factor._start).astype(np.int32)
            arrays[f"factor_{i}_labels"] = factor._labels
    return {"factors": header}, arrays


def restored_factors(contents: Contents, tree: Tree) -> dict[str, LabelledFactor]:
    """The factors that `factors_contents` took apart, checked like the user's own."""
    given = contents.header.get("factors", [])
    if not isinstance(given, list) or len(given) > _MOST_FACTORS or not all(isinstance(one, dict) for one in given):
        raise ValueError(f"factors is {reprlib.repr(given)}; expected a list of objects")
    found: dict[str, LabelledFactor] = {}
    for i, one in enumerate(given):
        name, at_decision = one.get("name"), one.get("at_decision")
        if not isinstance(name, str) or not name or name in found or not isinstance(at_decision, bool):
            raise ValueError(f"a factor is {reprlib.repr(one)}; expected a name of its own, and whose levels it has")
        levels = checked_levels([_level(level) for level in _listed(one.get("levels"))])
        variance = checked_variance(one.get("variance"))
        sizes, labels = np.zeros(tree.n_actions, dtype=np.int32), np.empty(0, dtype=np.int32)
        if not at_decision:
            sizes = contents.array(f"factor_{i}_sizes", np.int32, (tree.n_actions,))
            labels = contents.array(f"factor_{i}_labels", np.int32, (None,))
        _check_labels(name, sizes, labels, len(levels))
        start = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        found[name] = LabelledFactor.of(tree, levels, variance, at_decision, start, labels)
    return found


def pack_levels(prefix: str, levels: Names) -> dict[str, np.ndarray[Any, Any]]:
    """A column of levels as arrays: names, of which a pair has several, one after the other."""
    values = levels.tolist()
    sizes = np.array([len(level) if isinstance(level, tuple) else 0 for level in values], dtype=np.int32)
    if not sizes.any():
        return pack_names(prefix, levels)
    parts = [part for level in values for part in (level if isinstance(level, tuple) else (level,))]
    return {**pack_names(prefix, as_column(parts)), f"{prefix}_sizes": sizes}


def unpack_levels(prefix: str, contents: Contents, n: int) -> Names:
    """What `pack_levels` packed: n levels."""
    if f"{prefix}_sizes" not in contents:
        return unpack_names(prefix, contents, n)
    sizes = contents.array(f"{prefix}_sizes", np.int32, (n,))
    if sizes.min(initial=0) < 0:
        raise ValueError(f"{prefix}_sizes has numbers below zero")
    ends = np.cumsum(np.maximum(sizes, 1), dtype=np.int64)
    parts = unpack_names(prefix, contents, int(ends[-1]) if n else 0).tolist()
    rows = zip(ends.tolist(), sizes.tolist(), strict=True)
    return as_column([tuple(parts[end - size : end]) if size else parts[end - 1] for end, size in rows])


def _listed(levels: Any) -> list[Any]:
    if not isinstance(levels, list):
        raise ValueError(f"levels is {reprlib.repr(levels)}; expected a list of names")
    return levels


def _level(level: Any) -> Hashable:
    return tuple(level) if isinstance(level, list) else level


def _check_labels(name: str, sizes: Any, labels: Any, n_levels: int) -> None:
    """Refuse labels that are no levels, or are not ascending for each action."""
    sound = sizes.min(initial=0) >= 0 and sizes.sum(dtype=np.int64) == len(labels)
    if sound and len(labels):
        action = np.repeat(np.arange(len(sizes)), sizes)
        ascending = (np.diff(labels) > 0) | (np.diff(action) > 0)
        sound = labels.min() >= 0 and labels.max() < n_levels and bool(ascending.all())
    if not sound:
        raise ValueError(f"the labels of the factor {name!r} are not those of the tree's actions")
