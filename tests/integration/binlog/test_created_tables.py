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
    "CREATE TABLE IF NOT EXISTS v (a INT DEFAULT 1)": "1",
    "CREATE OR REPLACE VIEW v AS SELECT 2 AS a": None,
    "ALTER VIEW v AS SELECT 3 AS a": None,
    "RENAME TABLE v TO w": None,
    "CREATE TABLE IF NOT EXISTS w (a INT)": "1",
    "CREATE TABLE IF NOT EXISTS v (a INT DEFAULT 2)": "0",
    "DROP VIEW w": None,
    "CREATE TABLE IF NOT EXISTS w (a INT DEFAULT 2)": "0",
    "CREATE TABLE IF NOT EXISTS w (a INT DEFAULT 3)": "1",
    "DROP VIEW IF EXISTS none, `none too` CASCADE": None,
    "CREATE OR REPLACE SQL SECURITY INVOKER VIEW x AS SELECT a FROM v": None,
}


@pytest.fixture
def watched(request: pytest.FixtureRequest, product: str) -> Iterator[Watched]:
    server: SqlServer = request.getfixturevalue(f"{product}_server")
    found = Watched(server, "FULL")
    yield found
    found.close()


def told(watched: Watched) -> list[str | None]:
    """What the log tells of each statement."""
    batches = [item for item in watched.read() if isinstance(item, TransactionBatch)]
    found = [one for batch in batches for one in batch.changes if isinstance(one, Statement)]
    return [one.options.get(TABLE_EXISTED) for one in found]


def logged(statements: dict[str, str | None], product: str) -> list[str | None]:
    """What is to be told. A DROP TABLE is logged as the server writes it, so statements are compared by their order."""
    return [one for one in statements.values() if product == "mysql" or one != "1"]


@pytest.mark.parametrize("product", ["mysql", "mariadb"])
def test_the_log_tells_whether_a_created_table_existed(watched: Watched, product: str) -> None:
    watched.run("CREATE TABLE there (a INT DEFAULT 1)")
    watched.read()
    watched.run(*STATEMENTS)
    assert told(watched) == logged(STATEMENTS, product)


@pytest.mark.parametrize("product", ["mysql", "mariadb"])
def test_a_view_has_the_name_of_no_table(watched: Watched, product: str) -> None:
    watched.run(*BEHIND_A_VIEW)
    assert told(watched) == logged(BEHIND_A_VIEW, product)
    assert watched.known == watched.dictionary()
