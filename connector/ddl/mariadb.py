"""What only MariaDB's DDL has (its manual, "CREATE TABLE", "ALTER TABLE", "SET STATEMENT"); not what both have."""

from __future__ import annotations

from connector.ddl.reader import Reader

_DEFINING = ("ADD", "MODIFY", "CHANGE")


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


def check_conversion(reader: Reader) -> None:
    """CONVERT TO also converts columns that the same ALTER TABLE defines, whatever set they name; and what becomes of
    the table's own set and collation when it names these too is one or the other.

    Raises:
        Unsupported: either.
    """
    if not (reader.mariadb and reader.count("CONVERT")):
        return
    if any(map(reader.count, _DEFINING)):
        reader.stop("a conversion beside definitions of columns, which MariaDB converts with it,")
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
