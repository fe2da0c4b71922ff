"""Reads a DuckDB target. The database converts every value to bytes, and marks values of a wrong type.

While the file is open here, no applier can write to it, so it is closed after each view.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import duckdb

from connector.clock import Clock, SystemClock
from connector.errors import TargetUnavailable
from connector.verify.target import TargetState, metadata_columns, not_begun
from connector.verify.values import ComparedColumn, Form, Row, ValueForm, double_form

ROWS_AT_ONCE: Final = 2000
WAIT_SECONDS: Final = 30.0
_PAUSE: Final = 0.01

_COLUMNS: Final = """
SELECT column_name, data_type FROM duckdb_columns()
WHERE database_name = current_catalog() AND schema_name = ? AND table_name = ? ORDER BY column_index
"""
_TABLE: Final = """
SELECT 1 FROM duckdb_tables() WHERE database_name = current_catalog() AND schema_name = 'thl' AND table_name = ?
"""
_FRACTION: Final = re.compile(r"DECIMAL\((\d+),\1\)")
_WHOLE: Final = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")


class DuckDbReader:
    """Implements `TargetReader`.

    Args:
        path: the database file.
        clock: for waiting until an applier closes the file.
    """

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        if not path.exists():
            raise not_begun(file=path)
        self._path = path.resolve()
        self._clock = clock or SystemClock()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._catalog = ""

    @contextmanager
    def view(self, service: str) -> Iterator[TargetState]:
        """Open the file to read it, and a transaction."""
        self._connection = self._opened()
        try:
            self._run("BEGIN")
            ((self._catalog,),) = self._run("SELECT current_catalog()")
            if not self._run(_TABLE, "thl_position"):
                raise not_begun(service=service)
            columns = "seqno, event_id, gtid_set, consistent"
            found = self._run(f"SELECT {columns} FROM {self._name('thl', 'thl_position')} WHERE service = ?", service)
            columns = "schema_name, table_name, target_name, definition"
            tables = self._run(f"SELECT {columns} FROM {self._name('thl', 'thl_tables')} WHERE service = ?", service)
            names = {(schema, table): name for schema, table, name, _ in tables}
            metadata = {(schema, table): metadata_columns(made) for schema, table, _, made in tables}
            excluded, loading = (self._since(name, service) for name in ("thl_excluded", "thl_loading"))
            seqno, event_id, gtid_set, consistent = found[0] if found else (-1, "", None, False)
            yield TargetState(seqno, event_id, gtid_set, bool(consistent), names, metadata, excluded, loading)
        except duckdb.Error as error:
            raise TargetUnavailable(f"the target cannot be read: {error}", file=self._path) from error
        finally:
            self.close()

    def _since(self, name: str, service: str) -> dict[tuple[str, str], int]:
        """The tables of a bookkeeping table, each with its event."""
        if not self._run(_TABLE, name):
            return {}
        query = f"SELECT schema_name, table_name, since_seqno FROM {self._name('thl', name)} WHERE service = ?"
        return {(schema, table): since for schema, table, since in self._run(query, service)}

    def applied(self, service: str) -> bool | None:
        """A file tells of no applier that has closed it between commits."""
        return None

    def called(self, column: str) -> str:
        """Return the name unchanged."""
        return column

    def columns(self, table: tuple[str, str]) -> list[str]:
        """Return the columns from the dictionary."""
        return list(self._types(table))

    def rows(self, table: tuple[str, str], columns: Sequence[ComparedColumn]) -> Iterator[Row]:
        """Return the rows in the order of storage."""
        types = self._types(table)
        doubles = [index for index, column in enumerate(columns) if column.kind is ValueForm.DOUBLE]
        forms = ", ".join(_form(column, types[column.name]) for column in columns)
        with self._open().cursor() as cursor:
            cursor.execute(f"SELECT {forms} FROM {self._name(*table)}")
            while found := cursor.fetchmany(ROWS_AT_ONCE):
                yield from (_row(row, doubles) for row in found)

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _opened(self) -> duckdb.DuckDBPyConnection:
        deadline = self._clock.monotonic() + WAIT_SECONDS
        while True:
            try:
                return duckdb.connect(str(self._path), read_only=True)
            except duckdb.ConnectionException:  # an applier in this process has it open
                return duckdb.connect(str(self._path))
            except duckdb.Error as error:
                if "Could not set lock" not in str(error) or self._clock.monotonic() > deadline:
                    raise TargetUnavailable(f"the target cannot be opened: {error}", file=self._path) from error
            self._clock.sleep(_PAUSE)

    def _open(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            raise RuntimeError("the rows of a target are read within a view")
        return self._connection

    def _run(self, sql: str, *values: str) -> list[tuple[Any, ...]]:
        return self._open().execute(sql, list(values)).fetchall()

    def _types(self, table: tuple[str, str]) -> dict[str, str]:
        return dict(self._run(_COLUMNS, *table))

    def _name(self, schema: str, table: str) -> str:
        return ".".join(_quoted(part) for part in (self._catalog, schema, table))


def _row(row: tuple[Any, ...], doubles: Sequence[int]) -> Row:
    values: list[Form] = list(row)
    for index in doubles:
        if isinstance(row[index], float):
            values[index] = double_form(row[index])
    return tuple(values)


def _form(column: ComparedColumn, type_: str) -> str:
    name = _quoted(column.name)
    text = f"CAST({name} AS VARCHAR)"
    match column.kind, type_:
        case (ValueForm.DOUBLE, "FLOAT" | "DOUBLE"):
            return f"CAST({name} AS DOUBLE)"
        case (ValueForm.BYTES, "BLOB"):
            return name
        case (ValueForm.BYTES, "BIT") if column.bits:
            wrong = f"encode('wrong length ' || {text})"
            return f"CASE WHEN bit_length({name}) = {column.bits} THEN CAST({name} AS BLOB) ELSE {wrong} END"
        case (ValueForm.NUMBER, _) if _FRACTION.fullmatch(type_):  # printed without the zero before the point
            return f"encode(CASE WHEN {name} < 0 THEN '-' ELSE '' END || '0.' || split_part({text}, '.', 2))"
        case (ValueForm.NUMBER, _) if type_ in _WHOLE or type_.startswith("DECIMAL") or type_ == "VARCHAR":
            return f"encode({text})"
        case (ValueForm.TEXT, "VARCHAR" | "JSON" | "DATE"):
            return f"encode({text})"
        case (ValueForm.TEXT, "TIMESTAMP" | "INTERVAL"):
            return _seconds(text, column.fraction)
        case (ValueForm.TEXT, "TIMESTAMP WITH TIME ZONE"):
            return _seconds(f"CAST(make_timestamp(epoch_us({name})) AS VARCHAR)", column.fraction)
    return f"encode('wrong type {type_.replace(chr(39), '')} ' || {text})"


def _seconds(text: str, fraction: int) -> str:
    """Pad a fraction with zeros: DuckDB omits them, MySQL prints the column's number of digits."""
    digits = f"split_part({text}, '.', 2)"
    padded = f"rpad({digits}, CAST(greatest({fraction}, length({digits})) AS INTEGER), '0')"
    plain = f"CASE WHEN {fraction} = 0 AND {digits} = '' THEN '' ELSE '.' || {padded} END"
    return f"encode(split_part({text}, '.', 1) || {plain})"


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))
