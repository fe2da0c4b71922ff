"""DDL operations as statements of MySQL, each of which a server executes whole or not at all (`once`).

At the end of a load rows are deleted by DELETE statements, not by DDL: `MySqlTarget._load`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Final

from connector.ddl.syntax.tokens import quoted
from connector.ddl.syntax.type_names import charset_name
from connector.errors import TargetDiffers
from connector.log.transaction.layout import Column, TableName
from connector.targets.mysql.ddl.unfit import values_of
from connector.targets.mysql.server.connection import ServerSession
from connector.targets.mysql.sql.literals import value_literal
from connector.targets.mysql.sql.names import table_condition, table_name, text_literal
from connector.targets.mysql.sql.types import index_part, mysql_type
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
    Truncate,
    UnknownValue,
    column_has_nulls,
    value_would_change,
    values_are_unknown,
)
from connector.targets.table import Table
from connector.targets.types import parse

_INDEX: Final = "thl_key_"


class Effect(StrEnum):
    """The effect of a statement on the tables that it names, as their states show it."""

    REPEATABLE = "repeatable"  # executed twice it leaves the same
    CREATE = "create"
    DROP = "drop"
    RENAME = "rename"
    ALTER = "alter"
    MOVE = "move"  # an ALTER that also gives the table another name
    PERMUTE = "permute"  # an ALTER after which the definition may be the same, and the values are in other columns


@dataclass(frozen=True, slots=True)
class DdlStep:
    """A statement, and the checks before it.

    Args:
        sql: its text; "" if there is nothing to execute.
        effect: its effect.
        tables: the tables that it names; for a rename, pairs of the old and the new name, one after the other.
        check: refuses the statement for what the tables have; raises the error.
        needed: false if it is not to be executed, asked right before.
        settings: assignments that make the session that of the source's statement.
        database: its default database.
    """

    sql: str | bytes
    effect: Effect
    tables: tuple[TableName, ...] = ()
    check: Callable[[ServerSession], None] = field(default=lambda _: None, compare=False)
    needed: Callable[[ServerSession], bool] = field(default=lambda _: True, compare=False)
    settings: tuple[str, ...] = ()
    database: str = ""

    @property
    def text(self) -> str:
        """The statement for the bookkeeping and for errors."""
        return self.sql if isinstance(self.sql, str) else self.sql.decode(errors="replace")


def steps_of(
    operations: Iterable[Operation], session: ServerSession, existed: Callable[[TableName], bool] | None = None
) -> list[DdlStep]:
    """The statements of operations. Renames that follow each other are one statement: a ring has no moment between.

    Args:
        operations: in their order.
        session: with the server.
        existed: whether a table was there before the first of them, some of which may be executed (`DdlOnce.existed`);
            None: none is.

    Raises:
        TargetDiffers: a table that is to be renamed, and may be missing, has a name that another owner's table has.
    """
    found: list[DdlStep] = []
    renames: list[RenameTable] = []
    existed = existed or partial(exists, session)
    for operation in operations:
        if isinstance(operation, RenameTable):
            renames.append(operation)
            continue
        found += _renamed(renames, existed)
        renames.clear()
        found += _step(operation, session)
    return [*found, *_renamed(renames, existed)]


def _step(operation: Operation, session: ServerSession) -> list[DdlStep]:
    match operation:
        case CreateSchema(schema):
            return [schema_step(schema)]
        case DropSchema(schema):
            return [
                DdlStep(
                    f"DROP DATABASE IF EXISTS {quoted(schema)}",
                    Effect.REPEATABLE,
                    needed=lambda session: not keeps_schema(session, schema),
                )
            ]
        case CreateTable(table):
            return [schema_step(table.name.schema), _create(table, mariadb=session.mariadb)]
        case DropTable(table):  # IF EXISTS: a user may have dropped it
            return [DdlStep(f"DROP TABLE IF EXISTS {table_name(table.name)}", Effect.DROP, (table.name,))]
        case Truncate(table):
            return [DdlStep(f"TRUNCATE TABLE {table_name(table.name)}", Effect.REPEATABLE, (table.name,))]
        case AlterTable():
            return _alter(operation, mariadb=session.mariadb)
        case IndexKey(table, columns):
            return _index(session, table, columns)
        case AllowNull():
            return []  # no column but the key's is NOT NULL
        case _:
            raise TypeError(f"{operation} changes rows")


def schema_step(schema: str, charset: str = "") -> DdlStep:
    """The step that creates a database unless it exists, with a default character set if one is given."""
    return DdlStep(
        f"CREATE DATABASE IF NOT EXISTS {quoted(schema)}{charset and f' CHARACTER SET {charset}'}",
        Effect.REPEATABLE,
        needed=lambda session: not has_schema(session, schema),
    )


def check_charset(session: ServerSession, schema: str, charset: str) -> None:
    """Refuse to create a table in a database of another default character set than the source's.

    Args:
        session: with the server.
        schema: the database.
        charset: the source's; "" if it is not known, or if the statement does not depend on it.

    Raises:
        TargetDiffers: it has another.
    """
    where = f"schema_name = {text_literal(schema)}"
    query = f"SELECT default_character_set_name FROM information_schema.schemata WHERE {where}"
    for (own,) in session.rows(query) if charset else ():
        if charset_name(own) != charset:
            raise TargetDiffers(
                f"the default character set of database {schema} is {own} here, and {charset} at the source; "
                "a table is to be created that has the default",
                hint=f"ALTER DATABASE {quoted(schema)} CHARACTER SET {charset}",
            )


def has_schema(session: ServerSession, schema: str) -> bool:
    """True if the server has a database of this name."""
    query = f"SELECT 1 FROM information_schema.schemata WHERE schema_name = {text_literal(schema)}"
    return bool(session.rows(query))


def keeps_schema(session: ServerSession, schema: str) -> bool:
    """True if a database has something that the applier did not create."""
    query = " UNION ALL ".join(
        f"SELECT 1 FROM information_schema.{what} WHERE {column} = {text_literal(schema)}"
        for what, column in (("tables", "table_schema"), ("routines", "routine_schema"), ("events", "event_schema"))
    )
    return bool(session.rows(query))


def exists(session: ServerSession, name: TableName) -> bool:
    """True if the server has a table or view of this name."""
    where = table_condition(name)
    return bool(session.rows(f"SELECT 1 FROM information_schema.tables WHERE {where}"))


def refuse_foreign(session: ServerSession, name: TableName) -> None:
    """Refuse to create a table under a name that is taken.

    Raises:
        TargetDiffers: it is.
    """
    if exists(session, name):
        raise TargetDiffers(
            f"table {name} exists and the applier did not create it",
            hint=f"if target.url does not name the source: DROP TABLE {table_name(name)}, or rename it",
        )


def column_names_of(session: ServerSession, name: TableName) -> set[str]:
    """The names of a table's columns on the server."""
    where = table_condition(name)
    return {str(one) for (one,) in session.rows(f"SELECT column_name FROM information_schema.columns WHERE {where}")}


