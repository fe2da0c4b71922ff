"""The initial load: every captured table at one position, as events before the stream.

Finding the position: FLUSH TABLES WITH READ LOCK blocks commits, START TRANSACTION WITH CONSISTENT SNAPSHOT fixes the
view, the position is read, UNLOCK TABLES. Writers wait for these statements alone. The tables are read afterwards in
that transaction.

DDL is not part of a transaction's view. The dictionary is read before and after the position, and again before each
table: a changed table ends the load with `SourceChanged`, and a new load has to begin. DDL on a table waits while the
table is read.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import pymysql

from connector.clock import Clock, SystemClock
from connector.config.source import Source
from connector.ddl.rename_tables import rename_tables
from connector.errors import PreflightError, SourceChanged
from connector.log.ids import Action, Kind, Outcome
from connector.log.transaction.batch import Rows, Statement, TransactionBatch, TransactionEnd, TransactionStart
from connector.log.transaction.definition import Definitions
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import SourcePosition
from connector.mysql.server.connection import Connection, connect, query, quoted, speaking_to
from connector.mysql.server.snapshot_point import SnapshotPoint, await_decided, fix_snapshot_point, prepare_session
from connector.mysql.snapshot.information_schema import (
    SourceTable,
    read_definitions,
    read_schemas,
    read_tables,
    unreadable_tables,
)
from connector.mysql.snapshot.table_rows import table_rows
from connector.mysql.transforms.filters import Filter

EVENT_ROWS: Final = 50_000
ATTEMPTS: Final = 5
CHANGED: Final = frozenset({1049, 1051, 1054, 1146, 1412})  # gone, or "Table definition has changed"

_Dictionary = tuple[dict[str, str], list[SourceTable], Definitions]

Progress = Callable[[TableName, int, int], None]
"""Called with a table, the number of rows read, and the approximate number of its rows."""


class Snapshot:
    """One initial load. Its events are bounded: at most `source.batch_bytes` / 2 of rows, but at least one row.

    Args:
        source: the source.
        filter: the captured tables.
        progress: called after every event of rows.
        clock: the clock for waits.
    """

    def __init__(
        self, source: Source, filter: Filter, progress: Progress | None = None, clock: Clock | None = None
    ) -> None:
        self._source = source
        self._filter = filter
        self._progress = progress or (lambda table, done, estimated: None)
        self._clock = clock or SystemClock()
        self._connection: Connection | None = None
        self._point: SnapshotPoint | None = None
        self._schemas: dict[str, str] = {}
        self._tables: list[SourceTable] = []
        self._definitions: Definitions | None = None

    @property
    def position(self) -> tuple[SourcePosition, str | None]:
        """The load's position, and the GTIDs before it; known after `open`."""
        point = self._opened()[1]
        return point.position, point.gtid_set

    @property
    def tables(self) -> Definitions | None:
        """All tables of captured schemas at the snapshot point; known after `open`."""
        return self._definitions

    def open(self) -> None:
        """Fixes the snapshot point.

        Raises:
            SourceUnavailable: the server is gone, or a long statement blocks the lock.
            SourceChanged: DDL or prepared XA transactions interfered in every attempt.
            PreflightError: a table cannot be read consistently, a privilege is missing, a rule matches no column, or an
                XA transaction stays prepared.
            Unsupported: a rule does not fit a table.
        """
        with speaking_to(self._source):
            self._connection = connect(self._source)
            prepare_session(self._connection, self._source)
            self._fix(self._connection)
            others = unreadable_tables(self._connection, self._filter)
        _refuse_others(others)
        _refuse_without_transactions(self._tables)
        self._filter.check_rules([table.layout for table in self._tables])

    def _fix(self, connection: Connection) -> None:
        """Finds a snapshot point at which the dictionary is unchanged and no XA transaction is prepared."""
        disturbed = ""
        for _ in range(ATTEMPTS):
            await_decided(connection, self._clock)
            before = self._dictionary(connection)
            self._point = fix_snapshot_point(connection, load=True)
            self._schemas, self._tables, self._definitions = after = self._dictionary(connection)
            if self._point.prepared:
                disturbed = "XA transactions were prepared"
            elif _identities(before) == _identities(after):
                return
            else:
                disturbed = "DDL changed the source's tables"
            query(connection, "ROLLBACK")
        raise SourceChanged(f"the load did not begin in {ATTEMPTS} attempts: in the last one {disturbed}")

    def batches(self) -> Iterator[TransactionBatch]:
        """The load as batches; each is a whole event.

        Raises:
            SourceUnavailable: the server is gone.
            SourceChanged: DDL changed a table before it was read.
            ValueNotRepresentable: a text is not valid in its character set; with table and column.
        """
        point = self._opened()[1]
        yield self._event("begin", Kind.TRANSACTION, [])
        by_schema: dict[str, list[SourceTable]] = {schema: [] for schema in self._schemas}
        for table in self._tables:
            by_schema.setdefault(table.layout.name.schema, []).append(table)
        for schema, tables in by_schema.items():
            defined = any("ddl" in self._filter.actions(*table.layout.name) for table in tables)
            if not defined and self._filter.captures_schema_definitions(schema):
                yield self._event(
                    "table", Kind.DDL, [self._create_schema(schema, self._filter.published_schema(schema))]
                )
            for table in tables:
                yield from self._table(table)
        found = {"file": point.position.file, "pos": str(point.position.offset)}
        if point.gtid_set is not None:
            found["gtid_set"] = point.gtid_set
        yield self._event("end", Kind.TRANSACTION, [], found)

    def close(self) -> None:
        """End the session. May be repeated."""
        if self._connection is not None:
            if self._connection.open:
                self._connection._force_close()  # type: ignore[attr-defined]
            self._connection = None

    def _table(self, table: SourceTable) -> Iterator[TransactionBatch]:
        connection, name = self._opened()[0], table.layout.name
        actions = self._filter.actions(*name)
        if not {"insert", "ddl"}.intersection(actions):
            return
        with self._unchanged(name):
            query(connection, "SAVEPOINT before_table")
            # From the first read on, DDL on this table waits, so the dictionary's definition stays valid until the end.
            query(connection, f"SELECT 1 FROM {quoted(name.schema)}.{quoted(name.table)} LIMIT 0")
            now = read_tables(connection, self._filter, name)
            if [table.identity] != [found.identity for found in now]:
                raise _changed(name)
            create = query(connection, f"SHOW CREATE TABLE {quoted(name.schema)}.{quoted(name.table)}")
        statement = self._filter.published_statement(
            Statement(name.schema, str(create[0]["Create Table"])), lambda _: None
        )
        if "ddl" in actions and statement is not None:
            create_schema = self._create_schema(name.schema, self._filter.published_name(name).schema)
            yield self._event("table", Kind.DDL, [create_schema, statement])
        if "insert" not in actions:
            return
        transform = self._filter.row_transform(table.layout)
        done = 0
        with self._unchanged(name):
            for data, ends in table_rows(connection, table, EVENT_ROWS, max(1, self._source.batch_bytes // 2)):
                done += len(ends)
                rows = Rows(table.layout, Action.INSERT, data, ends)
                if transform is not None:
                    new_data, new_ends, _, _ = transform.rows(Action.INSERT, bytes(data), bytes(ends), b"", b"")
                    rows = Rows(transform.layout, Action.INSERT, new_data, array("Q", new_ends))
                yield self._event("rows", Kind.TRANSACTION, [rows])
                self._progress(name, done, max(done, table.estimate))
            query(connection, "ROLLBACK TO SAVEPOINT before_table")

    def _create_schema(self, schema: str, published: str) -> Statement:
        return rename_tables(Statement(schema, self._schemas[schema]), lambda name: name, lambda _: published)

    def _event(
        self, part: str, kind: Kind, changes: list[Rows | Statement], more: Mapping[str, str] | None = None
    ) -> TransactionBatch:
        point = self._opened()[1]
        begin = TransactionStart(
            server_id=point.server_id,
            thread_id=0,
            gtid=None,
            last_committed=0,
            sequence_number=0,
            start=point.position,
            kind=kind,
            metadata={"snapshot": part, **(more or {})},
        )
        return TransactionBatch(begin, changes, TransactionEnd(point.position, point.time, Outcome.COMMIT))

    def _opened(self) -> tuple[Connection, SnapshotPoint]:
        if self._connection is None or self._point is None:
            raise RuntimeError("the snapshot is not open")
        return self._connection, self._point

    @contextmanager
    def _unchanged(self, name: TableName) -> Iterator[None]:
        """Turns the server's "no such table" and "definition has changed" into `SourceChanged`."""
        with speaking_to(self._source):
            try:
                yield
            except pymysql.MySQLError as error:
                if error.args and error.args[0] in CHANGED:
                    raise _changed(name) from error
                raise

    def _dictionary(self, connection: Connection) -> _Dictionary:
        tables = read_tables(connection, self._filter)
        return read_schemas(connection, self._filter), tables, read_definitions(connection, self._filter)


def _changed(name: TableName) -> SourceChanged:
    return SourceChanged("DDL changed a table while the initial load was reading: a new load has to begin", table=name)


def _identities(dictionary: _Dictionary) -> tuple[object, ...]:
    schemas, tables, definitions = dictionary
    return schemas, [table.identity for table in tables], definitions


def _refuse_others(others: list[str]) -> None:
    if others:
        raise PreflightError(
            "tables whose SELECT differs from the binary log cannot be loaded",
            hint="exclude them with source.filters.ignore, or begin without a load: source.start = now",
            tables=", ".join(others),
        )


def _refuse_without_transactions(tables: list[SourceTable]) -> None:
    without = [table.layout.name for table in tables if not table.transactional]
    if without:
        raise PreflightError(
            "tables whose engine has no transactions cannot be read consistently",
            hint=f"ALTER TABLE {quoted(without[0].schema)}.{quoted(without[0].table)} ENGINE = InnoDB; "
            "or exclude them with source.filters.ignore",
            tables=", ".join(map(str, without)),
        )
