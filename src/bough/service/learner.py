"""What an experiment has learned: an agent that changes only by what the log has, in the log's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from bough.data.rows import checked_context, checked_levels, checked_levels_of_decision
from bough.model.covariance import by_depth, by_height
from bough.model.model import Model
from bough.policies.thompson import HierTS
from bough.policies.warm_up import warm_up
from bough.service.problems import Problem, refused
from bough.service.records import ChangeRow, Factors, Name, OutcomeRow, Position
from bough.service.schema import ExperimentConfig
from bough.service.trials import trial
from bough.tree.tree import Tree

_ONE_BY_ONE = 64  # rewards: with fewer, a batch takes longer than each by itself
Refused = list[tuple[Position, str]]


class Learner:
    """The agent of an experiment, and how far in the log it has learned."""

    def __init__(self, id: int, name: str, config: ExperimentConfig, seed: Any = None) -> None:
        self.id, self.name, self.config = id, name, config
        self.agent: HierTS | None = None
        self.base: Model | None = None
        """The model as the file of its version has it; single changes of the catalogue leave it as it is."""
        self.model_version = 0
        self.created = 0.0
        self.position = Position()
        self.last_change = Position()
        self.n_learned = 0
        """How many records were learned from."""
        self.options: dict[str, Any] = {}
        """What an agent's file says of how it decides."""
        self._seed = seed

    def ready_agent(self) -> HierTS:
        """The agent; a problem where there is none yet."""
        if self.agent is None:
            raise Problem(
                "no-model",
                f"the experiment {self.name!r} has no model yet; put one at /v1/{self.name}/model",
                remedy=f"put one at /v1/{self.name}/model",
            )
        return self.agent

    # -- rewards -----------------------------------------------------------------------------------

    def learn(self, rows: Sequence[OutcomeRow]) -> Refused:
        """Learn from outcomes, in the order of the log; those that could not be learned, and why."""
        taught = [row for row in rows if row.learn]
        together = len(taught) > _ONE_BY_ONE and not any(row.kind == "retracted" for row in taught)
        refused_rows = self._learn_together(taught) if together else self._learn_each(taught)
        self.n_learned += len(taught) - len(refused_rows)
        if rows:
            self.position = max(self.position, rows[-1].position)
        return refused_rows

    def _learn_each(self, rows: Sequence[OutcomeRow]) -> Refused:
        refused_rows: Refused = []
        fades = self.config.half_life is not None
        for row in rows:
            try:
                agent = self.ready_agent()
                if row.kind == "retracted":
                    _retract(agent, row, fades)
                elif fades or row.trials is not None or row.exposure is not None or row.factors is not None:
                    at = row.earned if fades else None
                    factors = known_factors(agent._model, row.factors)
                    more: dict[str, Any] = {"trials": row.trials, "exposure": row.exposure, "factors": factors}
                    agent.update(row.action, row.value, row.context, at=at, **more)
                else:
                    agent.update(row.action, row.value, row.context)
            except Exception as error:  # whatever it is: one row must not keep the service from learning, or starting
                refused_rows.append((row.position, _reason(error)))
        return refused_rows

    def _learn_together(self, rows: Sequence[OutcomeRow]) -> Refused:
        """Learn from many outcomes at once; counts are left to be settled later."""
        try:
            agent = self.ready_agent()
            model = agent._model
            columns: dict[str, Any] = {}
            if not model.is_scalar:
                columns["context"] = np.array([checked_context(model, row.context) for row in rows])
            for name in ("trials", "exposure"):
                given = [getattr(row, name) for row in rows]
                if any(one is not None for one in given):
                    columns[name] = np.array([1.0 if one is None else one for one in given])
            if model.effects is not None and model.effects.decided:
                columns["factors"] = {
                    name: [(row.factors or {}).get(name) for row in rows] for name, _, _ in model.effects.decided
                }
            if self.config.half_life is not None:
                columns["at"] = np.array([row.earned for row in rows])
            actions, values = [row.action for row in rows], np.array([row.value for row in rows])
            agent.update(actions, values, **columns, settle=False)
        except Exception:  # nothing has changed: some of them cannot be learned
            return self._learn_each(rows)
        return []

    def settle(self) -> None:
        """Refine what was learned in batches, where rewards are counts."""
        if self.agent is not None and self.agent._model.is_scalar:
            self.agent.posterior.settle()

    def restore(self, agent: HierTS, base: Model, header: dict[str, Any]) -> None:
        """Go on from a snapshot, whose header says how far it has learned."""
        self.agent, self.base = agent, base
        self.config = checked_config(header["config"])
        self.position, self.last_change = Position(*header["position"]), Position(*header["last_change"])
        self.model_version, self.n_learned = int(header["model_version"]), int(header["n_learned"])
        self.options = header["options"]

    @property
    def header(self) -> dict[str, Any]:
        """What a snapshot says beside the agent."""
        return {
            "config": msgspec.to_builtins(self.config),
            "position": list(self.position),
            "last_change": list(self.last_change),
            "model_version": self.model_version,
            "n_learned": self.n_learned,
            "options": self.options,
        }

    # -- changes -----------------------------------------------------------------------------------

    def apply(self, change: ChangeRow, file: Any = None) -> None:
        """Make a change that is in the log; `file` is the tree, the model or the agent that it names.

        A `ValueError`, `KeyError` or `Problem`, and nothing changes, where it cannot be made.
        """
        try:
            self.agent = self._changed(self.agent, change, file)
        finally:
            self.position = max(self.position, change.position)
            self.last_change = max(self.last_change, change.position)
        if change.kind == "model":
            self.model_version = int(change.body["version"])
            self.base = file if isinstance(file, Model) else file._model
        elif change.kind == "config":
            self.config = checked_config(change.body["config"])

    def check(self, change: ChangeRow, file: Any = None) -> None:
        """Refuse a change that could not be made, before it is in the log."""
        try:
            if change.kind == "config":
                self._check_config(checked_config(change.body["config"]))
            else:
                if change.kind == "model" and self.agent is not None:
                    # Here and not in apply: the log may have one that was accepted before this was looked at.
                    _check_for_requests(file if isinstance(file, Model) else file._model)
                if change.kind in ("tree", "action") and self.agent is not None:
                    _check_labels(self.agent._model, change.body)
                self._changed(None if self.agent is None else trial(self.agent), change, file)
        except KeyError as error:  # of a model, a level that was observed and that it does not have
            raise refused(error, "invalid-value" if change.kind == "model" else "unknown-action") from None
        except ValueError as error:
            raise refused(error, "conflict" if change.kind == "config" else "invalid-value") from None

    def check_retractions(self, rows: Sequence[OutcomeRow]) -> None:
        """Refuse to take back what the model cannot take back."""
        agent = trial(self.ready_agent())
        try:
            for row in rows:
                check_factors(agent._model, known_factors(agent._model, row.factors))
                _retract(agent, row, self.config.half_life is not None)
        except KeyError as error:
            raise refused(error, "unknown-action") from None
        except ValueError as error:
            raise refused(error, "conflict") from None

    def _check_config(self, config: ExperimentConfig) -> None:
        if self.agent is not None and config.half_life != self.config.half_life:
            raise ValueError(
                f"half_life is {config.half_life!r}, and that of the experiment is {self.config.half_life!r}; "
                "it stays what it is: make another experiment"
            )
        if self.agent is not None and config.default is not None:
            likelihood = self.agent._model.likelihood
            if not likelihood.is_plain(config.default):
                raise ValueError(f"default is {config.default:g}, which is no reward of this model; give one that is")

    def _changed(self, agent: HierTS | None, change: ChangeRow, file: Any) -> HierTS | None:
        """The agent after a change; the same one, changed, or another."""
        body = change.body
        if change.kind == "model" and (agent is None or body.get("afresh")):
            return self._begun(file)
        if change.kind in ("config", "key"):
            return agent
        if change.kind == "prune":
            self._check_pruned(body)
            return agent
        agent = self.ready_agent() if agent is None else agent
        if change.kind == "model":
            model = file if isinstance(file, Model) else file._model
            if body.get("refit"):
                model = _on_tree_of(agent.posterior.model, model)
            agent.adopt(model, gone=body.get("gone", "retire"))
        elif change.kind == "tree":
            assert isinstance(file, Tree)
            more = {"renamed": body.get("renamed"), "gone": body.get("gone", "retire")}
            agent.adopt(file, **more, factors=body.get("factors"))
        elif change.kind == "action":
            _change_action(agent, body)
        elif change.kind == "tick":
            if self.config.half_life is not None and (agent.now is None or body["now"] > agent.now):
                agent.now = float(body["now"])
        else:
            raise ValueError(f"there is no change of the kind {change.kind!r}; a newer bough may have made it")
        return agent

    def _check_pruned(self, body: dict[str, Any]) -> None:
        """Refuse to go on in silence where rows were deleted that no snapshot had held."""
        if self.n_learned < body["n_learned"]:
            raise ValueError(
                f"{body['n_learned'] - self.n_learned:,} rewards that were learned are deleted, and no good snapshot "
                "holds them; put the snapshots back from a backup, and start again"
            )

    def _begun(self, file: Any) -> HierTS:
        """An agent that begins with a model, or goes on from an agent's file, with random numbers of its own."""
        half_life = self.config.half_life
        if isinstance(file, Model):
            if file.drift_half_life is not None:
                raise ValueError(
                    "the model drifts, and rewards come out of order here, which drift does not allow; "
                    "give a model without drift, and the experiment a half_life"
                )
            _check_for_requests(file)
            return HierTS(file, seed=self._seed, half_life=half_life)
        _check_for_requests(file._model)
        self.options = {name: value for name, value in file._options.items() if name != "refit"}
        return HierTS.resume(file.posterior, seed=self._seed, **self.options, half_life=half_life)


