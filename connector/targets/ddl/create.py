"""CREATE TABLE."""

from __future__ import annotations

from connector.ddl.create import definition, like
from connector.ddl.reader import Reader
from connector.errors import TargetDiffers
from connector.log.transaction.layout import Column, TableName
from connector.targets.ddl.column_defaults import default
from connector.targets.ddl.session import Session
from connector.targets.operations import CreateTable, DropTable, Operation
from connector.targets.table import Table, make_table
from connector.targets.target_schema import TargetSchema


def create_table(
    reader: Reader, catalog: TargetSchema, *, sql_mode: str, replace: bool, session: Session
) -> tuple[list[Operation], TargetSchema]:
    """Read what follows CREATE TABLE.

    Args:
        reader: after TABLE.
        catalog: the tables before.
        sql_mode: the session's.
        replace: whether it said OR REPLACE.
        session: the statement's.

    Returns:
        What is to be done, and the tables after.

    Raises:
        Unsupported: anything that is not understood.
        TargetDiffers: the table is there, or the one it is to be like is not.
    """
    optional = reader.accept("IF", "NOT", "EXISTS")
    name = reader.table()
    existing = catalog.find(name)
    if name in catalog.excluded:
        reader.skip_all()
        return [], catalog
    if (other := like(reader)) is not None:
        if other in catalog.excluded:
            reader.stop(f"a table like {other}, which is not applied,")
        table = catalog.get(other).renamed(name)
    else:
        table = _definition(reader, name, sql_mode, session, catalog.transaction)
    if existing is not None:
        if optional:
            return [], catalog
        if not replace:
            raise TargetDiffers(f"table {name} is to be created and is there")
    before: list[Operation] = [DropTable(existing)] if existing is not None else []
    return [*before, CreateTable(table)], catalog.with_table(table)


def _definition(
    reader: Reader, name: TableName, sql_mode: str, session: Session, transaction: tuple[Column, ...]
) -> Table:
    found = definition(reader, sql_mode)
    generated = [spec.column.name for spec in found.specs if spec.generated]
    defaults = {spec.column.name: known.value for spec in found.specs if (known := default(spec, session)) is not None}
    return make_table(
        name,
        (spec.column for spec in found.specs),
        found.key,
        found.charset,
        generated,
        defaults=defaults,
        transaction=transaction,
    )
