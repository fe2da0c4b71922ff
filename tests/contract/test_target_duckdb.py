"""The contract of a target, on a DuckDB file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.duckdb_place import DuckDbPlace
from tests.contract.target_again import *  # noqa: F403
from tests.contract.target_ddl import *  # noqa: F403
from tests.contract.target_history import *  # noqa: F403
from tests.contract.target_load import *  # noqa: F403
from tests.contract.target_partial import *  # noqa: F403
from tests.contract.target_suite import *  # noqa: F403
from tests.contract.target_transactions import *  # noqa: F403
from tests.contract.target_values import *  # noqa: F403
from tests.contract.target_ways_out import *  # noqa: F403


@pytest.fixture
def place(tmp_path: Path) -> Iterator[DuckDbPlace]:
    made = DuckDbPlace(tmp_path / "target.duckdb")
    yield made
    made.close()
