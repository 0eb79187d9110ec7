"""schemathesis on a running service: all its phases, by the OpenAPI document that the service gives out itself."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.core.transport import Response
from schemathesis.engine import events, from_schema
from schemathesis.generation.case import Case

from service_process import PATIENCE, ServiceProcess

PHASES = {"examples", "coverage", "fuzzing", "stateful"}
_LEFT_OUT = {
    "positive_data_acceptance": "which actions there are, and what the model takes, is in no schema",
}
_WHILE_ALL_IS_WELL = {"no-model"}
"""The codes of status 503 that a service that lacks nothing may answer with: the experiment has no model yet."""


class Conformance(NamedTuple):
    """What came of a run."""

    wrong: list[str]
    """What did not go by the document, in words, with the request."""
    requests: Counter[str]
    """By phase."""
    answers: Counter[tuple[str, int]]
    """By operation and status."""


def conform(
    service: ServiceProcess,
    experiment: str,
    *,
    examples: int,
    seed: int = 1,
    with_key: bool = True,
    context: dict[str, Any] | None = None,
    most_rewards: int = 10_001,
) -> Conformance:
    """Have schemathesis ask the service for all that its document has, and for much that it has not.

    `context` is what decisions are asked for in where schemathesis has not thought of one. Batches of more than
    `most_rewards` are left out: one of thousands takes as long as a hundred other requests.
    """
    schema = schemathesis.openapi.from_url(
        f"http://127.0.0.1:{service.port}/openapi.json",
        config=SchemathesisConfig.from_dict(_config(service, experiment, examples, seed, with_key)),
    )
    own = service.ask("GET", "/v1/keys").body["keys"][0]["id"]

    @schema.hook
    def filter_case(_: Any, case: Case) -> bool:
        """Leave the key that all this goes by as it is."""
        return (case.path_parameters or {}).get("id") != own and _n_rewards(case) <= most_rewards

    @schemathesis.hook  # this one there is for all schemas only
    def before_call(_: Any, case: Case, **__: Any) -> None:
        if context is not None and _name(case) == "decide" and isinstance(case.body, dict):
            case.body = {**case.body, "context": case.body.get("context") or context}

    @schema.hook
    def filter_failure(_: Any, failure: Any, case: Case, response: Response) -> bool:
        """A status 503 that is documented, and true, is no failure."""
        return not (response.status_code == 503 and _code(response) in _WHILE_ALL_IS_WELL)

    print(f"schemathesis on {experiment}, {examples} examples, seed {seed}", flush=True)
    found = Conformance([], Counter(), Counter())
    try:
        _run(schema, found)
        # Keys are what schemathesis thinks that stories begin with. Without them they begin with decisions.
        schema.config.phases.update(phases=["stateful"])
        _run(schema.exclude(operation_id=["create_key", "revoke_key"]), found)
    finally:
        schemathesis.hooks.unregister(before_call)
    return found


def _run(schema: Any, found: Conformance) -> None:
    for event in from_schema(schema).execute():
        if isinstance(event, events.ScenarioFinished):
            _note(event, found)
        elif isinstance(event, (events.NonFatalError, events.FatalError)):
            found.wrong.append(f"{type(event).__name__}: {event}")


def _config(service: ServiceProcess, experiment: str, examples: int, seed: int, with_key: bool) -> dict[str, Any]:
    return {
        "seed": seed,
        "continue-on-failure": True,
        "request-timeout": PATIENCE,
        "warnings": False,
        "headers": {"Authorization": f"Bearer {service.token}"} if with_key else {},
        "checks": {name: {"enabled": False} for name in _LEFT_OUT},
        "generation": {"max-examples": examples, "database": "none", "no-shrink": True},
        "phases": {
            "examples": {"fill-missing": True},
            "coverage": {"unexpected-methods": ["get", "post", "delete", "patch"]},
            "stateful": {"generation": {"max-examples": 10 * examples}},
        },
        # Another experiment is configured anew, so that this one goes on deciding.
        "parameters": {"path.experiment": experiment},
        "operations": [{"include-operation-id": "put_experiment", "parameters": {"path.experiment": "other"}}],
    }


def _note(event: events.ScenarioFinished, found: Conformance) -> None:
    recorder = event.recorder
    for case_id, interaction in recorder.interactions.items():
        found.requests[event.phase.value] += 1
        if interaction.response is not None:
            found.answers[_name(recorder.cases[case_id].value), interaction.response.status_code] += 1
    found.wrong.extend(_failures(event))


def _failures(event: events.ScenarioFinished) -> Iterator[str]:
    for case_id, checks in event.recorder.checks.items():
        for check in checks:
            if check.failure_info is not None:
                request = event.recorder.cases[case_id].value.as_curl_command()
                yield f"{event.phase.value}: {check.name}: {check.failure_info.failure}\n{request}"


def _n_rewards(case: Case) -> int:
    rewards = case.body.get("rewards") if isinstance(case.body, dict) else None
    return len(rewards) if isinstance(rewards, list) else 0


def _name(case: Case) -> str:
    return str(case.operation.definition.raw["operationId"])


def _code(response: Response) -> str:
    try:
        return str(json.loads(response.content)["type"]).rpartition(":")[2]
    except (ValueError, KeyError, TypeError):
        return ""
