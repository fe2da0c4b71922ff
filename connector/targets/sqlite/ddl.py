"""Applies DDL operations to SQLite. A table whose stored columns change is rebuilt."""

from __future__ import annotations

import logging
import sqlite3
from typing import Final

from connector.errors import TargetDiffers
from connector.log.transaction.layout import Column, TableName
from connector.targets.ddl.by_hand import RealTable
from connector.targets.names import quoted
from connector.targets.operations import (
    AllowNull,
    AlterTable,
    CreateSchema,
    CreateTable,
    DropSchema,
    DropTable,
    ExistingColumn,
    IndexKey,
    KnownValue,
    Operation,
    RenameTable,
    Sweep,
    Truncate,
    UnknownValue,
    Value,
    column_has_nulls,
    swept,
    value_would_change,
    values_are_unknown,
)
from connector.targets.sqlite.marks import sweep
from connector.targets.sqlite.names import SqliteNames, column_names, table_name
from connector.targets.sqlite.types import sqlite_type
from connector.targets.table import Table

LOG: Final = logging.getLogger(__name__)

_NAMES = SqliteNames()
# Names without a dot, which no table of the source has.
_REBUILT = "thl_rebuilt"
_INDEX = "thl_key_"
_GENERATED = (2, 3)  # `hidden` in pragma_table_xinfo: VIRTUAL and STORED
_REMADE = "SQLite cannot change {} to an ordinary column: create a new table with it and copy the rows"


def run(connection: sqlite3.Connection, operation: Operation) -> None:
    """Apply an operation inside the open transaction.

    Raises:
        TargetDiffers: a table of another owner has the name, or a NOT NULL column has a NULL.
        Unsupported: existing rows get values that only the source knows.
    """
    match operation:
        case CreateSchema() | DropSchema():
            pass  # SQLite has no schemas: they are part of the table's name.
        case CreateTable(table):
            _create(connection, table, table_name(table.name))
        case DropTable(table, optional):
            connection.execute(f"DROP TABLE {'IF EXISTS ' if optional else ''}{table_name(table.name)}")
        case RenameTable(table, name, optional):
            if optional and not column_names_of(connection, table.name):
                return
            _refuse_foreign(connection, name)
            connection.execute(f"ALTER TABLE {table_name(table.name)} RENAME TO {table_name(name)}")
        case Truncate(table):
            connection.execute(f"DELETE FROM {table_name(table.name)}")
        case Sweep(table, marks):
            done = connection.execute(sweep(table, marks))
            LOG.info(
                "a table is whole: it lost rows that the load did not bring", extra=swept(operation, done.rowcount)
            )
        case AlterTable():
            _alter(connection, operation)
        case AllowNull():
            pass  # no column but the key's is NOT NULL
        case IndexKey(table, columns):
            _index(connection, table.name, columns)


def column_names_of(connection: sqlite3.Connection, name: TableName) -> set[str]:
    """The names of a table's columns in the file."""
    return {str(one) for (one,) in connection.execute("SELECT name FROM pragma_table_info(?)", _NAMES.table(name))}