def warm(file: Any, half_life: float | None) -> None:
    """Have the kernels for a model, or an agent, of a file be there, before decisions would have to wait for them."""
    model = file if isinstance(file, Model) else file._model
    warm_up(HierTS(model, half_life=half_life))


def prune_body(until: Position, n_learned: int) -> dict[str, Any]:
    """What the log says of rows that are about to be deleted."""
    return {"until": list(until), "n_learned": n_learned}


def checked_config(body: dict[str, Any]) -> ExperimentConfig:
    """A configuration from the log."""
    try:
        return msgspec.convert(body, ExperimentConfig)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


def known_factors(model: Model, factors: Factors | None) -> Factors | None:
    """The levels of a logged decision that a model asks for: it may have been made under another one."""
    if factors is None or model.effects is None:
        return None
    return {name: factors[name] for name, _, _ in model.effects.decided if name in factors}


def check_factors(model: Model, factors: Factors | None, needed: bool = False) -> None:
    """Refuse factors that are none of the decision, or have no such level: a `Problem` that has the name as its value.

    Where all of them are needed, as they are to learn a reward, one that is missing is refused as well.
    """
    for name, level in (factors or {}).items():
        try:
            checked_levels_of_decision(model, {name: level})
        except KeyError as error:
            raise refused(error, value=level) from None
        except ValueError as error:
            raise refused(error, value=name) from None
    if needed:
        try:
            checked_levels(model, factors, 1)
        except ValueError as error:
            raise refused(error) from None


