"""A made-up shop with simulated visitors, to look at: `bough serve --demo`.

Every product has a click rate of its own, which follows from its name and a seed alone. So visitors click as before
after a restart, also on products that have come since.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
from scipy.special import expit, ndtri

from bough.model.bernoulli import BernoulliModel
from bough.model.covariance import by_depth
from bough.model.model import Model
from bough.service.demo_words import COLOURS, DEPARTMENTS, MATERIALS, STYLES
from bough.service.records import Name
from bough.tree.tree import Tree

PRODUCTS = 24  # of a category at the start
_MEAN = -3.2  # a click rate of 4%
_VARIANCES = (0.1, 0.4, 0.3, 0.25)  # of the root, a department, a category and a product
_NEW_AFTER = 600  # visits, on average, until there is another product
_LEVELS = ("department", "category", "product")

Decide = Callable[[], Awaitable[tuple[str, Name]]]
"""Asks for a decision: its id, and the action."""
Reward = Callable[[str, float], Awaitable[Any]]
"""Says what came of a decision."""
Add = Callable[[str, str], Awaitable[bool]]
"""Adds a product below a category; False where there is one of that name already."""


def demo_tree() -> Tree:
    """The shop as it is at the start: about 2,000 products in departments and categories.

    >>> tree = demo_tree()
    >>> tree, tree.path("Kitchen/Kettles/Plum felt kettle")
    (Tree(n_nodes=2113, n_actions=2016, height=3),
    ['', 'Kitchen', 'Kitchen/Kettles', 'Kitchen/Kettles/Plum felt kettle'])
    """
    paths = [f"{category}/{product_name(category, number)}" for category in categories() for number in range(PRODUCTS)]
    return Tree.from_paths(paths, levels=_LEVELS)


def demo_model() -> Model:
    """What the shop believes of its products before the first visitor."""
    return BernoulliModel(demo_tree(), mean=_MEAN, covariance=by_depth(list(_VARIANCES)))


def categories() -> list[str]:
    """The categories, each with its department before it."""
    return [f"{department}/{plural}" for department, nouns in DEPARTMENTS.items() for plural, _ in nouns]


def product_name(category: str, number: int) -> str:
    """What the product of a number in a category is called; each number has a name of its own.

    >>> product_name("Kitchen/Kettles", 0), product_name("Kitchen/Kettles", 1)
    ('Plum felt kettle', 'Ivory copper kettle')
    """
    department, _, plural = category.partition("/")
    noun = dict(DEPARTMENTS[department])[plural]
    start = int.from_bytes(hashlib.sha256(category.encode()).digest()[:4])
    # Steps without a common divisor go through all pairs before one comes again.
    pairs = len(COLOURS) * len(MATERIALS)
    place = (start + number * _coprime(pairs)) % pairs
    words = [COLOURS[place % len(COLOURS)], MATERIALS[place // len(COLOURS)], noun]
    round_ = number // pairs
    if round_:
        words.insert(0, STYLES[(round_ - 1) % len(STYLES)])
        words[1] = words[1].lower()
    more = "" if round_ <= len(STYLES) else f" no. {round_}"
    return " ".join(words) + more


def _coprime(size: int) -> int:
    step = int(size * 0.618)
    while math.gcd(step, size) > 1:
        step += 1
    return step


class Visitors:
    """Visitors of the shop, who click as often as each product deserves.

    >>> visitors = Visitors()
    >>> visitors.click_rate("Kitchen/Kettles/Plum felt kettle") == Visitors().click_rate(
    ...     "Kitchen/Kettles/Plum felt kettle"
    ... )
    True
    """

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._numbers = dict.fromkeys(categories(), PRODUCTS)

    def click_rate(self, action: Name) -> float:
        """How often visitors click on a product, also on one that was not there at the start."""
        parts = str(action).split("/")
        score = _MEAN
        for depth, variance in enumerate(_VARIANCES[: len(parts) + 1]):
            score += math.sqrt(variance) * self._deviation("/".join(parts[:depth]))
        return float(expit(score))

    def _deviation(self, name: str) -> float:
        """What a node has in addition to its parent: a normal number that its name decides."""
        digest = hashlib.sha256(f"{self._seed}\0{name}".encode("utf-8", "surrogatepass")).digest()
        return float(ndtri((int.from_bytes(digest[:6]) + 0.5) / 2**48))

    async def visit(
        self, decide: Decide, reward: Reward, rng: np.random.Generator, rate: float = 20.0, add: Add | None = None
    ) -> None:
        """Come and go for ever, about `rate` visitors a second: each is shown a product, and clicks or does not.

        With `add`, another product comes now and then.
        """
        while True:
            await asyncio.sleep(rng.exponential(1.0 / rate))
            id, action = await decide()
            await reward(id, float(rng.random() < self.click_rate(action)))
            if add is not None and rng.random() < 1.0 / _NEW_AFTER:
                await self._new_product(rng, add)

    async def _new_product(self, rng: np.random.Generator, add: Add) -> None:
        category, is_new = str(rng.choice(list(self._numbers))), False
        while not is_new:  # after a restart, those of before are there
            number = self._numbers[category]
            self._numbers[category] += 1
            is_new = await add(f"{category}/{product_name(category, number)}", category)
