"""What kinds of statements there are: those that are not about tables, and what may stand before those that are."""

from __future__ import annotations

from connector.ddl.reader import Reader

ACCOUNTS = ("GRANT", "REVOKE", "INSTALL", "UNINSTALL", "FLUSH")
MAINTENANCE = ("ANALYZE", "OPTIMIZE", "CHECK", "REPAIR")
# Kinds of objects that hold no rows of tables.
ROWLESS = (
    *("USER", "ROLE", "INDEX", "VIEW", "TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "SERVER", "TABLESPACE", "UNDO"),
    *("LOGFILE", "LIBRARY", "RESOURCE", "SPATIAL", "UNIQUE", "FULLTEXT", "AGGREGATE", "INSTANCE"),
    *("JSON", "MATERIALIZED"),  # kinds of views
    *("PACKAGE", "VECTOR"),  # MariaDB's; VECTOR INDEX
)


def pass_to_partner(reader: Reader) -> bool:
    """Pass what stands, in ALTER TABLE, before a table that gives rows to the altered one or takes rows from it, which
    no row event tells. (CONVERT is MariaDB's.)"""
    mark = reader.mark
    if reader.accept("EXCHANGE", "PARTITION"):
        reader.name()
        reader.expect("WITH", "TABLE")
        return True
    if reader.accept("CONVERT", "TABLE"):
        return True
    if reader.accept("CONVERT", "PARTITION"):
        reader.name()
        reader.expect("TO", "TABLE")
        return True
    reader.back(mark)
    return False


def pass_definer(reader: Reader) -> None:
    """Pass what may stand before VIEW, TRIGGER, PROCEDURE, FUNCTION and EVENT."""
    while True:
        if reader.accept("DEFINER", "="):
            reader.take()
            if reader.peek("("):
                reader.skip_parentheses()
            if reader.accept("@"):
                reader.take()
                while reader.token.at == reader.passed and not reader.at_end:  # a host's dots
                    reader.take()
        elif reader.accept("ALGORITHM", "=") or reader.accept("SQL", "SECURITY"):
            reader.name()
        else:
            return