def _check_labels(model: Model, body: dict[str, Any]) -> None:
    """Refuse factors, and levels of new actions, that a change of the catalogue names and the model does not have."""
    op, factor, factors = body.get("op"), body.get("factor"), body.get("factors") or {}
    if op == "add_level":
        factors = {} if factor is None else {factor: []}
    if model.effects is None or op not in (None, "add", "add_level"):  # which the change itself refuses
        return
    for name, labels in factors.items():
        try:
            known = model.effects.factor(name)
        except KeyError as error:
            raise refused(error, value=name) from None
        for level in _flat(labels) if op == "add" and not known.at_decision else ():
            try:
                known.code(level, name)
            except KeyError as error:
                raise refused(error, value=level) from None


def _flat(labels: Any) -> list[Any]:
    """The levels of one action, or of several, one after the other."""
    parts = labels.values() if isinstance(labels, dict) else labels if isinstance(labels, list) else None
    return [labels] if parts is None else [level for part in parts for level in _flat(part)]


def _check_for_requests(model: Model) -> None:
    """Refuse actions, and levels of decisions, that requests cannot name."""
    check_names(model.tree)
    for name, factor, _ in () if model.effects is None else model.effects.decided:
        odd = next((level for level in factor.levels if not isinstance(level, (str, int))), None)
        if odd is not None:
            raise ValueError(
                f"the factor {name!r} of the decision has the level {odd!r}; the service takes text and whole numbers"
            )


