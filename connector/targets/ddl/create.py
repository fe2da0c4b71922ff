"""CREATE TABLE."""

from __future__ import annotations

from dataclasses import replace

from connector.ddl.mariadb import ServerDialect
from connector.ddl.syntax import ast
from connector.ddl.syntax.ast_column import NotUnderstood, stop
from connector.ddl.syntax.ast_table import LikeTable, TableBody
from connector.ddl.table_spec import table_spec
from connector.errors import TargetDiffers
from connector.log.transaction.layout import Column, TableName
from connector.targets.ddl.column_defaults import declares, default
from connector.targets.ddl.session import Session
from connector.targets.histories import check_source_table
from connector.targets.operations import CreateTable, DropTable, Operation
from connector.targets.table import Table, make_table
from connector.targets.target_schema import TargetSchema


def create_table(
    command: ast.CreateTableStatement, target_schema: TargetSchema, dialect: ServerDialect, session: Session
) -> tuple[list[Operation], TargetSchema]:
    """The operations of CREATE TABLE, and the tables after.

    Args:
        command: the statement.
        target_schema: the tables before.
        dialect: the statement's.
        session: the statement's.

    Raises:
        Unsupported: anything that is not understood.
        TargetDiffers: the table is there, or the one it is to be like is not.
        ConfigError: the name is that of a history.
    """
    name, body = command.table.name, command.body
    existing = target_schema.find(name)
    if name in target_schema.excluded:
        return [], target_schema
    check_source_table(target_schema, name)
    if command.optional and (existing is not None or session.table_existed):
        return [], target_schema
    if isinstance(body, LikeTable):
        other = body.table.name
        if other in target_schema.excluded:
            stop(f"a table like {other}, which is not applied")
        check_source_table(target_schema, other)
        table = target_schema.get(other).renamed(name)
    else:
        table = _definition(body, name, dialect, session, target_schema.transaction)
    if existing is not None and not command.replace:
        raise TargetDiffers(f"table {name} is to be created and is there")
    before: list[Operation] = [DropTable(existing)] if existing is not None else []
    created = CreateTable(table, assumed=command.optional and session.table_existed is None)
    return [*before, created], target_schema.with_table(table)


def _definition(
    body: TableBody | NotUnderstood,
    name: TableName,
    dialect: ServerDialect,
    session: Session,
    transaction: tuple[Column, ...],
) -> Table:
    found = table_spec(body, dialect, session.schema_charset)
    generated = [spec.column.name for spec in found.specs if spec.generated]
    defaults = {spec.column.name: known.value for spec in found.specs if (known := default(spec, session)) is not None}
    key = {part.casefold() for part in found.key}
    columns = (spec.column for spec in found.specs)
    return make_table(
        name,
        (replace(one, nullable=False) if one.name.casefold() in key else one for one in columns),
        found.key,
        found.charset,
        generated,
        defaults=defaults,
        transaction=transaction,
        indexes=found.indexes,
        declared=(spec.column.name for spec in found.specs if declares(spec, session)),
        comment=found.comment,
        comments={spec.column.name: spec.comment for spec in found.specs},
    )
