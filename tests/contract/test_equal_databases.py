"""What the comparison of two servers' databases takes for equal, and what it finds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.equal_databases import differences, query, tables_of, value_differences
from tests.support.mysql import connect
from tests.support.servers.environment import SqlServer

NAME = "equal_databases"
SORTED = ["B", "a", "t_x", "ta"]
"""Names of which a binary collation and one without case have other orders."""


@pytest.fixture
def servers(mysql_server: SqlServer, mariadb_server: SqlServer) -> Iterator[tuple[SqlServer, SqlServer]]:
    """A MySQL and a MariaDB, each with an empty database."""
    made = (mysql_server, mariadb_server)
    for server in made:
        run(server, f"DROP DATABASE IF EXISTS {NAME}", f"CREATE DATABASE {NAME}")
    yield made
    for server in made:
        run(server, f"DROP DATABASE {NAME}")


def run(server: SqlServer, *statements: str) -> None:
    with connect(server) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def compared(servers: tuple[SqlServer, SqlServer]) -> list[str]:
    return differences(*servers, NAME, definitions=False)


def test_order_in_which_servers_list_tables_makes_no_difference(servers: tuple[SqlServer, SqlServer]) -> None:
    for server in servers:
        run(server, *(f"CREATE TABLE {NAME}.{name} (id INT)" for name in SORTED))
        assert tables_of(server, NAME) == SORTED
    listed = f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{NAME}' ORDER BY 1"
    assert query(servers[0], listed) != query(servers[1], listed)
    assert compared(servers) == []
    run(servers[1], f"RENAME TABLE {NAME}.ta TO {NAME}.tb")
    assert [one.partition(":")[0] for one in compared(servers)] == [NAME]


@pytest.mark.parametrize("kind", ["CHAR(9)", "VARCHAR(9)", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT"])
def test_texts_are_compared_by_characters_only_where_definitions_may_differ(
    mysql_server: SqlServer, servers: tuple[SqlServer, SqlServer], kind: str
) -> None:
    for server, charset in zip(servers, ("latin1", "utf8mb4"), strict=True):
        run(server, f"CREATE TABLE {NAME}.t (v {kind} CHARACTER SET {charset})", f"INSERT {NAME}.t VALUES ('é€')")
    assert compared(servers) == []
    for wrong in ("É€", "é€ x", "é", "e€"):
        run(servers[1], f"UPDATE {NAME}.t SET v = '{wrong}'")
        assert len(compared(servers)) == 2, wrong
    run(servers[1], f"UPDATE {NAME}.t SET v = NULL")
    assert len(compared(servers)) == 2
    run(servers[1], f"UPDATE {NAME}.t SET v = 'é€'")
    assert list(value_differences(*servers, NAME, "t", stored=True)) == [
        f"{NAME}.t: the target lacks ('E980',)",
        f"{NAME}.t: only the target has ('C3A9E282AC',)",
    ]
