"""Heartbeats on the source: rows of the table `source.heartbeat_table`, one for each service and name.

A row is deleted and inserted in one transaction, not updated: an insert is logged with all columns, whatever
`binlog_row_image` is.
"""

from __future__ import annotations

from typing import Final

import pymysql
from pymysql.constants import ER

from connector.config.source import Source
from connector.ddl.syntax.tokens import quoted
from connector.errors import ConfigError
from connector.log.transaction.layout import TableName
from connector.mysql.server.connection import Connection, query, session
from connector.mysql.server.source_state import gtid_executed
from connector.mysql.transforms.filters import Filter

NAME_LENGTH: Final = 191  # a column of a key may have 767 bytes in MySQL 5.6
COLUMNS: Final = (
    "service VARCHAR(201) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, "
    f"name VARCHAR({NAME_LENGTH}) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, "
    "written DATETIME(6) NOT NULL, PRIMARY KEY (service, name)"
)


def heartbeat_table(source: Source) -> TableName:
    """The configured table.

    Raises:
        ConfigError: none is configured, or it is not captured as a whole.
    """
    schema, dot, table = source.heartbeat_table.partition(".")
    if not (schema and dot and table):
        raise ConfigError(
            "source.heartbeat_table names no table", hint="schema.table; the user must be able to create and write it"
        )
    filter = Filter(source.filters, 1)
    if not filter.captures(schema, table) or filter.rule(schema, table) is not None:
        raise ConfigError(
            "source.filters exclude the heartbeat table, or a part of it",
            hint="add it to source.filters.do; no rule of source.filters.tables may match it",
            table=f"{schema}.{table}",
        )
    return TableName(schema, table)


def write_heartbeat(source: Source, service: str, name: str) -> str | None:
    """Writes a heartbeat; creates the table if it does not exist.

    Returns:
        The source's GTIDs including the heartbeat's; None if it has none.

    Raises:
        ConfigError: see `heartbeat_table`; or the name is too long.
        SourceUnavailable: the source does not answer.
        PreflightError: the user may not write.
    """
    table = heartbeat_table(source)
    if len(name) > NAME_LENGTH:
        raise ConfigError("a heartbeat's name is too long", name=name, limit=NAME_LENGTH)
    target = f"{quoted(table.schema)}.{quoted(table.table)}"
    with session(source) as connection:
        try:
            _write(connection, target, service, name)
        except pymysql.ProgrammingError as error:
            if error.args[0] != ER.NO_SUCH_TABLE:
                raise
            query(connection, f"CREATE TABLE IF NOT EXISTS {target} ({COLUMNS})")
            _write(connection, target, service, name)
        return gtid_executed(connection)


def _write(connection: Connection, table: str, service: str, name: str) -> None:
    table = table.replace("%", "%%")  # the statement is formatted
    connection.begin()
    query(connection, f"DELETE FROM {table} WHERE service = %s AND name = %s", (service, name))
    query(connection, f"INSERT INTO {table} VALUES (%s, %s, UTC_TIMESTAMP(6))", (service, name))
    connection.commit()
