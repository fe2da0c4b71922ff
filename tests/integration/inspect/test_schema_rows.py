"""Rows made for schemas of which nothing is known: what a schema refuses is left out, unless it is too much."""

from __future__ import annotations

import pymysql
import pytest

from tests.schemas.rows import Writer
from tests.support.loading import a_database
from tests.support.mysql import connect
from tests.support.servers.environment import SqlServer

# An ENUM leaves the choice of the values that a trigger refuses; each of these is one of two.
TABLE = "CREATE TABLE {}.t (id INT AUTO_INCREMENT PRIMARY KEY, v ENUM('few', 'many') NOT NULL)"
REFUSE = "CREATE TRIGGER {}.refuse BEFORE INSERT ON {}.t FOR EACH ROW "
OUT_OF_RANGE = "SET @n = 9223372036854775807 + {}"


def written(server: SqlServer, condition: str) -> Writer:
    """The writer of tables of which one refuses rows."""
    with a_database(server, "refusing") as (_, name), connect(server) as connection:
        server.run_sql(f"{TABLE.format(name)}; {REFUSE.format(name, name)} {OUT_OF_RANGE.format(condition)}")
        for number in range(6):
            server.run_sql(f"CREATE TABLE {name}.willing_{number} (v INT)")
        writer = Writer(connection, name)
        writer.change()
        return writer


def test_rows_that_a_trigger_refuses_are_counted_and_the_others_written(mysql_server: SqlServer) -> None:
    writer = written(mysql_server, "(NEW.v = 'many')")
    assert 0 < writer.refused < 12
    writer.check()


def test_schema_that_refuses_too_much_fails(mysql_server: SqlServer) -> None:
    writer = written(mysql_server, "1")
    assert writer.refused == 12
    with pytest.raises(AssertionError, match="12 of 119"):
        writer.check()


def test_other_errors_of_a_schema_are_not_passed_over(mysql_server: SqlServer) -> None:
    with a_database(mysql_server, "refusing") as (_, name), connect(mysql_server) as connection:
        body = "SIGNAL SQLSTATE '45000'"
        mysql_server.run_sql(f"{TABLE.format(name)}; {REFUSE.format(name, name)} {body}")
        with pytest.raises(pymysql.MySQLError, match="1644"):
            Writer(connection, name).change()
