"""Sessions with a source are independent of what it sets for all sessions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from connector.config.source import Source
from connector.mysql.server.connection import connect, query
from tests.support.loading import a_database

pytestmark = pytest.mark.servers
LIMITS = {"mysql_server": ("max_execution_time", "1"), "mariadb_server": ("max_statement_time", "0.001")}


@pytest.fixture(params=LIMITS)
def impatient(request: pytest.FixtureRequest) -> Iterator[Source]:
    """A source that ends the statements of every session after a millisecond."""
    variable, limit = LIMITS[request.param]
    with a_database(request.getfixturevalue(request.param), "sessions") as (source, _):
        admin = connect(source)
        query(admin, f"SET GLOBAL {variable} = {limit}")
        yield source
        query(admin, f"SET GLOBAL {variable} = DEFAULT")
        admin.close()


def test_statements_take_as_long_as_they_need(impatient: Source) -> None:
    session = connect(impatient)
    try:
        # SLEEP returns 1 where it is interrupted.
        assert query(session, "SELECT SLEEP(0.05) AS interrupted") == [{"interrupted": 0}]
    finally:
        session.close()
