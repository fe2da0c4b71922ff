"""Applies DDL operations to PostgreSQL, inside the transaction of the commit.

Tables have no constraint but the primary key and NOT NULL, and the deferred unique keys of `build_indexes`, so rows of
a commit may be applied in any order. A table whose rows the log identifies by another key has an index on that key,
which is not unique.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Final

import psycopg
from psycopg.errors import DataError, DuplicateTable, NotNullViolation

from connector.errors import TargetDiffers, ValueNotRepresentable
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
    column_has_nulls,
    swept,
    value_would_change,
    values_are_unknown,
)
from connector.targets.postgres.errors import connector_error
from connector.targets.postgres.literals import constant, default_of, literal
from connector.targets.postgres.marks import sweep
from connector.targets.postgres.names import NAMES, column_name, column_names, table_name
from connector.targets.postgres.probes import condition
from connector.targets.postgres.types import ENTRY_BYTES, by_bytes, entry_bytes, postgres_type
from connector.targets.table import Table

LOG: Final = logging.getLogger(__name__)

_MOVING = "thl_passing"  # the temporary name of a table that moves to another schema
_INDEXED = """
SELECT 1 FROM pg_index i WHERE i.indrelid = %s::regclass AND %s::text[] = (
  SELECT array_agg(a.attname::text ORDER BY k.nth) FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(number, nth)
  JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number)
  AND NOT EXISTS (SELECT FROM pg_collation c WHERE c.collname = 'default' AND c.oid = ANY (i.indcollation::oid[]))
"""

ANY_CALLED = """
SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ANY(%s) AND c.relname = %s
"""
_CALLED = """
SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('i', 'I')
"""
# The indexes of a table whose names exist in a schema.
_TAKEN = """
SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = %s::regclass AND EXISTS (
  SELECT FROM pg_class o JOIN pg_namespace n ON n.oid = o.relnamespace WHERE n.nspname = %s AND o.relname = c.relname)
"""

_REAL = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), coalesce(a.attnum = ANY (i.indkey::int2[]), false),
  coalesce(to_jsonb(a) ->> 'attgenerated', ''), a.attidentity = 'a'
FROM pg_attribute a LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""


def run(connection: psycopg.Connection, operation: Operation) -> None:
    """Apply an operation.

    Raises:
        TargetDiffers: a table of another owner has the name, or another owner's object depends on the table.
        Unsupported: existing rows get values that only the source knows.
        ValueNotRepresentable: existing rows get a value that PostgreSQL cannot store.
        TargetUnavailable, PreflightError: the server refuses the statement.
    """
    for statement in _statements(connection, operation):
        try:
            done = connection.execute(statement.encode())
            if isinstance(operation, Sweep):
                LOG.info(
                    "a table is whole: it lost rows that the load did not bring",
                    extra=swept(operation, done.rowcount),
                )
        except DuplicateTable as error:
            raise TargetDiffers(
                f"a table exists that the applier did not create: {error.diag.message_primary}",
                hint="rename it or drop it",
            ) from error
        except NotNullViolation as error:
            raise TargetDiffers(f"PostgreSQL: {error.diag.message_primary}", statement=statement) from error
        except DataError as error:
            raise ValueNotRepresentable(f"PostgreSQL: {error.diag.message_primary}", statement=statement) from error
        except psycopg.Error as error:
            raise connector_error(error) from error


def _statements(connection: psycopg.Connection, operation: Operation) -> Iterator[str]:
    match operation:
        case CreateSchema(schema):
            yield from _schema(connection, schema)
        case DropSchema(schema):
            if schema != "public" and _is_empty(connection, schema):
                yield f"DROP SCHEMA IF EXISTS {quoted(NAMES.column(schema))}"
        case CreateTable(table):
            yield from _schema(connection, table.name.schema)
            yield from _no_index_called(connection, table.name)
            yield _create(table)
            yield from _comments(table, {}, "")
        case DropTable(table, optional):
            yield f"DROP TABLE {'IF EXISTS ' if optional else ''}{table_name(table.name)}"
        case RenameTable(table, name, optional):
            if optional and not column_names_of(connection, table.name):
                return
            yield from _rename(connection, table.name, name)
        case Truncate(table):
            # Not TRUNCATE: readers with an older snapshot would see an empty table.
            yield f"DELETE FROM {table_name(table.name)}"
        case Sweep(table, marks):
            yield sweep(table, marks)
        case AlterTable():
            yield from _alter(connection, operation)
            before = dict(operation.before.comments)
            kept = {
                column.name: before.get(origin.name, "")
                for column, origin in zip(operation.after.columns, operation.origins, strict=True)
                if isinstance(origin, ExistingColumn)
            }
            yield from _comments(operation.after, kept, operation.before.comment)
        case AllowNull(table, names):
            # Tables of earlier versions have no such constraint, and PostgreSQL says nothing.
            for column in sorted(names):
                yield f"ALTER TABLE {table_name(table.name)} ALTER COLUMN {column_name(column)} DROP NOT NULL"
        case IndexKey(table, columns):
            yield from _index(connection, table, columns)


def column_names_of(connection: psycopg.Connection, name: TableName) -> set[str]:
    """The names of a table's columns in the database."""
    query = "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"
    return {str(column) for (column,) in connection.execute(query, (table_name(name),))}


