"""A policy's file: what it has learned, where its random numbers stand, and what it was asked to do."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from bough import _storage
from bough._storage import Contents
from bough.policy_table import POLICIES

_KIND = "agent"
VERSION = 3  # with crossed factors; without them 2
MOST = 2**63  # observations, which are shown as integers
_GENERATORS = ("PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937")  # numpy's own


def write(path: str | os.PathLike[str], policy: str, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write the file of a policy of that name."""
    version = _storage.version_of(header, VERSION, "factors")
    _storage.write(path, {**header, "policy": policy, "kind": _KIND, "version": version}, arrays)


@contextmanager
def read(path: str | os.PathLike[str], policy: str) -> Iterator[Contents]:
    """The open contents of the file of a policy of that name."""
    opened: AbstractContextManager[Contents] = _storage.read(path, _KIND, VERSION)
    with opened as contents:
        found = contents.header["policy"]
        if found != policy:
            raise _storage.OtherFileError(f"holds a {reprlib.repr(found)}; load it by that class, and not by {policy}")
        yield contents


def load(path: str | os.PathLike[str]) -> Any:
    """The policy of a file, of whichever built-in class it is.

    >>> import bough, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "agent.bough"
    >>> bough.Greedy(bough.GaussianModel(bough.Tree.from_nested(["left", "right"]))).save(path)
    >>> load(path)
    Greedy(n_actions=2, n_observations=0)
    """
    opened: AbstractContextManager[Contents] = _storage.read(path, _KIND, VERSION)
    with opened as contents:
        found = contents.header["policy"]
        if not isinstance(found, str) or found not in POLICIES:
            raise _storage.OtherFileError(f"holds a {reprlib.repr(found)}, which is not built in; load it by its class")
    return POLICIES[found].policy.load(path)


def whole_number(header: Mapping[str, Any], name: str) -> int:
    """A number of the header that counts something."""
    found = header[name]
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < MOST:
        raise ValueError(f"{name} is {reprlib.repr(found)}; expected a whole number")
    return found


def generator_state(rng: np.random.Generator) -> dict[str, Any]:
    """Where a generator stands, as JSON has it."""
    with rng.bit_generator.lock:
        state = dict(rng.bit_generator.state)
    if state["bit_generator"] not in _GENERATORS:
        raise ValueError(
            f"the generator is a {state['bit_generator']}; only agents with one of numpy's own can be saved, such as "
            "numpy.random.default_rng(seed)"
        )
    return {name: _plain(value) for name, value in state.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def restored_generator(state: Any) -> np.random.Generator:
    """A generator that goes on where `generator_state` found it."""
    name = state.get("bit_generator") if isinstance(state, dict) else None
    if name not in _GENERATORS:
        raise ValueError(f"the generator is {reprlib.repr(name)}; expected one of {', '.join(_GENERATORS)}")
    rng = np.random.Generator(getattr(np.random, name)(0))
    try:
        rng.bit_generator.state = state
        sound = generator_state(rng) == state and _is_reachable(name, state)
    except (TypeError, ValueError, LookupError, OverflowError, AttributeError) as error:
        raise ValueError(f"the generator's state is odd ({error})") from error
    if not sound:
        raise ValueError(f"the generator's state is none that a {name} can be in")
    return rng


def _is_reachable(name: str, state: Mapping[str, Any]) -> bool:
    """Whether a generator can be in a state that numpy has taken: it would read beyond its numbers in some."""
    if name == "MT19937":
        return 0 <= state["state"]["pos"] <= len(state["state"]["key"]) and any(state["state"]["key"])
    if name == "Philox":
        return 0 <= state["buffer_pos"] <= len(state["buffer"]) and state["has_uint32"] in (0, 1)
    odd = not name.startswith("PCG64") or state["state"]["inc"] % 2 == 1
    return odd and state["has_uint32"] in (0, 1)
