"""Parses ALTER TABLE's clauses (MySQL's and MariaDB's manuals, "ALTER TABLE")."""

from __future__ import annotations

from typing import Final

from connector.ddl.syntax.ast_column import Default, Expression, Name, NotUnderstood, SourceSpan
from connector.ddl.syntax.clauses import (
    AddColumn,
    AddColumns,
    AddConstraint,
    AlterColumn,
    AlterPart,
    ChangeColumn,
    Clause,
    ConvertCharset,
    DropColumn,
    DropConstraint,
    ExchangeRows,
    ModifyColumn,
    NoEffect,
    OrderBy,
    PartitionClause,
    PartitionEffect,
    RenameColumn,
    RenameIndex,
    RenameTo,
    UnknownClause,
)
from connector.ddl.syntax.parse_default import read_default
from connector.ddl.syntax.parse_options import partitioning, table_option
from connector.ddl.syntax.parse_parts import algorithm_or_lock, attempt, condition, parenthesized
from connector.ddl.syntax.parse_table import constraint, defined_column, table_items
from connector.ddl.syntax.reader import TokenReader
from connector.ddl.syntax.tokens import Lexeme
from connector.ddl.syntax.type_names import charset_name, charset_of
from connector.errors import Unsupported

_UNKNOWN: Final = "unknown ALTER TABLE clause"
_COLUMN_VERBS: Final = ("ADD", "DROP", "MODIFY", "CHANGE", "RENAME", "ALTER", "ORDER")
_CONSTRAINTS: Final = ("INDEX", "KEY", "FOREIGN", "CHECK", "CONSTRAINT")
# These move rows between partitions, but do not change them.
_PARTITION_VERBS: Final = ("ADD", "REORGANIZE", "COALESCE", "REBUILD", "OPTIMIZE", "ANALYZE", "CHECK", "REPAIR")


def alter_parts(reader: TokenReader) -> tuple[AlterPart, ...]:
    """Parse everything after the table's name.

    Raises:
        Unsupported: the end of a clause, or the other table that a clause names, is not known.
    """
    parts: list[AlterPart] = []
    start = reader.start
    while not reader.at_end:
        clauses = [_clause(reader)]
        while not (reader.at_end or reader.peek(",") or reader.peek(")")):
            clauses.append(_following(reader))
        parts.append(AlterPart(SourceSpan(start, reader.start), tuple(clauses)))
        if not reader.at_end:
            reader.expect(",")
            start = reader.passed
    return tuple(parts)


def _following(reader: TokenReader) -> Clause:
    """Parse a clause that follows another without a comma, as table options and partitioning may."""
    if reader.peek("PARTITION") or reader.peek("REMOVE") or _begins_option(reader):
        return _clause(reader)
    return _unknown(reader)


def _begins_option(reader: TokenReader) -> bool:
    mark = reader.mark
    try:
        return table_option(reader) is not None
    except Unsupported:
        return False
    finally:
        reader.back(mark)


def _unknown(reader: TokenReader) -> UnknownClause:
    start, word = reader.start, reader.token.text
    reader.skip_clause()
    return UnknownClause(reader.since(start), f"DDL not understood: {_UNKNOWN} at {word!r}")


def _clause(reader: TokenReader) -> Clause:
    """Parse one clause. A clause with another table's name is never skipped, because that table is affected."""
    if (other := _other_table(reader)) is not None:
        return other
    if (partitions := _partitions(reader)) is not None:
        return partitions
    about_columns = any(map(reader.peek, _COLUMN_VERBS))
    found = attempt(reader, _known)
    if found is None:
        return _unknown(reader)
    if isinstance(found, NotUnderstood) and not about_columns:
        return UnknownClause(found.span, found.reason)
    return found


