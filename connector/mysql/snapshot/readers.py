"""Reads the tables of an initial load by several sessions that have the same view, each in a thread.

A reader stays with a table until no chunk of it is left; it helps with a table that another reader has opened before it
opens the next one. So tables are finished one after the other, and a table's metadata lock is held until its last chunk
is read: DDL on it waits.

A reader that cannot take the lock of a table which another one reads, because DDL waits for it, does not help with it.
"""

from __future__ import annotations

import socket
from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Condition, Lock, Thread
from typing import Any, Final

import pymysql

from connector.config.source import Source
from connector.errors import SourceChanged
from connector.log.ids import Action
from connector.log.transaction.batch import Rows
from connector.log.transaction.layout import TableName
from connector.mysql.server.connection import Connection, query, speaking_to
from connector.mysql.server.snapshot_point import LOCK_WAIT_TIMEOUT
from connector.mysql.snapshot.division import Division
from connector.mysql.snapshot.handover import Closed, Handover
from connector.mysql.snapshot.information_schema import SourceTable, read_tables
from connector.mysql.snapshot.key_ranges import KeyRange
from connector.mysql.snapshot.table_rows import table_rows
from connector.mysql.transforms.filters import Filter

EVENT_ROWS: Final = 50_000
CHANGED: Final = frozenset({1049, 1051, 1054, 1146, 1412})  # gone, or "Table definition has changed"


@dataclass(frozen=True, slots=True)
class TableOpened:
    """A table whose rows follow.

    Args:
        table: the table.
        create: its CREATE TABLE.
    """

    table: SourceTable
    create: str


@dataclass(frozen=True, slots=True)
class RowsRead:
    """Rows of an opened table.

    Args:
        table: the table.
        rows: the rows as they are published.
    """

    table: SourceTable
    rows: Rows


@dataclass(slots=True)
class _Shared:
    """A table that readers divide among themselves."""

    table: SourceTable
    division: Division
    lock: Lock = field(default_factory=Lock)

    def next(self, connection: Connection) -> KeyRange | None:
        with self.lock:
            return self.division.next(connection)


