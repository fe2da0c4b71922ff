"""The protocol held to promises 1 to 6, whatever is killed, paused, fenced or lost, in any order.

`make model` looks for longer, and at random: THL_MODEL_EXAMPLES stories of each trouble.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.unit.thl.machine import TROUBLES, ProtocolModel

EXAMPLES = int(os.environ.get("THL_MODEL_EXAMPLES", "0"))


@pytest.mark.parametrize("trouble", TROUBLES)
def test_the_promises_hold(trouble: str) -> None:
    model = type("Model", (ProtocolModel,), {"troubles": (trouble,)})
    run_state_machine_as_test(
        model,
        settings=settings(
            max_examples=EXAMPLES or 30,
            stateful_step_count=40,
            deadline=None,
            derandomize=not EXAMPLES,
            suppress_health_check=list(HealthCheck),
        ),
    )