class PostgresDictionary:
    """The data dictionary of the database (`connector.targets.ddl.by_hand.Dictionary`).

    Args:
        connection: to the database.
    """

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def real(self, name: TableName) -> RealTable | None:
        """The table in the database."""
        found = self._connection.execute(_REAL, (table_name(name),)).fetchall()
        if not found:
            return None
        computed = {
            str(column): _plain(name, str(column), str(generated))
            for column, _, _, generated, identity in found
            if generated or identity
        }
        columns = {str(column): str(kind) for column, kind, *_ in found}
        return RealTable(columns, frozenset(str(column) for column, _, key, *_ in found if key), computed)

    def expected(self, table: Table) -> RealTable:
        """The table that `_create` makes, as the dictionary prints it."""
        columns = {
            NAMES.column(column.name): postgres_type(column).replace("numeric(20)", "numeric(20,0)")
            for column in table.stored
        }
        return RealTable(columns, frozenset(map(NAMES.column, table.key)))


def _plain(table: TableName, column: str, generated: str) -> str:
    """The statements that make an ordinary column of one that the server computes."""
    alter = f"ALTER TABLE {table_name(table)}"
    name = quoted(column)
    if generated == "v":  # virtual, since PostgreSQL 18: its expression cannot be dropped
        return f"{alter} DROP COLUMN {name}, and ADD COLUMN it plain; then fill it with the source's values"
    return f"{alter} ALTER COLUMN {name} DROP {'EXPRESSION' if generated else 'IDENTITY'}"


def _schema(connection: psycopg.Connection, schema: str) -> Iterator[str]:
    name = NAMES.table(TableName(schema, ""))[0]
    # CREATE SCHEMA IF NOT EXISTS needs the privilege to create one even if it exists.
    if not connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (name,)).fetchone():
        yield f"CREATE SCHEMA {quoted(name)}"


def _is_empty(connection: psycopg.Connection, schema: str) -> bool:
    """True if a schema contains no object of any owner."""
    name = NAMES.table(TableName(schema, ""))[0]
    return not connection.execute(
        "SELECT 1 FROM pg_depend d JOIN pg_namespace n ON d.refobjid = n.oid "
        "WHERE d.refclassid = 'pg_namespace'::regclass AND n.nspname = %s",
        (name,),
    ).fetchone()


def _create(table: Table) -> str:
    parts = [
        f"{column_name(column.name)} {postgres_type(column, key=index in table.layout.key)}{_constraint(table, column)}"
        for index, column in enumerate(table.stored)
    ]
    if table.key:
        parts.append(f"PRIMARY KEY ({column_names(table.key)})")
    return f"CREATE TABLE {table_name(table.name)} ({', '.join(parts)})"


def _constraint(table: Table, column: Column) -> str:
    """The SQL after a column's type: DEFAULT and NOT NULL."""
    default = default_of(table, column)
    return (f" DEFAULT {default}" if default else "") + (" NOT NULL" if table.is_not_null(column) else "")


