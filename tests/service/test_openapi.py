"""The OpenAPI document: complete, true to the structs, and the same every time."""

import json
import os
import subprocess
import sys

import jsonschema_rs
import msgspec
import pytest
import schemathesis
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from bough.service import schema
from bough.service.examples import EXAMPLES, PROBLEMS
from bough.service.openapi import document
from bough.service.problems import KINDS
from bough.service.router import find
from bough.service.routes import ROUTES

DOCUMENT = document("1.2.3")
OPERATIONS = [
    (path, method, operation) for path, item in DOCUMENT["paths"].items() for method, operation in item.items()
]


def validator(shape):
    return jsonschema_rs.Draft202012Validator({**shape, "components": DOCUMENT["components"]})


def operation_of(route):
    return DOCUMENT["paths"][route.path][route.method.lower()]


def test_it_is_a_valid_document_of_openapi_3_1():
    OPENAPI_31_VALIDATOR.validate(DOCUMENT)


def test_a_tool_reads_every_operation_from_it():
    loaded = schemathesis.openapi.from_dict(DOCUMENT)
    found = {one.ok().definition.raw["operationId"] for one in loaded.get_all_operations()}
    assert found == set(ROUTES)


def test_it_goes_through_json_unharmed():
    assert json.loads(msgspec.json.encode(DOCUMENT)) == DOCUMENT
    assert DOCUMENT["info"]["version"] == "1.2.3"


@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
def test_every_route_has_all_its_statuses_and_the_problems_in_their_own_media_type(route):
    responses = operation_of(route)["responses"]
    problems = {code: KINDS[code].status for code in route.codes}
    assert set(responses) == {str(status) for status in (*route.answers, *problems.values())}
    for code, status in problems.items():
        content = responses[str(status)]["content"]
        assert set(content) == {"application/problem+json"}
        assert code in content["application/problem+json"]["examples"]


@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
def test_every_route_says_whether_it_needs_a_key(route):
    assert operation_of(route)["security"] == ([] if route.scope is None else [{"key": [route.scope]}])


@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
def test_every_parameter_is_described_and_has_a_type(route):
    parameters = operation_of(route).get("parameters", [])
    in_path = [one["name"] for one in parameters if one["in"] == "path"]
    in_query = [one["name"] for one in parameters if one["in"] == "query"]
    assert tuple(in_path) == route.parameters
    assert in_query == ([] if route.query is None else list(route.query.__struct_fields__))
    for one in parameters:
        assert "type" in one["schema"] or "enum" in one["schema"]


def test_the_examples_of_parameters_lead_to_their_routes():
    for path, method, operation in OPERATIONS:
        filled = {one["name"]: one["example"] for one in operation.get("parameters", []) if one["in"] == "path"}
        route, _ = find(method.upper(), path.format(**filled).encode())
        assert route.name == operation["operationId"]


def test_every_body_and_answer_has_an_example_and_nothing_else_has():
    used = {one for route in ROUTES.values() for one in (route.body, *route.answers.values())}
    assert {one for one in used if isinstance(one, type) and issubclass(one, msgspec.Struct)} == set(EXAMPLES)


@pytest.mark.parametrize("of", EXAMPLES, ids=lambda of: of.__name__)
def test_examples_are_what_their_schemas_and_structs_take(of):
    example = json.loads(msgspec.json.encode(EXAMPLES[of]))
    validator({"$ref": f"#/components/schemas/{of.__name__}"}).validate(example)
    assert msgspec.convert(example, of) == EXAMPLES[of]


@pytest.mark.parametrize("code", KINDS)
def test_examples_of_problems_are_what_their_schema_takes(code):
    example = json.loads(msgspec.json.encode(PROBLEMS[code]))
    validator({"$ref": "#/components/schemas/ProblemBody"}).validate(example)
    assert (example["type"], example["status"]) == (f"urn:bough:problem:{code}", KINDS[code].status)


@pytest.mark.parametrize(
    ("of", "wrong"),
    [
        (schema.Reward, {"decision_id": "d1"}),
        (schema.Reward, {"decision_id": "d1", "value": "1"}),
        (schema.Reward, {"decision_id": "", "value": 1.0}),
        (schema.Reward, {"decision_id": "d 1", "value": 1.0}),
        (schema.Reward, {"decision_id": "d1\n", "value": 1.0}),
        (schema.Reward, {"decision_id": 129 * "d", "value": 1.0}),
        (schema.Reward, {"decision_id": "d1", "value": 1.0, "colour": "red"}),
        (schema.Decide, {"k": 0}),
        (schema.KeyBody, {"scopes": ["write"]}),
        (schema.KeyBody, {"scopes": []}),
        (schema.Rewards, {"rewards": []}),
        (schema.ExperimentConfig, {"window": 0}),
    ],
)
def test_what_a_struct_refuses_its_schema_refuses_too(of, wrong):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, of)
    assert not validator({"$ref": f"#/components/schemas/{of.__name__}"}).is_valid(wrong)


def test_fields_are_described_by_what_stands_below_them_in_the_source():
    shape = DOCUMENT["components"]["schemas"]["ExperimentConfig"]["properties"]["window"]
    assert shape["description"] == "Seconds after which a reward is late; None for never."


def test_it_is_the_same_in_every_process():
    script = "import json; from bough.service.openapi import document; print(json.dumps(document('1.2.3')))"
    found = {
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert found == {json.dumps(DOCUMENT).encode() + b"\n"}


@pytest.mark.parametrize(
    ("route", "status"), [("activate", "active"), ("cancel", "cancelled"), ("retract", "retracted")]
)
def test_the_example_of_an_answer_says_what_its_own_route_does(route, status):
    operations = [about for methods in document("1")["paths"].values() for about in methods.values()]
    [about] = [one for one in operations if one["operationId"] == route]
    assert about["responses"]["200"]["content"]["application/json"]["example"]["status"] == status
