"""Posterior: the posterior as a living object, exact where rewards are Gaussian."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import numpy as np

from bough import _checks, _storage
from bough._arrays import Nodes
from bough._frames import make_frame
from bough.best import Best, best_of
from bough.data.rows import checked_rows, checked_sums, one_action, rows_of
from bough.data.statistics import Statistics
from bough.explanation import Explanation, NodeTable, one_type, plot_best
from bough.inference import files
from bough.inference.crossed import CrossedEngine
from bough.inference.engines import engine_for
from bough.inference.living import Living, close
from bough.model.files import model_contents, restored_model
from bough.model.model import Model
from bough.prediction import Prediction, noise_frame, predictive

_KIND = "posterior"


class Posterior(Living):
    """The exact joint posterior of all parameters of a model, given the rewards observed so far.

    Where rewards are clicks or counts it is the Gaussian one of expectation propagation, which is close to that.

    An update costs the path from the action to the root, whatever the size of the tree, and only nodes with an
    observation below them take memory. Arrays are in node order: entry i belongs to `model.tree.name(i)`.

    With a `half_life` rewards fade: one counts half as much after that much time on the clock, `now`, and again half
    after as much more. It is a number, or a timedelta where times are datetimes.

    >>> import bough
    >>> tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]})
    >>> posterior = bough.Posterior(bough.GaussianModel(tree))
    >>> posterior.update("green", 2.0)
    >>> posterior.update(["green", "espresso"], [1.0, -1.0])
    >>> posterior.mean[tree.index("black")].round(3)
    np.float64(0.692)
    """

    def __init__(self, model: Model, *, half_life: Any = None) -> None:
        if not isinstance(model, Model):
            raise ValueError(f"model is a {type(model).__name__}; give a model, such as bough.GaussianModel")
        self._start_clock(half_life, model)
        self._begin(engine_for(model))
        self._lock = threading.RLock()  # kernels run without the interpreter's own

    def __getstate__(self) -> dict[str, Any]:
        # One moment of what another thread may be changing; what is only derived is made again when asked for.
        with self._lock:
            self._fold()
            names = ("half_life", "_half_life")
            state = {name: getattr(self, name) for name in names} | {"_clock": self._clock.copy()}
            return {**state, "_engine": self._engine.snapshot(), "_retired": dict(self._retired)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._begin(state["_engine"])
        self.__dict__.update(state, _lock=threading.RLock())

    def _twin(self) -> Posterior:
        """One that goes on by itself, on the same tree and prior; single changes stay as they are on top of it."""
        twin = Posterior.__new__(Posterior)
        with self._lock:
            twin._begin(self._engine.snapshot())
            twin._catalogue, twin._added_classes = self._catalogue.copy(), self._added_classes.copy()
            for class_ in twin._added_classes:
                twin._search_state.note_leaf_class(class_)
            twin._retired = self._retired.copy()
            twin.half_life, twin._half_life, twin._clock = self.half_life, self._half_life, self._clock.copy()
        twin._lock = threading.RLock()
        return twin

    def __repr__(self) -> str:
        with self._lock:
            n_actions, dim = self._catalogue.n_actions, self._engine.model.dim
            return f"Posterior(n_actions={n_actions}, dim={dim}, n_observations={self.n_observations})"

    # -- observations --------------------------------------------------------------------------

    def update(
        self,
        action: Any,
        reward: Any,
        context: Any = None,
        *,
        trials: Any = None,
        exposure: Any = None,
        at: Any = None,
        settle: bool = True,
        factors: Any = None,
    ) -> None:
        """Add one observation, or, where `reward` is a list or an array, one for each of its entries.

        `context` is a vector for one observation and an (n, d) array for n, and is left out in a K-armed model. Where
        the model has `features`, it may also be a dict or a Series, and a frame, whose names may be in any order.
        `trials`, in a `BernoulliModel`, has how many trials each reward counts the successes of, and `exposure`, in a
        `PoissonModel`, how long or how much was counted; both are 1 where they are left out. `at` is when the reward
        was earned, one time for all or one for each, and now where it is left out: it matters where rewards fade or
        actions drift. `factors` has the levels of the decisions, ``{"store": "north"}``, one for all or one for each:
        it names every factor of the decision that the model has. Everything is checked before anything changes.

        In a K-armed model of clicks or counts a batch ends with `settle`, which takes time that follows all actions
        with rewards. With ``settle=False`` it refreshes only what it touches: call `settle` when the stream is in, or
        now and then. Where rewards fade, the first question after the clock went on settles all the same.

        >>> import bough
        >>> model = bough.GaussianModel(bough.Tree.from_nested(["left", "right"]), mean=[0.0, 0.0])
        >>> posterior = bough.Posterior(model)
        >>> posterior.update("left", 1.0, context=[1.0, 0.0])
        >>> posterior.update(["left", "right"], [1.0, 0.5], context=[[0.0, 1.0], [1.0, 1.0]])
        >>> posterior.n_observations
        3
        """
        settle = settle is True or _checks.flag("settle", settle)
        bare = context is None and trials is None and exposure is None and at is None and factors is None
        bare = bare and type(reward) in (float, int)
        with self._lock:
            model = self._engine.model
            decided = model.effects is not None and model.effects.decided
            if bare and model.is_scalar and not decided and model.likelihood.is_plain(reward):  # services make millions
                self._observe_one(one_action(self._catalogue, action), float(reward))
                return
            rows = checked_rows(model, action, reward, context, trials, exposure, self._catalogue, factors)
            if at is not None and len(rows.rewards):
                self._observe_at(rows, at, settle)
            elif len(rows.rewards):
                self._observe(rows, settle)

    def _observe_one(self, leaf: int, reward: float) -> None:
        """`update` of one reward that has been checked, in a model without contexts."""
        with self._lock:
            self._answers.clear()
            self._engine.observe_one(leaf, reward)

    def retract(
        self,
        action: Any,
        reward: Any,
        context: Any = None,
        *,
        trials: Any = None,
        exposure: Any = None,
        at: Any = None,
        factors: Any = None,
    ) -> None:
        """Take back a reward, or many, as if they had never been observed: a refund, say, or a bot's clicks.

        Exact for Gaussian rewards, and by totals for clicks and counts. `at` is when the reward was earned, and
        `factors` has the levels of its decision, as in `update`. A `ValueError`, and nothing changes, where it cannot
        have been among those that were observed, where actions drift, and for clicks and counts in contexts.

        >>> import bough
        >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])))
        >>> posterior.update(["left", "left"], [1.0, 5.0])
        >>> posterior.retract("left", 5.0)
        >>> posterior.n_observations, round(float(posterior.mean[1]), 3)
        (1, 0.667)
        """
        with self._lock:
            self._check_whole()
            model = self._engine.model
            rows = checked_rows(model, action, reward, context, trials, exposure, self._catalogue, factors)
            if not len(rows.rewards):
                return
            if at is not None:
                clock, times = self._ticked(at, len(rows.rewards))
                if clock.elapsed > self._clock.elapsed:
                    raise ValueError(f"at is {at!r}, which is after now, {self.now!r}; give the time of the reward")
                rows = self._aged(rows, times)
                if not len(rows.rewards):  # nothing is left of them to take back
                    return
            self._answers.clear()
            try:
                self._engine.retract(rows)
            except ValueError as error:
                one = repr(action) if _checks.is_one(reward) else "the actions"
                hint = "; rewards fade here: give at=, when it was earned" if at is None and self._half_life else ""
                raise ValueError(f"{one} cannot have that reward taken back: {error}{hint}") from None

    def absorb(self, statistics: Statistics, *, settle: bool = True) -> None:
        """Add all rows that were summed in `statistics`: the same as giving them to `update`, also as to `settle`.

        >>> import bough
        >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])))
        >>> posterior.absorb(bough.Statistics.from_rows(["left", "left", "right"], [1.0, 2.0, 0.5]))
        >>> posterior
        Posterior(n_actions=2, dim=1, n_observations=3)
        """
        settle = _checks.flag("settle", settle)
        with self._lock:
            leaves = checked_sums(self._engine.model, statistics, self._catalogue)
            if len(leaves):
                self._answers.clear()
                self._engine.absorb(leaves, statistics.arranged(self._engine.model.feature_names), settle)

    def settle(self, log: Any = None, *, method: Literal["laplace", "propagation"] = "propagation") -> None:
        """Refine the posterior where rewards are counts; with Gaussian rewards it is exact already, and stays.

        In a K-armed model, make the actions' sites again until nothing moves: what `update` does after a batch, and
        leaves out after a single reward, and with ``settle=False``. In a contextual model give the whole `log`, as
        `Observations`: the posterior becomes that of the log alone, by expectation propagation over its rows.
        ``method="laplace"`` stops at the Gaussian around the mode (Laplace's approximation), which is quicker and
        further off: it is what penalised logistic or Poisson regression has.

        >>> import bough
        >>> model = bough.BernoulliModel(bough.Tree.from_nested(["left", "right"]), mean=[0.0, 0.0])
        >>> posterior = bough.Posterior(model)
        >>> log = bough.Observations(["left", "right"], [1, 0], context=[[1.0, 0.5], [1.0, -0.5]])
        >>> posterior.settle(log)
        >>> posterior
        Posterior(n_actions=2, dim=2, n_observations=2)
        """
        _checks.one_of("method", method, ("laplace", "propagation"))
        with self._lock:
            model = self._engine.model
            rows = None if log is None else rows_of(log, model, self._catalogue)
            if rows is not None and not len(rows.rewards):
                raise ValueError("the log is empty; give at least one row")
            if rows is not None and self._half_life is not None:
                raise ValueError(
                    "rewards fade here, and a log has no times; settle(log) would have them all count as new"
                )
            if not model.kind.is_conjugate:
                self._answers.clear()
            self._engine.settle(rows, method == "propagation")

    # -- the evidence --------------------------------------------------------------------------

    @property
    def statistics(self) -> Statistics:
        """What was observed, as sums for each action: to keep, to add up, or to learn a prior from.

        Where rewards are clicks, `count` is that of trials. A `ValueError` where sums would not say it all: clicks and
        counts in contexts.

        >>> import bough
        >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])))
        >>> posterior.update(["left", "left", "right"], [1.0, 2.0, 0.5])
        >>> posterior.statistics.actions.tolist(), posterior.statistics.sum_y
        (['left', 'right'], array([3. , 0.5]))
        """
        with self._lock:
            if self._engine.is_partial:
                raise ValueError(
                    "the posterior comes from a file of an earlier version, which did not keep sums; sum its log"
                )
            nodes, table = self._evidence()
            found = self._engine.kind.statistics(self._catalogue.names(nodes), table)
            return found.arranged(self._engine.model.feature_names)

    def on(self, model: Model, renamed: Mapping[Any, Any] | None = None) -> Posterior:
        """The posterior of the same evidence under another model, or on another tree; this one stays as it is.

        Actions go by their names; `renamed` maps old names to new ones. A `KeyError` where an action with evidence is
        not in the new tree. Retired actions stay retired, and the clock goes on. With clicks or counts in contexts the
        evidence is the Gaussian factors that stand for them, made under the old model, and so is `log_evidence`: give
        the log to `settle` for those of the new one.

        >>> import bough
        >>> tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]})
        >>> posterior = bough.Posterior(bough.GaussianModel(tree))
        >>> posterior.update(["green", "espresso"], [1.0, -1.0])
        >>> wider = posterior.on(bough.GaussianModel(tree, covariance=4.0, noise_variance=0.5))
        >>> wider.n_observations, bool(wider.mean[tree.index("green")] > posterior.mean[tree.index("green")])
        (2, True)
        """
        with self._lock:
            mine = self.model
            if not isinstance(model, Model):
                raise ValueError(f"model is a {type(model).__name__}; give a model, such as bough.GaussianModel")
            if type(model) is not type(mine) or (model.is_scalar, model.dim) != (mine.is_scalar, mine.dim):
                what = f"the evidence is that of {mine!r}, and model is {model!r}"
                raise ValueError(f"{what}; give one with such rewards")
            model = model.with_features_of(mine)
            number = self._number_on(model, self._checked_new_names(renamed))
            other = Posterior(model, half_life=self.half_life)
            other._clock = self._clock.copy()
            other._begin(self._moved_to(model, number))
            kept = number[list(self._retired)]
            kept = kept[kept >= 0]
            if len(kept) == model.tree.n_actions:
                raise ValueError("all actions of the new tree are retired; restore one first")
            close(other._engine, kept)
            other._retired = dict.fromkeys(kept.tolist())
        return other

    def _number_on(self, model: Model, new_names: Mapping[Any, Any]) -> Nodes:
        """Where the actions that matter are in another model's tree."""
        tree, nodes = self._engine.model.tree, self._evidence()[0]
        if model.tree is tree and not new_names:
            return np.arange(tree.n_nodes, dtype=np.int32)
        number = np.full(tree.n_nodes, -1, dtype=np.int32)
        for node in self._retired:  # one that is gone from the new tree is not retired there
            name = tree.name(node)
            number[node] = model.tree.node_names.find(new_names.get(name, name))
            if number[node] >= 0 and not model.tree.is_action(int(number[node])):
                number[node] = -1
        names = self._catalogue.names(nodes).tolist()
        number[nodes] = model.tree.action_nodes([new_names.get(name, name) for name in names])
        if len(np.unique(number[nodes])) < len(np.unique(nodes)):
            raise ValueError("two actions with evidence have the same name in the new tree; rename them apart")
        return number

    def _checked_new_names(self, renamed: Any) -> Mapping[Any, Any]:
        if renamed is None:
            return {}
        if not isinstance(renamed, Mapping):
            raise ValueError(f"renamed is {renamed!r:.80}; give a mapping from old names to new ones")
        for name in renamed:
            self._catalogue.action_node(name)
        return renamed

    # -- something to look at ------------------------------------------------------------------

    def to_frame(
        self, level: int | str | None = None, interval: float = 0.95, context: Any = None, backend: str | None = None
    ) -> Any:
        """A frame with one row for each node, or for each of one level, given by its depth or its name.

        Its columns are name, level, path, mean, deviation, low, high, observations and share. `level` is what
        `tree.levels` calls it, or the depth where levels have no names. `mean` and `deviation` are those of the
        parameter, or of its product with the `context`, which a contextual model needs. `low` and `high` are the
        credible interval on the scale of the rewards: of a category, that of an action like it. `share` is its part of
        all observations. Names that are not all integers are given as text. `backend` is "pandas", "polars" or
        "pyarrow"; the first of them that is installed where it is None.

        >>> import bough
        >>> tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]})
        >>> posterior = bough.Posterior(bough.GaussianModel(tree))
        >>> posterior.update(["green", "green", "espresso"], [2.0, 1.0, -1.0])
        >>> frame = posterior.to_frame(level=2, backend="polars")
        >>> frame["path"].to_list(), frame["observations"].to_list()
        (['tea/green', 'tea/black', 'coffee/espresso'], [2, 0, 1])
        """
        table = NodeTable.of(self, interval, context)
        return make_frame((table if level is None else table.of_level(level)).columns(), backend)

    def explain(
        self, action: Any, context: Any = None, interval: float = 0.95, factors: Mapping[str, Any] | None = None
    ) -> Explanation:
        """The path from the root to an action, or to a category: each node against its siblings.

        It prints as a small table, and has `to_frame` and `plot`. A contextual model needs a `context`. Where the model
        has factors, what the levels of the action add to its score comes last, and those of `factors`, of a decision.

        >>> import bough
        >>> tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]})
        >>> posterior = bough.Posterior(bough.BernoulliModel(tree, mean=-2.0))
        >>> posterior.update(["green", "espresso"], [12, 3], trials=[40, 40])
        >>> print(posterior.explain("green"))
                mean reward  95% interval    rank  observations  share
        (root)         0.16  0.04 to 0.39                    80   100%
        tea            0.23  0.05 to 0.55  1 of 2            40    50%
        green          0.29  0.17 to 0.44  1 of 2            40    50%
        """
        return Explanation.of(self, action, interval, context, factors)

    def effects(self, factor: str, backend: str | None = None) -> Any:
        """A frame with one row for each level of a crossed factor: level, mean, deviation and observations.

        `mean` and `deviation` are those of what the level adds to the score, and `observations` is how many rewards it
        had a part in. Levels that are tuples, or that are not all integers, are given as text. `backend` is "pandas",
        "polars" or "pyarrow"; the first of them that is installed where it is None.

        >>> import bough
        >>> tree = bough.Tree.from_nested({"kitchen": ["kettle", "toaster"], "garden": ["spade"]})
        >>> brand = bough.Factor({"kettle": "Acme", "spade": "Acme", "toaster": "Bolt"}, variance=0.5)
        >>> posterior = bough.Posterior(bough.GaussianModel(tree, factors={"brand": brand}))
        >>> posterior.update(["kettle", "spade"], [3.0, 2.0])
        >>> posterior.effects("brand", "polars").to_dict(as_series=False)["observations"]
        [2, 0]
        """
        with self._lock:
            effects = self.model.effects
            if effects is None:
                raise ValueError(f"the model has no factors, and so no {factor!r:.60}")
            chosen, first = effects.factor(factor), effects.first_of(factor)
            part = slice(first, first + len(chosen.levels))
            engine = cast(CrossedEngine, self._engine)
            mean, variance = engine.effect_moments()
            counts = np.rint(engine.effect_counts()).astype(np.int64)
        columns = {"mean": mean[part], "deviation": np.sqrt(variance[part]), "observations": counts[part]}
        return make_frame({"level": one_type(list(chosen.levels)), **columns}, backend)

    def best(
        self,
        context: Any = None,
        among: Sequence[Any] | None = None,
        exclude: Sequence[Any] | None = None,
        *,
        samples: int = 1_000,
        seed: Any = None,
    ) -> Best:
        """How likely each action is to be the best, what committing to it now would cost, and how good the best is.

        `among` restricts the question to the given actions, and `exclude` leaves some out. Retired actions count here,
        and do not in `HierTS.best`. Without contexts the answer is exact. With a `context`, and where variances are so
        far apart that it would take too long, it is estimated from that many `samples`, which follow from the `seed`,
        and `standard_error` says how well.

        >>> import bough
        >>> tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]})
        >>> posterior = bough.Posterior(bough.BernoulliModel(tree, mean=-2.0))
        >>> posterior.update(["green", "espresso"], [12, 3], trials=[40, 40])
        >>> best = posterior.best()
        >>> best.action, best.probability.round(3), best.expected_loss.round(3)
        ('green', array([0.638, 0.357, 0.005]), array([0.069, 0.102, 0.274]))
        >>> round(best.of("tea"), 3), round(best.maximum.mean, 3), round(best.maximum.quantile(0.95), 3)
        (0.995, 0.358, 0.676)
        """
        return best_of(self, context, among, exclude, samples, seed, with_retired=True)

    def plot(self, level: int | str | None = None, top: int = 20, context: Any = None, ax: Any = None) -> Any:
        """Draw the mean reward of the best actions, or of the best nodes of a level, with 95% intervals, best first.

        `level` is the depth of a level, or its name. Retired actions are left out. A contextual model needs a
        `context`. Returns the axes; needs matplotlib.

        >>> import bough
        >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])))
        >>> posterior.plot(top=1).get_title()
        'The best 1 of 2 actions, with 95% intervals'
        """
        return plot_best(self, level, top, context, ax)

    def predictive(
        self,
        action: Any,
        level: float = 0.95,
        context: Any = None,
        *,
        trials: Any = None,
        exposure: Any = None,
        factors: Mapping[str, Any] | None = None,
    ) -> Prediction:
        """What the next reward of an action may be: its mean, and the interval that holds it with that probability.

        The interval has both the noise of a reward and how uncertain the action's mean is, so that it stays wide where
        rewards are noisy, however many there were. Of a list of actions arrays come back. A contextual model needs a
        `context`, and a model with factors of the decision the levels of all of these in `factors`, as `update` does.
        Of clicks it is the number of them in so many `trials`, and of counts that in so much `exposure`, 1 where they
        are left out.

        >>> import bough
        >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])))
        >>> posterior.update(["left", "left"], [1.0, 2.0])
        >>> mean, low, high = posterior.predictive("left")
        >>> round(mean, 2), round(low, 2), round(high, 2)
        (1.2, -1.12, 3.52)
        >>> clicks = bough.Posterior(bough.BernoulliModel(bough.Tree.from_nested(["left", "right"]), mean=-2.0))
        >>> clicks.update("left", 30, trials=100)
        >>> clicks.predictive("left", trials=50)[1:]
        (8.0, 23.0)
        """
        return predictive(self, action, level, context, trials, exposure, factors)

    def noise(self, level: float = 0.95, backend: str | None = None) -> Any:
        """A frame with one row per action that has rewards: how noisy it is, in a model with noise per action.

        Its columns are name, median, low, high and observations. `median`, `low` and `high` are those of the action's
        noise variance, with `level` between the last two. `backend` is "pandas", "polars" or "pyarrow"; the first of
        them that is installed where it is None.

        >>> import bough
        >>> noise = bough.per_action(median=1.0, spread=1.0, floor=0.001)
        >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.from_nested(["steady", "wild"]), noise=noise))
        >>> posterior.update(["steady"] * 4 + ["wild"] * 4, [1.0, 1.1, 0.9, 1.0, 3.0, -2.0, 1.0, -3.0])
        >>> frame = posterior.noise(backend="polars")
        >>> frame["name"].to_list(), frame["median"].round(2).to_list()
        (['steady', 'wild'], [0.24, 4.03])
        """
        return noise_frame(self, level, backend)

    # -- files ---------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model and all that was observed to one file, whole or not at all.

        >>> import bough, tempfile, pathlib
        >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])))
        >>> posterior.update("left", 1.0)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "posterior.bough"
        >>> posterior.save(path)
        >>> bough.Posterior.load(path)
        Posterior(n_actions=2, dim=1, n_observations=1)
        """
        header, arrays = self._contents()
        version = _storage.version_of(header, files.VERSION, "factors")
        _storage.write(path, {**header, "kind": _KIND, "version": version}, arrays)

    def _contents(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The header and the arrays that a file keeps, of one moment; nobody has to wait while they are written."""
        with self._lock:
            model = self.model
            more, evidence = files.evidence_contents(self._engine)
            living = files.living_contents(list(self._retired), self._clock, self.half_life)
            search = files.search_contents(self._search_state, self._engine)
        header, arrays = model_contents(model)
        return {**header, **more, **living[0], **search[0]}, {**arrays, **evidence, **living[1], **search[1]}

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, features: Any = None) -> Posterior:
        """The posterior that `save` wrote; a `ValueError` where the file is not such a one, or damaged.

        `features` are as in `GaussianModel.load`.
        """
        with _storage.read(path, _KIND, files.VERSION) as contents:
            return cls._restored(contents, features)

    @classmethod
    def _restored(cls, contents: _storage.Contents, features: Any = None) -> Posterior:
        posterior = cls(restored_model(contents, features))
        posterior._take_over(contents)
        return posterior

    def _take_over(self, contents: _storage.Contents) -> None:
        """Go on with what a file keeps beside the model; for a posterior that has observed nothing yet."""
        clock, half_life = files.restored_time(contents)
        if half_life is not None:
            self._fade_by(half_life)
        self._clock = clock
        engine = self._engine
        engine.advance(clock.elapsed)
        files.restore(engine, contents)
        if engine.now > clock.elapsed:
            raise ValueError("there is evidence that is later than the clock")
        retired = files.restored_retired(contents, engine.model.tree)
        close(engine, retired)
        self._retired = dict.fromkeys(retired.tolist())
        files.restore_search(self._search_state, engine, contents)