def _rename(connection: psycopg.Connection, old: TableName, new: TableName) -> Iterator[str]:
    (before, _), (after, table) = NAMES.table(old), NAMES.table(new)
    if before == after:
        yield from _no_index_called(connection, new)
        yield f"ALTER TABLE {table_name(old)} RENAME TO {quoted(table)}"
        return
    yield from _schema(connection, new.schema)
    yield from _no_index_called(connection, new)
    for (index,) in connection.execute(_TAKEN, (table_name(old), after)).fetchall():
        yield _renamed_index(connection, str(index), before, after)
    yield f"ALTER TABLE {table_name(old)} RENAME TO {_MOVING}"
    yield f"ALTER TABLE {quoted(before)}.{_MOVING} SET SCHEMA {quoted(after)}"
    yield f"ALTER TABLE {quoted(after)}.{_MOVING} RENAME TO {quoted(table)}"


def _no_index_called(connection: psycopg.Connection, name: TableName) -> Iterator[str]:
    """Rename an index that has the name of a new table. No statement depends on the names of indexes."""
    schema, table = NAMES.table(name)
    if connection.execute(_CALLED, (schema, table)).fetchone():
        yield _renamed_index(connection, table, schema)


def _renamed_index(connection: psycopg.Connection, name: str, *schemas: str) -> str:
    """Rename an index of the first schema to a name that none of the schemas has; a key's constraint follows."""
    for number in count(1):
        free = f"{NAMES.column(name[:40])}_{number}"
        if not connection.execute(ANY_CALLED, (list(schemas), free)).fetchone():
            return f"ALTER INDEX {quoted(schemas[0])}.{quoted(name)} RENAME TO {quoted(free)}"
    raise AssertionError("numbers do not end")


def _alter(connection: psycopg.Connection, change: AlterTable) -> Iterator[str]:
    _refuse_unknown(connection, change)
    name = table_name(change.before.name)
    before = {column.name: (column, column.name in change.before.key) for column in change.before.columns}
    kept = {origin.name: index for index, origin in enumerate(change.origins) if isinstance(origin, ExistingColumn)}
    # The key is the same if its columns are, under any name.
    called = {
        origin.name: column.name
        for origin, column in zip(change.origins, change.after.columns, strict=True)
        if isinstance(origin, ExistingColumn)
    }
    key_changes = tuple(called.get(column) for column in change.before.key) != change.after.key
    if key_changes and change.before.key:
        yield f"ALTER TABLE {name} DROP CONSTRAINT {_key_constraint(connection, change.before.name)}"
    for gone in before.keys() - kept.keys():
        yield f"ALTER TABLE {name} DROP COLUMN {column_name(gone)}"
    # By way of temporary names, so that columns can swap names.
    moved = [
        (old, f"thl_moved_{index}", change.after.columns[index].name)
        for old, index in kept.items()
        if old != change.after.columns[index].name
    ]
    for old, passing, _ in moved:
        yield f"ALTER TABLE {name} RENAME COLUMN {column_name(old)} TO {passing}"
    for _, passing, new in moved:
        yield f"ALTER TABLE {name} RENAME COLUMN {passing} TO {column_name(new)}"
    for column, origin in zip(change.after.columns, change.origins, strict=True):
        key = column.name in change.after.key
        if isinstance(origin, ExistingColumn):
            old_column, was_key = before[origin.name]
            kind = postgres_type(column, key=key)
            alter = f"ALTER TABLE {name} ALTER COLUMN {column_name(column.name)}"
            if kind != postgres_type(old_column, key=was_key):
                yield f"{alter} TYPE {kind}"
            default = default_of(change.after, column)  # a value of the new type
            if default != default_of(change.before, old_column):
                yield f"{alter} {f'SET DEFAULT {default}' if default else 'DROP DEFAULT'}"
            was = change.before.is_not_null(old_column)
            if (becomes := change.after.is_not_null(column)) != was or (was_key and key_changes):
                yield f"{alter} {'SET' if becomes else 'DROP'} NOT NULL"
        else:
            yield from _add(connection, change.after, column, origin, key)
    if key_changes and change.after.key:
        yield f"ALTER TABLE {name} ADD PRIMARY KEY ({column_names(change.after.key)})"


