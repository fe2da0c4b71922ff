"""One round of table loads: chunks of some tables, read by several sessions in one view that lives for seconds.

The round has a position in the binary log. Rows are as they are there, except for those that were changed since the
round was opened: without a lock the view is older than the position by some statements. The stream has these changes.

Each session holds the locks of the tables' definitions until the round's end, so DDL on these tables waits, and the
definitions are those at the round's position.
"""

from __future__ import annotations

import logging
import socket
from array import array
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Condition, Thread
from typing import Any, Final

import pymysql

from connector import failpoints as faults
from connector.clock import Clock
from connector.config.source import Source
from connector.errors import ConnectorError, SourceChanged, SourceUnavailable, Unsupported
from connector.log.gtid.source_gtids import lacking
from connector.log.ids import Action
from connector.log.transaction.batch import Rows
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import PositionRecord, SourcePosition
from connector.mysql.server.connection import Connection, connect, query, source_errors
from connector.mysql.server.mariadb_state import is_mariadb, view_position
from connector.mysql.server.snapshot_point import (
    LOCK_SECONDS,
    LOCK_WAIT_TIMEOUT,
    LockNotGranted,
    check_one_server,
    prepare_session,
    read_lock,
)
from connector.mysql.server.source_facts import read_facts
from connector.mysql.server.source_state import end_position, gtid_executed
from connector.mysql.snapshot.division import Division, rows_of_a_chunk
from connector.mysql.snapshot.handover import Closed, Handover
from connector.mysql.snapshot.information_schema import SourceTable, read_schemas, read_tables
from connector.mysql.snapshot.key_ranges import Bound, KeyRange, Keys
from connector.mysql.snapshot.opened_table import CHANGED, Opened, lock_definitions, opened
from connector.mysql.snapshot.rows_by_key import Key, RowsByKey
from connector.mysql.snapshot.table_rows import table_rows
from connector.mysql.transforms.filters import Filter

LOG: Final = logging.getLogger(__name__)
PATIENCE: Final = 5.0  # seconds until the source has executed what its log already has
POLL_SECONDS: Final = 0.01
EVENT_ROWS: Final = 50_000
STALLED_SECONDS: Final = 120  # after which the source ends a session that takes nothing
NO_VALUES: Final = frozenset({1292, 1300, 1366, 1525})  # the server takes a literal for none


@dataclass(frozen=True, slots=True)
class RoundTable:
    """A table of a round.

    Args:
        name: the table, by its name on the source.
        after: its rows after this key; None: all.
        keys: its rows under these keys alone; none: no matter which.
    """

    name: TableName
    after: Bound | None = None
    keys: Sequence[Key] = ()


