"""Inserts many new rows of a table by LOAD DATA LOCAL, which costs a MySQL less than INSERT.

There the server ignores errors: it leaves out rows whose keys it has, and stores what a column takes of a value. Only
its own count of all rows, without a single warning, shows that each was stored as it is. With any other answer the rows
are taken back and left to INSERT, which raises the ordinary error, or finds that there is none.

A table whose rows are taken back again and again is written by INSERT until the applier starts again.

The server converts values from UTF-8 as it converts literals. What it would not convert as INSERT does is left to
INSERT from the first such row on: bytes in a column of text, and documents with numbers that a text does not keep.
Where UTF-8 is what all texts are stored in, nothing has to be converted: the file is one of bytes, which cost the
server least, and those of binary columns are in it as they are.

Lines are written while the server reads: it stores those that are on their way.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

import pymysql

from connector.ddl.syntax.tokens import quoted
from connector.ddl.syntax.type_names import CHARACTERS, INTEGERS
from connector.errors import TargetUnavailable
from connector.log.compact.net_changes import Images
from connector.log.transaction.layout import Column
from connector.targets.mysql.rows.table_statements import UNICODE, TableStatements
from connector.targets.mysql.server.catalog_checks import fires_at_inserts
from connector.targets.mysql.server.connection import Loaded, ServerSession
from connector.targets.mysql.server.errors import NO_LOCAL_FILES, code_of, connector_error
from connector.targets.mysql.sql.names import table_condition
from connector.targets.mysql.sql.sql_values import LiteralKind, line_rows
from connector.targets.mysql.sql.types import literal_kind
from connector.targets.types import parse

FEWEST: Final = 100  # rows for which it pays
FILE_BYTES: Final = 4 << 20
BLOCK_BYTES: Final = 64 << 10  # of a file, written at once
MOST_TAKEN_BACK: Final = 3  # files of a table, one after the other: what follows is left to INSERT
_SAVEPOINT: Final = "thl_load"
_COUNTER: Final = re.compile(r" AUTO_INCREMENT=\d+")  # of a table, which its rows change


def load_rows(statements: TableStatements, images: Images) -> int:
    """Insert rows, from the first one on, as long as the server stores them as they are.

    Args:
        statements: of the table.
        images: whole images.

    Returns:
        The number of rows that are inserted; the others are for INSERT.

    Raises:
        pymysql.MySQLError: the transaction has ended.
    """
    session = statements.session
    if len(images) < FEWEST or not session.loads or session.taken_back[statements.name] >= MOST_TAKEN_BACK:
        return 0
    session.rows(f"SELECT 1 FROM {statements.name} LIMIT 0")  # a lock of its definition, which others may have changed
    found = _allowed_statement(statements)
    if found is None:
        return 0
    sql, kinds = found
    done = 0
    while done < len(images):
        file = _LineFile(images, done, kinds, statements.written, session.max_packet)
        if not file.rows:
            break
        if not _load(session, sql, file):
            session.taken_back[statements.name] += 1
            break
        session.taken_back[statements.name] = 0
        done += file.rows
    return done


class _LineFile:
    """The lines of some rows, each written when it is read; it ends before the first row that is left to INSERT.

    Args:
        images: whole images.
        first: the first image.
        kinds, written: of the images' values, as `line_rows` takes them.
        max_packet: of the server.

    Attributes:
        rows: the number of rows that it has so far.
    """

    def __init__(self, images: Images, first: int, kinds: bytes, written: list[int], max_packet: int) -> None:
        self._images = images
        self._first = first
        self._kinds = kinds
        self._written = written
        self._max_packet = max_packet
        self._size = 0
        self.rows = 0
        self._begin = self._lines()

    def read(self, size: int, /) -> bytes:
        """Return the next lines."""
        del size  # a block ends with a row
        lines, self._begin = self._begin, b""
        return lines or self._lines()

    def _lines(self) -> bytes:
        if self._size >= FILE_BYTES:
            return b""
        first, limit = self._first + self.rows, min(BLOCK_BYTES, self._max_packet // 4)
        lines, end = line_rows(self._images.data, self._images.ends, first, self._kinds, self._written, limit)
        # A row that is too large for INSERT, and for any later statement, is an error there.
        if len(lines) >= self._max_packet:
            return b""
        self._size += len(lines)
        self.rows = end - self._first
        return lines


def _allowed_statement(statements: TableStatements) -> tuple[bytes, bytes] | None:
    """The statement, and the kinds of all columns; None if the table does not allow rows to be loaded.

    There is no warning of what a trigger ignores. The definition is compared with that of the last time: a text, which
    costs the server less than the columns' rows in information_schema.
    """
    session, name = statements.session, statements.table.name
    if not session.granted.has("TRIGGER", name.schema) or fires_at_inserts(session, name):
        return None
    definition = _COUNTER.sub("", str(session.rows(f"SHOW CREATE TABLE {statements.name}")[0][1]))
    seen = (definition, statements.layout.columns, tuple(statements.written))
    before, found = session.loaded.get(statements.name, (None, None))
    if seen != before:
        rules = _field_rules(statements)
        written = tuple(statements.written)
        found = None if rules is None else _load_sql(statements.name, statements.layout.columns, written, rules)
        if definition.startswith("CREATE TABLE"):  # a view's text does not have its columns' types
            session.loaded[statements.name] = seen, found
    return found


class _FieldRules(NamedTuple):
    """The ways in which a table's columns take the fields of a file."""

    assigned: frozenset[str]  # the names of the columns that are assigned, and not read as a field
    raw: bool  # the file is one of bytes


