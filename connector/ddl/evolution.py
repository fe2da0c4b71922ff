"""What a statement makes of the source's tables: their columns, keys and character sets. Pure.

Nothing is guessed. A statement about one table that is not understood makes that table unknown, one that is not
understood at all makes every table of its schemas unknown; a table is known again once it is dropped and made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from connector.ddl.alter import Alteration, Altered, read_clauses
from connector.ddl.column_spec import ColumnSpec, charset_name, charset_of
from connector.ddl.create import definition, like
from connector.ddl.mariadb import check_conversion, implicit_timestamps, of_mariadb, pass_patience, pass_variables
from connector.ddl.reader import Reader
from connector.ddl.statements import ACCOUNTS, MAINTENANCE, ROWLESS, pass_definer
from connector.ddl.subjects import SCHEMA_OPTIONS
from connector.ddl.tokens import check_spaces, readings
from connector.ddl.type_names import TEXTS, width
from connector.errors import Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.definition import Definitions, Redefined, TableDefinition
from connector.log.transaction.layout import Column, TableLayout, TableName

_UNITS = ("ucs2", "utf16", "utf16le", "utf32")
_WITH_CHARSET = ("char", "varchar", "enum", "set", *TEXTS)


@dataclass(frozen=True, slots=True)
class Rules:
    """What the server and the configuration say.

    Args:
        fold: how the server compares names of schemas and tables.
        wants_schema: whether tables of this schema can be for us: of others nothing is kept.
        old: whether it is a MySQL before 8.0.
    """

    fold: Callable[[str], str]
    wants_schema: Callable[[str], bool]
    old: bool = False


def evolve(
    statement: Statement,
    known: Definitions,
    rules: Rules,
    *,
    schemas: Iterable[str],
    server_charset: str,
    place: str,
) -> Redefined:
    """Understand a statement.

    Args:
        statement: it.
        known: the tables before.
        rules: of names.
        schemas: those that it touches.
        server_charset: what schemas get that name none; "" when it is not known.
        place: where it stands, for people.

    Returns:
        What is other afterwards.
    """
    drafts = []
    mariadb = of_mariadb(statement)
    implicit = implicit_timestamps(statement)

    def why(error: Unsupported) -> str:
        return f"{error.message}, in {statement.sql[:500]!r} at {place}"

    try:
        check_spaces(statement)
        for tokens in readings(statement.sql, statement.options.get("sql_mode", "")):
            draft = _Draft(known, rules, why)
            reader = Reader(tokens, statement.schema, mariadb=mariadb, implicit=implicit)
            _Reading(reader, draft, statement, server_charset).read()
            drafts.append(draft)
    except Unsupported as error:
        draft = _Draft(known, rules, why)
        touched = {rules.fold(schema) for schema in schemas}
        for name in known.tables:
            if name.schema in touched:
                draft.forget(name, error)
        return draft.changes
    changes = [draft.changes for draft in drafts]
    if any(other != changes[0] for other in changes[1:]):
        unsure = Unsupported("DDL whose effect depends on the version of the server that read its /*! comments */")
        for other in changes:
            for name in other.tables:
                drafts[0].forget(name, unsure)
    return drafts[0].changes


class _Draft:
    """The tables while a statement is read."""

    def __init__(self, known: Definitions, rules: Rules, why: Callable[[Unsupported], str]) -> None:
        self._known = known
        self._rules = rules
        self._why = why
        self._tables: dict[TableName, TableDefinition | None] = {}
        self._schemas: dict[str, str | None] = {}

    @property
    def old(self) -> bool:
        return self._rules.old

    @property
    def changes(self) -> Redefined:
        return Redefined(
            {name: table for name, table in self._tables.items() if table != self._known.tables.get(name)},
            {name: charset for name, charset in self._schemas.items() if charset != self._known.schemas.get(name)},
        )

    def named(self, name: TableName) -> TableName:
        return TableName(self._rules.fold(name.schema), self._rules.fold(name.table))

    def find(self, name: TableName) -> TableDefinition | None:
        return self._tables[name] if name in self._tables else self._known.tables.get(name)

    def put(self, table: TableDefinition, name: TableName | None = None) -> None:
        name = name or table.name
        if self._rules.wants_schema(name.schema):
            self._tables[name] = replace(table, layout=replace(table.layout, name=name))

    def drop(self, name: TableName) -> None:
        self._tables[name] = None

    def forget(self, name: TableName, error: Unsupported) -> None:
        self.put(TableDefinition(TableLayout(name, ()), "", self._why(error)))

    def charset(self, schema: str) -> str:
        schema = self._rules.fold(schema)
        return (self._schemas[schema] if schema in self._schemas else self._known.schemas.get(schema)) or ""

    def put_schema(self, schema: str, charset: str) -> None:
        if self._rules.wants_schema(schema):
            self._schemas[self._rules.fold(schema)] = charset

    def drop_schema(self, schema: str) -> None:
        schema = self._rules.fold(schema)
        self._schemas[schema] = None
        for name in {*self._known.tables, *self._tables}:
            if name.schema == schema:
                self.drop(name)


class _Structure:
    """What ALTER TABLE's clauses mean for columns alone: nothing more than they say."""

    def added(self, spec: ColumnSpec) -> None:
        _check(spec)

    def changed(self, reader: Reader, item: Altered[None], spec: ColumnSpec) -> None:
        del reader, item
        _check(spec)

    def converted(self, reader: Reader, texts: list[Altered[None]], charset: str) -> None:
        """A TEXT grows so that it has room for as many characters as before."""
        if charset == "binary":
            reader.stop("a conversion of text to bytes")
        for item in texts:
            kind = item.column.type
            labels = item.column.labels
            strange = item.column.charset in _UNITS or (reader.mariadb and charset in _UNITS)
            if labels and (strange or not all(label.isascii() for label in labels)):
                reader.stop("a conversion of labels, of which MySQL makes others,")
            if kind in TEXTS:
                room = TEXTS[kind] // width(item.column.charset) * width(charset)
                grown = next((name for name, size in TEXTS.items() if room <= size), "longtext")
                item.column = replace(item.column, type=grown)

    def partition_dropped(self, reader: Reader) -> None:
        del reader


