"""Answers: all that can be asked of what an engine has learned, each answer from one moment of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from statistics import NormalDist
from typing import Any, NamedTuple, cast

import numpy as np

from bough import _checks, _seeds
from bough._arrays import Floats, Integers, Nodes
from bough.data.rows import checked_context
from bough.inference.contest import Contest
from bough.inference.crossed import CrossedEngine
from bough.inference.engine import Engine
from bough.inference.normals import scaled_normals, standard_normals
from bough.inference.scalar import ScalarEngine
from bough.inference.search import Search
from bough.inference.vector import scores_in
from bough.inference.winning import Winners
from bough.model.model import MeanReward, Model
from bough.tree.catalogue import Catalogue

_NOTHING = np.empty(0, dtype=np.int32)
_MOST_KEPT = 8  # contests


class Conditional(NamedTuple):
    """A node's posterior given its parent's value p: normal, with mean ``gain p + offset``."""

    gain: Any
    """What p is multiplied by."""
    offset: Any
    """What is added to it."""
    covariance: Any
    """The covariance around that mean, whatever p is."""


class BestActions(NamedTuple):
    """The best actions of one posterior draw: their node numbers, and their scores in that draw.

    With Gaussian rewards a score is the mean reward.
    """

    nodes: Nodes
    """Their numbers in the tree, the best first."""
    scores: Floats
    """Their scores in that draw."""


class Answers(ABC):
    """Questions to an engine; `Posterior` adds what changes it."""

    _engine: Engine
    _catalogue: Catalogue
    _retired: dict[int, None]
    _answers: dict[str, Any]  # what was computed since the last change
    _search_state: Search
    _lock: Any  # kernels run without the interpreter's own

    @property
    @abstractmethod
    def model(self) -> Model:
        """The model, on the present tree."""

    def _check_whole(self) -> None:
        """Refuse what needs all of the evidence, where some is lost."""
        if self._engine.is_partial:
            raise ValueError(
                "the posterior comes from a file of an earlier version, without all of its evidence; sum the log that "
                "it is of, and absorb that into a new posterior"
            )

    @property
    def n_observations(self) -> int:
        """How many rewards have been observed."""
        known: int | None = self._answers.get("n_observations")  # which every logged decision asks for
        if known is not None:
            return known
        with self._lock:
            found = self._answers["n_observations"] = self._engine.n_observations
            return found

    @property
    def count(self) -> Integers:
        """(V,) how many rewards have been observed at or below each node."""
        with self._lock:
            counts = np.zeros(self.model.tree.n_nodes, dtype=np.int64)
            counts[self._engine.slots.node] = self._engine.slot_counts()
        return counts

    @property
    def mean(self) -> Floats:
        """(V,) or (V, d): the posterior mean of every node."""
        return self._answer("mean")

    @property
    def covariance(self) -> Floats:
        """(V,) or (V, d, d): the posterior covariance of every node, each by itself."""
        return self._answer("covariance")

    def _answer(self, name: str) -> Floats:
        with self._lock:
            self.model  # noqa: B018, what it makes of changes renews the answers
            if name not in self._answers:
                array: Floats = getattr(self._engine, name)()
                array.setflags(write=False)
                self._answers[name] = array
            return self._answers[name]  # type: ignore[no-any-return]

    def action_moments(self, context: Any = None) -> tuple[Floats, Floats]:
        """(K,) and (K,): the posterior mean and variance of each action's score, in `tree.actions` order.

        The score is the action's parameter, or its product with the context: with Gaussian rewards the mean reward.
        Crossed effects of the action are in it, and those of decisions are not.

        >>> import bough
        >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.from_nested(["left", "right"]), mean=[0.0, 0.0]))
        >>> posterior.action_moments(context=[3.0, 4.0])
        (array([0., 0.]), array([50., 50.]))
        """
        with self._lock:
            model = self.model
            if context is not None or not model.is_scalar:
                context = checked_context(model, context)
            return self._engine.action_moments(context)

    def _moments_of(self, nodes: Nodes | None, context: Floats | None) -> tuple[Floats, Floats]:
        """The posterior mean and variance of the scores of some nodes, in a context that has been checked.

        It takes the paths to them alone, and single changes stay on top of the tree. None stands for all nodes, of the
        tree and added, also those that have gone.
        """
        with self._lock:
            if nodes is None and self._engine.model.is_scalar and not self._catalogue.is_changed:
                return self._engine.node_moments(context)
            if nodes is None:
                above = self._catalogue.parents
                return self._engine.some_moments(np.arange(len(above), dtype=np.int32), above, context)
            needed, position = self._catalogue.with_ancestors(nodes)
            mean, variance = self._engine.some_moments(needed, position, context)
            place = np.searchsorted(needed, nodes)
            return mean[place], variance[place]

    def mean_reward(self, context: Any = None, level: float = 0.95) -> MeanReward:
        """The mean reward of each action, in `tree.actions` order, with the credible interval of that level.

        It is on the scale of the rewards: a probability where they are clicks, a rate where they are counts.

        >>> import bough
        >>> posterior = bough.Posterior(bough.BernoulliModel(bough.Tree.from_nested(["left", "right"]), mean=-2.0))
        >>> posterior.update(["left", "right"], [12, 3], trials=[40, 40])
        >>> mean, low, high = posterior.mean_reward()
        >>> mean.round(2), low.round(2), high.round(2)
        (array([0.28, 0.09]), array([0.16, 0.03]), array([0.43, 0.2 ]))
        """
        quantile = NormalDist().inv_cdf(0.5 + 0.5 * _checks.level(level))
        score, variance = self.action_moments(context)
        width = quantile * np.sqrt(variance)
        of = self._engine.model.likelihood
        return MeanReward(
            of.expected_reward(score, variance), of.mean_reward(score - width), of.mean_reward(score + width)
        )

    def conditional(self, node: int) -> Conditional:
        """The posterior of one node, given by its number, when its parent's value is known.

        For the root the parent's value is the model's mean.

        >>> import bough
        >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])))
        >>> posterior.update("left", 3.0)
        >>> posterior.conditional(posterior.model.tree.index("left"))
        Conditional(gain=0.5, offset=1.5, covariance=0.5)
        """
        with self._lock:
            checked = self.model.tree._checked(node)
            return Conditional(*self._engine.conditional(checked))

    def sample(self, rng: Any = None, size: int | None = None, *, effects: bool = False) -> Floats:
        """A joint draw of all parameters: (V,) or (V, d), with a leading axis where `size` is given.

        `rng` is anything that `numpy.random.default_rng` takes. With ``effects=True`` the effects of crossed factors
        come after the nodes' parameters, factor by factor, in the order of their levels.

        >>> import bough
        >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.balanced(branching=2, height=3)))
        >>> posterior.sample(0, size=10).shape
        (10, 15)
        """
        generator = _seeds.generator(rng)
        effects = _checks.flag("effects", effects)
        with self._lock:
            shape = self._shape  # which may make another tree, and engine, of changes
            n = shape[0] if effects else shape[0] - self._engine.n_effects
            if size is None:
                return self._draw(generator)[:n]
            draws = standard_normals(generator, (_checks.whole_number("size", size, least=0), *shape))
            for draw in draws:
                self._engine.transform(draw)
        return draws[:, :n]

    def _draw(self, generator: np.random.Generator, scale: float = 1.0) -> Floats:
        """A joint draw of all parameters and crossed effects, its deviations from the mean times the scale."""
        with self._lock:
            shape = self._shape  # which may make another tree, and engine, of changes
            return self._engine.transform(scaled_normals(generator, shape, scale), scale)

    @property
    def _shape(self) -> tuple[int, ...]:
        model = self.model
        n_nodes = model.tree.n_nodes
        return (n_nodes + self._engine.n_effects,) if model.is_scalar else (n_nodes, model.dim)

    def from_normals(self, normals: Any) -> Floats:
        """The draw that these standard normals, one for each parameter in node order, give.

        `sample` is this on fresh normals. Crossed effects come after the nodes. It is affine: zeros give the mean, and
        unit vectors the columns of a root of the joint covariance. Give antithetic, quasi-random or common normals
        where that helps.

        >>> import bough, numpy
        >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])))
        >>> posterior.from_normals(numpy.array([1.0, 0.0, 2.0]))
        array([1., 1., 3.])
        """
        given = _checks.floats(normals, "normals")
        with self._lock:
            if given.shape != self._shape:
                raise ValueError(f"the normals have shape {given.shape}; give {self._shape}, one for each parameter")
            return self._engine.transform(given.copy())

    def sample_actions(self, leaves: Nodes, rng: Any = None) -> Floats:
        """A joint draw of the parameters of some actions, given by node number: their paths alone are drawn.

        With crossed factors it is one of their scores: parameters and effects together.

        >>> import bough, numpy
        >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.balanced(branching=10, height=6)))
        >>> posterior.sample_actions(posterior.model.tree.leaves[:3], numpy.random.default_rng(0)).shape
        (3,)
        """
        with self._lock:
            return self._sample_leaves(self.model.tree.checked_leaves(leaves), _seeds.generator(rng))

    def _sample_leaves(
        self, leaves: Nodes, generator: np.random.Generator, scale: float = 1.0, levels: Floats | None = None
    ) -> Floats:
        """`sample_actions` of what has been checked already, also of actions that were added since the tree was."""
        engine = self._engine
        with self._lock:
            nodes, position = self._catalogue.with_ancestors(leaves)
            n = len(nodes)
            shape = (n + engine.n_effects,) if engine.model.is_scalar else (n, engine.model.dim)
            draw = engine.transform_some(nodes, position, scaled_normals(generator, shape, scale), scale)
        own = draw[np.searchsorted(nodes, leaves)]
        return own if not engine.n_effects else cast(CrossedEngine, engine).scores(leaves, own, draw[n:], levels)

    def _sample_scores(
        self, leaves: Nodes, generator: np.random.Generator, scale: float, context: Floats | None
    ) -> Floats:
        """(n,) the scores of some actions in a joint draw; the context has the levels of a decision among factors."""
        drawn = self._sample_leaves(leaves, generator, scale, context if self._engine.n_effects else None)
        return drawn if drawn.ndim == 1 else scores_in(cast(Floats, context), drawn)

    def _draw_scores(self, generator: np.random.Generator, scale: float, context: Floats | None) -> Floats:
        """(K,) the scores of all actions of the tree in a joint draw; of the means where the scale is zero."""
        with self._lock:
            tree, engine = self.model.tree, self._engine
            if not engine.n_effects:
                parameters = tree.at_leaves(self._draw(generator, scale) if scale else self.mean)
                return parameters if parameters.ndim == 1 else scores_in(cast(Floats, context), parameters)
            crossed = cast(CrossedEngine, engine)
            if not scale:
                return crossed.scores(tree.leaves, tree.at_leaves(self.mean), crossed.effect_means(), context)
            draw = self._draw(generator, scale)
            return crossed.scores(tree.leaves, tree.at_leaves(draw[: tree.n_nodes]), draw[tree.n_nodes :], context)

    def _score_moments(self, context: Floats | None) -> tuple[Floats, Floats]:
        """(K,) and (K,): `action_moments` of what has been checked; the mean has the effects of a decision's levels."""
        with self._lock:
            self.model  # noqa: B018, what it makes of changes renews the engine
            if context is None or not self._engine.n_effects:
                return self._engine.action_moments(context)
            return self._draw_scores(np.random.default_rng(0), 0.0, context), self._engine.action_moments(None)[1]

    def best_actions(
        self, rng: Any = None, context: Any = None, k: int = 1, exclude: Nodes | None = None
    ) -> BestActions | None:
        """The k best actions of one joint draw, best first, without drawing what cannot win.

        Exact in law, in time that follows the touched nodes. `exclude` has node numbers of actions that are not to
        be chosen; retired ones never are. None where this cannot be done: actions that may tie, or a tree of more than
        64 levels.

        >>> import bough
        >>> posterior = bough.Posterior(bough.problems.constant(branching=10, height=6))
        >>> posterior.best_actions(0, k=3).nodes
        array([ 708926, 1101556,  670702], dtype=int32)
        """
        with self._lock:
            model = self.model
            if context is not None or not model.is_scalar:
                context = checked_context(model, context)
            excluded = _NOTHING if exclude is None else np.unique(model.tree.checked_leaves(exclude))
            most = model.tree.n_actions - len(self._retired.keys() | set(excluded.tolist()))
            if not _checks.is_whole(k) or not 1 <= k <= most:
                what = "the number of actions to choose from"
                raise ValueError(f"k is {k!r}; give a whole number from 1 to {most}, {what}")
            return self._search(_seeds.generator(rng), context, int(k), excluded)

    def _highest(self, generator: np.random.Generator) -> float | None:
        """The score of the best action of one draw, for somebody who looks on: later decisions are as if nobody had.

        None where that cannot be searched for.
        """
        with self._lock:
            return self._search_state.highest(self._engine, generator)

    def _search(
        self, generator: np.random.Generator, context: Floats | None, k: int, excluded: Nodes, scale: float = 1.0
    ) -> BestActions | None:
        """`best_actions` of what has been checked already, in a draw whose deviations are scaled."""
        with self._lock:
            found = self._search_state.best(self._engine, generator, context, k, excluded, scale)
        return None if found is None else BestActions(*found)

    def _winners(
        self, candidates: Nodes | None, excluded: Nodes, restored: Nodes = _NOTHING, scale: float = 1.0
    ) -> tuple[Contest, Winners] | None:
        """How likely each action is to be the best, exactly; None in contexts, of mixtures, or if it takes long.

        Of the candidates, or of all but the excluded and the retired, some of which may be restored for this, in a draw
        whose deviations from the mean are times the scale. What was found is kept until something changes.
        """
        with self._lock:
            if not self._engine.model.is_scalar or self._engine.n_effects or not self._engine.is_normal:
                return None
            engine = cast(ScalarEngine, self._engine)
            kept = self._answers.setdefault("winners", {})
            key = self._question(candidates, excluded, restored, scale)
            if key not in kept:
                if len(kept) == _MOST_KEPT:
                    kept.clear()
                alike = self._search_state.alike()
                if candidates is None:
                    contest = Contest.of_all(engine.slots, engine.model.tree, alike, excluded, restored)
                else:
                    contest = Contest.among(self._catalogue, candidates)
                found = contest.winners(engine, alike, scale=scale)
                kept[key] = None if found is None else (contest, found)
            return kept[key]  # type: ignore[no-any-return]

    def _knows_winners(
        self, candidates: Nodes | None, excluded: Nodes, restored: Nodes = _NOTHING, scale: float = 1.0
    ) -> bool:
        """Whether `_winners` has been asked this since something changed."""
        with self._lock:
            return self._question(candidates, excluded, restored, scale) in self._answers.get("winners", {})

    def _question(self, candidates: Nodes | None, excluded: Nodes, restored: Nodes, scale: float) -> tuple[Any, ...]:
        """What the winners depend on, beside what is learned."""
        chosen = None if candidates is None else candidates.tobytes()
        return chosen, excluded.tobytes(), restored.tobytes(), tuple(self._retired), scale

    @property
    def nodes_visited(self) -> int:
        """How many nodes the last search for the best actions went to."""
        return self._search_state.visited

    def log_evidence(self) -> float:
        """The log density of the rewards observed so far, under the model.

        >>> import bough
        >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])))
        >>> posterior.update("left", 1.0)  # one draw from N(0, 3)
        >>> round(posterior.log_evidence(), 4)
        -1.6349
        """
        with self._lock:
            return self._engine.log_evidence()
