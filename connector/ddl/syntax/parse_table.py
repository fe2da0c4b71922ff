"""Parses a table's definition: the text after CREATE TABLE's name, and the items of ALTER TABLE … ADD."""

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
    CheckConstraint,
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
from connector.ddl.syntax.parse_parts import attempt, index_column, index_parts, parenthesized, references
from connector.ddl.syntax.reader import TokenReader
from connector.ddl.syntax.tokens import Lexeme
from connector.errors import Unsupported

_INDEXES: Final = ("UNIQUE", "FULLTEXT", "SPATIAL", "INDEX", "KEY", "FOREIGN", "CHECK")


def like_table(reader: TokenReader) -> LikeTable | None:
    """Parse LIKE and the other table's name, if they come next."""
    start = reader.start
    if reader.accept("LIKE"):
        table = reader.table()
    elif reader.accept("(", "LIKE"):
        table = reader.table()
        reader.expect(")")
    else:
        return None
    return LikeTable(reader.since(start), table)


def table_body(reader: TokenReader) -> TableBody:
    """Parse the text after the table's name, to the statement's end.

    Raises:
        Unsupported: there are no columns, or their end is not known.
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


def table_items(reader: TokenReader) -> tuple[TableItem, ...]:
    """Parse `(column or constraint, …)`."""
    reader.expect("(")
    items, _, _ = _items(reader)
    return items


def _items(reader: TokenReader) -> tuple[tuple[TableItem, ...], tuple[SourceSpan, ...], int]:
    """Return the items, the text between commas of each, and the offset of the closing parenthesis."""
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


def _item(reader: TokenReader) -> TableItem:
    found = constraint(reader)
    return defined_column(reader, positioned=False) if found is None else found


def defined_column(reader: TokenReader, *, positioned: bool = True) -> DefinedColumn:
    """Parse a column's name and definition; with `positioned` also FIRST or AFTER."""
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


def _position(reader: TokenReader) -> First | After | None:
    start = reader.start
    if reader.accept("FIRST"):
        return First(reader.since(start))
    if reader.accept("AFTER"):
        column = reader.column()
        return After(reader.since(start), column)
    return None


def _last_position(reader: TokenReader, mark: int) -> First | After | None:
    """Parse AFTER and a name at the end of a definition that is not understood."""
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


def constraint(reader: TokenReader) -> Constraint | None:
    """Parse an index or constraint if one comes next; None: it is a column."""
    start, name = reader.start, ""
    if reader.accept("CONSTRAINT"):
        reader.accept("IF", "NOT", "EXISTS")
        if not _begins_constraint(reader):
            name = reader.name()
        if not _begins_constraint(reader):
            reader.stop("unknown constraint")
    if reader.accept("PRIMARY", "KEY"):
        columns = _key(reader)
        return PrimaryKey(reader.since(start), columns)
    if reader.accept("FOREIGN"):
        return _foreign_key(reader, start, name)
    if reader.accept("CHECK"):
        expression = attempt(reader, parenthesized)
        reader.skip_clause()
        return CheckConstraint(reader.since(start), expression)
    if any(map(reader.peek, _INDEXES)):
        return _index(reader, start, name)
    return None


def _index(reader: TokenReader, start: int, constraint_name: str) -> Index:
    """Parse an index; without a name it gets the constraint's."""
    unique = reader.accept("UNIQUE")
    kind = "" if unique else reader.accept_any("FULLTEXT", "SPATIAL", "VECTOR")
    reader.accept_any("INDEX", "KEY")
    optional = reader.accept("IF", "NOT", "EXISTS")
    name = constraint_name
    if reader.token.kind in (Lexeme.WORD, Lexeme.NAME) and not _names_type(reader):
        name = reader.take().text
    parts = _parts_behind(reader)
    reader.skip_clause()
    return Index(reader.since(start), parts, name, unique, kind, optional)


def _names_type(reader: TokenReader) -> bool:
    """True if USING or TYPE and an index's type come next, with no name before them."""
    return any(reader.peek(word, kind) for word in ("USING", "TYPE") for kind in ("BTREE", "HASH", "RTREE"))


def _begins_constraint(reader: TokenReader) -> bool:
    return reader.peek("PRIMARY", "KEY") or any(map(reader.peek, _INDEXES))


def _key(reader: TokenReader) -> tuple[IndexColumn, ...]:
    """Parse PRIMARY KEY [name] [USING …] (column[(length)] [ASC | DESC], …) options; return its columns."""
    while not reader.peek("("):
        if reader.peek("IF"):
            reader.stop("IF NOT EXISTS for a primary key")
        if reader.peek(",") or reader.peek(")"):
            reader.stop("expected the key's columns")
        reader.take()
    reader.expect("(")
    columns = []
    while True:
        columns.append(index_column(reader))
        if not reader.accept(","):
            break
    reader.expect(")")
    reader.skip_clause()
    return tuple(columns)


def _foreign_key(reader: TokenReader, start: int, name: str) -> ForeignKey:
    mark, index = reader.mark, name
    reader.accept("KEY")
    reader.accept("IF", "NOT", "EXISTS")
    if not index and reader.token.kind in (Lexeme.WORD, Lexeme.NAME):
        index = reader.take().text
    reader.back(mark)
    parts = _parts_behind(reader)
    end: References | NotUnderstood = attempt(reader, _other_end)
    reader.skip_clause()
    return ForeignKey(reader.since(start), name, parts, end, index)


def _other_end(reader: TokenReader) -> References:
    reader.expect("REFERENCES")
    return references(reader)


def _parts_behind(reader: TokenReader) -> IndexParts:
    """Parse the columns of an index, after its name and type."""
    start = reader.start
    while not (reader.at_end or any(map(reader.peek, "(,)"))):
        reader.take()
    return index_parts(reader) if reader.peek("(") else NotUnderstood(reader.since(start), _no_columns(reader))


def _no_columns(reader: TokenReader) -> str:
    return f"DDL not understood: an index without columns at {reader.token.text!r}"


def _body_option(reader: TokenReader) -> TableOption:
    start = reader.start
    option = attempt(reader, _option_or_partitioning)
    if isinstance(option, NotUnderstood) and reader.since(start).end == start:
        reader.take()  # e.g. a parenthesis
    return option


def _option_or_partitioning(reader: TokenReader) -> TableOption:
    start = reader.start
    if (option := table_option(reader)) is not None:
        return option
    if (partitions := partitioning(reader)) is not None:
        return partitions
    if reader.accept("START", "TRANSACTION"):
        return OtherOption(reader.since(start))
    return reader.stop("unknown table option")
