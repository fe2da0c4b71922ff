"""What only MariaDB's DDL has (its manual, "CREATE TABLE", "ALTER TABLE", "SET STATEMENT"); not what both have."""

from __future__ import annotations

from typing import Final

from connector.ddl.reader import Reader
from connector.ddl.tokens import readings
from connector.errors import Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.statement_options import DIALECT, MARIADB_DIALECT

NOT_LOGGED: Final = (
    "a MariaDB leaves VIRTUAL columns out of row images that are not FULL, so nobody knows what they have become"
)
_DEFINING = ("ADD", "MODIFY", "CHANGE")


def of_mariadb(statement: Statement) -> bool:
    """Whether a MariaDB executed it."""
    return statement.options.get(DIALECT) == MARIADB_DIALECT


def implicit_timestamps(statement: Statement) -> bool:
    """Whether a TIMESTAMP is NOT NULL that is not said to be NULL: explicit_defaults_for_timestamp=OFF.

    A MariaDB logs it when it is ON alone.
    """
    default = "0" if of_mariadb(statement) else "1"
    return statement.options.get("explicit_defaults_for_timestamp", default) in ("0", "OFF")


def brings_virtual(statement: Statement) -> bool:
    """Whether a statement defines a table's column that is computed and not stored, as far as it is understood."""
    try:
        return any(
            _brings_virtual(Reader(tokens, statement.schema))
            for tokens in readings(statement.sql, statement.options.get("sql_mode", ""))
        )
    except Unsupported:
        return True


def _brings_virtual(reader: Reader) -> bool:
    pass_variables(reader)
    if not (reader.accept_any("CREATE", "ALTER") and reader.count("TABLE")):
        return False
    while not reader.at_end:
        if reader.peek("AS", "("):
            reader.take()
            reader.skip_parentheses()
            if not reader.accept_any("STORED", "PERSISTENT"):
                return True
        else:
            reader.take()
    return False


def pass_variables(reader: Reader) -> None:
    """Pass SET STATEMENT … FOR: variables that are set for the one statement that follows."""
    if reader.accept("SET", "STATEMENT"):
        while not reader.accept("FOR"):
            reader.take()


def pass_patience(reader: Reader) -> None:
    """Pass WAIT n or NOWAIT: how long to wait for a table's lock."""
    if reader.accept("WAIT"):
        reader.take()
    else:
        reader.accept("NOWAIT")


def check_conversion(reader: Reader, server: str) -> None:
    """CONVERT TO also converts columns that the same ALTER TABLE defines, whatever set they name; and what becomes of
    the table's own set and collation when it names these too is one or the other. A MySQL before 8.0 does the same.

    Args:
        reader: at the first clause of an ALTER TABLE of such a server.
        server: what it is called.

    Raises:
        Unsupported: either.
    """
    if not reader.count("CONVERT"):
        return
    if any(map(reader.count, _DEFINING)):
        reader.stop(f"a conversion beside definitions of columns, which {server} converts with it,")
    named = reader.count("COLLATE") + reader.count("CHARSET") + reader.count("CHARACTER")
    start = reader.mark
    while not reader.accept("CONVERT", "TO"):
        reader.take()
    if reader.accept("CHARSET") or reader.accept("CHARACTER", "SET"):
        reader.take()
        named -= 1 + reader.accept("COLLATE")
    reader.back(start)
    if named:
        reader.stop("a conversion beside the table's own character set")
