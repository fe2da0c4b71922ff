"""Reading the source: MySQL's own text of every value, in one consistent view."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, cast

from pymysql.cursors import SSCursor

from connector.config.model import Source
from connector.errors import PreflightError
from connector.log.gtid.source_gtids import lacking, of_mariadb
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import SourcePosition
from connector.mysql.server.connection import Connection, account, as_double, connect, query, quoted, speaking_to
from connector.mysql.server.privileges import read_privileges, unreadable
from connector.mysql.server.snapshot_point import prepare_session
from connector.mysql.server.source_state import end_position, gtid_executed
from connector.mysql.transforms.filters import Filter
from connector.verify.rules import Change, change_of, changed, kept
from connector.verify.values import Column, Kind, Row, column_of, double_form, number_form

ATTEMPTS = 50
ROWS_AT_ONCE = 2000


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table of the source, as far as rules let it be published.

    Args:
        name: its name.
        columns: those that are published.
        key: indexes of its primary key's columns, empty when it has none.
        published: the columns as a target calls them.
        target: the table as a target calls it.
        changes: places of columns, and what rules make of their values.
    """

    name: tuple[str, str]
    columns: tuple[Column, ...]
    key: tuple[int, ...]
    published: tuple[Column, ...]
    target: tuple[str, str]
    changes: tuple[tuple[int, Change], ...] = ()


@dataclass(frozen=True, slots=True)
class SourceState:
    """What the view shows: the place and GTIDs, and whether nothing was committed while it was taken."""

    position: SourcePosition
    gtid_set: str | None
    exact: bool


class SourceReader:
    """One session on the source.

    Args:
        source: where.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._connection: Connection = connect(source)
        with speaking_to(source):
            prepare_session(self._connection, source)

    def view(self) -> SourceState:
        """Begin a view; the one before ends. Takes no lock: the place is read before and after until nothing moved."""
        with speaking_to(self._source):
            for _ in range(ATTEMPTS):
                before = self._place()
                query(self._connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
                after = self._place()
                if before == after:
                    return SourceState(*after, exact=True)
            return SourceState(*after, exact=False)

    def missing(self, gtid_set: str, from_set: str) -> str:
        """The GTIDs of one set that are not in the other. MySQL itself subtracts; MariaDB cannot."""
        if of_mariadb(gtid_set) or of_mariadb(from_set):
            return str(lacking(gtid_set, from_set))
        with speaking_to(self._source):
            row = query(self._connection, "SELECT GTID_SUBTRACT(%s, %s) AS missing", (gtid_set, from_set))[0]
        return "".join(str(row["missing"]).split())

    def filter(self) -> Filter:
        """Which tables are captured, and by which rules."""
        with speaking_to(self._source):
            folds = int(query(self._connection, "SELECT @@lower_case_table_names AS l")[0]["l"])
        return Filter(self._source.filters, folds)

    def tables(self, filter: Filter) -> list[SourceTable]:
        """The captured tables.

        Raises:
            PreflightError: some could be hidden from the user.
        """
        keys: dict[tuple[str, str], list[str]] = {}
        columns: dict[tuple[str, str], list[tuple[Column, str]]] = {}
        with speaking_to(self._source):
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
        self, filter: Filter, name: TableName, columns: Sequence[tuple[Column, str]], key: Sequence[str]
    ) -> SourceTable:
        """A table as its rule has it."""
        rule, published = filter.rule(*name), filter.published_name(name)
        found = [(column, base.lower()) for column, base in columns if kept(rule, column.name)]
        places = {column.name: index for index, (column, _) in enumerate(found)}
        changes = [
            (place, change)
            for place, (column, base) in enumerate(found)
            if (change := change_of(rule, column, base, key=column.name in key, hash_key=filter.hash_key)) is not None
        ]
        return SourceTable(
            name=(name.schema, name.table),
            columns=tuple(column for column, _ in found),
            key=tuple(places[part] for part in key if part in places),
            published=tuple(replace(one, name=filter.published_column(name, one.name)) for one, _ in found),
            target=(published.schema, published.table),
            changes=tuple(changes),
        )

    def rows(self, table: SourceTable) -> Iterable[Row]:
        """A table's rows in the form of `connector.verify.values`, as its rule has them."""
        found = self._rows(table)
        return changed(found, table.changes) if table.changes else found

    def _rows(self, table: SourceTable) -> Iterator[Row]:
        with speaking_to(self._source):
            double = as_double(self._connection)
        selected = ", ".join(_selected(column, double) for column in table.columns)
        sql = f"SELECT {selected} FROM {quoted(table.name[0])}.{quoted(table.name[1])}"
        mended = [
            (index, column.kind is Kind.DOUBLE)
            for index, column in enumerate(table.columns)
            if column.padded or column.kind is Kind.DOUBLE
        ]
        with speaking_to(self._source), self._as_bytes(), closing(SSCursor(self._connection)) as cursor:
            cursor.execute(sql)
            while batch := cast(Sequence[Row], cursor.fetchmany(ROWS_AT_ONCE)):
                yield from (_mended(row, mended) for row in batch) if mended else batch

    def close(self) -> None:
        """End the session."""
        self._connection.close()

    def _place(self) -> tuple[SourcePosition, str | None]:
        return end_position(self._connection), gtid_executed(self._connection)

    def _as_bytes(self) -> Any:
        return _AsBytes(self._connection)


def _check_all_seen(connection: Connection, source: Source) -> None:
    """Tables that the user may not read would be missing without a word."""
    place = next(unreadable(read_privileges(connection), source.filters.do), None)
    if place is not None:
        raise PreflightError(
            f"the user lacks SELECT on {place}: tables it may not read would silently not be compared",
            hint=f"GRANT SELECT ON {place} TO {account(source.user)};",
        )


def _selected(column: Column, double: str) -> str:
    name = quoted(column.name)
    if column.fixed:
        return f"CAST({name} AS BINARY({column.fixed}))"
    return double.format(name) if column.kind is Kind.DOUBLE else name


class _AsBytes:
    """While this is entered, pymysql gives values as the bytes that the server sent."""

    def __init__(self, connection: Connection) -> None:
        self._connection = cast(Any, connection)
        self._kept: tuple[Any, Any] = (None, None)

    def __enter__(self) -> None:
        self._kept = self._connection.decoders, self._connection.use_unicode
        self._connection.decoders, self._connection.use_unicode = {}, False

    def __exit__(self, *_: object) -> None:
        self._connection.decoders, self._connection.use_unicode = self._kept


def _mended(row: Row, places: list[tuple[int, bool]]) -> Row:
    values = list(row)
    for index, double in places:
        value = values[index]
        if value is not None:
            values[index] = double_form(float(value)) if double else number_form(value)
    return tuple(values)
