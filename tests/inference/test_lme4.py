"""A reference that nobody here computed: lme4's conditional modes on its Pastes data; see data/pastes.R."""

import csv

import numpy as np

import bough
from places import FIXTURES


def read(name: str) -> list[dict[str, str]]:
    with open(FIXTURES / name, newline="") as file:
        return list(csv.DictReader(file))


def test_the_posterior_mean_is_lme4s_conditional_modes():
    samples = read("pastes.csv")
    reference = read("pastes_lme4.csv")
    values = {kind: {r["name"]: float(r["value"]) for r in reference if r["kind"] == kind} for kind in ("mean", "mode")}
    variance = {r["name"]: float(r["value"]) for r in reference if r["kind"] == "variance"}
    casks = sorted({f"{s['batch']}/{s['cask']}:{s['batch']}" for s in samples})
    tree = bough.Tree.from_paths(casks)
    model = bough.GaussianModel(
        tree,
        mean=values["mean"][""],
        covariance=bough.by_depth([0.0, variance["batch"], variance["cask:batch"]]),  # lme4's intercept is a constant
        noise_variance=variance["Residual"],
    )
    posterior = bough.Posterior(model)
    posterior.update(
        [f"{s['batch']}/{s['cask']}:{s['batch']}" for s in samples], [float(s["strength"]) for s in samples]
    )
    effect = posterior.mean - posterior.mean[np.maximum(tree.parent, 0)]
    ours = {tree.path(tree.name(node))[-1].split("/")[-1]: effect[node] for node in range(1, tree.n_nodes)}
    assert ours.keys() == values["mode"].keys()
    assert len(ours) == 40
    np.testing.assert_allclose([ours[name] for name in ours], [values["mode"][name] for name in ours], atol=1e-9)
