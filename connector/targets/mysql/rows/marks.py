"""Marks in MySQL: a table in the database `thl` with the keys of a table that were written since its load began."""

from __future__ import annotations

from collections.abc import Iterable

from connector.ddl.syntax.tokens import quoted
from connector.targets.marks import Marks
from connector.targets.mysql.server.catalog_checks import unique_indexes
from connector.targets.mysql.server.connection import ServerSession
from connector.targets.mysql.sql.names import own, table_name
from connector.targets.mysql.sql.types import index_part, mysql_type
from connector.targets.table import Table


def create_marks(marks: str, table: Table, *, mariadb: bool) -> list[str]:
    """The statements that create the marks for a table, empty: a crash may have left some."""
    columns, key = [], []
    for place, index in enumerate(table.layout.key):
        column = table.columns[index]
        columns.append(f"k{place} {mysql_type(column, mariadb=mariadb)} NOT NULL")
        key.append(f"k{place}{index_part(column) if '(' not in column.type else ''}")
    indexes = [f"PRIMARY KEY ({', '.join(key)})"]
    if any(part.endswith(")") for part in key):
        # A key may be equal to another one in all that an index can hold of it.
        parts = ", ".join(f"HEX(k{place})" for place in range(len(key)))
        columns.append(f"thl_hash BINARY(32) AS (UNHEX(SHA2(CONCAT_WS(',', {parts}), 256))) STORED")
        # A group of servers changes no table without a primary key, and a MariaDB makes none of a computed column.
        columns.append("thl_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT")
        indexes = ["PRIMARY KEY (thl_id)", "UNIQUE KEY (thl_hash)", f"KEY ({', '.join(key)})"]
    created = f"CREATE TABLE IF NOT EXISTS {own(marks)} ({', '.join([*columns, *indexes])})"
    return [f"{created} ENGINE = InnoDB ROW_FORMAT = DYNAMIC", f"DELETE FROM {own(marks)}"]


def marked_columns(marks: Marks) -> str:
    """The columns of marks into which keys are inserted, as a list."""
    return ", ".join(f"k{place}" for place in range(len(marks.key)))


def marks_of(session: ServerSession, table: Table, name: str) -> Marks:
    """The marks of a table, with the unique indexes that it has at the moment; one on an expression is left out."""
    places = {column.name.lower(): place for place, column in enumerate(table.columns)}
    indexes = unique_indexes(session, table.name)
    unique_keys = tuple(
        tuple(places[column] for column in columns if column is not None)
        for columns in indexes
        if all(column in places for column in columns)
    )
    return Marks(name, table.layout.key, unique_keys, not indexes)


def sweep(table: Table, marks: str) -> str:
    """The statement that deletes the rows whose keys are not marked."""
    return (
        f"DELETE t FROM {table_name(table.name)} AS t LEFT JOIN {own(marks)} AS k "
        f"ON {same_key(table.key)} WHERE k.k0 IS NULL"
    )


def same_key(key: Iterable[str], of: str = "t") -> str:
    """The condition that a row's key is that of a mark, `k`."""
    return " AND ".join(f"k.k{place} = {of}.{quoted(name)}" for place, name in enumerate(key))
