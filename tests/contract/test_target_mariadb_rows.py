"""Many rows on a MariaDB target."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.mysql_place import MySqlPlace
from tests.contract.mysql_rows import *  # noqa: F403
from tests.support.servers.environment import SqlServer


@pytest.fixture
def place(mariadb_server: SqlServer) -> Iterator[MySqlPlace]:
    made = MySqlPlace(mariadb_server, keeps=True)
    yield made
    made.close()
