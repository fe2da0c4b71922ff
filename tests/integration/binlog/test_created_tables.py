"""CREATE TABLE IF NOT EXISTS: MySQL logs it though it finds a table, MariaDB does not; what the table history adds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from connector.log.transaction.batch import Statement, TransactionBatch
from connector.log.transaction.statement_options import TABLE_EXISTED
from tests.support.servers.environment import SqlServer
from tests.support.watched import Watched

STATEMENTS = {
    "CREATE TABLE IF NOT EXISTS there (a INT DEFAULT 2)": "1",
    "CREATE TABLE IF NOT EXISTS new (a INT)": "0",
    "CREATE TABLE IF NOT EXISTS new (a INT, b INT)": "1",
    "CREATE TABLE IF NOT EXISTS there LIKE new": "1",
    "CREATE TABLE IF NOT EXISTS alike LIKE there": "0",
    "DROP TABLE there": None,
    "CREATE TABLE IF NOT EXISTS there (a INT PRIMARY KEY)": "0",
    "RENAME TABLE there TO moved": None,
    "CREATE TABLE IF NOT EXISTS moved (a INT)": "1",
    "CREATE TABLE IF NOT EXISTS copied SELECT 1 AS a": "0",
    "CREATE TABLE IF NOT EXISTS copied (a INT)": "1",
    "DROP TABLE moved": None,
    "CREATE TABLE IF NOT EXISTS moved (a INT)  ": "0",
}

BEHIND_A_VIEW = {
    "CREATE VIEW v AS SELECT 1 AS a": None,
    "CREATE TABLE IF NOT EXISTS v (a INT DEFAULT 1)": "0",  # it has found the view, and nobody knows of it
    "DROP VIEW v": None,
    "CREATE TABLE IF NOT EXISTS v (a INT DEFAULT 2)": "0",
    "CREATE TABLE IF NOT EXISTS v (a INT DEFAULT 3)": "1",
    "DROP VIEW IF EXISTS none, `none too` CASCADE": None,
}


@pytest.fixture
def watched(request: pytest.FixtureRequest, product: str) -> Iterator[Watched]:
    server: SqlServer = request.getfixturevalue(f"{product}_server")
    found = Watched(server, "FULL")
    yield found
    found.close()


@pytest.mark.parametrize("product", ["mysql", "mariadb"])
def test_the_log_tells_whether_a_created_table_existed(watched: Watched, product: str) -> None:
    watched.run("CREATE TABLE there (a INT DEFAULT 1)")
    watched.read()
    watched.run(*STATEMENTS)
    batches = [item for item in watched.read() if isinstance(item, TransactionBatch)]
    found = [one for batch in batches for one in batch.changes if isinstance(one, Statement)]
    told = [one.options.get(TABLE_EXISTED) for one in found]
    # A DROP TABLE is logged as the server writes it, so statements are compared by their order.
    logged = [one for one in STATEMENTS.values() if product == "mysql" or one != "1"]
    assert told == logged, [one.sql for one in found]


def test_a_table_after_a_view_of_its_name_is_new(request: pytest.FixtureRequest) -> None:
    """Else a record store would keep the defaults of the CREATE TABLE that found the view."""
    watched = Watched(request.getfixturevalue("mysql_server"), "FULL")
    try:
        watched.run(*BEHIND_A_VIEW)
        batches = [item for item in watched.read() if isinstance(item, TransactionBatch)]
        found = [one for batch in batches for one in batch.changes if isinstance(one, Statement)]
        assert [one.options.get(TABLE_EXISTED) for one in found] == list(BEHIND_A_VIEW.values())
        assert watched.known == watched.dictionary()
    finally:
        watched.close()
