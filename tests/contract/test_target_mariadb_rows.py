"""Many rows on a MariaDB target, and what it refuses that a MySQL executes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from connector.clock import SystemClock
from connector.config.apply import Target
from connector.errors import Unsupported
from connector.targets.open import check_target, open_target
from tests.contract.mysql_place import MySqlPlace
from tests.contract.mysql_rows import *  # noqa: F403
from tests.support.servers.environment import SqlServer


@pytest.fixture
def place(mariadb_server: SqlServer) -> Iterator[MySqlPlace]:
    made = MySqlPlace(mariadb_server, keeps=True)
    yield made
    made.close()


def test_changes_logged_as_statements_are_not_executed(place: MySqlPlace) -> None:
    """By its scheme it may be a MySQL; it is asked at the claim."""
    options = Target(url=SecretStr(place.url), statements="execute")
    target = open_target(options, SystemClock())
    with pytest.raises(Unsupported, match="this server is a MariaDB"):
        target.claim("shop")
    target.close()
    with pytest.raises(Unsupported, match="this server is a MariaDB"):
        check_target(options)
