"""Reads a SQLite target. The database converts every value to bytes, and marks values of a wrong type."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from connector.errors import TargetUnavailable
from connector.verify.target import TargetState, metadata_columns, not_begun
from connector.verify.values import ComparedColumn, Row, ValueForm, double_form

_TYPES = {ValueForm.NUMBER: "'integer', 'text'", ValueForm.TEXT: "'text'", ValueForm.BYTES: "'blob'"}


class SqliteReader:
    """Implements `TargetReader`.

    Args:
        path: the database file.
    """

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise not_begun(file=path)
        self._connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=30
        )
        self._path = path
        self._tables: dict[tuple[str, str], str] = {}

    @contextmanager
    def view(self, service: str) -> Iterator[TargetState]:
        """Open a read transaction."""
        try:
            self._connection.execute("BEGIN")
            if not self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'thl_position'").fetchone():
                self._connection.execute("ROLLBACK")
                raise not_begun(service=service)
            found = self._connection.execute(
                "SELECT seqno, event_id, gtid_set, consistent FROM thl_position WHERE service = ?", (service,)
            ).fetchone()
            tables = self._connection.execute(
                "SELECT schema_name, table_name, target_name, definition FROM thl_tables WHERE service = ?", (service,)
            ).fetchall()
            self._tables = {(schema, table): name for schema, table, name, _ in tables}
            columns = {(schema, table): metadata_columns(made) for schema, table, _, made in tables}
            excluded, loading = (self._since(name, service) for name in ("thl_excluded", "thl_loading"))
        except sqlite3.OperationalError as error:
            raise TargetUnavailable(f"the target cannot be read: {error}", file=self._path) from error
        try:
            seqno, event_id, gtid_set, consistent = found or (-1, "", None, False)
            published = dict(self._tables)
            yield TargetState(seqno, event_id, gtid_set, bool(consistent), published, columns, excluded, loading)
        finally:
            self._connection.execute("ROLLBACK")

    def _since(self, name: str, service: str) -> dict[tuple[str, str], int]:
        """The tables of a bookkeeping table, each with its event; an older version may not have it."""
        if not self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone():
            return {}
        query = f"SELECT schema_name, table_name, since_seqno FROM {name} WHERE service = ?"
        return {(schema, table): since for schema, table, since in self._connection.execute(query, (service,))}

    def applied(self, service: str) -> bool | None:
        """A file has no sessions."""
        return None

    def called(self, column: str) -> str:
        """Return the name unchanged."""
        return column

    def columns(self, table: tuple[str, str]) -> list[str]:
        """Return the columns from pragma_table_info."""
        rows = self._connection.execute("SELECT name FROM pragma_table_info(?)", (self._tables[table],))
        return [name for (name,) in rows]

    def rows(self, table: tuple[str, str], columns: Sequence[ComparedColumn]) -> Iterator[Row]:
        """Return the rows in the order of storage."""
        doubles = [index for index, column in enumerate(columns) if column.kind is ValueForm.DOUBLE]
        cursor = self._connection.execute(
            f"SELECT {', '.join(map(_form, columns))} FROM {_quoted(self._tables[table])}"
        )
        if not doubles:
            yield from cursor
            return
        for row in cursor:
            values = list(row)
            for index in doubles:
                if isinstance(values[index], float):
                    values[index] = double_form(values[index])
            yield tuple(values)

    def close(self) -> None:
        """End the session."""
        self._connection.close()


def _form(column: ComparedColumn) -> str:
    name = _quoted(column.name)
    if column.kind is ValueForm.DOUBLE:
        return f"CASE WHEN typeof({name}) IN ('real', 'null') THEN {name} ELSE CAST(typeof({name}) AS BLOB) END"
    return (
        f"CASE WHEN {name} IS NULL THEN NULL WHEN typeof({name}) IN ({_TYPES[column.kind]}) "
        f"THEN CAST({'CAST(' + name + ' AS TEXT)' if column.kind is ValueForm.NUMBER else name} AS BLOB) "
        f"ELSE CAST('wrong type ' || typeof({name}) || ' ' || hex({name}) AS BLOB) END"
    )


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))