class _Reading:
    """One reading of one statement, into a draft."""

    def __init__(self, reader: Reader, draft: _Draft, statement: Statement, server_charset: str) -> None:
        self._reader = reader
        self._draft = draft
        self._schema = statement.schema
        self._server_charset = server_charset
        self._sql_mode = statement.options.get("sql_mode", "")
        self._failed = statement.options.get("error_code", "0") != "0"  # but had an effect: it is in the log

    def read(self) -> None:
        reader = self._reader
        pass_variables(reader)
        if reader.at_end or reader.accept_any(*ACCOUNTS, *MAINTENANCE, "TRUNCATE", "SET"):
            return
        if reader.accept("RENAME"):
            if reader.accept_any("TABLES", "TABLE"):
                self._whole()
                self._rename()
            elif not reader.accept("USER"):
                reader.stop("a RENAME that is not known")
            return
        verb = reader.accept_any("CREATE", "DROP", "ALTER")
        if not verb:
            reader.stop("a statement that is not known")
        replacing = reader.accept("OR", "REPLACE")
        pass_definer(reader)
        if reader.accept("TEMPORARY"):
            return
        if verb == "DROP" and reader.accept("INDEX"):
            self._drop_index()
        elif reader.accept_any(*ROWLESS):
            return
        elif reader.accept_any("DATABASE", "SCHEMA"):
            self._database(verb, replacing=replacing)
        elif reader.accept("SEQUENCE"):
            self._sequence(verb)
        else:
            reader.accept_any("ONLINE", "OFFLINE")
            reader.accept("IGNORE")
            if not reader.accept_any("TABLES", "TABLE"):
                reader.stop("a statement that is not known")
            if verb == "CREATE" and replacing and self._failed:  # MariaDB has dropped the old one
                self._draft.drop(self._table())
                return
            {"CREATE": self._create, "DROP": self._drop, "ALTER": self._alter}[verb]()

    def _table(self) -> TableName:
        return self._draft.named(self._reader.table())

    def _whole(self) -> None:
        """Nobody knows how much of it was done."""
        if self._failed:
            self._reader.stop("a statement that failed")

    def _rename(self) -> None:
        reader = self._reader
        optional = reader.accept("IF", "EXISTS")
        while True:
            old = self._table()
            pass_patience(reader)
            reader.expect("TO")
            new = self._table()
            if not optional or self._draft.find(old) is not None:
                self._move(old, new)
            if not reader.accept(","):
                break
        reader.expect_end()

    def _move(self, old: TableName, new: TableName) -> None:
        """Under another name; what we do not have is a view, or was never for us."""
        table = self._draft.find(old)
        if table is None:
            if self._draft.find(new) is not None:
                self._draft.drop(new)
            return
        if self._reader.mariadb and self._draft.find(new) is not None:
            # It logs the RENAME of a temporary table, too, and that may have the name of another.
            taken = Unsupported("a RENAME to a name that is taken")
            self._draft.forget(old, taken)
            self._draft.forget(new, taken)
            return
        self._draft.drop(old)
        self._draft.put(table, new)

    def _drop(self) -> None:
        reader = self._reader
        reader.accept("IF", "EXISTS")
        while True:
            name = self._table()
            if self._draft.find(name) is not None:
                self._draft.drop(name)
            if not reader.accept(","):
                break
        pass_patience(reader)
        reader.accept_any("RESTRICT", "CASCADE")
        reader.expect_end()

    def _sequence(self, verb: str) -> None:
        """MariaDB's: a table of one row, which it writes as rows."""
        reader, draft = self._reader, self._draft
        if verb == "DROP":
            self._drop()
            return
        optional = reader.accept("IF", "NOT", "EXISTS")
        reader.accept("IF", "EXISTS")
        name = self._table()
        if verb == "CREATE" and not (optional and draft.find(name) is not None):
            draft.forget(name, Unsupported("a sequence"))

    def _drop_index(self) -> None:
        reader = self._reader
        reader.accept("IF", "EXISTS")
        if reader.name().upper() != "PRIMARY":
            return
        reader.expect("ON")
        table = self._draft.find(self._table())
        if table is not None:
            self._draft.put(replace(table, layout=replace(table.layout, key=())))

    def _database(self, verb: str, *, replacing: bool) -> None:
        reader = self._reader
        reader.accept("IF", "NOT", "EXISTS")
        reader.accept("IF", "EXISTS")
        unnamed = verb == "ALTER" and any(reader.peek(word) for word in SCHEMA_OPTIONS)
        if verb != "DROP":
            self._whole()
        schema = self._schema if unnamed else reader.name()
        if verb == "DROP" or replacing:
            self._draft.drop_schema(schema)
        if verb == "DROP":
            return
        before = self._draft.charset(schema)
        if verb == "CREATE" and before:
            return  # IF NOT EXISTS, and it does
        charset = before if verb == "ALTER" else self._server_charset
        while not reader.at_end:
            reader.accept("DEFAULT")
            if reader.accept("CHARACTER", "SET") or reader.accept("CHARSET") or reader.accept("CHAR", "SET"):
                charset = charset_name(self._value())
            elif reader.accept("COLLATE"):
                charset = charset_of(self._value()) or charset
            elif reader.accept_any("ENCRYPTION", "COMMENT") or reader.accept("READ", "ONLY"):
                self._value()
            else:
                reader.stop("an option of a schema that is not known")
        self._draft.put_schema(schema, charset)

    def _value(self) -> str:
        self._reader.accept("=")
        return self._reader.take().text

    def _create(self) -> None:
        reader, draft = self._reader, self._draft
        optional = reader.accept("IF", "NOT", "EXISTS")
        name = self._table()
        if optional and draft.find(name) is not None:
            return
        try:
            self._whole()
            if (other := like(reader)) is not None:
                table = draft.find(draft.named(other))
                if table is None:
                    reader.stop(f"table {other} is not known")
                draft.put(table, name)
                return
            found = definition(reader, self._sql_mode, draft.charset(name.schema))
            for spec in found.specs:
                _check(spec)
            draft.put(_definition(name, [spec.column for spec in found.specs], found.key, found.charset))
        except Unsupported as error:
            draft.forget(name, error)

    def _alter(self) -> None:
        reader, draft = self._reader, self._draft
        reader.accept("IF", "EXISTS")
        name = self._table()
        table = draft.find(name)
        if table is None or table.unknown:
            return
        pass_patience(reader)
        state = Alteration[None](
            name=name,
            columns=[Altered(column, column.name, None) for column in table.layout.columns],
            key=None,
            charset=table.charset,
            sql_mode=self._sql_mode,
            meaning=_Structure(),
        )
        try:
            self._whole()
            if reader.mariadb or draft.old:
                check_conversion(reader, "MariaDB" if reader.mariadb else "a MySQL before 8.0")
            converting = reader.count("CONVERT") > 0
            read_clauses(reader, state, lambda: None)
            if draft.old and converting and state.charset != table.charset:
                _check_converted(reader, table, state.charset)
            columns = table.layout.columns
            key = state.key_after(reader, (columns[index].name for index in table.layout.key))
            draft.put(_definition(name, [item.column for item in state.columns], key, state.charset))
        except Unsupported as error:
            draft.forget(name, error)
            return
        if state.rename is not None:
            new = draft.named(state.rename)
            if new != name:
                self._move(name, new)


def _check(spec: ColumnSpec) -> None:
    column = spec.column
    if column.type.partition("(")[0] in _WITH_CHARSET and not column.charset:
        raise Unsupported(f"the character set of column {column.name} is not known")


def _check_converted(reader: Reader, table: TableDefinition, charset: str) -> None:
    """A MySQL before 8.0 does nothing, not even to the table's own character set, where no column has another."""
    if all(column.charset in {"", "binary", charset} for column in table.layout.columns):
        reader.stop("a conversion that changes no column, of which a MySQL before 8.0 may make nothing,")


def _definition(name: TableName, columns: list[Column], key: Iterable[str], charset: str) -> TableDefinition:
    """A table; the columns of its key are NOT NULL."""
    places = {column.name.casefold(): index for index, column in enumerate(columns)}
    indexes = tuple(places[part.casefold()] for part in key)
    whole = tuple(replace(c, nullable=False) if index in indexes else c for index, c in enumerate(columns))
    return TableDefinition(TableLayout(name, whole, indexes), charset)
