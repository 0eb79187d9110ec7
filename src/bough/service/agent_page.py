"""The dashboard of an agent as one file to send to somebody: the page of the service, without a service."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, get_args

import msgspec
import numpy as np

from bough.dashboard.page import self_contained
from bough.policies.posterior_policy import PosteriorPolicy
from bough.service import views
from bough.service.records import DecisionRow, Name
from bough.service.schema import Explained, Order, TreeColumns
from bough.service.traffic import Traffic

_NODES = 20_000  # that a file has at most: about 2 MB
_CHILDREN = 200  # of a node
_LISTED = 12  # actions in each list, and explained


def write_dashboard(agent: PosteriorPolicy, path: str | os.PathLike[str], *, title: str | None = None) -> None:
    """Write the dashboard of an agent as one self-contained HTML file, which needs no network; see `HierTS.dashboard`.

    >>> import bough, tempfile, pathlib
    >>> agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])), seed=0)
    >>> agent.update(["tea/green", "tea/black"], [2.0, 1.0])
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "page.html"
    >>> write_dashboard(agent, path, title="teas")
    >>> path.read_text().startswith("<!doctype html>")
    True
    """
    if not isinstance(agent, PosteriorPolicy):
        raise ValueError(f"agent is a {type(agent).__name__}, which has no posterior to show; give a HierTS, say")
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise ValueError(f"path is {path!r:.80}; give that of the file to write, such as 'page.html'")
    if title is not None and not isinstance(title, str):
        raise ValueError(f"title is {title!r:.80}; give a text")
    data = page_data(agent, type(agent).__name__ if title is None else title, time.time())
    text = self_contained(msgspec.to_builtins(data))
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, target)  # whole, or not at all
    finally:
        temporary.unlink(missing_ok=True)


def page_data(agent: PosteriorPolicy, title: str, now: float) -> dict[str, Any]:
    """What the page shows of an agent, in the shapes in which the service answers. What counts are rewards here."""
    traffic = _traffic_of(agent)
    model = agent.posterior.model
    found = views.tree(agent, traffic, None, model.tree.height, _CHILDREN, None, _NODES)
    top = {order: views.top(agent, traffic, _LISTED, order=order) for order in get_args(Order)}
    n_actions = agent._catalogue.n_actions
    return {
        "title": title,
        "at": now,
        "counted": "reward",
        "experiment": {"name": title, "actions": n_actions, "observations": agent.posterior.n_observations},
        "tree": found,
        "top": top,
        "explained": [_explained(agent, traffic, node.name) for node in top["mean"]],
        "prior": views.prior(agent, traffic),
        "left_out": _left_out(found, model.tree.n_nodes, model.is_scalar),
    }


def _traffic_of(agent: PosteriorPolicy) -> Traffic:
    """Rewards as if they were decisions: an agent knows of no others."""
    posterior, traffic = agent.posterior, Traffic()
    with posterior._lock:
        tree, slots = posterior.model.tree, posterior._engine.slots
        weights = posterior._engine.slot_weights()
        is_action = np.isin(slots.node, tree.leaves)
        names = tree.node_names.names(slots.node[is_action])
        counts = np.rint(weights[is_action]).astype(np.int64).tolist()
    traffic.add_counts(dict(zip(names, counts, strict=True)))  # type: ignore[arg-type]
    return traffic


def _explained(agent: PosteriorPolicy, traffic: Traffic, action: Name) -> Explained:
    row = DecisionRow(
        0, str(action), 0.0, [action], None, None, 1, 0, 0, None, "learn", b"", 0.0, None, "at_once", False
    )  # fmt: skip
    found = views.explained(agent, row, traffic)
    n = agent.posterior.n_observations
    return msgspec.structs.replace(found, note=f"by what is known from {n:,} reward{'s' * (n != 1)}")


def _left_out(found: TreeColumns, n_nodes: int, is_scalar: bool) -> str:
    """What the file does not have, in a sentence; empty where it has all."""
    shown, said = len(found.nodes.name), []
    if shown < n_nodes:
        said.append(
            f"This file has {shown:,} of {n_nodes:,} nodes: those with the most rewards. {n_nodes - shown:,} are left "
            "out, and the search does not find them."
        )
    if not is_scalar:
        said.append("All numbers are those of the average context.")
    return " ".join(said)
