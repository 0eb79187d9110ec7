"""Statistics: all that the model can learn from a log, a few sums an action."""

from __future__ import annotations

import os
import reprlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bough import _checks, _storage
from bough._arrays import Floats, Integers, Names
from bough.tree.files import pack_names, unpack_names
from bough.tree.names import as_column, plain

_KIND = "statistics"
_VERSION = 1
_SUMS = ("count", "sum_y", "sum_yy", "sum_xy", "sum_xx", "exposure")


@dataclass(frozen=True, eq=False, repr=False)
class Statistics:
    """Sums over the rows of a log, for each action that it has: they add up over shards and days.

    Made by `summarise`, or by `Statistics.from_rows` of arrays. A Gaussian model learns the same from them as from the
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

    def __post_init__(self) -> None:
        given = self.actions
        object.__setattr__(self, "actions", as_column(given if isinstance(given, np.ndarray) else list(given)))
        for name, array in self._sums.items():
            object.__setattr__(self, name, np.array(array, dtype=np.float64))
        for array in (self.actions, *self._sums.values()):
            array.setflags(write=False)

    def __repr__(self) -> str:
        parts = [f"n_actions={len(self.actions)}", f"n_rows={self.n_rows:.10g}"]
        parts += [f"dim={self.dim}"] if self.dim else []
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
    ) -> Statistics:
        """The statistics of arrays of the same length, with the contexts, if any, (n, d).

        A row of weight w counts as w equal rows. Where rewards are clicks, `trials` has how many views each is of, and
        where they are counts, `exposure` how long or how much was counted.

        >>> import bough
        >>> bough.Statistics.from_rows(["left", "right"], [1.0, 0.5], context=[[1.0, 0.0], [1.0, 1.0]])
        Statistics(n_actions=2, n_rows=2, dim=2)
        """
        rewards = _checks.vector(reward, "rewards")
        names, group = _factorised(_listed(_checks.as_names(action)))
        if len(group) != len(rewards):
            raise ValueError(f"action has length {len(group)} and reward {len(rewards)}; give one for each")
        weights = np.ones(len(rewards)) if weight is None else _checks.vector(weight, "weights")
        if len(weights) != len(rewards) or (weights < 0).any():
            raise ValueError(
                "weight has another length than reward, or is negative; give one number of 0 or more a row"
            )
        contexts = None
        if context is not None:
            contexts = _checks.floats(context, "context")
            if contexts.ndim != 2 or len(contexts) != len(rewards) or not np.isfinite(contexts).all():
                wanted = f"({len(rewards)}, d), a row for each"
                raise ValueError(f"the contexts have shape {contexts.shape} or are not finite; give {wanted}")
        exposures, exposure = None, _checks.either(trials, exposure)
        if exposure is not None:
            exposures = _checks.vector(exposure, "exposures")
            if len(exposures) != len(rewards) or (exposures <= 0.0).any():
                raise ValueError("exposure has another length than reward, or is not positive; give one number a row")
            bad = (rewards < 0.0) | (rewards % 1.0 != 0.0) | ((rewards > exposures) if trials is not None else False)
            if bad.any():
                row = int(np.flatnonzero(bad)[0])
                most = f" of at most {exposures[row]:g}" if trials is not None else ""
                raise ValueError(f"the reward in row {row} is {rewards[row]:g}; give a count{most}, a whole number")
        return _summed(names, group, rewards, contexts, weights, exposures)

    def __radd__(self, other: Any) -> Statistics:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # so that sum() works

    def __add__(self, other: Statistics) -> Statistics:
        """The statistics of both logs together."""
        if not isinstance(other, Statistics):
            return NotImplemented
        if self.dim != other.dim:
            raise ValueError(
                f"one has contexts of length {self.dim} and the other of {other.dim}; they cannot be added"
            )
        names, group = _factorised([*self.actions.tolist(), *other.actions.tolist()])
        sums = {}
        for name in self._sums.keys() | other._sums.keys():
            whose = "exposure_or_count" if name == "exposure" else name
            both = np.concatenate([getattr(self, whose), getattr(other, whose)])
            sums[name] = np.zeros((len(names), *both.shape[1:]))
            np.add.at(sums[name], group, both)
        return Statistics(names, **sums, skipped=dict(Counter(self.skipped) + Counter(other.skipped)))

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
        assert self.sum_xx is not None
        assert self.sum_xy is not None
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
        header = {"kind": _KIND, "version": _VERSION, "skipped": dict(self.skipped)}
        _storage.write(path, header, {**pack_names("actions", self.actions), **self._sums})

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
            if ("sum_xx" in sums) != ("sum_xy" in sums) or len(set(names.tolist())) != n:
                raise ValueError("sums without their partners, or an action twice")
            if not ((sums["count"] > 0.0) & (sums.get("exposure", sums["count"]) > 0.0)).all():
                raise ValueError("an action without rows")
            return cls(names, **sums, skipped=_checked_skipped(contents.header["skipped"]))


def _checked_skipped(given: Any) -> dict[str, int]:
    if not isinstance(given, dict) or any(type(n) is not int or n < 0 for n in given.values()):
        raise ValueError(f"skipped is {reprlib.repr(given)}; expected how many rows, by reason")
    return given


def _listed(names: list[Any] | Names) -> list[Any]:
    return names.tolist() if isinstance(names, np.ndarray) else [plain(name) for name in names]


def _factorised(names: list[Any]) -> tuple[Names, Integers]:
    """The distinct names in the order in which they come, and which of them each is."""
    code: dict[Any, int] = {}
    group = np.fromiter((code.setdefault(name, len(code)) for name in names), np.int64, len(names))
    return as_column(list(code)), group


def _summed(
    names: Names, group: Integers, y: Floats, x: Floats | None, weights: Floats, exposures: Floats | None
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
    return Statistics(names[weighed], **{name: array[weighed] for name, array in sums.items()})
