"""The initial load: every captured table at one position, as events before the stream.

Finding the position: FLUSH TABLES WITH READ LOCK blocks commits, START TRANSACTION WITH CONSISTENT SNAPSHOT fixes the
view, the position is read, UNLOCK TABLES. Writers wait for these statements alone. Each further connection begins its
transaction under the same lock, so all have one view. The tables are read afterwards in these transactions (`readers`).

DDL is not part of a transaction's view. The dictionary is read before and after the position, and again before each
table: a changed table ends the load with `SourceChanged`, and a new load has to begin. DDL on a table waits while the
table is read.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from connector.clock import Clock, SystemClock
from connector.config.source import Source
from connector.ddl.rename_tables import rename_tables
from connector.errors import ConnectorError, PreflightError, SourceChanged
from connector.log.ids import Kind, Outcome
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
from connector.mysql.snapshot.readers import Readers, TableOpened
from connector.mysql.transforms.filters import Filter
from connector.patterns import table_pattern

LOG: Final = logging.getLogger(__name__)
ATTEMPTS: Final = 5
TABLES_OF_A_READER: Final = 50  # small tables for which another connection is opened

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
        self._others: list[Connection] = []
        self._readers: Readers | None = None
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
            self._connect_others(before[1])
            self._point = fix_snapshot_point(connection, load=True, others=self._others)
            self._schemas, self._tables, self._definitions = after = self._dictionary(connection)
            if self._point.prepared:
                disturbed = "XA transactions were prepared"
            elif _identities(before) == _identities(after):
                return
            else:
                disturbed = "DDL changed the source's tables"
            for session in (connection, *self._others):
                query(session, "ROLLBACK")
        raise SourceChanged(f"the load did not begin in {ATTEMPTS} attempts: in the last one {disturbed}")

    def _connect_others(self, tables: Sequence[SourceTable]) -> None:
        """Opens as many further sessions as the tables are worth; fewer if the source refuses them."""
        settings = self._source.snapshot
        rows = sum(table.estimate for table in tables)
        useful = max(1, -(-rows // settings.chunk_rows), len(tables) // TABLES_OF_A_READER)
        while len(self._others) + 1 < min(useful, settings.connections):
            try:
                other = connect(self._source)
            except ConnectorError as error:
                LOG.warning(
                    "the source refuses a further connection of the initial load: it reads with fewer",
                    extra={"connections": len(self._others) + 1, "option": "source.snapshot.connections", "why": error},
                )
                return
            self._others.append(other)
            prepare_session(other, self._source)

    def batches(self) -> Iterator[TransactionBatch]:
        """The load as batches; each is a whole event.

        Raises:
            SourceUnavailable: the server is gone.
            SourceChanged: DDL changed a table before it was read.
            ValueNotRepresentable: a text is not valid in its character set; with table and column.
        """
        connection, point = self._opened()
        yield self._event("begin", Kind.TRANSACTION, [])
        tables = [table for table in self._tables if {"insert", "ddl"} & set(self._filter.actions(*table.layout.name))]
        yield from self._empty_schemas()
        readers = self._readers = Readers(self._source, self._filter, (connection, *self._others), self._sorted(tables))
        done = Counter[TableName]()
        began = self._clock.monotonic()
        for found in readers:
            name = found.table.layout.name
            if isinstance(found, TableOpened):
                yield from self._definition(found)
                continue
            done[name] += found.rows.count
            yield self._event("rows", Kind.TRANSACTION, [found.rows])
            self._progress(name, done[name], max(done[name], found.table.estimate))
            self._keep_pace(done.total(), began)
        file = {"file": point.position.file, "pos": str(point.position.offset)}
        if point.gtid_set is not None:
            file["gtid_set"] = point.gtid_set
        yield self._event("end", Kind.TRANSACTION, [], file)

    def close(self) -> None:
        """End the sessions. May be repeated."""
        if self._readers is not None:
            self._readers.close()
            self._readers = None
        connections = [*self._others, *([self._connection] if self._connection is not None else [])]
        self._others, self._connection = [], None
        for connection in connections:
            inner: Any = connection
            if inner.open:
                inner._force_close()

    def _sorted(self, tables: Sequence[SourceTable]) -> list[SourceTable]:
        """The tables in the order of `source.snapshot.first`, then by name."""
        first = [table_pattern(self._filter.fold(pattern.strip())) for pattern in self._source.snapshot.first]

        def rank(table: SourceTable) -> int:
            schema, name = (self._filter.fold(part) for part in table.layout.name)
            return next((rank for rank, pattern in enumerate(first) if pattern.finds(schema, name)), len(first))

        return sorted(tables, key=rank)

    def _keep_pace(self, rows: int, began: float) -> None:
        """Waits where the load is faster than `source.snapshot.max_rows_per_second`."""
        most = self._source.snapshot.max_rows_per_second
        if most is not None:
            self._clock.sleep(max(0.0, began + rows / most - self._clock.monotonic()))

    def _empty_schemas(self) -> Iterator[TransactionBatch]:
        """The definitions of schemas that no table's event defines."""
        defined = {
            table.layout.name.schema for table in self._tables if "ddl" in self._filter.actions(*table.layout.name)
        }
        for schema in self._schemas:
            if schema not in defined and self._filter.captures_schema_definitions(schema):
                statement = _create_schema(schema, self._schemas[schema], self._filter.published_schema(schema))
                yield self._event("table", Kind.DDL, [statement])

    def _definition(self, opened: TableOpened) -> Iterator[TransactionBatch]:
        name = opened.table.layout.name
        if statements := definition(self._filter, name, self._schemas[name.schema], opened.create):
            yield self._event("table", Kind.DDL, statements)

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

    def _dictionary(self, connection: Connection) -> _Dictionary:
        tables = read_tables(connection, self._filter)
        return read_schemas(connection, self._filter), tables, read_definitions(connection, self._filter)


def definition(filter: Filter, name: TableName, create_schema: str, create: str) -> list[Rows | Statement]:
    """The statements that create a table as it is published; none where it is not.

    Args:
        filter: the captured tables.
        name: the table.
        create_schema, create: the source's CREATE DATABASE and CREATE TABLE.
    """
    if "ddl" not in filter.actions(*name):
        return []
    published = filter.published_statement(Statement(name.schema, create), lambda _: None)
    if published is None:
        return []
    return [_create_schema(name.schema, create_schema, filter.published_name(name).schema), published]


def _create_schema(schema: str, create: str, published: str) -> Statement:
    return rename_tables(Statement(schema, create), lambda name: name, lambda _: published)


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