class SqliteDictionary:
    """The data dictionary of the file (`connector.targets.ddl.by_hand.Dictionary`).

    Args:
        connection: to the file.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def real(self, name: TableName) -> RealTable | None:
        """The table in the file."""
        query = "SELECT name, type, pk, hidden FROM pragma_table_xinfo(?)"
        found = self._connection.execute(query, _NAMES.table(name)).fetchall()
        if not found:
            return None
        columns = {str(column): str(kind).removesuffix(" GENERATED ALWAYS") for column, kind, *_ in found}
        computed = {str(column): _REMADE.format(column) for column, _, _, hidden in found if hidden in _GENERATED}
        return RealTable(columns, frozenset(str(column) for column, _, key, _ in found if key), computed)

    def expected(self, table: Table) -> RealTable:
        """The table that `_create` makes."""
        return RealTable({column.name: sqlite_type(column) for column in table.stored}, frozenset(table.key))


def _refuse_foreign(connection: sqlite3.Connection, name: TableName) -> None:
    (text,) = _NAMES.table(name)
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = ? COLLATE NOCASE", (text,)).fetchone():
        raise TargetDiffers(
            f"table {text} exists and the applier did not create it", hint=f"DROP TABLE {quoted(text)}, or rename it"
        )


def _create(connection: sqlite3.Connection, table: Table, name: str) -> None:
    if name != _REBUILT:
        _refuse_foreign(connection, table.name)
    # One integer column as the key is the rowid itself; its type must be exactly INTEGER for that.
    parts = [
        f"{quoted(column.name)} {sqlite_type(column)}{' NOT NULL' if column.name in table.key else ''}"
        for column in table.stored
    ]
    if table.key:
        parts.append(f"PRIMARY KEY ({column_names(table.key)})")
    connection.execute(f"CREATE TABLE {name} ({', '.join(parts)}) STRICT")


def _alter(connection: sqlite3.Connection, change: AlterTable) -> None:
    name = table_name(change.before.name)
    filled = connection.execute(f"SELECT EXISTS (SELECT 1 FROM {name})").fetchone()[0]
    for origin, column in zip(change.origins, change.after.columns, strict=True):
        if isinstance(origin, UnknownValue) and filled:
            raise values_are_unknown(change, column, origin.reason)
        if isinstance(origin, ExistingColumn) and origin.filled:
            _refuse_nulls(connection, change, origin.name)
        if isinstance(origin, ExistingColumn):
            _refuse_unfit(connection, change, origin, column)
    if _same_storage(change):
        return
    _create(connection, change.after, _REBUILT)
    expressions, values = _expressions(change)
    if change.after.stored:
        connection.execute(
            f"INSERT INTO {_REBUILT} ({column_names([column.name for column in change.after.stored])}) "
            f"SELECT {expressions} FROM {name}",
            values,
        )
    connection.execute(f"DROP TABLE {name}")
    connection.execute(f"ALTER TABLE {_REBUILT} RENAME TO {name}")


def _refuse_nulls(connection: sqlite3.Connection, change: AlterTable, column: str) -> None:
    name = table_name(change.before.name)
    sql = f"SELECT EXISTS (SELECT 1 FROM {name} WHERE {quoted(column)} IS NULL)"
    if connection.execute(sql).fetchone()[0]:
        raise column_has_nulls(change, column)


def _refuse_unfit(connection: sqlite3.Connection, change: AlterTable, origin: ExistingColumn, column: Column) -> None:
    """Stop if the new type would change a value."""
    name, table = quoted(origin.name), table_name(change.before.name)
    for unfit in origin.unfit:
        connection.create_function("thl_unfit", 1, unfit.matches, deterministic=True)
        sql = f"SELECT {name} FROM {table} WHERE {name} IS NOT NULL AND thl_unfit({name}) LIMIT 1"
        if found := connection.execute(sql).fetchone():
            raise value_would_change(change, column, found[0])


def _index(connection: sqlite3.Connection, table: TableName, columns: tuple[str, ...]) -> None:
    (name,) = _NAMES.table(table)
    for (index,) in connection.execute("SELECT name FROM pragma_index_list(?)", (name,)).fetchall():
        found = connection.execute("SELECT name FROM pragma_index_info(?) ORDER BY seqno", (index,)).fetchall()
        if tuple(column for (column,) in found) == columns:
            return
    # An index keeps its name when its table is renamed; numbers keep the names unique.
    numbers = "SELECT 1 + coalesce(max(CAST(substr(name, ?) AS INTEGER)), 0) FROM sqlite_master WHERE name GLOB ?"
    (number,) = connection.execute(numbers, (len(_INDEX) + 1, f"{_INDEX}[0-9]*")).fetchone()
    connection.execute(f"CREATE INDEX {_INDEX}{number} ON {table_name(table)} ({column_names(columns)})")


def _same_storage(change: AlterTable) -> bool:
    """True if only MySQL's definition changes, not the stored columns: a longer varchar, an int to a bigint."""
    before, after = change.before, change.after
    return (
        before.key == after.key
        and [(column.name, sqlite_type(column)) for column in before.columns]
        == [(column.name, sqlite_type(column)) for column in after.columns]
        and all(
            isinstance(origin, ExistingColumn) and origin.name == column.name and not origin.pad and not origin.cut
            for origin, column in zip(change.origins, after.columns, strict=True)
        )
    )


def _expressions(change: AlterTable) -> tuple[str, list[Value]]:
    parts: list[str] = []
    values: list[Value] = []
    for origin in change.origins:
        match origin:
            case ExistingColumn(name) if origin.cut:
                parts.append(f"substr({quoted(name)}, 1, length({quoted(name)}) - ?)")
                values.append(origin.cut)
            case ExistingColumn(name, pad):
                parts.append(f"{quoted(name)} || ?" if pad else quoted(name))
                values += [pad] if pad else []
            case KnownValue(value):
                parts.append("?")
                values.append(value)
            case UnknownValue():
                parts.append("NULL")
    parts += [quoted(column.name) for column in change.after.transaction]  # DDL does not change who wrote a row
    return ", ".join(parts), values
