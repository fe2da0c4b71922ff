"""The histories of a target's tables (`connector.log.compact.history`): their creation, and their rows of statements.

A history belongs to a table's name. A table that is renamed begins or continues the history of its new name; one that
is dropped leaves its history, which the next table of the name continues. No statement of the source changes one.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from connector.errors import ConfigError
from connector.log.compact.history import EVENT, HistoryTables, history_layout, history_name
from connector.log.compact.metadata_columns import Value as TransactionValue
from connector.log.compact.net_changes import Ddl, Images, NetChanges
from connector.log.format import avro
from connector.log.transaction.layout import Column, TableName
from connector.targets.operations import (
    AlterTable,
    CreateTable,
    DropTable,
    Operation,
    RenameTable,
    Truncate,
)
from connector.targets.table import Table, make_table
from connector.targets.target_schema import TargetSchema, go_on_without

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STATEMENT = "statement"  # the action of rows of statements
_BEFORE_ROWS = -1  # their position


def history_table(name: TableName) -> Table:
    """The history of a table."""
    layout = history_layout(name)
    key = [layout.columns[index].name for index in layout.key]
    return replace(make_table(layout.name, layout.columns, key, "utf8mb4", indexes=()), history_of=name)


def create_histories(
    schema: TargetSchema, wanted: HistoryTables | None
) -> tuple[tuple[CreateTable, ...], TargetSchema]:
    """The operations that create the histories that tables lack, and the schema after.

    Args:
        schema: the tables.
        wanted: the tables that have a history; None: there are none.

    Raises:
        ConfigError: the source has a table of a history's name.
    """
    created: list[CreateTable] = []
    for table in schema if wanted is not None else ():
        if wanted is None or table.history_of is not None or not wanted.finds(table.name):
            continue
        known = schema.find(history_name(table.name))
        if known is None:
            created.append(CreateTable(history_table(table.name)))
        elif known.history_of is None:
            raise ConfigError(
                f"the history of {table.name} has the name of another table of the source, {known.name}",
                hint=f"leave {table.name} out of target.history",
                table=table.name,
            )
    return tuple(created), schema.with_tables(operation.table for operation in created)


def check_operations(operations: Iterable[Operation]) -> None:
    """Check that a statement changes no history.

    Raises:
        ConfigError: it does: the source has a schema with the name of a history's.
    """
    for operation in operations:
        table = operation.before if isinstance(operation, AlterTable) else getattr(operation, "table", None)
        if isinstance(table, Table) and table.history_of is not None:
            raise ConfigError(
                f"a statement changes {table.name}, which is the history of {table.history_of} here",
                hint="thl apply --skip-seqno leaves the statement out",
                table=table.name,
            )


def check_source_table(schema: TargetSchema, name: TableName) -> None:
    """Check that a table of the source has no history's name: its rows would get into the history.

    Raises:
        ConfigError: it has.
    """
    table = schema.find(name)
    if table is not None and table.history_of is not None:
        raise ConfigError(
            f"the source has a table {name}, and here that is the history of {table.history_of}",
            hint=f"{go_on_without(name)}, which leaves the history as it is",
            table=name,
        )


def tables_of(operations: Iterable[Operation]) -> Iterator[TableName]:
    """The tables that operations change, by all their names."""
    for operation in operations:
        match operation:
            case CreateTable(table) | DropTable(table) | Truncate(table):
                yield table.name
            case AlterTable(table, _):
                yield table.name
            case RenameTable(table, name):
                yield from (table.name, name)


def statement_rows(ddl: Ddl, statements: Mapping[TableName, Sequence[str]], schema: TargetSchema) -> list[NetChanges]:
    """The rows that an event's statements have in histories: one in each.

    Args:
        ddl: the event.
        statements: the statements that changed each table.
        schema: the tables after; those without a history get no row.
    """
    time = (_EPOCH + timedelta(microseconds=ddl.commit_time)).isoformat(" ", "microseconds")[:-6]
    found = []
    for name, texts in statements.items():
        layout = history_layout(name)
        if layout.name not in schema:
            continue
        row = (ddl.seqno, _BEFORE_ROWS, _STATEMENT, None, None, ";\n".join(texts), time if ddl.commit_time else None)
        data = b"".join(map(avro.union, row))
        rows, nothing = Images(data, array("Q", [len(data)])), Images(b"", array("Q"))
        found.append(NetChanges(layout, rows, nothing, nothing, 1, history_of=name))
    return found


def late_values(
    written: Collection[TableName],
    schema: TargetSchema,
    columns: Sequence[Column],
    values: Sequence[TransactionValue],
    event: Sequence[TransactionValue],
) -> Iterator[tuple[TableName, list[tuple[Column, TransactionValue]]]]:
    """Yield what `set_metadata` sets in each table: columns and their values, the first of which finds the rows.

    Args:
        written: the tables with staged rows.
        schema: the tables.
        columns: the target's metadata columns.
        values, event: as those of `set_metadata`.
    """
    for name in written:
        table = schema.find(name)
        history = table is not None and table.history_of is not None
        found = list(zip(EVENT.columns, event, strict=True) if history else zip(columns, values, strict=True))
        if len(found) > 1:
            yield name, found
