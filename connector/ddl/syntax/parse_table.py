"""The grammar of a table's definition: what stands behind CREATE TABLE's name, and items of ALTER TABLE … ADD."""

from __future__ import annotations

from typing import Final

from connector.ddl.syntax.ast_column import (
    After,
    ColumnDefinition,
    DefinedColumn,
    First,
    IndexColumn,
    IndexParts,
    NotUnderstood,
    References,
    SourceSpan,
)
from connector.ddl.syntax.ast_table import (
    Check,
    Constraint,
    ForeignKey,
    Index,
    LikeTable,
    OtherOption,
    PrimaryKey,
    TableBody,
    TableItem,
    TableOption,
)
from connector.ddl.syntax.parse_column import column_definition
from connector.ddl.syntax.parse_options import partitioning, table_option
from connector.ddl.syntax.parse_parts import attempt, index_parts, parenthesized, references
from connector.ddl.syntax.reader import Reader
from connector.errors import Unsupported

_INDEXES: Final = ("UNIQUE", "FULLTEXT", "SPATIAL", "INDEX", "KEY", "FOREIGN", "CHECK")


def like_table(reader: Reader) -> LikeTable | None:
    """Read LIKE and the other table's name, if they come next."""
    start = reader.start
    if reader.accept("LIKE"):
        table = reader.table()
    elif reader.accept("(", "LIKE"):
        table = reader.table()
        reader.expect(")")
    else:
        return None
    return LikeTable(reader.since(start), table)


def table_body(reader: Reader) -> TableBody:
    """Read what follows the table's name, to the statement's end.

    Raises:
        Unsupported: there are no columns, or it is not known where they end.
    """
    if not reader.peek("("):
        reader.stop("CREATE TABLE without columns")
    start = reader.start
    reader.take()
    inside = reader.passed
    items, parts, end = _items(reader)
    options: list[TableOption] = []
    while not reader.at_end:
        if not reader.accept(","):
            options.append(_body_option(reader))
    return TableBody(reader.since(start), SourceSpan(inside, end), items, parts, tuple(options))


def table_items(reader: Reader) -> tuple[TableItem, ...]:
    """Read `(column or constraint, …)`."""
    reader.expect("(")
    items, _, _ = _items(reader)
    return items


def _items(reader: Reader) -> tuple[tuple[TableItem, ...], tuple[SourceSpan, ...], int]:
    """The items, the text between commas of each, and where the closing parenthesis begins."""
    items: list[TableItem] = []
    parts: list[SourceSpan] = []
    while True:
        start = reader.passed
        items.append(attempt(reader, _item))
        parts.append(SourceSpan(start, reader.start))
        if not reader.accept(","):
            break
    end = reader.start
    reader.expect(")")
    return tuple(items), tuple(parts), end


def _item(reader: Reader) -> TableItem:
    found = constraint(reader)
    return defined_column(reader, positioned=False) if found is None else found


def defined_column(reader: Reader, *, positioned: bool = True) -> DefinedColumn:
    """Read a column's name and its definition; `positioned`: and FIRST or AFTER behind it."""
    start, name = reader.start, reader.column()
    mark, begin = reader.mark, reader.start
    definition: ColumnDefinition | NotUnderstood
    position = None
    try:
        definition = column_definition(reader)
        position = _position(reader) if positioned else None
        if not positioned and not (reader.peek(",") or reader.peek(")")):
            reader.stop("expected )")
    except Unsupported as error:
        reader.back(mark)
        reader.skip_clause()
        definition = NotUnderstood(reader.since(begin), error.message)
        position = _last_position(reader, mark) if positioned else None
    return DefinedColumn(reader.since(start), name, definition, position)


def _position(reader: Reader) -> First | After | None:
    start = reader.start
    if reader.accept("FIRST"):
        return First(reader.since(start))
    if reader.accept("AFTER"):
        column = reader.column()
        return After(reader.since(start), column)
    return None


def _last_position(reader: Reader, mark: int) -> First | After | None:
    """AFTER and a name at the end of a definition that is not understood."""
    end = reader.mark
    if end - 2 < mark:
        return None
    reader.back(end - 2)
    try:
        found = _position(reader)
    except Unsupported:
        found = None
    reader.back(end)
    return found if isinstance(found, After) else None


def constraint(reader: Reader) -> Constraint | None:
    """Read an index or constraint if one comes next; None: it is a column."""
    start, name = reader.start, ""
    if reader.accept("CONSTRAINT"):
        reader.accept("IF", "NOT", "EXISTS")
        if not _begins_constraint(reader):
            name = reader.name()
        if not _begins_constraint(reader):
            reader.stop("a constraint that is not known")
    if reader.accept("PRIMARY", "KEY"):
        columns = _key(reader)
        return PrimaryKey(reader.since(start), columns)
    if reader.accept("FOREIGN"):
        return _foreign_key(reader, start, name)
    if reader.accept("CHECK"):
        expression = attempt(reader, parenthesized)
        reader.skip_clause()
        return Check(reader.since(start), expression)
    if any(map(reader.peek, _INDEXES)):
        parts = _parts_behind(reader)
        reader.skip_clause()
        return Index(reader.since(start), parts)
    return None


def _begins_constraint(reader: Reader) -> bool:
    return reader.peek("PRIMARY", "KEY") or any(map(reader.peek, _INDEXES))


def _key(reader: Reader) -> tuple[IndexColumn, ...]:
    """The columns of PRIMARY KEY [name] [USING …] (column[(length)] [ASC | DESC], …) options."""
    while not reader.peek("("):
        if reader.peek("IF"):
            reader.stop("a key that may be there")
        if reader.peek(",") or reader.peek(")"):
            reader.stop("expected the key's columns")
        reader.take()
    reader.expect("(")
    columns = []
    while True:
        columns.append(IndexColumn(reader.column()))
        reader.numbers()
        reader.accept_any("ASC", "DESC")
        if not reader.accept(","):
            break
    reader.expect(")")
    reader.skip_clause()
    return tuple(columns)


def _foreign_key(reader: Reader, start: int, name: str) -> ForeignKey:
    parts = _parts_behind(reader)
    end: References | NotUnderstood = attempt(reader, _other_end)
    reader.skip_clause()
    return ForeignKey(reader.since(start), name, parts, end)


def _other_end(reader: Reader) -> References:
    reader.expect("REFERENCES")
    return references(reader)


def _parts_behind(reader: Reader) -> IndexParts:
    """The columns of an index, behind its name and type."""
    start = reader.start
    while not (reader.at_end or any(map(reader.peek, "(,)"))):
        reader.take()
    return index_parts(reader) if reader.peek("(") else NotUnderstood(reader.since(start), _no_columns(reader))


def _no_columns(reader: Reader) -> str:
    return f"DDL not understood: an index without columns at {reader.token.text!r}"


def _body_option(reader: Reader) -> TableOption:
    start = reader.start
    option = attempt(reader, _option_or_partitioning)
    if isinstance(option, NotUnderstood) and reader.since(start).end == start:
        reader.take()  # a parenthesis or what else ends no option
    return option


def _option_or_partitioning(reader: Reader) -> TableOption:
    start = reader.start
    if (option := table_option(reader)) is not None:
        return option
    if (partitions := partitioning(reader)) is not None:
        return partitions
    if reader.accept("START", "TRANSACTION"):
        return OtherOption(reader.since(start))
    return reader.stop("a table option that is not known")
