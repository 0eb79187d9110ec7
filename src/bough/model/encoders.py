"""What a model may have as its features: names, or what makes numbers with names of a frame of contexts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from bough import _checks
from bough._arrays import Floats, Names
from bough._storage import Contents, OtherFileError
from bough.model.feature_names import INTERCEPT, checked_names, distinct_names, names_contents, restored_names, shown
from bough.model.features import Features


class Encoder(Protocol):
    """What scikit-learn's transformers have, and `Features`; some also have `feature_names_in_`."""

    def transform(self, frame: Any, /) -> Any:
        """The numbers of a frame."""
        ...

    def get_feature_names_out(self) -> Any:
        """The names of the columns of these."""
        ...


@dataclass(frozen=True, eq=False)
class WithIntercept:
    """Another encoder, with a first feature that is always 1."""

    encoder: Any

    def transform(self, frame: Any) -> Floats:
        """The numbers of a frame."""
        rows = dense(self.encoder.transform(frame))
        return np.column_stack([np.ones(len(rows)), rows])

    def get_feature_names_out(self) -> Names:
        """The names of the features."""
        return np.array([INTERCEPT, *self.encoder.get_feature_names_out()], dtype=object)

    def __getattr__(self, name: str) -> Any:
        if name != "feature_names_in_":
            raise AttributeError(name)
        return self.encoder.feature_names_in_


def with_intercept(encoder: Any) -> Any:
    """An encoder with a first feature that is always 1; a `Features` stays one, so that files keep it."""
    return replace(encoder, intercept=True) if isinstance(encoder, Features) else WithIntercept(encoder)


@dataclass(frozen=True, eq=False)
class LostEncoder:
    """An encoder of which a file has kept the names alone."""

    names: tuple[str, ...]

    def transform(self, frame: Any) -> Floats:  # noqa: ARG002
        """Nothing but an error that says what to do."""
        raise ValueError(
            "the model's features were made by a transformer that is not bough's, and files do not keep it; give it to "
            f"load(path, features=...), or give the {len(self.names)} numbers themselves"
        )

    def get_feature_names_out(self) -> Names:
        """The names of the features."""
        return np.array(self.names, dtype=object)


def is_encoder(features: Any) -> bool:
    """Whether something makes numbers with names of a frame."""
    methods = ("transform", "get_feature_names_out")
    return not isinstance(features, type) and all(callable(getattr(features, name, None)) for name in methods)


def names_of(features: Any) -> tuple[str, ...] | None:
    """The names of features that have been checked."""
    if features is None or isinstance(features, tuple):
        return features
    return tuple(map(str, features.get_feature_names_out()))


def checked_features(features: Any, dim: int | None) -> tuple[Any, tuple[str, ...] | None]:
    """The features of a model as it keeps them, and their names; `dim` is None where it takes no contexts."""
    if features is None:
        return None, None
    if not is_encoder(features):
        names = checked_names(features, dim)
        return names, names
    names = encoded_names(features)
    if dim is None:
        checked_names(names, dim)  # for its error
    if len(names) != dim:
        hint = ""
        if len(names) + 1 == dim and INTERCEPT not in names:
            hint = "; fit_prior(..., intercept=True) puts an intercept before them, and bough.Features has one"
        raise ValueError(f"features makes {len(names)} numbers, {shown(names)}, and the mean has {dim}{hint}")
    return features, names


def encoded_names(encoder: Any) -> tuple[str, ...]:
    """The names of the numbers that an encoder makes."""
    try:
        names = list(encoder.get_feature_names_out())
    except Exception as error:  # whatever a transformer of someone else's raises
        raise ValueError(
            f"features is a {type(encoder).__name__} that cannot name its numbers; fit it first ({error})"
        ) from error
    return distinct_names(names)


def input_names(encoder: Any) -> list[Any] | None:
    """The columns that an encoder takes; None where it does not say."""
    names = getattr(encoder, "feature_names_in_", None)
    return None if names is None else list(names)


def check_same_numbers(features: Any, others: Any) -> None:
    """Refuse two `Features` of the same names that make other numbers of the same columns."""
    both = isinstance(features, Features) and isinstance(others, Features)
    if both and features.contents() != others.contents():
        raise ValueError(
            "the model's features have other means, scales or values than those that what was observed came with, and "
            "so make other numbers of the same contexts; give a model with the same bough.Features, or learn from the "
            "log again"
        )


def encode(encoder: Any, frame: Any, n: int, names: tuple[str, ...]) -> Floats:
    """(n, d) what an encoder makes of a frame, or a `ValueError`."""
    try:
        rows = dense(encoder.transform(frame))
    except Exception as error:  # whatever a transformer of someone else's raises
        if isinstance(encoder, (Features, LostEncoder)):
            raise
        what = " ".join(str(error).split())
        encoder = encoder.encoder if isinstance(encoder, WithIntercept) else encoder
        raise ValueError(f"{type(encoder).__name__} cannot make numbers of the contexts: {what:.300}") from error
    if rows.shape != (n, len(names)):
        raise ValueError(f"features made numbers of shape {rows.shape}; expected {(n, len(names))}: {shown(names)}")
    return rows


def dense(rows: Any) -> Floats:
    """Numbers as an array, also where a transformer made a sparse one."""
    return _checks.floats(rows.toarray() if hasattr(rows, "toarray") else rows, "contexts")


# -- files ---------------------------------------------------------------------------------------


def features_contents(features: Any, names: tuple[str, ...] | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header and the arrays that a file keeps of a model's features: nothing where it has none."""
    if names is None:
        return {}, {}
    encoder: Any = None
    if not isinstance(features, tuple):
        encoder = features.contents() if isinstance(features, Features) else "other"
    return {"features": {"encoder": encoder}}, names_contents(names)


def restored_features(contents: Contents, dim: int | None, given: Any = None) -> Any:
    """The features of a file, or those that are given for it, which must have the same names."""
    names = restored_names(contents, dim)
    if given is not None:
        return _given_features(given, names, dim)
    if names is None:
        return None
    encoder = contents.header["features"]["encoder"]
    if encoder is None:
        return names
    if isinstance(encoder, str) and encoder == "other":
        return LostEncoder(names)
    if not isinstance(encoder, dict):
        raise ValueError(f'the encoder is {encoder!r:.40}; expected null, "other" or a JSON object')
    features = Features.restored(encoder)
    if features.names != names:
        raise ValueError("the encoder makes other features than those that are named")
    return features


def _given_features(given: Any, names: tuple[str, ...] | None, dim: int | None) -> Any:
    """Features that are given for a file's model, with its names, and before them an intercept if these have one."""
    try:
        own = encoded_names(given) if is_encoder(given) else checked_names(given, dim)
        if names == (INTERCEPT, *own):
            given, own = with_intercept(given), names
        if names is None or own == names:
            return checked_features(given, dim)[0]
    except ValueError as error:
        raise OtherFileError(f"cannot be read with these features: {error}") from None
    raise OtherFileError(f"has the features {shown(names)}, and {shown(own)} were given; give the same ones")
