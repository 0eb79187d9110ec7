"""What Gaussian approximations of posteriors cost in regret, where actions are independent and clicks are rare."""

import numba
import numpy as np

import bough
from bough.simulation.worlds import FromPrior


@numba.njit
def play_exactly(rng, truth, noise, grid, log_prior, gap):
    """Overwrites gap: Thompson sampling with independent actions, each with its exact posterior on a grid."""
    of_click, of_none = -np.log1p(np.exp(-grid)), -np.log1p(np.exp(grid))
    log_density, below = np.empty((len(truth), len(grid))), np.empty((len(truth), len(grid)))
    for action in range(len(truth)):
        log_density[action] = log_prior
        below[action] = np.cumsum(np.exp(log_prior))
    for t in range(len(gap)):
        best, chosen = -np.inf, 0
        for action in range(len(truth)):
            level = rng.random() * below[action, -1]
            k = np.searchsorted(below[action], level)
            under = below[action, k - 1] if k > 0 else 0.0
            score = grid[k] + (grid[1] - grid[0]) * ((level - under) / (below[action, k] - under) - 0.5)
            if score > best:
                best, chosen = score, action
        gap[t] = truth.max() - truth[chosen]
        log_density[chosen] += of_click if noise[t] < truth[chosen] else of_none
        below[chosen] = np.cumsum(np.exp(log_density[chosen] - log_density[chosen].max()))


class Kept:
    """Click problems whose worlds are kept, so that the exact sampler can meet the same."""

    def __init__(self, model) -> None:
        self.model, self.worlds = model, []

    def world(self, rounds, rng):
        self.worlds.append(FromPrior(self.model).world(rounds, rng))
        return self.worlds[-1]


def test_what_gaussian_tails_cost(figures):
    """Independent actions, 20,000 rounds: the regret with Gaussian posteriors, with exact ones, and with Beta's."""
    problem = Kept(bough.problems.clicks())
    run = bough.simulate(problem, {"TS": bough.TS, "BetaTS": bough.BetaTS}, rounds=20_000, runs=24, seed=14, jobs=1)
    mean, spread = problem.model.mean, problem.model.marginal_covariance[-1]
    grid = np.linspace(mean - 7.0, mean + 7.0, 500)
    exact = []
    for i, world in enumerate(problem.worlds):
        gap = np.empty(world.rounds)
        play_exactly(np.random.default_rng(i), world.truth, world.noise, grid, -0.5 * (grid - mean) ** 2 / spread, gap)
        exact.append(gap.sum())
    figures.note("clicks, independent actions, 20,000 rounds, exact posteriors: regret", f"{np.mean(exact):.0f}")
    for name in ("TS", "BetaTS"):
        more = run.regret[name][:, -1] - exact
        error = more.std(ddof=1) / np.sqrt(len(more))
        figures.note(f"  {name} less that, mean ± standard error of 24 runs", f"{more.mean():.0f} ± {error:.0f}")
