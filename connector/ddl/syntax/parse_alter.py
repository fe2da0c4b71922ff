"""The grammar of ALTER TABLE's clauses (MySQL's manual, "ALTER TABLE"; MariaDB's likewise)."""

from __future__ import annotations

from typing import Final

from connector.ddl.syntax.ast_column import Expression, Name, NotUnderstood, SourceSpan
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
    RenameTo,
    UnknownClause,
)
from connector.ddl.syntax.parse_options import partitioning, table_option
from connector.ddl.syntax.parse_parts import algorithm_or_lock, attempt, condition, parenthesized
from connector.ddl.syntax.parse_table import constraint, defined_column, table_items
from connector.ddl.syntax.reader import Reader
from connector.ddl.syntax.tokens import Lexeme
from connector.ddl.syntax.type_names import charset_name, charset_of
from connector.errors import Unsupported

_UNKNOWN: Final = "an ALTER TABLE clause that is not known"
_COLUMN_VERBS: Final = ("ADD", "DROP", "MODIFY", "CHANGE", "RENAME", "ALTER", "ORDER")
_CONSTRAINTS: Final = ("INDEX", "KEY", "FOREIGN", "CHECK", "CONSTRAINT")
# Rows stay what they are, wherever they lie.
_PARTITION_VERBS: Final = ("ADD", "REORGANIZE", "COALESCE", "REBUILD", "OPTIMIZE", "ANALYZE", "CHECK", "REPAIR")


def alter_parts(reader: Reader) -> tuple[AlterPart, ...]:
    """Read everything behind the table's name.

    Raises:
        Unsupported: it is not known where a clause ends, or which other table a clause names.
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


def _following(reader: Reader) -> Clause:
    """A clause behind another without a comma: table options may stand there, and partitioning."""
    if reader.peek("PARTITION") or reader.peek("REMOVE") or _begins_option(reader):
        return _clause(reader)
    return _unknown(reader)


def _begins_option(reader: Reader) -> bool:
    mark = reader.mark
    try:
        return table_option(reader) is not None
    except Unsupported:
        return False
    finally:
        reader.back(mark)


def _unknown(reader: Reader) -> UnknownClause:
    start, word = reader.start, reader.token.text
    reader.skip_clause()
    return UnknownClause(reader.since(start), f"DDL not understood: {_UNKNOWN} at {word!r}")


def _clause(reader: Reader) -> Clause:
    """One clause. That of another table's name is never passed over: it says which tables the statement is about."""
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


def _other_table(reader: Reader) -> RenameTo | ExchangeRows | None:
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


def _partitions(reader: Reader) -> PartitionClause | None:
    """A clause about partitions and nothing else, up to the end."""
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


def _known(reader: Reader) -> Clause | None:
    """A clause by its first words; None: these are not known.

    Raises:
        Unsupported: what follows them is not understood.
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


def _no_effect(reader: Reader) -> bool:
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


def _column_condition(reader: Reader) -> bool:
    """Pass what may stand before a column's name; whether that has a condition."""
    reader.accept("COLUMN")
    return condition(reader, "EXISTS")


def _add(reader: Reader, start: int) -> Clause:
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


def _drop(reader: Reader, start: int) -> Clause:
    if reader.accept("PRIMARY", "KEY"):
        return DropConstraint(reader.since(start), primary=True)
    if any(map(reader.peek, _CONSTRAINTS)):
        word = reader.take().text.upper()
        reader.accept("KEY")
        optional = condition(reader, "EXISTS")
        mark = reader.mark
        primary = reader.name().upper() == "PRIMARY"
        if primary and (optional or word not in ("INDEX", "KEY", "CONSTRAINT")):
            reader.back(mark)  # the error names it
            reader.stop("a key that may be there")
        return DropConstraint(reader.since(start), primary)
    optional = _column_condition(reader)
    column = reader.column()
    reader.accept_any("RESTRICT", "CASCADE")
    return DropColumn(reader.since(start), optional, column)


def _rename(reader: Reader, start: int) -> Clause:
    if reader.accept_any("INDEX", "KEY"):
        condition(reader, "EXISTS")
        reader.name()
        reader.expect("TO")
        reader.name()
        return NoEffect(reader.since(start))
    reader.expect("COLUMN")
    optional = condition(reader, "EXISTS")
    old = reader.column()
    reader.expect("TO")
    new = reader.column()
    return RenameColumn(reader.since(start), optional, old, new)


def _alter(reader: Reader, start: int) -> Clause:
    """ALTER [COLUMN] name SET DEFAULT …, DROP DEFAULT; or ALTER INDEX, CHECK, …: what follows is about no rows."""
    if any(map(reader.peek, _CONSTRAINTS)):
        reader.skip_clause()
        return NoEffect(reader.since(start))
    optional = _column_condition(reader)
    column = reader.column()
    defaulted, expression = False, None
    if reader.accept("SET", "DEFAULT"):
        defaulted, expression = True, _default_expression(reader)
    elif reader.accept("DROP", "DEFAULT"):
        defaulted = True
    reader.skip_clause()
    return AlterColumn(reader.since(start), optional, column, defaulted, expression)


def _default_expression(reader: Reader) -> Expression | None:
    if reader.token.kind is Lexeme.WORD and reader.peek(reader.token.text.upper(), "("):
        reader.take()  # a function: MariaDB's need no parentheses around them
    return parenthesized(reader) if reader.peek("(") else None


def _convert(reader: Reader, start: int) -> Clause:
    if not (reader.accept("CHARACTER", "SET") or reader.accept("CHARSET")):
        reader.stop("a conversion that is not known")
    charset = charset_name(reader.take().text)
    if reader.accept("COLLATE"):
        charset = charset_of(reader.take().text) or charset
    return ConvertCharset(reader.since(start), charset)


def _order(reader: Reader) -> tuple[Name, ...]:
    """Its list has commas: nothing may follow it but more of them."""
    columns: list[Name] = []
    while True:
        column = reader.column()
        while reader.accept("."):  # of the table, of the schema
            column = reader.column()
        columns.append(column)
        reader.accept_any("ASC", "DESC")
        if not reader.accept(","):
            if not (reader.peek("PARTITION") or reader.peek("REMOVE")):
                reader.expect_end()
            return tuple(columns)
