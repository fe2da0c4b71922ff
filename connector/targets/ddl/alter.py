"""ALTER TABLE for a target: where the values of each column after it come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import assert_never

from connector.ddl.alteration import Alteration, Altered, alter
from connector.ddl.column_spec import ColumnSpec
from connector.ddl.indexes import Indexes
from connector.ddl.mariadb import ServerDialect
from connector.ddl.syntax import ast
from connector.ddl.syntax.ast_column import stop
from connector.ddl.syntax.clauses import ExchangeRows, RenameTo, naming_another_table
from connector.ddl.syntax.type_names import FLOATS
from connector.log.transaction.layout import Column, TableName
from connector.targets.ddl.column_defaults import declares, default, fill, respecified
from connector.targets.ddl.session import Session
from connector.targets.narrowing import Narrowing, Unfit, narrowing, recoded
from connector.targets.operations import (
    AlterTable,
    ExistingColumn,
    KnownValue,
    Operation,
    RenameTable,
    UnknownValue,
    Value,
)
from connector.targets.table import Table, make_table
from connector.targets.target_schema import TargetSchema
from connector.targets.widening import Widening, widening

Origin = ExistingColumn | KnownValue | UnknownValue


class _Rows:
    """The meaning of clauses for a target's rows: every value stays what it is, or the statement stops.

    Args:
        session: the statement's.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def added(self, spec: ColumnSpec) -> Origin:
        return fill(spec, self._session)

    def changed(self, item: Altered[Origin], spec: ColumnSpec) -> Origin:
        return _changed(item, spec)

    def converted(self, texts: list[Altered[Origin]], charset: str) -> None:
        for item in texts:
            unfit = recoded(item.column.charset, charset)
            if unfit is None or charset == "binary" or not all(_fit(label, unfit) for label in item.column.labels):
                stop(f"a conversion to {charset}, which may lose characters")
            if isinstance(item.origin, ExistingColumn):
                item.origin = replace(item.origin, unfit=item.origin.unfit + unfit)

    def partition_dropped(self) -> None:
        stop("DROP PARTITION, which deletes rows that the log does not name")


class _ByHand:
    """The meaning of clauses where rows are changed by hand."""

    def added(self, spec: ColumnSpec) -> Origin:
        return KnownValue(None)

    def changed(self, item: Altered[Origin], spec: ColumnSpec) -> Origin:
        return item.origin

    def converted(self, texts: list[Altered[Origin]], charset: str) -> None:
        pass

    def partition_dropped(self) -> None:
        pass


def alter_table(
    command: ast.AlterTableStatement,
    target_schema: TargetSchema,
    dialect: ServerDialect,
    session: Session,
    *,
    by_hand: bool = False,
) -> tuple[list[Operation], TargetSchema]:
    """The operations of ALTER TABLE (none, if no clause changes rows), and the tables after.

    Args:
        command: the statement.
        target_schema: the tables before.
        dialect: the statement's.
        session: the statement's.
        by_hand: whether rows are changed by hand.

    Raises:
        Unsupported: a clause that is not understood, or that may change values.
        TargetDiffers: we have no such table.
    """
    name = command.table.name
    if name in target_schema.excluded:
        return _of_excluded(command, target_schema)
    table = target_schema.find(name) or make_table(name, (), ())
    state = Alteration[Origin](
        name=name,
        columns=[
            Altered(column, column.name, ExistingColumn(column.name), column.name in table.generated)
            for column in table.columns
        ],
        charset=table.charset,
        dialect=dialect,
        meaning=_ByHand() if by_hand else _Rows(session),
        indexes=Indexes(table.indexes or (), mariadb=dialect.mariadb),
    )
    alter(command, state, lambda: target_schema.get(name))
    if name not in target_schema:
        return [], target_schema
    if not by_hand:
        _forget_generated(state, table)
    after = _after(state, table, session)
    operations: list[Operation] = []
    unknowable = any(isinstance(item.origin, UnknownValue) for item in state.columns)
    swapped = any(  # the definition may be the same then
        isinstance(item.origin, ExistingColumn) and item.origin.name != item.column.name for item in state.columns
    )
    if after != table or after.attributes != table.attributes or unknowable or swapped or by_hand:
        operations.append(AlterTable(table, after, tuple(item.origin for item in state.columns)))
    if after != table or after.uncompared != table.uncompared:
        target_schema = target_schema.with_table(after)
    if state.rename is not None and state.rename != name:
        operations.append(RenameTable(after, state.rename))
        target_schema = target_schema.renamed(after, state.rename)
    return operations, target_schema


def _after(state: Alteration[Origin], before: Table, session: Session) -> Table:
    """The table after all clauses, under its name of before."""
    key = state.key_after(before.key)
    return make_table(
        before.name,
        (item.column for item in state.columns),
        key,
        state.charset,
        (item.column.name for item in state.columns if item.generated),
        defaults=_defaults(state, before.defaults_of(), session),
        declared=_declared(state, before, session),
        comment=before.comment if state.comment is None else state.comment,
        comments=_comments(state, dict(before.comments)),
        transaction=before.transaction,
        indexes=None if before.indexes is None else state.indexes_after(key),
        holds_nulls=(
            item.column.name for item in state.columns if item.old in before.holds_nulls and not item.column.nullable
        ),
    )


