"""Every experiment of `bough reproduce`, in the order of the report; a new one is a module of its own and a line here.

Light to import: the modules load when an experiment is made.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from bough.experiments.options import Options

if TYPE_CHECKING:
    from bough.experiments.experiment import Experiment

EXPERIMENTS = {
    "branching": "bough.experiments.branching:experiment",
    "height-constant": "bough.experiments.heights:constant",
    "height-increasing": "bough.experiments.heights:increasing",
    "policies": "bough.experiments.policies:experiment",
    "clicks": "bough.experiments.clicks:experiment",
    "drift": "bough.experiments.drift:experiment",
    "explore": "bough.experiments.explore:experiment",
    "crossed": "bough.experiments.crossed:experiment",
    "noise": "bough.experiments.noise:experiment",
    "classes": "bough.experiments.classes:experiment",
    "catalogue": "bough.experiments.catalogue:experiment",
}
"""By name, where the function is that makes it. It takes `Options`; where its data are not here it says so with a
`MissingDataError`."""

ON_REQUEST = ("drift", "explore", "crossed", "noise")
"""Those that take minutes and run only where they are named."""


def check_name(name: str) -> None:
    """Refuse a name that no experiment has."""
    if name not in EXPERIMENTS:
        raise ValueError(f"unknown experiment {name!r}; there are {', '.join(EXPERIMENTS)}")


def make(name: str, options: Options | None = None) -> Experiment:
    """The experiment of this name; a `MissingDataError` that says how to get its data where they are not here."""
    check_name(name)
    module, _, maker = EXPERIMENTS[name].partition(":")
    made: Experiment = getattr(import_module(module), maker)(options or Options())
    if made.name != name:
        raise ValueError(f"{EXPERIMENTS[name]} made an experiment called {made.name!r}; {name!r} is right")
    return made