def _comments(table: Table, columns: Mapping[str, str], before: str) -> Iterator[str]:
    """The comments of a table and its columns that differ from those before."""
    name, comments = table_name(table.name), dict(table.comments)
    if table.comment != before:
        yield f"COMMENT ON TABLE {name} IS {_comment(table.comment)}"
    for column in table.columns:
        if (comment := comments.get(column.name, "")) != columns.get(column.name, ""):
            yield f"COMMENT ON COLUMN {name}.{column_name(column.name)} IS {_comment(comment)}"


def _comment(text: str) -> str:
    """A comment as a literal; PostgreSQL's text has no U+0000."""
    return constant(text.replace("\0", "\ufffd")) if text else "NULL"


def _index(connection: psycopg.Connection, table: Table, names: tuple[str, ...]) -> Iterator[str]:
    """Compares by bytes, as `merge` does. A key that may be too long for a B-tree has a hash of its longest column."""
    columns = [column for name in names if (column := table.column(name)) is not None]
    sizes = [entry_bytes(column) for column in columns]
    method = "btree"
    if sum(sizes) > ENTRY_BYTES:
        method, columns = "hash", [columns[sizes.index(max(sizes))]]
    name = table_name(table.name)
    existing = connection.execute(_INDEXED, (name, [NAMES.column(column.name) for column in columns])).fetchone()
    if existing is None:
        parts = ", ".join(f"{column_name(column.name)}{by_bytes(column)}" for column in columns)
        yield f"CREATE INDEX ON {name} USING {method} ({parts})"


def _add(
    connection: psycopg.Connection, table: Table, column: Column, origin: KnownValue | UnknownValue, key: bool
) -> Iterator[str]:
    name = table_name(table.name)
    definition = f"{column_name(column.name)} {postgres_type(column, key=key)}"
    # An empty table needs no value, so PostgreSQL need not be able to store it.
    if isinstance(origin, UnknownValue) or origin.value is None or not _exists(connection, name):
        yield f"ALTER TABLE {name} ADD COLUMN {definition}{_constraint(table, column)}"
        return
    # A constant default fills existing rows without rewriting them; later rows have a value in the log.
    filled, default = literal(column, origin.value), default_of(table, column)
    not_null = " NOT NULL" if table.is_not_null(column) else ""
    yield f"ALTER TABLE {name} ADD COLUMN {definition} DEFAULT {filled}{not_null}"
    if default != filled:
        action = f"SET DEFAULT {default}" if default else "DROP DEFAULT"
        yield f"ALTER TABLE {name} ALTER COLUMN {column_name(column.name)} {action}"


def _refuse_unknown(connection: psycopg.Connection, change: AlterTable) -> None:
    name = table_name(change.before.name)
    for origin, column in zip(change.origins, change.after.columns, strict=True):
        match origin:
            case UnknownValue(reason) if _exists(connection, name):
                raise values_are_unknown(change, column, reason)
            case ExistingColumn(old, filled=True) if _exists(connection, name, f"{column_name(old)} IS NULL"):
                raise column_has_nulls(change, old)
            case ExistingColumn(old, unfit=unfit):
                for one in unfit:
                    where = condition(column_name(old), one, column)
                    query = f"SELECT {column_name(old)}::text FROM {name} WHERE {where} LIMIT 1"
                    if found := connection.execute(query.encode()).fetchone():
                        raise value_would_change(change, column, found[0])


def _exists(connection: psycopg.Connection, name: str, where: str = "true") -> bool:
    query = f"SELECT EXISTS (SELECT 1 FROM {name} WHERE {where})"
    row = connection.execute(query.encode()).fetchone()
    return bool(row and row[0])


def _key_constraint(connection: psycopg.Connection, name: TableName) -> str:
    row = connection.execute(
        "SELECT conname FROM pg_constraint WHERE contype = 'p' AND conrelid = %s::regclass", (table_name(name),)
    ).fetchone()
    if row is None:
        raise TargetDiffers(f"table {name} has lost its primary key")
    return quoted(str(row[0]))
