"""The contract of a target, on MySQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.mysql_place import MySqlPlace
from tests.contract.target_again import *  # noqa: F403
from tests.contract.target_ddl import *  # noqa: F403
from tests.contract.target_history import *  # noqa: F403
from tests.contract.target_load import *  # noqa: F403
from tests.contract.target_partial import *  # noqa: F403
from tests.contract.target_suite import *  # noqa: F403
from tests.contract.target_transactions import *  # noqa: F403
from tests.contract.target_values import *  # noqa: F403
from tests.contract.target_ways_out import *  # noqa: F403
from tests.support.servers.environment import SqlServer


@pytest.fixture
def place(mysql_server: SqlServer) -> Iterator[MySqlPlace]:
    made = MySqlPlace(mysql_server, keeps=True)
    yield made
    made.close()