def _other_table(reader: TokenReader) -> RenameTo | ExchangeRows | None:
    start, mark = reader.start, reader.mark
    if reader.accept("RENAME") and not any(map(reader.peek, ("COLUMN", "INDEX", "KEY"))):
        if not reader.accept_any("TO", "AS"):
            reader.accept("=")
        table = reader.table()
        return RenameTo(reader.since(start), table)
    reader.back(mark)
    if reader.accept("EXCHANGE", "PARTITION"):
        reader.name()
        reader.expect("WITH", "TABLE")
    elif reader.accept("CONVERT", "PARTITION"):
        reader.name()
        reader.expect("TO", "TABLE")
    elif not reader.accept("CONVERT", "TABLE"):
        return None
    partner = reader.table()
    reader.skip_clause()
    return ExchangeRows(reader.since(start), partner)


def _partitions(reader: TokenReader) -> PartitionClause | None:
    """Parse a clause about partitions, to the statement's end; None if there is none."""
    start, word = reader.start, reader.token.text.upper()
    if reader.peek("REMOVE", "PARTITIONING") or (word in _PARTITION_VERBS and reader.peek(word, "PARTITION")):
        effect = PartitionEffect.NONE
    elif reader.peek("DROP", "PARTITION"):
        effect = PartitionEffect.ROWS_GONE
    elif reader.peek(word, "PARTITION") and not reader.peek(word, "PARTITION", "BY"):
        effect = PartitionEffect.UNKNOWN
    else:
        return None
    reader.skip_clause()
    while reader.accept(","):  # in a list of partitions
        if reader.peek("RENAME"):
            reader.stop("another clause beside one about partitions")
        reader.skip_clause()
    if not reader.at_end:
        reader.stop("expected the end")
    return PartitionClause(reader.since(start), effect)


def _known(reader: TokenReader) -> Clause | None:
    """Parse a clause by its first words; None if these are not known.

    Raises:
        Unsupported: the rest of the clause is not understood.
    """
    start = reader.start
    if reader.accept("ADD"):
        return _add(reader, start)
    if reader.accept("DROP"):
        return _drop(reader, start)
    if reader.accept("MODIFY"):
        optional = _column_condition(reader)
        column = defined_column(reader)
        return ModifyColumn(reader.since(start), optional, column)
    if reader.accept("CHANGE"):
        optional = _column_condition(reader)
        old = reader.column()
        column = defined_column(reader)
        return ChangeColumn(reader.since(start), optional, old, column)
    if reader.accept("RENAME"):
        return _rename(reader, start)
    if reader.accept("ALTER"):
        return _alter(reader, start)
    if reader.accept("CONVERT", "TO"):
        return _convert(reader, start)
    if reader.accept("ORDER", "BY"):
        columns = _order(reader)
        return OrderBy(reader.since(start), columns)
    if _no_effect(reader):
        return NoEffect(reader.since(start))
    return partitioning(reader) or table_option(reader)


def _no_effect(reader: TokenReader) -> bool:
    if reader.accept_any("ENABLE", "DISABLE"):
        reader.expect("KEYS")
        return True
    return (
        algorithm_or_lock(reader)
        or reader.accept("FORCE")
        or reader.accept("WITH", "VALIDATION")
        or reader.accept("WITHOUT", "VALIDATION")
        or reader.accept_any("SECONDARY_LOAD", "SECONDARY_UNLOAD") != ""
    )


def _column_condition(reader: TokenReader) -> bool:
    """Skip COLUMN and IF [NOT] EXISTS before a column's name; return True if the condition is there."""
    reader.accept("COLUMN")
    return condition(reader, "EXISTS")


def _add(reader: TokenReader, start: int) -> Clause:
    found = constraint(reader)
    if found is not None:
        return AddConstraint(reader.since(start), found)
    reader.accept("COLUMN")
    optional = condition(reader, "NOT", "EXISTS")
    if reader.peek("("):
        items = table_items(reader)
        return AddColumns(reader.since(start), optional, items)
    column = defined_column(reader)
    return AddColumn(reader.since(start), optional, column)