class LoadRound:
    """One round. `open`, then `rows` to its end, then `progress` of each table; `close` in any case.

    Args:
        source: the source.
        filter: the captured tables.
        tables: the tables.
        clock: the clock.
        lock: take a brief lock if it is granted: then no row can have changed since the round was opened. A round that
            needs the lock takes it anyway.

    Attributes:
        locked: the round has had the lock.
    """

    def __init__(
        self, source: Source, filter: Filter, tables: Sequence[RoundTable], clock: Clock, *, lock: bool
    ) -> None:
        self._source = source
        self._filter = filter
        self._asked = tables
        self._clock = clock
        self._sessions: list[Connection] = []
        self._threads: list[Thread] = []
        self._divisions: dict[TableName, Division] = {}
        self._next = Condition()  # holds what the sessions share
        self._dividing: set[TableName] = set()
        self._failed: dict[TableName, ConnectorError] = {}
        self._found: Handover[tuple[TableName, Rows]] | None = None
        self._deadline = 0.0
        self._divided = 0  # rows of the chunks so far, at most
        self._lock = lock
        self.locked = False
        self.position = SourcePosition("", 0)
        self.time = 0
        self.server_id = 0
        self.server_uuid = ""
        self.names = frozenset(one.name for one in tables)
        self.tables: dict[TableName, Opened] = {}

    def open(self, consumed: PositionRecord | None) -> None:
        """Fix the view and the round's position.

        Args:
            consumed: how far the stream has the binary log; the view has all of that. None: with a lock alone.

        Raises:
            SourceUnavailable: the server is gone, or a lock was not granted and is needed.
            SourceChanged: DDL is under way.
            PreflightError: a privilege is missing.
        """
        with source_errors(self._source):
            self._connect()
            check_one_server(self._sessions[0], self._sessions[1:])
            try:
                needed = consumed is None or not self._has_positions_of_views(consumed)
                self.locked = (self._lock or needed) and self._begin_locked(needed=needed)
                if consumed is not None and not self.locked:
                    self._begin_after(consumed)
            except pymysql.MySQLError as error:
                if error.args and error.args[0] in CHANGED | {LOCK_WAIT_TIMEOUT}:
                    raise SourceChanged(f"a round of a load did not get its locks: {error.args[-1]}") from error
                raise
            self._describe()

    def _connect(self) -> None:
        """Open the sessions; fewer, but one at least, if the source refuses more."""
        most = self._source.snapshot.connections
        while len(self._sessions) < most:
            try:
                session = connect(self._source)
            except ConnectorError as error:
                if not self._sessions:
                    raise
                fields = {"connections": len(self._sessions), "option": "source.snapshot.connections", "why": error}
                LOG.warning("the source refuses a further connection: a load reads with fewer", extra=fields)
                return
            self._sessions.append(session)
            prepare_session(session, self._source)
            # A stopped producer must not hold the definitions' locks for long.
            timeouts = "lock_wait_timeout = %s, wait_timeout = %s, net_write_timeout = %s"
            stalled = min(STALLED_SECONDS, self._source.net_write_timeout)
            query(session, f"SET SESSION {timeouts}", (LOCK_SECONDS, STALLED_SECONDS, stalled))

    def _begin(self) -> None:
        """Begin the view in each session, lock the definitions of the tables, then read the end of the binary log."""
        for session in self._sessions:
            query(session, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        for session in self._sessions:
            lock_definitions(session, [one.name for one in self._asked])
        faults.point("load.before_position")
        first = self._sessions[0]
        self.position = end_position(first)
        now = query(first, "SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED) AS t, @@server_id AS s")[0]
        self.time, self.server_id = int(now["t"]), int(now["s"])
        self.server_uuid = read_facts(first).server_uuid

    def _begin_locked(self, *, needed: bool) -> bool:
        """Begin under the read lock.

        Returns:
            False if the lock was not granted, and is not needed.
        """
        try:
            with read_lock(self._sessions[0]):
                self._begin()
        except LockNotGranted as error:
            if needed:
                raise
            LOG.debug("a round of loads begins without its lock", extra={"why": error})
            return False
        return True

    def _has_positions_of_views(self, consumed: PositionRecord) -> bool:
        """True if the server shows what a view contains: MariaDB by positions; MySQL by GTIDs, with gtid_mode=ON."""
        first = self._sessions[0]
        if is_mariadb(first):
            return True
        return consumed.gtid_set is not None and query(first, "SELECT @@GLOBAL.gtid_mode AS mode")[0]["mode"] == "ON"

    def _begin_after(self, consumed: PositionRecord) -> None:
        """Begin without a lock, once the engine shows what the binary log, and so the stream, already had."""
        give_up = self._clock.monotonic() + PATIENCE
        while not self._has_begun_after(consumed):
            if self._clock.monotonic() > give_up:
                raise SourceUnavailable("the source does not execute what is in its binary log", read=consumed.resume)
            self._clock.sleep(POLL_SECONDS)

    def _has_begun_after(self, consumed: PositionRecord) -> bool:
        first = self._sessions[0]
        if is_mariadb(first):
            self._begin()
            return all(view_position(session) >= consumed.resume for session in self._sessions)
        executed = gtid_executed(first)
        if executed is None or lacking(consumed.gtid_set or "", executed):
            return False
        self._begin()
        return True

    def _describe(self) -> None:
        schemas = read_schemas(self._sessions[0], self._filter)
        for asked in self._asked:
            for table in read_tables(self._sessions[0], self._filter, asked.name):
                name = table.layout.name
                if "insert" not in self._filter.actions(*name):
                    continue
                self.tables[name] = opened(self._sessions[0], self._filter, table, schemas[name.schema])

    def rows(self, names: Collection[TableName]) -> Iterator[tuple[TableName, Rows]]:
        """Read for about `source.snapshot.round_seconds`: rows of some of the tables, as they are published.

        Rows by their keys come first, a table after the other, each with the deletes of the keys that it has not.
        Tables without a key come last, each as a whole, one after the other.

        Raises:
            SourceUnavailable: the server is gone.
        """
        settings = self._source.snapshot
        for asked in self._asked:
            if asked.name in names and not asked.keys:
                table = self.tables[asked.name].table
                rows = rows_of_a_chunk(table, settings) if table.layout.key else None
                exact = settings.max_rows_per_second is not None
                self._divisions[asked.name] = Division(table, rows, asked.after, exact=exact)
        yield from self._rows_by_keys(names)
        if self._failed:
            return
        self._deadline = self._clock.monotonic() + settings.round_seconds
        self._found = Handover(2 * self._source.batch_bytes, len(self._sessions))
        for number, session in enumerate(self._sessions):
            thread = Thread(target=self._run, args=(session, self._found), name=f"load-{number}", daemon=True)
            self._threads.append(thread)
            thread.start()
        yield from self._found
        self._found = None
        yield from self._whole_tables()

    def _rows_by_keys(self, names: Collection[TableName]) -> Iterator[tuple[TableName, Rows]]:
        session = self._sessions[0]
        with source_errors(self._source):
            for name, keys in ((one.name, one.keys) for one in self._asked if one.keys and one.name in names):
                try:
                    table = self.tables[name].table
                    by_key = RowsByKey(table, keys)
                    for within in by_key.sets:
                        for rows in self._batches(session, table.of_keys, within):
                            by_key.found(rows)
                    # First, for a target may take the key of a delete for that of a row: its collation decides.
                    yield from ((name, self._published(name, rows)) for rows in by_key.absent())
                    for within in by_key.sets:
                        for rows in self._batches(session, table, within):
                            yield name, self._published(name, rows)
                except SourceUnavailable:
                    raise
                except ConnectorError as error:
                    self._failed[name] = error
                    return  # the session is of no further use
                except pymysql.MySQLError as error:
                    if not error.args or error.args[0] not in NO_VALUES:
                        raise
                    self._failed[name] = Unsupported(f"a key is no value of its columns: {error.args[-1]}", table=name)
                    return

    def _whole_tables(self) -> Iterator[tuple[TableName, Rows]]:
        session = self._sessions[0]
        with source_errors(self._source):
            for name, division in self._divisions.items():
                if not self.tables[name].has_key and not self._over and not self._failed:
                    self._divided += 1
                    chunk = division.next(session)
                    try:
                        for rows in self._batches(session, self.tables[name].table, chunk or KeyRange()):
                            yield name, self._published(name, rows)
                    except SourceUnavailable:
                        raise
                    except ConnectorError as error:
                        self._failed[name] = error

    @property
    def _over(self) -> bool:
        """True if no further chunk begins; each round has one at least, and about the rows of a second at most."""
        most = self._source.snapshot.max_rows_per_second
        enough = most is not None and self._divided >= most
        return bool(self._divided) and (enough or self._clock.monotonic() >= self._deadline)

    def progress(self, name: TableName) -> tuple[Bound | None, bool]:
        """The greatest key of a table's chunks, and whether they are all, after `rows`.

        Raises:
            ValueNotRepresentable, SourceChanged: the table could not be read.
        """
        if error := self._failed.get(name):
            raise error
        division = self._divisions[name]
        return division.after, division.exhausted

    def failed(self, name: TableName) -> ConnectorError | None:
        """The error with which a table could not be read."""
        return self._failed.get(name)

    def close(self) -> None:
        """End the sessions. May be repeated."""
        if self._found is not None:
            self._found.close()
        sessions, self._sessions = self._sessions, []
        for session in sessions:
            inner: Any = session
            if inner.open:
                with suppress(OSError):
                    inner._sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for session in sessions:
            inner = session
            if inner.open:
                inner._force_close()

    def _run(self, session: Connection, found: Handover[tuple[TableName, Rows]]) -> None:
        try:
            with source_errors(self._source):
                while (chunk := self._chunk(session)) is not None and self._read(session, *chunk, found):
                    pass
        except Closed:
            found.end()
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that iterates
            found.fail(error)
        else:
            found.end()

    def _chunk(self, session: Connection) -> tuple[TableName, KeyRange] | None:
        """The next chunk; None if there is none left, or the time is over.

        Its end may have to be looked up, which takes as long as the chunk's pages take to be read: other sessions
        divide other tables meanwhile.
        """
        while (name := self._taken()) is not None:
            try:
                chunk = self._divisions[name].next(session)
            finally:
                with self._next:
                    self._dividing.remove(name)
                    self._next.notify_all()
            if chunk is not None:
                return name, chunk
        return None

    def _taken(self) -> TableName | None:
        """Take a table that no other session divides, or wait for one; None: none is left, or the time is over."""
        with self._next:
            while not self._over and (left := self._left()):
                for name in left:
                    if name not in self._dividing:
                        self._dividing.add(name)
                        self._divided += self._divisions[name].chunk_rows
                        return name
                self._next.wait()
        return None

    def _left(self) -> list[TableName]:
        """The tables with a key that are not all divided."""
        return [
            name
            for name, division in self._divisions.items()
            if self.tables[name].has_key and not division.exhausted and name not in self._failed
        ]

    def _read(
        self, session: Connection, name: TableName, chunk: KeyRange, found: Handover[tuple[TableName, Rows]]
    ) -> bool:
        """Read a chunk; return False after an error of its table, with which the session is of no further use."""
        try:
            for read in self._batches(session, self.tables[name].table, chunk):
                rows = self._published(name, read)
                found.put((name, rows), len(rows.data))
        except Closed:
            raise
        except pymysql.MySQLError as error:
            if not error.args or error.args[0] not in CHANGED:
                raise
            self._failed[name] = SourceChanged(f"the table has changed: {error.args[-1]}", table=name)
        except ConnectorError as error:
            self._failed[name] = error
        return name not in self._failed

    def _batches(self, session: Connection, table: SourceTable, within: Keys) -> Iterator[Rows]:
        event_bytes = max(1, self._source.batch_bytes // 2)
        for data, ends in table_rows(session, table, within, EVENT_ROWS, event_bytes):
            yield Rows(table.layout, Action.READ, data, ends)

    def _published(self, name: TableName, rows: Rows) -> Rows:
        transform = self._filter.row_transform(self.tables[name].table.layout)
        if transform is None:
            return rows
        action = Action.INSERT if rows.action is Action.READ else rows.action
        images = transform.rows(action, bytes(rows.data), bytes(rows.ends), rows.before, rows.after)
        data, ends, before, after = images
        return Rows(transform.layout, rows.action, data, array("Q", ends), before, after)
