"""The interface between the producer and its source: a live server, its archive, or files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

from connector.errors import ConnectorError, PreflightError
from connector.log.epochs.load_pause import LoadPause
from connector.log.gtid.source_gtids import parse_gtids
from connector.log.transaction.batch import Rows, Statement
from connector.log.transaction.definition import Definitions, Item
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import AfterGtids, Finished, PositionRecord, SourcePosition, StreamStart
from connector.log.writing.online import SourceFound
from connector.producer.publish.acknowledger import Acknowledger


class Stream(Protocol):
    """A source's log, read from a position on. Never moves back by itself."""

    @property
    def ended(self) -> bool:
        """True once all files were read; a server's stream never ends, but raises an error."""

    def read(self, timeout: float) -> list[Item]:
        """Return the next items, in order; empty if none came within `timeout` seconds.

        Raises:
            SourceUnavailable: the connection is lost; the stream can only be closed.
        """

    def close(self) -> None:
        """Close the connection. May be repeated."""


class OpenedTable(Protocol):
    """A table that is loaded."""

    @property
    def published(self) -> TableName:
        """The name under which it is published."""

    @property
    def definition(self) -> Sequence[Rows | Statement]:
        """The statements that create it as it is at the round's position; none where they are not published."""

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns of its primary key by which it is divided."""

    @property
    def load_identity(self) -> tuple[str, ...]:
        """The facts that must stay as they are while the table is loaded: its creation, the division of its key."""

    def is_key(self, after: tuple[str, ...]) -> bool:
        """True if `after` has the form of the literals of one of its keys, by which it is divided."""

    @property
    def has_key(self) -> bool:
        """True if it has a primary key."""

    @property
    def refusal(self) -> PreflightError | None:
        """The reason why its rows cannot be read; None: they can."""

    @property
    def estimate(self) -> int:
        """Approximate number of its rows."""


class ReadOfSource(Protocol):
    """The place and time of a reading of the source for loads, apart from its log."""

    @property
    def time(self) -> int:
        """The source's time, µs since 1970 UTC."""

    @property
    def server_id(self) -> int:
        """The source's."""

    @property
    def server_uuid(self) -> str:
        """The source's own name for itself."""


class SourceSnapshot(ReadOfSource, Protocol):
    """The definitions of the captured tables at one position of the source's log."""

    @property
    def position(self) -> SourcePosition:
        """The position, at which the stream begins."""

    @property
    def gtid_set(self) -> str | None:
        """All GTIDs before it; None if the source has none."""

    @property
    def schemas(self) -> Sequence[Statement]:
        """The definitions of schemas without a captured table."""

    @property
    def tables(self) -> Mapping[TableName, OpenedTable]:
        """The captured tables by their names on the source, in the order in which they are to be loaded."""

    @property
    def unloaded(self) -> Sequence[OpenedTable]:
        """The tables of which the definition alone is published."""

    @property
    def definitions(self) -> Definitions | None:
        """All tables of captured schemas; None if they are not followed."""


class Round(ReadOfSource, Protocol):
    """A round of loads: chunks of tables in one consistent view. `open`, `rows`, `progress`; `close` in any case."""

    @property
    def locked(self) -> bool:
        """True if the view is that of the position: no row has changed between them."""

    @property
    def position(self) -> SourcePosition:
        """The position in the source's log at which the rows are published."""

    @property
    def names(self) -> Collection[TableName]:
        """The tables that the round is for, whether they are there or not."""

    @property
    def tables(self) -> Mapping[TableName, OpenedTable]:
        """Those that exist."""

    def open(self, consumed: PositionRecord | None) -> None:
        """Fix view and position.

        Args:
            consumed: how far the stream has the source's log; the view has all of that.

        Raises:
            SourceUnavailable: the source is gone.
            SourceChanged: it did not get its locks; the next one may.
        """

    def rows(self, names: Collection[TableName]) -> Iterator[tuple[TableName, Rows]]:
        """Read chunks of some of the tables for about a second; a table without a key is one chunk, and comes last.

        Of a table that is repaired read first the deletes of the keys that it has not, then the rows: a target's
        collation may take one key for the other.

        Raises:
            SourceUnavailable: the source is gone.
        """

    def progress(self, name: TableName) -> tuple[tuple[str, ...] | None, bool]:
        """The greatest key of a table's chunks, and whether they were the last ones.

        Raises:
            ConnectorError: the table could not be read.
        """

    def failed(self, name: TableName) -> ConnectorError | None:
        """The error with which a table could not be read."""

    def close(self) -> None:
        """End the sessions. May be repeated."""


