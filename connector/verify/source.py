"""Reads the source: MySQL's own text of every value, in one consistent view."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, cast

from pymysql.cursors import SSCursor

from connector.config.source import Source
from connector.errors import MissingPrivilege
from connector.log.gtid.source_gtids import lacking, of_mariadb
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import SourcePosition
from connector.mysql.server.connection import Connection, account, connect, query, source_errors
from connector.mysql.server.privileges import read_privileges, unreadable
from connector.mysql.server.snapshot_point import prepare_session
from connector.mysql.server.source_state import end_position, gtid_executed, is_read
from connector.mysql.transforms.filters import Filter
from connector.verify.rules import Change, change_of, changed, kept
from connector.verify.values import ComparedColumn, Row, ValueForm, column_of, with_number_forms

ATTEMPTS = 50
ROWS_AT_ONCE = 2000


@dataclass(frozen=True, slots=True)
class ComparedTable:
    """A table of the source with its published columns.

    Args:
        name: name of the table.
        columns: the published columns, under their names on the source.
        key: indexes of the primary key's columns; empty if it has none.
        published: the columns under their published names.
        target: the published name of the table.
        changes: index of a column, and the change that a rule makes to its values.
    """

    name: tuple[str, str]
    columns: tuple[ComparedColumn, ...]
    key: tuple[int, ...]
    published: tuple[ComparedColumn, ...]
    target: tuple[str, str]
    changes: tuple[tuple[int, Change], ...] = ()


@dataclass(frozen=True, slots=True)
class SourceState:
    """Position and GTIDs of a view; `exact` if nothing was committed while it was opened."""

    position: SourcePosition
    gtid_set: str | None
    exact: bool


class SourceReader:
    """A session on the source.

    Args:
        source: the server, its user and the filters.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._connection: Connection = connect(source)
        with source_errors(source):
            prepare_session(self._connection, source)

    def view(self) -> SourceState:
        """Open a view; the previous one ends.

        Takes no lock: the position is read before and after, until it is the same.
        """
        with source_errors(self._source):
            for _ in range(ATTEMPTS):
                before = self._position()
                query(self._connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
                after = self._position()
                if before == after:
                    return SourceState(*after, exact=True)
            return SourceState(*after, exact=False)

    def read(self) -> bool | None:
        """True if the service's producer reads the binary log; None: the user may not ask."""
        try:
            with source_errors(self._source):
                return is_read(self._connection, self._source.server_id)
        except MissingPrivilege:
            return None

    def missing(self, gtid_set: str, from_set: str) -> str:
        """Return the GTIDs of one set that are not in the other. MySQL subtracts them itself; MariaDB cannot."""
        if of_mariadb(gtid_set) or of_mariadb(from_set):
            return str(lacking(gtid_set, from_set))
        with source_errors(self._source):
            row = query(self._connection, "SELECT GTID_SUBTRACT(%s, %s) AS missing", (gtid_set, from_set))[0]
        return "".join(str(row["missing"]).split())

    def filter(self) -> Filter:
        """Return the filter that selects the captured tables and their rules."""
        with source_errors(self._source):
            folds = int(query(self._connection, "SELECT @@lower_case_table_names AS l")[0]["l"])
        return Filter(self._source.filters, folds)

    def tables(self, filter: Filter) -> list[ComparedTable]:
        """Return the captured tables.

        Raises:
            MissingPrivilege: the user may not see all tables.
        """
        keys: dict[tuple[str, str], list[str]] = {}
        columns: dict[tuple[str, str], list[tuple[ComparedColumn, str]]] = {}
        with source_errors(self._source):
            _check_all_seen(self._connection, self._source)
            for row in query(
                self._connection,
                "SELECT TABLE_SCHEMA AS s, TABLE_NAME AS t, COLUMN_NAME AS c FROM information_schema.KEY_COLUMN_USAGE"
                " WHERE CONSTRAINT_NAME = 'PRIMARY' ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION",
            ):
                keys.setdefault((row["s"], row["t"]), []).append(row["c"])
            for row in query(
                self._connection,
                "SELECT c.TABLE_SCHEMA AS s, c.TABLE_NAME AS t, c.COLUMN_NAME AS c, c.DATA_TYPE AS base,"
                " c.COLUMN_TYPE AS full FROM information_schema.COLUMNS c JOIN information_schema.TABLES t"
                " ON t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME"
                " WHERE t.TABLE_TYPE = 'BASE TABLE' ORDER BY c.TABLE_SCHEMA, c.TABLE_NAME, c.ORDINAL_POSITION",
            ):
                name = (row["s"], row["t"])
                if filter.captures(*name):
                    columns.setdefault(name, []).append((column_of(row["c"], row["base"], row["full"]), row["base"]))
        return [self._table(filter, TableName(*name), found, keys.get(name, ())) for name, found in columns.items()]

    def _table(
        self, filter: Filter, name: TableName, columns: Sequence[tuple[ComparedColumn, str]], key: Sequence[str]
    ) -> ComparedTable:
        """Return a table with its rule applied."""
        rule, published = filter.rule(*name), filter.published_name(name)
        found = [(column, base.lower()) for column, base in columns if kept(rule, column.name)]
        indexes = {column.name: index for index, (column, _) in enumerate(found)}
        changes = [
            (index, change)
            for index, (column, base) in enumerate(found)
            if (change := change_of(rule, column, base, key=column.name in key, hash_key=filter.hash_key)) is not None
        ]
        return ComparedTable(
            name=(name.schema, name.table),
            columns=tuple(column for column, _ in found),
            key=tuple(indexes[part] for part in key if part in indexes),
            published=tuple(replace(one, name=filter.published_column(name, one.name)) for one, _ in found),
            target=(published.schema, published.table),
            changes=tuple(changes),
        )

    def rows(self, table: ComparedTable) -> Iterable[Row]:
        """Return a table's rows in the form of `connector.verify.values`, with its rule applied."""
        found = self._rows(table)
        return changed(found, table.changes) if table.changes else found

    def _rows(self, table: ComparedTable) -> Iterator[Row]:
        selected = ", ".join(_selected(column) for column in table.columns)
        sql = f"SELECT {selected} FROM {quoted(table.name[0])}.{quoted(table.name[1])}"
        converted = [
            (index, column.kind is ValueForm.DOUBLE)
            for index, column in enumerate(table.columns)
            if column.padded or column.kind is ValueForm.DOUBLE
        ]
        with source_errors(self._source), self._as_bytes(), closing(SSCursor(self._connection)) as cursor:
            cursor.execute(sql)
            while batch := cast(Sequence[Row], cursor.fetchmany(ROWS_AT_ONCE)):
                yield from (with_number_forms(row, converted) for row in batch) if converted else batch

    def close(self) -> None:
        """End the session."""
        self._connection.close()

    def _position(self) -> tuple[SourcePosition, str | None]:
        return end_position(self._connection), gtid_executed(self._connection)

    def _as_bytes(self) -> Any:
        return _AsBytes(self._connection)


def _check_all_seen(connection: Connection, source: Source) -> None:
    """Refuse a user who may not read some tables: these would silently be missing."""
    hidden = next(unreadable(read_privileges(connection), source.filters.do), None)
    if hidden is not None:
        raise MissingPrivilege(
            f"the user lacks SELECT on {hidden}: tables that it may not read would silently not be compared",
            hint=f"GRANT SELECT ON {hidden} TO {account(source.user)};",
        )


def quoted(name: str) -> str:
    """A name in backticks."""
    return f"`{name.replace('`', '``')}`"


def _selected(column: ComparedColumn) -> str:
    """Return the expression of a column in a SELECT; as a DOUBLE, a FLOAT has all its digits."""
    name = quoted(column.name)
    if column.fixed:
        return f"CAST({name} AS BINARY({column.fixed}))"
    return f"{name} * 1e0" if column.kind is ValueForm.DOUBLE else name


class _AsBytes:
    """Context in which pymysql returns values as the bytes that the server sent."""

    def __init__(self, connection: Connection) -> None:
        self._connection = cast(Any, connection)
        self._kept: tuple[Any, Any] = (None, None)

    def __enter__(self) -> None:
        self._kept = self._connection.decoders, self._connection.use_unicode
        self._connection.decoders, self._connection.use_unicode = {}, False

    def __exit__(self, *_: object) -> None:
        self._connection.decoders, self._connection.use_unicode = self._kept
