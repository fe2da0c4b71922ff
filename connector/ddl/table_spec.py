"""Resolves CREATE TABLE's columns, key and character set with the defaults of its session and schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from connector.ddl.column_spec import ColumnSpec, add_own_indexes, column_spec
from connector.ddl.indexes import Indexes, TableIndex
from connector.ddl.mariadb import ServerDialect
from connector.ddl.syntax import ast
from connector.ddl.syntax.ast_column import DefinedColumn, NotUnderstood, stop
from connector.ddl.syntax.ast_table import (
    CheckConstraint,
    ForeignKey,
    Index,
    LikeTable,
    OtherOption,
    Partitioning,
    PrimaryKey,
    TableBody,
    TableCharset,
    TableOption,
)
from connector.ddl.syntax.parse import parse
from connector.errors import Unsupported
from connector.log.transaction.batch import Statement


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table as CREATE TABLE defines it.

    Args:
        specs: the columns, in order.
        key: the names of its primary key's columns.
        charset: the default character set of text columns: the table's, else the given one.
        indexes: the secondary indexes.
        comment: the table's comment.
    """

    specs: tuple[ColumnSpec, ...]
    key: tuple[str, ...]
    charset: str
    indexes: tuple[TableIndex, ...] = ()
    comment: str = ""


def table_spec(body: TableBody | LikeTable | NotUnderstood, dialect: ServerDialect, charset: str = "") -> TableSpec:
    """Resolve a definition.

    Args:
        body: the syntax tree of the part after the table's name.
        dialect: the dialect of the statement.
        charset: the table's character set if its options name none; "" if only the source knows it.

    Raises:
        Unsupported: a part of it is not understood.
    """
    if isinstance(body, NotUnderstood):
        body.stop()
    if isinstance(body, LikeTable):
        stop("CREATE TABLE without columns")
    charset = _charset(body.options) or charset
    specs: list[ColumnSpec] = []
    key: tuple[str, ...] = ()
    indexes = Indexes(mariadb=dialect.mariadb)
    for item in body.items:
        match item:
            case DefinedColumn():
                specs.append(column_spec(item, charset, dialect))
                key = (item.name.text,) if specs[-1].primary else key
                add_own_indexes(indexes, item, specs[-1], dialect)
            case PrimaryKey(_, columns):
                key = tuple(part.column.text for part in columns)
            case Index() | ForeignKey():
                indexes.add(item)
            case CheckConstraint():
                pass
            case NotUnderstood():
                item.stop()
            case _:
                assert_never(item)
    known = {spec.column.name.casefold() for spec in specs}
    if missing := [column for column in key if column.casefold() not in known]:
        stop(f"a primary key with {missing[0]}, which is not a column")
    comments = [one.comment for one in body.options if isinstance(one, OtherOption) and one.comment is not None]
    return TableSpec(tuple(specs), key, charset, indexes.after(str, key), comments[-1] if comments else "")


def creations(statement: Statement) -> tuple[ast.CreateTableStatement, ...]:
    """Return the readings of a CREATE TABLE; none of other statements, and of what is not understood."""
    try:
        commands = [parsed.command for parsed in parse(statement)]
    except Unsupported:
        return ()
    return tuple(command for command in commands if isinstance(command, ast.CreateTableStatement))


def inherits_charset(command: ast.CreateTableStatement) -> bool:
    """Return True if a CREATE TABLE gives its table the default character set of the schema: it names none."""
    try:
        return isinstance(command.body, TableBody) and not _charset(command.body.options)
    except Unsupported:
        return False  # no table is planned of it either


def _charset(options: tuple[TableOption, ...]) -> str:
    """Return the character set in the options; "" for none."""
    charset = ""
    for option in options:
        match option:
            case TableCharset(_, named):
                charset = named or charset
            case OtherOption(doubt=doubt):
                if doubt:
                    stop(doubt)
            case Partitioning():
                pass
            case NotUnderstood():
                option.stop()
            case _:
                assert_never(option)
    return charset