def _drop(reader: TokenReader, start: int) -> Clause:
    if reader.accept("PRIMARY", "KEY"):
        return DropConstraint(reader.since(start), primary=True)
    if any(map(reader.peek, _CONSTRAINTS)):
        word = reader.take().text.upper()
        reader.accept("KEY")
        optional = condition(reader, "EXISTS")
        mark, name = reader.mark, reader.name()
        primary = name.upper() == "PRIMARY"
        if primary and (optional or word not in ("INDEX", "KEY", "CONSTRAINT")):
            reader.back(mark)  # so that the error names this token
            reader.stop("IF NOT EXISTS for a primary key")
        index = name if word in ("INDEX", "KEY", "CONSTRAINT") and not primary else ""
        return DropConstraint(reader.since(start), primary, index, word == "CONSTRAINT")
    optional = _column_condition(reader)
    column = reader.column()
    reader.accept_any("RESTRICT", "CASCADE")
    return DropColumn(reader.since(start), optional, column)


def _rename(reader: TokenReader, start: int) -> Clause:
    if reader.accept_any("INDEX", "KEY"):
        condition(reader, "EXISTS")
        before = reader.name()
        reader.expect("TO")
        after = reader.name()
        return RenameIndex(reader.since(start), before, after)
    reader.expect("COLUMN")
    optional = condition(reader, "EXISTS")
    old = reader.column()
    reader.expect("TO")
    new = reader.column()
    return RenameColumn(reader.since(start), optional, old, new)


def _alter(reader: TokenReader, start: int) -> Clause:
    """Parse ALTER [COLUMN] name SET DEFAULT … or DROP DEFAULT; or ALTER INDEX, CHECK …, which do not affect rows."""
    if any(map(reader.peek, _CONSTRAINTS)):
        reader.skip_clause()
        return NoEffect(reader.since(start))
    optional = _column_condition(reader)
    column = reader.column()
    defaulted, expression, default = False, None, None
    if reader.accept("SET", "DEFAULT"):
        mark = reader.mark
        defaulted, expression = True, _default_expression(reader)
        default = _known_default(reader, mark)
    elif reader.accept("DROP", "DEFAULT"):
        defaulted = True
    reader.skip_clause()
    return AlterColumn(reader.since(start), optional, column, defaulted, expression, default)


def _known_default(reader: TokenReader, mark: int) -> Default | None:
    """Parse the default at a mark, to the end of its clause; None if it is not understood."""
    reader.back(mark)
    try:
        found = read_default(reader)
    except Unsupported:
        reader.back(mark)
        return None
    return found if reader.at_end or reader.peek(",") or reader.peek(")") else None


def _default_expression(reader: TokenReader) -> Expression | None:
    if reader.token.kind is Lexeme.WORD and reader.peek(reader.token.text.upper(), "("):
        reader.take()  # a function: MariaDB allows it without parentheses
    return parenthesized(reader) if reader.peek("(") else None


def _convert(reader: TokenReader, start: int) -> Clause:
    if not (reader.accept("CHARACTER", "SET") or reader.accept("CHARSET")):
        reader.stop("unknown conversion")
    charset = charset_name(reader.take().text)
    if reader.accept("COLLATE"):
        charset = charset_of(reader.take().text) or charset
    return ConvertCharset(reader.since(start), charset)


def _order(reader: TokenReader) -> tuple[Name, ...]:
    """Parse the columns of ORDER BY, to the statement's end: a comma cannot begin another clause."""
    columns: list[Name] = []
    while True:
        column = reader.column()
        while reader.accept("."):  # after the schema's and the table's name
            column = reader.column()
        columns.append(column)
        reader.accept_any("ASC", "DESC")
        if not reader.accept(","):
            if not (reader.peek("PARTITION") or reader.peek("REMOVE")):
                reader.expect_end()
            return tuple(columns)