def _definition(column: Column, table: Table, *, mariadb: bool) -> str:
    null = "NOT NULL" if column.name in table.key else "NULL"
    return f"{quoted(column.name)} {mysql_type(column, mariadb=mariadb)} {null}"


def _primary_key(table: Table) -> str:
    parts = []
    for name in table.key:
        column = table.column(name)
        sized = column is None or parse(column.type).sizes
        parts.append(quoted(name) + ("" if sized or column is None else index_part(column)))
    return f"PRIMARY KEY ({', '.join(parts)})"


def _create(table: Table, *, mariadb: bool) -> DdlStep:
    parts = [_definition(column, table, mariadb=mariadb) for column in table.stored]
    if table.key:
        parts.append(_primary_key(table))
    comment = f" COMMENT = {text_literal(table.comment)}" if table.comment else ""
    sql = f"CREATE TABLE {table_name(table.name)} ({', '.join(parts)}) ENGINE = InnoDB ROW_FORMAT = DYNAMIC{comment}"
    return DdlStep(sql, Effect.CREATE, (table.name,), lambda session: refuse_foreign(session, table.name))


def _renamed(renames: Sequence[RenameTable], existed: Callable[[TableName], bool]) -> list[DdlStep]:
    """The one statement of renames that follow each other, without the tables that a user has dropped."""
    if not renames:
        return []
    gone: set[TableName] = set()
    left = []
    for one in renames:
        if one.table.name in gone or (one.optional and not existed(one.table.name)):
            gone.discard(one.table.name)
            gone.add(one.name)
        else:
            left.append(one)
    if not left:
        return []
    pairs = ", ".join(f"{table_name(one.table.name)} TO {table_name(one.name)}" for one in left)
    named = tuple(name for one in left for name in (one.table.name, one.name))
    schemas = [schema_step(schema) for schema in dict.fromkeys(one.name.schema for one in left)]
    return [*schemas, DdlStep(f"RENAME TABLE {pairs}", Effect.RENAME, named)]


