"""The contract of a target, on a MySQL that takes LOAD DATA LOCAL, where one row is many enough for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from connector.targets.mysql.rows import load_data
from tests.contract.mysql_place import MySqlPlace, taking_files
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

pytestmark = pytest.mark.long


@pytest.fixture
def place(mysql_server: SqlServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[MySqlPlace]:
    monkeypatch.setattr(load_data, "FEWEST", 1)
    with taking_files(mysql_server, keeps=True) as made:
        yield made
