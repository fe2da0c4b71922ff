"""The words that a server takes for a schema's name after ALTER DATABASE; the others are options of the default one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pymysql
import pytest

from connector.ddl.affected_tables import affected_tables
from connector.errors import Unsupported
from connector.log.transaction.batch import Statement
from tests.support.servers.environment import SqlServer

pytestmark = pytest.mark.servers
DEFAULT = "the_default"
WORDS = (
    *("default", "character", "charset", "char", "collate", "encryption", "read", "comment", "only", "set", "ascii"),
    *("upgrade", "if", "no", "data", "database", "schema"),
)
OPTIONS = (
    *("CHARACTER SET latin1", "CHARSET latin1", "CHARSET = latin1", "CHAR SET latin1", "DEFAULT CHARACTER SET latin1"),
    *("DEFAULT CHARSET latin1", "COLLATE latin1_bin", "COLLATE = latin1_bin", "DEFAULT COLLATE latin1_bin"),
    *(f"{one} CHARSET latin1" for one in ("ENCRYPTION = 'N'", "ENCRYPTION 'N'", "DEFAULT ENCRYPTION 'N'")),
    *(f"{one} CHARSET latin1" for one in ("COMMENT 'x'", "COMMENT = 'x'", "COMMENT x", "READ ONLY = 0")),
)
REFUSED = {1064: "not understood", 1115: "an unknown character set", 1273: "an unknown collation", 1302: "two of them"}


@pytest.fixture(params=["mysql_server", "mariadb_server"])
def session(request: pytest.FixtureRequest) -> Iterator[Any]:
    server: SqlServer = request.getfixturevalue(request.param)
    made: Any = pymysql.connect(host=server.host, port=server.port, user=server.user, password=server.password)
    cursor = made.cursor()
    for name in (DEFAULT, *WORDS):
        cursor.execute(f"CREATE DATABASE `{name}` CHARACTER SET utf8mb4")
    made.select_db(DEFAULT)
    yield made
    for name in (DEFAULT, *WORDS):
        cursor.execute(f"DROP DATABASE `{name}`")
    made.close()


def altered(session: Any, sql: str) -> str | None:
    """The schema whose character set a statement changes; None: the server refuses the statement."""
    cursor = session.cursor()
    try:
        cursor.execute(sql)
    except pymysql.MySQLError as error:
        assert error.args[0] in REFUSED, error
        return None
    cursor.execute(
        "SELECT schema_name FROM information_schema.schemata WHERE default_character_set_name = 'latin1' "
        "AND schema_name IN (" + ", ".join(f"'{name}'" for name in (DEFAULT, *WORDS)) + ")"
    )
    ((found,),) = cursor.fetchall()
    cursor.execute(f"ALTER DATABASE `{found}` CHARACTER SET utf8mb4")
    return str(found)


def read(sql: str) -> str | None:
    """The schema that the parser finds."""
    try:
        return affected_tables(Statement(DEFAULT, sql, {})).schema
    except Unsupported:
        return None


def test_names_after_alter_database_are_read_as_the_server_reads_them(session: Any) -> None:
    given = [f"ALTER DATABASE {word} {options}" for word in ("", *WORDS) for options in OPTIONS]
    accepted = {sql: schema for sql in given if (schema := altered(session, sql)) is not None}
    assert {sql: read(sql) for sql in accepted} == accepted
    assert {*accepted.values()} > {DEFAULT, "comment", "charset", "encryption"}
