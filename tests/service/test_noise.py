"""Noise per action in the service: what a refit learns, and what pages show."""

import json

import msgspec
import numpy as np

import bough
from bough.service.files import model_bytes, start_of
from bough.service.node_numbers import moment_of
from bough.service.prior_view import prior
from bough.service.records import ChangeRow
from bough.service.refits import refitted
from bough.service.schema import PriorNumber
from bough.service.traffic import Traffic

TREE = bough.Tree.balanced(8, 2)
LAW = bough.per_action(median=0.3, spread=0.8, floor=1e-3)
MODEL = bough.GaussianModel(TREE, 1.0, bough.by_depth([0.1, 1.0, 0.5]), noise=LAW)


def log(n: int = 2_000):
    rng = np.random.default_rng(0)
    actions = rng.choice(TREE.leaves, n)
    deviation = np.sqrt(MODEL.noise.draw(rng, TREE.n_nodes))
    return actions, MODEL.draw(rng)[actions] + deviation[actions] * rng.standard_normal(n)


def test_a_refit_keeps_noise_per_action_and_learns_its_law():
    found = refitted(model_bytes(MODEL), bough.Statistics.from_rows(*log()), "depth")
    model = start_of(found.file)
    assert abs(np.log(model.noise.median / 0.3)) < 0.5
    assert 0.4 < model.noise.spread < 1.3
    assert list(found.estimates) == ["depth 0", "depth 1", "depth 2", "noise", "noise spread", "noise floor"]
    assert [found.estimates[name][0] for name in ("noise", "noise spread", "noise floor")] == list(model.noise)


def test_the_prior_has_the_law_of_the_noise_with_intervals_after_a_refit():
    agent, traffic = bough.HierTS(MODEL, seed=0), Traffic()
    view = prior(agent, traffic)
    assert view.noise_variance is None
    numbers = [view.noise.median, view.noise.spread, view.noise.floor]
    assert numbers == [PriorNumber(one, None, None) for one in LAW]
    estimates = {"noise": [0.3, 0.25, 0.4], "noise spread": [0.8, 0.7, 0.9], "noise floor": [1e-3, 1e-3, 1e-3]}
    change = ChangeRow(1, 9.0, "model", "me", {"version": 2, "refit": True, "estimates": estimates}, seq=2)
    traffic.history.note_change(change)
    view = prior(agent, traffic)
    numbers = [view.noise.median, view.noise.spread, view.noise.floor]
    assert numbers == [PriorNumber(*estimates[name]) for name in estimates]
    assert prior(bough.HierTS(bough.GaussianModel(TREE), seed=0), traffic).noise is None


def test_pages_have_numbers_that_json_can_say():
    agent = bough.HierTS(MODEL, seed=0)
    agent.update(*log(100))
    view = prior(agent, Traffic())
    json.dumps(msgspec.to_builtins(view), allow_nan=False)
    with moment_of(agent, Traffic()) as moment:
        numbers = moment.numbers(np.arange(5, dtype=np.int32))
    assert (numbers.low < numbers.mean).all()
    assert (numbers.mean < numbers.high).all()