class Readers:
    """The readers of one initial load. Iterating starts them.

    Args:
        source: the source.
        filter: the captured tables.
        connections: sessions in the load's view; each is one reader's, until `close`.
        tables: the tables, in the order in which they are read.
    """

    def __init__(
        self, source: Source, filter: Filter, connections: Sequence[Connection], tables: Sequence[SourceTable]
    ) -> None:
        self._source = source
        self._filter = filter
        self._connections = connections
        self._event_rows = min(EVENT_ROWS, source.snapshot.max_rows_per_second or EVENT_ROWS)
        self._event_bytes = max(1, source.batch_bytes // 2)
        self._chunk_rows = source.snapshot.chunk_rows if len(connections) > 1 else None
        self._pending = deque(tables)
        self._shared: list[_Shared] = []
        self._opening = 0
        self._changed = Condition()
        self._found = Handover[TableOpened | RowsRead](2 * source.batch_bytes, len(connections))
        self._threads: list[Thread] = []

    def __iter__(self) -> Iterator[TableOpened | RowsRead]:
        """Yield what is read: each table's opening, then its rows, in no order of chunks.

        Raises:
            SourceUnavailable: the server is gone.
            SourceChanged: DDL changed a table before it was read.
            ValueNotRepresentable: a text is not valid in its character set; with table and column.
        """
        for number, connection in enumerate(self._connections):
            thread = Thread(target=self._run, args=(connection,), name=f"load-{number}", daemon=True)
            self._threads.append(thread)
            thread.start()
        yield from self._found

    def close(self) -> None:
        """Ends the readers and their sessions. May be repeated."""
        self._found.close()
        with self._changed:
            self._pending.clear()
            self._changed.notify_all()
        for connection in self._connections:
            _shut_down(connection)
        for thread in self._threads:
            thread.join()

    def _run(self, connection: Connection) -> None:
        try:
            with speaking_to(self._source):
                self._read_tables(connection)
        except Closed:
            self._found.end()
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that iterates
            self._found.fail(error)
        else:
            self._found.end()

    def _read_tables(self, connection: Connection) -> None:
        refused: set[TableName] = set()
        while (found := self._next_table(refused)) is not None:
            query(connection, "SAVEPOINT before_table")
            if isinstance(found, _Shared):
                shared, chunk = found, self._join(connection, found)
                if chunk is None:
                    refused.add(found.table.layout.name)
            else:
                shared, chunk = self._open(connection, found)
            if chunk is not None:
                self._read_chunks(connection, shared, chunk)
            query(connection, "ROLLBACK TO SAVEPOINT before_table")

    def _next_table(self, refused: set[TableName]) -> _Shared | SourceTable | None:
        """A table to help with, else one to open; None if there is neither. Waits while other readers open tables."""
        with self._changed:
            while True:
                self._shared = [shared for shared in self._shared if not shared.division.exhausted]
                for shared in self._shared:
                    if shared.table.layout.name not in refused:
                        return shared
                if self._pending:
                    self._opening += 1
                    return self._pending.popleft()
                if not self._opening:
                    return None
                self._changed.wait()

    def _open(self, connection: Connection, table: SourceTable) -> tuple[_Shared, KeyRange | None]:
        """Opens a table, takes its first chunk, and lets others help."""
        shared, chunk = _Shared(table, Division(table, self._chunk_rows)), None
        try:
            with _unchanged(table.layout.name):
                # From the first read on, DDL on this table waits, so the definition stays valid until the end.
                query(connection, f"SELECT 1 FROM {table.source} LIMIT 0")
                now = read_tables(connection, self._filter, table.layout.name)
                if [table.identity] != [found.identity for found in now]:
                    raise _changed_table(table.layout.name)
                create = query(connection, f"SHOW CREATE TABLE {table.source}")
                self._found.put(TableOpened(table, str(create[0]["Create Table"])))
                if "insert" in self._filter.actions(*table.layout.name):
                    chunk = shared.next(connection)
        finally:
            with self._changed:
                self._opening -= 1
                if chunk is not None and not shared.division.exhausted:
                    self._shared.append(shared)
                self._changed.notify_all()
        return shared, chunk

    def _join(self, connection: Connection, shared: _Shared) -> KeyRange | None:
        """Takes a chunk of a table that others read; None if there is none left, or if DDL waits for the table.

        A chunk that is left proves that another reader has held the table's lock since it was opened.
        """
        try:
            query(connection, f"SELECT 1 FROM {shared.table.source} LIMIT 0")
        except pymysql.MySQLError as error:
            if error.args and error.args[0] in CHANGED | {LOCK_WAIT_TIMEOUT}:
                return None
            raise
        return shared.next(connection)

    def _read_chunks(self, connection: Connection, shared: _Shared, first: KeyRange) -> None:
        table = shared.table
        transform = self._filter.row_transform(table.layout)
        chunk: KeyRange | None = first
        with _unchanged(table.layout.name):
            while chunk is not None:
                for data, ends in table_rows(connection, table, chunk, self._event_rows, self._event_bytes):
                    rows = Rows(table.layout, Action.INSERT, data, ends)
                    if transform is not None:
                        new_data, new_ends, _, _ = transform.rows(Action.INSERT, bytes(data), bytes(ends), b"", b"")
                        rows = Rows(transform.layout, Action.INSERT, new_data, array("Q", new_ends))
                    self._found.put(RowsRead(table, rows), len(rows.data))
                chunk = shared.next(connection)


def _shut_down(connection: Connection) -> None:
    """Ends a session from another thread, which may be waiting for an answer of it."""
    inner: Any = connection
    if inner.open:
        with suppress(OSError):
            inner._sock.shutdown(socket.SHUT_RDWR)


@contextmanager
def _unchanged(name: TableName) -> Iterator[None]:
    """Turns the server's "no such table" and "definition has changed" into `SourceChanged`."""
    try:
        yield
    except pymysql.MySQLError as error:
        if error.args and error.args[0] in CHANGED:
            raise _changed_table(name) from error
        raise


def _changed_table(name: TableName) -> SourceChanged:
    return SourceChanged("DDL changed a table while the initial load was reading: a new load has to begin", table=name)
