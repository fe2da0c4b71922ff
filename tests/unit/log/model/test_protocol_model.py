"""The protocol held to promises 1 to 6 of docs/internals/promises.md, whatever is killed, paused, fenced or lost.

The same 2,000 scenarios every time, and some of loads of tables. `make test-all` runs 20,000 others, `make model` a
million.
"""

from __future__ import annotations

import pytest

from tests.unit.log.model.loads.machine import LOAD_TROUBLES
from tests.unit.log.model.scenarios import run
from tests.unit.log.model.troubles import TROUBLES

SCENARIOS = 2_000
LOAD_SCENARIOS = 30  # of each trouble


@pytest.mark.parametrize("trouble", TROUBLES)
def test_scenarios_of_each_trouble_keep_the_promises(trouble: str) -> None:
    run(trouble, 0, -(-SCENARIOS // len(TROUBLES)))


@pytest.mark.parametrize("trouble", LOAD_TROUBLES)
def test_scenarios_of_loads_leave_the_tables_equal(trouble: str) -> None:
    run(trouble, 0, LOAD_SCENARIOS)