def _field_rules(statements: TableStatements) -> _FieldRules | None:
    """The rules of a table; None if its columns do not allow rows to be loaded.

    There is no warning of a column that gets a value only because it has no default. A column of another type than the
    log's, which others have given it, stores a text otherwise than a number.
    """
    session, name = statements.session, statements.table.name
    found = session.rows(
        "SELECT column_name, data_type, is_nullable = 'NO', column_default IS NULL, extra, character_set_name "
        f"FROM information_schema.columns WHERE {table_condition(name)}"
    )
    by_server = ("AUTO_INCREMENT", "VIRTUAL", "STORED")
    not_null = {str(column) for column, _, needed, *_ in found if needed}
    required = {
        str(column)
        for column, _, needed, no_default, extra, _ in found
        if needed and no_default and not any(word in str(extra).upper() for word in by_server)
    }
    types = {str(column): _text_type(str(kind)) for column, kind, *_ in found}
    written = [statements.layout.columns[index] for index in statements.written]
    if not required <= set(statements.columns) or any(
        _kind(column) is not LiteralKind.BYTES and types.get(column.name) != _text_type(parse(column.type).base)
        for column in written
    ):
        return None
    charsets = {str(column): charset for column, *_, charset in found}
    raw = all(
        _kind(column) is not LiteralKind.JSON and charsets.get(column.name) in {None, *UNICODE} for column in written
    )
    # A field with NULL would silently be the current time in a column that is NOT NULL.
    assigned = {column.name for column in written if column.name in not_null and parse(column.type).base == "timestamp"}
    return _FieldRules(frozenset(assigned), raw)


def _text_type(base: str) -> str:
    """The name of a type and all others that store a text alike."""
    return "integer" if base in INTEGERS else "text" if base in CHARACTERS else base


def _load(session: ServerSession, sql: bytes, file: _LineFile) -> bool:
    """Load a file; return false, with none of its rows in the table, unless the server has stored all as they are."""
    session.query(f"SAVEPOINT {_SAVEPOINT}")
    try:
        exact = session.load(sql, file) == Loaded(records=file.rows)
    except pymysql.MySQLError as error:
        if isinstance(connector_error(error), TargetUnavailable):
            raise
        if code_of(error) in NO_LOCAL_FILES:  # switched off meanwhile
            session.loads = False
        exact = False
    if not exact:
        session.roll_back(_SAVEPOINT)
    return exact


@lru_cache(maxsize=256)  # small batches of many columns would take half of their time here
def _load_sql(
    name: str, columns: tuple[Column, ...], written: tuple[int, ...], rules: _FieldRules
) -> tuple[bytes, bytes]:
    """The statement, and the kinds of all columns.

    Args:
        name: the table's quoted name.
        columns: of the images.
        written: the indexes of those that are written.
        rules: of the table.
    """
    kinds = [_kind(column, raw=rules.raw) for column in columns]
    fields, assignments = [], []
    for number in written:
        variable, column, kind = f"@thl_load_{number}", columns[number], kinds[number]
        if kind in (LiteralKind.BYTES, LiteralKind.BITS):
            assignments.append(f"{quoted(column.name)} = UNHEX({variable})")
        elif column.name in rules.assigned:
            assignments.append(f"{quoted(column.name)} = {variable}")
        else:
            variable = quoted(column.name)
        fields.append(variable)
    given = f" SET {', '.join(assignments)}" if assignments else ""
    charset = "binary" if rules.raw else "utf8mb4"
    sql = f"LOAD DATA LOCAL INFILE 'thl' INTO TABLE {name} CHARACTER SET {charset} ({', '.join(fields)}){given}"
    return sql.encode(), bytes(kinds)


def _kind(column: Column, *, raw: bool = False) -> LiteralKind:
    if parse(column.type).base == "year":
        return LiteralKind.YEAR
    kind = literal_kind(column, mariadb=False)
    return LiteralKind.RAW if raw and kind is LiteralKind.BYTES else kind
