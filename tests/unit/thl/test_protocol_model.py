"""The protocol held to promises 1 to 6, whatever is killed, paused, fenced or lost, in any order.

`THL_MODEL_EXAMPLES=20000 pytest tests/unit/thl/test_protocol_model.py` looks for longer, and at random.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.unit.thl.machine import ProtocolModel

EXAMPLES = int(os.environ.get("THL_MODEL_EXAMPLES", "0"))


def test_the_promises_hold() -> None:
    run_state_machine_as_test(
        ProtocolModel,
        settings=settings(
            max_examples=EXAMPLES or 400,
            stateful_step_count=60,
            deadline=None,
            derandomize=not EXAMPLES,
            suppress_health_check=list(HealthCheck),
        ),
    )
