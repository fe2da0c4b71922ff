"""The DEFAULT of a column on PostgreSQL, form by form, held against what a real server gives a row without a value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import psycopg
import pytest

from connector.errors import ConnectorError
from connector.log.transaction.batch import Statement
from connector.targets.ddl.plan import plan
from connector.targets.postgres.connection import open_session
from connector.targets.postgres.ddl import run
from connector.targets.postgres.literals import default_of
from connector.targets.table import Table
from connector.targets.target_schema import TargetSchema
from tests.contract.test_target_postgres import as_logged, database, readable
from tests.support.default_forms import (
    MARIADB_SESSIONS,
    MYSQL_SESSIONS,
    SESSIONS,
    Session,
    definitions,
    sample,
)
from tests.support.default_oracle import AT_ONCE, CREATE, SCHEMA, TABLE, Answer, ask, same
from tests.support.servers.environment import SqlServer

__all__ = ["database"]  # a fixture

MYSQL = [*SESSIONS, *MYSQL_SESSIONS]
MARIADB = [*SESSIONS, *MARIADB_SESSIONS]
SHARE = 80
SAMPLED = [SESSIONS[0], SESSIONS[2]]
ORDINARY = [
    *("INT DEFAULT 5", "BIGINT UNSIGNED NOT NULL DEFAULT '18446744073709551615'", "TINYINT(1) NOT NULL DEFAULT TRUE"),
    *("DECIMAL(10,2) NOT NULL DEFAULT '1.50'", "FLOAT DEFAULT 0.1", "DOUBLE DEFAULT -1.5", "YEAR DEFAULT '24'"),
    *("VARCHAR(9) NOT NULL DEFAULT 'it''s'", "CHAR(3) CHARACTER SET latin1 DEFAULT 'é '", "VARCHAR(9) DEFAULT ''"),
    *("BINARY(3) DEFAULT x'00ff'", "VARBINARY(9) DEFAULT 'ab'", "BIT(10) DEFAULT b'101'", "ENUM('x','y') DEFAULT 'Y'"),
    *("SET('x','y') DEFAULT 'y,x'", "DATE DEFAULT '2024-1-2'", "TIME(2) DEFAULT '-838:59:58.5'", "INT DEFAULT (7)"),
    *("DATETIME(3) DEFAULT '2024-01-02 03:04:05.6789'", "TIMESTAMP NULL DEFAULT '2024-01-02 03:04:05'"),
    *("JSON DEFAULT ('{}')", "TEXT DEFAULT ('a')", "BLOB DEFAULT ('a')"),
]


@pytest.fixture
def target(database: str) -> Iterator[psycopg.Connection]:
    with open_session(database, "thl") as connection:
        yield connection
        connection.execute("DROP SCHEMA IF EXISTS default_oracle CASCADE")


def forms(altering: bool, *, mariadb: bool = False) -> Iterator[str]:
    """The grid; ALTER COLUMN takes defaults that are no documents and no geometries, and then no row."""
    for form in definitions(mariadb=mariadb):
        if not (altering and form.startswith(("JSON", "GEOMETRY"))):
            yield form


def many(session: Session, altering: bool, *, mariadb: bool = False) -> Iterator[str]:
    """A part of the grid, another in each session; less for ALTER COLUMN, which takes two statements a form."""
    return sample(forms(altering, mariadb=mariadb), 48 if altering else 16, session.name)


def hold(target: psycopg.Connection, answers: Iterable[Answer]) -> tuple[int, dict[str, str]]:
    """The number of equal defaults, and the others; where the target has no default, it gives NULL."""
    equal, wrong = 0, {}
    asked = list(answers)
    for start in range(0, len(asked), AT_ONCE):
        chunk = asked[start : start + AT_ONCE]
        table = made(target, chunk)
        for column in table.columns:
            if (
                table.is_not_null(column) and column.name not in table.key
            ):  # a column without a default refuses the row, as the source does
                target.execute(f'ALTER TABLE {SCHEMA}.t ALTER COLUMN "{column.name}" DROP NOT NULL'.encode())
        target.execute(f"INSERT INTO {SCHEMA}.t (id) VALUES (1)")
        row = target.execute(f"SELECT {', '.join(map(readable, table.columns))} FROM {SCHEMA}.t".encode()).fetchone()
        assert row is not None
        values = {column.name: (column, value) for column, value in zip(table.columns, row, strict=True)}
        for answer in chunk:
            column, value = values.get(answer.sql.split()[5], (None, None))
            if column is None or default_of(table, column) is None:
                assert value is None
            elif column.name not in table.defaults_of():
                assert value is not None  # the current time
            elif value is None or not same(as_logged(value, column), answer.inserted):
                wrong[answer.definition] = f"{value!r}, not {answer.inserted!r}"
            else:
                equal += 1
    return equal, wrong


def made(target: psycopg.Connection, answers: Iterable[Answer]) -> Table:
    """The table with the columns that we can plan."""
    schema = TargetSchema()
    target.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
    statements = [Statement(SCHEMA, sql, one.options) for one in answers for sql in (one.sql, one.alter) if sql]
    for statement in [Statement(SCHEMA, CREATE), *statements]:
        try:
            found = plan(statement, schema, 0)
        except ConnectorError:
            continue  # not understood
        for operation in found.operations:
            run(target, operation)
        schema = found.target_schema
    return schema.get(TABLE)


@pytest.mark.parametrize("altering", [False, True])
def test_ordinary_defaults_are_on_the_target(
    mysql_server: SqlServer, target: psycopg.Connection, altering: bool
) -> None:
    unaltered = ("FLOAT", "DOUBLE", "JSON", "TEXT", "BLOB")  # not known, or refused by the server
    ordinary = [form for form in ORDINARY if not (altering and form.startswith(unaltered))]
    answers, refused = ask(mysql_server, SESSIONS[0], ordinary, altering=altering)
    assert hold(target, answers) == (len(ordinary), {}), refused


@pytest.mark.parametrize("session", SAMPLED, ids=[one.name for one in SAMPLED])
@pytest.mark.parametrize("altering", [False, True])
def test_sampled_defaults_on_the_target_equal_mysqls(
    mysql_server: SqlServer, target: psycopg.Connection, session: Session, altering: bool
) -> None:
    answers, _ = ask(mysql_server, session, sample(forms(altering), SHARE, session.name), altering=altering)
    equal, wrong = hold(target, answers)
    assert (wrong, equal > 10) == ({}, True)


@pytest.mark.long
@pytest.mark.parametrize("session", MYSQL, ids=[one.name for one in MYSQL])
@pytest.mark.parametrize("altering", [False, True])
def test_many_defaults_on_the_target_equal_mysqls(
    mysql_server: SqlServer, target: psycopg.Connection, session: Session, altering: bool
) -> None:
    answers, _ = ask(mysql_server, session, many(session, altering), altering=altering)
    equal, wrong = hold(target, answers)
    assert (wrong, equal > 20) == ({}, True)


@pytest.mark.long
@pytest.mark.parametrize("session", MARIADB, ids=[one.name for one in MARIADB])
@pytest.mark.parametrize("altering", [False, True])
def test_many_defaults_on_the_target_equal_mariadbs(
    mariadb_server: SqlServer, target: psycopg.Connection, session: Session, altering: bool
) -> None:
    answers, _ = ask(mariadb_server, session, many(session, altering, mariadb=True), altering=altering)
    equal, wrong = hold(target, answers)
    assert (wrong, equal > 20) == ({}, True)
