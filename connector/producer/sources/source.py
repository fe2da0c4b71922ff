"""The interface between the producer and its source: a live server, its archive, or files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from connector.log.gtid.source_gtids import parse_gtids
from connector.log.transaction.batch import TransactionBatch
from connector.log.transaction.definition import Definitions, Item
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


class Load(Protocol):
    """An initial load of the source's state at the time of opening."""

    @property
    def position(self) -> tuple[SourcePosition, str | None]:
        """The position at which the stream continues after the load, and all GTIDs before it."""

    @property
    def tables(self) -> Definitions | None:
        """The source's tables in that state; None if they are not followed."""

    def batches(self) -> Iterator[TransactionBatch]:
        """Yield the load as batches, each a whole event, from `snapshot=begin` to `snapshot=end`.

        Raises:
            SourceUnavailable: the connection is lost; the load must start again.
            SourceChanged: DDL changed a table before it was read; the load must start again.
        """

    def close(self) -> None:
        """Close the session. May be repeated."""


class EventSource(Protocol):
    """A server whose log is read. Every method raises `SourceUnavailable` if the server does not answer."""

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

    def check_widened(self, before: Mapping[str, Any] | None, accepted: Sequence[str]) -> None:
        """Check that the log has all rows of the tables that are captured from now on.

        Args:
            before: the earlier filters, as in `SourceFound.capture`; None: the log does not have them.
            accepted: patterns of tables that may be partial.

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

    def load(self) -> Load:
        """Open an initial load of the source's current state."""


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
