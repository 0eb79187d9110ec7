"""What happens to an agent in a shop: products come and go, move and return, and time passes."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from bough import _checks
from bough._arrays import Nodes
from bough.data.rows import refuse_factors
from bough.inference.adoption import Gone
from bough.model.model import Model
from bough.policies.base import as_list
from bough.policies.logged import LoggedPolicy
from bough.posterior import Posterior
from bough.tree.catalogue import Catalogue
from bough.tree.changes import Changes
from bough.tree.editing import edit
from bough.tree.tree import Tree

if TYPE_CHECKING:
    from bough.learning.online import Refit


class Star:
    """The whole tree of a policy that reasons with its actions below one root."""

    def __init__(self, whole: Model, assumed: Callable[[Model], Model]) -> None:
        self.whole = whole
        self._assumed = assumed

    def nodes(self, tree: Tree) -> Nodes:
        """Where in the whole tree the nodes of the star are."""
        nodes = np.zeros(tree.n_nodes, dtype=np.int32)
        nodes[tree.leaves] = self.whole.tree.leaves
        return nodes

    def on(self, whole: Model) -> tuple[Model, Nodes]:
        """The star of another whole, and where in it the nodes of that are; -1 inside."""
        star = self._assumed(whole)
        place = np.full(whole.tree.n_nodes, -1, dtype=np.int32)
        place[0] = 0
        place[whole.tree.leaves] = star.tree.leaves
        return star, place


class LivingPolicy(LoggedPolicy):
    """A policy with a posterior whose catalogue changes."""

    posterior: Posterior
    _star: Star | None
    _refit: Refit | None

    @property
    def _model(self) -> Model:
        return self.posterior._engine.model

    @property
    def _catalogue(self) -> Catalogue:
        return self.posterior._catalogue

    @property
    def _retired(self) -> Mapping[int, None]:
        return self.posterior._retired

    @property
    def _moment(self) -> AbstractContextManager[Any]:
        return self.posterior._lock  # type: ignore[no-any-return]

    @property
    def _n_seen(self) -> int:
        return self.posterior.n_observations

    @property
    def _time(self) -> Any:
        return self.posterior._clock.now

    @property
    def _learning(self) -> AbstractContextManager[Any]:
        """A lock that keeps refits away; it is taken before that of the moment, never after it."""
        return nullcontext() if self._refit is None else self._refit.lock

    def _prepare(self) -> None:
        self.posterior._fold()

    # -- time ----------------------------------------------------------------------------------

    @property
    def now(self) -> Any:
        """The present time on the user's own clock: a number or a datetime; None before any was given.

        Set it as time passes; it never goes back. It matters to a policy with a `half_life`, and where the model's
        actions drift.

        >>> import bough
        >>> model = bough.GaussianModel(bough.Tree.from_nested(["left", "right"]))
        >>> agent = bough.HierTS(model, seed=0, half_life=30.0)
        >>> agent.now = 12.5
        >>> agent.update("left", 1.0, at=11.0)
        >>> agent.now = 72.5
        >>> agent.posterior.statistics.count.round(3)
        array([0.241])
        """
        return self.posterior.now

    @now.setter
    def now(self, time: Any) -> None:
        self.posterior.now = time

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
        """Take back a reward that was observed, such as that of a refund; as `Posterior.retract`.

        >>> import bough
        >>> agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])), seed=0)
        >>> agent.update("left", 20.0)
        >>> agent.retract("left", 20.0)
        >>> agent
        HierTS(n_actions=2, n_observations=0)
        """
        given = {"trials": trials, "exposure": exposure, "at": at, "factors": factors}
        self.posterior.retract(action, reward, context, **given)

    # -- single changes ------------------------------------------------------------------------

    def add(self, name: Any, under: Any, *, covariance: Any = None, factors: Mapping[str, Any] | None = None) -> None:
        """Add an action, or a list of them, below a category; it starts from what is known of its place.

        What is added has no children, and so is an action. Adding below an action that has no rewards makes that a
        category: add a new category first, and then what goes below it. The prior is that of the depth; where each
        node has a covariance of its own, give `covariance`. `factors` has its levels of the model's crossed factors,
        ``{"brand": "Acme"}``; of a list of actions, a list of levels.

        >>> import bough
        >>> tree = bough.Tree.from_paths(["home/kitchen/kettle", "home/garden/spade"])
        >>> agent = bough.HierTS(bough.GaussianModel(tree), seed=0)
        >>> agent.add("home/tools", under="home")
        >>> agent.add(["saw", "drill"], under="home/tools")
        >>> agent.posterior.model.tree.path("saw")
        ['', 'home', 'home/tools', 'saw']
        """
        names = as_list(name)
        if self._star is None:
            self.posterior._add(names, under, covariance, factors)
            return
        refuse_factors(factors)
        if covariance is not None:
            raise ValueError(f"covariance is given; a {type(self).__name__} takes it from the depth, so leave it out")
        with self._learning, self._moment:
            whole = Catalogue(self._star.whole.tree)
            whole.check_new(names)
            if whole.is_action(whole.index(under)):
                self.posterior._check_untried(under)
            self._edit_whole(self._star, add=dict.fromkeys(names, under))

    def add_level(self, factor: str, level: Any) -> None:
        """Have one more level of a crossed factor, such as a new brand or store, or a list of them.

        Nothing is known of its effect yet. What has been learned is arranged anew, which takes as long as loading the
        agent does.

        >>> import bough
        >>> brand = bough.Factor({"kettle": "Acme"})
        >>> tree = bough.Tree.from_nested({"kitchen": ["kettle", "toaster"]})
        >>> agent = bough.HierTS(bough.GaussianModel(tree, factors={"brand": brand}), seed=0)
        >>> agent.add_level("brand", "newcomer")
        >>> agent.add("mug", under="kitchen", factors={"brand": "newcomer"})
        >>> agent.posterior.effects("brand", "polars")["level"].to_list()
        ['Acme', 'newcomer']
        """
        with self._learning:
            self.posterior._add_levels(factor, as_list(level))

    def move(self, name: Any, under: Any) -> None:
        """Move an action, or a category with all that is below it, below another category.

        What was observed goes with it: its old relatives unlearn it, and the new ones learn it. A category that has
        nothing below it any more goes.

        >>> import bough
        >>> tree = bough.Tree.from_paths(["home/kitchen/kettle", "home/garden/spade", "home/garden/rake"])
        >>> agent = bough.HierTS(bough.GaussianModel(tree), seed=0)
        >>> agent.move("home/garden/spade", under="home/kitchen")
        >>> agent.posterior.model.tree.path("home/garden/spade")
        ['', 'home', 'home/kitchen', 'home/garden/spade']
        """
        if self._star is None:
            self.posterior._move(name, under)
            return
        with self._learning, self._moment:
            Catalogue(self._star.whole.tree).checked_move(name, under)
            self._edit_whole(self._star, move={name: under})

    def _edit_whole(self, star: Star, add: Any = None, move: Any = None) -> None:
        """Change the whole tree, and go on with the actions that it has then."""
        whole = star.whole
        if whole.classes.kind != "depth":
            raise ValueError(f"covariances go by {whole.classes.kind}; give the whole new model to adopt")
        edited = edit(whole.tree, add, move)
        new = whole.rehung(edited.tree, edited.number)
        model, place = star.on(new)
        number = edited.number[star.nodes(self._catalogue.tree)]
        self.posterior._answers.clear()
        self.posterior._become(model, np.where(number < 0, -1, place[number]).astype(np.int32))
        star.whole = new
        self._refit_to(model)

    def retire(self, name: Any) -> None:
        """Never choose an action again, or a list of them; what it taught its category stays, and it can return.

        >>> import bough
        >>> agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_nested(["left", "middle", "right"])), seed=0)
        >>> agent.retire(["left", "middle"])
        >>> agent.decide()
        'right'
        """
        self.posterior._retire(as_list(name))

    def restore(self, name: Any) -> None:
        """Choose a retired action again, or a list of them, with all that was learned of it.

        >>> import bough
        >>> agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])), seed=0)
        >>> agent.retire("left")
        >>> agent.restore("left")
        >>> agent.retired
        []
        """
        self.posterior._restore(as_list(name))

    def forget(self, name: Any) -> None:
        """Have an action, or a list of them, be as if never tried; nothing happens where nothing was observed.

        >>> import bough
        >>> agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])), seed=0)
        >>> agent.update(["left", "right"], [5.0, 1.0])
        >>> agent.forget("left")
        >>> agent.posterior.statistics.actions.tolist()
        ['right']
        """
        self.posterior._forget(as_list(name))

    # -- a new table ---------------------------------------------------------------------------

    def adopt(
        self,
        tree_or_model: Tree | Model,
        renamed: Mapping[Hashable, Hashable] | None = None,
        gone: Gone = "retire",
        *,
        factors: Mapping[str, Any] | None = None,
    ) -> Changes:
        """Go on with a new tree, such as that of tonight's product table, or with a new model; what has changed.

        Names say which action is which; `renamed` maps old names of actions to new ones. What was observed goes to
        where its action is now. Actions that are gone from the table are retired, and stay below the category that
        they had; with ``gone="forget"`` they are removed with their rewards, and ``gone="raise"`` refuses the table.
        A retired action that the table lists is restored; the agent's own tree, `agent.posterior.model.tree`, is no
        table, and leaves all as it is. With a tree the prior stays what it is, by depth or height. `factors` has the
        levels that actions of the table have of the model's crossed factors, as labels of a `Factor`: a column is for
        all actions, and known ones that a mapping leaves out keep their levels. New levels are added. Factors are
        taken too, such as `model.factors`, but for their variances, which stay the agent's.

        >>> import bough
        >>> old = bough.Tree.from_nested({"kitchen": ["kettle", "toaster"], "garden": ["spade", "kite"]})
        >>> agent = bough.HierTS(bough.GaussianModel(old), seed=0)
        >>> agent.update(["kettle", "kite"], [1.0, 2.0])
        >>> new = bough.Tree.from_nested({"kitchen": ["kettle-2", "toaster"], "tools": ["spade", "saw"]})
        >>> print(agent.adopt(new, renamed={"kettle": "kettle-2"}))
        added 1: 'saw'
        retired 1: 'kite'; restored 0; forgotten 0
        moved 1: 'spade'; renamed 1: 'kettle' to 'kettle-2'
        """
        _checks.one_of("gone", gone, ("retire", "forget", "raise"))
        if renamed is not None and not isinstance(renamed, Mapping):
            raise ValueError(f"renamed is {reprlib.repr(renamed)}; give a mapping from old names to new ones")
        mine = self._model
        if isinstance(tree_or_model, Model):
            if type(tree_or_model) is not type(mine) or np.shape(tree_or_model.mean) != np.shape(mine.mean):
                raise ValueError(f"the agent has {mine!r}, and was given {tree_or_model!r}; give one with such rewards")
            tree_or_model = tree_or_model.with_features_of(mine)
        elif not isinstance(tree_or_model, Tree):
            raise ValueError(f"a {type(tree_or_model).__name__} was given; give a bough.Tree or a model on one")
        if self._star is None:
            _, changes = self.posterior._adopt(tree_or_model, renamed, gone, labels=factors)
            if isinstance(tree_or_model, Model):
                self._refit_to(self.posterior.model)
            return changes
        refuse_factors(factors)
        with self._learning, self._moment:  # the whole tree and the posterior's change together
            self._star.whole, changes = self.posterior._adopt(tree_or_model, renamed, gone, self._star)
            self._refit_to(self.posterior.model)
            return changes

    def _refit_to(self, model: Model) -> None:
        """Have refits begin at another model."""
        if self._refit is not None:
            self._refit.begin_at(model, self.posterior)
