"""Which tables a statement defines: read from its first words alone, for whoever publishes definitions of some tables.

A statement whose first words are not understood is `Unsupported`: nobody may guess what it is about.
"""

from __future__ import annotations

from dataclasses import dataclass

from connector.ddl.mariadb import of_mariadb, pass_patience, pass_variables
from connector.ddl.reader import Reader
from connector.ddl.statements import ACCOUNTS, MAINTENANCE, ROWLESS, pass_definer, pass_to_partner
from connector.ddl.tokens import Lexeme, check_spaces, readings
from connector.errors import Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName


@dataclass(frozen=True, slots=True)
class Subjects:
    """What a statement is about.

    Args:
        tables: those that it makes, changes, names anew, empties or drops, in order.
        verb: CREATE, ALTER, DROP, RENAME, TRUNCATE or INDEX of these tables. ALTER of two tables renames the first to
            the second, RENAME has pairs.
        schema: that it makes, changes or drops; "" when it is not about a schema as a whole.
        drops: whether it drops that schema.
        like: the table that the one it makes is like.
        partner: the table that gives rows to the one it alters, or takes rows from it, which no row event tells.
        places: where in the text it names these: the tables, the other, the schema.
    """

    tables: tuple[TableName, ...] = ()
    verb: str = ""
    schema: str = ""
    drops: bool = False
    like: TableName | None = None
    partner: TableName | None = None
    places: tuple[tuple[int, int], ...] = ()

    @property
    def truncates(self) -> bool:
        """Whether it takes all rows away and no more."""
        return self.verb == "TRUNCATE"


SCHEMA_OPTIONS = ("DEFAULT", "CHARACTER", "CHARSET", "CHAR", "COLLATE", "ENCRYPTION", "READ", "COMMENT")
"""What may come behind ALTER DATABASE where that means the default schema."""

OTHERS = Subjects()
"""Accounts, views, triggers, temporary tables …: no rows that the log has."""


def subjects(statement: Statement) -> Subjects:
    """What a statement is about.

    Raises:
        Unsupported: it is not understood.
    """
    check_spaces(statement)
    found = {
        _read(Reader(tokens, statement.schema, mariadb=of_mariadb(statement)))
        for tokens in readings(statement.sql, statement.options.get("sql_mode", ""), whole=False)
    }
    if len(found) > 1:
        raise Unsupported("a definition whose tables depend on the server that read its /*! comments */")
    return found.pop()


def _read(reader: Reader) -> Subjects:
    found = _Names(reader)
    pass_variables(reader)
    if reader.at_end or reader.accept_any(*ACCOUNTS, *MAINTENANCE, "SET"):
        return OTHERS
    if reader.accept("TRUNCATE"):
        reader.accept("TABLE")
        return found.truncated()
    if reader.accept("RENAME"):
        if reader.accept("USER"):
            return OTHERS
        if not reader.accept_any("TABLES", "TABLE"):
            reader.stop("a RENAME that is not known")
        return found.renamed()
    verb = reader.accept_any("CREATE", "DROP", "ALTER")
    if not verb:
        reader.stop("a statement that is not known")
    replacing = reader.accept("OR", "REPLACE")
    pass_definer(reader)
    if reader.accept("TEMPORARY"):
        return OTHERS
    mark = reader.mark
    while reader.accept_any("UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR", "ONLINE", "OFFLINE"):
        pass
    if verb != "ALTER" and reader.accept("INDEX"):
        return found.indexed()
    reader.back(mark)
    if reader.accept_any(*ROWLESS):
        return OTHERS
    if reader.accept_any("DATABASE", "SCHEMA"):
        return found.whole_schema(verb, drops=verb == "DROP" or replacing)
    reader.accept_any("ONLINE", "OFFLINE")
    reader.accept("IGNORE")
    if not reader.accept_any("TABLES", "TABLE", "SEQUENCE"):
        reader.stop("a statement that is not known")
    reader.accept("IF", "NOT", "EXISTS")
    reader.accept("IF", "EXISTS")
    return {"CREATE": found.created, "DROP": found.dropped, "ALTER": found.altered}[verb]()


class _Names:
    """The names that a statement's subjects have, and where."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._tables: list[TableName] = []
        self._places: list[tuple[int, int]] = []

    def subjects(self, verb: str) -> Subjects:
        return Subjects(tuple(self._tables), verb, places=tuple(self._places))

    def table(self) -> None:
        """Nothing that may be a part of the name is left behind it."""
        reader = self._reader
        start = reader.token.at
        self._tables.append(reader.table())
        self._places.append((start, reader.passed))
        if not (reader.at_end or reader.token.kind is Lexeme.WORD or any(map(reader.peek, "(),"))):
            reader.stop("what cannot stand behind a table's name")

    def truncated(self) -> Subjects:
        reader = self._reader
        self.table()
        pass_patience(reader)
        if not reader.accept("DROP", "STORAGE"):  # MariaDB's, for Oracle's sake
            reader.accept("REUSE", "STORAGE")
        reader.expect_end()
        return self.subjects("TRUNCATE")

    def created(self) -> Subjects:
        reader = self._reader
        self.table()
        if not (reader.accept("LIKE") or reader.accept("(", "LIKE")):
            return self.subjects("CREATE")
        self.table()
        return Subjects(tuple(self._tables[:1]), "CREATE", like=self._tables[1], places=tuple(self._places))

    def dropped(self) -> Subjects:
        """Nothing but how to wait may follow the names: no table is overlooked."""
        self.table()
        while self._reader.accept(","):
            self.table()
        pass_patience(self._reader)
        self._reader.accept_any("RESTRICT", "CASCADE")
        self._reader.expect_end()
        return self.subjects("DROP")

    def renamed(self) -> Subjects:
        reader = self._reader
        reader.accept("IF", "EXISTS")
        while True:
            self.table()
            pass_patience(reader)
            reader.expect("TO")
            self.table()
            if not reader.accept(","):
                reader.expect_end()
                return self.subjects("RENAME")

    def altered(self) -> Subjects:
        """Clauses that name another table begin behind the table's name, or behind a comma."""
        reader = self._reader
        self.table()
        pass_patience(reader)
        partner = False
        while not reader.at_end:
            if reader.accept("RENAME") and not any(reader.peek(word) for word in ("COLUMN", "INDEX", "KEY")):
                if not reader.accept_any("TO", "AS"):
                    reader.accept("=")
                self.table()
            elif pass_to_partner(reader):
                partner = True
                self.table()
            reader.skip_clause()
            if not reader.at_end:
                reader.expect(",")
        if len(self._tables) > 2:
            reader.stop("an ALTER TABLE that names several tables")
        if partner:
            first, other = self._tables
            return Subjects((first,), "ALTER", partner=other, places=tuple(self._places))
        return self.subjects("ALTER")

    def indexed(self) -> Subjects:
        """CREATE INDEX and DROP INDEX: the table stands behind the first ON."""
        while not self._reader.accept("ON"):
            self._reader.take()
        self.table()
        return self.subjects("INDEX")

    def whole_schema(self, verb: str, *, drops: bool) -> Subjects:
        reader = self._reader
        reader.accept("IF", "NOT", "EXISTS")
        reader.accept("IF", "EXISTS")
        if verb == "ALTER" and any(reader.peek(word) for word in SCHEMA_OPTIONS):
            return Subjects(schema=reader.schema)
        start = reader.token.at
        return Subjects(schema=reader.name(), drops=drops, places=((start, reader.passed),))
