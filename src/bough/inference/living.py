"""Living: a posterior whose catalogue changes, and whose rewards may fade; `Posterior` adds what is observed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from bough._arrays import Floats, Nodes
from bough.inference.adoption import Gone, plan_adoption
from bough.inference.drift import check_same_drift
from bough.inference.engine import Engine
from bough.inference.engines import engine_for
from bough.inference.search import Search
from bough.inference.timed import Timed
from bough.model.covariance import check_reaches, class_with
from bough.model.factors import Factor
from bough.model.labelling import labelled, with_labels
from bough.model.model import Model
from bough.tree.catalogue import Catalogue
from bough.tree.changes import Changes
from bough.tree.editing import edit
from bough.tree.tree import Tree

_NOTHING = np.empty(0, dtype=np.int32)
_MOST_TRIES = 3  # to adopt a table without the lock


class Reduction(Protocol):
    """What makes the model of a posterior of the user's: the same actions below one root."""

    whole: Model
    """The model on the whole tree."""

    def nodes(self, tree: Tree) -> Nodes:
        """Where in the whole tree the nodes of the star are."""
        ...

    def on(self, whole: Model) -> tuple[Model, Nodes]:
        """The star of another whole, and where in it the nodes of that are; -1 inside."""
        ...


class Living(Timed):
    """Single changes stay on top of the tree that the engine has, until someone asks for the tree itself."""

    def _begin(self, engine: Engine) -> None:
        """Go on with an engine whose tree is that of its model, and nobody retired."""
        self._engine = engine
        self._answers = {}
        self._search_state = Search(engine.model)
        self._catalogue = Catalogue(engine.model.tree)
        self._added_classes: list[int] = []
        self._retired: dict[int, None] = {}

    @property
    def model(self) -> Model:
        """The model on the present tree: added actions are in it, and retired ones still hang in their category."""
        with self._lock:
            self._fold()
            return self._engine.model

    def _fold(self, nodes: Nodes = _NOTHING) -> Nodes:
        """Make a tree of all single changes since the last one; the new numbers of these nodes."""
        with self._lock:
            if not self._catalogue.is_changed:
                return nodes
            folded = self._catalogue.folded()
            number = folded.number
            self._become(self._engine.model.rehung(folded.tree, number, self._classes), number)
            return number[nodes]

    @property
    def _classes(self) -> Nodes:
        """The covariance class of each node, of the tree and added."""
        of_node, added = self._engine.model.classes.of_node, self._added_classes
        return np.concatenate([of_node, np.array(added, dtype=np.int32)]) if added else of_node

    def _become(self, model: Model, number: Nodes, retired: Nodes | None = None, search: Search | None = None) -> None:
        """Go on with another model, where the present nodes have these numbers; what is observed goes along."""
        engine = self._moved_to(model, number)
        kept = number[list(self._retired)] if retired is None else retired
        kept = kept[kept >= 0]  # without those that are categories now
        close(engine, kept)
        self._begin(engine)
        self._retired = dict.fromkeys(kept.tolist())
        if search is not None:
            self._search_state = search

    def _moved_to(self, model: Model, number: Nodes) -> Engine:
        """An engine of another model, with what has been observed of the nodes that have these numbers there.

        What is at no number any more is forgotten.
        """
        engine, mine = engine_for(model), self._engine.model
        nodes, table = self._evidence()
        kept = number[nodes] >= 0
        nodes, table = nodes[kept], table[kept]
        leaves = number[nodes]
        check_same_drift(mine, model, self._classes[nodes], leaves)
        engine.advance(self._clock.elapsed)
        engine.place(*self._engine.kind.moved(leaves, table, mine, model))
        engine.take_extra(self._engine.extra_arrays())
        engine.settle_again()
        return engine

    def _evidence(self) -> tuple[Nodes, Floats]:
        """The actions that rows of evidence are of, in node order, and the rows."""
        self._check_whole()
        nodes, table = self._engine.evidence_rows()
        observed = np.flatnonzero(table[:, 0] > 0.0)
        order = observed[np.argsort(nodes[observed], kind="stable")]
        return nodes[order], table[order]

    # -- single changes ------------------------------------------------------------------------

    def _add(self, names: Sequence[Any], under: Any, covariance: Any = None, labels: Any = None) -> None:
        """Add actions below a node; `labels` has their levels of crossed factors, by the factor's name."""
        with self._lock:
            catalogue, engine = self._catalogue, self._engine
            self._check_whole()
            self._check_by_place("add")
            if not len(names):
                return
            catalogue.check_new(names)
            parent = catalogue.index(under)
            if catalogue.is_action(parent):
                self._check_untried(under)
            depth = catalogue.depth(parent) + 1
            factors = labelled(engine.model, names, labels)
            class_ = self._class_at(depth, covariance)
            if self._engine is not engine:  # but another one, with one more class
                catalogue, engine = self._catalogue, self._engine
                parent = catalogue.index(under)
            self._answers.clear()
            self._retired.pop(parent, None)  # a category is not chosen anyway
            if depth > catalogue.tree.height or engine.model.effects is not None:
                self._edit(add=dict.fromkeys(names, under), class_=class_, factors=factors)
                return
            self._search_state.note_leaf_class(class_)
            for name in names:
                engine.add(catalogue.tree.n_nodes + len(self._added_classes), parent, class_)
                self._added_classes.append(class_)
                catalogue.add(name, parent)

    def _move(self, name: Any, under: Any) -> None:
        """Move an action, or a category with all that is below it."""
        with self._lock:
            catalogue, engine = self._catalogue, self._engine
            self._check_whole()
            self._check_by_place("move")
            node, parent = catalogue.checked_move(name, under)
            depth, old_parent = catalogue.depth(parent) + 1, catalogue.parent(node)
            if old_parent == parent:
                return
            by_depth = engine.model.classes.kind == "depth"
            if by_depth and catalogue.is_action(node):
                check_reaches(engine.model.classes, depth)
            self._answers.clear()
            is_last = catalogue.n_children(old_parent) == 1
            has_effects = engine.model.effects is not None  # which are kept by place in the tree
            if not catalogue.is_action(node) or is_last or depth > catalogue.tree.height or has_effects:
                self._edit(move={name: under})
                return
            class_ = depth if by_depth else int(self._class_of(node))
            if engine.weight(node) > 0.0:
                table = engine.model.classes.table
                _check_same_variance(engine.model, name, table[self._class_of(node)], table[class_])
            slot = engine.touch(np.array([node], dtype=np.int32))[0]
            self._search_state.note_leaf_class(class_)
            new = catalogue.tree.n_nodes + len(self._added_classes)
            engine.add(new, parent, class_)
            self._added_classes.append(class_)
            catalogue.move(node, parent)
            engine.relocate(node, new)
            engine.slots.choosable[slot] = False
            engine.news.of_one(node)
            if node in self._retired:
                close(engine, np.array([new], dtype=np.int32))
                self._retired = {new if one == node else one: None for one in self._retired}

    def _check_untried(self, name: Any) -> None:
        """Refuse an action with rewards, below which something is to be added."""
        if self._engine.weight(self._catalogue.action_node(name)) > 0.0:
            raise ValueError(
                f"{name!r} is an action with rewards, and nothing can be added below it; add a category, move {name!r} "
                "below it, and add the rest there"
            )

    def _class_of(self, node: int) -> int:
        n = self._catalogue.tree.n_nodes
        return int(self._engine.model.classes.of_node[node]) if node < n else self._added_classes[node - n]

    def _check_by_place(self, verb: str) -> None:
        if self._engine.model.classes.kind == "height":
            raise ValueError(
                f"covariances go by height, and to {verb} one node may change those of others; give the whole new tree "
                "to adopt"
            )

    def _class_at(self, depth: int, covariance: Any) -> int:
        """The covariance class of a node that is added at a depth; the model may get one more class for it."""
        model = self._engine.model
        if model.classes.kind == "depth":
            if covariance is not None:
                raise ValueError(
                    f"covariance is {covariance!r:.60}, and here a node has that of its depth; leave it out, or adopt "
                    "a model with by_node"
                )
            check_reaches(model.classes, depth)
            return depth
        if covariance is None:
            raise ValueError("each node has a covariance of its own here; give covariance=, that of what is added")
        classes, class_ = class_with(model.classes, covariance, model.dim, model.is_scalar)
        if classes is not model.classes:
            self._fold()
            model = self._engine.model
            classes, class_ = class_with(model.classes, covariance, model.dim, model.is_scalar)
            self._become(replace(model, covariance=classes), np.arange(model.tree.n_nodes, dtype=np.int32))
        return class_

    def _edit(
        self, add: Any = None, move: Any = None, class_: int = 0, factors: Mapping[str, Factor] | None = None
    ) -> None:
        """Make another tree, with these changes; `factors` label what is added."""
        self._fold()
        model = self._engine.model
        edited = edit(model.tree, add, move)
        number, class_of = edited.number, model.classes.of_node
        if add:
            new = np.array([edited.tree.index(name) for name in add], dtype=np.int32)
            number, class_of = np.append(number, new), np.append(class_of, np.full(len(new), class_, dtype=np.int32))
        self._become(with_labels(model.rehung(edited.tree, number, class_of), factors or {}), number)

    def _add_levels(self, factor: Any, levels: Sequence[Any]) -> None:
        """Have more levels of a crossed factor, all of them or none."""
        with self._lock:
            self._check_whole()
            model = self.model
            for level in levels:
                if model.effects is None:
                    raise ValueError(f"the model has no factors, and so no {factor!r:.60}")
                model = replace(model, factors=model.effects.with_level(factor, level))
            self._answers.clear()
            self._become(model, np.arange(model.tree.n_nodes, dtype=np.int32))

    def _retire(self, names: Sequence[Any]) -> None:
        """Have actions never chosen again; what they taught stays."""
        with self._lock:
            fresh = self._catalogue.to_retire(names, self._retired)
            self._answers.clear()
            close(self._engine, np.array(fresh, dtype=np.int32))
            self._retired |= dict.fromkeys(fresh)

    def _restore(self, names: Sequence[Any]) -> None:
        """Have retired actions chosen again."""
        with self._lock:
            slots = self._engine.slots
            for node in self._catalogue.to_restore(names, self._retired):
                del self._retired[node]
                slots.choosable[slots.find_one(node)] = True
                self._engine.news.of_one(node)

    def _forget(self, names: Sequence[Any]) -> None:
        """Have no evidence of actions, as if they had never been tried."""
        with self._lock:
            self._check_whole()
            nodes = [self._catalogue.action_node(name) for name in names]
            self._answers.clear()
            self._engine.forget_all(np.unique(nodes).astype(np.int32))

    @property
    def retired(self) -> list[Hashable]:
        """The names of the actions that are never chosen, in the order in which they were retired.

        >>> import bough
        >>> bough.Posterior(bough.GaussianModel(bough.Tree.from_nested(["left", "right"]))).retired
        []
        """
        with self._lock:
            return [self._catalogue.name(node) for node in self._retired]

    # -- a new table ---------------------------------------------------------------------------

    def _adopt(
        self,
        given: Tree | Model,
        renamed: Mapping[Hashable, Hashable] | None,
        gone: Gone,
        star: Reduction | None = None,
        labels: Mapping[str, Any] | None = None,
    ) -> tuple[Model, Changes]:
        """Go on with tonight's table: the model on its tree, and what has changed. Long work is done without the lock.

        `star` is for a posterior that has the actions of a tree below one root, and `labels` has their levels of
        crossed factors.
        """
        for _ in range(_MOST_TRIES):
            adopted = self._try_to_adopt(given, renamed, gone, star, labels)
            if adopted is not None:
                return adopted
        with self._lock:  # single changes never cease, and have to wait
            adopted = self._try_to_adopt(given, renamed, gone, star, labels)
            assert adopted is not None
            return adopted

    def _try_to_adopt(
        self,
        given: Tree | Model,
        renamed: Mapping[Hashable, Hashable] | None,
        gone: Gone,
        star: Reduction | None,
        labels: Mapping[str, Any] | None,
    ) -> tuple[Model, Changes] | None:
        """`_adopt`, unless the catalogue changed while the table was compared: None then, and nothing is done."""
        with self._lock:
            self._check_whole()
            engine, catalogue, classes = self._engine, self._catalogue.copy(), self._classes
            retired = np.array(list(self._retired), dtype=np.int32)
        old, number = engine.model, np.arange(engine.model.tree.n_nodes, dtype=np.int32)
        if catalogue.is_changed:
            tree, number = catalogue.folded()
            old = engine.model.rehung(tree, number, classes)
        if star is not None:
            old, number = star.whole, star.nodes(old.tree)
        plan = plan_adoption(old, given, number[retired], renamed, gone, self._weights_of(engine, number), labels)
        number, kept, model = np.where(number < 0, -1, plan.number[number]), plan.retired, plan.model
        if star is not None:
            model, place = star.on(plan.model)
            number, kept = np.where(number < 0, -1, place[number]), place[kept]
        search = Search(model)
        search.prepared()
        with self._lock:
            if self._engine is not engine or not self._is_as_it_was(catalogue, retired):
                return None
            if gone != "forget" and (number[self._evidence()[0]] < 0).any():  # a reward came meanwhile
                return None
            self._become(model, number.astype(np.int32), kept, search)
        return plan.model, plan.changes

    def _weights_of(self, engine: Engine, nodes: Nodes) -> Callable[[int], float]:
        """What says how much has been observed of an action, by the number that it has in `nodes`."""

        def weight(number: int) -> float:
            with self._lock:
                return engine.weight(int(np.flatnonzero(nodes == number)[0]))

        return weight

    def _is_as_it_was(self, catalogue: Catalogue, retired: Nodes) -> bool:
        return self._catalogue.n_changes == catalogue.n_changes and retired.tolist() == list(self._retired)

    def _take_model(self, model: Model) -> bool:
        """Go on with a model on the present tree, unless that is another one by now; whether it was done."""
        with self._lock:
            if self._catalogue.is_changed or self._engine.model.tree is not model.tree:
                return False
            self._become(model, np.arange(model.tree.n_nodes, dtype=np.int32))
            return True


def close(engine: Engine, nodes: Nodes) -> None:
    """Have actions never chosen."""
    slots = engine.touch(nodes)
    engine.slots.choosable[slots] = False
    engine.news.of_some(nodes)


def _check_same_variance(model: Model, name: Any, old: Any, new: Any) -> None:
    """Refuse a move that would change the variance of an action that drifts, and has evidence."""
    if model.drift_half_life is not None and old != new:
        raise ValueError(
            f"the variance of {name!r} would be {new:g} and was {old:g}; with drift that needs the log: give it to a "
            "new agent"
        )
