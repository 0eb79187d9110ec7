"""Logs of other libraries: the bandit feedback of obp, the Open Bandit Pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bough import _checks
from bough._frames import make_frame
from bough.data.decision_logs import LogColumns
from bough.data.logged_rows import read_logged_rows
from bough.tree.tree import Tree


def from_obp(feedback: Mapping[str, Any], backend: str | None = None) -> Any:
    """A frame of obp's bandit feedback, with the columns that `evaluate` takes.

    They are action (obp's number), reward, propensity (its `pscore`), and, where it has them, position and one column
    x0, x1, ... for each feature of its context. `bough.Tree.from_parents` and the other builders take such numbers as
    names of actions.

    >>> import bough, bough.data, numpy
    >>> feedback = {"action": numpy.array([0, 2]), "reward": numpy.array([1, 0]), "pscore": numpy.array([0.5, 0.25])}
    >>> bough.data.from_obp(feedback, "polars").columns
    ['action', 'reward', 'propensity']
    """
    if not isinstance(feedback, Mapping):
        raise ValueError(f"feedback is a {type(feedback).__name__}; give obp's dict, of obtain_batch_bandit_feedback()")
    for key in ("action", "reward", "pscore"):
        if feedback.get(key) is None:
            raise ValueError(f"feedback has no {key!r}; it has {', '.join(map(str, feedback))}")
    columns: dict[str, Any] = {
        "action": _checks.integers(feedback["action"], "action"),
        "reward": _checks.vector(feedback["reward"], "rewards"),
        "propensity": _checks.vector(feedback["pscore"], "pscores"),
    }
    if feedback.get("position") is not None:
        columns["position"] = _checks.integers(feedback["position"], "position")
    if feedback.get("context") is not None:
        context = _checks.floats(feedback["context"], "context")
        if context.ndim != 2:
            raise ValueError(f"the context has shape {context.shape}; give (n, d), a row for each")
        columns |= {f"x{i}": feature for i, feature in enumerate(context.T)}
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the arrays of feedback have different lengths, {lengths}; give one entry for each row")
    return make_frame(columns, backend)


def to_obp(
    log: Any,
    tree: Tree,
    action: str = "action",
    reward: str = "reward",
    propensity: str = "propensity",
    *,
    context: Any = None,
    position: str | None = None,
) -> dict[str, Any]:
    """obp's bandit feedback of a log; actions are numbered in the order of `tree.actions`.

    >>> import bough, bough.data, polars
    >>> tree = bough.Tree.from_nested({"tea": ["green", "black"]})
    >>> log = polars.DataFrame({"action": ["black", "green"], "reward": [1.0, 0.0], "propensity": [0.5, 0.5]})
    >>> feedback = bough.data.to_obp(log, tree)
    >>> feedback["action"], feedback["n_actions"]
    (array([1, 0]), 2)
    """
    if not isinstance(tree, Tree):
        raise ValueError(f"tree is a {type(tree).__name__}; give a bough.Tree")
    names = {"action": action, "reward": reward, "propensity": propensity}
    for what, name in names.items():
        if not isinstance(name, str):
            raise ValueError(f"{what} is {name!r:.80}; give the name of a column")
    if position is not None and not isinstance(position, str):
        raise ValueError(f"position is {position!r:.80}; give the name of a column, or None")
    if context is not None and not (_checks.is_list(context) and all(isinstance(name, str) for name in context)):
        raise ValueError(f"context is {context!r:.80}; give a list of columns of numbers")
    rows = read_logged_rows(log, tree, LogColumns(action, reward, propensity, None, position, tuple(context or ())))
    return {
        "n_rounds": len(rows.reward),
        "n_actions": tree.n_actions,
        "context": np.zeros((len(rows.reward), 1)) if rows.context is None else rows.context,
        "action": rows.place,
        "position": None if position is None else rows.position,
        "reward": rows.reward,
        "pscore": rows.propensity,
    }
