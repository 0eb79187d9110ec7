"""The names of the columns of a log of decisions, as a user gives them."""

from __future__ import annotations

from typing import Any

from bough import _checks
from bough.data.decision_logs import LogColumns, has_column
from bough.tree.tree import Tree


def checked_columns(
    log: Any,
    tree: Any,
    action: Any,
    reward: Any,
    propensity: Any,
    error: Any = None,
    context: Any = None,
    position: Any = None,
) -> LogColumns:
    """The names, or a `ValueError`; where the error has none, that of `Decision.to_dict`, if there is such a column."""
    if not isinstance(tree, Tree):
        raise ValueError(f"tree is a {type(tree).__name__}; give a bough.Tree")
    optional = {"propensity_error": error, "position": position}
    for what, name in {"action": action, "reward": reward, "propensity": propensity, **optional}.items():
        if not isinstance(name, str) and not (what in optional and name is None):
            raise ValueError(f"{what} is {name!r:.80}; give the name of a column")
    if error is None and has_column(log, tree, action, "propensity_error"):
        error = "propensity_error"
    features, feature_list = (), None
    if isinstance(context, str):
        feature_list = context
    elif context is not None:
        if not _checks.is_list(context) or not all(isinstance(name, str) for name in context) or not len(context):
            raise ValueError(
                f"context is {context!r:.80}; give a list of columns of numbers, or the name of one column of lists"
            )
        features = tuple(dict.fromkeys(context))
        if len(features) < len(list(context)):
            raise ValueError(f"context is {list(context)!r:.80}, with a column twice; name each once")
    if context is not None and position is not None:
        raise ValueError("both context and position were given; evaluate each position of such a log by itself")
    return LogColumns(action, reward, propensity, error, position, features, feature_list)