class EventSource(Protocol):
    """A source whose log is read: a server, its archive, or files.

    Every method raises `SourceUnavailable` if the server does not answer.
    """

    @property
    def acknowledger(self) -> Acknowledger | None:
        """Tells the source how far Kafka has its log; None: it does not wait for that."""

    def check(self, *, load: bool) -> None:
        """Check that the source is set up as the producer needs it.

        Args:
            load: also check the prerequisites of an initial load.

        Raises:
            PreflightError: a prerequisite is missing.
        """

    def facts(self, *, new: bool) -> SourceFound:
        """Return the identity of the source, and its current position.

        Args:
            new: True for a new log: also find its start position by `source.start`.
        """

    def check_widened(self, before: Mapping[str, Any] | None, accepted: Sequence[str]) -> Mapping[TableName, TableName]:
        """Check that the log has, or a load brings, all rows of the tables that are captured from now on.

        Args:
            before: the earlier filters, as in `SourceFound.capture`; None: the log does not have them.
            accepted: patterns of tables that may be partial.

        Returns:
            The tables that are to be loaded, by their names on the source, with their published names.

        Raises:
            PreflightError: rows are missing, or this cannot be checked.
        """

    def holds(self, finished: Finished) -> bool:
        """Return True while the source's log has this transaction; False if it was purged."""

    def created(self, file: str) -> int:
        """Return the creation time of a file of its log, seconds since 1970 UTC; 0 if unknown."""

    def redo(self, position: PositionRecord, tables: Definitions | None) -> Stream:
        """Return a stream from the position's last finished event on, that event included.

        Args:
            position: the log's position.
            tables: the source's tables after that event; None if they are not known.
        """

    def after(self, position: PositionRecord, tables: Definitions | None) -> Stream:
        """Return a stream from the position on; `tables` are the source's tables there."""

    def snapshot(self) -> SourceSnapshot:
        """Return the tables' definitions at the source's current position, with which an initial load begins.

        Raises:
            SourceChanged: DDL changed the tables meanwhile; the next call may succeed.
        """

    def round(
        self,
        after: Mapping[TableName, tuple[str, ...] | None],
        keys: Mapping[TableName, Sequence[tuple[str, ...]]],
        *,
        lock: bool,
    ) -> Round:
        """A round of the loads of tables.

        Args:
            after: each table, and the key after which its rows are wanted; None: all rows.
            keys: the keys whose rows are wanted of a table that is repaired, as in `LoadRequest`.
            lock: take a brief lock.

        Raises:
            PreflightError: the source has no tables.
        """

    def load_pause(self, position: PositionRecord, newest_commit: int | None) -> LoadPause | None:
        """Return the reason for which no round of loads may begin now; None: one may.

        Args:
            position: the log's position.
            newest_commit: commit time of the log's newest event, in µs; None: unknown.

        Raises:
            PreflightError: the user may not see what has to be known.
        """


def start_after(position: PositionRecord, *, by_file: bool = False) -> StreamStart:
    """Return the start of a stream after a position.

    Args:
        position: the log's position.
        by_file: start by file and offset despite GTIDs, because transactions without a GTID also have an offset.
    """
    return position.resume if by_file or position.gtid_set is None else AfterGtids(position.gtid_set)


def start_redo(position: PositionRecord, *, by_file: bool = False) -> StreamStart:
    """Return the start of a stream at the last finished transaction; if there is none, after the position."""
    finished = position.finished
    if finished is None:
        return start_after(position, by_file=by_file)
    if by_file or position.gtid_set is None or finished.gtid is None:
        return finished.start
    seen = parse_gtids(position.gtid_set)
    seen.remove(finished.gtid)
    return AfterGtids(str(seen))
