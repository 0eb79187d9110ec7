"""Statistics: all that the model can learn from a log, a few sums an action."""

from __future__ import annotations

import os
import reprlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bough import _checks, _storage
from bough._arrays import Flags, Floats, Integers, Names
from bough.data.contexts import without_model
from bough.model.factor_files import pack_levels, unpack_levels
from bough.model.factors import level_name
from bough.model.feature_names import checked_names, distinct_names, names_contents, order_of, restored_names, shown
from bough.tree.files import pack_names, unpack_names
from bough.tree.name_columns import as_column, is_bool, plain

_KIND = "statistics"
_VERSION = 2  # with factors of decisions; without them 1
_SUMS = ("count", "sum_y", "sum_yy", "sum_xy", "sum_xx", "exposure")
_ROUNDING = 1e-6  # relative: how far sums, in single precision too, may be from any that rows have
_UNDERFLOW = float(np.finfo(np.float64).tiny)  # a row: squares below this are no longer exact
_SLICE = 4096  # actions whose sums are checked at once


@dataclass(frozen=True, eq=False, repr=False)
class Statistics:
    """Sums over the rows of a log, for each action that it has: they add up over shards and days.

    Made by `summarise`, or by `Statistics.from_rows` of arrays, or from sums of your own, which are refused where no
    rows could have them. A Gaussian model learns the same from them as from the
    rows themselves, so `Posterior.absorb` and `fit_prior` take them. They go by the actions' names and not by a
    tree, so that one summary serves every tree that has these actions.

    >>> import bough
    >>> monday = bough.Statistics.from_rows(["kettle", "spade"], [3.0, 1.0])
    >>> tuesday = bough.Statistics.from_rows(["kettle"], [5.0])
    >>> both = monday + tuesday
    >>> both
    Statistics(n_actions=2, n_rows=3)
    >>> both.count, both.sum_y, both.sum_yy
    (array([2., 1.]), array([8., 1.]), array([34.,  1.]))
    """

    actions: Names
    """(n,) the names of the actions."""
    count: Floats
    """(n,) how many rows each has; the sum of their weights where they have any."""
    sum_y: Floats
    """(n,) the sum of their rewards y."""
    sum_yy: Floats
    """(n,) the sum of y squared."""
    sum_xy: Floats | None = None
    """(n, d) the sum of x y, x the context; None without contexts."""
    sum_xx: Floats | None = None
    """(n, d, d) the sum of x x'; None without contexts."""
    exposure: Floats | None = None
    """(n,) the sum of their trials or exposures, where rewards are counts of something; None for one a row."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """How many rows were left out, by the reason."""
    features: tuple[str, ...] | None = None
    """(d,) the names of the entries of a context, in order; None where they are not known."""
    factors: Mapping[str, Names] | None = None
    """(n,) for each factor of the decisions, the level; an action has a row for each that it was rewarded at."""

    def __post_init__(self) -> None:
        actions = as_column(_checks.as_names(self.actions))
        factors = _checked_factors(self.factors, len(actions))
        sums = {name: _checks.floats(array, name) for name, array in self._sums.items()}
        _check_shapes(actions, sums)
        _check_distinct(actions, factors)
        _check_values(actions, sums)
        if not isinstance(self.skipped, Mapping):
            raise ValueError(f"skipped is {self.skipped!r}; give a mapping from reasons to numbers of rows")
        skipped = {str(why): _checks.whole_number(f"skipped[{why!r}]", n, least=0) for why, n in self.skipped.items()}
        dim = sums["sum_xy"].shape[1] if "sum_xy" in sums else None
        features = None if self.features is None else checked_names(self.features, dim)
        self._set(actions, sums, skipped, features, factors)

    def _set(
        self,
        actions: Names,
        sums: Mapping[str, Floats],
        skipped: Mapping[str, int],
        features: tuple[str, ...] | None,
        factors: Mapping[str, Names] | None,
    ) -> None:
        for array in (actions, *sums.values(), *(factors or {}).values()):
            array.setflags(write=False)
        values: dict[str, Any] = {"actions": actions, **{name: sums.get(name) for name in _SUMS}, "skipped": skipped}
        values |= {"features": features, "factors": factors}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def _trusted(
        cls,
        actions: Names,
        skipped: Mapping[str, int] | None = None,
        features: tuple[str, ...] | None = None,
        factors: Mapping[str, Names] | None = None,
        **sums: Floats,
    ) -> Statistics:
        """The statistics of these arrays as they are: for what rows were summed to here, or stands for such sums."""
        made = cls.__new__(cls)
        made._set(actions, sums, skipped or {}, features, factors)
        return made

    def __repr__(self) -> str:
        n = len(self.actions) if self.factors is None else len(set(self.actions.tolist()))
        parts = [f"n_actions={n}", f"n_rows={self.n_rows:.10g}"]
        parts += [f"dim={self.dim}"] if self.dim else []
        parts += [f"features=[{shown(self.features)}]"] if self.features else []
        parts += [f"factors=[{shown(self.factors)}]"] if self.factors else []
        parts += [f"skipped={dict(self.skipped)}"] if self.skipped else []
        return f"Statistics({', '.join(parts)})"

    @property
    def dim(self) -> int | None:
        """The length of a context; None where rewards have none."""
        return None if self.sum_xy is None else int(self.sum_xy.shape[1])

    @property
    def n_rows(self) -> float:
        """How many rows were summed; the sum of their weights where they have any."""
        return float(self.count.sum())

    @property
    def exposure_or_count(self) -> Floats:
        """(n,) the trials or the exposure that the rewards of each action had."""
        return self.count if self.exposure is None else self.exposure

    @property
    def _sums(self) -> dict[str, Floats]:
        named = {name: getattr(self, name) for name in _SUMS}
        return {name: array for name, array in named.items() if array is not None}

    @classmethod
    def from_rows(
        cls,
        action: Any,
        reward: Any,
        context: Any = None,
        weight: Any = None,
        *,
        trials: Any = None,
        exposure: Any = None,
        features: Sequence[str] | None = None,
        factors: Mapping[str, Any] | None = None,
    ) -> Statistics:
        """The statistics of arrays of the same length, with the contexts, if any, (n, d).

        `features` has the names of the entries of a context; a frame of contexts has them already. A row of weight w
        counts as w equal rows. Where rewards are clicks, `trials` has how many views each is of, and
        where they are counts, `exposure` how long or how much was counted. `factors` has the levels that the decisions
        had, a column for each factor of the decision.

        >>> import bough
        >>> bough.Statistics.from_rows(["left", "right"], [1.0, 0.5], context=[[1.0, 0.0], [1.0, 1.0]])
        Statistics(n_actions=2, n_rows=2, dim=2)
        """
        rewards = _checks.vector(reward, "rewards")
        given_names = _listed(_checks.as_names(action))
        names, levels, group = _grouped(given_names, _checked_factors(factors, len(given_names)))
        if len(group) != len(rewards):
            raise ValueError(f"action has length {len(group)} and reward {len(rewards)}; give one for each")
        weights = np.ones(len(rewards)) if weight is None else _checks.vector(weight, "weights")
        if len(weights) != len(rewards) or (weights < 0).any():
            raise ValueError(
                "weight has another length than reward, or is negative; give one number of 0 or more a row"
            )
        contexts, names_of_features = None, None
        if context is not None:
            given, named = without_model(context, features)
            contexts = _checks.floats(given, "context")
            if contexts.ndim != 2 or len(contexts) != len(rewards) or not np.isfinite(contexts).all():
                wanted = f"({len(rewards)}, d), a row for each"
                raise ValueError(f"the contexts have shape {contexts.shape} or are not finite; give {wanted}")
            names_of_features = None if named is None else checked_names(named, contexts.shape[1])
        elif features is not None:
            checked_names(features, None)  # for its error
        exposures, exposure = None, _checks.trials_or_exposure(trials, exposure)
        if exposure is not None:
            exposures = _checks.vector(exposure, "exposures")
            if len(exposures) != len(rewards) or (exposures <= 0.0).any():
                raise ValueError("exposure has another length than reward, or is not positive; give one number a row")
            bad = (rewards < 0.0) | (rewards % 1.0 != 0.0) | ((rewards > exposures) if trials is not None else False)
            if bad.any():
                row = int(np.flatnonzero(bad)[0])
                most = f" of at most {exposures[row]:g}" if trials is not None else ""
                raise ValueError(f"the reward in row {row} is {rewards[row]:g}; give a count{most}, a whole number")
        found = _summed(names, group, rewards, contexts, weights, exposures, levels)
        return found.arranged(names_of_features)

    def arranged(self, features: Sequence[str] | None) -> Statistics:
        """The same sums with the features of contexts in this order; where they have no names, with these.

        >>> import bough
        >>> sums = bough.Statistics.from_rows(["left"], [1.0], [[30.0, 5.0]], features=["age", "price"])
        >>> sums.arranged(["price", "age"]).sum_xy
        array([[ 5., 30.]])
        """
        if features is None or self.features is features:
            return self
        names, sums = distinct_names(features), self._sums
        if self.features is None:
            checked_names(names, self.dim)
        else:
            order = order_of(self.features, names, "the log that was summed")
            sums = {**sums, "sum_xy": sums["sum_xy"][:, order], "sum_xx": sums["sum_xx"][:, order][:, :, order]}
        return Statistics._trusted(self.actions, self.skipped, names, self.factors, **sums)

    def __radd__(self, other: Any) -> Statistics:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # so that sum() works

    def __add__(self, other: Statistics) -> Statistics:
        """The statistics of both logs together; named features are added by name."""
        if not isinstance(other, Statistics):
            return NotImplemented
        if self.dim != other.dim:
            raise ValueError(
                f"one has contexts of length {self.dim} and the other of {other.dim}; they cannot be added"
            )
        features = self.features or other.features
        other = other.arranged(features)
        factors = _beside(self, other)
        names, levels, group = _grouped([*self.actions.tolist(), *other.actions.tolist()], factors)
        sums = {}
        for name in self._sums.keys() | other._sums.keys():
            whose = "exposure_or_count" if name == "exposure" else name
            both = np.concatenate([getattr(self, whose), getattr(other, whose)])
            sums[name] = np.zeros((len(names), *both.shape[1:]))
            np.add.at(sums[name], group, both)
        skipped = dict(Counter(self.skipped) + Counter(other.skipped))
        return Statistics._trusted(names, skipped, features, levels, **sums)

    def check_kind(self, model: Any) -> None:
        """Refuse sums that the rewards of a model (its class) cannot have."""
        model.kind.check_sums(self.actions, self.sum_y, self.sum_yy, self.count, self.exposure, model.__name__)

    def averages_and_spreads(self) -> tuple[Floats, Floats]:
        """(n,) and (n,): for each action the mean of its rewards, and their sum of squares around it."""
        averages = self.sum_y / self.count
        spreads = self.sum_yy - self.sum_y * averages
        # What is within the rounding of the sums is nothing: one reward alone must not have a spread.
        return averages, np.where(spreads <= 8.0 * np.finfo(float).eps * self.sum_yy, 0.0, spreads)

    def as_rows(self, mean: Floats) -> tuple[Floats, Floats, Floats]:
        """(n, d, d), (n, d) and (n,): for each action d rows that say the same as all of its own.

        That is contexts and rewards, and the sum of squares that no parameter explains. Rewards are taken as
        deviations from what `mean` predicts. Where an action's contexts span less than R^d, rows are zero.
        """
        if self.sum_xx is None or self.sum_xy is None:
            raise ValueError("these are statistics without contexts, which have no rows; use averages_and_spreads")
        mean = _checks.vector(mean, "mean")
        if mean.shape != self.sum_xy.shape[1:]:
            raise ValueError(f"the mean has shape {mean.shape}; give {self.sum_xy.shape[1:]}, the length of a context")
        xy = self.sum_xy - self.sum_xx @ mean
        yy = self.sum_yy - (self.sum_xy + xy) @ mean
        # The eigenvectors of x x' where every feature has unit size, so that units do not decide what is rounding.
        size = np.sqrt(np.einsum("njj->nj", self.sum_xx))
        size[size == 0.0] = 1.0
        values, vectors = np.linalg.eigh(self.sum_xx / (size[:, :, None] * size[:, None, :]))
        seen = values > len(mean) * np.finfo(float).eps * values[:, -1:]
        root = np.sqrt(np.where(seen, values, 1.0))
        rows = np.where(seen[:, :, None], root[:, :, None] * vectors.transpose(0, 2, 1) * size[:, None, :], 0.0)
        targets = np.where(seen, np.einsum("njk,nj->nk", vectors, xy / size) / root, 0.0)
        return rows, targets, np.maximum(yy - np.square(targets).sum(axis=1), 0.0)

    # -- files ---------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the statistics to one file, whole or not at all.

        >>> import bough, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "monday.bough"
        >>> bough.Statistics.from_rows(["kettle", "spade"], [3.0, 1.0]).save(path)
        >>> bough.Statistics.load(path)
        Statistics(n_actions=2, n_rows=2)
        """
        header: dict[str, Any] = {"kind": _KIND, "skipped": dict(self.skipped)}
        arrays = {**pack_names("actions", self.actions), **self._sums}
        if self.features is not None:
            header, arrays = {**header, "features": {}}, {**arrays, **names_contents(self.features)}
        if self.factors is not None:
            header["factors"] = list(self.factors)
            for i, column in enumerate(self.factors.values()):
                arrays |= pack_levels(f"factor_{i}", column)
        _storage.write(path, {**header, "version": _storage.version_of(header, _VERSION, "factors")}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Statistics:
        """The statistics that `save` wrote; a `ValueError` where the file is not such a one, or damaged."""
        with _storage.read(path, _KIND, _VERSION) as contents:
            names = unpack_names("actions", contents)
            n = len(names)
            shapes: dict[str, tuple[int | None, ...]] = {"sum_xy": (n, None)}
            sums: dict[str, Floats] = {}
            for key in _SUMS:
                if key in contents:
                    sums[key] = contents.array(key, np.float64, shapes.get(key, (n,)))
                    shapes |= {"sum_xx": (n, *sums[key].shape[1:] * 2)} if key == "sum_xy" else {}
            dim = sums["sum_xy"].shape[1] if "sum_xy" in sums else None
            features = restored_names(contents, dim)
            skipped = _checked_skipped(contents.header["skipped"])
            return cls(names, **sums, skipped=skipped, features=features, factors=_restored_factors(contents, n))


def _checked_skipped(given: Any) -> dict[str, int]:
    if not isinstance(given, dict) or any(type(n) is not int or n < 0 for n in given.values()):
        raise ValueError(f"skipped is {reprlib.repr(given)}; expected how many rows, by reason")
    return given


def _listed(names: list[Any] | Names) -> list[Any]:
    return names.tolist() if isinstance(names, np.ndarray) else [plain(name) for name in names]


def _factorised(names: list[Any]) -> tuple[Names, Integers]:
    """The distinct names in the order in which they come, and which of them each is."""
    code: dict[Any, int] = {}
    kinds = set(map(type, names))
    try:
        if bool in kinds and len(kinds) > 1:  # True and 1 are two names, and equal
            keys = [(is_bool(name), name) for name in names]
            group = np.fromiter((code.setdefault(key, len(code)) for key in keys), np.int64, len(names))
            return as_column([name for _, name in code]), group
        group = np.fromiter((code.setdefault(name, len(code)) for name in names), np.int64, len(names))
    except TypeError:
        as_column(names)  # for its error
        raise
    return as_column(list(code)), group


def _check_shapes(actions: Names, sums: Mapping[str, Floats]) -> None:
    """Refuse columns that are not of one length, and sums without their partners."""
    for name in ("count", "sum_y", "sum_yy"):
        if name not in sums:
            raise ValueError(f"{name} is None; give one number for each action")
    if ("sum_xy" in sums) != ("sum_xx" in sums):
        raise ValueError("only one of sum_xy and sum_xx was given; give both, or neither where there are no contexts")
    n, d = len(actions), sums["sum_xy"].shape[-1] if "sum_xy" in sums and sums["sum_xy"].ndim else 0
    if "sum_xy" in sums and not d:
        raise ValueError(f"sum_xy has shape {sums['sum_xy'].shape}; give ({n}, d), d the length of a context")
    shapes = {"sum_xy": (n, d), "sum_xx": (n, d, d)}
    for name, array in sums.items():
        wanted = shapes.get(name, (n,))
        if array.shape != wanted:
            raise ValueError(f"{name} has shape {array.shape}; give {wanted} for {n} actions")


def _check_distinct(actions: Names, factors: Mapping[str, Names] | None) -> None:
    """Refuse two rows of the same action at the same levels."""
    values = actions.tolist()
    if factors:
        values = list(zip(values, *(column.tolist() for column in factors.values()), strict=True))
    if len(set(values)) < len(values) and (
        factors or len(_factorised(values)[0]) < len(values)
    ):  # a set takes True for 1
        twice = next(name for name, times in Counter(values).items() if times > 1)
        what = f"{twice[0]!r} at {twice[1:]!r}" if factors else repr(twice)
        raise ValueError(f"the action {what} is there more than once; add its sums up")


def _checked_factors(factors: Any, n: int) -> dict[str, Names] | None:
    """Columns of the levels of decisions; None where there are none."""
    if _checks.is_nothing(factors):
        return None
    if not isinstance(factors, Mapping) or not all(isinstance(name, str) and name for name in factors):
        raise ValueError(
            f"factors is {_checks.shown(factors)}; give a mapping from names of factors to columns of levels"
        )
    found = {}
    for name, column in factors.items():
        if isinstance(column, tuple):
            raise ValueError(f"the level of {name!r} is {column!r:.80}; give one for each row, in a list")
        listed = _checks.column(column, f"the level of {name!r}", "one for each row, in a list")
        levels = [level_name(one, f"a level of {name!r}") for one in listed]
        if len(levels) != n:
            raise ValueError(f"there are {len(levels)} levels of {name!r} for {n} actions; give one for each row")
        found[name] = as_column(levels)
    return found


def _restored_factors(contents: _storage.Contents, n: int) -> dict[str, Names] | None:
    """The columns of levels that a file has, checked by whoever makes statistics of them."""
    names = contents.header.get("factors", [])
    if not isinstance(names, list) or len(set(map(str, names))) < len(names):
        raise ValueError(f"factors is {reprlib.repr(names)}; expected a list of names")
    return {name: unpack_levels(f"factor_{i}", contents, n) for i, name in enumerate(names)} or None


def _beside(one: Statistics, other: Statistics) -> dict[str, Names] | None:
    """The levels of two statistics, one below the other; a `ValueError` where they have other factors."""
    mine, theirs = one.factors or {}, other.factors or {}
    if mine.keys() != theirs.keys():
        raise ValueError(
            f"one has the factors {shown(mine)} and the other {shown(theirs)}; statistics of the same factors add up"
        )
    return {name: as_column([*mine[name].tolist(), *theirs[name].tolist()]) for name in mine} or None


def _grouped(names: list[Any], factors: Mapping[str, Names] | None) -> tuple[Names, dict[str, Names] | None, Integers]:
    """The distinct actions, at distinct levels where there are factors, with these, and which of them each row is."""
    if not factors:
        distinct, group = _factorised(names)
        return distinct, None, group
    rows = list(zip(names, *(column.tolist() for column in factors.values()), strict=True))
    code: dict[Any, int] = {}
    group = np.fromiter((code.setdefault(row, len(code)) for row in rows), np.int64, len(rows))
    actions, *levels = zip(*code, strict=True) if code else [()] * (1 + len(factors))
    return as_column(actions), dict(zip(factors, map(as_column, levels), strict=True)), group


def _check_values(actions: Names, sums: Mapping[str, Floats]) -> None:
    """Refuse sums that no rows have."""

    def refuse(bad: Flags, why: str) -> None:
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            shown = ", ".join(f"{name} {_short(array[i])}" for name, array in sums.items())
            raise ValueError(f"no rows have the sums of the action {plain(actions[i])!r}: {why} ({shown})")

    for name, array in sums.items():
        refuse(np.asarray(~np.isfinite(array).all(axis=tuple(range(1, array.ndim)))), f"{name} is not finite")
    for name in ("count", "exposure"):
        if name in sums:
            refuse(sums[name] <= 0.0, f"{name} is not positive")
    refuse(sums["sum_yy"] < 0.0, "sum_yy is negative")
    count, yy = sums["count"], sums["sum_yy"]
    largest = np.sqrt(count) * np.sqrt(yy + count * _UNDERFLOW)
    wide = np.asarray(np.abs(sums["sum_y"]) > largest * (1.0 + _ROUNDING))
    refuse(wide, "the square of sum_y is more than count times sum_yy")
    if "sum_xx" in sums:
        parts = [slice(start, start + _SLICE) for start in range(0, len(actions), _SLICE)]
        bad = [_is_indefinite(count[one], yy[one], sums["sum_xy"][one], sums["sum_xx"][one]) for one in parts]
        why = "sum_xx, bordered with sum_xy and sum_yy, is not symmetric and positive semi-definite"
        refuse(np.concatenate(bad) if bad else np.zeros(0, dtype=np.bool_), why)


def _is_indefinite(count: Floats, yy: Floats, xy: Floats, xx: Floats) -> Flags:
    """(n,) where [[xx, xy], [xy', yy]] is not symmetric and positive semi-definite, but for rounding."""
    n, d = xy.shape
    bordered = np.empty((n, d + 1, d + 1))
    bordered[:, :d, :d], bordered[:, d, :d], bordered[:, :d, d], bordered[:, d, d] = xx, xy, xy, yy
    diagonal = np.einsum("njj->nj", bordered)  # a view, to be written to
    square = diagonal.copy()
    diagonal += _ROUNDING * square + (count * _UNDERFLOW)[:, None]
    if (square >= 0.0).all() and np.array_equal(xx, xx.transpose(0, 2, 1)):
        try:
            np.linalg.cholesky(bordered)
            return np.zeros(n, dtype=np.bool_)
        except np.linalg.LinAlgError:  # eigenvalues take longer, and say which it is
            pass
    # Every feature at unit size, so that units do not decide what is rounding.
    size = np.sqrt(np.maximum(square, 0.0) + (count * _UNDERFLOW)[:, None])
    bordered /= size[:, :, None]
    bordered /= size[:, None, :]
    lopsided = np.abs(bordered - bordered.transpose(0, 2, 1)).max(axis=(1, 2)) > _ROUNDING
    bad = lopsided | (square < 0.0).any(axis=1) | (np.abs(bordered).max(axis=(1, 2)) > 1.0 + 4.0 * _ROUNDING)
    bordered[bad] = 0.0
    return np.asarray(bad | (np.linalg.eigvalsh(bordered)[:, 0] < 0.0))


def _short(value: Any) -> str:
    return " ".join(np.array2string(value, threshold=16, precision=4).split())


def _summed(
    names: Names,
    group: Integers,
    y: Floats,
    x: Floats | None,
    weights: Floats,
    exposures: Floats | None,
    factors: Mapping[str, Names] | None = None,
) -> Statistics:
    def total(values: Floats) -> Floats:
        return np.bincount(group, values, minlength=len(names)).astype(np.float64)

    sums: dict[str, Any] = {"count": total(weights), "sum_y": total(weights * y), "sum_yy": total(weights * y * y)}
    if exposures is not None:
        sums["exposure"] = total(weights * exposures)
    if x is not None:
        d = x.shape[1]
        weighted = weights[:, None] * x
        sums["sum_xy"] = np.stack([total(weighted[:, j] * y) for j in range(d)], axis=1)
        sums["sum_xx"] = np.empty((len(names), d, d))
        for j in range(d):
            for k in range(j, d):
                sums["sum_xx"][:, j, k] = sums["sum_xx"][:, k, j] = total(weighted[:, j] * x[:, k])
    if not all(np.isfinite(array).all() for array in sums.values()):
        raise ValueError("the squares of the rewards or contexts are too large to compute with; are their units right?")
    weighed = sums["count"] > 0.0
    levels = None if factors is None else {name: column[weighed] for name, column in factors.items()}
    kept = {name: array[weighed] for name, array in sums.items()}
    return Statistics._trusted(names[weighed], None, None, levels, **kept)
