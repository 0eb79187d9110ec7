"""schemathesis on the service for many minutes: both experiments, both databases, several seeds."""

import pytest

from conformance import PHASES, conform
from surface import CONTEXT, DATABASES, surface


@pytest.mark.parametrize("seed", range(2, 5))
@pytest.mark.parametrize(("experiment", "context"), [("shop", None), ("ads", CONTEXT)])
@pytest.mark.parametrize("database", DATABASES)
def test_every_answer_is_as_the_document_says(tmp_path, database, experiment, context, seed):
    with surface(tmp_path, database) as service:
        found = conform(service, experiment, examples=50, seed=seed, context=context)
        print(f"{sum(found.requests.values()):,} requests: {dict(found.requests)}")
        assert found.wrong == []
        assert set(found.requests) == PHASES
        assert '"event":"error"' not in service.said()
