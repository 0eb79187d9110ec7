"""The files that changes name by their digests: models, agents, and whole catalogues."""

from __future__ import annotations

import hashlib
import tempfile
import zlib
from pathlib import Path
from typing import Any

import msgspec

from bough import _storage
from bough.model.model import Model
from bough.policies.files import load as load_agent
from bough.policies.thompson import HierTS
from bough.service.schema import TreeBody
from bough.tree.tree import Tree

_LARGEST_TREE = 1 << 30  # bytes


def digest_of(data: bytes) -> str:
    """The name of a file."""
    return hashlib.sha256(data).hexdigest()


def start_of(data: bytes) -> Model | HierTS:
    """The model of a file, or the agent that it holds; a `ValueError` where it is neither."""
    with tempfile.TemporaryDirectory(prefix="bough-") as folder:
        path = Path(folder) / "model.bough"
        path.write_bytes(data)
        try:
            if _storage.kind_of(path) != "agent":
                return Model.load(path)
            agent = load_agent(path)
        except ValueError as error:
            raise ValueError(str(error).replace(str(path), "the file")) from None
    if type(agent) is not HierTS:
        raise ValueError(f"the file holds a {type(agent).__name__}; the service takes models, and agents of HierTS")
    return agent


def model_bytes(model: Model) -> bytes:
    """The file of a model."""
    with tempfile.TemporaryDirectory(prefix="bough-") as folder:
        path = Path(folder) / "model.bough"
        model.save(path)
        return path.read_bytes()


def tree_bytes(body: TreeBody) -> bytes:
    """The file of a whole catalogue: its paths, as they were given."""
    return zlib.compress(msgspec.json.encode({"paths": body.paths, "sep": body.sep}), 1)


def tree_of(data: bytes) -> Tree:
    """The tree that `tree_bytes` has the paths of."""
    text = zlib.decompressobj().decompress(data, _LARGEST_TREE)
    found = msgspec.json.decode(text, type=TreeBody)
    return Tree.from_paths(found.paths, sep=found.sep)


def file_of(kind: str, data: bytes) -> Any:
    """What a change of a kind is given: a tree, or a model or an agent."""
    return tree_of(data) if kind == "tree" else start_of(data)
