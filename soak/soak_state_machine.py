"""A service against a short model of it, thousands of times, each time otherwise.

What fails is printed as a program; EXAMPLES=100 make soak does less.
"""

from __future__ import annotations

import os

import hypothesis
import pytest
from hypothesis.stateful import run_state_machine_as_test

from service_machine import Machine, PostgresMachine, SqliteMachine

EXAMPLES = int(os.environ.get("EXAMPLES", "1000"))


@pytest.mark.parametrize("machine", [SqliteMachine, PostgresMachine])
def test_a_service_does_what_a_short_model_of_it_does(machine: type[Machine]) -> None:
    settings = hypothesis.settings(max_examples=EXAMPLES, stateful_step_count=30, deadline=None, print_blob=True)
    run_state_machine_as_test(machine, settings=settings)
