"""Clicks: what the tree is worth where rewards are 0 or 1, against the sampler that people use for them today."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from bough.experiments.claims import by_gaps
from bough.experiments.experiment import Claim, Experiment, Results
from bough.experiments.options import Options
from bough.model.bernoulli import BernoulliModel
from bough.simulation import problems


@dataclass(frozen=True)
class ClicksCell:
    """Actions of a balanced tree that are clicked at this rate on average.

    >>> ClicksCell().name
    '1,000 actions, 5% clicks'
    """

    branching: int = 10
    height: int = 3
    rate: float = 0.05

    @property
    def name(self) -> str:
        """What the cell is called in tables."""
        return f"{self.branching**self.height:,} actions, {self.rate:.0%} clicks"

    @property
    def slug(self) -> str:
        """What the cell is called in the names of files."""
        return f"b{self.branching}-h{self.height}-{self.rate:g}"

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the cell's numbers."""
        return asdict(self)

    def problem(self) -> BernoulliModel:
        """What `simulate` takes."""
        return problems.clicks(self.branching, self.height, self.rate)


def experiment(_: Options) -> Experiment:
    """The one problem, with long runs."""
    return Experiment(
        "clicks",
        "Clicks among a thousand actions",
        "beyond the paper (section 3.2 leaves such rewards to approximate inference)",
        (ClicksCell(),),
        ("HierTS", "FlatTS", "TS", "BetaTS", "BayesUCB"),
        rounds=20_000,
        runs=50,
        baseline="BetaTS",
        claims=claims,
        details=details,
    )


def claims(results: Results) -> list[Claim]:
    """HierTS against the samplers that know less of the tree, and how far they differ from each other."""
    below = [(r, name, "HierTS") for r in results for name in ("BetaTS", "TS", "FlatTS")]
    rival = [(r, "BayesUCB", "HierTS") for r in results]
    return [
        by_gaps(below, "Clicks: HierTS below BetaTS, TS and FlatTS", "beyond the paper"),
        by_gaps(rival, "Clicks: HierTS below BayesUCB", "beyond the paper"),
    ]


def details() -> str:
    """What the numbers are of."""
    variances = ", ".join(f"{variance:g}" for variance in problems.CLICK_VARIANCES)
    return f"""Log-odds have variances {variances} from the actions up to the root, and the mean that makes the average
click rate 5%. HierTS, FlatTS, TS and BayesUCB have the Gaussian posterior of expectation propagation, BetaTS an
independent Beta distribution for each action with the same prior mean and variance. Regret is in clicks."""
