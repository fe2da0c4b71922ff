"""CREATE TABLE: the columns, the key and the options."""

from __future__ import annotations

from dataclasses import dataclass

from connector.ddl.column_spec import ColumnSpec, column_spec
from connector.ddl.reader import Reader
from connector.ddl.table_options import partitioning, table_option
from connector.log.transaction.layout import TableName

_INDEXES = ("UNIQUE", "FULLTEXT", "SPATIAL", "INDEX", "KEY", "FOREIGN", "CHECK")


@dataclass(frozen=True, slots=True)
class Definition:
    """What a CREATE TABLE says.

    Args:
        specs: its columns.
        key: the names of its primary key's columns.
        charset: what text columns got that name none: the table's, or else the given default.
    """

    specs: tuple[ColumnSpec, ...]
    key: tuple[str, ...]
    charset: str


def definition(reader: Reader, sql_mode: str, charset: str = "") -> Definition:
    """Read what follows the table's name, to the statement's end.

    Args:
        reader: before the columns.
        sql_mode: the session's.
        charset: what the table gets where its options name none; "" when only the source knows.

    Raises:
        Unsupported: anything that is not understood.
    """
    if not reader.peek("("):
        reader.stop("CREATE TABLE without columns")
    start = reader.mark
    reader.skip_parentheses()
    charset = _options(reader) or charset
    end = reader.mark
    reader.back(start)
    reader.expect("(")
    specs: list[ColumnSpec] = []
    key: tuple[str, ...] = ()
    while True:
        part = index_or_constraint(reader)
        if part is None:
            spec = column_spec(reader, reader.name(), charset, sql_mode)
            specs.append(spec)
            if spec.primary:
                part = (spec.column.name,)
        key = part or key
        if not reader.accept(","):
            break
    reader.expect(")")
    reader.back(end)
    known = {spec.column.name.casefold() for spec in specs}
    if missing := [column for column in key if column.casefold() not in known]:
        reader.stop(f"primary key over {missing[0]}, which is no column")
    return Definition(tuple(specs), key, charset)


def like(reader: Reader) -> TableName | None:
    """Pass LIKE and the other table's name, if they come next."""
    if reader.accept("LIKE"):
        other = reader.table()
    elif reader.accept("(", "LIKE"):
        other = reader.table()
        reader.expect(")")
    else:
        return None
    reader.expect_end()
    return other


def index_or_constraint(reader: Reader) -> tuple[str, ...] | None:
    """Pass an index or constraint if one comes next.

    Returns:
        None: it is a column. The names of the columns if it is the primary key, else ().
    """
    if reader.accept("CONSTRAINT"):
        reader.accept("IF", "NOT", "EXISTS")
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
        if reader.peek("IF"):
            reader.stop("a key that may be there")
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
