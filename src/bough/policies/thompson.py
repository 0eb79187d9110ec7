"""Thompson sampling on the posterior: HierTS on the whole tree, FlatTS and TS on less of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from bough import _checks
from bough._arrays import Floats, Nodes
from bough.inference.answers import BestActions
from bough.inference.many import block_size, of_draws, of_searches
from bough.model.model import Model
from bough.policies.base import NOTHING, largest
from bough.policies.many import in_blocks, scorer_of
from bough.policies.posterior_policy import PosteriorPolicy
from bough.policies.propensity import Asked, Exact, Mean, chances_of_posterior, estimated
from bough.posterior import Posterior

SMALL = 2_000  # nodes: drawing so few takes less time than searching
_MOST_EXPLORE = 1e6  # beyond which the posterior mean no longer matters, and squares may overflow


class HierTS(PosteriorPolicy):
    """Thompson sampling on the whole hierarchy: the best action of one joint posterior sample.

    In a tree of more than 2,000 nodes the sample is searched for its best actions without drawing what cannot win,
    which has the same law and costs about what has been observed. `search=False` draws everything, always, and
    `search=True` searches in small trees too.

    `explore` multiplies how far the sample deviates from the posterior mean. 1 is Thompson sampling; with less the
    policy explores less, and with 0 it takes the action with the highest posterior mean, as `Greedy` does where rewards
    are Gaussian. The page "When bough is the wrong tool, and how much to explore" has what is best when.

    With ``refit=True`` the sizes of the prior's variances, the noise and the mean are learned from the policy's own
    observations, at 20, 40, 80, ... of them; until then the given model holds. With a `half_life` rewards fade as the
    clock, `now`, goes: the page "When the world moves" says when to use it.

    >>> import bough
    >>> model = bough.GaussianModel(bough.Tree.from_paths(["tea/green", "tea/black", "coffee"]))
    >>> agent = bough.HierTS(model, seed=1)
    >>> for _ in range(50):
    ...     action = agent.decide()
    ...     agent.update(action, 1.0 if action == "tea/black" else 0.0)
    >>> agent.posterior.count[model.tree.index("tea/black")]
    np.int64(43)
    """

    def __init__(
        self,
        model: Model | Posterior,
        seed: Any = None,
        *,
        search: bool | None = None,
        refit: bool = False,
        half_life: Any = None,
        explore: float = 1.0,
    ) -> None:
        self._explore = _checked_explore(explore)
        super().__init__(model, seed, refit=refit, half_life=half_life)
        self._search = _checked_search(search)

    @property
    def explore(self) -> float:
        """The factor on how far a draw deviates from the posterior mean: 1 is Thompson sampling, 0 explores nothing.

        >>> import bough
        >>> model = bough.GaussianModel(bough.Tree.from_nested(["left", "right"]))
        >>> bough.HierTS(model, seed=0, explore=0.5).explore
        0.5
        """
        return self._explore

    @property
    def _options(self) -> dict[str, Any]:
        given = {} if self._explore == 1.0 else {"explore": self._explore}  # files without it are of Thompson sampling
        return {**super()._options, "search": self._search, **given}

    def _choose(self, context: Floats | None, k: int, candidates: Nodes | None, excluded: Nodes) -> BestActions:
        posterior = self.posterior
        if not self._explore:
            return super()._choose(context, k, candidates, excluded)
        if candidates is not None:
            scores = posterior._sample_scores(candidates, self._rng, self._explore, context)
            chosen = largest(scores, k, self._rng)
            return BestActions(candidates[chosen], scores[chosen])
        if self._searches:
            best = posterior._search(self._rng, context, k, excluded, self._explore)
            if best is not None:
                return best
            excluded = posterior._fold(excluded)
        return super()._choose(context, k, None, excluded)

    def _choose_many(self, n: int, contexts: Floats | None, k: int, candidates: Nodes | None, jobs: int) -> BestActions:
        # Compiled blocks draw trees of normal laws alone.
        if not self._explore or self.posterior._engine.n_effects or not self.posterior._engine.is_normal:
            return super()._choose_many(n, contexts, k, candidates, jobs)
        posterior, block = self.posterior, None
        if candidates is None and self._searches:
            block = of_searches(posterior._search_state, posterior._engine, contexts, k, NOTHING, self._explore)
            drawn = posterior._engine.slots.count
            if block is None:
                posterior._fold()
        if block is None:
            if candidates is None:
                tree = posterior._engine.model.tree
                nodes, above = np.arange(tree.n_nodes, dtype=np.int32), tree.parent
                candidates = self._choices(NOTHING)
            else:
                nodes, above = posterior._catalogue.with_ancestors(candidates)
            block = of_draws(posterior._engine, nodes, above, candidates, k, self._explore)
            drawn = len(nodes)
        size = block_size(posterior._engine, drawn)
        found, scores = in_blocks(block, self._rng, n, contexts, size, jobs, k)
        if contexts is None:
            posterior._search_state.switch.after_many(scores[:, -1])
        unsettled = found[:, 0] < 0  # where actions may tie in a context
        if unsettled.any():
            found[~unsettled] = posterior._fold(found[~unsettled].ravel()).reshape(-1, k)
        for i in np.flatnonzero(unsettled).tolist():
            found[i], scores[i] = self._choose(None if contexts is None else contexts[i], k, None, NOTHING)
        return BestActions(found, scores)

    def _scorer(self, device: str) -> Any:
        return scorer_of(self.posterior, device, self._explore)

    def _probabilities(self, asked: Asked, samples: int, rng: np.random.Generator) -> Mean:
        if not self._explore:
            return self._certain(asked)
        exact = Exact(self.posterior, asked, self._searches, self._explore)
        found = exact.at_once()
        if found is not None:
            return found
        chances = chances_of_posterior(
            self.posterior, asked, self._searches, lambda: self._choices(asked.excluded), rng, self._explore
        )
        return estimated(chances, len(asked.nodes), samples, exact.instead_of)

    @property
    def _searches(self) -> bool:
        if (
            not self._explore or self.posterior._engine.n_effects
        ):  # all untouched siblings tie, or brands cross the tree
            return False
        if self._search is not None:
            return self._search
        return self.posterior._catalogue.n_tree_nodes > SMALL or not self.posterior._engine.is_normal

    def _prepare(self) -> None:
        if self.posterior._catalogue.is_changed and not self._searches:
            self.posterior._fold()

    def _scores(self, context: Floats | None) -> Floats:
        return self.posterior._draw_scores(self._rng, self._explore, context)


class FlatTS(HierTS):
    """Thompson sampling that knows only the root and the actions: HierTS on `model.flat()`.

    It keeps the tree for its names, and makes all messages again where an action is added or moved. Where the model
    drifts, all of an action's deviation from the root does here.

    >>> import bough
    >>> agent = bough.FlatTS(bough.GaussianModel(bough.Tree.balanced(branching=3, height=3)))
    >>> agent.posterior.model.tree
    Tree(n_nodes=28, n_actions=27, height=1)
    """

    _reasons_with_a_star = True

    def _assumed(self, model: Model) -> Model:
        model._refuse_factors(
            "FlatTS takes only the root to tie actions together, and more does in a model",
            "give one without, or use HierTS",
        )
        return model.flat()


class TS(HierTS):
    """Thompson sampling with independent actions: HierTS on `model.independent()`.

    It keeps the tree for its names, and makes all messages again where an action is added or moved. Where the model
    drifts, all of an action's parameter does here.

    >>> import bough
    >>> agent = bough.TS(bough.GaussianModel(bough.Tree.balanced(branching=3, height=3)))
    >>> agent.update(20, 1.0)
    >>> agent.posterior.mean[agent.posterior.model.tree.index(21)]  # learns nothing from its sibling
    np.float64(0.0)
    """

    _reasons_with_a_star = True

    def _assumed(self, model: Model) -> Model:
        model._refuse_factors(
            "TS takes actions to be independent, and they are not in a model", "give one without, or use HierTS"
        )
        return model.independent()


def _checked_explore(explore: Any) -> float:
    factor = _checks.number(explore, "explore")
    if not 0.0 <= factor <= _MOST_EXPLORE:
        raise ValueError(
            f"explore is {explore!r}; give a factor from 0 to {_MOST_EXPLORE:g}, such as 1 for Thompson sampling"
        )
    return factor


def _checked_search(search: bool | None) -> bool | None:
    if search is not None and not isinstance(search, (bool, np.bool_)):
        raise ValueError(f"search is {search!r}; give True, False, or None for where it pays")
    return None if search is None else bool(search)
