"""The demo's shop: plausible, the same every time, and with visitors who click as often as products deserve."""

import asyncio
import collections

import numpy as np
import pytest

import bough
from bough.service.demo import PRODUCTS, Visitors, categories, demo_model, demo_tree, product_name


def test_the_shop_has_about_two_thousand_products_in_departments_and_categories():
    tree = demo_tree()
    assert tree.n_actions == len(categories()) * PRODUCTS == 2_016
    assert tree.levels == ("root", "department", "category", "product")
    assert tree.height == 3
    model = demo_model()
    assert isinstance(model, bough.BernoulliModel)
    assert list(model.tree.actions) == list(tree.actions)


def test_a_category_never_runs_out_of_names():
    category = categories()[0]
    names = [product_name(category, number) for number in range(3_000)]
    assert len(set(names)) == len(names)
    assert all(name[0].isupper() for name in names)


def test_click_rates_are_those_of_the_model_in_law():
    """Deviations of departments, categories and products, against the prior: 4.5 standard errors of each variance."""
    visitors, tree, model = Visitors(seed=3), demo_tree(), demo_model()
    score = {name: np.log(visitors.click_rate(name) / (1 - visitors.click_rate(name))) for name in tree.actions}
    products = collections.defaultdict(list)
    for name, value in score.items():
        products[name.rpartition("/")[0]].append(value)
    within = np.array([np.var(values, ddof=1) for values in products.values()])
    variance = float(model.classes.table[3])
    error = variance * np.sqrt(2.0 / (len(within) * (PRODUCTS - 1)))
    assert abs(within.mean() - variance) < 4.5 * error
    rates = np.array([visitors.click_rate(name) for name in tree.actions])
    assert 0.01 < rates.mean() < 0.15


def test_rates_follow_from_names_and_the_seed_alone():
    name = "Kitchen/Kettles/a kettle that was not there"
    assert Visitors(1).click_rate(name) == Visitors(1).click_rate(name) != Visitors(2).click_rate(name)
    assert 0.0 < Visitors().click_rate("elsewhere") < 1.0


class Shop:
    """A shop that decides at once, and stops after so many visits."""

    def __init__(self, visits):
        self.agent = bough.HierTS(demo_model(), seed=0)
        self.left, self.shown, self.clicks, self.added = visits, [], 0.0, []

    async def decide(self):
        if not self.left:
            raise asyncio.CancelledError
        self.left -= 1
        self.shown.append(self.agent.decide())
        return f"d{len(self.shown)}", self.shown[-1]

    async def reward(self, id, value):
        assert id == f"d{len(self.shown)}"
        self.clicks += value
        self.agent.update(self.shown[-1], value)

    async def add(self, name, under):
        if name in self.agent.posterior.model.tree.actions:
            return False
        self.agent.add(name, under)
        self.added.append(name)
        return True


def played(visits, monkeypatch, seed=0):
    waited = []

    async def sleep(seconds):
        waited.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    shop = Shop(visits)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(Visitors(seed).visit(shop.decide, shop.reward, np.random.default_rng(seed), 20.0, shop.add))
    return shop, waited


def test_visitors_come_at_the_rate_that_is_asked_for(monkeypatch):
    _, waited = played(2_000, monkeypatch)
    assert abs(np.mean(waited) * 20.0 - 1.0) < 4.5 / np.sqrt(2_000)  # false alarms: 1 in 100,000


def test_the_same_seed_gives_the_same_visits(monkeypatch):
    first, second = played(500, monkeypatch, seed=4)[0], played(500, monkeypatch, seed=4)[0]
    assert (first.shown, first.clicks) == (second.shown, second.clicks)


def test_new_products_come_now_and_then_and_the_shop_learns(monkeypatch):
    shop, _ = played(4_000, monkeypatch)
    assert 1 <= len(shop.added) <= 20
    assert all(name in shop.agent.posterior.model.tree.actions for name in shop.added)
    rates = [Visitors().click_rate(name) for name in shop.shown]
    assert np.mean(rates[-1_000:]) > 1.5 * np.mean(rates[:500])


def test_after_a_restart_new_products_have_new_names():
    shop = Shop(0)
    for _ in range(2):  # visitors who know nothing of each other
        asyncio.run(Visitors()._new_product(np.random.default_rng(1), shop.add))
    assert len(set(shop.added)) == 2
