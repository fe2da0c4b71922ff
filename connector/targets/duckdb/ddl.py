"""Applies DDL operations to DuckDB, inside the transaction of the commit.

Tables have columns and nothing else: no key (`rows`), no NOT NULL, no default. So DuckDB can change each column in its
place; what others have put on a table, an index above all, can stop it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

from connector.errors import TargetDiffers, Unsupported
from connector.log.transaction.layout import Column, TableName
from connector.targets.duckdb.dictionary import OF_TABLE, column_names_of
from connector.targets.duckdb.file import FileSession
from connector.targets.duckdb.literals import column_literal, literal
from connector.targets.duckdb.marks import sweep
from connector.targets.duckdb.names import NAMES, schema_name
from connector.targets.duckdb.types import Form, duckdb_type, form_of, logged, typed
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
    column_has_nulls,
    swept,
    value_would_change,
    values_are_unknown,
)
from connector.targets.types import parse

LOG: Final = logging.getLogger(__name__)

_PASSING = "thl_passing"  # the temporary name of a table or column
_AT_ONCE = 10_000  # values that are looked at together

_TABLES = "(SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = current_catalog() UNION ALL "
_TABLES += "SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = current_catalog())"
_FOREIGN = f"SELECT 1 FROM {_TABLES} WHERE lower(schema_name) = lower(?) AND lower(table_name) = lower(?)"
_USED = f"SELECT 1 FROM {_TABLES} WHERE lower(schema_name) = lower(?)"
_OTHERS = f"""
SELECT 'index ' || index_name FROM duckdb_indexes() WHERE {OF_TABLE}
UNION ALL SELECT 'trigger ' || trigger_name FROM duckdb_triggers() WHERE {OF_TABLE}
UNION ALL SELECT DISTINCT 'constraint ' || constraint_text FROM duckdb_constraints() WHERE {OF_TABLE}
"""


def run(session: FileSession, operation: Operation) -> None:
    """Apply an operation inside the open transaction.

    Raises:
        TargetDiffers: a table of another owner has the name, or something of others keeps DuckDB from it.
        Unsupported: existing rows get values that only the source knows.
    """
    match operation:
        case CreateSchema(schema):
            session.run(f"CREATE SCHEMA IF NOT EXISTS {schema_name(session.catalog, schema)}")
        case DropSchema(schema):
            if NAMES.fold(schema) != "main" and not session.run(_USED, (schema,)):
                session.run(f"DROP SCHEMA IF EXISTS {schema_name(session.catalog, schema)}")
        case CreateTable(table):
            _refuse_foreign(session, table.name)
            columns = ", ".join(f"{quoted(column.name)} {duckdb_type(column)}" for column in table.stored)
            session.run(f"CREATE SCHEMA IF NOT EXISTS {schema_name(session.catalog, table.name.schema)}")
            session.run(f"CREATE TABLE {session.name(table.name)} ({columns})")
        case DropTable(table, optional):
            session.run(f"DROP TABLE {'IF EXISTS ' if optional else ''}{session.name(table.name)}")
        case RenameTable(table, name, optional):
            if not optional or column_names_of(session, table.name):
                _rename(session, table.name, name)
        case Truncate(table):
            session.run(f"DELETE FROM {session.name(table.name)}")
        case Sweep(table, marks):
            count = session.count(sweep(session, table, marks))
            LOG.info("a table is whole: it lost rows that the load did not bring", extra=swept(operation, count))
        case AlterTable():
            _check(session, operation)
            for statement in _alter(session, operation):
                session.run(statement)
        case AllowNull() | IndexKey():
            pass  # no column is NOT NULL, and no index would be used


def _refuse_foreign(session: FileSession, name: TableName) -> None:
    if session.run(_FOREIGN, NAMES.table(name)):
        raise TargetDiffers(
            f"table {name} exists and the applier did not create it",
            hint=f"DROP TABLE {session.name(name)}, or rename it",
        )


def _rename(session: FileSession, old: TableName, new: TableName) -> None:
    before, after = session.name(old), session.name(new)
    (from_schema, _), (to_schema, table) = NAMES.table(old), NAMES.table(new)
    if NAMES.fold(str(old)) != NAMES.fold(str(new)):
        _refuse_foreign(session, new)
    if NAMES.fold(from_schema) == NAMES.fold(to_schema):
        session.run(f"ALTER TABLE {before} RENAME TO {_PASSING}")
        passing = f"{schema_name(session.catalog, from_schema)}.{_PASSING}"
        session.run(f"ALTER TABLE {passing} RENAME TO {quoted(table)}")
        return
    # DuckDB cannot move a table to another schema: the rows are copied.
    others = [str(one) for (one,) in session.run(_OTHERS, (*NAMES.table(old),) * 3)]
    if others:
        raise TargetDiffers(
            f"{old} moves to another schema, which DuckDB does by a copy, and others have made on it: "
            f"{', '.join(others)}",
            hint="drop these, and create them again when the table has moved",
            table=old,
        )
    session.run(f"CREATE SCHEMA IF NOT EXISTS {schema_name(session.catalog, to_schema)}")
    session.run(f"CREATE TABLE {after} AS SELECT * FROM {before}")
    session.run(f"DROP TABLE {before}")


def _check(session: FileSession, change: AlterTable) -> None:
    """Stop if existing values are not known, or would change."""
    name = session.name(change.before.name)
    filled = bool(session.run(f"SELECT 1 FROM {name} LIMIT 1"))
    before = {column.name: column for column in change.before.columns}
    for origin, column in zip(change.origins, change.after.columns, strict=True):
        if isinstance(origin, UnknownValue) and filled:
            raise values_are_unknown(change, column, origin.reason)
        if not isinstance(origin, ExistingColumn):
            continue
        if origin.filled and session.run(f"SELECT 1 FROM {name} WHERE {quoted(origin.name)} IS NULL LIMIT 1"):
            raise column_has_nulls(change, origin.name)
        if origin.unfit:
            _refuse_unfit(session, change, origin, before[origin.name], column)


def _refuse_unfit(session: FileSession, change: AlterTable, origin: ExistingColumn, old: Column, new: Column) -> None:
    """Stop if the new type would change a value."""
    name = quoted(origin.name)
    sql = f"SELECT {logged(old, name)} FROM {session.name(change.before.name)} WHERE {name} IS NOT NULL"
    found = session.connection.execute(sql)
    while values := found.fetchmany(_AT_ONCE):
        for (value,) in values:
            if any(one.matches(value) for one in origin.unfit):
                raise value_would_change(change, new, value)


def _alter(session: FileSession, change: AlterTable) -> Iterator[str]:
    alter = f"ALTER TABLE {session.name(change.before.name)}"
    before = {column.name: column for column in change.before.columns}
    kept = {origin.name: index for index, origin in enumerate(change.origins) if isinstance(origin, ExistingColumn)}
    gone = [f"{_PASSING}_gone_{index}" for index, name in enumerate(before) if name not in kept]
    dropped = [name for name in before if name not in kept]
    for name, passing in zip(dropped, gone, strict=True):  # at the end: a table has one column at least
        yield f"{alter} RENAME COLUMN {quoted(name)} TO {passing}"
    # By way of temporary names, so that columns can swap names.
    moved = [
        (old, f"{_PASSING}_{index}", change.after.columns[index].name)
        for old, index in kept.items()
        if old != change.after.columns[index].name
    ]
    for old, passing, _ in moved:
        yield f"{alter} RENAME COLUMN {quoted(old)} TO {passing}"
    for _, passing, new in moved:
        yield f"{alter} RENAME COLUMN {passing} TO {quoted(new)}"
    for column, origin in zip(change.after.columns, change.origins, strict=True):
        name = quoted(column.name)
        if isinstance(origin, ExistingColumn):
            value = _converted(before[origin.name], column, origin)
            if value:
                _convert(session, change, column, value)
        elif isinstance(origin, KnownValue) and origin.value is not None:
            yield f"{alter} ADD COLUMN {name} {duckdb_type(column)} DEFAULT {column_literal(column, origin.value)}"
            yield f"{alter} ALTER COLUMN {name} DROP DEFAULT"
        else:
            yield f"{alter} ADD COLUMN {name} {duckdb_type(column)}"
    for passing in gone:
        yield f"{alter} DROP COLUMN {passing}"


def _convert(session: FileSession, change: AlterTable, column: Column, value: str) -> None:
    """Change the type of a column, which has its new name.

    DuckDB converts deleted rows, too, and their values may not fit: so the conversion makes NULL of what does not, and
    the values that are left are counted.
    """
    table, name = session.name(change.before.name), quoted(column.name)
    count = f"SELECT count({name}) FROM {table}"
    before = session.run(count)
    session.run(f"ALTER TABLE {table} ALTER COLUMN {name} TYPE {duckdb_type(column)} USING {value}")
    if session.run(count) != before:
        raise Unsupported("a column gets a type that lacks its values", table=change.before.name, column=column.name)


def _converted(old: Column, new: Column, origin: ExistingColumn) -> str:
    """The expression of a column's values in its new type; "" if they stay as they are."""
    name, same = quoted(new.name), duckdb_type(old) == duckdb_type(new)
    if form_of(new) is Form.TEXT and parse(old.type).base == parse(new.type).base == "decimal":
        text = logged(old, name)
        if origin.cut:
            text = f"left({text}, length({text}) - {origin.cut})"
        if origin.pad:
            text = f"{text} || {literal(origin.pad)}"
        if same:
            return f"({text})" if duckdb_type(new) == "VARCHAR" and (origin.cut or origin.pad) else ""
        return typed(new, f"({text})", attempt=True)
    return "" if same else f"TRY_CAST({name} AS {duckdb_type(new)})"
