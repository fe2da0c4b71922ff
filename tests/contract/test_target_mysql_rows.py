"""Many rows on a MySQL target."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.mysql_place import MySqlPlace
from tests.contract.mysql_rows import *  # noqa: F403
from tests.support.servers.environment import SqlServer


@pytest.fixture
def place(mysql_server: SqlServer) -> Iterator[MySqlPlace]:
    made = MySqlPlace(mysql_server, keeps=True)
    yield made
    made.close()
