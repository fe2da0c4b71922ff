"""Which tables a statement defines: read from its first words alone, for whoever publishes definitions of some tables.

A statement whose first words are not understood is `Unsupported`: nobody may guess what it is about.
"""

from __future__ import annotations

from dataclasses import dataclass

from connector.ddl.mariadb import of_mariadb, pass_patience, pass_variables
from connector.ddl.reader import Reader
from connector.ddl.statements import ACCOUNTS, MAINTENANCE, ROWLESS, pass_definer
from connector.ddl.tokens import readings
from connector.errors import Unsupported
from connector.thl.layout import TableName
from connector.thl.piece import Statement


@dataclass(frozen=True, slots=True)
class Subjects:
    """What a statement is about.

    Args:
        tables: those that it makes, changes, names anew, empties or drops, in order.
        schema: that it makes, changes or drops; "" when it is not about a schema as a whole.
        truncates: whether it takes all rows away and no more.
    """

    tables: tuple[TableName, ...] = ()
    schema: str = ""
    truncates: bool = False


OTHERS = Subjects()
"""Accounts, views, triggers, temporary tables …: no rows that the log has."""


def subjects(statement: Statement) -> Subjects:
    """What a statement is about.

    Raises:
        Unsupported: it is not understood.
    """
    found = {
        _read(Reader(tokens, statement.schema, mariadb=of_mariadb(statement)))
        for tokens in readings(statement.sql, statement.options.get("sql_mode", ""))
    }
    if len(found) > 1:
        raise Unsupported("a definition whose tables depend on the server that read its /*! comments */")
    return found.pop()


def _read(reader: Reader) -> Subjects:
    pass_variables(reader)
    if reader.at_end or reader.accept_any(*ACCOUNTS, *MAINTENANCE, "SET"):
        return OTHERS
    if reader.accept("TRUNCATE"):
        reader.accept("TABLE")
        return Subjects((reader.table(),), truncates=True)
    if reader.accept("RENAME"):
        if reader.accept("USER"):
            return OTHERS
        if not reader.accept_any("TABLES", "TABLE"):
            reader.stop("a RENAME that is not known")
        return Subjects(_renamed(reader))
    verb = reader.accept_any("CREATE", "DROP", "ALTER")
    if not verb:
        reader.stop("a statement that is not known")
    reader.accept("OR", "REPLACE")
    pass_definer(reader)
    if reader.accept("TEMPORARY"):
        return OTHERS
    mark = reader.mark
    while reader.accept_any("UNIQUE", "FULLTEXT", "SPATIAL", "ONLINE", "OFFLINE"):
        pass
    if verb != "ALTER" and reader.accept("INDEX"):
        return Subjects((_indexed(reader),))
    reader.back(mark)
    if reader.accept_any(*ROWLESS):
        return OTHERS
    if reader.accept_any("DATABASE", "SCHEMA"):
        return _schema(reader)
    reader.accept_any("ONLINE", "OFFLINE")
    reader.accept("IGNORE")
    if not reader.accept_any("TABLES", "TABLE", "SEQUENCE"):
        reader.stop("a statement that is not known")
    reader.accept("IF", "NOT", "EXISTS")
    reader.accept("IF", "EXISTS")
    if verb == "DROP":
        return Subjects(_list(reader))
    table = reader.table()
    if verb == "ALTER":
        pass_patience(reader)
        return Subjects((table, *_renamed_to(reader)))
    return Subjects((table,))


def _list(reader: Reader) -> tuple[TableName, ...]:
    tables = [reader.table()]
    while reader.accept(","):
        tables.append(reader.table())
    return tuple(tables)


def _renamed(reader: Reader) -> tuple[TableName, ...]:
    reader.accept("IF", "EXISTS")
    tables = []
    while True:
        tables.append(reader.table())
        pass_patience(reader)
        reader.expect("TO")
        tables.append(reader.table())
        if not reader.accept(","):
            return tuple(tables)


def _renamed_to(reader: Reader) -> tuple[TableName, ...]:
    """What ALTER TABLE … RENAME names: the clause begins behind the table's name, or behind a comma."""
    while not reader.at_end:
        if reader.accept("RENAME") and not any(reader.peek(word) for word in ("COLUMN", "INDEX", "KEY")):
            if not reader.accept_any("TO", "AS"):
                reader.accept("=")
            return (reader.table(),)
        reader.skip_clause()
        if not reader.at_end:
            reader.expect(",")
    return ()


def _indexed(reader: Reader) -> TableName:
    """The table of CREATE INDEX and DROP INDEX: behind the first ON."""
    while not reader.accept("ON"):
        reader.take()
    return reader.table()


def _schema(reader: Reader) -> Subjects:
    reader.accept("IF", "NOT", "EXISTS")
    reader.accept("IF", "EXISTS")
    return Subjects(schema=reader.name())
