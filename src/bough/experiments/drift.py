"""drift: what forgetting is worth where the truth moves, and what it costs where it does not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from bough.experiments.claims import by_gaps
from bough.experiments.experiment import Claim, Experiment, Results
from bough.experiments.figures import curves
from bough.experiments.options import Options
from bough.model.covariance import by_depth
from bough.model.gaussian import GaussianModel
from bough.plotting import regret_panels
from bough.policies.thompson import TS, HierTS
from bough.simulation.problems import drifting
from bough.simulation.worlds import Problem
from bough.tree.tree import Tree

BRANCHING, HEIGHT = 4, 3
VARIANCES = (1.0, 0.3, 0.3, 0.4)  # from the root to the actions
HALF_LIFE = 1000.0  # of what moves, in rounds

World = Literal["stationary", "actions", "nodes", "redrawn"]
NAMES: dict[World, str] = {
    "stationary": "nothing moves",
    "actions": "actions drift",
    "nodes": "all but the root drift",
    "redrawn": "actions redrawn now and then",
}


@dataclass(frozen=True)
class DriftCell:
    """One kind of world.

    >>> DriftCell("actions").name
    'actions drift'
    """

    world: World

    @property
    def name(self) -> str:
        """What the cell is called in tables."""
        return NAMES[self.world]

    @property
    def slug(self) -> str:
        """What the cell is called in the names of files."""
        return self.world

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the cell's numbers."""
        tree = {"branching": BRANCHING, "height": HEIGHT}
        return {"world": self.world, **tree, "variances": list(VARIANCES), "half_life": HALF_LIFE}

    @property
    def policies(self) -> dict[str, Any]:
        """The policies, by name."""
        return {
            "HierTS": HierTS,
            "half_life 1000": partial(HierTS, half_life=1000.0),
            "half_life 2000": partial(HierTS, half_life=2000.0),
            "drift 3000": partial(drifting_hierts, drift=3000.0),
            "drift 10000": partial(drifting_hierts, drift=10000.0),
            "TS": TS,
        }

    def problem(self) -> GaussianModel | Problem:
        """What `simulate` takes."""
        model = GaussianModel(Tree.balanced(BRANCHING, HEIGHT), covariance=by_depth(VARIANCES))
        if self.world == "stationary":
            return model
        return drifting(model, HALF_LIFE, "nodes" if self.world == "nodes" else "actions", self.world == "redrawn")


def drifting_hierts(model: GaussianModel, seed: Any, drift: float) -> HierTS:
    """HierTS that takes actions to drift with this half-life."""
    return HierTS(replace(model, drift=drift), seed)


def experiment(_: Options) -> Experiment:
    """Four kinds of world, with long runs."""
    cells = tuple(DriftCell(world) for world in NAMES)
    return Experiment(
        "drift",
        "When the world moves",
        "beyond the paper",
        cells,
        tuple(cells[0].policies),
        rounds=4_000,
        runs=200,
        figure=figure,
        claims=claims,
        details=details,
    )


def figure(_: Experiment, results: Results) -> Any:
    """Regret against rounds, a panel for each kind of world."""
    return regret_panels({r.cell.name: curves(r) for r in results})


def claims(results: Results) -> list[Claim]:
    """Which way of forgetting pays where something moves, and what never forgetting is worth where nothing does."""
    moving = [r for r in results if r.cell.world != "stationary"]
    still = [r for r in results if r.cell.world == "stationary"]
    forgetting = [name for name in results[0].mean if name not in ("HierTS", "TS")]
    where = "beyond the paper"
    return [
        by_gaps(
            [(r, "HierTS", "half_life 1000") for r in moving],
            "Where something moves: half_life below never forgetting",
            where,
        ),
        by_gaps(
            [(r, "half_life 1000", "drift 3000") for r in moving],
            "Where something moves: drift below half_life",
            where,
        ),
        by_gaps(
            [(r, name, "HierTS") for r in still for name in forgetting],
            "Where nothing moves: never forgetting below every way to forget",
            where,
        ),
    ]


def details() -> str:
    """What the numbers are of."""
    variances = ", ".join(f"{variance:g}" for variance in VARIANCES)
    return f"""A tree of {BRANCHING} x {BRANCHING} x {BRANCHING} actions with variances {variances} from the root to the
actions, and noise of variance 1. What moves does so with a half-life of {HALF_LIFE:,.0f} rounds: an action's
deviation from its category, or every node's from its parent; or an action's deviation is drawn anew, at random times
with the same autocorrelation. Regret is against the best action of each round. HierTS and TS never forget;
`half_life` and `drift` are HierTS with these half-lives in rounds."""
