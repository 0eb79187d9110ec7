"""The crossed factors that a fit is asked for: of the actions by their labels, of decisions by a column of the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bough._checks import is_among, is_nothing, shown
from bough.data.statistics import Statistics
from bough.model.effects import Effects
from bough.model.factors import Factor, factor_of
from bough.model.model import Model
from bough.tree.tree import Tree


class CrossedFactors(NamedTuple):
    """Factors by name: what they are made of, in the order in which they were given."""

    given: dict[str, Any]
    columns: dict[str, str]
    """For the factors of the decision, the log's column."""

    @property
    def without_variance(self) -> tuple[str, ...]:
        """Those that come as labels or a column, and not as a `Factor`."""
        return tuple(name for name, one in self.given.items() if not isinstance(one, Factor))

    @classmethod
    def checked(cls, factors: Any, tree: Any, model: type[Model]) -> CrossedFactors:
        """What a user gives as factors; a `ValueError` where that goes with no fit."""
        if is_nothing(factors):
            return cls({}, {})
        if not isinstance(factors, Mapping):
            raise ValueError(
                f'factors is {shown(factors)}; give a mapping, such as {{"brand": brand_of_product, "store": "store"}}'
            )
        if isinstance(tree, (list, tuple)):
            raise ValueError("factors were given, and several trees; learn them from one tree and its log")
        if not model.kind.takes_factors:
            raise ValueError(
                f"factors go with Gaussian rewards, and not with those of a {model.__name__}; leave them out"
            )
        columns = {}
        for name, one in factors.items():
            if not isinstance(name, str):
                raise ValueError(f"a factor is called {name!r}; give it another name, which is text")
            if isinstance(one, str):
                columns[name] = one
            elif isinstance(one, Factor) and one.at_decision:
                columns[name] = name
        return cls(dict(factors), columns)

    def on(self, tree: Tree, log: Statistics, labels: Sequence[str]) -> Effects | None:
        """The effects that are to be learned from a log; None where there are none."""
        more = next((name for name in log.factors or () if name not in self.columns), None)
        if more is not None:
            raise ValueError(
                f"the statistics are by the levels of {more!r}; name them in factors as well, {{{more!r}: {more!r}}}, "
                f"or sum the log without {more!r}"
            )
        if not self.given:
            return None
        if log.dim is not None:
            raise ValueError("factors go with models without contexts; leave out factors, or context")
        made: dict[str, Factor] = {}
        for name, one in self.given.items():
            if name in labels:
                raise ValueError(f"a factor is called {name!r}, as a class of nodes is; give it another name")
            if name not in self.columns:
                made[name] = factor_of(name, one)
                continue
            if not is_among(name, log.factors or {}):
                raise ValueError(
                    f"the statistics have no levels of {name!r}; sum the log with factors={{{name!r}: ...}}"
                )
            assert log.factors is not None
            seen = list(dict.fromkeys(log.factors[name].tolist()))
            made[name] = one if isinstance(one, Factor) else Factor(levels=seen, at_decision=True)
            for level in seen:
                made[name].code_of_observed(level, name)
        effects = Effects.checked(made, tree)
        empty = next((name for name in self.without_variance if not effects.factors[name].levels), None)
        if empty is not None:
            raise ValueError(
                f"the factor {empty!r} has no levels, so that nothing can be learned of it; leave it out, or give a "
                "bough.Factor with a variance to keep"
            )
        return effects
