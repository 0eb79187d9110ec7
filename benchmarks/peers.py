"""Times peers on one decision and one update: K = 10^4, fan-out 10, d = 10, one thread. Run by bench_decide.py.

Prints one JSON object a peer. bayesianbandits has the same model (one block of d effects a node, with the design of an
action its path times the context); the others have independent actions, which is less work.
"""

import json
import os
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import warnings

import numpy as np
from scipy.sparse import csc_array, csr_array, kron, vstack

warnings.filterwarnings("ignore")
ACTIONS, FANOUT, HEIGHT, DIM = 10_000, 10, 4, 10
rng = np.random.default_rng(0)
contexts = rng.normal(size=(500, DIM))


def bayesianbandits():
    from bayesianbandits import Arm, LipschitzContextualAgent, NormalRegressor, ThompsonSampling

    levels = [np.arange(ACTIONS) // FANOUT**level for level in range(HEIGHT + 1)]
    offsets = np.cumsum([0] + [int(level.max()) + 1 for level in levels])
    columns = np.concatenate([level + offset for level, offset in zip(levels, offsets, strict=False)])
    rows = np.tile(np.arange(ACTIONS), len(levels))
    paths = csr_array((np.ones(len(rows)), (rows, columns)), shape=(ACTIONS, int(offsets[-1])))

    class PathTimesContext:
        def transform(self, X, *, action_tokens):
            chosen = paths[np.asarray(action_tokens, dtype=int)]
            return csc_array(kron(chosen, csr_array(np.asarray(X)), format="csc"))

    features = PathTimesContext()
    agent = LipschitzContextualAgent(
        arms=[Arm(i) for i in range(ACTIONS)],
        policy=ThompsonSampling(),
        arm_featurizer=features,
        learner=NormalRegressor(alpha=1.0, beta=1.0, sparse=True),
        random_seed=0,
    )
    first = [features.transform(contexts[i % 500 : i % 500 + 1], action_tokens=[i]) for i in range(1_000)]
    agent.learner.partial_fit(csc_array(vstack(first)), np.zeros(1_000))

    def one(i):
        action = agent.pull(contexts[i : i + 1])[0]
        agent.select_for_update(action).update(contexts[i : i + 1], np.array([0.3]))

    return one, 3


def mabwiser():
    from mabwiser.mab import MAB, LearningPolicy

    arms = list(range(ACTIONS))
    bandit = MAB(arms, LearningPolicy.LinTS(alpha=1.0), seed=0)
    bandit.fit(arms, rng.random(ACTIONS).tolist(), rng.normal(size=(ACTIONS, DIM)))

    def one(i):
        action = bandit.predict(contexts[i : i + 1])
        bandit.partial_fit([action], [0.3], contexts[i : i + 1])

    return one, 5


def vowpal(options):
    def make():
        import vowpalwabbit

        workspace = vowpalwabbit.Workspace(f"{options} -q UA -b 24 --quiet")
        shared = [" ".join(f"f{j}:{v:.4f}" for j, v in enumerate(row)) for row in contexts]
        actions = [f"|A a{k}" for k in range(ACTIONS)]

        def one(i):
            example = [f"shared |U {shared[i]}", *actions]
            probabilities = np.asarray(workspace.predict(example))
            action = int(rng.choice(ACTIONS, p=probabilities / probabilities.sum()))
            example[action + 1] = f"0:-0.3:{max(probabilities[action], 1e-6)} {actions[action]}"
            workspace.learn(example)

        return one, 5

    return make


PEERS = {
    "bayesianbandits": bayesianbandits,
    "mabwiser LinTS": mabwiser,
    "VW --squarecb": vowpal("--cb_explore_adf --squarecb"),
    "VW --bag 5": vowpal("--cb_explore_adf --bag 5"),
}

for name, make in PEERS.items():
    try:
        one, times = make()
        one(0)
        spent = []
        for i in range(1, times + 1):
            start = time.perf_counter()
            one(i)
            spent.append(time.perf_counter() - start)
        print(json.dumps({"name": name, "seconds": float(np.median(spent))}), flush=True)
    except Exception as error:  # a peer that fails is reported as that
        print(json.dumps({"name": name, "error": f"{type(error).__name__}: {error}"}), flush=True)
