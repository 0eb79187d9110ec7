"""Posterior: the posterior as a living object, exact where rewards are Gaussian."""

from __future__ import annotations

import os
import threading
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np

from bough import inputs, observations, seeds, storage
from bough.arrays import Floats, Integers, Nodes
from bough.inference.engine import Engine
from bough.inference.normals import standard_normals
from bough.inference.scalar import ScalarEngine
from bough.inference.scalar_sites import ScalarSites
from bough.inference.untouched import DEEPEST, Untouched
from bough.inference.vector import VectorEngine
from bough.inference.vector_sites import VectorSites
from bough.model import GaussianModel, MeanReward, Model
from bough.statistics import Statistics

_KIND = "posterior"
_VERSION = 1
_NOTHING = np.empty(0, dtype=np.int32)
_EVERYTHING = np.empty(0, dtype=np.bool_)


class Conditional(NamedTuple):
    """A node's posterior given its parent's value p: normal, with mean ``gain p + offset``."""

    gain: Any
    offset: Any
    covariance: Any


class BestActions(NamedTuple):
    """The best actions of one posterior draw: their node numbers, and their scores (mean rewards, where these are

    Gaussian) in that draw.
    """

    nodes: Nodes
    scores: Floats


class Posterior:
    """The exact joint posterior of all parameters of a model, given the rewards observed so far.

    Where rewards are clicks or counts it is the Gaussian one of expectation propagation, which is close to that.

    An update costs the path from the action to the root, whatever the size of the tree, and only nodes with an
    observation below them take memory. Arrays are in node order: entry i belongs to `model.tree.name(i)`.

    >>> import bough
    >>> tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]})
    >>> posterior = bough.Posterior(bough.GaussianModel(tree))
    >>> posterior.update("green", 2.0)
    >>> posterior.update(["green", "espresso"], [1.0, -1.0])
    >>> posterior.mean[tree.index("black")].round(3)
    np.float64(0.692)
    """

    def __init__(self, model: Model) -> None:
        if not isinstance(model, Model):
            raise ValueError(f"model is a {type(model).__name__}; give a model, such as bough.GaussianModel")
        self.model = model
        self._engine = _engine_of(model)
        self._answers: dict[str, Any] = {}  # what was computed since the last update
        self._untouched: Untouched | None = None
        self._limits: tuple[Floats, Floats] | None = None
        self.looked_at = 0  # nodes that the last search for the best actions looked at
        self._lock = threading.RLock()  # kernels run without the interpreter's own

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    def __repr__(self) -> str:
        return (
            f"Posterior(n_actions={self.model.tree.n_actions}, dim={self.model.dim}, "
            f"n_observations={self.n_observations})"
        )

    # -- observations --------------------------------------------------------------------------

    def update(
        self, action: Any, reward: Any, context: Any = None, *, trials: Any = None, exposure: Any = None
    ) -> None:
        """Add one observation, or, where `reward` is a list or an array, one for each of its entries.

        `context` is a vector for one observation and an (n, d) array for n, and is left out in a K-armed model.
        `trials`, in a `BernoulliModel`, has how many trials each reward counts the successes of, and `exposure`, in a
        `PoissonModel`, how long or how much was counted; both are 1 where they are left out. Everything is checked
        before anything changes.

        >>> import bough
        >>> model = bough.GaussianModel(bough.Tree.from_nested(["left", "right"]), mean=[0.0, 0.0])
        >>> posterior = bough.Posterior(model)
        >>> posterior.update("left", 1.0, context=[1.0, 0.0])
        >>> posterior.update(["left", "right"], [1.0, 0.5], context=[[0.0, 1.0], [1.0, 1.0]])
        >>> posterior.n_observations
        3
        """
        rows = observations.checked_rows(self.model, action, reward, context, trials, exposure)
        if len(rows.rewards):
            self.observe(*rows)

    def observe(self, leaves: Nodes, rewards: Floats, contexts: Floats | None, exposure: Floats | None = None) -> None:
        """`update`, of actions given by node number, and of numbers that have been checked."""
        with self._lock:
            self._engine.observe(leaves, rewards, contexts, exposure)
            self._answers.clear()

    def absorb(self, statistics: Statistics) -> None:
        """Add all rows that were summed in `statistics`: the same as giving them to `update`.

        >>> import bough
        >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])))
        >>> posterior.absorb(bough.Statistics.from_rows(["left", "left", "right"], [1.0, 2.0, 0.5]))
        >>> posterior
        Posterior(n_actions=2, dim=1, n_observations=3)
        """
        if not isinstance(statistics, Statistics):
            raise ValueError(f"statistics is a {type(statistics).__name__}; give bough.Statistics, as summarise makes")
        wanted = None if self.model.is_scalar else self.model.dim
        if statistics.dim != wanted:
            raise ValueError(f"the statistics have contexts of length {statistics.dim}; the model's is {wanted}")
        self.model.check_sums(statistics)
        leaves = self.model.tree.action_nodes(statistics.actions)
        if len(leaves):
            observations.check_size(self.model, np.sqrt(statistics.sum_yy), None)
            with self._lock:
                self._engine.absorb(leaves, statistics)
                self._answers.clear()

    def settle(self, log: Any = None, *, method: Literal["laplace", "propagation"] = "laplace") -> None:
        """Refine the posterior where rewards are counts; with Gaussian rewards it is exact already, and stays.

        In a K-armed model, make the leaves' sites again until nothing moves: what `update` does after a batch, and
        leaves out after a single reward. In a contextual model give the whole `log`, as `Observations`: the posterior
        becomes that of the log alone, the Gaussian at its mode (Laplace's approximation), and with
        ``method="propagation"`` the one of expectation propagation over its rows, which is closer and takes longer.

        >>> import bough
        >>> model = bough.BernoulliModel(bough.Tree.from_nested(["left", "right"]), mean=[0.0, 0.0])
        >>> posterior = bough.Posterior(model)
        >>> log = bough.Observations(["left", "right"], [1, 0], context=[[1.0, 0.5], [1.0, -0.5]])
        >>> posterior.settle(log)
        >>> posterior
        Posterior(n_actions=2, dim=2, n_observations=2)
        """
        engine = self._engine
        inputs.one_of("method", method, ("laplace", "propagation"))
        if isinstance(engine, VectorSites):
            if log is None:
                raise ValueError("a contextual model of counts is refined from its log; give bough.Observations")
            rows = observations.rows_of(log, self.model)
            if not len(rows.rewards):
                raise ValueError("the log is empty; give at least one row")
            with self._lock:
                engine.settle(rows, method == "propagation")
                self._answers.clear()
        elif log is not None:
            raise ValueError("this model keeps all that it needs; call settle() without a log")
        elif isinstance(engine, ScalarSites):
            with self._lock:
                engine.settle()
                self._answers.clear()

    def checked_context(self, context: Any) -> Floats:
        """One context as a (d,) array, or a `ValueError` that says what is wrong with it."""
        return observations.checked_context(self.model, context)

    # -- answers -------------------------------------------------------------------------------

    @property
    def n_observations(self) -> int:
        """How many rewards have been observed."""
        with self._lock:
            return int(self._engine.slot_counts()[:1].sum())

    @property
    def count(self) -> Integers:
        """(V,) how many rewards have been observed at or below each node."""
        counts = np.zeros(self.model.tree.n_nodes, dtype=np.int64)
        with self._lock:
            counts[self._engine.touched.node] = self._engine.slot_counts()
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
            if name not in self._answers:
                array: Floats = getattr(self._engine, name)()
                array.setflags(write=False)
                self._answers[name] = array
            return self._answers[name]  # type: ignore[no-any-return]

    def action_moments(self, context: Any = None) -> tuple[Floats, Floats]:
        """(K,) and (K,): the posterior mean and variance of each action's score, in `tree.actions` order.

        The score is the action's parameter, or its product with the context: with Gaussian rewards the mean reward.

        >>> import bough
        >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.from_nested(["left", "right"]), mean=[0.0, 0.0]))
        >>> posterior.action_moments(context=[3.0, 4.0])
        (array([0., 0.]), array([50., 50.]))
        """
        if context is not None or not self.model.is_scalar:
            context = self.checked_context(context)
        with self._lock:
            return self._engine.action_moments(context)

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
        quantile = NormalDist().inv_cdf(0.5 + 0.5 * inputs.level(level))
        score, variance = self.action_moments(context)
        width = quantile * np.sqrt(variance)
        model = self.model
        return MeanReward(
            model.expected_reward(score, variance), model.mean_reward(score - width), model.mean_reward(score + width)
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
            return Conditional(*self._engine.conditional(self.model.tree._checked(node)))

    def sample(self, rng: Any = None, size: int | None = None) -> Floats:
        """A joint draw of all parameters: (V,) or (V, d), with a leading axis where `size` is given.

        `rng` is anything that `numpy.random.default_rng` takes.

        >>> import bough
        >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.balanced(branching=2, height=3)))
        >>> posterior.sample(0, size=10).shape
        (10, 15)
        """
        generator = seeds.generator(rng)
        if size is None:
            with self._lock:
                return self._engine.transform(standard_normals(generator, self._shape))
        draws = standard_normals(generator, (inputs.whole_number("size", size, least=0), *self._shape))
        with self._lock:
            for draw in draws:
                self._engine.transform(draw)
        return draws

    @property
    def _shape(self) -> tuple[int, ...]:
        n_nodes = self.model.tree.n_nodes
        return (n_nodes,) if self.model.is_scalar else (n_nodes, self.model.dim)

    def from_normals(self, normals: Any) -> Floats:
        """The draw that these standard normals, one for each parameter in node order, give.

        `sample` is this on fresh normals. It is affine: zeros give the mean, and unit vectors the columns of a root of
        the joint covariance. Give antithetic, quasi-random or common normals where that helps.

        >>> import bough, numpy
        >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])))
        >>> posterior.from_normals(numpy.array([1.0, 0.0, 2.0]))
        array([1., 1., 3.])
        """
        given = inputs.floats(normals, "normals")
        if given.shape != self._shape:
            raise ValueError(f"the normals have shape {given.shape}; give {self._shape}, one for each parameter")
        with self._lock:
            return self._engine.transform(given.copy())

    def sample_actions(self, leaves: Nodes, rng: Any = None) -> Floats:
        """A joint draw of the parameters of some actions, given by node number: their paths alone are drawn.

        >>> import bough, numpy
        >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.balanced(branching=10, height=6)))
        >>> posterior.sample_actions(posterior.model.tree.leaves[:3], numpy.random.default_rng(0)).shape
        (3,)
        """
        parent = self.model.tree.parent
        wanted = inputs.integers(leaves, "leaves")
        if not len(wanted):
            return np.empty((0, *self._shape[1:]))
        levels = [np.unique(wanted)]
        for end in (0, -1):
            self.model.tree._checked(int(levels[0][end]))
        while levels[-1][0] > 0 or len(levels[-1]) > 1:
            above = parent[levels[-1]]
            levels.append(np.unique(np.where(above < 0, 0, above)))
        nodes = np.unique(np.concatenate(levels)).astype(np.int32)
        above = parent[nodes]
        position = np.where(above < 0, -1, np.searchsorted(nodes, above)).astype(np.int32)
        normals = standard_normals(seeds.generator(rng), (len(nodes), *self._shape[1:]))
        with self._lock:
            draw = self._engine.transform_some(nodes, position, normals)
        return draw[np.searchsorted(nodes, wanted)]

    def best_actions(
        self, rng: Any = None, context: Any = None, k: int = 1, exclude: Nodes | None = None
    ) -> BestActions | None:
        """The k best actions of one joint draw, best first, without drawing what cannot win.

        Exact in law, in time that follows the touched nodes. `exclude` has node numbers of actions that are not to
        be chosen. None where this cannot be done: actions that may tie, or a tree of more than 64 levels.

        >>> import bough
        >>> posterior = bough.Posterior(bough.problems.constant(branching=10, height=6))
        >>> posterior.best_actions(0, k=3).nodes
        array([ 708926, 1101556,  670702], dtype=int32)
        """
        if context is not None or not self.model.is_scalar:
            context = self.checked_context(context)
        tree = self.model.tree
        excluded = _NOTHING
        numbers = np.unique(inputs.integers(() if exclude is None else exclude, "exclude"))
        if len(numbers):
            for node in (int(numbers[0]), int(numbers[-1])):
                tree._checked(node)
            excluded = numbers.astype(np.int32)
            if (tree.child_start[excluded] != tree.child_start[excluded + 1]).any():
                raise ValueError("exclude has the number of an inner node; give those of actions, as in tree.leaves")
        most = tree.n_actions - len(excluded)
        if not inputs.is_whole(k) or not 1 <= k <= most:
            raise ValueError(f"k is {k!r}; give a whole number from 1 to {most}, the number of actions to choose from")
        return self.search(seeds.generator(rng), context, int(k), excluded)

    def search(
        self, generator: np.random.Generator, context: Floats | None, k: int, excluded: Nodes
    ) -> BestActions | None:
        """`best_actions` of what has been checked already."""
        engine, tree = self._engine, self.model.tree
        if tree.height > DEEPEST:
            return None
        with self._lock:
            if self._untouched is None:
                self._untouched = Untouched(tree, self.model.classes.of_node)
            untouched, touched = self._untouched, engine.touched
            deviation = engine.class_deviations(context)
            limits = self._limits
            mean = float(self.model.mean if context is None else self.model.mean @ context)
            if limits is None or not self.model.is_scalar:
                limits = self._limits = untouched.limits(deviation, mean)
            if limits is None:
                return None
            untouched.sync(touched)
            value = engine.touched_values(generator, context)
            allowed = _EVERYTHING
            if len(excluded) or not touched.count:
                wanted = np.append(excluded, np.int32(0)).astype(np.int32)
                untouched, touched, value = untouched.extend(wanted, touched, value, deviation, mean, generator)
                if len(excluded):
                    allowed = np.ones(touched.count, dtype=np.bool_)
                    allowed[touched.slots(excluded)] = False
            nodes, scores, self.looked_at = untouched.search(touched, value, allowed, deviation, limits, k, generator)
            return BestActions(nodes, scores)

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

    # -- files ---------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model and all that was learned to one file, whole or not at all.

        >>> import bough, tempfile, pathlib
        >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])))
        >>> posterior.update("left", 1.0)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "posterior.bough"
        >>> posterior.save(path)
        >>> bough.Posterior.load(path)
        Posterior(n_actions=2, dim=1, n_observations=1)
        """
        header, arrays = self.model.contents()
        storage.write(path, {**header, "kind": _KIND, "version": _VERSION}, {**arrays, **self._engine.arrays()})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Posterior:
        """The posterior that `save` wrote; a `ValueError` where the file is not such a one, or damaged."""
        header, arrays = storage.read(path, _KIND, _VERSION)
        try:
            posterior = cls(Model.from_contents(header, arrays))
            posterior._engine.restore(arrays)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a complete posterior file (missing or odd: {error})") from error
        return posterior


def _engine_of(model: Model) -> Engine:
    if isinstance(model, GaussianModel):
        engine = ScalarEngine if model.is_scalar else VectorEngine
        return engine(model, model.noise_variance)
    return ScalarSites(model) if model.is_scalar else VectorSites(model)
