"""Reads a MySQL or MariaDB target: the server's own text of every value. Marks values in columns of a wrong type."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final

import pymysql
from pymysql.constants import CR
from pymysql.cursors import SSCursor

from connector.config.target_url import MySqlAddress, mysql_address, tls_attempts
from connector.errors import TargetUnavailable
from connector.verify.source import quoted
from connector.verify.target import TargetState, metadata_columns, not_begun
from connector.verify.values import ComparedColumn, Row, ValueForm, column_of, with_number_forms

ROWS_AT_ONCE = 2000
_SESSION: Final = (
    "SET SESSION time_zone = '+00:00', sql_mode = '', sql_select_limit = 18446744073709551615, sql_big_selects = 1"
)
_PATIENCE: Final = 10  # seconds for the server to answer


class MySqlReader:
    """Implements `TargetReader`.

    Args:
        url: `mysql://user:password@host:port`.
    """

    def __init__(self, url: str) -> None:
        try:
            self._connection = _connect(mysql_address(url))
        except (pymysql.MySQLError, OSError) as error:
            raise TargetUnavailable(f"the target does not answer: {error}") from error
        self._tables: dict[tuple[str, str], tuple[str, str]] = {}

    @contextmanager
    def view(self, service: str) -> Iterator[TargetState]:
        """Open a read-only transaction at one snapshot."""
        try:
            self._query("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            if not self._has("thl_position"):
                raise not_begun(service=service)
            self._query("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
            found = self._query(
                "SELECT seqno, event_id, gtid_set, consistent FROM thl.thl_position WHERE service = %s", service
            )
            tables = self._query(
                "SELECT schema_name, table_name, definition FROM thl.thl_tables WHERE service = %s", service
            )
            excluded, loading = (self._since(name, service) for name in ("thl_excluded", "thl_loading"))
        except pymysql.MySQLError as error:
            raise TargetUnavailable(f"the target cannot be read: {error}") from error
        self._tables = {(schema, table): (schema, table) for schema, table, _ in tables}
        columns = {(schema, table): metadata_columns(made) for schema, table, made in tables}
        try:
            seqno, event_id, gtid_set, consistent = found[0] if found else (-1, "", None, False)
            published = {name: ".".join(name) for name in self._tables}
            yield TargetState(seqno, event_id, gtid_set, bool(consistent), published, columns, excluded, loading)
        finally:
            self._query("ROLLBACK")

    def applied(self, service: str) -> bool | None:
        """True if the session of an applier holds the service's lock."""
        ((number,),) = self._query("SELECT IS_USED_LOCK(CONCAT('thl:', LEFT(SHA2(%s, 256), 40)))", service)
        return number is not None

    def called(self, column: str) -> str:
        """Return the name unchanged."""
        return column

    def columns(self, table: tuple[str, str]) -> list[str]:
        """Return the columns from information_schema."""
        return [name for name, *_ in self._declared(table)]

    def rows(self, table: tuple[str, str], columns: Sequence[ComparedColumn]) -> Iterator[Row]:
        """Return the rows in the order of storage."""
        declared = {name.lower(): (name, base, full) for name, base, full in self._declared(table)}
        selected, converted = [], []
        for index, column in enumerate(columns):
            name, base, full = declared[column.name.lower()]
            expression, kind = quoted(name), column_of(name, base, full).kind
            if kind is not column.kind:
                expression = f"CONCAT('wrong type {base} ', HEX({expression}))"
            elif kind is ValueForm.DOUBLE:
                expression = f"{expression} * 1e0"  # a FLOAT has all its digits as a DOUBLE
                converted.append((index, True))
            elif kind is ValueForm.NUMBER:
                converted.append((index, False))
            selected.append(expression)
        schema, name = self._tables[table]
        sql = f"SELECT {', '.join(selected)} FROM {quoted(schema)}.{quoted(name)}"
        kept = self._connection.decoders, self._connection.use_unicode
        self._connection.decoders, self._connection.use_unicode = {}, False
        try:
            with closing(SSCursor(self._connection)) as cursor:
                cursor.execute(sql)
                while batch := cursor.fetchmany(ROWS_AT_ONCE):
                    yield from (with_number_forms(row, converted) for row in batch)
        finally:
            self._connection.decoders, self._connection.use_unicode = kept

    def close(self) -> None:
        """End the session."""
        self._connection.close()

    def _declared(self, table: tuple[str, str]) -> list[tuple[str, str, str]]:
        """The name, the name of the type and the type of each column."""
        return self._query(
            "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE FROM information_schema.COLUMNS "
            "WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION",
            *self._tables[table],
        )

    def _since(self, name: str, service: str) -> dict[tuple[str, str], int]:
        """The tables of a bookkeeping table, each with its event."""
        query = f"SELECT schema_name, table_name, since_seqno FROM thl.{name} WHERE service = %s"
        return {(schema, table): since for schema, table, since in self._query(query, service)}

    def _has(self, name: str) -> bool:
        where = "TABLE_SCHEMA = 'thl' AND TABLE_NAME = %s"
        return bool(self._query(f"SELECT 1 FROM information_schema.TABLES WHERE {where}", name))

    def _query(self, sql: str, *values: str) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(sql, values or None)
            return list(cursor.fetchall())


def _connect(address: MySqlAddress) -> Any:
    first, *others = tls_attempts(address)
    try:
        return _attempt(address, first)
    except pymysql.MySQLError as error:
        if not others or error.args[0] != CR.CR_SSL_CONNECTION_ERROR:
            raise
        return _attempt(address, others[0])  # the server offers no TLS


def _attempt(address: MySqlAddress, tls: ssl.SSLContext | None) -> Any:
    return pymysql.connect(
        host=address.host,
        port=address.port,
        user=address.user,
        password=address.password.encode(),  # pymysql encodes a str as Latin 1
        charset="utf8mb4",
        autocommit=True,
        connect_timeout=_PATIENCE,
        program_name="thl verify",
        init_command=_SESSION,
        ssl=tls,
        ssl_disabled=tls is None,
    )
