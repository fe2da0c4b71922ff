"""A heartbeat on the source: a row of a table of ours, a row per service and name.

It is deleted and inserted in one transaction, never updated: an insert is logged with all its columns, whatever
`binlog_row_image` is.
"""

from __future__ import annotations

from typing import Final

import pymysql
from pymysql.constants import ER

from connector.config.model import Source
from connector.errors import ConfigError
from connector.log.transaction.layout import TableName
from connector.mysql.server.connection import Connection, query, quoted, session
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
        ConfigError: there is none, or what it is written to is not published.
    """
    schema, dot, table = source.heartbeat_table.partition(".")
    if not (schema and dot and table):
        raise ConfigError(
            "source.heartbeat_table names no table", hint="schema.table, one that the user thl may create and write"
        )
    filter = Filter(source.filters, 1)
    if not filter.captures(schema, table) or filter.rule(schema, table) is not None:
        raise ConfigError(
            "source.filters leave out the heartbeat table, or a part of it",
            hint="add it to source.filters.do; no rule of source.filters.tables may match it",
            table=f"{schema}.{table}",
        )
    return TableName(schema, table)


def write_heartbeat(source: Source, service: str, name: str) -> str | None:
    """Write one, and make the table where there is none.

    Returns:
        The GTIDs that the source has with it; None where it gives none.

    Raises:
        ConfigError: as `heartbeat_table`; or the name is longer than the table has room for.
        SourceUnavailable: the source does not answer.
        PreflightError: the user may not write.
    """
    table = heartbeat_table(source)
    if len(name) > NAME_LENGTH:
        raise ConfigError(f"a heartbeat's name has at most {NAME_LENGTH} characters", name=name)
    place = f"{quoted(table.schema)}.{quoted(table.table)}"
    with session(source) as connection:
        try:
            _write(connection, place, service, name)
        except pymysql.ProgrammingError as error:
            if error.args[0] != ER.NO_SUCH_TABLE:
                raise
            query(connection, f"CREATE TABLE IF NOT EXISTS {place} ({COLUMNS})")
            _write(connection, place, service, name)
        return gtid_executed(connection)


def _write(connection: Connection, place: str, service: str, name: str) -> None:
    place = place.replace("%", "%%")  # what follows is formatted
    connection.begin()
    query(connection, f"DELETE FROM {place} WHERE service = %s AND name = %s", (service, name))
    query(connection, f"INSERT INTO {place} VALUES (%s, %s, UTC_TIMESTAMP(6))", (service, name))
    connection.commit()
