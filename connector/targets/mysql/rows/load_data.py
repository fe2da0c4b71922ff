"""Inserts many new rows of a table by LOAD DATA LOCAL, which costs a MySQL less than INSERT.

There the server ignores errors: it leaves out rows whose keys it has, and stores what a column takes of a value. Only
its own count of all rows, without a single warning, shows that each was stored as it is. With any other answer the rows
are taken back and left to INSERT, which raises the ordinary error, or finds that there is none.

A table whose rows are taken back again and again is written by INSERT until the applier starts again.

The server converts values from UTF-8 as it converts literals. What it would not convert as INSERT does is left to
INSERT from the first such row on: bytes in a column of text, and documents with numbers that a text does not keep.
"""

from __future__ import annotations

from functools import lru_cache
from io import BytesIO
from typing import Final

import pymysql

from connector.ddl.syntax.type_names import CHARACTERS, INTEGERS
from connector.errors import TargetUnavailable
from connector.log.compact.net_changes import Images
from connector.log.transaction.layout import Column
from connector.targets.mysql.rows.table_statements import TableStatements
from connector.targets.mysql.server.catalog_checks import fires_at_inserts
from connector.targets.mysql.server.connection import Loaded, ServerSession
from connector.targets.mysql.server.errors import NO_LOCAL_FILES, code_of, connector_error
from connector.targets.mysql.server.grants import has
from connector.targets.mysql.sql.names import quoted, table_condition
from connector.targets.mysql.sql.sql_values import LiteralKind, line_rows
from connector.targets.mysql.sql.types import literal_kind
from connector.targets.types import parse

FEWEST: Final = 100  # rows for which it pays
FILE_BYTES: Final = 1 << 20
MOST_TAKEN_BACK: Final = 3  # files of a table, one after the other: what follows is left to INSERT
_SAVEPOINT: Final = "thl_load"


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
    if not _stores_as_insert(statements):
        return 0
    sql, kinds = _statement(statements.name, statements.layout.columns, tuple(statements.written))
    limit = min(FILE_BYTES, session.max_packet // 4)
    done = 0
    while done < len(images):
        lines, end = line_rows(images.data, images.ends, done, kinds, statements.written, limit)
        # A row that is too large for INSERT, and for any later statement, is an error there.
        if end == done or len(lines) >= session.max_packet:
            break
        if not _load(session, sql, lines, end - done):
            session.taken_back[statements.name] += 1
            break
        session.taken_back[statements.name] = 0
        done = end
    return done


def _stores_as_insert(statements: TableStatements) -> bool:
    """True if the table's definition allows rows to be loaded.

    There is no warning of what a trigger ignores, nor of a column that gets a value only because it has no default. A
    column of another type than the log's, which others have given it, stores a text otherwise than a number.
    """
    session, name = statements.session, statements.table.name
    if not has(session.granted, "TRIGGER", name.schema) or fires_at_inserts(session, name):
        return False
    found = session.rows(
        "SELECT column_name, data_type, is_nullable = 'NO' AND column_default IS NULL, extra "
        f"FROM information_schema.columns WHERE {table_condition(name)}"
    )
    by_server = ("AUTO_INCREMENT", "VIRTUAL", "STORED")
    required = {
        str(column)
        for column, _, needed, extra in found
        if needed and not any(word in str(extra).upper() for word in by_server)
    }
    types = {str(column): _text_type(str(kind)) for column, kind, *_ in found}
    written = [statements.layout.columns[index] for index in statements.written]
    return required <= set(statements.columns) and all(
        _kind(column) is LiteralKind.BYTES or types.get(column.name) == _text_type(parse(column.type).base)
        for column in written
    )


def _text_type(base: str) -> str:
    """The name of a type and all others that store a text alike."""
    return "integer" if base in INTEGERS else "text" if base in CHARACTERS else base


def _load(session: ServerSession, sql: bytes, lines: bytes, rows: int) -> bool:
    """Load lines; return false, with none of them in the table, unless the server has stored them all as they are."""
    session.query(f"SAVEPOINT {_SAVEPOINT}")
    try:
        exact = session.load(sql, BytesIO(lines)) == Loaded(records=rows)
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
def _statement(name: str, columns: tuple[Column, ...], written: tuple[int, ...]) -> tuple[bytes, bytes]:
    """The statement, and the kinds of all columns."""
    kinds = list(map(_kind, columns))
    fields, assignments = [], []
    for number in written:
        variable, column, kind = f"@thl_load_{number}", columns[number], kinds[number]
        if kind in (LiteralKind.BYTES, LiteralKind.BITS):
            assignments.append(f"{quoted(column.name)} = UNHEX({variable})")
        elif parse(column.type).base == "timestamp":
            # A field with NULL would silently be the current time in a column that is NOT NULL.
            assignments.append(f"{quoted(column.name)} = {variable}")
        else:
            variable = quoted(column.name)
        fields.append(variable)
    given = f" SET {', '.join(assignments)}" if assignments else ""
    sql = f"LOAD DATA LOCAL INFILE 'thl' INTO TABLE {name} CHARACTER SET utf8mb4 ({', '.join(fields)}){given}"
    return sql.encode(), bytes(kinds)


def _kind(column: Column) -> LiteralKind:
    return LiteralKind.YEAR if parse(column.type).base == "year" else literal_kind(column, mariadb=False)
