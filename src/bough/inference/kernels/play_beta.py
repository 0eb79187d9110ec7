"""A whole run of Thompson sampling with a Beta distribution per action, and its draws: numpy's own stream."""

from __future__ import annotations

import math

import numpy as np

from bough._arrays import Flags, Floats
from bough.inference.kernels.choose import choose
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.likelihoods import BERNOULLI, drawn_reward


@kernel
def drawn_beta(successes: float, failures: float, rng: np.random.Generator) -> float:
    """What `rng.beta` of numpy gives; moves rng on as it does. numba's own refuses draws that underflow."""
    if successes > 1.0 or failures > 1.0:
        first = rng.standard_gamma(successes)
        second = rng.standard_gamma(failures)
        return first / (first + second)
    while True:
        u, v = rng.random(), rng.random()
        x, y = math.pow(u, 1.0 / successes), math.pow(v, 1.0 / failures)
        if x + y > 1.0 or u + v == 0.0:
            continue
        if x + y > 0.0:
            return x / (x + y)
        log_x, log_y = math.log(u) / successes, math.log(v) / failures
        larger = max(log_x, log_y)
        log_x -= larger
        log_y -= larger
        return math.exp(log_x - math.log(math.exp(log_x) + math.exp(log_y)))


@kernel
def play(
    rng: np.random.Generator,
    truth: Floats,  # (K,) each action's probability of a click
    best: float,  # what regret is measured against
    noise: Floats,  # (rounds,) uniform
    successes: Floats,  # (K,) of the prior on entry
    failures: Floats,  # (K,)
    tried: Flags,  # (K,) False on entry
    score: Floats,  # (K,)
    gap: Floats,  # (rounds,)
) -> None:
    """Overwrites gap with the regret of each round, and everything from successes on; moves rng on."""
    for t in range(len(gap)):
        for k in range(len(score)):
            score[k] = drawn_beta(successes[k], failures[k], rng)
        action = choose(score, rng)
        gap[t] = best - truth[action]
        reward = drawn_reward(BERNOULLI, truth[action], noise[t])
        successes[action] += reward
        failures[action] += 1.0 - reward
        tried[action] = True
