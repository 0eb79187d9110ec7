"""Posterior: the posterior as a living object, exact where rewards are Gaussian."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from bough import _checks, _storage
from bough._arrays import Floats, Nodes
from bough.data.rows import Rows, checked_rows, checked_sums, one_action, rows_of
from bough.data.statistics import Statistics
from bough.inference import files
from bough.inference.answers import Answers
from bough.inference.drift import check_same_drift
from bough.inference.engines import engine_for
from bough.inference.search import Search
from bough.model.files import model_contents, restored_model
from bough.model.model import Model

_KIND = "posterior"


class Posterior(Answers):
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
        self._engine = engine_for(model)
        self._answers: dict[str, Any] = {}  # what was computed since the last update
        self._search_state = Search(model)
        self._lock = threading.RLock()  # kernels run without the interpreter's own

    def __getstate__(self) -> dict[str, Any]:
        # One moment of what another thread may be changing; what is only derived is made again when asked for.
        with self._lock:
            return {"model": self.model, "_engine": self._engine.snapshot()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _answers={}, _search_state=Search(state["model"]), _lock=threading.RLock())

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
        model = self.model
        bare = context is None and trials is None and exposure is None and type(reward) in (float, int)
        if bare and model.is_scalar and model.likelihood.is_plain(reward):  # what services make millions of
            self._observe_one(one_action(model.tree, action), float(reward))
            return
        rows = checked_rows(model, action, reward, context, trials, exposure)
        if len(rows.rewards):
            self._observe(rows)

    def _observe_one(self, leaf: int, reward: float) -> None:
        """`update` of one reward that has been checked, in a model without contexts."""
        with self._lock:
            self._answers.clear()
            self._engine.observe_one(leaf, reward)

    def _observe(self, rows: Rows) -> None:
        """`update` of what has been checked."""
        with self._lock:
            self._answers.clear()
            self._engine.observe(rows)

    def absorb(self, statistics: Statistics) -> None:
        """Add all rows that were summed in `statistics`: the same as giving them to `update`.

        >>> import bough
        >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])))
        >>> posterior.absorb(bough.Statistics.from_rows(["left", "left", "right"], [1.0, 2.0, 0.5]))
        >>> posterior
        Posterior(n_actions=2, dim=1, n_observations=3)
        """
        leaves = checked_sums(self.model, statistics)
        if len(leaves):
            with self._lock:
                self._answers.clear()
                self._engine.absorb(leaves, statistics)

    def settle(self, log: Any = None, *, method: Literal["laplace", "propagation"] = "laplace") -> None:
        """Refine the posterior where rewards are counts; with Gaussian rewards it is exact already, and stays.

        In a K-armed model, make the actions' sites again until nothing moves: what `update` does after a batch, and
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
        _checks.one_of("method", method, ("laplace", "propagation"))
        rows = None if log is None else rows_of(log, self.model)
        if rows is not None and not len(rows.rewards):
            raise ValueError("the log is empty; give at least one row")
        with self._lock:
            if not self.model.kind.is_conjugate:
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
            return self._engine.kind.statistics(self._names(nodes), table)

    def _evidence(self) -> tuple[Nodes, Floats]:
        """The actions that were observed, in node order, and their rows of evidence."""
        slots = self._engine.slots
        nodes = slots.node[slots.of_rows]
        observed = np.flatnonzero(self._engine.table[:, 0] > 0.0)
        order = observed[np.argsort(nodes[observed])]
        return nodes[order], self._engine.table[order]

    def _names(self, nodes: Nodes) -> Any:
        tree = self.model.tree
        return tree.actions[np.searchsorted(tree.leaves, nodes)]

    def on(self, model: Model, renamed: Mapping[Any, Any] | None = None) -> Posterior:
        """The posterior of the same evidence under another model, or on another tree; this one stays as it is.

        Actions go by their names; `renamed` maps old names to new ones. A `KeyError` where an action with evidence is
        not in the new tree. With clicks or counts in contexts the evidence is the Gaussian factors that stand for
        them, made under the old model, and so is `log_evidence`: give the log to `settle` for those of the new one.

        >>> import bough
        >>> tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]})
        >>> posterior = bough.Posterior(bough.GaussianModel(tree))
        >>> posterior.update(["green", "espresso"], [1.0, -1.0])
        >>> wider = posterior.on(bough.GaussianModel(tree, covariance=4.0, noise_variance=0.5))
        >>> wider.n_observations, bool(wider.mean[tree.index("green")] > posterior.mean[tree.index("green")])
        (2, True)
        """
        other = Posterior(model)
        mine = self.model
        if type(model) is not type(mine) or (model.is_scalar, model.dim) != (mine.is_scalar, mine.dim):
            raise ValueError(f"the evidence is that of {mine!r}, and model is {model!r}; give one with such rewards")
        with self._lock:
            if self._engine.is_partial:
                raise ValueError("the posterior comes from a file of an earlier version, without all of its evidence")
            nodes, table = self._evidence()
            extra = self._engine.extra_arrays()
        leaves, new_names = nodes, self._checked_new_names(renamed)
        if model.tree is not self.model.tree or new_names:
            names = self._names(nodes).tolist()
            leaves = model.tree.action_nodes([new_names.get(name, name) for name in names])
        if len(np.unique(leaves)) < len(leaves):
            raise ValueError("two actions with evidence have the same name in the new tree; rename them apart")
        check_same_drift(mine, model, nodes, leaves)
        other._engine.place(leaves, self._engine.kind.moved(table, self.model.mean, model.mean))
        other._engine.take_extra(extra)
        return other

    def _checked_new_names(self, renamed: Any) -> Mapping[Any, Any]:
        if renamed is None:
            return {}
        if not isinstance(renamed, Mapping):
            raise ValueError(f"renamed is {renamed!r:.80}; give a mapping from old names to new ones")
        for name in renamed:
            self.model.tree.action_node(name)
        return renamed

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
        _storage.write(path, {**header, "kind": _KIND, "version": files.VERSION}, arrays)

    def _contents(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The header and the arrays that a file keeps, of one moment; nobody has to wait while they are written."""
        header, arrays = model_contents(self.model)
        with self._lock:
            more, evidence = files.evidence_contents(self._engine)
        return {**header, **more}, {**arrays, **evidence}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Posterior:
        """The posterior that `save` wrote; a `ValueError` where the file is not such a one, or damaged."""
        with _storage.read(path, _KIND, files.VERSION) as contents:
            return cls._restored(contents)

    @classmethod
    def _restored(cls, contents: _storage.Contents) -> Posterior:
        posterior = cls(restored_model(contents))
        files.restore(posterior._engine, contents)
        return posterior
