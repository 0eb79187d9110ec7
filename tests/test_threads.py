"""Threads on one agent: no file is torn, no random number is drawn twice, no reward is lost."""

import copy
import pickle
import threading

import numpy as np
import pytest

import bough
from threads import check_consistent, in_threads

TREE = bough.Tree.balanced(10, 4)
KINDS = {
    "gaussian": bough.GaussianModel(TREE),
    "vector": bough.GaussianModel(TREE, np.zeros(3)),
    "clicks": bough.BernoulliModel(TREE, -1.0, 0.3),
    "counts": bough.PoissonModel(TREE, 0.0, 0.3),
    "clicks in contexts": bough.BernoulliModel(TREE, np.zeros(3), 0.3),
}


def rows(model, rng, n):
    contexts = None if model.is_scalar else rng.normal(size=(n, model.dim))
    rewards = rng.normal(size=n) if isinstance(model, bough.GaussianModel) else (rng.random(n) < 0.3).astype(float)
    return rng.choice(TREE.leaves, n), rewards, contexts


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_saved_or_copied_while_others_update_is_one_moment(tmp_path, kind):
    model = KINDS[kind]
    agent = bough.HierTS(model, seed=0)
    posterior, done, taken = agent.posterior, threading.Event(), []

    def write(seed):
        rng = np.random.default_rng(seed)
        for _ in range(150):
            actions, rewards, contexts = rows(model, rng, 2)
            for i in range(2):
                agent.update(int(actions[i]), rewards[i], None if contexts is None else contexts[i])
        done.set()

    def save():
        while not done.is_set() or not taken:  # the writers may be through before the first file is
            posterior.save(tmp_path / "posterior.bough")
            taken.append(bough.Posterior.load(tmp_path / "posterior.bough"))
            taken.append(pickle.loads(pickle.dumps(posterior)))
            taken.append(copy.deepcopy(posterior))

    def decide():
        while not done.is_set():
            context = None if model.is_scalar else np.ones(3)
            assert agent.decide(context) in TREE.actions
            assert agent.decide(context, among=[1111, 2222]) in (1111, 2222)

    in_threads(lambda: write(1), lambda: write(2), save, decide)
    assert posterior.n_observations == 600  # no reward is lost
    assert len(taken) >= 3
    for one in taken[-12:]:
        check_consistent(one)


@pytest.mark.parametrize("way", ["sample", "sample_actions"])
def test_two_threads_never_draw_the_same_normals(way):
    tree = bough.Tree.balanced(250_000, 1)  # below a root that is known, parameters are the normals themselves
    posterior = bough.Posterior(bough.GaussianModel(tree, covariance=bough.by_depth([0.0, 1.0])))
    rng, draws, together = np.random.default_rng(0), [], threading.Barrier(2)

    def draw():
        for _ in range(4):
            together.wait()
            draws.append(
                posterior.sample(rng, size=1)[0, 1:] if way == "sample" else posterior.sample_actions(tree.leaves, rng)
            )

    in_threads(draw, draw)
    values = np.concatenate(draws)
    assert len(np.unique(values)) == len(
        values
    )  # among 2 million doubles two are equal with probability 3e-3; the seed is fixed


def test_beta_sampling_loses_no_count_under_threads():
    agent = bough.BetaTS(bough.BernoulliModel(TREE, -1.0), seed=0)
    before = agent.successes.sum() + agent.failures.sum()
    one = int(TREE.leaves[0])

    def write():
        for _ in range(3_000):
            agent._learn(0, 1.0, None)
            agent.update([one, one], [1, 0])

    in_threads(write, write, write)
    assert agent.successes.sum() + agent.failures.sum() - before == pytest.approx(27_000)
    assert repr(agent) == "BetaTS(n_actions=10000, n_observations=27000)"