def check_names(tree: Tree) -> None:
    """Refuse names that JSON would change."""
    for name in tree.actions:
        if not isinstance(name, (str, int, np.str_, np.integer)) or isinstance(name, bool):
            what = f"an action is called {name!r}, a {type(name).__name__}"
            raise ValueError(f"{what}; the service takes text and whole numbers")


def _on_tree_of(model: Model, fitted: Model) -> Model:
    """The prior of a refit, on the tree that there is now: the catalogue may have changed while it was learned."""
    classes = fitted.classes
    prior = by_depth(list(classes.table)) if classes.kind == "depth" else by_height(list(classes.table))
    factors = {
        name: one.with_variance(fitted.factors[name].variance) if name in fitted.factors else one
        for name, one in model.factors.items()
    }
    return replace(fitted, tree=model.tree, covariance=prior, factors=factors)


def _change_action(agent: HierTS, body: dict[str, Any]) -> None:
    op, names, under = body["op"], body["names"], body.get("under")
    factors, factor = body.get("factors"), body.get("factor")
    for what, given, of in (("factors", factors, "add"), ("factor", factor, "add_level")):
        if given is not None and op != of:
            raise ValueError(f"{what} is given, which goes with the op {of}, and op is {op!r}; leave it out")
    if op == "add_level":
        if factor is None:
            raise ValueError("factor is missing; say which factor has the new levels")
        agent.add_level(factor, names)
        return
    if op in ("add", "move"):
        if under is None:
            raise ValueError(f"under is missing; say below which category to {op}")
        if op == "add":
            agent.add(names, under, factors=_by_own_names(factors, names))
        else:
            for name in names:
                agent.move(name, under)
    elif op in ("retire", "restore", "forget"):
        getattr(agent, op)(names)
    else:
        raise ValueError(f"op is {op!r}; give add, retire, restore, forget, move or add_level")


def _by_own_names(factors: dict[str, Any] | None, names: list[Name]) -> dict[str, Any] | None:
    """The levels of actions by their names; JSON has those that are numbers as text."""
    own = {str(name): name for name in names}
    if factors is None:
        return None
    return {
        factor: {own.get(name, name): level for name, level in labels.items()} if isinstance(labels, dict) else labels
        for factor, labels in factors.items()
    }


def _retract(agent: HierTS, row: OutcomeRow, fades: bool) -> None:
    at = row.earned if fades else None
    size = {"trials": row.trials, "exposure": row.exposure}
    agent.retract(row.action, row.value, row.context, **size, at=at, factors=known_factors(agent._model, row.factors))


def _reason(error: Exception) -> str:
    return str(error.args[0]) if error.args else type(error).__name__
