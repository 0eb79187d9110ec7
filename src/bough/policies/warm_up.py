"""warm_up(...): have all kernels of an agent ready before its first request."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bough.data.statistics import Statistics
from bough.inference.normals import MANY, standard_normals
from bough.model.factors import Factor
from bough.model.model import Model
from bough.policies.baselines import BetaTS
from bough.policies.posterior_policy import PosteriorPolicy
from bough.policies.thompson import HierTS
from bough.policy_table import find_built_in
from bough.tree.tree import Tree


def warm_up(model: Model | PosteriorPolicy | BetaTS) -> float:
    """The seconds that it took to compile, or to load, all that an agent on the model needs: call it at the start.

    Otherwise the first requests of a process wait, each for what it is the first to need. It covers `update`, `decide`
    with `k`, `among` and `exclude`, `decision`, `best`, `absorb`, `save` and `load`, and not `refit=True` or
    `simulate`. Give the agent itself where it is not a `HierTS`, or has a `half_life`. All of it is called on tiny
    trees, so neither model nor agent changes, and it does not matter how large they are.

    >>> import bough
    >>> model = bough.GaussianModel(bough.Tree.balanced(branching=10, height=6))
    >>> seconds = bough.warm_up(model)
    >>> agent = bough.HierTS(model, seed=0)
    >>> agent.update(agent.decide(), 1.0)  # compiles nothing
    """
    if not isinstance(model, (Model, PosteriorPolicy, BetaTS)):
        raise ValueError(f"model is a {type(model).__name__}; give a model, such as bough.GaussianModel, or an agent")
    start = time.perf_counter()
    if not isinstance(model, BetaTS):  # which has nothing compiled
        for agent in _small_agents(model):
            _ask(agent)
            _save_and_load(agent)
        standard_normals(np.random.default_rng(0), (MANY,))
        _read_a_context(model if isinstance(model, Model) else model._model)
    return time.perf_counter() - start


def _read_a_context(model: Model) -> None:
    """Have what reads contexts by the names of their features be imported, which takes seconds."""
    features = model.features
    if features is not None:
        features.transform({**dict.fromkeys(features.numeric, 0.0), **dict.fromkeys(features.categories or {}, "")})


def _small_agents(given: Model | PosteriorPolicy) -> Iterator[Any]:
    """The given agent, or one on the given model, on tiny trees: one that is regular, and one that is not."""
    kind: type[Any] = HierTS
    options: dict[str, Any] = {}
    if isinstance(given, PosteriorPolicy):
        # A class of the user's own may be made in another way than the one that it is derived from.
        kind = next(one for one in type(given).__mro__ if find_built_in(one) is not None)
        options = {} if given.posterior.half_life is None else {"half_life": 1.0}
    model = given if isinstance(given, Model) else given._model
    # Which of the two a decision takes, depends on more than the size of the tree.
    ways = [{"search": True}, {"search": False}] if issubclass(kind, HierTS) else [{}]
    # The first has more nodes than a posterior has room for in the beginning.
    for tree in (Tree.balanced(5, 2), Tree.from_paths(["a/b/c", "a/b/d", "a/e", "f"])):
        for way in ways:
            yield kind(_small(model, tree), seed=0, **options, **way)


def _small(model: Model, tree: Tree) -> Model:
    """A model of the same kind on another tree, whose clock counts numbers."""
    more: dict[str, Any] = {} if model.drift_half_life is None else {"drift": 1.0}
    if model.effects is not None:
        more["factors"] = {
            name: Factor(levels=["a", "b"], at_decision=True) if one.at_decision else Factor(["a"] * tree.n_actions)
            for name, one in model.factors.items()
        }
    mean = 0.0 if model.is_scalar else np.zeros(model.dim)
    return replace(model, tree=tree, mean=mean, covariance=1.0, **more)


def _ask(agent: Any) -> None:
    """Call what requests call; a reward of 1 is one of every kind."""
    model = agent._model
    names = list(model.tree.actions)
    named = {} if model.effects is None else {name: "a" for name, _, _ in model.effects.decided}
    levels: dict[str, Any] = {"factors": named} if named else {}
    context = None if model.is_scalar else np.ones(model.dim)
    batch = (names, np.ones(len(names)), None if model.is_scalar else np.ones((len(names), model.dim)))
    questions = agent.decide, partial(agent.decision, samples=2)
    for ask in questions:
        ask(context)
    agent.update(names[0], 1.0, context, **levels)
    for ask in questions:
        for narrowed in ({}, {"k": 2}, {"among": names[:3]}, {"exclude": names[:2]}, {"k": 2, "among": names[:3]}):
            ask(context, **narrowed)
    rehearse = agent.posterior._search_state.switch.rehearse
    rehearse(agent.posterior._engine)
    agent.update(names[0], 1.0, context, **levels)
    rehearse(agent.posterior._engine)
    agent.update(*batch, **levels)
    rehearse(agent.posterior._engine)
    agent.best(context, samples=2)
    agent.posterior._moments_of(np.arange(2, dtype=np.int32), context)  # as a service shows them
    if model.is_scalar or model.kind.sums_suffice:
        agent.absorb(Statistics.from_rows(*batch, factors={name: ["a"] * len(names) for name in named}))
    agent.decide(context)
    if agent.posterior.half_life is not None or model.drift_half_life is not None:
        for now in (1.0, 2.0):
            agent.now = now
            agent.decide(context)
            agent.update(names[0], 1.0, context, **levels)
            agent.update(*batch, at=now, **levels)
        agent.decide(context)


def _save_and_load(agent: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent.bough"
        agent.save(path)
        again = type(agent).load(path)
    again.decide(None if again._model.is_scalar else np.ones(again._model.dim))
