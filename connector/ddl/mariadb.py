"""The dialect of the server that executed a statement, by the statement's options; MariaDB's unlogged columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from connector.ddl.affected_tables import AffectedTables, affected_tables
from connector.ddl.syntax.ast import ParsedStatement, defined_items
from connector.ddl.syntax.ast_column import DefinedColumn, Generated, NotUnderstood
from connector.ddl.syntax.ast_table import TableItem
from connector.ddl.syntax.clauses import UnknownClause
from connector.ddl.syntax.parse import parse
from connector.ddl.syntax.tokens import Lexeme, Token, readings
from connector.errors import Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName
from connector.log.transaction.statement_options import DIALECT, MARIADB_DIALECT

NOT_LOGGED: Final = (
    "a MariaDB leaves VIRTUAL columns out of row images that are not FULL, so their new values are unknown"
)
NOT_TOLD: Final = (
    "a row image of a MariaDB lacks columns, and files do not tell whether a VIRTUAL one is among them, whose new "
    "value is unknown"
)
HALF_LOGGED: Final = (
    "a MariaDB logged an update whose before image lacks columns: with binlog_row_image MINIMAL or NOBLOB a REPLACE "
    "looks like one and lacks the columns that it resets"
)
HALF_REPLACED: Final = (
    "a MariaDB logged an update whose after image lacks columns, in a table whose columns are all its key's, so that "
    "its before image is whole with MINIMAL, too, and with a unique index by which a REPLACE finds rows: "
    "it lacks the columns that it resets"
)
RENAMED: Final = (
    "a MariaDB's table with VIRTUAL columns was renamed, and images of its rows under the earlier name are not FULL: "
    "they leave such columns out, so their new values are unknown"
)
FROM_SERVER: Final = (
    "read them from the server, which is asked: thl produce without --from-files; or leave the table out with "
    "source.filters.ignore"
)
FULL_AGAIN: Final = (
    "SET GLOBAL binlog_row_image = FULL, also in open sessions; what is logged already is passed with the table in "
    "source.filters.ignore: captured again afterwards, it is loaded"
)


@dataclass(frozen=True, slots=True)
class ServerDialect:
    """The settings of the server that a definition depends on.

    Args:
        mariadb: true if a MariaDB executed the statement.
        implicit: true if a TIMESTAMP without NULL is NOT NULL: explicit_defaults_for_timestamp=OFF.
    """

    mariadb: bool = False
    implicit: bool = False


def dialect_of(statement: Statement) -> ServerDialect:
    """Return the dialect of a statement, by its options."""
    return ServerDialect(of_mariadb(statement), implicit_timestamps(statement))


def of_mariadb(statement: Statement) -> bool:
    """True if a MariaDB executed the statement."""
    return statement.options.get(DIALECT) == MARIADB_DIALECT


def implicit_timestamps(statement: Statement) -> bool:
    """True if a TIMESTAMP without NULL is NOT NULL: explicit_defaults_for_timestamp=OFF.

    MariaDB logs the variable only if it is ON.
    """
    default = "0" if of_mariadb(statement) else "1"
    return statement.options.get("explicit_defaults_for_timestamp", default) in ("0", "OFF")


def brings_virtual(statement: Statement) -> bool:
    """True if a statement defines, or may define, a generated column that is not stored."""
    try:
        return any(_is_virtual(item, parsed) for parsed in parse(statement) for item in defined_items(parsed.command))
    except Unsupported:
        ways = readings(statement.sql, statement.options.get("sql_mode", ""), whole=False)
        return any(_may_be_virtual(tokens) for tokens in ways)


def brings_unique(statement: Statement) -> bool:
    """True if a statement defines, or may define, a unique index."""
    ways = readings(statement.sql, statement.options.get("sql_mode", ""), whole=False)
    return any(
        token.kind is Lexeme.UNREAD or (token.kind is Lexeme.WORD and token.text.upper() == "UNIQUE")
        for tokens in ways
        for token in tokens
    )


def passes_on(statement: Statement, tables: Iterable[tuple[str, str]]) -> bool:
    """True if a statement renames, or may rename or copy, one of these tables.

    Args:
        statement: a definition.
        tables: schema and name of the tables. Upper and lower case are not distinguished.
    """
    try:
        about = affected_tables(statement)
    except Unsupported:
        return True
    passed = [*_renamed(about), *([about.like] if about.like is not None else [])]
    known = {folded(table) for table in tables}
    return any(folded(name) in known for name in passed)


def check_renames(statement: Statement, partial: set[tuple[str, str]], virtual: Iterable[tuple[str, str]]) -> None:
    """Check that a statement gives no table with VIRTUAL columns its name of today after partial images of it.

    Args:
        statement: a definition.
        partial: the tables of which after images lacked columns, folded; gets their new names.
        virtual: the tables with VIRTUAL columns by their names of today.

    Raises:
        Unsupported: it does.
    """
    try:
        names = _renamed(affected_tables(statement))
    except Unsupported:
        return
    known = {folded(table) for table in virtual}
    for old, new in zip(names[::2], names[1::2], strict=True):
        if folded(old) not in partial:
            continue
        if folded(new) in known:
            raise Unsupported(RENAMED, hint=FULL_AGAIN, table=old, renamed=new)
        partial.add(folded(new))


def folded(table: tuple[str, str]) -> tuple[str, str]:
    """A table's schema and name, of which upper and lower case are not distinguished."""
    schema, name = table
    return schema.lower(), name.lower()


def _renamed(about: AffectedTables) -> tuple[TableName, ...]:
    """The tables that are renamed, each before its new name."""
    renames = about.verb == "RENAME" or (about.verb == "ALTER" and len(about.tables) > 1)
    return about.tables if renames else ()


def _is_virtual(item: TableItem | UnknownClause, parsed: ParsedStatement) -> bool:
    match item:
        case NotUnderstood(span, _) | UnknownClause(span, _):
            return _may_be_virtual(parsed.within(span))
        case DefinedColumn(_, _, definition, _):
            if isinstance(definition, NotUnderstood):
                return _may_be_virtual(parsed.within(definition.span))
            return any(isinstance(one, Generated) and not one.stored for one in definition.attributes)
        case _:
            return False


def _may_be_virtual(tokens: Sequence[Token]) -> bool:
    """True if a part that is not understood has `AS (`, or cannot be split into tokens."""
    words = [token.text.upper() if token.kind in (Lexeme.WORD, Lexeme.SIGN) else "" for token in tokens]
    unread = any(token.kind is Lexeme.UNREAD for token in tokens)
    return unread or any(pair == ("AS", "(") for pair in pairwise(words))