def check_values(session: ServerSession, change: AlterTable) -> None:
    """Stop if existing rows get values that only the source knows, or lose theirs.

    Raises:
        Unsupported: they do.
    """
    name = table_name(change.before.name)
    for origin, column in zip(change.origins, change.after.columns, strict=True):
        if isinstance(origin, UnknownValue) and session.rows(f"SELECT 1 FROM {name} LIMIT 1"):
            raise values_are_unknown(change, column, origin.reason)
        if isinstance(origin, ExistingColumn):
            old = change.before.column(origin.name)
            if origin.filled and session.rows(f"SELECT 1 FROM {name} WHERE {quoted(origin.name)} IS NULL LIMIT 1"):
                raise column_has_nulls(change, origin.name)
            if origin.unfit and old is not None:
                for value in values_of(session, change.before.name, old):
                    if any(unfit.matches(value) for unfit in origin.unfit):
                        raise value_would_change(change, column, value)


def _alter(change: AlterTable, *, mariadb: bool) -> list[DdlStep]:
    clauses = _clauses(change, mariadb=mariadb)

    def check(session: ServerSession) -> None:
        check_values(session, change)

    sql = f"ALTER TABLE {table_name(change.before.name)} {', '.join(clauses)}" if clauses else ""
    return [DdlStep(sql, effect_of(change), (change.before.name,), check)]


def effect_of(change: AlterTable) -> Effect:
    """The effect of an ALTER TABLE on the definition."""
    same = change.after.layout == change.before.layout
    moved = any(
        isinstance(origin, ExistingColumn) and origin.name != column.name
        for origin, column in zip(change.origins, change.after.columns, strict=True)
    )
    return Effect.PERMUTE if same and moved else Effect.ALTER


def _clauses(change: AlterTable, *, mariadb: bool) -> list[str]:
    before, after = change.before, change.after
    kept = {origin.name for origin in change.origins if isinstance(origin, ExistingColumn)}
    clauses = [f"DROP COLUMN {quoted(column.name)}" for column in before.columns if column.name not in kept]
    renamed = {
        origin.name: column.name
        for origin, column in zip(change.origins, after.columns, strict=True)
        if isinstance(origin, ExistingColumn)
    }
    same_key = tuple(renamed.get(name, "") for name in before.key) == after.key
    if before.key and not same_key:
        clauses.append("DROP PRIMARY KEY")
    in_order = [renamed[column.name] for column in before.columns if column.name in renamed]
    added = [c.name for o, c in zip(change.origins, after.columns, strict=True) if not isinstance(o, ExistingColumn)]
    moves = [*in_order, *added] != [column.name for column in after.columns]
    previous = ""
    for origin, column in zip(change.origins, after.columns, strict=True):
        place = (f" AFTER {quoted(previous)}" if previous else " FIRST") if moves else ""
        if not place and after.transaction and not isinstance(origin, ExistingColumn):
            place = f" AFTER {quoted(previous)}" if previous else " FIRST"  # metadata columns stay the last
        previous = column.name
        text = _definition(column, after, mariadb=mariadb)
        if isinstance(origin, ExistingColumn):
            old = before.column(origin.name)
            if place or old is None or _definition(old, before, mariadb=mariadb) != text:
                clauses.append(f"CHANGE COLUMN {quoted(origin.name)} {text}{place}")
            continue
        default = ""
        if isinstance(origin, KnownValue) and origin.value is not None:
            default = f" DEFAULT ({value_literal(column, origin.value, mariadb=mariadb)})"
        clauses.append(f"ADD COLUMN {text}{default}{place}")
    if after.key and not same_key:
        clauses.append(f"ADD {_primary_key(after)}")
    return clauses


def _index(session: ServerSession, table: Table, columns: tuple[str, ...]) -> list[DdlStep]:
    """The index by which rows are found, unless the table has one that begins with these columns."""
    where = table_condition(table.name)
    query = f"SELECT index_name, column_name FROM information_schema.statistics WHERE {where} ORDER BY 1, seq_in_index"
    found: dict[str, list[str]] = {}
    for index, column in session.rows(query):
        found.setdefault(str(index), []).append(str(column))
    if any(tuple(parts[: len(columns)]) == columns for parts in found.values()):
        return []
    parts = []
    for name in columns:
        column = table.column(name)
        parts.append(quoted(name) + ("" if column is None else index_part(column)))
    number = next(number for number in range(1, len(found) + 2) if f"{_INDEX}{number}" not in found)
    sql = f"CREATE INDEX {_INDEX}{number} ON {table_name(table.name)} ({', '.join(parts)})"
    return [DdlStep(sql, Effect.REPEATABLE, (table.name,))]
