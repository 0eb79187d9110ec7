"""What the command says to the experiments, and what an experiment says that cannot be run here. Light to import."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Reduce = Literal["pca", "mean", "stride"]
Scale = Literal["unit", "raw"]
REDUCTIONS: tuple[Reduce, ...] = ("pca", "mean", "stride")
SCALES: tuple[Scale, ...] = ("unit", "raw")
FEATURES = Path("cifar100.npz")  # where `bough data cifar100` writes and `bough reproduce classes` looks


@dataclass(frozen=True)
class Options:
    """The options of `bough reproduce` that are about one experiment; the others do not look at them."""

    features: Path | None = None
    """classes: the file of features; `FEATURES` where None."""
    reduce: Reduce = "pca"
    """classes: how features are brought to ten."""
    scale: Scale = "unit"
    """classes: whether their mean norm is made 1."""
    tree: Path | None = None
    """classes: a deeper tree as well."""

    @property
    def asked_for(self) -> tuple[str, ...]:
        """The experiments that whoever gives these options wants, where none are named."""
        return () if self.features is None else ("classes",)


class MissingDataError(ValueError):
    """The data of an experiment are not here, or cannot be used; the message says how to get them."""
