"""CREATE TABLE's columns, key and character set, with what its session and its schema add."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from connector.ddl.column_spec import ColumnSpec, column_spec
from connector.ddl.mariadb import ServerDialect
from connector.ddl.syntax.ast_column import DefinedColumn, NotUnderstood, stop
from connector.ddl.syntax.ast_table import (
    Check,
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


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table as CREATE TABLE defines it.

    Args:
        specs: the columns, in order.
        key: the names of its primary key's columns.
        charset: what text columns got that name none: the table's, or else the given default.
    """

    specs: tuple[ColumnSpec, ...]
    key: tuple[str, ...]
    charset: str


def table_spec(body: TableBody | LikeTable | NotUnderstood, dialect: ServerDialect, charset: str = "") -> TableSpec:
    """Resolve a definition.

    Args:
        body: the syntax tree of the part behind the table's name.
        dialect: the statement's.
        charset: what the table gets where its options name none; "" when only the source knows.

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
    for item in body.items:
        match item:
            case DefinedColumn():
                specs.append(column_spec(item, charset, dialect))
                key = (item.name.text,) if specs[-1].primary else key
            case PrimaryKey(_, columns):
                key = tuple(part.column.text for part in columns)
            case Index() | ForeignKey() | Check():
                pass
            case NotUnderstood():
                item.stop()
            case _:
                assert_never(item)
    known = {spec.column.name.casefold() for spec in specs}
    if missing := [column for column in key if column.casefold() not in known]:
        stop(f"primary key over {missing[0]}, which is no column")
    return TableSpec(tuple(specs), key, charset)


def _charset(options: tuple[TableOption, ...]) -> str:
    """The character set that the options name, "" for none."""
    charset = ""
    for option in options:
        match option:
            case TableCharset(_, named):
                charset = named or charset
            case OtherOption(_, doubt):
                if doubt:
                    stop(doubt)
            case Partitioning():
                pass
            case NotUnderstood():
                option.stop()
            case _:
                assert_never(option)
    return charset
