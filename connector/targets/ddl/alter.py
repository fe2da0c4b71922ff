"""ALTER TABLE for a target: where the values of each column after it come from."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from connector.ddl.alteration import Alteration, Altered, alter
from connector.ddl.column_spec import ColumnSpec
from connector.ddl.mariadb import ServerDialect
from connector.ddl.syntax import ast
from connector.ddl.syntax.ast_column import stop
from connector.ddl.syntax.clauses import ExchangeRows, RenameTo, naming_another_table
from connector.ddl.syntax.type_names import FLOATS
from connector.log.transaction.layout import Column, TableName
from connector.targets.ddl.column_defaults import default, fill
from connector.targets.ddl.session import Session
from connector.targets.narrowing import Narrowing, Unfit, narrowing, recoded
from connector.targets.operations import AlterTable, Filled, Kept, Operation, RenameTable, Unknowable, Value
from connector.targets.table import Table, make_table
from connector.targets.target_schema import TargetSchema
from connector.targets.types import Widening, widening

Origin = Kept | Filled | Unknowable


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
            if isinstance(item.origin, Kept):
                item.origin = replace(item.origin, unfit=item.origin.unfit + unfit)

    def partition_dropped(self) -> None:
        stop("DROP PARTITION, which deletes rows that the log does not name")


class _ByHand:
    """The meaning of clauses where rows are changed by hand."""

    def added(self, spec: ColumnSpec) -> Origin:
        return Filled(None)

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
            Altered(column, column.name, Kept(column.name), column.name in table.generated) for column in table.columns
        ],
        charset=table.charset,
        dialect=dialect,
        meaning=_ByHand() if by_hand else _Rows(session),
    )
    alter(command, state, lambda: target_schema.get(name))
    if name not in target_schema:
        return [], target_schema
    if not by_hand:
        _forget_generated(state, table)
    after = _after(state, table, session)
    operations: list[Operation] = []
    unknowable = any(isinstance(item.origin, Unknowable) for item in state.columns)
    if after != table or unknowable or by_hand:
        operations.append(AlterTable(table, after, tuple(item.origin for item in state.columns)))
    if after != table or after.defaults != table.defaults:
        target_schema = target_schema.with_table(after)
    if state.rename is not None and state.rename != name:
        operations.append(RenameTable(after, state.rename))
        target_schema = target_schema.without(name).with_table(after.renamed(state.rename))
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
        transaction=before.transaction,
    )


def _defaults(state: Alteration[Origin], before: dict[str, Value], session: Session) -> dict[str, Value]:
    """Those that are known afterwards. What ALTER COLUMN … SET DEFAULT says is not read: it is not known."""
    found = {}
    for item in state.columns:
        if item.spec is not None:
            known = default(item.spec, session)
        else:
            known = Filled(before[item.old]) if item.old in before else None
        if known is not None and not item.defaulted:
            found[item.column.name] = known.value
    return found


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
    return [RenameTable(table, new, optional=True)], target_schema.without(name).with_table(table.renamed(new))


def drop_key(target_schema: TargetSchema, name: TableName) -> tuple[list[Operation], TargetSchema]:
    """The operations of DROP INDEX `PRIMARY`, and the tables after."""
    before = target_schema.get(name)
    after = replace(before, layout=replace(before.layout, key=()))
    origins = tuple(Kept(column.name) for column in before.columns)
    return [AlterTable(before, after, origins)], target_schema.with_table(after)


def _changed(item: Altered[Origin], spec: ColumnSpec) -> Kept | Unknowable:
    """The origin of a changed column's values: itself, if each of them stays what it is."""
    old, new = item.column, spec.column
    if not isinstance(item.origin, Kept):
        stop("a column is changed twice")
    if spec.generated:
        return Unknowable(f"the source computes column {new.name}")
    if spec.inexact:
        stop(f"column {old.name} gets values that only the source knows")
    change: Widening | Narrowing | None = widening(old, new) or narrowing(old, new)
    if change is None:
        stop(f"column {old.name} changes from {_shown(old)} to {_shown(new)}, which may change values")
    unfit = change.unfit if isinstance(change, Narrowing) else ()
    if item.origin.cut or (item.origin.pad and unfit):
        stop("a column is changed twice")
    filled = item.origin.filled or (old.nullable and not new.nullable)
    return Kept(item.origin.name, item.origin.pad + change.pad, filled, item.origin.unfit + unfit)


def _forget_generated(state: Alteration[Origin], before: Table) -> None:
    """Generated columns have unknown values if a column changes its text or bytes."""
    for item in state.columns:
        old = before.column(item.old)
        if item.generated or old is None or not isinstance(item.origin, Kept):
            continue
        new = item.column
        floats = new.type in FLOATS and new.type != old.type
        if item.origin.pad or item.origin.cut or floats or old.charset != new.charset:
            break
    else:
        return
    for item in state.columns:
        if item.generated and isinstance(item.origin, Kept):
            item.origin = Unknowable(f"the source computes column {item.column.name}, from others that change")


def _fit(label: str, unfit: tuple[Unfit, ...]) -> bool:
    return not any(one.matches(label) for one in unfit)


def _shown(column: Column) -> str:
    sign = " unsigned" if column.unsigned else ""
    labels = f"({','.join(column.labels)})" if column.labels else ""
    return f"{column.type}{labels}{sign}{f' {column.charset}' if column.charset else ''}"
