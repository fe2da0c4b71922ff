"""The seam between the producer and its source: a live server, its archive, or files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from connector.log.gtid.source_gtids import parse_gtids
from connector.log.transaction.batch import TransactionBatch
from connector.log.transaction.definition import Definitions, Item
from connector.log.transaction.position import Finished, PositionRecord, SourcePosition
from connector.log.writing.online import SourceFound
from connector.mysql.server.dump import AfterGtids, StreamStart


class Stream(Protocol):
    """A source's log, read from a position on. Never goes back by itself."""

    @property
    def ended(self) -> bool:
        """True once everything is read: of files. A server's stream raises instead."""

    def read(self, timeout: float) -> list[Item]:
        """The next items, in order; empty when none came within `timeout` seconds.

        Raises:
            SourceUnavailable: the connection is gone; the stream can only be closed.
        """

    def close(self) -> None:
        """End the connection. May be repeated."""


class Load(Protocol):
    """An initial load, of the source's state at the time when it was opened."""

    @property
    def position(self) -> tuple[SourcePosition, str | None]:
        """The position at which the stream continues after the load, and every GTID before it."""

    @property
    def tables(self) -> Definitions | None:
        """The source's tables in that state; None where they are not followed."""

    def batches(self) -> Iterator[TransactionBatch]:
        """The load as whole events, one a batch, from `snapshot=begin` to `snapshot=end`.

        Raises:
            SourceUnavailable: the server is gone: the load must start again.
            SourceChanged: DDL changed a table that was still to be read: likewise.
        """

    def close(self) -> None:
        """End the session. May be repeated."""


@dataclass(frozen=True, slots=True)
class SnapshotCompleted:
    """The end of an initial load: in the same work as the event that is the load's last.

    Args:
        gtid_set: the transactions that the load contains; None where the source has no GTIDs.
    """

    gtid_set: str | None


class Source(Protocol):
    """A server whose log is read. Every method raises `SourceUnavailable` when it is gone."""

    def check(self, *, load: bool) -> None:
        """Make sure that the source is set up as the producer needs it.

        Args:
            load: check also the prerequisites of an initial load.

        Raises:
            PreflightError: a prerequisite is missing.
        """

    def facts(self, *, new: bool) -> SourceFound:
        """The identity of the source, and its present position.

        Args:
            new: a new log begins: find also its start position, by the configuration.
        """

    def check_widened(self, before: Mapping[str, Any] | None, accepted: Sequence[str]) -> None:
        """Make sure that the log has all rows of the tables that are captured from here on.

        Args:
            before: the capture until now, as in `SourceFound.capture`; None: the log does not have it.
            accepted: patterns of tables that may be partial.

        Raises:
            PreflightError: rows are missing, or that cannot be checked.
        """

    def holds(self, finished: Finished) -> bool:
        """True while the source's log has this transaction; it may have been purged, which is no error."""

    def created(self, file: str) -> int:
        """The time at which a file of its log was begun, seconds since 1970 UTC; 0 when unknown."""

    def redo(self, position: PositionRecord, tables: Definitions | None) -> Stream:
        """The source's log from the position's last finished event on, that one included.

        Args:
            position: the log's.
            tables: the source's tables at the position, after that event; None when they are not known.
        """

    def after(self, position: PositionRecord, tables: Definitions | None) -> Stream:
        """The source's log from the position on, with the tables there."""

    def load(self) -> Load:
        """Open an initial load of the source's present state."""


def start_after(position: PositionRecord, *, by_file: bool = False) -> StreamStart:
    """The start of a stream after a position.

    Args:
        position: the log's.
        by_file: by file and offset also where there are GTIDs: a transaction without a GTID has an offset, too.
    """
    return position.resume if by_file or position.gtid_set is None else AfterGtids(position.gtid_set)


def start_redo(position: PositionRecord, *, by_file: bool = False) -> StreamStart:
    """The start of a stream at the last finished transaction, by GTID or offset; without one, after the position."""
    finished = position.finished
    if finished is None:
        return start_after(position, by_file=by_file)
    if by_file or position.gtid_set is None or finished.gtid is None:
        return finished.start
    seen = parse_gtids(position.gtid_set)
    seen.remove(finished.gtid)
    return AfterGtids(str(seen))
