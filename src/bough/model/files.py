"""A model as the header and the arrays of a file, and back; docs/reference/file-format.md says what they are."""

from __future__ import annotations

import os
import reprlib
from dataclasses import fields
from typing import Any

import numpy as np

from bough import _storage
from bough._clock import restored_span, span_contents
from bough._storage import Contents
from bough.model.covariance import checked_classes
from bough.model.encoders import features_contents, restored_features
from bough.model.factor_files import factors_contents, restored_factors
from bough.model.kinds import MODELS
from bough.model.model import Model
from bough.tree.files import has_at_most, restored_tree, tree_arrays, tree_header

_KIND = "model"
_VERSION = 2  # with crossed factors or drift; without them 1


def write_model(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model's file."""
    header, arrays = model_contents(model)
    version = _storage.version_of(header, _VERSION, "factors", "drift")
    _storage.write(path, {**header, "kind": _KIND, "version": version}, arrays)


def read_model(path: str | os.PathLike[str], features: Any = None) -> Model:
    """The model of a file that `write_model` wrote, with features for those that the file lacks."""
    with _storage.read(path, _KIND, _VERSION) as contents:
        return restored_model(contents, features)


def model_contents(model: Model) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header and the arrays that a file keeps of a model."""
    header = {"rewards": model.kind.name, "scalar": model.is_scalar, "covariance": model.classes.kind}
    arrays = {"mean": np.asarray(model.mean), "covariances": model.classes.table, **tree_arrays(model.tree)}
    if model.classes.kind == "node":
        arrays["covariance_of_node"] = model.classes.of_node
    more, names = features_contents(model.features, model.feature_names)
    header |= {**model.likelihood.parameters(), **_drift_header(model), **tree_header(model.tree), **more}
    factors, labels = factors_contents(model.effects)
    return {**header, **factors}, {**arrays, **names, **labels}


def restored_model(contents: Contents, features: Any = None) -> Model:
    """The model that `model_contents` took apart, checked like the user's own."""
    header = contents.header
    rewards, kind, scalar = header.get("rewards", "gaussian"), header["covariance"], header["scalar"]
    _check_word("rewards", rewards, *MODELS)
    _check_word("covariance", kind, "depth", "height", "node")
    if not isinstance(scalar, bool):
        raise ValueError(f"scalar is {reprlib.repr(scalar)}; expected true or false")
    model = MODELS[rewards]
    own = own_parameters(header, model)
    mean = contents.array("mean", np.float64, () if scalar else (None,))
    table = contents.array("covariances", np.float64, (None,) if scalar else (None, mean.size, mean.size))
    tree = restored_tree(contents)
    if kind == "node":
        of_node = contents.array("covariance_of_node", np.int32, (tree.n_nodes,))
    elif not has_at_most(tree, len(table)):
        raise ValueError(f"there are {len(table)} covariances; expected one for each {kind} of the tree")
    else:
        of_node = tree.depth if kind == "depth" else tree.node_height
    classes = checked_classes(kind, of_node, table, mean.size, scalar)
    own |= {"features": restored_features(contents, None if scalar else mean.size, features)}
    own |= {"factors": restored_factors(contents, tree)}
    return model(tree, float(mean) if scalar else mean, classes, **own, **_own_drift(header, model))


def _drift_header(model: Model) -> dict[str, Any]:
    """What a header says of drift: nothing where actions stand still."""
    drift = getattr(model, "drift", None)
    return {} if drift is None else {"drift": span_contents(drift)}


def _own_drift(header: dict[str, Any], model: type[Model]) -> dict[str, Any]:
    """The drift of the model, by the name that its class takes; empty where a file has none."""
    if "drift" not in header:
        return {}
    if "drift" not in {field.name for field in fields(model)}:
        raise ValueError(f"{model.kind.name} rewards have no drift")
    return {"drift": restored_span(header["drift"], "drift")}


def own_parameters(header: dict[str, Any], model: type[Model]) -> dict[str, Any]:
    """What the model takes for its likelihood; a `ValueError` where one is missing, odd or another kind's."""
    kind = model._kind_in_file(header)
    names = kind.parameter_names()
    for other in MODELS.values():
        foreign = next((name for name in other.kind.parameter_names() if name in header and name not in names), None)
        if foreign is not None:
            raise ValueError(f"{model.kind.name} rewards have no {foreign}")
    for name in names:
        if isinstance(header.get(name), bool) or not isinstance(header.get(name), (int, float)):
            raise ValueError(f"{name} is {reprlib.repr(header.get(name))}; expected a number")
    return kind.from_parameters(header).model_arguments()


def _check_word(what: str, found: Any, *known: str) -> None:
    if not isinstance(found, str) or found not in known:
        raise ValueError(f"{what} is {reprlib.repr(found)}; expected {', '.join(known)}")