def _defaults(state: Alteration[Origin], before: dict[str, Value], session: Session) -> dict[str, Value]:
    """Those that are known afterwards. After ALTER COLUMN … DROP DEFAULT none is known."""
    found = {}
    for item in state.columns:
        if item.defaulted or item.spec is not None:
            spec = _defaulting(item, session)
            known = None if spec is None else default(spec, session)
        else:
            known = KnownValue(before[item.old]) if item.old in before else None
        if known is not None:
            found[item.column.name] = known.value
    return found


def _declared(state: Alteration[Origin], before: Table, session: Session) -> Iterator[str]:
    """The columns that have a default by their definition afterwards, as `Table.declared` means it."""
    for item in state.columns:
        if item.defaulted or item.spec is not None:
            spec = _defaulting(item, session)
            declared = spec is not None and declares(spec, session)
        else:
            declared = item.old in before.declared
        if declared:
            yield item.column.name


def _comments(state: Alteration[Origin], before: dict[str, str]) -> dict[str, str]:
    """The columns' comments afterwards."""
    return {
        item.column.name: before.get(item.old, "") if item.spec is None else item.spec.comment for item in state.columns
    }


def _defaulting(item: Altered[Origin], session: Session) -> ColumnSpec | None:
    """The definition that gives a column another default; None if two clauses do, or if it is not known."""
    if not item.defaulted:
        return item.spec
    return None if item.spec is not None or item.generated else respecified(item.column, item.default, session)


def _of_excluded(command: ast.AlterTableStatement, target_schema: TargetSchema) -> tuple[list[Operation], TargetSchema]:
    """Of a table that the applier goes on without only the name is followed; and nothing of it gets into others."""
    new = name = command.table.name
    for clause in map(naming_another_table, command.clauses):
        match clause:
            case None:
                pass
            case RenameTo(_, after):
                new = after.name
            case ExchangeRows(_, partner):
                if partner.name not in target_schema.excluded:
                    stop(f"rows of {name}, which the applier goes on without, and of {partner.name} are exchanged")
            case _:
                assert_never(clause)
    if new == name:
        return [], target_schema
    table, entry = target_schema.find(name), target_schema.excluded[name]
    target_schema = target_schema.including(name).excluding(new, entry)
    if table is None:
        return [], target_schema
    return [RenameTable(table, new, optional=True)], target_schema.renamed(table, new)


def drop_key(target_schema: TargetSchema, name: TableName) -> tuple[list[Operation], TargetSchema]:
    """The operations of DROP INDEX `PRIMARY`, and the tables after."""
    before = target_schema.get(name)
    after = replace(before, layout=replace(before.layout, key=()))
    origins = tuple(ExistingColumn(column.name) for column in before.columns)
    return [AlterTable(before, after, origins)], target_schema.with_table(after)


def alter_indexes(
    target_schema: TargetSchema, name: TableName, change: Callable[[Indexes], None]
) -> tuple[list[Operation], TargetSchema]:
    """The tables after CREATE INDEX or DROP INDEX, which changes no row and no column."""
    table = target_schema.find(name)
    if table is None or table.indexes is None or name in target_schema.excluded:
        return [], target_schema
    indexes = Indexes(table.indexes)
    change(indexes)
    return [], target_schema.with_table(replace(table, indexes=indexes.after(str, table.key)))


def _changed(item: Altered[Origin], spec: ColumnSpec) -> ExistingColumn | UnknownValue:
    """The origin of a changed column's values: itself, if each of them stays what it is."""
    old, new = item.column, spec.column
    if not isinstance(item.origin, ExistingColumn):
        stop("a column is changed twice")
    if spec.generated:
        return UnknownValue(f"the source computes column {new.name}")
    if spec.inexact:
        stop(f"column {old.name} gets values that only the source knows")
    change: Widening | Narrowing | None = widening(old, new) or narrowing(old, new)
    if change is None:
        stop(f"column {old.name} changes from {_shown(old)} to {_shown(new)}, which may change values")
    unfit = change.unfit if isinstance(change, Narrowing) else ()
    if item.origin.cut or (item.origin.pad and unfit):
        stop("a column is changed twice")
    filled = item.origin.filled or (old.nullable and not new.nullable)
    return ExistingColumn(item.origin.name, item.origin.pad + change.pad, filled, item.origin.unfit + unfit)


def _forget_generated(state: Alteration[Origin], before: Table) -> None:
    """Generated columns have unknown values if a column changes its text or bytes."""
    for item in state.columns:
        old = before.column(item.old)
        if item.generated or old is None or not isinstance(item.origin, ExistingColumn):
            continue
        new = item.column
        floats = new.type in FLOATS and new.type != old.type
        if item.origin.pad or item.origin.cut or floats or old.charset != new.charset:
            break
    else:
        return
    for item in state.columns:
        if item.generated and isinstance(item.origin, ExistingColumn):
            item.origin = UnknownValue(f"the source computes column {item.column.name}, from others that change")


def _fit(label: str, unfit: tuple[Unfit, ...]) -> bool:
    return not any(one.matches(label) for one in unfit)


def _shown(column: Column) -> str:
    sign = " unsigned" if column.unsigned else ""
    labels = f"({','.join(column.labels)})" if column.labels else ""
    return f"{column.type}{labels}{sign}{f' {column.charset}' if column.charset else ''}"
