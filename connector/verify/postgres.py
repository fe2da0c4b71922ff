"""Reads a PostgreSQL target. The server converts every value to bytes, and marks values of a wrong type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg
from psycopg import sql
from psycopg.errors import InvalidParameterValue, UndefinedObject

from connector.errors import TargetUnavailable
from connector.verify.target import TargetState, metadata_columns, not_begun
from connector.verify.values import ComparedColumn, Row, ValueForm, double_form

ROWS_AT_ONCE = 2000
NAME_BYTES = 63

ATTEMPTS = 100  # to begin in a state that is not in the middle of a commit, 50 ms apart

_EXPORTS = """
SELECT EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('thl.thl_progress') AND attname = 'snapshot')
  AND has_table_privilege(to_regclass('thl.thl_progress'), 'SELECT')
"""
# Not by the column's name, which a target of an earlier version lacks.
_OPEN_INTENT = """
SELECT FROM thl.thl_position p
WHERE service = %s AND NOT consistent AND (to_jsonb(p)->>'schema_version')::integer IN (2, 4)
"""

_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, NULL)
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""

_APPLIERS = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s"


class PostgresReader:
    """Implements `TargetReader`.

    Args:
        url: a URL of libpq.
    """

    def __init__(self, url: str) -> None:
        try:
            self._connection = psycopg.connect(
                url, autocommit=True, application_name="thl verify", client_encoding="utf8"
            )
        except psycopg.OperationalError as error:
            raise TargetUnavailable(f"the target does not answer: {error}") from error
        self._tables: dict[tuple[str, str], str] = {}

    @contextmanager
    def view(self, service: str) -> Iterator[TargetState]:
        """Open a read-only transaction at one snapshot: that of the applier, if it exports any."""
        try:
            with self._connection.cursor() as cursor:
                self._begin(cursor, service)
                cursor.execute("SET LOCAL datestyle = 'ISO, YMD'")
                cursor.execute("SET LOCAL intervalstyle = 'postgres'")
                cursor.execute("SELECT to_regclass('thl.thl_position')")
                if cursor.fetchone() == (None,):
                    raise not_begun(service=service)
                cursor.execute(
                    "SELECT seqno, event_id, gtid_set, consistent FROM thl.thl_position WHERE service = %s", (service,)
                )
                found = cursor.fetchone()
                cursor.execute(
                    "SELECT schema_name, table_name, target_name, definition FROM thl.thl_tables WHERE service = %s",
                    (service,),
                )
                rows = cursor.fetchall()
                self._tables = {(schema, table): name for schema, table, name, _ in rows}
                columns = {(schema, table): metadata_columns(made) for schema, table, _, made in rows}
                excluded = _since(cursor, "thl.thl_excluded", service)
                loading = _since(cursor, "thl.thl_loading", service)
            seqno, event_id, gtid_set, consistent = found or (-1, "", None, False)
            tables = dict(self._tables)
            yield TargetState(seqno, event_id, gtid_set, bool(consistent), tables, columns, excluded, loading)
        except psycopg.Error as error:
            raise TargetUnavailable(f"the target cannot be read: {error}") from error
        finally:
            if not self._connection.closed:
                self._connection.rollback()

    def _begin(self, cursor: psycopg.Cursor, service: str) -> None:
        """Begin a transaction at the applier's snapshot, or if it exports none, between two commits of several writers.

        If a commit stays open, because its applier was ended, the transaction begins all the same: the state tells.
        """
        exports = cursor.execute(_EXPORTS).fetchone() == (True,)
        for _ in range(ATTEMPTS):
            snapshot = None
            if exports:
                query = "SELECT snapshot FROM thl.thl_progress WHERE service = %s"
                (snapshot,) = cursor.execute(query, (service,)).fetchone() or (None,)
            cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                if snapshot is not None:
                    cursor.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot)))
                    return
                if not exports or cursor.execute(_OPEN_INTENT, (service,)).fetchone() is None:
                    return
            except (InvalidParameterValue, UndefinedObject):
                pass  # the snapshot has ended meanwhile
            cursor.execute("ROLLBACK")
            cursor.execute("SELECT pg_sleep(0.05)")
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def applied(self, service: str) -> bool | None:
        """Look for a session of this database with the name that an applier gives its own."""
        name = f"thl {service}".encode()[:NAME_BYTES].decode(errors="ignore")
        try:
            found = self._connection.execute(_APPLIERS, (name,)).fetchone()
        except psycopg.Error as error:
            raise TargetUnavailable(f"the target cannot be read: {error}") from error
        return found is not None

    def called(self, column: str) -> str:
        """Cut a name at 63 bytes, as PostgreSQL does."""
        return column.encode()[:NAME_BYTES].decode(errors="ignore")

    def columns(self, table: tuple[str, str]) -> list[str]:
        """Return the columns from pg_attribute."""
        return list(self._types(table))

    def rows(self, table: tuple[str, str], columns: Sequence[ComparedColumn]) -> Iterator[Row]:
        """Return the rows in the order of storage."""
        types = self._types(table)
        doubles = [index for index, column in enumerate(columns) if column.kind is ValueForm.DOUBLE]
        forms = [self._form(column, types[self.called(column.name)]) for column in columns]
        name = sql.Identifier(*map(self.called, table))
        statement = sql.SQL("SELECT {} FROM {}").format(sql.SQL(", ").join(forms), name)
        with self._connection.cursor(name="thl_verify", binary=True) as cursor:
            cursor.itersize = ROWS_AT_ONCE
            cursor.execute(statement)
            for row in cursor:
                values = list(row)
                for index in doubles:
                    if isinstance(values[index], float):
                        values[index] = double_form(values[index])
                yield tuple(values)

    def close(self) -> None:
        """End the session."""
        self._connection.close()

    def _types(self, table: tuple[str, str]) -> dict[str, str]:
        with self._connection.cursor() as cursor:
            return dict(cursor.execute(_COLUMNS, [self.called(part) for part in table]).fetchall())

    def _form(self, column: ComparedColumn, type_: str) -> sql.Composable:
        name: sql.Composable = sql.Identifier(self.called(column.name))
        match column.kind, type_:
            case (ValueForm.DOUBLE, "real" | "double precision"):
                return sql.SQL("{}::float8").format(name)
            case (ValueForm.BYTES, "bytea"):
                return name
            case (ValueForm.BYTES, "bit"):
                # Big-endian bytes; bit(64) may be a negative bigint, whose bytes are right.
                first = sql.Literal(9 - (column.bits + 7) // 8)
                return sql.SQL("substring(int8send({}::bigint) from {})").format(name, first)
            case (ValueForm.TEXT, "timestamp with time zone"):
                return _seconds(sql.SQL("({} AT TIME ZONE 'UTC')::text").format(name), column.fraction)
            case (ValueForm.TEXT, "timestamp without time zone" | "interval"):
                return _seconds(sql.SQL("{}::text").format(name), column.fraction)
            case (ValueForm.NUMBER | ValueForm.TEXT, _) if type_ != "bytea":
                return sql.SQL("convert_to({}::text, 'UTF8')").format(name)
        return sql.SQL("convert_to({} || {}::text, 'UTF8')").format(sql.Literal(f"wrong type {type_} "), name)


def _seconds(text: sql.Composable, fraction: int) -> sql.Composable:
    """Pad a fraction with zeros: PostgreSQL omits them, MySQL prints the column's number of digits."""
    return sql.SQL(
        "convert_to(split_part({text}, '.', 1) || CASE WHEN {digits} = 0 AND strpos({text}, '.') = 0 THEN '' ELSE "
        "'.' || rpad(split_part({text}, '.', 2), greatest({digits}, length(split_part({text}, '.', 2))), '0') END, "
        "'UTF8')"
    ).format(text=text, digits=sql.Literal(fraction))


def _since(cursor: psycopg.Cursor, name: str, service: str) -> dict[tuple[str, str], int]:
    """The tables of a bookkeeping table, each with its event; an older version may not have it."""
    cursor.execute("SELECT to_regclass(%s)", (name,))
    if cursor.fetchone() == (None,):
        return {}
    cursor.execute(f"SELECT schema_name, table_name, since_seqno FROM {name} WHERE service = %s".encode(), (service,))
    return {(schema, table): since for schema, table, since in cursor.fetchall()}
