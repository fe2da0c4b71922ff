"""A DDL event that a user has applied by hand: compares the definitions after it with the tables on the target.

A statement that is not understood leaves the definitions as they were. If that is wrong, the next row of the table
stops the applier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from connector.ddl.affected_tables import affected_tables
from connector.errors import ConnectorError, TargetDiffers, Unsupported
from connector.log.compact.net_changes import ANY, Ddl
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName
from connector.targets.ddl.plan import plan
from connector.targets.histories import tables_of
from connector.targets.operations import AlterTable, CreateTable, Operation, RenameTable, Truncate
from connector.targets.table import Table
from connector.targets.target_schema import TargetSchema, changed


@dataclass(frozen=True, slots=True)
class RealTable:
    """A table in the target's data dictionary.

    Args:
        columns: the declared type by the column's name.
        key: the names of the primary key's columns.
        computed: columns that the target computes, each with the way to make it an ordinary column.
    """

    columns: Mapping[str, str]
    key: frozenset[str]
    computed: Mapping[str, str] = field(default_factory=dict)


class Dictionary(Protocol):
    """The data dictionary of a target."""

    def real(self, name: TableName) -> RealTable | None:
        """The table of this name; None if it does not exist."""

    def expected(self, table: Table) -> RealTable:
        """The entry that a table of this definition would have."""


@dataclass(frozen=True, slots=True)
class ByHand:
    """The effect of an event that a user has applied by hand.

    Args:
        target_schema: the tables after the event.
        tables: the tables whose rows the user has changed; `ANY` for unknown tables.
        statements: the text of each statement, and the tables that it changed, by all their names.
    """

    target_schema: TargetSchema
    tables: tuple[TableName, ...]
    statements: tuple[tuple[str, tuple[TableName, ...]], ...]


def done_by_hand(ddl: Ddl, target_schema: TargetSchema, dictionary: Dictionary) -> ByHand:
    """Find the effect of a DDL event that a user has applied, and compare it with the target.

    Args:
        ddl: the event.
        target_schema: the tables before.
        dictionary: the target's data dictionary.

    Raises:
        TargetDiffers: the target's tables are not as the statements leave them.
    """
    after = target_schema
    operations: list[Operation] = []
    unread: list[TableName] = []
    statements: list[tuple[str, tuple[TableName, ...]]] = []
    for statement in ddl.statements:
        try:
            found = plan(statement, after, ddl.commit_time, by_hand=True)
        except Unsupported:
            named = _named_by(statement)
            unread += named
            statements.append((statement.sql, named))
            continue
        after = found.target_schema
        operations += found.operations
        statements.append((statement.sql, tuple(tables_of(found.operations))))
    touched = _touched(operations)
    gone, new = changed(target_schema, after)
    try:
        for name in gone:
            if name not in after and dictionary.real(name) is not None:
                raise TargetDiffers(f"table {name} is still on the target", table=name)
        for name in dict.fromkeys([*(table.name for table in new), *touched]):
            table = after.find(name)
            if table is not None:
                _compare(table, dictionary)
    except ConnectorError as error:
        sql = "; ".join(statement.sql for statement in ddl.statements)
        error.where = {**error.where, "seqno": ddl.seqno, "sql": sql}
        raise
    tables = dict.fromkeys([*(name for name in touched if name in after), *unread])
    return ByHand(after, tuple(tables), tuple(statements))


def _touched(operations: Sequence[Operation]) -> list[TableName]:
    """The changed tables, by their last names."""
    names: dict[TableName, None] = {}
    for operation in operations:
        match operation:
            case CreateTable(table) | Truncate(table) | AlterTable(_, table):
                names[table.name] = None
            case RenameTable(table, name):
                names.pop(table.name, None)
                names[name] = None
    return list(names)


def _named_by(statement: Statement) -> tuple[TableName, ...]:
    """The tables that a statement names which is not understood."""
    try:
        found = affected_tables(statement)
    except Unsupported:
        return (TableName(statement.schema or ANY, ANY),)
    names = {*found.tables, *(() if found.partner is None else (found.partner,))}
    return tuple(sorted(names)) or (TableName(found.schema or statement.schema or ANY, ANY),)


def _compare(table: Table, dictionary: Dictionary) -> None:
    expected, real = dictionary.expected(table), dictionary.real(table.name)
    if real == expected:
        return
    if real is None:
        what = f"table {table.name} does not exist on the target"
    else:
        different = [
            f"{name} is {real.columns.get(name, 'missing')} and must be {expected.columns.get(name, 'gone')}"
            for name in dict.fromkeys([*expected.columns, *real.columns])
            if real.columns.get(name) != expected.columns.get(name)
        ]
        different += [
            f"the target computes {name}, which must be an ordinary column with the source's values"
            for name in real.computed
        ]
        if real.key != expected.key:
            different.append(f"its primary key is ({_named(real.key)}) and must be ({_named(expected.key)})")
        what = f"table {table.name} on the target is not as the statement leaves it: {'; '.join(different)}"
    columns = ", ".join(f"{name} {kind}" for name, kind in expected.columns.items())
    key = f", primary key ({_named(expected.key)})" if expected.key else ""
    mending = "".join(f"; {how}" for how in ({} if real is None else real.computed).values())
    raise TargetDiffers(what, hint=f"it must have exactly: {columns}{key}{mending}", table=table.name)


def _named(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))
