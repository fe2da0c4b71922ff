"""CREATE TABLE."""

from __future__ import annotations

from connector.errors import TargetDiffers
from connector.thl.layout import Column, TableName
from connector.write.catalog import Catalog
from connector.write.column_spec import column_spec
from connector.write.operations import CreateTable, DropTable, Operation
from connector.write.sql_reader import Reader
from connector.write.table import Table, make_table
from connector.write.table_options import partitioning, table_option

_INDEXES = ("UNIQUE", "FULLTEXT", "SPATIAL", "INDEX", "KEY", "FOREIGN", "CHECK")


def create_table(reader: Reader, catalog: Catalog, *, sql_mode: str, replace: bool) -> tuple[list[Operation], Catalog]:
    """Read what follows CREATE TABLE.

    Args:
        reader: after TABLE.
        catalog: the tables before.
        sql_mode: the session's.
        replace: whether it said OR REPLACE.

    Returns:
        What is to be done, and the tables after.

    Raises:
        Unsupported: anything that is not understood.
        TargetDiffers: the table is there, or the one it is to be like is not.
    """
    optional = reader.accept("IF", "NOT", "EXISTS")
    name = reader.table()
    existing = catalog.find(name)
    if (like := _like(reader)) is not None:
        table = catalog.get(like).renamed(name)
    else:
        table = _definition(reader, name, sql_mode)
    if existing is not None:
        if optional:
            return [], catalog
        if not replace:
            raise TargetDiffers(f"table {name} is to be created and is there")
    before: list[Operation] = [DropTable(existing)] if existing is not None else []
    return [*before, CreateTable(table)], catalog.with_table(table)


def index_or_constraint(reader: Reader) -> tuple[str, ...] | None:
    """Pass an index or constraint if one comes next.

    Returns:
        None: it is a column. The names of the columns if it is the primary key, else ().
    """
    if reader.accept("CONSTRAINT"):
        if not (reader.peek("PRIMARY", "KEY") or any(reader.peek(word) for word in _INDEXES)):
            reader.name()
        if not (reader.peek("PRIMARY", "KEY") or any(reader.peek(word) for word in _INDEXES)):
            reader.stop("a constraint that is not known")
    if reader.accept("PRIMARY", "KEY"):
        return _key(reader)
    if any(reader.peek(word) for word in _INDEXES):
        reader.skip_clause()
        return ()
    return None


def _like(reader: Reader) -> TableName | None:
    if reader.accept("LIKE"):
        other = reader.table()
    elif reader.accept("(", "LIKE"):
        other = reader.table()
        reader.expect(")")
    else:
        return None
    reader.expect_end()
    return other


def _definition(reader: Reader, name: TableName, sql_mode: str) -> Table:
    if not reader.peek("("):
        reader.stop("CREATE TABLE without columns")
    start = reader.mark
    reader.skip_parentheses()
    charset = _options(reader)
    end = reader.mark
    reader.back(start)
    reader.expect("(")
    columns: list[Column] = []
    generated: list[str] = []
    key: tuple[str, ...] = ()
    while True:
        part = index_or_constraint(reader)
        if part is None:
            spec = column_spec(reader, reader.name(), charset, sql_mode)
            columns.append(spec.column)
            if spec.generated:
                generated.append(spec.column.name)
            if spec.primary:
                part = (spec.column.name,)
        key = part or key
        if not reader.accept(","):
            break
    reader.expect(")")
    reader.back(end)
    known = {column.name.casefold() for column in columns}
    if missing := [column for column in key if column.casefold() not in known]:
        reader.stop(f"primary key over {missing[0]}, which is no column")
    return make_table(name, columns, key, charset, generated)


def _options(reader: Reader) -> str:
    """Pass what follows the columns, up to the end; the table's character set, "" if not said."""
    charset = ""
    while not reader.at_end:
        option = table_option(reader)
        if option is None and not (partitioning(reader) or reader.accept("START", "TRANSACTION") or reader.accept(",")):
            reader.stop("a table option that is not known")
        charset = option or charset
    return charset


def _key(reader: Reader) -> tuple[str, ...]:
    """The columns of PRIMARY KEY [name] [USING …] (column[(length)] [ASC | DESC], …) options."""
    while not reader.peek("("):
        reader.take()
    reader.expect("(")
    names = []
    while True:
        names.append(reader.name())
        reader.numbers()
        reader.accept_any("ASC", "DESC")
        if not reader.accept(","):
            break
    reader.expect(")")
    reader.skip_clause()
    return tuple(names)
