"""Snapshots: what an agent has learned, as bytes; a faster way to the state that its log leads to.

A snapshot is taken in two steps. `frozen` copies plain arrays while it holds the posterior's lock, which takes
milliseconds; `encode` makes bytes of them afterwards, when nobody has to wait. The model itself is in them only where
the agent has another one than its file holds, because single changes or another table edited the tree since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from bough import _storage
from bough._arrays import Nodes
from bough._clock import Clock
from bough.inference import files
from bough.inference.files import RawEvidence
from bough.model.files import model_contents, restored_model
from bough.model.model import Model
from bough.policies.posterior_policy import PosteriorPolicy
from bough.tree.catalogue import Catalogue

_KIND, _VERSION = "snapshot", 2  # with a model that has crossed factors; without one 1
_WHAT = "the snapshot"
_MODEL = "model_"  # before the names of the model's arrays
_OWN = "own_"  # before those of the caller's

Agent = TypeVar("Agent", bound=PosteriorPolicy)


@dataclass(frozen=True)
class Frozen:
    """One moment of an agent; made by `frozen`, and made into bytes by `encode`."""

    policy: str
    model: Model
    """The model that the agent was given, on the tree that it had before the single changes below."""
    is_base: bool
    """Whether that is the model of the file, and there are no such changes."""
    catalogue: Catalogue | None
    """The single changes since the tree was made; None where there are none."""
    classes: Nodes
    """The covariance class of each node, of the tree and added."""
    evidence: RawEvidence
    retired: tuple[int, ...]
    clock: Clock
    half_life: Any


def frozen(agent: PosteriorPolicy, base: Model) -> Frozen:
    """One moment of an agent, as copies: the agent may go on. It takes as long as copying what was observed.

    `base` is the model of the file that the agent is kept beside. Where the agent still has it, that very object and
    not one like it, the snapshot leaves the model out.

    >>> import bough
    >>> base = bough.GaussianModel(bough.Tree.from_nested(["left", "right"]))
    >>> agent = bough.HierTS(base, seed=0)
    >>> frozen(agent, base).is_base
    True
    >>> agent.add("middle", under="")
    >>> frozen(agent, base).is_base
    False
    """
    if not isinstance(agent, PosteriorPolicy):
        raise ValueError(f"the agent is a {type(agent).__name__}; give one with a posterior, such as bough.HierTS")
    if agent._refit is not None:
        raise ValueError("an agent with refit=True has more to keep than its evidence; keep it with agent.save")
    posterior = agent.posterior
    with posterior._lock:
        model = posterior._engine.model if agent._star is None else agent._star.whole
        is_changed = posterior._catalogue.is_changed
        return Frozen(
            policy=type(agent).__name__,
            model=model,
            is_base=model is base and not is_changed,
            catalogue=posterior._catalogue.copy() if is_changed else None,
            classes=posterior._classes,
            evidence=RawEvidence.of(posterior._engine),
            retired=tuple(posterior._retired),
            clock=posterior._clock.copy(),
            half_life=posterior.half_life,
        )


def encode(frozen: Frozen, header: Mapping[str, Any], own: Mapping[str, Any] | None = None) -> bytes:
    """A snapshot as bytes, with a header of the caller's own, anything that JSON has, and arrays of the caller's own.

    >>> import bough
    >>> base = bough.GaussianModel(bough.Tree.from_nested(["left", "right"]))
    >>> agent = bough.HierTS(base, seed=0)
    >>> agent.update("left", 1.0)
    >>> data = encode(frozen(agent, base), {"position": 17})
    >>> thawed(data, base, bough.HierTS)
    (HierTS(n_actions=2, n_observations=1), {'position': 17})
    """
    model, number, retired = frozen.model, None, np.array(frozen.retired, dtype=np.int32)
    if frozen.catalogue is not None:
        tree, number = frozen.catalogue.folded()
        model = model.rehung(tree, number, frozen.classes)
        retired = number[retired]
        retired = retired[retired >= 0]  # without those that are categories now
    more, arrays = frozen.evidence.contents(number)
    living = files.living_contents(retired.tolist(), frozen.clock, frozen.half_life)
    arrays = {**arrays, **living[1]}
    known: dict[str, Any] = {"of": _shape(model), "posterior": {**more, **living[0], "version": files.VERSION}}
    if not frozen.is_base:
        known["model"], parts = model_contents(model)
        arrays |= {f"{_MODEL}{name}": array for name, array in parts.items()}
    arrays |= {f"{_OWN}{name}": array for name, array in (own or {}).items()}
    version = _storage.version_of(known.get("model", {}), _VERSION, "factors")
    known |= {"policy": frozen.policy, "own": dict(header), "kind": _KIND, "version": version}
    return _storage.packed(known, arrays, _WHAT)


def thawed(
    data: bytes, base: Model, policy: type[Agent], seed: Any = None, **options: Any
) -> tuple[Agent, dict[str, Any]]:
    """The agent of a snapshot, and the header that `encode` was given; a `ValueError` where the bytes are damaged.

    `base` is the model that `frozen` was given, or one like it, and `options` are those of the policy. Random numbers
    begin anew, from `seed`: a service that starts twice from one snapshot must not repeat itself.

    >>> import bough
    >>> base = bough.GaussianModel(bough.Tree.from_nested(["left", "right"]))
    >>> data = encode(frozen(bough.HierTS(base), base), {})
    >>> thawed(data[:-1], base, bough.HierTS)
    Traceback (most recent call last):
    ...
    ValueError: the snapshot is not a bough file, or is damaged or cut short (File is not a zip file); ...
    """
    with _storage.unpacked(data, _KIND, _VERSION, _WHAT) as contents:
        header = contents.header
        if header["policy"] != policy.__name__:
            raise _storage.OtherFileError(f"is that of a {header['policy']!r:.40}, and not of a {policy.__name__}")
        own = _object(header, "own")
        model = base if "model" not in header else _own_model(contents, base)
        if header["of"] != _shape(model):
            raise _storage.OtherFileError(f"is that of a model with {header['of']!r:.80}, and base is {_shape(model)}")
    agent = policy(model, seed, **options)
    with _storage.unpacked(data, _KIND, _VERSION, _WHAT) as contents:
        agent.posterior._take_over(contents.part("", _object(contents.header, "posterior")))
    return agent, own


def _own_model(contents: _storage.Contents, base: Model) -> Model:
    return restored_model(contents.part(_MODEL, _object(contents.header, "model")), base.features)


def _shape(model: Model) -> dict[str, Any]:
    """What tells models apart quickly, if not with certainty."""
    tree = model.tree
    return {"rewards": model.kind.name, "dim": model.dim, "n_nodes": tree.n_nodes, "n_actions": tree.n_actions}


def _object(header: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = header[name]
    if not isinstance(found, dict):
        raise ValueError(f"{name} is {found!r:.40}; expected a JSON object")
    return found


def peek(
    data: bytes, arrays: Mapping[str, tuple[Any, tuple[int | None, ...]]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header and the arrays that `encode` was given beside the agent, which is not made.

    `arrays` has the types and the shapes of the arrays, by their names; None stands for any length.

    >>> import bough, numpy
    >>> base = bough.GaussianModel(bough.Tree.from_nested(["left", "right"]))
    >>> data = encode(frozen(bough.HierTS(base), base), {"position": 17}, {"counts": numpy.arange(3)})
    >>> peek(data, {"counts": (numpy.int64, (None,))})
    ({'position': 17}, {'counts': array([0, 1, 2])})
    """
    with _storage.unpacked(data, _KIND, _VERSION, _WHAT) as contents:
        found = {name: contents.array(f"{_OWN}{name}", type_, shape) for name, (type_, shape) in arrays.items()}
        return _object(contents.header, "own"), found
