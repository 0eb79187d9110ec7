"""A service against a short model of it: whatever is asked in whatever order, with restarts in between."""

from __future__ import annotations

from typing import Any
from unittest import mock

import hypothesis
import pytest
from hypothesis.stateful import run_state_machine_as_test

import postgres
from bough.service.learner import Learner
from bough.service.records import Position
from service_machine import Machine, NoisyMachine, PostgresMachine, SqliteMachine

SETTINGS = hypothesis.settings(max_examples=30, stateful_step_count=15)


@pytest.mark.parametrize("machine", [SqliteMachine, PostgresMachine, NoisyMachine])
def test_a_service_does_what_a_short_model_of_it_does(machine: type[Machine]) -> None:
    if machine is PostgresMachine:
        postgres.server()
    run_state_machine_as_test(machine, settings=SETTINGS)


def test_a_service_that_learns_twice_is_found_out() -> None:
    restore = Learner.restore

    def restore_and_forget_where(self: Learner, agent: Any, base: Any, header: Any) -> None:
        restore(self, agent, base, header)
        self.position, self.n_learned = Position(), 0

    settings = hypothesis.settings(SETTINGS, phases=[hypothesis.Phase.generate])
    with mock.patch.object(Learner, "restore", restore_and_forget_where), pytest.raises(AssertionError):
        run_state_machine_as_test(SqliteMachine, settings=settings)
