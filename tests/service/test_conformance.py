"""The service goes by its own OpenAPI document: schemathesis asks for all that it has, in all its phases.

`make soak` does the same for longer, with both experiments on both databases.
"""

import pytest

from bough.service.routes import ROUTES
from conformance import PHASES, conform
from surface import CONTEXT, surface


@pytest.mark.parametrize(
    ("database", "experiment", "context"), [("sqlite", "shop", None), ("postgres", "ads", CONTEXT)]
)
def test_every_answer_is_as_the_document_says(tmp_path, database, experiment, context):
    with surface(tmp_path, database) as service:
        found = conform(service, experiment, examples=2, context=context, most_rewards=100)
        assert found.wrong == []
        assert set(found.requests) == PHASES
        assert {name for name, _ in found.answers} == set(ROUTES) - {"openapi"}
        for name in ("decide", "reward", "activate", "decision", "explain", "export", "tree"):
            assert found.answers[name, 200], name


def test_without_a_key_nothing_is_answered_but_that_one_is_needed(tmp_path):
    with surface(tmp_path, "sqlite") as service:
        found = conform(service, "shop", examples=1, with_key=False, most_rewards=100)
    assert found.wrong == []
    for name, route in ROUTES.items():
        statuses = {status for route_name, status in found.answers if route_name == name}
        assert statuses <= ({401, 404, 405} if route.scope is not None else {200, 404, 405}), name
