"""A service against a short model of it: whatever is asked in whatever order, with restarts in between."""

from __future__ import annotations

import hypothesis
import pytest
from hypothesis.stateful import run_state_machine_as_test

import postgres
from service_machine import Machine, PostgresMachine, SqliteMachine

EXAMPLES = 25


@pytest.mark.parametrize("machine", [SqliteMachine, PostgresMachine])
def test_a_service_does_what_a_short_model_of_it_does(machine: type[Machine]) -> None:
    if machine is PostgresMachine:
        postgres.server()
    settings = hypothesis.settings(max_examples=EXAMPLES, stateful_step_count=30)
    run_state_machine_as_test(machine, settings=settings)
